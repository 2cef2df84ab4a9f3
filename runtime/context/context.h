/* SPDX-License-Identifier: Apache-2.0 */
/* Inside view of the context: its machine table, this rank's workers, its log, its collective calls, its rest. It owns
 * StarPU and MPI for the library, and knows neither ops nor plans. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdatomic.h>

#include "machine.h"
#include "trama_context.h"

/* A GPU that the process may use. */
typedef struct context_gpu {
    int device;    /* as CUDA numbers them */
    char kind[64]; /* which bits it computes, as cpu_kind does */
    uint8_t uuid[16];
    int pci[3]; /* domain, bus, device */
} context_gpu;

/* What is asked of who knows CUDA, where the configuration wants GPUs. */
typedef struct context_gpus {
    int (*list)(context_gpu *gpus, int most, const char **why); /* how many there are; 0: *why */
    int64_t (*free_bytes)(int device);                           /* at this moment */
    bool (*start)(bool tf32, const char **why); /* once StarPU's workers are there, and awake; false: *why */
    void (*stop)(void);                         /* before they go; always after start */
} context_gpus;

/* ---- Life ---------------------------------------------------------------------------------- */

/* Collective over the communicator of the configuration. Finds places, agrees the machine table, starts MPI (where it
 * is needed) and StarPU (or adopts the host's). config may be NULL. cpu_kind names the bits that CPU places compute,
 * such as "cpu:SkylakeX"; places of equal text get equal machine_place.kind, on all ranks. gpus: NULL where
 * there are none. The context is at rest.
 * Errors, the same on every rank, *context NULL: E_ORDER where one is live, E_ARGUMENT, E_SYSTEM. */
trama_status context_create(const trama_config *config, const char *cpu_kind, const context_gpus *gpus,
                            trama_context **context);

/* Collective. Waits (watchdog) until nothing is under way, empties the pools, ends StarPU and MPI where Trama started
 * them, nulls *context; NULL is allowed. E_ORDER, which names them, and nothing done while tenants are there; E_ORDER,
 * but all of it done, where the ranks do not make the same calls. */
trama_status context_destroy(trama_context **context);

/* E_ORDER in a child of fork, which has the memory of a context but none of its threads, and would wait for ever. Asked
 * first by every public call that takes a context or what belongs to one. */
trama_status context_check(trama_where where, const char *call);

/* E_SYSTEM, naming `what`, where the process may not have so many more bytes of address space. */
trama_status context_check_room(size_t bytes, const char *what);

/* What must end before the context does: a part of each executable and wrapped tensor. */
typedef struct context_tenant {
    const char *what;            /* "an executable"; borrowed, as all here */
    const char *name;            /* NULL: it has none */
    const char *ends;            /* by which call */
    trama_where where;           /* of the call that made it; file NULL where that is not known */
    struct context_tenant *next; /* the one before */
} context_tenant;

/* Any thread. */
void context_enter(trama_context *c, context_tenant *tenant);
void context_leave(trama_context *c, context_tenant *tenant);

/* ---- What is known ---------------------------------------------------------------------------- */

const machine *context_machine(const trama_context *c); /* equal on all ranks; owned by the context */
int context_rank(const trama_context *c);
int context_ranks(const trama_context *c);

/* Options with every default, environment variable and limit resolved: no field is 0 but flags; `max_tiles` stays 0 where
 * the user left it (the plan then takes the workers of a place); communicator is NULL. log is never NULL. */
const trama_config *context_config(const trama_context *c);

/* This rank's places are [first, first + n) of the machine table: those of CPUs, then those of GPUs. */
int context_first_place(const trama_context *c);
int context_n_places(const trama_context *c);

/* `place` below is an index in the machine table and must be this rank's; lane is in [0, machine_place.workers). Masks
 * are static for the life of the context: task->workerids = (uint32_t *)mask, task->workerids_len =
 * context_mask_words(c). */
unsigned context_mask_words(const trama_context *c);
const uint32_t *context_place_mask(const trama_context *c, int place);
const uint32_t *context_cpu_mask(const trama_context *c); /* all CPU workers of the rank, those of no place too */
int64_t context_gpu_bytes(const trama_context *c);        /* that tensors may take of a GPU; 0 where there is none */
const uint32_t *context_lane_mask(const trama_context *c, int place, int lane);
int context_lane_worker(const trama_context *c, int place, int lane); /* StarPU worker id */
int context_exchanger(const trama_context *c, int place);             /* the same: of a GPU's collectives */

/* For the watchdog: what is submitted now has a task, `of`, that needs so many bytes of a GPU at a time. */
enum { TRAMA_GPU_TASK_ROOM = 160 };
void context_gpu_wanted(trama_context *c, int64_t bytes, const char *of);

/* ---- Log and counters --------------------------------------------------------------------------- */

/* To config.log, from any thread; at most 4095 characters. Nothing is put before it: the text says "rank r: " itself.
 */
void context_log(const trama_context *c, trama_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What this rank posted through message.h since the start. */
typedef struct context_counters {
    int64_t messages_sent, bytes_sent, messages_received, bytes_received;
} context_counters;
context_counters context_count(const trama_context *c);

/* ---- Traces ---------------------------------------------------------------------------------------- */

bool context_traces(const trama_context *c);

/* Tasks that were submitted, for whoever checks a trace; and to which step (and micro-step) what is submitted from now
 * on belongs, -1: to none. The thread that submits calls both. */
void context_count_tasks(trama_context *c, int n);
void context_step(trama_context *c, int64_t step, int64_t micro_step);

/* ---- Collective calls ------------------------------------------------------------------------------ */

/* The number of the next collective call of the public API: 0, 1, ... in the same order on all ranks. Not a message. */
int64_t context_next_call(trama_context *c);

/* The calls below are collective, wait under the watchdog, and are free where there is one rank. `what` names the
 * call for the watchdog ("trama_compile"). Workers need not be awake. */

/* all [ranks][bytes] gets every rank's `bytes` bytes. */
trama_status context_gather(trama_context *c, const char *what, const void *mine, size_t bytes, void *all);

/* Every collective call of the public API begins with it. Under config.check_calls the words of the call, such as
 * "trama_run(train)", are compared over the ranks; where they differ, all ranks get E_ORDER with one message that has
 * two ranks' words and their lines. From then on, and after context_disagree, each call answers that at once. */
trama_status context_call(trama_context *c, trama_where where, const char *what, const char *words);
bool context_compares(const trama_context *c); /* whether the words are looked at */

/* The first rank whose hash is not that of rank 0; 0 where all are equal. Collective. */
trama_status context_find_other(trama_context *c, const char *what, uint64_t hash, int *other);

/* All ranks have found that they do not do the same, and give the same message. E_ORDER. */
trama_status context_disagree(trama_context *c, const char *message);

/* OK if all ranks say OK; else every rank gets the status and message of the first rank that failed. Use after steps
 * that can fail on some ranks only (memory, files). `mine` is taken with this thread's trama_error(). */
trama_status context_agree(trama_context *c, const char *what, trama_status mine);

trama_status context_barrier(trama_context *c, const char *what);

/* ---- Rest -------------------------------------------------------------------------------------------- */

/* Workers are paused while nothing is under way and nobody submits, where Trama started StarPU. Who submits tasks,
 * messages or acquires brackets it: context_wake ... submit ... context_rest; brackets nest and cost ~50 ns when the
 * workers are awake. After the last context_rest they go to sleep as soon as all fences have completed, at once if they
 * have. */
void context_wake(trama_context *c);
void context_rest(trama_context *c);

/* changed(true) whenever it wakes, before the first task; changed(false) when it goes to rest, after the last one, and
 * now. Called from any thread, under a lock. Where the program's StarPU is adopted nothing goes to rest again. */
void context_watch_rest(trama_context *c, void (*changed)(bool awake));

#endif
