/* SPDX-License-Identifier: Apache-2.0 */
/* Trama as a guest. The host is a program of its own: it has started MPI, computes on a communicator of its own with
 * OpenMP, and has dealt its arrays out by rows as its load asks for, unevenly and with padded lines. It hands three of
 * them over, has them multiplied and passed through an op that it defines itself, gets the result back into its own
 * memory, and goes on; and later does so once more. Nothing of it is copied into a layout of Trama's first.
 * examples/run embed, or examples/run --ranks 3 embed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"
#include "trama.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

/* A [ROWS, INNER] times B [INNER, COLUMNS]. */
enum { ROWS = 211, INNER = 96, COLUMNS = 64, PAD = 5, ROUNDS = 2 };

/* ---- The host ---- */

typedef struct host {
    const void *communicator; /* of its own: a part of the world, in another order; NULL without MPI */
    int rank, ranks;
} host;

/* Rows that a rank has of n: rank r has r + 1 shares. */
static int64_t first_row(const host *h, int rank, int64_t n)
{
    int64_t shares = (int64_t)h->ranks * (h->ranks + 1) / 2;
    return n * rank * (rank + 1) / 2 / shares;
}

/* A matrix of which each rank has some rows, in lines that are longer than they need be. */
typedef struct matrix {
    int64_t rows, columns, first, n, ld;
    double *at;
} matrix;

static matrix matrix_new(const host *h, int64_t rows, int64_t columns)
{
    matrix m = {.rows = rows, .columns = columns, .first = first_row(h, h->rank, rows), .ld = columns + PAD};
    m.n = first_row(h, h->rank + 1, rows) - m.first;
    m.at = must_allocate(m.n * m.ld + 1, sizeof *m.at);
    return m;
}

static double a_of(int64_t i, int64_t j, int round)
{
    return sin((double)(i + 3 * j + round)) / INNER;
}

static double b_of(int64_t i, int64_t j)
{
    return cos((double)(2 * i + j));
}

/* The host computes this with OpenMP, before it calls Trama and after. */
static void fill_a(matrix *m, int round)
{
#pragma omp parallel for
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t j = 0; j < m->columns; j++)
            m->at[i * m->ld + j] = a_of(m->first + i, j, round);
}

static void fill_b(matrix *m)
{
#pragma omp parallel for
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t j = 0; j < m->columns; j++)
            m->at[i * m->ld + j] = b_of(m->first + i, j);
}

static double soft(double x)
{
    return x / (1 + fabs(x));
}

/* The largest difference to the result of plain loops, over all ranks. */
static double largest_error(const host *h, const matrix *c, int round)
{
    double worst = 0;
#pragma omp parallel for reduction(max : worst)
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < INNER; k++)
                sum += a_of(c->first + i, k, round) * b_of(k, j);
            worst = fmax(worst, fabs(c->at[i * c->ld + j] - soft(sum)));
        }
#if TRAMA_HAVE_MPI
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, *(const MPI_Comm *)h->communicator);
#else
    (void)h;
#endif
    return worst;
}

/* ---- Its own op ---- */

/* x / (1 + |x|), element by element; Trama fuses it with the op before it. */
static trama_status soft_kernel(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    const trama_view *out = &call->out[0], *in = &call->in[0];
    for (bool more = trama_first(out, i); more; more = trama_next(out, i))
        *(double *)trama_element(out, out->ndim, i) = soft(*(const double *)trama_element(in, out->ndim, i));
    return TRAMA_OK;
}

static const trama_op *define_soft(void)
{
    const trama_op *op = NULL;
    const trama_op_definition soft_op = {
        .name = "soft", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = soft_kernel, .flops = 3, .pointwise = true};
    must(trama_op_define(&soft_op, &op));
    return op;
}

/* ---- Its arrays ---- */

static trama_wrapped *wrap(trama_context *context, const char *name, const matrix *m, trama_access access)
{
    trama_wrapped *wrapped = NULL;
    trama_host_box rows = {.data = m->at,
                           .bytes = (size_t)(m->n * m->ld) * sizeof *m->at,
                           .offset = {m->first, 0},
                           .extent = {m->n, m->columns},
                           .stride = {m->ld, 1}};
    must(trama_wrap(context, name, TRAMA_F64, TRAMA_SHAPE(m->rows, m->columns), 1, &rows, access, &wrapped));
    return wrapped;
}

/* C = soft(A B). Trama splits the rows evenly, so A and B are resharded on the way in and C on the way out. */
static void multiply(const host *h, const trama_op *op, const matrix *a, const matrix *b, const matrix *c)
{
    char spec[16];
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    trama_config config = {.communicator = h->communicator};
    must(trama_start(&config, &context));
    snprintf(spec, sizeof spec, "rows=%d", h->ranks);

    trama_mesh *mesh = trama_mesh_create(spec);
    trama_program *program = trama_program_create();
    trama_value *x = trama_input(program, "a", TRAMA_F64, TRAMA_SHAPE(ROWS, INNER));
    trama_value *w = trama_input(program, "b", TRAMA_F64, TRAMA_SHAPE(INNER, COLUMNS));
    trama_shard(x, mesh, "S(0)");
    trama_value *product = trama_matmul(x, w), *y = trama_apply(op, 1, &product, NULL);
    trama_target *target = trama_target_create(program, "multiply", y);
    must(trama_compile(context, program, &executable));

    trama_wrapped *wa = wrap(context, "a", a, TRAMA_READ_ONLY), *wb = wrap(context, "b", b, TRAMA_READ_ONLY);
    trama_wrapped *wc = wrap(context, "c", c, TRAMA_READ_WRITE);
    must(trama_feed_wrapped(executable, x, wa, NULL));
    must(trama_feed_wrapped(executable, w, wb, NULL));
    must(trama_run(executable, target));
    must(trama_read_wrapped(executable, y, wc));
    must(trama_release(&wc)); /* waits: from here on C is the host's, and has the result */
    must(trama_release(&wb));
    must(trama_release(&wa));

    must(trama_executable_destroy(&executable));
    must(trama_stop(&context));
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
}

static int run(const host *h)
{
    const trama_op *op = define_soft();
    matrix a = matrix_new(h, ROWS, INNER), b = matrix_new(h, INNER, COLUMNS), c = matrix_new(h, ROWS, COLUMNS);
    double worst = 0;
    fill_b(&b);
    for (int round = 0; round < ROUNDS; round++) {
        fill_a(&a, round);
        multiply(h, op, &a, &b, &c);
        double error = largest_error(h, &c, round);
        worst = fmax(worst, error);
        if (h->rank == 0)
            printf("round %d: %d ranks, largest error %.1e\n", round + 1, h->ranks, error);
    }
    trama_op_destroy(&op);
    free(a.at);
    free(b.at);
    free(c.at);
    return worst < 1e-12 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void)
{
#if TRAMA_HAVE_MPI
    int provided, rank;
    MPI_Comm own;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided); /* Trama needs it on several ranks */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &own);
    host h = {.communicator = &own};
    MPI_Comm_rank(own, &h.rank);
    MPI_Comm_size(own, &h.ranks);
    int status = run(&h);
    MPI_Comm_free(&own);
    MPI_Finalize();
    return status;
#else
    return run(&(host){.ranks = 1});
#endif
}
