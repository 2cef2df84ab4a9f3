/* SPDX-License-Identifier: Apache-2.0 */
#include "svg_view.h"

#include <math.h>
#include <stdlib.h>

#include "must.h"

/* So many bars fit a picture and a row of it, and the eye. */
enum { MOST_BARS = 3000, MOST_BARS_A_ROW = 150 };

bool view_has(const view *v, span s)
{
    if (s.begin == s.end)
        return s.begin >= v->shown.begin && s.end <= v->shown.end;
    return s.begin < v->shown.end && s.end > v->shown.begin;
}

span view_part(const view *v, span s)
{
    return (span){fmax(s.begin, v->shown.begin), fmin(s.end, v->shown.end)};
}

/* ---- Which steps, or which time ---- */

static void count_tasks(view *v)
{
    for (int i = 0; i < v->t->n_tasks; i++) {
        const trace_task *task = &v->t->tasks[i];
        bool began = !isnan(task_span(v->t, task, v->last).begin);
        v->n_began += began;
        v->n_unended += began && isnan(task->ended);
    }
}

static int most_bars(const view *v)
{
    int rows = v->t->n_workers ? v->t->n_workers : 1;
    return rows < MOST_BARS / MOST_BARS_A_ROW ? rows * MOST_BARS_A_ROW : MOST_BARS;
}

/* From steps[start] to both sides, within [least, most), as long as their tasks fit; one at least. */
static void choose_around(view *v, int start, int least, int most)
{
    int low = start, high = start + 1, room = most_bars(v) - v->steps[start].n_tasks;
    for (bool grown = true; grown;) {
        grown = false;
        if (high < most && v->steps[high].n_tasks <= room) {
            room -= v->steps[high++].n_tasks;
            grown = true;
        }
        if (low > least && v->steps[low - 1].n_tasks <= room) {
            room -= v->steps[--low].n_tasks;
            grown = true;
        }
    }
    v->first = low;
    v->n_chosen = high - low;
}

/* False where none is asked for, or there. */
static bool choose_asked(view *v, const trace_picture *asked)
{
    int low = 0, high = v->n_steps;
    if (!asked || (asked->first_step < 0 && asked->last_step < 0))
        return false;
    while (low < high && asked->first_step >= 0 && v->steps[low].number < asked->first_step)
        low++;
    while (high > low && asked->last_step >= 0 && v->steps[high - 1].number > asked->last_step)
        high--;
    v->unknown = low == high;
    if (v->unknown)
        return false;
    if (asked->first_step >= 0 && asked->last_step >= 0) {
        v->first = low;
        v->n_chosen = high - low;
    } else
        choose_around(v, asked->first_step >= 0 ? low : high - 1, low, high);
    return true;
}

static void show_steps(view *v)
{
    v->shown = v->steps[v->first].span;
    for (int i = v->first; i < v->first + v->n_chosen; i++) {
        v->shown.begin = fmin(v->shown.begin, v->steps[i].span.begin);
        v->shown.end = fmax(v->shown.end, v->steps[i].span.end);
    }
}

/* From the n tasks that began first on, after skipped ones; messages too where they are the whole. */
static void show_time(view *v, int skipped, int n)
{
    span s = {INFINITY, 0};
    for (int i = 0; i < v->t->n_tasks && n; i++) {
        span of = task_span(v->t, &v->t->tasks[i], v->last);
        if (isnan(of.begin) || skipped-- > 0)
            continue;
        s = (span){fmin(s.begin, of.begin), fmax(s.end, of.end)};
        n--;
    }
    for (int i = 0; i < v->t->n_messages && v->whole; i++) {
        span of = message_span(v->t, &v->t->messages[i], v->last);
        s = (span){fmin(s.begin, of.begin), fmax(s.end, of.end)};
    }
    v->shown = s.begin > s.end ? (span){0, 1} : s;
}

static void choose(view *v, const trace_picture *asked)
{
    int most = most_bars(v);
    if (choose_asked(v, asked))
        show_steps(v);
    else if (v->n_began <= most) {
        v->whole = true;
        v->n_chosen = v->n_steps;
        show_time(v, 0, v->n_began);
    } else if (v->n_steps) {
        choose_around(v, v->n_steps / 2, 0, v->n_steps);
        show_steps(v);
    } else
        show_time(v, (v->n_began - most) / 2, most);
    if (v->shown.end - v->shown.begin < 1e-4)
        v->shown.end = v->shown.begin + 1e-4;
}

/* ---- How much of it ---- */

static void measure(view *v)
{
    double *busy_until = must_allocate((int64_t)v->t->n_workers + 1, sizeof *busy_until);
    for (int i = 0; i < v->t->n_tasks; i++) {
        const trace_task *task = &v->t->tasks[i];
        span s = task_span(v->t, task, v->last);
        if (isnan(s.begin) || !view_has(v, s))
            continue;
        v->n_tasks++;
        v->count[task->name]++;
        if (isnan(task->ended))
            continue;
        s = view_part(v, s);
        v->time[task->name] += s.end - s.begin;
        double *until = &busy_until[task->worker]; /* a worker is busy once, even where its tasks overlap */
        v->busy[task->worker] += fmax(0, s.end - fmax(s.begin, *until));
        *until = fmax(*until, s.end);
    }
    free(busy_until);
}

/* ---- Messages ---- */

static bool within_a_pixel(span a, span b, double pixel)
{
    return fabs(a.begin - b.begin) < pixel && fabs(a.end - b.end) < pixel;
}

/* The bar that the message goes into, of the last ones in the lanes of its rank; -1: a new one in *lane. */
static int bar_for(const view *v, const int *last, int n_lanes, span s, double pixel, int *lane)
{
    int soonest = -1;
    *lane = -1;
    for (int i = 0; i < n_lanes; i++) {
        const message_bar *bar = &v->bars[last[i]];
        if (within_a_pixel(bar->span, s, pixel))
            return last[i];
        if (*lane < 0 && bar->span.end <= s.begin)
            *lane = i;
        if (soonest < 0 || bar->span.end < v->bars[soonest].span.end)
            soonest = last[i];
    }
    if (*lane < 0 && n_lanes < MOST_LANES)
        *lane = n_lanes;
    return *lane < 0 ? soonest : -1;
}

static void place_message(view *v, int i, int *last, double pixel)
{
    const trace_message *m = &v->t->messages[i];
    span s = view_part(v, message_span(v->t, m, v->last));
    int lane, at = bar_for(v, last, v->n_lanes[m->to], s, pixel, &lane);
    if (at < 0) {
        at = last[lane] = v->n_bars++;
        v->bars[at] = (message_bar){.message = i, .rank = m->to, .lane = lane, .span = s};
        v->n_lanes[m->to] += lane == v->n_lanes[m->to];
    }
    message_bar *bar = &v->bars[at];
    bar->n++;
    bar->bytes += m->bytes;
    bar->span = (span){fmin(bar->span.begin, s.begin), fmax(bar->span.end, s.end)};
    v->bar_of[i] = at;
    v->n_messages++;
}

static void place_messages(view *v, double pixel)
{
    int *last = must_allocate((int64_t)v->t->n_ranks * MOST_LANES + 1, sizeof *last);
    for (int i = 0; i < v->t->n_messages; i++) {
        span s = message_span(v->t, &v->t->messages[i], v->last);
        v->bar_of[i] = -1;
        if (!isnan(s.begin) && view_has(v, s))
            place_message(v, i, &last[v->t->messages[i].to * MOST_LANES], pixel);
    }
    free(last);
}

view *view_new(const trace *t, const trace_picture *options, double plot)
{
    view *v = must_allocate(1, sizeof *v);
    v->t = t;
    v->last = trace_last(t);
    v->steps = trace_steps(t, true, &v->n_steps);
    v->busy = must_allocate((int64_t)t->n_workers + 1, sizeof *v->busy);
    v->time = must_allocate((int64_t)t->n_names + 1, sizeof *v->time);
    v->count = must_allocate((int64_t)t->n_names + 1, sizeof *v->count);
    v->bar_of = must_allocate((int64_t)t->n_messages + 1, sizeof *v->bar_of);
    v->bars = must_allocate((int64_t)t->n_messages + 1, sizeof *v->bars);
    v->n_lanes = must_allocate((int64_t)t->n_ranks + 1, sizeof *v->n_lanes);
    count_tasks(v);
    choose(v, options);
    measure(v);
    place_messages(v, (v->shown.end - v->shown.begin) / plot);
    return v;
}

void view_destroy(view **v)
{
    free((*v)->steps);
    free((*v)->busy);
    free((*v)->time);
    free((*v)->count);
    free((*v)->bar_of);
    free((*v)->bars);
    free((*v)->n_lanes);
    free(*v);
    *v = NULL;
}
