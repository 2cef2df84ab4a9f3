/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges that GPUs make by collectives, as collective_choice.h says: the steps of the members of this rank. */
#include "exchange.h"

/* ---- Places ---- */

bool is_on_gpus(const exchange *x)
{
    if (x->t.to.mask || x->t.to_mesh->size < 2 || !map_is_distinct(x->q->s.map, x->t.to_mesh))
        return false;
    for (int i = 0; i < x->t.to_mesh->size; i++)
        if (!plan_on_gpu(x->q->p, place_of(x->q, x->t.to_mesh, i)))
            return false;
    return true;
}

int find_root(const exchange *x)
{
    int root = -1;
    for (int i = 0; i < x->t.from_mesh->size; i++) {
        box b;
        if (!layout_present(&x->t.from, i))
            continue;
        layout_box(x->t.from_mesh, &x->t.from, &x->t.whole, i, &b);
        if (root >= 0 || !box_equal(&b, &x->t.whole))
            return -1;
        root = place_of(x->q, x->t.from_mesh, i);
    }
    for (int i = 0; i < x->t.to_mesh->size; i++)
        if (place_of(x->q, x->t.to_mesh, i) == root)
            return i;
    return -1;
}

/* ---- Groups ---- */

static bool same_group(const plan_group *a, const plan_group *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->places[i] != b->places[i])
            return false;
    return a->n == b->n;
}

/* The number in the plan of a position's group, which is added if it is new. */
static int group_of(exchange *x, const collective_choice *w, int position)
{
    const trama_mesh *mesh = x->t.to_mesh;
    plan *p = x->q->p;
    plan_group g = {.n = w->axis < 0 ? mesh->size : mesh->shape[w->axis]};
    int coordinate[TRAMA_MAX_AXES];
    g.places = trama_alloc((size_t)g.n * sizeof *g.places);
    mesh_coordinate(mesh, position, coordinate);
    for (int i = 0; i < g.n; i++) {
        if (w->axis >= 0)
            coordinate[w->axis] = i;
        g.places[i] = place_of(x->q, mesh, w->axis < 0 ? i : mesh_position(mesh, coordinate));
    }
    for (int i = 0; i < p->groups.n; i++)
        if (same_group(&p->groups.at[i], &g)) {
            free(g.places);
            return i;
        }
    *ARRAY_PUSH(&p->groups) = g;
    return p->groups.n - 1;
}

static plan_region token_of(partition *q, int value, int place)
{
    const box none = {.ndim = 0};
    for (int i = 0; i < q->p->shards.n; i++)
        if (q->p->shards.at[i].source == SHARD_TOKEN && q->p->shards.at[i].place == place)
            return (plan_region){i, none};
    int token = partition_shard(q, SHARD_TOKEN, value, place, &none, -1, 1);
    q->p->shards.at[token].dtype = TRAMA_U8;
    return (plan_region){token, none};
}

/* ---- Memory ---- */

/* Part i of a region along a dim; -1: all of it. */
static plan_region part_in(const plan_region *r, int dim, int n, int i)
{
    return (plan_region){r->shard, dim < 0 ? r->box : collective_part(&r->box, dim, n, i)};
}

/* Whether the parts of a region along a dim (-1: all of it) lie one after the other, without gaps. */
static bool lies_in_order(const exchange *x, const plan_region *r, int dim)
{
    const plan_shard *s = &x->q->p->shards.at[r->shard];
    for (int d = 0; d < dim; d++)
        if (r->box.n[d] > 1)
            return false;
    return !s->host && !s->strided && box_is_run(&s->box, &r->box);
}

/* A bundle: memory for n boxes of one size, the parts of a region along a dim (-1: the whole region, n times). The
 * shards that follow it are its parts. */
static plan_region make_bundle(exchange *x, int place, int n, const plan_region *like, int dim)
{
    partition *q = x->q;
    const plan_region r = *like;
    box first = part_in(&r, dim, n, 0).box;
    const box memory = {.ndim = 1, .n = {n * box_count(&first)}};
    int bundle = partition_shard(q, SHARD_BUNDLE, x->value, place, &memory, -1, 1);
    for (int i = 0; i < n; i++) {
        const box b = part_in(&r, dim, n, i).box;
        int number = partition_shard(q, SHARD_MESSAGE, x->value, place, &b, -1, 1);
        plan_shard *part = &q->p->shards.at[number];
        part->within = bundle;
        part->at = i * box_count(&b);
        part->exchange = q->p->exchanges.n;
    }
    x->count.buffers += region_bytes(x, &memory);
    return (plan_region){bundle, memory};
}

static plan_region bundle_part(const exchange *x, int bundle, int i)
{
    return (plan_region){bundle + 1 + i, x->q->p->shards.at[bundle + 1 + i].box};
}

/* Copies the parts of a region into those of a bundle, or the reverse. */
static void add_parts(exchange *x, int phase, int place, const plan_region *r, int dim, int n, int bundle, bool into)
{
    exchange_step *s = add_step(x, phase, STEP_COPY, place);
    s->many = x->sources.n;
    s->n = 2 * n;
    for (int i = 0; i < n; i++) {
        plan_region whole = part_in(r, dim, n, i), part = bundle_part(x, bundle, i);
        *ARRAY_PUSH(&x->sources) = (plan_operand){into ? part : whole, ACCESS_WRITE};
        *ARRAY_PUSH(&x->sources) = (plan_operand){into ? whole : part, ACCESS_READ};
    }
}

/* A bundle with the parts of a region one after the other, which are copied into it in that phase, or out of it. */
static plan_region bundled(exchange *x, int phase, int place, plan_region r, int dim, int n, bool into)
{
    n = dim < 0 ? 1 : n;
    plan_region buffer = make_bundle(x, place, n, &r, dim);
    add_parts(x, phase, place, &r, dim, n, buffer.shard, into);
    return buffer;
}

/* Memory that has them so: the region, where they lie so, else a bundle. */
static plan_region in_order(exchange *x, int phase, int place, plan_region r, int dim, int n, bool into)
{
    return lies_in_order(x, &r, dim) ? r : bundled(x, phase, place, r, dim, n, into);
}

/* ---- Steps ---- */

/* A member's part in a collective of its group, of count elements. */
static exchange_step *add_collective(exchange *x, int phase, int place, plan_collective c, const plan_region *to,
                                     const plan_region *from)
{
    exchange_step *s = add_step(x, phase, STEP_COLLECTIVE, place);
    s->many = x->sources.n;
    if (to)
        *ARRAY_PUSH(&x->sources) = (plan_operand){*to, ACCESS_WRITE};
    if (from)
        *ARRAY_PUSH(&x->sources) = (plan_operand){*from, ACCESS_READ};
    *ARRAY_PUSH(&x->sources) = (plan_operand){token_of(x->q, x->value, place), ACCESS_UPDATE};
    s->n = x->sources.n - s->many;
    s->step.collective = c;
    s->step.collective.dtype = x->q->s.program->values.at[x->value]->dtype;
    plan_share share = plan_share_of(x->q->p, &s->step);
    x->count.received += share.received;
    x->count.sent += share.sent;
    x->count.together_received += share.received;
    x->count.together_sent += share.sent;
    x->count.collectives++;
    return s;
}

/* Sums the terms that an all-to-all has brought, in the order of members, as all sums are made. */
static void add_sum(exchange *x, int place, const plan_region *to, int bundle, int n)
{
    exchange_step *s = add_step(x, REDUCE, STEP_REDUCE, place);
    s->many = x->sources.n;
    s->n = 1 + n;
    s->step.reduce = x->t.reduce;
    s->step.scale = x->t.scale;
    *ARRAY_PUSH(&x->sources) = (plan_operand){*to, write_access(x->q->p, to)};
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&x->sources) = (plan_operand){bundle_part(x, bundle, i), ACCESS_READ};
}

/* Memory for n terms of a box, one from each member. */
static plan_region make_terms(exchange *x, int place, const box *b, int n)
{
    return make_bundle(x, place, n, &(plan_region){-1, *b}, -1);
}

/* Each member gets its part of all terms and sums it. If w->gathers, it then gives the sum to the others. */
static void add_sums(exchange *x, const collective_choice *w, int place, int team, const collective_member *m,
                     plan_region from, plan_region to)
{
    int dim = w->gathers ? collective_even_dim(&m->whole, m->n) : w->give;
    box part = collective_part(&m->whole, dim, m->n, m->index);
    plan_region given = in_order(x, PACK, place, from, dim, m->n, true), terms = make_terms(x, place, &part, m->n);
    plan_collective c = {.form = w->form, .group = team, .count = box_count(&part)};
    add_collective(x, SENDS, place, c, &terms, &given);
    plan_region sum = to;
    if (w->gathers) {
        sum = (plan_region){partition_shard(x->q, SHARD_MESSAGE, x->value, place, &part, -1, 1), part};
        x->count.buffers += region_bytes(x, &part);
    }
    add_sum(x, place, &sum, terms.shard, m->n);
    if (!w->gathers)
        return;
    plan_region all = in_order(x, UNPACK_AGAIN, place, to, dim, m->n, false);
    c.form = PLAN_ALL_GATHER;
    add_collective(x, SEND_AGAIN, place, c, &all, &sum);
}

static void add_broadcast(exchange *x, const collective_choice *w, int place, int team, plan_region to)
{
    const plan_group *g = &x->q->p->groups.at[team];
    plan_collective c = {.form = w->form, .group = team, .count = box_count(&x->t.whole)};
    int root = place_of(x->q, x->t.to_mesh, w->root);
    while (g->places[c.root] != root)
        c.root++;
    if (place == root) {
        const plan_region from = source_piece(x, place, &x->t.whole, 0, 0)->region;
        plan_region given = in_order(x, PACK, place, from, -1, 1, true);
        if (from.shard != to.shard)
            add_copy(x, UNPACK, place, to, from);
        add_collective(x, SENDS, place, c, NULL, &given);
    } else {
        plan_region got = in_order(x, UNPACK, place, to, -1, 1, false);
        add_collective(x, SENDS, place, c, &got, NULL);
    }
}

static const plan_region *region_on(const plan_dist_value *h, int place)
{
    for (int i = 0; i < h->pieces.n; i++)
        if (h->pieces.at[i].place == place)
            return &h->pieces.at[i].region;
    return NULL;
}

static void add_member(exchange *x, const collective_choice *w, int position)
{
    int place = place_of(x->q, x->t.to_mesh, position), team = group_of(x, w, position);
    const plan_region to = *region_on(&x->q->p->dist_values.at[x->target], place);
    if (w->form == PLAN_BROADCAST) {
        add_broadcast(x, w, place, team, to);
        return;
    }
    const plan_region from = *region_on(&x->q->p->dist_values.at[x->source], place);
    const collective_member m = collective_member_at(&x->t, w, position);
    if (w->sums) {
        add_sums(x, w, place, team, &m, from, to);
        return;
    }
    /* The part of a state goes to its whole: no step reads what it writes. */
    plan_region given = from.shard == to.shard ? bundled(x, PACK, place, from, w->give, m.n, true)
                                               : in_order(x, PACK, place, from, w->give, m.n, true);
    plan_region got = in_order(x, UNPACK, place, to, w->get, m.n, false);
    bool parts = w->form == PLAN_ALL_TO_ALL || w->form == PLAN_REDUCE_SCATTER;
    plan_collective c = {.form = w->form, .group = team, .count = box_count(&m.from) / (parts ? m.n : 1)};
    exchange_step *s = add_collective(x, SENDS, place, c, &got, &given);
    s->step.reduce = x->t.reduce;
    s->step.scale = x->t.scale;
}

void add_collectives(exchange *x, const collective_choice *w)
{
    for (int i = 0; i < x->t.to_mesh->size; i++) /* also those of other ranks */
        group_of(x, w, i);
    const local_positions mine = *partition_locals(x->q, x->t.to_mesh);
    for (int i = 0; i < mine.at.n; i++)
        add_member(x, w, mine.at.at[i]);
}
