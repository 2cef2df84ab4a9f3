/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_group.h"

#include <string.h>

#include "gpus.h"

#if TRAMA_HAVE_NCCL
#include <cuda_runtime_api.h>
#include <nccl.h>

/* The message from the rank of a new group's first member to all others. */
typedef struct invitation {
    ncclUniqueId id;
    int n;        /* 0: none */
    int places[]; /* [n] */
} invitation;

/* All ranks' invitations: `most` from each rank, each of `bytes` bytes. */
typedef struct invitations {
    int most;
    size_t bytes;
    char *all;
} invitations;

static int compare_places(const int *a, int n, const int *b, int m)
{
    for (int i = 0; i < n && i < m; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return n - m;
}

static gpu_group *find(const trama_context *c, const int *places, int n)
{
    for (int i = 0; i < c->gpu.groups.n; i++)
        if (!compare_places(c->gpu.groups.at[i]->places, c->gpu.groups.at[i]->n, places, n))
            return c->gpu.groups.at[i];
    return NULL;
}

static trama_status refused(const char *what, ncclResult_t result)
{
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: %s", what, ncclGetErrorString(result));
}

/* ---- Exchange of invitations ---- */

static bool leads(const trama_context *c, const int *places)
{
    return c->place.machine->places[places[0]].rank == c->comm.rank;
}

/* Agrees on the most invitations of a rank, and on their size. */
static trama_status agree_sizes(trama_context *c, int n, const int *size, const int *const *places, invitations *in)
{
    int mine[2] = {0, 0}, *all = trama_alloc(2 * (size_t)c->comm.ranks * sizeof *all);
    for (int i = 0; i < n; i++)
        if (leads(c, places[i])) {
            mine[0]++;
            mine[1] = size[i] > mine[1] ? size[i] : mine[1];
        }
    trama_status status = context_gather(c, "a group of GPUs", mine, sizeof mine, all);
    for (int r = 0; r < c->comm.ranks && !status; r++) {
        in->most = all[2 * r] > in->most ? all[2 * r] : in->most;
        mine[1] = all[2 * r + 1] > mine[1] ? all[2 * r + 1] : mine[1];
    }
    in->bytes = (sizeof(invitation) + (size_t)mine[1] * sizeof(int) + 7) / 8 * 8;
    free(all);
    return status;
}

static trama_status write_invitations(const trama_context *c, int n, const int *size, const int *const *places,
                                      const invitations *in, char *mine)
{
    for (int i = 0; i < n; i++) {
        invitation *to = (invitation *)mine;
        if (!leads(c, places[i]))
            continue;
        ncclResult_t result = ncclGetUniqueId(&to->id);
        if (result)
            return refused("NCCL gives no name to a group of GPUs", result);
        to->n = size[i];
        memcpy(to->places, places[i], (size_t)size[i] * sizeof(int));
        mine += in->bytes;
    }
    return TRAMA_OK;
}

static trama_status exchange(trama_context *c, int n, const int *size, const int *const *places, invitations *in)
{
    trama_status status = agree_sizes(c, n, size, places, in);
    if (status || in->most == 0)
        return status;
    size_t each = (size_t)in->most * in->bytes;
    char *mine = trama_alloc(each);
    in->all = trama_alloc(each * (size_t)c->comm.ranks);
    status = context_agree(c, "a group of GPUs", write_invitations(c, n, size, places, in, mine));
    if (!status)
        status = context_gather(c, "a group of GPUs", mine, each, in->all);
    free(mine);
    return status;
}

/* The next invitation in the order of places. All ranks take this order, so no two ranks wait for each other in
 * different groups. */
static const invitation *next(const trama_context *c, const invitations *in, const invitation *after)
{
    const invitation *found = NULL;
    for (int i = 0; i < in->most * c->comm.ranks; i++) {
        const invitation *at = (const invitation *)(in->all + (size_t)i * in->bytes);
        if (at->n && (!after || compare_places(at->places, at->n, after->places, after->n) > 0) &&
            (!found || compare_places(at->places, at->n, found->places, found->n) < 0))
            found = at;
    }
    return found;
}

/* ---- Making groups ---- */

static trama_status open_group(trama_context *c, const invitation *to)
{
    gpu_group *g = trama_alloc(sizeof *g);
    trama_status status = TRAMA_OK;
    int before = 0;
    g->n = to->n;
    g->places = trama_alloc((size_t)to->n * sizeof *g->places);
    g->local = trama_alloc((size_t)to->n * sizeof *g->local);
    memcpy(g->places, to->places, (size_t)to->n * sizeof *g->places);
    *ARRAY_PUSH(&c->gpu.groups) = g;
    c->gpu.cuda->open(c->gpu.own[0].device); /* of the calling thread, which may be new to CUDA */
    cudaGetDevice(&before);
    ncclGroupStart();
    for (int i = 0; i < to->n && !status; i++) {
        if (c->place.machine->places[to->places[i]].rank != c->comm.rank)
            continue;
        gpu_member *m = &g->local[g->n_local++];
        *m = (gpu_member){.place = to->places[i], .index = i};
        cudaSetDevice(starpu_worker_get_devid(context_lane_worker(c, m->place, 0)));
        ncclResult_t result = ncclCommInitRank(&m->comm, to->n, to->id, i);
        status = result ? refused("NCCL does not join GPUs", result) : TRAMA_OK;
    }
    ncclResult_t result = ncclGroupEnd();
    cudaSetDevice(before);
    return !status && result ? refused("NCCL does not join GPUs", result) : status;
}

/* Makes groups while nothing is in flight: a task could wait for one that NCCL's setup blocks. */
static trama_status meet(trama_context *c, int n, const int *size, const int *const *places)
{
    invitations in = {0};
    fence_wait_all(c, "a group of GPUs");
    trama_status status = exchange(c, n, size, places, &in);
    for (const invitation *at = NULL; !status && in.all && (at = next(c, &in, at));)
        status = open_group(c, at);
    free(in.all);
    return context_agree(c, "a group of GPUs", status);
}

trama_status gpu_groups_make(trama_context *c, int n, const int *size, const int *const *places,
                             const gpu_group **groups)
{
    int n_new = 0, *new_size = trama_alloc(((size_t)n + 1) * sizeof *new_size);
    const int **new_places = trama_alloc(((size_t)n + 1) * sizeof *new_places);
    for (int i = 0; i < n; i++)
        if (!find(c, places[i], size[i])) {
            new_size[n_new] = size[i];
            new_places[n_new++] = places[i];
        }
    trama_status status = n_new ? meet(c, n_new, new_size, new_places) : TRAMA_OK;
    for (int i = 0; i < n && !status; i++)
        groups[i] = find(c, places[i], size[i]);
    free(new_size);
    free(new_places);
    return status;
}

/* ---- The end ---- */

void gpu_groups_free(trama_context *c)
{
    for (int i = 0; i < c->gpu.groups.n; i++) {
        gpu_group *g = c->gpu.groups.at[i];
        for (int k = 0; k < g->n_local; k++)
            if (g->local[k].comm)
                ncclCommDestroy(g->local[k].comm);
        free(g->places);
        free(g->local);
        free(g);
    }
    ARRAY_FREE(&c->gpu.groups);
}

bool gpu_groups_failed(const trama_context *c, const char **why)
{
    for (int i = 0; i < c->gpu.groups.n; i++)
        for (int k = 0; k < c->gpu.groups.at[i]->n_local; k++) {
            ncclComm_t of = c->gpu.groups.at[i]->local[k].comm;
            ncclResult_t state = ncclSuccess, asked = of ? ncclCommGetAsyncError(of, &state) : ncclSuccess;
            if (asked || (state && state != ncclInProgress)) {
                *why = ncclGetErrorString(asked ? asked : state);
                return true;
            }
        }
    return false;
}

bool gpu_groups_can(const trama_context *c)
{
    return gpus_exchange(c);
}

#else

bool gpu_groups_can(const trama_context *c)
{
    (void)c;
    return false;
}

trama_status gpu_groups_make(trama_context *c, int n, const int *size, const int *const *places,
                             const gpu_group **groups)
{
    (void)c, (void)n, (void)size, (void)places, (void)groups;
    return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED, "this Trama was built without NCCL");
}

void gpu_groups_free(trama_context *c)
{
    (void)c;
}

bool gpu_groups_failed(const trama_context *c, const char **why)
{
    (void)c, (void)why;
    return false;
}

#endif

/* ---- Tokens ---- */

struct shard *gpu_groups_token(trama_context *c, int place)
{
    const int64_t none = 0;
    own_place *p = &c->place.own[place - c->place.first];
    if (!p->token)
        p->token = shard_wrap(c, place, TRAMA_U8, 0, &none, &none, &p->token_data, -1, 1, NULL);
    return p->token;
}

void gpu_groups_free_tokens(trama_context *c)
{
    for (int i = 0; i < c->place.n; i++)
        if (c->place.own[i].token) {
            shard_unwrap(c->place.own[i].token);
            c->place.own[i].token = NULL;
        }
}
