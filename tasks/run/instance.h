/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with its memory: every shard of the plan bound to a buffer, every step lowered to a ready task or message. */
#ifndef INSTANCE_H
#define INSTANCE_H

#include "arena.h"
#include "faults.h"
#include "gpu_group.h"
#include "message.h"
#include "partition.h"
#include "shard.h"
#include "work.h"

/* A step, lowered: submitting it is a copy of a struct. */
typedef struct lowered {
    struct starpu_task task; /* template; cl_arg is the work */
    work work;
    int n_handles;           /* above STARPU_NMAXBUFS they go in dyn_handles */
    starpu_data_handle_t *handles;
    enum starpu_data_access_mode *modes;
    step_kind kind;
    int peer;
    int64_t tag;
    int priority;
    bool rendezvous;
    const char *label;
} lowered;

/* The steps lowered for one choice of slots of the imports. */
typedef struct lowering {
    arena memory; /* of all below */
    int n;
    lowered *steps;
    shard **shards; /* [plan->shards] those within others that change are the lowering's own */
    int n_used;
    struct use {
        shard *s;
        int reads; /* by one submission */
        bool writes;
    } *used;    /* [n_used] */
    int *slots; /* [imports] of their owners */
} lowering;

/* What a plan is about, kept as long as an instance of it lives. */
typedef struct compiled_plan {
    const trama_program *program;
    plan *plan;
    trama_rule *rules;   /* [node id] */
    trama_shape *shapes; /* [value id] */
    int *forms;          /* [value id] eager mode: equal numbers for values that are stored alike */
    int users;           /* instances */
    const gpu_group **groups; /* [plan->groups] of the context; NULL before the first instance */
    faults *faults;      /* where kernels that fail are told; NULL: there is none that can */
    char **names;        /* [value id] for traces and messages, of values that have shards */
    int64_t gpu_bytes;   /* of the step that takes most of a GPU at a time, and what it is; 0 */
    char gpu_step[TRAMA_GPU_TASK_ROOM];
    size_t instance_bytes, lowering_bytes; /* what the last ones took */
} compiled_plan;

typedef struct instance instance;
struct instance {
    trama_context *context;
    compiled_plan *of;             /* borrowed */
    int holders;               /* the executable, and instances that import from it */
    const struct trama_wrapped *host; /* its shards are the host's: what it was wrapped as; NULL */
    int n_slots;               /* copies of the shards of source SHARD_INPUT, so that several steps may be in flight */
    int slot;                  /* the copy in use */
    int64_t *slot_used;        /* [n_slots] number of the last run that reads a copy; -1 */
    shard **shards;            /* [n_slots][plan->shards]; NULL for imports */
    struct owner {
        instance *in;          /* that made the shard; held */
        int shard;
    } *owners;                 /* [plan->imports] */
    arena memory;              /* of all above */
    ARRAY(lowering) lowerings; /* few: the slots go round */
};

/* Where a value is: an instance, and its number in that instance's plan. */
typedef struct value_ref {
    instance *in; /* NULL: nowhere */
    int as;
} value_ref;

/* Makes the names. */
void compiled_plan_finish(compiled_plan *b);
void compiled_plan_clear(compiled_plan *b); /* frees plan, rules, shapes and names */

/* at [value id]: where the values are that it imports; NULL where there are none. E_MEMORY leaves nothing behind. */
trama_status instance_create(trama_context *context, compiled_plan *of, const value_ref *at, int n_slots, instance **created);

/* Lets go of it and nulls *in. The last holder frees it; nothing of it may be under way then. Buffers go back to the pool. */
void instance_release(instance **in);

/* The buffer of a shard, in the copy that its owner uses now, and the view of a region in its buffer. */
shard *instance_shard(const instance *in, int number);

/* Whether a shard is the instance's own and the same in every run; else it may change with what is fed. */
bool instance_keeps(const instance *in, int number);

/* A shard in the memory of `base`: with its strides, or in a window one element after the other. */
shard *instance_lend(const instance *in, const plan_shard *s, const shard *base);

/* For traces: the buffer is called after the value that the shard is of. */
void instance_label(const instance *in, const plan_shard *s, shard *bound);

trama_view instance_view(const instance *in, const plan_region *region, const shard *bound);

/* Submits all steps, as the next collective call (its number makes the tags of messages). step: for the watchdog. All ranks
 * do the same; every SYNC_CALLS calls they wait for each other, so that tags, which come round, are never mistaken. */
enum { SYNC_CALLS = 64 };
void instance_submit(instance *in, int64_t step, fence *f);

#endif
