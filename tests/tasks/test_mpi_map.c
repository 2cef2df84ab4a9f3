/* SPDX-License-Identifier: Apache-2.0 */
/* Processes are where the user's order puts them: each rank holds the boxes of the processes that are on its places. */
#include "harness.h"

enum { LENGTH = 24, MOST = 12 };

/* The place of process i among so many: from the last one on, or by turns. */
static void make_order(int n, bool turns, int *order)
{
    for (int i = 0; i < n; i++)
        order[i] = turns ? (i % 2) * ((n + 1) / 2) + i / 2 : n - 1 - i;
}

/* x [LENGTH] is split over a mesh of all processes, and each rank has one place here: it holds what the processes have
 * that the order puts there. */
static void demand_boxes(trama_executable *e, const trama_value *x, int n, const int *order)
{
    int boxes;
    bool held[LENGTH] = {false};
    must(trama_local_count(e, x, &boxes));
    for (int i = 0; i < boxes; i++) {
        int64_t offset, extent;
        must(trama_local_box(e, x, i, &offset, &extent));
        for (int64_t k = 0; k < extent; k++)
            held[offset + k] = true;
    }
    for (int k = 0; k < LENGTH; k++) {
        int process = k * n / LENGTH, rank = n > n_ranks ? order[process] * n_ranks / n : order[process];
        demand(held[k] == (rank == my_rank), "element %d, of process %d on rank %d, is %sheld", k, process, rank,
               held[k] ? "" : "not ");
    }
}

static void demand_numbers(trama_executable *e, const trama_value *v, double factor)
{
    double out[LENGTH];
    must(trama_read(e, v, out, sizeof out));
    for (int i = 0; i < LENGTH; i++)
        demand(out[i] == factor * i, "element %d is %g instead of %g", i, out[i], factor * i);
}

static void recorded(int n, const int *order)
{
    double data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = i;
    trama_mesh *mesh = trama_mesh_create_ids(1, &n, NULL, NULL);
    trama_program *p = trama_program_create();
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(LENGTH)), mesh, "S(0)");
    trama_value *y = trama_reshard(trama_scale(x, 3), mesh, "R");
    must(trama_order(p, n, order));
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    must(trama_feed(e, x, data, TRAMA_SHAPE(LENGTH)));
    demand_boxes(e, x, n, order);
    must(trama_run(e, t));
    demand_numbers(e, y, 3);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

static void eager(int n, const int *order)
{
    double data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = i;
    trama_mesh *mesh = trama_mesh_create_ids(1, &n, NULL, NULL);
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    must(trama_order(p, n, order));
    trama_value *x = trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(LENGTH), data, mesh, "S(0)"), *y = trama_scale(x, 3);
    demand_numbers(e, y, 3);
    demand_boxes(e, x, n, order);
    demand_boxes(e, y, n, order);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

/* Fewer processes than ranks, as many, and more. */
static void try_orders(void (*run)(int n, const int *order))
{
    int order[MOST];
    for (int turns = 0; turns < 2; turns++)
        for (int n = 2; n <= MOST; n *= n == 2 ? 2 : 3) {
            make_order(n, turns, order);
            run(n, order);
        }
}

START_TEST(a_recorded_program_runs_where_its_order_says)
{
    start_with(&(trama_config){.verify = true});
    demand(n_ranks > 1, "it takes several ranks");
    try_orders(recorded);
    stop();
}
END_TEST

START_TEST(an_eager_program_runs_where_its_order_says)
{
    start();
    try_orders(eager);
    stop();
}
END_TEST

/* Two processes a rank, which exchange along the first axis alone: what the traffic would have on one rank is apart. */
START_TEST(a_mesh_with_weights_keeps_the_order_of_its_places)
{
    char spec[32];
    start();
    snprintf(spec, sizeof spec, "[2,1],%d", n_ranks);
    trama_mesh *mesh = trama_mesh_create(spec);
    trama_program *p = trama_program_create();
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(3, n_ranks)), mesh, "S(0),S(1)");
    trama_target *t = trama_target_create(p, "t", trama_reshard(trama_scale(x, 3), mesh, "R,S(1)"));
    trama_executable *e = compile(p);
    double *data = calloc(3 * (size_t)n_ranks, sizeof *data);
    must(trama_feed(e, x, data, TRAMA_SHAPE(3, n_ranks)));
    must(trama_run(e, t));
    for (int i = 0; i < 2; i++) {
        int process = 2 * my_rank + i, boxes;
        int64_t offset[2], extent[2];
        must(trama_local_count(e, x, &boxes));
        demand(boxes == 2, "%d boxes", boxes);
        must(trama_local_box(e, x, i, offset, extent));
        demand(offset[0] == 2 * (process / n_ranks) && extent[0] == 2 - process / n_ranks &&
                   offset[1] == process % n_ranks && extent[1] == 1,
               "process %d is not on rank %d", process, my_rank);
    }
    free(data);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

/* A program of one process runs where the order puts process 0. */
START_TEST(the_one_process_of_a_plain_program_has_a_place_too)
{
    start();
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(LENGTH));
    double data[LENGTH] = {0};
    int n;
    must(trama_order(p, 2, ((int[]){1, 0})));
    demand(trama_target_create(p, "t", trama_neg(x)), "%s", trama_error());
    trama_executable *e = compile(p);
    must(trama_feed(e, x, data, TRAMA_SHAPE(LENGTH)));
    must(trama_local_count(e, x, &n));
    demand(n == (my_rank == 1), "%d boxes", n);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

START_TEST(an_order_after_the_first_eager_value_comes_too_late)
{
    start();
    trama_program *p;
    trama_executable *e;
    double data[2] = {1, 2};
    must(trama_eager(ctx, &p, &e));
    demand(trama_neg(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2), data)), "%s", trama_error());
    expect_here(trama_order(p, 2, ((int[]){1, 0})), TRAMA_E_ORDER, "on their places already");
    trama_program_clear_error(p);
    must(trama_program_rewind(p, 0));
    expect(trama_order(p, 2, ((int[]){1, 0})), TRAMA_E_ORDER, "on their places already");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

TESTS(a_recorded_program_runs_where_its_order_says, an_eager_program_runs_where_its_order_says,
      a_mesh_with_weights_keeps_the_order_of_its_places, the_one_process_of_a_plain_program_has_a_place_too,
      an_order_after_the_first_eager_value_comes_too_late)
