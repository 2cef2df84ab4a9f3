/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in series, of which the median counts. */
#include "calibrate_time.h"

#include <math.h>
#include <time.h>

#include "must.h"
#include "progress.h"

enum { LAG = 2 };

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

static double cpu_seconds(clockid_t of)
{
    struct timespec t;
    clock_gettime(of, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds in kernels, and their calls, on all workers. */
static _Atomic int64_t in_kernels, kernels;

double kernel_begins(void)
{
    return cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
}

void kernel_ends(double begun)
{
    in_kernels += (int64_t)(1e9 * (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begun));
    kernels++;
}

/* Between the begin and the end of a kernel that does nothing. */
static double least_kernel(void)
{
    enum { TRIES = 100 };
    double least = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        const double begun = kernel_begins();
        least = fmin(least, cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begun);
    }
    return least;
}

measured time_reads(const calibration *c, trama_program *p, const trama_target *t, const trama_value *scalar,
                    double work)
{
    trama_watch *watch = NULL;
    float read;
    bool known;
    trama_executable *e = NULL;
    double runs[SAMPLES], submits[SAMPLES], busy[SAMPLES];
    const double wanted = c->seconds * c->least / work;
    const int n = wanted < 2 ? 2 : wanted > 1000 ? 1000 : (int)wanted;
    if (!t)
        fail("%s", trama_program_error(p));
    must(trama_compile(c->context, p, &e));
    must(trama_run(e, t));
    must(trama_wait(e));
    must(trama_watch_create(e, LAG, &watch));
    in_kernels = kernels = 0; /* without those of the first run, whose memory is new */
    for (int i = 0; i < SAMPLES; i++) {
        const double begun = clock_seconds(), worked = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID),
                     submitted = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int k = 0; k < n; k++) {
            must(trama_run(e, t));
            if (scalar)
                must(trama_watch_next(watch, scalar, &read, sizeof read, &known));
        }
        must(trama_wait(e));
        runs[i] = (clock_seconds() - begun) / n;
        busy[i] = (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - worked) / n;
        submits[i] = (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - submitted) / n;
    }
    const double kernel = kernels ? 1e-9 * (double)in_kernels / (double)kernels - least_kernel() : 0;
    const measured m = {median(SAMPLES, runs), median(SAMPLES, submits), median(SAMPLES, busy), fmax(0, kernel),
                        count_tasks(e, t)};
    must(trama_watch_destroy(&watch));
    must(trama_executable_destroy(&e));
    return m;
}

measured time_program(const calibration *c, trama_program *p, const trama_target *t, double work)
{
    return time_reads(c, p, t, NULL, work);
}

measured time_copies(const calibration *c, record_copy *record, int64_t size, int copies, double work)
{
    trama_program *p = trama_program_create();
    trama_value *values[MOST_COPIES];
    for (int i = 0; i < copies; i++)
        values[i] = record(c, p, i, size);
    const trama_target *t = trama_target_at(TRAMA_HERE, p, "copies", copies, values);
    const measured m = time_program(c, p, t, work * copies);
    trama_program_destroy(&p);
    return m;
}

double sharing(int threads, int cores)
{
    return threads > cores ? (double)threads / cores : 1;
}

double task_seconds(const calibration *c, const measured *m)
{
    const int at_once = m->tasks < c->workers ? m->tasks : c->workers;
    return c->ranks * c->workers > c->cores ? m->busy / m->tasks : m->run * at_once / m->tasks;
}

double overhead_beside(const calibration *c, double bytes)
{
    return c->task + c->evicted * fmin(1, bytes / evict_bytes(c));
}

double beyond_overhead(double seconds, double overhead)
{
    return fmax(seconds - overhead, 0.1 * seconds);
}

double slower_rate(const calibration *c, double bytes, double more)
{
    return 1 / (fmax(0, more) / bytes + 1 / c->near_memory);
}

sample sample_of(const calibration *c, record_copy *record, int64_t size, double bytes, double work, double rate)
{
    const double cold = c->spread * c->least / bytes;
    const int least = 2 * c->least;
    const int copies = cold > MOST_COPIES ? MOST_COPIES : cold > least ? (int)cold : least;
    const measured m = time_copies(c, record, size, copies, work / rate + 5e-6);
    const double busy = task_seconds(c, &m);
    return (sample){beyond_overhead(busy, overhead_beside(c, bytes * copies / c->least)), work * copies / m.tasks,
                    m.kernel};
}

void say(const calibration *c, const char *word, const quantity of[MOST_QUANTITIES])
{
    int n = 0;
    while (n < MOST_QUANTITIES && of[n].unit)
        n++;
    lines_say(c->lines, word, n, of);
}

void say_rate(const calibration *c, const char *what, double rate, double work, const char *unit)
{
    const bool bytes = *unit == 'B';
    say(c, what,
        (quantity[MOST_QUANTITIES]){{rate / 1e9, bytes ? "GB/s" : "Gflop/s"},
                                    {work / 1e3, work <= 0 ? NULL
                                                 : bytes   ? "kB"
                                                           : "kflop"}});
}
