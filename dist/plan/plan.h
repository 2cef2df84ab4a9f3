/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: for one rank, the ordered list of steps over shards that a part of a program becomes. Plain data, printable;
 * it refers to values and nodes of its program by number. */
#ifndef PLAN_H
#define PLAN_H

#include "box_index.h"
#include "collective_choice.h"
#include "complete.h"
#include "machine.h"
#include "map.h"

/* How big tasks are, and the rest that a user may set. */
typedef struct plan_options {
    int max_tiles;       /* into how many tiles an op is cut at most on a place; 0: the place's workers */
    int64_t grain_flops; /* least work worth one task */
    int64_t grain_bytes;
    bool no_fusion;        /* one task an op: for comparisons */
    int64_t sum_tile;      /* least bytes of what is summed as a task of its own; 0: SUM_TILE */
    int64_t staging_bytes; /* bytes of message buffers that one change of layout has on a place at most; 0:
                               STAGING_BYTES */
    bool collectives; /* GPUs can exchange together: changes of layout among them are collectives where they can be */
    bool nccl_sums;   /* and sum in them, in whatever order: replicas are equal, other meshes give other bits */
} plan_options;

/* Where the buffer of a shard comes from. */
typedef enum {
    SHARD_OWN,      /* made with the plan */
    SHARD_INTERNAL, /* made with the plan, seen by the calls of one step only: no dependency stands on it */
    SHARD_MESSAGE,  /* made with the plan: one message, or what goes to another memory of the rank, its box in row-major
                       order */
    SHARD_VIEW,     /* its box where it lies in another shard: one message that needs no buffer */
    SHARD_WINDOW,   /* made with the plan: memory for messages, 1-d */
    SHARD_BUNDLE,   /* made with the plan: messages that are sent as one, or parts of a collective, 1-d; what is done
                       with them is done with it */
    SHARD_TOKEN,    /* of a place, in all plans: without content; its collectives go one after the other */
    SHARD_INPUT,    /* fed before the run */
    SHARD_HOST,     /* in memory that the host owns */
    SHARD_IMPORT    /* of another plan: plan->imports[import] */
} shard_source;

/* What one place holds of a value: a box of it, or of one term of it. */
typedef struct plan_shard {
    shard_source source;
    int value; /* id; for messages that of the value they carry part of */
    int place;
    trama_dtype dtype;
    box box;
    int cut_dim, cut_parts; /* tiles: balanced pieces of the box along a dim; cut_parts 1: one tile, as on all GPUs */
    bool summed;            /* large tiles, each the sum of terms that arrive on their own */
    bool host;              /* its memory is the host's: on a GPU's place too, where the rank has no other */
    bool strided;           /* of the host: its elements may lie in any order, so messages are packed */
    int import;
    int within;   /* view: the shard it lies in; message: the staging buffer or bundle it lies in, or -1 */
    int64_t at;   /* message in a staging buffer or bundle: its first element there */
    int exchange; /* message in a bundle: whose it is */
    int lane;     /* of the step that wrote its one tile last; 0 before, -1: any or several */
} plan_shard;

/* A box (global indices) of a shard. */
typedef struct plan_region {
    int shard;
    box box;
} plan_region;

/* One entry of a distributed value: the region that a place of this rank has for (box, term). */
typedef struct plan_local_box {
    int place, term;
    int position; /* of one process in the mesh that holds it */
    plan_region region;
} plan_local_box;

/* A value in one layout, as far as this rank holds it. */
typedef struct plan_dist_value {
    int value;
    const trama_mesh *mesh;
    trama_layout layout;
    const box_index
        *user_boxes; /* who holds what where no layout says it: mesh is NULL then. Not owned, for planning only */
    bool inside;     /* pieces may lie in larger shards, on whichever rank; all ranks say the same */
    bool moved;      /* made by an exchange for a reader */
    ARRAY(plan_local_box) pieces;
} plan_dist_value;

/* ORDER does nothing: what uses some of its operands comes before what uses others that lie in the same memory. */
typedef enum {
    STEP_COMPUTE,
    STEP_COPY,
    STEP_REDUCE,
    STEP_FILL,
    STEP_ORDER,
    STEP_COLLECTIVE,
    STEP_SEND,
    STEP_RECEIVE
} step_kind;
typedef enum { ACCESS_NONE, ACCESS_READ, ACCESS_WRITE, ACCESS_UPDATE } step_access; /* NONE: internal shards */

typedef struct plan_operand {
    plan_region region;
    step_access access;
} plan_operand;

/* Places that take part in collectives together, each of them a GPU; in the order of its members. */
typedef struct plan_group {
    int n, *places; /* [n] */
} plan_group;

/* What one member of a group does in a collective. n members; count elements. */
typedef struct plan_collective {
    collective_form form;
    int group, root; /* in plan->groups; member of it that broadcasts, else 0 */
    int64_t count;
    trama_dtype dtype;
} plan_collective;

/* One op of a compute step: which of the step's operands its operands and results are. */
typedef struct plan_call {
    int node;
    signed char in[TRAMA_MAX_OPERANDS]; /* -1: shape only */
    signed char out[TRAMA_MAX_OPERANDS];
} plan_call;

typedef struct plan_step {
    step_kind kind;
    int place;
    int lane;                /* the worker of the place that it should run on; -1: any */
    int operand, n_operands; /* in plan->operands. copy: destination, source, as many as there are; reduce: destination,
                                sources in order; fill: destination; send, receive: the buffer; collective:
                                destination, source, the token of the place; a broadcast has only one of the two */
    int call, n_calls;       /* compute: in plan->calls */
    int sum, n_terms; /* compute: before its calls, operand `sum` is reduced from its last n_terms operands; n_terms 0:
                         not */
    trama_reduce reduce; /* reduce, collective, or a compute step's sum: how; its result is scaled */
    double scale;        /* the same; fill: the value */
    int peer;            /* send, receive: rank */
    int peer_place;
    int64_t tag; /* send, receive: number in the sorted list of its (sender, receiver) pair */
    plan_collective collective;
    int exchange; /* copy, reduce, fill, collective, send, receive, a compute step's sum: the plan->exchanges they
                     belong to */
    double flops;
    int priority; /* of those that are ready the one with more goes first; see priority.h */
    struct {      /* send, receive: both sides sort by it */
        int level, term;
        box box;
    } key;
} plan_step;

/* One change of layout, with its cost summary as far as this rank is concerned. Bytes between places count what is sent
 * from place to place; bytes between processes what processes of this rank lack, as if each had its own memory. */
typedef struct plan_exchange {
    int value;
    const trama_mesh *from_mesh, *to_mesh;
    trama_layout from, to;
    int64_t received, sent;                   /* bytes between places, of this rank */
    int64_t together_received, together_sent; /* of these in collectives: what members at least need */
    int64_t bound; /* bytes that the processes of this rank lack, without partials; -1 with partials */
    int64_t least; /* bytes that this rank must receive at least: as bound, where processes of one place share what they
                      have; -1 with partials */
    int64_t buffers;    /* bytes of message buffers of this rank */
    int messages;       /* received and sent; a bundle counts where its first message does */
    int bundled;        /* received and sent as parts of bundles */
    int collectives;    /* that places of this rank take part in, each counted for each */
    int bucket;         /* exchanges of one bucket need nothing of each other; -1: on its own */
    bool heterogeneous; /* of what was computed on places of one kind, for those of others too */
    bool rendezvous;    /* large messages wait for their receivers, which then need no memory for early ones */
    int node;           /* the op that asked for it; -1: the user */
} plan_exchange;

typedef struct plan_import {
    int value; /* the value whose distributed value it was taken from */
    int piece; /* which piece of it */
    int shard; /* the shard in the other plan */
} plan_import;

typedef struct plan {
    int rank;
    ARRAY(plan_shard) shards;
    ARRAY(plan_operand) operands;
    ARRAY(plan_call) calls;
    ARRAY(plan_step) steps;
    ARRAY(plan_dist_value) dist_values; /* by value: what was asked to be kept; distributed values of imports too */
    ARRAY(plan_exchange) exchanges;
    ARRAY(plan_import) imports;
    ARRAY(trama_mesh *) meshes;   /* made for distributed values on the way */
    ARRAY(bool) gpus;             /* [places] */
    ARRAY(unsigned char *) masks; /* of layouts, made on the way */
    ARRAY(plan_group) groups;     /* of all ranks, the same on each */
} plan;

void plan_destroy(plan **p);

/* The value's distributed value in the layout it was completed to; NULL where the plan has none. */
const plan_dist_value *plan_find(const plan *p, int value);

/* Makes a distributed value of a value, by number, the one that plan_find finds. */
void plan_prefer(plan *p, int value, int dist_value);

/* Tile i of a shard, as a box; and the range of tiles that a box meets. */
box plan_tile(const plan_shard *s, int i);
void plan_tiles(const plan_shard *s, const box *b, int *first, int *last);

/* Whether a place is a GPU: each of its shards is one tile, and lies in a memory of its own. Messages lie in none of
 * them, and steps read shards of other memories by whole tiles. */
static inline bool plan_on_gpu(const plan *p, int place)
{
    return p->gpus.at[place];
}

/* Whether a step on a place gets a shard from another memory than the place's own. */
static inline bool plan_is_remote(const plan *p, int place, const plan_shard *s)
{
    return s->place != place && (plan_on_gpu(p, place) || plan_on_gpu(p, s->place));
}

/* Operand i of a step. */
static inline const plan_operand *plan_step_operand(const plan *p, const plan_step *s, int i)
{
    return &p->operands.at[s->operand + i];
}

/* Bytes that the place of a collective step gets from others of its group, and gives to others: as they go round in a
 * ring. */
typedef struct plan_share {
    int64_t received, sent;
} plan_share;
plan_share plan_share_of(const plan *p, const plan_step *s);

/* Which member of the step's group its place is; -1: none. */
int plan_member(const plan *p, const plan_step *s);

const char *collective_name(collective_form form);

/* The places that a message goes between. */
typedef struct plan_path {
    int from, to;
} plan_path;
static inline plan_path plan_path_of(const plan_step *s)
{
    return s->kind == STEP_SEND ? (plan_path){s->place, s->peer_place} : (plan_path){s->peer_place, s->place};
}

/* The shard whose tiles a step uses when it uses this one: of a message in a bundle the bundle, else itself. */
static inline int plan_used_as(const plan *p, int shard)
{
    int within = p->shards.at[shard].within;
    return within >= 0 && p->shards.at[within].source == SHARD_BUNDLE ? within : shard;
}

/* Numbers for all tiles of a plan: those of a shard follow each other. */
typedef struct plan_tile_numbers {
    int n, *first; /* [shards] */
} plan_tile_numbers;
plan_tile_numbers plan_number_tiles(const plan *p); /* the caller frees first */

/* The tiles, first to last, that order whoever uses the operand: none (last before first) where no tile stands for it.
 */
typedef struct plan_range {
    int first, last;
} plan_range;
plan_range plan_tiles_used(const plan *p, const plan_tile_numbers *numbers, const plan_operand *o);

/* The tile that is exactly this box; -1. */
int plan_exact_tile(const plan_shard *s, const box *b);

/* Sums over the exchanges. */
typedef struct plan_totals {
    int64_t received, sent, together_received, together_sent, least;
    int messages, collectives, steps, computes;
} plan_totals;
plan_totals plan_count(const plan *p);

/* All steps, one a line; or a table of exchanges and totals. */
void plan_describe(const plan *p, const trama_program *program, text *out);
void plan_summary(const plan *p, const trama_program *program, text *out);

#endif
