/* SPDX-License-Identifier: Apache-2.0 */
/* The trace as trace events. Viewers lose slices of a thread that overlap without nesting, by a rounding too: times
 * are whole ns, and messages and steps lie in as many threads as it takes. Slices stand before the flows that bind to
 * them. */
#include <math.h>
#include <stdlib.h>

#include "json_stream.h"
#include "must.h"
#include "picture_parts.h"
#include "pictures.h"
#include "trace_names.h"

typedef struct slice {
    int pid, tid;       /* 0: there is none */
    int64_t begin, end; /* ns */
} slice;

typedef struct writer {
    const trace *t;
    json_stream json;
    double last;
    int64_t zero;             /* ns at which time 0 of the trace is shown, as viewers refuse negative times */
    int first_lane;           /* thread of a rank's first lane of messages */
    lanes *messages;          /* [n_ranks] */
    slice *ran, *left, *came; /* of each task; of each message at both its ends */
    int flows;
} writer;

/* ---- Events ---- */

static void open_event(writer *w, const char *phase, int pid, int tid, const char *name)
{
    json_open_line(&w->json);
    json_text(&w->json, "ph", phase);
    json_integer(&w->json, "pid", pid);
    json_integer(&w->json, "tid", tid);
    json_text(&w->json, "name", name);
}

static void open_slice(writer *w, const slice *s, const char *name, const char *category)
{
    open_event(w, "X", s->pid, s->tid, name);
    json_text(&w->json, "cat", category);
    json_us(&w->json, "ts", s->begin);
    json_us(&w->json, "dur", s->end - s->begin);
    json_open(&w->json, "args", '{');
}

static void close_event(writer *w)
{
    json_close(&w->json, '}');
    json_close(&w->json, '}');
}

/* ---- Where things lie ---- */

static int64_t ns_of(double ms)
{
    return llround(ms * 1e6);
}

static slice slice_at(const writer *w, int pid, int tid, span s)
{
    if (isnan(s.begin))
        return (slice){0};
    return (slice){pid, tid, w->zero + ns_of(s.begin), w->zero + ns_of(s.end)};
}

/* Where something is before 0, all is shown later by that. */
static void find_zero(writer *w)
{
    double first = 0;
    for (int i = 0; i < w->t->n_tasks; i++)
        first = fmin(first, task_span(w->t, &w->t->tasks[i], w->last).begin);
    for (int i = 0; i < w->t->n_messages; i++)
        first = fmin(first, message_span(w->t, &w->t->messages[i], w->last).begin);
    w->zero = -ns_of(first);
}

static void place_tasks(writer *w)
{
    for (int i = 0; i < w->t->n_tasks; i++) {
        const trace_task *task = &w->t->tasks[i];
        span s = task_span(w->t, task, w->last);
        if (!isnan(s.begin)) {
            const trace_worker *worker = &w->t->workers[task->worker];
            w->ran[i] = slice_at(w, worker->rank + 1, worker->number + 1, s);
        }
    }
}

/* At the receiver, and at the sender where that is another one. */
static void place_messages(writer *w)
{
    for (int i = 0; i < w->t->n_messages; i++) {
        const trace_message *m = &w->t->messages[i];
        span s = message_span(w->t, m, w->last);
        if (isnan(s.begin))
            continue;
        w->came[i] = slice_at(w, m->to + 1, w->first_lane + lanes_take(&w->messages[m->to], s), s);
        w->left[i] = m->from == m->to
                         ? w->came[i]
                         : slice_at(w, m->from + 1, w->first_lane + lanes_take(&w->messages[m->from], s), s);
    }
}

/* ---- Names of processes and threads ---- */

static void name_process(writer *w, int pid, const char *name)
{
    open_event(w, "M", pid, 0, "process_name");
    json_open(&w->json, "args", '{');
    json_text(&w->json, "name", name);
    close_event(w);
    open_event(w, "M", pid, 0, "process_sort_index");
    json_open(&w->json, "args", '{');
    json_integer(&w->json, "sort_index", pid);
    close_event(w);
}

static void name_thread(writer *w, int pid, int tid, const char *name)
{
    open_event(w, "M", pid, tid, "thread_name");
    json_open(&w->json, "args", '{');
    json_text(&w->json, "name", name);
    close_event(w);
    open_event(w, "M", pid, tid, "thread_sort_index");
    json_open(&w->json, "args", '{');
    json_integer(&w->json, "sort_index", tid);
    close_event(w);
}

static void name_lanes(writer *w, int pid, int first, const char *what, int n)
{
    for (int i = 0; i < n; i++) {
        char name[40];
        snprintf(name, sizeof name, i ? "%s, lane %d" : "%s", what, i + 1);
        name_thread(w, pid, first + i, name);
    }
}

static void name_all(writer *w)
{
    for (int rank = 0; rank < w->t->n_ranks; rank++) {
        char name[40];
        snprintf(name, sizeof name, "rank %d", rank);
        name_process(w, rank + 1, name);
        /* A rank has one thread of messages even without messages. */
        name_lanes(w, rank + 1, w->first_lane, "messages", w->messages[rank].n ? w->messages[rank].n : 1);
    }
    for (int i = 0; i < w->t->n_workers; i++) {
        const trace_worker *worker = &w->t->workers[i];
        char name[40];
        snprintf(name, sizeof name, "worker %d", worker->number);
        name_thread(w, worker->rank + 1, worker->number + 1, name);
    }
}

/* ---- Slices ---- */

static void write_waits(writer *w, const trace_task *task)
{
    waited waits[MOST_WAITS];
    char text[200];
    int n = task_waits(w->t, task, waits);
    json_open(&w->json, "waited_for", '[');
    for (int i = 0; i < n; i++) {
        wait_text(w->t, &waits[i], text);
        json_item(&w->json, text);
    }
    if (task->n_needs + task->n_messages > n) {
        json_item(&w->json, "and earlier ones");
    }
    json_close(&w->json, ']');
}

static void write_task(writer *w, int i)
{
    const trace_task *task = &w->t->tasks[i];
    const trace_name *name = &w->t->names[task->name];
    open_slice(w, &w->ran[i], name->text, trace_role_text(name->role));
    json_integer(&w->json, "task", task->job);
    if (task->step >= 0)
        json_integer(&w->json, "step", task->step);
    if (task->micro_step >= 0)
        json_integer(&w->json, "micro_step", task->micro_step);
    json_number(&w->json, "gflop", task->gflop);
    if (task->gflop > 0 && task->ended > task->began)
        json_number(&w->json, "gflop_per_s", task->gflop / (task->ended - task->began) * 1000);
    json_integer(&w->json, "priority", task->priority);
    json_number(&w->json, "submitted_ms", task->submitted);
    if (isnan(task->ended))
        json_text(&w->json, "ended", "not in the trace");
    write_waits(w, task);
    close_event(w);
}

static void write_message(writer *w, const slice *s, const trace_message *m, bool sent)
{
    char name[200];
    snprintf(name, sizeof name, "%.150s %s rank %d", m->text && *m->text ? m->text : "message", sent ? "to" : "from",
             sent ? m->to : m->from);
    open_slice(w, s, name, "message");
    json_integer(&w->json, "bytes", m->bytes);
    json_integer(&w->json, "from_rank", m->from);
    json_integer(&w->json, "to_rank", m->to);
    if (isnan(m->sent))
        json_text(&w->json, "sent", "not in the trace");
    if (isnan(m->arrived))
        json_text(&w->json, "arrived", "not in the trace");
    close_event(w);
}

/* Above the ranks; steps that overlap lie in lanes. */
static void write_steps(writer *w)
{
    int n, pid = w->t->n_ranks + 1;
    trace_step *steps = trace_steps(w->t, true, &n);
    lanes threads = {0};
    for (int i = 0; i < n; i++) {
        char name[40];
        slice s = slice_at(w, pid, 1 + lanes_take(&threads, steps[i].span), steps[i].span);
        snprintf(name, sizeof name, "step %ld", steps[i].number);
        open_slice(w, &s, name, "step");
        json_integer(&w->json, "tasks", steps[i].n_tasks);
        close_event(w);
    }
    if (n) {
        name_process(w, pid, "steps");
        name_lanes(w, pid, 1, "steps", threads.n);
    }
    free(threads.end);
    free(steps);
}

/* ---- Flows ---- */

static void write_flow(writer *w, const char *name, const slice *from, int64_t at, const slice *to, int64_t until)
{
    if (!from->pid || !to->pid)
        return;
    w->flows++;
    for (int end = 0; end < 2; end++) {
        const slice *s = end ? to : from;
        open_event(w, end ? "f" : "s", s->pid, s->tid, name);
        json_text(&w->json, "cat", "flow");
        json_integer(&w->json, "id", w->flows);
        json_us(&w->json, "ts", end ? until : at);
        if (end)
            json_text(&w->json, "bp", "e");
        json_close(&w->json, '}');
    }
}

/* A slice does not hold the very end of it, so a flow that leaves there is bound 1 ns before. */
static int64_t end_of(const slice *s)
{
    return s->end > s->begin ? s->end - 1 : s->begin;
}

/* Unended tasks and messages begin no flow. */
static void write_flows(writer *w)
{
    for (int i = 0; i < w->t->n_messages; i++) {
        const trace_message *m = &w->t->messages[i];
        if (m->made_by >= 0 && !isnan(w->t->tasks[m->made_by].ended)) {
            const slice *made = &w->ran[m->made_by];
            write_flow(w, "sent", made, end_of(made), &w->left[i], w->left[i].begin);
        }
        if (m->from != m->to && !isnan(m->arrived))
            write_flow(w, "message", &w->left[i], w->left[i].begin, &w->came[i], end_of(&w->came[i]));
    }
    for (int i = 0; i < w->t->n_tasks; i++) {
        waited waits[MOST_WAITS];
        int n = task_waits(w->t, &w->t->tasks[i], waits);
        for (int j = 0; j < n && !isnan(waits[j].over); j++) {
            const slice *from = waits[j].task ? &w->ran[waits[j].which] : &w->came[waits[j].which];
            write_flow(w, waits[j].task ? "dependency" : "received", from, end_of(from), &w->ran[i], w->ran[i].begin);
        }
    }
}

/* ---- The whole ---- */

static void write_head(writer *w)
{
    json_open(&w->json, NULL, '{');
    json_text(&w->json, "displayTimeUnit", "ms");
    json_open(&w->json, "otherData", '{');
    json_text(&w->json, "program", w->t->program);
    if (w->zero)
        json_number(&w->json, "time_0_at_ms", (double)w->zero / 1e6);
    json_open(&w->json, "missing", '[');
    for (int i = 0; i < w->t->n_missing; i++) {
        json_item(&w->json, w->t->missing[i].text);
    }
    json_close(&w->json, ']');
    json_close(&w->json, '}');
}

static void write_events(writer *w)
{
    json_open(&w->json, "traceEvents", '[');
    name_all(w);
    write_steps(w);
    for (int i = 0; i < w->t->n_tasks; i++)
        if (w->ran[i].pid)
            write_task(w, i);
    for (int i = 0; i < w->t->n_messages; i++) {
        const trace_message *m = &w->t->messages[i];
        if (w->left[i].pid && m->from != m->to)
            write_message(w, &w->left[i], m, true);
        if (w->came[i].pid)
            write_message(w, &w->came[i], m, false);
    }
    write_flows(w);
    json_close(&w->json, ']');
}

bool trace_write_chrome(const trace *t, FILE *out)
{
    writer w = {.t = t, .json = {.out = out}, .last = trace_last(t), .first_lane = 1};
    w.messages = must_allocate((int64_t)t->n_ranks + 1, sizeof *w.messages);
    w.ran = must_allocate((int64_t)t->n_tasks + 1, sizeof *w.ran);
    w.left = must_allocate((int64_t)t->n_messages + 1, sizeof *w.left);
    w.came = must_allocate((int64_t)t->n_messages + 1, sizeof *w.came);
    for (int i = 0; i < t->n_workers; i++)
        if (t->workers[i].number + 2 > w.first_lane)
            w.first_lane = t->workers[i].number + 2;
    find_zero(&w);
    place_tasks(&w);
    place_messages(&w);
    write_head(&w);
    write_events(&w);
    json_close(&w.json, '}');
    fputc('\n', out);
    for (int i = 0; i < t->n_ranks; i++)
        free(w.messages[i].end);
    free(w.messages);
    free(w.ran);
    free(w.left);
    free(w.came);
    return !fflush(out) && !ferror(out);
}
