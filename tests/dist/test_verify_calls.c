/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier must notice every wrong decision about which calls of a step are done as one. Each test changes a plan
 * that is right, and names the reason that the verifier must give. */
#include <check.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_op_define.h"
#include "trama_ops.h"
#include "verify_calls.h"
#include "verify_plan.h"

static trama_program *p;
static trama_value *x, *w, *row;
static machine *table;
static pair both;
static bool is_planned, on_gpu;

static const trama_init init = {-1, 1, 1, 1};

static void set_up(void)
{
    is_planned = on_gpu = false;
    p = trama_program_create();
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(12, 8));
    w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(8, 8), &init);
    row = trama_parameter(p, "row", TRAMA_F64, TRAMA_SHAPE(8), &init);
}

static void drop_plan(void)
{
    if (is_planned)
        pair_free(&both);
    is_planned = false;
    machine_destroy(&table);
}

static void tear_down(void)
{
    drop_plan();
    trama_program_destroy(&p);
}

/* The plan of one rank of one place for a target of these values, until the next plan; the verifier accepts it. All
 * values are recorded before the first plan. */
static const plan *plan_of(int n, trama_value *const *values)
{
    char name[] = {(char)('a' + p->targets.n), 0};
    const plan_options coarse = {.grain_flops = 1 << 30, .grain_bytes = 1 << 30};
    dense data = dense_random(x->shape, 1, -1, 1, false);
    trama_target *t = trama_target_at(TRAMA_HERE, p, name, n, values);
    drop_plan();
    table = machine_uniform(1, 1);
    table->places[0].gpu = on_gpu;
    both = pair_new(p, table, &(simulation_options){.plan = coarse}, "calls");
    is_planned = true;
    pair_feed(&both, x, &data);
    pair_run(&both, t, 1e-12);
    dense_free(&data);
    const plan *made = simulation_plan(both.many, 0);
    ck_assert_msg(!calls_verify(made, p), "%s", trama_error());
    return made;
}
#define PLAN(...)                                                                                                      \
    plan_of(sizeof((trama_value *[]){__VA_ARGS__}) / sizeof(trama_value *), (trama_value *[]){__VA_ARGS__})

/* The one step of several calls. */
static const plan_step *step_of(const plan *made)
{
    for (int k = 0; k < made->steps.n; k++)
        if (made->steps.at[k].kind == STEP_COMPUTE && made->steps.at[k].n_calls > 1)
            return &made->steps.at[k];
    ck_abort_msg("no step of several calls");
    return NULL;
}

static plan_call *call_of(const plan *made, int i)
{
    return &made->calls.at[step_of(made)->call + i];
}

static plan_operand *operand_of(const plan *made, int operand)
{
    return &made->operands.at[step_of(made)->operand + operand];
}

static void expect(const plan *made, const char *reason)
{
    ck_assert_msg(calls_verify(made, p) == TRAMA_E_SYSTEM, "'%s' goes unnoticed", reason);
    ck_assert_msg(strstr(trama_error(), reason) != NULL, "no '%s' in: %s", reason, trama_error());
    ck_assert_msg(strstr(trama_error(), "test_verify_calls.c") != NULL, "no line in: %s", trama_error());
}

/* Another decision for call i, and the reason against it. The plan is as before afterwards. */
static void expect_run(const plan *made, int i, fused_kind kind, int n, const char *reason)
{
    const fused_run before = call_of(made, i)->fused;
    call_of(made, i)->fused = (fused_run){kind, n};
    expect(made, reason);
    call_of(made, i)->fused = before;
    ck_assert_msg(!calls_verify(made, p), "%s", trama_error());
}

static trama_value *sgd(trama_value *state, trama_value *gradient, double rate)
{
    trama_value *in[] = {state, gradient};
    return trama_apply(trama_op_find("sgd"), 2, in, &(trama_attributes){.real = {rate}});
}

static trama_value *squares(void)
{
    return trama_matmul_trans(x, x, true, false);
}

START_TEST(a_run_beyond_its_step_or_of_no_kind_is_noticed)
{
    const plan *made = PLAN(sgd(w, squares(), 0.5));
    expect_run(made, 0, FUSED_ADDITION, 3, "beyond the calls");
    expect_run(made, 1, FUSED_ADDITION, 2, "beyond the calls");
    expect_run(made, 0, FUSED_ADDITION, 0, "beyond the calls");
    expect_run(made, 0, FUSED_ADDITION, -1, "beyond the calls");
    expect_run(made, 0, FUSED_ADDITION, 1, "two calls");
    expect_run(made, 0, FUSED_NOT, 2, "counts others");
    expect_run(made, 0, (fused_kind)(FUSED_CHAIN + 1), 2, "kind is unknown");
}
END_TEST

START_TEST(another_kind_than_the_ops_allow_is_noticed)
{
    trama_value *updated = sgd(w, squares(), 0.5), *chain = trama_exp(trama_neg(x)),
                *epilogue = trama_relu(trama_add(trama_neg(x), row));
    const plan *made = PLAN(updated);
    expect_run(made, 0, FUSED_EPILOGUE, 2, "only GPUs");
    expect_run(made, 0, FUSED_CHAIN, 2, "only GPUs");
    expect_run(made, 0, FUSED_CHUNKS, 2, "not pointwise");
    made = PLAN(chain);
    expect_run(made, 0, FUSED_ADDITION, 2, "does not add");
    on_gpu = true;
    made = PLAN(updated);
    expect_run(made, 0, FUSED_EPILOGUE, 2, "updates a state");
    expect_run(made, 0, FUSED_CHAIN, 2, "not pointwise");
    made = PLAN(epilogue);
    expect_run(made, 0, FUSED_EPILOGUE, 2, "no product");
}
END_TEST

START_TEST(an_addition_that_loses_a_result_or_a_value_is_noticed)
{
    trama_value *product = squares(), *number = trama_state(p, "number", TRAMA_F64, TRAMA_SCALAR, &init);
    trama_value *in[] = {w, product, number, number};
    trama_value *accumulated = trama_apply(trama_op_find("accumulate"), 4, in, NULL);
    trama_value *read = sgd(w, product, 0.5), *still = sgd(w, product, 0);
    expect_run(PLAN(read, product), 0, FUSED_ADDITION, 2, "for other steps");
    expect_run(PLAN(still), 0, FUSED_ADDITION, 2, "factor");
    on_gpu = true;
    expect_run(PLAN(accumulated), 0, FUSED_ADDITION, 2, "factor");
}
END_TEST

START_TEST(an_addition_into_another_buffer_than_the_state_is_noticed)
{
    const plan *made = PLAN(sgd(w, squares(), 0.5));
    plan_call *update = call_of(made, 1);
    const plan_call before = *update;
    update->in[0] = call_of(made, 0)->in[0];
    expect(made, "another buffer than the state");
    *update = before;
    operand_of(made, update->out[0])->access = ACCESS_WRITE;
    expect(made, "another buffer than the state");
    operand_of(made, update->out[0])->access = ACCESS_UPDATE;
    update->in[1] = call_of(made, 0)->in[0];
    expect(made, "does not add the product");
    *update = before;
    plan_region *state = &operand_of(made, update->out[0])->region;
    operand_of(made, call_of(made, 0)->in[0])->region = *state;
    expect(made, "reads the memory");
    state->box.n[0]--;
    expect(made, "different sizes");
}
END_TEST

START_TEST(epilogues_that_lose_a_result_or_update_are_noticed)
{
    on_gpu = true;
    trama_value *product = trama_matmul(x, w), *rows = trama_relu(trama_add(product, row)),
                *gated = trama_mul(trama_relu(product), product), *updated = sgd(w, trama_neg(squares()), 0.5);
    const plan *made = PLAN(gated);
    expect_run(made, 0, FUSED_EPILOGUE, 1, "1 to 16 epilogues");
    expect_run(made, 0, FUSED_EPILOGUE, 2, "read by another call");
    made = PLAN(updated);
    expect_run(made, 0, FUSED_EPILOGUE, 2, "goes on behind it");
    expect_run(made, 0, FUSED_EPILOGUE, 3, "updates a state");
    made = PLAN(rows);
    operand_of(made, call_of(made, 0)->out[0])->access = ACCESS_WRITE;
    expect(made, "for other steps");
    operand_of(made, call_of(made, 0)->out[0])->access = ACCESS_NONE;
    const plan_region before = operand_of(made, call_of(made, 0)->in[0])->region;
    operand_of(made, call_of(made, 0)->in[0])->region = operand_of(made, call_of(made, 2)->out[0])->region;
    expect(made, "reads memory that an epilogue writes");
    operand_of(made, call_of(made, 0)->in[0])->region = before;
    made->gpus.at[0] = false;
    expect(made, "only GPUs");
}
END_TEST

START_TEST(calls_that_change_the_order_of_elements_are_noticed)
{
    trama_value *rows = trama_exp(trama_add(x, row)), *chain = trama_exp(trama_tanh(trama_neg(x)));
    expect_run(PLAN(rows), 0, FUSED_CHUNKS, 2, "another order of elements");
    const plan *made = PLAN(chain);
    expect_run(made, 0, FUSED_CHUNKS, 2, "not all calls");
    expect_run(made, 1, FUSED_CHUNKS, 2, "not all calls");
    expect_run(made, 0, FUSED_CHUNKS, 4, "beyond the calls");
}
END_TEST

START_TEST(a_chain_over_several_dtypes_or_of_an_own_op_is_noticed)
{
    trama_value *types = trama_exp(trama_tanh(trama_cast(trama_neg(x), TRAMA_F32)));
    trama_value *whole = trama_neg(trama_cast(trama_cast(trama_neg(x), TRAMA_I32), TRAMA_F64));
    trama_value *back = trama_tanh(trama_cast(trama_cast(trama_neg(x), TRAMA_F32), TRAMA_F64));
    on_gpu = true;
    const plan *made = PLAN(types);
    expect_run(made, 0, FUSED_CHAIN, 4, "one float type");
    expect_run(made, 0, FUSED_CHAIN, 3, "one float type");
    expect_run(made, 2, FUSED_CHAIN, 1, "one call alone");
    made = PLAN(whole);
    expect_run(made, 0, FUSED_CHAIN, 2, "a cast is not to or from");
    expect_run(made, 2, FUSED_CHAIN, 2, "a cast is not to or from");
    expect_run(PLAN(back), 0, FUSED_CHAIN, 3, "reads what one of its calls has cast");
}
END_TEST

/* w - rate (w + x[:8]): in chunks no call may write an element of w that another reads as another element. */
START_TEST(chunks_that_overwrite_what_later_chunks_read_are_noticed)
{
    trama_value *other = trama_parameter(p, "other", TRAMA_F64, TRAMA_SHAPE(8, 8), &init);
    const plan *made = PLAN(sgd(w, trama_add(w, other), 0.5));
    ck_assert_int_eq(call_of(made, 0)->fused.kind, FUSED_CHUNKS);
    plan_operand *o = operand_of(made, call_of(made, 0)->in[1]);
    o->region = operand_of(made, call_of(made, 0)->in[0])->region;
    o->region.box.lo[0]++;
    expect(made, "reads elsewhere");
    o->region.box.lo[0] += 7; /* behind w: they share no element */
    ck_assert_msg(!calls_verify(made, p), "%s", trama_error());
}
END_TEST

START_TEST(a_value_that_a_step_keeps_to_itself_is_used_by_it_alone_and_made_first)
{
    const plan *made = PLAN(trama_exp(trama_tanh(trama_neg(x))), trama_matmul(x, w));
    const plan_region kept = operand_of(made, call_of(made, 0)->out[0])->region;
    plan_operand *elsewhere = NULL;
    for (int k = 0; k < made->steps.n; k++)
        if (made->steps.at[k].kind == STEP_COMPUTE && made->steps.at[k].n_calls == 1)
            elsewhere = &made->operands.at[made->steps.at[k].operand];
    ck_assert_ptr_nonnull(elsewhere);
    const plan_operand before = *elsewhere;
    elsewhere->region = kept;
    expect(made, "another step uses a value");
    *elsewhere = before;
    plan_call *first = call_of(made, 0), *second = call_of(made, 1);
    const int made_by_first = second->in[0];
    second->in[0] = second->out[0];
    expect(made, "no earlier call has made");
    second->in[0] = (signed char)made_by_first;
    ck_assert_msg(!calls_verify(made, p), "%s", trama_error());
    first->out[0] = first->in[0];
    expect(made, "no earlier call has made");
}
END_TEST

START_TEST(the_verifier_of_plans_looks_at_calls)
{
    const plan *made = PLAN(sgd(w, squares(), 0.5));
    ck_assert_msg(!plan_verify(&made, 1, p), "%s", trama_error());
    call_of(made, 0)->fused.n = 3;
    ck_assert(plan_verify(&made, 1, p) == TRAMA_E_SYSTEM && strstr(trama_error(), "beyond the calls"));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_run_beyond_its_step_or_of_no_kind_is_noticed,
        another_kind_than_the_ops_allow_is_noticed,
        an_addition_that_loses_a_result_or_a_value_is_noticed,
        an_addition_into_another_buffer_than_the_state_is_noticed,
        epilogues_that_lose_a_result_or_update_are_noticed,
        calls_that_change_the_order_of_elements_are_noticed,
        a_chain_over_several_dtypes_or_of_an_own_op_is_noticed,
        chunks_that_overwrite_what_later_chunks_read_are_noticed,
        a_value_that_a_step_keeps_to_itself_is_used_by_it_alone_and_made_first,
        the_verifier_of_plans_looks_at_calls,
    };
    return suite_run("verify_calls", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
