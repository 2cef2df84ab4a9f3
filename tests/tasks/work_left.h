/* SPDX-License-Identifier: Apache-2.0 */
/* A program that works after every mistake: s becomes s + sum(x), y = 2 x. */
#ifndef WORK_LEFT_H
#define WORK_LEFT_H

#include "harness.h"

typedef struct work_left {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *s, *y, *update;
    trama_target *t;
    trama_executable *e;
    double sum; /* s must be this */
} work_left;

static inline work_left begin(void)
{
    work_left w = {.mesh = trama_mesh_create("dp=2,mp=2"), .p = trama_program_create()};
    start();
    w.x = trama_shard(trama_input(w.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 3)), w.mesh, "S(0),R");
    w.s = trama_state(w.p, "s", TRAMA_F64, TRAMA_SCALAR, NULL);
    w.y = trama_add(w.x, w.x);
    w.update = trama_assign(w.s, trama_add(w.s, trama_sum(w.x)));
    w.t = trama_target_create(w.p, "t", w.y, w.update);
    w.e = compile(w.p);
    must(trama_feed(w.e, w.x, ((double[]){1, 2, 3, 4, 5, 6}), TRAMA_SHAPE(2, 3)));
    return w;
}

/* With what was fed last: nothing wrong may have taken its place. */
static inline void works(work_left *w)
{
    double y[6], s;
    must(trama_run(w->e, w->t));
    w->sum += 21;
    must(trama_read(w->e, w->y, y, sizeof y));
    for (int i = 0; i < 6; i++)
        demand(y[i] == 2 * (i + 1), "after the mistake y[%d] is %g", i, y[i]);
    must(trama_read(w->e, w->s, &s, sizeof s));
    demand(s == w->sum, "after the mistake s is %g instead of %g", s, w->sum);
}

static inline void end(work_left *w)
{
    works(w);
    must(trama_executable_destroy(&w->e));
    trama_program_destroy(&w->p);
    trama_mesh_destroy(&w->mesh);
    stop();
}

#endif
