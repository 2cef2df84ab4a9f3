/* SPDX-License-Identifier: Apache-2.0 */
/* A traced context leaves files on disk, and says where it cannot. The events' meaning is tested with the command
 * that reads them. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness.h"

enum { TASKS = 20 };

static char scratch[] = "/tmp/trama-trace-XXXXXX";

static const char *in_scratch(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

static bool exists(const char *name)
{
    struct stat s;
    return !stat(in_scratch(name), &s) && (S_ISDIR(s.st_mode) || s.st_size > 0);
}

static char *contents(const char *name)
{
    static char all[4096];
    FILE *f = fopen(in_scratch(name), "r");
    ck_assert_msg(f, "%s is not there", name);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    return all;
}

static void nothing(void *buffers[], void *arg)
{
    (void)buffers, (void)arg;
}

static void run_traced(const char *folder)
{
    static struct starpu_codelet codelet = {.cpu_funcs = {nothing}, .nbuffers = 1, .modes = {STARPU_RW}};
    trama_config config = {.trace = folder};
    ck_assert_msg(!context_create(&config, "cpu:test", NULL, &ctx), "%s", trama_error());
    ck_assert(context_traces(ctx));
    fence *f = fence_new(ctx);
    shard *s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){4, 6}, 1, 2);
    shard_label(s, "w", 3, 4);
    context_wake(ctx);
    context_count_tasks(ctx, TASKS);
    for (int i = 0; i < TASKS; i++) {
        context_step(ctx, i / 4, i % 4 ? i % 4 : -1);
        submit(&codelet, s->tile[i % 2], NULL, f);
    }
    context_step(ctx, -1, -1);
    context_rest(ctx);
    ck_assert_int_eq(fence_wait(ctx, f, "tasks"), TRAMA_OK);
    fence_free(f);
    shard_put(ctx, s);
    stop();
}

START_TEST(a_traced_context_leaves_events_and_says_what_they_are)
{
    char expected[64];
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    char folder[256];
    snprintf(folder, sizeof folder, "%s", in_scratch("a/b/")); /* made with all above it */
    run_traced(folder);
    ck_assert(exists("a/b/prof_file_0"));
    const char *about = contents("a/b/about_0");
    snprintf(expected, sizeof expected, "starpu %d.%d.%d\n", STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION,
             STARPU_RELEASE_VERSION);
    ck_assert(!strncmp(about, "trama-trace 1\nprogram test_tracing\nrank 0 of 1\n", 47));
    ck_assert_ptr_nonnull(strstr(about, expected));
    ck_assert_ptr_nonnull(strstr(about, "worker 0 place 0\n"));
    snprintf(expected, sizeof expected, "tasks %d\nmessages 0\nended\n", TASKS);
    ck_assert_msg(strstr(about, expected), "%s", about);
    ck_assert_ptr_null(getenv("STARPU_FXT_TRACE")); /* the host's environment is as it was */
    ck_assert_ptr_null(getenv("STARPU_FXT_PREFIX"));
}
END_TEST

START_TEST(later_contexts_of_a_process_write_beside_the_first)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s", in_scratch("a/b"));
    run_traced(folder);
    ck_assert(exists("a/b.2/prof_file_0") && exists("a/b/prof_file_0"));
    ck_assert_ptr_nonnull(strstr(contents("a/b.2/about_0"), "ended\n"));
    ck_assert_ptr_nonnull(strstr(contents("a/b/about_0"), "ended\n"));
}
END_TEST

START_TEST(an_earlier_trace_goes_and_other_files_stay)
{
    static const char *const files[] = {"c.3/prof_file_0", "c.3/prof_file_1", "c.3/about_1", "c.3/mine"};
    mkdir(in_scratch("c.3"), 0777);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *f = fopen(in_scratch(files[i]), "w");
        fputs("old", f);
        fclose(f);
    }
    char folder[256];
    snprintf(folder, sizeof folder, "%s", in_scratch("c"));
    run_traced(folder); /* the third of this process */
    ck_assert(!exists("c.3/prof_file_1") && !exists("c.3/about_1"));
    ck_assert_str_eq(contents("c.3/mine"), "old");
    ck_assert(!strncmp(contents("c.3/about_0"), "trama-trace", 11));
}
END_TEST

START_TEST(neither_where_the_program_goes_nor_what_it_says_to_starpu_matters)
{
    char there[256];
    ck_assert_ptr_nonnull(getcwd(there, sizeof there));
    ck_assert_int_eq(chdir(scratch), 0);
    setenv("STARPU_FXT_PREFIX", "/nowhere", 1);
    setenv("STARPU_FXT_TRACE", "0", 1);
    trama_config config = {.trace = "relative"};
    ck_assert_msg(!context_create(&config, "cpu:test", NULL, &ctx), "%s", trama_error());
    ck_assert_int_eq(chdir("/"), 0);
    stop();
    ck_assert_str_eq(getenv("STARPU_FXT_PREFIX"), "/nowhere");
    ck_assert_str_eq(getenv("STARPU_FXT_TRACE"), "0");
    unsetenv("STARPU_FXT_PREFIX");
    unsetenv("STARPU_FXT_TRACE");
    ck_assert_int_eq(chdir(there), 0);
    ck_assert(exists("relative.4/prof_file_0") && strstr(contents("relative.4/about_0"), "ended\n"));
}
END_TEST

START_TEST(a_folder_that_goes_meanwhile_is_made_again)
{
    trama_config config = {.trace = in_scratch("gone")};
    ck_assert_msg(!context_create(&config, "cpu:test", NULL, &ctx), "%s", trama_error());
    unlink(in_scratch("gone.5/about_0"));
    unlink(in_scratch("gone.5/prof_file_0"));
    ck_assert_int_eq(rmdir(in_scratch("gone.5")), 0);
    stop();
    ck_assert(exists("gone.5/prof_file_0"));
}
END_TEST

START_TEST(the_environment_asks_for_a_trace_too)
{
    setenv("TRAMA_TRACE", "", 1);
    start();
    ck_assert(!context_traces(ctx));
    stop();
    setenv("TRAMA_TRACE", in_scratch("d"), 1);
    start();
    ck_assert(context_traces(ctx));
    stop();
    unsetenv("TRAMA_TRACE");
    ck_assert(exists("d.6/prof_file_0"));
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_an_error_and_nothing_starts)
{
    static const char *const impossible[] = {"/proc/trama/trace", "/dev/null/trace"};
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        trama_config config = {.trace = impossible[i]};
        ck_assert_int_eq(context_create(&config, "cpu:test", NULL, &ctx), TRAMA_E_SYSTEM);
        ck_assert_ptr_null(ctx);
        ck_assert_msg(strstr(trama_error(), "TRAMA_TRACE") && strstr(trama_error(), "/"), "%s", trama_error());
        ck_assert(!starpu_is_initialized());
    }
    ck_assert_int_eq(context_create(&(trama_config){.trace = longer}, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    start();
    stop();
}
END_TEST

START_TEST(a_program_that_leaves_without_stopping_leaves_a_whole_trace)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        trama_config config = {.trace = in_scratch("left")};
        if (context_create(&config, "cpu:test", NULL, &ctx))
            _exit(1);
        exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(exists("left.7/prof_file_0"));
    ck_assert_ptr_nonnull(strstr(contents("left.7/about_0"), "ended"));
}
END_TEST

START_TEST(the_scratch_folder_goes)
{
    char command[256];
    snprintf(command, sizeof command, "rm -r %s", scratch);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

TESTS(a_traced_context_leaves_events_and_says_what_they_are, later_contexts_of_a_process_write_beside_the_first,
      an_earlier_trace_goes_and_other_files_stay, neither_where_the_program_goes_nor_what_it_says_to_starpu_matters,
      a_folder_that_goes_meanwhile_is_made_again, the_environment_asks_for_a_trace_too,
      a_folder_that_cannot_be_written_is_an_error_and_nothing_starts,
      a_program_that_leaves_without_stopping_leaves_a_whole_trace, the_scratch_folder_goes)
