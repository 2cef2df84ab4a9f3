/* SPDX-License-Identifier: Apache-2.0 */
/* The context for the library: machine table, this rank's workers, log, collective calls, rest. It owns StarPU and MPI,
 * and knows neither ops nor plans. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdatomic.h>

#include "machine.h"
#include "trama_context.h"

/* A GPU that the process may use. */
typedef struct context_gpu {
    int device;    /* CUDA's number */
    char kind[64]; /* name of its arithmetic: GPUs of one kind compute equal bits */
    uint8_t uuid[16];
    int pci[3]; /* domain, bus, device */
} context_gpu;

/* Functions over CUDA, which the caller gives: runtime knows no CUDA. */
typedef struct context_gpus {
    int (*list)(context_gpu *gpus, int most, const char **why); /* number of GPUs; 0: *why */
    const char *(*open)(int device);            /* a context, the thread's if it has none; NULL, or the reason */
    int64_t (*free_bytes)(int device);          /* now */
    bool (*start)(bool tf32, const char **why); /* when StarPU's workers run and are awake; false: *why */
    void (*stop)(void);                         /* before the workers end; always after start */
} context_gpus;

/* ---- Life ---------------------------------------------------------------------------------- */

/* Collective over the communicator of the configuration. Finds places, agrees on the machine table, starts MPI where it
 * is needed, and starts StarPU or adopts the host's. config may be NULL. cpu_kind names the arithmetic of CPU places,
 * such as "cpu:SkylakeX"; places with equal names get equal machine_place.kind, on all ranks. gpus: NULL without CUDA.
 * The context is at rest. Errors, the same on every rank, with *context NULL: E_ORDER where a context is live,
 * E_ARGUMENT, E_SYSTEM. */
trama_status context_create(const trama_config *config, const char *cpu_kind, const context_gpus *gpus,
                            trama_context **context);

/* Collective. Waits (watchdog) until nothing is in flight, empties the pools, ends StarPU where Trama started it, nulls
 * *context; NULL is allowed. E_ORDER, and nothing is done, while there are tenants, which the message names. E_ORDER,
 * and all is done, where the ranks have made different calls. */
trama_status context_destroy(trama_context **context);

/* E_ORDER in a child of fork, which has the memory of a context but none of its threads, and would wait for ever. Every
 * public call that takes a context or an object of a context begins with it. */
trama_status context_check(trama_where where, const char *call);

/* E_SYSTEM, naming `what`, where the process cannot map so many more bytes of address space. */
trama_status context_check_room(size_t bytes, const char *what);

/* Whether the address space of the process is limited, as by ulimit -v. */
bool context_has_limited_room(void);

/* An object that must end before the context: a part of each executable and wrapped tensor. */
typedef struct context_tenant {
    const char *what;            /* "an executable"; borrowed, as all texts here */
    const char *name;            /* NULL: it has none */
    const char *ends;            /* the call that ends it */
    trama_where where;           /* of the call that made it; file NULL: not known */
    struct context_tenant *next; /* the one entered before it */
} context_tenant;

/* Any thread. */
void context_enter(trama_context *c, context_tenant *tenant);
void context_leave(trama_context *c, context_tenant *tenant);

/* ---- Facts ------------------------------------------------------------------------------------ */

const machine *context_machine(const trama_context *c); /* equal on all ranks; owned by the context */
int context_rank(const trama_context *c);
int context_ranks(const trama_context *c);

/* Options with defaults, environment variables and limits resolved. workers is never 0; max_in_flight, max_tiles and
 * gpu_memory stay 0 where the user left them open. communicator is NULL, log never. */
const trama_config *context_config(const trama_context *c);

/* This rank's places are [first, first + n) of the machine table: those of CPUs, then those of GPUs. */
int context_first_place(const trama_context *c);
int context_n_places(const trama_context *c);

/* Below, place is the index of one of this rank's places in the machine table; lane is in [0, machine_place.workers).
 * Masks are static for the life of the context: task->workerids = (uint32_t *)mask, task->workerids_len =
 * context_mask_words(c). */
unsigned context_mask_words(const trama_context *c);
const uint32_t *context_place_mask(const trama_context *c, int place);
const uint32_t *context_cpu_mask(const trama_context *c); /* all CPU workers of the rank, also those of no place */
int64_t context_gpu_bytes(const trama_context *c);        /* bytes that tensors may take of each GPU; 0: no GPU */
int context_gpu_steps(const trama_context *c);            /* config.gpu_steps */
const uint32_t *context_lane_mask(const trama_context *c, int place, int lane);
int context_lane_worker(const trama_context *c, int place, int lane); /* StarPU worker id */
int context_exchanger(const trama_context *c, int place);             /* worker id for the collectives of a GPU place */

/* For the watchdog: the caller now submits a task named `of` that needs `bytes` bytes of a GPU at a time. */
enum { TRAMA_GPU_TASK_ROOM = 160 };
void context_gpu_wanted(trama_context *c, int64_t bytes, const char *of);

/* ---- Log and counters --------------------------------------------------------------------------- */

/* Writes to config.log, from any thread; at most 4095 characters. The caller's text begins with "rank r: " where that
 * matters. */
void context_log(const trama_context *c, trama_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Messages that this rank has posted through message.h since the start. */
typedef struct context_counters {
    int64_t messages_sent, bytes_sent, messages_received, bytes_received;
    int64_t messages_borrowed; /* of the received ones those whose elements stay in the sender's memory (loan.h) */
} context_counters;
context_counters context_count(const trama_context *c);

/* ---- Traces ---------------------------------------------------------------------------------------- */

bool context_traces(const trama_context *c);

/* For traces: counts tasks submitted to workers; sets the step and micro-step of the tasks submitted from now on, -1:
 * none. The submitting thread calls both. */
void context_count_tasks(trama_context *c, int n);
void context_step(trama_context *c, int64_t step, int64_t micro_step);

/* ---- Collective calls ------------------------------------------------------------------------------ */

/* The number of the next collective call of the public API: 0, 1, ... in the same order on all ranks. Not a message. */
int64_t context_next_call(trama_context *c);

/* The calls below are collective, wait under the watchdog, and exchange nothing with one rank. `what` names the call
 * for the watchdog ("trama_compile"). Workers need not be awake. */

/* all [ranks][bytes] gets every rank's `bytes` bytes. */
trama_status context_gather(trama_context *c, const char *what, const void *mine, size_t bytes, void *all);

/* theirs [bytes] gets the `mine` of another rank, which swaps as many bytes with this one. */
trama_status context_swap(trama_context *c, const char *what, int rank, const void *mine, void *theirs, size_t bytes);

/* Begins every collective call of the public API. With config.check_calls it compares the words of the call, such as
 * "trama_run(train)", over the ranks. Where they differ, all ranks get E_ORDER with one message: two ranks' words and
 * their lines. From then on, and after context_disagree, every call answers that message at once. */
trama_status context_call(trama_context *c, trama_where where, const char *what, const char *words);
bool context_compares(const trama_context *c); /* whether context_call compares words */

/* *other: the first rank whose hash differs from rank 0's, or 0. Collective. */
trama_status context_find_other(trama_context *c, const char *what, uint64_t hash, int *other);

/* Notes that the ranks differ: later calls answer E_ORDER with this message, as this one does. All ranks give the same
 * message. */
trama_status context_disagree(trama_context *c, const char *message);

/* OK if all ranks say OK; else every rank gets the status and message of the first rank that failed. Use after steps
 * that can fail on some ranks only (memory, files). `mine` is taken with this thread's trama_error(). */
trama_status context_agree(trama_context *c, const char *what, trama_status mine);

trama_status context_barrier(trama_context *c, const char *what);

/* ---- Rest -------------------------------------------------------------------------------------------- */

/* Where Trama started StarPU, workers are paused while nothing is in flight and no bracket is open. A bracket is
 * context_wake ... context_rest; tasks, messages and acquires are submitted inside one. Brackets nest and cost about 50
 * ns while the workers are awake. After the last context_rest the workers pause 2 ms after all fences have
 * completed. */
void context_wake(trama_context *c);
void context_rest(trama_context *c);

/* changed(true) is called at each wake, before the first task; changed(false) at each rest, after the last task; and
 * changed(the present state) now. Calls come from any thread, under a lock. An adopted StarPU never rests after its
 * first wake. */
void context_watch_rest(trama_context *c, void (*changed)(bool awake));

#endif
