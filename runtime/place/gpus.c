/* SPDX-License-Identifier: Apache-2.0 */
#include "gpus.h"

#include <stdio.h>
#include <string.h>

enum { MOST_LEFT = 1 << 30 }; /* most bytes of a GPU that are left to libraries */

trama_status gpus_wanted(trama_context *c, const context_gpus *gpus)
{
    const char *why = "there is no CUDA";
    c->gpu.n_visible = gpus ? gpus->list(c->gpu.seen, NODE_MAX_GPUS, &why) : 0;
    if (c->config.device == TRAMA_CPU)
        return TRAMA_OK;
    c->gpu.n_seen = c->gpu.n_visible;
    c->gpu.cuda = c->gpu.n_seen ? gpus : NULL;
    if (c->gpu.n_seen || c->config.device == TRAMA_AUTO)
        return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                      "rank %d is to run on GPUs, but has none: %s; TRAMA_DEVICE=cpu or auto runs on its cores",
                      c->comm.rank, why);
}

void gpus_fill(const trama_context *c, node_card *card)
{
    card->n_gpus = c->gpu.n_seen;
    for (int i = 0; i < c->gpu.n_seen; i++) {
        memcpy(card->gpu[i].kind, c->gpu.seen[i].kind, sizeof card->gpu[i].kind);
        memcpy(card->gpu[i].uuid, c->gpu.seen[i].uuid, sizeof card->gpu[i].uuid);
    }
}

/* Sets the NUMA node and package of the GPU's bus; the first ones where hwloc does not know. */
static void locate(hwloc_topology_t topology, const int *pci, own_gpu *gpu)
{
    hwloc_obj_t at = hwloc_get_pcidev_by_busid(topology, (unsigned)pci[0], (unsigned)pci[1], (unsigned)pci[2], 0);
    at = at ? hwloc_get_non_io_ancestor_obj(topology, at) : NULL;
    hwloc_obj_t node = at && at->nodeset
                           ? hwloc_get_numanode_obj_by_os_index(topology, (unsigned)hwloc_bitmap_first(at->nodeset))
                           : NULL;
    while (at && at->type != HWLOC_OBJ_PACKAGE)
        at = at->parent;
    gpu->numa = node ? (int)node->logical_index : 0;
    gpu->package = at ? (int)at->logical_index : 0;
}

/* Bytes that this rank's tensors may take of a device with so many sharers. */
static int64_t room_on(const trama_context *c, int device, int sharers)
{
    int64_t left = c->gpu.cuda->free_bytes(device), keep = left / 8 < MOST_LEFT ? left / 8 : MOST_LEFT;
    int64_t room = (left - keep) / sharers;
    return c->config.gpu_memory && c->config.gpu_memory < room ? c->config.gpu_memory : room;
}

/* Number of GPUs of all ranks, a shared one for each; *apart: no two ranks share one. */
static int count(const trama_context *c, const node_card *cards, bool *apart)
{
    int taken[NODE_MAX_GPUS], all = 0;
    *apart = true;
    for (int r = 0; r < c->comm.ranks; r++) {
        int n = node_gpus(cards, c->comm.ranks, r, taken);
        for (int i = 0; i < n; i++)
            *apart &= node_gpu_sharers(cards, c->comm.ranks, r, taken[i]) == 1;
        all += n;
    }
    return all;
}

bool gpus_exchange(const trama_context *c)
{
    return TRAMA_HAVE_NCCL && c->gpu.exclusive && c->gpu.of_all_ranks > 1;
}

static trama_status open_gpu(const trama_context *c, int device, int sharers)
{
    const char *why = c->gpu.cuda->open(device);
    if (!why)
        return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                      "GPU %d of rank %d, which %d rank%s of its node would share, does not open: %s; in compute mode "
                      "EXCLUSIVE_PROCESS a GPU takes one process: start one rank a GPU, or TRAMA_DEVICE=cpu",
                      device, c->comm.rank, sharers, sharers == 1 ? "" : "s", why);
}

trama_status gpus_take(trama_context *c, const node_card *cards)
{
    int mine[NODE_MAX_GPUS];
    c->gpu.of_all_ranks = count(c, cards, &c->gpu.exclusive);
    c->gpu.n = node_gpus(cards, c->comm.ranks, c->comm.rank, mine);
    for (int i = 0; i < c->gpu.n; i++) {
        const context_gpu *card = &c->gpu.seen[mine[i]];
        c->gpu.own[i] = (own_gpu){.device = card->device, .card = mine[i], .pu = -1};
        locate(c->topology, card->pci, &c->gpu.own[i]);
        int sharers = node_gpu_sharers(cards, c->comm.ranks, c->comm.rank, mine[i]);
        trama_status status = open_gpu(c, card->device, sharers);
        if (status)
            return status;
        int64_t room = room_on(c, card->device, sharers);
        c->gpu.bytes = i == 0 || room < c->gpu.bytes ? room : c->gpu.bytes;
    }
    return TRAMA_OK;
}

trama_status gpus_claim_cores(trama_context *c, const place_claim *claim)
{
    place_claim less = *claim;
    less.workers = c->cores.workers - c->gpu.n;
    if (c->gpu.n && !claim->workers && !c->cores.shared && less.workers > 0) {
        place_free(&c->cores);
        trama_status status = place_find(c->topology, &less, &c->cores);
        if (status)
            return status;
    }
    for (int i = 0; i < c->gpu.n; i++)
        c->gpu.own[i].pu = c->cores.n_spare ? c->cores.spare[--c->cores.n_spare] : -1;
    return TRAMA_OK;
}

bool gpus_have_cores(const trama_context *c)
{
    bool have = true;
    for (int i = 0; i < c->gpu.n; i++)
        have = have && c->gpu.own[i].pu >= 0;
    return have;
}

trama_status gpus_adopt(trama_context *c)
{
    int n = 0;
    for (int i = 0; i < c->gpu.n; i++)
        if (gpus_worker(c->gpu.own[i].device, 0) >= 0)
            c->gpu.own[n++] = c->gpu.own[i];
    c->gpu.n = n;
    if (n == 0 && c->config.device == TRAMA_GPU)
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "the program's StarPU has no worker for a GPU of rank %d",
                          c->comm.rank);
    return TRAMA_OK;
}

void context_gpu_wanted(trama_context *c, int64_t bytes, const char *of)
{
    pthread_mutex_lock(&runtime_lock);
    if (bytes > c->gpu.wanted || atomic_load(&c->fences.under_way) == 0) {
        c->gpu.wanted = bytes;
        snprintf(c->gpu.wanted_by, sizeof c->gpu.wanted_by, "%s", of);
    }
    pthread_mutex_unlock(&runtime_lock);
}

bool gpus_starve(trama_context *c, text *words)
{
    bool starve = false;
    pthread_mutex_lock(&runtime_lock);
    for (int i = 0; i < c->gpu.n && c->gpu.wanted; i++) {
        int worker = gpus_worker(c->gpu.own[i].device, 0);
        int64_t left = c->gpu.cuda->free_bytes(c->gpu.own[i].device);
        int64_t held = worker < 0 ? 0 : pool_on_node(c, starpu_worker_get_memory_node((unsigned)worker));
        starve = starve || left + held < c->gpu.wanted;
        text_add(words, "GPU %d has %lld MB free and %lld MB of tensors, ", c->gpu.own[i].device,
                 (long long)(left >> 20), (long long)(held >> 20));
    }
    if (c->gpu.n && c->gpu.wanted)
        text_add(words, "and %s wants %lld MB at a time", c->gpu.wanted_by, (long long)(c->gpu.wanted >> 20));
    pthread_mutex_unlock(&runtime_lock);
    return starve;
}

trama_status gpus_start(trama_context *c)
{
    const char *why = NULL;
    if (!c->gpu.n || c->gpu.cuda->start(c->config.tf32, &why))
        return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "a GPU of rank %d does not start: %s", c->comm.rank, why);
}

void gpus_stop(trama_context *c)
{
    gpu_groups_free(c);
    if (c->gpu.n)
        c->gpu.cuda->stop();
}

int gpus_worker(int device, int i)
{
    int ids[STARPU_NMAXWORKERS], found = -1;
    int n = (int)starpu_worker_get_ids_by_type(STARPU_CUDA_WORKER, ids, STARPU_NMAXWORKERS);
    for (int k = 0; k < n && i >= 0; k++)
        if (starpu_worker_get_devid(ids[k]) == device) {
            found = ids[k];
            i--;
        }
    return found;
}
