/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of every op against its naive reference, in every type of real numbers and every memory order. */
#include "reference.h"
#include "suite.h"
#include "tried_ops.h"
#include "views.h"

/* Results, then operands; an updated operand is its result. Numbers are those of the tensors, as doubles. */
typedef struct arrays {
    int n_out, n_in;
    tensor at[2 * TRAMA_MAX_OPERANDS];
    dense as_double[2 * TRAMA_MAX_OPERANDS];
} arrays;

static void fill_operand(const tried_op *c, int operand, tensor *t, dense *d)
{
    dense values = tried_op_operand(c, operand, d->shape, (uint64_t)operand + 1);
    int64_t next = 0;
    FOR_EACH(t, index)
    {
        put(t, index, values.at[next]);
        d->at[next++] = at(t, index);
    }
    dense_free(&values);
}

static arrays arrays_of(const tried_op *c, const trama_node *node, order how)
{
    arrays a = {.n_out = node->op->n_out, .n_in = node->op->n_in};
    for (int i = 0; i < a.n_in; i++) {
        const int k = a.n_out + i;
        a.at[k] = tensor_new(node->in[i]->dtype, (order)((how + i) % N_ORDERS), node->in[i]->shape);
        a.as_double[k] = dense_new(node->in[i]->shape);
        fill_operand(c, i, &a.at[k], &a.as_double[k]);
    }
    for (int o = 0; o < a.n_out; o++) {
        const bool updates = node->op->updates >> o & 1;
        a.at[o] = updates ? a.at[a.n_out + o] : tensor_new(node->out[o]->dtype, how, node->out[o]->shape);
        a.as_double[o] = dense_new(node->out[o]->shape);
    }
    return a;
}

static void arrays_free(arrays *a, const trama_op *op)
{
    for (int i = 0; i < a->n_out + a->n_in; i++) {
        dense_free(&a->as_double[i]);
        if (i >= a->n_out || !(op->updates >> i & 1))
            tensor_free(&a->at[i]);
    }
}

/* views: room for those of the tensors. */
static trama_call call_of(const arrays *a, const trama_node *node, trama_view *views)
{
    for (int i = 0; i < a->n_out + a->n_in; i++)
        views[i] = a->at[i].view;
    return (trama_call){.op = node->op,
                        .attributes = node->attributes,
                        .n_in = a->n_in,
                        .n_out = a->n_out,
                        .in = views + a->n_out,
                        .out = views};
}

static void run_both(arrays *a, const trama_node *node)
{
    trama_view views[2 * TRAMA_MAX_OPERANDS], doubles[2 * TRAMA_MAX_OPERANDS];
    const trama_call call = call_of(a, node, views);
    trama_call of_doubles = call;
    for (int i = 0; i < a->n_out + a->n_in; i++)
        doubles[i] = dense_view(&a->as_double[i], a->at[i].view.dtype);
    of_doubles.in = doubles + a->n_out;
    of_doubles.out = doubles;
    reference_call(&of_doubles);
    run_call(&call);
}

/* Roundings by which a kernel may differ from double precision, rounded once: none that chooses elements, but for its
 * constants, which it rounds; functions of libm and formulas; sums of up to 105 terms in another order. Scatters that
 * multiply round each of up to 4 products to the type. */
static double units_of(const trama_node *node, trama_dtype dtype)
{
    const bool scatters = !strncmp(node->op->name, "scatter", 7);
    if (scatters && is_half(dtype) && node->attributes->integer[SCATTER_HOW] == TRAMA_SCATTER_MULTIPLY)
        return half_units(dtype);
    if (rounds_probabilities(node->op, dtype))
        return half_units(dtype);
    return node->op->exact ? 1 : node->op->pointwise ? 16 : 512;
}

static void expect_equal(const tried_op *c, const trama_node *node, const arrays *a)
{
    for (int o = 0; o < a->n_out; o++) {
        const trama_dtype dtype = a->at[o].view.dtype;
        int64_t next = 0;
        FOR_EACH(&a->at[o], index)
        {
            const double got = at(&a->at[o], index), want = a->as_double[o].at[next++];
            ck_assert_msg(near(dtype, got, want, units_of(node, dtype)),
                          "%s of %s, %s: element %lld is %.17g, not %.17g", c->op, c->shapes, trama_dtype_name(dtype),
                          (long long)next - 1, got, want);
        }
        ck_assert_msg(outside_untouched(&a->at[o]), "%s of %s writes beside its result", c->op, c->shapes);
    }
}

static void try_order(const tried_op *c, const trama_node *node, order how)
{
    arrays a = arrays_of(c, node, how);
    run_both(&a, node);
    expect_equal(c, node, &a);
    arrays_free(&a, node->op);
}

/* The operand has the same elements all along a dim, whose stride is 0. */
static void try_repeated(const tried_op *c, const trama_node *node, int operand, int dim)
{
    arrays a = arrays_of(c, node, PACKED);
    tensor *t = &a.at[a.n_out + operand];
    int64_t next = 0;
    t->view.stride[dim] = 0;
    FOR_EACH(t, index)
    {
        a.as_double[a.n_out + operand].at[next++] = at(t, index);
    }
    run_both(&a, node);
    expect_equal(c, node, &a);
    arrays_free(&a, node->op);
}

/* False where the op does not take the type. */
static bool try_type(const tried_op *c, trama_dtype dtype, bool scalars_are_doubles)
{
    trama_program *p = trama_program_create();
    const trama_node *node = tried_op_node_of(c, dtype, scalars_are_doubles, p);
    for (int how = 0; node && how < N_ORDERS; how++)
        if (!suite_is_sanitized() || (how + (int)dtype) % 2 == 0)
            try_order(c, node, (order)how);
    trama_program_destroy(&p);
    return node != NULL;
}

/* The reference knows doubles only, so casts are compared in test_pointwise. */
static bool is_compared(const tried_op *c)
{
    return strcmp(c->op, "cast") != 0;
}

START_TEST(every_kernel_gives_what_its_reference_gives)
{
    int n = 0;
    for (int i = 0; i < n_tried_ops; i++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES && is_compared(&tried_ops[i]); dtype = next_float(dtype)) {
            n +=
                try_type(&tried_ops[i], (trama_dtype)dtype, false) || try_type(&tried_ops[i], (trama_dtype)dtype, true);
        }
    ck_assert_int_gt(n, 2 * n_tried_ops);
}
END_TEST

/* As those that `expand` repeats are read in place: each dim of each operand in turn. */
START_TEST(operands_may_repeat_along_a_dim)
{
    static const trama_dtype types[] = {TRAMA_F32, TRAMA_F64, TRAMA_BF16};
    int n = 0;
    for (int i = 0; i < n_tried_ops; i++)
        for (int k = 0; k < 3 && is_compared(&tried_ops[i]); k++) {
            trama_program *p = trama_program_create();
            const trama_node *node = tried_op_node_of(&tried_ops[i], types[k], false, p);
            for (int t = 0; node && t < node->op->n_in; t++)
                for (int d = 0; d < node->in[t]->shape.ndim && !(node->op->updates >> t & 1); d++)
                    if (node->in[t]->shape.dim[d] > 1) {
                        try_repeated(&tried_ops[i], node, t, d);
                        n++;
                    }
            trama_program_destroy(&p);
        }
    ck_assert_int_gt(n, n_tried_ops);
}
END_TEST

/* Their results are those of other tests; here a type without a kernel would end the process. */
START_TEST(every_type_that_an_op_takes_has_a_kernel)
{
    for (int i = 0; i < n_tried_ops; i++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++) {
            trama_program *p = trama_program_create();
            const trama_node *node = tried_op_node_of(&tried_ops[i], (trama_dtype)dtype, true, p);
            if (node) {
                arrays a = arrays_of(&tried_ops[i], node, PACKED);
                trama_view views[2 * TRAMA_MAX_OPERANDS];
                const trama_call call = call_of(&a, node, views);
                run_call(&call);
                arrays_free(&a, node->op);
            }
            trama_program_destroy(&p);
        }
}
END_TEST

RUN_TESTS("ops", every_type_that_an_op_takes_has_a_kernel, every_kernel_gives_what_its_reference_gives,
          operands_may_repeat_along_a_dim)
