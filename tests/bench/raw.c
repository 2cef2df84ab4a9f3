/* SPDX-License-Identifier: Apache-2.0 */
/* The BLAS calls alone, on all cores, one after the other: what Trama's products are compared with.
 * Usage: raw sgemm [--n 4096]                            one unit is one sgemm, C = A B
 *        raw step [--hidden 512,256] [--batch 128]       one unit is the products of a training step, nothing else */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "main_job.h"

/* C [m, n] = op(A) [m, k] op(B) [k, n], row-major. */
typedef struct gemm {
    bool trans_a, trans_b;
    int m, n, k;
    const float *a, *b;
    float *c;
} gemm;

typedef struct list {
    int n;
    gemm at[3 * MAIN_JOB_MAX_LAYERS];
} list;

static void run(void *arg, int n)
{
    const list *calls = arg;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < calls->n; k++) {
            const gemm *g = &calls->at[k];
            cblas_sgemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans, g->trans_b ? CblasTrans : CblasNoTrans,
                        g->m, g->n, g->k, 1, g->a, g->trans_a ? g->m : g->k, g->b, g->trans_b ? g->k : g->n, 0, g->c,
                        g->n);
        }
}

static float *matrix(int rows, int columns)
{
    size_t n = (size_t)rows * (size_t)columns;
    float *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

static list one_product(int n)
{
    return (list){1, {{false, false, n, n, n, matrix(n, n), matrix(n, n), matrix(n, n)}}};
}

/* Forward from the first layer to the last; then per layer, backwards, the weight's gradient and the input's, which
 * the first layer does not need. */
static list products_of_step(const char *hidden, int batch)
{
    int size[MAIN_JOB_MAX_LAYERS + 1], n = main_job_sizes(hidden, size);
    float *h[MAIN_JOB_MAX_LAYERS + 1], *dh[MAIN_JOB_MAX_LAYERS + 1], *w[MAIN_JOB_MAX_LAYERS];
    list l = {0};
    for (int i = 0; i <= n; i++) {
        h[i] = matrix(batch, size[i]);
        dh[i] = matrix(batch, size[i]);
    }
    for (int i = 0; i < n; i++) {
        w[i] = matrix(size[i], size[i + 1]);
        l.at[l.n++] = (gemm){false, false, batch, size[i + 1], size[i], h[i], w[i], h[i + 1]};
    }
    for (int i = n - 1; i >= 0; i--) {
        l.at[l.n++] = (gemm){true, false, size[i], size[i + 1], batch, h[i], dh[i + 1], matrix(size[i], size[i + 1])};
        if (i)
            l.at[l.n++] = (gemm){false, true, batch, size[i], size[i + 1], dh[i + 1], w[i], dh[i]};
    }
    return l;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    list calls;
    if (!strcmp(what, "sgemm"))
        calls = one_product(bench_number(argc, argv, "n", 4096));
    else if (!strcmp(what, "step"))
        calls = products_of_step(bench_option(argc, argv, "hidden", "512,256"), bench_number(argc, argv, "batch", 128));
    else
        bench_fail("usage: raw sgemm|step");
    bench_blas(bench_cores());
    bench_serve(0, 1, run, &calls);
    return 0;
}
