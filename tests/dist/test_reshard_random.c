/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout by chance, 10,000 of them: meshes of up to 64 processes and 4 axes, weighted, masked, partial, one
 * inside, across or beside the other, tensors that divide by nothing. change_try demands values, bytes and bound. */
#include <check.h>
#include <string.h>

#include "change.h"
#include "suite.h"

enum { MOST_PROCESSES = 64, MOST_AXES = 4, MOST_IDS = 80, MOST_ELEMENTS = 1200 };

/* How the processes of the target mesh lie to those of the source. */
typedef enum { SAME, REWEIGHTED, PERMUTED, CHILD, DISJOINT, OVERLAPPING, N_RELATIONS } relation;

typedef struct variety {
    bool partials, masks, one_place_each;
} variety;

typedef struct sample {
    change c;
    relation relation;
    trama_mesh *from, *to;
    machine *machine;
    process_map *map;
} sample;

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
    int weights[MOST_PROCESSES];
    for (int a = 0; a < mesh->ndim; a++) {
        if (random_below(seed, 4))
            continue;
        for (int i = 0; i < mesh->shape[a]; i++)
            weights[i] = 1 + random_below(seed, 5);
        trama_mesh *weighted = trama_mesh_weighted(mesh, a, weights);
        ck_assert_msg(weighted != NULL, "%s", trama_error());
        trama_mesh_destroy(&mesh);
        mesh = weighted;
    }
    return mesh;
}

/* 1 to 4 axes over the first `most` ids or fewer. */
static trama_mesh *random_mesh(const int *ids, int most, uint64_t *seed)
{
    int shape[MOST_AXES], size = 1, ndim = 1 + random_below(seed, MOST_AXES);
    for (int a = 0; a < ndim; a++) {
        int room = most / size, last = a == ndim - 1;
        shape[a] = 1 + random_below(seed, last || room < 5 ? room : 5);
        if (last && random_below(seed, 2))
            shape[a] = room;
        size *= shape[a];
    }
    trama_mesh *mesh = trama_mesh_create(ndim, shape, NULL, ids);
    ck_assert_msg(mesh != NULL, "%s", trama_error());
    return with_weights(mesh, seed);
}

static int random_size(int most, uint64_t *seed)
{
    static const int sizes[] = {4, 8, 16, 32, MOST_PROCESSES, MOST_PROCESSES};
    return (int)min_i64(most, sizes[random_below(seed, 6)]);
}

/* The target mesh; the source has the first ids of `pool`. */
static trama_mesh *related_mesh(const trama_mesh *from, relation r, const int *pool, uint64_t *seed)
{
    int ids[MOST_IDS], n = from->size;
    memcpy(ids, pool, sizeof ids);
    switch (r) {
    case SAME:
        return mesh_copy(from);
    case REWEIGHTED:
        return with_weights(mesh_copy(from), seed);
    case DISJOINT:
        return random_mesh(ids + n, random_size(MOST_IDS - n, seed), seed);
    case OVERLAPPING:
        shuffle(ids, (int)min_i64(MOST_IDS, n + 1 + random_below(seed, 2 * n)), seed);
        return random_mesh(ids, random_size(MOST_PROCESSES, seed), seed);
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
    unsigned char mask[MOST_PROCESSES];
    int order[MOST_PROCESSES], present = 1 + random_below(seed, 3);
    bool held[MOST_PROCESSES] = {false};
    for (int i = 0; i < mesh->size; i++)
        order[i] = i;
    shuffle(order, mesh->size, seed);
    for (int i = 0; i < mesh->size; i++) {
        bool *first = &held[held_number(mesh, l, order[i])];
        mask[order[i]] = !*first || random_below(seed, 4) < present;
        *first = true;
    }
    ck_assert_msg(!trama_layout_mask(mesh, ndim, mask, l), "%s", trama_error());
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

static trama_shape random_shape(uint64_t *seed)
{
    static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 11, 13, 17, 29, 64, 67};
    trama_shape shape = {.ndim = random_below(seed, 16) ? 1 + random_below(seed, 4) : 0};
    int64_t count = 1;
    for (int d = 0; d < shape.ndim; d++) {
        do
            shape.dim[d] = extents[random_below(seed, 12)];
        while (count * shape.dim[d] > MOST_ELEMENTS);
        count *= shape.dim[d];
    }
    if (shape.ndim && random_below(seed, 16) == 0)
        shape.dim[random_below(seed, shape.ndim)] = 0;
    return shape;
}

/* 1 more than the largest id. */
static int count_ids(const trama_mesh *a, const trama_mesh *b)
{
    int n = 0;
    for (int i = 0; i < a->size; i++)
        n = (int)max_i64(n, a->ids[i] + 1);
    for (int i = 0; i < b->size; i++)
        n = (int)max_i64(n, b->ids[i] + 1);
    return n;
}

static sample random_sample(const variety *v, uint64_t *seed)
{
    int pool[MOST_IDS], most = random_size(MOST_PROCESSES, seed);
    sample s = {.relation = (relation)random_below(seed, N_RELATIONS)};
    for (int i = 0; i < MOST_IDS; i++)
        pool[i] = i;
    shuffle(pool, random_below(seed, 2) ? MOST_IDS : most + 8, seed); /* few ids, or any */
    s.from = random_mesh(pool, most, seed);
    s.to = related_mesh(s.from, s.relation, pool, seed);
    int ids = count_ids(s.from, s.to), ranks = v->one_place_each ? ids : 1 + random_below(seed, 8);
    s.machine = simulation_machine(ranks, v->one_place_each ? 1 : 1 + random_below(seed, 3), 2);
    s.map = map_by_order(ids, NULL, s.machine);
    s.c = (change){.from_mesh = s.from, .to_mesh = s.to, .shape = random_shape(seed)};
    s.c.from = random_layout(s.from, s.c.shape.ndim, v, seed);
    s.c.to = random_layout(s.to, s.c.shape.ndim, v, seed);
    s.c.machine = s.machine;
    s.c.map = s.map;
    s.c.fresh = random_below(seed, 4) == 0;
    s.c.ways = 1 + random_below(seed, 4);
    s.c.seed = random_next(seed);
    machine_vary(s.machine, (int)(s.c.seed % MACHINE_VARIANTS));
    int which = random_below(seed, 60); /* many terms in small pieces are many messages */
    s.c.message_window = s.from->size * s.to->size <= 256 ? change_window(s.c.shape, which) : 0;
    return s;
}

static void free_sample(sample *s)
{
    map_destroy(&s->map);
    machine_destroy(&s->machine);
    trama_mesh_destroy(&s->from);
    trama_mesh_destroy(&s->to);
}

static int cases(void)
{
    return (suite_is_long() ? 10000 : 1700) / (suite_is_sanitized() ? 16 : 1);
}

static void try_samples(uint64_t seed, variety v)
{
    for (int i = 0; i < cases(); i++) {
        sample s = random_sample(&v, &seed);
        change_try(&s.c, NULL);
        free_sample(&s);
    }
}

START_TEST(random_pairs_without_partials_move_what_is_lacking)
{
    try_samples(1, (variety){.one_place_each = true});
    try_samples(2, (variety){.masks = true, .one_place_each = true});
}
END_TEST

START_TEST(random_pairs_with_partials_move_no_more_than_the_table_allows)
{
    try_samples(3, (variety){.partials = true, .one_place_each = true});
    try_samples(4, (variety){.partials = true, .masks = true, .one_place_each = true});
}
END_TEST

START_TEST(random_pairs_whose_processes_share_places_keep_their_values)
{
    try_samples(5, (variety){.partials = true});
    try_samples(6, (variety){.partials = true, .masks = true});
}
END_TEST

/* What a sample would be poorer without. */
typedef enum { FULL, AXES_4, WEIGHTED, MASKED, SCALAR, EMPTY, MIXED, ACROSS, N_TRAITS } trait;

static unsigned kinds_of(const trama_layout *l)
{
    unsigned kinds = 0;
    for (int a = 0; a < l->naxes; a++)
        if (l->axis[a].kind == TRAMA_PARTIAL)
            kinds |= 1u << l->axis[a].reduce;
    return kinds;
}

START_TEST(the_samples_are_of_every_relation_and_kind)
{
    int of_relation[N_RELATIONS] = {0}, of_kind[16] = {0}, of_trait[N_TRAITS] = {0};
    uint64_t seed = 7;
    for (int i = 0; i < 1000; i++) {
        sample s = random_sample(&(variety){.partials = true, .masks = true}, &seed);
        const trama_mesh *a = s.from, *b = s.to;
        const bool traits[N_TRAITS] = {[FULL] = a->size == MOST_PROCESSES && b->size > 1,
                                       [AXES_4] = a->ndim == MOST_AXES && a->size >= 16,
                                       [WEIGHTED] = mesh_is_weighted(a) && mesh_is_weighted(b),
                                       [MASKED] = s.c.from.mask && s.c.to.mask,
                                       [SCALAR] = s.c.shape.ndim == 0,
                                       [EMPTY] = trama_shape_count(s.c.shape) == 0,
                                       [MIXED] = kinds_of(&s.c.from) == 3, /* sum and avg */
                                       [ACROSS] = s.relation == OVERLAPPING && a->size >= 32 && b->size >= 32};
        of_relation[s.relation]++;
        of_kind[kinds_of(&s.c.from)]++;
        for (int t = 0; t < N_TRAITS; t++)
            of_trait[t] += traits[t];
        free_sample(&s);
    }
    for (int r = 0; r < N_RELATIONS; r++)
        ck_assert_int_gt(of_relation[r], 100);
    for (int k = TRAMA_SUM; k <= TRAMA_MIN; k++)
        ck_assert_int_gt(of_kind[1 << k], 50);
    for (int t = 0; t < N_TRAITS; t++)
        ck_assert_msg(of_trait[t] >= 10, "trait %d: %d of 1000", t, of_trait[t]);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        the_samples_are_of_every_relation_and_kind,
        random_pairs_without_partials_move_what_is_lacking,
        random_pairs_with_partials_move_no_more_than_the_table_allows,
        random_pairs_whose_processes_share_places_keep_their_values,
    };
    return suite_run("reshard_random", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
