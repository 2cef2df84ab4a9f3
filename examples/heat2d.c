/* SPDX-License-Identifier: Apache-2.0 */
/* The heat equation u_t = u_xx + u_yy on the unit square, 0 at its border: one op of one's own, whose rule reads a
 * neighbour on each side, on a mesh of any shape. Which rows and columns go where follows from the layout.
 * examples/run --ranks 4 heat2d --mesh 2,2 --picture heat.svg */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "auto_option.h"
#include "checkpoint_options.h"
#include "heat_map.h"
#include "must.h"
#include "progress.h"
#include "run_options.h"

static const double PI = 3.14159265358979323846, RATIO = 0.2; /* of the time step to h^2; stable up to 1/4 */

/* ---- Options ---- */

enum { KEY_N = 'n', KEY_STEPS = 's', KEY_MESH = 'm', KEY_PICTURE = 'p' };

typedef struct options {
    int64_t n, steps;
    const char *machine; /* of --auto, and then mesh is NULL */
    trama_mesh *mesh;
    const char *picture; /* NULL: none */
    plan_form plan;
    checkpoint_options checkpoint;
} options;

static const struct argp_option argp_options[] = {
    {"n", KEY_N, "N", 0, "Points along each side, the border's included (257)", 0},
    {"steps", KEY_STEPS, "N", 0, "Steps in time, each of h^2 / 5 (2000)", 0},
    {"mesh", KEY_MESH, "SPEC", 0,
     "4, 2,2, y=2,x=3, ...: rows are split over the first axis, columns over the second (1)", 0},
    {"picture", KEY_PICTURE, "FILE", 0, "Draw the last state as SVG", 0},
    {0},
};

static const char argp_doc[] =
    "Solves the heat equation on the unit square, and checks the result.\v"
    "It starts as sin(pi x) sin(pi y) + sin(2 pi x) sin(3 pi y) / 2, whose later states are known: of the equation, "
    "which the scheme meets up to a multiple of h^2, and of the scheme itself, up to rounding. The exit status is 1 "
    "where an error is larger than it may be.";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->plan;
        state->child_inputs[1] = &o->checkpoint;
        state->child_inputs[2] = &o->machine;
        return 0;
    case ARGP_KEY_END:
        auto_check(state, o->machine, &o->mesh);
        return 0;
    case KEY_N:
        o->n = argument_integer(state, "--n", text, 3, 30000);
        return 0;
    case KEY_STEPS:
        o->steps = argument_integer(state, "--steps", text, 1, 1000000000);
        return 0;
    case KEY_MESH:
        trama_mesh_destroy(&o->mesh);
        o->mesh = argument_mesh(state, "--mesh", text, 0, NULL);
        if (trama_mesh_ndim(o->mesh) > 2)
            argp_error(state, "--mesh '%s': takes one or two axes, for rows and columns", text);
        return 0;
    case KEY_PICTURE:
        if (!*text)
            argp_error(state, "--picture: takes the name of a file");
        o->picture = text;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

static options options_of(int argc, char **argv)
{
    options o = {.n = 257, .steps = 2000};
    const struct argp_child children[] = {{.argp = &run_argp}, {.argp = &checkpoint_argp}, {.argp = &auto_argp}, {0}};
    const struct argp parser = {.options = argp_options, .parser = parse_option, .doc = argp_doc, .children = children};
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    return o;
}

/* ---- The op: next = u + RATIO (the four neighbours of u - 4 u), where the border of the square stays ---- */

/* At a place of the whole tensor. */
static double *element(const trama_view *of, int64_t i, int64_t j)
{
    return (double *)of->data + (i - of->offset[0]) * of->stride[0] + (j - of->offset[1]) * of->stride[1];
}

/* count points, of which the neighbours stand `row` and `step` elements away. Inlined, so that the usual step of 1 gets
 * a loop of its own. */
static inline void update_row(int64_t count, const double *u, int64_t row, int64_t step, double *restrict next,
                              int64_t next_step)
{
    for (int64_t j = 0; j < count; j++) {
        const double *at = u + j * step;
        next[j * next_step] = *at + RATIO * (at[-row] + at[row] + at[-step] + at[step] - 4 * *at);
    }
}

static trama_status diffuse_cpu(const trama_call *call)
{
    const trama_view *u = &call->in[1], *next = &call->out[0];
    const int64_t top = next->offset[0], bottom = top + next->extent[0], left = next->offset[1],
                  right = left + next->extent[1], last_row = u->global[0] - 1, last_column = u->global[1] - 1;
    const int64_t first = left > 0 ? left : 1, count = (right <= last_column ? right : last_column) - first;
    if (u->dtype != TRAMA_F64)
        return trama_kernel_fail("it takes f64, not %s", trama_dtype_name(u->dtype));
    for (int64_t i = top; i < bottom; i++) {
        if (i == 0 || i == last_row) {
            for (int64_t j = left; j < right; j++)
                *element(next, i, j) = *element(u, i, j);
            continue;
        }
        if (left == 0)
            *element(next, i, 0) = *element(u, i, 0);
        if (right > last_column)
            *element(next, i, last_column) = *element(u, i, last_column);
        if (u->stride[1] == 1 && next->stride[1] == 1)
            update_row(count, element(u, i, first), u->stride[0], 1, element(next, i, first), 1);
        else
            update_row(count, element(u, i, first), u->stride[0], u->stride[1], element(next, i, first),
                       next->stride[1]);
    }
    return TRAMA_OK;
}

/* Operand 0 is the state that it writes over: two states take turns, and nothing is copied. */
static const trama_op_definition diffuse = {.name = "diffuse",
                                            .n_in = 2,
                                            .n_out = 1,
                                            .rule = "ij,i{1:1}j{1:1}->ij",
                                            .updates = 1,
                                            .flops = 7,
                                            .cpu = diffuse_cpu};

/* ---- Modes ---- */

static const struct mode {
    int k, l;
    double amplitude; /* of sin(k pi x) sin(l pi y) */
} modes[] = {{1, 1, 1}, {2, 3, 0.5}};

enum { N_MODES = sizeof modes / sizeof *modes };

static double step_time(int64_t n)
{
    return RATIO / ((double)(n - 1) * (double)(n - 1));
}

/* How much is left of a mode after a time; and in the scheme, after a step. */
static double left_after(const struct mode *m, double time)
{
    return exp(-PI * PI * (m->k * m->k + m->l * m->l) * time);
}

static double left_of_step(const struct mode *m, double h)
{
    double x = sin(m->k * PI * h / 2), y = sin(m->l * PI * h / 2);
    return 1 - 4 * RATIO * (x * x + y * y);
}

/* sum of amount[m] sin(k pi x) sin(l pi y), into u [n, n]. */
static void fill(int64_t n, const double *amount, double *u)
{
    double *sines = must_allocate(n * N_MODES * 2, sizeof *sines);
    for (int64_t i = 1; i < n - 1; i++) /* at the border is 0, where sin(pi) is 1e-16 */
        for (int m = 0; m < N_MODES; m++) {
            sines[(2 * i) * N_MODES + m] = sin(PI * (double)(modes[m].k * i) / (double)(n - 1));
            sines[(2 * i + 1) * N_MODES + m] = sin(PI * (double)(modes[m].l * i) / (double)(n - 1));
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int m = 0; m < N_MODES; m++)
                sum += amount[m] * sines[(2 * i) * N_MODES + m] * sines[(2 * j + 1) * N_MODES + m];
            u[i * n + j] = sum;
        }
    free(sines);
}

static double farthest(int64_t n, const double *u, const double *known)
{
    double most = 0;
    for (int64_t i = 0; i < n * n; i++)
        most = fabs(u[i] - known[i]) <= most ? most : fabs(u[i] - known[i]); /* NaN stays */
    return most;
}

/* FNV-1a over the bits: the same on every mesh. */
static uint64_t checksum(int64_t n, const double *u)
{
    const unsigned char *bytes = (const unsigned char *)u;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < (size_t)(n * n) * sizeof *u; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

/* Prints an error with the largest that it may be; whether it is no larger. */
static bool tell(const char *what, double error, double bound)
{
    bool good = error <= bound; /* NaN is not */
    printf("%s: error %.3e, at most %.3e allowed%s\n", what, error, bound, good ? "" : ": WRONG");
    return good;
}

/* The scheme's error in a mode is below steps |e - g| max(e, |g|)^(steps - 1), with g the factor of a step and e the
 * exact factor, where Taylor's theorem gives |e - g| <= (lambda dt)^2 / 2 + dt pi^4 (k^4 + l^4) h^2 / 12. A step rounds
 * by at most 3 epsilon of the largest value. */
static bool check(int64_t n, int64_t steps, const double *u)
{
    double h = 1 / (double)(n - 1), dt = step_time(n), bound = 0, scheme[N_MODES], equation[N_MODES], all = 0;
    double *known = must_allocate(n * n, sizeof *known);
    for (int m = 0; m < N_MODES; m++) {
        double k2 = modes[m].k * modes[m].k, l2 = modes[m].l * modes[m].l, lambda_dt = PI * PI * (k2 + l2) * dt;
        double g = left_of_step(&modes[m], h), e = left_after(&modes[m], dt);
        double step = lambda_dt * lambda_dt / 2 + dt * pow(PI, 4) * (k2 * k2 + l2 * l2) * h * h / 12;
        bound += modes[m].amplitude * (double)steps * step * pow(fmax(e, fabs(g)), (double)(steps - 1));
        scheme[m] = modes[m].amplitude * pow(g, (double)steps);
        equation[m] = modes[m].amplitude * left_after(&modes[m], (double)steps * dt);
        all += modes[m].amplitude;
    }
    double rounding = 6 * DBL_EPSILON * all * (double)(steps + 8);
    fill(n, equation, known);
    bool good = tell("against the equation", farthest(n, u, known), bound + rounding);
    fill(n, scheme, known);
    good = tell("against the scheme", farthest(n, u, known), rounding) && good;
    free(known);
    return good;
}

/* ---- The program ---- */

typedef struct heat {
    trama_program *program;
    trama_value *state[2];
    trama_target *step[2]; /* step[i] writes state[1 - i], from state[i] */
} heat;

static heat record(const options *o, const trama_op *op)
{
    heat h = {.program = trama_program_create()};
    static const char *const names[] = {"u", "v"}, *const steps[] = {"u_to_v", "v_to_u"};
    for (int i = 0; i < 2; i++) {
        h.state[i] = trama_state(h.program, names[i], TRAMA_F64, TRAMA_SHAPE(o->n, o->n), NULL);
        if (o->mesh)
            trama_shard(h.state[i], o->mesh, trama_mesh_ndim(o->mesh) == 1 ? "S(0)" : "S(0),S(1)");
    }
    for (int i = 0; i < 2; i++) {
        trama_value *operands[] = {h.state[1 - i], h.state[i]};
        h.step[i] = trama_target_create(h.program, steps[i], trama_apply(op, 2, operands, NULL));
    }
    return h;
}

static void start_state(trama_executable *e, const options *o, const heat *h, double *u)
{
    double amount[N_MODES];
    for (int m = 0; m < N_MODES; m++)
        amount[m] = modes[m].amplitude;
    fill(o->n, amount, u);
    must(trama_write(e, h->state[0], u, (size_t)(o->n * o->n) * sizeof *u));
}

/* The steps from `first` on; returns seconds. */
static double run(trama_context *context, trama_executable *e, const options *o, const heat *h, int64_t first)
{
    must(trama_wait(e));
    double begun = clock_seconds();
    for (int64_t i = first; i < o->steps; i++) {
        must(trama_run(e, h->step[i % 2]));
        checkpoint_after(context, e, &o->checkpoint, i + 1);
    }
    must(trama_wait(e));
    double seconds = clock_seconds() - begun;
    checkpoint_end(context, e, &o->checkpoint, o->steps);
    return seconds;
}

/* On rank 0; whether the errors are as small as they must be. */
static bool report(const options *o, const heat *h, const double *u, int64_t steps, double seconds)
{
    trama_completion *completed;
    trama_layout layout;
    must(trama_completion_create(h->program, 1, &completed));
    const trama_mesh *on = trama_completion_mesh(completed, h->state[0]);
    trama_completion_layout(completed, h->state[0], &layout);
    char *mesh = trama_mesh_text(on);
    double points = (double)(o->n - 2) * (double)(o->n - 2);
    printf("n %" PRId64 ", mesh %s, %" PRId64 " steps, time %.6g\n", o->n, mesh, o->steps,
           (double)o->steps * step_time(o->n));
    bool good = check(o->n, o->steps, u);
    printf("checksum %016" PRIx64 "\n", checksum(o->n, u));
    printf("%.1f million point updates a second\n", points * (double)steps / seconds / 1e6);
    if (o->picture) {
        char title[256];
        snprintf(title, sizeof title, "heat on %" PRId64 " x %" PRId64 " points, mesh %.100s, time %.6g", o->n, o->n,
                 mesh, (double)o->steps * step_time(o->n));
        heat_map_write(o->picture, title, o->n, o->n, u, on, &layout);
    }
    trama_text_free(&mesh);
    trama_completion_destroy(&completed);
    return good;
}

int main(int argc, char **argv)
{
    options o = options_of(argc, argv);
    const trama_op *op = NULL;
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    bool good = true;
    must(trama_start(NULL, &context));
    must(trama_op_define(&diffuse, &op));
    heat h = record(&o, op);
    auto_choose(context, h.step[0], o.machine, 0);
    must(trama_compile(context, h.program, &executable));
    if (o.plan) {
        must(plan_print(context, executable, h.step[0], o.plan, 1));
    } else {
        double *u = must_allocate(o.n * o.n, sizeof *u);
        const int64_t done = checkpoint_restart(executable, &o.checkpoint, o.steps);
        if (!done)
            start_state(executable, &o, &h, u);
        double seconds = run(context, executable, &o, &h, done);
        bool first = trama_context_rank(context) == 0;
        must(trama_read(executable, h.state[o.steps % 2], first ? u : NULL, (size_t)(o.n * o.n) * sizeof *u));
        good = !first || report(&o, &h, u, o.steps - done, seconds);
        free(u);
    }
    must(trama_executable_destroy(&executable));
    must(trama_stop(&context));
    trama_program_destroy(&h.program);
    trama_op_destroy(&op);
    trama_mesh_destroy(&o.mesh);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
