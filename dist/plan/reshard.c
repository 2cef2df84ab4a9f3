/* SPDX-License-Identifier: Apache-2.0 */
/* The reshard engine: from one layout to another, on the same mesh or not. Source boxes are intersected with target boxes;
 * for each pair a closed form says who sends what to whom, so that each rank finds its own part alone:
 *
 *   - a target takes what it lacks, each element once, from the nearest holders in rotation;
 *   - where the targets outnumber the holders they get a slice each and exchange slices, so that a holder sends once;
 *   - partial values: each target gets one slice of every term, sums in the order of terms, and the targets exchange slices. */
#include <assert.h>
#include <string.h>

#include "bound.h"
#include "exchange.h"

enum {
    SLICE_BYTES = 16 << 10, /* below it a box is not worth a scatter: holders send all of it */
    SPREAD_BYTES = 256 << 10, /* above it one target takes slices from several holders */
    MAX_SPREAD = 4
};

/* ---- Who holds, who needs ---- */

/* Distinct places of the positions with the given coordinates, those along free axes taken in order. */
static void places_of(const exchange *x, const trama_mesh *mesh, const trama_layout *layout, const int *coordinate,
                      unsigned free_axes, int_list *places)
{
    partition *q = x->q;
    int at[TRAMA_MAX_AXES], n = axes_size(mesh, free_axes);
    memcpy(at, coordinate, sizeof at);
    places->n = 0;
    q->stamp++;
    for (int i = 0; i < n; i++) {
        axes_coordinate(mesh, free_axes, i, at);
        int position = mesh_position(mesh, at);
        if (!layout_present(layout, position))
            continue;
        int place = place_of(q, mesh, position);
        if (q->seen[place] == q->stamp)
            continue;
        q->seen[place] = q->stamp;
        *ARRAY_PUSH(places) = place;
    }
}

static bool list_has(const int_list *l, int place)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == place)
            return true;
    return false;
}

/* One pair of boxes: what every rank concerned sees alike. */
typedef struct group {
    box region;            /* source box and target box in common */
    box from_box, to_box;
    int kept;              /* position along the kept axes */
    int terms;
    int_list *holders;     /* [terms] places */
    bool *held_here;       /* [terms] whether this rank has a holder */
    int_list targets;      /* places */
} group;

/* The k-th choice of holder for target number i: the nearest ones in rotation. */
static int choose_holder(const exchange *x, const int_list *holders, int target, int i, int *n_nearest)
{
    const machine *m = x->q->s.machine;
    int nearest = machine_distance(m, holders->at[0], target), n = 0;
    for (int h = 1; h < holders->n; h++) {
        int d = machine_distance(m, holders->at[h], target);
        nearest = d < nearest ? d : nearest;
    }
    for (int h = 0; h < holders->n; h++)
        n += machine_distance(m, holders->at[h], target) == nearest;
    if (n_nearest)
        *n_nearest = n;
    int skip = i % n;
    for (int h = 0; h < holders->n; h++)
        if (machine_distance(m, holders->at[h], target) == nearest && skip-- == 0)
            return holders->at[h];
    assert(!"one of the nearest");
    return -1;
}

/* Slice i of n. */
static box slice_of(const box *b, int n, int i)
{
    box s = *b;
    if (!b->ndim) { /* a scalar cannot be cut: the first has it */
        s.ndim = i ? -1 : 0;
        return s;
    }
    int dim = partition_slice_dim(b, n);
    int64_t lo;
    piece_of(b->n[dim], n, i, &lo, &s.n[dim]);
    s.lo[dim] += lo;
    return s;
}

static bool is_nothing(const box *b)
{
    return b->ndim < 0 || box_count(b) == 0;
}

/* Whether a target piece is a part of what its place holds already, so that it needs no buffer. */
static bool try_alias(exchange *x, plan_piece *t)
{
    if (x->fresh || x->reduced || x->scale != 1 || !gets_value(x, t->position))
        return false;
    const plan_holding *h = &x->q->p->holdings.at[x->source];
    int kept = kept_of(x, x->to_mesh, t->position);
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_piece *s = &h->pieces.at[i];
        if (s->place == t->place && kept_of(x, x->from_mesh, s->position) == kept &&
            box_contains(&s->region.box, &t->region.box)) {
            t->region.shard = s->region.shard;
            return true;
        }
    }
    return false;
}

/* ---- Groups ---- */

static unsigned free_axes(const trama_mesh *mesh, const trama_layout *layout, unsigned bound)
{
    return ((1u << mesh->ndim) - 1) & ~(layout_axes(layout, TRAMA_SPLIT) | bound);
}

static void fill_group(const exchange *x, group *g, const int *from_coordinate, const int *to_coordinate)
{
    int at[TRAMA_MAX_AXES];
    g->terms = axes_size(x->from_mesh, x->reduced);
    g->holders = trama_alloc((size_t)g->terms * sizeof *g->holders);
    g->held_here = trama_alloc((size_t)g->terms * sizeof *g->held_here);
    for (int term = 0; term < g->terms; term++) {
        memcpy(at, from_coordinate, sizeof at);
        axes_coordinate(x->from_mesh, x->kept, g->kept, at);
        axes_coordinate(x->from_mesh, x->reduced, term, at);
        places_of(x, x->from_mesh, &x->from, at, free_axes(x->from_mesh, &x->from, x->kept | x->reduced),
                  &g->holders[term]);
        for (int h = 0; h < g->holders[term].n; h++)
            g->held_here[term] |= is_mine(x->q, g->holders[term].at[h]);
    }
    memcpy(at, to_coordinate, sizeof at);
    axes_coordinate(x->to_mesh, x->kept, g->kept, at);
    axes_coordinate(x->to_mesh, x->fresh_sum, 0, at);
    places_of(x, x->to_mesh, &x->to, at, free_axes(x->to_mesh, &x->to, x->kept | x->fresh_sum), &g->targets);
}

static void free_group(group *g)
{
    for (int i = 0; i < g->terms; i++)
        ARRAY_FREE(&g->holders[i]);
    free(g->holders);
    free(g->held_here);
    ARRAY_FREE(&g->targets);
}

/* Moves b from the source piece of one place to the target piece of another. */
static void move_from_source(exchange *x, const group *g, int from, int to, const box *b)
{
    if (is_nothing(b) || (!is_mine(x->q, from) && !is_mine(x->q, to)))
        return;
    const plan_piece *s = is_mine(x->q, from) ? source_piece(x, from, &g->from_box, g->kept, 0) : NULL;
    const plan_piece *t = is_mine(x->q, to) ? target_piece(x, to, &g->to_box, g->kept) : NULL;
    if (s && t)
        stage_copy(x, UNPACK, to, region_in(t, b), region_in(s, b));
    else if (s)
        stage_send(x, 0, from, to, region_in(s, b), g->kept);
    else
        stage_receive(x, 0, to, from, region_in(t, b), g->kept);
}

/* Slice number i goes from the target that has it to another one, as far as this rank is concerned. */
static void pass_slice(exchange *x, const group *g, const int_list *targets, int i, int j)
{
    box slice = slice_of(&g->region, targets->n, i);
    int from = targets->at[i], to = targets->at[j];
    if (i == j || is_nothing(&slice))
        return;
    const plan_piece *s = is_mine(x->q, from) ? target_piece(x, from, &g->to_box, g->kept) : NULL;
    const plan_piece *t = is_mine(x->q, to) ? target_piece(x, to, &g->to_box, g->kept) : NULL;
    if (s && t)
        stage_copy(x, UNPACK_AGAIN, to, region_in(t, &slice), region_in(s, &slice));
    else if (s)
        stage_send(x, 1, from, to, region_in(s, &slice), g->kept);
    else
        stage_receive(x, 1, to, from, region_in(t, &slice), g->kept);
}

/* Every target has its slice; each sends it to the others. */
static void exchange_slices(exchange *x, const group *g, const int_list *targets)
{
    int_list mine = {0};
    for (int i = 0; i < targets->n; i++)
        if (is_mine(x->q, targets->at[i]))
            *ARRAY_PUSH(&mine) = i;
    for (int i = 0; i < targets->n; i++) {
        bool all = is_mine(x->q, targets->at[i]);
        for (int k = 0; k < (all ? targets->n : mine.n); k++)
            pass_slice(x, g, targets, i, all ? k : mine.at[k]);
    }
    ARRAY_FREE(&mine);
}

static int64_t region_bytes(const exchange *x, const box *b)
{
    return box_count(b) * (int64_t)x->element;
}

static bool is_scattered(const exchange *x, const box *region, int targets, int holders)
{
    return targets > holders && targets > 1 && region_bytes(x, region) >= SLICE_BYTES;
}

static void move_group(exchange *x, group *g)
{
    const int_list *holders = &g->holders[0];
    int_list lacking = {0};
    for (int i = 0; i < g->targets.n; i++) {
        int place = g->targets.at[i];
        if (!list_has(holders, place)) {
            *ARRAY_PUSH(&lacking) = place;
        } else if (is_mine(x->q, place)) {
            const plan_piece *s = source_piece(x, place, &g->from_box, g->kept, 0);
            const plan_piece *t = target_piece(x, place, &g->to_box, g->kept);
            if (s->region.shard != t->region.shard)
                stage_copy(x, UNPACK, place, region_in(t, &g->region), region_in(s, &g->region));
        }
    }
    bool scattered = is_scattered(x, &g->region, lacking.n, holders->n);
    for (int i = 0; i < lacking.n; i++) {
        int n_nearest, to = lacking.at[i];
        int from = choose_holder(x, holders, to, i, &n_nearest);
        if (scattered) {
            box slice = slice_of(&g->region, lacking.n, i);
            move_from_source(x, g, from, to, &slice);
            continue;
        }
        int spread = (int)min_i64(n_nearest / lacking.n, MAX_SPREAD);
        if (spread < 2 || region_bytes(x, &g->region) < SPREAD_BYTES)
            spread = 1;
        for (int k = 0; k < spread; k++) {
            box slice = spread > 1 ? slice_of(&g->region, spread, k) : g->region;
            move_from_source(x, g, choose_holder(x, holders, to, i * spread + k, NULL), to, &slice);
        }
    }
    if (scattered)
        exchange_slices(x, g, &lacking);
    ARRAY_FREE(&lacking);
}

/* With two terms and two targets the whole exchange costs as many bytes as slices, and one hop less: a third of the time for
 * the gradients of the main job. */
static bool is_sliced(int terms, int targets)
{
    return targets > 1 && terms > 1 && !(targets == 2 && terms == 2);
}

/* One target sums one slice of all terms, in their order; or this rank sends what another one sums. */
static void reduce_slice(exchange *x, const group *g, int i, const box *slice)
{
    int to = g->targets.at[i];
    bool mine = is_mine(x->q, to);
    int first = x->sources.n;
    const plan_piece *t = mine ? target_piece(x, to, &g->to_box, g->kept) : NULL;
    if (mine) {
        plan_region region = region_in(t, slice);
        *ARRAY_PUSH(&x->sources) = (plan_operand){region, write_access(x->q->p, &region)};
    }
    for (int term = 0; term < g->terms; term++) {
        const int_list *holders = &g->holders[term];
        int key = g->kept * g->terms + term;
        if (!mine && !g->held_here[term])
            continue;
        int from = list_has(holders, to) ? to : choose_holder(x, holders, to, i, NULL);
        const plan_piece *s = is_mine(x->q, from) ? source_piece(x, from, &g->from_box, g->kept, term) : NULL;
        if (mine) {
            plan_region region = s ? region_in(s, slice) : stage_receive_buffer(x, 0, to, from, slice, key);
            count_between(x, to, &region);
            *ARRAY_PUSH(&x->sources) = (plan_operand){region, ACCESS_READ};
        } else if (s) {
            stage_send(x, 0, from, to, region_in(s, slice), key);
        }
    }
    if (!mine)
        return;
    staged *s = stage_step(x, REDUCE, STEP_REDUCE, to);
    s->many = first;
    s->n = x->sources.n - first;
    s->step.reduce = x->reduce;
    s->step.scale = x->scale;
}

static void reduce_group(exchange *x, group *g)
{
    bool sliced = is_sliced(g->terms, g->targets.n);
    for (int i = 0; i < g->targets.n; i++) {
        box slice = sliced ? slice_of(&g->region, g->targets.n, i) : g->region;
        if (!is_nothing(&slice))
            reduce_slice(x, g, i, &slice);
    }
    if (sliced)
        exchange_slices(x, g, &g->targets);
}

/* ---- Walking the pairs of boxes that concern this rank ---- */

typedef struct pair_walk {
    exchange *x;
    const int *other;      /* coordinate of the box at hand */
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
    if (w->at_source) { /* pairs with a target here were walked from the target */
        const plan_holding *h = &x->q->p->holdings.at[x->target];
        for (int i = 0; i < h->pieces.n; i++)
            if (target_piece(x, h->pieces.at[i].place, &g.to_box, g.kept))
                return;
    }
    fill_group(x, &g, w->at_source ? w->other : coordinate, w->at_source ? coordinate : w->other);
    if (x->reduced || x->scale != 1)
        reduce_group(x, &g);
    else
        move_group(x, &g);
    free_group(&g);
}

/* Whether an earlier piece stands for the same pairs: equal box and kept coordinate. */
static bool walked_before(const exchange *x, const plan_holding *h, int i, const trama_mesh *mesh, bool targets)
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
    const plan_holding *h = &x->q->p->holdings.at[at_source ? x->source : x->target];
    const trama_mesh *mesh = at_source ? x->from_mesh : x->to_mesh;
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_piece *piece = &h->pieces.at[i];
        if ((!at_source && !gets_value(x, piece->position)) || walked_before(x, h, i, mesh, !at_source))
            continue;
        int coordinate[TRAMA_MAX_AXES];
        mesh_coordinate(mesh, piece->position, coordinate);
        box at_hand = piece->region.box;
        pair_walk w = {x, coordinate, &at_hand, kept_of(x, mesh, piece->position), at_source};
        layout_overlaps(at_source ? x->to_mesh : x->from_mesh, at_source ? &x->to : &x->from, &x->whole, &at_hand,
                        visit_pair, &w);
    }
}

/* ---- Target shards ---- */

typedef struct seams {
    int n;             /* source boxes that meet the target box */
    int dim;           /* the dim along which they differ, -1: none so far, -2: several */
    box first;
    int64_t lo[MAX_TILES + 1], length[MAX_TILES + 1];
} seams;

static void visit_seam(void *arg, const box *piece, const int *coordinate)
{
    (void)coordinate;
    seams *s = arg;
    for (int d = 0; s->n && d < piece->ndim; d++)
        if (piece->lo[d] != s->first.lo[d] && d != s->dim)
            s->dim = s->dim == -1 ? d : -2;
    if (s->n == 0)
        s->first = *piece;
    if (s->n <= MAX_TILES && s->dim >= -1) {
        s->lo[s->n] = piece->lo[s->dim < 0 ? 0 : s->dim];
        s->length[s->n] = piece->n[s->dim < 0 ? 0 : s->dim];
    }
    s->n++;
}

/* Tiles of a target shard: where messages arrive, so that they need no unpacking; else as any shard is cut. */
static void target_cut(const exchange *x, const plan_piece *t, int pieces, int *dim, int *parts)
{
    const box *b = &t->region.box;
    partition_cut(x->q, b, x->q->s.program->values.at[x->value]->dtype, t->place, pieces, 0, dim, parts);
    if (box_count(b) == 0 || !gets_value(x, t->position))
        return;
    seams s = {.dim = -1};
    layout_overlaps(x->from_mesh, &x->from, &x->whole, b, visit_seam, &s);
    group g = {.kept = kept_of(x, x->to_mesh, t->position)};
    int coordinate[TRAMA_MAX_AXES], from[TRAMA_MAX_AXES] = {0};
    mesh_coordinate(x->to_mesh, t->position, coordinate);
    if (s.n == 1) { /* one source box: slices, where they are exchanged */
        fill_group(x, &g, from, coordinate);
        int n = g.targets.n;
        bool cut = x->reduced ? is_sliced(g.terms, n) : is_scattered(x, b, n, 1);
        if (cut && n <= MAX_TILES && b->ndim && b->n[partition_slice_dim(b, n)] >= n) {
            *dim = partition_slice_dim(b, n);
            *parts = n;
        }
        free_group(&g);
        return;
    }
    if (s.dim < 0 || s.n > MAX_TILES || x->reduced)
        return;
    for (int i = 0; i < s.n; i++) {
        int64_t lo, length, from_lo = max_i64(s.lo[i], b->lo[s.dim]);
        int64_t to = min_i64(s.lo[i] + s.length[i], b->lo[s.dim] + b->n[s.dim]);
        piece_of(b->n[s.dim], s.n, i, &lo, &length);
        if (b->lo[s.dim] + lo != from_lo || to - from_lo != length)
            return;
    }
    *dim = s.dim;
    *parts = s.n;
}

/* Terms that all get the value (of a new P(max), say) are one shard on one place. */
static bool same_as_before(const exchange *x, plan_holding *h, int i)
{
    plan_piece *t = &h->pieces.at[i];
    for (int j = 0; j < i; j++) {
        const plan_piece *u = &h->pieces.at[j];
        if (u->place == t->place && gets_value(x, u->position) == gets_value(x, t->position) &&
            kept_of(x, x->to_mesh, u->position) == kept_of(x, x->to_mesh, t->position) &&
            box_equal(&u->region.box, &t->region.box)) {
            t->region = u->region;
            return true;
        }
    }
    return false;
}

static void make_target(exchange *x)
{
    partition *q = x->q;
    plan_holding *h = &q->p->holdings.at[x->target];
    for (int i = 0; i < h->pieces.n; i++) {
        plan_piece *t = &h->pieces.at[i];
        if (try_alias(x, t) || same_as_before(x, h, i))
            continue;
        int dim, parts;
        target_cut(x, t, pieces_on(h, t->place), &dim, &parts);
        t->region.shard = partition_shard(q, SHARD_OWN, x->value, t->place, &t->region.box, dim, parts);
        if (!gets_value(x, t->position)) {
            staged *s = stage_step(x, UNPACK, STEP_FILL, t->place);
            s->n = 1;
            s->step.scale = 0;
            s->operands[0] = (plan_operand){t->region, ACCESS_WRITE};
        }
    }
}

/* ---- The whole ---- */

static bool is_linear(trama_reduce kind)
{
    return kind == TRAMA_SUM || kind == TRAMA_AVG;
}

/* Which partial axes stay, are summed, or begin; and what that scales by. One term alone is the value. */
static void classify_axes(exchange *x)
{
    bool same_mesh = x->from_mesh == x->to_mesh || trama_mesh_equal(x->from_mesh, x->to_mesh);
    x->scale = 1;
    for (int a = 0; a < x->from_mesh->ndim; a++) {
        const trama_placement *f = &x->from.axis[a];
        const trama_placement *t = same_mesh ? &x->to.axis[a] : NULL;
        if (f->kind != TRAMA_PARTIAL || x->from_mesh->shape[a] == 1)
            continue;
        double size = x->from_mesh->shape[a];
        bool stays = t && t->kind == TRAMA_PARTIAL &&
                     (t->reduce == f->reduce || (is_linear(t->reduce) && is_linear(f->reduce)));
        if (stays) {
            x->kept |= 1u << a;
            if (t->reduce != f->reduce)
                x->scale *= f->reduce == TRAMA_AVG ? 1 / size : size;
        } else {
            x->reduced |= 1u << a;
            if (f->reduce == TRAMA_AVG)
                x->scale /= size;
        }
        x->reduce = f->reduce == TRAMA_AVG ? TRAMA_SUM : f->reduce;
    }
    for (int a = 0; a < x->to_mesh->ndim; a++)
        if (x->to.axis[a].kind == TRAMA_PARTIAL && x->to.axis[a].reduce == TRAMA_SUM && !(x->kept >> a & 1))
            x->fresh_sum |= 1u << a;
}

/* Bytes that the processes of this rank lack; -1 where terms are summed, which has another bound. */
static int64_t lacking_bytes(const exchange *x)
{
    if (x->reduced)
        return -1;
    const local_positions *mine = partition_locals(x->q, x->to_mesh);
    int64_t elements = 0;
    for (int i = 0; i < mine->at.n; i++)
        if (layout_present(&x->to, mine->at.at[i]) && gets_value(x, mine->at.at[i]))
            elements += bound_lacking(x->from_mesh, &x->from, x->to_mesh, &x->to, &x->whole, mine->at.at[i]);
    return elements * (int64_t)x->element;
}

void reshard_holding(partition *q, int source, const trama_mesh *mesh, const trama_layout *layout, int node,
                     bool fresh)
{
    const plan_holding *from = &q->p->holdings.at[source];
    exchange x = {.q = q,
                  .value = from->value,
                  .source = source,
                  .from_mesh = from->mesh,
                  .to_mesh = mesh,
                  .from = from->layout,
                  .to = *layout,
                  .fresh = fresh};
    x.whole = partition_whole(q, x.value);
    x.element = trama_dtype_size(q->s.program->values.at[x.value]->dtype);
    classify_axes(&x);
    x.target = q->p->holdings.n;
    plan_holding *h = ARRAY_PUSH(&q->p->holdings);
    *h = (plan_holding){.value = x.value, .mesh = mesh, .layout = *layout};
    partition_pieces(q, mesh, layout, &x.whole, h);
    x.count = (plan_exchange){.value = x.value, .from_mesh = x.from_mesh, .to_mesh = mesh, .from = x.from, .to = x.to,
                              .node = node};
    make_target(&x);
    walk_pairs(&x, false);
    walk_pairs(&x, true);
    x.count.bound = lacking_bytes(&x);
    int number = q->p->exchanges.n;
    *ARRAY_PUSH(&q->p->exchanges) = x.count;
    emit_stages(&x, number);
    ARRAY_FREE(&x.steps);
    ARRAY_FREE(&x.sources);
    ARRAY_FREE(&x.packs);
}
