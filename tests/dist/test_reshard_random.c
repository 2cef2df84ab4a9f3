/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout by chance, 10,000 of them (sample.h). change_try demands values, bytes and bound. */
#include <check.h>

#include "sample.h"
#include "suite.h"

static int cases(void)
{
    return (suite_is_long() ? 10000 : 1700) / (suite_is_sanitized() ? 16 : 1);
}

static void try_samples(uint64_t seed, variety v)
{
    for (int i = 0; i < cases(); i++) {
        sample s = sample_random(&v, &seed);
        change_try(&s.c, NULL);
        sample_free(&s);
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

static int in_hops;

static void count_hops(const change *c, plan *const *plans)
{
    in_hops += plans[map_place(c->map, c->to_mesh->ids[0])]->exchanges.n > 1;
}

START_TEST(random_pairs_of_many_processes_keep_their_values)
{
    in_hops = 0;
    for (int v = 0; v < 4; v++) {
        uint64_t seed = 8 + (uint64_t)v;
        for (int i = 0; i < cases() / 100; i++) {
            sample s = sample_random(&(variety){v & 1, v & 2, .one_place_each = true, .many = true}, &seed);
            s.c.look = count_hops;
            change_try(&s.c, NULL);
            sample_free(&s);
        }
    }
    ck_assert_msg(suite_is_sanitized() || 5 * in_hops >= cases() / 25, "%d of %d go in several hops", in_hops,
                  cases() / 25);
}
END_TEST

/* Traits that some samples must have. */
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
        sample s = sample_random(&(variety){.partials = true, .masks = true}, &seed);
        const trama_mesh *a = s.from, *b = s.to;
        const bool traits[N_TRAITS] = {[FULL] = a->size == MOST_PROCESSES && b->size > 1,
                                       [AXES_4] = a->ndim == 4 && a->size >= 16,
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
        sample_free(&s);
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
        random_pairs_of_many_processes_keep_their_values,
    };
    return suite_run("reshard_random", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
