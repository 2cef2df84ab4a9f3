/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates over the steps: the formulas, and as values of a program. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "descent.h"
#include "suite.h"
#include "torch_optimizers.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* The learning rate of each step, as the program computes it, and as the parameter moves by it. */
static void expect_on(const fit_layout *l, const trama_schedule *schedule, double lr, int n, const double *wanted)
{
    plain_fit plain = plain_fit_new();
    fit f = fit_new(l, TRAMA_F64);
    trama_optimizer sgd = trama_sgd(lr);
    sgd.schedule = *schedule;
    trama_value *done = trama_minimize(f.loss, &sgd), *rate = trama_step_value(done, TRAMA_STEP_LR);
    trama_value *step = trama_step_value(done, TRAMA_STEP_NUMBER);
    fit_run r = fit_run_new(f, trama_target_create(f.program, "train", done, rate, step), &plain, 2, 2);
    for (int i = 0; i < n; i++) {
        simulation_run(r.s, r.train);
        plain_fit_gradients(&plain);
        for (int k = 0; k < FIT_PARAMETERS; k++)
            plain_update(&sgd, lr * wanted[i], i + 1, &plain.parameter[k]);
        dense got = simulation_value(r.s, rate), number = simulation_value(r.s, step);
        dense moved = simulation_value(r.s, f.parameter[0]);
        ck_assert_double_eq_tol(got.at[0], lr * wanted[i], 1e-14);
        ck_assert(number.at[0] == i + 1);
        ck_assert_double_eq_tol(moved.at[3], plain.parameter[0].value[3], 1e-12);
        dense_free(&got);
        dense_free(&number);
        dense_free(&moved);
    }
    fit_run_free(&r);
}

static void expect(trama_schedule schedule, double lr, int n, const double *wanted)
{
    for (int i = 0; i < n_fit_layouts; i++)
        expect_on(&fit_layouts[i], &schedule, lr, n, wanted);
}

START_TEST(warming_up_rises_in_equal_parts)
{
    expect(trama_schedule_constant(3), 0.1, 6, (double[]){0.25, 0.5, 0.75, 1, 1, 1});
}
END_TEST

START_TEST(a_cosine_falls_as_in_pytorch_and_stays_at_its_floor)
{
    expect(trama_schedule_cosine(10, 0.1), 0.02, COUNT(torch_cosine), torch_cosine);
    expect(trama_schedule_cosine(2, 0.25), 0.02, 5, (double[]){1, 0.625, 0.25, 0.25, 0.25});
}
END_TEST

START_TEST(stairs_go_down_as_in_pytorch)
{
    expect(trama_schedule_step(3, 0.5), 0.02, COUNT(torch_step), torch_step);
}
END_TEST

START_TEST(one_cycle_goes_up_and_down_as_in_pytorch)
{
    expect(trama_schedule_one_cycle(20), 0.02, COUNT(torch_one_cycle), torch_one_cycle);
    expect(trama_schedule_one_cycle(4), 0.02, COUNT(torch_one_cycle_of_4), torch_one_cycle_of_4);
}
END_TEST

START_TEST(warming_up_comes_before_any_schedule)
{
    trama_schedule stairs = trama_schedule_step(2, 0.1);
    stairs.warmup = 1;
    expect(stairs, 0.05, 6, (double[]){0.5, 1, 1, 0.1, 0.1, 0.01});
}
END_TEST

static double inverse_root(int64_t n, const double *numbers)
{
    return numbers[0] / sqrt((double)n + numbers[1]);
}

START_TEST(a_callback_gets_the_step_and_its_numbers)
{
    expect((trama_schedule){.factor = inverse_root, .numbers = {2, 4}}, 0.05, 4,
           (double[]){2 / sqrt(4), 2 / sqrt(5), 2 / sqrt(6), 2 / sqrt(7)});
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        warming_up_rises_in_equal_parts,      a_cosine_falls_as_in_pytorch_and_stays_at_its_floor,
        stairs_go_down_as_in_pytorch,         one_cycle_goes_up_and_down_as_in_pytorch,
        warming_up_comes_before_any_schedule, a_callback_gets_the_step_and_its_numbers,
    };
    return suite_run("schedule", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
