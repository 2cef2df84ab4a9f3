/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that optimizers make: groups of parameters, ops and tasks of a step, and wrong uses. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fitting.h"
#include "suite.h"
#include "torch_optimizers.h"
#include "trama_ops.h"

/* ---- Groups ---- */

static int count_ops(const trama_program *p, const char *name)
{
    int n = 0;
    for (int i = 0; i < p->nodes.n; i++)
        n += !strcmp(p->nodes.at[i]->op->name, name);
    return n;
}

static void follow_groups(const trama_optimizer *o, const trama_optimizer *of_w, const trama_optimizer *of_b)
{
    for (int i = 0; i < n_fit_layouts; i++) {
        plain_fit plain = plain_fit_new();
        fit_run r = run_new(&fit_layouts[i], o, &plain, 1 + i % 3, i % MACHINE_VARIANTS);
        for (int step = 1; step <= 20; step++) {
            simulation_run(r.s, r.train);
            plain_fit_gradients(&plain);
            plain_clip(o, FIT_PARAMETERS, plain.parameter);
            if (of_w)
                plain_update(of_w, of_w->lr, step, &plain.parameter[0]);
            if (of_b)
                plain_update(of_b, of_b->lr, step, &plain.parameter[1]);
        }
        fit_compare(&r, &plain, "groups", 20, TOLERANCE);
        fit_run_free(&r);
    }
}

START_TEST(groups_have_their_own_options_and_rules)
{
    trama_optimizer adamw = trama_adamw(0.05), no_decay = adamw, sgd = trama_sgd(0.1);
    no_decay.weight_decay = 0;
    no_decay.lr = 0.01;
    adamw.weight_decay = 0.1;
    adamw.clip_norm = 0.5; /* of all */
    adamw.n_groups = 1;
    adamw.groups = &(trama_parameter_group){"b", &no_decay};
    follow_groups(&adamw, &adamw, &no_decay);
    adamw.groups = &(trama_parameter_group){"b*", &sgd};
    follow_groups(&adamw, &adamw, &sgd);
    adamw.groups = &(trama_parameter_group){"w,b", &no_decay};
    follow_groups(&adamw, &no_decay, &no_decay);
}
END_TEST

START_TEST(frozen_parameters_stay_and_have_no_gradient)
{
    trama_optimizer adam = trama_adam(0.05);
    adam.n_groups = 1;
    adam.groups = &(trama_parameter_group){"b", NULL};
    follow_groups(&adam, &adam, NULL);
    fit f = fit_new(&fit_layouts[0], TRAMA_F64);
    trama_minimize(f.loss, &adam);
    for (int i = 0; i < f.program->values.n; i++)
        ck_assert_str_ne(f.program->values.at[i]->name, "b.m");
    ck_assert_int_eq(count_ops(f.program, "adam"), 1);
    fit_free(&f);
}
END_TEST

/* ---- Shape of the program, and wrong uses ---- */

/* Products can add to an sgd op; minimize makes no other op. */
START_TEST(plain_sgd_is_one_op_a_parameter)
{
    fit f = fit_new(&fit_layouts[0], TRAMA_F32);
    trama_optimizer sgd = trama_sgd(0.1);
    trama_gradient(f.loss, f.parameter[0]);
    trama_gradient(f.loss, f.parameter[1]);
    int nodes = f.program->nodes.n, values = f.program->values.n;
    trama_minimize(f.loss, &sgd);
    ck_assert_int_eq(f.program->nodes.n, nodes + FIT_PARAMETERS);
    ck_assert_int_eq(f.program->values.n, values + FIT_PARAMETERS + 1);
    ck_assert_int_eq(count_ops(f.program, "sgd"), FIT_PARAMETERS);
    fit_free(&f);
}
END_TEST

static void idle(const trama_update *u)
{
    trama_update_slot(u, "unused");
}

START_TEST(a_rule_that_sets_nothing_is_refused)
{
    fit f = fit_new(&fit_layouts[0], TRAMA_F64);
    trama_optimizer mine = trama_optimizer_define("idle", 1, idle);
    ck_assert_ptr_null(trama_minimize(f.loss, &mine));
    ck_assert_msg(strstr(trama_program_error(f.program), "the rule of idle sets nothing for b"), "%s",
                  trama_program_error(f.program));
    fit_free(&f);
}
END_TEST

START_TEST(parts_of_a_step_that_are_not_there_are_refused)
{
    fit f = fit_new(&fit_layouts[0], TRAMA_F64);
    trama_optimizer sgd = trama_sgd(0.1), adam = trama_adam(0.1);
    trama_value *plain = trama_minimize(f.loss, &sgd), *counting = trama_minimize(f.loss, &adam);
    ck_assert_ptr_nonnull(trama_step_value(counting, TRAMA_STEP_NUMBER));
    ck_assert_ptr_null(trama_step_value(plain, TRAMA_STEP_NUMBER));
    ck_assert_msg(strstr(trama_program_error(f.program), "sgd has no number"), "%s", trama_program_error(f.program));
    ck_assert_ptr_null(trama_step_value(NULL, TRAMA_STEP_NORM));
    fit_free(&f);
}
END_TEST

/* Every compute step of the plan that has this op has as many calls. */
static void expect_calls(fit_run *r, const char *op, int calls)
{
    const plan *p = simulation_plan(r->s, 0);
    int found = 0;
    for (int i = 0; i < p->steps.n; i++)
        for (int c = 0; p->steps.at[i].kind == STEP_COMPUTE && c < p->steps.at[i].n_calls; c++) {
            int node = p->calls.at[p->steps.at[i].call + c].node;
            if (strcmp(r->f.program->nodes.at[node]->op->name, op))
                continue;
            found++;
            ck_assert_msg(p->steps.at[i].n_calls == calls, "%s is one of %d calls", op, p->steps.at[i].n_calls);
        }
    ck_assert_int_gt(found, 0);
}

/* With the scaling and clipping of its gradient. */
START_TEST(an_update_is_one_task_a_tile)
{
    trama_optimizer plain = trama_adamw(0.1), all = plain;
    all.schedule = trama_schedule_cosine(10, 0);
    all.clip_norm = 1;
    all.loss_scale = trama_loss_scale_dynamic();
    for (int i = 0; i < 2; i++) {
        plain_fit data = plain_fit_new();
        fit_run r = run_new(&fit_layouts[1], i ? &all : &plain, &data, 1, 0);
        simulation_run(r.s, r.train);
        expect_calls(&r, "adam", 1 + i);
        fit_run_free(&r);
    }
}
END_TEST

#define WRONG(part, set)                                                                                               \
    do {                                                                                                               \
        fit wrong_f = fit_new(&fit_layouts[0], TRAMA_F64);                                                             \
        trama_optimizer o = trama_sgd(0.1);                                                                            \
        set;                                                                                                           \
        ck_assert_ptr_null(trama_minimize(wrong_f.loss, &o));                                                          \
        const char *message = trama_program_error(wrong_f.program);                                                    \
        ck_assert_msg(strstr(message, part) && strstr(message, "test_optimizer_program.c:"), "'%s' lacks '%s'",        \
                      message, part);                                                                                  \
        ck_assert_int_eq(trama_program_status(wrong_f.program), TRAMA_E_ARGUMENT);                                     \
        fit_free(&wrong_f);                                                                                            \
    } while (0)

START_TEST(options_out_of_range_are_refused)
{
    WRONG("sgd: the learning rate must", o.lr = -1);
    WRONG("the learning rate must", o.lr = NAN);
    WRONG("the weight decay must", o.weight_decay = -0.1);
    WRONG("the momentum must be in [0, 1), it is 1", o.momentum = 1);
    WRONG("the momentum must be in [0, 1)", o.momentum = -0.5);
    WRONG("nesterov needs a momentum", o.nesterov = true);
    WRONG("beta1 must", (o = trama_adam(0.1), o.beta1 = 1));
    WRONG("beta2 must", (o = trama_adamw(0.1), o.beta2 = -1));
    WRONG("clip_value must be above 0, it is 0", o.clip_value = 0);
    WRONG("clip_norm must be above 0, it is -1", o.clip_norm = -1);
    WRONG("clip_norm must be above 0", o.clip_norm = NAN);
    WRONG("sgd: cosine takes at least 1 step", o.schedule = trama_schedule_cosine(-5, 0));
    WRONG("the floor of cosine", o.schedule = trama_schedule_cosine(5, 2));
    WRONG("a stair takes at least 1 step", o.schedule = trama_schedule_step(0, 0.5));
    WRONG("the factor of a stair", o.schedule = trama_schedule_step(5, 0));
    WRONG("one cycle takes at least 2 steps", o.schedule = trama_schedule_one_cycle(1));
    WRONG("the warm-up must have at least 0 steps, it is -3", o.schedule = trama_schedule_constant(-3));
    WRONG("the loss scale must be a number from 0, it is -1", o.loss_scale.initial = -1);
    WRONG("the growth of the scale must be from 1",
          (o.loss_scale = trama_loss_scale_dynamic(), o.loss_scale.growth = 0.5));
    WRONG("the backoff of the scale must be in (0, 1]",
          (o.loss_scale = trama_loss_scale_dynamic(), o.loss_scale.backoff = 0));
    WRONG("the interval of the scale must have",
          (o.loss_scale = trama_loss_scale_dynamic(), o.loss_scale.interval = 0));
    const trama_optimizer other = trama_sgd(1), bad = trama_sgd(-1);
    const trama_parameter_group twice[] = {{"w", &other}, {"*", NULL}};
    WRONG("no parameter is named 'v', which", (o.n_groups = 1, o.groups = &(trama_parameter_group){"w,v", &other}));
    WRONG("no parameter is named 'x*', which", (o.n_groups = 1, o.groups = &(trama_parameter_group){"x*", &other}));
    WRONG("no parameter is named '', which", (o.n_groups = 1, o.groups = &(trama_parameter_group){"w,,b", &other}));
    WRONG("group 0 names no parameters", (o.n_groups = 1, o.groups = &(trama_parameter_group){NULL, &other}));
    WRONG("w is in two groups, 'w' and '*'", (o.n_groups = 2, o.groups = twice));
    WRONG("the learning rate must", (o.n_groups = 1, o.groups = &(trama_parameter_group){"w", &bad}));
    WRONG("depends on no parameter that is trained", (o.n_groups = 1, o.groups = &(trama_parameter_group){"*", NULL}));
    WRONG("another optimizer updates it", (o = trama_adam(1), trama_minimize(wrong_f.loss, &o)));
    WRONG("eps must", (o = trama_lamb(0.1), o.eps = INFINITY));
    WRONG("has no rule", o.rule = NULL);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        plain_sgd_is_one_op_a_parameter,
        groups_have_their_own_options_and_rules,
        frozen_parameters_stay_and_have_no_gradient,
        an_update_is_one_task_a_tile,
        a_rule_that_sets_nothing_is_refused,
        parts_of_a_step_that_are_not_there_are_refused,
        options_out_of_range_are_refused,
    };
    return suite_run("optimizer_program", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
