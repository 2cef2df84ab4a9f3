/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the plans of all ranks together in one process, in double precision with the reference ops.
 *
 * A rank walks its steps in order. A send copies its buffer away at once. A receive is only posted: the message comes
 * into the buffer when a later step touches a tile of it, or when the plan ends, and the rank waits there until it was
 * sent. A step sees only its declared operands: a tile that is written loses what it held, and reading an element that
 * nobody wrote is an error. So are a wait without end, a message without a receiver, and bytes that the plan does not
 * account for.
 *
 * A collective runs when all members of its group have come to it, each with its own number of it. */
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include "dense.h"
#include "plan.h"

/* The buffers of one rank's plan. */
typedef struct memory {
    const plan *p;
    double **data; /* [shard] its box, row-major; an import's is the other plan's; within another shard: there */
    unsigned char **known; /* [shard] per element: has been written */
    box *outer;            /* [shard] what data and known are buffers of */
    plan_alias *lie;       /* [shard] where the elements of outer lie in them */
} memory;

/* kept[value id]: the memory that imports of the value come from; NULL where there are none. */
memory *memory_new(const plan *p, memory *const *kept);
void memory_destroy(memory **m);

/* Where a region starts, and the strides of its shard, as a kernel gets it. global: shape of the value. */
trama_view memory_view(const memory *m, const plan_region *r, trama_shape global);
bool memory_is_known(const memory *m, const plan_region *r);

/* Where element number `element` of a box, in row-major order, lies in a row-major buffer of an outer box; or in the
 * buffer of a shard. */
int64_t box_place(const box *outer, const box *b, int64_t element);
int64_t memory_place(const memory *m, int shard, const box *b, int64_t element);
#define FOR_EACH_ELEMENT(m, shard, b, at)                                                                              \
    for (int64_t element_ = 0, all_ = box_count(b), at = 0;                                                            \
         element_ < all_ && (at = memory_place(m, shard, b, element_), true); element_++)

/* A mapped program. */
typedef struct world {
    const trama_program *program;
    const machine *machine;
    const process_map *map;
    double error; /* relative: places of kind k compute floats k times it too large, but by ops that are exact */
} world;

typedef struct traffic {
    int64_t bytes;
    int messages;
} traffic;

/* Runs the plans of all ranks, ranks[machine->n_ranks]. Returns NULL, or what is wrong (the caller frees). sent, where
 * not NULL, gets what went from rank to rank. */
char *interpret(const world *w, memory *const *ranks, const trama_shape *shapes, traffic *sent);

#endif
