/* SPDX-License-Identifier: Apache-2.0 */
/* Products on a GPU beyond what test_matmul expects: added to what is there, with what follows them, through copies in
 * a small workspace, in TF32. Against the triple loop in double. */
#define TESTS_ON_GPU
#include "views.h"

typedef struct run {
    const trama_call *calls;
    int n_calls;
    kernel_addition how;
    size_t workspace; /* 0: all of it */
    bool add, tf32;
    const unsigned *inner; /* [n_calls - 1], or NULL */
    int done;              /* calls behind the product that its kernel has computed; 0: not even the product */
} run;

/* Views: result and operands of the product, then of the calls behind it. */
static void run_product(const trama_view *device, const gpu *g, void *with)
{
    run *r = with;
    trama_call calls[5];
    gpu other = *g;
    other.tf32 = r->tf32;
    other.workspace_bytes = r->workspace ? r->workspace : g->workspace_bytes;
    for (int i = 0; i < r->n_calls; i++) {
        calls[i] = r->calls[i];
        calls[i].out = device;
        calls[i].in = device + 1;
        device += 1 + calls[i].n_in;
    }
    const trama_kernel *kernel = kernel_of(&trama_op_matmul);
    if (r->add)
        kernel->cuda_add(calls, r->how, &other);
    else if (r->n_calls == 1 || (r->done = kernel->cuda_then(calls, r->n_calls - 1, calls + 1, r->inner, &other)) == 0)
        kernel->cuda(calls, &other);
}

static double product_at(const tensor *x, const tensor *y, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < x->view.extent[1]; l++)
        sum += AT(x, i, l) * AT(y, l, j);
    return sum;
}

static const trama_attributes none;

static void check_added(trama_dtype dtype, int variant, size_t workspace, kernel_addition how)
{
    const int64_t m = 131, n = 70, k = 33;
    tensor x = tensor_random(dtype, (order)(variant % 4), TRAMA_SHAPE(m, k), 1),
           y = tensor_random(dtype, (order)(variant / 4 % 4), TRAMA_SHAPE(k, n), 2),
           out = tensor_random(dtype, (order)(variant / 16), TRAMA_SHAPE(m, n), 3),
           was = tensor_random(dtype, PACKED, TRAMA_SHAPE(m, n), 3);
    const trama_view views[] = {out.view, x.view, y.view};
    const trama_call call = {&trama_op_matmul, &none, 2, 1, views + 1, views, false};
    run with = {.calls = &call, .n_calls = 1, .how = how, .workspace = workspace, .add = true};
    on_gpu_run(3, 1, views, run_product, &with);
    FOR_EACH(&out, i)
    ck_near(dtype, at(&out, i), how.keep * at(&was, i) + how.factor * product_at(&x, &y, i[0], i[1]), 1);
    ck_assert(outside_untouched(&out));
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&out);
    tensor_free(&was);
}

START_TEST(products_are_added_in_any_memory_order_and_workspace)
{
    static const size_t workspaces[] = {0, 128 << 10, 1024};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int variant = 0; variant < 64 && trama_dtype_is_float((trama_dtype)dtype); variant += 3)
            check_added((trama_dtype)dtype, variant, workspaces[variant % 2 + variant / 32],
                        (kernel_addition){variant & 1, variant & 2 ? -0.5 : 2});
}
END_TEST

/* A product with the addition of a row, or relu, or both, of which its kernel computes so many; 0: it computes
 * nothing. */
static void check_followed(trama_dtype dtype, order how, bool adds, bool swapped, bool relu, int done)
{
    const int64_t m = 20, n = 24, k = 9;
    tensor x = tensor_random(dtype, PACKED, TRAMA_SHAPE(m, k), 1),
           y = tensor_random(dtype, PACKED, TRAMA_SHAPE(k, n), 2),
           row = tensor_random(dtype, PACKED, TRAMA_SHAPE(n), 3);
    tensor product = tensor_new(dtype, how, TRAMA_SHAPE(m, n)), sum = tensor_new(dtype, how, TRAMA_SHAPE(m, n)),
           last = tensor_new(dtype, how, TRAMA_SHAPE(m, n));
    const tensor *result = relu ? &last : adds ? &sum : &product, *first = adds ? &sum : &product;
    trama_view views[] = {product.view,
                          x.view,
                          y.view,
                          sum.view,
                          swapped ? row.view : product.view,
                          swapped ? product.view : row.view,
                          last.view,
                          first->view};
    trama_call calls[3] = {{&trama_op_matmul, &none, 2, 1, NULL, NULL, false},
                           {&trama_op_add, &none, 2, 1, NULL, NULL, false}};
    const trama_call then = {&trama_op_relu, &none, 1, 1, NULL, NULL, false};
    int n_calls = 1 + adds, n_views = 3 + 3 * adds;
    if (relu) {
        calls[n_calls++] = then;
        memmove(&views[n_views], &views[6], 2 * sizeof *views);
        n_views += 2;
    }
    for (int v = 0, c = 0; c < n_calls; v += 1 + calls[c++].n_in) {
        calls[c].out = &views[v];
        calls[c].in = &views[v + 1];
    }
    run with = {.calls = calls, .n_calls = n_calls};
    on_gpu_run(n_views, n_views, views, run_product, &with);
    ck_assert_int_eq(with.done, done);
    const tensor *made = done == 0 ? &product : done == adds + relu ? result : &sum;
    FOR_EACH(made, i)
    {
        const double sum_at = product_at(&x, &y, i[0], i[1]) + (made != &product && adds ? AT(&row, i[1]) : 0);
        ck_near(dtype, at(made, i), made == &last ? fmax(sum_at, 0) : sum_at, 1);
    }
    ck_assert(outside_untouched(made));
    tensor *all[] = {&x, &y, &row, &product, &sum, &last};
    for (int i = 0; i < 6; i++)
        tensor_free(all[i]);
}

START_TEST(a_row_joins_the_product_and_relu_a_small_one_of_f32)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype)) {
        const bool small = dtype == TRAMA_F32;
        const int row = small || is_half((trama_dtype)dtype) ? 1 : 0;
        if (is_unsigned((trama_dtype)dtype) ||
            trama_dtype_size((trama_dtype)dtype) == 1) /* the result is beyond them */
            continue;
        for (int swapped = 0; swapped < 2; swapped++) {
            check_followed((trama_dtype)dtype, PACKED, true, swapped, true, small ? 2 : row);
            check_followed((trama_dtype)dtype, PACKED, true, swapped, false, row);
        }
        check_followed((trama_dtype)dtype, PACKED, false, false, true, small ? 1 : 0);
        check_followed((trama_dtype)dtype, TURNED, true, false, true, 0); /* columns are contiguous */
        check_followed((trama_dtype)dtype, SPARSE, true, false, true, 0);
    }
}
END_TEST

/* relu_grad(product + row, gate) * product * column, in memory of any order; only the last result, or all of them. */
static void check_chain(int64_t m, int64_t n, int64_t k, order of_x, order of_y, order of_gate, bool last)
{
    const trama_dtype dtype = TRAMA_F32;
    tensor x = tensor_random(dtype, of_x, TRAMA_SHAPE(m, k), 1), y = tensor_random(dtype, of_y, TRAMA_SHAPE(k, n), 2),
           row = tensor_random(dtype, PACKED, TRAMA_SHAPE(n), 3),
           gate = tensor_random(dtype, of_gate, TRAMA_SHAPE(m, n), 4),
           column = tensor_random(dtype, PACKED, TRAMA_SHAPE(m, 1), 5);
    tensor made[5];
    for (int i = 0; i < 5; i++)
        made[i] = tensor_new(dtype, PACKED, TRAMA_SHAPE(m, n));
    const trama_view views[] = {made[0].view, x.view,       y.view,       made[1].view, made[0].view,
                                row.view,     made[2].view, made[1].view, gate.view,    made[3].view,
                                made[2].view, made[0].view, made[4].view, made[3].view, column.view};
    const trama_op *const ops[] = {&trama_op_matmul, &trama_op_add, &trama_op_relu_grad, &trama_op_mul, &trama_op_mul};
    trama_call calls[5];
    for (int i = 0; i < 5; i++)
        calls[i] = (trama_call){ops[i], &none, 2, 1, views + 3 * i + 1, views + 3 * i, false};
    static const unsigned inner[] = {1, 1, 1, 0};
    run with = {.calls = calls, .n_calls = 5, .inner = last ? inner : NULL};
    on_gpu_run(15, 15, views, run_product, &with);
    ck_assert_int_eq(with.done, 4);
    FOR_EACH(&gate, i)
    {
        const double product = product_at(&x, &y, i[0], i[1]), sum = product + AT(&row, i[1]);
        const double gated = at(&gate, i) > 0 ? sum : 0;
        if (!last)
            ck_near(dtype, at(&made[1], i), sum, 4 + (double)k);
        ck_near(dtype, at(&made[4], i), gated * product * AT(&column, i[0], 0), 16 + 4 * (double)k);
    }
    for (int i = 1; i < 5; i++)
        ck_assert(outside_untouched(&made[i]));
    tensor *all[] = {&x, &y, &row, &gate, &column, &made[0], &made[1], &made[2], &made[3], &made[4]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_free(all[i]);
}

START_TEST(a_small_product_takes_a_chain_in_any_memory_order)
{
    static const int64_t sizes[][3] = {{16, 16, 32},  {37, 19, 5}, {2, 3, 1},      {33, 31, 100}, {17, 16, 260},
                                       {48, 30, 530}, {64, 32, 8}, {20, 24, 1024}, {16, 4, 36}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t variant = 0; variant < 16; variant++)
            check_chain(sizes[i][0], sizes[i][1], sizes[i][2], (order)(variant % 4), (order)(variant / 4),
                        (order)((variant + i) % 4), variant % 3);
}
END_TEST

START_TEST(tf32_is_used_where_it_is_asked_for)
{
    for (int tf32 = 0; tf32 < 2; tf32++) {
        tensor x = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(4, 4)),
               y = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(4, 4)),
               out = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(4, 4));
        FOR_EACH(&x, i)
        put(&x, i, 1 + 0x1p-13); /* TF32 has 10 bits behind the point */
        FOR_EACH(&y, i)
        put(&y, i, 1);
        const trama_view views[] = {out.view, x.view, y.view};
        const trama_call call = {&trama_op_matmul, &none, 2, 1, views + 1, views, false};
        run with = {.calls = &call, .n_calls = 1, .tf32 = tf32};
        on_gpu_run(3, 1, views, run_product, &with);
        FOR_EACH(&out, i)
        ck_assert(at(&out, i) == (tf32 ? 4 : 4 + 0x1p-11));
        tensor_free(&x);
        tensor_free(&y);
        tensor_free(&out);
    }
}
END_TEST

RUN_TESTS("cuda_matmul", products_are_added_in_any_memory_order_and_workspace,
          a_row_joins_the_product_and_relu_a_small_one_of_f32, a_small_product_takes_a_chain_in_any_memory_order,
          tf32_is_used_where_it_is_asked_for)
