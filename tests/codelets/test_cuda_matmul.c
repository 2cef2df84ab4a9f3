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
    bool add, tf32, done;
} run;

/* Views: result and operands of the product, then of the calls behind it. */
static void run_product(const trama_view *device, const gpu *g, void *with)
{
    run *r = with;
    trama_call calls[3];
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
    else if (r->n_calls == 1 || !(r->done = kernel->cuda_then(calls, r->n_calls - 1, calls + 1, &other)))
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

/* A product with the addition of a row, or relu, or both. done: whether the BLAS can compute them as one. */
static void check_followed(trama_dtype dtype, order how, bool adds, bool swapped, bool relu, bool done)
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
    const tensor *made = done ? result : &product;
    FOR_EACH(made, i)
    {
        const double sum_at = product_at(&x, &y, i[0], i[1]) + (done && adds ? AT(&row, i[1]) : 0);
        ck_near(dtype, at(made, i), done && relu ? fmax(sum_at, 0) : sum_at, 1);
    }
    ck_assert(outside_untouched(made));
    tensor *all[] = {&x, &y, &row, &product, &sum, &last};
    for (int i = 0; i < 6; i++)
        tensor_free(all[i]);
}

START_TEST(a_row_and_relu_join_the_product)
{
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_number(dtype)) {
        const bool joins = trama_dtype_is_float((trama_dtype)dtype) && dtype != TRAMA_F64;
        if (is_unsigned((trama_dtype)dtype) ||
            trama_dtype_size((trama_dtype)dtype) == 1) /* the result is beyond them */
            continue;
        for (int swapped = 0; swapped < 2; swapped++) {
            check_followed((trama_dtype)dtype, PACKED, true, swapped, true, joins);
            check_followed((trama_dtype)dtype, PACKED, true, swapped, false, joins);
        }
        check_followed((trama_dtype)dtype, PACKED, false, false, true, joins);
        check_followed((trama_dtype)dtype, TURNED, true, false, true, false); /* columns are contiguous */
        check_followed((trama_dtype)dtype, SPARSE, true, false, true, false);
    }
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

RUN_TESTS("cuda_matmul", products_are_added_in_any_memory_order_and_workspace, a_row_and_relu_join_the_product,
          tf32_is_used_where_it_is_asked_for)
