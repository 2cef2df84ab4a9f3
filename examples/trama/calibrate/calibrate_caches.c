/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate_caches.h"

#include <math.h>
#include <unistd.h>

/* B/s of a worker that passes over copies of so many bytes each in turns. */
static double rate_of_copies(const calibration *c, record_copy *record, int64_t size, int copies, double bytes)
{
    const measured m = time_copies(c, record, size, copies, bytes / 2e10);
    return bytes * copies / m.tasks / beyond_overhead(task_seconds(c, &m), c->task);
}

/* Of additions over so many bytes of memory for each worker. */
static double add_rate(const calibration *c, double memory, int copies)
{
    const int64_t n = (int64_t)(memory * c->least / copies / ADD_BYTES);
    return rate_of_copies(c, record_add, n, copies, ADD_MOVES * (double)n);
}

/* Of matrices times vectors, which read alone. */
static double read_rate(const calibration *c, double memory)
{
    const int64_t side = memory < 4 * SPREAD_BYTES ? 1024 : 2048; /* large pages, where a program has large tensors */
    const double matrix = 8.0 * (double)(side * side);
    const int n = (int)fmin(MOST_COPIES, fmax(c->least, memory * c->least / matrix));
    return rate_of_copies(c, record_by_vector, side, n, matrix);
}

/* The memory beyond a core's share of the last cache, where reading is slower. An addition reads three elements there,
 * that of its result too, and writes one back. Where reads and writes have channels of their own, the latter take no
 * time beside the former: their rate is then 1,000 GB/s. */
static void measure_far(const calibration *c)
{
    enum { NEAR = SPREAD_BYTES, STEPS = 4 };
    const double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE) / c->ranks / c->least;
    double rate[STEPS + 1], best = 0, far = NEAR;
    int n = 0;
    for (; n <= STEPS && (n == 0 || NEAR << n <= all / 8); n++) {
        rate[n] = read_rate(c, NEAR << n);
        best = fmax(best, rate[n]);
    }
    const double last = rate[n - 1], adds = add_rate(c, NEAR << (n - 1), TASKS), elements = ADD_MOVES / 4;
    const double writes = elements / adds - (elements - 1) / last; /* seconds of a byte of results */
    for (int i = 0; i < n; i++)
        far = rate[i] > (best + last) / 2 ? sqrt(2) * (NEAR << i) : far; /* between this and the next */
    say(c, "far",
        (quantity[MOST_QUANTITIES]){
            {last < 0.85 * best ? far / 1e6 : 0, "MB"}, {last / 1e9, "GB/s"}, {1e-9 / fmax(1e-12, writes), "GB/s"}});
}

/* A core's second-level cache, from an addition whose operands fill half of it and are there since the run before. */
void measure_caches(calibration *c)
{
    const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const double cache = found > 0 ? (double)found : 1e6;
    say(c, "cache", (quantity[MOST_QUANTITIES]){{cache / 1e6, "MB"}, {add_rate(c, cache / 2, 1) / 1e9, "GB/s"}});
    c->memory = add_rate(c, c->spread, TASKS);
    measure_far(c);
}

/* Results that other workers have read since they were written. In turns, workers read tiles of others and write their
 * own. A turn takes two results of n elements a worker, of which the others read all but a part. */
void measure_shared(const calibration *c)
{
    for (int64_t n = 1 << 16; n <= 1 << 20 && c->least > 1; n *= 16) {
        const double bytes = sizeof(float) * (double)n, others = 2 * (c->least - 1.0) / c->least * bytes;
        double seconds[2];
        for (int i = 0; i < 2; i++) {
            trama_program *p = trama_program_create();
            const trama_target *t = trama_target_create(p, "turns", record_turns(c, p, n, i));
            seconds[i] = time_program(c, p, t, TURNS * (bytes * c->least / 2e9)).run / TURNS;
            trama_program_destroy(&p);
        }
        const double longer = (seconds[1] - seconds[0]) / sharing(c->ranks * c->workers, c->cores);
        const double rate = slower_rate(c, others, longer - 2 * (c->least - 1) * c->operand);
        say_rate(c, "op shared memory", rate, others / 2, "B");
    }
}
