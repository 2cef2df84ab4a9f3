/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a target as tasks/run makes them, one process a rank, without a context. */
#ifndef TARGET_PLANS_H
#define TARGET_PLANS_H

#include "partition.h"

typedef struct target_plans {
    const trama_program *program; /* neither it nor the target is owned */
    const trama_target *target;
    plan_options options; /* trama_config's defaults */
    machine *machine;     /* uniform */
    process_map *map;     /* by order */
    layouts l;
    bool *needed, *kept, *leaf; /* [node], [value], [value] */
    int *leader;                /* [node] */
    trama_shape *shapes;        /* [value] */
    node_rules rules;
    trama_mesh *single;
} target_plans;

enum { TARGET_PLANS_NOMINAL = 1024 }; /* of TRAMA_ANY in completion */

/* Processes 0 .. processes-1; fed inputs have `any` for TRAMA_ANY. target_plans_complete is called next. */
target_plans target_plans_new(const trama_program *program, const trama_target *target, int processes, int64_t any);
void target_plans_free(target_plans *p);

void target_plans_complete(target_plans *p); /* layouts of the whole program */

/* Where the values are before the target runs, on a rank; and the rank's plan of the target. The caller destroys them.
 */
plan *target_plans_leaves(const target_plans *p, int rank);
plan *target_plans_plan(target_plans *p, int rank, const plan *leaves);

#endif
