/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's card, which it sends to all others, and facts from all cards: the ranks that share a node, its cores and its
 * GPUs. */
#ifndef NODE_H
#define NODE_H

#include <hwloc.h>

#include "base.h"

enum { NODE_MAX_PUS = 4096, NODE_TEXT = 128, NODE_MAX_GPUS = 16 };

/* Plain bytes, exchanged between ranks. */
typedef struct node_card {
    char node[NODE_TEXT];                /* the running kernel's identity: equal for ranks on the same machine */
    char cpu_kind[NODE_TEXT];            /* name of the arithmetic of CPU places */
    uint64_t allowed[NODE_MAX_PUS / 64]; /* PUs by system index */
    double quota;                        /* CPUs' worth of time; 0: no limit */
    uint64_t options;                    /* config_hash */
    int n_gpus;                          /* GPUs that the process may use; 0 where it wants none */
    struct {
        char kind[64]; /* name of its arithmetic */
        uint8_t uuid[16];
    } gpu[NODE_MAX_GPUS];
} node_card;

/* The card of the calling process: binding, allowed cores, control group limits. cpu_kind is cut to NODE_TEXT - 1. */
void node_card_fill(node_card *card, hwloc_topology_t topology, const char *cpu_kind);

/* Number of ranks on `rank`'s node with the same set of PUs; *index: number of those before it. */
int node_sharers(const node_card *cards, int n_ranks, int rank, int *index);

/* Whether another rank of the node has some of rank's PUs, but not the same set. */
bool node_overlap(const node_card *cards, int n_ranks, int rank);

/* PUs that any rank of rank's node may use. */
int node_pus(const node_card *cards, int n_ranks, int rank);

int node_index(const node_card *cards, int rank);              /* number of rank's node, in order of first appearance */
int node_local_rank(const node_card *cards, int rank);         /* ranks before it on its node */
int node_ranks(const node_card *cards, int n_ranks, int rank); /* ranks on its node */

/* Number of the kind of rank's GPU `gpu`, or of its CPUs (gpu -1), in order of first appearance: the CPUs of all ranks,
 * then the GPUs of rank 0, 1, ... */
int node_kind(const node_card *cards, int n_ranks, int rank, int gpu);

/* The GPUs that rank takes: their numbers in its card, in mine [NODE_MAX_GPUS]; returns their number. Ranks of a node
 * that see the same GPUs divide them; where there are fewer GPUs than ranks, neighbours share one. */
int node_gpus(const node_card *cards, int n_ranks, int rank, int *mine);
/* Number of ranks of the node that take GPU number gpu of rank's card. */
int node_gpu_sharers(const node_card *cards, int n_ranks, int rank, int gpu);

void node_allowed(const node_card *card, hwloc_bitmap_t set);

/* CPUs' worth of time that the control groups of a process grant it; 0 without a limit. root is "/sys/fs/cgroup",
 * membership the text of /proc/self/cgroup; both are arguments for tests. */
double node_quota(const char *root, const char *membership);

#endif
