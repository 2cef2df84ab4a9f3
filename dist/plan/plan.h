/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: for one rank, the ordered list of steps over shards that a part of a program becomes. Plain data, printable;
 * it refers to values and nodes of its program by number. */
#ifndef PLAN_H
#define PLAN_H

#include "box_index.h"
#include "collective_choice.h"
#include "complete.h"
#include "fused.h"
#include "hash_table.h"
#include "machine.h"
#include "map.h"

/* The options of planning that a user may set, and facts about GPUs. */
typedef struct plan_options {
    int max_tiles;       /* the most tiles of an op on a place; 0: as many as the place has workers */
    int64_t grain_flops; /* least work worth one task */
    int64_t grain_bytes;
    bool no_fusion;        /* one task per op, for comparisons */
    int64_t sum_tile;      /* least bytes of the part of a sum that is a task of its own; 0: SUM_TILE, SUM_TASK */
    int64_t staging_bytes; /* bytes of the staging buffer: message buffers of one change of layout on a place; 0:
                              STAGING_BYTES */
    int64_t arena_bytes;   /* least bytes of the buffers of a place that share an arena; 0: ARENA_BYTES */
    int64_t early_bytes;   /* least bytes of a state, of a process, whose updates stand behind their gradients; 0:
                              EARLY_BYTES */
    int64_t in_place;      /* least elements that must follow each other where an operand is read in place instead of
                              a copy; 0: LEAST_RUN */
    bool collectives;      /* GPUs can run collectives: changes of layout among them use these where they can */
    bool nccl_sums;        /* and sum in them, in any order: replicas are equal, but other meshes give other bits */
} plan_options;

/* The source of a shard's buffer. */
typedef enum {
    SHARD_OWN,      /* made with the plan */
    SHARD_INTERNAL, /* used by the calls of one step only, so no step depends on it: made with the plan on a GPU, and
                       in scratch memory on a CPU */
    SHARD_MESSAGE,  /* made with the plan: one message, or elements for another memory of the rank; its box in row-major
                       order */
    SHARD_VIEW,     /* its box in place in another shard: one message that needs no buffer */
    SHARD_ALIAS,    /* elements of another shard where they lie, in other dims: plan_alias_of */
    SHARD_WINDOW,   /* made with the plan: the staging buffer, 1-d */
    SHARD_BUNDLE,   /* made with the plan: messages that are sent as one, or parts of a collective, 1-d; a step that
                       uses a part uses the bundle */
    SHARD_ARENA, /* made with the plan: bytes of a place, 1-d, in which shards lie that are not used at the same time */
    SHARD_TOKEN, /* of a place, for all plans: no content; it orders the place's collectives one after the other */
    SHARD_INPUT, /* fed before the run */
    SHARD_HOST,  /* in memory that the host program owns */
    SHARD_IMPORT /* of another plan: plan->imports[import] */
} shard_source;

/* The part of a value that one place holds: a box of it, or of one of its terms. */
typedef struct plan_shard {
    shard_source source;
    int value; /* id; of a message: the value that it carries a part of */
    int place;
    trama_dtype dtype;
    box box;
    int cut_dim, cut_parts; /* tiles: balanced pieces of the box along a dim; cut_parts 1: one tile, as on all GPUs */
    bool summed;            /* a sum with large tiles; the terms of each tile arrive on their own */
    bool arrives;           /* each tile is a box of another distributed value, and arrives on its own */
    bool host;              /* in memory of the host program, also on a GPU's place where the rank has no other place */
    bool shared;            /* the other ranks of the node can read its memory */
    bool strided;           /* of the host: its elements may lie in any order, so messages are packed */
    int import;             /* its number in plan->imports, or of an alias in plan->aliases */
    int within;   /* view, alias: the shard it lies in; message: the staging buffer or bundle it lies in; others: their
                     arena; -1: none */
    int64_t at;   /* message in a staging buffer or bundle: its first element there; in an arena: the first byte */
    int reuses;   /* own: the shard, used no more, whose buffer it takes over, and which takes over none; -1 */
    int exchange; /* message in a bundle: the exchange that it belongs to */
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
    int position; /* in the mesh, of one process that holds it */
    plan_region region;
} plan_local_box;

/* A value in one layout, as far as this rank holds it. */
typedef struct plan_dist_value {
    int value;
    const trama_mesh *mesh;
    trama_layout layout;
    const box_index
        *user_boxes; /* the boxes of all ranks if no layout gives them; mesh is NULL then. Not owned, for planning */
    bool inside;     /* on some rank a piece may lie in a larger shard; all ranks say the same */
    bool moved;      /* made by an exchange for a reader */
    ARRAY(plan_local_box) pieces;
} plan_dist_value;

/* STEP_ORDER does no work. It has operands that share memory: uses of some before it come before uses of others behind
 * it. It runs on no worker, but for some in long chains of them (plan_step.on_worker). */
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

/* The places, each a GPU, that are the members of collectives, in the order of members. */
typedef struct plan_group {
    int n, *places; /* [n] */
} plan_group;

/* The part of one member in a collective of its group; count as collective_form says. */
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
    bool goes_on; /* from the call of another step: the results that lack the factor taken in turn hold its results */
    fused_run fused; /* with calls behind it in its step */
} plan_call;

typedef struct plan_step {
    step_kind kind;
    int place;
    int lane;                /* the worker of the place that it should run on; -1: any */
    bool on_worker;          /* STEP_ORDER: it runs on a worker */
    int operand, n_operands; /* in plan->operands. copy: pairs of destination and source; reduce: destination, sources
                                in order; fill: destination; send, receive: the buffer; collective: destination, source,
                                the token of the place; a broadcast has only one of the first two */
    int call, n_calls;       /* compute: in plan->calls */
    int sum, n_terms; /* compute: before its calls, operand `sum` is reduced from its last n_terms operands; n_terms 0:
                         not */
    trama_reduce reduce; /* reduce, collective, or a compute step's sum: how terms combine */
    double scale;        /* factor of that result; fill: the value */
    int peer;            /* send, receive: rank */
    int peer_place;
    int64_t tag; /* send, receive: number in the sorted list of its (sender, receiver) pair */
    plan_collective collective;
    int exchange; /* copy, reduce, fill, collective, send, receive, a compute step's sum: the exchange that it belongs
                     to, in plan->exchanges; -1: none */
    double flops;
    int exchanges_before; /* exchanges that there were when the step was made */
    /* send: at most so many exchanges may pass before its elements are written over; receive: so many are needed until
     * its readers are done, at least 1. Where these are not more, the message may be a loan (loan_spans.c). 0: it is
     * none. */
    int span;
    int priority; /* of the ready steps that with the highest goes first; see priority.h */
    struct {      /* send, receive: both sides sort by it */
        int level, term;
        box box;
    } key;
} plan_step;

/* One change of layout, with this rank's part of its cost summary. Bytes between places go from place to place; bytes
 * between processes are those that processes of this rank lack, as if each had its own memory. */
typedef struct plan_exchange {
    int value;
    const trama_mesh *from_mesh, *to_mesh;
    trama_layout from, to;
    int64_t received, sent;                   /* bytes between places, of this rank */
    int64_t together_received, together_sent; /* of these in collectives: the least that members need */
    int64_t bound;                            /* bytes that the processes of this rank lack; -1 with partial values */
    int64_t least;      /* the least bytes that this rank must receive: as bound, but processes of one place share their
                           boxes; -1 with partial values */
    int64_t buffers;    /* bytes of message buffers of this rank */
    int messages;       /* received and sent; a bundle counts in the exchange of its first message */
    int bundled;        /* messages received and sent as parts of bundles */
    int collectives;    /* parts of this rank's places in collectives */
    int bucket;         /* exchanges of one bucket do not need each other's results; -1: no bucket */
    bool heterogeneous; /* its source was computed on places of one kind only */
    bool rendezvous;    /* large messages wait for their receivers, which then need no memory for early ones */
    int node;           /* the op that asked for it; -1: the user */
} plan_exchange;

/* Bytes of the buffers that a plan makes on a place, and the most that its values and messages need at a time: those
 * that one step or another will read. Values that are kept for other plans need theirs throughout. */
typedef struct plan_footprint {
    int64_t bytes, live;
    int64_t scratch; /* of these the scratch memory of each worker */
} plan_footprint;

typedef struct plan_import {
    int value; /* the value whose distributed value it was taken from */
    int piece; /* its index there */
    int shard; /* the shard in the other plan */
} plan_import;

/* Where a box lies in a row-major buffer, in elements: its first one, and those along each dim. */
typedef struct plan_alias {
    int64_t at;
    int64_t stride[TRAMA_MAX_NDIM];
} plan_alias;

typedef struct plan {
    int rank;
    ARRAY(plan_shard) shards;
    ARRAY(plan_alias) aliases;
    ARRAY(plan_operand) operands;
    ARRAY(plan_call) calls;
    ARRAY(plan_step) steps;
    ARRAY(plan_dist_value) dist_values; /* imported ones, and all that were made; see plan_find */
    hash_table by_value;                /* numbers of dist_values; see plan_next_of */
    ARRAY(plan_exchange) exchanges;
    ARRAY(plan_import) imports;
    ARRAY(trama_mesh *) meshes;      /* made for routes */
    ARRAY(bool) gpus;                /* [places] */
    ARRAY(plan_footprint) footprint; /* [places]; empty where no node runs */
    ARRAY(unsigned char *) masks;    /* made for layouts; see heterogeneous.c */
    ARRAY(plan_group) groups;        /* of all ranks, the same on each */
} plan;

void plan_destroy(plan **p);
void plan_trim(plan *p); /* gives spare room of its arrays back */

/* Adds a distributed value behind all others, and owns its pieces. It returns their address, which moves. */
plan_dist_value *plan_add(plan *p, plan_dist_value h);

/* Removes one whose pieces another has, and numbers those behind it anew. */
void plan_remove(plan *p, int dist_value);

/* The numbers of the value's distributed values, one a call, in the order of adding; -1: there is none any more. *probe
 * is 0 before the first call. */
int plan_next_of(const plan *p, int value, int *probe);

/* The value's first distributed value, which has its completed layout; NULL where the plan has none. */
const plan_dist_value *plan_find(const plan *p, int value);

/* Makes plan_find find distributed value number `dist_value` of the value. */
void plan_prefer(plan *p, int value, int dist_value);

/* Whether two shards have the same place, element type, extents and cut, so that one could lie where the other does. */
bool plan_has_form_of(const plan_shard *a, const plan_shard *b);

static inline int64_t plan_shard_bytes(const plan_shard *s)
{
    return box_count(&s->box) * (int64_t)trama_dtype_size(s->dtype);
}

static inline const plan_alias *plan_alias_of(const plan *p, const plan_shard *s)
{
    return &p->aliases.at[s->import];
}
plan_alias plan_dense(const box *b); /* of the box in a buffer of its own */

/* Tile i of a shard, as a box; and the range of tiles that a box meets. */
box plan_tile(const plan_shard *s, int i);
void plan_tiles(const plan_shard *s, const box *b, int *first, int *last);

/* Whether a place is a GPU, with a memory of its own. Each of its shards is one tile, in which no message lies, and
 * steps read shards of other memories by whole tiles. */
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

static inline int64_t plan_region_bytes(const plan *p, const plan_region *r)
{
    return box_count(&r->box) * (int64_t)trama_dtype_size(p->shards.at[r->shard].dtype);
}

static inline int64_t plan_message_bytes(const plan *p, const plan_step *s)
{
    return plan_region_bytes(p, &plan_step_operand(p, s, 0)->region);
}

/* Whether a message is large enough to be a loan, and goes between cores of one node whose ranks read each other's
 * memory: sender and receiver say the same. */
bool plan_may_lend(const plan *p, const machine *m, const plan_step *s);

/* Whether a message is a loan, by the spans of its send and of its receive. */
static inline bool plan_is_loan(int64_t sent, int64_t received)
{
    return received && received <= sent;
}

/* Bytes that the place of a collective step receives from its group and sends to it, counted as in a ring. */
typedef struct plan_share {
    int64_t received, sent;
} plan_share;
plan_share plan_share_of(const plan *p, const plan_step *s);

/* The member of the step's group that its place is; -1: none. */
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

/* Whether a shard has no buffer, but scratch memory in each step that uses it. There it is `at` bytes from the
 * beginning; the box is that of the whole value in the step, row-major. bytes: of all values of a step. */
static inline bool plan_in_scratch(const plan *p, const plan_shard *s)
{
    return s->source == SHARD_INTERNAL && !plan_on_gpu(p, s->place);
}
typedef struct plan_scratch {
    int64_t at;
    box box;
} plan_scratch;
plan_scratch plan_scratch_of(const plan *p, const plan_step *s, int operand);
int64_t plan_scratch_bytes(const plan *p, const plan_step *s);

/* Whether the shard lies in an arena, at the byte `at`. */
static inline bool plan_in_arena(const plan *p, const plan_shard *s)
{
    return s->within >= 0 && p->shards.at[s->within].source == SHARD_ARENA;
}

/* The shard whose buffer a shard lies in, arenas aside. */
int plan_buffer_of(const plan *p, int shard);

/* Whether the step orders shards of an arena. Of shards that share a buffer it names the first. */
static inline bool plan_orders_arena(const plan_step *s)
{
    return s->kind == STEP_ORDER && s->exchange < 0;
}

/* The shard whose tiles a step uses when it uses `shard`: the bundle of a message in a bundle, the shard that an alias
 * lies in, else `shard`. */
static inline int plan_used_as(const plan *p, int shard)
{
    const plan_shard *s = &p->shards.at[shard];
    const bool other = s->source == SHARD_ALIAS || (s->within >= 0 && p->shards.at[s->within].source == SHARD_BUNDLE);
    return other ? s->within : shard;
}

/* Numbers for all tiles of a plan: those of a shard follow each other. Shards with one buffer have the same. */
typedef struct plan_tile_numbers {
    int n, *first; /* [shards] */
} plan_tile_numbers;
plan_tile_numbers plan_number_tiles(const plan *p); /* the caller frees first */

/* The tiles, first to last, that order the users of an operand; last < first: none, since the shard is internal. */
typedef struct plan_range {
    int first, last;
} plan_range;
plan_range plan_tiles_used(const plan *p, const plan_tile_numbers *numbers, const plan_operand *o);

/* The tile that is exactly this box; -1: none. */
int plan_exact_tile(const plan_shard *s, const box *b);

/* Sums over the exchanges. */
typedef struct plan_totals {
    int64_t received, sent, together_received, together_sent, least;
    int messages, collectives, steps, computes;
} plan_totals;
plan_totals plan_count(const plan *p);

/* The op of a step that only copies elements to other places (reshape, transpose, window, stride); NULL: the step does
 * more. And the number of such steps. */
const trama_node *plan_copying_node(const plan *p, const trama_program *program, const plan_step *s);
int plan_count_copies(const plan *p, const trama_program *program);

/* All steps, one a line; or a table of exchanges and totals. */
void plan_describe(const plan *p, const trama_program *program, text *out);
void plan_summary(const plan *p, const trama_program *program, text *out);

#endif
