/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion, tiles and lanes: what the steps of a plan look like. Values are compared in test_train.c and test_random.c.
 */
#include <check.h>

#include "pair.h"
#include "suite.h"
#include "trama_ops.h"

static trama_program *p;
static trama_mesh *mesh;
static trama_value *x, *w, *row;
static simulation *s;
static machine *table;
static pair both;

static const trama_init init = {-1, 1, 1, 1};
static const plan_options coarse = {.grain_flops = 1 << 30, .grain_bytes = 1 << 30},
                          fine = {.grain_flops = 1, .grain_bytes = 1};

static void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("2");
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(12, 8));
    w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(8, 8), &init);
    row = trama_parameter(p, "row", TRAMA_F64, TRAMA_SHAPE(8), &init);
}

static void drop_run(void)
{
    if (s)
        pair_free(&both);
    s = NULL;
    machine_destroy(&table);
}

static void tear_down(void)
{
    drop_run();
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}

/* Runs a target of these values on one rank of one place; its plan. */
static const plan *plan_of(int workers, const plan_options *options, int n, trama_value *const *values)
{
    char name[] = {(char)('a' + p->targets.n), 0};
    dense data = dense_random(x->shape, 1, -1, 1, false);
    trama_target *t = trama_target_at(TRAMA_HERE, p, name, n, values);
    drop_run();
    table = machine_uniform(1, workers);
    both = pair_new(p, table, &(simulation_options){.plan = *options}, "fusion");
    s = both.many;
    pair_feed(&both, x, &data);
    pair_run(&both, t, 1e-12);
    dense_free(&data);
    return simulation_plan(s, 0);
}
#define PLAN(workers, options, ...)                                                                                    \
    plan_of(workers, options, sizeof((trama_value *[]){__VA_ARGS__}) / sizeof(trama_value *),                          \
            (trama_value *[]){__VA_ARGS__})

static int computes(const plan *plan_)
{
    return plan_count(plan_).computes;
}

static int calls(const plan *plan_)
{
    return plan_->calls.n;
}

static int shards(const plan *plan_, shard_source source)
{
    int n = 0;
    for (int i = 0; i < plan_->shards.n; i++)
        n += plan_->shards.at[i].source == source;
    return n;
}

/* Bit i: worker i has a step of its own. */
static int lanes_used(const plan *plan_)
{
    int lanes = 0;
    for (int i = 0; i < plan_->steps.n; i++)
        lanes |= plan_->steps.at[i].lane >= 0 ? 1 << plan_->steps.at[i].lane : 0;
    return lanes;
}

START_TEST(numbers_in_an_expression_cost_no_task_and_no_pass)
{
    trama_value *y = trama_scalar_sub(1, trama_div_scalar(trama_add_scalar(trama_mul(x, x), 0.5), 3));
    const plan *got = PLAN(1, &coarse, trama_scalar_div(2, trama_add_scalar(trama_square(y), 1)));
    ck_assert_int_eq(computes(got), 1);
    ck_assert_int_eq(calls(got), 7);
}
END_TEST

START_TEST(a_pointwise_chain_is_one_step_and_keeps_its_middle_to_itself)
{
    const plan *got = PLAN(1, &coarse, trama_exp(trama_tanh(trama_neg(x))));
    ck_assert_int_eq(computes(got), 1);
    ck_assert_int_eq(calls(got), 3);
    ck_assert_int_eq(shards(got, SHARD_INTERNAL), 2);
    ck_assert_int_eq(shards(got, SHARD_OWN), 1);
}
END_TEST

START_TEST(what_is_kept_or_used_elsewhere_is_not_internal)
{
    trama_value *a = trama_neg(x), *b = trama_tanh(a), *c = trama_exp(b), *d = trama_matmul(b, w);
    const plan *got = PLAN(1, &coarse, a, c, d);
    ck_assert_int_eq(computes(got), 2);
    ck_assert_int_eq(shards(got, SHARD_INTERNAL), 0);
}
END_TEST

START_TEST(bias_and_activation_run_on_the_tile_of_the_product)
{
    const plan *got = PLAN(1, &coarse, trama_relu(trama_add(trama_matmul(x, w), row)));
    ck_assert_int_eq(computes(got), 1);
    ck_assert_int_eq(calls(got), 3);
}
END_TEST

START_TEST(without_fusion_every_op_is_a_step)
{
    plan_options distinct = coarse;
    distinct.no_fusion = true;
    const plan *got = PLAN(1, &distinct, trama_relu(trama_add(trama_matmul(x, w), row)));
    ck_assert_int_eq(computes(got), 3);
}
END_TEST

START_TEST(an_op_between_different_layouts_is_not_fused)
{
    trama_shard(x, mesh, "S(0)");
    trama_value *a = trama_shard(trama_neg(x), mesh, "S(1)"), *b = trama_exp(a);
    const plan *got = PLAN(1, &coarse, b);
    ck_assert_int_eq(computes(got), 4); /* two processes, two ops */
    ck_assert_int_eq(calls(got), 4);
}
END_TEST

START_TEST(an_update_runs_on_the_tile_of_what_is_made_from_the_state_itself)
{
    const plan *got = PLAN(2, &fine, trama_assign(w, trama_add(w, trama_mul(row, trama_square(w)))));
    ck_assert_int_eq(computes(got), 2); /* a tile each */
    ck_assert_int_eq(calls(got), 8);
    ck_assert_int_eq(shards(got, SHARD_OWN), 0);
}
END_TEST

START_TEST(an_update_waits_for_a_product_whose_tiles_read_all_of_the_state)
{
    const plan *got = PLAN(2, &fine, trama_assign(w, trama_relu(trama_matmul(w, w))));
    ck_assert_int_eq(computes(got), 4);
}
END_TEST

START_TEST(an_update_waits_for_who_reads_the_state_in_between)
{
    trama_value *next = trama_neg(w), *product = trama_matmul(x, w); /* with the old one */
    const plan *got = PLAN(2, &fine, product, trama_assign(w, next));
    ck_assert_int_eq(computes(got), 6);
}
END_TEST

START_TEST(what_is_not_there_yet_keeps_an_op_out_of_the_group)
{
    trama_value *a = trama_neg(x), *b = trama_matmul(trama_exp(x), w), *c = trama_add(a, b);
    const plan *got = PLAN(1, &coarse, c);
    ck_assert_int_eq(calls(got), 4);
    for (int i = 0; i < got->steps.n; i++)
        for (int k = 0; k < got->steps.at[i].n_calls; k++) {
            int first = got->calls.at[got->steps.at[i].call].node;
            if (got->calls.at[got->steps.at[i].call + k].node == c->node->id)
                ck_assert_int_eq(first, b->node->id); /* joined the product, not neg */
        }
}
END_TEST

/* Fine grain: as many tiles as workers, rows of the result, each on a worker of its own. */
START_TEST(a_product_is_cut_into_as_many_tiles_as_a_place_has_workers)
{
    const plan *got = PLAN(3, &fine, trama_matmul(x, w));
    ck_assert_int_eq(computes(got), 3);
    double flops = 0;
    for (int i = 0; i < got->steps.n; i++)
        flops += got->steps.at[i].flops;
    ck_assert_int_eq(lanes_used(got), 7);
    ck_assert_double_eq(flops, 2.0 * 12 * 8 * 8);
}
END_TEST

START_TEST(ways_fix_the_number_of_tiles_and_coarse_grain_leaves_one)
{
    plan_options two = fine;
    two.max_tiles = 2;
    trama_value *y = trama_matmul(x, w);
    ck_assert_int_eq(computes(PLAN(3, &two, y)), 2);
    ck_assert_int_eq(computes(PLAN(3, &fine, y)), 3);
    ck_assert_int_eq(computes(PLAN(3, &coarse, y)), 1);
}
END_TEST

/* The tiles of a reduced dim would each hold a part of the sum: a contraction is never cut. */
START_TEST(a_sum_of_everything_is_one_step)
{
    const plan *got = PLAN(4, &fine, trama_sum(x));
    ck_assert_int_eq(computes(got), 1);
}
END_TEST

START_TEST(processes_that_share_a_place_compute_equal_boxes_once)
{
    trama_shard(x, mesh, "R");
    const plan *got = PLAN(1, &coarse, trama_neg(x));
    ck_assert_int_eq(computes(got), 1);
    ck_assert_int_eq(shards(got, SHARD_OWN), 1);
}
END_TEST

START_TEST(unequal_boxes_on_one_place_share_its_workers)
{
    trama_shard(x, mesh, "S(0)");
    const plan *got = PLAN(4, &fine, trama_neg(x));
    ck_assert_int_eq(computes(got), 4); /* two of each process */
    ck_assert_int_eq(lanes_used(got), 15);
}
END_TEST

START_TEST(planning_twice_gives_the_same_plan)
{
    trama_value *y = trama_softmax(trama_relu(trama_add(trama_matmul(x, w), row)), 0);
    text once = {0}, again = {0};
    trama_shard(x, mesh, "S(0)");
    plan_describe(PLAN(3, &fine, y), p, &once);
    plan_describe(PLAN(3, &fine, y), p, &again);
    ck_assert_str_eq(once.at, again.at);
    free(once.at);
    free(again.at);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_pointwise_chain_is_one_step_and_keeps_its_middle_to_itself,
        numbers_in_an_expression_cost_no_task_and_no_pass,
        what_is_kept_or_used_elsewhere_is_not_internal,
        bias_and_activation_run_on_the_tile_of_the_product,
        without_fusion_every_op_is_a_step,
        an_op_between_different_layouts_is_not_fused,
        an_update_runs_on_the_tile_of_what_is_made_from_the_state_itself,
        an_update_waits_for_a_product_whose_tiles_read_all_of_the_state,
        an_update_waits_for_who_reads_the_state_in_between,
        what_is_not_there_yet_keeps_an_op_out_of_the_group,
        a_product_is_cut_into_as_many_tiles_as_a_place_has_workers,
        ways_fix_the_number_of_tiles_and_coarse_grain_leaves_one,
        a_sum_of_everything_is_one_step,
        processes_that_share_a_place_compute_equal_boxes_once,
        unequal_boxes_on_one_place_share_its_workers,
        planning_twice_gives_the_same_plan,
    };
    return suite_run("fuse", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
