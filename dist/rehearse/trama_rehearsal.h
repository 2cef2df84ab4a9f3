/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsal: a target on a described machine without running it. All ranks are planned, and discrete events simulate
 * their tasks and messages. The same arguments give the same report. */
#ifndef TRAMA_REHEARSAL_H
#define TRAMA_REHEARSAL_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* A described machine: kinds of nodes, nodes, and a tree of switches between them. */
typedef struct trama_cluster trama_cluster;

/* Makes a machine from text, one statement a line; '#' begins a comment. Quantities take a prefix of n, u, m, k, M, G,
 * T and a unit: 25GB/s, 2us, 40Gflop/s.
 *
 *   kind NAME                     a kind of node, which the statements up to the next kind describe
 *   cores N                       cores of a node, divided among its ranks, which share fewer cores than ranks (1; of
 *                                 several ranks it must be there)
 *   ranks N                       ranks of a node (1)
 *   gpus N                        GPUs of a node, divided among its ranks, which then run on them alone (0)
 *   core TYPE RATE [WORK]         flop/s of a core for an element type (f32, f64, ...), or B/s for the word memory
 *   gpu TYPE RATE [WORK]          the same of a GPU
 *   op NAME TYPE RATE [WORK]      the same of a core for one op, which precedes `core`; NAME also for NAME_grad; also
 *                                 NAME = copy, fill, add for terms of sums, matvec for products with vectors (as matmul),
 *                                 own for ops that programs define and that have no line of their name, lent for what
 *                                 a core reads in the memory of another rank of its node, shared for results that
 *                                 replace data which other cores of the rank have read, message for copies of messages,
 *                                 at each end (none)
 *   cache BYTES [RATE]            of a core: operands that it used last, and less than BYTES of others since, come at
 *                                 RATE B/s (100GB/s) in place of memory's; 0 has none (0)
 *   far BYTES [RATE [WRITTEN]]    operands that a core used last, and more than BYTES of others since, come at RATE B/s
 *                                 (10GB/s) in place of memory's, and results go back at WRITTEN (as RATE); BYTES of 0
 *                                 turn this off (0)
 *   task TIME [OPERAND]           of a worker, for each task, and more for each tile of its operands (1us 0s)
 *   submit TIME [OPERAND [RUN]]   of the submitting thread, for each task and message, more for each tile of a task's
 *                                 operands, and for each run (0s 0s 0s)
 *   read TIME                     of the submitting thread, for each value that the program reads between runs (0s)
 *   feed RATE                     B/s at which the submitting thread copies inputs (10GB/s)
 *   message TIME [SUBMIT [EVICTED]]
 *                                 of a core, for each message that is sent or received; of the submitting thread, more
 *                                 than for a task; and how many times as long TIME is by the line evict (1us 0s 1)
 *   evict BYTES [TASK [SUBMIT]]   where a rank has BYTES or more of memory for each worker, which push that of the runtime
 *                                 out of the cache: the times of task are TASK times as long, those of submissions,
 *                                 but for the run's, SUBMIT times, and those of messages as their line says; parts of
 *                                 that with less memory; BYTES of 0 turn this off (0 1 1)
 *   local BANDWIDTH TIME          the memory through which ranks of one node send (10GB/s 1us)
 *   pcie BANDWIDTH                between the memories of a GPU and its node (16GB/s)
 *   eager BYTES                   messages above it that a plan sends by rendezvous wait for their receivers (1MB)
 *   switch NAME [in NAME BANDWIDTH TIME]
 *   nodes N KIND [in SWITCH BANDWIDTH TIME]
 *
 * A task takes the time of its flop or that of its bytes, the longer one; on a core a product takes both, and so does an
 * op that a program defines, unless its bytes are far or in the core's cache. Bytes are those of its operands, twice
 * those of its results. Results of a product come at the rate of `core memory`. Lines with WORK give the rate of a task
 * of that many flop or bytes; between two of them the rate is interpolated over the logarithm of the work. Links have
 * their bandwidth in each direction. A rank's thread has a core while it submits, and its workers
 * share the others. Errors: E_ARGUMENT for NULL, and with the line and the remedy for text that does not fit; E_MEMORY.
 * *cluster is set on TRAMA_OK only; the caller destroys it.
 */
trama_status trama_cluster_create(const char *text, trama_cluster **cluster);
void trama_cluster_destroy(trama_cluster **cluster);   /* NULL is allowed */
int trama_cluster_ranks(const trama_cluster *cluster); /* of all nodes; 0 for NULL */

/* The phases of a rehearsal, as trama_rehearsal_tell gets them. */
typedef enum trama_rehearsal_phase {
    TRAMA_REHEARSAL_COMPLETE, /* layouts are complete */
    TRAMA_REHEARSAL_MAP,      /* processes have places */
    TRAMA_REHEARSAL_PLAN,     /* one more rank is planned */
    TRAMA_REHEARSAL_SIMULATE  /* the simulation is done */
} trama_rehearsal_phase;

/* Called at the end of each phase; `made` of `ranks` ranks are planned. */
typedef void (*trama_rehearsal_tell)(void *closure, trama_rehearsal_phase phase, int made, int ranks);

/* A task or a message of the simulation, for traces. A step that only orders others is a task of no worker, and takes
 * no time. */
typedef struct trama_rehearsed {
    int rank, worker;   /* of a message its sender, and -1; -1 of a step that only orders others */
    int peer;           /* of a message its receiver; of a task -1 */
    int run;            /* from 0 */
    int priority;       /* of a task, or of the sending step */
    const char *name;   /* of the op, as traces have it; of a message the value's; it lives during the call */
    double begin, end;  /* seconds */
    double flops;       /* of a task */
    int64_t bytes, tag; /* of a message */
    int step;           /* of the rank's plan, as in trama_rehearsed_step: the task, or the step that sends */
    int received;       /* of a message: the step of its peer that receives it; of a task -1 */
    double submitted;   /* seconds: when the program's thread had submitted the step */
} trama_rehearsed;
typedef void (*trama_rehearsal_event)(void *closure, const trama_rehearsed *event);

/* A step of a rank's plan, before anything is simulated: a task, an order, or an end of a message. In the simulation a message
 * between ranks of one node takes less where its receiver reads the sender's memory. */
typedef struct trama_rehearsed_step {
    int rank, step;       /* step: from 0, in the order of submission */
    int worker;           /* of the rank; -1: any of the place, or none */
    int place;            /* of the rank */
    int priority;         /* larger is first */
    int peer;             /* of an end of a message the other rank; of a task -1 */
    bool sends;           /* it is the end that sends */
    bool orders;          /* it is done as soon as all steps are that it waits for; it takes no worker, and no time */
    bool gpu;             /* it is a task of a GPU */
    const char *name;     /* as in trama_rehearsed; it lives during the call */
    double seconds;       /* of a core or GPU that it has to itself, with the machine's `task` or `message` time */
    double flops;         /* of a task */
    int64_t bytes, tag;   /* of a message; ends with equal ranks and tag match */
    int n_next;           /* entries of next */
    const int *next;      /* the steps of the rank that wait for it, in the same run */
    int n_again;          /* entries of again; 0 with one run */
    const int *again;     /* the steps of the next run that do */
} trama_rehearsed_step;
typedef void (*trama_rehearsal_step)(void *closure, const trama_rehearsed_step *step);

/* A zeroed struct takes every default. */
typedef struct trama_rehearsal_options {
    size_t size;       /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    int ranks;         /* ranks that take part; 0: as many as the program has processes, at most the machine's */
    int runs;          /* of the target, one after the other; 0: 1 */
    int max_in_flight; /* runs in flight, 1 to 64; 0: 2 */
    int64_t any;       /* extent fed for TRAMA_ANY; 0: 1024 */
    int64_t nominal;   /* as in trama_config; 0: 1024 */
    int max_tiles;     /* as in trama_config */
    int64_t grain_flops, grain_bytes, staging_bytes; /* as in trama_config */
    bool plan_only;                                  /* plan the rank `rank` alone, and simulate nothing */
    int rank; /* the one that plan_only plans */
    trama_rehearsal_tell tell;   /* NULL: nothing */
    trama_rehearsal_event event; /* NULL: nothing; called in the order of ends */
    void *closure;               /* first argument of all */
    double own_seconds; /* of the program's own work before each run, on the thread that submits it; 0: none */
    trama_rehearsal_step step; /* NULL: nothing; called for the steps of each rank, in their order, once it is planned */
    int reads; /* small values that the program reads after each run, say by trama_watch_next */
} trama_rehearsal_options;

/* The figures of a rehearsal. With plan_only the times are 0 and the counts are those of the one rank. */
typedef struct trama_rehearsal_report {
    size_t size;         /* set by the caller, or 0 */
    int ranks, runs;     /* that were simulated */
    double seconds;      /* from the first task to the last */
    double step_seconds; /* of a run: seconds of one; of two, between their ends; of n, from the end of the first to that
                            of the last but one, over n - 2, since the last one has no run behind it */
    double idle;         /* share of the workers' time without a task or message, 0 to 1 */
    double hidden;       /* share of the time in which a rank has messages under way while a task runs; 1 without any */
    int64_t steps, messages, bytes; /* of a run, all ranks: steps of the plans; messages, and their bytes */
    int64_t memory;  /* bytes of buffers of the rank with the most: of the plan, state, and inputs of runs in flight */
    int memory_rank; /* that rank */
    int64_t buffers, live; /* of these the buffers that its plan makes, and the most that its steps need at a time */
    int path;              /* entries of the critical path: see trama_rehearsal_path */
    double work_seconds;   /* one run among many takes as long at least: the rank with most work, on all its workers */
    double link_seconds;   /* and as long: the bytes of the link that carries most, at its bandwidth */
} trama_rehearsal_report;

typedef struct trama_rehearsal trama_rehearsal; /* the results of a rehearsal */

/* Rehearses runs of the target. Several processes share a rank where the machine has fewer ranks. options may be NULL.
 * Changes of layout among GPUs are messages, never collectives. Errors: the program's first error; E_ARGUMENT for NULL
 * and for options out of range; E_UNSUPPORTED for a target that merges gradients and for pipeline stages; E_SHAPE and
 * E_LAYOUT as of trama_run; E_SYSTEM where ranks wait for each other, with the step that waits; E_MEMORY. *rehearsal is
 * set on TRAMA_OK only; the caller destroys it. */
trama_status trama_rehearse(const trama_target *target, const trama_cluster *cluster,
                            const trama_rehearsal_options *options, trama_rehearsal **rehearsal);
void trama_rehearsal_destroy(trama_rehearsal **rehearsal); /* NULL is allowed */

/* Fills the report. E_ARGUMENT for NULL. */
trama_status trama_rehearsal_read(const trama_rehearsal *rehearsal, trama_rehearsal_report *report);

/* Bytes of a rank's buffers, as report.memory; 0 for NULL and for a rank that was not planned. */
int64_t trama_rehearsal_memory(const trama_rehearsal *rehearsal, int rank);

/* Entry i of the critical path, the longest first: the name of an op, "message" or
 * "submission", and the seconds that such steps take on the chain of steps that ends last. *name lives as long as the
 * rehearsal, and may be NULL. Returns 0, with *name NULL, for NULL and for an i out of range. */
double trama_rehearsal_path(const trama_rehearsal *rehearsal, int i, const char **name);

/* All figures as text, for people. E_ARGUMENT for NULL, E_MEMORY. trama_text_free frees it. */
trama_status trama_rehearsal_text(const trama_rehearsal *rehearsal, char **text);

TRAMA_API_END
#endif
