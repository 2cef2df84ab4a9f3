/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_figures.h"

#include <math.h>
#include <stdlib.h>

#include "must.h"
#include "trace_build.h"

bool trace_task_ran(const trace_task *task)
{
    return !isnan(task->began) && !isnan(task->ended);
}

/* ---- Critical path ---- */

static double duration(const trace_task *task)
{
    return trace_task_ran(task) ? task->ended - task->began : 0;
}

/* The longest chain that ends before the task, as far as it is known. */
static double chain_before(const trace *t, const trace_task *task, const double *chain, bool messages)
{
    double longest = 0;
    for (int i = 0; i < task->n_needs; i++)
        longest = fmax(longest, chain[task->needs[i]]);
    for (int i = 0; i < task->n_messages; i++) {
        const trace_message *m = &t->messages[task->messages[i]];
        double before = m->made_by >= 0 ? chain[m->made_by] : 0;
        longest = fmax(longest, before + (messages ? m->arrived - m->sent : 0));
    }
    return longest;
}

/* The tasks are ordered by when they began, so once over them is enough, but for clocks that are apart. */
static double longest_chain(const trace *t, bool messages)
{
    enum { MOST_ROUNDS = 1000 };
    double *chain = must_allocate(t->n_tasks, sizeof *chain), longest = 0;
    bool changed = true;
    for (int round = 0; changed && round < MOST_ROUNDS; round++) {
        changed = false;
        for (int i = 0; i < t->n_tasks; i++) {
            double length = chain_before(t, &t->tasks[i], chain, messages) + duration(&t->tasks[i]);
            changed |= length > chain[i];
            chain[i] = fmax(chain[i], length);
            longest = fmax(longest, chain[i]);
        }
    }
    free(chain);
    return longest;
}

/* ---- Hidden communication ---- */

typedef struct interval {
    double from, to;
} interval;

typedef struct intervals {
    int n;
    interval *list;
} intervals;

static int by_from(const void *first, const void *second)
{
    const interval *a = first, *b = second;
    return (a->from > b->from) - (a->from < b->from);
}

static void add_interval(intervals *all, double from, double to)
{
    all->list = trace_grow(all->list, all->n, sizeof *all->list);
    all->list[all->n++] = (interval){from, to};
}

/* Sorted, those that touch joined. */
static void unite(intervals *all)
{
    int n = 0;
    if (all->n)
        qsort(all->list, (size_t)all->n, sizeof *all->list, by_from);
    for (int i = 0; i < all->n; i++)
        if (n > 0 && all->list[i].from <= all->list[n - 1].to)
            all->list[n - 1].to = fmax(all->list[n - 1].to, all->list[i].to);
        else
            all->list[n++] = all->list[i];
    all->n = n;
}

static double total(const intervals *all)
{
    double sum = 0;
    for (int i = 0; i < all->n; i++)
        sum += all->list[i].to - all->list[i].from;
    return sum;
}

static double overlap(const intervals *a, const intervals *b)
{
    double sum = 0;
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        const interval *x = &a->list[i], *y = &b->list[j];
        sum += fmax(0, fmin(x->to, y->to) - fmax(x->from, y->from));
        if (x->to < y->to)
            i++;
        else
            j++;
    }
    return sum;
}

static void measure_messages(const trace *t, trace_figures *f)
{
    intervals *talks = must_allocate(t->n_ranks, sizeof *talks), *works = must_allocate(t->n_ranks, sizeof *works);
    for (int i = 0; i < t->n_messages; i++) {
        const trace_message *m = &t->messages[i];
        add_interval(&talks[m->from], m->sent, m->arrived);
        add_interval(&talks[m->to], m->sent, m->arrived);
        f->bytes += m->bytes;
    }
    for (int i = 0; i < t->n_tasks; i++)
        if (trace_task_ran(&t->tasks[i]))
            add_interval(&works[t->tasks[i].rank], t->tasks[i].began, t->tasks[i].ended);
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
    f.path = longest_chain(t, false);
    f.path_with_messages = longest_chain(t, true);
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

/* What ended last of all that it waited for. A message's times are rounded: it may seem to arrive a little late. */
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
