/* SPDX-License-Identifier: Apache-2.0 */
/* Partition: a completed program becomes the plan of one rank. Ops become compute steps over boxes, changes of layout
 * become exchanges; every rank walks the same ops and keeps its own steps. */
#ifndef PARTITION_H
#define PARTITION_H

#include "plan.h"

/* The input of a plan. All of it outlives the partition, none of it is owned. */
typedef struct plan_source {
    const trama_program *program;
    const layouts *l;
    const trama_shape *shapes;      /* [value id] concrete */
    const trama_rule *const *rules; /* [node id] resolved; only of nodes that run */
    const process_map *map;
    const machine *machine;
    plan_options options;
    int rank;
} plan_source;

typedef struct partition partition;

partition *partition_begin(const plan_source *source);

/* Takes the value's distributed value from another plan, which keeps it as its value number `as`. */
void partition_import(partition *q, int value, const plan *other, int as);

/* For a plan that runs behind another one of the same program: shards that both import begin on the worker that wrote
 * them last in that one. */
void partition_follow(partition *q, const plan *before);

/* Makes the shards of a value that is fed, in its own layout. */
void partition_input(partition *q, int value);

/* Makes a shard for each box of a value in memory that the host program states. user_boxes outlives the partition. */
void partition_user_boxes(partition *q, int value, const box_index *user_boxes);

/* Gives a value a layout without a copy, where each of its boxes lies in a box of the value `user_boxes` on the same
 * rank, and on no GPU. Returns false and does nothing where a box does not; all ranks return the same. */
bool partition_inside(partition *q, int user_boxes, int value, const trama_mesh *mesh, const trama_layout *layout);

/* Makes the plan's last distributed value the value's own. */
void partition_prefer_last(partition *q, int value);

/* Copies `from` into the buffers of `to`, which has the same shape. `to` is not partial; `from` may be, by its
 * layout. */
void partition_move(partition *q, int from, int to);

/* Emits the steps of the nodes: needed[node id], leader[node id] as fuse_program says; kept[value id]: will be read
 * later. Nodes whose results are all imported are skipped. */
void partition_run(partition *q, const bool *needed, const int *leader, const bool *kept);

/* A distributed value of the value in any layout on any mesh: one that exists, else a new one, which is the plan's
 * last. fresh: always a new one, in buffers of its own. node: the op that asks for it; -1: the user. */
const plan_dist_value *partition_reshard(partition *q, int value, const trama_mesh *mesh, const trama_layout *layout,
                                         int node, bool fresh);

/* Numbers the messages, sets priorities, trims the plan's arrays, which moves their elements, and gives the plan to the
 * caller. */
plan *partition_end(partition **q);

#endif
