/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with its memory: every shard bound to a buffer, every step lowered to a task template or a message. */
#ifndef INSTANCE_H
#define INSTANCE_H

#include "arena.h"
#include "faults.h"
#include "gpu_group.h"
#include "loan.h"
#include "message.h"
#include "partition.h"
#include "segment.h"
#include "shard.h"

/* Room of a new task for n handles. */
static inline void task_room(struct starpu_task *task, int n)
{
    task->nbuffers = n;
    if (n <= STARPU_NMAXBUFS)
        return;
    task->dyn_handles = trama_resize(NULL, (size_t)n * sizeof *task->dyn_handles);
    task->dyn_modes = trama_resize(NULL, (size_t)n * sizeof *task->dyn_modes);
}

/* A lowered step, of which each submission makes a task or a message. */
typedef struct lowered {
    work work;
    int n_handles; /* above STARPU_NMAXBUFS they go in dyn_handles */
    starpu_data_handle_t *handles;
    enum starpu_data_access_mode *modes;
    step_kind kind;
    int priority;
    const char *label; /* of a task: its name; of a message: its value's */
    union {
        struct { /* of a task */
            double flops;
            bool on_gpu;          /* worker is a GPU's */
            segment *segment;     /* on a GPU: the task's; NULL: a later step's task does its work */
            bool nowhere;         /* it runs on no worker */
            int worker;           /* the only one that may run it; -1: several, or none */
            const uint32_t *mask; /* of workers that may run it; NULL: all */
        };
        struct { /* of a message */
            int64_t tag;
            int peer;
            bool rendezvous;
            loan *loan; /* NULL: the elements are sent */
        };
    };
} lowered;

/* The steps lowered for one choice of slots of the imports. */
typedef struct lowering {
    arena memory;            /* of all fields below */
    struct starpu_task task; /* that all tasks have in common */
    int n, tasks, orders;    /* steps; those of them that become tasks; tasks that run on no worker */
    int64_t gpu_bytes;       /* most memory that a segment takes of a GPU, and its name; 0: none */
    const char *gpu_name;
    lowered *steps;
    shard **shards; /* [plan->shards]; the lowering owns those that lie within shards that change */
    int n_used;
    struct use {
        shard *s;
        int reads; /* by one submission */
        bool writes;
    } * used;   /* [n_used] */
    int *slots; /* [imports] the slot of each owner in use */
    int n_returns;
    struct loan_return_point {
        int step, receive; /* the loan that a receive takes is returned behind the step */
    } * returns;           /* [n_returns] by step */
} lowering;
typedef struct loan_return_point loan_return_point;

/* A compiled plan: the plan with the program, rules and shapes that it refers to. It outlives its instances. */
typedef struct compiled_plan {
    const trama_program *program;
    plan *plan;
    node_rules rules;
    trama_shape *shapes;      /* [value id] */
    int *forms;               /* [value id] eager mode: equal numbers for values of one form (eager_key.c) */
    int users;                /* instances */
    const gpu_group **groups; /* [plan->groups] of the context; NULL before the first instance */
    faults *faults;           /* where failed kernels are noted; NULL: no kernel can fail */
    char **names;             /* [value id] for traces and messages; NULL for values without shards */
    int64_t gpu_bytes;        /* most memory that a step takes of a GPU, and that step; 0: none */
    char gpu_step[TRAMA_GPU_TASK_ROOM];
    size_t instance_bytes, lowering_bytes; /* arena bytes of the last ones */
} compiled_plan;

typedef struct instance instance;
struct instance {
    trama_context *context;
    compiled_plan *of;                /* borrowed */
    int holders;                      /* the executable, and instances that import from it */
    const struct trama_wrapped *host; /* the wrapped tensor whose memory its shards are; NULL */
    int n_slots;                      /* copies of the shards of source SHARD_INPUT, one for each run in flight */
    int slot;                         /* the copy in use */
    int64_t *slot_used;               /* [n_slots] number of the last run that reads a copy; -1 */
    shard **shards;                   /* [n_slots][plan->shards]; NULL for imports */
    struct owner {
        instance *in; /* the instance that made the shard; held */
        int shard;
    } * owners;                /* [plan->imports] */
    loan **loans;              /* [plan->steps] of messages; NULL: there are none (loans.h) */
    shard **borrowed;          /* [plan->shards] in the memory of another rank, in place of the own ones; NULL: none */
    arena memory;              /* of all fields above */
    ARRAY(lowering) lowerings; /* one for each choice of slots of the imports */
};

/* A value reference: an instance, and the value's number in its plan. */
typedef struct value_ref {
    instance *in; /* NULL: nowhere */
    int as;
} value_ref;

/* Sets names, called once the plan is made. */
void compiled_plan_finish(compiled_plan *b);
void compiled_plan_clear(compiled_plan *b); /* frees plan, rules, shapes and names */

/* at [value id]: references of the values that the plan imports; NULL where it imports none. E_MEMORY leaves nothing
 * behind. */
trama_status instance_create(trama_context *context, compiled_plan *of, const value_ref *at, int n_slots,
                             instance **created);

/* Lets go of the instance and nulls *in. The last holder frees it, when none of its tasks may be in flight. Buffers go
 * back to the pool. */
void instance_release(instance **in);

/* The view of a region in a buffer with the box `whole` and the strides; at: where it begins, in bytes. */
trama_view instance_region(const instance *in, const plan_region *region, const box *whole, const int64_t *stride,
                           int64_t *at);

/* The buffer of a shard, in the copy that its owner uses now, and the view of a region in its buffer. */
shard *instance_shard(const instance *in, int number);

/* Whether the instance owns the shard and keeps it in every run; others may change with the fed slot. */
bool instance_keeps(const instance *in, int number);

/* A shard in the memory of `base`: with the strides of base, or in a staging buffer without gaps. */
shard *instance_lend(const instance *in, const plan_shard *s, const shard *base);

/* Names the buffer after the shard's value, for traces. */
void instance_label(const instance *in, const plan_shard *s, shard *bound);

trama_view instance_view(const instance *in, const plan_region *region, const shard *bound);

/* Submits all steps as the next collective call, whose number makes the tags of messages. step: for the watchdog.
 * Collective. Ranks wait for each other every SYNC_CALLS calls, so a receiver stores the early messages of fewer
 * calls. */
enum { SYNC_CALLS = 64 };
void instance_submit(instance *in, int64_t step, fence *f);

#endif
