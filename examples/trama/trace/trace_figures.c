/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_figures.h"

#include <math.h>
#include <stdlib.h>

#include "must.h"
#include "picture_parts.h"
#include "trace_build.h"

bool trace_task_ran(const trace_task *task)
{
    return !isnan(task->began) && !isnan(task->ended);
}

static double duration(const trace_task *task)
{
    return trace_task_ran(task) ? task->ended - task->began : 0;
}

static double longest_chain(const trace *t, trace_chain which)
{
    double longest = 0;
    for (int i = 0; i < t->n_tasks; i++)
        longest = fmax(longest, t->tasks[i].chain[which]);
    return longest;
}

/* ---- Hidden communication ---- */

typedef struct spans {
    int n;
    span *list;
} spans;

static int by_begin(const void *first, const void *second)
{
    const span *a = first, *b = second;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static void add_span(spans *all, double begin, double end)
{
    all->list = trace_grow(all->list, all->n, sizeof *all->list);
    all->list[all->n++] = (span){begin, end};
}

/* Sorted, those that touch joined. */
static void unite(spans *all)
{
    int n = 0;
    if (all->n)
        qsort(all->list, (size_t)all->n, sizeof *all->list, by_begin);
    for (int i = 0; i < all->n; i++)
        if (n > 0 && all->list[i].begin <= all->list[n - 1].end)
            all->list[n - 1].end = fmax(all->list[n - 1].end, all->list[i].end);
        else
            all->list[n++] = all->list[i];
    all->n = n;
}

static double total(const spans *all)
{
    double sum = 0;
    for (int i = 0; i < all->n; i++)
        sum += all->list[i].end - all->list[i].begin;
    return sum;
}

static double overlap(const spans *a, const spans *b)
{
    double sum = 0;
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        const span *x = &a->list[i], *y = &b->list[j];
        sum += fmax(0, fmin(x->end, y->end) - fmax(x->begin, y->begin));
        if (x->end < y->end)
            i++;
        else
            j++;
    }
    return sum;
}

static void measure_messages(const trace *t, trace_figures *f)
{
    spans *talks = must_allocate(t->n_ranks, sizeof *talks), *works = must_allocate(t->n_ranks, sizeof *works);
    for (int i = 0; i < t->n_messages; i++) {
        const trace_message *m = &t->messages[i];
        add_span(&talks[m->from], m->sent, m->arrived);
        add_span(&talks[m->to], m->sent, m->arrived);
        f->bytes += m->bytes;
    }
    for (int i = 0; i < t->n_tasks; i++)
        if (trace_task_ran(&t->tasks[i]))
            add_span(&works[t->tasks[i].rank], t->tasks[i].began, t->tasks[i].ended);
    for (int r = 0; r < t->n_ranks; r++) {
        unite(&talks[r]);
        unite(&works[r]);
        f->under_way += total(&talks[r]);
        f->hidden += overlap(&talks[r], &works[r]);
        free(talks[r].list);
        free(works[r].list);
    }
    free(talks);
    free(works);
}

trace_figures trace_measure(const trace *t)
{
    trace_figures f = {.makespan = t->ended - t->began};
    for (int i = 0; i < t->n_tasks; i++)
        f.busy += duration(&t->tasks[i]);
    f.available = f.makespan * t->n_workers;
    f.idle = f.available > 0 ? fmax(0, 1 - f.busy / f.available) : 0;
    f.area = t->n_workers ? f.busy / t->n_workers : 0;
    f.path = longest_chain(t, CHAIN_OF_TASKS);
    f.path_with_messages = longest_chain(t, CHAIN_WITH_MESSAGES);
    measure_messages(t, &f);
    return f;
}

/* ---- Waits ---- */

static void suspect(trace_wait *w, trace_cause cause, int which, double over)
{
    if (!isnan(over) && over <= w->to && (w->cause == CAUSE_UNKNOWN || over > w->ready)) {
        w->cause = cause;
        w->which = which;
        w->ready = over;
    }
}

/* Finds the last need of the task to end. A message's times are rounded: it may seem to arrive a little late. */
static void find_cause(const trace *t, trace_wait *w)
{
    const trace_task *task = &t->tasks[w->task];
    const double slack = 0.05;
    w->ready = -INFINITY;
    suspect(w, CAUSE_SUBMISSION, -1, task->submitted);
    for (int i = 0; i < task->n_needs; i++)
        suspect(w, CAUSE_TASK, task->needs[i], t->tasks[task->needs[i]].ended);
    for (int i = 0; i < task->n_messages; i++) {
        double arrived = t->messages[task->messages[i]].arrived;
        suspect(w, CAUSE_MESSAGE, task->messages[i], arrived < w->to + slack ? fmin(arrived, w->to) : NAN);
    }
    for (int i = 0; i < task->n_sends; i++)
        suspect(w, CAUSE_SEND, task->sends[i], t->messages[task->sends[i]].left);
}

static void keep_longest(int most, int *n, trace_wait *waits, trace_wait w)
{
    if (most == 0 || (*n == most && w.to - w.from <= waits[most - 1].to - waits[most - 1].from))
        return;
    int at = *n < most ? (*n)++ : most - 1;
    for (; at > 0 && waits[at - 1].to - waits[at - 1].from < w.to - w.from; at--)
        waits[at] = waits[at - 1];
    waits[at] = w;
}

int trace_longest_waits(const trace *t, int n, trace_wait *waits)
{
    double *free_since = must_allocate(t->n_workers, sizeof *free_since);
    int found = 0;
    for (int i = 0; i < t->n_workers; i++)
        free_since[i] = t->began;
    for (int i = 0; i < t->n_tasks; i++) {
        const trace_task *task = &t->tasks[i];
        if (!trace_task_ran(task) || task->worker < 0)
            continue;
        if (task->began > free_since[task->worker])
            keep_longest(n, &found, waits,
                         (trace_wait){.task = i, .from = free_since[task->worker], .to = task->began, .which = -1});
        free_since[task->worker] = fmax(free_since[task->worker], task->ended);
    }
    free(free_since);
    for (int i = 0; i < found; i++)
        find_cause(t, &waits[i]);
    return found;
}
