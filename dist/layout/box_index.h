/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds which boxes of a tensor, over all ranks: what a layout says, or what hosts state box by box. Sorted, so
 * that those that meet a box are found without looking at all of them. */
#ifndef SPOTS_H
#define SPOTS_H

#include "box.h"

typedef struct spot {
    box b; /* not empty */
    int place;
    int rank;
    int term;   /* of a partial value */
    int number; /* of the box among those that its rank stated; of a layout's a position in the mesh */
    signed char turns[TRAMA_MAX_NDIM]; /* it stands for the box that lies so many times the tensor's extent further on */
} spot;

typedef struct spots {
    ARRAY(spot) at;
    bool strided;    /* stated boxes: on some rank one is not row-major and contiguous */
    bool handled;    /* stated boxes: on this rank the host has handles of its own for them, so each is one tile */
    int dim;         /* they are sorted by their lower borders along it first; those of one box, and its terms, are together */
    int64_t longest; /* extent along it */
} spots;

void spots_sort(spots *s);
void spots_unite(spots *s); /* sorted: a place has a box once */
void spots_free(spots *s);

/* The first spot from number `from` on that meets the box, -1 where there is none: begin at 0. Not for 0-d boxes alone:
 * all of them meet. */
int spots_next(const spots *s, const box *b, int from);

/* How many spots from number i on have its box and term. */
int spots_equal(const spots *s, int i);

/* Two spots that overlap and are not equal, or are equal on one rank; false where there are none. */
bool spots_overlap(const spots *s, int *one, int *other);

/* Elements of all distinct boxes: those of the tensor where they do not overlap and nothing is missing. */
int64_t spots_count(const spots *s);

#endif
