/* SPDX-License-Identifier: Apache-2.0 */
/* The grid in characters. Cells are drawn in proportion, but wide enough for their labels. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layout.h"
#include "layout_cells.h"
#include "trama_drawing.h"

enum { MOST_ROWS = 24, MOST_COLUMNS = 72, WIDTH = 80, PER_COLUMN = 2 }; /* a character is twice as high as wide */

typedef struct picture {
    const cells *c;
    text out;
    int margin;              /* characters before the grid: the offsets of rows */
    int height[MOST_ROWS];   /* of each piece, in lines */
    int width[MOST_COLUMNS]; /* of each piece, in characters */
} picture;

static int digits(int64_t number)
{
    return snprintf(NULL, 0, "%" PRId64, number);
}

/* The width that the labels of a column and the offset above it need. */
static int least_width(const cells *c, int column)
{
    int least = digits(c->columns.at[column]);
    for (int row = 0; row < c->rows.n; row++) {
        size_t length = strlen(c->label[row * c->columns.n + column]) + 2;
        if (length > WIDTH)
            return WIDTH;
        least = (int)length > least ? (int)length : least;
    }
    return least;
}

/* Shares `room` characters by extents, with a minimum for each column; returns the total width. */
static int share_out(picture *p, int room, const int *least)
{
    const cuts *columns = &p->c->columns;
    int sum = p->margin + 1;
    for (int j = 0; j < columns->n; j++) {
        int share = cuts_share(columns, j, room);
        p->width[j] = share > least[j] ? share : least[j];
        sum += p->width[j] + 1;
    }
    return sum + digits(columns->at[columns->n]) - 1;
}

static bool fit(picture *p)
{
    const cuts *rows = &p->c->rows, *columns = &p->c->columns;
    int least[MOST_COLUMNS];
    if (!rows->n || !columns->n || rows->n > MOST_ROWS || columns->n > MOST_COLUMNS)
        return false;
    int64_t extent = rows->at[rows->n], wide = columns->at[columns->n];
    int lines = extent < MOST_ROWS ? (int)extent : MOST_ROWS;
    p->margin = p->c->ndim > 1 ? digits(extent) + 1 : 0;
    for (int i = 0; i < rows->n; i++) {
        int share = cuts_share(rows, i, lines);
        p->height[i] = share > 1 ? share : 1;
    }
    for (int j = 0; j < columns->n; j++)
        least[j] = least_width(p->c, j);
    for (int room = wide < MOST_COLUMNS / PER_COLUMN ? (int)wide * PER_COLUMN : MOST_COLUMNS; room >= 0; room--)
        if (share_out(p, room, least) <= WIDTH)
            return true;
    return false;
}

static void draw_offsets(picture *p)
{
    const cuts *columns = &p->c->columns;
    text_add(&p->out, "%*s", p->margin, "");
    for (int j = 0; j < columns->n; j++)
        text_add(&p->out, "%-*" PRId64, p->width[j] + 1, columns->at[j]);
    text_add(&p->out, "%" PRId64 "\n", columns->at[columns->n]);
}

static void draw_border(picture *p, int row)
{
    if (p->margin)
        text_add(&p->out, "%*" PRId64 " ", p->margin - 1, p->c->rows.at[row]);
    for (int j = 0; j < p->c->columns.n; j++) {
        text_add(&p->out, "+");
        for (int i = 0; i < p->width[j]; i++)
            text_add(&p->out, "-");
    }
    text_add(&p->out, "+\n");
}

/* Draws a line through a row of cells, with or without labels. */
static void draw_line(picture *p, int row, bool labelled)
{
    text_add(&p->out, "%*s", p->margin, "");
    for (int j = 0; j < p->c->columns.n; j++) {
        const char *label = labelled ? p->c->label[row * p->c->columns.n + j] : "";
        int length = (int)strlen(label), before = (p->width[j] - length) / 2;
        text_add(&p->out, "|%*s%s%*s", before, "", label, p->width[j] - length - before, "");
    }
    text_add(&p->out, "|\n");
}

static void draw(picture *p)
{
    draw_offsets(p);
    for (int row = 0; row < p->c->rows.n; row++) {
        draw_border(p, row);
        for (int line = 0; line < p->height[row]; line++)
            draw_line(p, row, line == (p->height[row] - 1) / 2);
    }
    draw_border(p, p->c->rows.n);
    if (p->c->terms > 1)
        text_add(&p->out, "+ stands between the terms of the partial value\n");
}

trama_status trama_layout_picture(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text_)
{
    trama_status status = layout_fits(mesh, layout, shape);
    if (!status && !text_)
        status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_layout_picture: the text's address is NULL");
    if (status)
        return status;
    cells *c = cells_new(mesh, layout, shape);
    picture p = {.c = c};
    if ((c->ndim == 1 || c->ndim == 2) && fit(&p))
        draw(&p);
    cells_destroy(&c);
    return text_give(&p.out, "trama_layout_picture", text_);
}
