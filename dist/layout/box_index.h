/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds which boxes of a tensor, over all ranks: what a layout says, or what hosts state box by box. Sorted, so
 * that those that meet a box are found without looking at all of them. */
#ifndef SPOTS_H
#define SPOTS_H

#include "box.h"

typedef struct indexed_box {
    box b; /* not empty */
    int place;
    int rank;
    int term;   /* of a partial value */
    int number; /* of the box among those that its rank stated; of a layout's a position in the mesh */
    signed char turns[TRAMA_MAX_NDIM]; /* it stands for the box that lies so many times the tensor's extent further on */
} indexed_box;

typedef struct box_index {
    ARRAY(indexed_box) at;
    bool strided;    /* user boxes: on some rank one is not row-major and contiguous */
    bool handled;    /* user boxes: on this rank the host has handles of its own for them, so each is one tile */
    int dim;         /* they are sorted by their lower borders along it first; those of one box, and its terms, are together */
    int64_t longest; /* extent along it */
} box_index;

void box_index_sort(box_index *s);
void box_index_unite(box_index *s); /* sorted: a place has a box once */
void box_index_free(box_index *s);

/* The first box from number `from` on that meets the box, -1 where there is none: begin at 0. Not for 0-d boxes alone:
 * all of them meet. */
int box_index_next(const box_index *s, const box *b, int from);

/* How many boxes from number i on have its box and term. */
int box_index_equal(const box_index *s, int i);

/* Two boxes that overlap and are not equal, or are equal on one rank; false where there are none. */
bool box_index_overlap(const box_index *s, int *one, int *other);

/* Elements of all distinct boxes: those of the tensor where they do not overlap and nothing is missing. */
int64_t box_index_count(const box_index *s);

#endif
