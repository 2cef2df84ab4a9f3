/* SPDX-License-Identifier: Apache-2.0 */
/* trama_context_describe. */
#include "state.h"

/* The system's number of a PU. */
static int processor(const trama_context *c, int pu)
{
    hwloc_obj_t at = hwloc_get_obj_by_type(c->topology, HWLOC_OBJ_PU, (unsigned)pu);
    return at ? (int)at->os_index : -1;
}

static void messages_text(text *t, const trama_context *c)
{
    text_add(t, "messages: ");
    if (!c->driver.messages)
        text_add(t, "none, there is one rank\n");
    else if (c->driver.driven)
        text_add(t, "StarPU-MPI's thread drives worker 0 as well, since %s\n", c->driver.driven_why);
    else if (c->driver.mpi_pu >= 0)
        text_add(t, "StarPU-MPI's thread has a core of its own: processor %d\n", processor(c, c->driver.mpi_pu));
    else
        text_add(t, "StarPU-MPI's thread is where the system puts it\n");
}

static void allowed_text(text *t, const trama_context *c)
{
    char *allowed = NULL;
    if (hwloc_bitmap_list_asprintf(&allowed, c->allowed) < 0)
        return;
    text_add(t, "processors that this rank may use: %s", allowed);
    if (c->node.quota > 0)
        text_add(t, ", for %.3g processors' time", c->node.quota);
    if (c->node.sharers > 1)
        text_add(t, ", with %d other rank%s", c->node.sharers - 1, c->node.sharers > 2 ? "s" : "");
    text_add(t, "\n");
    free(allowed);
}

static const char *binding_text(const trama_context *c)
{
    if (!c->driver.started_starpu)
        return "bound as the program did";
    if (!c->driver.bound)
        return "unbound, the cores are shared";
    if (driver_bound_by_variable(c))
        return "bound as STARPU_WORKERS_CPUID or STARPU_WORKERS_COREID says";
    return c->cores.shared ? "bound to one that as many ranks share as any other" : "each bound to its own";
}

static void workers_text(text *t, const trama_context *c)
{
    text_add(t, "workers of this rank: %d on %d of %d cores, %s, %s", c->cores.workers, c->cores.cores,
             hwloc_get_nbobjs_by_type(c->topology, HWLOC_OBJ_CORE), c->driver.workers_why, binding_text(c));
    for (int p = 0; c->driver.bound && !driver_bound_by_variable(c) && p < c->cores.n; p++)
        for (int i = 0; i < c->cores.at[p].n; i++)
            text_add(t, "%s%d", p || i ? "," : ": processors ", processor(c, c->cores.at[p].pu[i]));
    text_add(t, "; scheduler %s%s\n", c->driver.scheduler,
             c->driver.started_starpu ? "" : " (StarPU was started by the program)");
}

static void starter_text(text *t, const trama_context *c)
{
    char *bound = NULL;
    if (!c->driver.starter.bound || hwloc_bitmap_list_asprintf(&bound, c->driver.starter.bound) < 0)
        return;
    text_add(t, "the thread that started Trama: bound to processors %s, since other ranks have the others\n", bound);
    free(bound);
}

static void gpu_text(text *t, const trama_context *c, const own_gpu *gpu)
{
    text_add(t, "GPU %d: %s, at NUMA domain %d, up to %lld MB for tensors, driven from ", gpu->device,
             c->gpu.seen[gpu->card].kind, gpu->numa, (long long)(c->gpu.bytes >> 20));
    if (gpu->pu < 0)
        text_add(t, "any processor\n");
    else
        text_add(t, "processor %d\n", processor(c, gpu->pu));
}

static void gpus_text(text *t, const trama_context *c)
{
    static const char *const wanted[] = {[TRAMA_CPU] = "cpu", [TRAMA_GPU] = "gpu", [TRAMA_AUTO] = "auto"};
    text_add(t, "device %s: GPUs of this rank: %d\n", wanted[c->config.device], c->gpu.n);
    for (int i = 0; i < c->gpu.n; i++)
        gpu_text(t, c, &c->gpu.own[i]);
}

static void features_text(text *t)
{
    int starpu[3];
    unsigned hwloc = hwloc_get_api_version();
    starpu_get_version(&starpu[0], &starpu[1], &starpu[2]);
    text_add(t, "built with: StarPU %d.%d.%d, hwloc API %u.%u, ", starpu[0], starpu[1], starpu[2], hwloc >> 16,
             hwloc >> 8 & 255);
    comm_library(t);
    text_add(t, ", %s, %s\n", TRAMA_HAVE_CUDA ? "CUDA" : "no CUDA", TRAMA_HAVE_NCCL ? "NCCL" : "no NCCL");
}

static void topology_text(text *t, hwloc_topology_t topology)
{
    text_add(t, "topology: packages %d, NUMA domains %d, cores %d, hardware threads %d\n",
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE),
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE), hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE),
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
}

char *trama_context_describe(const trama_context *context)
{
    const trama_context *c = context;
    text t = {0};
    if (!context)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_context_describe: the context is NULL"), NULL;
    text_add(&t, "trama %s: rank %d of %d, %d of them on this node; %s\n", trama_version(), c->comm.rank, c->comm.ranks,
             c->node.ranks, c->comm.how);
    features_text(&t);
    topology_text(&t, c->topology);
    allowed_text(&t, c);
    workers_text(&t, c);
    starter_text(&t, c);
    gpus_text(&t, c);
    messages_text(&t, c);
    if (c->comm.ranks > 1 && c->node.unshared_why)
        text_add(&t, "all messages are copied: %s\n", c->node.unshared_why);
    else if (c->comm.ranks > 1)
        text_add(&t, "terms of sums, of %lld bytes or more, are read in the memory of a rank of the same node\n",
                 (long long)c->place.machine->loan_bytes);
    if (c->config.max_in_flight)
        text_add(&t, "at most %d steps in flight", c->config.max_in_flight);
    else
        text_add(&t, "at most 2 steps in flight, 8 of few tasks");
    text_add(&t, ", grain %lld flop and %lld bytes, watchdog %d s\n", (long long)c->config.grain_flops,
             (long long)c->config.grain_bytes, c->config.watchdog);
    text_add(&t, "kernels: %s%s\n", c->cpu_kind,
             getenv("OPENBLAS_CORETYPE")
                 ? ", as OPENBLAS_CORETYPE says; where it is unset, those that fit the processor"
                 : "");
    machine_describe(c->place.machine, &t);
    return text_result(&t, "trama_context_describe");
}
