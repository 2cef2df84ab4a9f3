/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients: against central differences in double precision on one device, then the same from split operands on
 * simulated ranks, and which axes of the mesh that may load. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "tried_ops.h"

/* One op whose result y becomes the loss sum(y w), with the gradient of each float operand. */
typedef struct setup {
    const tried_op *c;
    trama_program *program;
    trama_node *node;
    trama_value *weights, *loss, *gradient[TRAMA_MAX_OPERANDS]; /* NULL where there is none */
    trama_target *target;
    dense in[TRAMA_MAX_OPERANDS], w;
} setup;

static bool is_differentiable(const tried_op *c)
{
    const trama_op *op = trama_op_find(c->op);
    return op->gradient && !(op == trama_op_find("cast") && c->attributes.integer[CAST_DTYPE] == TRAMA_I32);
}

static bool has_gradient(const setup *s, int operand)
{
    return trama_dtype_is_float(s->node->in[operand]->dtype) && !(s->node->op->shape_only >> operand & 1);
}

static void add_loss(setup *s)
{
    trama_value *y = s->node->out[0], *values[1 + TRAMA_MAX_OPERANDS];
    int n = 0;
    s->weights = trama_input(s->program, "weights", y->dtype, y->shape);
    s->w = dense_random(y->shape, 77, 0.5, 2, false);
    s->loss = values[n++] = trama_sum(trama_mul(y, s->weights));
    for (int i = 0; i < s->node->op->n_in; i++)
        if (has_gradient(s, i))
            s->gradient[i] = values[n++] = trama_gradient(s->loss, s->node->in[i]);
    s->target = trama_target_at(TRAMA_HERE, s->program, "gradients", n, values);
    ck_assert_msg(s->target != NULL, "%s: %s", s->c->op, trama_program_error(s->program));
}

static setup setup_new(const tried_op *c)
{
    setup s = {.c = c, .program = trama_program_create()};
    s.node = tried_op_node(c, s.program);
    for (int i = 0; i < s.node->op->n_in; i++)
        s.in[i] = tried_op_operand(c, i, s.node->in[i]->shape, 40 + (uint64_t)i);
    return s;
}

static void setup_free(setup *s)
{
    for (int i = 0; i < TRAMA_MAX_OPERANDS; i++)
        dense_free(&s->in[i]);
    dense_free(&s->w);
    trama_program_destroy(&s->program);
}

/* ---- One device ---- */

static double loss_at(single *one, const setup *s, int operand)
{
    single_feed(one, s->node->in[operand], &s->in[operand]);
    single_run(one, s->target);
    return single_value(one, s->loss)->at[0];
}

/* The error of the difference is about h^2, its rounding 1e-16 / h. */
static void compare_with_differences(const setup *s, single *one, int operand)
{
    const double h = 1e-5, tolerance = 1e-7;
    const int64_t step = suite_is_sanitized() && !suite_is_long() ? 7 : 1;
    dense derived = dense_copy(single_value(one, s->gradient[operand]));
    ck_assert(trama_shape_equal(derived.shape, s->in[operand].shape));
    for (int64_t i = 0; i < trama_shape_count(derived.shape); i += step) {
        double *x = &s->in[operand].at[i], at = *x;
        *x = at + h;
        double above = loss_at(one, s, operand);
        *x = at - h;
        double below = loss_at(one, s, operand);
        *x = at;
        double slope = (above - below) / (2 * h);
        ck_assert_msg(fabs(slope - derived.at[i]) <= tolerance * fmax(1, fabs(slope)),
                      "%s of %s: element %lld of the gradient of operand %d is %.9g, the slope is %.9g", s->c->op,
                      s->c->shapes, (long long)i, operand, derived.at[i], slope);
    }
    loss_at(one, s, operand);
    dense_free(&derived);
}

START_TEST(the_gradients_of_every_op_are_the_slopes_of_the_loss)
{
    for (int c = 0; c < n_tried_ops; c++) {
        if (!is_differentiable(&tried_ops[c]))
            continue;
        setup s = setup_new(&tried_ops[c]);
        add_loss(&s);
        single *one = single_new(s.program);
        single_feed(one, s.weights, &s.w);
        for (int i = 0; i < s.node->op->n_in; i++)
            single_feed(one, s.node->in[i], &s.in[i]);
        single_run(one, s.target);
        for (int i = 0; i < s.node->op->n_in; i++)
            if (s.gradient[i])
                compare_with_differences(&s, one, i);
        single_destroy(&one);
        setup_free(&s);
    }
}
END_TEST

START_TEST(every_op_with_a_gradient_has_a_case)
{
    for (int i = 0; i < trama_n_ops; i++) {
        const unsigned kinds =
            trama_ops[i]->kinds; /* test_complex_programs and test_fourier try those of complex numbers */
        bool found = !trama_ops[i]->gradient || (kinds && !(kinds & TRAMA_KIND_FLOAT)) ||
                     trama_ops[i] == &trama_op_complex_of || trama_ops[i] == &trama_op_rfft;
        for (int c = 0; c < n_tried_ops; c++)
            found |= !strcmp(tried_ops[c].op, trama_ops[i]->name) && is_differentiable(&tried_ops[c]);
        ck_assert_msg(found, "%s has no case", trama_ops[i]->name);
    }
}
END_TEST

/* Built-in ops of floats without a gradient end a path in silence, so they are constant almost everywhere, or no
 * functions of floats at all. */
START_TEST(ops_without_a_gradient_are_constant_almost_everywhere)
{
    static const char *const constant[] = {
        "sign",  "floor",      "ceil",     "round",         "trunc",       "floor_div",  "equal",       "not_equal",
        "less",  "less_equal", "greater",  "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
        "isnan", "isinf",      "isfinite", "stop_gradient", "argmax",      "argmin",     "draw",        "schedule"};
    for (int i = 0; i < trama_n_ops; i++) {
        const trama_op *op = trama_ops[i];
        bool known = op->gradient || op->updates || !op->n_in || (op->kinds && !(op->kinds & TRAMA_KIND_FLOAT));
        for (size_t k = 0; k < sizeof constant / sizeof *constant; k++)
            known |= !strcmp(op->name, constant[k]);
        ck_assert_msg(known, "%s has no gradient", op->name);
    }
}
END_TEST

/* ---- Split operands ---- */

/* R or a split along each axis, digit by digit of `number`; the axes that split something are added to *split. */
static void shard_operand(trama_value *v, const trama_mesh *mesh, int64_t *number, unsigned *split)
{
    char layout[64] = "";
    for (int a = 0; a < trama_mesh_ndim(mesh); a++) {
        int digit = (int)(*number % (v->shape.ndim + 1));
        *number /= v->shape.ndim + 1;
        *split |= (unsigned)(digit > 0) << a;
        size_t n = strlen(layout);
        snprintf(layout + n, sizeof layout - n, digit ? "%sS(%d)" : "%sR", a ? "," : "", digit - 1);
    }
    ck_assert_msg(trama_shard(v, mesh, layout) != NULL, "%s: %s", layout, trama_program_error(v->program));
}

static int64_t count_placements(const setup *s, const trama_mesh *mesh)
{
    int64_t n = 1;
    for (int i = 0; i < s->node->op->n_in; i++)
        for (int a = 0; a < trama_mesh_ndim(mesh); a++)
            n *= s->node->in[i]->shape.ndim + 1;
    return n;
}

/* Process i is on rank i: what is sent from rank to rank goes along the axes in which their coordinates differ. Only
 * where terms are reduced may replicas along other axes help, which makes it less for each. */
static void check_axes(const simulation *s, const trama_mesh *mesh, unsigned split, const char *name)
{
    for (int r = 0; r < trama_mesh_size(mesh); r++) {
        const plan *ran = simulation_plan(s, r);
        for (int i = 0; i < ran->steps.n; i++) {
            const plan_step *step = &ran->steps.at[i];
            if (step->kind != STEP_SEND || layout_has(&ran->exchanges.at[step->exchange].from, TRAMA_PARTIAL))
                continue;
            int mine[TRAMA_MAX_AXES], theirs[TRAMA_MAX_AXES];
            mesh_coordinate(mesh, r, mine);
            mesh_coordinate(mesh, step->peer, theirs);
            for (int a = 0; a < trama_mesh_ndim(mesh); a++)
                ck_assert_msg(mine[a] == theirs[a] || (split >> a & 1),
                              "%s: rank %d sends to rank %d along axis %d, on which nothing is split", name, r,
                              step->peer, a);
        }
    }
}

static void try_placement(const tried_op *c, const trama_mesh *mesh, int64_t number)
{
    setup s = setup_new(c);
    machine *m = machine_uniform(trama_mesh_size(mesh), 1);
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    unsigned split = 0;
    char name[96];
    snprintf(name, sizeof name, "%s of %s, placement %lld of %d axes", c->op, c->shapes, (long long)number,
             trama_mesh_ndim(mesh));
    for (int i = 0; i < s.node->op->n_in; i++)
        shard_operand(s.node->in[i], mesh, &number, &split);
    add_loss(&s);
    pair both = pair_new(s.program, m, &o, name);
    pair_feed(&both, s.weights, &s.w);
    for (int i = 0; i < s.node->op->n_in; i++)
        pair_feed(&both, s.node->in[i], &s.in[i]);
    pair_run(&both, s.target, 1e-10);
    check_axes(both.many, mesh, split, name);
    pair_free(&both);
    machine_destroy(&m);
    setup_free(&s);
}

/* At most `most` of an op, in the long run 10,000, and under a sanitizer a sixth. */
static void try_placements(const char *shape, int most)
{
    most = suite_is_long() ? 10000 : suite_is_sanitized() ? most / 6 + 2 : most;
    trama_mesh *mesh = trama_mesh_create(shape);
    for (int c = 0; c < n_tried_ops; c++) {
        if (!is_differentiable(&tried_ops[c]))
            continue;
        setup s = setup_new(&tried_ops[c]);
        int64_t n = count_placements(&s, mesh), step = n / most + 1;
        for (int64_t number = 0; number < n; number += step)
            try_placement(&tried_ops[c], mesh, number);
        setup_free(&s);
    }
    trama_mesh_destroy(&mesh);
}

START_TEST(gradients_from_every_split_along_one_axis_are_those_of_one_device)
{
    try_placements("2", 100);
    try_placements("3", 5);
}
END_TEST

START_TEST(gradients_from_splits_along_two_axes_are_those_of_one_device)
{
    try_placements("2,2", 12);
}
END_TEST

/* ---- Whole programs ---- */

static trama_program *p;
static trama_value *x;
static const double data[] = {0.5, -1.25, 3};

static void set_up(void)
{
    p = trama_program_create();
    x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3), data);
}

static void tear_down(void)
{
    trama_program_destroy(&p);
}

static void expect(trama_value *gradient, double a, double b, double c)
{
    trama_target *t = trama_target_create(p, "t", gradient);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    single *one = single_new(p);
    single_run(one, t);
    const double wanted[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(single_value(one, gradient)->at[i], wanted[i], 1e-14);
    single_destroy(&one);
}

START_TEST(a_value_used_several_times_collects_all_its_gradients)
{
    expect(trama_gradient(trama_sum(trama_add(trama_mul(x, x), x)), x), 2, -1.5, 7);
}
END_TEST

START_TEST(stop_gradient_lets_nothing_through)
{
    expect(trama_gradient(trama_sum(trama_mul(trama_stop_gradient(x), x)), x), 0.5, -1.25, 3);
}
END_TEST

START_TEST(the_gradient_of_a_loss_that_does_not_depend_on_it_is_zero)
{
    trama_value *other = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3), data);
    expect(trama_gradient(trama_sum(other), x), 0, 0, 0);
}
END_TEST

START_TEST(gradients_of_gradients_are_gradients)
{
    trama_value *first = trama_gradient(trama_sum(trama_mul(trama_square(x), x)), x);
    expect(trama_gradient(trama_sum(first), x), 3, -7.5, 18);
}
END_TEST

/* From one mesh to another and on: gradients find their way back whether or not it is said how what leaves lies. */
START_TEST(gradients_come_back_from_another_mesh)
{
    static const char *const leaves[] = {NULL, "?", "S(0)", "S(1)", "R"}, *const comes[] = {"S(0)", "R", "S(1)"};
    for (int i = 0; i < 15; i++) {
        trama_program *q = trama_program_create();
        trama_mesh *near = trama_mesh_create("2"), *far = trama_mesh_create(i % 2 ? "2:2,3" : "3:1,2,3");
        trama_init init = {-1, 1, 3, 0}, other = {-1, 1, 3, 1};
        trama_value *in = trama_input(q, "in", TRAMA_F64, TRAMA_SHAPE(4, 3)),
                    *w = trama_parameter(q, "w", TRAMA_F64, TRAMA_SHAPE(3, 6), &init),
                    *v = trama_parameter(q, "v", TRAMA_F64, TRAMA_SHAPE(6, 2), &other);
        trama_shard(in, near, i % 3 ? "S(0)" : "S(1)");
        trama_value *z = trama_relu(trama_matmul(in, w));
        if (leaves[i % 5])
            trama_shard(z, near, leaves[i % 5]);
        z = trama_matmul(trama_reshard(z, far, comes[i / 5]), v);
        trama_value *loss = trama_mean(trama_square(z));
        trama_optimizer sgd = trama_sgd(0.1);
        trama_target *t = trama_target_create(q, "t", trama_minimize(loss, &sgd), trama_gradient(loss, w), loss);
        ck_assert_msg(t != NULL, "%s", trama_program_error(q));
        dense fed = dense_random(in->shape, 1, -1, 1, false);
        pair_try(q, t, 1, &in, &fed, 4, 1e-12, leaves[i % 5] ? leaves[i % 5] : "nothing");
        dense_free(&fed);
        trama_program_destroy(&q);
        trama_mesh_destroy(&near);
        trama_mesh_destroy(&far);
    }
}
END_TEST

START_TEST(asking_twice_appends_nothing)
{
    trama_value *loss = trama_sum(trama_exp(x)), *first = trama_gradient(loss, x);
    int n = p->nodes.n;
    ck_assert_ptr_eq(trama_gradient(loss, x), first);
    ck_assert_int_eq(p->nodes.n, n);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        the_gradients_of_every_op_are_the_slopes_of_the_loss,
        every_op_with_a_gradient_has_a_case,
        ops_without_a_gradient_are_constant_almost_everywhere,
        gradients_from_every_split_along_one_axis_are_those_of_one_device,
        gradients_from_splits_along_two_axes_are_those_of_one_device,
        a_value_used_several_times_collects_all_its_gradients,
        stop_gradient_lets_nothing_through,
        the_gradient_of_a_loss_that_does_not_depend_on_it_is_zero,
        gradients_of_gradients_are_gradients,
        gradients_come_back_from_another_mesh,
        asking_twice_appends_nothing,
    };
    return suite_run("gradient", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
