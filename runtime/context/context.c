/* SPDX-License-Identifier: Apache-2.0 */
/* The context: its start and end, its tenants, its log. */
#include "context.h"

#include <stdio.h>
#include <string.h>

#include "config.h"
#include "gpus.h"
#include "node.h"
#include "node_memory.h"
#include "tracing.h"
#include "worker_memory.h"

/* Static, since the last completion may still read it while it is destroyed. */
static trama_context the_context;
static bool is_live;

/* with_devices: loads the buses too, which takes longer. */
static trama_status load_topology(hwloc_topology_t *topology, bool with_devices)
{
    if (hwloc_topology_init(topology))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "hwloc_topology_init failed");
    if (with_devices)
        hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (!hwloc_topology_load(*topology))
        return TRAMA_OK;
    hwloc_topology_destroy(*topology);
    *topology = NULL;
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "hwloc cannot read this machine's topology");
}

/* Gathers all ranks' cards, or gives all the same error. status: this rank's so far. */
static trama_status exchange_cards(trama_context *c, trama_status status, const char *cpu_kind,
                                   const context_gpus *gpus, node_card *cards)
{
    node_card mine;
    if (!status)
        status = gpus_wanted(c, gpus);
    if (!status)
        status = load_topology(&c->topology, c->gpu.n_seen > 0);
    status = context_agree(c, "trama_start", status);
    if (status)
        return status;
    node_card_fill(&mine, c->topology, cpu_kind);
    gpus_fill(c, &mine);
    mine.options = config_hash(&c->config);
    return context_gather(c, "trama_start", &mine, sizeof mine, cards);
}

static trama_status check_options(const trama_context *c, const node_card *cards)
{
    for (int r = 1; r < c->comm.ranks; r++)
        if (cards[r].options != cards[0].options)
            return trama_fail(
                NOWHERE, TRAMA_E_ARGUMENT,
                "ranks 0 and %d were given different options; only workers, watchdog, device, gpu_memory, "
                "gpu_steps, keep_blas_kernels, log and fatal may differ",
                r);
    return TRAMA_OK;
}

/* Open MPI, for example, binds each of two ranks to a single core by default. */
static void warn_of_idle_cores(const trama_context *c, const node_card *cards)
{
    int rank = c->comm.rank, used = node_pus(cards, c->comm.ranks, rank);
    int all = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(c->topology));
    if (c->driver.messages && c->driver.started_starpu && node_local_rank(cards, rank) == 0 && 2 * used <= all)
        context_log(
            c, TRAMA_LOG_WARNING,
            "rank %d: the launcher bound this node's %d ranks to %d of its %d processors; mpirun --bind-to none, "
            "or --map-by slot:PE=n, gives them more",
            rank, c->node.ranks, used, all);
}

static trama_status start_starpu(trama_context *c, const node_card *cards)
{
    place_claim claim = {.quota = cards[c->comm.rank].quota, .workers = c->config.workers};
    claim.allowed = c->allowed = hwloc_bitmap_alloc();
    node_allowed(&cards[c->comm.rank], c->allowed);
    claim.sharers = c->node.sharers = node_sharers(cards, c->comm.ranks, c->comm.rank, &claim.index);
    c->node.quota = claim.quota;
    c->trace.own_clock = node_index(cards, c->comm.rank) != node_index(cards, 0);
    c->node.ranks = node_ranks(cards, c->comm.ranks, c->comm.rank);
    trama_status status = gpus_take(c, cards);
    status = status ? status : driver_prepare(c, &claim);
    if (node_overlap(cards, c->comm.ranks, c->comm.rank)) {
        c->cores.shared = true;
        c->cores.even = false;
    }
    if (!status && !starpu_is_initialized())
        status = room_check(c->cores.workers + 2 * c->gpu.n + c->driver.messages);
    status = context_agree(c, "trama_start", trace_start(c, status));
    if (!status)
        status = driver_start(c);
    if (!status)
        c->config.workers = c->cores.workers;
    return context_agree(c, "trama_start", status);
}

static machine_place describe_place(const trama_context *c, const node_card *cards, int i)
{
    const own_place *place = &c->place.own[i];
    int r = c->comm.rank;
    return (machine_place){.rank = r,
                           .kind = node_kind(cards, c->comm.ranks, r, place->card),
                           .gpu = place->card >= 0,
                           .workers = place->n,
                           .path = {node_index(cards, r), place->package, place->numa, node_local_rank(cards, r)}};
}

/* Exchanges the number of places of each rank, then the places, one of each rank in a round. */
static trama_status agree_machine(trama_context *c, const node_card *cards)
{
    machine *m = c->place.machine = trama_alloc(sizeof *m);
    int *n = trama_alloc((size_t)c->comm.ranks * sizeof *n), most = 0;
    machine_place *round = trama_alloc((size_t)c->comm.ranks * sizeof *round);
    trama_status status = context_gather(c, "trama_start", &c->place.n, sizeof *n, n);
    m->n_ranks = c->comm.ranks;
    for (int r = 0; r < c->comm.ranks && !status; r++) {
        c->place.first = r == c->comm.rank ? m->n_places : c->place.first;
        m->n_places += n[r];
        most = n[r] > most ? n[r] : most;
    }
    m->places = trama_alloc((size_t)m->n_places * sizeof *m->places);
    for (int i = 0; i < most && !status; i++) {
        machine_place mine = {0};
        if (i < c->place.n)
            mine = describe_place(c, cards, i);
        status = context_gather(c, "trama_start", &mine, sizeof mine, round);
        for (int r = 0, at = 0; r < c->comm.ranks && !status; at += n[r++])
            if (i < n[r])
                m->places[at + i] = round[r];
    }
    free(n);
    free(round);
    return context_agree(c, "trama_start", status);
}

static void release(trama_context *c)
{
    if (c->place.machine)
        machine_destroy(&c->place.machine);
    place_free(&c->cores);
    hwloc_bitmap_free(c->allowed);
    if (c->topology)
        hwloc_topology_destroy(c->topology);
    comm_close(&c->comm);
    free(c->calls.disorder);
    fatal_to(NULL, NULL);
    is_live = false;
}

static trama_status open_communicator(trama_context *c, const void *communicator)
{
    vigil *watch = comm_may_wait() ? vigil_begin(&c->config, "trama_start, where MPI connects its ranks,") : NULL;
    trama_status status = comm_open(communicator, &c->comm);
    vigil_end(watch);
    return status;
}

static void tell_of_the_end(void *data, const char *reason)
{
    const trama_context *c = data;
    if (c->config.fatal)
        c->config.fatal(c->config.fatal_data, reason);
    else
        c->config.log(c->config.log_data, TRAMA_LOG_ERROR, reason);
}

trama_status context_create(const trama_config *config, const char *cpu_kind, const context_gpus *gpus,
                            trama_context **context)
{
    trama_context *c = &the_context;
    *context = NULL;
    if (context_check(NOWHERE, "trama_start"))
        return TRAMA_E_ORDER;
    if (is_live)
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "a context is live already: trama_stop it first");
    memset(c, 0, sizeof *c);
    trama_status resolved = config_resolve(config, &c->config); /* reported once all ranks can agree on it */
    trama_status status = open_communicator(c, config ? config->communicator : NULL);
    if (status)
        return status;
    is_live = true;
    fatal_to(tell_of_the_end, c);
    node_card *cards = trama_alloc((size_t)c->comm.ranks * sizeof *cards);
    snprintf(c->cpu_kind, sizeof c->cpu_kind, "%s", cpu_kind ? cpu_kind : "");
    if ((status = exchange_cards(c, resolved, cpu_kind, gpus, cards)) || (status = check_options(c, cards)) ||
        (status = start_starpu(c, cards)) || (status = agree_machine(c, cards)) || (status = node_memory_start(c))) {
        node_memory_stop(&c->node_memory);
        driver_stop(c);
        release(c);
    } else {
        fence_start(c);
        message_start(c);
        loans_start(c);
        pool_start(c);
        rest_start(c);
        leave_start(c);
        warn_of_idle_cores(c, cards);
        *context = c;
    }
    free(cards);
    return status;
}

/* Ends StarPU and StarPU-MPI, where Trama started them. */
static void end_libraries(trama_context *c)
{
    rest_stop(c);
    trace_clock(c);
    driver_stop(c);
}

void context_abandon(trama_context *c)
{
    leave_stop();
    loans_stop(c);
    if (c->gpu.n)
        rest_now(c);
    else
        end_libraries(c);
    comm_close(&c->comm);
}

enum { MOST_NAMED = 8 };

/* Whether the context has tenants; the error names up to MOST_NAMED of them. */
static bool has_tenants(trama_context *c)
{
    text list = {0};
    int n = 0;
    pthread_mutex_lock(&runtime_lock);
    for (const context_tenant *t = c->calls.tenants; t; t = t->next) {
        if (n++ >= MOST_NAMED)
            continue;
        text_add(&list, "%s%s", n > 1 ? "; " : "", t->what);
        if (t->name)
            text_add(&list, " '%s'", t->name);
        if (t->where.file)
            text_add(&list, " (%s:%d)", t->where.file, t->where.line);
        text_add(&list, ", which %s ends", t->ends);
    }
    pthread_mutex_unlock(&runtime_lock);
    if (n)
        trama_fail(NOWHERE, TRAMA_E_ORDER, "trama_stop: the context still has %s%s", list.at,
                   n > MOST_NAMED ? "; and others" : "");
    free(list.at);
    return n > 0;
}

trama_status context_destroy(trama_context **context)
{
    trama_context *c = *context;
    if (!c || context_check(NOWHERE, "trama_stop"))
        return c ? TRAMA_E_ORDER : TRAMA_OK;
    if (has_tenants(c))
        return TRAMA_E_ORDER;
    trama_status status = context_call(c, NOWHERE, "trama_stop", "trama_stop()"); /* an error does not stop the end */
    fence_wait_all(c, "trama_stop");
    context_barrier(c, "trama_stop"); /* after it left, a rank no longer moves the last bytes of its messages */
    leave_stop();
    gpu_groups_free_tokens(c);
    worker_memory_stop(c);
    pool_stop(c);
    loans_stop(c);
    node_memory_stop(&c->node_memory);
    end_libraries(c);
    message_stop(c);
    fence_stop(c);
    release(c);
    *context = NULL;
    return status;
}

void context_enter(trama_context *c, context_tenant *tenant)
{
    pthread_mutex_lock(&runtime_lock);
    tenant->next = c->calls.tenants;
    c->calls.tenants = tenant;
    pthread_mutex_unlock(&runtime_lock);
}

void context_leave(trama_context *c, context_tenant *tenant)
{
    pthread_mutex_lock(&runtime_lock);
    context_tenant **at = &c->calls.tenants;
    while (*at != tenant)
        at = &(*at)->next;
    *at = tenant->next;
    pthread_mutex_unlock(&runtime_lock);
}

void context_log(const trama_context *c, trama_log_level level, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    c->config.log(c->config.log_data, level, line);
}
