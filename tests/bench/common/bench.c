/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, complaints, options, and the service. Ranks that wait for their turn sleep on a futex in shared memory: a
 * wait inside MPI would poll, and take time from whoever's turn it is. */
#define _GNU_SOURCE
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

extern void openblas_set_num_threads(int n) __attribute__((weak));

enum { MAX_RANKS = 64 };

/* In memory that all ranks see. */
typedef struct meeting {
    pthread_barrier_t barrier;
    int units; /* of the command: run; 0: idle; -1: the end */
    double idle;
    double begin[MAX_RANKS], end[MAX_RANKS], cpu[MAX_RANKS];
} meeting;

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_now(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

int bench_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

void bench_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1); /* at once: other ranks and StarPU's threads may wait for this one */
}

void bench_try(trama_status status, const char *what)
{
    if (status)
        bench_fail("%s: %s", what, trama_error());
}

const char *bench_option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, name))
            return argv[i + 1];
    return otherwise;
}

int bench_number(int argc, char **argv, const char *name, int otherwise)
{
    const char *text = bench_option(argc, argv, name, NULL);
    int n = text ? atoi(text) : otherwise;
    if (n < 1)
        bench_fail("--%s takes a number, at least 1", name);
    return n;
}

trama_dtype bench_dtype(int argc, char **argv)
{
    trama_dtype dtype;
    bench_try(trama_dtype_parse(bench_option(argc, argv, "dtype", "f32"), &dtype), "--dtype");
    return dtype;
}

void bench_blas(int threads)
{
    const char *advice = blas_start(true);
    if (advice)
        fprintf(stderr, "%s\n", advice);
    if (openblas_set_num_threads)
        openblas_set_num_threads(threads);
}

/* ---- The service ---- */

#if TRAMA_HAVE_MPI
static MPI_Win window = MPI_WIN_NULL;
#endif

static meeting *shared_memory(int rank, int ranks)
{
    meeting *m = NULL;
    if (ranks == 1)
        return calloc(1, sizeof *m);
#if TRAMA_HAVE_MPI
    MPI_Aint bytes;
    int unit;
    MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)sizeof *m : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &m, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &m);
#else
    (void)rank;
#endif
    return m;
}

static meeting *meet(int rank, int ranks)
{
    if (ranks > MAX_RANKS)
        bench_fail("at most %d ranks", MAX_RANKS);
    meeting *m = shared_memory(rank, ranks);
    if (rank == 0) {
        pthread_barrierattr_t attribute;
        pthread_barrierattr_init(&attribute);
        pthread_barrierattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&m->barrier, &attribute, (unsigned)ranks);
        pthread_barrierattr_destroy(&attribute);
    }
#if TRAMA_HAVE_MPI
    if (ranks > 1)
        MPI_Barrier(MPI_COMM_WORLD);
#endif
    return m;
}

static void part(meeting *m, int ranks)
{
#if TRAMA_HAVE_MPI
    if (ranks > 1) {
        MPI_Win_free(&window);
        return;
    }
#endif
    (void)ranks;
    free(m);
}

static void read_command(meeting *m)
{
    char line[64];
    if (!fgets(line, sizeof line, stdin))
        m->units = -1;
    else if (!strncmp(line, "idle ", 5)) {
        m->units = 0;
        m->idle = atof(line + 5);
    } else if (strncmp(line, "run ", 4) || (m->units = atoi(line + 4)) < 1)
        bench_fail("what is '%s'?", line);
}

/* CPU seconds of this process during so many seconds. */
static double cpu_while_idle(double seconds)
{
    usleep(100000);
    double before = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    usleep((useconds_t)(1e6 * seconds));
    return clock_of(CLOCK_PROCESS_CPUTIME_ID) - before;
}

static void answer(const meeting *m, int ranks)
{
    double first = m->begin[0], last = m->end[0], cpu = 0;
    for (int r = 0; r < ranks; r++) {
        first = m->begin[r] < first ? m->begin[r] : first;
        last = m->end[r] > last ? m->end[r] : last;
        cpu += m->cpu[r];
    }
    printf("%.9f\n", m->units ? last - first : cpu);
    fflush(stdout);
}

void bench_serve(int rank, int ranks, bench_turn turn, void *arg)
{
    meeting *m = meet(rank, ranks);
    for (;;) {
        if (rank == 0)
            read_command(m);
        pthread_barrier_wait(&m->barrier);
        if (m->units < 0)
            break;
        m->begin[rank] = bench_now();
        if (m->units)
            turn(arg, m->units);
        else
            m->cpu[rank] = cpu_while_idle(m->idle);
        m->end[rank] = bench_now();
        pthread_barrier_wait(&m->barrier);
        if (rank == 0)
            answer(m, ranks);
    }
    part(m, ranks);
}

/* ---- Programs of one target ---- */

void bench_run_target(void *target, int n)
{
    const bench_target *t = target;
    for (int i = 0; i < n; i++)
        bench_try(trama_run(t->executable, t->target), "run");
    bench_try(trama_wait(t->executable), "wait");
}

void bench_print_plan(const bench_target *target, const char *plan)
{
    char *text;
    if (!plan)
        return;
    bench_try(trama_plan_text(target->executable, target->target, !strcmp(plan, "steps"), &text), "plan");
    fputs(text, stderr);
    free(text);
}

void bench_serve_program(trama_program *program, trama_target *target, const char *plan)
{
    bench_target t = {.target = target};
    trama_context *context;
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, program, &t.executable), "compile");
    bench_print_plan(&t, plan);
    bench_serve(trama_context_rank(context), trama_context_ranks(context), bench_run_target, &t);
    bench_try(trama_executable_destroy(&t.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
}
