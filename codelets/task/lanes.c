/* SPDX-License-Identifier: Apache-2.0 */
/* Which works come before another is known as one number a lane, the last of them there (vector clocks: Fidge 1988,
 * "Timestamps in message-passing systems that preserve the partial ordering"): on a lane works follow each other. */
#include "lanes.h"

#include <stdlib.h>

#include "base.h"

/* Of each lane a work; -1: none. */
typedef struct front {
    int of[GPU_LANES];
} front;

/* A buffer: its last write, and the last read since on each lane. */
typedef struct lane_buffer {
    int writer;
    front readers;
} lane_buffer;

struct lanes {
    int n;
    int *lane;     /* [n] of each work */
    front *before; /* [n] the works that come before it, and itself */
    front last;
    lane_buffer *buffers;
};

static const front nothing = {{-1, -1, -1, -1}};
_Static_assert(GPU_LANES == 4, "nothing has as many");

static void raise_one(int *work, int by)
{
    if (by > *work)
        *work = by;
}

static void raise_all(front *works, const front *by)
{
    for (int k = 0; k < GPU_LANES; k++)
        raise_one(&works->of[k], by->of[k]);
}

lanes *lanes_begin(int most, int n_buffers)
{
    lanes *l = trama_alloc(sizeof *l);
    l->lane = trama_alloc(((size_t)most + 1) * sizeof *l->lane);
    l->before = trama_alloc(((size_t)most + 1) * sizeof *l->before);
    l->buffers = trama_alloc(((size_t)n_buffers + 1) * sizeof *l->buffers);
    l->last = nothing;
    for (int i = 0; i < n_buffers; i++)
        l->buffers[i] = (lane_buffer){-1, nothing};
    return l;
}

void lanes_end(lanes *l)
{
    free(l->lane);
    free(l->before);
    free(l->buffers);
    free(l);
}

int lanes_last(const lanes *l, int lane)
{
    return l->last.of[lane];
}

/* The last works of the lanes that must have ended. */
static front needs_of(const lanes *l, int n_uses, const lane_use *uses)
{
    front needs = nothing;
    for (int i = 0; i < n_uses; i++) {
        const lane_buffer *b = &l->buffers[uses[i].buffer];
        if (b->writer >= 0)
            raise_one(&needs.of[l->lane[b->writer]], b->writer);
        if (uses[i].writes)
            raise_all(&needs, &b->readers);
    }
    return needs;
}

static int lane_for(const lanes *l, const front *before)
{
    int behind = -1, free_one = -1, oldest = 0;
    for (int k = 0; k < GPU_LANES; k++) {
        const int last = l->last.of[k];
        if (last >= 0 && last <= before->of[k] && (behind < 0 || last > l->last.of[behind]))
            behind = k;
        if (last < 0 && free_one < 0)
            free_one = k;
        if (last < l->last.of[oldest])
            oldest = k;
    }
    return behind >= 0 ? behind : free_one >= 0 ? free_one : oldest;
}

/* Whether a need on lane k is met once those on the other lanes are, and what stands on lane `on` already. */
static bool is_met(const lanes *l, const front *needs, int k, int on)
{
    const int last = l->last.of[on];
    bool met = last >= 0 && l->before[last].of[k] >= needs->of[k];
    for (int m = 0; m < GPU_LANES; m++)
        met |= m != k && needs->of[m] >= 0 && l->before[needs->of[m]].of[k] >= needs->of[k];
    return met;
}

static void note_uses(lanes *l, int work, int n_uses, const lane_use *uses)
{
    for (int i = 0; i < n_uses; i++) {
        lane_buffer *b = &l->buffers[uses[i].buffer];
        if (!uses[i].writes)
            b->readers.of[l->lane[work]] = work;
    }
    for (int i = 0; i < n_uses; i++)
        if (uses[i].writes)
            l->buffers[uses[i].buffer] = (lane_buffer){work, nothing};
}

lane_place lanes_add(lanes *l, int n_uses, const lane_use *uses)
{
    const int work = l->n++;
    const front needs = needs_of(l, n_uses, uses);
    front before = nothing;
    for (int k = 0; k < GPU_LANES; k++)
        if (needs.of[k] >= 0)
            raise_all(&before, &l->before[needs.of[k]]);
    lane_place place = {.lane = lane_for(l, &before)};
    for (int k = 0; k < GPU_LANES; k++)
        place.after[k] = k == place.lane || needs.of[k] < 0 || is_met(l, &needs, k, place.lane) ? -1 : needs.of[k];
    if (l->last.of[place.lane] >= 0)
        raise_all(&before, &l->before[l->last.of[place.lane]]);
    before.of[place.lane] = work;
    l->lane[work] = place.lane;
    l->before[work] = before;
    l->last.of[place.lane] = work;
    note_uses(l, work, n_uses, uses);
    return place;
}
