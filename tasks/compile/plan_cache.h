/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of plans: each plan that may serve again, found by all that decides it. It plans nothing and submits
 * nothing. */
#ifndef PLAN_CACHE_H
#define PLAN_CACHE_H

#include "compiled_program.h"

/* What a plan is for. */
typedef enum {
    PLAN_TARGET,  /* a run of a target, for the shapes and hosts of its inputs */
    PLAN_INPUT,   /* an input, for one shape */
    PLAN_CONTENT, /* the first content of state, or a constant */
    PLAN_VIEW,    /* an input in a wrapped tensor */
    PLAN_READ,    /* a value into the memory of every rank */
    PLAN_MOVE,    /* a value into or out of a wrapped tensor */
    PLAN_OP,      /* an op of eager mode */
    PLAN_USES
} plan_use;

/* Two plans with equal keys are the same plan. The bytes are shapes, layouts, hosts and instances: a struct is zeroed
 * before it is filled. Plans with one use and one part share a limit. */
typedef struct plan_key {
    plan_use use;
    const void *part; /* of the program: a target, a value */
    const void *bytes;
    size_t size;
} plan_key;

typedef struct kept_plan kept_plan;
struct kept_plan {
    kept_plan *next; /* in its slot of the table */
    plan_key key;    /* its bytes are its own */
    uint64_t hash;
    compiled_program *s; /* owned; NULL: it was found that there can be none */
    instance *in;        /* held; NULL: each user makes one, or none has yet */
    bool taken;          /* one user alone may have the instance, and one has: no other finds it */
    int n_held;
    instance **held;  /* instances that the key names: while they are held no other has their address */
    kept_plan **last; /* the pointer of a user to the plan that it used last, nulled when the plan goes; NULL */
    int64_t used;     /* when it was found last */
};

typedef struct plan_cache {
    kept_plan **slots; /* [n_slots], a power of two */
    int n_slots, n, n_of[PLAN_USES];
    int64_t clock; /* counts what was found and kept: the same on all ranks */
} plan_cache;

/* The plan for a key, or NULL. last: NULL, or where the user keeps the plan that it found last, which is looked at
 * first. Only in calls that all ranks make. */
kept_plan *plan_cache_find(plan_cache *c, const plan_key *key, kept_plan **last);
/* The same for a question that one rank may ask alone: it does not count as use. */
const kept_plan *plan_cache_look(const plan_cache *c, const plan_key *key);

/* Takes the plan and the caller's hold of the instance (NULL: none); holds the instances of `held`. */
kept_plan *plan_cache_keep(plan_cache *c, const plan_key *key, compiled_program *s, instance *in, int n_held,
                           const value_ref *held);

/* Whether the plans of the key's part have reached their limit. Then shrink drops all plans, of any part, that were
 * last used before the later half of these and that nobody holds. No task of a plan that goes may be under way. */
bool plan_cache_is_full(const plan_cache *c, const plan_key *key);
void plan_cache_shrink(plan_cache *c, const plan_key *key);

/* Drops the plans that nobody holds and for which the function answers true. */
typedef bool plan_goes(const kept_plan *k, const void *arg);
void plan_cache_drop(plan_cache *c, plan_goes *goes, const void *arg);
/* A plan_goes: whether the plan holds the instance for its key. */
bool plan_names(const kept_plan *k, const void *of_instance);

/* Drops all. Nothing but the cache may hold their instances. */
void plan_cache_free(plan_cache *c);

/* Where the value is that the plan's instance has. */
static inline value_ref kept_at(const kept_plan *k)
{
    return (value_ref){k->in, k->s->result};
}

/* The words of a shape as bytes of a key. */
typedef struct shape_words {
    int64_t n[1 + TRAMA_MAX_NDIM];
} shape_words;
plan_key plan_key_of_shape(plan_use use, const void *part, trama_shape shape, shape_words *words);

#endif
