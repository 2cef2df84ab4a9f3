/* SPDX-License-Identifier: Apache-2.0 */
/* Every op on a GPU against its kernel for CPUs: tried_ops and larger cases, in every element type that the op takes
 * and every memory order. Results of data movement and of arithmetic element by element have equal bits. */
#include <stdio.h>

#include "on_gpu.h"
#include "suite.h"
#include "trama_ops.h"
#include "tried_ops.h"
#include "views.h"

/* Roundings by which results may differ, since sums are taken in another order, or on a card by another library of
 * elementary functions. Sums of f64 have no wider type to hide the order in. Others have equal bits. */
static const struct {
    const char *op;
    double units, of_f64, on_card;
} loose[] = {
    {"matmul", 256, 4096, 256}, /* 70 products of up to 4 in another order: 70 * 4 * 2^-24 at most */
    {"sum", 4, 4096, 4},
    {"mean", 4, 4096, 4},
    {"sum_square", 16, 4096, 16},
    {"softmax", 4, 64, 8},
    {"softmax_grad", 8, 4096, 8},
    {"cross_entropy", 8, 64, 8},
    {"cross_entropy_grad", 8, 64, 8},
    {"norm", 8, 4096, 8},
    {"norm_grad", 16, 4096, 16},
    {"conv", 1024, 8192, 1024},
    {"conv_transposed", 1024, 8192, 1024},
    {"conv_weights", 16384, 16384, 16384}, /* 10,000 products and more */
    {"attention", 64, 4096, 64},
    {"attention_masked", 64, 4096, 64},
    {"attention_grad", 256, 4096, 256},
    {"attention_masked_grad", 256, 4096, 256},
    {"exp", 0, 0, 4},
    {"log", 0, 0, 4},
    {"gelu", 0, 0, 8},
    {"gelu_grad", 0, 0, 16},
    {"tanh", 0, 0, 4},
    {"sigmoid", 0, 0, 4},
    {"adam", 0, 0, 8},
    {"lamb", 0, 0, 8},
};

#define NONE .attributes = {{0}, {0}}
#define INTEGERS(...) .attributes = {.integer = {__VA_ARGS__}}
#define EACH_DIM(x) x, x, x
#define CONV(stride, extent, groups) INTEGERS(EACH_DIM(stride), EACH_DIM(1), EACH_DIM(1), EACH_DIM(extent), groups)

/* Sizes of several blocks, of rows that are long, short or not of whole vectors. */
static const tried_op large[] = {
    {"add", "33x1030,33x1030", "rr", NONE},
    {"add", "33x1030,1030", "rr", NONE},
    {"mul", "33x1030,33x1", "rr", NONE},
    {"sub", "4x1x65,9x65", "rr", NONE},
    {"div", "40000,40000", "rr", NONE},
    {"equal", "70x130,130", "ss", NONE},
    {"gelu", "129x255", "r", NONE},
    {"relu_grad", "129x256,129x256", "rr", NONE},
    {"cast", "129x257", "r", INTEGERS(TRAMA_F32)},
    {"cast", "129x257", "r", INTEGERS(TRAMA_F64)},
    {"cast", "129x257", "r", INTEGERS(TRAMA_I64)},
    {"cast", "129x257", "r", INTEGERS(TRAMA_U8)},
    {"sum", "70x515", "r", INTEGERS(1, 0)},
    {"sum", "70x515", "r", INTEGERS(2, 0)},
    {"sum", "70x515", "r", INTEGERS(3, 0)},
    {"sum", "2x70000", "r", INTEGERS(2, 0)},
    {"sum", "7x65x33", "r", INTEGERS(5, 1)},
    {"sum_square", "70x515", "r", INTEGERS(3, 0)},
    {"mean", "7x65x33", "r", INTEGERS(2, 0)},
    {"max", "7x65x33", "r", INTEGERS(5, 0)},
    {"norm", "70x515", "r", .attributes = {.integer = {1, 1}, .real = {0.1}}},
    {"norm", "70x515", "r", .attributes = {.integer = {0, 0}, .real = {0.1}}},
    {"norm", "2x20000", "r", .attributes = {.integer = {1, 1}, .real = {0.1}}},
    {"norm_grad", "70x515,70x515,70x1", "rrp", INTEGERS(1, 1)},
    {"norm_grad", "515x70,515x70,1x70", "rrp", INTEGERS(0, 1)},
    {"norm_grad", "2x20000,2x20000,2x1", "rrp", INTEGERS(1, 0)},
    {"gather", "33x70,5x130", "rl", INTEGERS(0)},
    {"gather", "33x3x70,130", "rl", INTEGERS(1)},
    {"gather_along", "7x130,33x130", "rl", INTEGERS(0)},
    {"gather_grad", "5x130x7,5x130,33x7", "rlp", INTEGERS(0)},
    {"gather_grad", "33x130x7,130,33x3x7", "rlp", INTEGERS(1)},
    {"gather_along_grad", "7x130,7x130,33x130", "rlp", INTEGERS(0)},
    {"scatter", "33x70,5x130,5x130x70", "rlr", INTEGERS(0, TRAMA_SCATTER_SET)},
    {"scatter", "33x3x70,130,33x130x70", "rlr", INTEGERS(1, TRAMA_SCATTER_MULTIPLY)},
    {"scatter", "33x70,500,500x70", "rlr", INTEGERS(0, TRAMA_SCATTER_MAX)},
    {"scatter_along", "33x130,70x130,70x130", "rlr", INTEGERS(0, TRAMA_SCATTER_MIN)},
    {"scatter_along", "33x130,33x70,33x70", "rlr", INTEGERS(1, TRAMA_SCATTER_SET)},
    {"min", "2x70000", "r", INTEGERS(2, 0)},
    {"argmax", "70x515", "s", INTEGERS(2, 0)},
    {"argmax", "515x70", "s", INTEGERS(1, 0)},
    {"expand", "65,70x65", "rr", INTEGERS(1, 0, 1)},
    {"softmax", "5x4099", "r", INTEGERS(1)},
    {"softmax", "300x65", "r", INTEGERS(1)},
    {"softmax", "70x130", "r", INTEGERS(0)},
    {"softmax_grad", "5x4099,5x4099", "rr", INTEGERS(1)},
    {"cross_entropy", "300x65,300", "rl", NONE},
    {"cross_entropy", "5x4099,5", "rl", NONE},
    {"cross_entropy_grad", "300x65,300,", "rlr", NONE},
    {"transpose", "70x130", "r", INTEGERS(2, 1, 0)},
    {"transpose", "132x136", "r", INTEGERS(2, 1, 0)},
    {"transpose", "5x33x65", "r", INTEGERS(3, 2, 0, 1)},
    {"transpose", "5x33x65", "r", INTEGERS(3, 1, 0, 2)},
    {"reshape", "70x130", "r", INTEGERS(2, 130, 70)},
    {"reshape_like", "70x130,5", "rr", INTEGERS(2, 130, 70)},
    {"window", "70x130", "r", .attributes = {.integer = {65, 135, [WINDOW_OFFSET] = 7, [WINDOW_OFFSET + 1] = -3}}},
    {"fill", "", "", .attributes = {.integer = {TRAMA_F64, 2, 70, 130}, .real = {1.5}}},
    {"uniform", "", "", .attributes = {.integer = {TRAMA_F32, 2, 70, 130, [6] = 0}, .real = {-1, 2}}},
    {"draw", "", "c", .attributes = {.integer = {TRAMA_F32, 2, 70, 130, [6] = 0}, .real = {-1, 2}}},
    {"matmul", "33x70,70x65", "rr", NONE},
    {"matmul", "70,70x65", "rr", NONE},
    {"matmul", "3x33x70,70", "rr", NONE},
    {"matmul", "4099,4099", "rr", NONE},
    {"matmul", "70x33,65x70", "rr", INTEGERS(1, 1)},
    {"matmul", "3x20x31,31x17", "rr", NONE},
    {"conv", "1x40x49x49,2x40x3x3", "rr", CONV(1, 49, 1)}, /* more positions than fit in the scratch memory */
    {"conv", "1x64x5x5,720x64x3x3", "rr", CONV(2, 3, 1)},  /* more weights */
    {"conv", "3x64x9x9,64x1x3x3", "rr", CONV(1, 9, 64)},   /* more groups */
    {"conv", "1x9x80,2x9x2800", "rr",
     INTEGERS(EACH_DIM(1), EACH_DIM(1), 1400, 0, 0, 80, 0, 0, [CONV_GROUPS] = 1)}, /* more numbers to be summed */
    {"conv_transposed", "1x40x49x49,40x2x3x3", "rr", CONV(1, 49, 1)},
    {"conv_weights", "1x40x49x49,1x2x49x49", "rr", CONV(1, 3, 1)},
    {"conv_weights", "1x64x5x5,1x720x3x3", "rr", CONV(2, 3, 1)},
    {"conv_weights", "3x64x9x9,3x64x9x9", "rr", CONV(1, 3, 64)},
    {"max_pool", "3x65x40x41", "r", INTEGERS(EACH_DIM(2), EACH_DIM(1), EACH_DIM(1), EACH_DIM(20), EACH_DIM(3))},
    {"sgd", "33x1030,33x1030", "rr", .attributes = {.real = {0.1}}},
    {"adam", "33x130,33x130,33x130,33x130,,,", "rrprrcc", .attributes = {.real = {0.01, 0.9, 0.999, 1e-8}}},
};

static int n_ran;

/* Results, then operands; an updated operand is its result. */
typedef struct arrays {
    int n_out, n_in;
    tensor at[2 * TRAMA_MAX_OPERANDS];
} arrays;

static tensor operand_of(const tried_op *c, const trama_node *node, int i, order how)
{
    tensor t = tensor_new(node->in[i]->dtype, how, node->in[i]->shape);
    dense values = tried_op_operand(c, i, node->in[i]->shape, (uint64_t)i + 1);
    int64_t next = 0;
    FOR_EACH(&t, index)
    {
        const double x = values.at[next++];
        put(&t, index, is_unsigned(t.view.dtype) ? fabs(x) : x);
    }
    dense_free(&values);
    return t;
}

static arrays arrays_of(const tried_op *c, const trama_node *node, order how)
{
    arrays a = {.n_out = node->op->n_out, .n_in = node->op->n_in};
    for (int i = 0; i < a.n_in; i++)
        a.at[a.n_out + i] = operand_of(c, node, i, (order)((how + i) % N_ORDERS));
    for (int o = 0; o < a.n_out; o++)
        a.at[o] =
            node->op->updates >> o & 1 ? a.at[a.n_out + o] : tensor_new(node->out[o]->dtype, how, node->out[o]->shape);
    return a;
}

static void arrays_free(arrays *a, const trama_op *op)
{
    for (int i = 0; i < a->n_out + a->n_in; i++)
        if (i >= a->n_out || !(op->updates >> i & 1))
            tensor_free(&a->at[i]);
}

static void run_on(arrays *a, const trama_node *node, bool on_card)
{
    trama_view views[2 * TRAMA_MAX_OPERANDS];
    for (int i = 0; i < a->n_out + a->n_in; i++)
        views[i] = a->at[i].view;
    for (int i = 0; i < a->n_in; i++)
        if (node->op->shape_only >> i & 1)
            views[a->n_out + i].data = NULL;
    const trama_call call = {.op = node->op,
                             .attributes = node->attributes,
                             .n_in = a->n_in,
                             .n_out = a->n_out,
                             .in = views + a->n_out,
                             .out = views};
    if (on_card)
        ck_assert(on_gpu_call(&call));
    else
        kernel_of(node->op)->cpu(&call);
}

void simt_order(unsigned order) __attribute__((weak));

/* An op that the table does not name: pointwise ones have equal bits, on a card if they take too few flops for a call
 * of libm; ones that are not exact may sum in another order. */
static double units_of(const trama_op *op, trama_dtype dtype)
{
    if (is_half(dtype) && op == &trama_op_gelu) /* with the digits of a half */
        return 1;
    if (halves_probabilities(op, dtype))
        return half_units(dtype);
    for (size_t i = 0; i < sizeof loose / sizeof loose[0]; i++)
        if (!strcmp(loose[i].op, op->name))
            return fmax(dtype == TRAMA_F64 ? loose[i].of_f64 : loose[i].units, simt_order ? 0 : loose[i].on_card);
    if (op->pointwise)
        return simt_order || op->flops < 8 ? 0 : op->flops;
    return op->exact || !trama_dtype_is_float(dtype) ? 0 : dtype == TRAMA_F64 ? 4096 : 16;
}

/* Of halves both are rounded already, and may be so to neighbours. */
static bool alike(trama_dtype dtype, double got, double want, double units)
{
    const double place = dtype == TRAMA_BF16 ? 0x1p-7 : 0x1p-10;
    return near(dtype, got, want, units) ||
           (is_half(dtype) && fabs(got - want) <= place * fabs(want) + units * 0x1p-24);
}

static void compare(const tried_op *c, const tensor *cpu, const tensor *ours, order how)
{
    const double units = units_of(trama_op_find(c->op), cpu->view.dtype);
    FOR_EACH(cpu, index)
    {
        const double want = at(cpu, index), got = at(ours, index);
        const bool same =
            !memcmp(element(&cpu->view, index), element(&ours->view, index), trama_dtype_size(cpu->view.dtype));
        ck_assert_msg(same || (units > 0 && alike(cpu->view.dtype, got, want, units)),
                      "%s of %s, to %s in order %d: element %lld,%lld is %.17g on the GPU, %.17g on the CPU", c->op,
                      c->shapes, trama_dtype_name(cpu->view.dtype), (int)how, (long long)index[0], (long long)index[1],
                      got, want);
    }
    ck_assert_msg(outside_untouched(ours), "%s of %s writes beside its result", c->op, c->shapes);
}

static void try_order(const tried_op *c, const trama_node *node, order how)
{
    arrays cpu = arrays_of(c, node, how), ours = arrays_of(c, node, how);
    run_on(&cpu, node, false);
    run_on(&ours, node, true);
    for (int o = 0; o < cpu.n_out; o++)
        compare(c, &cpu.at[o], &ours.at[o], how);
    arrays_free(&cpu, node->op);
    arrays_free(&ours, node->op);
    n_ran++;
}

static void try_case(const tried_op *c)
{
    if (!kernel_of(trama_op_find(c->op))->cuda)
        return;
    for (int dtype = 0; dtype < N_REAL_DTYPES; dtype++)
        for (int doubles = 0; doubles < 2; doubles++) {
            trama_program *p = trama_program_create();
            const trama_node *node = tried_op_node_of(c, (trama_dtype)dtype, doubles, p);
            for (int how = 0; node && how < N_ORDERS; how++)
                if (!simt_order || (how + dtype) % 2 == 0) /* the stand-in is slow */
                    try_order(c, node, (order)how);
            trama_program_destroy(&p);
            if (node)
                break;
        }
}

START_TEST(small_cases_agree_with_the_cpu)
{
    for (int i = 0; i < n_tried_ops; i++)
        try_case(&tried_ops[i]);
}
END_TEST

START_TEST(large_cases_agree_with_the_cpu)
{
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        try_case(&large[i]);
}
END_TEST

START_TEST(every_op_has_a_kernel_for_gpus_or_says_that_it_has_none)
{
    for (int i = 0; i < trama_n_ops; i++) {
        const bool has = kernel_of(trama_ops[i])->cuda != NULL;
        ck_assert_msg(has == (trama_ops[i]->gpu_kinds != 0), "%s has %s kernel for GPUs", trama_ops[i]->name,
                      has ? "a" : "no");
    }
}
END_TEST

START_TEST(cases_did_run)
{
    fprintf(stderr, "%d calls were compared\n", n_ran);
}
END_TEST

int main(void)
{
    on_gpu_or_skip();
    const TTest *const tests[] = {every_op_has_a_kernel_for_gpus_or_says_that_it_has_none,
                                  small_cases_agree_with_the_cpu, large_cases_agree_with_the_cpu, cases_did_run};
    return suite_run("cuda_ops", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
