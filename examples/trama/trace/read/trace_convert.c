/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_convert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"
#include "paje_trim.h"
#include "trace_build.h"
#include "trace_clock.h"

enum { MOST_FILES = 64 }; /* STARPU_FXT_MAX_FILES, as StarPU is configured unless told otherwise */

typedef struct conversion {
    const trace_folder *folder;
    const char *into;
    char *tool, *log;
    char **events;   /* [ranks] the file of events of each, which the tool reads */
    char words[256]; /* the tool's last complaint */
    trace *t;
    int *flushes; /* [ranks] how often events were written during the run */
    int only;     /* the rank where it is one, or -1 */
} conversion;

/* ---- The tool ---- */

/* As said, as StarPU was built, or as the shell finds it. */
static char *find_tool(void)
{
    const char *said = getenv("TRAMA_FXT_TOOL");
    if (said && *said) {
        if (access(said, X_OK))
            fail("TRAMA_FXT_TOOL='%s': %s", said, strerror(errno));
        return trace_text("%s", said);
    }
    return trace_text("%s", access(FXT_TOOL, X_OK) ? "starpu_fxt_tool" : FXT_TOOL);
}

/* Does not return. */
static void become_tool(const conversion *c, char **arguments)
{
    int log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("STARPU_SILENT", "0", 1); /* its words say which file is of which rank */
    setenv("LC_ALL", "C", 1);
    execvp(c->tool, arguments);
    _exit(127);
}

/* Gives it the files of the marked ranks; returns its status as of waitpid. */
static int run_tool(const conversion *c, const bool *with)
{
    char **arguments = must_allocate(2 * c->folder->n_ranks + 5, sizeof *arguments);
    int n = 0, status;
    arguments[n++] = c->tool;
    arguments[n++] = (char *)"-memory-states";
    for (int r = 0; r < c->folder->n_ranks; r++)
        if (with[r]) {
            arguments[n++] = (char *)"-i";
            arguments[n++] = c->events[r];
        }
    arguments[n++] = (char *)"-d";
    arguments[n++] = (char *)c->into;
    pid_t child = fork();
    if (child == 0)
        become_tool(c, arguments);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            fail("cannot wait for %s: %s", c->tool, strerror(errno));
    free(arguments);
    if (child < 0)
        fail("cannot start %s: %s", c->tool, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fail("starpu_fxt_tool, which StarPU installs where it is built with FxT, is neither %s nor in PATH; "
             "TRAMA_FXT_TOOL=FILE says where it is",
             FXT_TOOL);
    return status;
}

/* The tool does not look whether its words reached the disk. */
static void check_room(const conversion *c, int status)
{
    struct rlimit limit;
    struct statvfs disk;
    struct stat file;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        fail("%s: a file would be larger than the limit (ulimit -f)", c->into);
    if (!statvfs(c->into, &disk) && disk.f_blocks > 0 && disk.f_bavail == 0)
        fail("%s: %s", c->into, strerror(ENOSPC));
    DIR *folder = opendir(c->into);
    if (!folder || getrlimit(RLIMIT_FSIZE, &limit))
        fail("%s: %s", c->into, strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));)
        if (!fstatat(dirfd(folder), entry->d_name, &file, 0) && S_ISREG(file.st_mode) &&
            limit.rlim_cur != RLIM_INFINITY && (rlim_t)file.st_size >= limit.rlim_cur)
            fail("%s/%s: %s (ulimit -f)", c->into, entry->d_name, strerror(EFBIG));
    closedir(folder);
}

/* ---- Tool output ---- */

/* "Parsing file FILE (rank 1)": the rank that the file holds is the one of its name. */
static bool is_other_rank(const conversion *c, const char *line)
{
    const char *file = strstr(line, "Parsing file "), *rank = file ? strstr(file, " (rank ") : NULL;
    if (!rank)
        return false;
    file += strlen("Parsing file ");
    for (const char *next; (next = strstr(rank + 1, " (rank "));)
        rank = next;
    for (int r = 0; r < c->folder->n_ranks; r++) {
        const char *path = c->events[r];
        if (path && strlen(path) == (size_t)(rank - file) && !strncmp(path, file, strlen(path)))
            return atoi(rank + strlen(" (rank ")) != r;
    }
    return false;
}

/* Whether a run of the tool went well; keeps its last complaint. */
static bool went_well(conversion *c, int status, int *unmatched, bool *strangers)
{
    char *line = NULL;
    size_t room = 0;
    const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool fits = true;
    *unmatched = 0;
    *strangers = false;
    snprintf(c->words, sizeof c->words, "nothing is said");
    FILE *log = fopen(c->log, "r");
    while (log && getline(&line, &room, log) >= 0) {
        line[strcspn(line, "\n")] = 0;
        *unmatched += strstr(line, "could not match MPI transfer") != NULL;
        *strangers |= strstr(line, "coming from different run") != NULL;
        fits &= !is_other_rank(c, line);
        if (!ended && *line && !strstr(line, "Parsing file"))
            snprintf(c->words, sizeof c->words, "%.200s", line);
    }
    if (ended && !fits)
        snprintf(c->words, sizeof c->words, "it does not say which rank it is of");
    free(line);
    if (log)
        fclose(log);
    check_room(c, status);
    return ended && fits;
}

static bool convert_ranks(conversion *c, const bool *with, int *unmatched, bool *strangers)
{
    return went_well(c, run_tool(c, with), unmatched, strangers);
}

/* ---- Which ranks ---- */

static int count(int n, const bool *marked)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += marked[i];
    return sum;
}

static void leave_out(conversion *c, bool *with, int rank)
{
    with[rank] = false;
    trace_note(c->t, "rank %d is left out: StarPU's tool cannot read %s: %s", rank, c->folder->ranks[rank].events,
               c->words);
}

/* Tries each file alone, then, if that is not enough, one more at a time. Leaves out files that make the tool fail. */
static void find_readable(conversion *c, bool *with)
{
    int n = c->folder->n_ranks, unmatched;
    bool strangers, *some = must_allocate(n, sizeof *some);
    for (int r = 0; r < n; r++) {
        some[r] = with[r];
        if (with[r] && !convert_ranks(c, some, &unmatched, &strangers))
            leave_out(c, with, r);
        some[r] = false;
    }
    bool well = count(n, with) && convert_ranks(c, with, &unmatched, &strangers);
    for (int r = 0; !well && r < n; r++) {
        some[r] = with[r];
        if (with[r] && !convert_ranks(c, some, &unmatched, &strangers)) {
            leave_out(c, with, r);
            some[r] = false;
        }
    }
    free(some);
}

static void align_clocks(conversion *c, const bool *with)
{
    c->events = must_allocate(c->folder->n_ranks, sizeof *c->events);
    if (trace_clock_align(c->folder, with, c->into, c->events))
        return;
    for (int r = 0; r < c->folder->n_ranks; r++)
        if (with[r])
            c->events[r] = trace_text("%s", c->folder->ranks[r].events);
}

static void convert_all(conversion *c, bool *with)
{
    int n = c->folder->n_ranks, unmatched;
    bool strangers;
    for (int r = 0; r < n; r++) {
        struct stat file;
        const char *events = c->folder->ranks[r].events;
        with[r] = events && !stat(events, &file) && file.st_size > 0;
    }
    if (count(n, with) > MOST_FILES)
        fail("%s: the trace is of %d ranks, and StarPU's tool merges at most %d; a larger number is fixed when StarPU "
             "is "
             "built (--enable-fxt-max-files)",
             c->folder->path, count(n, with), MOST_FILES);
    align_clocks(c, with);
    bool well = convert_ranks(c, with, &unmatched, &strangers);
    if (!well && count(n, with) > 1) {
        find_readable(c, with);
        well = count(n, with) && convert_ranks(c, with, &unmatched, &strangers);
    }
    if (!well)
        fail("%s: there is nothing to read: StarPU's tool ends with: %s%s%s", c->folder->path, c->words,
             c->t->n_missing ? "; " : "", c->t->n_missing ? c->t->missing[c->t->n_missing - 1].text : "");
    if (unmatched)
        trace_note(c->t, "%d messages without their other end are left out", unmatched);
    if (strangers)
        trace_note(c->t, "the ranks' files are of different runs: their times do not fit, and no messages are shown");
}

/* The tool takes the senders' numbers for those of the files. */
static void note_senders(conversion *c, const bool *with)
{
    int n = c->folder->n_ranks, read = count(n, with);
    bool *unseen = must_allocate(n, sizeof *unseen);
    for (int r = 0; r < n; r++)
        unseen[r] = with[r] && r >= read;
    if (read > 1)
        trace_note_ranks(c->t, n, unseen, "messages from there are left out, as ranks before it are missing");
    free(unseen);
    for (int r = 0; r < n; r++)
        if (with[r] && read == 1)
            c->only = r;
    if (read == 1 && n > 1)
        trace_note(c->t, "rank %d alone was read: no messages are shown", c->only);
}

/* ---- After it ---- */

static void take_worker(void *closure, int rank, int number)
{
    conversion *c = closure;
    trace_add_worker(c->t, c->only >= 0 ? c->only : rank, number, -1);
}

static void count_flush(void *closure, int rank)
{
    conversion *c = closure;
    rank = c->only >= 0 ? c->only : rank;
    if (rank >= 0 && rank < c->folder->n_ranks)
        c->flushes[rank]++;
}

static void note_flushes(const conversion *c)
{
    for (int r = 0; r < c->folder->n_ranks; r++)
        if (c->flushes[r])
            trace_note(c->t,
                       "rank %d: events were written to disk %d time%s during the run, which holds its workers up; "
                       "STARPU_TRACE_BUFFER_SIZE=MB makes room for more",
                       r, c->flushes[r], c->flushes[r] > 1 ? "s" : "");
}

static void trim(conversion *c)
{
    const paje_listener listener = {.closure = c, .worker = take_worker, .flush = count_flush};
    char *whole = trace_text("%s/paje.trace", c->into), *trimmed = trace_text("%s/paje.trimmed", c->into);
    FILE *in = fopen(whole, "r"), *out = in ? fopen(trimmed, "w") : NULL;
    if (!out)
        fail("%s: %s", in ? trimmed : whole, strerror(errno));
    paje_trim(in, out, c->only >= 0, &listener);
    bool read = !ferror(in), written = !ferror(out);
    fclose(in);
    if (!read)
        fail("%s: it cannot be read", whole);
    if (fclose(out) || !written || rename(trimmed, whole))
        fail("%s: %s", trimmed, strerror(errno));
    free(whole);
    free(trimmed);
}

int trace_convert(const trace_folder *folder, const char *into, trace *t)
{
    conversion c = {.folder = folder, .into = into, .t = t, .only = -1};
    bool *with = must_allocate(folder->n_ranks, sizeof *with);
    c.tool = find_tool();
    c.log = trace_text("%s/words", into);
    convert_all(&c, with);
    note_senders(&c, with);
    c.flushes = must_allocate(folder->n_ranks, sizeof *c.flushes);
    trim(&c);
    note_flushes(&c);
    trace_drop_workers(t, with);
    t->n_read = count(folder->n_ranks, with);
    for (int r = 0; r < folder->n_ranks; r++)
        free(c.events[r]);
    free(c.events);
    free(c.flushes);
    free(c.tool);
    free(c.log);
    free(with);
    return c.only;
}
