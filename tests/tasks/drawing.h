/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of runs, beside the formula of the header in plain loops (plain.h), whose Philox is held to the
 * published words. */
#ifndef DRAWING_H
#define DRAWING_H

#include "eager_harness.h"

enum { ROWS = 7, COLUMNS = 5, N_DRAWN = ROWS * COLUMNS };
static const uint64_t draw_seed = UINT64_C(0xfedcba9876543210);

static inline trama_value *draws(trama_program *p, uint32_t stream)
{
    return trama_uniform(p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), -1, 2, draw_seed, stream);
}

static inline double drawn(uint32_t stream, uint32_t run, int i)
{
    return plain_uniform(draw_seed, stream, run, (uint64_t)i, -1, 2);
}

/* The value holds the numbers of a stream and a run. */
static inline void demand_drawn(trama_executable *e, const trama_value *v, uint32_t stream, uint32_t run)
{
    double data[N_DRAWN];
    must(trama_read(e, v, data, sizeof data));
    for (int i = 0; i < N_DRAWN; i++)
        demand(data[i] == drawn(stream, run, i), "stream %u, run %u: element %d is %.17g instead of %.17g", stream, run,
               i, data[i], drawn(stream, run, i));
}

static inline void demand_count(trama_executable *e, trama_program *p, int64_t wanted)
{
    int64_t count;
    must(trama_read(e, trama_run_counter(p), &count, sizeof count));
    demand(count == wanted, "the counter is %" PRId64 " instead of %" PRId64, count, wanted);
}

/* Two streams and fixed numbers, in two targets; a third one draws nothing. */
typedef struct lottery {
    trama_mesh *mesh;
    trama_program *p;
    trama_executable *e;
    trama_value *u, *v, *fixed, *product, *ones;
    trama_target *both, *one, *none;
} lottery;

static inline lottery lottery_new(const char *mesh, const char *layout)
{
    lottery l = {.mesh = mesh_of(mesh), .p = trama_program_create()};
    l.ones = trama_parameter(l.p, "ones", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), &(trama_init){.low = 1, .high = 1});
    trama_shard(l.ones, l.mesh, layout);
    l.u = draws(l.p, 3);
    l.v = draws(l.p, 4);
    l.fixed = trama_uniform_fixed(l.p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), -1, 2, draw_seed, 3, 2);
    l.product = trama_mul(l.ones, l.v);
    l.both = trama_target_create(l.p, "both", l.u, l.product, l.fixed);
    l.one = trama_target_create(l.p, "one", trama_mul(l.ones, l.u));
    l.none = trama_target_create(l.p, "none", trama_neg(l.ones));
    l.e = compile(l.p);
    return l;
}

static inline void lottery_end(lottery *l)
{
    must(trama_executable_destroy(&l->e));
    trama_program_destroy(&l->p);
    trama_mesh_destroy(&l->mesh);
}

static inline void demand_runs(const char *mesh, const char *layout)
{
    lottery l = lottery_new(mesh, layout);
    demand_count(l.e, l.p, 0);
    for (uint32_t run = 1; run <= 5; run++) {
        must(trama_run(l.e, l.both));
        demand_drawn(l.e, l.u, 3, run);
        demand_drawn(l.e, l.product, 4, run);
        demand_drawn(l.e, l.fixed, 3, 2);
    }
    must(trama_run(l.e, l.none));
    demand_count(l.e, l.p, 5);
    must(trama_run(l.e, l.one));
    must(trama_run(l.e, l.both));
    demand_drawn(l.e, l.u, 3, 7);
    lottery_end(&l);
}

/* Saved, written back, and beyond 2^32. */
static inline void demand_restored(const char *mesh, const char *layout)
{
    lottery l = lottery_new(mesh, layout);
    int64_t saved, far = (INT64_C(1) << 32) + 9;
    for (int run = 0; run < 3; run++)
        must(trama_run(l.e, l.both));
    must(trama_read(l.e, trama_run_counter(l.p), &saved, sizeof saved));
    must(trama_run(l.e, l.both));
    must(trama_run(l.e, l.both));
    must(trama_write(l.e, trama_run_counter(l.p), &saved, sizeof saved));
    must(trama_run(l.e, l.both));
    demand_drawn(l.e, l.u, 3, 4);
    must(trama_write(l.e, trama_run_counter(l.p), &far, sizeof far));
    must(trama_run(l.e, l.both));
    demand_drawn(l.e, l.u, 3, 10);
    lottery_end(&l);
}

/* One counter for two meshes. */
static inline void demand_meshes(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    trama_program *p = trama_program_create();
    trama_init one = {.low = 1, .high = 1};
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), &one);
    trama_value *y = trama_parameter(p, "y", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), &one);
    trama_shard(x, a, "S(0)");
    trama_shard(y, b, "S(1)");
    trama_value *u = trama_mul(x, draws(p, 1)), *v = trama_mul(draws(p, 2), y);
    trama_target *t = trama_target_create(p, "both", u, v);
    trama_executable *e = compile(p);
    for (uint32_t run = 1; run <= 3; run++) {
        must(trama_run(e, t));
        demand_drawn(e, u, 1, run);
        demand_drawn(e, v, 2, run);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

/* ---- Micro-steps ---- */

static inline void noisy_rule(const trama_update *u)
{
    trama_value *noise = draws(u->parameter->program, 9);
    trama_update_set(u, u->parameter, trama_sub(u->parameter, trama_add(trama_update_gradient(u), noise)));
}

/* loss = sum(w u), so that the gradient is u: after three micro-steps w is minus what they drew, and minus the noise of
 * the third one's update. `late`: what draws first is the update. */
static inline void demand_micro_steps(const char *mesh_text, bool late)
{
    trama_mesh *mesh = mesh_of(mesh_text);
    trama_program *p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), NULL), *other = NULL;
    trama_value *u = late ? trama_scale(w, 1) : draws(p, 3);
    trama_shard(w, mesh, "S(0)");
    trama_value *loss = trama_sum(trama_mul(w, late ? trama_stop_gradient(u) : u));
    trama_optimizer noisy = trama_optimizer_define("noisy", 1, noisy_rule);
    trama_value *step = trama_minimize(loss, &noisy);
    other = draws(p, 5);
    trama_target *train = trama_target_create(p, "train", step, loss, u, other);
    trama_gradient_merge(train, 3, TRAMA_MERGE_SUM);
    trama_executable *e = compile(p);
    for (uint32_t run = 1; run <= 3; run++) {
        must(trama_run(e, train));
        if (!late)
            demand_drawn(e, u, 3, run);
        demand_drawn(e, other, 5, run);
    }
    double data[N_DRAWN];
    must(trama_read(e, w, data, sizeof data));
    for (int i = 0; i < N_DRAWN; i++) {
        double wanted = -drawn(9, 3, i);
        for (uint32_t run = 1; run <= 3 && !late; run++)
            wanted -= drawn(3, run, i);
        demand(fabs(data[i] - wanted) < 1e-14, "element %d is %.17g instead of %.17g", i, data[i],
               wanted); /* 4 terms */
    }
    demand_count(e, p, 3);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

/* ---- Eager ---- */

static inline void demand_eager(const char *mesh_text)
{
    trama_mesh *mesh = mesh_of(mesh_text);
    eager g = eager_begin();
    double ones[N_DRAWN];
    for (int i = 0; i < N_DRAWN; i++)
        ones[i] = 1;
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), ones, mesh, "S(0)");
    int mark = trama_program_mark(g.p);
    for (uint32_t run = 1; run <= 5; run += 2) {
        trama_value *u = draws(g.p, 3), *v = draws(g.p, 3);
        trama_value *masked = trama_mul(x, trama_reshard(v, mesh, "S(0)"));
        must(trama_program_status(g.p));
        demand_drawn(g.e, u, 3, run);
        demand_drawn(g.e, masked, 3, run + 1);
        must(trama_program_rewind(g.p, mark));
    }
    demand_count(g.e, g.p, 6);
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

#endif
