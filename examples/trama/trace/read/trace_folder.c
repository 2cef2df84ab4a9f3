/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"
#include "trace_build.h"

enum { VERSION = 1, MOST_RANKS = 1 << 20, MOST_ABOUT_BYTES = 1 << 20 };

/* ---- Names ---- */

/* The number that ends the name, behind the prefix or behind the last '_'; -1 where there is none. */
static int rank_of(const char *name, const char *prefix)
{
    if (strncmp(name, prefix, strlen(prefix)))
        return -1;
    const char *digits = strrchr(name, '_') + 1;
    char *end;
    if (!isdigit((unsigned char)*digits))
        return -1;
    long rank = strtol(digits, &end, 10);
    return *end || rank >= MOST_RANKS ? -1 : (int)rank;
}

static trace_rank *rank_at(trace_folder *f, int rank)
{
    while (f->n_ranks <= rank) {
        f->ranks = trace_grow(f->ranks, f->n_ranks, sizeof *f->ranks);
        f->ranks[f->n_ranks].tasks = -1;
        f->n_ranks++;
    }
    return &f->ranks[rank];
}

/* ---- about_R ---- */

typedef struct about {
    const char *path;
    int rank;    /* as the file's name says */
    int n_ranks; /* as the file says; 0 as long as it has not */
} about;

static void check_versions(const about *a, const char *key, const char *value)
{
    if (!strcmp(key, "starpu") && strcmp(value, STARPU_VERSION))
        fail("%s: the trace is of StarPU %s, and this trama is made with StarPU " STARPU_VERSION
             ": use the trama of the Trama that ran the program",
             a->path, value);
}

static void take_fact(trace_folder *f, about *a, const char *line, trace *t)
{
    char key[32], value[256];
    int rank, worker, place, n_ranks;
    int64_t number;
    trace_rank *r = &f->ranks[a->rank];
    if (sscanf(line, "%31s %255[^\n]", key, value) == 2)
        check_versions(a, key, value);
    if (sscanf(line, "rank %d of %d", &rank, &n_ranks) == 2 && n_ranks > 0 && n_ranks < MOST_RANKS) {
        if (rank != a->rank)
            trace_note(t, "%s says that it is of rank %d: files of several runs seem to be mixed", a->path, rank);
        a->n_ranks = n_ranks;
    } else if (sscanf(line, "worker %d place %d", &worker, &place) == 2 && worker >= 0 && place >= 0) {
        trace_add_worker(t, a->rank, worker, place);
    } else if (!strncmp(line, "program ", 8) && !t->program) {
        t->program = trace_text("%s", line + 8);
    } else if (sscanf(line, "clock %" SCNd64, &number) == 1 && r->n_clocks < 2) {
        r->clock[r->n_clocks++] = number;
    } else if (sscanf(line, "tasks %" SCNd64, &number) == 1) {
        r->tasks = number;
    } else if (!strcmp(line, "ended")) {
        r->ended = true;
    } else if (!strcmp(line, "cut")) {
        r->cut = true;
    }
}

/* Devices and pipes may have no end, and the wait for a pipe's other end neither: only a regular file is read. */
static FILE *open_about(const char *path)
{
    struct stat is;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *file = descriptor < 0 || fstat(descriptor, &is) ? NULL : fdopen(descriptor, "r");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    if (!S_ISREG(is.st_mode))
        fail("%s: it is no regular file, as Trama's description of a trace is", path);
    if (is.st_size > MOST_ABOUT_BYTES)
        fail("%s: it has %lld bytes; Trama's description of a trace has at most %d", path, (long long)is.st_size,
             MOST_ABOUT_BYTES);
    if (is.st_size == 0)
        fail("%s: it is empty, as on a disk that was full when the program started", path);
    return file;
}

/* Reads one of them; returns the number of ranks that it states. */
static int read_about(trace_folder *f, int rank, trace *t)
{
    char *path = trace_text("%s/about_%d", f->path, rank), *line = NULL;
    size_t room = 0;
    int version;
    about a = {.path = path, .rank = rank};
    FILE *file = open_about(path);
    if (getline(&line, &room, file) < 0 || sscanf(line, "trama-trace %d", &version) != 1)
        fail("%s: it does not begin as Trama's description of a trace does, with `trama-trace %d`", path, VERSION);
    if (version != VERSION)
        fail("%s: the trace is of version %d, and this trama reads version %d: use the trama of the Trama that ran the "
             "program",
             path, version, VERSION);
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        take_fact(f, &a, line, t);
    }
    fclose(file);
    free(line);
    free(path);
    return a.n_ranks;
}

/* ---- All of it ---- */

/* Of two files of one rank the younger is of this run. */
static void take_events(trace_folder *f, int rank, const char *name, trace *t)
{
    char *path = trace_text("%s/%s", f->path, name);
    trace_rank *r = rank_at(f, rank);
    struct stat this, other;
    if (!stat(path, &this) && !S_ISREG(this.st_mode))
        fail("%s: it is no regular file, as StarPU's events are", path);
    if (r->events && !stat(path, &this) && !stat(r->events, &other)) {
        bool younger = this.st_mtime > other.st_mtime;
        trace_note(t, "rank %d has several files of events: %s is left out", rank, younger ? r->events : path);
        if (!younger) {
            free(path);
            return;
        }
    }
    free(r->events);
    r->events = path;
}

static void list_files(trace_folder *f, trace *t)
{
    struct dirent **names;
    int n = scandir(f->path, &names, NULL, alphasort), rank;
    if (n < 0)
        fail("%s: %s", f->path, strerror(errno));
    for (int i = 0; i < n; i++) {
        if ((rank = rank_of(names[i]->d_name, "prof_file_")) >= 0)
            take_events(f, rank, names[i]->d_name, t);
        else if ((rank = rank_of(names[i]->d_name, "about_")) >= 0)
            rank_at(f, rank)->described = true;
        free(names[i]);
    }
    free(names);
    if (f->n_ranks == 0)
        fail("%s: this is no folder of a trace: it has neither files about_R, which Trama writes with "
             "TRAMA_TRACE=FOLDER, nor files prof_file_*, which StarPU does",
             f->path);
}

/* All that lies there of ranks that the run does not have is of another one. */
static void read_abouts(trace_folder *f, trace *t)
{
    int stated = 0;
    for (int r = 0; r < f->n_ranks; r++)
        if (f->ranks[r].described) {
            int n = read_about(f, r, t);
            if (stated && n && n != stated)
                trace_note(t, "about_%d speaks of %d ranks, others of %d: files of several runs seem to be mixed", r, n,
                           stated);
            stated = n && !stated ? n : stated;
            f->plain = false;
        }
    for (int r = stated; stated && r < f->n_ranks; r++)
        if (f->ranks[r].events || f->ranks[r].described) {
            trace_note(t, "rank %d is left out: the run had %d rank%s only, so its files are of another run", r, stated,
                       stated > 1 ? "s" : "");
            free(f->ranks[r].events);
        }
    if (stated > f->n_ranks)
        rank_at(f, stated - 1);
    f->n_ranks = stated ? stated : f->n_ranks;
}

static void note_lacks(const trace_folder *f, trace *t)
{
    bool *absent = must_allocate(f->n_ranks, sizeof *absent), *broken = must_allocate(f->n_ranks, sizeof *broken);
    bool *unknown = must_allocate(f->n_ranks, sizeof *unknown), *cut = must_allocate(f->n_ranks, sizeof *cut),
         *unwritten = must_allocate(f->n_ranks, sizeof *unwritten);
    int n = 0;
    for (int r = 0; r < f->n_ranks; r++) {
        struct stat file;
        const trace_rank *rank = &f->ranks[r];
        absent[r] = !rank->events || stat(rank->events, &file) || file.st_size == 0;
        cut[r] = rank->cut && !rank->ended;
        broken[r] = rank->described && !rank->ended && !rank->cut && !absent[r];
        unwritten[r] = rank->described && !rank->ended && !rank->cut && absent[r];
        unknown[r] = !f->plain && !rank->described && !absent[r];
        n += !absent[r];
        absent[r] &= !unwritten[r] && !cut[r];
    }
    trace_note_ranks(t, f->n_ranks, absent,
                     "no events: prof_file_* is missing or empty; StarPU writes it when it ends");
    trace_note_ranks(t, f->n_ranks, unwritten,
                     "no events: interrupted before they were written, which is done where there is no more room for "
                     "them and when Trama stops");
    trace_note_ranks(t, f->n_ranks, broken, "interrupted: the trace was not closed, its end is missing");
    trace_note_ranks(t, f->n_ranks, cut, "cut: not all events could be written, as on a full disk; the end is missing");
    trace_note_ranks(t, f->n_ranks, unknown, "about_R is missing: its places are not known, nor whether it was closed");
    free(absent);
    free(broken);
    free(cut);
    free(unknown);
    free(unwritten);
    if (n == 0)
        fail("%s: there is nothing to read: no rank has events; StarPU writes them (prof_file_*) when the program ends",
             f->path);
}

void trace_folder_read(trace_folder *folder, const char *path, trace *t)
{
    *folder = (trace_folder){.path = path, .plain = true};
    list_files(folder, t);
    read_abouts(folder, t);
    t->n_ranks = folder->n_ranks;
    if (folder->plain)
        trace_note(t, "there are no files about_R: this is the trace of a StarPU program, its places are not known");
    note_lacks(folder, t);
    if (!t->program)
        t->program = trace_text("%s", folder->path);
}

void trace_folder_compare(const trace_folder *folder, trace *t)
{
    int64_t *held = must_allocate(folder->n_ranks, sizeof *held);
    for (int i = 0; i < t->n_tasks; i++)
        held[t->tasks[i].rank]++;
    for (int r = 0; r < folder->n_ranks; r++)
        if (folder->ranks[r].tasks >= 0 && held[r] && held[r] != folder->ranks[r].tasks)
            trace_note(t, "rank %d: the events hold %lld of the %lld tasks that it submitted", r, (long long)held[r],
                       (long long)folder->ranks[r].tasks);
    free(held);
}

void trace_folder_destroy(trace_folder *folder)
{
    for (int r = 0; r < folder->n_ranks; r++)
        free(folder->ranks[r].events);
    free(folder->ranks);
    folder->ranks = NULL;
}
