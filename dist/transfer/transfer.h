/* SPDX-License-Identifier: Apache-2.0 */
/* One change of layout that is made directly, known from its meshes, layouts and sizes alone: which axes are summed,
 * who lacks what, and the bytes that each process receives. choose.h says whether it is made directly. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "layout.h"

typedef struct transfer {
    const trama_mesh *from_mesh, *to_mesh;
    bool one_mesh; /* the two are equal, so that axes of one are axes of the other */
    trama_layout from, to;
    box whole;
    size_t element;     /* bytes */
    unsigned kept;      /* axes along which nothing is exchanged: partial and stay so, or lines that sum on their own */
    unsigned own;       /* of those the ones along which a split becomes P(sum|avg): each piece is a term, else zero */
    unsigned reduced;   /* partial axes of the source that are summed */
    unsigned fresh_sum; /* axes along which the target becomes P(sum): the first process keeps the value */
    trama_reduce reduce;
    double scale; /* of the sum */
} transfer;

transfer transfer_between(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                          const trama_layout *to, const box *whole, size_t element);

/* Axes of the target mesh along which the targets of one box lie. */
unsigned transfer_target_axes(const transfer *t);

/* Whether two processes are the same along the axes whose pieces become terms. */
bool transfer_same_own(const transfer *t, const int *from_coordinate, const int *to_coordinate);

/* Elements of the target box at a position that come from source boxes at all, those of its own process included. */
int64_t transfer_wanted(const transfer *t, int position);

/* Elements of the target box at a position that its process does not hold. */
int64_t transfer_lacking(const transfer *t, int position);

/* Whether the targets of a region sum a slice of its terms each and exchange the sums, or else each sums all of it.
 * all_hold: each target holds one of the terms. By the bytes that one target receives, of n elements:
 *
 *                   all of it     slices
 *   all hold        (terms-1) n   (terms-1 + targets-1) n / targets: the same for two terms, in more messages
 *   one does not     terms    n   (terms   + targets-1) n / targets */
bool transfer_is_sliced(int terms, int targets, bool all_hold);

/* Whether the targets of a region get a slice each from its holders and exchange slices, or else each gets all of it
 * from one holder. They are scattered to where they outnumber the holders of all the `boxes` source boxes that have a
 * part of what they want, which would send the same several times. */
bool transfer_is_scattered(int64_t targets, int64_t holders, int64_t boxes, int64_t region_bytes);

/* Processes of the source that hold one box, or one term of it. */
int transfer_holders(const transfer *t);

/* Bytes and messages that a process receives; where it sends its slice to more targets than it receives from, these.
 * of_source: the bytes that processes of the source send to it; the others come from targets that exchange slices. */
typedef struct transfer_load {
    int64_t bytes, messages, of_source;
} transfer_load;

/* By the process at a position of the target mesh, where all goes at once. */
transfer_load transfer_received(const transfer *t, int position);

#endif
