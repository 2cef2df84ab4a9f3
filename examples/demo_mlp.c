/* SPDX-License-Identifier: Apache-2.0 */
/* The reference demo: two matmuls and a mean squared error, forward and backward, on one process, data parallel (dp)
 * and model parallel (mp); recorded, and eager. The loss and the gradients are the same in all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "must.h"
#include "run_options.h"

enum { BATCH = 16, IN = 784, HIDDEN = 784, OUT = 10 };

/* ---- Variants ---- */

typedef enum parallel { SINGLE, DP, MP, N_PARALLEL } parallel;

/* How each is laid out on its mesh. With DP a batch is split, with MP w0 by column and w1 by row; the rest is
 * completed. */
static const struct strategy {
    const char *name, *mesh, *x, *labels, *w0, *w1;
} strategies[N_PARALLEL] = {
    [SINGLE] = {"single", "1", "R", "R", "R", "R"},
    [DP] = {"dp", "dp=2", "S(0)", "S(0)", "R", "R"},
    [MP] = {"mp", "mp=2", "R", "R", "S(1)", "S(0)"},
};

typedef struct variant {
    parallel mode;
    bool eager;     /* each op runs when it is written, else the program is recorded and compiled */
    bool host;      /* labels and learning rate are plain host values, and a step is made by hand */
    plan_form plan; /* of a recorded one: printed, and nothing runs */
} variant;

/* ---- The program, the same for all variants ---- */

typedef struct numbers {
    double loss, norm0, norm1; /* norms of the gradients of w0 and w1 */
    double loss_after;         /* a step; of a host variant */
} numbers;

typedef struct network {
    trama_value *loss, *gradient0, *gradient1, *loss_after;
} network;

/* The mean of (x w0 w1 - labels)^2: x [BATCH, IN], w0 [IN, HIDDEN], w1 [HIDDEN, OUT], labels [BATCH, OUT]. */
static trama_value *squared_error(trama_value *x, trama_value *w0, trama_value *w1, trama_value *labels)
{
    trama_value *z = trama_matmul(trama_matmul(x, w0), w1);
    return trama_mean(trama_square(trama_sub(z, labels)));
}

static trama_value *weight(trama_program *program, const char *name, uint64_t stream, int64_t in, int64_t out,
                           const trama_mesh *mesh, const char *layout)
{
    const trama_init init = {.low = -1 / sqrt((double)in), .high = 1 / sqrt((double)in), .seed = 1, .stream = stream};
    trama_value *w = trama_parameter(program, name, TRAMA_F64, TRAMA_SHAPE(in, out), &init);
    return trama_shard(w, mesh, layout);
}

static network build(trama_program *program, const variant *v, const trama_mesh *mesh, trama_value *x,
                     trama_value *labels)
{
    const struct strategy *s = &strategies[v->mode];
    trama_value *w0 = weight(program, "w0", 0, IN, HIDDEN, mesh, s->w0);
    trama_value *w1 = weight(program, "w1", 1, HIDDEN, OUT, mesh, s->w1);
    network n = {.loss = squared_error(x, w0, w1, labels)};
    n.gradient0 = trama_gradient(n.loss, w0);
    n.gradient1 = trama_gradient(n.loss, w1);
    if (v->host) {
        double rate = 0.02;
        trama_value *lr = trama_constant(program, TRAMA_F64, TRAMA_SCALAR, &rate);
        trama_value *stepped0 = trama_sub(w0, trama_mul(lr, n.gradient0));
        trama_value *stepped1 = trama_sub(w1, trama_mul(lr, n.gradient1));
        n.loss_after = squared_error(x, stepped0, stepped1, labels);
    }
    return n;
}

/* ---- Running a variant ---- */

/* Any numbers will do. */
static double *host_numbers(int64_t count, double begin)
{
    double *host = must_allocate(count, sizeof *host);
    for (int64_t i = 0; i < count; i++)
        host[i] = sin(begin + (double)i);
    return host;
}

static double norm(trama_executable *executable, trama_value *value)
{
    int64_t count = trama_shape_count(trama_value_shape(value));
    double *host = must_allocate(count, sizeof *host), sum = 0;
    must(trama_read(executable, value, host, (size_t)count * sizeof *host));
    for (int64_t i = 0; i < count; i++)
        sum += host[i] * host[i];
    free(host);
    return sqrt(sum);
}

static numbers read_numbers(trama_executable *executable, const network *n)
{
    numbers read = {.loss_after = NAN};
    must(trama_read(executable, n->loss, &read.loss, sizeof read.loss));
    read.norm0 = norm(executable, n->gradient0);
    read.norm1 = norm(executable, n->gradient1);
    if (n->loss_after)
        must(trama_read(executable, n->loss_after, &read.loss_after, sizeof read.loss_after));
    return read;
}

/* Recorded once, then compiled, fed and run. */
static numbers run_recorded(trama_context *context, const variant *v, const trama_mesh *mesh, const double *x_host,
                            const double *labels_host)
{
    const struct strategy *s = &strategies[v->mode];
    const trama_shape x_shape = TRAMA_SHAPE(BATCH, IN), labels_shape = TRAMA_SHAPE(BATCH, OUT);
    trama_program *program = trama_program_create();
    trama_executable *executable = NULL;
    trama_value *x = trama_shard(trama_input(program, "x", TRAMA_F64, x_shape), mesh, s->x), *labels;
    if (v->host)
        labels = trama_constant(program, TRAMA_F64, labels_shape, labels_host);
    else
        labels = trama_shard(trama_input(program, "labels", TRAMA_F64, labels_shape), mesh, s->labels);
    network n = build(program, v, mesh, x, labels);
    trama_target *target = n.loss_after
                               ? trama_target_create(program, "step", n.loss, n.gradient0, n.gradient1, n.loss_after)
                               : trama_target_create(program, "gradients", n.loss, n.gradient0, n.gradient1);

    must(trama_compile(context, program, &executable));
    must(trama_feed(executable, x, x_host, x_shape));
    if (!v->host)
        must(trama_feed(executable, labels, labels_host, labels_shape));
    numbers read = {.loss = NAN};
    if (v->plan) {
        must(plan_print(context, executable, target, v->plan, 1));
    } else {
        must(trama_run(executable, target));
        read = read_numbers(executable, &n);
    }
    must(trama_executable_destroy(&executable));
    trama_program_destroy(&program);
    return read;
}

/* Each op runs as soon as it is written; there is no target, and any value can be read. */
static numbers run_eager(trama_context *context, const variant *v, const trama_mesh *mesh, const double *x_host,
                         const double *labels_host)
{
    const struct strategy *s = &strategies[v->mode];
    const trama_shape x_shape = TRAMA_SHAPE(BATCH, IN), labels_shape = TRAMA_SHAPE(BATCH, OUT);
    trama_program *program;
    trama_executable *executable;
    must(trama_eager(context, &program, &executable));
    trama_value *x = trama_tensor(program, TRAMA_F64, x_shape, x_host, mesh, s->x);
    trama_value *labels = v->host ? trama_constant(program, TRAMA_F64, labels_shape, labels_host)
                                  : trama_tensor(program, TRAMA_F64, labels_shape, labels_host, mesh, s->labels);
    network n = build(program, v, mesh, x, labels);
    must(trama_program_status(program));
    numbers read = read_numbers(executable, &n);
    must(trama_executable_destroy(&executable));
    trama_program_destroy(&program);
    return read;
}

static numbers run(trama_context *context, const variant *v)
{
    double *x = host_numbers(BATCH * IN, 1), *labels = host_numbers(BATCH * OUT, 2);
    trama_mesh *mesh = trama_mesh_create(strategies[v->mode].mesh);
    numbers read = (v->eager ? run_eager : run_recorded)(context, v, mesh, x, labels);
    trama_mesh_destroy(&mesh);
    free(x);
    free(labels);
    return read;
}

/* ---- The table ---- */

static double difference(double a, double b)
{
    return fabs(a - b) / fabs(b);
}

/* NaN where one of them is. */
static double larger(double a, double b)
{
    return a < b || isnan(b) ? b : a;
}

/* The largest relative difference between a variant's numbers and the first one's. */
static double compare(const variant *v, const numbers *n, const numbers *first)
{
    double most = larger(difference(n->loss, first->loss), difference(n->norm0, first->norm0));
    most = larger(most, difference(n->norm1, first->norm1));
    return v->host ? larger(most, difference(n->loss_after, first->loss_after)) : most;
}

static void print_heading(void)
{
    printf("%-7s %-9s %-8s %-16s %-16s %-16s %s\n", "mode", "how", "labels", "loss", "norm of dw0", "norm of dw1",
           "loss after a step");
}

static void print_row(const variant *v, const numbers *n)
{
    printf("%-7s %-9s %-8s %-16.12g %-16.12g %-16.12g ", strategies[v->mode].name, v->eager ? "eager" : "recorded",
           v->host ? "host" : "sharded", n->loss, n->norm0, n->norm1);
    if (v->host)
        printf("%.12g\n", n->loss_after);
    else
        printf("-\n");
}

/* Runs them all, prints a row each, and returns the largest relative difference from the first. */
static double run_variants(trama_context *context, int n, const variant *variants)
{
    bool speaks = trama_context_rank(context) == 0, stepped = false;
    numbers first = {0};
    double most = 0;
    if (speaks)
        print_heading();
    for (int i = 0; i < n; i++) {
        numbers found = run(context, &variants[i]);
        if (i == 0)
            first = found;
        if (variants[i].host && !stepped)
            first.loss_after = found.loss_after;
        stepped |= variants[i].host;
        most = larger(most, compare(&variants[i], &found, &first));
        if (speaks)
            print_row(&variants[i], &found);
    }
    return most;
}

static double run_all(trama_context *context)
{
    variant all[4 * N_PARALLEL];
    for (int i = 0; i < 4 * N_PARALLEL; i++)
        all[i] = (variant){.mode = (parallel)(i / 2 % N_PARALLEL), .eager = i >= 2 * N_PARALLEL, .host = i % 2};
    double most = run_variants(context, 4 * N_PARALLEL, all);
    if (trama_context_rank(context) == 0)
        printf("largest relative difference %.1e\n", most);
    return most;
}

/* ---- Options ---- */

enum { KEY_MODE = 256, KEY_EAGER, KEY_HOST };

static const struct argp_option argp_options[] = {
    {"mode", KEY_MODE, "NAME", 0, "single (the default), dp or mp", 0},
    {"eager", KEY_EAGER, NULL, 0, "Run each op when it is written", 0},
    {"host", KEY_HOST, NULL, 0, "Labels and learning rate are plain host values, and a step is made by hand", 0},
    {0},
};

typedef struct options {
    bool one; /* variant, not all of them */
    variant wanted;
} options;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    static const char *const modes[N_PARALLEL] = {"single", "dp", "mp"};
    options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->wanted.plan;
        return 0;
    case KEY_MODE:
        o->wanted.mode = (parallel)argument_word(state, "--mode", text, N_PARALLEL, modes);
        break;
    case KEY_EAGER:
        o->wanted.eager = true;
        break;
    case KEY_HOST:
        o->wanted.host = true;
        break;
    case ARGP_KEY_END:
        if (o->wanted.plan && o->wanted.eager)
            argp_error(state, "--plan: an eager program has none, its ops run one by one; leave out --eager");
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
    o->one = true;
    return 0;
}

int main(int argc, char **argv)
{
    const struct argp_child children[] = {{.argp = &run_argp}, {0}};
    const struct argp parser = {.options = argp_options,
                                .parser = parse_option,
                                .children = children,
                                .doc =
                                    "Loss and gradients of two matmuls and a mean squared error, on one process, data "
                                    "parallel and model parallel. Without options all variants in a table."};
    options o = {.one = false};
    argp_parse(&parser, argc, argv, 0, NULL, &o);

    trama_context *context = NULL;
    double most = 0;
    must(trama_start(NULL, &context));
    if (o.wanted.plan)
        run(context, &o.wanted);
    else
        most = o.one ? run_variants(context, 1, &o.wanted) : run_all(context);
    must(trama_stop(&context));
    if (!(most < 1e-10))
        fail("the variants differ by %.1e, which rounding does not explain", most);
    return EXIT_SUCCESS;
}
