/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank says of itself to the others (its card), and what follows from all cards: who shares a node and its
 * cores. */
#ifndef NODE_H
#define NODE_H

#include <hwloc.h>

#include "base.h"

enum { NODE_MAX_PUS = 4096, NODE_TEXT = 128, NODE_MAX_GPUS = 16 };

/* Plain bytes, exchanged as they are. */
typedef struct node_card {
    char node[NODE_TEXT];     /* the running kernel's identity: equal for ranks whose cores are the same cores */
    char cpu_kind[NODE_TEXT]; /* which bits CPU places compute */
    uint64_t allowed[NODE_MAX_PUS / 64]; /* PUs by system index */
    double quota;                        /* CPUs' worth of time; 0: no limit */
    uint64_t options;                    /* config_hash */
    int n_gpus;                          /* that the process may use, and wants to */
    struct {
        char kind[64]; /* which bits it computes */
        uint8_t uuid[16];
    } gpu[NODE_MAX_GPUS];
} node_card;

/* The card of the calling process: binding, allowed cores, control group limits. cpu_kind is cut to NODE_TEXT - 1. */
void node_card_fill(node_card *card, hwloc_topology_t topology, const char *cpu_kind);

/* Ranks on `rank`'s node with its very set of PUs, and how many of them come before it. */
int node_sharers(const node_card *cards, int n_ranks, int rank, int *index);

/* Another rank of the node has some, but not the same, of rank's PUs. */
bool node_overlap(const node_card *cards, int n_ranks, int rank);

/* PUs that any rank of rank's node may use. */
int node_pus(const node_card *cards, int n_ranks, int rank);

int node_index(const node_card *cards, int rank);              /* number of rank's node, by first appearance */
int node_local_rank(const node_card *cards, int rank);         /* ranks before it on its node */
int node_ranks(const node_card *cards, int n_ranks, int rank); /* ranks on its node */

/* The number of the kind of rank's CPUs, or of its GPU number gpu (-1: CPUs), by first appearance: the CPUs of all
 * ranks, then the GPUs of rank 0, 1, ... */
int node_kind(const node_card *cards, int n_ranks, int rank, int gpu);

/* Which of rank's GPUs it takes: numbers in its card, in mine [NODE_MAX_GPUS]; returns how many. Ranks of a node that see
 * the very same ones divide them; where these are fewer, neighbours share one. */
int node_gpus(const node_card *cards, int n_ranks, int rank, int *mine);
/* Ranks of the node that take that GPU of rank's. */
int node_gpu_sharers(const node_card *cards, int n_ranks, int rank, int gpu);

void node_allowed(const node_card *card, hwloc_bitmap_t set);

/* CPUs' worth of time that the control groups of a process grant it, 0 where they do not limit. root is
 * "/sys/fs/cgroup", membership the text of /proc/self/cgroup; both are arguments for tests. */
double node_quota(const char *root, const char *membership);

#endif
