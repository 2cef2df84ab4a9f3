/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that differ in what must not matter: the order of mesh axes, annotations, process ids, a reshard there and
 * back. No expected values here but one program's own for the other. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "change.h"
#include "mlp.h"
#include "suite.h"
#include "trama_ops.h"

static const int sizes[] = {7, 6, 5, 3};
enum { N_LAYERS = 3, STEPS = 3 };

static mlp_job run_new(const char *mesh, int ranks)
{
    mlp_job j =
        mlp_job_new(mlp_new(mesh, N_LAYERS, sizes, "adamw"), ranks, 1, &(plan_options){2, 1, 1, false, .sum_tile = 24});
    for (int step = 0; step < STEPS; step++)
        mlp_job_step(&j, 5, 10 * (uint64_t)step);
    return j;
}

static void compare(const mlp_job *a, const trama_value *of_a, const mlp_job *b, const trama_value *of_b,
                    double tolerance)
{
    dense x = simulation_value(a->s, of_a), y = simulation_value(b->s, of_b);
    double wrong = dense_difference(&x, &y);
    ck_assert_msg(wrong <= tolerance, "%s differs by %g", of_a->name, wrong);
    dense_free(&x);
    dense_free(&y);
}

/* The loss and all parameters after some steps of AdamW. */
static void compare_runs(const char *first, const char *second, int ranks, double tolerance)
{
    mlp_job a = run_new(first, ranks), b = run_new(second, ranks);
    compare(&a, a.m.loss, &b, b.m.loss, tolerance);
    for (int i = 0; i < N_LAYERS; i++) {
        compare(&a, a.m.w[i], &b, b.m.w[i], tolerance);
        compare(&a, a.m.b[i], &b, b.m.b[i], tolerance);
    }
    mlp_job_free(&a);
    mlp_job_free(&b);
}

/* Sums in another order: float64 rounding, a little amplified by AdamW. */
static const double rounding = 1e-11;

START_TEST(the_order_of_mesh_axes_does_not_matter)
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        compare_runs("dp=2,mp=3", "mp=3,dp=2", ranks, rounding);
        compare_runs("dp=4,mp=2", "mp=2,dp=4", ranks, rounding);
        compare_runs("dp=2,mp=1", "mp=1,dp=2", ranks, rounding);
    }
}
END_TEST

START_TEST(without_annotations_the_numbers_are_the_same)
{
    static const char *const annotated[] = {"dp=2", "mp=2", "dp=2,mp=2", "dp=3,mp=2", "dp=7"};
    for (int i = 0; i < 5; i++)
        compare_runs(annotated[i], "1", 3, rounding);
}
END_TEST

/* ---- Other process ids ---- */

/* The box of a value that a rank holds; each has one process. */
static box held(const simulation *s, int rank, const trama_value *v)
{
    const plan_dist_value *h = plan_find(simulation_plan(s, rank), v->id);
    ck_assert_msg(h && h->pieces.n == 1, "rank %d holds no single piece of %s", rank, v->name);
    return h->pieces.at[0].region.box;
}

START_TEST(other_process_ids_permute_shards_and_change_no_bit)
{
    static const int ids[][4] = {{3, 1, 0, 2}, {1, 2, 3, 0}, {2, 3, 0, 1}};
    for (int k = 0; k < 3; k++) {
        char mesh[64];
        snprintf(mesh, sizeof mesh, "dp=2,mp=2:%d,%d,%d,%d", ids[k][0], ids[k][1], ids[k][2], ids[k][3]);
        compare_runs("dp=2,mp=2", mesh, 4, 0);
        mlp_job a = run_new("dp=2,mp=2", 4), b = run_new(mesh, 4);
        ck_assert_int_eq(simulation_traffic(a.s).bytes, simulation_traffic(b.s).bytes);
        ck_assert_int_eq(simulation_traffic(a.s).messages, simulation_traffic(b.s).messages);
        for (int i = 0; i < N_LAYERS; i++)
            for (int position = 0; position < 4; position++) {
                box mine = held(a.s, position, a.m.w[i]), theirs = held(b.s, ids[k][position], b.m.w[i]);
                ck_assert_msg(box_equal(&mine, &theirs), "w%d: position %d holds another box", i, position);
            }
        mlp_job_free(&a);
        mlp_job_free(&b);
    }
}
END_TEST

/* ---- There and back ---- */

typedef struct corner {
    const trama_mesh *mesh;
    trama_layout layout;
} corner;

static trama_value *move(trama_value *v, const corner *to)
{
    char *written = trama_layout_text(to->mesh, &to->layout);
    trama_value *moved = trama_reshard(v, to->mesh, written);
    free(written);
    return moved;
}

static void there_and_back(const corner *home, const corner *away, trama_shape shape, int ranks, int variant)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, shape);
    char *written = trama_layout_text(home->mesh, &home->layout);
    trama_shard(x, home->mesh, written);
    trama_value *there = move(x, away), *back = move(there, home);
    trama_target *t = trama_target_create(p, "t", back);
    machine *m = machine_uniform(ranks, 1);
    machine_vary(m, variant);
    simulation *s =
        simulation_new(p, m, &(simulation_options){.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}});
    dense data = dense_random(shape, 5, -1, 1, false);
    simulation_feed(s, x, &data);
    simulation_run(s, t);
    dense got = simulation_value(s, back);
    double wrong = dense_difference(&got, &data);
    ck_assert_msg(wrong <= 1e-15, "from %s and back: differs by %g", written, wrong);
    free(written);
    dense_free(&got);
    dense_free(&data);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
}

START_TEST(every_reshard_there_and_back_is_the_identity)
{
    trama_mesh *mesh = trama_mesh_create("2,2"), *other = trama_mesh_create("3:5,1,0");
    layout_list all = {0}, others = {0};
    every_layout(mesh, 2, false, &all);
    every_layout(other, 2, true, &others);
    uint64_t seed = 1;
    for (int i = 0; i < all.n; i++) {
        corner home = {mesh, all.at[i]};
        for (int k = 0; k < all.n; k++)
            there_and_back(&home, &(corner){mesh, all.at[k]}, TRAMA_SHAPE(5, 3), 1 + random_below(&seed, 4),
                           (i + k) % MACHINE_VARIANTS);
        for (int k = 0; k < others.n; k++)
            there_and_back(&home, &(corner){other, others.at[k]}, TRAMA_SHAPE(5, 3), 1 + random_below(&seed, 6),
                           (i + k) % MACHINE_VARIANTS);
    }
    ARRAY_FREE(&all);
    ARRAY_FREE(&others);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&other);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        the_order_of_mesh_axes_does_not_matter,
        without_annotations_the_numbers_are_the_same,
        other_process_ids_permute_shards_and_change_no_bit,
        every_reshard_there_and_back_is_the_identity,
    };
    return suite_run("metamorphic", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
