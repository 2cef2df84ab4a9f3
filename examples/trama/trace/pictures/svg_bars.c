/* SPDX-License-Identifier: Apache-2.0 */
#include "svg_drawing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "svg_text.h"
#include "trace_names.h"

enum { MOST_PARTS = 8 };

/* Narrower ones, in pixels, are gathered. */
#define NARROW 0.3

/* About as wide, in pixels. */
#define LETTER 6.6

/* Bars of one worker too narrow to be seen, within a pixel: each name has as much of it as it has time there. */
typedef struct gathered {
    int n;
    double x;
    struct {
        int task, n; /* the first, how many */
        double ms;
    } part[MOST_PARTS];
} gathered;

/* ---- Tasks ---- */

/* The waits of a task, and the last one. */
static void print_waits(const drawing *d, const trace_task *task)
{
    waited waits[MOST_WAITS];
    char text[200];
    int n = task_waits(d->t, task, waits);
    for (int i = 0; i < n; i++) {
        wait_text(d->t, &waits[i], text);
        svg_print(d->out, "%s%s", i ? "; " : "\nwaited for ", text);
    }
    if (task->n_needs + task->n_messages > n)
        svg_print(d->out, "; and earlier ones");
    if (n && task->began >= waits[0].over) {
        wait_text(d->t, &waits[0], text);
        svg_print(d->out, "\nthe last of it: %s, done %s before", text, DURATION(task->began - waits[0].over));
    }
}

static void print_task(const drawing *d, const trace_task *task)
{
    const trace_name *name = &d->t->names[task->name];
    svg_print(d->out, "%.300s (%s)\n%.300s, task %ld\n", name->text, trace_role_text(name->role),
              d->t->workers[task->worker].text, task->job);
    if (isnan(task->ended))
        svg_print(d->out, "from %.6f ms on; its end is not in the trace", task->began);
    else
        svg_print(d->out, "%.6f to %.6f ms: %s", task->began, task->ended, DURATION(task->ended - task->began));
    if (task->step >= 0)
        svg_print(d->out, "\nstep %ld", task->step);
    if (task->step >= 0 && task->micro_step >= 0)
        svg_print(d->out, ", micro-step %ld", task->micro_step);
    if (task->gflop > 0)
        svg_print(d->out, "\n%.4g GFlop", task->gflop);
    if (task->gflop > 0 && task->ended > task->began)
        svg_print(d->out, " at %.3g GFlop/s", task->gflop / (task->ended - task->began) * 1000);
    if (task->priority)
        svg_print(d->out, "\npriority %d", task->priority);
    if (task->began >= task->submitted)
        svg_print(d->out, "\nsubmitted %s before", DURATION(task->began - task->submitted));
    print_waits(d, task);
}

/* Dark words on light colours. */
static const char *ink_on(const char *color)
{
    unsigned long rgb = strtoul(color + (*color == '#'), NULL, 16);
    double light = 0.299 * (double)(rgb >> 16 & 255) + 0.587 * (double)(rgb >> 8 & 255) + 0.114 * (double)(rgb & 255);
    return light > 150 ? "#0f172a" : "#fff";
}

static void draw_bar(const drawing *d, int i, double x, double width)
{
    const trace_task *task = &d->t->tasks[i];
    const trace_name *name = &d->t->names[task->name];
    int y = d->worker_y[task->worker], room = (int)((width - 6) / LETTER);
    fprintf(d->out, "<rect x=\"%.3f\" y=\"%d\" width=\"%.3f\" height=\"%d\" fill=\"%s\"%s%s><title>", x, y,
            fmax(width, 0.1), BAR, name->color, width >= 3 ? " class=\"wide\"" : "",
            isnan(task->ended) ? " fill-opacity=\"0.4\"" : "");
    print_task(d, task);
    fputs("</title></rect>\n", d->out);
    if (room >= (int)strlen(name->text) || room >= 8) {
        fprintf(d->out, "<text x=\"%.2f\" y=\"%d\" fill=\"%s\">", x + 4, y + 14,
                isnan(task->ended) ? "#0f172a" : ink_on(name->color));
        svg_cut(d->out, name->text, room);
        fputs("</text>\n", d->out);
    }
}

static void draw_gathered(const drawing *d, int worker, gathered *g)
{
    double x = g->x;
    for (int i = 0; i < g->n; i++) {
        const trace_task *first = &d->t->tasks[g->part[i].task];
        const trace_name *name = &d->t->names[first->name];
        double width = fmax(g->part[i].ms * d->scale, 0.1);
        if (g->part[i].n == 1)
            draw_bar(d, g->part[i].task, x, width);
        else {
            fprintf(d->out, "<rect x=\"%.3f\" y=\"%d\" width=\"%.3f\" height=\"%d\" fill=\"%s\"><title>", x,
                    d->worker_y[worker], width, BAR, name->color);
            svg_print(d->out, "%d times %.300s (%s)\n%.300s\n%s from %.6f ms on", g->part[i].n, name->text,
                      trace_role_text(name->role), d->t->workers[worker].text, DURATION(g->part[i].ms), first->began);
            fputs("</title></rect>\n", d->out);
        }
        x += width;
    }
    g->n = 0;
}

static void gather(const drawing *d, gathered *g, int i, double x, double ms)
{
    const trace_task *task = &d->t->tasks[i];
    int part = 0;
    while (part < g->n && d->t->tasks[g->part[part].task].name != task->name)
        part++;
    if (part == MOST_PARTS || (g->n && x >= g->x + 1)) {
        draw_gathered(d, task->worker, g);
        part = 0;
    }
    if (!g->n)
        g->x = x;
    if (part == g->n) {
        g->n++;
        g->part[part].task = i;
        g->part[part].n = 0;
        g->part[part].ms = 0;
    }
    g->part[part].n++;
    g->part[part].ms += ms;
}

void draw_tasks(const drawing *d)
{
    gathered *narrow = must_allocate((int64_t)d->t->n_workers + 1, sizeof *narrow);
    fputs("<g class=\"bars\">\n", d->out);
    for (int i = 0; i < d->t->n_tasks; i++) {
        span s = task_span(d->t, &d->t->tasks[i], d->v->last);
        if (isnan(s.begin) || !view_has(d->v, s))
            continue;
        s = view_part(d->v, s);
        double x = x_of(d, s.begin), width = (s.end - s.begin) * d->scale;
        int worker = d->t->tasks[i].worker;
        if (width < NARROW)
            gather(d, &narrow[worker], i, x, s.end - s.begin);
        else {
            draw_gathered(d, worker, &narrow[worker]);
            draw_bar(d, i, x, width);
        }
    }
    for (int i = 0; i < d->t->n_workers; i++)
        draw_gathered(d, i, &narrow[i]);
    fputs("</g>\n", d->out);
    free(narrow);
}

/* ---- Messages ---- */

static void print_message(const drawing *d, const trace_message *m)
{
    svg_print(d->out, "%.300s, %s\nrank %d to rank %d\n", m->text && *m->text ? m->text : "a message", BYTES(m->bytes),
              m->from, m->to);
    if (isnan(m->sent) || isnan(m->arrived))
        svg_print(d->out,
                  isnan(m->sent) ? "arrived at %.6f ms; when it was sent is not in the trace"
                                 : "sent at %.6f ms; its arrival is not in the trace",
                  isnan(m->sent) ? m->arrived : m->sent);
    else
        svg_print(d->out, "%.6f to %.6f ms: %s", m->sent, m->arrived, DURATION(m->arrived - m->sent));
}

void draw_message_bars(const drawing *d)
{
    fputs("<g class=\"messages\" fill=\"" MESSAGE_COLOR "\">\n", d->out);
    for (int i = 0; i < d->v->n_bars; i++) {
        const message_bar *bar = &d->v->bars[i];
        const trace_message *m = &d->t->messages[bar->message];
        fprintf(d->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"%s><title>", x_of(d, bar->span.begin),
                d->lane_y[bar->rank] + bar->lane * LANE, fmax((bar->span.end - bar->span.begin) * d->scale, 1),
                LANE - 1, isnan(m->arrived) ? " fill-opacity=\"0.4\"" : "");
        if (bar->n > 1)
            svg_print(d->out, "%d messages to rank %d, %s, sent and arrived from %.6f to %.6f ms; the first:\n", bar->n,
                      bar->rank, BYTES(bar->bytes), bar->span.begin, bar->span.end);
        print_message(d, m);
        fputs("</title></rect>\n", d->out);
    }
    fputs("</g>\n", d->out);
}

static double lane_middle(const drawing *d, int rank, int lane)
{
    return d->lane_y[rank] + lane * LANE + (LANE - 1) / 2.0;
}

void draw_arrows(const drawing *d)
{
    fputs("<g class=\"arrows\" stroke=\"#334155\" stroke-opacity=\"0.5\" stroke-width=\"0.9\">\n", d->out);
    for (int i = 0; i < d->t->n_messages; i++) {
        const trace_message *m = &d->t->messages[i];
        if (d->v->bar_of[i] < 0 || m->from == m->to || !(m->sent >= d->v->shown.begin) ||
            !(m->arrived <= d->v->shown.end))
            continue;
        const message_bar *bar = &d->v->bars[d->v->bar_of[i]];
        fprintf(d->out, "<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" marker-end=\"url(#tip)\"><title>",
                x_of(d, m->sent), lane_middle(d, m->from, 0), x_of(d, m->arrived), lane_middle(d, m->to, bar->lane));
        print_message(d, m);
        fputs("</title></line>\n", d->out);
    }
    fputs("</g>\n", d->out);
}
