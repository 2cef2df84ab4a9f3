/* SPDX-License-Identifier: Apache-2.0 */
/* Tuples of indices into dims that are only known when fed, and repetition beside such dims, against loops. */
#include <check.h>
#include <math.h>

#include "pair.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_ops.h"

enum { N = 4, LAST = 2 };

/* In, from the end, and beyond an end. */
static const int64_t tuples[N][2] = {{0, 1}, {-1, -2}, {2, 0}, {1, 7}};

static bool find(const int64_t *tuple, const int64_t *extent, int64_t *row)
{
    *row = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t at = tuple[i] < 0 ? tuple[i] + extent[i] : tuple[i];
        if (at < 0 || at >= extent[i])
            return false;
        *row = *row * extent[i] + at;
    }
    return true;
}

/* x [fed, fed, 2], u [4, 2] */
static void try(const char *mesh_text, const char *layout, const int64_t *extent)
{
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, TRAMA_ANY, LAST)),
                *u = trama_input(p, "u", TRAMA_F64, TRAMA_SHAPE(N, LAST)),
                *index = trama_constant(p, TRAMA_I64, TRAMA_SHAPE(N, 2), tuples);
    trama_shard(x, mesh, layout);
    trama_value *taken = trama_gather_nd(x, index, 0), *put = trama_scatter_nd(x, index, u, TRAMA_SCATTER_ADD);
    trama_target *t = trama_target_create(p, "t", taken, put);
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    trama_value *inputs[] = {x, u};
    dense fed[] = {dense_random(TRAMA_SHAPE(extent[0], extent[1], LAST), 3, -1, 1, false),
                   dense_random(TRAMA_SHAPE(N, LAST), 4, -1, 1, false)};
    pair_try(p, t, 2, inputs, fed, 3, 1e-12, layout);
    dense expected = dense_copy(&fed[0]);
    single *one = single_new(p);
    for (int i = 0; i < 2; i++)
        single_feed(one, inputs[i], &fed[i]);
    single_run(one, t);
    for (int i = 0; i < N * LAST; i++) {
        int64_t row;
        const bool there = find(tuples[i / LAST], extent, &row);
        const double got = single_value(one, taken)->at[i];
        ck_assert(there ? got == fed[0].at[row * LAST + i % LAST] : isnan(got));
        if (there)
            expected.at[row * LAST + i % LAST] += fed[1].at[i];
    }
    ck_assert(dense_difference(single_value(one, put), &expected) < 1e-12);
    single_destroy(&one);
    dense_free(&expected);
    for (int i = 0; i < 2; i++)
        dense_free(&fed[i]);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(tuples_find_elements_of_fed_dims)
{
    static const int64_t extents[][2] = {{3, 5}, {7, 2}, {1, 1}, {3, 8}};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
        try("2", "S(0)", extents[i]);
        try("3", "S(1)", extents[i]);
        try("2,2", "S(0),S(2)", extents[i]);
    }
}
END_TEST

/* [fed, 1, 2] to [3, fed, 4, 2] */
START_TEST(fed_dims_stay_where_others_are_repeated)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 1, LAST)),
                *wide = trama_broadcast_to(x, TRAMA_SHAPE(3, TRAMA_ANY, 4, LAST)),
                *d = trama_gradient(trama_sum(trama_mul(wide, wide)), x);
    trama_target *t = trama_target_create(p, "t", wide, d);
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    dense data = dense_random(TRAMA_SHAPE(5, 1, LAST), 3, -1, 1, false);
    single *one = single_new(p);
    single_feed(one, x, &data);
    single_run(one, t);
    for (int i = 0; i < 3 * 5 * 4 * LAST; i++)
        ck_assert(single_value(one, wide)->at[i] == data.at[i / (4 * LAST) % 5 * LAST + i % LAST]);
    for (int i = 0; i < 5 * LAST; i++)
        ck_assert(fabs(single_value(one, d)->at[i] - 2 * 3 * 4 * data.at[i]) < 1e-12);
    single_destroy(&one);
    dense_free(&data);
    trama_program_destroy(&p);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {tuples_find_elements_of_fed_dims, fed_dims_stay_where_others_are_repeated};
    return suite_run("fed_indices", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
