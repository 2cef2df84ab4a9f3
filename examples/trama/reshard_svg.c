/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the bytes that each process sends to each other: one square a pair, darker for more bytes, with a tooltip. */
#include "reshard_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { MARGIN = 60, MOST = 720, LARGEST = 28, SMALLEST = 4 };

typedef struct matrix {
    int n, *ids;    /* [n] processes that send or receive, ascending */
    int64_t *bytes; /* [n, n] from row to column */
    int64_t most;
} matrix;

static int compare_ids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int find(const matrix *m, int id)
{
    const int *at = bsearch(&id, m->ids, (size_t)m->n, sizeof id, compare_ids);
    return (int)(at - m->ids);
}

static matrix matrix_of(const trama_reshard_plan *plan)
{
    const trama_move *moves;
    int64_t n = trama_reshard_plan_moves(plan, &moves);
    matrix m = {.ids = must_allocate(2 * n + 1, sizeof *m.ids)};
    for (int64_t i = 0; i < n; i++) {
        m.ids[2 * i] = moves[i].source;
        m.ids[2 * i + 1] = moves[i].target;
    }
    qsort(m.ids, (size_t)(2 * n), sizeof *m.ids, compare_ids);
    for (int64_t i = 0; i < 2 * n; i++)
        if (!m.n || m.ids[m.n - 1] != m.ids[i])
            m.ids[m.n++] = m.ids[i];
    m.bytes = must_allocate((int64_t)m.n * m.n, sizeof *m.bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t *pair = &m.bytes[(int64_t)find(&m, moves[i].source) * m.n + find(&m, moves[i].target)];
        *pair += moves[i].bytes;
        m.most = *pair > m.most ? *pair : m.most;
    }
    return m;
}

static void draw_labels(FILE *file, const matrix *m, int side)
{
    int step = (14 + side - 1) / side; /* every label has 14 pixels */
    for (int i = 0; i < m->n; i += step) {
        int at = MARGIN + i * side + side / 2 + 4;
        fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>\n", MARGIN - 4, at, m->ids[i]);
        fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", at - 4, MARGIN - 6, m->ids[i]);
    }
}

static void draw_squares(FILE *file, const matrix *m, int side)
{
    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < m->n; j++) {
            int64_t bytes = m->bytes[(int64_t)i * m->n + j];
            if (bytes)
                fprintf(file,
                        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#1f5fa8\" fill-opacity=\"%.3f\">"
                        "<title>%d to %d: %" PRId64 " bytes</title></rect>\n",
                        MARGIN + j * side, MARGIN + i * side, side, side, 0.15 + 0.85 * (double)bytes / (double)m->most,
                        m->ids[i], m->ids[j], bytes);
        }
}

void reshard_svg(const char *path, const trama_reshard_plan *plan)
{
    matrix m = matrix_of(plan);
    trama_reshard_cost c = trama_reshard_plan_cost(plan);
    int side = m.n ? MOST / m.n : LARGEST;
    side = side > LARGEST ? LARGEST : side < SMALLEST ? SMALLEST : side;
    int extent = m.n * side, width = MARGIN + (extent > 420 ? extent : 420) + 20, height = MARGIN + extent + 40;
    FILE *file = fopen(path, "w");
    if (!file)
        fail("--svg '%s': %s", path, strerror(errno));
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            width, height, width, height);
    fprintf(file, "<text x=\"10\" y=\"18\" font-size=\"13\">bytes from process (row) to process (column)</text>\n");
    draw_labels(file, &m, side);
    draw_squares(file, &m, side);
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n", MARGIN,
            MARGIN, extent, extent);
    fprintf(file,
            "<text x=\"10\" y=\"%d\">%d processes, %" PRId64 " bytes in all; the darkest square: %" PRId64
            " bytes</text>\n</svg>\n",
            height - 12, c.processes, c.total, m.most);
    if (!close_written(file))
        fail("--svg '%s': %s", path, strerror(errno));
    free(m.ids);
    free(m.bytes);
}
