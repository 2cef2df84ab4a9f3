/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of programs, ops and optimizers that needs no context. */
#include <math.h>

#include "null_program.h"
#include "trama_complete.h"
#include "trama_composed.h"
#include "trama_onnx.h"
#include "trama_op_define.h"
#include "trama_optimizer.h"
#include "trama_rule.h"

#define W TRAMA_HERE

/* ---- Programs ---- */

START_TEST(programs)
{
    char *words = NULL;
    trama_program *none = NULL;
    trama_program_destroy(NULL);
    trama_program_destroy(&none);
    GIVES(TRAMA_E_ARGUMENT, trama_program_status(NULL));
    ck_assert_str_eq(trama_program_error(NULL), "");
    trama_program_clear_error(NULL);
    SAYS(p, trama_program_text(NULL));
    REFUSES(trama_complete_text(NULL, 1, &words));
    REFUSES(trama_complete_text(p, 1, NULL));
}
END_TEST

START_TEST(leaves)
{
    double number = 1;
    trama_init init = {.low = 1, .high = 1};
    SAYS(p, trama_input_at(W, NULL, "y", TRAMA_F32, shape));
    SAYS(p, trama_input_at(W, p, NULL, TRAMA_F32, shape));
    SAYS(p, trama_parameter_at(W, NULL, "y", TRAMA_F32, shape, &init));
    SAYS(p, trama_parameter_at(W, p, NULL, TRAMA_F32, shape, &init));
    ck_assert_ptr_nonnull(trama_parameter_at(W, p, "p1", TRAMA_F32, shape, NULL));
    SAYS(p, trama_state_at(W, NULL, "y", TRAMA_F32, shape, &init));
    SAYS(p, trama_state_at(W, p, NULL, TRAMA_F32, shape, &init));
    ck_assert_ptr_nonnull(trama_state_at(W, p, "s1", TRAMA_F32, shape, NULL));
    SAYS(p, trama_constant_at(W, NULL, TRAMA_F64, TRAMA_SCALAR, &number));
    SAYS(p, trama_constant_at(W, p, TRAMA_F64, TRAMA_SCALAR, NULL));
    ck_assert_ptr_nonnull(trama_constant_at(W, p, TRAMA_F64, TRAMA_SHAPE(0), NULL));
    trama_value *state = trama_state_at(W, p, "s2", TRAMA_F32, shape, NULL);
    SAYS(p, trama_initial_at(W, state, NULL));
    PASSES(trama_initial_at(W, NULL, &number));
    SAYS(p, trama_fill_at(W, NULL, TRAMA_F64, shape, 0));
    SAYS(p, trama_arange_at(W, NULL, TRAMA_F64, 3, 0, 1));
    SAYS(p, trama_eye_at(W, NULL, TRAMA_F64, 3, 3));
    SAYS(p, trama_uniform_at(W, NULL, TRAMA_F64, shape, 0, 1, 0, 0));
    SAYS(p, trama_uniform_fixed_at(W, NULL, TRAMA_F64, shape, 0, 1, 0, 0, 0));
    SAYS(p, trama_run_counter_at(W, NULL));
}
END_TEST

START_TEST(questions_about_values)
{
    GIVES(-1, trama_value_shape(NULL).ndim);
    GIVES(TRAMA_F32, trama_value_dtype(NULL));
    ck_assert_ptr_nonnull(trama_value_name(NULL));
    GIVES(0, trama_value_operands(NULL));
    GIVES(0, trama_value_results(NULL));
    GIVES(NULL, trama_value_operand(NULL, 0));
    PASSES(trama_result(NULL, 0));
    PASSES(trama_value_rename_at(W, NULL, "name"));
    SAYS(p, trama_value_rename_at(W, x, NULL));
}
END_TEST

START_TEST(annotations)
{
    const char *layouts[] = {NULL, NULL, "R,R"};
    int order[] = {0};
    trama_value *y = trama_matmul(x, w);
    PASSES(trama_shard_at(W, NULL, mesh, "R,R"));
    SAYS(p, trama_shard_at(W, x, NULL, "R,R"));
    SAYS(p, trama_shard_at(W, x, mesh, NULL));
    PASSES(trama_shard_op_at(W, NULL, mesh, 3, layouts));
    SAYS(p, trama_shard_op_at(W, y, NULL, 3, layouts));
    SAYS(p, trama_shard_op_at(W, y, mesh, 3, NULL));
    REFUSES(trama_stage_at(W, NULL, 0));
    PASSES(trama_offload_at(W, NULL, "cpu"));
    SAYS(p, trama_offload_at(W, x, NULL));
    REFUSES(trama_order_at(W, NULL, 1, order));
    REFUSES(trama_order_at(W, p, 1, NULL));
    REFUSES(trama_search_layouts_at(W, NULL));
    REFUSES(trama_search_layouts_within_at(W, NULL, 1));
    REFUSES(trama_search_layouts_in_memory_at(W, NULL, 1));
    REFUSES(trama_completion_state_bytes(NULL, NULL));
    REFUSES(trama_completion_memory_bytes(NULL, NULL));
    trama_program_clear_error(p);
    PASSES(trama_reshard_at(W, NULL, mesh, "R,R"));
    SAYS(p, trama_reshard_at(W, x, NULL, "R,R"));
    SAYS(p, trama_reshard_at(W, x, mesh, NULL));
}
END_TEST

START_TEST(scopes)
{
    const char *layouts[] = {"x", "R,R"}, *none[] = {NULL};
    REFUSES(trama_shard_begin_at(W, NULL, mesh, 2, layouts));
    REFUSES(trama_shard_begin_at(W, p, NULL, 2, layouts));
    REFUSES(trama_shard_begin_at(W, p, mesh, 2, NULL));
    REFUSES(trama_shard_end_at(W, NULL));
    trama_program_clear_error(p);
    TAKES(trama_shard_begin_at(W, p, mesh, 0, NULL));
    TAKES(trama_shard_end_at(W, p));
    TAKES(trama_shard_begin_at(W, p, mesh, 1, none));
    TAKES(trama_shard_end_at(W, p));
}
END_TEST

START_TEST(annotations_read_back)
{
    trama_value *y = trama_shard_op(trama_matmul(x, w), mesh, "R,R", NULL, "R,R");
    PASSES(trama_annotation_mesh(NULL));
    PASSES(trama_annotation_layout(NULL, &layout));
    PASSES(trama_annotation_layout(y, NULL));
    PASSES(trama_annotation_device(NULL));
    GIVES(TRAMA_NO_STAGE, trama_annotation_stage(NULL));
    PASSES(trama_annotation_op_mesh(NULL));
    PASSES(trama_annotation_operand(NULL, 0, &layout));
    PASSES(trama_annotation_operand(y, 0, NULL));
    PASSES(trama_annotation_result(NULL, 0, &layout));
    PASSES(trama_annotation_result(y, 0, NULL));
    PASSES(trama_annotation_clear_at(W, NULL));
}
END_TEST

START_TEST(completions)
{
    trama_completion *c = NULL, *none = NULL;
    trama_value *y = trama_matmul(x, w);
    REFUSES(trama_completion_create(NULL, 1, &c));
    REFUSES(trama_completion_create(p, 1, NULL));
    TAKES(trama_completion_create(p, 1, &c));
    PASSES(trama_completion_mesh(NULL, y));
    PASSES(trama_completion_mesh(c, NULL));
    PASSES(trama_completion_layout(NULL, y, &layout));
    PASSES(trama_completion_layout(c, NULL, &layout));
    PASSES(trama_completion_layout(c, y, NULL));
    PASSES(trama_completion_device(NULL, y));
    PASSES(trama_completion_device(c, NULL));
    GIVES(TRAMA_NO_STAGE, trama_completion_stage(NULL, y));
    GIVES(TRAMA_NO_STAGE, trama_completion_stage(c, NULL));
    PASSES(trama_completion_op_mesh(NULL, y));
    PASSES(trama_completion_op_mesh(c, NULL));
    PASSES(trama_completion_operand(NULL, y, 0, &layout));
    PASSES(trama_completion_operand(c, NULL, 0, &layout));
    PASSES(trama_completion_operand(c, y, 0, NULL));
    PASSES(trama_completion_result(NULL, y, 0, &layout));
    PASSES(trama_completion_result(c, NULL, 0, &layout));
    PASSES(trama_completion_result(c, y, 0, NULL));
    REFUSES(trama_completion_bytes(NULL, NULL, NULL));
    TAKES(trama_completion_bytes(c, NULL, NULL));
    trama_completion_destroy(&c);
    trama_completion_destroy(&none);
    trama_completion_destroy(NULL);
}
END_TEST

START_TEST(targets_and_gradients)
{
    SAYS(p, trama_target_at(W, NULL, "t", 1, &x));
    SAYS(p, trama_target_at(W, p, NULL, 1, &x));
    SAYS(p, trama_target_at(W, p, "t", 1, NULL));
    PASSES(trama_gradient_at(W, NULL, x));
    PASSES(trama_gradient_at(W, loss, NULL));
    PASSES(trama_gradient_merge_at(W, NULL, 2, TRAMA_MERGE_AVG));
    PASSES(trama_merged_gradient_at(W, NULL, w));
    trama_optimizer sgd = trama_sgd(0.1);
    trama_value *step = trama_minimize(loss, &sgd);
    PASSES(trama_merged_gradient_at(W, step, NULL));
    PASSES(trama_step_value_at(W, NULL, TRAMA_STEP_LR));
    PASSES(trama_assign_at(W, NULL, x));
    PASSES(trama_assign_at(W, w, NULL));
    PASSES(trama_assign_if_at(W, NULL, w, w));
    PASSES(trama_assign_if_at(W, w, NULL, w));
    PASSES(trama_assign_if_at(W, w, w, NULL));
}
END_TEST

/* ---- Ops ---- */

START_TEST(ops)
{
    int dims[] = {0};
    int64_t offset[] = {0, 0};
#define UNARY(name, ...) PASSES(trama_##name##_at(W, NULL));
#define BINARY(name, ...)                                                                                              \
    PASSES(trama_##name##_at(W, NULL, x));                                                                             \
    PASSES(trama_##name##_at(W, x, NULL));
#define COMPARISON(name, ...) BINARY(name, )
#define PREDICATE(name, ...) UNARY(name, )
#define UNARY_BITS(name, ...) UNARY(name, )
#define BINARY_BITS(name, ...) BINARY(name, )
#define REDUCTION(name, ...)                                                                                           \
    PASSES(trama_##name##_at(W, NULL, 1, dims, false));                                                                \
    SAYS(p, trama_##name##_at(W, x, 1, NULL, false));
#include "ops.def"
    PASSES(trama_stop_gradient_at(W, NULL));
    PASSES(trama_matmul_at(W, NULL, w, false, false));
    PASSES(trama_matmul_at(W, x, NULL, false, false));
    PASSES(trama_scale_at(W, NULL, 2));
    PASSES(trama_affine_at(W, NULL, 1, 2));
    PASSES(trama_div_scalar_at(W, NULL, 2));
    PASSES(trama_scalar_div_at(W, 2, NULL));
    PASSES(trama_clamp_at(W, NULL, 0, 1));
    PASSES(trama_squeeze_at(W, NULL, 1));
    PASSES(trama_unsqueeze_at(W, NULL, 1));
    PASSES(trama_flatten_at(W, NULL, 0, 1));
    PASSES(trama_one_hot_at(W, NULL, 3, TRAMA_F32));
    PASSES(trama_tril_at(W, NULL, 0));
    PASSES(trama_triu_at(W, NULL, 0));
    PASSES(trama_log_softmax_at(W, NULL, 0));
    PASSES(trama_outer_at(W, NULL, x));
    PASSES(trama_outer_at(W, trama_slice_at(W, x, 0, 0, 1), NULL));
    PASSES(trama_any_true_at(W, NULL, 1, dims, false));
    SAYS(p, trama_any_true_at(W, x, 1, NULL, false));
    PASSES(trama_all_true_at(W, NULL, 1, dims, false));
    SAYS(p, trama_all_true_at(W, x, 1, NULL, false));
    PASSES(trama_norm_1_at(W, NULL, 1, dims, false));
    SAYS(p, trama_norm_1_at(W, x, 1, NULL, false));
    PASSES(trama_norm_2_at(W, NULL, 1, dims, false));
    SAYS(p, trama_norm_2_at(W, x, 1, NULL, false));
    PASSES(trama_log_sum_exp_at(W, NULL, 1, dims, false));
    SAYS(p, trama_log_sum_exp_at(W, x, 1, NULL, false));
    PASSES(trama_variance_at(W, NULL, 1, dims, false, 0));
    SAYS(p, trama_variance_at(W, x, 1, NULL, false, 0));
    PASSES(trama_deviation_at(W, NULL, 1, dims, false, 0));
    SAYS(p, trama_deviation_at(W, x, 1, NULL, false, 0));
    PASSES(trama_elu_at(W, NULL, 1));
    PASSES(trama_celu_at(W, NULL, 1));
    PASSES(trama_leaky_relu_at(W, NULL, 1));
    PASSES(trama_select_at(W, NULL, x, x));
    PASSES(trama_select_at(W, x, NULL, x));
    PASSES(trama_select_at(W, x, x, NULL));
    PASSES(trama_masked_fill_at(W, NULL, x, 0));
    PASSES(trama_masked_fill_at(W, x, NULL, 0));
    PASSES(trama_clip_at(W, NULL, x, x));
    ck_assert_ptr_eq(trama_clip_at(W, x, NULL, NULL), x);
    PASSES(trama_cast_at(W, NULL, TRAMA_F32));
    PASSES(trama_argmax_at(W, NULL, 0, false));
    PASSES(trama_argmin_at(W, NULL, 0, false));
    PASSES(trama_argmax_last_at(W, NULL, 0, false));
    PASSES(trama_argmin_last_at(W, NULL, 0, false));
    PASSES(trama_softmax_at(W, NULL, 0));
    PASSES(trama_transpose_at(W, NULL, dims));
    ck_assert_ptr_nonnull(trama_transpose_at(W, x, NULL));
    PASSES(trama_reshape_at(W, NULL, shape));
    PASSES(trama_reshape_like_at(W, NULL, shape, x));
    PASSES(trama_reshape_like_at(W, x, shape, NULL));
    PASSES(trama_window_at(W, NULL, offset, shape));
    SAYS(p, trama_window_at(W, x, NULL, shape));
    PASSES(trama_slice_at(W, NULL, 0, 0, 1));
    PASSES(trama_pad_at(W, NULL, 0, 0, 1));
    PASSES(trama_shift_at(W, NULL, 0, 1));
}
END_TEST

START_TEST(ops_by_their_descriptors)
{
    const trama_op *neg = trama_op_find("neg");
    trama_attributes none = {.integer = {0}};
    trama_value *nothing = NULL;
    trama_layout in[] = {layout}, out[] = {layout}, to[1];
    trama_value *y = trama_neg(x);
    PASSES(trama_op_find(NULL));
    SAYS(p, trama_apply_at(W, p, NULL, 1, &x, &none));
    SAYS(p, trama_apply_at(W, NULL, NULL, 1, &x, &none));
    SAYS(p, trama_apply_at(W, p, neg, 1, NULL, &none));
    PASSES(trama_apply_at(W, NULL, neg, 1, &nothing, &none));
    ck_assert_ptr_nonnull(trama_apply_at(W, NULL, neg, 1, &x, NULL));
    REFUSES(trama_rule_infer_at(W, NULL, mesh, in, out, to, to));
    REFUSES(trama_rule_infer_at(W, y, NULL, in, out, to, to));
    TAKES(trama_rule_infer_at(W, y, mesh, NULL, out, to, to));
    TAKES(trama_rule_infer_at(W, y, mesh, in, NULL, to, to));
    TAKES(trama_rule_infer_at(W, y, mesh, in, out, NULL, to));
    TAKES(trama_rule_infer_at(W, y, mesh, in, out, to, NULL));
}
END_TEST

static trama_status compute(const trama_call *call)
{
    (void)call;
    return TRAMA_OK;
}

static int looked_at;

static void gradient(const trama_op_gradient *g)
{
    trama_value *d = trama_op_result_gradient(g, 0);
    GIVES(NULL, trama_op_operand(NULL, 0));
    GIVES(NULL, trama_op_result(NULL, 0));
    GIVES(NULL, trama_op_result_gradient(NULL, 0));
    GIVES(false, trama_op_wants(NULL, 0));
    trama_op_set_gradient(NULL, 0, d);
    trama_op_set_gradient(g, 0, NULL);
    trama_op_set_gradient(g, 0, d);
    looked_at++;
}

static trama_status choose_type(const trama_op_use *use, trama_dtype *dtype)
{
    REFUSES(trama_op_refuse(NULL, TRAMA_E_DTYPE, "nothing"));
    REFUSES(trama_op_refuse(use, TRAMA_E_DTYPE, no_text));
    *dtype = use->dtype[0];
    looked_at++;
    return TRAMA_OK;
}

START_TEST(ops_of_ones_own)
{
    trama_op_definition d = {.name = "mine",
                             .n_in = 1,
                             .n_out = 1,
                             .rule = "...->...",
                             .cpu = compute,
                             .gradient = gradient,
                             .dtype = choose_type};
    const trama_op *op = NULL;
    REFUSES(trama_op_define_at(W, NULL, &op));
    REFUSES(trama_op_define_at(W, &d, NULL));
    trama_op_destroy(NULL);
    trama_op_destroy(&op);
    GIVES(TRAMA_E_KERNEL, trama_kernel_fail(no_text));
    TAKES(trama_op_define_at(W, &d, &op));
    ck_assert_ptr_nonnull(trama_gradient(trama_sum(trama_apply(op, 1, &w, NULL)), w));
    ck_assert_int_eq(looked_at, 2);
    trama_op_destroy(&op);
}
END_TEST

/* ---- Optimizers ---- */

static void rule(const trama_update *u)
{
    trama_value *g = trama_update_gradient(u);
    PASSES(trama_update_gradient(NULL));
    PASSES(trama_update_lr(NULL));
    PASSES(trama_update_step(NULL));
    PASSES(trama_update_taken(NULL));
    PASSES(trama_update_slot(NULL, "b"));
    SAYS(p, trama_update_slot(u, NULL));
    trama_update_set(NULL, u->parameter, g);
    trama_update_set(u, NULL, g);
    trama_update_set(u, u->parameter, NULL);
    trama_update_set(u, u->parameter, g);
    looked_at++;
}

START_TEST(optimizers)
{
    trama_optimizer mine = trama_optimizer_define("mine", 0.1, rule), unnamed = trama_optimizer_define(NULL, 0.1, rule);
    trama_optimizer idle = trama_optimizer_define("idle", 0.1, NULL), grouped = trama_sgd(0.1);
    SAYS(p, trama_minimize_at(W, loss, NULL));
    PASSES(trama_minimize_at(W, NULL, &mine));
    SAYS(p, trama_minimize_at(W, loss, &unnamed));
    SAYS(p, trama_minimize_at(W, loss, &idle));
    grouped.n_groups = 1;
    SAYS(p, trama_minimize_at(W, loss, &grouped));
    grouped.n_groups = -1;
    SAYS(p, trama_minimize_at(W, loss, &grouped));
    ck_assert_ptr_nonnull(trama_minimize_at(W, loss, &mine));
    ck_assert_int_eq(looked_at, 1);
}
END_TEST

START_TEST(imported_models)
{
    trama_onnx *none = NULL;
    trama_onnx_source source = {.model = NULL}, empty = {.model = ""};
    trama_onnx_options dims = {.n_dims = 1}, constants = {.n_constants = 1};
    SAYS(p, trama_onnx_load_at(W, NULL, "model.onnx", NULL));
    SAYS(p, trama_onnx_load_at(W, p, NULL, &dims));
    SAYS(p, trama_onnx_load_at(W, p, "model.onnx", NULL));
    SAYS(p, trama_onnx_create_at(W, NULL, &empty, NULL));
    SAYS(p, trama_onnx_create_at(W, p, NULL, NULL));
    SAYS(p, trama_onnx_create_at(W, p, &source, NULL));
    SAYS(p, trama_onnx_create_at(W, p, &empty, &dims));
    SAYS(p, trama_onnx_create_at(W, p, &empty, &constants));
    trama_onnx_destroy(NULL);
    trama_onnx_destroy(&none);
    GIVES(0, trama_onnx_count(NULL, TRAMA_ONNX_INPUTS));
    PASSES(trama_onnx_number(NULL, TRAMA_ONNX_INPUTS, 0));
    PASSES(trama_onnx_name(NULL, TRAMA_ONNX_INPUTS, 0));
    PASSES(trama_onnx_find(NULL, "x"));
    PASSES(trama_onnx_find(none, NULL));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        programs,
        leaves,
        annotations,
        ops,
        optimizers,
        ops_of_ones_own,
        questions_about_values,
        scopes,
        annotations_read_back,
        completions,
        targets_and_gradients,
        ops_by_their_descriptors,
        imported_models,
    };
    return suite_run("nulls", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
