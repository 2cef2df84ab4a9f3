/* SPDX-License-Identifier: Apache-2.0 */
#include "svg_legend.h"

#include <stdlib.h>

#include "must.h"
#include "svg_drawing.h"
#include "svg_text.h"
#include "trace_names.h"

enum { COLUMNS = 5, LINE = 17, GAP = 24, LETTER = 6, MOST_ROWS = 12 };

/* A group's heading, one of its names, or an entry for idleness or messages. */
typedef enum line_kind { LINE_ROLE, LINE_NAME, LINE_REST, LINE_IDLE, LINE_MESSAGES } line_kind;

typedef struct line {
    line_kind kind;
    int name, role;
    double ms;
    int column, row;
} line;

struct legend {
    const view *v;
    int width; /* of a column, with the gap after it */
    int n, rows;
    line *lines;
    double all; /* ms of all workers */
};

/* ---- The lines ---- */

static int compare_lines(const void *a, const void *b)
{
    const line *x = a, *y = b;
    if (x->role != y->role)
        return x->role - y->role;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    if (x->ms != y->ms)
        return x->ms < y->ms ? 1 : -1;
    return x->name - y->name;
}

static void add_line(legend *l, line_kind kind, int role, int name, double ms)
{
    l->lines[l->n++] = (line){.kind = kind, .role = role, .name = name, .ms = ms};
}

static void add_lines(legend *l)
{
    const view *v = l->v;
    double of_role[N_ROLES] = {0}, idle = l->all;
    bool has_role[N_ROLES] = {0};
    for (int i = 0; i < v->t->n_names; i++)
        if (v->count[i]) {
            int role = (int)v->t->names[i].role;
            add_line(l, LINE_NAME, role, i, v->time[i]);
            of_role[role] += v->time[i];
            has_role[role] = true;
        }
    for (int role = 0; role < N_ROLES; role++)
        if (has_role[role])
            add_line(l, LINE_ROLE, role, -1, of_role[role]);
    for (int i = 0; i < v->t->n_workers; i++)
        idle -= v->busy[i];
    add_line(l, LINE_REST, N_ROLES, -1, 0);
    add_line(l, LINE_IDLE, N_ROLES, -1, idle > 0 ? idle : 0);
    if (v->n_messages)
        add_line(l, LINE_MESSAGES, N_ROLES, -1, 0);
    qsort(l->lines, (size_t)l->n, sizeof *l->lines, compare_lines);
}

/* ---- Where they stand ---- */

static bool is_heading(const line *of)
{
    return of->kind == LINE_ROLE || of->kind == LINE_REST;
}

static int group_end(const legend *l, int at)
{
    for (at++; at < l->n && !is_heading(&l->lines[at]); at++)
        ;
    return at;
}

/* Into columns of so many rows; groups stay together unless they may break. Returns the columns that it takes. */
static int place_lines(legend *l, int rows, bool may_break)
{
    int column = 0, row = 0;
    for (int i = 0; i < l->n; i++) {
        bool heading = is_heading(&l->lines[i]);
        int together = !heading ? 1 : may_break ? 2 : group_end(l, i) - i;
        if (row && row + together > rows) {
            if (!heading && !may_break)
                return COLUMNS + 1;
            column++;
            row = 0;
        }
        l->lines[i].column = column;
        l->lines[i].row = row++;
    }
    return column + 1;
}

legend *legend_new(const view *v, int width)
{
    legend *l = must_allocate(1, sizeof *l);
    l->v = v;
    l->width = (width + GAP) / COLUMNS;
    l->all = v->t->n_workers * (v->shown.end - v->shown.begin);
    l->lines = must_allocate((int64_t)v->t->n_names + N_ROLES + 3, sizeof *l->lines);
    add_lines(l);
    for (l->rows = 2; l->rows <= MOST_ROWS && place_lines(l, l->rows, false) > COLUMNS; l->rows++)
        ;
    if (l->rows > MOST_ROWS)
        for (l->rows = 2; place_lines(l, l->rows, true) > COLUMNS; l->rows++)
            ;
    return l;
}

int legend_height(const legend *l)
{
    return l->rows * LINE;
}

/* ---- The drawing ---- */

static void draw_swatch(FILE *out, const view *v, const line *of, int x, int y)
{
    if (of->kind == LINE_MESSAGES)
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"4\" fill=\"" MESSAGE_COLOR "\"/>\n", x, y - 6);
    else if (!is_heading(of))
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"%s/>\n", x, y - 10,
                of->kind == LINE_NAME ? v->t->names[of->name].color : "#fff",
                of->kind == LINE_NAME ? "" : " stroke=\"#cbd5e1\"");
}

static void draw_label(FILE *out, const view *v, const line *of, int x, int y, int room)
{
    int most = room / LETTER;
    fprintf(out, "<text x=\"%d\" y=\"%d\"%s>", is_heading(of) ? x : x + 18, y,
            is_heading(of) ? " font-weight=\"bold\"" : "");
    if (of->kind == LINE_NAME)
        svg_cut(out, v->t->names[of->name].text, most);
    else
        fputs(of->kind == LINE_ROLE   ? trace_role_text((trace_role)of->role)
              : of->kind == LINE_IDLE ? "idle"
              : of->kind == LINE_REST ? "no task"
                                      : "message, not yet taken",
              out);
    fputs("</text>\n", out);
}

static void draw_line(const legend *l, FILE *out, const line *of, int x, int y)
{
    const view *v = l->v;
    int right = x + l->width - GAP;
    fputs("<g>", out);
    if (of->kind == LINE_NAME) {
        fputs("<title>", out);
        svg_print(out, "%.300s: %d task%s, %s, %.2f %% of the workers' time", v->t->names[of->name].text,
                  v->count[of->name], v->count[of->name] == 1 ? "" : "s", DURATION(of->ms),
                  l->all > 0 ? 100 * of->ms / l->all : 0);
        fputs("</title>", out);
    }
    draw_swatch(out, v, of, x, y);
    draw_label(out, v, of, x, y, l->width - GAP - 18 - 110);
    if (of->kind == LINE_MESSAGES)
        fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>", right, y, v->n_messages);
    else if (of->kind != LINE_REST)
        fprintf(out,
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#475569\">%s</text>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"%s>%.1f %%</text>",
                right - 52, y, DURATION(of->ms), right, y, is_heading(of) ? " font-weight=\"bold\"" : "",
                l->all > 0 ? 100 * of->ms / l->all : 0);
    fputs("</g>\n", out);
}

void legend_draw(const legend *l, FILE *out, int x, int y)
{
    fputs("<g id=\"legend\">\n", out);
    for (int i = 0; i < l->n; i++)
        draw_line(l, out, &l->lines[i], x + l->lines[i].column * l->width, y + l->lines[i].row * LINE + LINE - 4);
    fputs("</g>\n", out);
}

void legend_destroy(legend **l)
{
    free((*l)->lines);
    free(*l);
    *l = NULL;
}
