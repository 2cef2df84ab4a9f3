/* SPDX-License-Identifier: Apache-2.0 */
/* Between what layouts say and what hosts state: from any boxes to any boxes. A target takes each element that its
 * place lacks once, from the nearest holders in rotation. Every rank looks at its own targets, then at its own sources,
 * and finds the same pairs as the other side. */
#include <assert.h>
#include <string.h>

#include "exchange.h"
#include "thresholds.h"

enum { OWN_BATCH = 1 << 20 }; /* messages of one move go together, and with no others */

/* ---- Holdings that are stated ---- */

void partition_stated(partition *q, int value, const spots *stated)
{
    plan_holding h = {.value = value, .stated = stated, .inside = stated->strided};
    trama_dtype dtype = q->s.program->values.at[value]->dtype;
    int n = 0;
    for (int i = 0; i < stated->at.n; i++)
        n += stated->at.at[i].rank == q->s.rank;
    for (int i = 0; i < stated->at.n; i++) {
        const spot *s = &stated->at.at[i];
        int dim, parts;
        if (s->rank != q->s.rank)
            continue;
        partition_cut(q, &s->b, dtype, s->place, n, 0, &dim, &parts);
        int shard = partition_shard(q, SHARD_HOST, value, s->place, &s->b, dim, stated->handled ? 1 : parts);
        q->p->shards.at[shard].host = true;
        q->p->shards.at[shard].strided = stated->strided;
        *ARRAY_PUSH(&h.pieces) =
            (plan_piece){.place = s->place, .position = s->number, .region = {.shard = shard, .box = s->b}};
    }
    *ARRAY_PUSH(&q->p->holdings) = h;
}

/* The stated box of the same rank that a box lies in; NULL. */
static const spot *container(const spots *stated, const spot *of)
{
    for (int i = spots_next(stated, &of->b, 0); i >= 0; i = spots_next(stated, &of->b, i + 1))
        if (stated->at.at[i].rank == of->rank && box_contains(&stated->at.at[i].b, &of->b))
            return &stated->at.at[i];
    return NULL;
}

/* All that a layout gives to places, each place's boxes once. */
static spots spots_of_layout(const partition *q, const trama_mesh *mesh, const trama_layout *layout, const box *whole)
{
    spots s = {0};
    for (int i = 0; i < mesh->size; i++) {
        int place = place_of(q, mesh, i);
        spot one = {.place = place, .rank = q->s.machine->places[place].rank, .number = i};
        one.term = term_of(mesh, layout, i);
        if (!layout_present(layout, i))
            continue;
        layout_box(mesh, layout, whole, i, &one.b);
        if (box_count(&one.b))
            *ARRAY_PUSH(&s.at) = one;
    }
    spots_sort(&s);
    spots_unite(&s);
    return s;
}

static int shard_of_box(const plan_holding *stated, const box *b)
{
    for (int i = 0; i < stated->pieces.n; i++)
        if (box_contains(&stated->pieces.at[i].region.box, b))
            return stated->pieces.at[i].region.shard;
    return stated->pieces.n ? stated->pieces.at[0].region.shard : -1;
}

bool partition_inside(partition *q, int stated, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    const plan_holding *from = plan_find(q->p, stated);
    box whole = partition_whole(q, value);
    spots wanted = spots_of_layout(q, mesh, layout, &whole);
    bool all = !layout_has(layout, TRAMA_PARTIAL), exact = !from->stated->strided;
    for (int i = 0; i < wanted.at.n && all; i++) {
        const spot *in = container(from->stated, &wanted.at.at[i]);
        all = in != NULL && !plan_on_gpu(q->p, wanted.at.at[i].place);
        exact = exact && in && box_equal(&in->b, &wanted.at.at[i].b);
    }
    spots_free(&wanted);
    if (!all)
        return false;
    plan_holding h = {.value = value, .mesh = mesh, .layout = *layout, .inside = !exact};
    partition_pieces(q, mesh, layout, &whole, &h);
    for (int i = 0; i < h.pieces.n; i++) {
        plan_region *r = &h.pieces.at[i].region;
        r->shard = shard_of_box(from, &r->box);
        if (r->shard < 0) /* an empty box of a rank that stated none */
            r->shard = partition_shard(q, SHARD_OWN, value, h.pieces.at[i].place, &r->box, -1, 1);
    }
    *ARRAY_PUSH(&q->p->holdings) = h;
    return true;
}

void partition_prefer_last(partition *q, int value)
{
    plan_prefer(q->p, value, q->p->holdings.n - 1);
}

/* ---- Moving ---- */

typedef struct moving {
    exchange x;
    const plan_holding *source, *target;
    spots from, to;
    int_list holders; /* places of the source box at hand */
} moving;

/* Where all ranks hold it; this rank's spots have the numbers of their pieces. */
static spots spots_of(const partition *q, const plan_holding *h, const box *whole)
{
    spots s = {0};
    int n = 0;
    if (!h->stated)
        s = spots_of_layout(q, h->mesh, &h->layout, whole);
    for (int i = 0; h->stated && i < h->stated->at.n; i++)
        *ARRAY_PUSH(&s.at) = h->stated->at.at[i];
    s.dim = h->stated ? h->stated->dim : s.dim;
    s.longest = h->stated ? h->stated->longest : s.longest;
    for (int i = 0; i < s.at.n; i++) {
        spot *one = &s.at.at[i];
        if (one->rank == q->s.rank)
            one->number = h->stated ? n++ : (int)(find_piece(h, one->place, &one->b, one->term) - h->pieces.at);
    }
    return s;
}

static const plan_piece *piece_at(const partition *q, const plan_holding *h, const spot *s)
{
    return s->rank == q->s.rank ? &h->pieces.at[s->number] : NULL;
}

/* Of the n spots from number i on, which have one box, the one that serves a target. */
static const spot *serving(moving *m, int i, int n, const spot *target, int number)
{
    const spot *at = &m->from.at.at[i];
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

static bool is_turned(const spot *s)
{
    static const signed char none[TRAMA_MAX_NDIM];
    return memcmp(s->turns, none, sizeof none) != 0;
}

/* Where a region of the tensor lies in a target piece. */
static plan_region turned_in(const exchange *x, const plan_piece *t, const spot *to, const box *region)
{
    plan_region r = region_in(t, region);
    for (int d = 0; d < region->ndim; d++)
        r.box.lo[d] += to->turns[d] * x->t.whole.n[d];
    return r;
}

/* A region that goes from a spot to another one, of which this rank has at least one. number: of the target, which
 * tells regions apart that several targets have in common. */
static void move_region(moving *m, const spot *from, const spot *to, int number, const box *region)
{
    exchange *x = &m->x;
    const plan_piece *s = piece_at(x->q, m->source, from), *t = piece_at(x->q, m->target, to);
    if (s && t) {
        x->count.bound += from->place != to->place ? region_bytes(x, region) : 0;
        stage_copy(x, UNPACK, to->place, turned_in(x, t, to, region), region_in(s, region));
        return;
    }
    x->count.bound += t ? region_bytes(x, region) : 0;
    cut_message(x, region, m->source->inside ? NULL : lending(x, from->place, &from->b),
                m->target->inside ? NULL : lending(x, to->place, &to->b), 1);
    for (x->piece = 0; x->piece < x->pieces.n; x->piece++) {
        const box *piece = &x->pieces.at[x->piece];
        if (s)
            stage_send(x, 0, from->place, to->place, region_in(s, piece), number);
        else if (is_turned(to))
            stage_copy(x, UNPACK, to->place, turned_in(x, t, to, piece),
                       stage_receive_buffer(x, 0, to->place, from->place, piece, number));
        else
            stage_receive(x, 0, to->place, from->place, region_in(t, piece), number);
    }
}

static void fill_targets(moving *m)
{
    box region;
    for (int t = 0; t < m->to.at.n; t++) {
        const spot *to = &m->to.at.at[t];
        if (to->rank != m->x.q->s.rank)
            continue;
        for (int s = spots_next(&m->from, &to->b, 0), n; s >= 0; s = spots_next(&m->from, &to->b, s + n)) {
            n = spots_equal(&m->from, s);
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
        n = spots_equal(&m->from, s);
        for (int k = 0; k < n; k++)
            mine |= m->from.at.at[s + k].rank == rank;
        for (int t = mine ? spots_next(&m->to, b, 0) : -1; t >= 0; t = spots_next(&m->to, b, t + 1)) {
            const spot *to = &m->to.at.at[t],
                       *from = to->rank == rank || to->term != m->from.at.at[s].term ? NULL : serving(m, s, n, to, t);
            if (!from || from->rank != rank)
                continue;
            box_intersect(b, &to->b, &region);
            move_region(m, from, to, t, &region);
        }
    }
}

/* The same layout where terms are summed: their axes cut the longest dim. */
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

/* As is_small of reshard.c: small enough for all of it in as many messages as there may be, so that they are bundled.
 */
static bool may_bundle(const exchange *x, const spots *to)
{
    int64_t window = window_bytes(x->q), elements = 0;
    for (int i = 0; i < to->at.n; i++)
        elements += box_count(&to->at.at[i].b);
    return window / VIEW_SHARE > BUNDLE_MESSAGE && elements <= window / BUFFER_ALIGNMENT / 2;
}

/* The exchange; to has the numbers of the target's pieces where they are this rank's. */
static void move_between(partition *q, const plan_holding *source, const plan_holding *target, spots to, int node)
{
    const trama_value *value = q->s.program->values.at[target->value];
    box whole = partition_whole(q, target->value);
    moving m = {.source = source, .target = target, .from = spots_of(q, source, &whole), .to = to};
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
                                .patient = node < 0,
                                .node = node};
    fill_targets(&m);
    send_sources(&m);
    window_rounds(&m.x);
    m.x.count.batch = may_bundle(&m.x, &to) ? OWN_BATCH + number : -1;
    m.x.count.least = m.x.count.bound; /* of places, not processes */
    *ARRAY_PUSH(&q->p->exchanges) = m.x.count;
    emit_stages(&m.x, number);
    spots_free(&m.from);
    ARRAY_FREE(&m.holders);
    ARRAY_FREE(&m.x.pieces);
    ARRAY_FREE(&m.x.steps);
    ARRAY_FREE(&m.x.sources);
    ARRAY_FREE(&m.x.packs);
}

void partition_move(partition *q, int from, int to)
{
    box whole = partition_whole(q, to);
    const plan_holding *source = plan_find(q->p, from), *target;
    if (!source->stated && layout_has(&source->layout, TRAMA_PARTIAL)) {
        trama_layout without = summed(&source->layout, &whole);
        source = partition_reshard(q, from, source->mesh, &without, -1, false);
    }
    target = plan_find(q->p, to);
    spots wanted = spots_of(q, target, &whole);
    move_between(q, source, target, wanted, -1);
    spots_free(&wanted);
    bundle_messages(q);
}

/* ---- Boxes beyond the borders of a layout's ---- */

/* The parts of a box that lie in the tensor, and the parts beyond its ends, which stand at the other ends. */
static void add_turned(spots *list, const spot *s, const box *whole, int dim)
{
    if (dim == whole->ndim) {
        *ARRAY_PUSH(&list->at) = *s;
        return;
    }
    for (int turn = -1; turn <= 1; turn++) {
        spot part = *s;
        int64_t lo = max_i64(s->b.lo[dim], turn * whole->n[dim]);
        int64_t hi = min_i64(s->b.lo[dim] + s->b.n[dim], (turn + 1) * whole->n[dim]);
        part.b.lo[dim] = lo - turn * whole->n[dim];
        part.b.n[dim] = hi - lo;
        part.turns[dim] = (signed char)turn;
        if (hi > lo)
            add_turned(list, &part, whole, dim + 1);
    }
}

void partition_fetch(partition *q, int source, spots *wanted, int node, plan_holding *fetched)
{
    const plan_holding from = q->p->holdings.at[source];
    box whole = partition_whole(q, from.value);
    spots parts = {0};
    int n = 0, *piece;
    *fetched = (plan_holding){.value = from.value, .mesh = from.mesh, .layout = from.layout, .inside = true};
    spots_sort(wanted);
    spots_unite(wanted);
    piece = trama_alloc((size_t)max_i64(1, wanted->at.n) * sizeof *piece);
    for (int i = 0; i < wanted->at.n; i++) {
        spot *s = &wanted->at.at[i];
        s->number = i;
        piece[i] = s->rank == q->s.rank ? n++ : i;
        add_turned(&parts, s, &whole, 0);
        if (s->rank == q->s.rank)
            *ARRAY_PUSH(&fetched->pieces) =
                (plan_piece){.place = s->place,
                             .term = s->term,
                             .region = {partition_shard(q, SHARD_OWN, from.value, s->place, &s->b, -1, 1), s->b}};
    }
    spots_sort(&parts);
    for (int i = 0; i < parts.at.n; i++)
        parts.at.at[i].number = piece[parts.at.at[i].number];
    move_between(q, &from, fetched, parts, node);
    spots_free(&parts);
    free(piece);
}
