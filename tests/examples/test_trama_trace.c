/* SPDX-License-Identifier: Apache-2.0 */
/* trama trace on what StarPU leaves of a program of known times, and of what is broken in every way. The expected
 * values are those that sleeper.c states. */
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "paje.h"

/* ---- Programs of known times ---- */

#define TRACING                                                                                                        \
    "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 STARPU_FXT_TRACE=1 STARPU_GENERATE_TRACE=0 STARPU_NCUDA=0 "             \
    "STARPU_WORKERS_NOBIND=1 USER=somebody "
#define SLEEPER "../tests/examples/sleeper"

/* Its events go into the folder "run" of the scratch folder. */
static void sleep_alone(int scale)
{
    text_of(run("rm -rf %s/run && mkdir %s/run && " TRACING "STARPU_NCPU=2 STARPU_FXT_PREFIX=%s/run/ " SLEEPER
                " lone %d",
                scratch, scratch, scratch, scale));
}

static void sleep_in_pair(int scale)
{
    text_of(run("rm -rf %s/run && mkdir %s/run && " TRACING "STARPU_NCPU=1 STARPU_FXT_PREFIX=%s/run/ " MPIRUN
                "2 " SLEEPER " pair %d",
                scratch, scratch, scratch, scale));
}

static const outcome *trace_outcome(const char *arguments)
{
    return run("./trama trace %s/run %s", scratch, arguments);
}

static const char *trace(const char *arguments)
{
    return text_of(trace_outcome(arguments));
}

static void write_text(const char *name, const char *text)
{
    write_file(name, strlen(text), (const unsigned char *)text);
}

static void describe(int rank, int n_ranks, const char *rest)
{
    char name[32], text[512];
    snprintf(name, sizeof name, "run/about_%d", rank);
    snprintf(text, sizeof text, "trama-trace 1\nprogram sleeper\nrank %d of %d\nfuture fact\n%s", rank, n_ranks, rest);
    write_text(name, text);
}

/* ---- Reading the summary ---- */

/* The line that begins with a name, behind it. */
static const char *line_of(const char *text, const char *name)
{
    for (const char *at = text; (at = strstr(at, name)); at++)
        if (at == text || at[-1] == '\n')
            return at + strlen(name);
    ck_abort_msg("no line '%s': %.4000s", name, text);
    return NULL;
}

typedef struct figure {
    double ms, percent;
} figure;

static figure figure_of(const char *text, const char *name)
{
    figure f = {NAN, NAN};
    const char *line = line_of(text, name);
    ck_assert_msg(sscanf(line, " %lf ms %lf", &f.ms, &f.percent) >= 1, "%s: %.100s", name, line);
    return f;
}

/* The columns of a table's row: tasks, time, share, mean, GFlop/s. */
typedef struct row {
    double tasks, ms, share, mean, rate;
} row;

static row row_of(const char *text, const char *name)
{
    row r = {.rate = NAN};
    const char *line = line_of(text, name);
    ck_assert_msg(sscanf(line, " %lf %lf %lf %% %lf %lf", &r.tasks, &r.ms, &r.share, &r.mean, &r.rate) >= 4,
                  "%s: %.100s", name, line);
    return r;
}

/* ---- The summary of one process ---- */

enum { SCALE = 2 };

/* On a busy machine everything may take longer, and nothing takes less (sleeper.c). test_trama_trace_made.c has what
 * the figures are to the digit. 5% are for what lies between the clock of a task and that of StarPU's events. */
#define LEAST(figure, expected) ck_assert_msg((figure) >= 0.95 * SCALE * (expected), #figure ": %g: %s", (figure), text)
#define SAME(figure, other, digits)                                                                                    \
    ck_assert_msg(fabs((figure) - (other)) <= (digits), #figure ": %g instead of %g: %s", (figure), (other), text)

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void demand_times_of_tasks(const char *text)
{
    row forward = row_of(text, "forward"), backward = row_of(text, "backward"), update = row_of(text, "update");
    row merge = row_of(text, "merge"), reshard = row_of(text, "reshard"), grad = row_of(text, "nap.grad");
    row first = row_of(text, "rank 0 place 0, 1 worker"), second = row_of(text, "rank 0 place 1, 1 worker");
    double makespan = figure_of(text, "makespan").ms, busy = first.ms + second.ms;
    LEAST(forward.ms, 200);
    LEAST(backward.ms, 200);
    LEAST(update.ms, 50);
    LEAST(merge.ms, 100);
    LEAST(reshard.ms, 150);
    ck_assert(reshard.tasks == 1);
    SAME(forward.ms + backward.ms + update.ms, first.ms, 0.01);
    SAME(merge.ms + reshard.ms, second.ms, 0.01);
    SAME(reshard.share, 100 * reshard.ms / (2 * makespan), 0.1);
    SAME(first.share, 100 * first.ms / makespan, 0.1);
    SAME(forward.rate, 400 * SCALE / forward.ms, 0.01);
    SAME(grad.rate, 100 * SCALE / grad.ms, 0.01);
    SAME(figure_of(text, "  area bound").ms, busy / 2, 0.01);
    SAME(figure_of(text, "idle").ms, 2 * makespan - busy, 0.01);
    SAME(figure_of(text, "idle").percent, 100 * (1 - busy / (2 * makespan)), 0.1);
}

/* Until update.nap nothing was asked for; merge.nap needs nap, which ended later than reshard.nap. */
static void demand_waits(const char *text)
{
    double longest = NAN, next = NAN, steps = NAN, median = NAN;
    const char *waits = strstr(text, "longest waits");
    sscanf(line_of(text, "steps"), " %lf median %lf", &steps, &median);
    ck_assert_msg(waits && sscanf(waits, "%*[^\n] %lf ms %*[^\n] %lf ms", &longest, &next) == 2, "%s", text);
    LEAST(longest, 60);
    ck_assert_msg(next > 0 && next <= longest, "%s", text);
    ck_assert_msg(steps == 2, "%s", text);
    LEAST(median, 400);
    ck_assert_msg(contains(text, "update.nap of step 1 (worker 0): submitted late") &&
                      contains(text, "merge.nap of step 0 (worker 1): for nap of step 0 (worker 0)") &&
                      !contains(text, "communication"),
                  "%s", text);
}

START_TEST(figures_are_those_of_a_program_of_known_times)
{
    double begin = seconds();
    sleep_alone(SCALE);
    double most = 1e3 * (seconds() - begin);
    describe(0, 1, "worker 0 place 0\nworker 1 place 1\nended\n");
    char *text = strdup(trace("--no-starvz"));
    figure makespan = figure_of(text, "makespan"), path = figure_of(text, "  critical path");
    ck_assert(!strncmp(text, "sleeper: 1 rank, 2 workers, 5 tasks, 0 messages\n", 47) && !contains(text, "missing"));
    LEAST(makespan.ms, 510);
    LEAST(path.ms, 450);
    ck_assert_msg(path.ms <= makespan.ms && makespan.ms <= most, "%g ms in all: %s", most, text);
    demand_times_of_tasks(text);
    demand_waits(text);
    free(text);
    ck_assert(!contains(trace("--no-starvz --longest 0"), "longest waits"));
    const char *one = trace("--no-starvz --longest=1");
    ck_assert_msg(contains(one, "submitted late") != contains(one, "merge.nap of"), "%s", one);
}
END_TEST

/* ---- The summary of two ranks ---- */

START_TEST(hidden_communication_is_that_of_a_message_of_known_time)
{
    if (!TRAMA_HAVE_MPI) {
        printf("skipped: hidden communication, this build has no MPI\n");
        return;
    }
    double begin = seconds();
    sleep_in_pair(SCALE);
    double most = 1e3 * (seconds() - begin);
    describe(0, 2, "worker 0 place 0\nclock 0\nended\n"); /* two ranks of one machine have one clock */
    describe(1, 2, "worker 0 place 0\nclock 0\nended\n");
    const char *text = trace("--no-starvz");
    double makespan = figure_of(text, "makespan").ms, path = figure_of(text, "  critical path").ms;
    double with = figure_of(text, "  with messages").ms, talk = figure_of(text, "communication").ms;
    figure hidden = figure_of(text, "hidden");
    LEAST(path, 300);
    LEAST(with, 700);
    LEAST(talk, 800);
    LEAST(hidden.ms, 200 + 120);
    SAME(hidden.percent, 100 * hidden.ms / talk, 0.1);
    ck_assert_msg(hidden.ms <= talk && path <= with && with <= makespan && makespan <= most, "%g ms in all: %s", most,
                  text);
    ck_assert_msg(contains(text, "sleeper: 2 ranks, 2 workers, 4 tasks, 1 message\n") && contains(text, "256.0 KiB") &&
                      contains(text, "use (rank 1, worker 0): for 256.0 KiB of x from rank 0"),
                  "%s", text);
    const paje *p = paje_read(in_scratch("run/paje.trace"));
    ck_assert(p->count[20] == 4 && p->count[23] == 1);
}
END_TEST

/* ---- Output ---- */

static long size_of(const char *name)
{
    struct stat is;
    return stat(in_scratch(name), &is) ? -1 : (long)is.st_size;
}

/* No scratch folder is left. */
static void expect_clean(const char *name)
{
    DIR *folder = opendir(in_scratch(name));
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        ck_assert_msg(strncmp(entry->d_name, ".trama", 6), "left behind: %s", entry->d_name);
    closedir(folder);
}

START_TEST(files_have_the_columns_that_starvz_reads)
{
    sleep_alone(1);
    trace("--no-starvz");
    const paje *p = paje_read(in_scratch("run/paje.trace"));
    ck_assert_int_eq(p->count[20], 5);
    ck_assert(size_of("run/tasks.rec") > 0 && size_of("run/data.rec") > 0 && size_of("run/dag.dot") > 0 &&
              size_of("run/comms.rec") == 0);
    ck_assert(contains(text_of(run("tail -c 10 %s/run/timeline.svg", scratch)), "</svg>") &&
              contains(text_of(run("tail -c 10 %s/run/trace.json", scratch)), "}"));
    expect_clean("run");
    const char *text = text_of(run("cat %s/run/starvz.yaml", scratch));
    static const char *const names[] = {"nap", "nap.grad", "merge.nap", "reshard.nap", "update.nap"};
    char colors[5][8];
    for (int i = 0; i < 5; i++) {
        char key[64];
        snprintf(key, sizeof key, "\n  \"%s\": {color: \"", names[i]);
        const char *at = strstr(text, key);
        ck_assert_msg(at && sscanf(at + strlen(key), "%7[#0-9a-f]\", use: TRUE}", colors[i]) == 1, "%s", text);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(colors[i], colors[j]);
    }
    ck_assert(contains(text, "guided: {active: FALSE}") && contains(text, "kiteration: {active: TRUE") &&
              !contains(text, "mpi"));
}
END_TEST

START_TEST(starvz_reads_them_where_it_is_installed)
{
    sleep_alone(1);
    if (run("Rscript -e 'library(starvz)' && command -v pj_dump && command -v rec2csv")->status) {
        printf("skipped: reading with StarVZ, which is not installed\n");
        ck_assert(run("command -v Rscript")->status == 0 ||
                  contains(trace(""), "no picture by StarVZ: it is not installed\n"));
        return;
    }
    ck_assert_msg(contains(trace(""), "\nStarVZ drew starvz.png\n"), "%s", trace(""));
    ck_assert_int_gt(size_of("run/starvz.png"), 1000);
    if (TRAMA_HAVE_MPI) {
        sleep_in_pair(1);
        ck_assert_msg(contains(trace(""), "\nStarVZ drew starvz.png\n"), "%s", trace(""));
        ck_assert_int_gt(size_of("run/starvz.png"), 1000);
    }
    expect_clean("run");
}
END_TEST

START_TEST(results_go_where_they_are_asked_for)
{
    sleep_alone(1);
    text_of(run("mkdir %s/other", scratch));
    ck_assert(contains(trace_outcome("--no-starvz --out=nowhere/at/all")->text, "nowhere/at/all: No such file"));
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--no-starvz --out=%s/other", scratch);
    trace(arguments);
    ck_assert(size_of("other/paje.trace") > 0 && size_of("run/paje.trace") < 0);
    expect_clean("other");
}
END_TEST

/* ---- Interrupted runs ---- */

START_TEST(a_truncated_trace_gives_what_it_holds)
{
    sleep_alone(1);
    describe(0, 1, "worker 0 place 0\n");
    text_of(run("cd %s/run && mv prof_file_somebody_0 prof_file_0 && cp prof_file_0 ../whole", scratch));
    long whole = size_of("whole");
    bool some = false;
    for (int part = 99; part > 0; part -= 7) {
        text_of(run("head -c %ld %s/whole > %s/run/prof_file_0", whole * part / 100, scratch, scratch));
        const outcome *o = trace_outcome("--no-starvz");
        ck_assert_msg(
            contains(o->text, o->status ? "nothing to" : "missing: rank 0: interrupted: the trace was not closed"),
            "%d %% of it: %d, %s", part, o->status, o->text);
        some |= contains(o->text, "1 worker, ") || contains(o->text, "never ended");
        expect_clean("run");
    }
    ck_assert(some);
    text_of(run(": > %s/run/prof_file_0", scratch));
    ck_assert(contains(trace_outcome("--no-starvz")->text, "nothing to read: no rank has events"));
}
END_TEST

START_TEST(missing_and_foreign_ranks_are_named)
{
    sleep_alone(1);
    describe(0, 4, "worker 0 place 0\nended\n");
    describe(3, 4, "worker 0 place 0\n");
    write_text("run/prof_file_somebody_3", "this is no trace, is it?");
    const char *text = trace("--no-starvz");
    ck_assert_msg(contains(text, "missing: ranks 1-2: no events: ") && contains(text, " rank 3: interrupted: ") &&
                      contains(text, "rank 3 is left out: StarPU's tool cannot read ") &&
                      contains(text, "rank 0 alone was read") &&
                      contains(text, "sleeper: 4 ranks, 2 workers, 5 tasks") && !contains(text, "\nrank 3 place"),
                  "%s", text);
    double busy = 0, makespan = figure_of(text, "makespan").ms; /* workers of ranks that are not there do not count */
    static const char *const roles[] = {"forward", "backward", "update", "merge", "reshard"};
    for (int i = 0; i < 5; i++)
        busy += row_of(text, roles[i]).ms;
    ck_assert_double_eq_tol(figure_of(text, "  area bound").ms, busy / 2, 0.01);
    ck_assert_double_eq_tol(figure_of(text, "idle").ms, 2 * makespan - busy, 0.01);
    text_of(run("rm %s/run/about_*; mv %s/run/prof_file_somebody_3 %s/run/prof_file_1", scratch, scratch, scratch));
    describe(0, 1, "ended\n");
    ck_assert(contains(text = trace("--no-starvz"), "rank 1 is left out: the run had 1 rank only"));
}
END_TEST

START_TEST(a_rank_that_was_cut_short_does_not_hide_the_other)
{
    if (!TRAMA_HAVE_MPI) {
        printf("skipped: two ranks, this build has no MPI\n");
        return;
    }
    sleep_in_pair(1);
    describe(0, 2, "ended\n");
    describe(1, 2, "");
    text_of(run("cd %s/run && truncate -s 6000 prof_file_somebody_1", scratch));
    const char *text = trace("--no-starvz");
    ck_assert_msg(contains(text, "rank 1: interrupted: ") && row_of(text, "nap").tasks == 1, "%s", text);
    paje_read(in_scratch("run/paje.trace"));
    text_of(run("cd %s/run && truncate -s 300 prof_file_somebody_1", scratch));
    ck_assert(contains(text = trace("--no-starvz"), "rank 1 is left out: ") && row_of(text, "nap").tasks == 1);
}
END_TEST

/* ---- Wrong uses ---- */

START_TEST(wrong_arguments_are_named)
{
    static const wrong_use uses[] = {{"", "FOLDER", "missing"},
                                     {" a b", "FOLDER", "'b'"},
                                     {" --longest=-1 a", "--longest", "-1"},
                                     {" --longest=many a", "--longest", "many"},
                                     {" --steps=2-1 a", "--steps", "1"},
                                     {" --steps=some a", "--steps", "some"},
                                     {" --steps=3- a", "--steps '3-'", "as in 3-7"},
                                     {" --steps=-3 a", "--steps '-3'", "as in 3-7"},
                                     {" --steps=3-7x a", "--steps '3-7x'", "as in 3-7"},
                                     {" --steps=5-3 a", "--steps '5-3'", "the last step is before the first"},
                                     {" ''", "FOLDER", "this one is empty"},
                                     {" --out= a", "--out", "this one is empty"},
                                     {" /no/such/folder", "/no/such/folder", "No such file"},
                                     {" /etc/passwd", "/etc/passwd", "no folder"},
                                     {" --out=/proc .", "/proc", "nothing can be written there"},
                                     {" .", "no folder of a trace", "TRAMA_TRACE"}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        run_wrong("trama trace", &uses[i]);
    const char *help = text_of(run("./trama trace --help"));
    ck_assert(contains(help, "TRAMA_TRACE=FOLDER") && contains(help, "--longest") && contains(help, "starvz.yaml"));
    ck_assert(contains(text_of(run("./trama --help")), "\n  trace "));
}
END_TEST

static void expect_refusal(const char *before, const char *part, const char *also)
{
    const outcome *o = run("%s; ./trama trace %s/run --no-starvz", before, scratch);
    ck_assert_msg(o->status == 1 && contains(o->text, part) && contains(o->text, also), "%s: %d, %s", part, o->status,
                  o->text);
    ck_assert_int_eq(size_of("run/paje.trace"), -1);
    ck_assert_int_eq(size_of("run/tasks.rec"), -1);
    expect_clean("run");
}

START_TEST(a_trace_of_another_version_says_which)
{
    text_of(run("mkdir %s/run", scratch));
    write_text("run/prof_file_0", "events");
    write_text("run/about_0", "trama-trace 2\nrank 0 of 1\nended\n");
    expect_refusal(":", "the trace is of version 2, and this trama reads version 1", "about_0");
    write_text("run/about_0", "trama-trace 1\nrank 0 of 1\nstarpu 1.3.99\nended\n");
    expect_refusal(":", "the trace is of StarPU 1.3.99, and this trama is made with StarPU 1.", "about_0");
    write_text("run/about_0", "a recipe for soup\n");
    expect_refusal(":", "does not begin as Trama's description", "about_0");
    write_text("run/about_0", "trama-trace 1\nrank 0 of 1\nended\n");
    expect_refusal(":", "there is nothing to read: StarPU's tool ends with", "run");
    expect_refusal("export TRAMA_FXT_TOOL=/no/tool", "TRAMA_FXT_TOOL='/no/tool'", "No such file");
}
END_TEST

/* Each of them would be read for ever, or waited for. */
START_TEST(files_without_an_end_are_refused_by_name)
{
    static const char *const endless[] = {"ln -sf /dev/full", "ln -sf /dev/zero", "mkfifo"};
    text_of(run("mkdir %s/run", scratch));
    write_text("run/prof_file_0", "events");
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        text_of(run("rm -f %s/run/about_0; %s %s/run/about_0", scratch, endless[i], scratch));
        expect_refusal(":", "about_0: it is no regular file", "");
    }
    text_of(run("rm %s/run/about_0; truncate -s 1T %s/run/about_0", scratch, scratch));
    expect_refusal(":", "about_0: it has 1099511627776 bytes", "at most");
    write_text("run/about_0", "");
    expect_refusal(":", "about_0: it is empty", "");
    write_text("run/about_0", "trama-trace 1\nrank 0 of 1\nended\n");
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        text_of(run("rm -f %s/run/prof_file_0; %s %s/run/prof_file_0", scratch, endless[i], scratch));
        expect_refusal(":", "prof_file_0: it is no regular file", "");
    }
}
END_TEST

START_TEST(a_full_disk_leaves_nothing_behind)
{
    sleep_alone(1);
    static const char *const limits[] = {"1", "8", "16", "24"}; /* KiB a file */
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char before[64];
        snprintf(before, sizeof before, "trap '' XFSZ; ulimit -f %s", limits[i]);
        expect_refusal(before, "ile too large", "");
    }
    expect_refusal("ulimit -f 8", "larger than the limit", "");
    const outcome *o = run("cd %s && mkdir small && mount -t tmpfs -o size=48k none small", scratch);
    if (o->status) {
        printf("skipped: a full disk, none can be mounted here\n");
        return;
    }
    o = run("./trama trace %s/run --no-starvz --out=%s/small; a=$?; ls -A %s/small; umount %s/small; exit $a", scratch,
            scratch, scratch, scratch);
    ck_assert_msg(o->status == 1 && contains(o->text, "No space left on device") && !contains(o->text, "\npaje.trace"),
                  "%d: %s", o->status, o->text);
}
END_TEST

TESTS(figures_are_those_of_a_program_of_known_times, hidden_communication_is_that_of_a_message_of_known_time,
      files_have_the_columns_that_starvz_reads, starvz_reads_them_where_it_is_installed,
      results_go_where_they_are_asked_for, a_truncated_trace_gives_what_it_holds, missing_and_foreign_ranks_are_named,
      a_rank_that_was_cut_short_does_not_hide_the_other, wrong_arguments_are_named,
      a_trace_of_another_version_says_which, files_without_an_end_are_refused_by_name,
      a_full_disk_leaves_nothing_behind)
