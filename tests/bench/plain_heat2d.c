/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is two steps of heat2d.c in plain loops on one thread a rank: rows are split, and those at the borders
 * exchanged with MPI while the rest is computed. Usage: plain_heat2d [--n 2048] */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "stencil.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

/* A rank's rows, with one more on each side, of two states. */
typedef struct heat {
    int64_t n, first, rows; /* first: in the whole */
    int rank, ranks;
    double *u[2]; /* [rows + 2, n] */
} heat;

static void compute_rows(const heat *h, int from, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) { /* rows of ours */
        const double *u = h->u[from] + (i + 1) * h->n;
        double *next = h->u[1 - from] + (i + 1) * h->n;
        next[0] = u[0];
        next[h->n - 1] = u[h->n - 1];
        if (h->first + i == 0 || h->first + i == h->n - 1)
            memcpy(next, u, sizeof *u * (size_t)h->n);
        else
            stencil_row(h->n - 2, u + 1, h->n, next + 1);
    }
}

static void step(const heat *h, int from)
{
#if TRAMA_HAVE_MPI
    double *u = h->u[from];
    int n = (int)h->n, requests = 0;
    MPI_Request request[4];
    for (int side = 0; side < 2; side++) {
        int other = h->rank + (side ? 1 : -1);
        if (other < 0 || other >= h->ranks)
            continue;
        MPI_Irecv(u + (side ? h->rows + 1 : 0) * h->n, n, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &request[requests++]);
        MPI_Isend(u + (side ? h->rows : 1) * h->n, n, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &request[requests++]);
    }
#endif
    compute_rows(h, from, 1, h->rows - 1);
#if TRAMA_HAVE_MPI
    MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
#endif
    compute_rows(h, from, 0, 1);
    compute_rows(h, from, h->rows - 1, h->rows);
}

static void run(void *arg, int n)
{
    for (int i = 0; i < 2 * n; i++)
        step(arg, i % 2);
}

static void make_states(heat *h)
{
    const size_t page = (size_t)2 << 20, bytes = sizeof(double) * (size_t)((h->rows + 2) * h->n);
    for (int k = 0; k < 2; k++) {
        h->u[k] = aligned_alloc(page, (bytes + page - 1) / page * page);
        madvise(h->u[k], bytes, MADV_HUGEPAGE);
        for (int64_t i = 0; i < (h->rows + 2) * h->n; i++)
            h->u[k][i] = stencil_start(h->first - 1 + i / h->n, i % h->n);
    }
}

int main(int argc, char **argv)
{
    heat h = {.n = bench_number(argc, argv, "n", 2048), .ranks = 1};
#if TRAMA_HAVE_MPI
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0); /* where others want the cores, too */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &h.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &h.ranks);
#endif
    h.first = h.n * h.rank / h.ranks;
    h.rows = h.n * (h.rank + 1) / h.ranks - h.first;
    if (h.rows < 2)
        bench_fail("each rank needs two rows");
    make_states(&h);
    bench_serve(h.rank, h.ranks, run, &h);
    for (int k = 0; k < 2; k++)
        free(h.u[k]);
#if TRAMA_HAVE_MPI
    MPI_Finalize();
#endif
    return 0;
}
