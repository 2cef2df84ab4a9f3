/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of partition: partition.c, pieces.c, compute.c, copy_on_overwrite.c, halo.c, heterogeneous.c,
 * turns.c, and those in finish; and by room reshard, whose files make one exchange. */
#ifndef PARTITION_INTERNAL_H
#define PARTITION_INTERNAL_H

#include "partition.h"

enum { OWN_BUCKET = 1 << 20 }; /* buckets from here on are of one exchange: its own messages alone are bundled */
enum { MAX_TILES = 8 };        /* of a shard that is cut as messages arrive or leave, and not as it is computed */

/* The positions of a mesh that lie on this rank's places. */
typedef struct local_positions {
    const trama_mesh *mesh;
    ARRAY(int) at;
} local_positions;

/* The replicas of results that are computed; see heterogeneous.c. */
typedef struct chosen {
    const trama_mesh *mesh;
    unsigned axes;              /* along which the replicas lie */
    const unsigned char *among; /* mask of the results */
    const unsigned char *mask;  /* NULL: all of them */
} chosen;

struct partition {
    plan_source s;
    plan *p;
    int *bucket; /* [value id] exchanges of ends that it needs, one behind the other; NULL outside partition_run */
    int *read;   /* [value id] exchanges of ends that the readers of its buffer so far need; NULL likewise */
    bool *ends;  /* [value id] only updates are computed from it; NULL likewise */
    int next;    /* bucket of the exchanges that are made now; -1: their messages are not bundled */
    int hops;    /* exchanges made in it so far: each may need the one before */
    bool flat;   /* all places have the same distance from each other */
    int kinds;   /* of places, numbered from 0 */
    ARRAY(chosen) choices;
    op_layouts **op; /* [node id] layouts of a node that only some holders of its results compute; NULL: as completed */
    ARRAY(local_positions) locals;
    int *seen, stamp; /* [n_places] scratch of places_of */
    hash_table
        by_shard; /* copy_on_overwrite.c: values whose pieces lie in a shard, of the first `entered` dist_values */
    int entered;
};

const local_positions *partition_locals(partition *q, const trama_mesh *mesh);

static inline int place_of(const partition *q, const trama_mesh *mesh, int position)
{
    return map_place(q->s.map, mesh->ids[position]);
}
static inline bool is_mine(const partition *q, int place)
{
    return q->s.machine->places[place].rank == q->s.rank;
}

/* The layouts that an op computes on. */
static inline const op_layouts *layouts_of(const partition *q, int node)
{
    return q->op && q->op[node] ? q->op[node] : q->s.l->op[node];
}

/* Whether the op updates a state in another layout than the one in which the state rests. */
static inline bool updates_apart(const partition *q, const trama_node *node, int result)
{
    return node_updates(node, result) &&
           !trama_layout_equal(&layouts_of(q, node->id)->out[result], &q->s.l->value[node->out[result]->id]);
}

box partition_whole(const partition *q, int value);

/* The term that a position holds in a layout: its coordinate along the partial axes. */
int term_of(const trama_mesh *mesh, const trama_layout *layout, int position);

/* The distinct (place, box, term) of a layout on this rank, in the order of their first positions; of the regions only
 * the boxes are set. */
void partition_pieces(partition *q, const trama_mesh *mesh, const trama_layout *layout, const box *whole,
                      plan_dist_value *dist_value);

/* [value id] States of which a process holds `early_bytes`: their gradients should not live long. The caller frees
 * it. */
bool *partition_large_states(const partition *q);

/* Pieces of the distributed value on a place. */
int pieces_on(const plan_dist_value *h, int place);

/* The most tiles of a shard: those of its place, divided by the `pieces` there. */
int64_t partition_most_tiles(const partition *q, int place, int pieces);

/* The tiles that bytes or flops are worth, by the grain; at most partition_most_tiles. */
typedef struct plan_worth {
    double bytes, flops;
} plan_worth;
int partition_parts(const partition *q, int place, int pieces, plan_worth worth);

/* Cuts a shard along its longest dim into as many tiles as it is worth. */
void partition_cut(const partition *q, const box *b, trama_dtype dtype, int place, int pieces, int *cut_dim,
                   int *cut_parts);

/* The number of parts into which a sum is cut, by the bytes of one term or operand. Each part is a task of its own. */
int partition_sum_tiles(const partition *q, int64_t bytes);

/* The least bytes of the operands of a sum that are worth a task, where it becomes several. */
int64_t partition_sum_task(const partition *q);

/* The product of the extents of a dim's factors without the leading one. */
int64_t cut_minor_extent(const trama_rule *rule, const rule_dim *dim, int leading);

/* The factor along which the rule lets tiles be cut that are cut along a dim of a result: it may be split, and leads
 * wherever it stands in each result. A result without it would be a sum over tiles. -1: none. */
int cut_factor(const trama_rule *rule, int t, int dim);

/* The dim of a result along which its box is cut: one with room for all parts, with equal work in them, and the longest
 * of these. -1: the rule lets none be cut. */
int cut_dim_of(const trama_rule *rule, int t, const box *b, int parts);

/* Adds a shard. On a GPU it is one tile for any cut_parts. */
int partition_shard(partition *q, shard_source source, int value, int place, const box *b, int cut_dim, int cut_parts);

/* The worker of a place that runs its steps by default: 0 on a GPU, which has one; -1: any. */
static inline int lane_at(const partition *q, int place)
{
    return plan_on_gpu(q->p, place) ? 0 : -1;
}

/* A step with its operands, appended to the plan. */
plan_step *partition_step(partition *q, step_kind kind, int place, int n, const plan_operand *operands);

/* The access that writes a region: ACCESS_WRITE for whole tiles, ACCESS_UPDATE for a part of a tile, whose rest stays;
 * ACCESS_NONE in an internal shard. */
step_access write_access(const plan *p, const plan_region *r);

plan_dist_value *find_dist_value(plan *p, int value, const trama_mesh *mesh, const trama_layout *layout);

/* The piece of a distributed value with this place, box and term; NULL. */
const plan_local_box *find_piece(const plan_dist_value *h, int place, const box *b, int term);

/* The order in which partition_run walks the nodes, and what is read of their results. */
typedef struct partition_wish {
    const bool *kept;
    const int *turn;          /* [node id] of its group, as group_order has it */
    const int64_t *last_read; /* [value id] the order (read_order) of the last node that reads it; -1: none does */
} partition_wish;

/* Where a node stands among those that run: groups one behind the other, then the nodes of a group. */
static inline int64_t read_order(const int *turn, int node)
{
    return (int64_t)turn[node] << 32 | node;
}

/* copy_on_overwrite.c: copies values that an updating node overwrites though they are read later. install_old_copies
 * comes behind the node's steps. */
typedef struct old_copy {
    int original, copy; /* distributed values */
} old_copy;
typedef ARRAY(old_copy) old_copies;
void copy_old_values(partition *q, const partition_wish *wish, const trama_node *node, old_copies *g);
void install_old_copies(partition *q, old_copies *g);

/* A group of nodes that run as one task a tile. */
typedef struct compute_group {
    partition *q;
    int leader;
    const trama_mesh *mesh;
    ARRAY(const trama_node *) nodes;
    plan_dist_value halos[TRAMA_MAX_OPERANDS]; /* halo.c: of the first node's operands */
} compute_group;

/* factor_ranges.c: offset and extent of each factor for one step. */
typedef struct factor_ranges {
    int64_t lo[RULE_MAX_FACTORS], n[RULE_MAX_FACTORS];
} factor_ranges;
/* Of a node for one box of a result, tensor t of its rule, on the process at a position; and for a box of result 0. */
factor_ranges factor_ranges_of(const compute_group *g, const trama_node *node, int position, int t, const box *result);
factor_ranges factor_ranges_of_result(const compute_group *g, const trama_node *node, int position, const box *result);
/* The box of tensor t, with its neighbours; and the points, as work counts them. */
box factor_box(const trama_rule *rule, int t, const factor_ranges *r, const box *whole);
double factor_points(const trama_rule *rule, const factor_ranges *r);

/* compute.c: the distributed values and shards of the group's results (internal[value id]: used by the group alone),
 * then its steps. */
void compute_results(compute_group *g, const bool *internal);
void compute_tiles(compute_group *g);
/* The piece of operand t, in the layout in which the op reads it, on the process at a position. */
const plan_local_box *compute_operand(const compute_group *g, const trama_node *node, int t, int position);
/* The box of operand t of the first node that a box of its result needs. */
box compute_operand_box(const compute_group *g, int t, int position, const box *result);

/* cut.c: the number of parts in which a piece's op sums a factor, which is set: where a small result comes of a large
 * operand, the parts are tasks of their own. 1: all at once. Sizes alone decide, so that any number of workers gives
 * the same bits. */
int summed_parts(const compute_group *g, const plan_local_box *piece, int *factor);

/* turns.c: an op that takes the parts of a factor in turn, since an operand arrives in tiles of them. */
typedef struct in_turns {
    int factor, parts;
    int shard, dim; /* of the operand that arrives; its dim with the factor */
    int first;      /* the tile that is taken first; the others follow downwards, and go on at the other end */
} in_turns;
/* Whether the group's op on the process at a position does so for a box of its first result. */
bool turns_find(const compute_group *g, int position, const box *result, in_turns *found);
/* Cuts a piece of a result, tensor t of the rule, as the parts come, so that each can be sent behind its turn. Returns
 * false and does nothing where the result lacks the factor. */
bool turns_cut(const compute_group *g, const plan_local_box *piece, int t, int *dim, int *parts);
/* The part of the factor that is taken as number i. */
void turns_part(const compute_group *g, const in_turns *of, int i, int64_t *lo, int64_t *n);

/* heterogeneous.c: masks the group's results where only some of their places compute them; then masks an operand from
 * outside that does not exist in its completed layout. */
void heterogeneous_choose(compute_group *g);
void heterogeneous_operand(compute_group *g, const trama_node *node, int t);
/* A layout without that mask. */
trama_layout heterogeneous_unmasked(const partition *q, const trama_layout *layout);

/* fetch.c: moves boxes of a value, or of its terms, from a distributed value into buffers of their own. wanted: the
 * boxes of all ranks, also beyond the ends of the tensor, which goes on at its other end; it is sorted. fetched: this
 * rank's boxes, whose pieces the caller frees. */
void partition_fetch(partition *q, int source, box_index *wanted, int node, plan_dist_value *fetched);

/* halo.c: whether the first node reads beyond the ranges of its factors. */
bool halo_reaches(const compute_group *g);
/* Cuts a box of the first node's result into parts. The first part needs no more of the operands than the process's own
 * boxes. Returns the number of parts, some of which may be empty. */
enum { MOST_PARTS = 1 + 2 * TRAMA_MAX_NDIM };
int halo_parts(const compute_group *g, int position, const box *result, box *parts);
/* Makes and fills buffers with the boxes that the other parts need. */
void halo_fetch(compute_group *g);
void halo_free(compute_group *g);
/* The buffer that has a box of an operand on a place. */
const plan_local_box *halo_find(const compute_group *g, int t, int place, int term, const box *b);

/* finish/fuse_sums.c: lets the steps that read a sum make it, where they read disjoint parts of it and its value is not
 * kept. */
void merge_sums(partition *q, const bool *kept);

/* finish/aliases.c: drops the steps that only reshape, transpose or cut out a value that is not kept, where its readers
 * find the elements in place. */
void read_in_place(partition *q, const bool *kept);

/* finish/fuse_calls.c: marks each call of a step with the calls behind it that are done with it as one. */
void fuse_calls(partition *q);

/* finish/bundles.c: bundles small messages of exchanges that do not need each other's results. */
void bundle_messages(partition *q);

/* finish/messages.c: numbers all messages. */
void number_messages(plan *p);

/* memory/order_chains.c: says which steps that only order others run on a worker. */
void bound_order_chains(plan *p);

/* memory/spans.c: gives shards that are not used at the same time one buffer, and counts the plan's bytes. */
void share_memory(partition *q, const bool *kept);

/* reshard.c: makes a distributed value, the plan's last, from another one of the same value. */
void reshard_dist_value(partition *q, int source, const trama_mesh *mesh, const trama_layout *layout, int node,
                        bool fresh);
/* The same into a distributed value that has its shards. */
void reshard_into(partition *q, int source, int target, int node);

#endif
