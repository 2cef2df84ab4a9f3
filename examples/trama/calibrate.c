/* SPDX-License-Identifier: Apache-2.0 */
/* trama calibrate: measures this machine with small programs, and writes it as a machine for trama rehearse. */
#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"
#include "progress.h"

enum { SAMPLES = 7, TINY = 16, MOST_COPIES = 64, HOPS = 20, OWN_CORE = 8 };

static const struct argp_option options[] = {{"output", 'o', "FILE", 0, "where the machine goes [stdout]", 0}, {0}};

static const char doc[] =
    "Measures what tasks, products, operations on elements, sums and feeding take on the workers that Trama has here, "
    "and "
    "writes a machine of one node for trama rehearse --machine.\v"
    "Under mpirun all ranks, which must be on one node, measure at the same time, and messages between two of them are "
    "measured, too. Nothing else should run. It takes some seconds.";

typedef struct calibration {
    const char *path;
    FILE *out; /* of rank 0; NULL */
    trama_context *context;
    trama_mesh *mesh; /* all ranks */
    int rank, ranks, workers;
    double task, submit; /* seconds */
} calibration;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    calibration *c = state->input;
    switch (key) {
    case 'o':
        if (!*text)
            argp_error(state, "--output: takes the name of a file");
        c->path = text;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

/* ---- Programs ---- */

/* Records one copy of what is measured, on pieces of `size` of each rank. */
typedef trama_value *record_copy(const calibration *c, trama_program *p, int copy, int64_t size);

static trama_value *state(const calibration *c, trama_program *p, const char *name, int copy, trama_dtype dtype,
                          trama_shape shape, bool split)
{
    static const trama_init init = {1, 2, 1, 1};
    char own[32];
    snprintf(own, sizeof own, "%s%d", name, copy);
    trama_value *v = trama_state(p, own, dtype, shape, &init);
    return trama_shard(v, c->mesh, split ? "S(0)" : "R");
}

static trama_value *product(const calibration *c, trama_program *p, int copy, int64_t n, trama_dtype dtype)
{
    return trama_matmul(state(c, p, "x", copy, dtype, TRAMA_SHAPE(c->ranks * n, n), true),
                        state(c, p, "w", copy, dtype, TRAMA_SHAPE(n, n), false));
}
static trama_value *product_f32(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, n, TRAMA_F32);
}
static trama_value *product_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, n, TRAMA_F64);
}
static trama_value *by_vector(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_matmul(state(c, p, "x", copy, TRAMA_F64, TRAMA_SHAPE(c->ranks * n, n), true),
                        state(c, p, "v", copy, TRAMA_F64, TRAMA_SHAPE(n, 1), false));
}
static trama_value *vector(const calibration *c, trama_program *p, const char *name, int copy, int64_t n)
{
    return state(c, p, name, copy, TRAMA_F32, TRAMA_SHAPE(c->ranks * n), true);
}
static trama_value *add(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_add(vector(c, p, "x", copy, n), vector(c, p, "y", copy, n));
}
static trama_value *exponential(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_exp(vector(c, p, "x", copy, n));
}
static trama_value *sum(const calibration *c, trama_program *p, int copy, int64_t n)
{
    enum { ROWS = 16 };
    return trama_sum_over(state(c, p, "x", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks * n / ROWS, ROWS), true),
                          TRAMA_DIMS(1), false);
}

/* ---- Times ---- */

typedef struct measured {
    double run, submit; /* seconds of a run, and of its submission */
    int tasks;          /* of a rank */
} measured;

static int earlier(const void *x, const void *y)
{
    return *(const double *)x > *(const double *)y ? 1 : -1;
}

static double median(double *of)
{
    qsort(of, SAMPLES, sizeof *of, earlier);
    return of[SAMPLES / 2];
}

static int count_tasks(trama_executable *e, const trama_target *t)
{
    int rank = 0, steps = 0, tasks = 0;
    char *text;
    must(trama_plan_text(e, t, false, &text));
    if (sscanf(text, "rank %d: %d steps, %d of them", &rank, &steps, &tasks) != 3)
        fail("the plan cannot be read: %.60s", text);
    trama_text_free(&text);
    return tasks > 0 ? tasks : 1;
}

/* Runs the program's target in series, which is about `work` seconds of a core a run; all ranks make the same number.
 */
static measured time_program(const calibration *c, trama_program *p, const trama_target *t, double work)
{
    trama_executable *e = NULL;
    double runs[SAMPLES], submits[SAMPLES];
    const double wanted = 0.02 * c->workers / work;
    const int n = wanted < 2 ? 2 : wanted > 1000 ? 1000 : (int)wanted;
    must(trama_compile(c->context, p, &e));
    must(trama_run(e, t));
    must(trama_wait(e));
    for (int i = 0; i < SAMPLES; i++) {
        const double begun = clock_seconds();
        must(trama_run(e, t));
        submits[i] = clock_seconds() - begun;
        for (int k = 1; k < n; k++)
            must(trama_run(e, t));
        must(trama_wait(e));
        runs[i] = (clock_seconds() - begun) / n;
    }
    const measured m = {median(runs), median(submits), count_tasks(e, t)};
    must(trama_executable_destroy(&e));
    return m;
}

/* Copies of one op that do not need each other. */
static measured time_copies(const calibration *c, record_copy *record, int64_t size, int copies, double work)
{
    trama_program *p = trama_program_create();
    trama_value *values[MOST_COPIES];
    for (int i = 0; i < copies; i++)
        values[i] = record(c, p, i, size);
    const trama_target *t = trama_target_at(TRAMA_HERE, p, "copies", copies, values);
    if (!t)
        fail("%s", trama_program_error(p));
    const measured m = time_program(c, p, t, work * copies);
    trama_program_destroy(&p);
    return m;
}

/* ---- Lines ---- */

static void say(const calibration *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const calibration *c, const char *format, ...)
{
    va_list list;
    if (!c->out)
        return;
    va_start(list, format);
    vfprintf(c->out, format, list);
    va_end(list);
}

/* Writes the rate of a worker for tasks of the work that the op's tasks have; work: flop or bytes of a copy. */
static double say_rate(const calibration *c, const char *what, record_copy *record, int64_t size, double work,
                       const char *unit)
{
    const int copies = 2 * c->workers < MOST_COPIES ? 2 * c->workers : MOST_COPIES;
    const double guess = work / (strcmp(unit, "B") ? 2e10 : 4e9) + 5e-6;
    const measured m = time_copies(c, record, size, copies, guess);
    const double task = work * copies / m.tasks, busy = m.run * c->workers / m.tasks;
    const double seconds = busy - c->task > 0.1 * busy ? busy - c->task : 0.1 * busy;
    say(c, "  %s %.4gG%s/s %.4gk%s\n", what, task / seconds / 1e9, unit, task / 1e3, unit);
    return task / seconds;
}

static void measure_tasks(calibration *c)
{
    const measured m = time_copies(c, add, TINY, MOST_COPIES, 2e-6);
    c->submit = m.submit / m.tasks;
    const double busy = m.run * c->workers / m.tasks;
    c->task = busy > 1.2 * c->submit ? busy - c->submit : 0.2 * c->submit; /* workers share cores with the submission */
    say(c, "  task %.4gus\n  submit %.4gus\n", 1e6 * c->task, 1e6 * c->submit);
}

static void measure_feed(const calibration *c)
{
    enum { ELEMENTS = 1 << 18 };
    static float data[ELEMENTS];
    trama_program *p = trama_program_create();
    trama_executable *e = NULL;
    double seconds[SAMPLES];
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(ELEMENTS));
    trama_shard(x, c->mesh, "S(0)");
    const trama_target *t = trama_target_create(p, "t", trama_neg(x));
    must(trama_compile(c->context, p, &e));
    for (int i = -1; i < SAMPLES; i++) {
        const double begun = clock_seconds();
        must(trama_feed(e, x, data, TRAMA_SHAPE(ELEMENTS)));
        if (i >= 0)
            seconds[i] = clock_seconds() - begun;
        must(trama_run(e, t));
        must(trama_wait(e));
    }
    say(c, "  feed %.4gGB/s\n", (double)sizeof data / c->ranks / median(seconds) / 1e9);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

/* Seconds of a message of n bytes from rank 0 to rank 1, or back, where each waits for the one before. */
static double time_hop(const calibration *c, int64_t bytes)
{
    trama_program *p = trama_program_create();
    const int ids[] = {0, 1}, one = 1;
    trama_mesh *end[] = {trama_mesh_child(c->mesh, 1, &one, NULL, &ids[0]),
                         trama_mesh_child(c->mesh, 1, &one, NULL, &ids[1])};
    trama_value *v = trama_state(p, "v", TRAMA_F32, TRAMA_SHAPE(bytes / 4), NULL);
    trama_shard(v, end[0], "R");
    for (int i = 0; i < HOPS; i++)
        v = trama_neg(trama_reshard(v, end[(i + 1) % 2], "R"));
    const trama_target *t = trama_target_create(p, "hops", v);
    if (!t)
        fail("%s", trama_program_error(p));
    const measured m = time_program(c, p, t, HOPS * (2e-5 + (double)bytes / 2e9));
    trama_program_destroy(&p);
    trama_mesh_destroy(&end[0]);
    trama_mesh_destroy(&end[1]);
    return m.run / HOPS;
}

/* Between ranks of a node the ends copy messages, each on its core, while the memory is faster: both ends take the
 * bytes at twice the rate of the whole. */
static void measure_messages(const calibration *c)
{
    enum { SMALL = 8, LARGE = 4 << 20 };
    if (c->ranks < 2)
        return;
    const double small = time_hop(c, SMALL), large = time_hop(c, LARGE);
    const double hop = small - c->task > 2e-6 ? small - c->task : 2e-6;
    const double tasks = 2.0 * LARGE / 8e9; /* the task between two hops */
    const double bytes = large - small > 1.5 * tasks ? large - small - tasks : (large - small) / 2;
    say(c, "  message %.4gus %.4gGB/s\n  local 100GB/s 1us\n", 1e6 * (hop - 1e-6) / 2, 2 * LARGE / bytes / 1e9);
}

static void measure(calibration *c)
{
    static const int64_t sides[] = {32, 64, 128, 256, 512, 1024}, counts[] = {4096, 32768, 1 << 18, 1 << 22};
    const int own = c->ranks > 1 && c->workers + 1 >= OWN_CORE; /* a core for messages */
    say(c, "# by trama calibrate %s, %d ranks of %d workers\nkind here\n  ranks %d\n  cores %d\n", trama_version(),
        c->ranks, c->workers, c->ranks, c->ranks * (c->workers + own));
    measure_tasks(c);
    measure_feed(c);
    double best[2] = {0};
    for (int wide = 0; wide < 2; wide++)
        for (size_t i = 0; i < sizeof sides / sizeof *sides - (size_t)wide; i++) {
            const double n = (double)sides[i],
                         rate = say_rate(c, wide ? "op matmul f64" : "op matmul f32", wide ? product_f64 : product_f32,
                                         sides[i], 2 * n * n * n, "flop");
            best[wide] = rate > best[wide] ? rate : best[wide];
        }
    say(c, "  core f32 %.4gGflop/s\n  core f64 %.4gGflop/s\n", best[0] / 1e9, best[1] / 1e9);
    for (size_t i = 3; i < sizeof sides / sizeof *sides; i++)
        say_rate(c, "op matmul memory", by_vector, 2 * sides[i], 8 * 4 * (double)(sides[i] * sides[i]), "B");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        say_rate(c, "core memory", add, counts[i], 12 * (double)counts[i], "B");
        say_rate(c, "op exp memory", exponential, counts[i], 8 * (double)counts[i], "B");
        say_rate(c, "op sum memory", sum, counts[i], 4.25 * (double)counts[i], "B");
    }
    measure_messages(c);
    say(c, "nodes 1 here\n");
}

static void start(calibration *c)
{
    char text[32];
    must(trama_start(NULL, &c->context));
    c->rank = trama_context_rank(c->context);
    c->ranks = trama_context_ranks(c->context);
    snprintf(text, sizeof text, "%d", c->ranks);
    c->mesh = trama_mesh_create(text);
    char *described = trama_context_describe(c->context);
    const char *line = strstr(described, "workers of this rank: ");
    c->workers = line ? atoi(line + strlen("workers of this rank: ")) : 0;
    trama_text_free(&described);
    if (c->workers < 1)
        fail("this rank has no worker");
    if (c->rank == 0)
        c->out = c->path ? fopen(c->path, "w") : stdout;
    if (c->rank == 0 && !c->out)
        fail("--output '%s': %s", c->path, strerror(errno));
}

int command_calibrate(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = doc};
    calibration c = {.path = NULL};
    argp_parse(&parser, argc, argv, 0, NULL, &c);
    start(&c);
    measure(&c);
    if (c.path && c.out && !close_written(c.out))
        fail("--output '%s': it could not be written: %s", c.path, strerror(errno));
    trama_mesh_destroy(&c.mesh);
    must(trama_stop(&c.context));
    return EXIT_SUCCESS;
}
