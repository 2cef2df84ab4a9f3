/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of plans. The key of a plan holds everything that decides it. The cache plans nothing and submits
 * nothing. */
#ifndef PLAN_CACHE_H
#define PLAN_CACHE_H

#include "compiled_program.h"

/* The uses of a plan. */
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

/* Two plans with equal keys are the same plan. The bytes are shapes, layouts, hosts and instances; a struct among them
 * is zeroed before it is filled. Plans with one use and one part share a limit. */
typedef struct plan_key {
    plan_use use;
    const void *part; /* of the program: a target, a value */
    const void *bytes;
    size_t size;
} plan_key;

typedef struct kept_plan kept_plan;
struct kept_plan {
    kept_plan *next; /* in its slot of the table */
    plan_key key;    /* the plan owns the key's bytes */
    uint64_t hash;
    compiled_program *s; /* owned; NULL: there can be none for this key */
    instance *in;        /* held; NULL: each user makes one, or none has made it yet */
    bool taken;          /* one user at a time may have the instance, and one has it: find skips the plan */
    int n_held;
    instance **held;  /* instances that the key names: while they are held, no other instance gets their addresses */
    kept_plan **last; /* the pointer of a user to the plan that it used last, nulled when the plan goes; NULL */
    int64_t used;     /* the clock when it was last found */
};

typedef struct plan_cache {
    kept_plan **slots; /* [n_slots], a power of two */
    int n_slots, n, n_of[PLAN_USES];
    int64_t clock; /* counts finds and keeps: the same on all ranks */
} plan_cache;

/* The plan for a key, or NULL. last: NULL, or the user's pointer to the plan that it found last, which is compared
 * first. Only for calls that all ranks make. */
kept_plan *plan_cache_find(plan_cache *c, const plan_key *key, kept_plan **last);
/* The same without counting as use, for questions that one rank may ask alone. */
const kept_plan *plan_cache_look(const plan_cache *c, const plan_key *key);

/* Takes over the plan and the caller's hold of the instance (NULL: none); holds the instances of `held`. */
kept_plan *plan_cache_keep(plan_cache *c, const plan_key *key, compiled_program *s, instance *in, int n_held,
                           const value_ref *held);

/* Whether the plans of the key's part have reached their limit. shrink keeps the later used half of these plans, and
 * drops all plans, of any part, that were used before this half and that nobody holds. No task of a dropped plan may be
 * in flight. */
bool plan_cache_is_full(const plan_cache *c, const plan_key *key);
void plan_cache_shrink(plan_cache *c, const plan_key *key);

/* Drops the plans that nobody holds and for which `goes` answers true. */
typedef bool plan_goes(const kept_plan *k, const void *arg);
void plan_cache_drop(plan_cache *c, plan_goes *goes, const void *arg);
/* A plan_goes: whether the plan's key names the instance. */
bool plan_names(const kept_plan *k, const void *of_instance);

/* Drops all plans. Only the cache may hold their instances. */
void plan_cache_free(plan_cache *c);

/* The value of the plan's instance. */
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
