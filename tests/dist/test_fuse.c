/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: what the steps of a plan look like. Values are compared in test_train.c and test_random.c.
 */
#include <check.h>

#include "one_place.h"
#include "suite.h"
#include "trama_op_define.h"

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

START_TEST(processes_that_share_a_place_compute_equal_boxes_once)
{
    trama_shard(x, mesh, "R");
    const plan *got = PLAN(1, &coarse, trama_neg(x));
    ck_assert_int_eq(computes(got), 1);
    ck_assert_int_eq(shards(got, SHARD_OWN), 1);
}
END_TEST

START_TEST(planning_twice_gives_the_same_plan)
{
    trama_value *y = trama_softmax(trama_relu(trama_add(trama_matmul(x, w), row)), 1);
    text once = {0}, again = {0};
    trama_shard(x, mesh, "S(0)");
    plan_describe(PLAN(3, &fine, y), p, &once);
    plan_describe(PLAN(3, &fine, y), p, &again);
    ck_assert_str_eq(once.at, again.at);
    free(once.at);
    free(again.at);
}
END_TEST

/* ---- Calls of one step that are done as one ---- */

/* The answer of the plan for call i of its one step of several calls. */
static fused_run fused_at(const plan *plan_, int i)
{
    for (int k = 0; k < plan_->steps.n; k++)
        if (plan_->steps.at[k].kind == STEP_COMPUTE && plan_->steps.at[k].n_calls > 1)
            return plan_->calls.at[plan_->steps.at[k].call + i].fused;
    return (fused_run){0};
}

static void check_fused(const plan *plan_, int i, fused_kind kind, int n)
{
    ck_assert_int_eq(fused_at(plan_, i).kind, kind);
    ck_assert_int_eq(fused_at(plan_, i).n, n);
}

START_TEST(a_product_is_computed_into_the_state_that_it_is_subtracted_from)
{
    const trama_attributes rate = {.real = {0.5}}, still = {.real = {0}};
    trama_value *product = trama_matmul_trans(x, x, true, false), *in[] = {w, product};
    trama_value *updated = trama_apply(trama_op_find("sgd"), 2, in, &rate),
                *same = trama_apply(trama_op_find("sgd"), 2, in, &still);
    for (int gpu = 0; gpu < 2; gpu++) {
        on_gpu = gpu;
        check_fused(PLAN(1, &coarse, updated), 0, FUSED_ADDITION, 2);
        check_fused(PLAN(1, &coarse, updated, product), 0, FUSED_NOT, 0); /* it is read */
        check_fused(PLAN(1, &coarse, same), 0, FUSED_NOT, 0); /* times 0 it would lose what is not a number in it */
    }
}
END_TEST

START_TEST(a_gpu_adds_no_product_whose_factor_is_an_operand)
{
    trama_value *number = trama_state(p, "number", TRAMA_F64, TRAMA_SCALAR, &init);
    trama_value *in[] = {w, trama_matmul_trans(x, x, true, false), number, number};
    trama_value *updated = trama_apply(trama_op_find("accumulate"), 4, in, NULL);
    check_fused(PLAN(1, &coarse, updated), 0, FUSED_ADDITION, 2);
    on_gpu = true;
    check_fused(PLAN(1, &coarse, updated), 0, FUSED_NOT, 0);
}
END_TEST

START_TEST(a_product_on_a_gpu_takes_the_chain_behind_it_on_the_way)
{
    trama_value *column = trama_parameter(p, "column", TRAMA_F64, TRAMA_SHAPE(12, 1), &init);
    trama_value *one = trama_parameter(p, "one", TRAMA_F64, TRAMA_SHAPE(1, 8), &init);
    const trama_attributes rate = {.real = {0.5}};
    trama_value *both_ = trama_relu(trama_add(trama_matmul(x, w), row)), *swapped = trama_add(row, trama_matmul(x, w)),
                *turned = trama_add(trama_relu(trama_matmul(x, w)), row),
                *columns = trama_relu(trama_add(trama_matmul(x, w), column)), *line = trama_matmul(one, w),
                *twice = trama_add(line, line),
                *cast = trama_neg(trama_cast(trama_relu(trama_matmul(x, w)), TRAMA_F32)),
                *doubled[] = {w, trama_scale(trama_matmul_trans(x, x, true, false), 2)},
                *applied = trama_apply(trama_op_find("sgd"), 2, doubled, &rate);
    check_fused(PLAN(1, &coarse, both_), 0, FUSED_NOT, 0);
    on_gpu = true;
    check_fused(PLAN(1, &coarse, both_), 0, FUSED_EPILOGUE, 3);
    check_fused(PLAN(1, &coarse, both_), 1, FUSED_CHAIN, 2); /* if the product's kernel cannot */
    check_fused(PLAN(1, &coarse, swapped), 0, FUSED_EPILOGUE, 2);
    check_fused(PLAN(1, &coarse, turned), 0, FUSED_EPILOGUE, 3);
    check_fused(PLAN(1, &coarse, turned), 1, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, columns), 0, FUSED_EPILOGUE, 3);
    check_fused(PLAN(1, &coarse, twice), 0, FUSED_EPILOGUE, 2);
    check_fused(PLAN(1, &coarse, both_, both_->node->in[0]), 0, FUSED_EPILOGUE, 3);         /* the sum is read */
    check_fused(PLAN(1, &coarse, both_, both_->node->in[0]->node->in[0]), 0, FUSED_NOT, 0); /* the product is */
    check_fused(PLAN(1, &coarse, applied), 0, FUSED_NOT, 0); /* the chain updates a state */
    check_fused(PLAN(1, &coarse, cast), 0, FUSED_EPILOGUE, 3);
    check_fused(PLAN(1, &coarse, cast), 1, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, cast), 2, FUSED_NOT, 0);
}
END_TEST

START_TEST(calls_that_keep_the_order_of_elements_go_chunk_by_chunk_or_in_one_kernel)
{
    trama_value *chain = trama_exp(trama_tanh(trama_neg(x))), *rows = trama_exp(trama_add(x, row)),
                *types = trama_exp(trama_tanh(trama_cast(trama_neg(x), TRAMA_F32)));
    check_fused(PLAN(1, &coarse, chain), 0, FUSED_CHUNKS, 3);
    check_fused(PLAN(1, &coarse, rows), 0, FUSED_NOT, 0); /* the row begins again with each row */
    check_fused(PLAN(1, &coarse, types), 0, FUSED_CHUNKS, 4);
    on_gpu = true;
    check_fused(PLAN(1, &coarse, chain), 0, FUSED_CHAIN, 3);
    check_fused(PLAN(1, &coarse, chain), 1, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, chain), 2, FUSED_NOT, 0);
    check_fused(PLAN(1, &coarse, rows), 0, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, types), 0, FUSED_CHAIN, 2); /* of f64, and one of f32 */
    check_fused(PLAN(1, &coarse, types), 1, FUSED_NOT, 0);
    check_fused(PLAN(1, &coarse, types), 2, FUSED_CHAIN, 2);
}
END_TEST

/* A chain is of one type; casts to others end in memory, casts from others begin there. */
START_TEST(casts_are_of_the_chains_on_a_gpu_that_they_lead_into_and_out_of)
{
    trama_value *narrow = trama_cast(x, TRAMA_BF16), *wide = trama_exp(trama_cast(narrow, TRAMA_F32)),
                *back = trama_tanh(trama_cast(trama_cast(trama_neg(x), TRAMA_F32), TRAMA_F64)),
                *whole = trama_neg(trama_cast(trama_cast(x, TRAMA_I32), TRAMA_F64));
    on_gpu = true;
    check_fused(PLAN(1, &coarse, narrow, wide), 0, FUSED_CHAIN, 2); /* of bf16 */
    check_fused(PLAN(1, &coarse, narrow, wide), 2, FUSED_NOT, 0);
    check_fused(PLAN(1, &coarse, back), 0, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, back), 1, FUSED_NOT, 0);
    check_fused(PLAN(1, &coarse, back), 2, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, whole), 1, FUSED_NOT, 0); /* no float is cast to a float */
    check_fused(PLAN(1, &coarse, whole), 2, FUSED_NOT, 0);
}
END_TEST

static trama_value *negated(trama_value *v, int times)
{
    while (times-- > 0)
        v = trama_neg(v);
    return v;
}

START_TEST(a_chain_on_a_gpu_is_cut_after_16_calls_behind_casts_and_after_updates)
{
    static const int lengths[] = {16, 17, 33};
    trama_value *types = negated(trama_cast(negated(x, 3), TRAMA_F32), 2), *lines = trama_softmax(negated(x, 2), 1);
    trama_value *chains[3];
    for (int k = 0; k < 3; k++)
        chains[k] = negated(x, lengths[k]);
    on_gpu = true;
    for (int k = 0; k < 3; k++) {
        const plan *got = PLAN(1, &coarse, chains[k]);
        for (int i = 0; i < lengths[k]; i++) {
            const int end = (i / 16 + 1) * 16 < lengths[k] ? (i / 16 + 1) * 16 : lengths[k];
            check_fused(got, i, end - i > 1 ? FUSED_CHAIN : FUSED_NOT, end - i > 1 ? end - i : 0);
        }
    }
    const plan *cut = PLAN(1, &coarse, types);
    check_fused(cut, 0, FUSED_CHAIN, 4); /* with the cast */
    check_fused(cut, 3, FUSED_NOT, 0);
    check_fused(cut, 4, FUSED_CHAIN, 2);
    check_fused(PLAN(1, &coarse, lines), 0, FUSED_CHAIN, 2);
}
END_TEST

/* The gradient of the sum of y = x w is a product of x and of ones that are as many as y. */
START_TEST(an_op_whose_result_lends_its_shape_alone_is_not_computed)
{
    trama_value *y = trama_matmul(x, w), *d = trama_gradient(trama_sum(y), w), *z = trama_exp(y);
    ck_assert_int_eq(calls(PLAN(1, &coarse, d)), 2);
    ck_assert_int_eq(calls(PLAN(1, &coarse, d, y)), 3);
    ck_assert_int_eq(calls(PLAN(1, &coarse, d, z)), 4);
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
        processes_that_share_a_place_compute_equal_boxes_once,
        planning_twice_gives_the_same_plan,
        a_product_is_computed_into_the_state_that_it_is_subtracted_from,
        a_gpu_adds_no_product_whose_factor_is_an_operand,
        a_product_on_a_gpu_takes_the_chain_behind_it_on_the_way,
        calls_that_keep_the_order_of_elements_go_chunk_by_chunk_or_in_one_kernel,
        casts_are_of_the_chains_on_a_gpu_that_they_lead_into_and_out_of,
        a_chain_on_a_gpu_is_cut_after_16_calls_behind_casts_and_after_updates,
        an_op_whose_result_lends_its_shape_alone_is_not_computed,
    };
    return suite_run("fuse", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
