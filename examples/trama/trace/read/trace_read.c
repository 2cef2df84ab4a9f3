/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and jobs; the links between them are trace_links.c's. */
#include "trace_read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "records.h"
#include "trace_build.h"
#include "trace_names.h"

typedef struct reading {
    trace *t;
    int only;
    trace_jobs jobs; /* task says which, before the tasks are put in order */
    int *worker;     /* of each task, as StarPU numbers those of a rank */
} reading;

/* ---- One record ---- */

/* Tasks of StarPU itself: acquisitions, synchronizations, and tasks without a name. */
static bool is_own(const char *name)
{
    return !name || !*name || !strncmp(name, "_starpu_", 8) || !strncmp(name, "starpu_", 7);
}

/* "1_2 1_7": the numbers behind the last '_' of each. */
static void take_needs(trace_job *j, const char *text)
{
    while (text && *(text += strspn(text, " "))) {
        size_t length = strcspn(text, " ");
        char *end;
        long number = strtol(text, &end, 10);
        if (*end == '_')
            number = strtol(end + 1, NULL, 10);
        j->needs = trace_grow(j->needs, j->n_needs, sizeof *j->needs);
        j->needs[j->n_needs++] = number;
        text += length;
    }
}

/* "1_42", or "42" where the trace is of one rank. */
static bool take_number(const reading *read, const records *r, trace_job *j)
{
    const char *text = records_text(r, "JobId");
    char *end;
    long first = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text)
        return false;
    j->rank = read->only >= 0 ? read->only : *end == '_' ? (int)first : 0;
    j->number = *end == '_' ? strtol(end + 1, NULL, 10) : first;
    return j->rank >= 0 && j->rank < read->t->n_ranks;
}

static void take_task(reading *read, const records *r, trace_job *j, const char *name)
{
    trace *t = read->t;
    trace_task task = {.name = trace_name_index(t, name),
                       .rank = j->rank,
                       .worker = -1,
                       .job = j->number,
                       .submitted = j->submitted,
                       .began = records_number(r, "StartTime", NAN),
                       .ended = records_number(r, "EndTime", NAN),
                       .gflop = records_number(r, "GFlop", 0),
                       .priority = (int)records_integer(r, "Priority", 0),
                       .step = -1,
                       .micro_step = -1};
    int worker = (int)records_integer(r, "WorkerId", -1);
    const char *steps = records_text(r, "Iteration");
    if (steps)
        sscanf(steps, "%ld %ld", &task.step, &task.micro_step);
    if (worker < 0 || !(task.ended >= task.began))
        task.ended = NAN;
    if (worker < 0)
        task.began = NAN;
    else
        trace_add_worker(t, j->rank, worker, -1);
    t->tasks = trace_grow(t->tasks, t->n_tasks, sizeof *t->tasks);
    read->worker = trace_grow(read->worker, t->n_tasks, sizeof *read->worker);
    read->worker[t->n_tasks] = worker;
    j->task = t->n_tasks;
    t->tasks[t->n_tasks++] = task;
}

static void take_record(reading *read, const records *r)
{
    trace_job j = {.task = -1, .received = -1, .sent = -1, .submitted = records_number(r, "SubmitTime", NAN)};
    if (records_text(r, "Control") || !take_number(read, r, &j))
        return;
    const char *name = records_text(r, "Name");
    bool began = records_text(r, "StartTime") && records_text(r, "WorkerId");
    if (!name && began)
        name = records_text(r, "Model") ? records_text(r, "Model") : "unknown"; /* its name comes when it ends */
    take_needs(&j, records_text(r, "DependsOn"));
    if (!is_own(name) && (began || (records_text(r, "SubmitOrder") && !trace_only_orders(name))))
        take_task(read, r, &j, name);
    read->jobs.jobs = trace_grow(read->jobs.jobs, read->jobs.n, sizeof j);
    read->jobs.jobs[read->jobs.n++] = j;
}

/* ---- In order ---- */

typedef struct placed {
    double began;
    int task;
} placed;

static int by_begin(const void *first, const void *second)
{
    const placed *a = first, *b = second;
    if (isnan(a->began) != isnan(b->began))
        return isnan(a->began) ? 1 : -1;
    if (!isnan(a->began) && a->began != b->began)
        return a->began < b->began ? -1 : 1;
    return (a->task > b->task) - (a->task < b->task);
}

/* By when they began; the jobs' indices follow. */
static void sort_tasks(reading *read)
{
    trace *t = read->t;
    placed *order = must_allocate(t->n_tasks, sizeof *order);
    int *now = must_allocate(t->n_tasks, sizeof *now);
    trace_task *sorted = must_allocate(t->n_tasks, sizeof *sorted);
    for (int i = 0; i < t->n_tasks; i++)
        order[i] = (placed){.began = t->tasks[i].began, .task = i};
    qsort(order, (size_t)t->n_tasks, sizeof *order, by_begin);
    for (int i = 0; i < t->n_tasks; i++) {
        trace_task *task = &sorted[i];
        *task = t->tasks[order[i].task];
        task->worker = isnan(task->began) ? -1 : trace_find_worker(t, task->rank, read->worker[order[i].task]);
        now[order[i].task] = i;
    }
    for (int i = 0; i < read->jobs.n; i++)
        if (read->jobs.jobs[i].task >= 0)
            read->jobs.jobs[i].task = now[read->jobs.jobs[i].task];
    free(t->tasks);
    t->tasks = sorted;
    free(order);
    free(now);
}

static int by_number(const void *first, const void *second)
{
    const trace_job *a = first, *b = second;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void find_ends(trace *t)
{
    int unended = 0, unbegun = 0;
    t->began = INFINITY;
    t->ended = -INFINITY;
    for (int i = 0; i < t->n_tasks; i++) {
        const trace_task *task = &t->tasks[i];
        if (isnan(task->began)) {
            unbegun++;
        } else if (isnan(task->ended)) {
            unended++;
        } else {
            t->began = fmin(t->began, task->began);
            t->ended = fmax(t->ended, task->ended);
        }
    }
    if (unended)
        trace_note(t, "%d task%s began and never ended: left out of all figures", unended, unended > 1 ? "s" : "");
    if (unbegun)
        trace_note(t, "%d task%s never began", unbegun, unbegun > 1 ? "s were submitted and" : " was submitted and");
}

/* The first task begins at 0; tasks and messages before that begin before 0. */
static void set_zero(trace *t)
{
    const double zero = t->began;
    for (int i = 0; i < t->n_tasks; i++) {
        t->tasks[i].submitted -= zero;
        t->tasks[i].began -= zero;
        t->tasks[i].ended -= zero;
    }
    for (int i = 0; i < t->n_messages; i++) {
        t->messages[i].sent -= zero;
        t->messages[i].arrived -= zero;
        t->messages[i].left -= zero;
    }
    t->began -= zero;
    t->ended -= zero;
}

/* Ends the program: nothing ran, as far as the trace tells, and all that is missing in it may be the reason. */
static void fail_of_no_task(const trace *t)
{
    char *lacks = trace_text("%s", "");
    for (int i = 0; i < t->n_missing; i++) {
        char *longer = trace_text("%s; %s", lacks, t->missing[i].text);
        free(lacks);
        lacks = longer;
    }
    fail("there is nothing to show: no task of %s ran%s", t->program, lacks);
}

void trace_read(const char *folder, int only, trace *t)
{
    reading read = {.t = t, .only = only};
    char *path = trace_text("%s/tasks.rec", folder);
    records *r = records_open(path);
    if (!r)
        fail("%s: %s", path, strerror(errno));
    while (records_next(r))
        take_record(&read, r);
    records_close(&r);
    trace_finish_workers(t);
    if (read.worker)
        sort_tasks(&read);
    find_ends(t);
    if (!(t->ended >= t->began) || !read.jobs.jobs)
        fail_of_no_task(t);
    qsort(read.jobs.jobs, (size_t)read.jobs.n, sizeof *read.jobs.jobs, by_number);
    trace_link(folder, &read.jobs, t);
    set_zero(t);
    trace_color_names(t);
    for (int i = 0; i < read.jobs.n; i++)
        free(read.jobs.jobs[i].needs);
    free(read.jobs.jobs);
    free(read.worker);
    free(path);
}
