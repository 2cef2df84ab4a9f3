/* SPDX-License-Identifier: Apache-2.0 */
/* Values joined along a dim that is only known when fed, as keys of earlier tokens and new ones are, against loops. */
#include <check.h>
#include <stdio.h>

#include "pair.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_complete.h"
#include "trama_ops.h"

enum { N = 3, KNOWN = 2, WIDE = 4 }; /* operands; the extent of the second one; of the other dim */

static const char *const names[N] = {"a", "b", "c"};

typedef struct job {
    trama_program *p;
    trama_value *x[N], *y, *grad[N];
    trama_target *t;
} job;

static trama_shape shape_of(int dim, int64_t n)
{
    return dim ? TRAMA_SHAPE(WIDE, n) : TRAMA_SHAPE(n, WIDE);
}

/* The sum of cubes of the joined values, whose gradient is three times the square. */
static job job_of(int dim, trama_mesh *mesh, const char *layout)
{
    job j = {.p = trama_program_create()};
    for (int i = 0; i < N; i++) {
        j.x[i] = trama_input(j.p, names[i], TRAMA_F64, shape_of(dim, i == 1 ? KNOWN : TRAMA_ANY));
        trama_shard(j.x[i], mesh, layout);
    }
    j.y = trama_concat(dim, N, j.x);
    trama_value *loss = trama_sum(trama_mul(trama_square(j.y), j.y));
    for (int i = 0; i < N; i++)
        j.grad[i] = trama_gradient(loss, j.x[i]);
    j.t = trama_target_create(j.p, "t", j.y, j.grad[0], j.grad[1], j.grad[2]);
    ck_assert_msg(!trama_program_status(j.p), "%s", trama_program_error(j.p));
    return j;
}

static void compare_with_loops(const job *j, int dim, const int64_t *extent, const dense *fed)
{
    const int64_t all = extent[0] + extent[1] + extent[2];
    single *one = single_new(j->p);
    for (int i = 0; i < N; i++)
        single_feed(one, j->x[i], &fed[i]);
    single_run(one, j->t);
    const dense *y = single_value(one, j->y);
    ck_assert_int_eq(y->shape.dim[dim], all);
    for (int i = 0, from = 0; i < N; from += (int)extent[i++])
        for (int64_t k = 0; k < extent[i]; k++)
            for (int64_t w = 0; w < WIDE; w++) {
                const int64_t at = dim ? w * extent[i] + k : k * WIDE + w,
                              to = dim ? w * all + from + k : (from + k) * WIDE + w;
                const double x = fed[i].at[at];
                ck_assert_msg(y->at[to] == x, "%s [%lld, %lld] is %g, not %g", names[i], (long long)k, (long long)w,
                              y->at[to], x);
                ck_assert_double_eq_tol(single_value(one, j->grad[i])->at[at], 3 * x * x, 1e-12);
            }
    single_destroy(&one);
}

START_TEST(fed_dims_are_joined)
{
    static const struct {
        const char *mesh, *layout;
    } ways[] = {{"1", "R"}, {"2", "S(0)"}, {"2", "S(1)"}, {"3", "S(0)"}, {"2,2", "S(1),S(0)"}, {"[1,3]", "S(1)"}};
    static const int64_t fed_extents[][2] = {{3, 5}, {1, 1}, {7, 2}, {0, 4}, {4, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (size_t k = 0; k < sizeof fed_extents / sizeof *fed_extents; k++)
            for (int dim = 0; dim < 2; dim++) {
                const int64_t extent[N] = {fed_extents[k][0], KNOWN, fed_extents[k][1]};
                char name[80];
                dense fed[N];
                trama_mesh *mesh = trama_mesh_create(ways[i].mesh);
                job j = job_of(dim, mesh, ways[i].layout);
                for (int o = 0; o < N; o++)
                    fed[o] = dense_random(shape_of(dim, extent[o]), 3 + (uint64_t)o, -1, 1, false);
                snprintf(name, sizeof name, "dim %d, %s on %s, extents %d", dim, ways[i].layout, ways[i].mesh, (int)k);
                pair_try(j.p, j.t, N, j.x, fed, 4, 1e-12, name);
                compare_with_loops(&j, dim, extent, fed);
                for (int o = 0; o < N; o++)
                    dense_free(&fed[o]);
                trama_program_destroy(&j.p);
                trama_mesh_destroy(&mesh);
            }
}
END_TEST

/* Of 6, 2 and 6 rows over two processes the first one computes 7: it lacks 3 of the first operand. The other lacks 3 of
 * the last one. */
START_TEST(no_more_is_received_than_the_result_needs)
{
    int64_t bytes;
    trama_completion *c;
    trama_value *x[N];
    trama_mesh *mesh = trama_mesh_create("2");
    trama_program *p = trama_program_create();
    for (int i = 0; i < N; i++)
        x[i] = trama_shard(trama_input(p, names[i], TRAMA_F64, shape_of(0, i == 1 ? KNOWN : TRAMA_ANY)), mesh, "S(0)");
    trama_shard(trama_concat(0, N, x), mesh, "S(0)");
    ck_assert_msg(!trama_completion_create(p, 6, &c), "%s", trama_error());
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, NULL), TRAMA_OK);
    ck_assert_int_eq(bytes, 3 * WIDE * 8);
    trama_completion_destroy(&c);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {fed_dims_are_joined, no_more_is_received_than_the_result_needs};
    return suite_run("fed_joins", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
