/* SPDX-License-Identifier: Apache-2.0 */
/* trama calibrate: measures this machine with small programs, and writes it as a machine for trama rehearse. */
#define _GNU_SOURCE /* CPU_COUNT */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "calibrate_caches.h"
#include "calibrate_messages.h"
#include "calibrate_programs.h"
#include "commands.h"
#include "must.h"
#include "progress.h"

enum { TINY = 16, WIDE = 1 << 18, LONG = 1 << 17, OWN_CORE = 8 };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where the machine goes [stdout]", 0},
    {"quick", 'q', NULL, 0,
     "measure all once instead of 5 times, and for a tenth of the time, for a first look; predictions are less exact",
     0},
    {0}};

static const char doc[] =
    "Measures what tasks, products, operations on elements, sums and feeding take on the workers that Trama has here, "
    "and writes a machine of one node for trama rehearse --machine.\v"
    "Under mpirun all ranks, which must be on one node, measure at the same time, and pairs of them exchange "
    "messages. Nothing else should run. It takes about half a minute: all is measured five times.";

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
        c->passes = 1;
        c->seconds = 1e-3 * QUICK_SERIES;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

/* ---- Lines ---- */

/* Writes the rate at which an op that computes little moves its bytes, and returns it. */
static double say_memory(const calibration *c, const char *what, record_copy *record, int64_t size, double bytes)
{
    const sample s = sample_of(c, record, size, bytes, bytes, 4e9);
    say_rate(c, what, s.work / s.seconds, s.work, "B");
    return s.work / s.seconds;
}

/* Runs of few tasks, for which the program waits, and of many of 2 operands and of 5. Without a core of its own, the
 * submission takes its time from that of tasks. */
static void measure_tasks(calibration *c)
{
    enum { FEW = 2, MORE = 3 };
    const measured large = time_copies(c, record_negative, LONG, 1, 5e-5);
    const measured few = time_copies(c, record_negative, TINY, TASKS, 2e-6);
    const measured many = time_copies(c, record_joined, TINY, TASKS, 2e-6);
    const double whole = task_seconds(c, &few), operand = fmax(0, task_seconds(c, &many) - whole) / MORE;
    const double submit = fmax(0, few.submit - large.submit) / fmax(1, few.tasks - large.tasks);
    const double submit_operand = fmin(fmax(0, many.submit - few.submit) / many.tasks / MORE, submit / FEW);
    const double own = c->own_core ? 0 : fmax(0, few.submit / few.tasks - FEW * submit_operand),
                 own_operand = c->own_core ? 0 : submit_operand;
    c->task = whole + operand;
    c->operand = operand;
    say(c, "task",
        (quantity[MOST_QUANTITIES]){{1e6 * beyond_overhead(whole, FEW * operand + own), "us"},
                                    {1e6 * fmax(0, operand - own_operand), "us"}});
    c->submit = submit - FEW * submit_operand;
    say(c, "submit",
        (quantity[MOST_QUANTITIES]){{1e6 * c->submit, "us"},
                                    {1e6 * submit_operand, "us"},
                                    {1e6 * fmax(0, large.submit - submit * large.tasks), "us"}});
}

/* Of a task in chains, beside the time of its kernel; its submission counts in both. */
static core_cost overhead_of_passes(const calibration *c, int64_t elements)
{
    const int chains = (int)fmax(1, evict_bytes(c) / (PASSES * WIDE * 4));
    const measured m =
        time_copies(c, record_passes, elements, chains * c->least, PASSES * (4e-6 + 4e-10 * (double)elements));
    return (core_cost){task_seconds(c, &m) - m.kernel, m.submit / m.tasks};
}

/* How many times as long; no less than 1. */
static double times_as_long(double many, double few)
{
    return many > few && few > 0 ? many / few : 1;
}

/* Where tasks bring evict_bytes into the cache of their core, and where they bring nothing. */
static void measure_evictions(calibration *c)
{
    const core_cost few = overhead_of_passes(c, TINY), many = overhead_of_passes(c, WIDE);
    const double submits = c->own_core ? 0 : 1; /* in the seconds of a task */
    const double task = times_as_long(many.seconds - submits * many.submit, few.seconds - submits * few.submit);
    c->evicted = fmax(0, many.seconds - few.seconds);
    say(c, "evict",
        (quantity[MOST_QUANTITIES]){
            {evict_bytes(c) / 1e6, "MB"}, {task, ""}, {times_as_long(many.submit, few.submit), ""}});
}

/* A product takes flop / R + bytes of operands / B + bytes of results / c->memory. A square one and a flat one with the
 * same matrix give R and B of their size; smaller ones have the B of the smallest flat one.
 * A flat one of twice the largest side gives the B of a matrix that lies beyond the caches. */
typedef struct product_kind {
    const char *flops, *memory; /* lines of the machine */
    record_copy *square, *flat;
    double element; /* bytes */
    int64_t most;
} product_kind;

/* The flop of attention and of its gradient are those that plans count: attention.def. */
static void measure_attention(const calibration *c)
{
    for (int64_t n = 64; n <= 512; n *= 2) {
        const double flop = 4.0 * HEADS * (double)(n * n) * FEATURES;
        const sample s = sample_of(c, record_attention, n, 20.0 * HEADS * (double)n * FEATURES, flop, 2e10);
        const int copies = 2 * c->least;
        const measured both = time_copies(c, record_attention_gradient, n, copies, 3.5 * flop / 1e11);
        const double whole = task_seconds(c, &both) * both.tasks / copies, forward = s.seconds * flop / s.work;
        const double backward = 2.5 * flop / beyond_overhead(whole, forward);
        say_rate(c, "op attention f32", s.work / s.seconds, s.work, "flop");
        say_rate(c, "op attention_masked f32", s.work / s.seconds, s.work, "flop");
        say_rate(c, "op attention_grad f32", backward, 2.5 * s.work, "flop");
        say_rate(c, "op attention_masked_grad f32", backward, 2.5 * s.work, "flop");
    }
}

/* Parameters w, m and v change, and g is read. */
static void measure_updates(const calibration *c)
{
    for (int64_t n = 4096; n <= 1 << 18; n *= 8) {
        const double bytes = UPDATE_MOVES * (double)n * updates_of(c, n) * c->least;
        const measured m = time_copies(c, record_updates, n, 1, bytes / 2e10);
        const double task = task_seconds(c, &m), work = bytes / m.tasks;
        say_rate(c, "op adam memory", work / beyond_overhead(task, overhead_beside(c, c->spread)), work, "B");
    }
}

static sample sample_product(const calibration *c, record_copy *record, int64_t n, double operands, double results,
                             double flop, double rate)
{
    sample s = sample_of(c, record, n, operands + results, flop, rate);
    s.seconds = fmax(s.seconds - results * s.work / flop / c->memory, 0.5 * s.seconds);
    return s;
}

/* bytes: of a task's operands. */
static sample sample_flat(const calibration *c, const product_kind *kind, int64_t n, double *bytes)
{
    const double side = (double)n, flop = 2 * FLAT * side * side, operands = kind->element * (side + FLAT) * side;
    const sample s = sample_product(c, kind->flat, n, operands, 2 * FLAT * kind->element * side, flop, 1e10);
    *bytes = operands * s.work / flop;
    return s;
}

static double measure_products(const calibration *c, const product_kind *kind)
{
    enum { LEAST_FLAT = 256, LEAST = 32 };
    double flop_time = 0, byte_time = 0, best = 0;
    for (int64_t n = kind->most; n >= LEAST; n /= 2) {
        const double side = (double)n, flop = 2 * side * side * side, bytes = 2 * kind->element * side * side;
        const sample square = sample_product(c, kind->square, n, bytes, bytes, flop, 2e10);
        const double share = square.work / flop;
        if (n >= LEAST_FLAT) {
            double b; /* bytes of operands */
            const sample flat = sample_flat(c, kind, n, &b);
            const double a = flat.work;
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
    double bytes;
    const sample flat = sample_flat(c, kind, 2 * kind->most, &bytes);
    say_rate(c, kind->memory, bytes / fmax(flat.seconds - flat.work / best, 0.1 * flat.seconds), bytes, "B");
    return best;
}

/* Ops of a program's own: their flops in the cache, and what their bytes take more beyond it. */
static void measure_own(const calibration *c)
{
    static const struct {
        const char *line;
        record_copy *record;
        double element; /* bytes */
    } kinds[] = {{"op own f32", record_own_chain_f32, 4}, {"op own f64", record_own_chain_f64, 8}};
    enum { FEW_ROWS = 32 };
    const double row = 2 * kinds[1].element * OWN_LINE; /* bytes, of the result, too */
    const int64_t rows = (int64_t)fmax(2 * FEW_ROWS, c->spread / 2 / row),
                  counts[] = {FEW_ROWS * OWN_LINE, rows * OWN_LINE};
    double rate = 0; /* of f64 */
    for (int wide = 0; wide < 2; wide++) {
        const int64_t n = FEW_ROWS * OWN_LINE * c->least;
        const double flop = OWN_FLOPS * OWN_CHAIN * (double)n;
        const measured m = time_copies(c, kinds[wide].record, n, 1, flop / 1e10);
        rate = flop / m.tasks / m.kernel;
        say_rate(c, kinds[wide].line, rate, 0, "flop");
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const double bytes = 3 * kinds[1].element * (double)counts[i];
        const sample s = sample_of(c, record_own_f64, counts[i], bytes, bytes, 4e9);
        const double computes = OWN_FLOPS * s.work / (3 * kinds[1].element) / rate;
        say_rate(c, "op own memory", s.work / fmax(s.kernel - computes, s.work / 1e12), s.work, "B");
    }
}

/* Runs of a chain of small tasks, of whose results the program reads a sum, or none. */
static void measure_read(const calibration *c)
{
    trama_program *p = trama_program_create();
    trama_value *all = trama_sum(record_chain(c, p, 0, TINY));
    const trama_target *t = trama_target_create(p, "chain", all);
    const double reads = time_reads(c, p, t, all, 6e-5).run, none = time_program(c, p, t, 6e-5).run;
    say(c, "read", (quantity[MOST_QUANTITIES]){{1e6 * fmax(0, reads - none) / sharing(c->ranks, c->cores), "us"}});
    trama_program_destroy(&p);
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
    say(c, "feed",
        (quantity[MOST_QUANTITIES]){{(double)sizeof data / c->ranks / median(SAMPLES, seconds) / 1e9, "GB/s"}});
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

/* Ops that move bytes: those of an element, where results count twice (a core reads a line before it writes it). */
typedef struct moved_kind {
    const char *line;
    record_copy *record;
    double bytes;
} moved_kind;
static const moved_kind moved[] = {
    {"core memory", record_add, ADD_MOVES},
    {"op exp memory", record_exponential, 12},
    {"op sum memory", record_sum, 4},
    {"op norm memory", record_norm, 12},
    {"op transpose memory", record_transposed, 12},
    {"op cross_entropy memory", record_loss, 4},
};
enum { N_MOVED = sizeof moved / sizeof *moved };

static void measure(calibration *c)
{
    static const product_kind kinds[] = {
        {"op matmul f32", "op matmul memory", record_square_f32, record_flat_f32, 4, 1024},
        {"op matmul f64", "op matmul memory", record_square_f64, record_flat_f64, 8, 512},
    };
    static const int64_t sides[] = {256, 512}, counts[] = {4096, 32768, 1 << 17, 1 << 18};
    measure_tasks(c);
    measure_caches(c);
    measure_evictions(c);
    measure_read(c);
    measure_feed(c);
    double best[2];
    for (int wide = 0; wide < 2; wide++)
        best[wide] = measure_products(c, &kinds[wide]);
    say_rate(c, "core f32", best[0], 0, "flop");
    say_rate(c, "core f64", best[1], 0, "flop");
    say_rate(c, "op matvec f64", 100 * best[1], 0, "flop"); /* while its matrix comes */
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        say_memory(c, "op matvec memory", record_by_vector, sides[i], 8 * (double)(sides[i] * sides[i]));
    for (size_t i = 0; i < sizeof counts / sizeof *counts * N_MOVED; i++) {
        const moved_kind *k = &moved[i % N_MOVED];
        const double rate =
            say_memory(c, k->line, k->record, counts[i / N_MOVED], k->bytes * (double)counts[i / N_MOVED]);
        c->near_memory = k->record == record_add ? rate : c->near_memory;
    }
    measure_shared(c);
    measure_own(c);
    measure_updates(c);
    measure_attention(c);
    measure_messages(c);
}

static void measure_all(calibration *c)
{
    time_copies(c, record_add, 1 << 18, TASKS, 2e-4); /* the first measurements of a process are slower */
    for (int i = 0; i < c->passes; i++) {
        measure(c);
        lines_next_pass(c->lines);
    }
    if (!c->out)
        return;
    fprintf(c->out, "# by trama calibrate %s, %d ranks of %d workers\nkind here\n  ranks %d\n  cores %d\n",
            trama_version(), c->ranks, c->workers, c->ranks, c->cores);
    lines_write(c->lines, c->out);
    fprintf(c->out, "nodes 1 here\n");
}

static void start(calibration *c)
{
    char text[32];
    cpu_set_t allowed; /* before the start, which binds this thread to a core */
    const bool known = !sched_getaffinity(0, sizeof allowed, &allowed);
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
    if (shared && known && CPU_COUNT(&allowed) < of_machine)
        of_machine = CPU_COUNT(&allowed);
    c->cores = c->ranks * (c->workers + c->own_core);
    c->cores = c->cores < of_machine ? c->cores : of_machine;
    const int cores = of_machine / c->ranks, share = cores < OWN_CORE ? cores : cores - 1; /* for messages */
    c->least = share > 1 ? share < c->workers ? share : c->workers : 1;
    c->least = c->least < MOST_COPIES / 2 ? c->least : MOST_COPIES / 2;
    c->spread = SPREAD_BYTES / sharing(c->ranks * c->workers, c->cores);
    if (c->rank == 0)
        c->out = c->path ? fopen(c->path, "w") : stdout;
    if (c->rank == 0 && !c->out)
        fail("--output '%s': %s", c->path, strerror(errno));
}

int command_calibrate(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = doc};
    machine_lines lines = {0};
    calibration c = {.lines = &lines, .passes = MOST_PASSES, .seconds = 1e-3 * SERIES};
    argp_parse(&parser, argc, argv, 0, NULL, &c);
    start(&c);
    define_ops();
    measure_all(&c);
    destroy_ops();
    if (c.path && c.out && !close_written(c.out))
        fail("--output '%s': it could not be written: %s", c.path, strerror(errno));
    trama_mesh_destroy(&c.mesh);
    must(trama_stop(&c.context));
    return EXIT_SUCCESS;
}
