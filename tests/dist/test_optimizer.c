/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers against plain loops for 100 steps, in several layouts, in double precision. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fitting.h"
#include "suite.h"
#include "torch_optimizers.h"
#include "trama_ops.h"

static void follow(const fit_layout *l, const trama_optimizer *o, int steps, int ranks, int variant)
{
    char name[96];
    plain_fit plain = plain_fit_new();
    fit_run r = run_new(l, o, &plain, ranks, variant);
    snprintf(name, sizeof name, "%s on %s, %d ranks", o->name, l->mesh ? l->mesh : "nothing", ranks);
    for (int step = 1; step <= steps; step++) {
        simulation_run(r.s, r.train);
        plain_fit_step(o, o->lr, &plain);
        if (step < 4 || step % 20 == 0)
            fit_compare(&r, &plain, name, step, TOLERANCE);
    }
    fit_run_free(&r);
}

static void follow_everywhere(const trama_optimizer *o)
{
    for (int i = 0; i < n_fit_layouts; i++)
        for (int variant = 0; variant < MACHINE_VARIANTS; variant += 1 + i % 4)
            follow(&fit_layouts[i], o, suite_is_sanitized() ? 20 : 100, 1 + i % 4, variant);
}

START_TEST(sgd_follows_plain_loops)
{
    trama_optimizer plain = trama_sgd(0.05), decayed = plain, momentum = plain, nesterov = plain;
    decayed.weight_decay = 0.1;
    momentum.momentum = 0.9;
    nesterov.momentum = 0.8;
    nesterov.nesterov = true;
    nesterov.weight_decay = 0.05;
    const trama_optimizer *const all[] = {&plain, &decayed, &momentum, &nesterov};
    for (int i = 0; i < 4; i++)
        follow_everywhere(all[i]);
}
END_TEST

START_TEST(adam_follows_plain_loops)
{
    trama_optimizer plain = trama_adam(0.05), decayed = plain;
    decayed.weight_decay = 0.1;
    decayed.beta1 = 0.8;
    follow_everywhere(&plain);
    follow_everywhere(&decayed);
}
END_TEST

START_TEST(adamw_follows_plain_loops)
{
    trama_optimizer adamw = trama_adamw(0.05);
    adamw.weight_decay = 0.1;
    adamw.beta2 = 0.9;
    follow_everywhere(&adamw);
}
END_TEST

START_TEST(lamb_follows_plain_loops)
{
    trama_optimizer lamb = trama_lamb(0.02);
    follow_everywhere(&lamb);
}
END_TEST

/* ---- PyTorch ---- */

static void follow_torch(const trama_optimizer *o, const double *table)
{
    for (int i = 0; i < n_fit_layouts; i++) {
        plain_fit wanted = plain_fit_new();
        fit_run r = run_new(&fit_layouts[i], o, &wanted, 1 + i % 3, i % MACHINE_VARIANTS);
        for (int step = 0; step < TORCH_STEPS; step++)
            simulation_run(r.s, r.train);
        memcpy(wanted.parameter[0].value, table, FIT_IN * FIT_OUT * sizeof *table);
        memcpy(wanted.parameter[1].value, table + FIT_IN * FIT_OUT, FIT_OUT * sizeof *table);
        fit_compare(&r, &wanted, o->name, TORCH_STEPS, TOLERANCE);
        fit_run_free(&r);
    }
}

START_TEST(pytorch_comes_to_the_same)
{
    trama_optimizer sgd = trama_sgd(0.05), adam = trama_adam(0.05), adamw, lamb = trama_lamb(0.02);
    trama_optimizer by_norm = sgd, by_value = sgd;
    by_norm.clip_norm = 0.5;
    by_value.clip_value = 0.125;
    sgd.momentum = 0.9;
    sgd.nesterov = true;
    sgd.weight_decay = 0.01;
    adam.weight_decay = 0.1;
    adamw = trama_adamw(0.05);
    adamw.weight_decay = 0.1;
    adamw.beta1 = 0.8;
    adamw.beta2 = 0.95;
    follow_torch(&sgd, torch_sgd);
    follow_torch(&adam, torch_adam);
    follow_torch(&adamw, torch_adamw);
    follow_torch(&lamb, torch_lamb);
    follow_torch(&by_norm, torch_clip_norm);
    follow_torch(&by_value, torch_clip_value);
}
END_TEST

/* Zeros have no norm to trust: such a parameter moves by the learning rate. */
/* Gradients are large at first, small at the end, so clipping begins and ends. */
START_TEST(clipping_follows_plain_loops)
{
    trama_optimizer by_norm = trama_sgd(0.05), by_value = by_norm, both = trama_adamw(0.05), no = by_norm;
    by_norm.clip_norm = 0.5;
    by_value.clip_value = 0.125;
    both.clip_norm = 0.25;
    both.clip_value = 0.5;
    no.clip_norm = 1e6;
    const trama_optimizer *const all[] = {&by_norm, &by_value, &both, &no};
    for (int i = 0; i < 4; i++)
        follow_everywhere(all[i]);
}
END_TEST

START_TEST(the_norm_of_all_gradients_can_be_read)
{
    trama_optimizer o = trama_sgd(0.05);
    o.clip_norm = 0.5;
    for (int i = 0; i < n_fit_layouts; i++) {
        plain_fit plain = plain_fit_new();
        fit f = fit_new(&fit_layouts[i], TRAMA_F64);
        trama_value *done = trama_minimize(f.loss, &o), *norm = trama_step_value(done, TRAMA_STEP_NORM);
        fit_run r = fit_run_new(f, trama_target_create(f.program, "train", done, norm), &plain, 1 + i % 4,
                                i % MACHINE_VARIANTS);
        simulation_run(r.s, r.train);
        plain_fit_gradients(&plain);
        dense got = simulation_value(r.s, norm);
        ck_assert_double_eq_tol(got.at[0], plain_norm(FIT_PARAMETERS, plain.parameter), 1e-12);
        dense_free(&got);
        fit_run_free(&r);
    }
}
END_TEST

/* Messages and bytes of one step over all ranks; max_tiles 1, one process a rank. */
static traffic traffic_of(const fit_layout *l, const trama_optimizer *o)
{
    plain_fit plain = plain_fit_new();
    fit_run r = run_new(l, o, &plain, 2, 0);
    simulation_run(r.s, r.train);
    traffic t = simulation_traffic(r.s);
    fit_run_free(&r);
    return t;
}

/* Replicated parameters: their gradients are summed once, and what the norm is made of is whole already. Split ones:
 * the norm is summed too, one number from each process to the other. */
START_TEST(clipping_by_norm_sends_no_gradient_twice)
{
    const fit_layout replicated = {"2", "S(0)", "R", NULL, "R"}, split = {"2", "S(0)", "S(0)", NULL, "S(0)"};
    trama_optimizer plain = trama_sgd(0.05), clipped = plain;
    clipped.clip_norm = 1;
    ck_assert_int_eq(traffic_of(&replicated, &clipped).bytes, traffic_of(&replicated, &plain).bytes);
    ck_assert_int_eq(traffic_of(&split, &clipped).bytes, traffic_of(&split, &plain).bytes + 2 * 8);
}
END_TEST

/* Of a split w and a whole b: one number from each process to the other. */
START_TEST(what_is_whole_joins_the_sum_of_what_is_split)
{
    const fit_layout mixed = {"2", "R", "S(1)", NULL, "R"};
    trama_optimizer plain = trama_sgd(0.05), clipped = plain;
    clipped.clip_norm = 1;
    ck_assert_int_eq(traffic_of(&mixed, &clipped).messages, traffic_of(&mixed, &plain).messages + 2);
}
END_TEST

START_TEST(lamb_moves_parameters_that_are_zero)
{
    trama_program *p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3), NULL);
    trama_value *still = trama_parameter(p, "still", TRAMA_F64, TRAMA_SHAPE(2), NULL);
    trama_optimizer lamb = trama_lamb(0.25);
    trama_value *one = trama_fill(p, TRAMA_F64, TRAMA_SHAPE(3), 1);
    trama_value *loss = trama_add(trama_sum(trama_mul(w, one)), trama_sum(trama_scale(still, 0)));
    trama_target *t = trama_target_create(p, "t", trama_minimize(loss, &lamb));
    machine *m = machine_uniform(1, 1);
    simulation *s = simulation_new(p, m, &(simulation_options){.plan = {1, 1, 1, false}});
    simulation_run(s, t);
    dense moved = simulation_value(s, w), stayed = simulation_value(s, still);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(moved.at[i], -0.25, 1e-6); /* eps beside 1 */
    ck_assert(stayed.at[0] == 0 && stayed.at[1] == 0);
    dense_free(&moved);
    dense_free(&stayed);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
}
END_TEST

/* ---- Rules of one's own ---- */

START_TEST(a_rule_of_ones_own_does_what_the_built_in_one_does)
{
    trama_optimizer mine = trama_optimizer_define("heavy_ball", 0.05, heavy_ball), sgd = trama_sgd(0.05);
    sgd.momentum = 0.9;
    for (int i = 0; i < n_fit_layouts; i++) {
        plain_fit plain = plain_fit_new();
        fit_run r = run_new(&fit_layouts[i], &mine, &plain, 1 + i % 4, i % MACHINE_VARIANTS);
        for (int step = 1; step <= 30; step++) {
            simulation_run(r.s, r.train);
            plain_fit_step(&sgd, sgd.lr, &plain);
        }
        fit_compare(&r, &plain, "heavy_ball", 30, TOLERANCE);
        fit_run_free(&r);
    }
}
END_TEST

/* lr / t: 1 + 1/2 + 1/3 ... */
static void slower_and_slower(const trama_update *u)
{
    trama_value *t = trama_cast(trama_update_step(u), trama_value_dtype(u->parameter));
    trama_value *moved = trama_mul(trama_update_gradient(u), trama_div(trama_update_lr(u), t));
    trama_update_set(u, u->parameter, trama_sub(u->parameter, moved));
}

START_TEST(a_rule_may_count_steps)
{
    trama_program *p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(2), NULL);
    trama_optimizer mine = trama_optimizer_define("harmonic", 1, slower_and_slower);
    trama_target *t = trama_target_create(p, "t", trama_minimize(trama_sum(w), &mine));
    machine *m = machine_uniform(1, 1);
    simulation *s = simulation_new(p, m, &(simulation_options){.plan = {1, 1, 1, false}});
    for (int step = 0; step < 4; step++)
        simulation_run(s, t);
    dense moved = simulation_value(s, w);
    ck_assert_double_eq_tol(moved.at[1], -(1 + 0.5 + 1.0 / 3 + 0.25), 1e-15);
    dense_free(&moved);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        sgd_follows_plain_loops,
        adam_follows_plain_loops,
        adamw_follows_plain_loops,
        lamb_follows_plain_loops,
        clipping_follows_plain_loops,
        pytorch_comes_to_the_same,
        the_norm_of_all_gradients_can_be_read,
        clipping_by_norm_sends_no_gradient_twice,
        what_is_whole_joins_the_sum_of_what_is_split,
        lamb_moves_parameters_that_are_zero,
        a_rule_of_ones_own_does_what_the_built_in_one_does,
        a_rule_may_count_steps,
    };
    return suite_run("optimizer", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
