/* SPDX-License-Identifier: Apache-2.0 */
/* The reshard engine: from one layout to another, on the same mesh or not. Source boxes are intersected with target
 * boxes; for each pair a closed form gives sender, receiver and box of each message, so each rank finds its part alone:
 *
 *   - a target takes each element that it lacks once, from the nearest holders in rotation;
 *   - where the targets outnumber the holders they get a slice each and exchange slices, so that a holder sends once;
 *   - partial values: each target gets one slice of every term, sums in their order, and the targets exchange slices;
 *     or the holders sum slices first.
 *
 * choose.h decides between these, and between one exchange and two. */
#include "exchange.h"
#include "thresholds.h"

enum { MAX_HOPS = 8 }; /* exchanges of one value, one behind the other, whose messages may be bundled */

/* ---- Walking the pairs of boxes that concern this rank ---- */

typedef struct pair_walk {
    exchange *x;
    const int *other; /* coordinate of the box *at_hand */
    const box *at_hand;
    int kept;
    bool at_source;
} pair_walk;

static void visit_pair(void *arg, const box *piece, const int *coordinate)
{
    pair_walk *w = arg;
    exchange *x = w->x;
    group g = {.kept = w->kept};
    g.from_box = w->at_source ? *w->at_hand : *piece;
    g.to_box = w->at_source ? *piece : *w->at_hand;
    if (!box_intersect(&g.from_box, &g.to_box, &g.region))
        return;
    if (!w->at_source && !transfer_same_own(&x->t, coordinate, w->other))
        return;
    if (w->at_source) { /* pairs with a target here were walked from the target */
        const plan_dist_value *h = &x->q->p->dist_values.at[x->target];
        for (int i = 0; i < h->pieces.n; i++)
            if (target_piece(x, h->pieces.at[i].place, &g.to_box, g.kept))
                return;
    }
    const int *from_coordinate = w->at_source ? w->other : coordinate;
    bool reduces = x->t.reduced || x->t.scale != 1;
    g.to_coordinate = w->at_source ? coordinate : w->other;
    g.number = layout_number(x->t.to_mesh, &x->t.to, &x->t.whole, &g.from_box, &g.to_box);
    if (w->at_source && !reduces && is_served_elsewhere(x, &g, from_coordinate))
        return;
    group_holders(x, &g, from_coordinate, w->at_source);
    if (w->at_source || reduces || !move_own(x, &g)) {
        group_targets(x, &g, g.to_coordinate);
        if (reduces)
            reduce_group(x, &g);
        else
            move_group(x, &g);
    }
    group_free(&g);
}

/* Whether an earlier piece stands for the same pairs: equal box and kept coordinate. */
static bool walked_before(const exchange *x, const plan_dist_value *h, int i, const trama_mesh *mesh, bool targets)
{
    for (int j = 0; j < i; j++)
        if (box_equal(&h->pieces.at[j].region.box, &h->pieces.at[i].region.box) &&
            kept_of(x, mesh, h->pieces.at[j].position) == kept_of(x, mesh, h->pieces.at[i].position) &&
            (!targets || gets_value(x, h->pieces.at[j].position)))
            return true;
    return false;
}

static void walk_pairs(exchange *x, bool at_source)
{
    const plan_dist_value *h = &x->q->p->dist_values.at[at_source ? x->source : x->target];
    const trama_mesh *mesh = at_source ? x->t.from_mesh : x->t.to_mesh;
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_local_box *piece = &h->pieces.at[i];
        if ((!at_source && !gets_value(x, piece->position)) || walked_before(x, h, i, mesh, !at_source))
            continue;
        int coordinate[TRAMA_MAX_AXES];
        mesh_coordinate(mesh, piece->position, coordinate);
        box at_hand = piece->region.box;
        pair_walk w = {x, coordinate, &at_hand, kept_of(x, mesh, piece->position), at_source};
        layout_overlaps(at_source ? x->t.to_mesh : x->t.from_mesh, at_source ? &x->t.to : &x->t.from, &x->t.whole,
                        &at_hand, visit_pair, &w);
    }
}

/* ---- Exchanges ---- */

/* A copy of a distributed value, written on another mesh. */
static int dist_value_as(partition *q, int number, const trama_mesh *mesh, const trama_layout *layout)
{
    const plan_dist_value *same = &q->p->dist_values.at[number];
    plan_dist_value h = {.value = same->value, .mesh = mesh, .layout = *layout, .inside = same->inside};
    for (int i = 0; i < q->p->dist_values.at[number].pieces.n; i++)
        *ARRAY_PUSH(&h.pieces) = q->p->dist_values.at[number].pieces.at[i];
    plan_add(q->p, h);
    return q->p->dist_values.n - 1;
}

/* The bucket of the next exchange; -1: none. All ranks make the same exchanges in one order, so their buckets agree. */
static int next_bucket(exchange *x)
{
    partition *q = x->q;
    int hop = q->hops++;
    return q->next >= 0 && hop < MAX_HOPS && is_small(x) ? q->next * MAX_HOPS + hop : -1;
}

static void add_messages(exchange *x)
{
    walk_pairs(x, false);
    if (!x->in_place) /* else no process lacks elements, and none sends */
        walk_pairs(x, true);
    merge_loans(x);
    staging_rounds(x);
    merge_copies(x);
    x->count.bucket = next_bucket(x);
}

/* together: the collective that makes it; NULL: messages. */
static void make_exchange(exchange *x, const collective_choice *together, int node)
{
    partition *q = x->q;
    x->distinct = !x->t.to.mask && map_is_distinct(q->s.map, x->t.to_mesh);
    x->count = (plan_exchange){.value = x->value,
                               .from_mesh = x->t.from_mesh,
                               .to_mesh = x->t.to_mesh,
                               .from = x->t.from,
                               .to = x->t.to,
                               .node = node,
                               .bucket = -1,
                               .heterogeneous = heterogeneous_unmasked(q, &x->t.from).mask != x->t.from.mask};
    x->first_shard = q->p->shards.n;
    make_targets(x);
    x->count.bound = lacking_bytes(x);
    x->count.least = least_bytes(x);
    if (together)
        add_collectives(x, together);
    else
        add_messages(x);
    int number = q->p->exchanges.n;
    *ARRAY_PUSH(&q->p->exchanges) = x->count;
    emit_phases(x, number);
    ARRAY_FREE(&x->pieces);
    ARRAY_FREE(&x->steps);
    ARRAY_FREE(&x->sources);
    ARRAY_FREE(&x->packs);
}

static exchange exchange_begin(partition *q, int source)
{
    const plan_dist_value *from = &q->p->dist_values.at[source];
    return (exchange){.q = q, .value = from->value, .source = source, .inside = from->inside};
}

static transfer transfer_from(partition *q, int source, const trama_mesh *mesh, const trama_layout *layout)
{
    const plan_dist_value *from = &q->p->dist_values.at[source];
    const box whole = partition_whole(q, from->value);
    size_t element = trama_dtype_size(q->s.program->values.at[from->value]->dtype);
    return transfer_between(from->mesh, &from->layout, mesh, layout, &whole, element);
}

/* Whether NCCL sums elements of the value's type; it moves any by their bytes. */
static bool nccl_sums_type(const partition *q, int value)
{
    trama_dtype dtype = q->s.program->values.at[value]->dtype;
    return dtype != TRAMA_BOOL && dtype != TRAMA_I16 && dtype != TRAMA_U16;
}

static bool are_distinct(const partition *q, const trama_mesh *one, const trama_mesh *other)
{
    return map_is_distinct(q->s.map, one) && map_is_distinct(q->s.map, other);
}

/* A request for a value in a layout. */
typedef struct request {
    const trama_mesh *mesh;
    const trama_layout *layout;
    int node;   /* the op that asks for it; -1: the user */
    bool fresh; /* in buffers of its own */
    int into;   /* the distributed value that gets it; -1: a new one, the plan's last */
    reshard_part within;
} request;

static void reshard(partition *q, int source, const request *r);

/* Makes two exchanges in place of one, whose bounds add up to its bound. */
static void reshard_by_route(const exchange *x, const reshard_choice *c, const request *wanted)
{
    partition *q = x->q;
    const route *r = &c->route;
    int first = q->p->exchanges.n, source = x->source;
    reshard_part hop = reshard_hop_of(c, wanted->within);
    if (r->owned)
        *ARRAY_PUSH(&q->p->meshes) = r->owned;
    if (r->from_mesh != x->t.from_mesh)
        source = dist_value_as(q, source, r->from_mesh, &r->from);
    reshard(q, source, &(request){r->mesh, &r->between, wanted->node, false, -1, hop});
    reshard(q, q->p->dist_values.n - 1, &(request){r->to_mesh, &r->to, wanted->node, wanted->fresh, wanted->into, hop});
    plan_dist_value *h = &q->p->dist_values.at[wanted->into < 0 ? q->p->dist_values.n - 1 : wanted->into];
    h->mesh = x->t.to_mesh;
    h->layout = x->t.to;
    for (int e = first; e < q->p->exchanges.n && c->form != RESHARD_NEW_KIND; e++) {
        plan_exchange *made = &q->p->exchanges.at[e];
        made->bound = e == first ? lacking_bytes(x) : min_i64(made->bound, 0);
        made->least = e == first ? least_bytes(x) : min_i64(made->least, 0);
    }
}

/* Adds the distributed value that an exchange fills. */
static int add_target(const exchange *x, const request *r)
{
    partition *q = x->q;
    plan_dist_value *h = plan_add(q->p, (plan_dist_value){.value = x->value, .mesh = r->mesh, .layout = *r->layout});
    h->inside = layout_has(r->layout, TRAMA_SPLIT) && !x->t.reduced && (x->inside || !x->fresh); /* see try_alias */
    partition_pieces(q, r->mesh, r->layout, &x->t.whole, h);
    return q->p->dist_values.n - 1;
}

static void reshard(partition *q, int source, const request *r)
{
    exchange x = exchange_begin(q, source);
    x.t = transfer_from(q, source, r->mesh, r->layout);
    bool together = q->s.options.collectives && is_on_gpus(&x);
    const reshard_setting s = {.distinct = are_distinct(q, x.t.from_mesh, x.t.to_mesh),
                               .within = r->within,
                               .collectives = together,
                               .nccl_sums = q->s.options.nccl_sums && nccl_sums_type(q, x.value),
                               .root = together ? find_root(&x) : -1};
    reshard_choice c = reshard_choose(&x.t, &s);
    x.t = c.t;
    if (reshard_has_route(&c)) {
        reshard_by_route(&x, &c, r);
        return;
    }
    x.in_place = c.form == RESHARD_IN_PLACE;
    x.fresh = r->fresh;
    x.target = r->into < 0 ? add_target(&x, r) : r->into;
    make_exchange(&x, c.form == RESHARD_COLLECTIVE ? &c.collective : NULL, r->node);
}

void reshard_dist_value(partition *q, int source, const trama_mesh *mesh, const trama_layout *layout, int node,
                        bool fresh)
{
    reshard(q, source, &(request){mesh, layout, node, fresh, -1, PART_OF_NOTHING});
}

void reshard_into(partition *q, int source, int target, int node)
{
    const plan_dist_value *to = &q->p->dist_values.at[target];
    const trama_layout layout = to->layout;
    reshard(q, source, &(request){to->mesh, &layout, node, false, target, PART_OF_NOTHING});
}
