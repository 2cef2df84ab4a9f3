/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as data: tiles, lookups, counts, printing. */
#include "plan.h"

#include <string.h>

void plan_destroy(plan **plan_)
{
    plan *p = *plan_;
    if (!p)
        return;
    for (int i = 0; i < p->dist_values.n; i++)
        ARRAY_FREE(&p->dist_values.at[i].pieces);
    ARRAY_FREE(&p->shards);
    ARRAY_FREE(&p->aliases);
    ARRAY_FREE(&p->operands);
    ARRAY_FREE(&p->calls);
    ARRAY_FREE(&p->steps);
    ARRAY_FREE(&p->dist_values);
    hash_table_free(&p->by_value);
    ARRAY_FREE(&p->exchanges);
    ARRAY_FREE(&p->imports);
    for (int i = 0; i < p->meshes.n; i++)
        trama_mesh_destroy(&p->meshes.at[i]);
    ARRAY_FREE(&p->meshes);
    for (int i = 0; i < p->groups.n; i++)
        free(p->groups.at[i].places);
    ARRAY_FREE(&p->groups);
    ARRAY_FREE(&p->gpus);
    ARRAY_FREE(&p->footprint);
    for (int i = 0; i < p->masks.n; i++)
        free(p->masks.at[i]);
    ARRAY_FREE(&p->masks);
    free(p);
    *plan_ = NULL;
}

void plan_trim(plan *p)
{
    ARRAY_TRIM(&p->shards);
    ARRAY_TRIM(&p->aliases);
    ARRAY_TRIM(&p->operands);
    ARRAY_TRIM(&p->calls);
    ARRAY_TRIM(&p->steps);
    ARRAY_TRIM(&p->dist_values);
    ARRAY_TRIM(&p->exchanges);
}

/* ---- Distributed values ---- */

static uint64_t hash_of_value(int value)
{
    return hash_word(HASH_START, (uint64_t)value);
}

plan_dist_value *plan_add(plan *p, plan_dist_value h)
{
    plan_dist_value *added = ARRAY_PUSH(&p->dist_values);
    *added = h;
    hash_table_add(&p->by_value, hash_of_value(h.value), p->dist_values.n - 1);
    return added;
}

void plan_remove(plan *p, int dist_value)
{
    plan_dist_value *at = &p->dist_values.at[dist_value];
    memmove(at, at + 1, (size_t)(--p->dist_values.n - dist_value) * sizeof *at);
    hash_table_clear(&p->by_value);
    for (int i = 0; i < p->dist_values.n; i++)
        hash_table_add(&p->by_value, hash_of_value(p->dist_values.at[i].value), i);
}

int plan_next_of(const plan *p, int value, int *probe)
{
    int i = 0;
    while ((i = hash_table_find(&p->by_value, hash_of_value(value), probe)) >= 0)
        if (p->dist_values.at[i].value == value)
            break;
    return i;
}

const plan_dist_value *plan_find(const plan *p, int value)
{
    int probe = 0, first = plan_next_of(p, value, &probe);
    return first < 0 ? NULL : &p->dist_values.at[first];
}

void plan_prefer(plan *p, int value, int dist_value)
{
    plan_dist_value *first = (plan_dist_value *)plan_find(p, value), *own = &p->dist_values.at[dist_value], kept = *own;
    *own = *first;
    *first = kept;
}

plan_alias plan_dense(const box *b)
{
    plan_alias a = {0};
    int64_t next = 1;
    for (int d = b->ndim - 1; d >= 0; next *= b->n[d--])
        a.stride[d] = next;
    return a;
}

box plan_tile(const plan_shard *s, int i)
{
    box tile = s->box;
    if (s->cut_parts > 1) {
        int64_t lo;
        piece_of(s->box.n[s->cut_dim], s->cut_parts, i, &lo, &tile.n[s->cut_dim]);
        tile.lo[s->cut_dim] += lo;
    }
    return tile;
}

void plan_tiles(const plan_shard *s, const box *b, int *first, int *last)
{
    *first = *last = 0;
    if (s->cut_parts <= 1 || box_count(b) == 0)
        return;
    int64_t from = b->lo[s->cut_dim] - s->box.lo[s->cut_dim], extent = s->box.n[s->cut_dim];
    *first = piece_find(extent, s->cut_parts, from);
    *last = piece_find(extent, s->cut_parts, from + b->n[s->cut_dim] - 1);
}

plan_tile_numbers plan_number_tiles(const plan *p)
{
    plan_tile_numbers numbers = {0, trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *numbers.first)};
    for (int s = 0; s < p->shards.n; s++)
        if (p->shards.at[s].reuses < 0) {
            numbers.first[s] = numbers.n;
            numbers.n += p->shards.at[s].cut_parts;
        }
    for (int s = 0; s < p->shards.n; s++)
        if (p->shards.at[s].reuses >= 0)
            numbers.first[s] = numbers.first[p->shards.at[s].reuses];
    return numbers;
}

plan_range plan_tiles_used(const plan *p, const plan_tile_numbers *numbers, const plan_operand *o)
{
    int used_as = plan_used_as(p, o->region.shard), start = numbers->first[used_as];
    plan_range r = {0, o->access == ACCESS_NONE ? -1 : 0};
    if (p->shards.at[used_as].source != SHARD_BUNDLE && o->access != ACCESS_NONE)
        plan_tiles(&p->shards.at[o->region.shard], &o->region.box, &r.first, &r.last);
    return (plan_range){r.first + start, r.last + start};
}

bool plan_has_form_of(const plan_shard *a, const plan_shard *b)
{
    bool same = a->place == b->place && a->dtype == b->dtype && a->box.ndim == b->box.ndim &&
                a->cut_dim == b->cut_dim && a->cut_parts == b->cut_parts && a->shared == b->shared;
    for (int d = 0; same && d < a->box.ndim; d++)
        same = a->box.n[d] == b->box.n[d];
    return same;
}

int plan_buffer_of(const plan *p, int shard)
{
    while (p->shards.at[shard].within >= 0 && !plan_in_arena(p, &p->shards.at[shard]))
        shard = p->shards.at[shard].within;
    return shard;
}

bool plan_may_lend(const plan *p, const machine *m, const plan_step *s)
{
    return m->loan_bytes && s->kind >= STEP_SEND && plan_message_bytes(p, s) >= m->loan_bytes &&
           machine_same_node(m, s->place, s->peer_place) && !m->places[s->place].gpu && !m->places[s->peer_place].gpu;
}

int plan_exact_tile(const plan_shard *s, const box *b)
{
    int first, last;
    plan_tiles(s, b, &first, &last);
    box tile = plan_tile(s, first);
    return first == last && box_equal(&tile, b) ? first : -1;
}

const char *collective_name(collective_form form)
{
    static const char *const names[] = {[PLAN_ALL_GATHER] = "all-gather",
                                        [PLAN_ALL_TO_ALL] = "all-to-all",
                                        [PLAN_BROADCAST] = "broadcast",
                                        [PLAN_REDUCE_SCATTER] = "reduce-scatter",
                                        [PLAN_ALL_REDUCE] = "all-reduce"};
    return names[form];
}

int plan_member(const plan *p, const plan_step *s)
{
    const plan_group *g = &p->groups.at[s->collective.group];
    for (int i = 0; i < g->n; i++)
        if (g->places[i] == s->place)
            return i;
    return -1;
}

plan_share plan_share_of(const plan *p, const plan_step *s)
{
    const plan_collective *c = &s->collective;
    int64_t n = p->groups.at[c->group].n, size = (int64_t)trama_dtype_size(c->dtype);
    if (c->form == PLAN_BROADCAST) { /* the last of the ring sends nothing on */
        int64_t behind = (plan_member(p, s) - c->root + n) % n, bytes = c->count * size;
        return (plan_share){behind > 0 ? bytes : 0, behind < n - 1 ? bytes : 0};
    }
    int64_t elements = (n - 1) * c->count;
    if (c->form == PLAN_ALL_REDUCE) /* a reduce-scatter, then an all-gather */
        elements = 2 * ((elements + n - 1) / n);
    return (plan_share){elements * size, elements * size};
}

plan_totals plan_count(const plan *p)
{
    plan_totals t = {0};
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        t.received += e->received;
        t.sent += e->sent;
        t.together_received += e->together_received;
        t.together_sent += e->together_sent;
        t.least += max_i64(e->least, 0);
        t.messages += e->messages;
        t.collectives += e->collectives;
    }
    t.steps = p->steps.n;
    for (int i = 0; i < p->steps.n; i++)
        t.computes += p->steps.at[i].kind == STEP_COMPUTE;
    return t;
}

static void region_text(text *out, const plan *p, const trama_program *program, const plan_region *r)
{
    const plan_shard *s = &p->shards.at[r->shard];
    const char *name = s->source == SHARD_BUNDLE  ? "bundle"
                       : s->source == SHARD_TOKEN ? "token"
                                                  : trama_value_name(program->values.at[s->value]);
    text_add(out, "%s#%d", name, r->shard);
    if (p->shards.at[r->shard].reuses >= 0)
        text_add(out, "=%d", p->shards.at[r->shard].reuses);
    if (s->source == SHARD_ALIAS)
        text_add(out, "~%d", s->within);
    if (plan_in_arena(p, &p->shards.at[r->shard]))
        text_add(out, "@%lld", (long long)p->shards.at[r->shard].at);
    box_text(out, &r->box);
}

static void collective_text(text *out, const plan *p, const plan_step *s)
{
    const plan_group *g = &p->groups.at[s->collective.group];
    text_add(out, " %s", collective_name(s->collective.form));
    if (s->collective.form >= PLAN_REDUCE_SCATTER)
        text_add(out, " %s", reduce_name(s->reduce));
    text_add(out, " of %lld among places", (long long)s->collective.count);
    for (int i = 0; i < g->n; i++)
        text_add(out, " %d", g->places[i]);
    if (s->collective.form == PLAN_BROADCAST)
        text_add(out, " from %d", g->places[s->collective.root]);
}

/* Of the states before an op the nearest one, or else the nearest input; NULL where the ops looked at have none. */
static const trama_value *nearest_tensor(const trama_node *node)
{
    enum { MOST = 256 };
    const trama_node *nodes[MOST] = {node};
    const trama_value *input = NULL;
    for (int i = 0, n = 1; i < n; i++)
        for (int t = 0; t < nodes[i]->op->n_in; t++) {
            trama_value *v = nodes[i]->in[t];
            const trama_value *state = value_storage(v);
            if (state && state != node->program->run_counter)
                return state;
            input = input || v->kind != VALUE_INPUT ? input : v;
            if (v->node && n < MOST)
                nodes[n++] = v->node;
        }
    return input;
}

/* The user's line, and the tensor that the user named. Moved values have those of the op that made them. */
static void origin_text(text *out, const plan *p, const trama_program *program, const plan_step *s)
{
    const plan_shard *shard = s->n_operands ? &p->shards.at[plan_step_operand(p, s, 0)->region.shard] : NULL;
    const trama_node *node = NULL;
    if (s->kind == STEP_COMPUTE)
        node = program->nodes.at[p->calls.at[s->call].node];
    else if (shard && shard->source != SHARD_BUNDLE && shard->source != SHARD_TOKEN)
        node = program->values.at[shard->value]->node;
    if (!node || !node->where.file)
        return;
    const trama_value *of = node->out[0]->gradient.of, *near = nearest_tensor(node);
    const char *file = strrchr(node->where.file, '/');
    text_add(out, "  (%s:%d", file ? file + 1 : node->where.file, node->where.line);
    if (of && value_storage((trama_value *)of))
        text_add(out, ", gradient of %s", of->name);
    else if (near)
        text_add(out, ", near %s", near->name);
    text_add(out, ")");
}

static void step_text(text *out, const plan *p, const trama_program *program, const plan_step *s)
{
    static const char *const names[] = {"compute", "copy", "reduce", "fill", "order", "collective", "send", "receive"};
    static const char *const marks[] = {"", "", ">", "+"};
    text_add(out, "%-8s %splace %d", names[s->kind], plan_on_gpu(p, s->place) ? "GPU " : "", s->place);
    if (s->lane >= 0)
        text_add(out, " lane %d", s->lane);
    if (s->kind == STEP_SEND || s->kind == STEP_RECEIVE)
        text_add(out, " %s rank %d tag %lld", s->kind == STEP_SEND ? "to" : "from", s->peer, (long long)s->tag);
    if (s->kind == STEP_COLLECTIVE)
        collective_text(out, p, s);
    if (s->kind == STEP_REDUCE)
        text_add(out, " %s", reduce_name(s->reduce));
    if (s->n_terms)
        text_add(out, " %s of %d,", reduce_name(s->reduce), s->n_terms);
    for (int i = 0; i < s->n_calls; i++)
        text_add(out, " %s", program->nodes.at[p->calls.at[s->call + i].node]->op->name);
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        text_add(out, " %s", marks[o->access]);
        region_text(out, p, program, &o->region);
    }
    origin_text(out, p, program, s);
    text_add(out, "\n");
}

void plan_describe(const plan *p, const trama_program *program, text *out)
{
    for (int i = 0; i < p->steps.n; i++)
        step_text(out, p, program, &p->steps.at[i]);
}

static void side_text(text *out, const trama_mesh *mesh, const trama_layout *layout)
{
    if (mesh)
        layout_text(out, mesh, layout);
    else
        text_add(out, "boxes of the host");
}

const trama_node *plan_copying_node(const plan *p, const trama_program *program, const plan_step *s)
{
    if (s->kind != STEP_COMPUTE || s->n_calls != 1 || s->n_terms)
        return NULL;
    const trama_node *node = program->nodes.at[p->calls.at[s->call].node];
    return node->op->view ? node : NULL;
}

int plan_count_copies(const plan *p, const trama_program *program)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++)
        n += plan_copying_node(p, program, &p->steps.at[i]) != NULL;
    return n;
}

void plan_summary(const plan *p, const trama_program *program, text *out)
{
    plan_totals t = plan_count(p);
    text_add(out, "rank %d: %d steps, %d of them compute and %d only rearrange; %d shards, %d of them read in place\n",
             p->rank, t.steps, t.computes, plan_count_copies(p, program), p->shards.n, p->aliases.n);
    for (int i = 0; i < p->footprint.n; i++)
        if (p->footprint.at[i].bytes)
            text_add(out, "  buffers on place %d: %lld B, of which a step needs at most %lld B at a time\n", i,
                     (long long)p->footprint.at[i].bytes, (long long)p->footprint.at[i].live);
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        text from = {0}, to = {0};
        side_text(&from, e->from_mesh, &e->from);
        side_text(&to, e->to_mesh, &e->to);
        text_add(out, "  %-24s %16s -> %-16s received %lld B, sent %lld B in %d messages",
                 trama_value_name(program->values.at[e->value]), from.at, to.at, (long long)e->received,
                 (long long)e->sent, e->messages);
        if (e->bound >= 0)
            text_add(out, "; its processes lack %lld B", (long long)e->bound);
        if (e->buffers)
            text_add(out, "; message buffers %lld B", (long long)e->buffers);
        if (e->bundled)
            text_add(out, "; %d bundled", e->bundled);
        if (e->heterogeneous)
            text_add(out, "; computed on places of one kind");
        if (e->collectives)
            text_add(out, "; %d collectives", e->collectives);
        text_add(out, "\n");
        free(from.at);
        free(to.at);
    }
    text_add(out, "  a run receives %lld B, sends %lld B, in %d messages", (long long)t.received, (long long)t.sent,
             t.messages);
    if (t.collectives)
        text_add(out, " and %d collectives", t.collectives);
    text_add(out, "\n");
}
