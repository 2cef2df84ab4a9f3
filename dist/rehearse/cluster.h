/* SPDX-License-Identifier: Apache-2.0 */
/* A described machine as data: kinds of nodes with their rates, nodes, the tree of switches. It knows no plan. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "machine.h"
#include "trama_rehearsal.h"

enum { CLUSTER_NAME = 32, RATE_MEMORY = -1, OWN_CORE_FOR_MESSAGES = 8 };

/* The device that a rate is of. */
typedef enum { RATE_OF_CORE, RATE_OF_GPU, RATE_OF_OP } rate_of;

typedef struct cluster_rate {
    rate_of of;
    char op[CLUSTER_NAME]; /* RATE_OF_OP */
    int what;              /* a trama_dtype: flop/s; RATE_MEMORY: B/s */
    double work, rate;     /* flop or bytes of the task that has the rate; 0: any */
} cluster_rate;

typedef struct cluster_kind {
    char name[CLUSTER_NAME];
    int cores, ranks, gpus;
    double task, submit, read, message;  /* seconds */
    double task_operand, submit_operand; /* seconds for each tile of a task's operands */
    double submit_run, submit_message;   /* seconds for each run; more for a message than for a task */
    double feed, pcie;                   /* B/s */
    double local, local_latency;
    double eager;                    /* bytes */
    double evict;                    /* bytes of a worker's memory, 0 where it is not described */
    double evict_task, evict_submit; /* times as long a task and a submission take with so many or more */
    double evict_message;
    double cache, cache_rate, far, far_rate; /* of a core: bytes, 0 where it is not described; B/s */
    double far_writes;                       /* B/s of what goes back to memory; 0: as far_rate */
    bool used;                               /* there are nodes of it */
    ARRAY(cluster_rate) rates;
} cluster_kind;

typedef struct cluster_switch {
    char name[CLUSTER_NAME];
    int parent; /* before it; -1: none */
    double bandwidth, latency;
} cluster_switch;

typedef struct cluster_node {
    int kind, parent; /* parent: a switch, -1 */
    int first_rank;
    double bandwidth, latency;
} cluster_node;

struct trama_cluster {
    ARRAY(cluster_kind) kinds;
    ARRAY(cluster_switch) switches;
    ARRAY(cluster_node) nodes;
    int ranks;
};

/* The node of a rank. */
int cluster_node_of(const trama_cluster *c, int rank);
static inline const cluster_kind *cluster_kind_of(const trama_cluster *c, int rank)
{
    return &c->kinds.at[c->nodes.at[cluster_node_of(c, rank)].kind];
}

/* The cores of a rank; 0 or 1 where ranks of its node share cores. */
int cluster_cores_of(const trama_cluster *c, int rank);

/* Whether a rank has a core beside its workers that serves messages, as contexts of several ranks have from 8 cores
 * on. */
bool cluster_has_messenger(const trama_cluster *c, int rank, int n_ranks);

/* The machine table of the first n_ranks ranks. */
machine *cluster_machine(const trama_cluster *c, int n_ranks);

bool cluster_has_rates(const cluster_kind *k, const char *op); /* some, or that of which it is the gradient */

/* The rate of an op (NULL: of any) for a task of that work: flop/s of an element type, or B/s. */
double cluster_rate_of(const cluster_kind *k, bool gpu, const char *op, int what, double work);

/* Seconds of a core that copies the bytes of a message. */
static inline double cluster_copy_seconds(const cluster_kind *k, int64_t bytes)
{
    if (!cluster_has_rates(k, "message"))
        return 0;
    return (double)bytes / cluster_rate_of(k, false, "message", RATE_MEMORY, (double)bytes);
}

#endif
