/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the timeline: busy times have a colour, idle times have none. It has tooltips, and no scripts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "pictures.h"
#include "svg_drawing.h"
#include "svg_legend.h"
#include "svg_text.h"

enum {
    MARGIN = 20,
    LEFT = 150,        /* of the plot */
    LEFT_PLACES = 200, /* where workers tell their place */
    ROW = 26,          /* of a worker */
    RANK_GAP = 10,
    LETTER = 7, /* about as wide */
    NOTE = 16,
    MOST_ARROWS = 200, /* more arrows would hide the bars */
    MOST_NOTES = 4
};

static void draw_text(const drawing *d, double x, double y, const char *attributes, const char *text)
{
    fprintf(d->out, "<text x=\"%.1f\" y=\"%.1f\"%s%s>", x, y, *attributes ? " " : "", attributes);
    svg_print(d->out, "%s", text);
    fputs("</text>\n", d->out);
}

static void draw_line(const drawing *d, double x, double y, double x2, double y2, const char *color)
{
    fprintf(d->out, "<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x, y, x2, y2, color);
}

/* ---- Where rows lie ---- */

static bool tell_places(const trace *t)
{
    for (int i = 0; i < t->n_workers; i++)
        if (t->workers[i].place != t->workers[0].place)
            return true;
    return false;
}

static void place_rows(drawing *d)
{
    int y = d->top, worker = 0;
    for (int rank = 0; rank < d->t->n_ranks; rank++) {
        d->rank_y[rank] = y += rank ? RANK_GAP : 0;
        for (; worker < d->t->n_workers && d->t->workers[worker].rank <= rank; worker++, y += ROW)
            d->worker_y[worker] = y + (ROW - BAR) / 2;
        y += y == d->rank_y[rank] ? ROW : 0; /* room for its name */
        d->lane_y[rank] = y + 3;
        if (d->v->n_messages)
            y += 6 + (d->v->n_lanes[rank] ? d->v->n_lanes[rank] : 1) * LANE;
    }
    d->bottom = y == d->top ? y + ROW : y;
}

/* ---- Title and notes ---- */

/* Which part of the run is shown, in words. */
static void draw_caption(const drawing *d)
{
    const view *v = d->v;
    fprintf(d->out, "<text x=\"%d\" y=\"46\" fill=\"#475569\">", MARGIN);
    if (v->whole || !v->n_chosen)
        svg_print(d->out, v->whole ? "the whole run" : "a part of the run");
    else {
        long first = v->steps[v->first].number, last = v->steps[v->first + v->n_chosen - 1].number;
        if (v->n_chosen == 1)
            svg_print(d->out, "step %ld", first);
        else
            svg_print(d->out, "steps %ld to %ld", first, last);
        svg_print(d->out, ", %d of %d", v->n_chosen, v->n_steps);
    }
    svg_print(d->out, " \u2014 %.3f to %.3f ms of %.3f ms", v->shown.begin, v->shown.end, v->last);
    svg_print(d->out, " \u2014 %d of %d tasks, %d of %d messages \u2014 %d rank%s, %d worker%s", v->n_tasks,
              d->t->n_tasks, v->n_messages, d->t->n_messages, d->t->n_ranks, d->t->n_ranks == 1 ? "" : "s",
              d->t->n_workers, d->t->n_workers == 1 ? "" : "s");
    fputs("</text>\n", d->out);
    draw_text(d, WIDTH - MARGIN, 46, "text-anchor=\"end\" fill=\"#64748b\"",
              "of the part shown: time, and share of the workers' time");
}

static bool has_arrows(const drawing *d)
{
    return d->v->n_messages <= MOST_ARROWS;
}

/* Notes for reading the timeline right, in notes_height. */
static void draw_notes(const drawing *d, int y)
{
    enum { OWN = 4 };
    const view *v = d->v;
    char never[80], unended[140];
    int n_never = d->t->n_tasks - v->n_began;
    snprintf(never, sizeof never, n_never == 1 ? "%d task never began" : "%d tasks never began", n_never);
    snprintf(unended, sizeof unended,
             v->n_unended == 1
                 ? "%d task has no end in the trace; it is drawn pale, to the last time, and not counted"
                 : "%d tasks have no end in the trace; they are drawn pale, to the last time, and not counted",
             v->n_unended);
    const char *own[OWN] = {
        v->unknown ? "the steps asked for are not in the trace" : NULL,
        n_never ? never : NULL,
        v->n_unended ? unended : NULL,
        has_arrows(d) ? NULL : "arrows of messages are left out: there are too many",
    };
    for (int i = 0; i < OWN + d->t->n_missing && i < OWN + MOST_NOTES; i++) {
        const char *note = i < OWN ? own[i] : d->t->missing[i - OWN].text;
        if (note) {
            draw_text(d, MARGIN, y, "fill=\"#b45309\"", note);
            y += NOTE;
        }
    }
    if (d->t->n_missing > MOST_NOTES) {
        char more[40];
        snprintf(more, sizeof more, "and %d notes more", d->t->n_missing - MOST_NOTES);
        draw_text(d, MARGIN, y, "fill=\"#b45309\"", more);
    }
}

/* ---- Rows, steps, time ---- */

static void draw_row_names(const drawing *d)
{
    char text[80];
    for (int rank = 0; rank < d->t->n_ranks; rank++) {
        if (rank)
            draw_line(d, MARGIN, d->rank_y[rank] - RANK_GAP / 2.0, WIDTH - MARGIN, d->rank_y[rank] - RANK_GAP / 2.0,
                      "#cbd5e1");
        snprintf(text, sizeof text, "rank %d", rank);
        draw_text(d, MARGIN, d->rank_y[rank] + 17, "font-weight=\"bold\"", text);
        if (d->v->n_messages)
            draw_text(d, d->left - 8, d->lane_y[rank] + 8, "text-anchor=\"end\" fill=\"#64748b\" font-size=\"10\"",
                      "messages");
    }
    for (int i = 0; i < d->t->n_workers; i++) {
        const trace_worker *w = &d->t->workers[i];
        int n = d->places ? snprintf(text, sizeof text, "place %d, ", w->place) : 0;
        snprintf(text + n, sizeof text - (size_t)n, "worker %d", w->number);
        draw_text(d, d->left - 8, d->worker_y[i] + 14, "text-anchor=\"end\"", text);
    }
}

static void draw_busy(const drawing *d)
{
    double all = d->v->shown.end - d->v->shown.begin;
    int x = WIDTH - RIGHT + 10, wide = RIGHT - 10 - MARGIN;
    draw_text(d, WIDTH - MARGIN, d->top - 6, "text-anchor=\"end\" fill=\"#475569\"", "busy");
    for (int i = 0; i < d->t->n_workers; i++) {
        double share = d->v->busy[i] / all;
        int y = d->worker_y[i];
        fprintf(d->out, "<g class=\"busy\"><title>");
        svg_print(d->out, "%.300s: busy for %s of %s", d->t->workers[i].text, DURATION(d->v->busy[i]), DURATION(all));
        fprintf(d->out,
                "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"4\" fill=\"#e2e8f0\"/>"
                "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"4\" fill=\"#475569\"/>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.0f %%</text></g>\n",
                x, y + BAR - 4, wide, x, y + BAR - 4, wide * share, WIDTH - MARGIN, y + 12, 100 * share);
    }
}

/* 1, 2 or 5 times a power of ten, and no less than least. */
static double round_up(double least)
{
    double power = pow(10, floor(log10(least)));
    for (int i = 0; i < 3; i++)
        if ((double[]){1, 2, 5}[i] * power >= least * 0.9999)
            return (double[]){1, 2, 5}[i] * power;
    return 10 * power;
}

/* Their bands, and every which one has its number. */
static void draw_steps(const drawing *d)
{
    const view *v = d->v;
    int n = 0, first = 0;
    for (int i = 0; i < v->n_steps; i++)
        if (v->steps[i].span.begin >= v->shown.begin && v->steps[i].span.begin < v->shown.end)
            first = n++ ? first : i;
    if (!n)
        return;
    char text[160];
    int letters = snprintf(text, sizeof text, "%ld", v->steps[v->n_steps - 1].number);
    double apart = (double)(WIDTH - RIGHT - d->left) / n, free_from = 0;
    long every = (long)round_up(fmax(1, (letters * LETTER + 8) / apart));
    draw_text(d, d->left - 8, d->top - 6, "text-anchor=\"end\" fill=\"#475569\"", "step");
    for (int i = first, seen = 0; i < v->n_steps && seen < n; i++) {
        const trace_step *step = &v->steps[i];
        if (step->span.begin < v->shown.begin || step->span.begin >= v->shown.end)
            continue;
        double x = x_of(d, step->span.begin), end = x_of(d, fmin(step->span.end, v->shown.end));
        if (++seen < n && v->steps[i + 1].span.begin > step->span.begin)
            end = fmin(x_of(d, v->steps[i + 1].span.begin), WIDTH - RIGHT);
        bool numbered = step->number % every == 0 && x >= free_from && x + letters * LETTER < WIDTH - RIGHT;
        fprintf(d->out, "<g class=\"step\"><title>step %ld: %.3f to %.3f ms, %s, %d tasks</title>", step->number,
                step->span.begin, step->span.end, DURATION(step->span.end - step->span.begin), step->n_tasks);
        fprintf(d->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>", x, d->top - 18,
                fmax(0, end - x), d->bottom - d->top + 18, seen % 2 ? "#eef2f7" : "#f8fafc");
        if (apart >= 4 || numbered)
            draw_line(d, x, d->top - 18, x, d->bottom, "#a9b6c8");
        if (numbered) {
            snprintf(text, sizeof text, "%ld", step->number);
            draw_text(d, x + 3, d->top - 6, "fill=\"#475569\"", text);
            free_from = x + letters * LETTER + 8;
        }
        fputs("</g>\n", d->out);
    }
}

static void draw_axis(const drawing *d)
{
    span s = d->v->shown;
    bool micro = s.end - s.begin < 2;
    double each = round_up((s.end - s.begin) / 12), y = d->bottom + 4;
    double shown_each = micro ? each * 1000 : each;
    int digits = shown_each < 1 ? (int)ceil(-log10(shown_each) - 1e-9) : 0;
    draw_line(d, d->left, y, WIDTH - RIGHT, y, "#475569");
    for (double tick = ceil(s.begin / each - 1e-9); tick * each <= s.end + 1e-9 * each; tick++) {
        char text[40];
        double x = x_of(d, tick * each);
        snprintf(text, sizeof text, "%.*f", digits, tick * shown_each + 0.0); /* no "-0" */
        draw_line(d, x, y, x, y + 5, "#475569");
        draw_text(d, x, y + 17, "text-anchor=\"middle\"", text);
    }
    draw_text(d, d->left - 8, y + 17, "text-anchor=\"end\" fill=\"#475569\"", micro ? "\u00b5s" : "ms");
}

/* ---- The whole ---- */

static void draw_head(const drawing *d, int height)
{
    const char *program = d->t->program && *d->t->program ? d->t->program : "a run";
    fprintf(d->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"11\" fill=\"#0f172a\">\n<title>",
            WIDTH, height, WIDTH, height);
    svg_print(d->out, "Trace of %.600s", program);
    fputs("</title>\n<style>.wide{stroke:#fff;stroke-width:.6}.bars text{pointer-events:none}"
          ".bars rect:hover,.messages rect:hover{stroke:#0f172a;stroke-width:1.2}"
          ".arrows line:hover{stroke-width:2;stroke-opacity:1}</style>\n"
          "<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" "
          "orient=\"auto\"><path d=\"M0,0.5L6,3L0,5.5z\" fill=\"#334155\" stroke=\"none\"/></marker></defs>\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
          d->out);
    fprintf(d->out, "<text x=\"%d\" y=\"28\" font-size=\"17\" font-weight=\"bold\">", MARGIN);
    svg_cut(d->out, program, 110);
    fputs("</text>\n", d->out);
}

static int notes_height(const drawing *d)
{
    int n = d->v->unknown + (d->t->n_tasks > d->v->n_began) + (d->v->n_unended > 0) + !has_arrows(d);
    return NOTE * (n + (d->t->n_missing > MOST_NOTES ? MOST_NOTES + 1 : d->t->n_missing));
}

static void draw_plot(drawing *d)
{
    fprintf(d->out, "<rect id=\"plot\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f8fafc\"/>\n", d->left,
            d->top, WIDTH - RIGHT - d->left, d->bottom - d->top);
    draw_steps(d);
    draw_row_names(d);
    draw_message_bars(d);
    draw_tasks(d);
    if (has_arrows(d))
        draw_arrows(d);
    draw_busy(d);
    draw_axis(d);
}

static void draw(drawing *d)
{
    legend *l = legend_new(d->v, WIDTH - 2 * MARGIN);
    int legend_y = 60 + notes_height(d);
    d->top = legend_y + legend_height(l) + 36;
    place_rows(d);
    draw_head(d, d->bottom + 36);
    draw_caption(d);
    draw_notes(d, 66);
    legend_draw(l, d->out, MARGIN, legend_y);
    draw_plot(d);
    fputs("</svg>\n", d->out);
    legend_destroy(&l);
}

bool trace_write_svg(const trace *t, const trace_picture *options, FILE *out)
{
    drawing d = {.t = t, .out = out, .places = tell_places(t)};
    d.left = d.places ? LEFT_PLACES : LEFT;
    int plot = WIDTH - RIGHT - d.left;
    view *v = view_new(t, options, plot);
    d.v = v;
    d.scale = plot / (v->shown.end - v->shown.begin);
    d.worker_y = must_allocate((int64_t)t->n_workers + 1, sizeof *d.worker_y);
    d.lane_y = must_allocate((int64_t)t->n_ranks + 1, sizeof *d.lane_y);
    d.rank_y = must_allocate((int64_t)t->n_ranks + 1, sizeof *d.rank_y);
    draw(&d);
    free(d.worker_y);
    free(d.lane_y);
    free(d.rank_y);
    view_destroy(&v);
    return !fflush(out) && !ferror(out);
}
