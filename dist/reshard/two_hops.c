/* SPDX-License-Identifier: Apache-2.0 */
/* Two levels: an exchange in which a process would send many small messages goes by way of another layout, so that each
 * hop has about the root of as many. It costs up to twice the bytes without partials, and with them no more than pieces
 * that do not come out even. The way is searched for among the layouts without masks on a few meshes; all ranks find
 * the same, by what some processes of the target would get. And sums go by way of slices where that is cheaper. */
#include <string.h>

#include "bound.h"
#include "exchange.h"
#include "thresholds.h"

enum {
    MOST_AXES = 3, /* of a mesh on the way: all its layouts are tried */
    ROUNDING = 64, /* a way may cost sums this part of their bytes more, where pieces do not come out even */
    PROBES = 16,   /* processes asked while searching, and of the way found */
    MOST_PROBES = 256
};

/* What a process receives, or sends where senders are fewer. */
typedef struct cost {
    int64_t messages, bytes, received;
} cost;

typedef struct search {
    const exchange *x;
    cost direct, best;
    int64_t most; /* bytes of one of the processes asked, at once */
    way *way;     /* its mesh is NULL until one is found */
} search;

/* ---- What an exchange costs ---- */

static cost move_cost(const exchange *x, int64_t count, int64_t lacking, int64_t met, int targets)
{
    cost c = {.bytes = lacking * (int64_t)x->t.element};
    int64_t holders = axes_size(x->t.from_mesh, layout_unsplit_axes(x->t.from_mesh, &x->t.from));
    bool scattered = targets > 1 && targets > holders && met == 1 && count * (int64_t)x->t.element >= SLICE_BYTES;
    c.received = lacking ? met - (lacking < count) + (scattered ? targets - 1 : 0) : 0;
    return c;
}

static cost sum_cost(const exchange *x, int64_t count, int64_t lacking, int64_t met, int targets)
{
    int terms = axes_size(x->t.from_mesh, x->t.reduced);
    int64_t slices = transfer_is_sliced(terms, targets, lacking == 0) ? targets : 1,
            slice = (count + slices - 1) / slices;
    int64_t own = (count - lacking) / slices;
    cost c = {.bytes = (terms * slice - own + count - slice) * (int64_t)x->t.element};
    c.received = terms * met - (own > 0) + slices - 1;
    return c;
}

/* Processes that have something: of few elements not all. */
static int64_t senders(const exchange *x)
{
    return box_count(&x->t.whole) ? layout_pieces(x->t.from_mesh, &x->t.from, &x->t.whole, &x->t.whole) *
                                        axes_size(x->t.from_mesh, layout_unsplit_axes(x->t.from_mesh, &x->t.from))
                                  : 1;
}

static cost cost_at(const exchange *x, int position)
{
    box b;
    layout_box(x->t.to_mesh, &x->t.to, &x->t.whole, position, &b);
    int64_t count = box_count(&b);
    if (count == 0)
        return (cost){0};
    int64_t lacking = bound_lacking(x->t.from_mesh, &x->t.from, x->t.to_mesh, &x->t.to, &x->t.whole, position);
    int64_t met = layout_pieces(x->t.from_mesh, &x->t.from, &x->t.whole, &b);
    int targets = axes_size(x->t.to_mesh, transfer_target_axes(&x->t));
    cost c = (x->t.reduced ? sum_cost : move_cost)(x, count, lacking, met, targets);
    c.messages = max_i64(c.received, c.received * x->t.to_mesh->size / senders(x));
    return c;
}

static cost cost_of(const exchange *x)
{
    int size = x->t.to_mesh->size;
    const int positions[] = {0, 1 % size, size / 2, size - 1};
    cost most = {0};
    for (int i = 0; i < 4; i++) {
        cost c = cost_at(x, positions[i]);
        most = c.messages > most.messages ? c : most;
    }
    return most;
}

static bool is_too_many(const exchange *x, const cost *c)
{
    return c->messages > (x->q->on_the_way ? MANY_ON_THE_WAY : MANY_MESSAGES) && c->bytes / c->received < SMALL_BYTES;
}

/* ---- Meshes on the way ---- */

/* The processes of a mesh as rows and columns, about as many of each; what is left over takes no part. NULL where there
 * are too few, or the mesh is that already. */
static trama_mesh *as_square(const trama_mesh *mesh)
{
    int root = 1;
    while ((root + 1) * (root + 1) <= mesh->size)
        root++;
    int shape[2] = {root, 0};
    for (int rows = root; rows > root / 2; rows--) /* rather with less of a rest */
        if (mesh->size % rows < mesh->size % shape[0])
            shape[0] = rows;
    shape[1] = mesh->size / shape[0];
    if (shape[0] < 2 || (mesh->ndim == 2 && mesh->shape[0] == shape[0] && mesh->shape[1] == shape[1]))
        return NULL;
    return trama_mesh_create(2, shape, NULL, mesh->ids);
}

/* Every n-th process, n about the root of their number. */
static trama_mesh *heads_of(const trama_mesh *mesh)
{
    int step = 1;
    while (step * step < mesh->size)
        step++;
    int n = (mesh->size + step - 1) / step, *ids = trama_alloc((size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++)
        ids[i] = mesh->ids[i * step];
    trama_mesh *heads = trama_mesh_create(1, &n, NULL, ids);
    free(ids);
    return heads;
}

/* The layout of a mesh of one axis, on its processes as rows and columns: the same holdings. */
static bool lift(const trama_mesh *mesh, const trama_layout *layout, const trama_mesh *square, trama_layout *lifted)
{
    if (mesh->ndim != 1 || square->ndim != 2 || square->size != mesh->size || layout->axis[0].kind == TRAMA_SPLIT)
        return false;
    *lifted = layout_uniform(square, TRAMA_REPLICATE);
    lifted->axis[0] = lifted->axis[1] = layout->axis[0];
    return true;
}

/* ---- The search ---- */

/* Number i of n processes that are asked. */
static int probe(const exchange *x, int i, int n)
{
    return (int)((int64_t)x->t.to_mesh->size * i / n);
}

/* The most bytes that one of n processes gets at once. */
static int64_t most_bytes(const exchange *x, int n)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        most = max_i64(most, cost_at(x, probe(x, i, n)).bytes);
    return most;
}

/* Whether sums cost one of n processes that want nothing more than the most that any gets at once. */
static bool burdens_others(const exchange *x, const exchange *to, int n, int64_t most)
{
    const trama_mesh *mesh = to->t.to_mesh;
    for (int i = 0; i < n && !x->t.one_mesh; i++) {
        int at = (int)((int64_t)mesh->size * i / n);
        if (mesh_find_near(x->t.to_mesh, mesh->ids[at], at) < 0 && cost_at(to, at).bytes > most + most / ROUNDING)
            return true;
    }
    return false;
}

/* Whether a way costs a process more bytes than it may: with sums more than all at once, but for rounding, else twice
 * `most`, which is the most that any gets at once. Asked of n processes. */
static bool is_dearer(const exchange *x, const exchange *to, const exchange *from, int n, int64_t most)
{
    for (int i = 0; i < n; i++) {
        int at = probe(x, i, n), there = mesh_find_near(to->t.to_mesh, x->t.to_mesh->ids[at], at);
        int64_t bytes = cost_at(from, at).bytes + (there < 0 ? 0 : cost_at(to, there).bytes);
        int64_t direct = x->t.reduced ? cost_at(x, at).bytes : 0;
        if (bytes > (x->t.reduced ? direct + direct / ROUNDING : 2 * most))
            return true;
    }
    return x->t.reduced && burdens_others(x, to, n, most);
}

static void hops(const exchange *x, const way *w, exchange *to, exchange *from)
{
    *to = exchange_between(x->q, x->value, w->from_mesh, &w->from, w->mesh, &w->between);
    *from = exchange_between(x->q, x->value, w->mesh, &w->between, w->to_mesh, &w->to);
}

/* Of all processes of a small mesh; what the search has found by a few of them. */
static bool is_within_bounds(const exchange *x, const way *w)
{
    exchange to, from;
    hops(x, w, &to, &from);
    int n = (int)min_i64(x->t.to_mesh->size, MOST_PROBES);
    return !is_dearer(x, &to, &from, n, most_bytes(x, n));
}

static void try_way(search *s, const way *w)
{
    const exchange *x = s->x;
    exchange to, from;
    hops(x, w, &to, &from);
    cost a = cost_of(&to), b = cost_of(&from);
    int64_t messages = max_i64(a.messages, b.messages), bytes = a.bytes + b.bytes;
    if (bytes > 2 * s->direct.bytes || 2 * messages > s->direct.messages ||
        (x->t.reduced && is_dearer(x, &to, &from, (int)min_i64(x->t.to_mesh->size, PROBES), s->most)) ||
        (s->way->mesh && (messages > s->best.messages || (messages == s->best.messages && bytes >= s->best.bytes))))
        return;
    s->best = (cost){messages, bytes, 0};
    trama_mesh *owned = s->way->owned;
    *s->way = *w;
    s->way->owned = owned;
}

/* All placements of the axes from `axis` on; terms stay where the source has them. */
static void try_layouts(search *s, way *w, int axis, bool turned)
{
    if (axis == w->mesh->ndim) {
        for (int a = 0; a < axis; a++) {
            w->between.axis[a].order = 0;
            for (int b = 0; b < axis && w->between.axis[a].kind == TRAMA_SPLIT; b++)
                w->between.axis[a].order += (turned ? b > a : b < a) && w->between.axis[b].kind == TRAMA_SPLIT &&
                                            w->between.axis[b].dim == w->between.axis[a].dim;
        }
        try_way(s, w);
        return;
    }
    trama_placement *p = &w->between.axis[axis];
    *p = (trama_placement){.kind = TRAMA_REPLICATE};
    try_layouts(s, w, axis + 1, turned);
    for (int d = 0; d < s->x->t.whole.ndim; d++) {
        *p = (trama_placement){.kind = TRAMA_SPLIT, .dim = d};
        try_layouts(s, w, axis + 1, turned);
    }
    if (w->from_mesh == w->mesh && w->from.axis[axis].kind == TRAMA_PARTIAL) {
        *p = w->from.axis[axis];
        try_layouts(s, w, axis + 1, turned);
    }
}

static void try_mesh(search *s, const trama_mesh *mesh)
{
    const exchange *x = s->x;
    way w = {.mesh = mesh, .from_mesh = x->t.from_mesh, .to_mesh = x->t.to_mesh, .from = x->t.from, .to = x->t.to};
    if (mesh != x->t.from_mesh && lift(x->t.from_mesh, &x->t.from, mesh, &w.from))
        w.from_mesh = mesh;
    if (mesh != x->t.to_mesh && lift(x->t.to_mesh, &x->t.to, mesh, &w.to))
        w.to_mesh = mesh;
    w.between = layout_uniform(mesh, TRAMA_REPLICATE);
    if (mesh->ndim > MOST_AXES)
        return;
    try_layouts(s, &w, 0, false);
    try_layouts(s, &w, 0, true);
}

/* A mesh made for the search; kept where the way goes over it. */
static void try_made(search *s, trama_mesh *mesh)
{
    if (mesh)
        try_mesh(s, mesh);
    if (!mesh || s->way->mesh != mesh) {
        trama_mesh_destroy(&mesh);
        return;
    }
    trama_mesh_destroy(&s->way->owned);
    s->way->owned = mesh;
}

bool find_way(const exchange *x, way *found)
{
    search s = {.x = x, .way = found};
    *found = (way){0};
    bool new_terms = layout_axes(&x->t.to, TRAMA_PARTIAL) & ~x->t.kept;
    if (x->t.own || new_terms || x->t.from.mask || x->t.to.mask || !map_is_apart(x->q->s.map, x->t.from_mesh) ||
        !map_is_apart(x->q->s.map, x->t.to_mesh))
        return false;
    s.direct = cost_of(x);
    if (!is_too_many(x, &s.direct))
        return false;
    s.most = most_bytes(x, (int)min_i64(x->t.to_mesh->size, PROBES));
    try_mesh(&s, x->t.from_mesh);
    if (!x->t.one_mesh)
        try_mesh(&s, x->t.to_mesh);
    try_made(&s, as_square(x->t.from_mesh));
    try_made(&s, heads_of(x->t.from_mesh));
    if (!x->t.one_mesh) {
        try_made(&s, as_square(x->t.to_mesh));
        try_made(&s, heads_of(x->t.to_mesh));
    }
    if (found->mesh && is_within_bounds(x, found))
        return true;
    trama_mesh_destroy(&found->owned);
    return false;
}

/* ---- Sums ---- */

bool find_slices_way(const exchange *x, way *found)
{
    return !x->q->on_the_way && !x->q->by_slices && map_is_apart(x->q->s.map, x->t.from_mesh) &&
           map_is_apart(x->q->s.map, x->t.to_mesh) && transfer_by_slices(&x->t, found);
}
