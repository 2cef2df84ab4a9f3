/* SPDX-License-Identifier: Apache-2.0 */
/* Moves from any boxes to any boxes, be they given by layouts or stated by hosts. A target takes each element that its
 * place lacks once, from the nearest holders in rotation. Every rank looks at its own targets, then at its own sources,
 * and finds the same pairs as the other side. */
#include <assert.h>
#include <string.h>

#include "exchange.h"
#include "thresholds.h"

/* ---- Tensors in user boxes ---- */

void partition_user_boxes(partition *q, int value, const box_index *user_boxes)
{
    plan_dist_value h = {.value = value, .user_boxes = user_boxes, .inside = user_boxes->strided};
    trama_dtype dtype = q->s.program->values.at[value]->dtype;
    int n = 0;
    for (int i = 0; i < user_boxes->at.n; i++)
        n += user_boxes->at.at[i].rank == q->s.rank;
    for (int i = 0; i < user_boxes->at.n; i++) {
        const indexed_box *s = &user_boxes->at.at[i];
        int dim, parts;
        if (s->rank != q->s.rank)
            continue;
        partition_cut(q, &s->b, dtype, s->place, n, &dim, &parts);
        int shard = partition_shard(q, SHARD_HOST, value, s->place, &s->b, dim, user_boxes->handled ? 1 : parts);
        q->p->shards.at[shard].host = true;
        q->p->shards.at[shard].strided = user_boxes->strided;
        *ARRAY_PUSH(&h.pieces) =
            (plan_local_box){.place = s->place, .position = s->number, .region = {.shard = shard, .box = s->b}};
    }
    plan_add(q->p, h);
}

/* The user box of the same rank that contains a box; NULL: none. */
static const indexed_box *container(const box_index *user_boxes, const indexed_box *of)
{
    for (int i = box_index_next(user_boxes, &of->b, 0); i >= 0; i = box_index_next(user_boxes, &of->b, i + 1))
        if (user_boxes->at.at[i].rank == of->rank && box_contains(&user_boxes->at.at[i].b, &of->b))
            return &user_boxes->at.at[i];
    return NULL;
}

/* The boxes of all places in a layout, each once a place. */
static box_index box_index_of_layout(const partition *q, const trama_mesh *mesh, const trama_layout *layout,
                                     const box *whole)
{
    box_index s = {0};
    for (int i = 0; i < mesh->size; i++) {
        int place = place_of(q, mesh, i);
        indexed_box one = {.place = place, .rank = q->s.machine->places[place].rank, .number = i};
        one.term = term_of(mesh, layout, i);
        if (!layout_present(layout, i))
            continue;
        layout_box(mesh, layout, whole, i, &one.b);
        if (box_count(&one.b))
            *ARRAY_PUSH(&s.at) = one;
    }
    box_index_sort(&s);
    box_index_unite(&s);
    return s;
}

static int shard_of_box(const plan_dist_value *user_boxes, const box *b)
{
    for (int i = 0; i < user_boxes->pieces.n; i++)
        if (box_contains(&user_boxes->pieces.at[i].region.box, b))
            return user_boxes->pieces.at[i].region.shard;
    return user_boxes->pieces.n ? user_boxes->pieces.at[0].region.shard : -1;
}

bool partition_inside(partition *q, int user_boxes, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    const plan_dist_value *from = plan_find(q->p, user_boxes);
    box whole = partition_whole(q, value);
    box_index wanted = box_index_of_layout(q, mesh, layout, &whole);
    bool all = !layout_has(layout, TRAMA_PARTIAL), exact = !from->user_boxes->strided;
    for (int i = 0; i < wanted.at.n && all; i++) {
        const indexed_box *in = container(from->user_boxes, &wanted.at.at[i]);
        all = in != NULL && !plan_on_gpu(q->p, wanted.at.at[i].place);
        exact = exact && in && box_equal(&in->b, &wanted.at.at[i].b);
    }
    box_index_free(&wanted);
    if (!all)
        return false;
    plan_dist_value h = {.value = value, .mesh = mesh, .layout = *layout, .inside = !exact};
    partition_pieces(q, mesh, layout, &whole, &h);
    for (int i = 0; i < h.pieces.n; i++) {
        plan_region *r = &h.pieces.at[i].region;
        r->shard = shard_of_box(from, &r->box);
        if (r->shard < 0) /* an empty box of a rank that has none */
            r->shard = partition_shard(q, SHARD_OWN, value, h.pieces.at[i].place, &r->box, -1, 1);
    }
    plan_add(q->p, h);
    return true;
}

void partition_prefer_last(partition *q, int value)
{
    plan_prefer(q->p, value, q->p->dist_values.n - 1);
}

/* ---- Moving ---- */

typedef struct moving {
    exchange x;
    const plan_dist_value *source, *target;
    box_index from, to;
    int_list holders; /* places of the current source box */
} moving;

/* The boxes of a distributed value on all ranks; number is the index of the piece for this rank's boxes. */
static box_index box_index_of(const partition *q, const plan_dist_value *h, const box *whole)
{
    box_index s = {0};
    int n = 0;
    if (!h->user_boxes)
        s = box_index_of_layout(q, h->mesh, &h->layout, whole);
    for (int i = 0; h->user_boxes && i < h->user_boxes->at.n; i++)
        *ARRAY_PUSH(&s.at) = h->user_boxes->at.at[i];
    s.dim = h->user_boxes ? h->user_boxes->dim : s.dim;
    s.longest = h->user_boxes ? h->user_boxes->longest : s.longest;
    for (int i = 0; i < s.at.n; i++) {
        indexed_box *one = &s.at.at[i];
        if (one->rank == q->s.rank)
            one->number = h->user_boxes ? n++ : (int)(find_piece(h, one->place, &one->b, one->term) - h->pieces.at);
    }
    return s;
}

static const plan_local_box *piece_at(const partition *q, const plan_dist_value *h, const indexed_box *s)
{
    return s->rank == q->s.rank ? &h->pieces.at[s->number] : NULL;
}

/* The one that serves a target, of the n equal boxes from number i on. */
static const indexed_box *serving(moving *m, int i, int n, const indexed_box *target, int number)
{
    const indexed_box *at = &m->from.at.at[i];
    m->holders.n = 0;
    for (int k = 0; k < n; k++)
        *ARRAY_PUSH(&m->holders) = at[k].place;
    int place = list_has(&m->holders, target->place) ? target->place
                                                     : choose_holder(&m->x, &m->holders, target->place, number, NULL);
    for (int k = 0; k < n; k++)
        if (at[k].place == place)
            return &at[k];
    assert(!"one of the holders");
    return at;
}

static bool is_turned(const indexed_box *s)
{
    static const signed char none[TRAMA_MAX_NDIM];
    return memcmp(s->turns, none, sizeof none) != 0;
}

/* A region of the tensor as it lies in a target piece. */
static plan_region turned_in(const exchange *x, const plan_local_box *t, const indexed_box *to, const box *region)
{
    plan_region r = region_in(t, region);
    for (int d = 0; d < region->ndim; d++)
        r.box.lo[d] += to->turns[d] * x->t.whole.n[d];
    return r;
}

/* Moves a region from one box to another; this rank has at least one of the two. number: of the target, which
 * distinguishes equal regions of several targets. */
static void move_region(moving *m, const indexed_box *from, const indexed_box *to, int number, const box *region)
{
    exchange *x = &m->x;
    const plan_local_box *s = piece_at(x->q, m->source, from), *t = piece_at(x->q, m->target, to);
    if (s && t) {
        x->count.bound += from->place != to->place ? region_bytes(x, region) : 0;
        add_copy(x, UNPACK, to->place, turned_in(x, t, to, region), region_in(s, region));
        return;
    }
    x->count.bound += t ? region_bytes(x, region) : 0;
    cut_message(x, region, m->source->inside ? NULL : lending(x, from->place, &from->b),
                m->target->inside ? NULL : lending(x, to->place, &to->b), 1);
    for (x->piece = 0; x->piece < x->pieces.n; x->piece++) {
        const box *piece = &x->pieces.at[x->piece];
        if (s)
            add_send(x, 0, from->place, to->place, region_in(s, piece), number);
        else if (is_turned(to))
            add_copy(x, UNPACK, to->place, turned_in(x, t, to, piece),
                     add_receive_buffer(x, 0, to->place, from->place, piece, number));
        else
            add_receive(x, 0, to->place, from->place, region_in(t, piece), number);
    }
}

static void fill_targets(moving *m)
{
    box region;
    for (int t = 0; t < m->to.at.n; t++) {
        const indexed_box *to = &m->to.at.at[t];
        if (to->rank != m->x.q->s.rank)
            continue;
        for (int s = box_index_next(&m->from, &to->b, 0), n; s >= 0; s = box_index_next(&m->from, &to->b, s + n)) {
            n = box_index_equal(&m->from, s);
            if (m->from.at.at[s].term != to->term)
                continue;
            box_intersect(&m->from.at.at[s].b, &to->b, &region);
            move_region(m, serving(m, s, n, to, t), to, t, &region);
        }
    }
}

static void send_sources(moving *m)
{
    int rank = m->x.q->s.rank;
    box region;
    for (int s = 0, n; s < m->from.at.n; s += n) {
        const box *b = &m->from.at.at[s].b;
        bool mine = false;
        n = box_index_equal(&m->from, s);
        for (int k = 0; k < n; k++)
            mine |= m->from.at.at[s + k].rank == rank;
        for (int t = mine ? box_index_next(&m->to, b, 0) : -1; t >= 0; t = box_index_next(&m->to, b, t + 1)) {
            const indexed_box *to = &m->to.at.at[t], *from = to->rank == rank || to->term != m->from.at.at[s].term
                                                                 ? NULL
                                                                 : serving(m, s, n, to, t);
            if (!from || from->rank != rank)
                continue;
            box_intersect(b, &to->b, &region);
            move_region(m, from, to, t, &region);
        }
    }
}

/* The same layout after its terms are summed: their axes cut the longest dim. */
static trama_layout summed(const trama_layout *layout, const box *whole)
{
    trama_layout without = *layout;
    int dim = 0, order = 0;
    for (int d = 1; d < whole->ndim; d++)
        dim = whole->n[d] > whole->n[dim] ? d : dim;
    for (int a = 0; a < layout->naxes; a++)
        order += layout->axis[a].kind == TRAMA_SPLIT && layout->axis[a].dim == dim;
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_PARTIAL)
            without.axis[a] = whole->ndim ? (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = order++}
                                          : (trama_placement){.kind = TRAMA_REPLICATE};
    return without;
}

/* Whether all messages, however many, fit in the staging buffer and none is a view, so that they are bundled; like
 * is_small of reshard.c. */
static bool may_bundle(const exchange *x, const box_index *to)
{
    int64_t buffer = staging_bytes(x->q), elements = 0;
    for (int i = 0; i < to->at.n; i++)
        elements += box_count(&to->at.at[i].b);
    return buffer / VIEW_SHARE > BUNDLE_MESSAGE && elements <= buffer / BUFFER_ALIGNMENT / 2;
}

/* Makes the exchange. to: the target's boxes; number is the index of the piece for this rank's boxes. */
static void move_between(partition *q, const plan_dist_value *source, const plan_dist_value *target, box_index to,
                         int node)
{
    const trama_value *value = q->s.program->values.at[target->value];
    box whole = partition_whole(q, target->value);
    moving m = {.source = source, .target = target, .from = box_index_of(q, source, &whole), .to = to};
    int number = q->p->exchanges.n;
    m.x = (exchange){.q = q,
                     .value = value->id,
                     .t = {.whole = whole, .element = trama_dtype_size(value->dtype)},
                     .first_shard = q->p->shards.n};
    m.x.count = (plan_exchange){.value = value->id,
                                .from_mesh = source->mesh,
                                .to_mesh = target->mesh,
                                .from = source->layout,
                                .to = target->layout,
                                .rendezvous = node < 0,
                                .node = node};
    fill_targets(&m);
    send_sources(&m);
    merge_loans(&m.x);
    staging_rounds(&m.x);
    m.x.count.bucket = may_bundle(&m.x, &to) ? OWN_BUCKET + number : -1;
    m.x.count.least = m.x.count.bound; /* move_region counts places, not processes */
    *ARRAY_PUSH(&q->p->exchanges) = m.x.count;
    emit_phases(&m.x, number);
    box_index_free(&m.from);
    ARRAY_FREE(&m.holders);
    ARRAY_FREE(&m.x.pieces);
    ARRAY_FREE(&m.x.steps);
    ARRAY_FREE(&m.x.sources);
    ARRAY_FREE(&m.x.packs);
}

void partition_move(partition *q, int from, int to)
{
    box whole = partition_whole(q, to);
    const plan_dist_value *source = plan_find(q->p, from), *target;
    if (!source->user_boxes && layout_has(&source->layout, TRAMA_PARTIAL)) {
        trama_layout without = summed(&source->layout, &whole);
        source = partition_reshard(q, from, source->mesh, &without, -1, false);
    }
    target = plan_find(q->p, to);
    box_index wanted = box_index_of(q, target, &whole);
    move_between(q, source, target, wanted, -1);
    box_index_free(&wanted);
    bundle_messages(q);
}

/* ---- Boxes beyond the ends of the tensor ---- */

/* Adds the part of a box inside of the tensor, and the parts beyond its ends as boxes at the other ends, with turns. */
static void add_turned(box_index *list, const indexed_box *s, const box *whole, int dim)
{
    if (dim == whole->ndim) {
        *ARRAY_PUSH(&list->at) = *s;
        return;
    }
    for (int turn = -1; turn <= 1; turn++) {
        indexed_box part = *s;
        int64_t lo = max_i64(s->b.lo[dim], turn * whole->n[dim]);
        int64_t hi = min_i64(s->b.lo[dim] + s->b.n[dim], (turn + 1) * whole->n[dim]);
        part.b.lo[dim] = lo - turn * whole->n[dim];
        part.b.n[dim] = hi - lo;
        part.turns[dim] = (signed char)turn;
        if (hi > lo)
            add_turned(list, &part, whole, dim + 1);
    }
}

void partition_fetch(partition *q, int source, box_index *wanted, int node, plan_dist_value *fetched)
{
    const plan_dist_value from = q->p->dist_values.at[source];
    box whole = partition_whole(q, from.value);
    box_index parts = {0};
    int n = 0, *piece;
    *fetched = (plan_dist_value){.value = from.value, .mesh = from.mesh, .layout = from.layout, .inside = true};
    box_index_sort(wanted);
    box_index_unite(wanted);
    piece = trama_alloc((size_t)max_i64(1, wanted->at.n) * sizeof *piece);
    for (int i = 0; i < wanted->at.n; i++) {
        indexed_box *s = &wanted->at.at[i];
        s->number = i;
        piece[i] = s->rank == q->s.rank ? n++ : i;
        add_turned(&parts, s, &whole, 0);
        if (s->rank == q->s.rank)
            *ARRAY_PUSH(&fetched->pieces) =
                (plan_local_box){.place = s->place,
                                 .term = s->term,
                                 .region = {partition_shard(q, SHARD_OWN, from.value, s->place, &s->b, -1, 1), s->b}};
    }
    box_index_sort(&parts);
    for (int i = 0; i < parts.at.n; i++)
        parts.at.at[i].number = piece[parts.at.at[i].number];
    move_between(q, &from, fetched, parts, node);
    box_index_free(&parts);
    free(piece);
}
