/* SPDX-License-Identifier: Apache-2.0 */
/* The grid as SVG: a cell has a stripe for each holder, in the holder's colour of the legend. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base.h"
#include "layout_cells.h"
#include "trama_drawing.h"

enum {
    LEFT = 60,
    TOP = 64,
    WIDE = 720,
    HIGH = 480,
    LINE = 18,
    LEAST_HIGH = 26,
    MOST_LABEL = 200,
    PER_LETTER = 7,
    NOTES = 560
};

typedef struct drawing {
    text out;
    const cells *c;
    int *x, *y; /* [columns.n + 1], [rows.n + 1] borders of the cells */
} drawing;

/* A light colour; the hues of consecutive positions differ by the golden angle. */
static unsigned colour(int position)
{
    unsigned rgb = 0;
    for (int i = 0; i < 3; i++) {
        double level = 0.76 + 0.18 * cos(2 * 3.14159265358979 * (position * 0.381966 - i / 3.0));
        rgb = rgb << 8 | (unsigned)(255 * level);
    }
    return rgb;
}

static int label_width(const cells *c, int column)
{
    size_t most = 5;
    for (int row = 0; row < c->rows.n; row++) {
        size_t length = strlen(c->label[row * c->columns.n + column]) + 2;
        most = length > most ? length : most;
    }
    return most * PER_LETTER < MOST_LABEL ? (int)most * PER_LETTER : MOST_LABEL;
}

static int *borders(const cells *c, const cuts *pieces, int from, int room, bool columns)
{
    int *at = trama_alloc(((size_t)pieces->n + 1) * sizeof *at);
    at[0] = from;
    for (int i = 0; i < pieces->n; i++) {
        int least = columns ? label_width(c, i) : LEAST_HIGH;
        int share = cuts_share(pieces, i, room);
        at[i + 1] = at[i] + (share > least ? share : least);
    }
    return at;
}

/* A tensor of few elements is drawn small. */
static int room_for(const cuts *pieces, int most, int element)
{
    int64_t extent = pieces->at[pieces->n];
    return extent < most / element ? (int)extent * element : most;
}

static void draw_offsets(drawing *d)
{
    const cells *c = d->c;
    for (int j = 0; c->ndim > 0 && c->columns.n && j <= c->columns.n; j++)
        text_add(&d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%" PRId64 "</text>\n", d->x[j], TOP - 6,
                 c->columns.at[j]);
    for (int i = 0; c->ndim > 1 && c->rows.n && i <= c->rows.n; i++)
        text_add(&d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRId64 "</text>\n", LEFT - 6, d->y[i] + 4,
                 c->rows.at[i]);
}

static void draw_stripes(drawing *d, int cell, int x, int y, int width, int height)
{
    const cells *c = d->c;
    int n = 0, stripe = 0;
    for (int i = c->first[cell]; i != NO_POSITION; i = c->next[i])
        n++;
    for (int i = c->first[cell]; i != NO_POSITION; i = c->next[i], stripe++)
        text_add(&d->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>\n",
                 x + (double)stripe * width / n, y, (double)width / n, height, colour(i));
}

static void draw_cell(drawing *d, int row, int column)
{
    int cell = row * d->c->columns.n + column, x = d->x[column], y = d->y[row];
    int width = d->x[column + 1] - x, height = d->y[row + 1] - y, room = width / PER_LETTER;
    const char *label = d->c->label[cell];
    bool cut = (int)strlen(label) > room; /* the tooltip has the rest */
    draw_stripes(d, cell, x, y, width, height);
    text_add(
        &d->out,
        "<g class=\"cell\"><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
        "stroke=\"#333\" pointer-events=\"all\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.*s%s</text></g>\n",
        label, x, y, width, height, x + width / 2, y + height / 2 + 4, cut ? room - 2 : room, label, cut ? ".." : "");
}

/* One line a process. */
static void draw_legend(drawing *d, const char *legend, int y)
{
    for (int i = 0; *legend; i++, y += LINE) {
        int length = (int)strcspn(legend, "\n");
        text_add(&d->out,
                 "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"#%06x\" stroke=\"#333\"/>"
                 "<text x=\"%d\" y=\"%d\">%.*s</text>\n",
                 LEFT, y - 10, d->c->held[i] ? colour(i) : 0xffffff, LEFT + 20, y, length, legend);
        legend += length + (legend[length] == '\n');
    }
}

/* Draws the notes that explain the cells; returns the position of the next line. */
static int draw_notes(drawing *d, int y)
{
    const char *notes[] = {d->c->rows.n ? NULL : "no element is held: an extent is 0",
                           d->c->terms > 1
                               ? "+ in a cell stands between the terms of a partial value, a comma between equal copies"
                               : NULL,
                           d->c->ndim > 2 ? "dims 0 and 1 are drawn; a cell names all holders of a part of it" : NULL};
    for (int i = 0; i < 3; i++)
        if (notes[i]) {
            text_add(&d->out, "<text x=\"%d\" y=\"%d\" font-style=\"italic\">%s</text>\n", LEFT, y, notes[i]);
            y += LINE;
        }
    return y;
}

static int lines_of(const char *words)
{
    int n = 0;
    for (; *words; words++)
        n += *words == '\n';
    return n;
}

static int longest_line(const char *words)
{
    size_t most = 0;
    for (; *words; words += strcspn(words, "\n"), words += *words == '\n')
        most = strcspn(words, "\n") > most ? strcspn(words, "\n") : most;
    return (int)most;
}

/* Adds text between two tags, escaped. */
static void draw_words(drawing *d, const char *words)
{
    for (; *words; words++)
        if (strchr("<>&", *words))
            text_add(&d->out, "&#%d;", *words);
        else
            text_add(&d->out, "%c", (unsigned char)*words < ' ' ? ' ' : *words);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void draw(drawing *d, const char *title, const char *legend)
{
    int letters = larger(longest_line(legend), (int)strlen(title)), bottom = d->y[d->c->rows.n] + 2 * LINE;
    int width = 40 + larger(d->x[d->c->columns.n], LEFT + larger(8 * letters, NOTES));
    int height = bottom + (3 + lines_of(legend)) * LINE;
    text_add(&d->out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n<title>",
             width, height, width, height);
    draw_words(d, title);
    text_add(&d->out,
             "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
             "<text x=\"%d\" y=\"26\" font-size=\"15\">",
             LEFT);
    draw_words(d, title);
    text_add(&d->out, "</text>\n");
    draw_offsets(d);
    for (int row = 0; row < d->c->rows.n; row++)
        for (int column = 0; column < d->c->columns.n; column++)
            draw_cell(d, row, column);
    draw_legend(d, legend, draw_notes(d, bottom));
    text_add(&d->out, "</svg>\n");
}

trama_status trama_layout_svg(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, const char *title,
                              char **svg)
{
    char *legend;
    if (!title || !svg)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_layout_svg: the %s is NULL",
                          title ? "drawing's address" : "title");
    trama_status status = trama_layout_describe(mesh, layout, shape, &legend);
    if (status)
        return status;
    cells *c = cells_new(mesh, layout, shape);
    drawing d = {.c = c};
    d.x = borders(c, &c->columns, LEFT, room_for(&c->columns, WIDE, 60), true);
    d.y = borders(c, &c->rows, TOP, room_for(&c->rows, HIGH, 40), false);
    draw(&d, title, legend);
    free(d.x);
    free(d.y);
    cells_destroy(&c);
    free(legend);
    return text_give(&d.out, "trama_layout_svg", svg);
}
