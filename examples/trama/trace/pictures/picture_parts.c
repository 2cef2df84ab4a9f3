/* SPDX-License-Identifier: Apache-2.0 */
#include "picture_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"

double trace_last(const trace *t)
{
    double last = 0;
    for (int i = 0; i < t->n_tasks; i++)
        last = fmax(last, fmax(t->tasks[i].began, t->tasks[i].ended));
    for (int i = 0; i < t->n_messages; i++)
        last = fmax(last, fmax(t->messages[i].sent, t->messages[i].arrived));
    return last;
}

static span span_of(double begin, double end, double last)
{
    if (isnan(begin))
        return (span){NAN, NAN};
    end = isnan(end) ? last : end;
    return (span){begin, end > begin ? end : begin};
}

span task_span(const trace *t, const trace_task *task, double last)
{
    bool ran = task->worker >= 0 && task->worker < t->n_workers;
    return span_of(ran ? task->began : NAN, task->ended, last);
}

span message_span(const trace *t, const trace_message *m, double last)
{
    if (m->from < 0 || m->to < 0 || m->from >= t->n_ranks || m->to >= t->n_ranks)
        return (span){NAN, NAN};
    return span_of(isnan(m->sent) ? m->arrived : m->sent, m->arrived, last);
}

static int compare_steps(const void *a, const void *b)
{
    long x = ((const trace_step *)a)->number, y = ((const trace_step *)b)->number;
    return (x > y) - (x < y);
}

trace_step *trace_steps(const trace *t, bool with_unended, int *n)
{
    trace_step *steps = must_allocate((int64_t)t->n_tasks + 1, sizeof *steps);
    int n_tasks = 0;
    for (int i = 0; i < t->n_tasks; i++) {
        const bool unended = isnan(t->tasks[i].ended);
        span s = task_span(t, &t->tasks[i], t->tasks[i].began);
        if (t->tasks[i].step < 0 || isnan(s.begin) || (unended && !with_unended))
            continue;
        steps[n_tasks++] = (trace_step){t->tasks[i].step, s, 1};
    }
    qsort(steps, (size_t)n_tasks, sizeof *steps, compare_steps);
    *n = 0;
    for (int i = 0; i < n_tasks; i++)
        if (*n && steps[*n - 1].number == steps[i].number) {
            trace_step *step = &steps[*n - 1];
            step->span.begin = fmin(step->span.begin, steps[i].span.begin);
            step->span.end = fmax(step->span.end, steps[i].span.end);
            step->n_tasks++;
        } else
            steps[(*n)++] = steps[i];
    return steps;
}

static int keep_latest(waited waits[MOST_WAITS], int n, waited w)
{
    int at = n;
    while (at > 0 && (w.over > waits[at - 1].over || (isnan(waits[at - 1].over) && !isnan(w.over))))
        at--;
    n += n < MOST_WAITS;
    for (int i = n - 1; i > at; i--)
        waits[i] = waits[i - 1];
    if (at < n)
        waits[at] = w;
    return n;
}

int task_waits(const trace *t, const trace_task *task, waited waits[MOST_WAITS])
{
    int n = 0;
    for (int i = 0; i < task->n_needs; i++) {
        const trace_task *need = &t->tasks[task->needs[i]];
        n = keep_latest(waits, n, (waited){need, task->needs[i], need->ended});
    }
    for (int i = 0; i < task->n_messages; i++)
        n = keep_latest(waits, n, (waited){NULL, task->messages[i], t->messages[task->messages[i]].arrived});
    return n;
}

void wait_text(const trace *t, const waited *wait, char text[200])
{
    const trace_message *m = wait->task ? NULL : &t->messages[wait->which];
    if (wait->task)
        snprintf(text, 200, "%.150s, task %ld", t->names[wait->task->name].text, wait->task->job);
    else
        snprintf(text, 200, "%.150s from rank %d", m->text && *m->text ? m->text : "a message", m->from);
}

int lanes_take(lanes *l, span s)
{
    int lane = 0;
    while (lane < l->n && l->end[lane] > s.begin)
        lane++;
    if (lane == l->n) {
        double *end = must_allocate(l->n + 1, sizeof *end);
        for (int i = 0; i < l->n; i++)
            end[i] = l->end[i];
        free(l->end);
        l->end = end;
        l->n++;
    }
    l->end[lane] = s.end;
    return lane;
}

int character_length(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80)
        return c[0] >= ' ' && c[0] != 0x7f ? 1 : c[0] ? -1 : 0;
    int length = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    unsigned code = c[0] & (0x7fu >> length);
    if (c[0] < 0xc2 || c[0] > 0xf4)
        return -1;
    for (int i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (c[i] & 0x3fu);
    }
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = code >= 0xd800 && code < 0xe000, none = code == 0xfffe || code == 0xffff;
    return code < least[length] || code > 0x10ffff || surrogate || none ? -1 : length;
}
