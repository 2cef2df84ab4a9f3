/* SPDX-License-Identifier: Apache-2.0 */
/* The grid as SVG: a cell has a stripe for each holder, in the colour that the holder has in the legend. */
#include "layout_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { LEFT = 60, TOP = 64, WIDE = 720, HIGH = 480, LINE = 18, LEAST_HIGH = 26, MOST_LABEL = 200, PER_LETTER = 7 };

typedef struct drawing {
    FILE *file;
    const cells *c;
    int *x, *y; /* [columns.n + 1], [rows.n + 1] borders of the cells */
} drawing;

/* A light colour, far from those of the neighbours: hues a golden angle apart. */
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
    int *at = must_allocate(pieces->n + 1, sizeof *at);
    at[0] = from;
    for (int i = 0; i < pieces->n; i++) {
        int least = columns ? label_width(c, i) : LEAST_HIGH;
        int share = (int)((pieces->at[i + 1] - pieces->at[i]) * room / pieces->at[pieces->n]);
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

static void draw_offsets(const drawing *d)
{
    const cells *c = d->c;
    for (int j = 0; c->ndim > 0 && c->columns.n && j <= c->columns.n; j++)
        fprintf(d->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%" PRId64 "</text>\n", d->x[j], TOP - 6,
                c->columns.at[j]);
    for (int i = 0; c->ndim > 1 && c->rows.n && i <= c->rows.n; i++)
        fprintf(d->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRId64 "</text>\n", LEFT - 6, d->y[i] + 4,
                c->rows.at[i]);
}

static void draw_stripes(const drawing *d, int cell, int x, int y, int width, int height)
{
    const cells *c = d->c;
    int n = 0, stripe = 0;
    for (int i = c->first[cell]; i != NO_POSITION; i = c->next[i])
        n++;
    for (int i = c->first[cell]; i != NO_POSITION; i = c->next[i], stripe++)
        fprintf(d->file, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>\n",
                x + (double)stripe * width / n, y, (double)width / n, height, colour(i));
}

static void draw_cell(const drawing *d, int row, int column)
{
    int cell = row * d->c->columns.n + column, x = d->x[column], y = d->y[row];
    int width = d->x[column + 1] - x, height = d->y[row + 1] - y, room = width / PER_LETTER;
    const char *label = d->c->label[cell];
    bool cut = (int)strlen(label) > room; /* the tooltip has the rest */
    draw_stripes(d, cell, x, y, width, height);
    fprintf(
        d->file,
        "<g class=\"cell\"><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
        "stroke=\"#333\" pointer-events=\"all\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.*s%s</text></g>\n",
        label, x, y, width, height, x + width / 2, y + height / 2 + 4, cut ? room - 2 : room, label, cut ? ".." : "");
}

/* One line a process. */
static void draw_legend(const drawing *d, const char *legend, int y)
{
    for (int i = 0; *legend; i++, y += LINE) {
        int length = (int)strcspn(legend, "\n");
        fprintf(d->file,
                "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"#%06x\" stroke=\"#333\"/>"
                "<text x=\"%d\" y=\"%d\">%.*s</text>\n",
                LEFT, y - 10, d->c->held[i] ? colour(i) : 0xffffff, LEFT + 20, y, length, legend);
        legend += length + (legend[length] == '\n');
    }
}

/* What a reader of the cells has to know; returns where the next line goes. */
static int draw_notes(const drawing *d, int y)
{
    const char *notes[] = {d->c->rows.n ? NULL : "no element is held: an extent is 0",
                           d->c->terms > 1
                               ? "+ in a cell stands between the terms of a partial value, a comma between equal copies"
                               : NULL,
                           d->c->ndim > 2 ? "dims 0 and 1 are drawn; a cell names all who hold a part of it" : NULL};
    for (int i = 0; i < 3; i++)
        if (notes[i]) {
            fprintf(d->file, "<text x=\"%d\" y=\"%d\" font-style=\"italic\">%s</text>\n", LEFT, y, notes[i]);
            y += LINE;
        }
    return y;
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static int longest_line(const char *text)
{
    size_t most = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        most = strcspn(text, "\n") > most ? strcspn(text, "\n") : most;
    return (int)most;
}

static void draw(const drawing *d, const char *title, const char *legend)
{
    const cells *c = d->c;
    int right = d->x[c->columns.n], letters = longest_line(legend), bottom = d->y[c->rows.n] + 2 * LINE;
    letters = (int)strlen(title) > letters ? (int)strlen(title) : letters;
    right = LEFT + letters * 8 > right ? LEFT + letters * 8 : right;
    right = LEFT + 560 > right ? LEFT + 560 : right; /* the notes */
    int height = bottom + (3 + lines_of(legend)) * LINE;
    fprintf(d->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<title>%s</title>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"26\" font-size=\"15\">%s</text>\n",
            right + 40, height, right + 40, height, title, LEFT, title);
    draw_offsets(d);
    for (int row = 0; row < c->rows.n; row++)
        for (int column = 0; column < c->columns.n; column++)
            draw_cell(d, row, column);
    draw_legend(d, legend, draw_notes(d, bottom));
    fprintf(d->file, "</svg>\n");
}

void layout_svg(const char *path, const cells *c, const char *title, const char *legend)
{
    drawing d = {.file = fopen(path, "w"), .c = c};
    if (!d.file)
        fail("--svg '%s': %s", path, strerror(errno));
    d.x = borders(c, &c->columns, LEFT, room_for(&c->columns, WIDE, 60), true);
    d.y = borders(c, &c->rows, TOP, room_for(&c->rows, HIGH, 40), false);
    draw(&d, title, legend);
    bool written = !ferror(d.file);
    if (fclose(d.file) || !written)
        fail("--svg '%s': %s", path, strerror(errno));
    free(d.x);
    free(d.y);
}
