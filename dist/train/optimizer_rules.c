/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in rules. Each is one op for a parameter, which reads and writes every element once; lamb is two ops with
 * norms between. */
#include "optimizer.h"
#include "trama_complex.h"
#include "trama_ops.h"

/* Sets n states to the first n results of an op. */
static void set_all(const trama_update *u, trama_value *first, int n, trama_value *const *states)
{
    for (int i = 0; i < n; i++)
        trama_update_set(u, states[i], trama_result(first, i));
}

static trama_value *apply(const trama_update *u, const trama_op *op, trama_value *const *in, const trama_attributes *a)
{
    return program_append(u->parameter->program, u->where, op, op->n_in, in, a);
}

/* The learning rate, a real number. */
static trama_value *rate(const trama_update *u)
{
    return trama_real_at(u->where, trama_update_lr(u));
}

/* ---- sgd ---- */

static void descend(const trama_update *u, trama_value *direction, trama_value *lr, trama_value *taken,
                    double weight_decay)
{
    trama_value *in[] = {u->parameter, direction, lr, taken};
    trama_attributes a = {.real = {[UPDATE_WEIGHT_DECAY] = weight_decay}};
    trama_update_set(u, u->parameter, apply(u, &trama_op_descend, in, &a));
}

static void sgd_rule(const trama_update *u)
{
    const trama_optimizer *o = u->optimizer;
    double constant;
    if (o->momentum != 0) {
        trama_value *b = trama_update_slot(u, "b");
        trama_value *lr = rate(u), *taken = trama_update_taken(u);
        trama_value *in[] = {u->parameter, b, trama_update_gradient(u), lr, taken};
        trama_attributes a = {.integer = {[MOMENTUM_NESTEROV] = o->nesterov},
                              .real = {[UPDATE_WEIGHT_DECAY] = o->weight_decay, [MOMENTUM_FACTOR] = o->momentum}};
        set_all(u, apply(u, &trama_op_momentum, in, &a), 2, in);
    } else if (o->weight_decay == 0 && updates_are_constant(u, &constant)) {
        trama_value *in[] = {u->parameter, trama_update_gradient(u)};
        trama_attributes a = {.real = {[UPDATE_LR] = constant}};
        trama_update_set(u, u->parameter,
                         apply(u, &trama_op_sgd, in, &a)); /* a matmul kernel can add its product directly */
    } else {
        trama_value *lr = rate(u), *taken = trama_update_taken(u);
        descend(u, trama_update_gradient(u), lr, taken, o->weight_decay);
    }
}

trama_optimizer trama_sgd(double lr)
{
    return trama_optimizer_define("sgd", lr, sgd_rule);
}

/* ---- adam, adamw ---- */

static trama_attributes adam_attributes(const trama_optimizer *o)
{
    return (trama_attributes){.real = {[UPDATE_WEIGHT_DECAY] = o->weight_decay,
                                       [ADAM_BETA1] = o->beta1,
                                       [ADAM_BETA2] = o->beta2,
                                       [ADAM_EPS] = o->eps}};
}

static void adam(const trama_update *u, bool decoupled)
{
    trama_attributes a = adam_attributes(u->optimizer);
    a.integer[ADAM_DECOUPLED] = decoupled;
    trama_value *m = trama_update_slot(u, "m"), *v = trama_update_slot(u, "v"), *lr = rate(u);
    trama_value *step = trama_update_step(u), *taken = trama_update_taken(u);
    trama_value *in[] = {u->parameter, m, v, trama_update_gradient(u), lr, step, taken};
    set_all(u, apply(u, &trama_op_adam, in, &a), 3, in);
}

static void adam_rule(const trama_update *u)
{
    adam(u, false);
}

static void adamw_rule(const trama_update *u)
{
    adam(u, true);
}

static trama_optimizer with_moments(const char *name, double lr, trama_update_rule rule, double eps, double decay)
{
    trama_optimizer o = trama_optimizer_define(name, lr, rule);
    o.beta1 = 0.9;
    o.beta2 = 0.999;
    o.eps = eps;
    o.weight_decay = decay;
    return o;
}

trama_optimizer trama_adam(double lr)
{
    return with_moments("adam", lr, adam_rule, 1e-8, 0);
}

trama_optimizer trama_adamw(double lr)
{
    return with_moments("adamw", lr, adamw_rule, 1e-8, 0.01);
}

/* ---- lamb ---- */

/* a / b where both are above 0, else 1. */
static trama_value *trust(trama_where where, trama_value *a, trama_value *b)
{
    trama_value *one = trama_fill_at(where, a->program, TRAMA_F64, TRAMA_SCALAR, 1);
    trama_value *above = trama_sign_at(where, b), *both = trama_mul_at(where, trama_sign_at(where, a), above);
    trama_value *divisor = trama_add_at(where, b, trama_sub_at(where, one, above));
    return trama_add_at(where, trama_mul_at(where, both, trama_div_at(where, a, divisor)),
                        trama_sub_at(where, one, both));
}

static trama_value *norm(trama_where where, trama_value *x)
{
    return trama_sqrt_at(where, trama_sum_square_at(where, x, 0, NULL, false));
}

static void lamb_rule(const trama_update *u)
{
    trama_attributes a = adam_attributes(u->optimizer);
    trama_value *w = u->parameter, *before = norm(u->where, w); /* before the update */
    trama_value *m = trama_update_slot(u, "m"), *v = trama_update_slot(u, "v");
    trama_value *lr = trama_cast_at(u->where, rate(u), TRAMA_F64);
    trama_value *step = trama_update_step(u), *taken = trama_update_taken(u);
    trama_value *in[] = {m, v, w, trama_update_gradient(u), step, taken};
    trama_value *moments = apply(u, &trama_op_lamb, in, &a), *direction = trama_result(moments, 2);
    set_all(u, moments, 2, in);
    if (direction)
        descend(u, direction, trama_mul_at(u->where, lr, trust(u->where, before, norm(u->where, direction))), taken, 0);
}

trama_optimizer trama_lamb(double lr)
{
    return with_moments("lamb", lr, lamb_rule, 1e-6, 0.01);
}
