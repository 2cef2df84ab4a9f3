/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge of a program in which a parameter has two uses, one is frozen, and layers may lie on meshes that have
 * no process in common; beside plain loops.
 *
 *     h = relu(x w + b),  z = h w^T + c,  on one mesh;  loss = mean((z v + d - y)^2),  on the same or on another one
 *
 * x [n, 7], w [7, 5], v [7, 3]; c is frozen. */
#include "descent.h"
#include "merging.h"

enum { TIED_IN = 7, TIED_HIDDEN = 5, TIED_OUT = 3, TIED_TRAINED = 4, TIED_MOST = 64 };
enum { TIED_W, TIED_B, TIED_V, TIED_D, TIED_C, N_TIED };

typedef struct tied_layout {
    const char *mesh, *x, *w;
    const char *other, *leaves, *comes,
        *v; /* z leaves for the other mesh, and lies so before if it is said; other NULL: all on one mesh */
} tied_layout;

static const tied_layout tied_layouts[] = {
    {NULL},
    {"1", "R", "R", NULL, NULL, NULL, "R"},
    {"2", "S(0)", "R", NULL, NULL, NULL, "R"},
    {"2", "R", "S(1)", NULL, NULL, NULL, "S(0)"},
    {"3", "S(0)", "S(0)", NULL, NULL, NULL, "S(1)"},
    {"2,2", "S(0),R", "R,S(1)", NULL, NULL, NULL, "R,S(0)"},
    {"2:0,1", "S(0)", "R", "2:2,3", "S(0)", "S(1)", "S(0)"},
    {"2:0,1", "R", "S(0)", "2:2,3", "S(1)", "S(0)", "R"},
    {"2:0,1", "S(0)", "S(1)", "2:2,3", NULL, "S(0)", "R"},
    {"3:0,3,1", "S(0)", "S(1)", "1:2", "S(0)", "R", "R"},
};
enum { N_TIED_LAYOUTS = sizeof tied_layouts / sizeof *tied_layouts };

typedef struct tied {
    trama_program *program;
    trama_mesh *mesh, *other;
    trama_value *x, *y, *parameter[N_TIED], *loss;
} tied;

static tied tied_new(const tied_layout *l)
{
    static const char *const names[] = {"w", "b", "v", "d", "c"};
    const trama_shape shapes[] = {TRAMA_SHAPE(TIED_IN, TIED_HIDDEN), TRAMA_SHAPE(TIED_HIDDEN),
                                  TRAMA_SHAPE(TIED_IN, TIED_OUT), TRAMA_SHAPE(TIED_OUT), TRAMA_SHAPE(TIED_IN)};
    tied t = {.program = trama_program_create(),
              .mesh = l->mesh ? mesh_of(l->mesh) : NULL,
              .other = l->other ? mesh_of(l->other) : NULL};
    t.x = trama_input(t.program, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, TIED_IN));
    t.y = trama_input(t.program, "y", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, TIED_OUT));
    for (int i = 0; i < N_TIED; i++) {
        trama_init init = {-0.5, 0.5, SEED, (uint64_t)i};
        t.parameter[i] = trama_parameter(t.program, names[i], TRAMA_F64, shapes[i], &init);
    }
    if (l->mesh) {
        trama_shard(t.x, t.mesh, l->x);
        trama_shard(t.parameter[TIED_W], t.mesh, l->w);
        trama_shard(t.parameter[TIED_V], t.other ? t.other : t.mesh, l->v);
    }
    trama_value *h = trama_relu(trama_add(trama_matmul(t.x, t.parameter[TIED_W]), t.parameter[TIED_B]));
    trama_value *z = trama_add(trama_matmul_trans(h, t.parameter[TIED_W], false, true), t.parameter[TIED_C]);
    z = t.other ? trama_reshard(l->leaves ? trama_shard(z, t.mesh, l->leaves) : z, t.other, l->comes) : z;
    z = trama_add(trama_matmul(z, t.parameter[TIED_V]), t.parameter[TIED_D]);
    t.loss = trama_mean(trama_square(trama_sub(z, t.y)));
    return t;
}

static void tied_free(tied *t)
{
    trama_program_destroy(&t->program);
    trama_mesh_destroy(&t->mesh);
    trama_mesh_destroy(&t->other);
}

/* ---- Plain ---- */

typedef struct plain_tied {
    plain_tensor parameter[N_TIED]; /* those that are trained come first */
    int64_t steps;
} plain_tied;

static plain_tied plain_tied_new(void)
{
    plain_tied p = {.parameter = {{.n = TIED_IN * TIED_HIDDEN},
                                  {.n = TIED_HIDDEN},
                                  {.n = TIED_IN * TIED_OUT},
                                  {.n = TIED_OUT},
                                  {.n = TIED_IN}}};
    for (int i = 0; i < N_TIED; i++)
        for (int k = 0; k < p.parameter[i].n; k++)
            p.parameter[i].value[k] = plain_uniform(SEED, (uint32_t)i, 0, (uint64_t)k, -0.5, 0.5);
    return p;
}

/* Adds the gradients of one row, of which the loss has `share`. */
static void plain_tied_row(plain_tied *p, const double *x, const double *y, double share)
{
    const double *w = p->parameter[TIED_W].value, *v = p->parameter[TIED_V].value;
    double *dw = p->parameter[TIED_W].gradient, *dv = p->parameter[TIED_V].gradient;
    double h[TIED_HIDDEN], z[TIED_IN], dz[TIED_IN] = {0};
    for (int j = 0; j < TIED_HIDDEN; j++) {
        h[j] = p->parameter[TIED_B].value[j];
        for (int i = 0; i < TIED_IN; i++)
            h[j] += x[i] * w[i * TIED_HIDDEN + j];
        h[j] = fmax(h[j], 0);
    }
    for (int i = 0; i < TIED_IN; i++) {
        z[i] = p->parameter[TIED_C].value[i];
        for (int j = 0; j < TIED_HIDDEN; j++)
            z[i] += h[j] * w[i * TIED_HIDDEN + j];
    }
    for (int o = 0; o < TIED_OUT; o++) {
        double e = p->parameter[TIED_D].value[o] - y[o];
        for (int i = 0; i < TIED_IN; i++)
            e += z[i] * v[i * TIED_OUT + o];
        e *= 2 * share;
        p->parameter[TIED_D].gradient[o] += e;
        for (int i = 0; i < TIED_IN; i++) {
            dv[i * TIED_OUT + o] += z[i] * e;
            dz[i] += v[i * TIED_OUT + o] * e;
        }
    }
    for (int j = 0; j < TIED_HIDDEN; j++) {
        double dh = 0;
        for (int i = 0; i < TIED_IN; i++) {
            dw[i * TIED_HIDDEN + j] += dz[i] * h[j]; /* as w^T */
            dh += dz[i] * w[i * TIED_HIDDEN + j];
        }
        dh = h[j] > 0 ? dh : 0;
        p->parameter[TIED_B].gradient[j] += dh;
        for (int i = 0; i < TIED_IN; i++)
            dw[i * TIED_HIDDEN + j] += x[i] * dh; /* as w */
    }
}

/* A step over n rows; returns the norm of the gradients before they are clipped to norm. */
static double plain_tied_step(plain_tied *p, const trama_optimizer *const *of, int n, const double *x, const double *y)
{
    for (int i = 0; i < N_TIED; i++)
        memset(p->parameter[i].gradient, 0, sizeof p->parameter[i].gradient);
    for (int r = 0; r < n; r++)
        plain_tied_row(p, x + (ptrdiff_t)r * TIED_IN, y + (ptrdiff_t)r * TIED_OUT, 1. / (n * TIED_OUT));
    double norm = plain_norm(TIED_TRAINED, p->parameter);
    plain_clip(of[TIED_W], TIED_TRAINED, p->parameter);
    p->steps++;
    for (int i = 0; i < TIED_TRAINED; i++)
        plain_update(of[i], of[i]->lr, p->steps, &p->parameter[i]);
    return norm;
}

/* ---- Both ---- */

static void tied_cycle(trama_executable *e, const tied *t, const trama_target *train, const cycle *c, const double *x,
                       const double *y)
{
    for (int i = 0, from = 0; i < cycle_length(c); from += c->batch[i++]) {
        int n = c->batch[i];
        must(trama_feed(e, t->x, x + (ptrdiff_t)from * TIED_IN, TRAMA_SHAPE(n, TIED_IN)));
        must(trama_feed(e, t->y, y + (ptrdiff_t)from * TIED_OUT, TRAMA_SHAPE(n, TIED_OUT)));
        must(trama_run(e, train));
    }
}

/* of: what updates each trained parameter; that of w has the groups, and clips all. */
static void merge_tied_on(const tied_layout *l, unsigned how, const trama_optimizer *const *of, int steps)
{
    static const cycle cycles[] = {{{3, 1, 5, 2}}, {{4, 4, 4, 4}}, {{1, 1, 1, 20}}};
    tied t = tied_new(l);
    plain_tied plain = plain_tied_new();
    trama_value *done = trama_minimize(t.loss, of[TIED_W]), *norm = trama_step_value(done, TRAMA_STEP_NORM);
    trama_target *train = trama_target_create(t.program, "train", done, norm);
    trama_gradient_merge(train, 4, how);
    trama_executable *e = compile(t.program);
    uint64_t state = 1;
    for (int step = 0; step < steps; step++) {
        double x[TIED_MOST * TIED_IN], y[TIED_MOST * TIED_OUT];
        const cycle *c = &cycles[step % 3];
        for (int i = 0; i < TIED_MOST * TIED_IN; i++)
            x[i] = random_to(&state, 256) / 128. - 1;
        for (int i = 0; i < TIED_MOST * TIED_OUT; i++)
            y[i] = random_to(&state, 256) / 128. - 1;
        tied_cycle(e, &t, train, c, x, y);
        double wanted = plain_tied_step(&plain, of, cycle_samples(c), x, y);
        double wrong = tensor_differs(e, norm, &wanted);
        demand(wrong <= 1e-10, "meshes %s, %s: the norm of step %d differs by %g", l->mesh ? l->mesh : "none",
               l->other ? l->other : "none", step, wrong);
    }
    for (int i = 0; i < N_TIED; i++) {
        double wrong = tensor_differs(e, t.parameter[i], plain.parameter[i].value);
        demand(wrong <= 1e-10 && (wrong == 0 || i != TIED_C), "meshes %s, %s; %s: %s differs by %g",
               l->mesh ? l->mesh : "none", l->other ? l->other : "none", of[TIED_W]->name,
               trama_value_name(t.parameter[i]), wrong);
    }
    must(trama_executable_destroy(&e));
    tied_free(&t);
}

/* Small norms, so that all is clipped. */
START_TEST(tied_and_frozen_parameters_on_one_mesh_and_on_two_are_clipped_together)
{
    trama_optimizer sgd = trama_sgd(0.2), adamw = trama_adamw(0.02), slow = trama_sgd(0.1);
    const trama_parameter_group frozen[] = {{"c", NULL}}, groups[] = {{"c", NULL}, {"v,d", &slow}};
    sgd.momentum = 0.9;
    sgd.clip_norm = 0.1;
    sgd.n_groups = 1;
    sgd.groups = frozen;
    adamw.clip_norm = 0.05;
    adamw.n_groups = 2;
    adamw.groups = groups;
    start();
    for (int i = 0; i < 2 * N_TIED_LAYOUTS; i++) {
        const tied_layout *l = &tied_layouts[i / 2];
        unsigned how = i % 2 ? TRAMA_MERGE_SYNC_EACH : TRAMA_MERGE_AVG;
        merge_tied_on(l, how, (const trama_optimizer *[]){&sgd, &sgd, &sgd, &sgd}, 12);
        merge_tied_on(l, how, (const trama_optimizer *[]){&adamw, &adamw, &slow, &slow}, 12);
    }
    stop();
}
END_TEST

TESTS(tied_and_frozen_parameters_on_one_mesh_and_on_two_are_clipped_together)
