/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of GPUs that exchange through NCCL: a communicator for each, made before the first task that uses it. It knows
 * no plan and no tensor. */
#ifndef GPU_GROUP_H
#define GPU_GROUP_H

#include "context.h"

/* A GPU of this rank in a group. */
typedef struct gpu_member {
    int place, index;      /* in the machine table; in the group */
    struct ncclComm *comm; /* ncclComm_t */
} gpu_member;

typedef struct gpu_group {
    int n, n_local;
    int *places;       /* [n] in the machine table, GPUs of different cards, in the order of members */
    gpu_member *local; /* [n_local] members of this rank, in that order */
} gpu_group;

/* Whether there is NCCL, and every GPU place has a card of its own. The same on all ranks. */
bool gpu_groups_can(const trama_context *c);

/* Collective: all ranks name the same groups in the same order, [n] with their places [size[i]]; groups[i], of the
 * context, is found or made. Where all are there already that costs nothing; else it waits for all that is under way.
 * E_SYSTEM where NCCL refuses. */
trama_status gpu_groups_make(trama_context *c, int n, const int *size, const int *const *places,
                             const gpu_group **groups);

/* What all collectives of a GPU place update, so that they run one after the other. */
struct shard *gpu_groups_token(trama_context *c, int place);
void gpu_groups_free_tokens(trama_context *c);

/* For the context's end, and for tasks that wait without end: whether a communicator has failed, *why then says how. */
void gpu_groups_free(trama_context *c);
bool gpu_groups_failed(const trama_context *c, const char **why);

#endif
