/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is the iteration of cg.c as one writes it with MPI and BLAS: rows of A over the ranks, one thread each.
 * Usage: raw_cg [--n 8192] [--solve 16] */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "bench.h"

#if TRAMA_HAVE_MPI
#include <cblas.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_RANKS = 64 };

/* This rank has rows offset[rank] to offset[rank + 1]. */
typedef struct solver {
    int n, rows, rank, ranks, solve, taken;
    int count[MAX_RANKS], offset[MAX_RANKS + 1];
    double *matrix, *all, *x, *r, *p, *q, rho; /* [rows, n]; all [n]: everybody's p; [rows] */
} solver;

static double sum(double mine)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return mine;
}

static void begin(solver *s)
{
    for (int i = 0; i < s->rows; i++) {
        s->x[i] = 0;
        s->r[i] = s->p[i] = 1;
    }
    s->rho = sum(cblas_ddot(s->rows, s->r, 1, s->r, 1));
}

static void iterate(solver *s)
{
    MPI_Allgatherv(s->p, s->rows, MPI_DOUBLE, s->all, s->count, s->offset, MPI_DOUBLE, MPI_COMM_WORLD);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, s->rows, s->n, 1, s->matrix, s->n, s->all, 1, 0, s->q, 1);
    const double alpha = s->rho / sum(cblas_ddot(s->rows, s->p, 1, s->q, 1));
    cblas_daxpy(s->rows, alpha, s->p, 1, s->x, 1);
    cblas_daxpy(s->rows, -alpha, s->q, 1, s->r, 1);
    const double rho = sum(cblas_ddot(s->rows, s->r, 1, s->r, 1));
    cblas_dscal(s->rows, rho / s->rho, s->p, 1);
    cblas_daxpy(s->rows, 1, s->r, 1, s->p, 1);
    s->rho = rho;
}

static void run(void *arg, int n)
{
    solver *s = arg;
    for (int i = 0; i < n; i++) {
        if (s->taken++ % s->solve == 0)
            begin(s);
        iterate(s);
        if (!(s->rho >= 0))
            bench_fail("the residual is no number");
    }
}

static double *vector(int64_t n)
{
    const size_t page = 2 << 20, bytes = ((size_t)n * sizeof(double) + page - 1) / page * page;
    double *data = aligned_alloc(page, bytes);
    if (!data)
        bench_fail("no memory");
    madvise(data, bytes, MADV_HUGEPAGE);
    memset(data, 0, bytes);
    return data;
}

static void prepare(solver *s)
{
    for (int r = 0; r <= s->ranks; r++)
        s->offset[r] = (int)((int64_t)s->n * r / s->ranks);
    for (int r = 0; r < s->ranks; r++)
        s->count[r] = s->offset[r + 1] - s->offset[r];
    s->rows = s->count[s->rank];
    s->matrix = vector((int64_t)s->rows * s->n);
    s->all = vector(s->n);
    s->x = vector(s->rows);
    s->r = vector(s->rows);
    s->p = vector(s->rows);
    s->q = vector(s->rows);
    for (int i = 0; i < s->rows; i++)
        for (int j = 0; j < s->n; j++) {
            const double far = 1 + abs(s->offset[s->rank] + i - j);
            s->matrix[(int64_t)i * s->n + j] = 1 / (far * far);
        }
}

int main(int argc, char **argv)
{
    solver s = {.n = bench_number(argc, argv, "n", 8192), .solve = bench_number(argc, argv, "solve", 16)};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    if (s.ranks > MAX_RANKS)
        bench_fail("at most %d ranks", MAX_RANKS);
    bench_blas(1);
    prepare(&s);
    bench_serve(s.rank, s.ranks, run, &s);
    MPI_Finalize();
    return 0;
}

#else

int main(void)
{
    bench_fail("built without MPI");
}

#endif
