/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of an executable: the places of values, the compiled targets, the runs in flight. */
#ifndef EXECUTABLE_H
#define EXECUTABLE_H

#include "merge_gradients.h"
#include "plan_cache.h"
#include "trama_executable.h"

typedef ARRAY(int) value_ids;

/* Where a target that merges gradients is in its cycle of micro-steps. */
typedef struct merge_cycle {
    int64_t k, at;     /* k 0: it does not merge; micro-steps since the last step that was applied */
    double first, sum; /* samples of the first of them, and of all */
    trama_value *scalar[MERGE_SCALARS];
    double fed[MERGE_SCALARS]; /* as the tasks see them */
} merge_cycle;

/* A target as one program has it. */
typedef struct target_form {
    const trama_target *target;
    const layouts *l;    /* of its program */
    bool *needed, *kept; /* [node id] whose shapes are found, [value id] */
    bool *computed;      /* [node id] those needed that run; set with leader */
    int *leader;         /* [node id] */
    value_ids leaves;    /* inputs, constants, state and sources that it reads; before them: */
    int carried;         /* the first ones are values of the run that it goes on from, */
    instance *from;      /* which is in this instance, held; NULL: nothing is carried */
    value_ids results;   /* computed values that are kept */
    kept_plan *last;     /* the plan that ran last */
    ARRAY(int64_t) fed;  /* shapes and hosts of its inputs: the bytes of its key */
} target_form;

/* Forms of a target, which share their state. TARGET_RUN: the whole target, or a micro-step where it accumulates
 * gradients. Only then there are TARGET_APPLY, the end of a cycle, which goes on from its last micro-step, and
 * TARGET_PLAIN, a cycle of one micro-step, in the program without accumulation. */
typedef enum { TARGET_RUN, TARGET_APPLY, TARGET_PLAIN, TARGET_FORMS } target_kind;

typedef struct target_state {
    target_form form[TARGET_FORMS]; /* target NULL: it has no such form */
    merge_cycle cycle;
} target_state;

/* The forms that a run of the target is submitted as: n from the first on. */
typedef struct target_run {
    target_form *form;
    int n;
} target_run;
static inline target_run target_now(target_state *t, bool ends_cycle)
{
    if (t->cycle.k == 1)
        return (target_run){&t->form[TARGET_PLAIN], 1};
    return (target_run){&t->form[TARGET_RUN], t->cycle.k && ends_cycle ? 2 : 1};
}

/* Where targets merge gradients: the program without; its state lies alike. */
typedef struct plain_program {
    trama_program *program; /* own; NULL: none merges */
    layouts l;
} plain_program;

/* Runs that were submitted. */
typedef struct submitted_runs {
    int max;        /* in flight at most, */
    int ahead;      /* and of the target that ran last: fewer where its runs have many steps */
    fence **fences; /* [max] of run i mod max */
    int64_t n;
    int64_t steps; /* runs, where a whole cycle of micro-steps is one */
} submitted_runs;

/* Kernels that fail. */
typedef struct failing_kernels {
    bool may_fail; /* on several ranks: kernels are users' own, or take scratch memory, so that the ranks have to agree
                    */
    faults faults; /* of this rank */
    char *refusal; /* the message of every later call, once all ranks know of a failure; NULL */
    trama_status status; /* of these calls */
} failing_kernels;

/* Objects of the user's that have to know when the executable goes. */
typedef struct open_objects {
    struct trama_reading *readings;        /* the last one first */
    struct trama_watch *watches;           /* the first of them */
    ARRAY(struct trama_wrapped *) wrapped; /* that it has seen */
    struct saving *saving;                 /* a checkpoint that a thread writes; NULL */
    struct trama_feeder *feeders;          /* the last one first */
} open_objects;

struct eager_session;

struct trama_executable {
    trama_context *context;
    int64_t number;         /* the same on all ranks, and no other executable's */
    context_tenant tenant;  /* of it */
    trama_program *program; /* own copy; in eager mode the user's */
    bool owns_program;
    const trama_mesh *single, *readers; /* one process; one process a rank */
    layouts l;
    plain_program plain;
    process_map *map;
    planning planning;
    int n_value_refs;
    value_ref *at; /* [value id] where its content is now; holds the instances */
    plan_cache plans;
    plan_cache asked; /* plans of inputs for questions, which one rank may ask alone */
    ARRAY(target_state) targets;
    submitted_runs runs;
    failing_kernels kernels;
    open_objects open;
    struct eager_session *session; /* eager mode: it runs the ops; NULL: targets are compiled */
};

/* The executable's own value for one of the user's program; NULL with a message. */
trama_value *executable_value(const trama_executable *e, trama_where where, const char *call, const trama_value *value);

/* Where a value's content is; E_NOT_KEPT or E_ORDER with a message where it is nowhere. */
trama_status executable_locate(trama_executable *e, trama_where where, const char *call, const trama_value *value,
                               value_ref *at);

/* Before a plan is kept for the key. Where the key's part is full, waits for all that is under way and drops the plans
 * that nobody holds and that were not used lately. */
void executable_shrink(trama_executable *e, const plan_key *key);

/* Records where a value is, and holds the instance until it is elsewhere. */
void executable_put(trama_executable *e, int value, value_ref at);

/* Every collective call begins with it. E_KERNEL or E_MEMORY where all ranks know that a kernel failed; E_ORDER where
 * the ranks make different calls, as context_call finds by the words. Else nothing. */
trama_status executable_begin_call(trama_executable *e, trama_where where, const char *call, const char *words);
/* The same for a call on a value or target, by name and number; shape NULL: it is given none. */
trama_status executable_call(trama_executable *e, trama_where where, const char *call, const char *name, int id,
                             const trama_shape *shape);

/* Collective, all runs that matter being done: the status of a failed kernel (faults.h) on all ranks where one failed
 * on one. Costs nothing where none can. */
trama_status executable_agree(trama_executable *e, const char *call);
/* Notes whether the kernel of a node can fail: a user's own, or a product that takes scratch memory in any layout. */
void executable_note_kernel(trama_executable *e, const trama_node *node);
/* Not collective: the status of a kernel that failed on this rank. */
trama_status executable_fault(trama_executable *e);

/* Waits until one more run, of so many steps, may be under way. */
trama_status executable_make_room(trama_executable *e, int steps, const char *call);
/* Waits for run number i, if it may be under way. */
trama_status executable_wait_run(trama_executable *e, int64_t i, const char *call);

/* where: the user's call, for messages about an executable that is not destroyed. */
trama_status executable_begin(trama_where where, trama_context *context, trama_program *program,
                              trama_executable **made);

/* same_program.c: collective. The status of the first rank that has found a mistake (mine); else E_ORDER, with one
 * message on all ranks, where their programs have different lines. */
trama_status same_program(trama_where where, trama_context *context, const trama_program *program, trama_status mine);
/* compile.c: E_LAYOUT where state cannot lie like that */
trama_status state_may_lie(const trama_value *v, const trama_layout *layout);
/* The buffers of merged gradients that the target has, where it has none yet. */
trama_status buffers_place(trama_executable *e, const target_form *t);
/* cycle.c: prepares the next run of a target. It feeds scalars; the cycle becomes *next when the run is submitted. */
trama_status cycle_begin(trama_executable *e, target_state *t);
trama_status cycle_feed(trama_where where, trama_executable *e, target_state *t, bool flush, merge_cycle *next);
/* target.c. made: by target, NULL where none accumulates */
trama_status targets_prepare(trama_executable *e, const accumulation *made);
/* run.c */
/* Submits the forms of the target as one run, and keeps its values. */
trama_status target_submit(trama_where where, trama_executable *e, target_state *t, target_run run);
trama_status target_find(trama_where where, trama_executable *e, const trama_target *target, const char *call,
                         target_state **found);
void targets_free(trama_executable *e);
/* Hands the target's plan for the extents fed last to a function. Where the target accumulates gradients, hands it the
 * plan of a micro-step, then the plan of the end of a cycle. Not collective; submits nothing. */
typedef void target_look(const target_form *t, target_kind kind, const plan *p, void *arg);
trama_status target_look_at(trama_executable *e, const trama_target *target, const char *call, target_look *look,
                            void *arg);

/* eager.c, of the executable's session. session_place: gives a declared value its content, on the given mesh
 * where it has none of its own. session_copy: the plan of a compile_copy. session_wait: all ops have completed.
 * session_end frees it. */
trama_status session_place(trama_executable *e, trama_value *value, const trama_mesh *mesh);
trama_status session_copy(trama_executable *e, const trama_value *value, value_ref at, const trama_mesh *mesh,
                          const trama_layout *layout, kept_plan **found);
void session_wait(trama_executable *e);
void session_end(trama_executable *e);

/* Fills in the program's struct, as far as it goes. */
trama_status traffic_write(const char *call, const trama_traffic *own, trama_traffic *given);
/* verify_ranks.c: under config.verify, makes the plans of all ranks for a target again, and checks that they fit each
 * other and that this rank uses its own. E_SYSTEM names the mismatch. */
trama_status verify_target(const trama_executable *e, const target_form *t, const compiled_plan *of);
/* trama_read_start under the name of another call. */
trama_status reading_start(trama_where where, const char *call, trama_executable *e, const trama_value *value,
                           trama_reading **reading);
/* Readings under way have ended, and know that the executable goes. */
void readings_end(trama_executable *e);
/* The bytes of the value that a reading reads, and its name. */
size_t reading_bytes(const trama_reading *reading);
const char *reading_name(const trama_reading *reading);
/* save.c: waits for the checkpoint that a thread writes, and logs its error. */
void saving_end(trama_executable *e);
/* feeder.c: ends the reading of feeders, and tells them that the executable is destroyed. */
void feeders_end(trama_executable *e);
/* watch.c: drops the readings of watches, and tells the watches that the executable is destroyed. */
void watches_end(trama_executable *e);
/* read.c: box i of a distributed value; and as it is told to the user. E_ARGUMENT where there is none */
trama_status dist_value_piece(trama_where where, const char *call, const plan_dist_value *h, int i, const char *name,
                              const plan_local_box **piece);
trama_status piece_box(trama_where where, const char *call, const plan_dist_value *h, int i, const char *name,
                       int64_t *offset, int64_t *extent);
/* feed.c */
/* input_check: an error unless the value is an input that can have the shape. input_buffers: its buffers for that
 * shape. input_take: the input moves to a copy of them that no run in flight reads. */
trama_status input_check(trama_where where, trama_executable *e, const char *call, const trama_value *value,
                         trama_shape shape);
trama_status input_buffers(trama_executable *e, const trama_value *own, trama_shape shape, kept_plan **found);
trama_status input_take(trama_executable *e, const trama_value *value, const kept_plan *f, value_ref *at);
/* wrap.c: when the executable goes */
void wrapped_forget(trama_executable *e);

#endif
