/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs with random annotations on random meshes and machines, forward, backward and update, against one
 * device. TRAMA_TEST_SEED=n runs only program n and prints it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "pair.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

enum { MAX_VALUES = 64 };

typedef struct garden {
    uint64_t seed;
    trama_program *p;
    trama_mesh *mesh, *other; /* other: of some processes of the mesh */
    trama_value *values[MAX_VALUES], *inputs[MAX_VALUES], *parameters[MAX_VALUES];
    int n_values, n_inputs, n_parameters;
} garden;

static int below(garden *g, int n)
{
    return random_below(&g->seed, n);
}

static bool chance(garden *g, int percent)
{
    return below(g, 100) < percent;
}

static int64_t random_extent(garden *g)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 7};
    return extents[below(g, 6)];
}

/* ---- Layouts ---- */

static char *random_text(garden *g, const trama_mesh *mesh, int ndim, bool final)
{
    layout_list list = {0};
    every_layout(mesh, ndim, final && chance(g, 20), &list);
    trama_layout l = list.at[below(g, list.n)];
    ARRAY_FREE(&list);
    for (int a = 0; a < l.naxes && !final; a++)
        if (l.axis[a].kind == TRAMA_REPLICATE && chance(g, 50))
            l.axis[a].kind = TRAMA_OPEN;
    unsigned char mask[16];
    for (int i = 0; i < mesh->size; i++)
        mask[i] = chance(g, 70);
    if (final && chance(g, 10))
        trama_layout_mask(mesh, ndim, mask, &l);
    return trama_layout_text(mesh, &l);
}

static trama_value *annotate(garden *g, trama_value *v, int percent, bool is_state)
{
    if (!v || !chance(g, percent))
        return v;
    char *layout = random_text(g, g->mesh, v->shape.ndim, !is_state && chance(g, 50));
    trama_shard(v, g->mesh, layout);
    free(layout);
    return v;
}

/* ---- Leaves ---- */

static trama_value *parameter(garden *g, trama_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "w%d", g->n_parameters);
    trama_init init = {-0.7, 0.7, 11, (uint64_t)g->n_parameters};
    trama_value *v = trama_parameter(g->p, name, TRAMA_F64, shape, &init);
    return g->parameters[g->n_parameters++] = annotate(g, v, 50, true);
}

static trama_value *input(garden *g, trama_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", g->n_inputs);
    trama_value *v = trama_input(g->p, name, TRAMA_F64, shape);
    return g->inputs[g->n_inputs++] = annotate(g, v, 60, false);
}

static trama_value *any_value(garden *g)
{
    return g->values[below(g, g->n_values)];
}

/* ---- Ops ---- */

static trama_value *grow_unary(garden *g)
{
    trama_value *x = any_value(g);
    switch (below(g, 10)) {
    case 0:
        return trama_neg(x);
    case 1:
        return trama_relu(x);
    case 2:
        return trama_tanh(x);
    case 3:
        return trama_sigmoid(x);
    case 4:
        return trama_gelu(x);
    case 5:
        return trama_abs(x);
    case 6:
        return trama_square(trama_tanh(x));
    case 7:
        return trama_scale(x, below(g, 2) ? -0.5 : 1.5);
    case 8:
        return trama_cast(trama_cast(x, TRAMA_F32), TRAMA_F64);
    default:
        return trama_stop_gradient(x);
    }
}

/* A shape that broadcasts with another: some dims 1, or missing. */
static trama_shape thinner(garden *g, trama_shape shape)
{
    int skip = shape.ndim ? below(g, shape.ndim + 1) : 0;
    trama_shape thin = {.ndim = shape.ndim - skip};
    for (int d = 0; d < thin.ndim; d++)
        thin.dim[d] = chance(g, 30) ? 1 : shape.dim[d + skip];
    return thin;
}

static trama_value *grow_binary(garden *g)
{
    trama_value *x = any_value(g), *y = NULL;
    for (int i = 0; i < g->n_values && !y; i++)
        if (trama_shape_equal(g->values[i]->shape, x->shape) && chance(g, 40))
            y = g->values[i];
    if (!y)
        y = g->n_parameters < 12 ? parameter(g, thinner(g, x->shape)) : x;
    switch (below(g, 4)) {
    case 0:
        return trama_sub(y, x);
    case 1:
        return trama_mul(x, trama_tanh(y));
    case 2:
        return trama_div(trama_tanh(x), trama_exp(trama_tanh(y)));
    default:
        return trama_add(x, y);
    }
}

static trama_value *grow_matmul(garden *g)
{
    trama_value *x = any_value(g);
    bool tx = chance(g, 30), ty = chance(g, 30);
    if (x->shape.ndim < 2 || g->n_parameters >= 12)
        return trama_tanh(x);
    int64_t k = x->shape.dim[x->shape.ndim - (tx ? 2 : 1)], n = random_extent(g);
    trama_value *w = parameter(g, ty ? TRAMA_SHAPE(n, k) : TRAMA_SHAPE(k, n));
    return trama_tanh(trama_matmul_trans(x, w, tx, ty));
}

static trama_value *grow_reduction(garden *g)
{
    trama_value *x = any_value(g);
    if (!x->shape.ndim)
        return trama_neg(x);
    int dim = below(g, x->shape.ndim);
    bool keep = chance(g, 50);
    switch (below(g, 5)) {
    case 0:
        return trama_sum_over(x, 1, &dim, keep);
    case 1:
        return trama_mean_over(x, 1, &dim, keep);
    case 2:
        return trama_max_over(x, 1, &dim, keep);
    case 3:
        return trama_min_over(x, 1, &dim, keep);
    default:
        return trama_softmax(x, dim);
    }
}

static trama_value *grow_shape(garden *g)
{
    trama_value *x = any_value(g);
    trama_shape s = x->shape;
    if (s.ndim < 2)
        return trama_reshape(x, s.ndim ? TRAMA_SHAPE(1, s.dim[0]) : TRAMA_SHAPE(1, 1));
    switch (below(g, 3)) {
    case 0:
        return trama_transpose(x, NULL);
    case 1:
        return trama_reshape(x, s.ndim == 2 ? TRAMA_SHAPE(s.dim[0] * s.dim[1])
                                            : TRAMA_SHAPE(s.dim[0], s.dim[1] * s.dim[2]));
    default:
        return trama_reshape(x, s.ndim == 2 ? TRAMA_SHAPE(s.dim[1], s.dim[0])
                                            : TRAMA_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
    }
}

/* Some layout of the mesh; sometimes there and back over another mesh. */
static trama_value *grow_reshard(garden *g)
{
    trama_value *x = any_value(g);
    char *here = random_text(g, g->mesh, x->shape.ndim, true), *there = random_text(g, g->other, x->shape.ndim, true);
    if (chance(g, 30))
        x = trama_neg(trama_reshard(x, g->other, there));
    x = trama_reshard(x, g->mesh, here);
    free(here);
    free(there);
    return x;
}

static void grow(garden *g)
{
    trama_value *(*const growers[])(garden *) = {grow_unary,  grow_unary,     grow_binary, grow_binary,
                                                 grow_matmul, grow_reduction, grow_shape,  grow_reshard};
    trama_value *v = growers[below(g, 8)](g);
    ck_assert_msg(v != NULL, "%s", trama_program_error(g->p));
    if (!v->mesh)
        annotate(g, v, 15, false);
    g->values[g->n_values++] = v;
}

/* ---- The whole ---- */

static garden plant(uint64_t number)
{
    static const char *const meshes[] = {"1",           "2",   "3", "2,2",   "2,3",      "3,2",        "2,2,2",
                                         "2,2:3,1,0,2", "1,2", "5", "[3,1]", "[1,20,2]", "[2,1],[1,9]"};
    garden g = {.seed = 1000003 * number + 17, .p = trama_program_create()};
    g.mesh = trama_mesh_create(meshes[below(&g, 13)]);
    g.other = trama_mesh_create(g.mesh->size > 2 ? "2:2,0" : "1:0");
    int n_leaves = 1 + below(&g, 2), n_ops = 2 + below(&g, 12);
    for (int i = 0; i < n_leaves; i++)
        g.values[g.n_values++] =
            input(&g, below(&g, 3) ? TRAMA_SHAPE(random_extent(&g), random_extent(&g))
                                   : TRAMA_SHAPE(random_extent(&g), random_extent(&g), random_extent(&g)));
    for (int i = 0; i < n_ops; i++)
        grow(&g);
    return g;
}

static trama_optimizer any_optimizer(garden *g)
{
    trama_optimizer all[] = {trama_sgd(0.1), trama_adamw(0.01), trama_adam(0.01), trama_lamb(0.01)};
    trama_optimizer o = all[below(g, 4)];
    if (chance(g, 30))
        o.momentum = 0.9;
    if (chance(g, 30))
        o.clip_norm = 0.5;
    if (chance(g, 20))
        o.clip_value = 0.25;
    if (chance(g, 30))
        o.schedule = trama_schedule_step(1, 0.5);
    if (chance(g, 30))
        o.loss_scale = trama_loss_scale_dynamic();
    return o;
}

static trama_target *harvest(garden *g)
{
    trama_value *loss = NULL, *wanted[8];
    int n = 0;
    for (int i = 0; i < 3; i++) {
        trama_value *part = trama_mean(trama_square(i ? any_value(g) : g->values[g->n_values - 1]));
        loss = loss ? trama_add(loss, part) : part;
    }
    wanted[n++] = loss;
    wanted[n++] = any_value(g);
    wanted[n++] = trama_gradient(loss, any_value(g));
    wanted[n++] = trama_gradient(loss, g->inputs[0]);
    trama_optimizer o = any_optimizer(g);
    bool trains = false;
    for (int i = 0; i < g->n_parameters; i++) {
        bool *needed = trama_alloc((size_t)g->p->nodes.n);
        program_closure(g->p, 1, &loss, needed);
        for (int k = 0; k < g->p->nodes.n; k++)
            for (int t = 0; needed[k] && t < g->p->nodes.at[k]->op->n_in; t++)
                trains |= g->p->nodes.at[k]->in[t] == g->parameters[i] && g->p->nodes.at[k]->op->gradient;
        free(needed);
    }
    if (trains) {
        trama_value *effect = NULL;
        for (int i = 0; i < g->n_parameters && !effect; i++)
            effect = trama_gradient(loss, g->parameters[i]) ? trama_minimize(loss, &o) : NULL;
        if (effect)
            wanted[n++] = effect;
    }
    wanted[n++] = any_value(g);
    return trama_target_at(TRAMA_HERE, g->p, "t", n, wanted);
}

static void feed(const garden *g, simulation *s, int step)
{
    for (int i = 0; i < g->n_inputs; i++) {
        dense data = dense_random(g->inputs[i]->shape, (uint64_t)(31 * step + i), -1, 1, false);
        simulation_feed(s, g->inputs[i], &data);
        dense_free(&data);
    }
}

/* Where places compute unlike bits, those who hold the same still have the same bits. */
static void check_replicas(const garden *g, const trama_target *target, const machine *m, simulation_options o,
                           const char *name)
{
    o.error = 1e-7;
    machine lends = *m;
    lends.loan_bytes = 1; /* ranks of a node read each other's memory, which arenas use again and again */
    o.plan.arena_bytes = o.plan.early_bytes = 1;
    simulation *s = simulation_new(g->p, &lends, &o);
    for (int step = 0; step < 2; step++) {
        feed(g, s, step);
        simulation_run(s, target);
        for (int i = 0; i < g->p->values.n; i++) {
            const trama_value *v = g->p->values.at[i];
            bool wanted = v->kind == VALUE_STATE;
            for (int k = 0; k < target->values.n; k++)
                wanted |= target->values.at[k] == v && v->kind != VALUE_EFFECT;
            char *wrong = wanted ? simulation_disagreement(s, v) : NULL;
            ck_assert_msg(!wrong, "%s, step %d: %s: %s", name, step, v->name, wrong);
        }
        ck_assert_msg(!simulation_verify(s), "%s, step %d: %s", name, step, trama_error());
    }
    simulation_destroy(&s);
}

static void run(garden *g, trama_target *target, const char *name)
{
    machine *m = simulation_machine(1 + below(g, 4), 1 + below(g, 2), 1 + below(g, 3));
    machine_vary(m, below(g, MACHINE_VARIANTS));
    simulation_options o = {.plan = {below(g, 4), 1 + 40 * below(g, 2), 1, chance(g, 30)}, .keep_all = chance(g, 20)};
    o.plan.in_place = 1;
    o.plan.sum_tile = chance(g, 50) ? 16 : 0;
    pair both = pair_new(g->p, m, &o, name);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < g->n_inputs; i++) {
            dense data = dense_random(g->inputs[i]->shape, (uint64_t)(31 * step + i), -1, 1, false);
            pair_feed(&both, g->inputs[i], &data);
            dense_free(&data);
        }
        pair_run(&both, target, 1e-9);
    }
    pair_free(&both);
    check_replicas(g, target, m, o, name);
    machine_destroy(&m);
}

/* From here on a copy of the program, as compiling makes it; the original is gone. */
static trama_target *go_on_with_copy(garden *g)
{
    trama_program *copy = program_copy(g->p);
    for (int i = 0; i < g->n_inputs; i++)
        g->inputs[i] = copy->values.at[g->inputs[i]->id];
    trama_program_destroy(&g->p);
    g->p = copy;
    return copy->targets.at[0];
}

/* From here on the layouts of the program are searched. */
static void search_receives_no_more(garden *g, const char *name)
{
    int64_t bytes[2], bounds[2];
    for (int searched = 0; searched < 2; searched++) {
        trama_completion *c;
        if (searched)
            ck_assert_int_eq(trama_search_layouts(g->p), TRAMA_OK);
        ck_assert_msg(!trama_completion_create(g->p, 64, &c), "%s: %s", name, trama_error());
        ck_assert_int_eq(trama_completion_bytes(c, &bytes[searched], &bounds[searched]), TRAMA_OK);
        ck_assert_msg(bounds[searched] <= bytes[searched], "%s: %lld bytes, bound %lld", name,
                      (long long)bytes[searched], (long long)bounds[searched]);
        trama_completion_destroy(&c);
    }
    ck_assert_msg(bytes[1] <= bytes[0] && bounds[0] <= bytes[1], "%s: %lld bytes, bound %lld, searched %lld", name,
                  (long long)bytes[0], (long long)bounds[0], (long long)bytes[1]);
}

static void try_program(uint64_t number, bool print)
{
    garden g = plant(number);
    trama_target *target = harvest(&g);
    char name[64], *program = trama_program_text(g.p);
    if (print)
        puts(program);
    free(program);
    snprintf(name, sizeof name, "TRAMA_TEST_SEED=%llu", (unsigned long long)number);
    if (trama_program_status(g.p) == TRAMA_E_ARGUMENT && strstr(trama_program_error(g.p), "depends on no parameter"))
        target = NULL;
    else
        ck_assert_msg(target != NULL, "%s: %s", name, trama_program_error(g.p));
    if (target)
        run(&g, chance(&g, 50) ? go_on_with_copy(&g) : target, name);
    if (target && (print || number % 3 == 0)) {
        search_receives_no_more(&g, name);
        run(&g, g.p->targets.at[0], name);
    }
    trama_program_destroy(&g.p);
    trama_mesh_destroy(&g.mesh);
    trama_mesh_destroy(&g.other);
}

START_TEST(random_programs_compute_what_one_device_computes)
{
    const char *only = getenv("TRAMA_TEST_SEED");
    int n = suite_is_long() ? 20000 : suite_is_sanitized() ? 120 : 400;
    if (only)
        try_program(strtoull(only, NULL, 10), true);
    for (int i = 0; i < n && !only; i++)
        try_program((uint64_t)i, false);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        random_programs_compute_what_one_device_computes,
    };
    return suite_run("random", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
