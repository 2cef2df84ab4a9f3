/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a live context: ranks, places, workers, and the calls and steps that it counts. */
#include <assert.h>

#include "context.h"
#include "tracing.h"

const machine *context_machine(const trama_context *c)
{
    return c->place.machine;
}

int context_rank(const trama_context *c)
{
    return c->comm.rank;
}

int context_ranks(const trama_context *c)
{
    return c->comm.ranks;
}

int trama_context_rank(const trama_context *context)
{
    return context ? context->comm.rank : -1;
}

int trama_context_ranks(const trama_context *context)
{
    return context ? context->comm.ranks : 0;
}

const trama_config *context_config(const trama_context *c)
{
    return &c->config;
}

int context_first_place(const trama_context *c)
{
    return c->place.first;
}

int context_n_places(const trama_context *c)
{
    return c->place.n;
}

static const own_place *own(const trama_context *c, int place)
{
    assert(place >= c->place.first && place < c->place.first + c->place.n);
    return &c->place.own[place - c->place.first];
}

unsigned context_mask_words(const trama_context *c)
{
    (void)c;
    return sizeof((own_place *)NULL)->mask / sizeof(uint32_t);
}

const uint32_t *context_place_mask(const trama_context *c, int place)
{
    return own(c, place)->mask;
}

int context_lane_worker(const trama_context *c, int place, int lane)
{
    assert(lane >= 0 && lane < own(c, place)->n);
    return own(c, place)->worker[lane];
}

int context_exchanger(const trama_context *c, int place)
{
    return own(c, place)->exchanger;
}

const uint32_t *context_cpu_mask(const trama_context *c)
{
    return c->place.cpu_mask;
}

int64_t context_gpu_bytes(const trama_context *c)
{
    return c->gpu.bytes;
}

int context_gpu_steps(const trama_context *c)
{
    return c->config.gpu_steps;
}

const uint32_t *context_lane_mask(const trama_context *c, int place, int lane)
{
    return c->place.of_worker[context_lane_worker(c, place, lane)];
}

int64_t context_next_call(trama_context *c)
{
    return c->calls.n++;
}

bool context_traces(const trama_context *c)
{
    return c->trace.folder != NULL;
}

void context_count_tasks(trama_context *c, int n)
{
    c->calls.tasks += n;
}

void context_step(trama_context *c, int64_t step, int64_t micro_step)
{
    if (c->trace.folder)
        trace_step(step, micro_step);
}
