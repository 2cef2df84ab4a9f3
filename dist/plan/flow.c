/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in the order that tiles give them: what is not done yet marks its tiles, and holds up what comes behind. */
#include "flow.h"

struct flow {
    const plan *p;
    int first; /* not done */
    bool *done;
    int *tiles; /* [shard] its first tile in the lists below */
    int now;
    int *read, *written; /* [tile] the round in which a step that is not done uses it so */
};

flow *flow_new(const plan *p)
{
    flow *f = trama_alloc(sizeof *f);
    size_t n = 0;
    f->p = p;
    f->done = trama_alloc((size_t)p->steps.n);
    f->tiles = trama_alloc((size_t)p->shards.n * sizeof *f->tiles);
    for (int s = 0; s < p->shards.n; n += (size_t)p->shards.at[s++].cut_parts)
        f->tiles[s] = (int)n;
    f->read = trama_alloc(n * sizeof *f->read);
    f->written = trama_alloc(n * sizeof *f->written);
    return f;
}

void flow_destroy(flow **f)
{
    if (*f) {
        free((*f)->done);
        free((*f)->tiles);
        free((*f)->read);
        free((*f)->written);
    }
    free(*f);
    *f = NULL;
}

typedef struct range {
    int first, last;
} range;

/* What an operand uses of the lists: nothing where no tile stands for it. */
static range tiles_of(const flow *f, const plan_operand *o)
{
    int used_as = plan_used_as(f->p, o->region.shard), start = f->tiles[used_as];
    range r = {0, o->access == ACCESS_NONE ? -1 : 0};
    if (used_as == o->region.shard && o->access != ACCESS_NONE)
        plan_tiles(&f->p->shards.at[used_as], &o->region.box, &r.first, &r.last);
    return (range){r.first + start, r.last + start};
}

static bool is_held_up(const flow *f, const plan_step *s)
{
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(f->p, s, k);
        const range r = tiles_of(f, o);
        for (int t = r.first; t <= r.last; t++)
            if (f->written[t] == f->now || (o->access != ACCESS_READ && f->read[t] == f->now))
                return true;
    }
    return false;
}

static void hold_up(flow *f, const plan_step *s)
{
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(f->p, s, k);
        const range r = tiles_of(f, o);
        for (int t = r.first; t <= r.last; t++)
            (o->access == ACCESS_READ ? f->read : f->written)[t] = f->now;
    }
}

bool flow_advance(flow *f, flow_take *take, void *arg)
{
    bool any = false;
    f->now++;
    for (int i = f->first; i < f->p->steps.n; i++) {
        const plan_step *s = &f->p->steps.at[i];
        if (f->done[i])
            continue;
        if (!is_held_up(f, s) && take(arg, i))
            any = f->done[i] = true;
        else
            hold_up(f, s);
    }
    while (f->first < f->p->steps.n && f->done[f->first])
        f->first++;
    return any;
}

int flow_first(const flow *f)
{
    return f->first < f->p->steps.n ? f->first : -1;
}

bool flow_is_done(const flow *f, int step)
{
    return f->done[step];
}
