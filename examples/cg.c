/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients (Hestenes and Stiefel 1952) for A x = b, on any mesh: A [n, n] has 1 / (1 + |i - j|)^2 in row i,
 * column j, within a band if asked for. Each rank makes its part of A and has no other; the host sees one number a
 * step, some steps late. examples/run cg; examples/run --ranks 4 cg --mesh 2,2 --n 2048. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "auto_option.h"
#include "checkpoint_options.h"
#include "must.h"
#include "progress.h"
#include "run_options.h"
#include "trama.h"

typedef struct options {
    int64_t n, band, lag, most;
    double tolerance;
    const char *solution; /* a file; NULL */
    const char *machine;  /* of --auto, and then mesh is NULL */
    trama_mesh *mesh;
    plan_form plan;
    checkpoint_options checkpoint;
} options;

/* ---- The system ---- */

typedef struct solver {
    trama_program *program;
    trama_value *matrix, *x, *r, *p; /* A [n, n]; solution so far, residual and direction [n, 1] */
    trama_value *rho, *limit;        /* r'r, and at which of it the iteration ends */
    trama_value *taken, *error;      /* how many steps were taken; the largest |x - solution| */
    trama_target *begin, *step, *end;
} solver;

/* Its first axis splits rows, the second one columns, others rows again. */
static void lay_matrix(char *text, size_t bytes, int axes)
{
    int at = 0;
    for (int i = 0; i < axes; i++)
        at += snprintf(text + at, bytes - (size_t)at, "%sS(%d)", i ? "," : "", i == 1);
}

/* Every axis splits vectors. */
static void lay_vector(char *text, size_t bytes, int axes)
{
    int at = 0;
    for (int i = 0; i < axes; i++)
        at += snprintf(text + at, bytes - (size_t)at, "%sS(0)", i ? "," : "");
}

/* A Toeplitz matrix, whose eigenvalues lie between the extremes over t of 1 + 2 sum of cos(d t) / (1 + d)^2, 0 < d <=
 * band (Grenander and Szego 1958): 0.14, without a band 0.64, and 2.3. */
static double entry(const options *o, int64_t row, int64_t column)
{
    const int64_t distance = llabs(row - column);
    return distance > o->band ? 0 : 1 / ((double)(1 + distance) * (double)(1 + distance));
}

/* One of this rank's boxes of A, which the caller frees. */
static trama_host_box piece_of_matrix(trama_executable *executable, const trama_value *matrix, const options *o, int i)
{
    trama_host_box piece = {.offset = {0}};
    must(trama_local_box(executable, matrix, i, piece.offset, piece.extent));
    double *data = must_allocate(piece.extent[0] * piece.extent[1], sizeof *data);
    for (int64_t row = 0; row < piece.extent[0]; row++)
        for (int64_t column = 0; column < piece.extent[1]; column++)
            data[row * piece.extent[1] + column] = entry(o, piece.offset[0] + row, piece.offset[1] + column);
    piece.data = data;
    piece.bytes = (size_t)(piece.extent[0] * piece.extent[1]) * sizeof *data;
    return piece;
}

static void make_matrix(trama_context *context, trama_executable *executable, trama_value *matrix, const options *o)
{
    trama_wrapped *wrapped;
    int n;
    must(trama_local_count(executable, matrix, &n));
    trama_host_box *pieces = must_allocate(n, sizeof *pieces);
    for (int i = 0; i < n; i++)
        pieces[i] = piece_of_matrix(executable, matrix, o, i);
    must(trama_wrap(context, "A", TRAMA_F64, TRAMA_SHAPE(o->n, o->n), n, pieces, TRAMA_READ_ONLY, &wrapped));
    must(trama_write_wrapped(executable, matrix, wrapped));
    must(trama_release(&wrapped));
    for (int i = 0; i < n; i++)
        free(pieces[i].data);
    free(pieces);
}

static double solution(int64_t i)
{
    return sin((double)i) + 0.5;
}

static trama_value *known_solution(trama_program *program, int64_t n)
{
    double *at = must_allocate(n, sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[i] = solution(i);
    trama_value *known = trama_constant(program, TRAMA_F64, TRAMA_SHAPE(n, 1), at);
    free(at);
    return known;
}

/* ---- The program ---- */

/* A state of n rows in the layout that lay writes for a mesh, where there is one. */
static trama_value *laid(const solver *s, const char *name, const options *o, int64_t columns,
                         void (*lay)(char *, size_t, int))
{
    trama_value *state = trama_state(s->program, name, TRAMA_F64, TRAMA_SHAPE(o->n, columns), NULL);
    char layout[256];
    if (!o->mesh)
        return state;
    lay(layout, sizeof layout, trama_mesh_ndim(o->mesh));
    return trama_shard(state, o->mesh, layout);
}

static trama_value *scalar(const solver *s, const char *name, trama_dtype dtype)
{
    return trama_state(s->program, name, dtype, TRAMA_SCALAR, NULL);
}

static void record_state(solver *s, const options *o)
{
    s->matrix = laid(s, "A", o, o->n, lay_matrix);
    s->x = laid(s, "x", o, 1, lay_vector);
    s->r = laid(s, "r", o, 1, lay_vector);
    s->p = laid(s, "p", o, 1, lay_vector);
    s->rho = scalar(s, "rho", TRAMA_F64);
    s->limit = scalar(s, "limit", TRAMA_F64);
    s->taken = scalar(s, "taken", TRAMA_I64);
}

/* x = 0, so that r = p = b. */
static void record_begin(solver *s, const options *o)
{
    trama_value *zero = trama_fill(s->program, TRAMA_F64, TRAMA_SHAPE(o->n, 1), 0);
    trama_value *b = trama_matmul(s->matrix, known_solution(s->program, o->n)), *rho = trama_sum_square(b);
    s->begin = trama_target_create(s->program, "begin", trama_assign(s->x, zero), trama_assign(s->r, b),
                                   trama_assign(s->p, b), trama_assign(s->rho, rho),
                                   trama_assign(s->limit, trama_scale(rho, o->tolerance * o->tolerance)),
                                   trama_assign(s->taken, trama_scalar(s->program, TRAMA_I64, 0)));
}

/* After the end no step is taken and nothing changes, however many steps the host is ahead. */
static void record_step(solver *s)
{
    trama_value *go_on = trama_cast(trama_sign(trama_relu(trama_sub(s->rho, s->limit))), TRAMA_U8);
    trama_value *q = trama_matmul(s->matrix, s->p);
    trama_value *alpha = trama_div(s->rho, trama_sum(trama_mul(s->p, q)));
    trama_value *x = trama_add(s->x, trama_mul(alpha, s->p)), *r = trama_sub(s->r, trama_mul(alpha, q));
    trama_value *rho = trama_sum_square(r);
    trama_value *p = trama_add(r, trama_mul(trama_div(rho, s->rho), s->p));
    trama_value *taken = trama_add_scalar(s->taken, 1);
    s->step = trama_target_create(s->program, "step", trama_assign_if(s->x, x, go_on), trama_assign_if(s->r, r, go_on),
                                  trama_assign_if(s->p, p, go_on), trama_assign_if(s->rho, rho, go_on),
                                  trama_assign_if(s->taken, taken, go_on));
}

static solver record(const options *o)
{
    solver s = {.program = trama_program_create()};
    record_state(&s, o);
    record_begin(&s, o);
    record_step(&s);
    s.error = trama_max(trama_abs(trama_sub(s.x, known_solution(s.program, o->n))));
    s.end = trama_target_create(s.program, "end", s.error);
    return s;
}

/* ---- The iteration ---- */

typedef struct outcome {
    int64_t taken, submitted, before; /* steps; those of the run that this one goes on from */
    double residual, error, seconds;
} outcome;

static outcome iterate(trama_context *context, trama_executable *executable, const solver *s, const options *o)
{
    outcome found = {.before = checkpoint_restart(executable, &o->checkpoint, o->most)};
    found.submitted = found.before;
    double rho = INFINITY, limit;
    bool known;
    trama_watch *watch;
    if (!found.before)
        must(trama_run(executable, s->begin));
    must(trama_read(executable, s->limit, &limit, sizeof limit));
    must(trama_watch_create(executable, (int)o->lag, &watch));
    const double begun = clock_seconds();
    while (!(rho <= limit) && found.submitted < o->most) {
        must(trama_run(executable, s->step));
        must(trama_watch_next(watch, s->rho, &rho, sizeof rho, &known));
        checkpoint_after(context, executable, &o->checkpoint, ++found.submitted);
    }
    must(trama_wait(executable));
    found.seconds = clock_seconds() - begun;
    must(trama_watch_destroy(&watch));
    checkpoint_end(context, executable, &o->checkpoint, found.submitted);
    must(trama_read(executable, s->rho, &rho, sizeof rho));
    must(trama_read(executable, s->taken, &found.taken, sizeof found.taken));
    found.residual = o->tolerance * sqrt(rho / limit);
    must(trama_run(executable, s->end));
    must(trama_read(executable, s->error, &found.error, sizeof found.error));
    return found;
}

static void write_solution(trama_context *context, trama_executable *executable, const solver *s, const options *o)
{
    const bool writes = trama_context_rank(context) == 0;
    double *x = must_allocate(o->n, sizeof *x);
    must(trama_read(executable, s->x, writes ? x : NULL, writes ? (size_t)o->n * sizeof *x : 0));
    FILE *file = writes ? fopen(o->solution, "wb") : NULL;
    if (file)
        fwrite(x, sizeof *x, (size_t)o->n, file); /* closing it tells whether it is written */
    if (writes && (!file || !close_written(file)))
        fail("cannot write --solution %s: %s", o->solution, strerror(errno));
    free(x);
}

static bool solve(trama_context *context, const options *o)
{
    solver s = record(o);
    trama_executable *executable;
    bool solved = true;
    auto_choose(context, s.step, o->machine, 0);
    must(trama_compile(context, s.program, &executable));
    if (o->plan == PLAN_REHEARSAL) {
        plan_rehearse(context, s.step, (trama_rehearsal_options){.any = 1, .reads = 1});
    } else if (o->plan) {
        must(plan_print(context, executable, s.step, o->plan, 1));
    } else {
        make_matrix(context, executable, s.matrix, o);
        const outcome found = iterate(context, executable, &s, o);
        char *mesh = o->mesh ? trama_mesh_text(o->mesh) : NULL;
        if (trama_context_rank(context) == 0)
            printf("n %lld, mesh %s: %lld iterations, relative residual %.2e, largest error %.2e, %.3f ms an iteration "
                   "(%lld submitted)\n",
                   (long long)o->n, mesh ? mesh : "chosen", (long long)found.taken, found.residual, found.error,
                   1e3 * found.seconds / fmax(1, (double)(found.submitted - found.before)), (long long)found.submitted);
        trama_text_free(&mesh);
        if (o->solution)
            write_solution(context, executable, &s, o);
        solved = found.residual <= o->tolerance;
    }
    must(trama_executable_destroy(&executable));
    trama_program_destroy(&s.program);
    return solved;
}

/* ---- Options ---- */

enum { KEY_BAND = 256, KEY_LAG, KEY_MOST, KEY_SOLUTION };

static const struct argp_option argp_options[] = {
    {"n", 'n', "N", 0, "Unknowns (1024)", 0},
    {"mesh", 'm', "MESH", 0, "Any mesh (1): its first axis splits the rows of A, the second its columns, others rows",
     0},
    {"band", KEY_BAND, "WIDTH", 0, "Elements of A further from the diagonal are 0 (none are)", 0},
    {"tolerance", 't', "T", 0, "Of the residual, relative to the right side (1e-10)", 0},
    {"lag", KEY_LAG, "STEPS", 0, "How many steps late the host sees the residual (2)", 0},
    {"most", KEY_MOST, "STEPS", 0, "End after so many, solved or not (1000)", 0},
    {"solution", KEY_SOLUTION, "FILE", 0, "Write x there, as n doubles", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->plan;
        state->child_inputs[1] = &o->checkpoint;
        state->child_inputs[2] = &o->machine;
        return 0;
    case 'n':
        o->n = argument_integer(state, "--n", text, 1, 1 << 20);
        return 0;
    case ARGP_KEY_END:
        auto_check(state, o->machine, &o->mesh);
        return 0;
    case 'm':
        trama_mesh_destroy(&o->mesh);
        o->mesh = argument_mesh(state, "--mesh", text, 0, NULL);
        return 0;
    case KEY_BAND:
        o->band = argument_integer(state, "--band", text, 0, 1 << 20);
        return 0;
    case 't':
        o->tolerance = argument_positive(state, "--tolerance", text);
        return 0;
    case KEY_LAG:
        o->lag = argument_integer(state, "--lag", text, 0, TRAMA_WATCH_MOST);
        return 0;
    case KEY_MOST:
        o->most = argument_integer(state, "--most", text, 1, 1 << 30);
        return 0;
    case KEY_SOLUTION:
        o->solution = text;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

int main(int argc, char **argv)
{
    const struct argp_child children[] = {{.argp = &run_argp}, {.argp = &checkpoint_argp}, {.argp = &auto_argp}, {0}};
    const struct argp parser = {.options = argp_options,
                                .parser = parse_option,
                                .children = children,
                                .doc = "Solves A x = b by conjugate gradients, A a dense or banded matrix."};
    options o = {.n = 1024, .band = 1 << 20, .lag = 2, .most = 1000, .tolerance = 1e-10};
    o.checkpoint.states = "x,r,p,rho,limit,taken"; /* the matrix is made anew */
    argp_parse(&parser, argc, argv, 0, NULL, &o);

    trama_context *context = NULL;
    must(trama_start(NULL, &context));
    const bool solved = solve(context, &o);
    must(trama_stop(&context));
    trama_mesh_destroy(&o.mesh);
    if (!solved)
        fail("not solved in %lld steps", (long long)o.most);
    return EXIT_SUCCESS;
}
