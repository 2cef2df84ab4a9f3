/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of one change of layout, planned without a context: which process sends which box to which process, and how
 * many bytes that is against the least possible. Each process counts as having a memory of its own. */
#ifndef TRAMA_RESHARD_PLAN_H
#define TRAMA_RESHARD_PLAN_H

#include "trama_layout.h"

TRAMA_API_BEGIN

/* A box that one process sends to another. Moves of a later round may send on boxes that came in earlier rounds. */
typedef struct trama_move {
    int source, target; /* process ids */
    int round;          /* from 0 */
    bool sums; /* the box is a term, which the target combines with others; false: a part of the value */
    int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM]; /* [ndim] in the whole tensor */
    int64_t bytes;                                          /* of the box */
} trama_move;

/* Counts of one change of layout. All but processes and total are those of the process with the most. */
typedef struct trama_reshard_cost {
    int processes;          /* of both meshes */
    int64_t received, sent; /* bytes by one process */
    int64_t bound;          /* bytes that a process lacks, and so must receive; -1 where terms are combined, which has
                               another lower bound */
    int64_t memory;         /* bytes that a process allocates beyond its source shard */
    int64_t buffers;        /* bytes of these for messages */
    int64_t total;          /* bytes of all moves */
    int messages;           /* sent and received by one process */
} trama_reshard_cost;

typedef struct trama_reshard_plan trama_reshard_plan; /* the moves of all processes and their cost */

/* Plans the change for every process of both meshes. No axis of the layouts is open, and both are legal for the shape.
 * The plans are verified: each send has its receive, and no process waits for ever. E_ARGUMENT for NULL; E_LAYOUT,
 * E_SHAPE and E_DTYPE name the argument that does not fit; E_MEMORY for a tensor of more than 2^46 bytes, which has too
 * many messages to list. *plan is set on TRAMA_OK only, and the caller destroys it. */
trama_status trama_reshard_plan_create(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                    const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                    trama_reshard_plan **plan);

/* As trama_reshard_plan_create, with a report of progress, since planning for 10,000 processes takes minutes. Calls
 * tell(closure, made, processes) after the plan of each process, where `made` counts the plans so far. tell may be
 * NULL. */
typedef void (*trama_reshard_tell)(void *closure, int made, int processes);
trama_status trama_reshard_plan_told(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                     const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                     trama_reshard_tell tell, void *closure, trama_reshard_plan **plan);
void trama_reshard_plan_destroy(trama_reshard_plan **plan);

/* Sets *moves to all moves, in an order in which they can be done, and returns their number. They live as long as the
 * plan. moves NULL: the number only. plan NULL: returns 0 and leaves *moves unchanged. */
int64_t trama_reshard_plan_moves(const trama_reshard_plan *plan, const trama_move **moves);

/* The cost of a plan; all zeros for NULL. */
trama_reshard_cost trama_reshard_plan_cost(const trama_reshard_plan *plan);

/* Bytes of their target boxes that processes do not hold. Each plan moves at least these. */
typedef struct trama_reshard_lack {
    int processes;    /* of both meshes */
    int lacking;      /* processes that lack bytes; this field and the next ones are -1 where a layout is partial */
    int most_process; /* id of the first process that lacks the most bytes; -1: no process lacks any */
    int64_t most;     /* bytes that it lacks */
    int64_t total;    /* bytes that all processes lack; INT64_MAX where they are more */
} trama_reshard_lack;

/* Counts these bytes process by process, without a plan, so for meshes and tensors of any size. Errors as of
 * trama_reshard_plan_create. */
trama_status trama_reshard_lacking(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                   const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                   trama_reshard_lack *lack);

TRAMA_API_END
#endif
