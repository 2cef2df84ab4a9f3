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

static int victim(long more)
{
    static float result[N * N];
    trama_executable *e;
    limit_to(more);
    if (trama_start(&(trama_config){.workers = 2}, &ctx))
        return fails();
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
static bool ends_well(long more)
{
    static char said[1 << 14];
    char command[5000];
    snprintf(command, sizeof command, "exec 2>&1; exec timeout 60 '%s' victim %ld", self(), more);
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
        ends_well(more);
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
    demand(!ends_well(1), "a program runs in 1 MB");
    demand(ends_well(16384), "a program does not run in 16 GB");
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {with_any_limit_of_address_space_a_program_ends,
                                  a_program_that_starts_nothing_ends_as_well,
                                  without_room_to_start_it_says_so_and_with_room_it_runs};
    if (argc == 3 && !strcmp(argv[1], "victim"))
        return victim(atol(argv[2]));
    if (argc == 2 && !strcmp(argv[1], "idle"))
        return IDLE;
    if (SANITIZED) {
        printf("skipped: a sanitizer takes all address space for itself\n");
        return SKIPPED;
    }
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}
