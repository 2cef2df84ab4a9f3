/* SPDX-License-Identifier: Apache-2.0 */
/* trama calibrate: measures this machine with small programs, and writes it as a machine for trama rehearse. */
#define _GNU_SOURCE /* CPU_COUNT */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "calibrate_time.h"
#include "commands.h"
#include "must.h"
#include "progress.h"

enum { FLAT = 32, LINE = 256, HEADS = 2, FEATURES = 64, TINY = 16, HOPS = 20, OWN_CORE = 8 };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where the machine goes [stdout]", 0},
    {"quick", 'q', NULL, 0,
     "take 3 series of a tenth of the time instead of 7, for a first look; predictions are less exact", 0},
    {0}};

static const char doc[] =
    "Measures what tasks, products, operations on elements, sums and feeding take on the workers that Trama has here, "
    "and writes a machine of one node for trama rehearse --machine.\v"
    "Under mpirun all ranks, which must be on one node, measure at the same time, and pairs of them exchange "
    "messages. Nothing else should run. It takes some seconds.";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    calibration *c = state->input;
    switch (key) {
    case 'o':
        if (!*text)
            argp_error(state, "--output: takes the name of a file");
        c->path = text;
        return 0;
    case 'q':
        c->samples = QUICK_SAMPLES;
        c->seconds = 1e-3 * QUICK_SERIES;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

/* ---- Programs ---- */

static trama_value *state(const calibration *c, trama_program *p, const char *name, int copy, trama_dtype dtype,
                          trama_shape shape, bool split)
{
    static const trama_init init = {1, 2, 1, 1};
    char own[32];
    snprintf(own, sizeof own, "%s%d", name, copy);
    trama_value *v = trama_state(p, own, dtype, shape, trama_dtype_is_float(dtype) ? &init : NULL);
    return trama_shard(v, c->mesh, split ? "S(0)" : "R");
}

/* Of `rows` rows of each rank with a square matrix. */
static trama_value *product(const calibration *c, trama_program *p, int copy, int64_t rows, int64_t n,
                            trama_dtype dtype)
{
    return trama_matmul(state(c, p, "x", copy, dtype, TRAMA_SHAPE(c->ranks * rows, n), true),
                        state(c, p, "w", copy, dtype, TRAMA_SHAPE(n, n), false));
}
static trama_value *square_f32(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, n, n, TRAMA_F32);
}
static trama_value *flat_f32(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, FLAT, n, TRAMA_F32);
}
static trama_value *square_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, n, n, TRAMA_F64);
}
static trama_value *flat_f64(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return product(c, p, copy, FLAT, n, TRAMA_F64);
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
static trama_value *lines(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return state(c, p, "x", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks * n / LINE, LINE), true);
}
static trama_value *norm(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_layer_norm(lines(c, p, copy, n), 1, NULL, NULL, 1e-5);
}
static trama_value *transposed(const calibration *c, trama_program *p, int copy, int64_t n)
{
    return trama_transpose(lines(c, p, copy, n), ((int[]){1, 0}));
}
static trama_value *loss(const calibration *c, trama_program *p, int copy, int64_t n)
{
    trama_value *labels = state(c, p, "labels", copy, TRAMA_I32, TRAMA_SHAPE(c->ranks * n / LINE), true);
    return trama_cross_entropy(lines(c, p, copy, n), labels);
}
static trama_value *attention(const calibration *c, trama_program *p, int copy, int64_t n)
{
    const trama_shape shape = TRAMA_SHAPE(c->ranks, HEADS, n, FEATURES);
    trama_value *q = state(c, p, "q", copy, TRAMA_F32, shape, true),
                *k = state(c, p, "k", copy, TRAMA_F32, shape, true);
    return trama_attention_causal(q, k, state(c, p, "v", copy, TRAMA_F32, shape, true));
}
static trama_value *sum(const calibration *c, trama_program *p, int copy, int64_t n)
{
    enum { ROWS = 16 };
    return trama_sum_over(state(c, p, "x", copy, TRAMA_F32, TRAMA_SHAPE(c->ranks * n / ROWS, ROWS), true),
                          TRAMA_DIMS(1), false);
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

static void say_rate(const calibration *c, const char *what, double rate, double work, const char *unit)
{
    say(c, "  %s %.4gG%s/s %.4gk%s\n", what, rate / 1e9, unit, work / 1e3, unit);
}

/* Writes the rate at which an op that computes little moves its bytes. */
static void say_memory(const calibration *c, const char *what, record_copy *record, int64_t size, double bytes)
{
    const sample s = sample_of(c, record, size, bytes, bytes, 4e9);
    say_rate(c, what, s.work / s.seconds, s.work, "B");
}

/* Without a core of its own, the submission takes its time from that of tasks. */
static void measure_tasks(calibration *c)
{
    const measured m = time_copies(c, add, TINY, MOST_COPIES, 2e-6);
    const double submit = m.submit / m.tasks / sharing(c->ranks, c->cores);
    c->task = task_seconds(c, &m);
    const double alone = fmax(c->task - (c->own_core ? 0 : submit), 0.1 * c->task);
    say(c, "  task %.4gus\n  submit %.4gus\n", 1e6 * alone, 1e6 * submit);
}

/* A product takes flop / R + bytes / B. A square one and a flat one with the same matrix give R and B of their size;
 * smaller ones have the B of the smallest flat one. */
typedef struct product_kind {
    const char *flops, *memory; /* lines of the machine */
    record_copy *square, *flat;
    double element; /* bytes */
    int64_t most;
} product_kind;

static void measure_attention(const calibration *c)
{
    const double flop_of_point = 0.06; /* of queries, keys, features and features, as plans count: attention.def */
    for (int64_t n = 64; n <= 512; n *= 2) {
        const double flop = flop_of_point * HEADS * (double)(n * n) * FEATURES * FEATURES;
        const sample s = sample_of(c, attention, n, 20.0 * HEADS * (double)n * FEATURES, flop, 2e10);
        say_rate(c, "op attention f32", s.work / s.seconds, s.work, "flop");
        say_rate(c, "op attention_masked f32", s.work / s.seconds, s.work, "flop");
    }
}

static double measure_products(const calibration *c, const product_kind *kind)
{
    enum { LEAST_FLAT = 256, LEAST = 32 };
    double flop_time = 0, byte_time = 0, best = 0;
    for (int64_t n = kind->most; n >= LEAST; n /= 2) {
        const double side = (double)n, flop = 2 * side * side * side, bytes = 4 * kind->element * side * side;
        const double flat_flop = 2 * FLAT * side * side, flat_bytes = kind->element * (side + 3 * FLAT) * side;
        const sample square = sample_of(c, kind->square, n, bytes, flop, 2e10);
        const double share = square.work / flop;
        if (n >= LEAST_FLAT) {
            const sample flat = sample_of(c, kind->flat, n, flat_bytes, flat_flop, 1e10);
            const double part = flat.work / flat_flop, a = flat_flop * part, b = flat_bytes * part;
            const double bottom = square.work * b - bytes * share * a; /* the determinant */
            const double bytes_first = (square.work * flat.seconds - a * square.seconds) / bottom;
            byte_time = bottom > 0 && bytes_first > 0 ? bytes_first : 1e-3 * flat.seconds / b;
            say_rate(c, kind->memory, 1 / byte_time, b, "B");
        }
        flop_time = square.seconds - byte_time * bytes * share;
        flop_time = (flop_time > 0.3 * square.seconds ? flop_time : 0.3 * square.seconds) / square.work;
        best = n >= LEAST_FLAT && 1 / flop_time > best ? 1 / flop_time : best;
        say_rate(c, kind->flops, 1 / flop_time, square.work, "flop");
    }
    return best;
}

/* A core's second-level cache, and an addition whose operands fill half of it and are there since the run before. */
static void measure_cache(const calibration *c)
{
    const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const double cache = found > 0 ? (double)found : 1e6;
    const int64_t n = (int64_t)(cache / 2 / 12) * c->workers;
    const measured m = time_copies(c, add, n, 1, 16 * (double)n / c->workers / 5e10);
    const double seconds = fmax(task_seconds(c, &m) - c->task, 0.1 * c->task);
    say(c, "  cache %.4gMB %.4gGB/s\n", cache / 1e6, 16 * (double)n / m.tasks / seconds / 1e9);
}

static void measure_feed(const calibration *c)
{
    enum { ELEMENTS = 1 << 18 };
    static float data[ELEMENTS];
    trama_program *p = trama_program_create();
    trama_executable *e = NULL;
    double seconds[MOST_SAMPLES];
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(ELEMENTS));
    trama_shard(x, c->mesh, "S(0)");
    const trama_target *t = trama_target_create(p, "t", trama_neg(x));
    must(trama_compile(c->context, p, &e));
    for (int i = -1; i < c->samples; i++) {
        const double begun = clock_seconds();
        must(trama_feed(e, x, data, TRAMA_SHAPE(ELEMENTS)));
        if (i >= 0)
            seconds[i] = clock_seconds() - begun;
        must(trama_run(e, t));
        must(trama_wait(e));
    }
    say(c, "  feed %.4gGB/s\n", (double)sizeof data / c->ranks / median(c->samples, seconds) / 1e9);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

static trama_value *row_sums(trama_value *v)
{
    return trama_sum_over(v, TRAMA_DIMS(1), true);
}

static void pair_ranks(const calibration *c, trama_mesh *end[2])
{
    const int paired = c->ranks / 2 * 2;
    int *ids = malloc((size_t)paired * sizeof *ids);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < paired; i++)
            ids[i] = i ^ side;
        end[side] = trama_mesh_child(c->mesh, 1, &paired, NULL, ids);
    }
    free(ids);
}

/* Seconds in which a rank passes over `own` bytes and then does two tasks on `sent` bytes, each of which waits for the
 * one before. exchanges: before either of these, ranks 2i and 2i + 1 exchange the bytes, as ranks do that compute the
 * same program. */
static double time_exchanges(const calibration *c, int64_t own, int64_t sent, bool exchanges)
{
    trama_program *p = trama_program_create();
    trama_mesh *end[2];
    const int paired = c->ranks / 2 * 2;
    pair_ranks(c, end);
    trama_value *v = trama_state(p, "v", TRAMA_F32, TRAMA_SHAPE(paired, sent / 4), NULL);
    trama_value *w = trama_state(p, "w", TRAMA_F32, TRAMA_SHAPE(paired, own ? own / 4 : 1), NULL);
    trama_shard(v, end[0], "S(0)");
    trama_shard(w, end[0], "S(0)");
    for (int i = 0; i < HOPS; i++) {
        if (own)
            v = trama_add(v, row_sums(trama_mul(w, row_sums(v))));
        for (int side = 1; side >= 0; side--)
            v = trama_flip(exchanges ? trama_reshard(v, end[side], "S(0)") : v, TRAMA_DIMS(1)); /* is never fused */
    }
    const trama_target *t = trama_target_create(p, "hops", v);
    if (!t)
        fail("%s", trama_program_error(p));
    const measured m = time_program(c, p, t, HOPS * (4e-5 + (double)sent / 1e9 + (double)own / 4e9));
    trama_program_destroy(&p);
    trama_mesh_destroy(&end[0]);
    trama_mesh_destroy(&end[1]);
    return m.run / HOPS;
}

/* The seconds that two exchanges take of a rank's core. */
static double exchange_twice(const calibration *c, int64_t own, int64_t sent)
{
    return (time_exchanges(c, own, sent, true) - time_exchanges(c, own, sent, false)) / sharing(c->ranks, c->cores);
}

/* A rank serves both ends of an exchange, and copies the bytes of both: the ends of a message copy it in turn, while
 * the memory is faster. */
static void measure_messages(const calibration *c)
{
    enum { SMALL = 8, LARGE = 4 << 20 };
    if (c->ranks < 2)
        return;
    const double small = exchange_twice(c, 0, SMALL), cold = exchange_twice(c, LARGE, SMALL) - small;
    const double copies = exchange_twice(c, 0, LARGE) - small, least = 4 * LARGE / 100e9;
    say(c, "  message %.4gus %.4gGB/s\n", 1e6 * fmax(small / 2 - 1e-6, 1e-6) / 2,
        4 * LARGE / fmax(copies, least) / 1e9);
    say(c, "  cold %.4gus %.4gMB\n  local 100GB/s 1us\n", 1e6 * fmax(cold, 0), LARGE / 1e6);
}

/* Ops that move bytes: those of an element, where results count twice (a core reads a line before it writes it). */
typedef struct moved_kind {
    const char *line;
    record_copy *record;
    double bytes;
} moved_kind;
static const moved_kind moved[] = {
    {"core memory", add, 16},     {"op exp memory", exponential, 12},      {"op sum memory", sum, 4.5},
    {"op norm memory", norm, 12}, {"op transpose memory", transposed, 12}, {"op cross_entropy memory", loss, 4},
};
enum { N_MOVED = sizeof moved / sizeof *moved };

static void measure(calibration *c)
{
    static const product_kind kinds[] = {
        {"op matmul f32", "op matmul memory", square_f32, flat_f32, 4, 1024},
        {"op matmul f64", "op matmul memory", square_f64, flat_f64, 8, 512},
    };
    static const int64_t sides[] = {512, 1024, 2048}, counts[] = {4096, 32768, 1 << 18, 1 << 20, 1 << 22};
    say(c, "# by trama calibrate %s, %d ranks of %d workers\nkind here\n  ranks %d\n  cores %d\n", trama_version(),
        c->ranks, c->workers, c->ranks, c->cores);
    measure_tasks(c);
    measure_cache(c);
    measure_feed(c);
    double best[2];
    for (int wide = 0; wide < 2; wide++)
        best[wide] = measure_products(c, &kinds[wide]);
    say(c, "  core f32 %.4gGflop/s\n  core f64 %.4gGflop/s\n", best[0] / 1e9, best[1] / 1e9);
    say(c, "  op matvec f64 %.4gGflop/s\n", 100 * best[1] / 1e9); /* while its matrix comes */
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        say_memory(c, "op matvec memory", by_vector, sides[i], 8 * (double)(sides[i] * sides[i]));
    for (size_t i = 0; i < sizeof counts / sizeof *counts * N_MOVED; i++) {
        const moved_kind *k = &moved[i % N_MOVED];
        say_memory(c, k->line, k->record, counts[i / N_MOVED], k->bytes * (double)counts[i / N_MOVED]);
    }
    measure_attention(c);
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
    int of_rank, of_machine;
    if (!line || sscanf(line, "workers of this rank: %d on %d of %d cores", &c->workers, &of_rank, &of_machine) != 3 ||
        c->workers < 1)
        fail("this rank has no worker");
    c->own_core = strstr(described, "thread has a core of its own") && c->workers + 1 >= OWN_CORE;
    const bool shared = strstr(described, "cores are shared") || strstr(described, "ranks share");
    trama_text_free(&described);
    cpu_set_t allowed;
    if (shared && !sched_getaffinity(0, sizeof allowed, &allowed) && CPU_COUNT(&allowed) < of_machine)
        of_machine = CPU_COUNT(&allowed);
    c->cores = c->ranks * (c->workers + c->own_core);
    c->cores = c->cores < of_machine ? c->cores : of_machine;
    const int share = of_machine / c->ranks - 1; /* one may be there for messages */
    c->least = share > 1 ? share < c->workers ? share : c->workers : 1;
    if (c->rank == 0)
        c->out = c->path ? fopen(c->path, "w") : stdout;
    if (c->rank == 0 && !c->out)
        fail("--output '%s': %s", c->path, strerror(errno));
}

int command_calibrate(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = doc};
    calibration c = {.samples = MOST_SAMPLES, .seconds = 1e-3 * SERIES};
    argp_parse(&parser, argc, argv, 0, NULL, &c);
    start(&c);
    measure(&c);
    if (c.path && c.out && !close_written(c.out))
        fail("--output '%s': it could not be written: %s", c.path, strerror(errno));
    trama_mesh_destroy(&c.mesh);
    must(trama_stop(&c.context));
    return EXIT_SUCCESS;
}
