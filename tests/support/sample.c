/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes, layouts and shapes by chance, outside of tests too: without Check. */
#include "sample.h"

#include <assert.h>
#include <string.h>

enum { MOST_AXES = 4, MOST_IDS = 80, MANY_IDS = 2 * MANY_PROCESSES, MOST_ELEMENTS = 1200, MANY_ELEMENTS = 4800 };

/* ---- Meshes ---- */

static void shuffle(int *ids, int n, uint64_t *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int k = random_below(seed, i + 1), id = ids[i];
        ids[i] = ids[k];
        ids[k] = id;
    }
}

/* The same processes, some axes with weights; takes the mesh. */
static trama_mesh *with_weights(trama_mesh *mesh, uint64_t *seed)
{
    int weights[MANY_PROCESSES];
    for (int a = 0; a < mesh->ndim; a++) {
        if (random_below(seed, 4))
            continue;
        for (int i = 0; i < mesh->shape[a]; i++)
            weights[i] = 1 + random_below(seed, 5);
        trama_mesh *weighted = trama_mesh_weighted(mesh, a, weights);
        assert(weighted);
        trama_mesh_destroy(&mesh);
        mesh = weighted;
    }
    return mesh;
}

/* 1 to 4 axes over the first `most` ids or fewer; of many ids 1 or 2. */
static trama_mesh *random_mesh(const int *ids, int most, uint64_t *seed)
{
    const bool many = most > MOST_IDS;
    int shape[MOST_AXES], size = 1, ndim = 1 + random_below(seed, many ? 2 : MOST_AXES);
    for (int a = 0; a < ndim; a++) {
        int room = most / size, last = a == ndim - 1;
        shape[a] = 1 + random_below(seed, last || room < 5 ? room : 5);
        if (last && (many || random_below(seed, 2)))
            shape[a] = room;
        size *= shape[a];
    }
    trama_mesh *mesh = trama_mesh_create_ids(ndim, shape, NULL, ids);
    assert(mesh);
    return with_weights(mesh, seed);
}

static int random_size(int most, bool many, uint64_t *seed)
{
    static const int large[] = {66, 72, 81, 96, 100, 102, 128, 144, 153, 289, 324, MANY_PROCESSES};
    if (many) /* the larger ones take long */
        return (int)min_i64(most, large[random_below(seed, random_below(seed, 8) ? 8 : 12)]);
    static const int sizes[] = {4, 8, 16, 32, MOST_PROCESSES, MOST_PROCESSES};
    return (int)min_i64(most, sizes[random_below(seed, 6)]);
}

/* The target mesh; the source has the first ids of `pool`. */
static trama_mesh *related_mesh(const trama_mesh *from, relation r, const int *pool, int n_ids, uint64_t *seed)
{
    const bool many = n_ids == MANY_IDS;
    int ids[MANY_IDS], n = from->size;
    memcpy(ids, pool, (size_t)n_ids * sizeof *ids);
    switch (r) {
    case SAME:
        return mesh_copy(from);
    case REWEIGHTED:
        return with_weights(mesh_copy(from), seed);
    case DISJOINT:
        return random_mesh(ids + n, many ? n : random_size(n_ids - n, false, seed), seed);
    case OVERLAPPING:
        shuffle(ids, (int)min_i64(n_ids, n + 1 + random_below(seed, 2 * n)), seed);
        return random_mesh(ids, random_size(n_ids, many, seed), seed);
    default: /* PERMUTED, CHILD */
        shuffle(ids, n, seed);
        return random_mesh(ids, r == CHILD ? 1 + random_below(seed, n) : n, seed);
    }
}

/* ---- Layouts ---- */

static void random_placements(trama_layout *l, int ndim, bool partials, uint64_t *seed)
{
    int kind = random_below(seed, 4);
    for (int a = 0; a < l->naxes; a++) {
        int what = random_below(seed, partials ? 4 : 3);
        l->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        if (what == 3) {
            bool linear = kind == TRAMA_SUM || kind == TRAMA_AVG; /* only these mix */
            int reduce = linear ? random_below(seed, 2) : kind;
            l->axis[a] = (trama_placement){.kind = TRAMA_PARTIAL, .reduce = (trama_reduce)reduce};
        } else if (what && ndim) {
            l->axis[a] = (trama_placement){.kind = TRAMA_SPLIT, .dim = random_below(seed, ndim)};
        }
    }
}

/* The axes that split one dim do so in any order. */
static void random_orders(trama_layout *l, uint64_t *seed)
{
    int axes[MOST_AXES], next[TRAMA_MAX_NDIM] = {0};
    for (int a = 0; a < l->naxes; a++)
        axes[a] = a;
    shuffle(axes, l->naxes, seed);
    for (int i = 0; i < l->naxes; i++) {
        trama_placement *p = &l->axis[axes[i]];
        if (p->kind == TRAMA_SPLIT)
            p->order = next[p->dim]++;
    }
}

/* Row-major along the axes that do not replicate: equal for those that hold the same. */
static int held_number(const trama_mesh *mesh, const trama_layout *l, int position)
{
    int number = 0, scale = 1;
    for (int a = mesh->ndim - 1; a >= 0; a--) {
        if (l->axis[a].kind != TRAMA_REPLICATE) {
            number += position % mesh->shape[a] * scale;
            scale *= mesh->shape[a];
        }
        position /= mesh->shape[a];
    }
    return number;
}

/* Any of the replicas may lack the tensor, as long as one is left. */
static void random_mask(const trama_mesh *mesh, trama_layout *l, int ndim, uint64_t *seed)
{
    unsigned char mask[MANY_PROCESSES];
    int order[MANY_PROCESSES], present = 1 + random_below(seed, 3);
    bool held[MANY_PROCESSES] = {false};
    for (int i = 0; i < mesh->size; i++)
        order[i] = i;
    shuffle(order, mesh->size, seed);
    for (int i = 0; i < mesh->size; i++) {
        bool *first = &held[held_number(mesh, l, order[i])];
        mask[order[i]] = !*first || random_below(seed, 4) < present;
        *first = true;
    }
    trama_status status = trama_layout_mask(mesh, ndim, mask, l);
    assert(!status);
}

static trama_layout random_layout(const trama_mesh *mesh, int ndim, const variety *v, uint64_t *seed)
{
    trama_layout l;
    memset(&l, 0, sizeof l);
    l.naxes = mesh->ndim;
    random_placements(&l, ndim, v->partials, seed);
    random_orders(&l, seed);
    if (v->masks && random_below(seed, 4))
        random_mask(mesh, &l, ndim, seed);
    return l;
}

/* ---- Samples ---- */

static trama_shape random_shape(bool many, uint64_t *seed)
{
    static const int64_t large[] = {1, 2, 3, 5, 97, 100, 128, 130, 150, 200, 324, 800};
    static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 11, 13, 17, 29, 64, 67};
    trama_shape shape = {.ndim = random_below(seed, 16) ? 1 + random_below(seed, 4) : 0};
    int64_t count = 1;
    for (int d = 0; d < shape.ndim; d++) {
        do
            shape.dim[d] = (many ? large : extents)[random_below(seed, 12)];
        while (count * shape.dim[d] > (many ? MANY_ELEMENTS : MOST_ELEMENTS));
        count *= shape.dim[d];
    }
    if (shape.ndim && random_below(seed, 16) == 0)
        shape.dim[random_below(seed, shape.ndim)] = 0;
    return shape;
}

sample sample_random(const variety *v, uint64_t *seed)
{
    const int n_ids = v->many ? MANY_IDS : MOST_IDS;
    int pool[MANY_IDS], most = random_size(v->many ? MANY_PROCESSES : MOST_PROCESSES, v->many, seed);
    sample s = {.relation = (relation)random_below(seed, N_RELATIONS)};
    for (int i = 0; i < n_ids; i++)
        pool[i] = i;
    shuffle(pool, random_below(seed, 2) ? n_ids : most + 8, seed); /* few ids, or any */
    s.from = random_mesh(pool, most, seed);
    s.to = related_mesh(s.from, s.relation, pool, n_ids, seed);
    int ids = change_ids(s.from, s.to), ranks = v->one_place_each ? ids : 1 + random_below(seed, 8);
    s.machine = simulation_machine(ranks, v->one_place_each ? 1 : 1 + random_below(seed, 3), 2);
    s.map = map_by_order(ids, NULL, s.machine);
    s.c = (change){.from_mesh = s.from, .to_mesh = s.to, .shape = random_shape(v->many, seed), .two_levels = v->many};
    do
        s.c.from = random_layout(s.from, s.c.shape.ndim, v, seed);
    while (v->many && s.c.shape.ndim && s.c.from.axis[s.from->ndim - 1].kind == TRAMA_REPLICATE); /* the longest */
    s.c.to = random_layout(s.to, s.c.shape.ndim, v, seed);
    s.c.machine = s.machine;
    s.c.map = s.map;
    s.c.fresh = random_below(seed, 4) == 0;
    s.c.max_tiles = 1 + random_below(seed, 4);
    s.c.seed = random_next(seed);
    machine_vary(s.machine, (int)(s.c.seed % MACHINE_VARIANTS));
    int which = random_below(seed, 60); /* many terms in small pieces are many messages */
    s.c.staging_bytes = s.from->size * s.to->size <= 256 ? change_window(s.c.shape, which) : 0;
    return s;
}

void sample_free(sample *s)
{
    map_destroy(&s->map);
    machine_destroy(&s->machine);
    trama_mesh_destroy(&s->from);
    trama_mesh_destroy(&s->to);
}
