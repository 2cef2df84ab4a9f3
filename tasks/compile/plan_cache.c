/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of plans: a hash table with chains, and the plans dropped when it is full. */
#include "plan_cache.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* Most plans of one part; 0: no limit, since other limits bound them. */
static const int most_of[PLAN_USES] = {[PLAN_TARGET] = 8, [PLAN_INPUT] = 16, [PLAN_OP] = 1024};

/* ---- Finding ---- */

static uint64_t hash_key(const plan_key *key)
{
    uint64_t hash = hash_address(hash_word(HASH_START, (uint64_t)key->use), key->part);
    return hash_bytes(hash, key->bytes, key->size);
}

static bool is_of_part(const kept_plan *k, const plan_key *key)
{
    return k->key.use == key->use && k->key.part == key->part;
}

static bool is_for(const kept_plan *k, const plan_key *key)
{
    return !k->taken && is_of_part(k, key) && k->key.size == key->size && !memcmp(k->key.bytes, key->bytes, key->size);
}

static kept_plan *look_up(const plan_cache *c, const plan_key *key)
{
    uint64_t hash = hash_key(key);
    kept_plan *k = c->n ? c->slots[hash & (uint64_t)(c->n_slots - 1)] : NULL;
    while (k && !(k->hash == hash && is_for(k, key)))
        k = k->next;
    return k;
}

kept_plan *plan_cache_find(plan_cache *c, const plan_key *key, kept_plan **last)
{
    kept_plan *k = last && *last && is_for(*last, key) ? *last : look_up(c, key);
    if (!k)
        return NULL;
    k->used = ++c->clock;
    if (last && *last != k) {
        if (*last)
            (*last)->last = NULL;
        *last = k;
        k->last = last;
    }
    return k;
}

const kept_plan *plan_cache_look(const plan_cache *c, const plan_key *key)
{
    return look_up(c, key);
}

plan_key plan_key_of_shape(plan_use use, const void *part, trama_shape shape, shape_words *words)
{
    words->n[0] = shape.ndim;
    for (int d = 0; d < shape.ndim; d++)
        words->n[1 + d] = shape.dim[d];
    return (plan_key){use, part, words, (1 + (size_t)shape.ndim) * sizeof *words->n};
}

/* ---- Keeping ---- */

static void enter(plan_cache *c, kept_plan *k)
{
    kept_plan **slot = &c->slots[k->hash & (uint64_t)(c->n_slots - 1)];
    k->next = *slot;
    *slot = k;
}

static void grow(plan_cache *c)
{
    plan_cache before = *c;
    c->n_slots = before.n_slots ? 2 * before.n_slots : 64;
    c->slots = trama_alloc((size_t)c->n_slots * sizeof(kept_plan *));
    for (int i = 0; i < before.n_slots; i++)
        for (kept_plan *k = before.slots[i], *next; k; k = next) {
            next = k->next;
            enter(c, k);
        }
    free(before.slots);
}

kept_plan *plan_cache_keep(plan_cache *c, const plan_key *key, compiled_program *s, instance *in, int n_held,
                           const value_ref *held)
{
    kept_plan *k = trama_alloc(sizeof *k);
    void *bytes = trama_alloc(key->size + 1);
    if (key->size)
        memcpy(bytes, key->bytes, key->size);
    *k = (kept_plan){.key = *key, .hash = hash_key(key), .s = s, .in = in, .n_held = n_held, .used = ++c->clock};
    k->key.bytes = bytes;
    k->held = trama_alloc(((size_t)n_held + 1) * sizeof(instance *));
    for (int i = 0; i < n_held; i++) {
        k->held[i] = held[i].in;
        held[i].in->holders++;
    }
    if (c->n == c->n_slots)
        grow(c);
    enter(c, k);
    c->n++;
    c->n_of[key->use]++;
    return k;
}

/* ---- Dropping ---- */

static void let_go(kept_plan *k)
{
    instance_release(&k->in);
    for (int i = 0; i < k->n_held; i++)
        instance_release(&k->held[i]);
    k->n_held = 0;
    if (k->last)
        *k->last = NULL;
    k->last = NULL;
}

static void destroy(kept_plan *k)
{
    let_go(k);
    compiled_program_destroy(&k->s);
    free(k->held);
    free((void *)k->key.bytes);
    free(k);
}

static bool is_idle(const kept_plan *k)
{
    int own = k->in != NULL;
    return !k->taken && (!own || k->in->holders == 1) && (!k->s || k->s->of.users == own);
}

bool plan_names(const kept_plan *k, const void *of_instance)
{
    for (int i = 0; i < k->n_held; i++)
        if (k->held[i] == of_instance)
            return true;
    return false;
}

/* Drops the idle plans that `goes` picks; true where it dropped any. */
static bool drop_once(plan_cache *c, plan_goes *goes, const void *arg)
{
    int before = c->n;
    for (int i = 0; i < c->n_slots; i++)
        for (kept_plan **link = &c->slots[i]; *link;) {
            kept_plan *k = *link;
            if (!is_idle(k) || !goes(k, arg)) {
                link = &k->next;
                continue;
            }
            *link = k->next;
            c->n--;
            c->n_of[k->key.use]--;
            destroy(k);
        }
    return c->n < before;
}

/* A dropped plan may have held the instance of another one, so it repeats. */
void plan_cache_drop(plan_cache *c, plan_goes *goes, const void *arg)
{
    while (drop_once(c, goes, arg))
        ;
}

/* Number of plans of the key's part; used [that number]: their times of use, or NULL. */
static int uses_of_part(const plan_cache *c, const plan_key *key, int64_t *used)
{
    int n = 0;
    for (int i = 0; i < c->n_slots; i++)
        for (const kept_plan *k = c->slots[i]; k; k = k->next)
            if (is_of_part(k, key)) {
                if (used)
                    used[n] = k->used;
                n++;
            }
    return n;
}

static int later_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static bool was_before(const kept_plan *k, const void *time)
{
    return k->used < *(const int64_t *)time;
}

bool plan_cache_is_full(const plan_cache *c, const plan_key *key)
{
    int most = most_of[key->use];
    return most && c->n_of[key->use] >= most && uses_of_part(c, key, NULL) >= most;
}

void plan_cache_shrink(plan_cache *c, const plan_key *key)
{
    int64_t *used = trama_alloc(((size_t)c->n + 1) * sizeof *used);
    int n = uses_of_part(c, key, used), keep = most_of[key->use] / 2;
    qsort(used, (size_t)n, sizeof *used, later_first);
    if (n > keep)
        plan_cache_drop(c, was_before, &used[keep ? keep - 1 : 0]);
    free(used);
}

void plan_cache_free(plan_cache *c)
{
    for (int i = 0; i < c->n_slots; i++) /* a plan outlives all instances of it */
        for (kept_plan *k = c->slots[i]; k; k = k->next)
            let_go(k);
    for (int i = 0; i < c->n_slots; i++)
        for (kept_plan *k = c->slots[i], *next; k; k = next) {
            next = k->next;
            destroy(k);
        }
    free(c->slots);
    *c = (plan_cache){0};
}
