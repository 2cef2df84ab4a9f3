/* SPDX-License-Identifier: Apache-2.0 */
/* The holders of each cell of a tensor's grid. A mesh axis cuts at most one dim, so each box is one cell of the
 * grid. */
#include "layout_cells.h"

#include <stdlib.h>

#include "base.h"

enum { LONG_RUN = 8 }; /* longer runs of consecutive ids are written as first-last */

typedef struct piece {
    int position, term;
    int64_t row, column; /* first row and column of its box */
} piece;

static int compare_offsets(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_pieces(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return x->term != y->term ? x->term - y->term : x->position - y->position;
}

/* Sorts the n offsets and makes them cuts. */
static cuts cuts_of(int n, int64_t *offsets, int64_t extent)
{
    cuts c = {.at = offsets};
    qsort(offsets, (size_t)n, sizeof *offsets, compare_offsets);
    for (int i = 0; i < n; i++)
        if (!c.n || c.at[c.n - 1] != offsets[i])
            c.at[c.n++] = offsets[i];
    c.at[c.n] = extent;
    return c;
}

static int piece_at(const cuts *c, int64_t offset)
{
    const int64_t *at = bsearch(&offset, c->at, (size_t)c->n, sizeof offset, compare_offsets);
    return (int)(at - c->at);
}

/* Whether a process holds an element; sets its piece. */
static bool holds(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int position, piece *p)
{
    int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM];
    bool held;
    *p = (piece){.position = position};
    if (trama_layout_box(mesh, layout, shape, position, offset, extent, &p->term, &held))
        return false;
    for (int d = 0; d < shape.ndim; d++)
        held &= extent[d] > 0;
    p->row = shape.ndim > 1 ? offset[0] : 0;
    p->column = shape.ndim > 0 ? offset[shape.ndim > 1] : 0;
    return held;
}

/* Finds the pieces of all holders; returns their number. */
static int find_pieces(cells *c, const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, piece *pieces)
{
    int n = 0;
    for (int i = 0; i < trama_mesh_size(mesh); i++) {
        c->held[i] = holds(mesh, layout, shape, i, &pieces[n]);
        if (pieces[n].term >= c->terms)
            c->terms = pieces[n].term + 1;
        n += c->held[i];
    }
    return n;
}

static void cut_dims(cells *c, int n, const piece *pieces, trama_shape shape)
{
    int64_t *rows = trama_alloc(((size_t)n + 1) * sizeof *rows),
            *columns = trama_alloc(((size_t)n + 1) * sizeof *columns);
    for (int i = 0; i < n; i++) {
        rows[i] = pieces[i].row;
        columns[i] = pieces[i].column;
    }
    c->rows = cuts_of(n, rows, shape.ndim > 1 ? shape.dim[0] : 1);
    c->columns = cuts_of(n, columns, shape.ndim > 0 ? shape.dim[shape.ndim > 1] : 1);
}

/* Chains the holders of each cell by term, then by position. */
static void chain_holders(cells *c, int n, piece *pieces)
{
    int n_cells = c->rows.n * c->columns.n;
    c->first = trama_alloc((size_t)n_cells * sizeof *c->first);
    for (int i = 0; i < n_cells; i++)
        c->first[i] = NO_POSITION;
    qsort(pieces, (size_t)n, sizeof *pieces, compare_pieces);
    for (int i = n - 1; i >= 0; i--) {
        int *first =
            &c->first[piece_at(&c->rows, pieces[i].row) * c->columns.n + piece_at(&c->columns, pieces[i].column)];
        c->next[pieces[i].position] = *first;
        *first = pieces[i].position;
    }
}

int cuts_share(const cuts *c, int i, int room)
{
    int64_t extent = c->at[c->n], part = c->at[i + 1] - c->at[i];
    return (int)(extent > INT64_MAX / (room + 1) ? part / (extent / (room + 1)) : part * room / extent);
}

/* ---- Labels ---- */

/* The last position of the run of consecutive ids that begins at position `from`. */
static int end_of_run(const cells *c, const trama_mesh *mesh, const int *term, int from, int *length)
{
    int last = from;
    *length = 1;
    for (int i = c->next[from]; i != NO_POSITION; last = i, i = c->next[i], ++*length)
        if (term[i] != term[from] || trama_mesh_id(mesh, i) != trama_mesh_id(mesh, last) + 1)
            break;
    return last;
}

static char *label_of(const cells *c, const trama_mesh *mesh, const int *term, int first)
{
    text t = {0};
    for (int i = first, before = NO_POSITION; i != NO_POSITION; before = i, i = c->next[i]) {
        if (before != NO_POSITION)
            text_add(&t, term[before] == term[i] ? "," : "+");
        text_add(&t, "%d", trama_mesh_id(mesh, i));
        int length, last = end_of_run(c, mesh, term, i, &length);
        if (length > LONG_RUN) {
            text_add(&t, "-%d", trama_mesh_id(mesh, last));
            i = last;
        }
    }
    return text_take(&t);
}

static void label_cells(cells *c, const trama_mesh *mesh, int n, const piece *pieces)
{
    int *term = trama_alloc((size_t)trama_mesh_size(mesh) * sizeof *term), n_cells = c->rows.n * c->columns.n;
    for (int i = 0; i < n; i++)
        term[pieces[i].position] = pieces[i].term;
    c->label = trama_alloc((size_t)n_cells * sizeof *c->label);
    for (int i = 0; i < n_cells; i++)
        c->label[i] = label_of(c, mesh, term, c->first[i]);
    free(term);
}

cells *cells_new(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape)
{
    size_t processes = (size_t)trama_mesh_size(mesh);
    cells *c = trama_alloc(sizeof *c);
    c->ndim = shape.ndim;
    c->terms = 1;
    c->next = trama_alloc(processes * sizeof *c->next);
    c->held = trama_alloc(processes * sizeof *c->held);
    piece *pieces = trama_alloc((processes + 1) * sizeof *pieces);
    int n = find_pieces(c, mesh, layout, shape, pieces);
    cut_dims(c, n, pieces, shape);
    chain_holders(c, n, pieces);
    label_cells(c, mesh, n, pieces);
    free(pieces);
    return c;
}

void cells_destroy(cells **c)
{
    for (int i = 0; i < (*c)->rows.n * (*c)->columns.n; i++)
        free((*c)->label[i]);
    free((*c)->label);
    free((*c)->rows.at);
    free((*c)->columns.at);
    free((*c)->first);
    free((*c)->next);
    free((*c)->held);
    free(*c);
    *c = NULL;
}
