/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU and StarPU-MPI: their cores, start and stop; adoption of the host's. */
#include <stdio.h>
#include <string.h>

#include "environment.h"
#include "gpus.h"
#include "guest.h"
#include "node.h"
#include "tracing.h"

#if TRAMA_HAVE_MPI
#include <starpu_mpi.h>
#endif

/* A rank with fewer cores spares none for StarPU-MPI's thread, which then drives worker 0 as well. */
enum { CORES_TO_SPARE = 8 };

/* StarPU takes a GPU's memory in chunks of 32 MB for small buffers. With less memory than this it can wait for ever for
 * a chunk. */
enum { LITTLE_MEMORY = 1 << 30 };

#if TRAMA_HAVE_MPI
static bool shutdown_ends_starpu; /* starpu_mpi_init_conf was called: every end of StarPU-MPI then ends StarPU */
static int mpi_thread_left;       /* starpu_mpi_get_thread_cpuid() + 1 after the end of our own StarPU-MPI */
#endif

static int positive_variable(const char *name)
{
    const char *value = getenv(name);
    return value && atoi(value) > 0 ? atoi(value) : 0;
}

/* Divides the rank's cores into places. StarPU-MPI's thread gets its own core where the rank has enough. */
trama_status driver_prepare(trama_context *c, const place_claim *given)
{
    place_claim claim = *given;
    trama_status status = starpu_is_initialized() ? TRAMA_OK : environment_check();
    if (!status && !starpu_is_initialized())
        status = home_find();
    c->driver.workers_why = claim.workers ? "as TRAMA_WORKERS or config.workers says" : "one for each";
    if (claim.workers == 0 && (claim.workers = positive_variable("STARPU_NCPU")))
        c->driver.workers_why = "as STARPU_NCPU says";
    if (c->config.device == TRAMA_GPU && !claim.workers) {
        claim.workers = 1;
        c->driver.workers_why = "GPUs compute";
    }
    if (!status)
        status = place_find(c->topology, &claim, &c->cores);
    if (!status)
        status = gpus_claim_cores(c, &claim);
    c->driver.messages = c->comm.ranks > 1;
    c->driver.driven = c->driver.messages;
    c->driver.mpi_pu = -1;
    if (status || !c->driver.messages)
        return status;
    c->driver.driven_why = c->cores.shared ? "cores are shared"
                           : positive_variable("STARPU_MPI_DRIVER_CALL_FREQUENCY")
                               ? "STARPU_MPI_DRIVER_CALL_FREQUENCY is set"
                           : claim.workers ? "the workers take all cores"
                                           : "the rank has fewer than 8 cores";
    if (c->cores.shared || positive_variable("STARPU_MPI_DRIVER_CALL_FREQUENCY"))
        return status;
    if (claim.workers ? claim.workers + c->gpu.n < c->cores.cores : c->cores.cores >= CORES_TO_SPARE) {
        claim.workers = c->cores.workers - !claim.workers;
        place_free(&c->cores);
        status = place_find(c->topology, &claim, &c->cores);
        if (!status)
            status = gpus_claim_cores(c, &claim);
        c->driver.driven = false;
        c->driver.mpi_pu = c->cores.n_spare ? c->cores.spare[--c->cores.n_spare] : -1;
    }
    return status;
}

/* It leaves STARPU_WORKERS_GETBIND alone: StarPU 1.4.10 frees its sets twice where that changes between two starts. */
static void prepare_environment(const trama_context *c)
{
    environment_set_number("STARPU_SILENT", 1);
    if (c->gpu.n)
        environment_set_number("STARPU_LIMIT_CUDA_MEM", (int)(c->gpu.bytes >> 20));
    if (c->gpu.n && c->gpu.bytes < LITTLE_MEMORY)
        environment_set_number("STARPU_SUBALLOCATOR", 0);
    if (gpus_exchange(c))
        environment_set_number("STARPU_NWORKER_PER_CUDA", 2);
    if (!c->driver.bound)
        environment_set_number("STARPU_WORKERS_NOBIND", 1);
    if (!c->driver.messages)
        return;
    environment_set_number("STARPU_MPI_NDETACHED_SEND", 0); /* no limit */
    environment_set_number("STARPU_MPI_CACHE", 0);
    if (c->driver.driven) {
        environment_set_number("STARPU_MPI_DRIVER_CALL_FREQUENCY", 1);
        environment_set_number("STARPU_MPI_DRIVER_TASK_FREQUENCY", 1);
    }
    if (c->driver.mpi_pu >= 0)
        environment_set_number("STARPU_MPI_THREAD_CPUID", c->driver.mpi_pu);
    else
        environment_set_number("STARPU_MPI_NOBIND", 1);
}

static void configure(const trama_context *c, struct starpu_conf *conf)
{
    unsigned n = 0;
    starpu_conf_init(conf);
    conf->precedence_over_environment_variables = 1;
    conf->sched_policy_name = c->driver.scheduler;
    conf->ncpus = c->cores.workers;
    conf->ncuda = c->gpu.n;
    conf->use_explicit_workers_cuda_gpuid = c->gpu.n > 0;
    for (int i = 0; i < c->gpu.n; i++) {
        conf->workers_cuda_gpuid[i] = (unsigned)c->gpu.own[i].device;
        /* GPU threads come first in StarPU's order, and need a PU even where they are not bound */
        conf->workers_bindid[n++] = (unsigned)(c->gpu.own[i].pu >= 0 ? c->gpu.own[i].pu : c->cores.at[0].pu[0]);
    }
    conf->nopencl = conf->nhip = conf->nmax_fpga = conf->nmpi_ms = conf->ntcpip_ms = 0;
    conf->reserve_ncpus = 0;
    conf->catch_signals = 0;
    conf->use_explicit_workers_bindid = 1;
    for (int p = 0; p < c->cores.n; p++)
        for (int i = 0; i < c->cores.at[p].n; i++)
            conf->workers_bindid[n++] = (unsigned)c->cores.at[p].pu[i];
}

static int start_starpu(trama_context *c, struct starpu_conf *conf)
{
#if TRAMA_HAVE_MPI
    if (c->driver.messages) {
        shutdown_ends_starpu = true;
        return starpu_mpi_init_conf(NULL, NULL, 0, c->comm.handle, conf);
    }
#endif
    return starpu_init(conf);
}

bool driver_bound_by_variable(const trama_context *c)
{
    return c->driver.bound && (getenv("STARPU_WORKERS_CPUID") || getenv("STARPU_WORKERS_COREID"));
}

/* Beside ranks with the same processors, the thread that submits stays on the cores of its rank: on another's it takes
 * time from a worker whose messages its own rank waits for, up to 0.1 ms a run of 0.1 ms. A program that starts MPI
 * itself binds its threads itself. */
static void bind_starter(trama_context *c)
{
    if (c->config.keep_affinity || !c->comm.started || !c->driver.bound || c->node.sharers < 2 ||
        driver_bound_by_variable(c))
        return;
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    place_cpuset(c->topology, &c->cores, c->allowed, own);
    guest_bind(&c->driver.starter, c->topology, own);
    hwloc_bitmap_free(own);
}

static trama_status start_here(trama_context *c)
{
    struct starpu_conf conf;
    guest_mode hosts;
    c->driver.bound = (!c->cores.shared || c->cores.even) && gpus_have_cores(c);
    /* lws of StarPU 1.4.10 ends the process where GPU workers have no core of their own */
    c->driver.scheduler = c->gpu.n ? "prio" : "lws";
    if (getenv("STARPU_SCHED"))
        c->driver.scheduler = getenv("STARPU_SCHED");
    if (c->cores.workers > STARPU_MAXCPUS)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%d workers; this StarPU was built for at most %d",
                          c->cores.workers, STARPU_MAXCPUS);
    prepare_environment(c);
    bus_prepare(c, c->gpu.n_visible);
    for (const trace_variable *v = trace_variables(c); v->name; v++)
        environment_set(v->name, v->value, v->ours);
    configure(c, &conf);
    if (getenv("STARPU_FXT_EVENTS")) /* StarPU 1.4.10 reads it only in this call */
        starpu_fxt_autostart_profiling(1);
    guest_enter(&hosts, c->topology, c->allowed);
    int error = start_starpu(c, &conf);
    guest_leave(&hosts);
    home_found();
    if (error) {
        environment_restore();
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "StarPU does not start with %d workers: %s", c->cores.workers,
                          strerror(-error));
    }
    c->driver.started_starpu = true;
    c->driver.started_starpumpi = c->driver.messages;
    bind_starter(c);
    return TRAMA_OK;
}

static trama_status adopt_messages(trama_context *c)
{
#if TRAMA_HAVE_MPI
    int thread = starpu_mpi_get_thread_cpuid();
    if (thread >= 0 && thread + 1 != mpi_thread_left) { /* the host runs StarPU-MPI */
        starpu_mpi_comm_register(c->comm.handle);
        c->driver.driven = positive_variable("STARPU_MPI_DRIVER_CALL_FREQUENCY") > 0;
        c->driver.driven_why = "STARPU_MPI_DRIVER_CALL_FREQUENCY is set";
        return TRAMA_OK;
    }
    /* starpu_mpi_shutdown_comm drops this reference instead of the host's. */
    if (shutdown_ends_starpu && starpu_init(NULL))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "the program's StarPU does not take a second user");
    prepare_environment(c);
    guest_mode hosts;
    guest_enter(&hosts, c->topology, c->allowed);
    int error = starpu_mpi_init_comm(NULL, NULL, 0, c->comm.handle);
    guest_leave(&hosts);
    if (error)
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "StarPU-MPI does not start beside the program's StarPU");
    c->driver.started_starpumpi = true;
#else
    (void)c;
#endif
    return TRAMA_OK;
}

/* Adopts the host's StarPU: all its CPU workers are one place. */
static trama_status adopt(trama_context *c)
{
    int n = (int)starpu_cpu_worker_get_count();
    if (n == 0)
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "the program's StarPU has no CPU worker, and Trama needs one");
    if (starpu_is_paused())
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "the program's StarPU is paused: starpu_resume before trama_start");
    if (c->config.workers && c->config.workers != n)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%d workers asked for, but the program's StarPU has %d",
                          c->config.workers, n);
    place_free(&c->cores);
    c->cores = (place_list){.n = 1, .at = trama_alloc(sizeof *c->cores.at), .cores = n, .workers = n};
    c->cores.at[0].n = n;
    c->cores.at[0].pu = trama_alloc((size_t)n * sizeof(int));
    c->driver.driven = false;
    c->driver.mpi_pu = -1;
    c->driver.scheduler = "the program's";
    c->driver.workers_why = "as the program's StarPU has them";
    trama_status status = gpus_adopt(c);
    return status || !c->driver.messages ? status : adopt_messages(c);
}

static void add_worker(trama_context *c, own_place *place, int id)
{
    uint32_t bit = UINT32_C(1) << (id % 32);
    place->worker[place->n++] = id;
    place->mask[id / 32] |= bit;
    c->place.of_worker[id][id / 32] |= bit;
}

/* StarPU's workers are in the order of our cores. Cores have workers even where the rank's places are its GPUs only. */
static void list_workers(trama_context *c)
{
    int ids[STARPU_NMAXWORKERS], next = 0, n = c->config.device == TRAMA_GPU ? 0 : c->cores.n;
    starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, ids, STARPU_NMAXWORKERS);
    c->place.own = trama_alloc((size_t)(n + c->gpu.n) * sizeof *c->place.own);
    c->place.of_worker = trama_alloc(STARPU_NMAXWORKERS * sizeof *c->place.of_worker);
    for (int p = 0; p < c->cores.n; p++) {
        const place_cores *cores = &c->cores.at[p];
        own_place place = {.package = cores->package, .numa = cores->domain, .card = -1};
        for (int i = 0; i < cores->n; i++, next++) {
            add_worker(c, &place, ids[next]);
            c->place.cpu_mask[ids[next] / 32] |= UINT32_C(1) << (ids[next] % 32);
        }
        if (p < n)
            c->place.own[c->place.n++] = place;
    }
    for (int i = 0; i < c->gpu.n; i++) {
        own_place *place = &c->place.own[c->place.n++];
        *place = (own_place){.package = c->gpu.own[i].package, .numa = c->gpu.own[i].numa, .card = c->gpu.own[i].card};
        add_worker(c, place, gpus_worker(c->gpu.own[i].device, 0));
        place->exchanger = gpus_worker(c->gpu.own[i].device, 1);
    }
}

trama_status driver_start(trama_context *c)
{
    vigil *watch =
        c->driver.messages ? vigil_begin(&c->config, "trama_start, where StarPU-MPI connects its ranks,") : NULL;
    trama_status status = starpu_is_initialized() ? adopt(c) : start_here(c);
    vigil_end(watch);
    if (status)
        return status;
    list_workers(c);
    trace_open(c);
    return gpus_start(c);
}

#if TRAMA_HAVE_MPI
/* starpu_mpi_shutdown_comm waits for all tasks of the calling thread's scheduling context. With an adopted StarPU these
 * include the program's, so the thread gets an empty scheduling context for the call. */
static void stop_starpumpi(const trama_context *c)
{
    unsigned hosts = starpu_sched_ctx_get_context(), empty = 0;
    mpi_thread_left = starpu_mpi_get_thread_cpuid() + 1;
    if (!c->driver.started_starpu) {
        empty = starpu_sched_ctx_create((int[]){0}, 0, "trama", STARPU_SCHED_CTX_POLICY_NAME, "eager", 0);
        starpu_sched_ctx_set_context(&empty);
    }
    starpu_mpi_shutdown_comm(c->comm.handle);
    if (!c->driver.started_starpu && starpu_is_initialized()) {
        starpu_sched_ctx_set_context(hosts == STARPU_NMAX_SCHED_CTXS ? NULL : &hosts);
        starpu_sched_ctx_delete(empty);
    }
}
#endif

void driver_stop_messages(trama_context *c)
{
#if TRAMA_HAVE_MPI
    /* starpu_mpi_shutdown_comm drops a reference to StarPU as well: starpu_init adds one, so that StarPU stays. */
    if (!c->driver.started_starpumpi || (c->driver.started_starpu && starpu_init(NULL)))
        return;
    stop_starpumpi(c);
    c->driver.started_starpumpi = false;
#else
    (void)c;
#endif
}

void driver_stop(trama_context *c)
{
    if (c->place.own && starpu_is_initialized())
        gpus_stop(c);
    trace_expect(c);
#if TRAMA_HAVE_MPI
    if (c->driver.started_starpumpi)
        stop_starpumpi(c);
    else
#endif
        if (c->driver.started_starpu)
        starpu_shutdown();
    trace_close(c);
    home_leave();
    environment_restore();
    guest_unbind(&c->driver.starter);
    free(c->place.own);
    free(c->place.of_worker);
    c->place.own = NULL;
    c->place.of_worker = NULL;
    c->driver.started_starpu = c->driver.started_starpumpi = false;
}
