/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose scratch memory the system refuses: they say so, and do nothing by halves. */
#include "refusal.h"
#include "scratch.h"
#include "suite.h"
#include "views.h"

typedef struct product_case {
    trama_dtype dtype;
    int64_t m, n, k;
    order how;
} product_case;

/* Each needs scratch memory: halves always, others where no dim is contiguous or the vector is not. */
static const product_case cases[] = {
    {TRAMA_F32, 5, 4, 7, SPARSE}, {TRAMA_F64, 5, 4, 7, SPARSE}, {TRAMA_F32, 5, 1, 7, SPARSE},
    {TRAMA_F64, 1, 4, 7, SPARSE}, {TRAMA_F16, 5, 4, 7, PACKED}, {TRAMA_BF16, 5, 4, 700, SPARSE},
};

enum { BATCH = 3, N_CASES = sizeof cases / sizeof *cases };

typedef struct arrays {
    tensor out, x, y;
    trama_call call;
    trama_view in[2];
} arrays;

static const trama_attributes plain;

static void fill(arrays *a, const product_case *c, const trama_op *op)
{
    a->out = tensor_random(c->dtype, c->how, TRAMA_SHAPE(BATCH, c->m, c->n), 3);
    a->x = tensor_random(c->dtype, c->how, TRAMA_SHAPE(BATCH, c->m, c->k), 1);
    a->y = tensor_random(c->dtype, c->how, TRAMA_SHAPE(BATCH, c->k, c->n), 2);
    a->in[0] = a->x.view;
    a->in[1] = a->y.view;
    a->call = (trama_call){op, &plain, 2, 1, a->in, &a->out.view, false};
}

static void arrays_free(arrays *a)
{
    tensor_free(&a->out);
    tensor_free(&a->x);
    tensor_free(&a->y);
}

static bool is_nan_everywhere(const tensor *t)
{
    bool all = true;
    for (int64_t i[3] = {0}; i[0] < t->view.extent[0]; i[0]++)
        for (i[1] = 0; i[1] < t->view.extent[1]; i[1]++)
            for (i[2] = 0; i[2] < t->view.extent[2]; i[2]++)
                all = all && isnan(at(t, i));
    return all;
}

static const trama_op matmul = {.name = "matmul", .n_in = 2, .n_out = 1};

/* Runs the case with request number `first` refused, as an addition into the state or not; whether it was refused. */
static bool run_refused(const product_case *c, bool adds, long first)
{
    const trama_kernel *kernel = kernel_of(&matmul);
    const char *message = NULL;
    arrays a;
    fill(&a, c, &matmul);
    unsigned char *before = malloc(a.out.bytes);
    memcpy(before, a.out.memory, a.out.bytes);
    refuse(first, 1);
    trama_status status = adds ? kernel_add(kernel, &a.call, (kernel_addition){1, -0.5}, &message)
                               : kernel_run(kernel, &a.call, &message);
    const bool was = refusal_refused() > 0;
    refuse(-1, 0);
    ck_assert_int_eq(status, was ? TRAMA_E_MEMORY : TRAMA_OK);
    ck_assert(was == (message && strstr(message, "bytes of memory")));
    if (was && adds)
        ck_assert_msg(!memcmp(before, a.out.memory, a.out.bytes), "the state has changed");
    else if (was)
        ck_assert_msg(is_nan_everywhere(&a.out), "some results are left");
    free(before);
    arrays_free(&a);
    return was;
}

START_TEST(a_product_without_scratch_memory_is_not_done_at_all)
{
    for (int i = 0; i < N_CASES; i++)
        for (int adds = 0; adds < 2; adds++) {
            ck_assert_msg(run_refused(&cases[i], adds, 0), "case %d takes no memory", i);
            for (long n = 1; run_refused(&cases[i], adds, n);)
                n++;
        }
}
END_TEST

START_TEST(a_refusal_is_told_once)
{
    scratch s = {0};
    refuse(0, 1);
    ck_assert_ptr_null(scratch_take(&s, 0, 1000));
    ck_assert_ptr_null(scratch_take(&s, 1, 8)); /* not half of the buffers */
    refuse(-1, 0);
    scratch_free(&s);
    ck_assert_uint_eq(scratch_refused(), 1000);
    ck_assert_uint_eq(scratch_refused(), 0);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_product_without_scratch_memory_is_not_done_at_all, a_refusal_is_told_once};
    return suite_run("scratch", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
