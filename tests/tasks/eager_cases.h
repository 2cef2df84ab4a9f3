/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode, for one rank and for several: beside the same program recorded, beside plain loops, and over many
 * iterations. Every case starts with a live context. */
#ifndef EAGER_CASES_H
#define EAGER_CASES_H

#include "eager.h"
#include "network.h"
#include "pieces.h"

typedef struct eager {
    trama_program *p;
    trama_executable *e;
} eager;

static inline eager eager_begin(void)
{
    eager g;
    must(trama_eager(ctx, &g.p, &g.e));
    return g;
}

static inline void eager_end_now(eager *g)
{
    must(trama_program_status(g->p));
    must(trama_executable_destroy(&g->e));
    trama_program_destroy(&g->p);
}

/* The value is as told, exactly. */
static inline void demand_value(eager *g, const trama_value *v, const double *wanted, const char *what)
{
    trama_shape shape = trama_value_shape(v);
    int64_t n = trama_shape_count(shape);
    trama_dtype dtype = trama_value_dtype(v);
    size_t bytes = (size_t)n * trama_dtype_size(dtype);
    void *at = malloc(bytes + 1);
    must(trama_program_status(g->p));
    must(trama_read(g->e, v, at, bytes));
    for (int64_t i = 0; i < n; i++)
        demand(number_at(at, dtype, i) == wanted[i], "%s: element %" PRId64 " is %.17g instead of %.17g", what, i,
               number_at(at, dtype, i), wanted[i]);
    free(at);
}

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
    trama_program *p = trama_program_new();
    model_parameters(&m, p, mesh);
    model_data(&m, p, mesh);
    trama_value *update = model_step(&m);
    trama_target *train = trama_target_new(p, "train", update, m.loss, m.dw[0], m.dw[1], m.dw[2]);
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
        demand(!memcmp(&a, &b, sizeof a), "mesh %s: number %zu of %zu a step is %.9g recorded and %.9g eager", spec,
               i / sizeof a, now.n / STEPS / sizeof a, (double)a, (double)b);
    }
    free(recorded.at);
    free(now.at);
    trama_mesh_destroy(&mesh);
}

/* ---- Every layout ---- */

static const char *const eager_layouts[] = {"R,R",
                                            "S(0),R",
                                            "R,S(0)",
                                            "S(0),S(1)",
                                            "S(1),S(0)",
                                            "S(0),S(0)",
                                            "S(1),S(1)",
                                            "S(0)[1],S(0)[0]",
                                            "P(sum),R",
                                            "P(sum),S(0)",
                                            "S(1),P(max)",
                                            "P(avg),R",
                                            "P(min),P(min)",
                                            "P(sum),P(sum)",
                                            "R,S(0) mask{1,1,0,0}",
                                            "S(0),R mask{1,0,0,1}"};
enum { N_EAGER_LAYOUTS = sizeof eager_layouts / sizeof *eager_layouts };

/* x [5, 3] comes in, goes on by ops, and out, in a layout; text too. */
static inline void eager_in_a_layout(const char *spec, const char *layout)
{
    trama_mesh *mesh = mesh_of(spec);
    trama_layout l; /* masks are for one size of mesh */
    if (trama_layout_parse(mesh, 2, layout, &l)) {
        trama_mesh_destroy(&mesh);
        return;
    }
    eager g = eager_begin();
    double data[15], negative[15], product[9], transposed[15], sum = 0;
    char *words, begin[100];
    for (int i = 0; i < 15; i++) {
        data[i] = i * 4 % 15 - 6;
        negative[i] = -data[i];
        transposed[i % 3 * 5 + i / 3] = data[i];
        sum += data[i];
    }
    for (int i = 0; i < 9; i++) {
        product[i] = 0;
        for (int k = 0; k < 5; k++)
            product[i] += data[3 * k + i / 3] * data[3 * k + i % 3];
    }
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5, 3), data, mesh, layout);
    demand_value(&g, x, data, layout);
    must(trama_print(g.e, x, 1, &words));
    snprintf(begin, sizeof begin, "%s f64[5,3] as %s\n[[-6 ", trama_value_name(x), layout);
    demand(!strncmp(words, begin, strlen(begin)), "printed \"%s\" instead of \"%s\"", words, begin);
    free(words);
    demand_value(&g, trama_neg(x), negative, layout);
    demand_value(&g, trama_sum(x), &sum, layout);
    demand_value(&g, trama_matmul_trans(x, x, true, false), product, layout);
    demand_value(&g, trama_transpose(x, NULL), transposed, layout);
    for (int k = 0; k < N_EAGER_LAYOUTS; k++) {
        if (trama_layout_parse(mesh, 2, eager_layouts[k], &l))
            continue;
        trama_value *y = trama_reshard(x, mesh, eager_layouts[k]);
        demand_value(&g, y, data, eager_layouts[k]);
        must(trama_layout_of(g.e, y, &words));
        demand(!strcmp(words, eager_layouts[k]), "a reshard to %s gives %s", eager_layouts[k], words);
        free(words);
    }
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

static inline void eager_crosses_meshes(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    eager g = eager_begin();
    double data[7] = {1, 2, 3, 4, 5, 6, 7}, twice[7], gradient[7];
    for (int i = 0; i < 7; i++) {
        twice[i] = 2 * data[i];
        gradient[i] = 4 * data[i];
    }
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(7), data, a, "S(0)");
    trama_value *y = trama_reshard(x, b, "S(0)"), *z = trama_add(y, y), *back = trama_reshard(z, a, "R");
    demand_value(&g, z, twice, "over there");
    demand_value(&g, back, twice, "back again");
    trama_value *loss = trama_sum(trama_mul(y, z)); /* 2 x^2 */
    demand_value(&g, trama_gradient(loss, x), gradient, "the gradient across meshes");
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

/* ---- Host arrays ---- */

/* Arrays of one shape share their plans, never their content; on the mesh of the others, replicated. */
static inline void eager_takes_host_arrays(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[6] = {1, 2, 3, 4, 5, 6}, wanted[6];
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(2, 3), data, mesh, "S(1)");
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < 20; i++) {
        double row[3] = {i, 10 * i, 100 * i}, factor = i + 0.5;
        trama_value *r = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row);
        trama_value *f = trama_constant(g.p, TRAMA_F64, TRAMA_SCALAR, &factor);
        trama_value *y = trama_mul(f, trama_add(x, r)); /* the scalar first: it lends no mesh */
        for (int k = 0; k < 6; k++)
            wanted[k] = factor * (data[k] + row[k % 3]);
        row[0] = row[1] = row[2] = factor = NAN; /* they were copied */
        demand_value(&g, y, wanted, "arrays from the host");
        char *words;
        must(trama_layout_of(g.e, r, &words));
        demand(!strcmp(words, "R"), "an array from the host lies as %s", words);
        free(words);
        must(trama_program_rewind(g.p, mark));
    }
    demand_value(&g,
                 trama_add(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 2})),
                           trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){5, 7}))),
                 (double[]){6, 9}, "nothing but arrays from the host");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* A host array goes where it is used, whoever looked at it before, and wherever it was used before. */
static inline void eager_lends_host_arrays(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    eager g = eager_begin();
    double data[3] = {1, 2, 3}, row[3] = {10, 20, 30}, sum[3] = {11, 22, 33}, negative[3] = {-10, -20, -30};
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(3), data, a, "S(0)");
    trama_value *y = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(3), data, b, "S(0)");
    int mark = trama_program_mark(g.p);
    trama_value *c = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row);
    trama_value *kept = trama_keep(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row));
    trama_value *f = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(3), 10);
    demand_value(&g, c, row, "an array that is looked at");
    demand_value(&g, f, (double[]){10, 10, 10}, "a fill that is looked at");
    demand_value(&g, trama_add(c, x), sum, "on one mesh");
    demand_value(&g, trama_add(y, c), sum, "on another");
    demand_value(&g, trama_neg(c), negative, "alone");
    demand_value(&g, trama_add(c, x), sum, "on the first one again");
    demand_value(&g, trama_add(f, y), (double[]){11, 12, 13}, "a fill on a mesh");
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, trama_add(kept, y), sum, "a kept array on a mesh");
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

static inline void eager_makes_numbers(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double wanted[35];
    for (int i = 0; i < 35; i++)
        wanted[i] = plain_uniform(UINT64_C(0x123456789), 3, 5, (uint64_t)i, -1, 1);
    trama_value *u = trama_uniform(g.p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, UINT64_C(0x123456789), 3, 5);
    trama_value *v = trama_uniform(g.p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, UINT64_C(0x123456789), 3, 5);
    trama_shard(u, mesh, "S(1)");
    demand_value(&g, u, wanted, "uniform, split");
    demand_value(&g, v, wanted, "uniform, without a mesh");
    for (int i = 0; i < 35; i++)
        wanted[i] += 2.5;
    demand_value(&g, trama_add(u, trama_fill(g.p, TRAMA_F64, TRAMA_SCALAR, 2.5)), wanted, "uniform and fill");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* ---- Marks ---- */

static inline void eager_forgets_and_keeps(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[5] = {1, 2, 3, 4, 5}, power[5], sum = 15;
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), data, mesh, "S(0)"), *kept = x;
    for (int i = 0; i < 5; i++)
        power[i] = data[i];
    int outer = trama_program_mark(g.p);
    for (int round = 0; round < 4; round++) {
        trama_value *forgotten = trama_neg(x), *next = trama_keep(trama_mul(kept, x)), *total = trama_sum(next);
        int inner = trama_program_mark(g.p);
        trama_value *partial = trama_keep(trama_keep(trama_sum(x))); /* may lie as terms; kept once */
        trama_value *declared = trama_keep(trama_constant(g.p, TRAMA_F64, TRAMA_SCALAR, &(double){round}));
        trama_value *never_used = trama_keep(trama_fill(g.p, TRAMA_I32, TRAMA_SHAPE(2), round));
        must(trama_program_rewind(g.p, inner));
        for (int i = 0; i < 5; i++)
            power[i] *= data[i];
        double all = 0;
        for (int i = 0; i < 5; i++)
            all += power[i];
        demand_value(&g, total, &all, "before the inner mark");
        demand_value(&g, trama_neg(forgotten), data, "before the inner mark");
        must(trama_program_rewind(g.p, outer));
        kept = next;
        demand_value(&g, kept, power, "kept");
        demand_value(&g, partial, &sum, "a kept sum");
        demand_value(&g, declared, &(double){round}, "a kept host array");
        demand_value(&g, never_used, (double[]){round, round}, "a kept fill that nobody used");
        outer = trama_program_mark(g.p);
    }
    for (int i = 0; i < 5; i++)
        power[i] = 2 * power[i];
    trama_value *square = trama_mul(kept, kept), *d = trama_gradient(trama_sum(square), kept);
    demand_value(&g, d, power, "the gradient of what was kept");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

static inline void eager_derives_after_rewinding(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[5] = {1, 2, 3, 4, 5}, wanted[5];
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), data, mesh, "S(0)");
    trama_value *y = trama_square(x), *loss = trama_sum(y);
    int mark = trama_program_mark(g.p);
    for (int round = 1; round < 4; round++) {
        for (int i = 0; i < 5; i++)
            wanted[i] = 2 * data[i];
        demand_value(&g, trama_gradient(loss, x), wanted, "the same loss again");
        demand_value(&g, trama_gradient(loss, y), (double[]){1, 1, 1, 1, 1}, "an inner gradient");
        trama_value *other = trama_sum(trama_mul(y, trama_scale(x, round))); /* round x^3 */
        for (int i = 0; i < 5; i++)
            wanted[i] = 3 * round * data[i] * data[i];
        demand_value(&g, trama_gradient(other, x), wanted, "another loss in the same place");
        must(trama_program_rewind(g.p, mark));
    }
    trama_value *d = trama_gradient(loss, x), *second = trama_gradient(trama_sum(trama_mul(d, d)), x); /* of 4 x^2 */
    for (int i = 0; i < 5; i++)
        wanted[i] = 8 * data[i];
    demand_value(&g, second, wanted, "the gradient of a gradient");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* An updated value stands for its state, kept or not. */
static inline void eager_keeps_updates(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    trama_init three = {3, 3, 0, 0};
    int mark = trama_program_mark(g.p);
    trama_value *before = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(2), 1);
    trama_value *s = trama_shard(trama_state(g.p, "s", TRAMA_F64, TRAMA_SHAPE(2), &three), mesh, "S(0)");
    trama_value *both[] = {s, trama_add(s, trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 2})))};
    trama_value *updated = trama_apply_at(TRAMA_HERE, g.p, trama_op_find("assign"), 2, both, NULL);
    trama_keep(updated);
    trama_keep(trama_assign(s, both[1])); /* an update is nothing that could be kept, and does no harm */
    demand_value(&g, updated, (double[]){4, 5}, "an updated value");
    demand_value(&g, trama_neg(before), (double[]){-1, -1}, "what goes");
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, updated, (double[]){4, 5}, "a kept updated value");
    demand_value(&g, trama_neg(updated), (double[]){-4, -5}, "its negative");
    demand_value(&g, s, (double[]){4, 5}, "its state");
    char *words = trama_program_text(g.p);
    demand(strstr(words, "neg"), "a program without its op:\n%s", words);
    free(words);
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, trama_add(s, updated), (double[]){8, 10}, "both");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* ---- State ---- */

static inline void eager_updates_state(const char *spec, const char *layout)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double wanted[5] = {0}, row[5] = {1, 2, 3, 4, 5};
    trama_value *s = trama_state(g.p, "s", TRAMA_F64, TRAMA_SHAPE(5), NULL);
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), row, mesh, "S(0)");
    trama_shard(s, mesh, layout);
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < 50; i++) {
        trama_value *old = trama_add(s, x), *twice = trama_add(old, old);
        trama_assign(s, old);
        for (int k = 0; k < 5; k++)
            wanted[k] += row[k];
        if (i % 10 == 9) {
            demand_value(&g, s, wanted, "state after its update");
            double doubled[5];
            for (int k = 0; k < 5; k++)
                doubled[k] = 2 * wanted[k];
            demand_value(&g, twice, doubled, "a value of the old state");
        }
        must(trama_program_rewind(g.p, mark));
    }
    for (int k = 0; k < 5; k++)
        wanted[k] = -k;
    must(trama_write(g.e, s, wanted, sizeof wanted));
    demand_value(&g, s, wanted, "what was written");
    eager_end_now(&g);
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
    return (footprint){shard_pool(ctx), g->e->eager->n_entries, g->e->eager->forms.n, memory_now()};
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

/* More ops than may be under way, without a read between them. */
static inline void eager_long_chain(const char *spec, int n)
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

#endif
