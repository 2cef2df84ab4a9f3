/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: half-open n-d intervals of a tensor, and the balanced splitting of one dim. */
#ifndef BOX_H
#define BOX_H

#include "base.h"

typedef struct box {
    int ndim;
    int64_t lo[TRAMA_MAX_NDIM], n[TRAMA_MAX_NDIM]; /* offset and extent per dim */
} box;

box box_whole(trama_shape shape);
int64_t box_count(const box *b); /* elements; 1 for ndim 0 */
bool box_equal(const box *a, const box *b);
bool box_contains(const box *outer, const box *inner); /* an empty box is in every box */

/* Sets result to the common box; false if it is empty. */
bool box_intersect(const box *a, const box *b, box *result);

/* Total order: by ndim, then lo, then n. For sorting and as a key. */
int box_compare(const box *a, const box *b);

/* A box in a row-major buffer that holds `outer`: `rows` runs of `run` elements, the first at element `first`, each
 * `ld` elements after the one before. */
typedef struct box_rows {
    int64_t first, run, rows, ld;
} box_rows;

/* False if the box does not have this form (result is then undefined). */
bool box_in_rows(const box *outer, const box *b, box_rows *result);
bool box_is_run(const box *outer, const box *b); /* whether it lies in one run */

void box_text(text *out, const box *b); /* [0:5,0:20] */

/* Piece i of [0, n) cut into parts: the first n mod parts pieces are one longer. */
void piece_of(int64_t n, int parts, int i, int64_t *lo, int64_t *length);

/* The dim along which a box is cut into n slices for an exchange: dim 0 if its extent is n or more, so that slices are
 * contiguous, else the longest dim. box_slice is slice i of n; of a scalar slice 0 is the scalar, the others have ndim
 * -1. */
int box_slice_dim(const box *b, int n);
box box_slice(const box *b, int n, int i);

/* The piece that holds x, 0 <= x < n. */
int piece_find(int64_t n, int parts, int64_t x);

#endif
