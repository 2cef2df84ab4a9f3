/* SPDX-License-Identifier: Apache-2.0 */
/* Two hops: a change in which a process would send many small messages goes over another layout, so that each hop has
 * about the square root of their number. It costs up to twice the bytes; with partial values, and where the messages
 * are larger, 1/64 more at most, for pieces that do not come out even. A hop is made in two again where that costs no
 * byte more. The search tries the layouts without masks on at most ten meshes, and compares the load of some processes
 * of the target, so that all ranks find the same route. */
#include <string.h>

#include "candidates.h"
#include "thresholds.h"

enum {
    MOST_AXES = 3, /* of a mesh between, since all its layouts are tried */
    ROUNDING = 64, /* an even route may cost 1 / ROUNDING more bytes, where pieces do not come out even */
    PROBES = 16    /* processes probed while searching */
};

/* The load of a process; messages: received, or sent where senders are fewer. */
typedef struct cost {
    int64_t messages, bytes, received;
} cost;

typedef struct search {
    const transfer *t;
    bool in_hop; /* of two: the route may cost no byte more */
    bool even;   /* the route may cost no more bytes but for the rounding of pieces: so for sums and larger messages */
    cost direct, best;
    int64_t probed; /* the most bytes that one of PROBES processes receives directly */
    route *found;   /* mesh NULL: none found yet */
} search;

/* ---- The cost of a change ---- */

static cost cost_at(const transfer *t, int position)
{
    transfer_load l = transfer_received(t, position);
    int64_t targets = processes_with_some(t->to_mesh, &t->to, &t->whole),
            sources = processes_with_some(t->from_mesh, &t->from, &t->whole);
    return (cost){max_i64(l.messages, l.messages * targets / sources), l.bytes, l.messages};
}

static cost cost_of(const transfer *t)
{
    int size = t->to_mesh->size;
    const int positions[] = {0, 1 % size, size / 2, size - 1};
    cost most = {0};
    for (int i = 0; i < 4; i++) {
        cost c = cost_at(t, positions[i]);
        most = c.messages > most.messages ? c : most;
    }
    return most;
}

static bool is_too_many(const search *s)
{
    const cost *c = &s->direct;
    return c->messages > (s->in_hop ? MANY_IN_A_HOP : MANY_MESSAGES) && c->bytes / c->received < SMALL_TERM;
}

/* ---- Meshes between ---- */

/* The processes of a mesh in about as many rows as columns; a rest that fills no row takes no part. NULL where the
 * processes are too few, or the mesh is this square already. */
static trama_mesh *as_square(const trama_mesh *mesh)
{
    int root = 1;
    while ((root + 1) * (root + 1) <= mesh->size)
        root++;
    int shape[2] = {root, 0};
    for (int rows = root; rows > root / 2; rows--) /* prefer a smaller rest */
        if (mesh->size % rows < mesh->size % shape[0])
            shape[0] = rows;
    shape[1] = mesh->size / shape[0];
    if (shape[0] < 2 || (mesh->ndim == 2 && mesh->shape[0] == shape[0] && mesh->shape[1] == shape[1]))
        return NULL;
    return mesh_new(2, shape, NULL, mesh->ids);
}

/* Every n-th process, where n is about the square root of their number. */
static trama_mesh *heads_of(const trama_mesh *mesh)
{
    int step = 1;
    while (step * step < mesh->size)
        step++;
    int n = (mesh->size + step - 1) / step, *ids = trama_alloc((size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++)
        ids[i] = mesh->ids[i * step];
    trama_mesh *heads = mesh_new(1, &n, NULL, ids);
    free(ids);
    return heads;
}

/* The mesh with one axis in about as many rows as columns; NULL where its extent is prime. */
static trama_mesh *as_finer(const trama_mesh *mesh, int axis)
{
    int rows = 1, shape[TRAMA_MAX_AXES];
    for (int n = 2; n * n <= mesh->shape[axis]; n++)
        rows = mesh->shape[axis] % n ? rows : n;
    if (rows == 1)
        return NULL;
    for (int a = 0; a < mesh->ndim; a++)
        shape[a < axis ? a : a + 1] = mesh->shape[a];
    shape[axis] = rows;
    shape[axis + 1] = mesh->shape[axis] / rows;
    return mesh_new(mesh->ndim + 1, shape, NULL, mesh->ids);
}

/* The axis of the mesh that is two axes of a finer mesh of the same processes; -1 for other meshes. */
static int axis_made_finer(const trama_mesh *mesh, const trama_mesh *finer)
{
    int axis = 0;
    if (finer->ndim != mesh->ndim + 1 || finer->size != mesh->size ||
        memcmp(finer->ids, mesh->ids, (size_t)mesh->size * sizeof *mesh->ids) != 0)
        return -1;
    while (axis + 1 < mesh->ndim && finer->shape[axis] == mesh->shape[axis])
        axis++;
    bool rest =
        !memcmp(finer->shape + axis + 2, mesh->shape + axis + 1, (size_t)(mesh->ndim - axis - 1) * sizeof *mesh->shape);
    return rest && finer->shape[axis] * finer->shape[axis + 1] == mesh->shape[axis] ? axis : -1;
}

static bool are_same_boxes(const trama_mesh *mesh, const trama_layout *layout, const trama_mesh *finer,
                           const trama_layout *lifted, const box *whole)
{
    for (int i = 0; i < mesh->size; i++) {
        box b, c;
        layout_box(mesh, layout, whole, i, &b);
        layout_box(finer, lifted, whole, i, &c);
        if (!box_equal(&b, &c))
            return false;
    }
    return true;
}

/* Writes a layout on a mesh with one axis as two, as the same distributed values. False for other meshes, and where
 * pieces would not be the same. */
static bool lift(const trama_mesh *mesh, const trama_layout *layout, const trama_mesh *finer, const box *whole,
                 trama_layout *lifted)
{
    const int axis = axis_made_finer(mesh, finer);
    if (axis < 0)
        return false;
    const trama_placement cut = layout->axis[axis];
    trama_layout made = layout_uniform(finer, TRAMA_REPLICATE);
    for (int a = 0; a < mesh->ndim; a++) {
        trama_placement *p = &made.axis[a <= axis ? a : a + 1];
        *p = layout->axis[a];
        p->order += cut.kind == TRAMA_SPLIT && p->kind == TRAMA_SPLIT && p->dim == cut.dim && p->order > cut.order;
    }
    made.axis[axis + 1] = cut;
    made.axis[axis + 1].order += cut.kind == TRAMA_SPLIT;
    if (!are_same_boxes(mesh, layout, finer, &made, whole))
        return false;
    *lifted = made;
    return true;
}

/* ---- The search ---- */

/* Whether a route costs one of n probes too many bytes: more than twice `most`, the most of them in the direct change,
 * or where it must be even more than this most and its rounding. */
static bool is_dearer(const search *s, const route *r, int64_t most, int n)
{
    const int64_t more = s->in_hop ? 0 : s->even ? most / ROUNDING : most;
    return load_of_route(s->t, r, n).bytes > most + more;
}

/* Whether two hops save too few messages: less than half of them, or at even cost less than a quarter. */
static bool saves_little(const search *s, int64_t messages)
{
    return s->even ? 4 * messages > 3 * s->direct.messages : 2 * messages > s->direct.messages;
}

static bool is_worse(const search *s, int64_t messages, int64_t bytes)
{
    return s->found->mesh && (messages > s->best.messages || (messages == s->best.messages && bytes >= s->best.bytes));
}

static void try_route(search *s, const route *r)
{
    const transfer *t = s->t;
    route_hops hops = route_hops_of(r, t);
    cost a = cost_of(&hops.to);
    if (a.bytes > 2 * s->direct.bytes || saves_little(s, a.messages) || is_worse(s, a.messages, a.bytes))
        return;
    cost b = cost_of(&hops.from);
    int64_t messages = max_i64(a.messages, b.messages), bytes = a.bytes + b.bytes;
    if (bytes > 2 * s->direct.bytes || saves_little(s, messages) || is_worse(s, messages, bytes) ||
        (s->even && is_dearer(s, r, s->probed, PROBES)))
        return;
    s->best = (cost){messages, bytes, 0};
    trama_mesh *owned = s->found->owned;
    *s->found = *r;
    s->found->owned = owned;
}

/* Says in which order the axes cut the dims: the earlier axis first, or the later. Returns whether any dim is cut by
 * two axes, so that the order matters. */
static bool order_axes(trama_layout *between, bool later_first)
{
    bool matters = false;
    for (int a = 0; a < between->naxes; a++) {
        int before = 0;
        for (int b = 0; b < between->naxes && between->axis[a].kind == TRAMA_SPLIT; b++)
            before += (later_first ? b > a : b < a) && between->axis[b].kind == TRAMA_SPLIT &&
                      between->axis[b].dim == between->axis[a].dim;
        between->axis[a].order = before;
        matters = matters || before > 0;
    }
    return matters;
}

/* Tries all placements of the axes from `axis` on; partial only where the source is. later_first: of the axes that cut
 * one dim, the later cuts it first; other layouts are left out. */
static void try_layouts(search *s, route *r, int axis, bool later_first)
{
    if (axis == r->mesh->ndim) {
        if (order_axes(&r->between, later_first) || !later_first)
            try_route(s, r);
        return;
    }
    trama_placement *p = &r->between.axis[axis];
    *p = (trama_placement){.kind = TRAMA_REPLICATE};
    try_layouts(s, r, axis + 1, later_first);
    for (int d = 0; d < s->t->whole.ndim; d++) {
        *p = (trama_placement){.kind = TRAMA_SPLIT, .dim = d};
        try_layouts(s, r, axis + 1, later_first);
    }
    if (r->from_mesh == r->mesh && r->from.axis[axis].kind == TRAMA_PARTIAL) {
        *p = r->from.axis[axis];
        try_layouts(s, r, axis + 1, later_first);
    }
}

static void try_mesh(search *s, const trama_mesh *mesh)
{
    const transfer *t = s->t;
    route r = {.mesh = mesh, .from_mesh = t->from_mesh, .to_mesh = t->to_mesh, .from = t->from, .to = t->to};
    if (mesh->ndim > MOST_AXES)
        return;
    if (mesh != t->from_mesh && lift(t->from_mesh, &t->from, mesh, &t->whole, &r.from))
        r.from_mesh = mesh;
    if (mesh != t->to_mesh && lift(t->to_mesh, &t->to, mesh, &t->whole, &r.to))
        r.to_mesh = mesh;
    r.between = layout_uniform(mesh, TRAMA_REPLICATE);
    try_layouts(s, &r, 0, false);
    try_layouts(s, &r, 0, true);
}

/* Tries a mesh made for the search, and keeps it where the route goes over it. */
static void try_made(search *s, trama_mesh *mesh)
{
    if (mesh)
        try_mesh(s, mesh);
    if (!mesh || s->found->mesh != mesh) {
        trama_mesh_destroy(&mesh);
        return;
    }
    trama_mesh_destroy(&s->found->owned);
    s->found->owned = mesh;
}

/* Each long axis of a mesh in two parts; as_square does so for meshes of one axis. */
static void try_finer(search *s, const trama_mesh *mesh)
{
    if (mesh->ndim == 1 || mesh->ndim >= MOST_AXES)
        return;
    for (int a = 0; a < mesh->ndim; a++)
        if (mesh->shape[a] > MANY_IN_A_HOP)
            try_made(s, as_finer(mesh, a));
}

bool find_two_hops(const transfer *t, reshard_part within, route *found)
{
    search s = {.t = t, .in_hop = within == PART_OF_TWO_HOPS, .found = found};
    *found = (route){0};
    bool new_terms = layout_axes(&t->to, TRAMA_PARTIAL) & ~t->kept;
    if (t->own || new_terms || t->from.mask || t->to.mask)
        return false;
    s.direct = cost_of(t);
    if (!is_too_many(&s))
        return false;
    s.even = s.in_hop || t->reduced || s.direct.bytes / s.direct.received >= SMALL_BYTES;
    s.probed = s.even ? load_directly(t, PROBES).bytes : 0;
    try_mesh(&s, t->from_mesh);
    if (!t->one_mesh)
        try_mesh(&s, t->to_mesh);
    try_made(&s, as_square(t->from_mesh));
    try_made(&s, heads_of(t->from_mesh));
    try_finer(&s, t->from_mesh);
    if (!t->one_mesh) {
        try_made(&s, as_square(t->to_mesh));
        try_made(&s, heads_of(t->to_mesh));
        try_finer(&s, t->to_mesh);
    }
    if (found->mesh && !is_dearer(&s, found, load_directly(t, MOST_ASKED).bytes, MOST_ASKED))
        return true;
    trama_mesh_destroy(&found->owned);
    return false;
}
