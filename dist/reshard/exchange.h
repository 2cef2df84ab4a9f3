/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange under construction: a value that goes from a source distributed value to a target distributed value, and
 * the steps that this rank takes. reshard.c finds the regions that move; these functions write the steps. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "choose.h"
#include "planner.h"

/* Steps of an exchange are emitted by phase, so that a step comes before those that can go later. LEND and RETURN are
 * for messages that lie in shards: no step writes a region before it is sent, or uses it before it is received. */
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
    int round;    /* staging.c: its turn in the staging buffer; 0 where all messages fit at once */
    int piece;    /* number of the piece of a large message, which is cut */
    bool sums;    /* for a term that is summed where it arrives */
    bool crosses; /* packs elements for another memory of the rank, at step.peer_place: a message without MPI */
    plan_step step;
    plan_operand operands[2];
    int many;   /* reduce: index of its operands in exchange.sources, or -1 */
    int behind; /* an earlier step whose round is not behind its own; -1: none */
} exchange_step;

typedef struct packed {
    plan_region region;
    int message; /* shard */
} packed;

typedef ARRAY(int) int_list;

typedef struct exchange {
    partition *q;
    int value, source, target; /* distributed values by number, since their array moves */
    transfer t;                /* kept also has the axes whose lines sum on their own */
    bool fresh;
    bool inside;   /* as of the source distributed value */
    bool in_place; /* every process of the mesh has the whole tensor */
    bool distinct; /* target processes have places of their own and no mask, so a formula gives a target's number */
    ARRAY(exchange_step) steps;
    ARRAY(plan_operand) sources;
    ARRAY(packed) packs;
    ARRAY(box) pieces; /* of the current message */
    int piece;         /* the one for which steps are added */
    int rounds;
    int first_shard; /* the first that the exchange makes */
    plan_exchange count;
} exchange;

static inline int64_t region_bytes(const exchange *x, const box *b)
{
    return box_count(b) * (int64_t)x->t.element;
}

/* A new step. The caller sets its operands. */
exchange_step *add_step(exchange *x, int phase, step_kind kind, int place);
/* Copies a region, also from another memory of the rank: by whole tiles, or packed there first. */
void add_copy(exchange *x, int phase, int place, plan_region to, plan_region from);

/* A region as a step on a place may read it: `from`, or a packed copy where another memory would send more than it. */
plan_region add_local_copy(exchange *x, int level, int place, plan_region from, int term);

/* Counts the bytes of a region that a place reads from another place of this rank, without a message. */
void count_between(exchange *x, int place, const plan_region *from);

/* Sends a region: a contiguous tile or large run in place, else a packed copy, which several receivers share. level 0:
 * from the source; 1: from the target, after it has received the region. */
void add_send(exchange *x, int level, int place, int peer_place, plan_region from, int term);

/* Cuts a message into x->pieces, in the same way on both sides: where it is large and cannot lie in the shards that it
 * comes from and goes to (their boxes: from, to; NULL: a buffer, a larger shard on some rank, or a GPU's), and where
 * MPI cannot count its bytes. terms: the number of such messages that need buffers at a time. */
void cut_message(exchange *x, const box *b, const box *from, const box *to, int terms);

/* Receives a message from peer_place into a new buffer, which is returned; or into the region `to`. */
plan_region add_receive_buffer(exchange *x, int level, int place, int peer_place, const box *b, int term);
void add_receive(exchange *x, int level, int place, int peer_place, plan_region to, int term);

/* The box of a shard on a place, if messages may lie in it; else NULL. */
static inline const box *lending(const exchange *x, int place, const box *b)
{
    return plan_on_gpu(x->q->p, place) ? NULL : b;
}

/* The coordinates of a position along the kept axes, and along the summed ones, as one number. */
int kept_of(const exchange *x, const trama_mesh *mesh, int position);
int reduced_of(const exchange *x, int position);

/* Whether a target piece gets the value; the others of a new P(sum) are zero. */
bool gets_value(const exchange *x, int position);

/* This rank's piece with a given place, box and coordinate along the partial axes; NULL: none. */
const plan_local_box *source_piece(const exchange *x, int place, const box *b, int kept, int term);
const plan_local_box *target_piece(const exchange *x, int place, const box *b, int kept);

static inline plan_region region_in(const plan_local_box *piece, const box *b)
{
    return (plan_region){piece->region.shard, *b};
}

/* A source box and a target box that meet. The ranks concerned find the same, except held_here. */
typedef struct group {
    box region; /* the intersection of the two boxes */
    box from_box, to_box;
    int kept; /* position along the kept axes */
    int terms;
    int64_t number;           /* of the target box among those that meet the source box */
    int_list *holders;        /* [terms] places */
    bool *held_here;          /* [terms] whether this rank has a holder */
    int n_targets;            /* places that get the target box */
    const int *to_coordinate; /* of the target box, along the split axes */
    int_list targets;         /* [n_targets] these places, where they are listed */
} group;

/* Sets terms, holders and held_here. sends: no target is this rank's, so holders of terms that it lacks may be left
 * out.
 */
void group_holders(const exchange *x, group *g, const int *from_coordinate, bool sends);
void group_targets(const exchange *x, group *g, const int *to_coordinate); /* n_targets, targets */
void group_free(group *g);
bool list_has(const int_list *l, int place);

/* The holder for target number i: one of the nearest, in rotation. *n_nearest, if not NULL, is set to their number. */
int choose_holder(const exchange *x, const int_list *holders, int target, int64_t i, int *n_nearest);

/* The holder of a term for target number i. */
int term_holder(const exchange *x, const group *g, int term, int i);

/* The holder on the lines of target number i; see exchange_peers.c. -1 where holders are not found by a formula. */
int line_holder(const exchange *x, const group *g, int i);

/* Whether only other ranks send the region to its targets; false where no formula finds the holders. */
bool is_served_elsewhere(const exchange *x, const group *g, const int *from_coordinate);

/* Number of target i of the group among the targets of all boxes that meet the source box. */
static inline int64_t target_number(const group *g, int i)
{
    return g->number * g->n_targets + i;
}

/* Whether the targets of a region get a slice each and exchange slices; see transfer.h. */
bool is_scattered(const exchange *x, const group *g, int holders);

/* Whether the targets of partial terms sum a slice each and exchange the sums; see transfer.h. */
bool is_sliced(const exchange *x, const group *g);
/* The number of parts into which a region is cut that targets sum as a whole; parts are sent and summed one by one. */
int sum_tiles(const exchange *x, const group *g);
/* The turns in which a target sums the terms of a part: one, where their buffers fit or the terms are few. Elements of
 * less than 4 bytes are summed at once, since they would be rounded after each turn. */
int sum_turns(const exchange *x, const group *g, const box *part);

/* exchange_move.c: moves a region to its targets, or has the targets sum its terms. move_own: moves it to this rank's
 * targets only, without a list of the others, where the rank holds nothing of it; false where the list is necessary. */
void move_group(exchange *x, const group *g);
bool move_own(exchange *x, group *g);
void reduce_group(exchange *x, group *g);

/* exchange_bound.c. Bytes that the processes of this rank lack; -1 where terms are summed, which has another bound. */
int64_t lacking_bytes(const exchange *x);
/* The same for its places, on which processes share their boxes: bytes that the rank must receive. */
int64_t least_bytes(const exchange *x);
/* Whether the messages of all ranks may be bundled: none that is small is a view, goes in rounds, or goes to a shard
 * that is cleared first. */
bool is_small(const exchange *x);
/* exchange_collective.c: whether each target process has a GPU of its own; the position in the target mesh of the only
 * process that has elements, all of them, or -1. */
bool is_on_gpus(const exchange *x);
int find_root(const exchange *x);
void add_collectives(exchange *x, const collective_choice *found);

/* exchange_target.c: makes the shards of the target distributed value, sets its regions, and clears pieces that get no
 * value. */
void make_targets(exchange *x);

/* exchange_lend.c: a message that lies in a region of a shard; its orders against other uses of the region. */
plan_region message_view(exchange *x, int place, const plan_region *of);
void lend_to_sends(exchange *x, int level, int place, const plan_region *region, const plan_region *view);
void lend_to_receive(exchange *x, int level, int place, const plan_region *region, const plan_region *view);

/* exchange_merge.c: orders become one step before messages are put in rounds, and copies behind that. */
void merge_loans(exchange *x);
void merge_copies(exchange *x);

/* staging.c: lets message buffers that exceed the staging buffer share its memory, in rounds. */
void staging_rounds(exchange *x);
int64_t staging_bytes(const partition *q);

/* Appends the steps to the plan; number: of the exchange in the plan. */
void emit_phases(exchange *x, int number);

#endif
