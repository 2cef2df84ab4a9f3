/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, clipping, schedules and loss scales as they run, beside plain loops; recorded, eager, and for long. */
#include "optimizing.h"

START_TEST(optimizers_in_f64_follow_plain_loops_for_100_steps)
{
    start();
    optimize_everywhere(TRAMA_F64, SANITIZED ? 20 : 100, 1e-10);
    stop();
}
END_TEST

/* Adam-like ones amplify rounding. */
START_TEST(optimizers_in_f32_follow_plain_loops_for_20_steps)
{
    start();
    optimize_everywhere(TRAMA_F32, 20, 1e-5);
    stop();
}
END_TEST

/* A loss scale sees one micro-step of some that is not finite: none of its cycle counts. */
START_TEST(merged_optimizers_in_f64_follow_plain_loops_for_100_steps)
{
    start();
    optimize_merged(TRAMA_F64, TRAMA_MERGE_AVG, SANITIZED ? 10 : 100, 1e-10);
    stop();
}
END_TEST

START_TEST(merged_optimizers_in_f32_follow_plain_loops_for_20_steps)
{
    start();
    optimize_merged(TRAMA_F32, TRAMA_MERGE_SYNC_EACH, SANITIZED ? 8 : 20, 1e-5);
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

TESTS(optimizers_in_f64_follow_plain_loops_for_100_steps, optimizers_in_f32_follow_plain_loops_for_20_steps,
      merged_optimizers_in_f64_follow_plain_loops_for_100_steps,
      merged_optimizers_in_f32_follow_plain_loops_for_20_steps, eager_steps_have_the_bits_of_recorded_ones)
