/* SPDX-License-Identifier: Apache-2.0 */
/* The list of ops: the slots of attributes that C code uses are those that the list names. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "suite.h"

/* The slot of a name in "axis flag | real perm[8]", counted anew behind the bar; -1 where it is not there. */
static int slot_in(const char *names, const char *wanted)
{
    size_t length = strlen(wanted);
    int slot = 0;
    for (const char *at = names; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        const char *name = at + (*at == '*');
        if (!strncmp(name, wanted, length) && strchr(" [", name[length])) /* or the end */
            return slot;
        size_t n = strcspn(at, "[ ");
        slot = *at == '|' ? 0 : slot + (at[n] == '[' ? atoi(at + n + 1) : *at != '\0');
    }
    return -1;
}

static const struct {
    const trama_op *op;
    const char *name;
    int slot;
} used[] = {
    {&trama_op_matmul, "trans_x", MATMUL_TRANS_X},
    {&trama_op_matmul, "trans_y", MATMUL_TRANS_Y},
    {&trama_op_matmul, "sum_batch", MATMUL_SUM_BATCH},
    {&trama_op_sum, "axes", REDUCE_AXES},
    {&trama_op_sum, "keep_dim", REDUCE_KEEP_DIM},
    {&trama_op_argmax, "axes", REDUCE_AXES},
    {&trama_op_argmax, "keep_dim", REDUCE_KEEP_DIM},
    {&trama_op_expand, "axes", REDUCE_AXES},
    {&trama_op_expand, "keep_dim", REDUCE_KEEP_DIM},
    {&trama_op_expand, "average", EXPAND_AVERAGE},
    {&trama_op_softmax, "axis", SOFTMAX_AXIS},
    {&trama_op_attention, "causal", ATTENTION_CAUSAL},
    {&trama_op_attention, "scale", ATTENTION_SCALE},
    {&trama_op_softmax_grad, "axis", SOFTMAX_AXIS},
    {&trama_op_elu, "alpha", ELU_ALPHA},
    {&trama_op_elu_grad, "alpha", ELU_ALPHA},
    {&trama_op_celu, "alpha", ELU_ALPHA},
    {&trama_op_celu_grad, "alpha", ELU_ALPHA},
    {&trama_op_leaky_relu, "slope", RELU_SLOPE},
    {&trama_op_leaky_relu_grad, "slope", RELU_SLOPE},
    {&trama_op_gather, "axis", INDEX_AXIS},
    {&trama_op_gather_along, "axis", INDEX_AXIS},
    {&trama_op_gather_grad, "axis", INDEX_AXIS},
    {&trama_op_gather_along_grad, "axis", INDEX_AXIS},
    {&trama_op_scatter, "how", SCATTER_HOW},
    {&trama_op_scatter_along, "how", SCATTER_HOW},
    {&trama_op_concat2, "axis", CONCAT_AXIS},
    {&trama_op_stride, "step", STRIDE_STEP},
    {&trama_op_flip, "axes", FLIP_AXES},
    {&trama_op_norm, "axis", NORM_AXIS},
    {&trama_op_norm, "centred", NORM_CENTRED},
    {&trama_op_norm, "eps", NORM_EPS},
    {&trama_op_norm_grad, "centred", NORM_CENTRED},
    {&trama_op_conv, "groups", CONV_GROUPS},
    {&trama_op_conv_transposed, "groups", CONV_GROUPS},
    {&trama_op_conv_weights, "groups", CONV_GROUPS},
    {&trama_op_conv, "stride", CONV_STRIDE},
    {&trama_op_max_pool, "stride", CONV_STRIDE},
    {&trama_op_conv, "dilation", CONV_DILATION},
    {&trama_op_max_pool, "dilation", CONV_DILATION},
    {&trama_op_conv, "before", CONV_BEFORE},
    {&trama_op_max_pool, "before", CONV_BEFORE},
    {&trama_op_conv, "extent", CONV_EXTENT},
    {&trama_op_max_pool, "extent", CONV_EXTENT},
    {&trama_op_max_pool, "kernel", POOL_KERNEL},
    {&trama_op_transpose, "ndim", SHAPE_NDIM},
    {&trama_op_transpose, "perm", SHAPE_DIM},
    {&trama_op_reshape, "ndim", SHAPE_NDIM},
    {&trama_op_reshape, "shape", SHAPE_DIM},
    {&trama_op_reshape, "rows", RESHAPE_ROWS},
    {&trama_op_reshape, "cuts", RESHAPE_CUTS},
    {&trama_op_reshape_like, "ndim", SHAPE_NDIM},
    {&trama_op_reshape_like, "shape", SHAPE_DIM},
    {&trama_op_reshape_like, "rows", RESHAPE_ROWS},
    {&trama_op_reshape_like, "cuts", RESHAPE_CUTS},
    {&trama_op_window, "dim", WINDOW_DIM},
    {&trama_op_window, "offset", WINDOW_OFFSET},
    {&trama_op_cast, "dtype", CAST_DTYPE},
    {&trama_op_fill, "dtype", SOURCE_DTYPE},
    {&trama_op_fill, "ndim", SOURCE_NDIM},
    {&trama_op_fill, "shape", SOURCE_DIM},
    {&trama_op_fill, "value", SOURCE_VALUE},
    {&trama_op_arange, "dtype", SOURCE_DTYPE},
    {&trama_op_arange, "shape", SOURCE_DIM},
    {&trama_op_arange, "start", ARANGE_START},
    {&trama_op_arange, "step", ARANGE_STEP},
    {&trama_op_uniform, "seed", SOURCE_SEED},
    {&trama_op_uniform, "stream", SOURCE_STREAM},
    {&trama_op_uniform, "step", SOURCE_STEP},
    {&trama_op_uniform, "low", SOURCE_LOW},
    {&trama_op_uniform, "high", SOURCE_HIGH},
    {&trama_op_draw, "seed", SOURCE_SEED},
    {&trama_op_draw, "stream", SOURCE_STREAM},
    {&trama_op_draw, "high", SOURCE_HIGH},
    {&trama_op_scale, "factor", SCALE_FACTOR},
    {&trama_op_affine, "factor", SCALE_FACTOR},
    {&trama_op_affine, "offset", AFFINE_OFFSET},
    {&trama_op_div_scalar, "scalar", SCALAR_NUMBER},
    {&trama_op_scalar_div, "scalar", SCALAR_NUMBER},
    {&trama_op_clamp, "low", CLAMP_LOW},
    {&trama_op_clamp, "high", CLAMP_HIGH},
    {&trama_op_sgd, "lr", UPDATE_LR},
    {&trama_op_schedule, "warmup", SCHEDULE_WARMUP},
    {&trama_op_schedule, "factor", SCHEDULE_FACTOR},
    {&trama_op_schedule, "lr", SCHEDULE_LR},
    {&trama_op_schedule, "numbers", SCHEDULE_NUMBERS},
    {&trama_op_descend, "weight_decay", UPDATE_WEIGHT_DECAY},
    {&trama_op_momentum, "nesterov", MOMENTUM_NESTEROV},
    {&trama_op_momentum, "weight_decay", UPDATE_WEIGHT_DECAY},
    {&trama_op_momentum, "momentum", MOMENTUM_FACTOR},
    {&trama_op_adam, "decoupled", ADAM_DECOUPLED},
    {&trama_op_adam, "beta1", ADAM_BETA1},
    {&trama_op_adam, "beta2", ADAM_BETA2},
    {&trama_op_adam, "eps", ADAM_EPS},
    {&trama_op_lamb, "weight_decay", UPDATE_WEIGHT_DECAY},
    {&trama_op_lamb, "beta1", ADAM_BETA1},
    {&trama_op_lamb, "eps", ADAM_EPS},
    {&trama_op_argmin, "last", ARGMAX_LAST},
    {&trama_op_sort, "axis", SORT_AXIS},
    {&trama_op_sort, "descending", SORT_DESCENDING},
    {&trama_op_fft, "axis", FOURIER_AXIS},
    {&trama_op_fft, "inverse", FOURIER_INVERSE},
    {&trama_op_fft, "factor", FOURIER_FACTOR},
    {&trama_op_rfft, "axis", FOURIER_AXIS},
    {&trama_op_rfft, "n", FOURIER_EXTENT},
    {&trama_op_rfft, "factor", FOURIER_FACTOR},
    {&trama_op_rfft, "inner", FOURIER_INNER},
    {&trama_op_irfft, "n", FOURIER_EXTENT},
    {&trama_op_irfft, "inner", FOURIER_INNER},
    {&trama_op_top_k, "axis", SORT_AXIS},
    {&trama_op_top_k, "descending", SORT_DESCENDING},
    {&trama_op_top_k, "k", TOP_K},
    {&trama_op_recurrence, "axis", SCAN_AXIS},
    {&trama_op_recurrence, "exclusive", SCAN_EXCLUSIVE},
    {&trama_op_recurrence, "reverse", SCAN_REVERSE},
    {&trama_op_recurrence, "late", SCAN_LATE},
};

START_TEST(slots_are_where_the_list_names_them)
{
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        ck_assert_msg(slot_in(used[i].op->attributes, used[i].name) == used[i].slot,
                      "%s: \"%s\" has %s in slot %d, not %d", used[i].op->name, used[i].op->attributes, used[i].name,
                      slot_in(used[i].op->attributes, used[i].name), used[i].slot);
}
END_TEST

/* Each name of each list is one of those above, so that a new one is looked at too. */
START_TEST(each_name_is_used_by_its_slot)
{
    for (int k = 0; k < trama_n_ops; k++) {
        const char *names = trama_ops[k]->attributes ? trama_ops[k]->attributes : "";
        for (const char *at = names; *at; at += strcspn(at, " ")) {
            at += strspn(at, " *|");
            size_t n = strcspn(at, "[ ");
            bool known = n == 0;
            for (size_t i = 0; i < sizeof used / sizeof *used && !known; i++)
                known = strlen(used[i].name) == n && !strncmp(used[i].name, at, n);
            ck_assert_msg(known, "%s: %.*s of \"%s\" is not tried", trama_ops[k]->name, (int)n, at, names);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {slots_are_where_the_list_names_them, each_name_is_used_by_its_slot};
    return suite_run("ops_list", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
