/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the cells, the processes' boxes over them, and the scale beside them. */
#include "heat_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "must.h"

enum { MOST_CELLS = 64, SIDE = 512, LEFT = 20, TOP = 44, SCALE_X = LEFT + SIDE + 24, SCALE_WIDE = 18, STEPS = 64 };

typedef struct map {
    FILE *file;
    int rows, columns; /* of cells */
    double cell[MOST_CELLS * MOST_CELLS], low, high;
} map;

/* From dark blue by green to yellow, ever lighter; share in 0 .. 1. */
static unsigned colour(double share)
{
    static const int stops[][3] = {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    int last = (int)(sizeof stops / sizeof *stops) - 1, stop = (int)(share * last);
    stop = stop < last ? stop : last - 1;
    unsigned rgb = 0;
    for (int i = 0; i < 3; i++)
        rgb = rgb << 8 | (unsigned)(stops[stop][i] + (share * last - stop) * (stops[stop + 1][i] - stops[stop][i]));
    return rgb;
}

/* Where cell i of `cells` begins among n elements. */
static int64_t cell_begin(int64_t n, int cells, int i)
{
    return n / cells * i + n % cells * i / cells;
}

static double cell_mean(const map *m, int i, int j, int64_t rows, int64_t columns, const double *values)
{
    double sum = 0;
    int64_t top = cell_begin(rows, m->rows, i), bottom = cell_begin(rows, m->rows, i + 1);
    int64_t left = cell_begin(columns, m->columns, j), right = cell_begin(columns, m->columns, j + 1);
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++)
            sum += values[y * columns + x];
    return sum / (double)((bottom - top) * (right - left));
}

static void fill_cells(map *m, int64_t rows, int64_t columns, const double *values)
{
    m->rows = rows < MOST_CELLS ? (int)rows : MOST_CELLS;
    m->columns = columns < MOST_CELLS ? (int)columns : MOST_CELLS;
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->columns; j++) {
            double mean = cell_mean(m, i, j, rows, columns, values);
            m->low = i + j == 0 || mean < m->low ? mean : m->low;
            m->high = i + j == 0 || mean > m->high ? mean : m->high;
            m->cell[i * m->columns + j] = mean;
        }
}

/* Where an element, or a cell, of n begins in the picture. */
static double at(int64_t i, int64_t n)
{
    return SIDE * (double)i / (double)n;
}

static void draw_cells(const map *m, int64_t rows, int64_t columns)
{
    double range = m->high > m->low ? m->high - m->low : 1;
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->columns; j++) {
            int64_t y = cell_begin(rows, m->rows, i), x = cell_begin(columns, m->columns, j);
            fprintf(m->file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n",
                    LEFT + at(x, columns), TOP + at(y, rows), at(cell_begin(columns, m->columns, j + 1) - x, columns),
                    at(cell_begin(rows, m->rows, i + 1) - y, rows),
                    colour((m->cell[i * m->columns + j] - m->low) / range));
        }
}

static void draw_processes(const map *m, int64_t rows, int64_t columns, const trama_mesh *mesh,
                           const trama_layout *layout)
{
    for (int i = 0; i < trama_mesh_size(mesh); i++) {
        int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM];
        bool held;
        must(trama_layout_box(mesh, layout, TRAMA_SHAPE(rows, columns), i, offset, extent, NULL, &held));
        if (held && extent[0] && extent[1])
            fprintf(m->file,
                    "<rect class=\"process\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" "
                    "stroke=\"white\" stroke-width=\"1.5\" pointer-events=\"all\"><title>process %d: rows %" PRId64
                    " to %" PRId64 ", columns %" PRId64 " to %" PRId64 "</title></rect>\n",
                    LEFT + at(offset[1], columns), TOP + at(offset[0], rows), at(extent[1], columns),
                    at(extent[0], rows), trama_mesh_id(mesh, i), offset[0], offset[0] + extent[0] - 1, offset[1],
                    offset[1] + extent[1] - 1);
    }
}

static void draw_scale(const map *m)
{
    for (int i = 0; i < STEPS; i++)
        fprintf(m->file, "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"#%06x\"/>\n", SCALE_X,
                TOP + at(i, STEPS), SCALE_WIDE, at(1, STEPS), colour(1 - i / (STEPS - 1.0)));
    for (int i = 0; i <= 4; i++)
        fprintf(m->file, "<text x=\"%d\" y=\"%.2f\">%.3g</text>\n", SCALE_X + SCALE_WIDE + 6, TOP + at(i, 4) + 4,
                m->high - i * (m->high - m->low) / 4);
}

/* As it stands between two tags. */
static void draw_words(const map *m, const char *words)
{
    for (; *words; words++)
        if (strchr("<>&", *words))
            fprintf(m->file, "&#%d;", *words);
        else
            fputc((unsigned char)*words < ' ' ? ' ' : *words, m->file);
}

static void draw_title(const map *m, const char *title)
{
    fputs("<title>", m->file);
    draw_words(m, title);
    fprintf(m->file, "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"26\">",
            LEFT);
    draw_words(m, title);
    fputs("</text>\n", m->file);
}

void heat_map_write(const char *path, const char *title, int64_t rows, int64_t columns, const double *values,
                    const trama_mesh *mesh, const trama_layout *layout)
{
    const int width = SCALE_X + SCALE_WIDE + 70, height = TOP + SIDE + 20;
    map m = {.file = fopen(path, "w")};
    if (!m.file)
        fail("--picture '%s': %s", path, strerror(errno));
    fill_cells(&m, rows, columns, values);
    fprintf(m.file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n",
            width, height, width, height);
    draw_title(&m, title);
    fputs("<g shape-rendering=\"crispEdges\">\n", m.file);
    draw_cells(&m, rows, columns);
    fputs("</g>\n", m.file);
    draw_processes(&m, rows, columns, mesh, layout);
    draw_scale(&m);
    fputs("</svg>\n", m.file);
    if (!close_written(m.file))
        fail("--picture '%s': %s", path, strerror(errno));
}
