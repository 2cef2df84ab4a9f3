/* SPDX-License-Identifier: Apache-2.0 */
/* The grid in characters. Pieces keep their proportions as far as the labels have room. */
#include "layout_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 24, MOST_COLUMNS = 72, WIDTH = 80, PER_COLUMN = 2 }; /* a character is twice as high as wide */

typedef struct picture {
    const cells *c;
    int margin;              /* characters before the grid: the offsets of rows */
    int height[MOST_ROWS];   /* of each piece, in lines */
    int width[MOST_COLUMNS]; /* of each piece, in characters */
} picture;

static int digits(int64_t number)
{
    return snprintf(NULL, 0, "%" PRId64, number);
}

/* What the labels of a column and the offset above it need. */
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

/* Shares out `room` characters by extents, but no column gets less than it needs; returns the width of it all. */
static int share_out(picture *p, int room, const int *least)
{
    const cuts *columns = &p->c->columns;
    int sum = p->margin + 1;
    for (int j = 0; j < columns->n; j++) {
        int share = (int)((columns->at[j + 1] - columns->at[j]) * room / columns->at[columns->n]);
        p->width[j] = share > least[j] ? share : least[j];
        sum += p->width[j] + 1;
    }
    return sum + digits(columns->at[columns->n]) - 1;
}

static bool fit(picture *p)
{
    const cuts *rows = &p->c->rows, *columns = &p->c->columns;
    int64_t extent = rows->at[rows->n], lines = extent < MOST_ROWS ? extent : MOST_ROWS;
    int least[MOST_COLUMNS];
    if (!rows->n || !columns->n || rows->n > MOST_ROWS || columns->n > MOST_COLUMNS)
        return false;
    p->margin = p->c->ndim > 1 ? digits(extent) + 1 : 0;
    for (int i = 0; i < rows->n; i++) {
        int share = (int)((rows->at[i + 1] - rows->at[i]) * lines / extent);
        p->height[i] = share > 1 ? share : 1;
    }
    for (int j = 0; j < columns->n; j++)
        least[j] = least_width(p->c, j);
    int64_t wished = columns->at[columns->n] * PER_COLUMN;
    for (int room = wished < MOST_COLUMNS ? (int)wished : MOST_COLUMNS; room >= 0; room--)
        if (share_out(p, room, least) <= WIDTH)
            return true;
    return false;
}

static void print_offsets(const picture *p)
{
    const cuts *columns = &p->c->columns;
    printf("%*s", p->margin, "");
    for (int j = 0; j < columns->n; j++)
        printf("%-*" PRId64, p->width[j] + 1, columns->at[j]);
    printf("%" PRId64 "\n", columns->at[columns->n]);
}

static void print_border(const picture *p, int row)
{
    if (p->margin)
        printf("%*" PRId64 " ", p->margin - 1, p->c->rows.at[row]);
    for (int j = 0; j < p->c->columns.n; j++) {
        putchar('+');
        for (int i = 0; i < p->width[j]; i++)
            putchar('-');
    }
    puts("+");
}

/* A line through a row of cells, with or without their labels. */
static void print_line(const picture *p, int row, bool labelled)
{
    printf("%*s", p->margin, "");
    for (int j = 0; j < p->c->columns.n; j++) {
        const char *label = labelled ? p->c->label[row * p->c->columns.n + j] : "";
        int length = (int)strlen(label), before = (p->width[j] - length) / 2;
        printf("|%*s%s%*s", before, "", label, p->width[j] - length - before, "");
    }
    puts("|");
}

bool layout_picture(const cells *c)
{
    picture p = {.c = c};
    if (!fit(&p))
        return false;
    print_offsets(&p);
    for (int row = 0; row < c->rows.n; row++) {
        print_border(&p, row);
        for (int line = 0; line < p.height[row]; line++)
            print_line(&p, row, line == (p.height[row] - 1) / 2);
    }
    print_border(&p, c->rows.n);
    return true;
}
