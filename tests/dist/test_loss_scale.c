/* SPDX-License-Identifier: Apache-2.0 */
/* Loss scaling: a step whose gradients are not all finite changes nothing but the scale, in any layout. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "descent.h"
#include "suite.h"

/* Each step adds its number to one element. */
static const double spoils[] = {0, 0, INFINITY, NAN, 0, 0, 0, 0, 0, -INFINITY, 0, 0, 0, 0};
enum { N_STEPS = sizeof spoils / sizeof *spoils };

static void feed_spoiled(fit_run *r, const plain_fit *plain, double spoil)
{
    dense d = dense_new(r->f.x->shape);
    memcpy(d.at, plain->x, sizeof plain->x);
    d.at[40] += spoil;
    simulation_feed(r->s, r->f.x, &d);
    dense_free(&d);
}

static double scalar(fit_run *r, const trama_value *v)
{
    dense d = simulation_value(r->s, v);
    double x = d.at[0];
    dense_free(&d);
    return x;
}

/* The rate that trama_schedule_step(2, 0.5) has, of the steps that were taken. */
static double rate_of(const plain_fit *plain, const trama_optimizer *o)
{
    return o->lr * pow(0.5, floor((double)plain->steps / 2));
}

static void follow(const fit_layout *l, trama_optimizer o, int variant)
{
    plain_fit plain = plain_fit_new();
    fit f = fit_new(l, TRAMA_F64);
    plain_scale scale = {o.loss_scale.initial, 0};
    o.schedule = trama_schedule_step(2, 0.5);
    trama_value *done = trama_minimize(f.loss, &o), *number = trama_step_value(done, TRAMA_STEP_NUMBER);
    trama_value *taken = trama_step_value(done, TRAMA_STEP_TAKEN), *next = trama_step_value(done, TRAMA_STEP_SCALE);
    trama_target *train = trama_target_create(f.program, "train", done, number, taken, next, f.loss);
    fit_run r = fit_run_new(f, train, &plain, 2, variant);
    for (int step = 0; step < N_STEPS; step++) {
        bool finite = spoils[step] == 0;
        feed_spoiled(&r, &plain, spoils[step]);
        simulation_run(r.s, r.train);
        if (finite)
            plain_fit_step(&o, rate_of(&plain, &o), &plain);
        plain_scale_step(&o.loss_scale, &scale, finite);
        fit_compare(&r, &plain, o.name, step, 1e-11);
        ck_assert(scalar(&r, taken) == finite && scalar(&r, number) == (double)plain.steps);
        ck_assert_msg(scalar(&r, next) == scale.scale, "the scale is %g after step %d, not %g", scalar(&r, next), step,
                      scale.scale);
    }
    fit_run_free(&r);
}

static void follow_everywhere(const trama_optimizer *o)
{
    for (int i = 0; i < n_fit_layouts; i++)
        follow(&fit_layouts[i], *o, i % MACHINE_VARIANTS);
}

START_TEST(steps_that_are_not_finite_change_nothing)
{
    trama_optimizer all[] = {trama_sgd(0.05), trama_sgd(0.05), trama_adam(0.05), trama_adamw(0.05), trama_lamb(0.02)};
    all[1].momentum = 0.9;
    for (int i = 0; i < 5; i++) {
        all[i].loss_scale = (trama_loss_scale){1024, 2, 0.5, 3};
        follow_everywhere(&all[i]);
    }
}
END_TEST

START_TEST(gradients_are_clipped_unscaled)
{
    trama_optimizer by_norm = trama_sgd(0.05), by_value = by_norm, both = by_norm;
    by_norm.loss_scale = by_value.loss_scale = both.loss_scale = (trama_loss_scale){256, 4, 0.25, 2};
    by_norm.clip_norm = both.clip_norm = 0.5;
    by_value.clip_value = both.clip_value = 0.25;
    follow_everywhere(&by_norm);
    follow_everywhere(&by_value);
    follow_everywhere(&both);
}
END_TEST

START_TEST(a_scale_may_stay)
{
    trama_optimizer o = trama_sgd(0.05);
    o.loss_scale = (trama_loss_scale){8, 1, 1, 1};
    follow_everywhere(&o);
    trama_loss_scale usual = trama_loss_scale_dynamic();
    ck_assert(usual.initial == 65536 && usual.growth == 2 && usual.backoff == 0.5 && usual.interval == 2000);
}
END_TEST

/* Without a word of its own about it. */
START_TEST(rules_of_ones_own_heed_the_flag)
{
    trama_optimizer mine = trama_optimizer_define("sgd", 0.05, heavy_ball);
    mine.momentum = 0.9; /* for the plain loop */
    mine.loss_scale = (trama_loss_scale){1024, 2, 0.5, 3};
    follow_everywhere(&mine);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        steps_that_are_not_finite_change_nothing,
        gradients_are_clipped_unscaled,
        a_scale_may_stay,
        rules_of_ones_own_heed_the_flag,
    };
    return suite_run("loss_scale", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
