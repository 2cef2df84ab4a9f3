/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a trace, the events of FxT, and the text about_RANK. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "tracing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node.h"

enum { TRACE_FORM = 1, MOST_PATH = 900 /* StarPU has room for 1024 */ };

/* A function of FxT, NULL where StarPU was built without it: writes the recorded events and stops recording. */
uint64_t fut_endup(const char *file) __attribute__((weak));
/* FxT's recorded events that are not yet written lie between these two. */
extern char *volatile fut_first_slot __attribute__((weak));
extern char *volatile fut_next_slot __attribute__((weak));

static struct {
    int begun;  /* traces that this process has begun */
    char *last; /* events file of the last ended trace */
    char *last_folder;
    char *now;        /* events file of the running trace; NULL before StarPU has started */
    int64_t recorded; /* least bytes of its file */
    int levels;       /* pushed levels of StarPU's iterations */
} traces;

/* ---- The folder ---- */

static char *path_of(const trama_context *c, const char *kind, int rank)
{
    text path = {0};
    text_add(&path, "%s/%s_%d", c->trace.folder, kind, rank);
    return text_take(&path);
}

static trama_status cannot_write(const char *path)
{
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "traces cannot be written to %s (config.trace, TRAMA_TRACE): %s", path,
                      strerror(errno));
}

static bool remove_old(const trama_context *c, int rank)
{
    char *events = path_of(c, "prof_file", rank), *about = path_of(c, "about", rank);
    bool there = !unlink(events);
    there |= !unlink(about);
    free(events);
    free(about);
    return there;
}

/* Removes this rank's files; rank 0 also those of ranks that this run does not have. */
static void remove_earlier_trace(const trama_context *c)
{
    remove_old(c, c->comm.rank);
    for (int r = c->comm.ranks; c->comm.rank == 0 && remove_old(c, r);)
        r++;
}

static trama_status make_folder(const trama_context *c)
{
    char *path = trama_text_copy(c->trace.folder), *slash = path;
    trama_status status = TRAMA_OK;
    while (slash && !status) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = 0;
        if (mkdir(path, 0777) && errno != EEXIST)
            status = cannot_write(path);
        if (slash)
            *slash = '/';
    }
    free(path);
    return status;
}

/* Later contexts of a process write to FOLDER.2, FOLDER.3, ... */
static trama_status name_folder(trama_context *c)
{
    int length = (int)strlen(c->config.trace);
    while (length > 1 && c->config.trace[length - 1] == '/')
        length--;
    text folder = {0};
    char *here = c->config.trace[0] == '/' ? NULL : getcwd(NULL, 0); /* the program may change its working folder */
    text_add(&folder, "%s%s%.*s", here ? here : "", here ? "/" : "", length, c->config.trace);
    free(here);
    if (traces.begun)
        text_add(&folder, ".%d", traces.begun + 1);
    c->trace.folder = text_take(&folder);
    if (strlen(c->trace.folder) <= MOST_PATH)
        return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "the path of config.trace (TRAMA_TRACE) has more than %d characters",
                      MOST_PATH);
}

static trama_status check_folder(const trama_context *c)
{
    struct stat s;
    if (stat(c->trace.folder, &s))
        return cannot_write(c->trace.folder);
    if (!S_ISDIR(s.st_mode))
        errno = ENOTDIR;
    else if (!access(c->trace.folder, W_OK | X_OK))
        return TRAMA_OK;
    return cannot_write(c->trace.folder);
}

/* ---- The text about_RANK ---- */

static bool append_about(const trama_context *c, const text *lines)
{
    char *path = path_of(c, "about", c->comm.rank);
    FILE *f = fopen(path, "a");
    bool written = f && fputs(lines->at, f) >= 0;
    written = f && !fclose(f) && written;
    free(path);
    return written;
}

static trama_status begin_about(const trama_context *c)
{
    text lines = {0};
    text_add(&lines, "trama-trace %d\nprogram %s\nrank %d of %d\n", TRACE_FORM, program_invocation_short_name,
             c->comm.rank, c->comm.ranks);
    text_add(&lines, "starpu %d.%d.%d\n", STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION, STARPU_RELEASE_VERSION);
    bool written = append_about(c, &lines);
    free(text_take(&lines));
    return written ? TRAMA_OK : cannot_write(c->trace.folder);
}

/* ---- FxT moves the file of the last trace to where the next one goes ---- */

static char *kept_name(void)
{
    text name = {0};
    text_add(&name, "%s.kept", traces.last);
    return text_take(&name);
}

/* Renames the last trace; FxT then moves an empty file instead. */
static void set_last_aside(void)
{
    if (!traces.last)
        return;
    char *kept = kept_name();
    FILE *empty = rename(traces.last, kept) ? NULL : fopen(traces.last, "w");
    if (empty)
        fclose(empty);
    free(kept);
}

static void put_last_back(void)
{
    if (!traces.last)
        return;
    char *kept = kept_name();
    rename(kept, traces.last);
    free(kept);
}

/* ---- Life ---- */

/* Whether the host's StarPU runs on some rank: it has already begun a trace or none. */
static bool comes_too_late(trama_context *c)
{
    char mine = starpu_is_initialized() != 0, *all = trama_alloc((size_t)c->comm.ranks);
    bool any = false;
    if (!context_gather(c, "trama_start", &mine, 1, all))
        for (int r = 0; r < c->comm.ranks; r++)
            any |= all[r];
    free(all);
    if (any && c->comm.rank == 0)
        context_log(c, TRAMA_LOG_WARNING,
                    "rank 0: the program started StarPU itself, so TRAMA_TRACE comes too late; set STARPU_FXT_TRACE=1 "
                    "and STARPU_FXT_PREFIX for its own trace, which trama trace reads too");
    return any;
}

/* Checks and makes the folder; it leaves an earlier trace alone. */
static trama_status prepare(trama_context *c)
{
    if (!comm_is_world(&c->comm))
        return trama_fail(
            NOWHERE, TRAMA_E_UNSUPPORTED,
            "config.trace (TRAMA_TRACE): StarPU's traces meet on MPI_COMM_WORLD, so the communicator must "
            "have all its ranks, in its order");
    if (!fut_endup)
        return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                          "config.trace (TRAMA_TRACE): this StarPU was built without FxT");
    trama_status status = name_folder(c);
    if (!status)
        status = make_folder(c);
    return status ? status : check_folder(c);
}

static trama_status begin(trama_context *c)
{
    remove_earlier_trace(c);
    trama_status status = begin_about(c);
    if (!status)
        set_last_aside();
    return status;
}

trama_status trace_start(trama_context *c, trama_status so_far)
{
    if (!c->config.trace || comes_too_late(c))
        return so_far;
    trama_status status = context_agree(c, "trama_start", so_far ? so_far : prepare(c));
    if (!status)
        status = context_agree(c, "trama_start", begin(c));
    if (!status)
        trace_clock(c);
    return status;
}

const trace_variable *trace_variables(const trama_context *c)
{
    static trace_variable variables[] = {
        {"STARPU_FXT_SUFFIX", "prof_file", true},
        {"STARPU_FXT_PREFIX", NULL, true},
        {"STARPU_FXT_TRACE", "1", true},
        {"STARPU_FXT_EVENTS", "USER|TASK|TASK_VERBOSE|DATA|WORKER|SCHED|EVENT|MPI", false},
        {NULL, NULL, false},
    };
    static const trace_variable none[] = {{NULL, NULL, false}};
    static trace_variable stay[] = {
        {"STARPU_FXT_SUFFIX", "prof_file", false}, {"STARPU_FXT_PREFIX", NULL, false}, {NULL, NULL, false}};
    variables[1].value = c->trace.folder;
    stay[1].value = traces.last_folder;
    return c->trace.folder ? variables : traces.last ? stay : none;
}

void trace_clock(trama_context *c)
{
    if (!c->trace.folder || !comm_is_open(&c->comm))
        return;
    text line = {0};
    text_add(&line, "clock %lld\n", (long long)comm_clock_ahead(&c->comm, !c->trace.own_clock));
    make_folder(c); /* again: FxT ends the program where the folder is missing */
    append_about(c, &line);
    free(text_take(&line));
}

void trace_save(void)
{
    if (traces.now)
        fut_endup(traces.now);
}

/* In StarPU 1.4.10 a popped level keeps its value until it is pushed again or the level before it is popped. */
void trace_step(int64_t step, int64_t micro_step)
{
    for (; traces.levels > 0; traces.levels--)
        starpu_iteration_pop();
    starpu_iteration_push((unsigned long)step);
    if (step < 0)
        starpu_iteration_pop();
    else
        traces.levels++;
    if (micro_step >= 0) {
        starpu_iteration_push((unsigned long)micro_step);
        traces.levels++;
    }
}

void trace_open(trama_context *c)
{
    if (!c->trace.folder)
        return;
    text lines = {0};
    for (int p = 0; p < c->place.n; p++)
        for (int i = 0; i < c->place.own[p].n; i++)
            text_add(&lines, "worker %d place %d\n", c->place.own[p].worker[i], p);
    append_about(c, &lines);
    free(text_take(&lines));
    put_last_back();
    traces.begun++;
    traces.levels = 0;
    traces.recorded = 0;
    traces.now = path_of(c, "prof_file", c->comm.rank);
}

static int64_t bytes_of_events(void)
{
    struct stat events;
    return traces.now && !stat(traces.now, &events) ? events.st_size : 0;
}

/* FxT ends the program where it cannot write the head of its file, so the warning of a full disk comes before. */
static void warn_of_full_disk(const trama_context *c, int64_t needed)
{
    struct statvfs disk;
    if (statvfs(c->trace.folder, &disk))
        return;
    int64_t room = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    if (room >= needed)
        return;
    append_about(c, &(text){.at = (char[]){"cut\n"}});
    context_log(c, TRAMA_LOG_WARNING,
                "rank %d: the trace in %s will not be whole: its events are at least %lld bytes, and the disk has room "
                "for %lld",
                c->comm.rank, c->trace.folder, (long long)needed, (long long)room);
}

void trace_expect(const trama_context *c)
{
    if (!c->trace.folder || !traces.now || !&fut_first_slot || !&fut_next_slot)
        return;
    int64_t pending = fut_next_slot - fut_first_slot;
    traces.recorded = bytes_of_events() + pending;
    warn_of_full_disk(c, pending);
}

/* FxT does not report a write that was cut short, as on a full disk, so the size of the file is compared. */
static void end_about(const trama_context *c)
{
    int64_t written = bytes_of_events();
    bool whole = written > 0 && written >= traces.recorded;
    text lines = {0};
    text_add(&lines, "tasks %lld\nmessages %lld\n%s\n", (long long)c->calls.tasks,
             (long long)(c->message.counters.messages_sent + c->message.counters.messages_received),
             whole ? "ended" : "cut");
    bool noted = append_about(c, &lines);
    free(text_take(&lines));
    if (!whole)
        context_log(c, TRAMA_LOG_WARNING,
                    "rank %d: the trace in %s is not whole: its events are at least %lld bytes, and %lld could be "
                    "written",
                    c->comm.rank, c->trace.folder, (long long)traces.recorded, (long long)written);
    else if (!noted)
        context_log(c, TRAMA_LOG_WARNING, "rank %d: the trace in %s is not whole: about_%d could not be written: %s",
                    c->comm.rank, c->trace.folder, c->comm.rank, strerror(errno));
}

void trace_close(trama_context *c)
{
    if (!c->trace.folder)
        return;
    if (traces.now)
        end_about(c);
    if (traces.now) {
        free(traces.last);
        free(traces.last_folder);
        traces.last = traces.now;
        traces.last_folder = c->trace.folder;
    } else {
        put_last_back();
        free(c->trace.folder);
    }
    traces.now = c->trace.folder = NULL;
}
