/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "picture_parts.h"
#include "trace_build.h"
#include "trace_figures.h"
#include "trace_names.h"

enum { MOST_NOTES = 12, MOST_NAMES = 16, MOST_PLACES = 12 };

typedef struct summary {
    const trace *t;
    trace_figures f;
    FILE *out;
} summary;

static double percent(double part, double of)
{
    return of > 0 ? 100 * part / of : 0;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* "1.5 MiB"; valid until the second next call. */
static const char *bytes_text(int64_t bytes)
{
    static char text[2][32];
    static int which;
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 1000 && unit < 4; unit++)
        size /= 1024;
    which = !which;
    snprintf(text[which], sizeof *text, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return text[which];
}

/* ---- The whole ---- */

static void print_title(const summary *s)
{
    const trace *t = s->t;
    int ran = 0;
    for (int i = 0; i < t->n_tasks; i++)
        ran += trace_task_ran(&t->tasks[i]);
    fprintf(s->out, "%s: %d rank%s, %d worker%s, %d task%s, %d message%s\n", t->program, t->n_ranks, plural(t->n_ranks),
            t->n_workers, plural(t->n_workers), ran, plural(ran), t->n_messages, plural(t->n_messages));
    for (int i = 0; i < t->n_missing && i < MOST_NOTES; i++)
        fprintf(s->out, "%s %s\n", i ? "        " : "missing:", t->missing[i].text);
    if (t->n_missing > MOST_NOTES)
        fprintf(s->out, "         and %d more like these\n", t->n_missing - MOST_NOTES);
}

static int by_duration(const void *first, const void *second)
{
    const trace_step *a = first, *b = second;
    double x = a->span.end - a->span.begin, y = b->span.end - b->span.begin;
    return (x > y) - (x < y);
}

static void print_steps(const summary *s)
{
    int n;
    trace_step *steps = trace_steps(s->t, false, &n);
    if (n) {
        qsort(steps, (size_t)n, sizeof *steps, by_duration);
        const trace_step *middle = &steps[n / 2], *last = &steps[n - 1];
        fprintf(s->out, "steps                %12d     median %.3f ms, longest %.3f ms (step %ld)\n", n,
                middle->span.end - middle->span.begin, last->span.end - last->span.begin, last->number);
    }
    free(steps);
}

static void print_bound(const summary *s, const char *name, double ms, const char *words)
{
    fprintf(s->out, "%-20s %12.3f ms  %5.1f %%  %s\n", name, ms, percent(ms, s->f.makespan), words);
}

static void print_messages(const summary *s)
{
    const trace_figures *f = &s->f;
    int64_t largest = 0;
    for (int i = 0; i < s->t->n_messages; i++)
        largest = s->t->messages[i].bytes > largest ? s->t->messages[i].bytes : largest;
    if (s->t->n_messages == 0)
        return;
    fprintf(s->out, "bytes moved          %12s     in %d message%s, the largest of %s\n", bytes_text(f->bytes),
            s->t->n_messages, plural(s->t->n_messages), bytes_text(largest));
    fprintf(s->out, "communication        %12.3f ms  %5.1f %%  of the ranks' time: from sent to taken\n", f->under_way,
            percent(f->under_way, f->makespan * s->t->n_read));
    fprintf(s->out, "hidden               %12.3f ms  %5.1f %%  of that, meanwhile a worker of the rank computes\n",
            f->hidden, percent(f->hidden, f->under_way));
}

static void print_whole(const summary *s)
{
    const trace_figures *f = &s->f;
    fprintf(s->out, "\nmakespan             %12.3f ms\n", f->makespan);
    print_bound(s, "  area bound", f->area, "the tasks' time, spread evenly over all workers");
    print_bound(s, "  critical path", f->path, "the longest chain of tasks that need each other");
    if (s->t->n_messages)
        print_bound(s, "  with messages", f->path_with_messages, "the same, and its messages until they were taken");
    fprintf(s->out, "idle                 %12.3f ms  %5.1f %%  of the workers' time\n", f->available - f->busy,
            100 * f->idle);
    print_messages(s);
    print_steps(s);
}

/* ---- Tables ---- */

typedef struct row {
    char *text;
    int tasks;
    double busy, gflop, gflop_time; /* flops count where they are known */
    double available;               /* the time of its workers */
} row;

static void add_task(row *r, const trace_task *task)
{
    double ms = task->ended - task->began;
    r->tasks++;
    r->busy += ms;
    r->gflop += task->gflop;
    r->gflop_time += task->gflop > 0 ? ms : 0;
}

static int by_busy(const void *first, const void *second)
{
    const row *a = first, *b = second;
    if (a->busy != b->busy)
        return a->busy > b->busy ? -1 : 1;
    return a->text && b->text ? strcmp(a->text, b->text) : 0;
}

static void print_head(const summary *s, const char *what)
{
    fprintf(s->out, "\n%-26s %8s %12s %8s %10s %10s\n", what, "tasks", "time ms", "share", "mean ms", "GFlop/s");
}

static void print_row(const summary *s, const row *r)
{
    fprintf(s->out, "%-26s %8d %12.3f %6.1f %% %10.3f", r->text, r->tasks, r->busy, percent(r->busy, r->available),
            r->tasks ? r->busy / r->tasks : 0);
    if (r->gflop_time > 0)
        fprintf(s->out, " %10.2f", r->gflop / r->gflop_time * 1e3);
    putc('\n', s->out);
}

static void print_roles(const summary *s)
{
    row rows[N_ROLES] = {{0}};
    for (int i = 0; i < s->t->n_tasks; i++)
        if (trace_task_ran(&s->t->tasks[i]))
            add_task(&rows[s->t->names[s->t->tasks[i].name].role], &s->t->tasks[i]);
    print_head(s, "role");
    for (int i = 0; i < N_ROLES; i++) {
        rows[i].text = (char *)trace_role_text((trace_role)i);
        rows[i].available = s->f.available;
        if (rows[i].tasks)
            print_row(s, &rows[i]);
    }
}

/* The rest in one row. */
static void print_names(const summary *s)
{
    const trace *t = s->t;
    row *rows = must_allocate(t->n_names, sizeof *rows), rest = {.available = s->f.available};
    for (int i = 0; i < t->n_names; i++)
        rows[i] = (row){.text = t->names[i].text, .available = s->f.available};
    for (int i = 0; i < t->n_tasks; i++)
        if (trace_task_ran(&t->tasks[i]))
            add_task(&rows[t->tasks[i].name], &t->tasks[i]);
    qsort(rows, (size_t)t->n_names, sizeof *rows, by_busy);
    int shown = t->n_names > MOST_NAMES ? MOST_NAMES - 1 : t->n_names;
    print_head(s, "op");
    for (int i = 0; i < shown; i++)
        print_row(s, &rows[i]);
    for (int i = shown; i < t->n_names; i++) {
        rest.tasks += rows[i].tasks;
        rest.busy += rows[i].busy;
        rest.gflop += rows[i].gflop;
        rest.gflop_time += rows[i].gflop_time;
    }
    rest.text = trace_text("%d others", t->n_names - shown);
    if (shown < t->n_names)
        print_row(s, &rest);
    free(rest.text);
    free(rows);
}

/* Workers of one place follow each other, so that a place is where either number changes. */
static int place_rows(const summary *s, row *rows, int *row_of_worker)
{
    const trace *t = s->t;
    int n = 0;
    for (int r = 0; r < t->n_ranks; r++)
        for (int place = 0, last = 0; place <= last; place++) {
            int workers = 0;
            for (int w = 0; w < t->n_workers; w++)
                if (t->workers[w].rank == r) {
                    last = t->workers[w].place > last ? t->workers[w].place : last;
                    if (t->workers[w].place == place) {
                        row_of_worker[w] = n;
                        workers++;
                    }
                }
            if (workers)
                rows[n++] =
                    (row){.text = trace_text("rank %d place %d, %d worker%s", r, place, workers, plural(workers)),
                          .available = s->f.makespan * workers};
        }
    return n;
}

/* Of many, the busiest and the idlest. */
static void print_places(const summary *s)
{
    const trace *t = s->t;
    row *rows = must_allocate(t->n_workers, sizeof *rows);
    int *row_of_worker = must_allocate(t->n_workers, sizeof *row_of_worker), n = place_rows(s, rows, row_of_worker);
    for (int i = 0; i < t->n_tasks; i++)
        if (trace_task_ran(&t->tasks[i]) && t->tasks[i].worker >= 0)
            add_task(&rows[row_of_worker[t->tasks[i].worker]], &t->tasks[i]);
    if (n > MOST_PLACES)
        qsort(rows, (size_t)n, sizeof *rows, by_busy);
    print_head(s, "place");
    for (int i = 0; i < n; i++)
        if (n <= MOST_PLACES || i < MOST_PLACES / 2 || i >= n - MOST_PLACES / 2)
            print_row(s, &rows[i]);
        else if (i == MOST_PLACES / 2)
            fprintf(s->out, "%d between them\n", n - MOST_PLACES);
    for (int i = 0; i < n; i++)
        free(rows[i].text);
    free(rows);
    free(row_of_worker);
}

/* ---- Waits ---- */

static void print_task(const summary *s, const trace_task *task)
{
    fprintf(s->out, "%s", s->t->names[task->name].text);
    if (task->step >= 0)
        fprintf(s->out, " of step %ld", task->step);
    if (task->worker >= 0)
        fprintf(s->out, " (%s)", s->t->workers[task->worker].text);
}

static void print_message(const summary *s, const trace_message *m)
{
    fprintf(s->out, "%s%s%s", bytes_text(m->bytes), *m->text ? " of " : "", m->text);
}

/* A cause that was over before the wait began, but for a rounding, is not told. */
static void print_cause(const summary *s, const trace_wait *w)
{
    const trace *t = s->t;
    const double all = w->to - w->from, idle = w->to - w->ready;
    if (w->cause != CAUSE_UNKNOWN && idle > 0.99 * all) {
        fputs("it was ready all the time, and no worker took it", s->out);
        return;
    }
    switch (w->cause) {
    case CAUSE_TASK:
        fputs("for ", s->out);
        print_task(s, &t->tasks[w->which]);
        break;
    case CAUSE_MESSAGE:
        fputs("for ", s->out);
        print_message(s, &t->messages[w->which]);
        fprintf(s->out, " from rank %d", t->messages[w->which].from);
        break;
    case CAUSE_SEND:
        fputs("until ", s->out);
        print_message(s, &t->messages[w->which]);
        fprintf(s->out, " had left to rank %d", t->messages[w->which].to);
        break;
    case CAUSE_SUBMISSION:
        fputs("submitted late: the program had not asked for it yet", s->out);
        break;
    case CAUSE_UNKNOWN:
        fputs("the trace does not tell the cause", s->out);
    }
    if (w->cause != CAUSE_UNKNOWN && idle > 0.1 * all)
        fprintf(s->out, "; then it was ready for %.3f ms, and no worker took it", idle);
}

static void print_waits(const summary *s, int most)
{
    trace_wait *waits = must_allocate(most, sizeof *waits);
    int n = trace_longest_waits(s->t, most, waits);
    if (n)
        fprintf(s->out, "\nlongest waits of a worker for its next task\n");
    for (int i = 0; i < n; i++) {
        fprintf(s->out, "%10.3f ms  at %.3f: ", waits[i].to - waits[i].from, waits[i].from);
        print_task(s, &s->t->tasks[waits[i].task]);
        fputs(": ", s->out);
        print_cause(s, &waits[i]);
        putc('\n', s->out);
    }
    free(waits);
}

void trace_summarize(const trace *t, int waits, FILE *out)
{
    summary s = {.t = t, .f = trace_measure(t), .out = out};
    print_title(&s);
    print_whole(&s);
    print_roles(&s);
    print_names(&s);
    print_places(&s);
    print_waits(&s, waits);
}
