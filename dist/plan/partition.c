/* SPDX-License-Identifier: Apache-2.0 */
/* Partition: holdings, tiles and compute steps. Exchanges are made in reshard.c. */
#include "partition.h"

#include <assert.h>
#include <string.h>

#include "bound.h"
#include "partition_internal.h"

enum { MAX_STEP_OPERANDS = 120 }; /* fuse.c keeps groups below it */

/* ---- Life ---- */

partition *partition_begin(const plan_source *source)
{
    partition *q = trama_alloc(sizeof *q);
    q->s = *source;
    q->p = trama_alloc(sizeof *q->p);
    q->p->rank = source->rank;
    q->seen = trama_alloc((size_t)source->machine->n_places * sizeof *q->seen);
    return q;
}

/* Messages of one pair of ranks are numbered in an order that both find alone. */
static int compare_messages(const void *a, const void *b)
{
    const plan_step *s = *(plan_step *const *)a, *t = *(plan_step *const *)b;
    bool sends = s->kind == STEP_SEND;
    int from_s = sends ? s->place : s->peer_place, from_t = sends ? t->place : t->peer_place;
    int to_s = sends ? s->peer_place : s->place, to_t = sends ? t->peer_place : t->place;
    int keys[][2] = {{(int)s->kind, (int)t->kind},
                     {s->peer, t->peer},
                     {s->exchange, t->exchange},
                     {s->key.phase, t->key.phase},
                     {s->key.term, t->key.term},
                     {from_s, from_t},
                     {to_s, to_t}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return box_compare(&s->key.box, &t->key.box);
}

static void number_messages(plan *p)
{
    ARRAY(plan_step *) messages = {0};
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind >= STEP_SEND)
            *ARRAY_PUSH(&messages) = &p->steps.at[i];
    if (messages.n)
        qsort(messages.at, (size_t)messages.n, sizeof *messages.at, compare_messages);
    for (int i = 0; i < messages.n; i++) {
        const plan_step *before = i ? messages.at[i - 1] : NULL;
        bool same = before && before->kind == messages.at[i]->kind && before->peer == messages.at[i]->peer;
        messages.at[i]->tag = same ? before->tag + 1 : 0;
    }
    ARRAY_FREE(&messages);
}

plan *partition_end(partition **partition_)
{
    partition *q = *partition_;
    plan *p = q->p;
    number_messages(p);
    for (int i = 0; i < q->locals.n; i++)
        ARRAY_FREE(&q->locals.at[i].at);
    ARRAY_FREE(&q->locals);
    free(q->seen);
    free(q);
    *partition_ = NULL;
    return p;
}

/* ---- Pieces ---- */

const local_positions *partition_locals(partition *q, const trama_mesh *mesh)
{
    for (int i = 0; i < q->locals.n; i++)
        if (q->locals.at[i].mesh == mesh)
            return &q->locals.at[i];
    local_positions *l = ARRAY_PUSH(&q->locals);
    l->mesh = mesh;
    for (int i = 0; i < mesh->size; i++)
        if (is_mine(q, place_of(q, mesh, i)))
            *ARRAY_PUSH(&l->at) = i;
    return l;
}

box partition_whole(const partition *q, int value)
{
    return box_whole(q->s.shapes[value]);
}

int term_of(const trama_mesh *mesh, const trama_layout *layout, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(mesh, position, coordinate);
    return axes_position(mesh, layout_axes(layout, TRAMA_PARTIAL), coordinate);
}

const plan_piece *find_piece(const plan_holding *h, int place, const box *b, int term)
{
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_piece *p = &h->pieces.at[i];
        if (p->place == place && p->term == term && box_equal(&p->region.box, b))
            return p;
    }
    return NULL;
}

void partition_pieces(partition *q, const trama_mesh *mesh, const trama_layout *layout, const box *whole,
                      plan_holding *h)
{
    const local_positions *mine = partition_locals(q, mesh);
    for (int i = 0; i < mine->at.n; i++) {
        int position = mine->at.at[i], place = place_of(q, mesh, position);
        box b;
        if (!layout_present(layout, position))
            continue;
        layout_box(mesh, layout, whole, position, &b);
        int term = term_of(mesh, layout, position);
        if (find_piece(h, place, &b, term))
            continue;
        plan_piece *piece = ARRAY_PUSH(&h->pieces);
        *piece = (plan_piece){.place = place, .term = term, .position = position, .region = {-1, b}};
    }
}

int pieces_on(const plan_holding *h, int place)
{
    int n = 0;
    for (int i = 0; i < h->pieces.n; i++)
        n += h->pieces.at[i].place == place;
    return n;
}

plan_holding *find_holding(plan *p, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int i = 0; i < p->holdings.n; i++) {
        plan_holding *h = &p->holdings.at[i];
        if (h->value == value && h->mesh == mesh && trama_layout_equal(&h->layout, layout))
            return h;
    }
    return NULL;
}

/* ---- Shards and steps ---- */

void partition_cut(const partition *q, const box *b, trama_dtype dtype, int place, int pieces, double work,
                   int *cut_dim, int *cut_parts)
{
    int64_t ways = q->s.options.ways ? q->s.options.ways : q->s.machine->places[place].workers;
    ways = max_i64(1, ways / max_i64(1, pieces));
    int dim = 0;
    for (int d = 1; d < b->ndim; d++)
        if (b->n[d] > b->n[dim])
            dim = d;
    double bytes = (double)box_count(b) * (double)trama_dtype_size(dtype);
    double worth = bytes / (double)max_i64(1, q->s.options.grain_bytes);
    double by_work = work / (double)max_i64(1, q->s.options.grain_flops);
    worth = by_work > worth ? by_work : worth;
    int64_t parts = worth < (double)ways ? (int64_t)worth : ways;
    *cut_dim = b->ndim ? dim : -1;
    *cut_parts = b->ndim ? (int)max_i64(1, min_i64(parts, b->n[dim])) : 1;
}

int partition_slice_dim(const box *b, int n)
{
    int dim = 0;
    for (int d = 0; d < b->ndim; d++)
        if (b->n[d] > b->n[dim])
            dim = d;
    return b->ndim && b->n[0] >= n ? 0 : dim;
}

int partition_shard(partition *q, shard_source source, int value, int place, const box *b, int cut_dim, int cut_parts)
{
    *ARRAY_PUSH(&q->p->shards) = (plan_shard){.source = source,
                                              .value = value,
                                              .place = place,
                                              .dtype = q->s.program->values.at[value]->dtype,
                                              .box = *b,
                                              .cut_dim = cut_parts > 1 ? cut_dim : -1,
                                              .cut_parts = cut_parts,
                                              .import = -1};
    return q->p->shards.n - 1;
}

plan_step *partition_step(partition *q, step_kind kind, int place, int n, const plan_operand *operands)
{
    plan_step *s = ARRAY_PUSH(&q->p->steps);
    *s = (plan_step){.kind = kind, .place = place, .lane = -1, .operand = q->p->operands.n, .n_operands = n};
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&q->p->operands) = operands[i];
    return s;
}

step_access write_access(const plan *p, const plan_region *r)
{
    const plan_shard *s = &p->shards.at[r->shard];
    if (s->source == SHARD_INTERNAL)
        return ACCESS_NONE;
    int first, last;
    plan_tiles(s, &r->box, &first, &last);
    box from = plan_tile(s, first), to = plan_tile(s, last);
    for (int d = 0; d < r->box.ndim; d++)
        if (r->box.lo[d] != from.lo[d] || r->box.lo[d] + r->box.n[d] != to.lo[d] + to.n[d])
            return ACCESS_UPDATE;
    return ACCESS_WRITE;
}

/* ---- Holdings from outside, and in other layouts ---- */

static int import_shard(partition *q, int value, const plan *other, const plan_holding *h, int piece)
{
    const plan_shard *theirs = &other->shards.at[h->pieces.at[piece].region.shard];
    for (int i = 0; i < q->p->imports.n; i++)
        if (q->p->imports.at[i].value == value && q->p->imports.at[i].shard == h->pieces.at[piece].region.shard)
            for (int s = 0; s < q->p->shards.n; s++)
                if (q->p->shards.at[s].source == SHARD_IMPORT && q->p->shards.at[s].import == i)
                    return s;
    int s = partition_shard(q, SHARD_IMPORT, value, theirs->place, &theirs->box, theirs->cut_dim, theirs->cut_parts);
    q->p->shards.at[s].dtype = theirs->dtype;
    q->p->shards.at[s].import = q->p->imports.n;
    *ARRAY_PUSH(&q->p->imports) =
        (plan_import){.value = value, .piece = piece, .shard = h->pieces.at[piece].region.shard};
    return s;
}

void partition_import(partition *q, int value, const plan *other, int as)
{
    const plan_holding *theirs = plan_find(other, as);
    assert(theirs && "the other plan keeps the value");
    plan_holding h = {.value = value, .mesh = theirs->mesh, .layout = theirs->layout};
    for (int i = 0; i < theirs->pieces.n; i++) {
        plan_piece piece = theirs->pieces.at[i];
        piece.region.shard = import_shard(q, value, other, theirs, i);
        *ARRAY_PUSH(&h.pieces) = piece;
    }
    *ARRAY_PUSH(&q->p->holdings) = h;
}

/* New shards for all pieces of a holding. */
static void make_shards(partition *q, plan_holding *h, shard_source source, double work)
{
    for (int i = 0; i < h->pieces.n; i++) {
        plan_piece *piece = &h->pieces.at[i];
        int dim, parts, pieces = pieces_on(h, piece->place);
        partition_cut(q, &piece->region.box, q->s.program->values.at[h->value]->dtype, piece->place, pieces, work, &dim,
                      &parts);
        piece->region.shard = partition_shard(q, source, h->value, piece->place, &piece->region.box, dim, parts);
    }
}

void partition_input(partition *q, int value)
{
    plan_holding h = {.value = value, .mesh = q->s.l->mesh[value], .layout = q->s.l->value[value]};
    box whole = partition_whole(q, value);
    partition_pieces(q, h.mesh, &h.layout, &whole, &h);
    make_shards(q, &h, SHARD_INPUT, 0);
    *ARRAY_PUSH(&q->p->holdings) = h;
}

/* The holding of a value from which a layout costs least to make. */
static int best_source(const partition *q, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    int best = -1;
    int64_t least = 0;
    box whole = partition_whole(q, value);
    for (int i = 0; i < q->p->holdings.n; i++) {
        const plan_holding *h = &q->p->holdings.at[i];
        if (h->value != value)
            continue;
        if (best < 0) {
            best = i;
            least = -1;
            continue;
        }
        if (h->mesh != mesh || q->p->holdings.at[best].mesh != mesh)
            continue;
        if (least < 0)
            least = bound_transfer(mesh, &q->p->holdings.at[best].layout, layout, &whole);
        int64_t cost = bound_transfer(mesh, &h->layout, layout, &whole);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    assert(best >= 0 && "a value is there before it is used");
    return best;
}

const plan_holding *partition_reshard(partition *q, int value, const trama_mesh *mesh, const trama_layout *layout,
                                      int node, bool fresh)
{
    plan_holding *h = fresh ? NULL : find_holding(q->p, value, mesh, layout);
    if (h)
        return h;
    reshard_holding(q, best_source(q, value, mesh, layout), mesh, layout, node, fresh);
    return &q->p->holdings.at[q->p->holdings.n - 1];
}

/* ---- Compute steps ---- */

/* Offset and extent of each factor for one step. */
typedef struct factor_range {
    int64_t lo[RULE_MAX_FACTORS], n[RULE_MAX_FACTORS];
} factor_range;

/* The extent of what follows the leading factor of a dim. */
static int64_t minor_extent(const trama_rule *rule, const rule_dim *dim, int leading)
{
    int64_t extent = 1;
    for (int i = 0; i < dim->n; i++)
        if (dim->factor[i] != leading)
            extent *= rule->factor[(int)dim->factor[i]].extent;
    return extent;
}

static void ranges_from(const trama_rule *rule, int t, const box *b, factor_range *r)
{
    for (int f = 0; f < rule->n_factors; f++) {
        int d = rule_dim_of(rule, t, f);
        if (d < 0)
            continue;
        int64_t minor = minor_extent(rule, &rule->tensor[t].dim[d], f);
        r->lo[f] = minor ? b->lo[d] / minor : 0;
        r->n[f] = minor ? b->n[d] / minor : 0;
    }
}

/* The box of tensor t for given factor ranges. */
static box box_from(const trama_rule *rule, int t, const factor_range *r)
{
    const rule_tensor *tensor = &rule->tensor[t];
    box b = {.ndim = tensor->ndim};
    for (int d = 0; d < tensor->ndim; d++) {
        b.n[d] = 1;
        int leading = -1;
        for (int f = 0; f < rule->n_factors && leading < 0; f++)
            if (rule_dim_of(rule, t, f) == d)
                leading = f;
        if (leading < 0)
            continue;
        int64_t minor = minor_extent(rule, &tensor->dim[d], leading);
        b.lo[d] = r->lo[leading] * minor;
        b.n[d] = r->n[leading] * minor;
    }
    return b;
}

/* A group of nodes that run as one task a tile. */
typedef struct group {
    partition *q;
    int leader;
    const trama_mesh *mesh;
    ARRAY(const trama_node *) nodes;
} group;

static double points(const trama_rule *rule, const factor_range *r)
{
    double n = 1;
    for (int f = 0; f < rule->n_factors; f++)
        n *= (double)r->n[f];
    return n;
}

/* Work of one piece of the leader's result, to decide how many tiles it is worth. */
static double piece_work(const group *g, const box *out, int position)
{
    const partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const trama_rule *rule = &q->s.rules[node->id];
    factor_range r;
    for (int f = 0; f < rule->n_factors; f++) {
        r.lo[f] = 0;
        r.n[f] = rule->factor[f].extent;
    }
    for (int t = 0; t < rule->n_in; t++) {
        box b, whole = partition_whole(q, node->in[t]->id);
        layout_box(g->mesh, &q->s.l->op[node->id].in[t], &whole, position, &b);
        ranges_from(rule, t, &b, &r);
    }
    ranges_from(rule, rule->n_in, out, &r);
    return points(rule, &r) * node->op->flops;
}

/* Whether the rule lets the result be cut along its dim: the factor leads wherever it stands and may be split. */
static bool may_cut(const trama_rule *rule, int dim)
{
    bool equal_only;
    for (int f = 0; f < rule->n_factors; f++)
        if (rule_dim_of(rule, rule->n_in, f) == dim)
            return rule_splittable(rule, f, &equal_only) &&
                   minor_extent(rule, &rule->tensor[rule->n_in].dim[dim], f) == 1;
    return false;
}

/* How a result is cut: as any shard, but a term of a partial value into the slices that its sum will exchange, so that one
 * can leave while the next is computed, and none is packed. */
static void result_cut(const group *g, const plan_holding *h, const plan_piece *piece, trama_dtype dtype, int *dim,
                       int *parts)
{
    const box *b = &piece->region.box;
    const trama_rule *rule = &g->q->s.rules[g->leader];
    int terms = axes_size(g->mesh, layout_axes(&h->layout, TRAMA_PARTIAL));
    partition_cut(g->q, b, dtype, piece->place, pieces_on(h, piece->place), piece_work(g, b, piece->position), dim,
                  parts);
    bool worth = box_count(b) * (int64_t)trama_dtype_size(dtype) >= SLICED_BYTES;
    int slices = partition_slice_dim(b, terms);
    if (terms > 1 && terms <= MAX_TILES && *parts <= terms && worth && b->n[slices] >= terms && may_cut(rule, slices)) {
        *dim = slices;
        *parts = terms;
    }
    if (*parts > 1 && !may_cut(rule, *dim))
        *parts = 1;
}

/* Holdings of the results, in the layout that the op makes; shards where the op does not update state. */
static void make_results(group *g, const bool *internal)
{
    partition *q = g->q;
    for (int i = 0; i < g->nodes.n; i++) {
        const trama_node *node = g->nodes.at[i];
        const op_layouts *op = &q->s.l->op[node->id];
        for (int o = 0; o < node->op->n_out; o++) {
            int value = node->out[o]->id;
            plan_holding h = {.value = value, .mesh = g->mesh, .layout = op->out[o]};
            box whole = partition_whole(q, value);
            partition_pieces(q, g->mesh, &h.layout, &whole, &h);
            const plan_holding *state =
                node->op->updates >> o & 1 ? find_holding(q->p, node->in[o]->id, g->mesh, &op->in[o]) : NULL;
            for (int k = 0; k < h.pieces.n; k++) {
                plan_piece *piece = &h.pieces.at[k];
                if (state) {
                    piece->region = find_piece(state, piece->place, &piece->region.box, piece->term)->region;
                    continue;
                }
                int dim, parts;
                result_cut(g, &h, piece, node->out[o]->dtype, &dim, &parts);
                piece->region.shard = partition_shard(q, internal[value] ? SHARD_INTERNAL : SHARD_OWN, value,
                                                      piece->place, &piece->region.box, dim, parts);
            }
            *ARRAY_PUSH(&q->p->holdings) = h;
        }
    }
}

/* A step under construction. */
typedef struct assembly {
    int n;
    plan_operand operands[MAX_STEP_OPERANDS];
    int n_calls;
    double flops;
} assembly;

static signed char add_operand(assembly *a, const plan *p, plan_region region, step_access access)
{
    if (p->shards.at[region.shard].source == SHARD_INTERNAL)
        access = ACCESS_NONE;
    for (int i = 0; i < a->n; i++) {
        plan_operand *o = &a->operands[i];
        if (o->region.shard != region.shard || !box_equal(&o->region.box, &region.box))
            continue;
        if (access != o->access && access != ACCESS_READ)
            o->access = o->access == ACCESS_READ ? ACCESS_UPDATE : o->access;
        return (signed char)i;
    }
    assert(a->n < MAX_STEP_OPERANDS);
    a->operands[a->n] = (plan_operand){region, access};
    return (signed char)a->n++;
}

static plan_region operand_region(const group *g, const trama_node *node, int t, int position, int place,
                                  const factor_range *r)
{
    const partition *q = g->q;
    const trama_value *v = node->in[t];
    const trama_layout *layout = &q->s.l->op[node->id].in[t];
    const plan_holding *h = find_holding(q->p, v->id, g->mesh, layout);
    box b, whole = partition_whole(q, v->id);
    layout_box(g->mesh, layout, &whole, position, &b);
    const plan_piece *piece = find_piece(h, place, &b, term_of(g->mesh, layout, position));
    assert(piece && "an operand is where its op runs");
    plan_region region = {piece->region.shard, box_from(&q->s.rules[node->id], t, r)};
    return region;
}

static void add_call(group *g, assembly *a, const trama_node *node, int position, int place, const box *tile)
{
    partition *q = g->q;
    const trama_rule *rule = &q->s.rules[node->id];
    factor_range r;
    for (int f = 0; f < rule->n_factors; f++) {
        r.lo[f] = 0;
        r.n[f] = rule->factor[f].extent;
    }
    for (int t = 0; t < rule->n_in; t++) {
        box b, whole = partition_whole(q, node->in[t]->id);
        if (node->op->shape_only >> t & 1)
            continue;
        layout_box(g->mesh, &q->s.l->op[node->id].in[t], &whole, position, &b);
        ranges_from(rule, t, &b, &r);
    }
    ranges_from(rule, rule->n_in, tile, &r);
    plan_call call = {.node = node->id};
    for (int t = 0; t < rule->n_in; t++)
        call.in[t] = node->op->shape_only >> t & 1
                         ? -1
                         : add_operand(a, q->p, operand_region(g, node, t, position, place, &r), ACCESS_READ);
    for (int o = 0; o < rule->n_out; o++) {
        const trama_layout *layout = &q->s.l->op[node->id].out[o];
        const plan_holding *h = find_holding(q->p, node->out[o]->id, g->mesh, layout);
        box b, whole = partition_whole(q, node->out[o]->id);
        layout_box(g->mesh, layout, &whole, position, &b);
        const plan_piece *piece = find_piece(h, place, &b, term_of(g->mesh, layout, position));
        plan_region region = {piece->region.shard, box_from(rule, rule->n_in + o, &r)};
        bool updates = node->op->updates >> o & 1;
        call.out[o] = add_operand(a, q->p, region, updates ? ACCESS_UPDATE : write_access(q->p, &region));
    }
    *ARRAY_PUSH(&q->p->calls) = call;
    a->n_calls++;
    a->flops += points(rule, &r) * node->op->flops;
}

static void emit_tile(group *g, const plan_piece *piece, const box *tile, int lane)
{
    partition *q = g->q;
    assembly a;
    a.n = a.n_calls = 0;
    a.flops = 0;
    int call = q->p->calls.n;
    for (int i = 0; i < g->nodes.n; i++)
        add_call(g, &a, g->nodes.at[i], piece->position, piece->place, tile);
    plan_step *s = partition_step(q, STEP_COMPUTE, piece->place, a.n, a.operands);
    s->lane = lane;
    s->call = call;
    s->n_calls = a.n_calls;
    s->flops = a.flops;
    s->exchange = -1;
}

/* Tiles of all pieces on a place are spread over its workers, neighbours on one worker. */
static int lane_of(const partition *q, int place, int64_t tile, int64_t tiles)
{
    int workers = q->s.machine->places[place].workers;
    return tiles < workers || tiles == 1 ? -1 : (int)(tile * workers / tiles);
}

static void emit_tiles(group *g)
{
    partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const plan_holding *found =
        find_holding(q->p, node->out[0]->id, g->mesh, &q->s.l->op[g->leader].out[0]);
    int n_pieces = found->pieces.n;
    for (int i = 0; i < n_pieces; i++) {
        const plan_holding *h = find_holding(q->p, node->out[0]->id, g->mesh, &q->s.l->op[g->leader].out[0]);
        const plan_piece piece = h->pieces.at[i];
        const plan_shard shard = q->p->shards.at[piece.region.shard];
        if (box_count(&piece.region.box) == 0)
            continue;
        int before = 0, total = 0;
        for (int k = 0; k < h->pieces.n; k++) {
            if (h->pieces.at[k].place != piece.place)
                continue;
            int parts = q->p->shards.at[h->pieces.at[k].region.shard].cut_parts;
            before += k < i ? parts : 0;
            total += parts;
        }
        bool whole = !box_equal(&shard.box, &piece.region.box);
        for (int tile = 0; tile < (whole ? 1 : shard.cut_parts); tile++) {
            box b = whole ? piece.region.box : plan_tile(&shard, tile);
            emit_tile(g, &piece, &b, lane_of(q, piece.place, before + tile, total));
        }
    }
}

/* Updates write the tiles of their state; others those of their own result. */
static void emit_group(partition *q, group *g, const bool *internal, const partition_wish *wish)
{
    guards old = {0};
    g->mesh = q->s.l->op[g->leader].mesh;
    for (int i = 0; i < g->nodes.n; i++) {
        const trama_node *node = g->nodes.at[i];
        for (int t = 0; t < node->op->n_in; t++) {
            bool inside = false;
            for (int k = 0; k < i; k++)
                inside |= node->in[t]->node == g->nodes.at[k];
            if (!inside && !(node->op->shape_only >> t & 1))
                partition_reshard(q, node->in[t]->id, g->mesh, &q->s.l->op[node->id].in[t], node->id, false);
        }
    }
    for (int i = 0; i < g->nodes.n; i++)
        guard_old_values(q, wish, g->nodes.at[i], &old);
    make_results(g, internal);
    emit_tiles(g);
    guard_install(q, &old);
}

/* A value whose own layout is not the one that its op makes is resharded at once; its own layout stands first. */
static void settle(partition *q, const trama_node *node)
{
    for (int o = 0; o < node->op->n_out; o++) {
        int value = node->out[o]->id;
        if (node->op->updates >> o & 1)
            continue;
        partition_reshard(q, value, q->s.l->mesh[value], &q->s.l->value[value], node->id, false);
        plan_holding *made = (plan_holding *)plan_find(q->p, value);
        plan_holding *own = find_holding(q->p, value, q->s.l->mesh[value], &q->s.l->value[value]);
        plan_holding first = *own;
        *own = *made;
        *made = first;
    }
}

/* The result of an alias is its operand's holding under another number; where the user reads it, a copy, so that it stays
 * when the operand is updated or fed again. */
static void emit_alias(partition *q, const trama_node *node, bool kept)
{
    int value = node->out[0]->id;
    const plan_holding *from = partition_reshard(q, node->in[0]->id, q->s.l->mesh[value], &q->s.l->value[value],
                                                 node->id, kept);
    plan_holding h = {.value = value, .mesh = from->mesh, .layout = from->layout};
    for (int i = 0; i < from->pieces.n; i++)
        *ARRAY_PUSH(&h.pieces) = from->pieces.at[i];
    *ARRAY_PUSH(&q->p->holdings) = h;
}

/* Values that only calls of their own group see. */
static bool *find_internal(const partition *q, const bool *needed, const int *leader, const bool *kept)
{
    const trama_program *p = q->s.program;
    bool *internal = trama_alloc((size_t)p->values.n);
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        for (int o = 0; needed[i] && o < node->op->n_out; o++) {
            int value = node->out[o]->id;
            internal[value] = !kept[value] && !node->op->updates && !node->op->alias &&
                              q->s.l->mesh[value] == q->s.l->op[i].mesh &&
                              trama_layout_equal(&q->s.l->value[value], &q->s.l->op[i].out[o]);
        }
    }
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; needed[i] && t < p->nodes.at[i]->op->n_in; t++) {
            const trama_value *v = p->nodes.at[i]->in[t];
            if (!v->node || leader[v->node->id] != leader[i])
                internal[v->id] = false;
        }
    int *members = trama_alloc((size_t)p->nodes.n * sizeof *members);
    for (int i = 0; i < p->nodes.n; i++)
        members[leader[i]] += needed[i];
    for (int i = 0; i < p->nodes.n; i++) /* nobody else is in the group: who reads it is the user */
        for (int o = 0; needed[i] && members[leader[i]] == 1 && o < p->nodes.at[i]->op->n_out; o++)
            internal[p->nodes.at[i]->out[o]->id] = false;
    free(members);
    return internal;
}

static bool is_there(const partition *q, const trama_node *node)
{
    for (int o = 0; o < node->op->n_out; o++)
        if (!plan_find(q->p, node->out[o]->id))
            return false;
    return true;
}

void partition_run(partition *q, const bool *needed, const int *leader, const bool *kept)
{
    const trama_program *p = q->s.program;
    partition_wish wish = {needed, kept, leader};
    bool *internal = find_internal(q, needed, leader, kept);
    int *last = trama_alloc((size_t)p->nodes.n * sizeof *last); /* of each group */
    for (int i = 0; i < p->nodes.n; i++)
        if (needed[i])
            last[leader[i]] = i;
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        if (!needed[i] || leader[i] != i || is_there(q, node))
            continue;
        if (node->op->alias) {
            emit_alias(q, node, kept[node->out[0]->id]);
            continue;
        }
        group g = {.q = q, .leader = i};
        for (int k = i; k <= last[i]; k++)
            if (needed[k] && leader[k] == i)
                *ARRAY_PUSH(&g.nodes) = p->nodes.at[k];
        emit_group(q, &g, internal, &wish);
        for (int k = 0; k < g.nodes.n; k++)
            settle(q, g.nodes.at[k]);
        ARRAY_FREE(&g.nodes);
    }
    free(last);
    free(internal);
}
