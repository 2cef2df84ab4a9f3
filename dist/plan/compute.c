/* SPDX-License-Identifier: Apache-2.0 */
/* Compute steps: tiles, operands and calls of the ops that run as one task. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "planner.h"

enum {
    MAX_STEP_OPERANDS = 120, /* fuse.c keeps groups below it */
    LARGE_GRAINS = 16,       /* of bytes: an operand that workers share */
    CACHE_LINE = 64
};

/* The worth of a piece of a result of the leader. Its bytes count, and so do those of a large operand: a sum of rows
 * writes little and reads much. An operand counts half, since a binary op reads twice what it writes. One worker has
 * read a small operand before another wakes. Tiles below a cache line would read the same lines. */
static plan_worth piece_worth(const compute_group *g, int t, const plan_local_box *piece, trama_dtype dtype)
{
    const trama_node *node = g->nodes.at[0];
    const trama_rule *rule = g->q->s.rules[node->id];
    const box *out = &piece->region.box;
    factor_ranges r = factor_ranges_of(g, node, piece->position, t, out);
    const double points = factor_points(rule, &r), grain = (double)g->q->s.options.grain_bytes;
    plan_worth worth = {.bytes = (double)box_count(out) * (double)trama_dtype_size(dtype),
                        .flops = points * node->op->flops};
    const double most = worth.bytes / CACHE_LINE * grain;
    for (int i = 0; i < rule->n_in; i++) {
        const box whole = partition_whole(g->q, node->in[i]->id), b = factor_box(rule, i, &r, &whole);
        const double used = node->op->shape_only >> i & 1 ? 0 : fmin((double)box_count(&b), points);
        const double bytes = used * (double)trama_dtype_size(node->in[i]->dtype);
        worth.bytes = fmax(worth.bytes, bytes < LARGE_GRAINS * grain ? 0 : fmin(bytes / 2, most));
    }
    return worth;
}

/* Cuts a result, tensor t of the leader's rule, into tiles. One of several terms is cut into the parts that are sent
 * and summed at a time, so that one part can be sent while the next is computed, and none is packed; with more than two
 * terms these are the slices that targets exchange. A term that is made in turns is cut as they are. */
static void result_cut(const compute_group *g, const plan_dist_value *h, const plan_local_box *piece, int t,
                       trama_dtype dtype, int *dim, int *parts)
{
    const box *b = &piece->region.box;
    const trama_rule *rule = g->q->s.rules[g->leader];
    int terms = axes_size(g->mesh, layout_axes(&h->layout, TRAMA_PARTIAL));
    *parts = partition_parts(g->q, piece->place, pieces_on(h, piece->place), piece_worth(g, t, piece, dtype));
    int factor;
    if (summed_parts(g, piece, &factor) > 1) /* one step writes it */
        *parts = 1;
    *dim = cut_dim_of(rule, t, b, *parts);
    *parts = *dim < 0 ? 1 : (int)max_i64(1, min_i64(*parts, b->n[*dim]));
    if (terms > 1 && *parts == 1 && turns_cut(g, piece, t, dim, parts))
        return;
    int64_t bytes = box_count(b) * (int64_t)trama_dtype_size(dtype);
    int sent = terms > 2 && terms <= MAX_TILES && bytes >= g->q->s.options.grain_bytes ? terms
               : terms == 2 ? partition_sum_tiles(g->q, bytes)
                            : 1;
    int slices = box_slice_dim(b, sent);
    if (sent > 1 && *parts <= sent && b->n[slices] >= sent && cut_factor(rule, t, slices) >= 0) {
        *dim = slices;
        *parts = sent;
    }
}

/* Makes the distributed value of a result as the op makes it, or of an updated state as it rests. */
static void make_result(compute_group *g, const trama_node *node, int o, bool rests, bool internal)
{
    partition *q = g->q;
    const op_layouts *op = layouts_of(q, node->id);
    const trama_layout *layout = rests ? &q->s.l->value[node->out[o]->id] : &op->out[o],
                       *of_state = rests ? &q->s.l->value[node->in[o]->id] : &op->in[o];
    int value = node->out[o]->id, t = q->s.rules[g->leader]->n_in + (node == g->nodes.at[0] ? o : 0);
    plan_dist_value h = {.value = value, .mesh = g->mesh, .layout = *layout};
    box whole = partition_whole(q, value);
    partition_pieces(q, g->mesh, layout, &whole, &h);
    const plan_dist_value *state =
        node_updates(node, o) ? find_dist_value(q->p, node->in[o]->id, g->mesh, of_state) : NULL;
    h.inside = state && state->inside;
    for (int k = 0; k < h.pieces.n; k++) {
        plan_local_box *piece = &h.pieces.at[k];
        if (state) {
            piece->region = find_piece(state, piece->place, &piece->region.box, piece->term)->region;
            continue;
        }
        int dim, parts;
        result_cut(g, &h, piece, t, node->out[o]->dtype, &dim, &parts);
        piece->region.shard = partition_shard(q, internal ? SHARD_INTERNAL : SHARD_OWN, value, piece->place,
                                              &piece->region.box, dim, parts);
    }
    plan_add(q->p, h);
}

/* Distributed values of the results, in the layout that the op makes; shards where the op does not update state. An
 * updated state of which processes compute a part each, or only some compute it, also gets one as it rests, before the
 * other. */
void compute_results(compute_group *g, const bool *internal)
{
    const partition *q = g->q;
    for (int i = 0; i < g->nodes.n; i++) {
        const trama_node *node = g->nodes.at[i];
        for (int o = 0; o < node->op->n_out; o++) {
            if (updates_apart(q, node, o))
                make_result(g, node, o, true, false);
            make_result(g, node, o, false, internal[node->out[o]->id]);
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

const plan_local_box *compute_operand(const compute_group *g, const trama_node *node, int t, int position)
{
    const partition *q = g->q;
    const trama_layout *layout = &layouts_of(q, node->id)->in[t];
    const plan_dist_value *h = find_dist_value(q->p, node->in[t]->id, g->mesh, layout);
    box b, whole = partition_whole(q, node->in[t]->id);
    layout_box(g->mesh, layout, &whole, position, &b);
    const plan_local_box *piece = find_piece(h, place_of(q, g->mesh, position), &b, term_of(g->mesh, layout, position));
    assert(piece && "an operand is where its op runs");
    return piece;
}

static plan_region operand_region(const compute_group *g, const trama_node *node, int t, int position,
                                  const factor_ranges *r)
{
    const trama_rule *rule = g->q->s.rules[node->id];
    const plan_local_box *piece = compute_operand(g, node, t, position);
    const box whole = partition_whole(g->q, node->in[t]->id);
    plan_region region = {piece->region.shard, factor_box(rule, t, r, &whole)};
    if (node == g->nodes.at[0] && rule_reaches(rule, t) && box_count(&region.box) &&
        !box_contains(&piece->region.box, &region.box))
        region.shard = halo_find(g, t, piece->place, piece->term, &region.box)->region.shard;
    return region;
}

box compute_operand_box(const compute_group *g, int t, int position, const box *result)
{
    const trama_node *node = g->nodes.at[0];
    box whole = partition_whole(g->q, node->in[t]->id);
    factor_ranges r = factor_ranges_of_result(g, node, position, result);
    return factor_box(g->q->s.rules[node->id], t, &r, &whole);
}

/* The part of a piece that one step computes: a tile of the result; or the term of a part of a summed factor, or what a
 * part of a factor that is taken in turn gives to the tile. */
typedef struct portion {
    box tile;
    int factor;           /* -1: all of the tile */
    int64_t lo, n;        /* the part of the factor */
    plan_region *partial; /* the region for its term; NULL: the tile */
    bool goes_on;         /* behind another part */
} portion;

static void add_call(compute_group *g, assembly *a, const trama_node *node, int position, int place,
                     const portion *part)
{
    partition *q = g->q;
    const trama_rule *rule = q->s.rules[node->id];
    factor_ranges r = factor_ranges_of_result(g, node, position, &part->tile);
    if (part->factor >= 0) {
        r.lo[part->factor] = part->lo;
        r.n[part->factor] = part->n;
    }
    plan_call call = {.node = node->id, .goes_on = part->goes_on};
    for (int t = 0; t < rule->n_in; t++)
        call.in[t] = node->op->shape_only >> t & 1
                         ? -1
                         : add_operand(a, q->p, operand_region(g, node, t, position, &r), ACCESS_READ);
    for (int o = 0; o < rule->n_out; o++) {
        const trama_layout *layout = &layouts_of(q, node->id)->out[o];
        const plan_dist_value *h = find_dist_value(q->p, node->out[o]->id, g->mesh, layout);
        box b, whole = partition_whole(q, node->out[o]->id);
        layout_box(g->mesh, layout, &whole, position, &b);
        const plan_local_box *piece = find_piece(h, place, &b, term_of(g->mesh, layout, position));
        plan_region region = {piece->region.shard, factor_box(rule, rule->n_in + o, &r, &whole)};
        if (part->partial)
            region = *part->partial;
        bool updates =
            node->op->updates >> o & 1 || (part->goes_on && rule_dim_of(rule, rule->n_in + o, part->factor) < 0);
        call.out[o] = add_operand(a, q->p, region, updates ? ACCESS_UPDATE : write_access(q->p, &region));
    }
    *ARRAY_PUSH(&q->p->calls) = call;
    a->n_calls++;
    a->flops += factor_points(rule, &r) * node->op->flops;
}

/* The worker for a small step: the last, by number, of the workers that made its operands, so that chains of small
 * steps stay on one worker. -1: an operand has several tiles or no such worker, or the step is large. */
static int lane_of_operands(const partition *q, const assembly *a)
{
    int lane = 0;
    if (a->flops >= (double)q->s.options.grain_flops)
        return -1;
    for (int i = 0; i < a->n; i++) {
        const plan_shard *s = &q->p->shards.at[a->operands[i].region.shard];
        if (a->operands[i].access != ACCESS_READ)
            continue;
        if (s->cut_parts > 1 || s->lane < 0)
            return -1;
        lane = (int)max_i64(lane, s->lane);
    }
    return lane;
}

static void emit_portion(compute_group *g, const plan_local_box *piece, const portion *part, int lane)
{
    partition *q = g->q;
    assembly a;
    a.n = a.n_calls = 0;
    a.flops = 0;
    int call = q->p->calls.n;
    for (int i = 0; i < g->nodes.n; i++)
        add_call(g, &a, g->nodes.at[i], piece->position, piece->place, part);
    if (lane < 0)
        lane = plan_on_gpu(q->p, piece->place) ? 0 : lane_of_operands(q, &a);
    for (int i = 0; i < a.n; i++)
        if (a.operands[i].access != ACCESS_READ)
            q->p->shards.at[a.operands[i].region.shard].lane = lane;
    plan_step *s = partition_step(q, STEP_COMPUTE, piece->place, a.n, a.operands);
    s->lane = lane;
    s->call = call;
    s->n_calls = a.n_calls;
    s->flops = a.flops;
    s->exchange = -1;
}

static void emit_tile(compute_group *g, const plan_local_box *piece, const box *tile, int lane)
{
    portion part = {.tile = *tile, .factor = -1};
    in_turns of;
    if (!turns_find(g, piece->position, tile, &of)) {
        emit_portion(g, piece, &part, lane);
        return;
    }
    part.factor = of.factor;
    for (int i = 0; i < of.parts; i++) {
        turns_part(g, &of, i, &part.lo, &part.n);
        part.goes_on = i > 0;
        emit_portion(g, piece, &part, lane);
    }
}

/* ---- Sums of large operands to small results ---- */

/* Emits the terms in the order of the parts, then their sum. */
static void emit_sum(compute_group *g, const plan_local_box *piece, int factor, int parts)
{
    partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const trama_rule *rule = q->s.rules[node->id];
    factor_ranges r = factor_ranges_of_result(g, node, piece->position, &piece->region.box);
    plan_operand operands[MAX_TILES + 1] = {{piece->region, write_access(q->p, &piece->region)}};
    for (int i = 0; i < parts; i++) {
        portion part = {.tile = piece->region.box, .factor = factor};
        plan_region partial = {partition_shard(q, SHARD_OWN, node->out[0]->id, piece->place, &part.tile, -1, 1),
                               part.tile};
        part.partial = &partial;
        piece_of(r.n[factor], parts, i, &part.lo, &part.n);
        part.lo += r.lo[factor];
        emit_portion(g, piece, &part, -1);
        operands[i + 1] = (plan_operand){partial, ACCESS_READ};
    }
    plan_step *s = partition_step(q, STEP_REDUCE, piece->place, parts + 1, operands);
    q->p->shards.at[piece->region.shard].lane = -1;
    s->reduce = rule->factor[factor].reduce;
    s->scale = 1;
    s->exchange = -1;
}

/* ---- Tiles ---- */

/* The worker of a tile: the tiles of all pieces on a place are spread over its workers, neighbours on one worker. */
static int lane_of(const partition *q, int place, int64_t tile, int64_t tiles)
{
    int workers = q->s.machine->places[place].workers;
    return tiles < workers || tiles == 1 ? -1 : (int)(tile * workers / tiles);
}

/* The shard by whose tiles a piece is computed; NULL: the piece at once. Where the result has one tile and an operand
 * is a large sum that arrives in several, a pointwise op takes the tiles of that operand, one after the other. */
static const plan_shard *tiles_of(const compute_group *g, const plan_local_box *piece, const plan_shard *result)
{
    const partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const plan_shard *finest = result;
    if (!box_equal(&result->box, &piece->region.box))
        return node->op->updates ? result : NULL;
    for (int t = 0; node->op->pointwise && result->cut_parts == 1 && t < node->op->n_in; t++) {
        const trama_layout *layout = &layouts_of(q, node->id)->in[t];
        const plan_dist_value *h = find_dist_value(q->p, node->in[t]->id, g->mesh, layout);
        const plan_local_box *o =
            h ? find_piece(h, piece->place, &piece->region.box, term_of(g->mesh, layout, piece->position)) : NULL;
        const plan_shard *s = o ? &q->p->shards.at[o->region.shard] : NULL;
        if (s && s->summed && box_equal(&s->box, &piece->region.box) && s->cut_parts > finest->cut_parts)
            finest = s;
    }
    return finest;
}

/* Of a piece: the tiles on its place that come before number 0 of its shard, and all of them. Of a part of a shard
 * those count that it meets. */
typedef struct tile_span {
    int before, total;
} tile_span;

static tile_span span_of(const partition *q, const plan_dist_value *h, int piece)
{
    const plan_region *r = &h->pieces.at[piece].region;
    const plan_shard *shard = &q->p->shards.at[r->shard];
    tile_span span = {0};
    int first, last;
    if (!box_equal(&shard->box, &r->box)) {
        plan_tiles(shard, &r->box, &first, &last);
        return (tile_span){-first, last - first + 1};
    }
    for (int k = 0; k < h->pieces.n; k++) {
        if (h->pieces.at[k].place != h->pieces.at[piece].place)
            continue;
        const int parts = q->p->shards.at[h->pieces.at[k].region.shard].cut_parts;
        span.before += k < piece ? parts : 0;
        span.total += parts;
    }
    return span;
}

/* Where a process has nothing of result 0 but something of another result, such as a term to which it adds nothing, the
 * op runs for that one. */
static void emit_without_first(compute_group *g)
{
    partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const op_layouts *op = layouts_of(q, g->leader);
    const box whole = partition_whole(q, node->out[0]->id);
    bool *done = trama_alloc((size_t)g->mesh->size);
    for (int o = 1; o < node->op->n_out; o++)
        for (int k = 0; k < find_dist_value(q->p, node->out[o]->id, g->mesh, &op->out[o])->pieces.n; k++) {
            const plan_local_box piece = find_dist_value(q->p, node->out[o]->id, g->mesh, &op->out[o])->pieces.at[k];
            box first;
            layout_box(g->mesh, &op->out[0], &whole, piece.position, &first);
            if (done[piece.position] || box_count(&first) || !box_count(&piece.region.box))
                continue;
            done[piece.position] = true;
            emit_tile(g, &piece, &first, -1);
        }
    free(done);
}

void compute_tiles(compute_group *g)
{
    partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const plan_dist_value *found = find_dist_value(q->p, node->out[0]->id, g->mesh, &layouts_of(q, g->leader)->out[0]);
    int n_pieces = found->pieces.n;
    for (int i = 0; i < n_pieces; i++) {
        const plan_dist_value *h = find_dist_value(q->p, node->out[0]->id, g->mesh, &layouts_of(q, g->leader)->out[0]);
        const plan_local_box piece = h->pieces.at[i];
        const plan_shard shard = q->p->shards.at[piece.region.shard];
        if (box_count(&piece.region.box) == 0)
            continue;
        int factor, terms = summed_parts(g, &piece, &factor);
        if (terms > 1) {
            emit_sum(g, &piece, factor, terms);
            continue;
        }
        const plan_shard *cut = tiles_of(g, &piece, &shard);
        const tile_span span = span_of(q, h, i);
        box parts[MOST_PARTS];
        int n_parts = halo_parts(g, piece.position, &piece.region.box, parts);
        for (int k = 0; k < n_parts * (cut ? cut->cut_parts : 1); k++) {
            int tile = k / n_parts;
            box b = cut ? plan_tile(cut, tile) : piece.region.box;
            if (box_intersect(&b, &parts[k % n_parts], &b))
                emit_tile(g, &piece, &b, cut == &shard ? lane_of(q, piece.place, span.before + tile, span.total) : -1);
        }
    }
    emit_without_first(g);
}
