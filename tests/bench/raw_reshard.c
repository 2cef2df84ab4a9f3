/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one change of layout of an f32 matrix [n, n], which is split by rows over all ranks, by one collective of
 * MPI: into columns by MPI_Alltoallw with datatypes, or by packing and MPI_Alltoallv; to everybody by MPI_Allgatherv.
 * Usage: raw_reshard alltoallw|alltoallv|allgatherv [--n 8192] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>

enum { MAX_RANKS = 64 };

/* Rank r has rows offset[r] to offset[r + 1], and gets these columns, or everything. */
typedef struct exchange {
    int n, rank, ranks, offset[MAX_RANKS + 1];
    float *rows, *target, *packed;
    int sent[MAX_RANKS], sent_at[MAX_RANKS], received[MAX_RANKS], received_at[MAX_RANKS];
    MPI_Datatype sent_as[MAX_RANKS], received_as[MAX_RANKS];
} exchange;

static int length(const exchange *x, int rank)
{
    return x->offset[rank + 1] - x->offset[rank];
}

static void alltoallw(exchange *x)
{
    MPI_Alltoallw(x->rows, x->sent, x->sent_at, x->sent_as, x->target, x->received, x->received_at, x->received_as,
                  MPI_COMM_WORLD);
}

static void alltoallv(exchange *x)
{
    for (int to = 0; to < x->ranks; to++)
        for (int i = 0; i < length(x, x->rank); i++)
            memcpy(x->packed + x->sent_at[to] + (size_t)i * (size_t)length(x, to),
                   x->rows + (size_t)i * (size_t)x->n + x->offset[to], sizeof(float) * (size_t)length(x, to));
    MPI_Alltoallv(x->packed, x->sent, x->sent_at, MPI_FLOAT, x->target, x->received, x->received_at, MPI_FLOAT,
                  MPI_COMM_WORLD);
}

static void allgatherv(exchange *x)
{
    MPI_Allgatherv(x->rows, length(x, x->rank) * x->n, MPI_FLOAT, x->target, x->received, x->received_at, MPI_FLOAT,
                   MPI_COMM_WORLD);
}

static const struct way {
    const char *name;
    void (*run)(exchange *);
} ways[] = {{"alltoallw", alltoallw}, {"alltoallv", alltoallv}, {"allgatherv", allgatherv}};

typedef struct work {
    exchange x;
    const struct way *way;
} work;

static void run(void *arg, int n)
{
    work *w = arg;
    for (int i = 0; i < n; i++)
        w->way->run(&w->x);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void prepare(exchange *x, const char *name)
{
    int mine = length(x, x->rank), whole = !strcmp(name, "allgatherv") ? x->n : mine;
    size_t n = (size_t)x->n;
    x->rows = malloc((size_t)mine * n * sizeof(float));
    x->packed = malloc((size_t)mine * n * sizeof(float));
    x->target = malloc(n * (size_t)whole * sizeof(float));
    for (size_t i = 0; i < (size_t)mine * n; i++)
        x->rows[i] = x->packed[i] = (float)i;
    memset(x->target, 0, n * (size_t)whole * sizeof(float));
    for (int r = 0; r < x->ranks; r++) {
        bool typed = !strcmp(name, "alltoallw");
        x->received[r] = length(x, r) * whole;
        x->received_at[r] = x->offset[r] * whole * (typed ? (int)sizeof(float) : 1);
        x->received_as[r] = MPI_FLOAT;
        x->sent[r] = typed ? 1 : mine * length(x, r);
        x->sent_at[r] = typed ? x->offset[r] * (int)sizeof(float) : mine * x->offset[r];
        MPI_Type_vector(mine, length(x, r), x->n, MPI_FLOAT, &x->sent_as[r]);
        MPI_Type_commit(&x->sent_as[r]);
    }
}

int main(int argc, char **argv)
{
    work w = {.x.n = bench_number(argc, argv, "n", 8192)};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (argc > 1 && !strcmp(argv[1], ways[i].name))
            w.way = &ways[i];
    if (!w.way)
        bench_fail("usage: raw_reshard alltoallw|alltoallv|allgatherv [--n N]");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &w.x.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.x.ranks);
    if (w.x.ranks > MAX_RANKS)
        bench_fail("at most %d ranks", MAX_RANKS);
    for (int r = 0; r <= w.x.ranks; r++)
        w.x.offset[r] = (int)((int64_t)w.x.n * r / w.x.ranks);
    prepare(&w.x, w.way->name);
    bench_serve(w.x.rank, w.x.ranks, run, &w);
    MPI_Finalize();
    return 0;
}

#else

int main(void)
{
    bench_fail("built without MPI");
}

#endif
