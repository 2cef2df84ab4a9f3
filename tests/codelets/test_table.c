/* SPDX-License-Identifier: Apache-2.0 */
/* From ops to kernels. */
#include "views.h"

START_TEST(every_built_in_op_has_a_kernel_of_its_own)
{
    static const char *const names[] = {
#define OP(name, ...) #name,
#include "ops.def"
    };
    const int n = (int)(sizeof names / sizeof names[0]);
    for (int i = 0; i < n; i++) {
        const trama_op op = {.name = names[i]};
        ck_assert(kernel_of(&op) && kernel_of(&op)->cpu);
        for (int j = 0; j < i; j++)
            ck_assert(kernel_of(&(trama_op){.name = names[j]})->cpu != kernel_of(&op)->cpu);
    }
}
END_TEST

static trama_status nothing(const trama_call *call)
{
    (void)call;
    return TRAMA_OK;
}

START_TEST(an_op_of_ones_own_has_no_kernel_of_the_table_whatever_its_name)
{
    const trama_op op = {.name = "matmul", .own = nothing};
    ck_assert_ptr_null(kernel_of(&op));
}
END_TEST

START_TEST(an_unknown_op_has_no_kernel)
{
    ck_assert_ptr_null(kernel_of(&(trama_op){.name = "no_such_op"}));
}
END_TEST

/* ---- Traits that fusion relies on ---- */

static trama_view view_of(double *data, int64_t rows, int64_t columns)
{
    return (trama_view){data, TRAMA_F64, 2, {rows, columns}, {columns, 1}, {0}, {rows, columns}};
}

START_TEST(products_alone_have_kernels_that_add)
{
    for (int i = 0; i < trama_n_ops; i++)
        ck_assert_int_eq(kernel_of(trama_ops[i])->cpu_add != NULL, trama_ops[i]->product);
}
END_TEST

/* Runs an op on w, d, keep and weight, as many of them as it has; w is what it updates. */
static kernel_addition add(const trama_op *op, double w[4], double d[4], double keep, double weight)
{
    const trama_attributes rate = {.real = {weight}};
    trama_view views[] = {
        view_of(w, 2, 2), view_of(d, 2, 2), {.data = &keep, .dtype = TRAMA_F64}, {.data = &weight, .dtype = TRAMA_F64}};
    const trama_call call = {op, &rate, op->n_in, 1, views, views, false};
    kernel_of(op)->cpu(&call);
    return kernel_addition_now(&call);
}

START_TEST(an_op_with_an_addition_adds_as_that_says)
{
    int n = 0;
    for (int i = 0; i < trama_n_ops; i++) {
        const trama_op *op = trama_ops[i];
        for (int keep = 0; keep < 2 && op->addition; keep++) {
            const bool late = op->addition == TRAMA_ADDITION_OPERANDS, kept = keep || !late;
            double w[] = {1, -2, 3, 4}, d[] = {5, 6, -7, 8};
            const double was[] = {1, -2, 3, 4}, factor = late ? 0.5 : -0.5;
            const kernel_addition how = add(op, w, d, keep, 0.5);
            for (int k = 0; k < 4; k++)
                ck_assert_double_eq(w[k], (kept ? was[k] : 0) + factor * d[k]);
            ck_assert_double_eq(how.keep, kept);
            ck_assert_double_eq(how.factor, factor);
            ck_assert_int_eq(op->updates, 1);
            n++;
        }
    }
    ck_assert_int_gt(n, 0);
}
END_TEST

START_TEST(an_epilogue_is_a_row_that_is_added)
{
    int n = 0;
    for (int i = 0; i < trama_n_ops; i++) {
        const trama_op *op = trama_ops[i];
        double x[] = {1, -2, -3, 4}, row[] = {0.5, 3}, y[4];
        const trama_view in[] = {view_of(x, 2, 2), view_of(row, 1, 2)}, out = view_of(y, 2, 2);
        const trama_attributes none = {.integer = {0}};
        if (!op->epilogue)
            continue;
        kernel_of(op)->cpu(&(trama_call){op, &none, op->n_in, 1, in, &out, false});
        for (int k = 0; k < 4; k++)
            ck_assert_double_eq(y[k], x[k] + row[k % 2]);
        n++;
    }
    ck_assert_int_gt(n, 0);
}
END_TEST

RUN_TESTS("table", every_built_in_op_has_a_kernel_of_its_own,
          an_op_of_ones_own_has_no_kernel_of_the_table_whatever_its_name, an_unknown_op_has_no_kernel,
          products_alone_have_kernels_that_add, an_op_with_an_addition_adds_as_that_says,
          an_epilogue_is_a_row_that_is_added)
