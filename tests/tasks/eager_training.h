/* SPDX-License-Identifier: Apache-2.0 */
/* A network trained eagerly: beside the same program recorded, and over many iterations. With a live context. */
#ifndef EAGER_TRAINING_H
#define EAGER_TRAINING_H

#include "eager_harness.h"

/* ---- The same network, recorded and eager ---- */

enum { BATCH = 6 };

typedef struct model {
    trama_value *w[3], *b[3], *x, *y, *loss, *dw[3];
} model;

static inline void model_parameters(model *m, trama_program *p, const trama_mesh *mesh)
{
    for (int l = 0; l < 3; l++) {
        char name[16];
        double bound = 1 / sqrt(small_sizes[l]);
        trama_init init = {-bound, bound, SEED, (uint64_t)(2 * l)};
        snprintf(name, sizeof name, "w%d", l);
        m->w[l] = trama_parameter(p, name, TRAMA_F32, TRAMA_SHAPE(small_sizes[l], small_sizes[l + 1]), &init);
        snprintf(name, sizeof name, "b%d", l);
        m->b[l] = trama_parameter(p, name, TRAMA_F32, TRAMA_SHAPE(small_sizes[l + 1]), NULL);
        shard_along(m->w[l], mesh, "mp", layer_placement(l, 3));
        shard_along(m->b[l], mesh, "mp", l == 0 ? "S(0)" : "R"); /* as completion lays them out */
    }
}

static inline void model_data(model *m, trama_program *p, const trama_mesh *mesh)
{
    float x[BATCH * 20];
    int64_t y[BATCH];
    uint64_t state = 7;
    for (int i = 0; i < BATCH * 20; i++)
        x[i] = (float)random_to(&state, 256) / 256;
    for (int i = 0; i < BATCH; i++)
        y[i] = random_to(&state, 10);
    m->x = trama_constant(p, TRAMA_F32, TRAMA_SHAPE(BATCH, 20), x);
    m->y = trama_constant(p, TRAMA_I64, TRAMA_SHAPE(BATCH), y);
    shard_along(m->x, mesh, "dp", "S(0)");
    shard_along(m->y, mesh, "dp", "S(0)");
}

static inline trama_value *model_step(model *m)
{
    trama_value *h = m->x;
    for (int l = 0; l < 3; l++) {
        h = trama_add(trama_matmul(h, m->w[l]), m->b[l]);
        h = l < 2 ? trama_relu(h) : h;
    }
    m->loss = trama_cross_entropy(h, m->y);
    for (int l = 0; l < 3; l++)
        m->dw[l] = trama_gradient(m->loss, m->w[l]);
    trama_optimizer sgd = trama_sgd(0.1);
    return trama_minimize(m->loss, &sgd);
}

static inline void trace_model(trace *t, trama_executable *e, const model *m)
{
    trace_read(t, e, m->loss, sizeof(float));
    for (int l = 0; l < 3; l++) {
        size_t bytes = (size_t)small_sizes[l] * (size_t)small_sizes[l + 1] * sizeof(float);
        trace_read(t, e, m->dw[l], bytes);
        trace_read(t, e, m->w[l], bytes);
        trace_read(t, e, m->b[l], (size_t)small_sizes[l + 1] * sizeof(float));
    }
}

static inline trace trace_recorded(const trama_mesh *mesh, int steps)
{
    model m;
    trace t = {0};
    trama_program *p = trama_program_create();
    model_parameters(&m, p, mesh);
    model_data(&m, p, mesh);
    trama_value *update = model_step(&m);
    trama_target *train = trama_target_create(p, "train", update, m.loss, m.dw[0], m.dw[1], m.dw[2]);
    trama_executable *e = compile(p);
    for (int i = 0; i < steps; i++) {
        must(trama_run(e, train));
        trace_model(&t, e, &m);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    return t;
}

static inline trace trace_eager(const trama_mesh *mesh, int steps)
{
    model m;
    trace t = {0};
    eager g = eager_begin();
    model_parameters(&m, g.p, mesh);
    model_data(&m, g.p, mesh);
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < steps; i++) {
        demand(model_step(&m), "%s", trama_program_error(g.p));
        trace_model(&t, g.e, &m);
        must(trama_program_rewind(g.p, mark));
    }
    eager_end_now(&g);
    return t;
}

/* On GPUs a product with what follows it may be summed by another algorithm than the product alone. */
static inline bool same_number(float a, float b)
{
    const machine *places = context_machine(ctx);
    bool gpus = false;
    for (int i = 0; i < places->n_places; i++)
        gpus = gpus || places->places[i].gpu;
    return gpus ? fabsf(a - b) <= 1e-4f * fabsf(b) + 1e-6f : !memcmp(&a, &b, sizeof a);
}

static inline void eager_equals_recorded(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    enum { STEPS = 8 };
    trace recorded = trace_recorded(mesh, STEPS), now = trace_eager(mesh, STEPS);
    demand(recorded.n == now.n, "mesh %s: %zu and %zu bytes", spec, recorded.n, now.n);
    for (size_t i = 0; i < now.n; i += sizeof(float)) {
        float a, b;
        memcpy(&a, recorded.at + i, sizeof a);
        memcpy(&b, now.at + i, sizeof b);
        demand(same_number(a, b), "mesh %s: number %zu of %zu a step is %.9g recorded and %.9g eager", spec,
               i / sizeof a, now.n / STEPS / sizeof a, (double)a, (double)b);
    }
    free(recorded.at);
    free(now.at);
    trama_mesh_destroy(&mesh);
}

/* ---- Growth ---- */

typedef struct footprint {
    shard_pool_state pool;
    int entries, forms;
    int64_t memory;
} footprint;

static inline footprint footprint_of(const eager *g)
{
    must(trama_wait(g->e));
    return (footprint){shard_pool(ctx), g->e->plans.n, g->e->session->forms.n, memory_now()};
}

static inline void eager_iteration(eager *g, model *m, int mark, bool read)
{
    float factor = 0.5f, loss;
    demand(model_step(m), "%s", trama_program_error(g->p));
    trama_value *f = trama_constant(g->p, TRAMA_F32, TRAMA_SCALAR, &factor), *half = trama_mul(m->loss, f);
    if (read)
        must(trama_read(g->e, half, &loss, sizeof loss));
    must(trama_program_rewind(g->p, mark));
}

static inline void eager_does_not_grow(const char *spec, int iterations)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    model m;
    footprint warm = {0};
    model_parameters(&m, g.p, mesh);
    model_data(&m, g.p, mesh);
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < iterations; i++) {
        eager_iteration(&g, &m, mark, i % 10 == 0);
        if (i == iterations / 5)
            warm = footprint_of(&g);
    }
    footprint end = footprint_of(&g);
    demand(end.entries == warm.entries && end.forms == warm.forms, "%d plans and %d forms become %d and %d",
           warm.entries, warm.forms, end.entries, end.forms);
    demand(end.pool.made - warm.pool.made < 3 * MAX_OUTSTANDING && end.pool.used == warm.pool.used, /* as ops happen to be under way */
           "%" PRId64 " shards made, %" PRId64 " in use become %" PRId64 " and %" PRId64, warm.pool.made,
           warm.pool.used, end.pool.made, end.pool.used);
    demand(SANITIZED || end.memory - warm.memory < 1 << 20, "%" PRId64 " bytes in %d iterations",
           end.memory - warm.memory, iterations - iterations / 5);
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

#endif
