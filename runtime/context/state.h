/* SPDX-License-Identifier: Apache-2.0 */
/* The context for runtime. Each group of fields is a struct; where its comment names a file, no other file writes
 * it. */
#ifndef STATE_H
#define STATE_H

#include <hwloc.h>
#include <pthread.h>
#include <starpu.h>
#include <stdatomic.h>

#include "comm.h"
#include "context.h"
#include "fence.h"
#include "gpu_group.h"
#include "guest.h"
#include "message.h"
#include "node.h"
#include "place.h"
#include "shard.h"

typedef struct pool pool;
typedef struct node_memory node_memory;

enum { MASK_WORDS = (STARPU_NMAXWORKERS + 31) / 32 };

/* A place of this rank. */
typedef struct own_place {
    int n;                          /* workers */
    int worker[STARPU_NMAXWORKERS]; /* [n] StarPU ids */
    uint32_t mask[MASK_WORDS];
    int package, numa; /* logical indices */
    int card;          /* a GPU's number in the rank's node_card; -1: cores */
    int exchanger;     /* a GPU's StarPU worker for collectives */
    shard *token;      /* shard that collectives update, so that they run one after the other; NULL before the first */
    char token_data;
} own_place;

/* A GPU of this rank. */
typedef struct own_gpu {
    int device, card;  /* CUDA's number; its number in the rank's node_card */
    int package, numa; /* logical indices of the package and NUMA domain next to it */
    int pu;            /* of the thread that drives it; -1: none is free */
} own_gpu;

/* gpus.c: the GPUs of this rank. */
typedef struct context_own_gpus {
    const context_gpus *cuda; /* NULL where no GPU is wanted or found */
    int n_visible;            /* that the process sees, wanted or not */
    int n_seen, n;
    context_gpu seen[NODE_MAX_GPUS]; /* [n_seen] that the process sees and wants */
    own_gpu own[NODE_MAX_GPUS];      /* [n] */
    int64_t bytes;                   /* bytes that tensors may take of each */
    int64_t wanted;                  /* bytes that the largest task in flight needs, under runtime_lock */
    char wanted_by[TRAMA_GPU_TASK_ROOM];
    int of_all_ranks;          /* sum over the ranks of their GPUs: a shared one counts for each */
    bool exclusive;            /* no GPU is shared by two ranks */
    ARRAY(gpu_group *) groups; /* gpu_group.c */
} context_own_gpus;

/* The ranks on this node. */
typedef struct context_node {
    int ranks;
    int sharers;              /* ranks with the same PUs, this one included */
    double quota;             /* CPUs' worth of time of the control groups, 0: no limit */
    const char *unshared_why; /* why ranks do not read each other's memory; NULL: they do */
} context_node;

/* The places of all ranks, and those of this one. */
typedef struct context_places {
    machine *machine;
    int first, n;                      /* first place and number of places of this rank */
    own_place *own;                    /* [n] */
    uint32_t cpu_mask[MASK_WORDS];     /* CPU workers of the rank */
    uint32_t (*of_worker)[MASK_WORDS]; /* [workers] by StarPU id */
} context_places;

/* Collective calls, and objects that live on the context. */
typedef struct context_calls {
    context_tenant *tenants; /* the newest first; under runtime_lock */
    int64_t n;
    char last[200]; /* source line of the last collective call that was compared */
    char *disorder; /* message of every later collective call, which does nothing else; NULL: none */
    int64_t tasks;  /* submitted to workers */
} context_calls;

/* driver.c */
typedef struct context_driver {
    bool started_starpu; /* Trama started StarPU, so it may pause it and must end it */
    bool started_starpumpi;
    bool messages;         /* StarPU-MPI runs on comm */
    bool driven;           /* StarPU-MPI's thread drives worker 0 */
    bool bound;            /* workers are bound to cores */
    guest_binding starter; /* the thread that started the context */
    int mpi_pu;            /* logical PU of StarPU-MPI's thread, -1 where driven or left to the system */
    const char *scheduler;
    const char *workers_why, *driven_why; /* for people */
} context_driver;

/* tracing.c */
typedef struct context_trace {
    char *folder;   /* NULL: no trace */
    bool own_clock; /* another clock than rank 0's: another node */
} context_trace;

/* rest.c, under runtime_lock but for the atomics */
typedef struct context_rest_state {
    atomic_int depth; /* open brackets of context_wake */
    atomic_bool awake, armed;
    int hook, yield_hook;        /* -1 where not registered */
    void (*changed)(bool awake); /* NULL: not watched */
    bool mpi_yields;             /* StarPU-MPI's thread drives worker 0, and yields its core while it waits */
    _Atomic int64_t idle_since;
    starpu_data_handle_t keep_in, keep_out;
    int64_t keep_data[2];
} context_rest_state;

/* fence.c, under runtime_lock but for the atomics */
typedef struct context_fences {
    atomic_long under_way, completions;
    _Atomic int64_t last_wait; /* ns of the last wait */
    int waiters;               /* waiting threads; more than one only where several threads use one context */
    const atomic_long *waited; /* count that the last of them waits for: completions of other fences wake no thread */
    fence *idle;
} context_fences;

/* loan.c */
typedef struct context_loans {
    pthread_mutex_t lock;
    atomic_int n;              /* posts that wait for the other rank */
    struct loan_post *waiting; /* [n] */
    int hook;                  /* -1: not registered */
    ARRAY(int64_t) cells;      /* of the node memory, that no loan has */
} context_loans;

/* message.c */
typedef struct context_messages {
    pthread_mutex_t lock;
    message_record *oldest, *newest, *idle;
    context_counters counters;
    atomic_long of_call[MESSAGE_CALLS]; /* messages in flight of the calls that have one set of tags */
} context_messages;

struct trama_context {
    trama_config config;
    char cpu_kind[64]; /* name of the arithmetic of this rank's CPU places */
    comm comm;
    hwloc_topology_t topology;
    hwloc_bitmap_t allowed; /* PUs that this rank may use; others may too */
    place_list cores;
    context_own_gpus gpu;
    context_node node;
    context_places place;
    context_calls calls;
    context_driver driver;
    context_trace trace;
    context_rest_state rest;
    context_fences fences;
    context_messages message;
    context_loans loans;
    pool *pool;
    node_memory *node_memory;            /* NULL: none is shared */
    struct worker_memory *worker_memory; /* NULL: no task needed any */
};

/* One for the process, since a late completion may still lock it. */
extern pthread_mutex_t runtime_lock;

int64_t runtime_now(void);                         /* ns, monotonic */
void runtime_condition(pthread_cond_t *condition); /* initialises it for timed waits on the clock of runtime_now */

/* driver.c: StarPU and StarPU-MPI for c->cores, or the host's. driver_prepare finds c->cores and decides how messages
 * are driven. driver_start makes c->place.own, without c->place.machine. */
trama_status driver_prepare(trama_context *c, const place_claim *claim);
trama_status driver_start(trama_context *c);
void driver_stop(trama_context *c);
bool driver_bound_by_variable(const trama_context *c); /* StarPU prefers such variables to Trama's binding */
void driver_stop_messages(trama_context *c);           /* collective; nothing in flight; StarPU stays */

/* rest.c. rest_start leaves the context at rest. */
void rest_start(trama_context *c);
void rest_now(trama_context *c);          /* nothing in flight */
void rest_stop(trama_context *c);         /* nothing in flight; workers are awake afterwards */
void rest_end_messages(trama_context *c); /* nothing in flight; before StarPU-MPI ends and StarPU stays */
void rest_when_idle(trama_context *c);    /* under runtime_lock, nothing in flight */

/* leave.c: the ends of a process. From leave_start to leave_stop it ends the context at exit. leave_hold_others: once
 * the process exits, it stops every other thread for good. */
void leave_start(trama_context *c);
void leave_stop(void);
void leave_hold_others(void);

/* context.c: does as trama_stop, but frees no memory, and only rests where there are GPUs, since CUDA may have ended.
 * Collective, nothing in flight. */
void context_abandon(trama_context *c);

/* watchdog.c: reports that no task or message has ended for `waited` ns while `what` waits. It ends the job where NCCL
 * has failed, and where GPUs lack memory for three periods of the watchdog and no message is in flight. */
void watchdog_report(trama_context *c, const char *what, int64_t waited);

/* vigil.c: until vigil_end, reports to the log every config.watchdog seconds that `what` waits. For calls that block
 * inside MPI. NULL where no thread can be made; vigil_end takes NULL. */
typedef struct vigil vigil;
vigil *vigil_begin(const trama_config *config, const char *what);
void vigil_end(vigil *v);

/* room.c. E_SYSTEM where so many threads cannot be made, or the memory for StarPU's start cannot be mapped. room_end:
 * where that or context_check_room has failed, or OpenBLAS might wait for ever, an exiting process ends at once with
 * its status. */
trama_status room_check(int threads);
void room_end(void);

/* loan.c: loans_start comes after node_memory_start. loans_look: lets those go on that the other rank lets go on. */
void loans_start(trama_context *c);
void loans_stop(trama_context *c);
void loans_look(trama_context *c);

/* fence.c, message.c, pool.c */
void fence_start(trama_context *c);
void fence_stop(trama_context *c);
void message_start(trama_context *c);
void message_stop(trama_context *c);
void pool_start(trama_context *c);
void pool_stop(trama_context *c);
int64_t pool_on_node(const trama_context *c, unsigned node); /* bytes of shards that StarPU holds on a memory node */

#endif
