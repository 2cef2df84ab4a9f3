/* SPDX-License-Identifier: Apache-2.0 */
/* Two levels: an exchange in which a process would send many small messages goes by way of another layout, so that each
 * hop has about the root of as many. It costs up to twice the bytes without partials, and with them no more than pieces
 * that do not come out even. The way is searched for among the layouts without masks on a few meshes; all ranks find
 * the same, by what some processes of the target would get. And sums of which one process would get most go by way of
 * equal pieces. */
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
    way *way; /* its mesh is NULL until one is found */
} search;

/* ---- What an exchange costs ---- */

static cost move_cost(const exchange *x, int64_t count, int64_t lacking, int64_t met, int targets)
{
    cost c = {.bytes = lacking * (int64_t)x->element};
    int64_t holders = axes_size(x->from_mesh, layout_unsplit_axes(x->from_mesh, &x->from));
    bool scattered = targets > 1 && targets > holders && met == 1 && count * (int64_t)x->element >= SLICE_BYTES;
    c.received = lacking ? met - (lacking < count) + (scattered ? targets - 1 : 0) : 0;
    return c;
}

static cost sum_cost(const exchange *x, int64_t count, int64_t lacking, int64_t met, int targets)
{
    int terms = axes_size(x->from_mesh, x->reduced);
    int64_t slices = is_sliced(terms, targets) ? targets : 1, slice = (count + slices - 1) / slices;
    int64_t own = (count - lacking) / slices;
    cost c = {.bytes = (terms * slice - own + count - slice) * (int64_t)x->element};
    c.received = terms * met - (own > 0) + slices - 1;
    return c;
}

/* Processes that have something: of few elements not all. */
static int64_t senders(const exchange *x)
{
    return box_count(&x->whole) ? layout_pieces(x->from_mesh, &x->from, &x->whole, &x->whole) *
                                      axes_size(x->from_mesh, layout_unsplit_axes(x->from_mesh, &x->from))
                                : 1;
}

static cost cost_at(const exchange *x, int position)
{
    box b;
    layout_box(x->to_mesh, &x->to, &x->whole, position, &b);
    int64_t count = box_count(&b);
    if (count == 0)
        return (cost){0};
    int64_t lacking = bound_lacking(x->from_mesh, &x->from, x->to_mesh, &x->to, &x->whole, position);
    int64_t met = layout_pieces(x->from_mesh, &x->from, &x->whole, &b);
    int targets = axes_size(x->to_mesh, target_axes(x));
    cost c = (x->reduced ? sum_cost : move_cost)(x, count, lacking, met, targets);
    c.messages = max_i64(c.received, c.received * x->to_mesh->size / senders(x));
    return c;
}

static cost cost_of(const exchange *x)
{
    int size = x->to_mesh->size;
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
    return (int)((int64_t)x->to_mesh->size * i / n);
}

/* Whether a way costs a process more bytes than it may: with sums more than all at once, but for rounding, else twice
 * `most`. Asked of n processes. */
static bool is_dearer(const exchange *x, const exchange *to, const exchange *from, int n, int64_t most)
{
    for (int i = 0; i < n; i++) {
        int at = probe(x, i, n), there = mesh_find_near(to->to_mesh, x->to_mesh->ids[at], at);
        int64_t bytes = cost_at(from, at).bytes + (there < 0 ? 0 : cost_at(to, there).bytes);
        int64_t direct = x->reduced ? cost_at(x, at).bytes : 0;
        if (bytes > (x->reduced ? direct + direct / ROUNDING : 2 * most))
            return true;
    }
    return false;
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
    int64_t most = 0;
    hops(x, w, &to, &from);
    int n = (int)min_i64(x->to_mesh->size, MOST_PROBES);
    for (int i = 0; i < n && !x->reduced; i++)
        most = max_i64(most, cost_at(x, probe(x, i, n)).bytes);
    return !is_dearer(x, &to, &from, n, most);
}

static void try_way(search *s, const way *w)
{
    const exchange *x = s->x;
    exchange to, from;
    hops(x, w, &to, &from);
    cost a = cost_of(&to), b = cost_of(&from);
    int64_t messages = max_i64(a.messages, b.messages), bytes = a.bytes + b.bytes;
    if (bytes > 2 * s->direct.bytes || 2 * messages > s->direct.messages ||
        (x->reduced && is_dearer(x, &to, &from, (int)min_i64(x->to_mesh->size, PROBES), 0)) ||
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
    for (int d = 0; d < s->x->whole.ndim; d++) {
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
    way w = {.mesh = mesh, .from_mesh = x->from_mesh, .to_mesh = x->to_mesh, .from = x->from, .to = x->to};
    if (mesh != x->from_mesh && lift(x->from_mesh, &x->from, mesh, &w.from))
        w.from_mesh = mesh;
    if (mesh != x->to_mesh && lift(x->to_mesh, &x->to, mesh, &w.to))
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
    bool new_terms = layout_axes(&x->to, TRAMA_PARTIAL) & ~x->kept;
    if (x->own || new_terms || x->from.mask || x->to.mask || !map_is_apart(x->q->s.map, x->from_mesh) ||
        !map_is_apart(x->q->s.map, x->to_mesh))
        return false;
    s.direct = cost_of(x);
    if (!is_too_many(x, &s.direct))
        return false;
    try_mesh(&s, x->from_mesh);
    if (!x->one_mesh)
        try_mesh(&s, x->to_mesh);
    try_made(&s, as_square(x->from_mesh));
    try_made(&s, heads_of(x->from_mesh));
    if (!x->one_mesh) {
        try_made(&s, as_square(x->to_mesh));
        try_made(&s, heads_of(x->to_mesh));
    }
    if (found->mesh && is_within_bounds(x, found))
        return true;
    trama_mesh_destroy(&found->owned);
    return false;
}

/* ---- Sums that are cut by weights ---- */

/* The mesh with equal pieces along the axes whose terms are summed to pieces by weight; NULL where there are none. */
static trama_mesh *as_equal(const exchange *x)
{
    trama_mesh *equal = NULL;
    for (int a = 0; a < x->to_mesh->ndim; a++)
        if (x->reduced >> a & 1 && x->to.axis[a].kind == TRAMA_SPLIT && x->to_mesh->weights[a]) {
            equal = equal ? equal : mesh_copy(x->to_mesh);
            mesh_drop_weights(equal, a);
        }
    return equal;
}

/* The most bytes that one of the processes asked gets, by way of what lies between or at once. */
static int64_t most_bytes(const exchange *x, const exchange *to, const exchange *from)
{
    int n = (int)min_i64(x->to_mesh->size, MOST_PROBES);
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        int at = probe(x, i, n);
        most = max_i64(most, to ? cost_at(to, at).bytes + cost_at(from, at).bytes : cost_at(x, at).bytes);
    }
    return most;
}

bool find_even_way(const exchange *x, way *found)
{
    *found = (way){0};
    if (x->kept || layout_has(&x->to, TRAMA_PARTIAL) || x->from.mask || x->to.mask || !x->one_mesh ||
        !map_is_apart(x->q->s.map, x->to_mesh))
        return false;
    trama_mesh *equal = as_equal(x);
    if (!equal)
        return false;
    *found = (way){.from_mesh = equal,
                   .mesh = equal,
                   .to_mesh = x->to_mesh,
                   .from = x->from,
                   .between = x->to,
                   .to = x->to,
                   .owned = equal};
    exchange to, from;
    hops(x, found, &to, &from);
    if (most_bytes(x, NULL, NULL) - most_bytes(x, &to, &from) >= SLICE_BYTES)
        return true;
    trama_mesh_destroy(&found->owned);
    return false;
}
