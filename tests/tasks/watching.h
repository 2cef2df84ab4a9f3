/* SPDX-License-Identifier: Apache-2.0 */
/* Watched loops on any number of ranks: what is handed out when, and that nothing grows. */
#ifndef WATCHING_H
#define WATCHING_H

#include "executable.h"
#include "harness.h"

enum { WATCHED = 7 }; /* elements */

/* After step i of a run, from 1, each element is i, total is WATCHED * i, and 2 of it is twice. */
typedef struct counting {
    trama_mesh *mesh;
    trama_program *program;
    trama_value *elements, *total, *twice;
    trama_target *step;
    trama_executable *e;
} counting;

static inline counting counting_new(const char *mesh, const char *layout)
{
    counting c = {.mesh = mesh_of(mesh), .program = trama_program_create()};
    double one = 1;
    trama_value *add = trama_constant(c.program, TRAMA_F64, TRAMA_SCALAR, &one);
    c.elements = trama_state(c.program, "elements", TRAMA_F64, TRAMA_SHAPE(WATCHED), NULL);
    trama_shard(c.elements, c.mesh, layout);
    trama_value *next = trama_add(c.elements, add);
    c.total = trama_sum(next);
    c.twice = trama_scale(next, 2);
    c.step = trama_target_create(c.program, "step", trama_assign(c.elements, next), c.total, c.twice);
    c.e = compile(c.program);
    return c;
}

static inline void counting_free(counting *c)
{
    must(trama_executable_destroy(&c->e));
    trama_program_destroy(&c->program);
    trama_mesh_destroy(&c->mesh);
}

/* Each call hands out what was read `lag` calls before; the rest comes in order. */
static inline void values_come_late(const char *mesh, const char *layout, int lag)
{
    enum { STEPS = 20 };
    counting c = counting_new(mesh, layout);
    trama_watch *total, *elements;
    double sum = -1, at[WATCHED];
    bool known, known_too;
    must(trama_watch_create(c.e, lag, &total));
    must(trama_watch_create(c.e, lag / 2, &elements));
    for (int i = 1; i <= STEPS; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(total, c.total, &sum, sizeof sum, &known));
        must(trama_watch_next(elements, i % 2 ? c.elements : c.twice, at, sizeof at, &known_too));
        demand(known == (i > lag) && sum == (i > lag ? WATCHED * (i - lag) : -1), "lag %d, step %d: %d, %g", lag, i,
               known, sum);
        int then = i - lag / 2;
        demand(known_too == (then > 0), "lag %d, step %d: %d", lag / 2, i, known_too);
        for (int k = 0; known_too && k < WATCHED; k++)
            demand(at[k] == then * (then % 2 ? 1 : 2), "lag %d, step %d: element %d is %g", lag / 2, i, k, at[k]);
    }
    for (int i = STEPS - lag + 1; i <= STEPS; i++) {
        must(trama_watch_rest(total, &sum, sizeof sum, &known));
        demand(known && sum == WATCHED * i, "rest of lag %d: %d, %g instead of %d", lag, known, sum, WATCHED * i);
    }
    must(trama_watch_rest(total, &sum, sizeof sum, &known));
    demand(!known, "there is more than there was");
    must(trama_run(c.e, c.step));
    must(trama_watch_next(total, c.total, &sum, sizeof sum, &known));
    demand(known == (lag == 0), "a drained watch begins anew");
    must(trama_watch_destroy(&total));
    must(trama_watch_destroy(&elements));
    demand(!total && !elements, "destroying nulls");
    counting_free(&c);
}

/* The loop of the header: it ends exactly `lag` steps after the one that it waits for. */
static inline void loops_end_lag_steps_late(const char *mesh, const char *layout, int lag)
{
    counting c = counting_new(mesh, layout);
    trama_watch *watch;
    double sum = 0, now[WATCHED];
    bool known;
    int steps = 0;
    must(trama_watch_create(c.e, lag, &watch));
    do {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(watch, c.total, &sum, sizeof sum, &known));
        steps++;
    } while (!known || sum < 9 * WATCHED);
    must(trama_watch_destroy(&watch));
    must(trama_read(c.e, c.elements, now, sizeof now));
    demand(steps == 9 + lag && sum == 9 * WATCHED && now[0] == 9 + lag, "lag %d: %d steps, sum %g, element %g", lag,
           steps, sum, now[0]);
    counting_free(&c);
}

static inline void watching_does_not_grow(const char *mesh, const char *layout, int lag, int steps)
{
    counting c = counting_new(mesh, layout);
    trama_watch *watch;
    double sum;
    bool known;
    int readers = 0;
    int64_t memory = 0;
    shard_pool_state shards = {0};
    must(trama_watch_create(c.e, lag, &watch));
    for (int i = 0; i < steps; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(watch, c.total, &sum, sizeof sum, &known));
        if (i == 100 || i == steps - 1) {
            must(trama_wait(c.e));
            shard_pool_state now = shard_pool(ctx);
            demand(i == 100 || (shards_equal(now, shards) && c.e->plans.n_of[PLAN_READ] == readers),
                   "shards or readers grow: %d to %d readers", readers, c.e->plans.n_of[PLAN_READ]);
            demand(i == 100 || SANITIZED || memory_now() - memory < 8 << 20, "memory grows");
            shards = now;
            readers = c.e->plans.n_of[PLAN_READ];
            memory = memory_now();
        }
    }
    demand(readers == lag + 1, "%d readers for a lag of %d", readers, lag);
    must(trama_watch_destroy(&watch));
    counting_free(&c);
}

/* A rank that wants nothing takes part all the same. */
static inline void ranks_may_decline(void)
{
    counting c = counting_new("2", "S(0)");
    trama_watch *watch;
    bool known;
    double sum = 0;
    must(trama_watch_create(c.e, 1, &watch));
    for (int i = 1; i <= 5; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(watch, c.total, my_rank == 0 ? &sum : NULL, my_rank == 0 ? sizeof sum : 0, &known));
        demand(known == (i > 1) && sum == (my_rank == 0 ? WATCHED * (i - 1) : 0), "step %d: %g", i, sum);
    }
    must(trama_watch_destroy(&watch));
    counting_free(&c);
}

/* In eager mode each step has a value of its own, which may be forgotten while it is read. */
static inline void eager_steps_are_watched(const char *mesh_text, int lag)
{
    trama_program *p;
    trama_executable *e;
    trama_watch *watch;
    trama_mesh *mesh = mesh_of(mesh_text);
    double data[WATCHED] = {1, 2, 3, 4, 5, 6, 7}, sum;
    bool known;
    must(trama_eager(ctx, &p, &e));
    trama_value *x = trama_keep(trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(WATCHED), data, mesh, "S(0)"));
    must(trama_watch_create(e, lag, &watch));
    for (int i = 1; i <= 30; i++) {
        int mark = trama_program_mark(p);
        must(trama_watch_next(watch, trama_sum(trama_scale(x, i)), &sum, sizeof sum, &known));
        must(trama_program_rewind(p, mark));
        demand(known == (i > lag) && (!known || sum == 28 * (i - lag)), "lag %d, step %d: %d, %g", lag, i, known, sum);
    }
    must(trama_watch_destroy(&watch));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

#endif
