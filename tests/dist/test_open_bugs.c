/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs that other systems have or had, each by its number and with the numbers of its report: small programs on
 * simulated ranks against plain loops. Those of single reshards, boxes and random values are with their like. */
#include "open_bugs.h"

/* ---- Gradients ---- */

enum { ROWS = 3, INNER = 5, COLUMNS = 2 };

/* y = x w, contracted along a split, goes on as it is or in another layout; the loss is the sum of its squares, whose
 * gradients are 2 y w' and 2 x' y. */
static void try_path(const trama_mesh *mesh, const char *of_x, const char *of_w, const char *through)
{
    double y[ROWS * COLUMNS] = {0}, dx[ROWS * INNER] = {0}, dw[INNER * COLUMNS] = {0};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            for (int k = 0; k < INNER; k++)
                y[i * COLUMNS + j] += (i * INNER + k) * (1.0 + k * COLUMNS + j);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            for (int k = 0; k < INNER; k++) {
                dx[i * INNER + k] += 2 * y[i * COLUMNS + j] * (1.0 + k * COLUMNS + j);
                dw[k * COLUMNS + j] += 2 * y[i * COLUMNS + j] * (i * INNER + k);
            }
    trama_value *x = constant(TRAMA_SHAPE(ROWS, INNER), counted, mesh, of_x);
    trama_value *w = constant(TRAMA_SHAPE(INNER, COLUMNS), counted + 1, mesh, of_w);
    trama_value *product = trama_matmul(x, w);
    if (through)
        product = trama_reshard(product, mesh, through);
    trama_value *loss = trama_sum(trama_square(product));
    expect(trama_gradient(loss, x), trama_mesh_size(mesh), dx, through ? through : "direct");
    expect(trama_gradient(loss, w), trama_mesh_size(mesh), dw, through ? through : "direct");
}

/* A value that stays partial on its way, which changes nothing, doubled the gradient. */
START_TEST(pytorch_172932_gradients_through_partial_values)
{
    static const char *const through[] = {NULL, "P(sum)", "P(avg)", "P(max)", "P(min)", "R", "S(0)", "S(1)"};
    trama_mesh *line = trama_mesh_create("2"), *plane = trama_mesh_create("2,2");
    for (int i = 0; i < 8; i++)
        try_path(line, "S(1)", "S(0)", through[i]);
    static const char *const through_plane[] = {NULL, "P,P", "P(avg),P", "S(0),P", "P,S(0)", "R,P", "P(max),P(max)"};
    for (int i = 0; i < 7; i++)
        try_path(plane, "S(1),S(1)", "S(0),S(0)", through_plane[i]);
    trama_mesh_destroy(&line);
    trama_mesh_destroy(&plane);
}
END_TEST

/* ---- Reductions ---- */

/* The mean of the means of 2 rows and 1 was taken; of 1 row and none it was NaN. */
START_TEST(pytorch_162692_mean_of_3x4_over_2)
{
    static const char *const meshes[] = {"2", "4", "[3,1]", "5"};
    for (int i = 0; i < 4; i++) {
        trama_mesh *mesh = trama_mesh_create(meshes[i]);
        int ranks = trama_mesh_size(mesh);
        expect(trama_mean(constant(TRAMA_SHAPE(3, 4), counted, mesh, "S(0)")), ranks, (double[]){5.5}, meshes[i]);
        expect(trama_mean(constant(TRAMA_SHAPE(1, 4), counted, mesh, "S(0)")), ranks, (double[]){1.5}, meshes[i]);
        expect(trama_mean_over(constant(TRAMA_SHAPE(3, 4), counted, mesh, "S(0)"), 1, ((int[]){0}), false), ranks,
               (double[]){4, 5, 6, 7}, meshes[i]);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

/* The places of the largest elements of pieces were combined as if they were values. */
START_TEST(pytorch_173936_argmax_over_a_split_and_of_partial_maxima)
{
    trama_mesh *mesh = trama_mesh_create("2");
    const double line[] = {10, 5, 3, 8}, rows[] = {1, 2, 3, 9, 10, 0, 0, 0}, others[] = {9, 5, 1, 0, 0, 5, 1, 9};
    expect(trama_argmax(constant(TRAMA_SHAPE(4), line, mesh, "S(0)"), 0), 2, (double[]){0}, "split");
    trama_value *maxima = trama_max_over(constant(TRAMA_SHAPE(2, 4), rows, mesh, "S(0)"), 1, ((int[]){0}), false);
    expect(trama_argmax(maxima, 0), 2, (double[]){0}, "of maxima"); /* of the terms 3 and 0 */
    trama_value *minima = trama_min_over(constant(TRAMA_SHAPE(2, 4), others, mesh, "S(0)"), 1, ((int[]){0}), false);
    expect(trama_argmax(minima, 0), 2, (double[]){1}, "of minima"); /* of the terms 0 and 3 */
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Views ---- */

/* 6 rows over 4 processes failed; of #179502, columns of 12x8 viewed as 16x6 were taken for its rows. */
START_TEST(pytorch_143372_views_of_uneven_shards)
{
    trama_mesh *mesh = trama_mesh_create("4");
    trama_value *rows = constant(TRAMA_SHAPE(6, 256), counted, mesh, "S(0)");
    expect(trama_reshape(rows, TRAMA_SHAPE(1536)), 4, counted, "flat");
    expect(trama_shard(trama_reshape(rows, TRAMA_SHAPE(1536)), mesh, "S(0)"), 4, counted, "flat, split");
    expect(trama_reshape(rows, TRAMA_SHAPE(12, 128)), 4, counted, "halves of rows");
    expect(trama_reshape(rows, TRAMA_SHAPE(3, 2, 256)), 4, counted, "pairs of rows");
    trama_value *columns = constant(TRAMA_SHAPE(12, 8), counted, mesh, "S(1)");
    expect(trama_reshape(columns, TRAMA_SHAPE(16, 6)), 4, counted, "16x6");
    expect(trama_shard(trama_reshape(columns, TRAMA_SHAPE(16, 6)), mesh, "S(0)"), 4, counted, "16x6, split");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Meshes and constraints ---- */

/* 17 rows over 8 processes: each was given all of them, and nobody was told. */
START_TEST(jax_26946_a_constraint_that_does_not_divide_is_kept)
{
    trama_mesh *mesh = trama_mesh_create("data=8");
    machine *m = machine_uniform(8, 1);
    trama_value *x = constant(TRAMA_SHAPE(17, 16), counted, mesh, "R");
    trama_value *y = trama_shard(trama_add(x, x), mesh, "S(0)");
    simulation *s = run_on(m, target(y));
    for (int rank = 0; rank < 8; rank++) {
        const plan_dist_value *h = plan_find(simulation_plan(s, rank), y->id);
        int64_t rows = rank ? 2 : 3, first = rank ? 1 + 2 * rank : 0;
        ck_assert_int_eq(h->pieces.n, 1);
        const plan_region *held = &h->pieces.at[0].region;
        const box *shard = &simulation_plan(s, rank)->shards.at[held->shard].box;
        ck_assert(held->box.lo[0] == first && held->box.n[0] == rows && held->box.n[1] == 16);
        ck_assert_int_eq(box_count(shard), rows * 16);
    }
    dense got = simulation_value(s, y);
    for (int i = 0; i < 17 * 16; i++)
        ck_assert_double_eq(got.at[i], 2.0 * i);
    dense_free(&got);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* One compiled function had one mesh. Here it goes over four, one beside and two across the others, and joins two. */
START_TEST(jax_18255_one_program_on_several_meshes)
{
    trama_mesh *line = trama_mesh_create("4"), *turned = trama_mesh_create("2,2:3,1,2,0"),
               *colocated = trama_mesh_create("3:6,4,5"), *across = trama_mesh_create("[2,1],2:5,0,3,6");
    double wanted[7 * 5];
    for (int i = 0; i < 35; i++)
        wanted[i] = (2.0 * i) * (2.0 * i) + 3.0 * i;
    trama_value *x = constant(TRAMA_SHAPE(7, 5), counted, line, "S(0)");
    trama_value *twice = trama_reshard(trama_add(x, x), turned, "S(1),S(0)");
    trama_value *square = trama_reshard(trama_square(twice), across, "R,S(0)");
    trama_value *triple = trama_scale(trama_reshard(x, colocated, "S(1)"), 3);
    expect(trama_add(square, trama_reshard(triple, across, "S(1),R")), 7, wanted, "several meshes");
    trama_mesh_destroy(&line);
    trama_mesh_destroy(&turned);
    trama_mesh_destroy(&colocated);
    trama_mesh_destroy(&across);
}
END_TEST

/* A value was read on the processes of its own mesh only. */
START_TEST(paddle_values_are_read_across_meshes)
{
    trama_mesh *home = trama_mesh_create("3:1,3,2"), *away = trama_mesh_create("2:0,4"),
               *one = trama_mesh_create("1:3");
    trama_value *x = constant(TRAMA_SHAPE(5, 3), counted, home, "S(1)");
    trama_value *w = constant(TRAMA_SHAPE(3, 2), counted, home, "S(0)");
    trama_value *y = trama_matmul(x, w);
    trama_reshard(y, away, "R"); /* so that the program knows all five processes */
    machine *m = machine_uniform(5, 1);
    simulation *s = run_on(m, target(y));
    ck_assert_int_eq(simulation_layouts(s)->value[y->id].axis[0].kind, TRAMA_PARTIAL);
    const trama_mesh *meshes[] = {away, one, home};
    static const char *const layouts_[] = {"R", "S(0)", "S(1)"};
    for (int i = 0; i < 9; i++) {
        trama_layout l;
        dense got = {0};
        ck_assert(!trama_layout_parse(meshes[i / 3], 2, layouts_[i % 3], &l));
        simulation_read(s, y, meshes[i / 3], &l, true, &got);
        for (int k = 0; k < 10; k++)
            ck_assert_double_eq(got.at[k], k % 2 ? 27 * (k / 2) + 13 : 18 * (k / 2) + 10);
        dense_free(&got);
    }
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_mesh_destroy(&home);
    trama_mesh_destroy(&away);
    trama_mesh_destroy(&one);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        pytorch_172932_gradients_through_partial_values,
        pytorch_162692_mean_of_3x4_over_2,
        pytorch_173936_argmax_over_a_split_and_of_partial_maxima,
        pytorch_143372_views_of_uneven_shards,
        jax_26946_a_constraint_that_does_not_divide_is_kept,
        jax_18255_one_program_on_several_meshes,
        paddle_values_are_read_across_meshes,
    };
    return suite_run("open_bugs", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
