/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a target for all ranks of a machine table, as tasks makes them, without a context. It runs nothing. */
#ifndef TARGET_PLANS_H
#define TARGET_PLANS_H

#include "partition.h"

typedef struct target_plans {
    const trama_program *program; /* neither it nor the target is owned */
    const trama_target *target;
    plan_options options; /* trama_config's defaults */
    int64_t nominal;      /* of TRAMA_ANY in completion */
    machine *machine;
    process_map *map; /* by order */
    layouts l;
    bool *needed, *kept, *leaf; /* [node], [value], [value] */
    bool *computed;             /* [node] those needed that run */
    int *leader;                /* [node] */
    trama_shape *shapes;        /* [value] */
    node_rules rules;
    trama_mesh *single;
} target_plans;

enum { TARGET_PLANS_NOMINAL = 1024 }; /* of TRAMA_ANY in completion, where nothing else is said */

/* Owns the machine table. Fed inputs have `any` for TRAMA_ANY. The next calls are those below, in their order. */
target_plans target_plans_new(const trama_program *program, const trama_target *target, machine *m, int64_t any);
void target_plans_free(target_plans *p);

/* Processes of the program: one more than the largest id in its meshes and its order. */
int target_plans_processes(const trama_program *program);

trama_status target_plans_complete(target_plans *p); /* layouts of the whole program */
void target_plans_map(target_plans *p);              /* processes to places by traffic, as trama_compile does */
trama_status target_plans_prepare(target_plans *p);  /* shapes and fusion */

/* Where the values are before the target runs, on a rank; and the rank's plan of the target. The caller destroys them.
 */
plan *target_plans_leaves(const target_plans *p, int rank);
plan *target_plans_plan(const target_plans *p, int rank, const plan *leaves);

#endif
