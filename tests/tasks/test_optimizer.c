/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, clipping, schedules and loss scales as they run on one rank and on several, beside plain loops;
 * recorded, eager, and for long. */
#include "optimizing.h"
#include "suite.h"

/* Steps of which the data are not finite; only optimizers with a loss scale see them. */
static bool is_spoiled(const trama_optimizer *o, int step)
{
    return o->loss_scale.initial > 0 && (step == 1 || step == 6);
}

/* How the rows of a step are cut into k micro-steps, by turns. */
static const int *fit_parts(int k, int step)
{
    static const int none[] = {FIT_ROWS}, of_2[][2] = {{6, 6}, {5, 7}}, of_4[][4] = {{3, 3, 3, 3}, {1, 5, 2, 4}},
                     of_8[][8] = {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 1, 3, 1, 2, 1, 1, 2}};
    return k == 1 ? none : k == 2 ? of_2[step % 2] : k == 4 ? of_4[step % 2] : of_8[step % 2];
}

/* k: micro-steps of a step, which merge as `how` says; the plain loops have its batch at once. */
static void optimize_beside_plain(const fit_layout *l, const trama_optimizer *o, trama_dtype dtype, int k, unsigned how,
                                  int steps, double tolerance)
{
    char name[64];
    plain_fit plain = plain_fit_new();
    fit f = fit_of_rows(l, dtype, k > 1 ? TRAMA_ANY : FIT_ROWS);
    trama_target *train = trama_target_create(f.program, "train", trama_minimize(f.loss, o), f.loss);
    if (k > 1)
        trama_gradient_merge(train, k, how);
    must(trama_program_status(f.program));
    trama_executable *e = compile(f.program);
    for (int step = 0; step < steps; step++) {
        const int *part = fit_parts(k, step);
        for (int i = 0, from = 0; i < k; from += part[i++])
            fit_rows(e, &f, train, dtype, &plain, from, part[i], (spoiled){40, is_spoiled(o, step) ? INFINITY : 0});
        if (!is_spoiled(o, step))
            optimize_plainly(&plain, o);
    }
    snprintf(name, sizeof name, "%s on %s, k = %d", o->name, l->mesh ? l->mesh : "nothing", k);
    compare_fit(e, &f, dtype, &plain, name, tolerance);
    must(trama_executable_destroy(&e));
    fit_free(&f);
}

/* Half of the optimizers and layouts are updated in parts, for each type the other half. */
static void share_some(trama_optimizer *o, int optimizer, int layout, trama_dtype dtype)
{
    o->share_bytes = (optimizer + layout + (dtype == TRAMA_F32)) % 2;
}

enum { N_OPTIMIZERS = 8 };
static void list_optimizers(trama_optimizer o[N_OPTIMIZERS])
{
    trama_optimizer all[] = {trama_sgd(0.05),   trama_sgd(0.05),   trama_sgd(0.05),  trama_adam(0.05),
                             trama_adamw(0.05), trama_adamw(0.05), trama_lamb(0.02), trama_sgd(0.05)};
    all[1].momentum = 0.9;
    all[1].nesterov = true;
    all[1].weight_decay = 0.01;
    all[2].clip_value = 0.25;
    all[2].clip_norm = 0.5;
    all[2].loss_scale = trama_loss_scale_dynamic();
    all[3].weight_decay = 0.1;
    all[4].clip_norm = 1;
    all[4].schedule = trama_schedule_cosine(10, 0.1);
    all[4].schedule.warmup = 3;
    all[5].loss_scale = trama_loss_scale_dynamic();
    all[6].schedule = all[4].schedule;
    all[6].loss_scale = trama_loss_scale_dynamic();
    all[7].momentum = 0.8;
    memcpy(o, all, sizeof all);
}

static void optimize_everywhere(trama_dtype dtype, int steps, double tolerance)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        for (int l = 0; l < n_fit_layouts; l++) {
            share_some(&all[i], i, l, dtype);
            optimize_beside_plain(&fit_layouts[l], &all[i], dtype, 1, TRAMA_MERGE_AVG, steps, tolerance);
        }
}

/* In 2, 4 or 8 micro-steps, such that each optimizer and each layout has all; in a long run, all in one rank. */
static void optimize_merged(trama_dtype dtype, unsigned how, int steps, double tolerance)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        for (int l = 0; l < n_fit_layouts; l++) {
            share_some(&all[i], i, l, dtype);
            for (int k = 1; k <= 3; k++)
                if ((n_ranks == 1 && suite_is_long()) || (i + l) % 3 == k - 1)
                    optimize_beside_plain(&fit_layouts[l], &all[i], dtype, 1 << k, how, steps, tolerance);
        }
}

START_TEST(optimizers_in_f64_follow_plain_loops)
{
    start();
    optimize_everywhere(TRAMA_F64, n_ranks > 1 ? (suite_is_sanitized() ? 8 : 20) : (suite_is_sanitized() ? 20 : 100),
                        1e-10);
    stop();
}
END_TEST

/* Adam-like ones amplify rounding. */
START_TEST(optimizers_in_f32_follow_plain_loops_for_some_steps)
{
    start();
    optimize_everywhere(TRAMA_F32, n_ranks > 1 ? 8 : 20, 1e-5);
    stop();
}
END_TEST

/* A loss scale sees one micro-step of some that is not finite: none of its cycle counts. */
START_TEST(merged_optimizers_in_f64_follow_plain_loops_for_100_steps)
{
    start();
    optimize_merged(TRAMA_F64, TRAMA_MERGE_AVG, suite_is_sanitized() ? 10 : 100, 1e-10);
    stop();
}
END_TEST

START_TEST(merged_optimizers_in_f32_follow_plain_loops_for_some_steps)
{
    start();
    optimize_merged(TRAMA_F32, TRAMA_MERGE_SYNC_EACH, n_ranks > 1 || suite_is_sanitized() ? 8 : 20, 1e-5);
    stop();
}
END_TEST

/* Six steps on one parameter, the third with data that are not finite; recorded, or each recorded anew. */
static void fit_six(const trama_optimizer *o, bool is_eager, double *result)
{
    trama_program *p = NULL;
    trama_executable *e = NULL;
    trama_target *step = NULL;
    trama_value *x = NULL;
    trama_init init = {-1, 1, 1, 0};
    if (is_eager)
        must(trama_eager(ctx, &p, &e));
    else
        p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(2, 1), &init);
    int mark = trama_program_mark(p);
    for (int i = 0; i < 6; i++) {
        double data[] = {1, 2, 3, i == 2 && o->loss_scale.initial > 0 ? INFINITY : 4, 5, 7};
        if (is_eager || i == 0) {
            x = is_eager ? trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3, 2), data)
                         : trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(3, 2));
            trama_value *done = trama_minimize(trama_mean(trama_square(trama_matmul(x, w))), o);
            demand(done, "%s, step %d: %s", o->name, i, trama_program_error(p));
            step = is_eager ? NULL : trama_target_create(p, "step", done);
        }
        if (is_eager)
            must(trama_program_rewind(p, mark));
        else if (i == 0)
            must(trama_compile(ctx, p, &e));
        if (!is_eager) {
            must(trama_feed(e, x, data, TRAMA_SHAPE(3, 2)));
            must(trama_run(e, step));
        }
    }
    must(trama_read(e, w, result, 2 * sizeof *result));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

/* Plain sgd (0) rounds once less where it is recorded: the product adds to the parameter. */
START_TEST(eager_steps_have_the_bits_of_recorded_ones)
{
    trama_optimizer all[N_OPTIMIZERS];
    list_optimizers(all);
    start();
    for (int i = 1; i < N_OPTIMIZERS; i++) {
        double recorded[2], eagerly[2];
        fit_six(&all[i], false, recorded);
        fit_six(&all[i], true, eagerly);
        demand(isfinite(recorded[0]) && !memcmp(recorded, eagerly, sizeof recorded), "%s (%d): %.17g and %.17g",
               all[i].name, i, recorded[0], eagerly[0]);
    }
    stop();
}
END_TEST

TESTS(optimizers_in_f64_follow_plain_loops, optimizers_in_f32_follow_plain_loops_for_some_steps,
      merged_optimizers_in_f64_follow_plain_loops_for_100_steps,
      merged_optimizers_in_f32_follow_plain_loops_for_some_steps, eager_steps_have_the_bits_of_recorded_ones)
