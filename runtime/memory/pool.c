/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of shards: hashed by their keys, reused oldest first, evicted oldest first. One thread at a time. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "tile.h"

enum { N_BUCKETS = 1024 };

/* shard is the first field, so a user's pointer to the shard is one to the entry. */
typedef struct entry {
    shard shard;
    shard_key key;
    buffer memory;
    bool pinned;
    struct entry *next, *prev;           /* in pool.idle or pool.used, oldest first */
    struct entry *next_same, *prev_same; /* in its bucket while idle, oldest first */
} entry;

typedef struct bucket {
    entry *first, *last;
} bucket;

struct pool {
    entry *idle, *newest_idle, *used;
    bucket buckets[N_BUCKETS];
    shard_pool_state state;
    int64_t limit;
};

void pool_start(trama_context *c)
{
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    c->pool = trama_alloc(sizeof *c->pool);
    c->pool->limit = memory / 8 / (c->node.ranks > 0 ? c->node.ranks : 1);
}

static bucket *bucket_of(pool *p, const shard_key *key)
{
    return &p->buckets[hash_bytes(HASH_START, key, sizeof *key) % N_BUCKETS];
}

static void link_used(pool *p, entry *e)
{
    e->prev = NULL;
    e->next = p->used;
    if (p->used)
        p->used->prev = e;
    p->used = e;
    p->state.used++;
    p->state.used_bytes += (int64_t)e->memory.bytes;
}

static void unlink_used(pool *p, entry *e)
{
    *(e->prev ? &e->prev->next : &p->used) = e->next;
    if (e->next)
        e->next->prev = e->prev;
    p->state.used--;
    p->state.used_bytes -= (int64_t)e->memory.bytes;
}

static void link_idle(pool *p, entry *e)
{
    bucket *b = bucket_of(p, &e->key);
    e->next = e->next_same = NULL;
    e->prev = p->newest_idle;
    *(e->prev ? &e->prev->next : &p->idle) = e;
    p->newest_idle = e;
    e->prev_same = b->last;
    *(e->prev_same ? &e->prev_same->next_same : &b->first) = e;
    b->last = e;
    p->state.idle++;
    p->state.idle_bytes += (int64_t)e->memory.bytes;
}

static void unlink_idle(pool *p, entry *e)
{
    bucket *b = bucket_of(p, &e->key);
    *(e->prev ? &e->prev->next : &p->idle) = e->next;
    *(e->next ? &e->next->prev : &p->newest_idle) = e->prev;
    *(e->prev_same ? &e->prev_same->next_same : &b->first) = e->next_same;
    *(e->next_same ? &e->next_same->prev_same : &b->last) = e->prev_same;
    p->state.idle--;
    p->state.idle_bytes -= (int64_t)e->memory.bytes;
}

static entry *find_idle(pool *p, const shard_key *key)
{
    entry *e = bucket_of(p, key)->first;
    while (e && memcmp(&e->key, key, sizeof *key))
        e = e->next_same;
    return e;
}

/* Frees an idle shard, after the tasks and messages in flight on it. */
static void evict(trama_context *c, entry *e)
{
    unlink_idle(c->pool, e);
    shard_acquire(c, &e->shard, STARPU_W, "a shard that leaves the pool"); /* write only: no copy comes from a GPU */
    shard_release(c, &e->shard);
    if (e->pinned)
        starpu_memory_unpin(e->memory.data, e->memory.bytes);
    tile_unmake(&e->shard, &e->memory);
    free(e);
}

static void keep_to(trama_context *c, int64_t limit)
{
    while (c->pool->idle && c->pool->state.idle_bytes > limit)
        evict(c, c->pool->idle);
}

void shard_pool_limit(trama_context *c, int64_t bytes)
{
    c->pool->limit = bytes;
    keep_to(c, bytes);
}

shard_pool_state shard_pool(const trama_context *c)
{
    return c->pool->state;
}

static int64_t bytes_on_node(const shard *s, unsigned node)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->n_tiles; i++) {
        int allocated = 0, valid, loading, requested;
        starpu_data_query_status2(s->tile[i], (int)node, &allocated, &valid, &loading, &requested);
        bytes += allocated ? (int64_t)starpu_data_get_size(s->tile[i]) : 0;
    }
    return bytes;
}

int64_t pool_on_node(const trama_context *c, unsigned node)
{
    int64_t bytes = 0;
    for (const entry *e = c->pool->used; e; e = e->next)
        bytes += bytes_on_node(&e->shard, node);
    for (const entry *e = c->pool->idle; e; e = e->next)
        bytes += bytes_on_node(&e->shard, node);
    return bytes;
}

/* Makes a shard. Where memory is short, it evicts all idle shards first. */
static entry *make(trama_context *c, const shard_key *key)
{
    entry *e = trama_alloc(sizeof *e);
    e->key = *key;
    trama_status status = tile_make(c, key, &e->shard, &e->memory);
    if (status == TRAMA_E_MEMORY && c->pool->idle) {
        keep_to(c, 0);
        status = tile_make(c, key, &e->shard, &e->memory);
    }
    if (status) {
        free(e);
        return NULL;
    }
    c->pool->state.made++;
    return e;
}

static shard *get(trama_context *c, shard_key key)
{
    entry *e = find_idle(c->pool, &key);
    if (e)
        unlink_idle(c->pool, e);
    else if (!(e = make(c, &key)))
        return NULL;
    link_used(c->pool, e);
    return &e->shard;
}

shard *shard_get(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim,
                 int cut_parts)
{
    return get(c, shard_key_of(place, dtype, ndim, extent, cut_dim, cut_parts));
}

shard *shard_get_shared(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim,
                        int cut_parts)
{
    shard_key key = shard_key_of(place, dtype, ndim, extent, cut_dim, cut_parts);
    key.shared = c->node_memory != NULL;
    return get(c, key);
}

void shard_pin(shard *s)
{
    entry *e = (entry *)s;
    if (!e->pinned)
        e->pinned = !starpu_memory_pin(e->memory.data, e->memory.bytes);
}

void shard_put(trama_context *c, shard *s)
{
    if (!s)
        return;
    entry *e = (entry *)s;
    unlink_used(c->pool, e);
    link_idle(c->pool, e);
    keep_to(c, c->pool->limit);
}

void pool_stop(trama_context *c)
{
    pool *p = c->pool;
    if (p->used)
        context_log(c, TRAMA_LOG_WARNING, "rank %d: trama_stop finds %lld shards that nobody gave back", c->comm.rank,
                    (long long)p->state.used);
    while (p->used) {
        entry *e = p->used;
        unlink_used(p, e);
        link_idle(p, e);
    }
    keep_to(c, -1);
    free(p);
    c->pool = NULL;
}
