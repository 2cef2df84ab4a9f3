/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in the order that tiles give them: a step that is not done marks its tiles and holds up later steps on them. */
#include "flow.h"

struct flow {
    const plan *p;
    int first; /* not done */
    bool *done;
    plan_tile_numbers tiles;
    int now;
    int *read, *written; /* [tile] the last round in which a step that was not done reads or writes it */
};

flow *flow_new(const plan *p)
{
    flow *f = trama_alloc(sizeof *f);
    f->p = p;
    f->done = trama_alloc((size_t)p->steps.n);
    f->tiles = plan_number_tiles(p);
    f->read = trama_alloc((size_t)f->tiles.n * sizeof *f->read);
    f->written = trama_alloc((size_t)f->tiles.n * sizeof *f->written);
    return f;
}

void flow_destroy(flow **f)
{
    if (*f) {
        free((*f)->done);
        free((*f)->tiles.first);
        free((*f)->read);
        free((*f)->written);
    }
    free(*f);
    *f = NULL;
}

static bool is_held_up(const flow *f, const plan_step *s)
{
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(f->p, s, k);
        const plan_range r = plan_tiles_used(f->p, &f->tiles, o);
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
        const plan_range r = plan_tiles_used(f->p, &f->tiles, o);
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
