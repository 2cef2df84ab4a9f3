/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of layout moves, worked out without a context: who sends which box to whom, and how far that is from
 * the least possible. Every process is taken to have a memory of its own. */
#ifndef TRAMA_RESHARD_PLAN_H
#define TRAMA_RESHARD_PLAN_H

#include "trama_layout.h"

TRAMA_API_BEGIN

/* A box that goes from one process to another. Moves of a later round send what earlier rounds have brought. */
typedef struct trama_move {
    int source, target; /* process ids */
    int round;          /* from 0 */
    bool sums; /* the box is a term that is combined with others at the target; else it is a part of the value */
    int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM]; /* [ndim] in the whole tensor */
    int64_t bytes;                                          /* of the box */
} trama_move;

/* Bytes of the process that has the most of them. */
typedef struct trama_reshard_cost {
    int processes;          /* of both meshes */
    int64_t received, sent; /* bytes by one process */
    int64_t bound;          /* the most that any process lacks, and so has to receive; -1 where terms are combined,
                               for then the lower bound is another */
    int64_t memory;         /* what a process allocates beyond its source shard */
    int64_t buffers;        /* of that for messages */
    int64_t total;          /* bytes of all moves */
    int messages;           /* sent or received by one process */
} trama_reshard_cost;

typedef struct trama_reshard_plan trama_reshard_plan; /* what every process sends and receives */

/* Plans for every process of both meshes. The layouts are full, none open, and legal for the shape. Plans are verified:
 * each send has its receive, and no process waits for ever. E_LAYOUT, E_SHAPE and E_DTYPE name what does not fit;
 * E_MEMORY for a tensor of more than 2^46 bytes, whose messages are too many to list. The caller destroys it. */
trama_status trama_reshard_plan_create(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                    const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                    trama_reshard_plan **plan);

/* As trama_reshard_plan_create, which takes minutes for some 10,000 processes: tells after each plan how many of how many are made.
 * tell may be NULL; closure is handed to it. */
typedef void (*trama_reshard_tell)(void *closure, int made, int processes);
trama_status trama_reshard_plan_told(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                     const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                     trama_reshard_tell tell, void *closure, trama_reshard_plan **plan);
void trama_reshard_plan_destroy(trama_reshard_plan **plan);

/* All moves, in an order in which they could be done; the number of them. They live as long as the plan. moves NULL:
 * the number only; 0 for no plan. */
int64_t trama_reshard_plan_moves(const trama_reshard_plan *plan, const trama_move **moves);

/* How much moves, at most and at least; zeros for no plan. */
trama_reshard_cost trama_reshard_plan_cost(const trama_reshard_plan *plan);

/* Bytes that processes lack. Every plan brings them at least these. */
typedef struct trama_reshard_lack {
    int processes;    /* of both meshes */
    int lacking;      /* processes that lack something; this and what follows is -1 where a layout is partial */
    int most_process; /* the id of the first that lacks the most; -1 where none lacks anything */
    int64_t most;     /* bytes that it lacks */
    int64_t total;    /* bytes that all lack together; INT64_MAX where they are more */
} trama_reshard_lack;

/* Counts that process by process, without a plan: for meshes of any size. Errors as trama_reshard_plan_create's. */
trama_status trama_reshard_lacking(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                   const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                   trama_reshard_lack *lack);

TRAMA_API_END
#endif
