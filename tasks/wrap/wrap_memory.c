/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes in the host's memory: finds two that share an element. Pure data. */
#include <stdlib.h>

#include "wrap.h"

/* A box by its addresses, in elements: first + sum over d of i_d stride[d], i_d < n[d], strides falling, n above 1.
 * Each stride is at least the span of the dims behind it, which check_piece has found. */
typedef struct lattice {
    int64_t first, span, stride[TRAMA_MAX_NDIM], n[TRAMA_MAX_NDIM];
    int ndim;
} lattice;

static lattice lattice_of(const trama_host_box *piece, int ndim, size_t size)
{
    lattice l = {.first = (int64_t)((uintptr_t)piece->data / size), .span = 1};
    int64_t stride[TRAMA_MAX_NDIM];
    boxes_strides(piece, ndim, stride);
    for (int d = 0; d < ndim; d++) {
        int at = l.ndim;
        if (piece->extent[d] < 2)
            continue;
        for (l.ndim++; at > 0 && l.stride[at - 1] < stride[d]; at--) {
            l.stride[at] = l.stride[at - 1];
            l.n[at] = l.n[at - 1];
        }
        l.stride[at] = stride[d];
        l.n[at] = piece->extent[d];
        l.span += (piece->extent[d] - 1) * stride[d];
    }
    return l;
}

/* ---- Two boxes ---- */

/* Multiples of a stride: factors lo to hi. */
typedef struct multiples {
    int64_t stride, lo, hi;
} multiples;

/* The indices of both boxes, by falling strides; those of equal strides are one entry, of their differences. */
static int differences(const lattice *a, const lattice *b, multiples *m)
{
    int n = 0;
    for (int i = 0, k = 0; i < a->ndim || k < b->ndim; n++) {
        const int64_t s = i < a->ndim ? a->stride[i] : 0, t = k < b->ndim ? b->stride[k] : 0;
        m[n] = (multiples){max_i64(s, t), 0, 0};
        if (s >= t)
            m[n].hi = a->n[i++] - 1;
        if (t >= s)
            m[n].lo = 1 - b->n[k++];
    }
    return n;
}

static int64_t round_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Whether a sum of one multiple each is `sum`. Of boxes with equal strides an entry leaves 2 factors at most, since the
 * entries behind it add less than its stride. Of others it may leave many: after *steps the answer is no. */
static bool sums_up(const multiples *m, int n, int64_t sum, int64_t *steps)
{
    int64_t least = 0, most = 0;
    if (n == 0)
        return sum == 0;
    for (int i = 1; i < n; i++) {
        least += m[i].stride * m[i].lo;
        most += m[i].stride * m[i].hi;
    }
    const int64_t to = min_i64(m->hi, round_down(sum - least, m->stride));
    for (int64_t f = max_i64(m->lo, -round_down(most - sum, m->stride)); f <= to && (*steps)-- > 0; f++)
        if (sums_up(m + 1, n - 1, sum - f * m->stride, steps))
            return true;
    return false;
}

static bool share(const lattice *a, const lattice *b, int64_t *steps)
{
    multiples m[2 * TRAMA_MAX_NDIM];
    return sums_up(m, differences(a, b, m), b->first - a->first, steps);
}

/* ---- All boxes of a rank ---- */

enum { STEPS = 1 << 24 }; /* of sums_up, for all boxes together */

static void add_area(box_index *areas, int number, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    *ARRAY_PUSH(&areas->at) =
        (indexed_box){.b = {.ndim = 2, .lo = {row, column}, .n = {rows, columns}}, .number = number};
}

/* Memory as rows of `pitch` elements: areas that contain the box. Blocks of columns of one array have areas that do not
 * meet, though their addresses interleave. */
static void add_areas(box_index *areas, int number, const lattice *l, int64_t origin, int64_t pitch)
{
    const int64_t first = l->first - origin, row = first / pitch, column = first % pitch;
    const bool in_rows = l->ndim && l->stride[0] == pitch;
    const int64_t rows = in_rows ? l->n[0] : 1, width = l->span - (rows - 1) * pitch;
    if (!in_rows && l->span > pitch) {
        add_area(areas, number, row, (first + l->span - 1) / pitch - row + 1, 0, pitch);
        return;
    }
    add_area(areas, number, row, rows, column, min_i64(width, pitch - column));
    if (column + width > pitch)
        add_area(areas, number, row + 1, rows, 0, column + width - pitch);
}

static box_index areas_of(int n, const lattice *boxes)
{
    box_index areas = {0};
    int64_t origin = n ? boxes[0].first : 0, pitch = 1;
    for (int i = 0; i < n; i++) {
        origin = min_i64(origin, boxes[i].first);
        pitch = max_i64(pitch, boxes[i].ndim ? boxes[i].stride[0] : 1);
    }
    for (int i = 0; i < n; i++)
        add_areas(&areas, i, &boxes[i], origin, pitch);
    box_index_sort(&areas);
    return areas;
}

/* Two boxes whose areas meet, and that share an element. */
static bool find_two(const box_index *areas, const lattice *boxes, int *one, int *other)
{
    int64_t steps = STEPS;
    for (int i = 0; i < areas->at.n; i++)
        for (int k = box_index_next(areas, &areas->at.at[i].b, 0); k >= 0 && k < i && steps-- > 0;
             k = box_index_next(areas, &areas->at.at[i].b, k + 1)) {
            const int a = areas->at.at[i].number, b = areas->at.at[k].number;
            *one = (int)min_i64(a, b);
            *other = (int)max_i64(a, b);
            if (a != b && share(&boxes[a], &boxes[b], &steps))
                return true;
        }
    return false;
}

bool boxes_share_memory(int n, const trama_host_box *pieces, int ndim, size_t size, int *one, int *other)
{
    lattice *boxes = trama_alloc((size_t)n * sizeof *boxes);
    int n_boxes = 0, *number = trama_alloc((size_t)n * sizeof *number);
    for (int i = 0; i < n; i++) {
        bool empty = false;
        for (int d = 0; d < ndim; d++)
            empty |= pieces[i].extent[d] == 0;
        number[n_boxes] = i;
        boxes[n_boxes] = lattice_of(&pieces[i], ndim, size);
        n_boxes += !empty;
    }
    box_index areas = areas_of(n_boxes, boxes);
    const bool found = find_two(&areas, boxes, one, other);
    if (found) {
        *one = number[*one];
        *other = number[*other];
    }
    box_index_free(&areas);
    free(boxes);
    free(number);
    return found;
}
