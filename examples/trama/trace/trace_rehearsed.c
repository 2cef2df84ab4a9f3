/* SPDX-License-Identifier: Apache-2.0 */
/* Events have no dependencies of tasks, so the pictures have no arrows between these. */
#include "trace_rehearsed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "must.h"
#include "trace_build.h"
#include "trace_names.h"
#include "trace_output.h"

enum { MOST_EVENTS = 4000000 };

trace trace_rehearsed(int ranks)
{
    return (trace){.program = trace_text("trama rehearse"), .n_ranks = ranks, .n_read = ranks, .began = INFINITY};
}

/* worker: its number, until all are known. */
static void take_task(trace *t, const trama_rehearsed *e)
{
    t->tasks = trace_grow(t->tasks, t->n_tasks, sizeof *t->tasks);
    t->tasks[t->n_tasks] = (trace_task){.name = trace_name_index(t, e->name),
                                        .rank = e->rank,
                                        .worker = e->worker,
                                        .job = t->n_tasks,
                                        .submitted = NAN,
                                        .began = 1e3 * e->begin,
                                        .ended = 1e3 * e->end,
                                        .gflop = e->flops / 1e9,
                                        .priority = e->priority,
                                        .step = e->run,
                                        .micro_step = -1};
    t->began = fmin(t->began, t->tasks[t->n_tasks].began);
    t->ended = fmax(t->ended, t->tasks[t->n_tasks++].ended);
    trace_add_worker(t, e->rank, e->worker, -1);
}

static void take_message(trace *t, const trama_rehearsed *e)
{
    t->messages = trace_grow(t->messages, t->n_messages, sizeof *t->messages);
    t->messages[t->n_messages++] = (trace_message){.from = e->rank,
                                                   .to = e->peer,
                                                   .sent = 1e3 * e->begin,
                                                   .arrived = 1e3 * e->end,
                                                   .left = 1e3 * e->end,
                                                   .bytes = e->bytes,
                                                   .text = trace_text("%s", e->name),
                                                   .made_by = -1};
}

void trace_rehearsed_take(void *closure, const trama_rehearsed *event)
{
    trace *t = closure;
    if (t->n_tasks + t->n_messages == MOST_EVENTS)
        fail("--trace: the rehearsal has more than %d tasks and messages: take fewer ranks, steps or layers",
             MOST_EVENTS);
    if (event->peer < 0)
        take_task(t, event);
    else
        take_message(t, event);
}

static int by_begin(const void *first, const void *second)
{
    const trace_task *a = first, *b = second;
    if (a->began != b->began)
        return a->began < b->began ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

static int by_sent(const void *first, const void *second)
{
    const trace_message *a = first, *b = second;
    if (a->sent != b->sent)
        return a->sent < b->sent ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

static void put_in_order(trace *t)
{
    if (!t->n_tasks)
        fail("--trace: there is nothing to show, since no task was simulated");
    trace_finish_workers(t);
    for (int i = 0; i < t->n_tasks; i++)
        t->tasks[i].worker = trace_find_worker(t, t->tasks[i].rank, t->tasks[i].worker);
    qsort(t->tasks, (size_t)t->n_tasks, sizeof *t->tasks, by_begin);
    if (t->n_messages)
        qsort(t->messages, (size_t)t->n_messages, sizeof *t->messages, by_sent);
    trace_color_names(t);
}

typedef struct writing {
    const trace *t;
    const char *folder;
} writing;

static int write_pictures(const char *scratch, void *closure)
{
    static const char *const results[] = {"timeline.svg", "trace.json"};
    const writing *w = closure;
    trace_output_pictures(scratch, w->t, &(trace_picture){-1, -1});
    trace_output_publish(scratch, w->folder, 2, results);
    return EXIT_SUCCESS;
}

void trace_rehearsed_write(trace *t, const char *folder)
{
    put_in_order(t);
    if (mkdir(folder, 0777) && errno != EEXIST)
        fail("%s: the folder cannot be made: %s", folder, strerror(errno));
    if (trace_output_work(folder, write_pictures, &(writing){t, folder}))
        exit(EXIT_FAILURE);
    printf("written into %s: timeline.svg, trace.json\n", folder);
}
