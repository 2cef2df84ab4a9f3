/* SPDX-License-Identifier: Apache-2.0 */
/* Builders that other ops compute, in several layouts, against their definitions. */
#include "small_matrix.h"

typedef double folded(const double *row, int step, int n);

static double any_of(const double *row, int step, int n)
{
    for (int i = 0; i < n; i++)
        if (row[i * step] != 0)
            return 1;
    return 0;
}

static double all_of(const double *row, int step, int n)
{
    for (int i = 0; i < n; i++)
        if (row[i * step] == 0)
            return 0;
    return 1;
}

static double norm_1_of(const double *row, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += fabs(row[i * step]);
    return sum;
}

static double norm_2_of(const double *row, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += row[i * step] * row[i * step];
    return sqrt(sum);
}

/* By pairs: the mean of (x - y)^2 / 2. */
static double variance_of(const double *row, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sum += (row[i * step] - row[j * step]) * (row[i * step] - row[j * step]) / 2;
    return sum / n / n;
}

static double sample_deviation_of(const double *row, int step, int n)
{
    return sqrt(variance_of(row, step, n) * n / (n - 1));
}

static double log_sum_exp_of(const double *row, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += exp(row[i * step]);
    return log(sum);
}

static void check_reduction(setting *s, trama_value *of_rows, trama_value *of_columns, trama_value *of_all, folded *f,
                            const char *what)
{
    double rows[ROWS], columns[COLUMNS], all = f(numbers[0], 1, ROWS * COLUMNS);
    for (int i = 0; i < ROWS; i++)
        rows[i] = f(numbers[i], 1, COLUMNS);
    for (int j = 0; j < COLUMNS; j++)
        columns[j] = f(&numbers[0][j], COLUMNS, ROWS);
    check(s, of_rows, TRAMA_SHAPE(ROWS, 1), rows, what);
    check(s, of_columns, TRAMA_SHAPE(COLUMNS), columns, what);
    check(s, of_all, TRAMA_SCALAR, &all, what);
}
#define CHECK_REDUCTION(name, f)                                                                                       \
    check_reduction(&s, trama_##name##_over(s.x, TRAMA_DIMS(-1), true),                                                \
                    trama_##name##_over(s.x, TRAMA_DIMS(0), false), trama_##name(s.x), f, #name)

START_TEST(reductions_are_those_of_their_definitions)
{
    start();
    for (size_t l = 0; l < sizeof forms / sizeof *forms; l++) {
        setting s = setting_of(forms[l]);
        CHECK_REDUCTION(any_true, any_of);
        CHECK_REDUCTION(all_true, all_of);
        CHECK_REDUCTION(norm_1, norm_1_of);
        CHECK_REDUCTION(norm_2, norm_2_of);
        CHECK_REDUCTION(log_sum_exp, log_sum_exp_of);
        check_reduction(&s, trama_variance_over(s.x, TRAMA_DIMS(1), true, 0),
                        trama_variance_over(s.x, TRAMA_DIMS(0), false, 0), trama_variance(s.x, 0), variance_of,
                        "variance");
        check_reduction(&s, trama_deviation_over(s.x, TRAMA_DIMS(1), true, 1),
                        trama_deviation_over(s.x, TRAMA_DIMS(0), false, 1), trama_deviation(s.x, 1),
                        sample_deviation_of, "deviation");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(log_softmax_is_the_logarithm_of_softmax)
{
    start();
    for (size_t l = 0; l < sizeof forms / sizeof *forms; l++) {
        setting s = setting_of(forms[l]);
        double wanted[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                wanted[i][j] = numbers[i][j] - log_sum_exp_of(numbers[i], 1, COLUMNS);
        check(&s, trama_log_softmax(s.x, -1), TRAMA_SHAPE(ROWS, COLUMNS), wanted[0], "log_softmax");
        end(&s);
    }
    stop();
}
END_TEST

/* d/dx of sum(c log_sum_exp(x)) is c softmax(x); of sum(variance(x)) it is 2 (x - mean) / n. */
START_TEST(gradients_pass_through_them)
{
    start();
    for (size_t l = 0; l < sizeof forms / sizeof *forms; l++) {
        setting s = setting_of(forms[l]);
        double soft[ROWS][COLUMNS], far[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                double sum = 0;
                for (int k = 0; k < COLUMNS; k++)
                    sum += numbers[i][k];
                soft[i][j] = 3 * exp(numbers[i][j] - log_sum_exp_of(numbers[i], 1, COLUMNS));
                far[i][j] = 2 * (numbers[i][j] - sum / COLUMNS) / COLUMNS;
            }
        trama_value *lse = trama_sum(trama_scale(trama_log_sum_exp_over(s.x, TRAMA_DIMS(1), false), 3));
        check(&s, trama_gradient(lse, s.x), TRAMA_SHAPE(ROWS, COLUMNS), soft[0], "the gradient of log_sum_exp");
        trama_value *spread = trama_sum(trama_variance_over(s.x, TRAMA_DIMS(1), false, 0));
        check(&s, trama_gradient(spread, s.x), TRAMA_SHAPE(ROWS, COLUMNS), far[0], "the gradient of variance");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(exponents_far_out_do_not_overflow)
{
    const double far[] = {1e4, 1e4 - 1, -INFINITY, -INFINITY, -INFINITY, -INFINITY, INFINITY, 0, -INFINITY};
    const double sums[] = {1e4 + log(1 + exp(-1)), -INFINITY, INFINITY};
    start();
    setting s = setting_of("R,R");
    trama_value *x = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(3, 3), far, s.mesh, "S(0),S(1)");
    check(&s, trama_log_sum_exp_over(x, TRAMA_DIMS(1), false), TRAMA_SHAPE(3), sums, "log_sum_exp");
    end(&s);
    stop();
}
END_TEST

START_TEST(triangles_and_units_are_cut_at_their_diagonal)
{
    start();
    for (int diagonal = -2; diagonal <= 3; diagonal++) {
        setting s = setting_of(forms[1 + (diagonal + 2) % 3]);
        double lower[ROWS][COLUMNS], upper[ROWS][COLUMNS], unit[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                lower[i][j] = j - i <= diagonal ? numbers[i][j] : 0;
                upper[i][j] = j - i >= diagonal ? numbers[i][j] : 0;
                unit[i][j] = i == j;
            }
        check(&s, trama_tril(s.x, diagonal), TRAMA_SHAPE(ROWS, COLUMNS), lower[0], "tril");
        check(&s, trama_triu(s.x, diagonal), TRAMA_SHAPE(ROWS, COLUMNS), upper[0], "triu");
        check(&s, trama_eye(s.g.p, TRAMA_I8, ROWS, COLUMNS), TRAMA_SHAPE(ROWS, COLUMNS), unit[0], "eye");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(labels_become_rows_of_zeros_with_a_one)
{
    const uint8_t labels[] = {3, 0, 9, 1, 2};
    double wanted[5][4] = {{0, 0, 0, 1}, {1}, {0}, {0, 1}, {0, 0, 1}};
    start();
    for (size_t l = 0; l < 2; l++) {
        setting s = setting_of("R,R");
        trama_value *x = trama_tensor(s.g.p, TRAMA_U8, TRAMA_SHAPE(5), labels, s.mesh, l ? "S(0),R" : "R,R");
        check(&s, trama_one_hot(x, 4, TRAMA_F32), TRAMA_SHAPE(5, 4), wanted[0], "one_hot");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(shapes_gain_and_lose_dims)
{
    start();
    setting s = setting_of("S(0),S(1)");
    double products[ROWS][ROWS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++)
            products[i][j] = numbers[i][0] * numbers[j][0];
    trama_value *column = trama_slice(s.x, 1, 0, 1), *row = trama_squeeze(column, 1);
    check(&s, trama_outer(row, row), TRAMA_SHAPE(ROWS, ROWS), products[0], "outer");
    check(&s, trama_unsqueeze(s.x, 1), TRAMA_SHAPE(ROWS, 1, COLUMNS), numbers[0], "unsqueeze");
    check(&s, trama_flatten(trama_unsqueeze(s.x, -1), 0, -1), TRAMA_SHAPE(ROWS * COLUMNS), numbers[0], "flatten");
    end(&s);
    stop();
}
END_TEST

START_TEST(limits_masks_and_places_of_extremes_hold)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double low[COLUMNS], high[ROWS], held[ROWS][COLUMNS], filled[ROWS][COLUMNS], most[ROWS], least[COLUMNS];
        for (int j = 0; j < COLUMNS; j++)
            low[j] = j / 2.0 - 2;
        for (int i = 0; i < ROWS; i++)
            high[i] = i - 1; /* below low in places, where it counts */
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                held[i][j] = fmin(fmax(numbers[i][j], low[j]), high[i]);
                filled[i][j] = numbers[i][j] > 0 ? 7 : numbers[i][j];
            }
        for (int i = 0; i < ROWS; i++)
            for (int j = 0, at = 0; j < COLUMNS; j++, most[i] = at)
                at = numbers[i][j] >= numbers[i][at] ? j : at;
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 0, at = 0; i < ROWS; i++, least[j] = at)
                at = numbers[i][j] <= numbers[at][j] ? i : at;
        trama_value *from = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(COLUMNS), low, s.mesh, "R,R");
        trama_value *to = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(ROWS, 1), high, s.mesh, "S(0),R");
        check(&s, trama_clip(s.x, from, to), TRAMA_SHAPE(ROWS, COLUMNS), held[0], "clip");
        trama_value *positive = trama_greater(s.x, trama_scalar(s.g.p, TRAMA_F64, 0));
        check(&s, trama_masked_fill(s.x, positive, 7), TRAMA_SHAPE(ROWS, COLUMNS), filled[0], "masked_fill");
        check(&s, trama_argmax_last(s.x, 1, true), TRAMA_SHAPE(ROWS, 1), most, "argmax_last");
        check(&s, trama_argmin_last(s.x, -2, false), TRAMA_SHAPE(COLUMNS), least, "argmin_last");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(wrong_calls_are_refused_with_the_reason)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(3, 4));
    REFUSED(trama_squeeze(x, 0), "extent 3, and not 1");
    REFUSED(trama_squeeze(x, 2), "dim 2 is not there");
    REFUSED(trama_unsqueeze(x, 4), "dim 4 is not there");
    REFUSED(trama_flatten(x, 1, 0), "dim 0 comes before dim 1");
    REFUSED(trama_outer(x, x), "has 2 dims, and not 1");
    REFUSED(trama_one_hot(x, 3, TRAMA_F32), "labels are integers");
    REFUSED(trama_tril(trama_sum_over(x, TRAMA_DIMS(0), false), 0), "the last two dims are a matrix");
    REFUSED(trama_sum(trama_less(x, x)), "sum takes signed integers, unsigned integers, floats, complex numbers; less");
    REFUSED(trama_sin(trama_cast(x, TRAMA_I32)), "sin takes floats, complex numbers; cast");
    REFUSED(trama_left_shift(x, x), "left_shift takes signed integers, unsigned integers; x is f32");
    trama_program_destroy(&p);
}
END_TEST

TESTS(reductions_are_those_of_their_definitions, log_softmax_is_the_logarithm_of_softmax, gradients_pass_through_them,
      exponents_far_out_do_not_overflow, triangles_and_units_are_cut_at_their_diagonal,
      labels_become_rows_of_zeros_with_a_one, shapes_gain_and_lose_dims,
      limits_masks_and_places_of_extremes_hold, wrong_calls_are_refused_with_the_reason)
