/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of workers. */
#include "worker_memory.h"

#include "buffer.h"
#include "fence.h"
#include "state.h"

struct worker_memory {
    buffer of[STARPU_NMAXWORKERS];
    char *at[STARPU_NMAXWORKERS];
};

char *const *worker_memory(const trama_context *c)
{
    return c->worker_memory ? c->worker_memory->at : NULL;
}

static bool provide(trama_context *c, int worker, int numa, int64_t bytes)
{
    buffer more;
    if (!buffer_make(c->topology, numa, (size_t)bytes, &more))
        return false;
    buffer_free(&c->worker_memory->of[worker]);
    c->worker_memory->of[worker] = more;
    c->worker_memory->at[worker] = more.data;
    return true;
}

trama_status worker_memory_provide(trama_context *c, int place, int64_t bytes)
{
    const own_place *own = &c->place.own[place - c->place.first];
    trama_status status = TRAMA_OK;
    bool enough = true;
    if (!c->worker_memory)
        c->worker_memory = trama_alloc(sizeof *c->worker_memory);
    for (int i = 0; i < own->n; i++)
        enough = enough && c->worker_memory->of[own->worker[i]].bytes >= (size_t)bytes;
    if (enough)
        return TRAMA_OK;
    status = fence_wait_all(c, "scratch memory of workers");
    for (int i = 0; i < own->n && !status; i++)
        if (c->worker_memory->of[own->worker[i]].bytes < (size_t)bytes && !provide(c, own->worker[i], own->numa, bytes))
            status = trama_fail(NOWHERE, TRAMA_E_MEMORY, "no %lld bytes of scratch memory for each worker",
                                (long long)bytes);
    return status;
}

void worker_memory_stop(trama_context *c)
{
    for (int i = 0; c->worker_memory && i < STARPU_NMAXWORKERS; i++)
        buffer_free(&c->worker_memory->of[i]);
    free(c->worker_memory);
    c->worker_memory = NULL;
}
