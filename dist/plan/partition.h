/* SPDX-License-Identifier: Apache-2.0 */
/* Partition: a completed program becomes the plan of one rank. Ops become compute steps over boxes, changes of layout
 * become exchanges; every rank walks the same ops and keeps its own steps. */
#ifndef PARTITION_H
#define PARTITION_H

#include "plan.h"

/* What a plan is made from. All of it outlives the partition, none of it is owned. */
typedef struct plan_source {
    const trama_program *program;
    const layouts *l;
    const trama_shape *shapes; /* [value id] concrete */
    const trama_rule *rules;   /* [node id] resolved; only of nodes that run */
    const process_map *map;
    const machine *machine;
    plan_options options;
    int rank;
} plan_source;

typedef struct partition partition;

partition *partition_begin(const plan_source *source);

/* The value's distributed value comes from another plan, which keeps it as its value number `as`. */
void partition_import(partition *q, int value, const plan *other, int as);

/* The plan runs behind another one of the same program: what both import is where that one left it. */
void partition_follow(partition *q, const plan *before);

/* The value is fed: its shards in its own layout. */
void partition_input(partition *q, int value);

/* The value lies in memory of hosts, as they state it: a shard for each box. user_boxes outlives the partition. */
void partition_user_boxes(partition *q, int value, const box_index *user_boxes);

/* A value in a layout, where each of its boxes lies in a user box of the same rank, and on no GPU: nothing is copied.
 * False, and nothing done, where one does not; equal on all ranks. */
bool partition_inside(partition *q, int user_boxes, int value, const trama_mesh *mesh, const trama_layout *layout);

/* The distributed value that was made last is the value's own from now on. */
void partition_prefer_last(partition *q, int value);

/* The content of one value into where another one of its shape is. Neither is partial but the first by a layout. */
void partition_move(partition *q, int from, int to);

/* Emits the nodes: needed[node id], leader[node id] as fuse_program says; kept[value id]: will be read later. Nodes whose
 * results are all there (imported) are skipped. */
void partition_run(partition *q, const bool *needed, const int *leader, const bool *kept);

/* The value in any layout on any mesh; fresh: in buffers of its own. The distributed value is the plan's last. node -1: the user. */
const plan_dist_value *partition_reshard(partition *q, int value, const trama_mesh *mesh, const trama_layout *layout,
                                      int node, bool fresh);

/* Numbers the messages and gives the plan to the caller. */
plan *partition_end(partition **q);

#endif
