/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of a tensor with their holders over all ranks, from a layout or from a user distribution. They are sorted,
 * so that a search for boxes that meet a given box does not visit all. */
#ifndef SPOTS_H
#define SPOTS_H

#include "box.h"

typedef struct indexed_box {
    box b; /* not empty */
    int place;
    int rank;
    int term;   /* of a partial value */
    int number; /* of a user box: its number on its rank; of a layout's box: the position in the mesh */
    signed char turns[TRAMA_MAX_NDIM]; /* shift of the box, in extents of the tensor */
} indexed_box;

typedef struct box_index {
    ARRAY(indexed_box) at;
    bool strided;    /* user boxes: on some rank a box is not row-major and contiguous */
    bool handled;    /* user boxes: on this rank they have the host's handles, so each is one tile */
    int dim;         /* first sort key: the lower border along it; copies and terms of one box are neighbours */
    int64_t longest; /* maximum extent along dim */
} box_index;

void box_index_sort(box_index *s);
void box_index_unite(box_index *s); /* of a sorted index: keeps each box once for a place */
void box_index_free(box_index *s);

/* The first box from number `from` (0 at first) on that meets the box, or -1. 0-d boxes all meet. */
int box_index_next(const box_index *s, const box *b, int from);

/* The number of consecutive entries from i on with the box and term of entry i. */
int box_index_equal(const box_index *s, int i);

/* Finds two boxes that overlap and differ, or that are equal on one rank; false without such a pair. */
bool box_index_overlap(const box_index *s, int *one, int *other);

/* Elements of all distinct boxes: those of the tensor if the boxes cover it without overlap. */
int64_t box_index_count(const box_index *s);

#endif
