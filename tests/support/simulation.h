/* SPDX-License-Identifier: Apache-2.0 */
/* A program on a machine of many ranks, planned as an executable plans it and interpreted:
 *
 *   complete -> map -> for each rank an initial plan: every state and constant is an input of it, every node without
 *   operands runs in it, and all of these are kept.
 *   target   -> for each rank a plan that imports those from the initial plan, takes the fed inputs that the target
 * needs as inputs, and runs the target's nodes, fused; the target's values are kept. read     -> for each rank a plan
 * that imports one value and reshards it.
 *
 * Any mistake of a plan ends the test with a message. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "dist_values.h"

typedef struct simulation simulation;

typedef struct simulation_options {
    plan_options plan;
    const int *order; /* permutation of the processes, or NULL */
    int64_t nominal;  /* of TRAMA_ANY in completion; 0: 64 */
    bool keep_all;    /* every value can be read */
    double error;     /* of a world */
    bool blind;       /* plans take all places to be of one kind */
} simulation_options;

/* Ranks of several places each, every place with as many workers. */
machine *simulation_machine(int ranks, int places, int workers);

/* Makes some of a machine's places GPUs, or CPUs of another kind: 0 none, 1 all GPUs, 2 a CPU and GPUs in each rank (of
 * one place each: in turn), 3 two kinds of CPUs, 4 two kinds of both. */
enum { MACHINE_VARIANTS = 5 };
void machine_vary(machine *m, int variant);

simulation *simulation_new(const trama_program *program, const machine *m, const simulation_options *options);
/* Of a target that merges over k micro-steps, where k is above 1; the program is changed by that. Runs are micro-steps
 * that begin and end a cycle, so all its ops run. */
simulation *simulation_of_cycle(trama_program *program, trama_target *target, int k, const machine *m,
                                const simulation_options *options);
void simulation_destroy(simulation **s);
void simulation_feed(simulation *s, const trama_value *input, const dense *data);
void simulation_run(simulation *s, const trama_target *target);
void simulation_write(simulation *s, const trama_value *state, const dense *data);

/* A kept value, gathered from its distributed values; the caller frees. */
dense simulation_value(simulation *s, const trama_value *value);
/* The reason why it cannot be gathered, say that replicas differ (the caller frees); NULL: it can. */
char *simulation_disagreement(simulation *s, const trama_value *value);

/* The same by a plan that reshards it, fresh or not, to a layout. Returns the bytes between ranks. */
traffic simulation_read(simulation *s, const trama_value *value, const trama_mesh *mesh, const trama_layout *layout,
                        bool fresh, dense *result);

/* Traffic of the last run, and a rank's plan in it; the apply plan is NULL where the run was no cycle. */
traffic simulation_traffic(const simulation *s);
const plan *simulation_plan(const simulation *s, int rank);
const plan *simulation_apply_plan(const simulation *s, int rank);

/* plan_verify of the plans of all ranks, with the program that they are of. */
trama_status simulation_verify(const simulation *s);
const layouts *simulation_layouts(const simulation *s);

#endif
