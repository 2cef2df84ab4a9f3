/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of GPUs that exchange through NCCL. Each has a communicator, made before the first task that uses it. They
 * know no plan and no tensor. */
#ifndef GPU_GROUP_H
#define GPU_GROUP_H

#include "context.h"

/* A GPU of this rank in a group. */
typedef struct gpu_member {
    int place, index;      /* index in the machine table; index in the group */
    struct ncclComm *comm; /* ncclComm_t */
} gpu_member;

typedef struct gpu_group {
    int n, n_local;
    int *places;       /* [n] indices in the machine table, in the order of members: GPU places on different cards */
    gpu_member *local; /* [n_local] this rank's members, in the order of members */
} gpu_group;

/* Whether GPUs may exchange through NCCL: Trama was built with it, and there are several GPUs, each of one rank alone.
 * The same on all ranks. */
bool gpu_groups_can(const trama_context *c);

/* Finds or makes the groups [n] with places[i] [size[i]] in groups [n]; the context owns them. Collective: all ranks
 * name the same groups in the same order. Where all exist already it exchanges nothing; else it waits for all work in
 * flight. E_SYSTEM where NCCL refuses. */
trama_status gpu_groups_make(trama_context *c, int n, const int *size, const int *const *places,
                             const gpu_group **groups);

/* The shard that all collectives of a GPU place update, so that they run one after the other. */
struct shard *gpu_groups_token(trama_context *c, int place);
void gpu_groups_free_tokens(trama_context *c);

/* Frees all groups, at the context's end. And, for the watchdog: whether a communicator has failed; *why then has
 * NCCL's message. */
void gpu_groups_free(trama_context *c);
bool gpu_groups_failed(const trama_context *c, const char **why);

#endif
