/* SPDX-License-Identifier: Apache-2.0 */
/* Host access to shards: asynchronous acquires of all tiles with one fence, and one wait under the watchdog. */
#include "state.h"

trama_status shard_acquire(trama_context *c, shard *s, enum starpu_data_access_mode mode, const char *what)
{
    if (starpu_worker_get_id() >= 0)
        return trama_fail(NOWHERE, TRAMA_E_ORDER, "%s would wait inside a StarPU task", what);
    fence *f = fence_new(c);
    context_wake(c);
    fence_add(f, s->n_tiles);
    for (int t = 0; t < s->n_tiles; t++)
        starpu_data_acquire_cb(s->tile[t], mode, fence_signal, f);
    trama_status status = fence_wait(c, f, what);
    context_rest(c);
    fence_free(f);
    return status;
}

void shard_release(trama_context *c, shard *s)
{
    (void)c;
    for (int t = 0; t < s->n_tiles; t++)
        starpu_data_release(s->tile[t]);
}

/* Where nothing is in flight a transfer would hide behind nothing, and workers that sleep would not make it. */
void shard_prefetch(trama_context *c, shard *s)
{
    if (!context_machine(c)->places[s->place].gpu || atomic_load(&c->fences.under_way) == 0)
        return;
    const unsigned node = starpu_worker_get_memory_node((unsigned)context_lane_worker(c, s->place, 0));
    for (int t = 0; t < s->n_tiles; t++)
        starpu_data_prefetch_on_node(s->tile[t], node, 1);
}

typedef struct forgetting {
    starpu_data_handle_t handle;
    fence *fence;
} forgetting;

static void release_at_once(void *arg)
{
    forgetting *g = arg;
    fence *f = g->fence;
    starpu_data_release_on_node(g->handle, STARPU_ACQUIRE_NO_NODE);
    free(g);
    fence_signal(f);
}

void shard_forget_readers(trama_context *c, shard *s, fence *f)
{
    (void)c;
    fence_add(f, s->n_tiles);
    for (int t = 0; t < s->n_tiles; t++) {
        forgetting *g = trama_alloc(sizeof *g);
        *g = (forgetting){s->tile[t], f};
        starpu_data_acquire_on_node_cb(s->tile[t], STARPU_ACQUIRE_NO_NODE, STARPU_RW, release_at_once, g);
    }
}
