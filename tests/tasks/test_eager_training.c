/* SPDX-License-Identifier: Apache-2.0 */
/* A network and optimizers in eager mode, on one rank and on several: beside the same program recorded, and for long.
 */
#include "eager_harness.h"

/* ---- The same network, recorded and eager ---- */

enum { BATCH = 6 };

typedef struct model {
    trama_value *w[3], *b[3], *x, *y, *loss, *dw[3];
} model;

static void model_parameters(model *m, trama_program *p, const trama_mesh *mesh)
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

static void model_data(model *m, trama_program *p, const trama_mesh *mesh)
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

static trama_value *model_step(model *m)
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

static void trace_model(trace *t, trama_executable *e, const model *m)
{
    trace_read(t, e, m->loss, sizeof(float));
    for (int l = 0; l < 3; l++) {
        size_t bytes = (size_t)small_sizes[l] * (size_t)small_sizes[l + 1] * sizeof(float);
        trace_read(t, e, m->dw[l], bytes);
        trace_read(t, e, m->w[l], bytes);
        trace_read(t, e, m->b[l], (size_t)small_sizes[l + 1] * sizeof(float));
    }
}

static trace trace_recorded(const trama_mesh *mesh, int steps)
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

static trace trace_eager(const trama_mesh *mesh, int steps)
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
static bool same_number(float a, float b)
{
    const machine *places = context_machine(ctx);
    bool gpus = false;
    for (int i = 0; i < places->n_places; i++)
        gpus = gpus || places->places[i].gpu;
    return gpus ? fabsf(a - b) <= 1e-4f * fabsf(b) + 1e-6f : !memcmp(&a, &b, sizeof a);
}

static void eager_equals_recorded(const char *spec)
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

START_TEST(eager_training_has_the_bits_of_recorded_training)
{
    static const char *const meshes[] = {"1", "dp=2", "mp=2", "dp=2,mp=2", "dp=3", "mp=3", "dp=[5,1],mp=[1,2]"};
    start();
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        eager_equals_recorded(meshes[i]);
    stop();
}
END_TEST

START_TEST(eager_tiles_have_the_bits_of_recorded_tiles)
{
    start_with(&(trama_config){.max_tiles = 3, .workers = 2, .grain_flops = 1, .grain_bytes = 1});
    eager_equals_recorded("1");
    eager_equals_recorded("dp=2,mp=2");
    stop();
}
END_TEST

/* Steps of an optimizer with state: five recorded ones, or five eager ones, each recorded anew. */
static void fit(bool is_eager, double *result)
{
    trama_program *p = NULL;
    trama_executable *e = NULL;
    trama_target *step = NULL;
    const double data[] = {1, 2, 3, 4, 5, 7};
    trama_init init = {-1, 1, 1, 0};
    trama_optimizer adamw = trama_adamw(0.01);
    if (is_eager)
        must(trama_eager(ctx, &p, &e));
    else
        p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(2, 1), &init);
    int mark = trama_program_mark(p);
    for (int i = 0; i < 5; i++) {
        if (is_eager || i == 0) {
            trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3, 2), data);
            trama_value *done = trama_minimize(trama_mean(trama_square(trama_matmul(x, w))), &adamw);
            demand(done, "step %d: %s", i, trama_program_error(p));
            step = is_eager ? NULL : trama_target_create(p, "step", done);
        }
        if (is_eager)
            must(trama_program_rewind(p, mark));
        else if (i == 0)
            must(trama_compile(ctx, p, &e));
        if (!is_eager)
            must(trama_run(e, step));
    }
    must(trama_read(e, w, result, 2 * sizeof *result));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

START_TEST(eager_optimizers_find_the_state_of_the_step_before)
{
    double recorded[2], eagerly[2];
    start();
    fit(false, recorded);
    fit(true, eagerly);
    stop();
    demand(!memcmp(recorded, eagerly, sizeof recorded), "%.17g and %.17g", recorded[0], eagerly[0]);
}
END_TEST

/* ---- Growth ---- */

typedef struct footprint {
    shard_pool_state pool;
    int entries, forms;
    int64_t memory;
} footprint;

static footprint footprint_of(const eager *g)
{
    must(trama_wait(g->e));
    return (footprint){shard_pool(ctx), g->e->plans.n, g->e->session->forms.n, memory_now()};
}

static void eager_iteration(eager *g, model *m, int mark, bool read)
{
    float factor = 0.5f, loss;
    demand(model_step(m), "%s", trama_program_error(g->p));
    trama_value *f = trama_constant(g->p, TRAMA_F32, TRAMA_SCALAR, &factor), *half = trama_mul(m->loss, f);
    if (read)
        must(trama_read(g->e, half, &loss, sizeof loss));
    must(trama_program_rewind(g->p, mark));
}

static void eager_does_not_grow(const char *spec, int iterations)
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
    demand(end.pool.made - warm.pool.made < 3 * MAX_OUTSTANDING &&
               end.pool.used == warm.pool.used, /* as ops happen to be under way */
           "%" PRId64 " shards made, %" PRId64 " in use become %" PRId64 " and %" PRId64, warm.pool.made,
           warm.pool.used, end.pool.made, end.pool.used);
    demand(suite_is_sanitized() || end.memory - warm.memory < 1 << 20, "%" PRId64 " bytes in %d iterations",
           end.memory - warm.memory, iterations - iterations / 5);
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* A thousand on one rank. */
START_TEST(iterations_do_not_grow)
{
    start();
    if (n_ranks == 1)
        eager_does_not_grow("1", suite_is_sanitized() ? 100 : 1000);
    else
        eager_does_not_grow("mp=2", suite_is_sanitized() ? 50 : 200);
    eager_does_not_grow("dp=2,mp=2", suite_is_sanitized() ? 50 : n_ranks == 1 ? 300 : 200);
    stop();
}
END_TEST

/* More ops than may be under way, without a read between them. */
static void eager_long_chain(const char *spec, int n)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    trama_value *x = trama_tensor(g.p, TRAMA_I64, TRAMA_SHAPE(3), ((int64_t[]){1, 2, 3}), mesh, "S(0)"), *y = x;
    for (int i = 0; i < n; i++)
        y = i % 2 ? trama_add(x, y) : trama_add(y, x);
    demand_value(&g, y, (double[]){n + 1, 2 * n + 2, 3 * n + 3}, "a long chain");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

START_TEST(many_ops_may_be_under_way)
{
    start();
    if (n_ranks == 1)
        eager_long_chain("1", suite_is_sanitized() ? 1000 : 3000);
    else
        eager_long_chain("1:1", suite_is_sanitized() ? 300 : 1000);
    eager_long_chain("2", suite_is_sanitized() ? 300 : 1000);
    stop();
}
END_TEST

TESTS(eager_training_has_the_bits_of_recorded_training, eager_tiles_have_the_bits_of_recorded_tiles,
      eager_optimizers_find_the_state_of_the_step_before, iterations_do_not_grow, many_ops_may_be_under_way)
