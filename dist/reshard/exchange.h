/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange under construction: a value that goes from a source distributed value to a target distributed value, and
 * the steps that this rank takes. reshard.c decides what moves; here is how it is written down. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "choose.h"
#include "planner.h"

/* Steps of an exchange are emitted by phase, so that nobody waits for what could go first. LEND and RETURN are for
 * messages that lie in shards: nobody writes a region before it is sent, nor touches it before it is received. */
enum {
    CLEAR,
    LEND,
    POST,
    PACK,
    SENDS,
    RECEIVES,
    UNPACK,
    REDUCE,
    PACK_AGAIN,
    SEND_AGAIN,
    RECEIVE_AGAIN,
    UNPACK_AGAIN,
    RETURN,
    PHASES
};

typedef struct exchange_step {
    int phase, n;
    int round;    /* staging.c: through the staging buffer; 0 where all messages fit in at once */
    int piece;    /* of a large message, which is cut */
    bool sums;    /* a term that is summed where it arrives */
    bool crosses; /* packs what goes to another memory of the rank, at step.peer_place: a message but for MPI */
    plan_step step;
    plan_operand operands[2];
    int many; /* reduce: index of its operands in exchange.sources, or -1 */
} exchange_step;

typedef struct packed {
    plan_region region;
    int message; /* shard */
} packed;

typedef ARRAY(int) int_list;

typedef struct exchange {
    partition *q;
    int value, source, target; /* distributed values; by number since they move */
    transfer t;                /* kept: also lines of the mesh that sum on their own */
    bool fresh;
    bool inside;   /* of the source distributed value */
    bool in_place; /* every process of the mesh has the whole tensor */
    bool distinct; /* target processes have places of their own, and none is masked: who is which target is a formula */
    ARRAY(exchange_step) steps;
    ARRAY(plan_operand) sources;
    ARRAY(packed) packs;
    ARRAY(box) pieces; /* of the message at hand */
    int piece;         /* the one that is added */
    int rounds;
    int first_shard; /* of those that the exchange makes */
    plan_exchange count;
} exchange;

static inline int64_t region_bytes(const exchange *x, const box *b)
{
    return box_count(b) * (int64_t)x->t.element;
}

/* A step of its own making: copy, fill and reduce fill in the rest. */
exchange_step *add_step(exchange *x, int phase, step_kind kind, int place);
/* Also from another memory of the rank, by whole tiles or packed. */
void add_copy(exchange *x, int phase, int place, plan_region to, plan_region from);

/* A region as a step on a place may read it: itself, or packed where that would fetch more from another memory. */
plan_region add_local_copy(exchange *x, int level, int place, plan_region from, int term);

/* Counts a region that is read on another place of this rank: bytes between places without a message. */
void count_between(exchange *x, int place, const plan_region *from);

/* What is sent: a tile as it lies, else a packed copy, made once however many get it. level 0: of the source; 1: of
 * what the target has got by then. */
void add_send(exchange *x, int level, int place, int peer_place, plan_region from, int term);

/* Cuts a message into x->pieces, in the same way for both sides: where it is large and cannot lie in the shards that it
 * comes from and goes to (their boxes: from, to; NULL: a buffer, on some rank a larger shard, or on a GPU), and where
 * it is more than MPI counts. terms: so many are needed at a time. */
void cut_message(exchange *x, const box *b, const box *from, const box *to, int terms);

/* A buffer that a message from peer_place is received into; or the message goes where it belongs. */
plan_region add_receive_buffer(exchange *x, int level, int place, int peer_place, const box *b, int term);
void add_receive(exchange *x, int level, int place, int peer_place, plan_region to, int term);

/* The box of a shard on a place, if messages may lie in it; NULL. */
static inline const box *lending(const exchange *x, int place, const box *b)
{
    return plan_on_gpu(x->q->p, place) ? NULL : b;
}

/* Positions along the kept axes, and along those that are summed. */
int kept_of(const exchange *x, const trama_mesh *mesh, int position);
int reduced_of(const exchange *x, int position);

/* Whether a target piece gets the value; the others of a new P(sum) are zero. */
bool gets_value(const exchange *x, int position);

/* This rank's pieces with a given place, box and coordinate along the partial axes; NULL. */
const plan_local_box *source_piece(const exchange *x, int place, const box *b, int kept, int term);
const plan_local_box *target_piece(const exchange *x, int place, const box *b, int kept);

static inline plan_region region_in(const plan_local_box *piece, const box *b)
{
    return (plan_region){piece->region.shard, *b};
}

/* One pair of boxes: what every rank concerned sees alike. */
typedef struct group {
    box region; /* source box and target box in common */
    box from_box, to_box;
    int kept; /* position along the kept axes */
    int terms;
    int64_t number;           /* of the target box among those that take something of the source box */
    int_list *holders;        /* [terms] places */
    bool *held_here;          /* [terms] whether this rank has a holder */
    int n_targets;            /* places that get the target box */
    const int *to_coordinate; /* of the target box, along the split axes */
    int_list targets;         /* [n_targets] of them, where they are listed */
} group;

void group_holders(const exchange *x, group *g, const int *from_coordinate); /* terms, holders, held_here */
void group_targets(const exchange *x, group *g, const int *to_coordinate);   /* n_targets, targets */
void group_free(group *g);
bool list_has(const int_list *l, int place);

/* The holder for target number i: the nearest ones in rotation; n_nearest, where not NULL, gets how many there are. */
int choose_holder(const exchange *x, const int_list *holders, int target, int64_t i, int *n_nearest);

/* The holder of a term for target number i. */
int term_holder(const exchange *x, const group *g, int term, int i);

/* The holder on the lines of target number i; see exchange_peers.c. -1 where holders are not found by a formula. */
int line_holder(const exchange *x, const group *g, int i);

/* Whether other ranks alone send the region to its targets; false where that is not seen at once. */
bool is_served_elsewhere(const exchange *x, const group *g, const int *from_coordinate);

/* Number of target i of the group among all targets that take something of the source box. */
static inline int64_t target_number(const group *g, int i)
{
    return g->number * g->n_targets + i;
}

/* Whether the targets of a region get a slice each and exchange slices, because they are more than all who have a part
 * of what they want, so that these would send the same many times. */
bool is_scattered(const exchange *x, const group *g, int holders);

/* Whether the targets of partial terms sum a slice each and exchange the sums; see transfer.h. */
bool is_sliced(const exchange *x, const group *g);
/* Where targets sum all of the region: into how many parts it is cut, which are sent and summed one by one. */
int sum_tiles(const exchange *x, const group *g);

/* exchange_move.c: a region goes to the targets, or its terms are summed by them. move_own: to this rank's own targets,
 * found without listing the others, where the rank holds nothing of the region; false where they have to be listed. */
void move_group(exchange *x, const group *g);
bool move_own(exchange *x, group *g);
void reduce_group(exchange *x, group *g);

/* exchange_bound.c. Bytes that the processes of this rank lack; -1 where terms are summed, which has another bound. */
int64_t lacking_bytes(const exchange *x);
/* The same of its places, on which several processes may share what they have: bytes that the rank must receive. */
int64_t least_bytes(const exchange *x);
/* exchange_collective.c: whether each target process has a GPU to itself; and the position in the target mesh of the
 * place that has all of the tensor, where no other place has some, or -1. */
bool is_on_gpus(const exchange *x);
int find_root(const exchange *x);
void add_collectives(exchange *x, const collective_choice *found);

/* exchange_target.c: the shards of the target distributed value; regions are set, what gets no value is zero. */
void make_targets(exchange *x);

/* staging.c: where message buffers are more than the staging buffer, they share its memory, in rounds. */
void staging_rounds(exchange *x);
int64_t staging_bytes(const partition *q);

/* Appends the steps to the plan; number: of the exchange in it. */
void emit_phases(exchange *x, int number);

#endif
