/* SPDX-License-Identifier: Apache-2.0 */
/* Little address space, as by ulimit -v: whatever there is, a program ends by itself, with its result or with a
 * message. This program starts itself as the victim, which limits itself once it is loaded. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness.h"

enum { SKIPPED = 77, N = 256, TIMED_OUT = 124, IDLE = 5 };

/* ---- The victim ---- */

static long address_space(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    demand(f && fscanf(f, "%ld", &pages) == 1, "cannot read /proc/self/statm");
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void limit_to(long more)
{
    rlim_t most = (rlim_t)address_space() + ((rlim_t)more << 20);
    demand(!setrlimit(RLIMIT_AS, &(struct rlimit){most, most}), "setrlimit: %s", strerror(errno));
}

static int fails(void)
{
    printf("%s\n", trama_error());
    return EXIT_FAILURE;
}

/* Runs a program with an intermediate of rows * rows elements: it has its result, or E_MEMORY that names the value, its
 * bytes and the line of the op. */
static void run_large(long rows)
{
    static float x[1 << 20];
    char words[200], bytes[60];
    float sum = -1;
    trama_executable *e;
    trama_program *p = trama_program_create();
    trama_value *column = trama_input(p, "column", TRAMA_F32, TRAMA_SHAPE(rows, 1));
    snprintf(words, sizeof words, "%s:%d: matmul1: ", __FILE__, __LINE__ + 2);
    snprintf(bytes, sizeof bytes, "a shard of %ld bytes", 4 * rows * rows);
    trama_value *square = trama_matmul_trans(column, column, false, true);
    trama_value *total = trama_sum(trama_matmul(square, column));
    trama_target *t = trama_target_create(p, "t", total);
    must(trama_compile(ctx, p, &e));
    must(trama_feed(e, column, x, TRAMA_SHAPE(rows, 1)));
    trama_status status = trama_run(e, t);
    if (status) {
        demand(status == TRAMA_E_MEMORY && strstr(trama_error(), words) && strstr(trama_error(), bytes),
               "%d: %s, not %s", (int)status, trama_error(), words);
        demand(trama_run(e, t) == TRAMA_E_MEMORY, "the second run: %s", trama_error());
        printf("no memory for %ld rows\n", rows);
    } else {
        must(trama_read(e, total, &sum, sizeof sum));
        demand(sum == 0, "the sum of zeros is %g", (double)sum);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

static int victim(long more, long rows)
{
    static float result[N * N];
    trama_executable *e;
    limit_to(more);
    if (trama_start(&(trama_config){.workers = 2}, &ctx))
        return fails();
    if (rows)
        run_large(rows);
    trama_program *p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(N, N), &(trama_init){.low = 1, .high = 1});
    trama_value *product = trama_matmul(w, w);
    trama_target *t = trama_target_create(p, "t", product);
    if (trama_compile(ctx, p, &e) || trama_run(e, t) || trama_read(e, product, result, sizeof result))
        return fails();
    printf("the result is %g\n", (double)result[N]);
    must(trama_executable_destroy(&e));
    must(trama_stop(&ctx));
    return EXIT_SUCCESS;
}

/* ---- Watching ---- */

static const char *self(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    demand(length > 0, "no /proc/self/exe");
    path[length] = 0;
    return path;
}

/* Whether it has a result; else it has said why not. */
static char said[1 << 14];

static bool ends_well(long more, long rows)
{
    char command[5000];
    snprintf(command, sizeof command, "exec 2>&1; exec timeout 60 '%s' victim %ld %ld", self(), more, rows);
    FILE *out = popen(command, "r");
    demand(out, "%s: %s", command, strerror(errno));
    said[fread(said, 1, sizeof said - 1, out)] = 0;
    int status = pclose(out);
    bool done = status == 0 && strstr(said, "the result is 256\n");
    demand(done || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE && *said), "with %ld MB: status %x%s: %s",
           more, (unsigned)status, WIFEXITED(status) && WEXITSTATUS(status) == TIMED_OUT ? ", it did not end" : "",
           said);
    return done;
}

START_TEST(with_any_limit_of_address_space_a_program_ends)
{
    for (long more = 1; more < 600; more += more < 16 ? 5 : more / 4)
        ends_well(more, 0);
}
END_TEST

/* OpenBLAS's threads want memory as soon as it is loaded, and it waits for them at exit. Below the address space of
 * this program there is too little to load all libraries: they then end the program, or wait, in ways of their own. */
START_TEST(a_program_that_starts_nothing_ends_as_well)
{
    bool loaded = false;
    Dl_info library, program;
    demand(dladdr((void *)(uintptr_t)trama_start, &library) && dladdr((void *)(uintptr_t)address_space, &program),
           "dladdr");
    if (library.dli_fbase != program.dli_fbase) { /* the C library then ends OpenBLAS before it asks anybody */
        printf("skipped: programs that start nothing, with a shared Trama: OpenBLAS waits for its threads\n");
        return;
    }
    long mine = address_space() >> 20;
    for (long most = mine; most < mine + 640; most += 16) {
        char command[5000];
        snprintf(command, sizeof command, "ulimit -v %ld; exec timeout 60 '%s' idle >/dev/null 2>&1", most << 10,
                 self());
        int status = system(command);
        demand(!WIFEXITED(status) || WEXITSTATUS(status) != TIMED_OUT, "with %ld MB: status %x", most,
               (unsigned)status);
        loaded |= WIFEXITED(status) && WEXITSTATUS(status) == IDLE;
    }
    demand(loaded, "no limit is enough to load the program");
}
END_TEST

START_TEST(without_room_to_start_it_says_so_and_with_room_it_runs)
{
    demand(!ends_well(1, 0), "a program runs in 1 MB");
    demand(ends_well(16384, 0), "a program does not run in 16 GB");
}
END_TEST

/* The least room in which a program starts, in steps of 16 MB. */
static long least_room(void)
{
    long more = 16;
    while (!ends_well(more, 0))
        more += 16;
    return more;
}

/* An intermediate may leave any part of the address space, also less than a buffer of OpenBLAS. */
START_TEST(an_intermediate_that_does_not_fit_is_an_error_of_its_run_alone)
{
    const long least = least_room() + 64;
    for (long rows = 1000; rows < 10000; rows += 1500)
        demand(ends_well(least, rows) || strstr(said, "there is no room"), "%ld rows in %ld MB: %s", rows, least, said);
    /* Room enough for what else is asked for: malloc reserves 64 MB for each thread that meets another in it. */
    demand(ends_well(least + 4096, 1 << 19) && strstr(said, "no memory for 524288 rows"), "2^40 bytes: %s", said);
}
END_TEST

START_TEST(two_to_the_forty_bytes_are_an_error_without_a_limit_of_address_space)
{
    demand(ends_well(1 << 23, 1 << 19), "%s", said);
    demand(strstr(said, "no memory for 524288 rows"), "%s", said);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {with_any_limit_of_address_space_a_program_ends,
                                  a_program_that_starts_nothing_ends_as_well,
                                  without_room_to_start_it_says_so_and_with_room_it_runs,
                                  an_intermediate_that_does_not_fit_is_an_error_of_its_run_alone,
                                  two_to_the_forty_bytes_are_an_error_without_a_limit_of_address_space};
    if (argc == 4 && !strcmp(argv[1], "victim"))
        return victim(atol(argv[2]), atol(argv[3]));
    if (argc == 2 && !strcmp(argv[1], "idle"))
        return IDLE;
    if (suite_is_sanitized()) {
        printf("skipped: a sanitizer takes all address space for itself\n");
        return SKIPPED;
    }
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}
