/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU's variables and its folder: wherever the program runs and whoever runs it, a context starts, or says which
 * variable is wrong. Each start is in a child of its own, which may be another user. */
#include <dirent.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness.h"

enum { NOBODY = 65534, SKIPPED = 77 };

static char scratch[64]; /* that anybody may enter, and only its owner may write */

static const char *in_scratch(const char *name)
{
    static char path[4][128];
    static int which;
    which = (which + 1) % 4;
    snprintf(path[which], sizeof path[which], "%s/%s", scratch, name);
    return path[which];
}

/* Without what the user or the tests have set. */
static void forget_folders(void)
{
    static const char *const names[] = {"HOME",   "TRAMA_CACHE",           "XDG_CACHE_HOME", "STARPU_HOME",
                                        "TMPDIR", "STARPU_PERF_MODEL_DIR", "STARPU_HOSTNAME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static int start_and_stop(void)
{
    char before[200] = "";
    snprintf(before, sizeof before, "%s", getenv("XDG_CACHE_HOME") ? getenv("XDG_CACHE_HOME") : "");
    if (context_create(NULL, "cpu:test", NULL, &ctx)) {
        fprintf(stderr, "%s\n", trama_error());
        return 1;
    }
    const char *now = getenv("XDG_CACHE_HOME");
    if (strcmp(now ? now : "", before))
        return 2;
    return context_destroy(&ctx) ? 3 : 0;
}

/* In a child, whose exit status it returns; its stderr is in `said`. settings: pairs of variable and value, to NULL.
 */
static int try_start(uid_t user, const char *const *settings, char *said, size_t room)
{
    int ends[2], status = -1;
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
            _exit(4);
        forget_folders();
        for (; *settings; settings += 2)
            setenv(settings[0], settings[1], 1);
        _exit(start_and_stop());
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t more; (more = read(ends[0], said + n, room - 1 - n)) > 0;)
        n += (size_t)more;
    said[n] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void starts(uid_t user, const char *const *settings)
{
    char said[4000];
    int status = try_start(user, settings, said, sizeof said);
    ck_assert_msg(status == 0, "%s=%s: status %d: %s", settings[0] ? settings[0] : "nothing",
                  settings[0] ? settings[1] : "", status, said);
}

static void is_refused(uid_t user, const char *const *settings)
{
    char said[4000];
    int status = try_start(user, settings, said, sizeof said);
    ck_assert_msg(status == 1 && strstr(said, settings[0]) && strstr(said, settings[1]), "%s=%s: status %d: %s",
                  settings[0], settings[1], status, said);
}

static int entries(const char *folder)
{
    int n = 0;
    DIR *all = opendir(folder);
    ck_assert_ptr_nonnull(all);
    while (readdir(all))
        n++;
    closedir(all);
    return n - 2;
}

static const char *folder_for(uid_t user, const char *name)
{
    const char *path = in_scratch(name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    if (user)
        ck_assert_int_eq(chown(path, user, user), 0);
    return path;
}

static bool is_root(void)
{
    if (geteuid())
        printf("skipped: only root can become another user\n");
    return geteuid() == 0;
}

START_TEST(numbers_of_starpu_are_checked_before_it_reads_them)
{
    static const char *const wrong[][2] = {
        {"STARPU_NCPU", "abc"},          {"STARPU_NCPU", "-5"},         {"STARPU_NCPU", "2x"},
        {"STARPU_WORKERS_CPUID", "-1"},  {"STARPU_WORKERS_CPUID", ","}, {"STARPU_WORKERS_COREID", "one"},
        {"STARPU_WORKERS_NOBIND", "no"}, {"STARPU_SILENT", "yes"},      {"STARPU_NCUDA", ""},
        {"STARPU_NCUDA", "-1"}};
    static const char *const right[][2] = {
        {"STARPU_NCPU", "1"}, {"STARPU_WORKERS_CPUID", "0"}, {"STARPU_WORKERS_CPUID", "0-"}, {"STARPU_NCUDA", "0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_refused(0, (const char *const[]){wrong[i][0], wrong[i][1], NULL});
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        starts(0, (const char *const[]){right[i][0], right[i][1], NULL});
}
END_TEST

START_TEST(a_cache_that_can_be_written_is_used)
{
    const char *cache = folder_for(0, "cache");
    starts(0, (const char *const[]){"XDG_CACHE_HOME", cache, NULL});
    ck_assert_int_eq(access(in_scratch("cache/trama/.starpu/sampling/bus"), W_OK), 0);
    const char *home = folder_for(0, "home");
    starts(0, (const char *const[]){"HOME", home, NULL});
    ck_assert_int_eq(access(in_scratch("home/.cache/trama/.starpu/sampling/bus"), W_OK), 0);
}
END_TEST

START_TEST(starpus_own_home_comes_before_a_cache)
{
    const char *cache = folder_for(0, "unused"), *home = folder_for(0, "chosen");
    starts(0, (const char *const[]){"XDG_CACHE_HOME", cache, "STARPU_HOME", home, NULL});
    ck_assert_int_eq(entries(cache), 0);
    ck_assert_int_eq(access(in_scratch("chosen/.starpu/sampling/bus"), W_OK), 0);
}
END_TEST

START_TEST(without_home_a_fresh_folder_is_made_and_removed)
{
    const char *temporary = folder_for(0, "temporary");
    starts(0, (const char *const[]){"TMPDIR", temporary, NULL});
    ck_assert_int_eq(entries(temporary), 0);
}
END_TEST

START_TEST(another_user_with_a_home_that_is_not_theirs_starts)
{
    if (!is_root())
        return;
    const char *temporary = folder_for(NOBODY, "theirs");
    starts(NOBODY, (const char *const[]){"HOME", "/", "TMPDIR", temporary, NULL});
    starts(NOBODY, (const char *const[]){"HOME", scratch, "TMPDIR", temporary, NULL});
    starts(NOBODY, (const char *const[]){"XDG_CACHE_HOME", scratch, "TMPDIR", temporary, NULL});
    starts(NOBODY, (const char *const[]){NULL});
    ck_assert_int_eq(entries(temporary), 0);
}
END_TEST

START_TEST(a_folder_of_the_users_that_cannot_be_written_is_an_error)
{
    is_refused(0, (const char *const[]){"STARPU_HOME", "/dev/null", NULL});
    is_refused(0, (const char *const[]){"STARPU_PERF_MODEL_DIR", "/dev/null/models", NULL});
    if (!is_root())
        return;
    is_refused(NOBODY, (const char *const[]){"STARPU_HOME", scratch, NULL});
}
END_TEST

START_TEST(where_nothing_can_be_written_the_error_says_what_was_tried)
{
    char said[4000];
    int status = try_start(0, (const char *const[]){"TMPDIR", "/dev/null", NULL}, said, sizeof said);
    ck_assert_msg(status == 1 && strstr(said, "XDG_CACHE_HOME") && strstr(said, "/dev/null/") &&
                      strstr(said, "STARPU_HOME"),
                  "status %d: %s", status, said);
}
END_TEST

START_TEST(a_scratch_folder_is_made)
{
    strcpy(scratch, "/tmp/trama-home-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    ck_assert_int_eq(chmod(scratch, 0755), 0);
}
END_TEST

START_TEST(the_scratch_folder_goes)
{
    char command[256];
    snprintf(command, sizeof command, "rm -r %s", scratch);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

TESTS(a_scratch_folder_is_made, numbers_of_starpu_are_checked_before_it_reads_them, a_cache_that_can_be_written_is_used,
      starpus_own_home_comes_before_a_cache, without_home_a_fresh_folder_is_made_and_removed,
      another_user_with_a_home_that_is_not_theirs_starts, a_folder_of_the_users_that_cannot_be_written_is_an_error,
      where_nothing_can_be_written_the_error_says_what_was_tried, the_scratch_folder_goes)
