/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one rank in few bytes: how long each takes, and which steps wait for it. Made from a plan, which is not
 * needed afterwards. It knows no time and no other rank. */
#ifndef STEP_GRAPH_H
#define STEP_GRAPH_H

#include "cluster.h"
#include "plan.h"

/* Names of steps of a program, each once. */
typedef struct step_names {
    const trama_program *program;
    int *of_node; /* [nodes] 1 + the number; 0: not yet */
    ARRAY(char *) at;
} step_names;

step_names step_names_new(const trama_program *program);
void step_names_free(step_names *names);
int step_name_number(step_names *names, const char *name);

typedef struct graph_step {
    float seconds; /* of a core or GPU that it has to itself, with the machine's `task`; of a message without copies,
                      until its ends are matched; of an order 0 */
    float flops;
    int priority;
    int next, again;  /* where the steps that wait for it begin in graph->next: those of its run, and of the next run */
    int waits, later; /* for so many steps of its run, and of the run before */
    int message;      /* of a send or receive, in the simulation; -1 */
    short name;       /* a number of step_names */
    short worker;     /* of the rank; -1: any of its place, and none for an order */
    short place;      /* of the rank */
    unsigned char kind;
    bool rendezvous;
} graph_step;

typedef struct step_graph {
    int n;
    graph_step *steps; /* [n + 1]; the last one ends `next` */
    int *next;
    int64_t memory, buffers, live; /* bytes, as trama_rehearsal_report has them, without further inputs in flight */
    int64_t inputs;                /* bytes of inputs that are fed for each run */
    double submission;             /* seconds of the submitting thread for a run's steps */
} step_graph;

/* A send or receive of the plan, for matching. */
typedef struct graph_message {
    int step, peer;
    int64_t tag, bytes;
    int span;  /* plan_step.span */
    int value; /* of which it carries a part */
} graph_message;
typedef ARRAY(graph_message) graph_messages;

/* The facts of the steps of a rank that do not stand in its plan. */
typedef struct graph_source {
    const plan *plan, *leaves;
    const machine *machine;
    const cluster_kind *kind;
    step_names *names;
    bool repeats; /* several runs, so that steps wait for those of the run before */
} graph_source;

/* The rank's number of a place's worker; -1 for lane -1. */
int graph_worker(const graph_source *source, int place, int lane);

/* Adds the rank's messages to `messages`; step->message is its number there. */
step_graph step_graph_new(const graph_source *source, graph_messages *messages);
void step_graph_free(step_graph *g);

#endif
