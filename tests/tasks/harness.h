/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of tasks share this: a context, demands that end the whole job where a rank fails, a log that remembers,
 * memory of the process, the main function. */
#ifndef HARNESS_H
#define HARNESS_H

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "elements.h"
#include "shard.h"
#include "suite.h"
#include "trama.h"

static trama_context *ctx;
static int my_rank, n_ranks = 1;
static bool checking; /* within Check's run; a child that a test starts is not */

/* ---- Demands ---- */

/* Of several ranks the others would wait for this one: the job ends at once. So does a program without Check's run. */
__attribute__((format(printf, 3, 4), noreturn)) static inline void fail_at(const char *file, int line,
                                                                           const char *format, ...)
{
    char message[6000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (n_ranks > 1 || !checking) {
        fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, my_rank, message);
        fflush(NULL);
        _exit(EXIT_FAILURE);
    }
    ck_abort_msg("%s:%d: %s", file, line, message);
    abort();
}

#define demand(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_at(__FILE__, __LINE__, __VA_ARGS__);                                                                  \
    } while (0)

#define must(call)                                                                                                     \
    do {                                                                                                               \
        trama_status status_ = (call);                                                                                 \
        if (status_)                                                                                                   \
            fail_at(__FILE__, __LINE__, "%s: %s: %s", #call, trama_status_text(status_), trama_error());               \
    } while (0)

/* The message of the last failing call holds every fragment; the list ends with NULL. */
static inline void expect_at(const char *file, int line, const char *call, trama_status got, trama_status wanted, ...)
{
    if (got != wanted)
        fail_at(file, line, "%s gave \"%s\" instead of \"%s\" (%s)", call, trama_status_text(got),
                trama_status_text(wanted), trama_error());
    va_list fragments;
    va_start(fragments, wanted);
    for (const char *f = va_arg(fragments, const char *); f; f = va_arg(fragments, const char *))
        if (!strstr(trama_error(), f))
            fail_at(file, line, "%s: \"%s\" does not say \"%s\"", call, trama_error(), f);
    va_end(fragments);
}

#define TEXT_(x) #x
#define LINE_TEXT_(x) TEXT_(x)
/* A call that fails: its status, and what its message says. expect_here: also this file and line. */
#define expect(call, wanted, ...) expect_at(__FILE__, __LINE__, #call, call, wanted, __VA_ARGS__, (const char *)NULL)

/* A builder that erred in that line gave nothing, and compiling its program says so, with both words. */
static inline void expect_broken(trama_program *p, const char *file, int line, const void *built, trama_status status,
                                 const char *what, const char *also)
{
    char place[300];
    trama_executable *e = NULL;
    snprintf(place, sizeof place, "%s:%d:", file, line);
    demand(!built, "line %d gives something in spite of its error", line);
    demand(trama_program_status(p) == status, "line %d: %s: %s", line, trama_status_text(trama_program_status(p)),
           trama_program_error(p));
    expect(trama_compile(ctx, p, &e), status, place, what, also);
    demand(!e, "an executable in spite of the error");
}
#define expect_here(call, wanted, ...)                                                                                 \
    expect_at(__FILE__, __LINE__, #call, call, wanted, __FILE__ ":" LINE_TEXT_(__LINE__) ":", __VA_ARGS__,             \
              (const char *)NULL)

/* ---- A context ---- */

static inline void start_with(const trama_config *config)
{
    trama_status status = trama_start(config, &ctx);
    demand(!status, "trama_start: %s", trama_error());
    my_rank = trama_context_rank(ctx);
    n_ranks = trama_context_ranks(ctx);
}

static inline void start(void)
{
    start_with(NULL);
}

static inline void stop(void)
{
    demand(shard_pool(ctx).used == 0, "%" PRId64 " shards are not given back", shard_pool(ctx).used);
    must(trama_stop(&ctx));
    demand(!ctx, "trama_stop leaves the context");
}

static inline trama_executable *compile(const trama_program *program)
{
    trama_executable *e = NULL;
    must(trama_compile(ctx, program, &e));
    return e;
}

static inline trama_mesh *mesh_of(const char *spec)
{
    trama_mesh *mesh = trama_mesh_create(spec);
    demand(mesh, "mesh %s: %s", spec, trama_error());
    return mesh;
}

/* A log that remembers its last line, and counts. */
typedef struct remembered {
    int lines;
    trama_log_level level;
    char last[4096];
} remembered;

static inline void remember(void *data, trama_log_level level, const char *line)
{
    remembered *r = data;
    if (level > TRAMA_LOG_WARNING)
        return;
    r->lines++;
    r->level = level;
    snprintf(r->last, sizeof r->last, "%s", line);
}

/* ---- Memory of the process ---- */

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Resident bytes. */
static inline int64_t memory_now(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    demand(f && fscanf(f, "%ld %ld", &size, &resident) == 2, "cannot read /proc/self/statm");
    fclose(f);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static inline bool shards_equal(shard_pool_state a, shard_pool_state b)
{
    return a.made == b.made && a.used == b.used && a.used_bytes == b.used_bytes && a.idle == b.idle &&
           a.idle_bytes == b.idle_bytes;
}

/* ---- Numbers ---- */

/* splitmix64 */
static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline int random_to(uint64_t *state, int n)
{
    return (int)(random_bits(state) >> 33) % n;
}

static inline double relative(double a, double b)
{
    return fabs(a - b) / (fabs(b) > 1e-300 ? fabs(b) : 1);
}

/* Element i of a buffer of any dtype. */
static inline double number_at(const void *data, trama_dtype dtype, int64_t i)
{
    return read_as(dtype, (const char *)data + (size_t)i * trama_dtype_size(dtype));
}

static inline void set_number(void *data, trama_dtype dtype, int64_t i, double x)
{
    write_as(dtype, (char *)data + (size_t)i * trama_dtype_size(dtype), x);
}

/* ---- The main function ---- */

/* In place of TESTS, where there is nothing to test. */
#define NO_TESTS(why)                                                                                                  \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        printf("skipped: %s\n", why);                                                                                  \
        return 77;                                                                                                     \
    }

#define TESTS(...)                                                                                                     \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *tests[] = {__VA_ARGS__};                                                                          \
        return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));                                        \
    }

static inline int run_tests(const char *name, const TTest *const *tests, int n)
{
    Suite *suite = suite_create(name);
    for (int i = 0; i < n; i++) { /* a case each, so that CK_RUN_CASE finds it */
        TCase *tcase = tcase_create(tests[i]->name);
        tcase_add_test(tcase, tests[i]);
        suite_add_tcase(suite, tcase);
    }
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    checking = true;
    srunner_run_all(runner, CK_NORMAL);
    checking = false;
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
