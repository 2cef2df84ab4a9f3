/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and layers in several layouts against loops in double precision. */
#include "small_matrix.h"

static const int64_t labels[ROWS] = {3, 0, -100, 6, 3};
static const double weights[COLUMNS] = {1, 0.5, 2, 3, 0.25, 1, 4};

typedef struct loss_case {
    double smoothing;
    bool weighted;
} loss_case;
static const loss_case loss_cases[] = {{0, false}, {0, true}, {0.1, false}, {0.3, true}, {1, true}};

/* The losses of rows by the definition in trama_network.h; returns the sum of the weights of labels. */
static double losses_of_rows(const loss_case *c, double *loss)
{
    double total = 0;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, smooth = 0;
        loss[i] = 0;
        if (labels[i] < 0)
            continue;
        for (int j = 0; j < COLUMNS; j++)
            sum += exp(numbers[i][j]);
        for (int j = 0; j < COLUMNS; j++)
            smooth -= (c->weighted ? weights[j] : 1) * (numbers[i][j] - log(sum)) / COLUMNS;
        const double w = c->weighted ? weights[labels[i]] : 1;
        loss[i] = -(1 - c->smoothing) * w * (numbers[i][labels[i]] - log(sum)) + c->smoothing * smooth;
        total += w;
    }
    return total;
}

START_TEST(cross_entropy_holds_for_weights_smoothing_and_ignored_labels)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (size_t k = 0; k < sizeof loss_cases / sizeof *loss_cases; k++) {
            const loss_case *c = &loss_cases[k];
            setting s = setting_of(forms[f]);
            double each[ROWS], sum = 0, count = losses_of_rows(c, each);
            for (int i = 0; i < ROWS; i++)
                sum += each[i];
            const double mean = sum / count;
            trama_value *y = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS), labels, s.mesh, "R,R");
            trama_value *w =
                c->weighted ? trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(COLUMNS), weights, s.mesh, "R,R") : NULL;
            check(&s, trama_cross_entropy_with(s.x, y, 1, w, -100, c->smoothing, TRAMA_LOSS_EACH), TRAMA_SHAPE(ROWS),
                  each, "cross entropy of each");
            check(&s, trama_cross_entropy_with(s.x, y, 1, w, -100, c->smoothing, TRAMA_LOSS_SUM), TRAMA_SCALAR, &sum,
                  "cross entropy, summed");
            /* classes in front */
            trama_value *turned = trama_transpose(s.x, NULL);
            check(&s,
                  trama_cross_entropy_with(turned, trama_cast(y, TRAMA_I32), 0, w, -100, c->smoothing, TRAMA_LOSS_MEAN),
                  TRAMA_SCALAR, &mean, "cross entropy, mean");
            end(&s);
        }
    stop();
}
END_TEST

START_TEST(cross_entropy_takes_logits_of_any_rank_and_labels_of_any_integer_type)
{
    static const int64_t known[ROWS] = {3, 0, 2, 6, 3};
    static const trama_dtype types[] = {TRAMA_I8, TRAMA_U8, TRAMA_I16, TRAMA_U16, TRAMA_I32, TRAMA_U32, TRAMA_I64, TRAMA_U64};
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double mean = 0, slope[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int j = 0; j < COLUMNS; j++)
                sum += exp(numbers[i][j]);
            mean += (log(sum) - numbers[i][known[i]]) / ROWS;
            for (int j = 0; j < COLUMNS; j++)
                slope[i][j] = (exp(numbers[i][j]) / sum - (j == known[i])) / ROWS;
        }
        trama_value *y = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS), known, s.mesh, "R,R");
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            check(&s, trama_cross_entropy(s.x, trama_cast(y, types[t])), TRAMA_SCALAR, &mean, "of a matrix");
        trama_value *loss = trama_cross_entropy(trama_reshape(s.x, TRAMA_SHAPE(1, ROWS, 1, COLUMNS)),
                                                trama_reshape(y, TRAMA_SHAPE(1, ROWS, 1)));
        check(&s, loss, TRAMA_SCALAR, &mean, "of four dims");
        check(&s, trama_gradient(loss, s.x), TRAMA_SHAPE(ROWS, COLUMNS), slope[0], "its gradient");
        trama_value *one = trama_cross_entropy(trama_reshape(trama_slice(s.x, 0, 1, 1), TRAMA_SHAPE(COLUMNS)),
                                               trama_reshape(trama_slice(y, 0, 1, 1), TRAMA_SCALAR));
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++)
            sum += exp(numbers[1][j]);
        const double of_one = log(sum) - numbers[1][0];
        check(&s, one, TRAMA_SCALAR, &of_one, "of a vector");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(the_gradient_of_cross_entropy_is_softmax_less_one_hot)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double wanted[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int j = 0; j < COLUMNS; j++)
                sum += exp(numbers[i][j]);
            for (int j = 0; j < COLUMNS; j++)
                wanted[i][j] = labels[i] < 0 ? 0 : (exp(numbers[i][j]) / sum - (j == labels[i])) / 4;
        }
        trama_value *y = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS), labels, s.mesh, "R,R");
        trama_value *loss = trama_cross_entropy_with(s.x, y, -1, NULL, -100, 0, TRAMA_LOSS_MEAN);
        check(&s, trama_gradient(loss, s.x), TRAMA_SHAPE(ROWS, COLUMNS), wanted[0], "its gradient");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(labels_that_are_no_class_give_nan)
{
    const int64_t odd[ROWS] = {7, -1, -100, 0, 1 << 20};
    const double is_nan[ROWS] = {1, 1, 0, 0, 1};
    start();
    setting s = setting_of("S(0),S(1)");
    trama_value *y = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS), odd, s.mesh, "R,R");
    trama_value *each = trama_cross_entropy_with(s.x, y, 1, NULL, -100, 0, TRAMA_LOSS_EACH);
    check(&s, trama_isnan(each), TRAMA_SHAPE(ROWS), is_nan, "labels beyond");
    trama_value *nll = trama_nll_loss(s.x, y, 1, NULL, -100, TRAMA_LOSS_EACH);
    check(&s, trama_isnan(nll), TRAMA_SHAPE(ROWS), is_nan, "labels beyond");
    end(&s);
    stop();
}
END_TEST

typedef double of_two(double x, double y);

static double square(double x, double y)
{
    return (x - y) * (x - y);
}

static double absolute(double x, double y)
{
    return fabs(x - y);
}

static double huber(double x, double y)
{
    const double e = fabs(x - y);
    return e <= 0.75 ? e * e / 2 : 0.75 * (e - 0.75 / 2);
}

static double binary(double x, double t)
{
    return -3 * t * log(1 / (1 + exp(-x))) - (1 - t) * log(1 - 1 / (1 + exp(-x)));
}

static void check_pairs(setting *s, trama_value *each, trama_value *mean, of_two *f, double (*second)[COLUMNS],
                        const char *what)
{
    double wanted[ROWS][COLUMNS], sum = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum += wanted[i][j] = f(numbers[i][j], second[i][j]);
    sum /= ROWS * COLUMNS;
    check(s, each, TRAMA_SHAPE(ROWS, COLUMNS), wanted[0], what);
    check(s, mean, TRAMA_SCALAR, &sum, what);
}

START_TEST(losses_of_pairs_of_numbers_hold)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double targets[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                targets[i][j] = (i + 2 * j) % 5 / 4.0;
        trama_value *t = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), targets, s.mesh, "R,R");
        check_pairs(&s, trama_square_loss(s.x, t, TRAMA_LOSS_EACH), trama_square_loss(s.x, t, TRAMA_LOSS_MEAN), square,
                    targets, "square_loss");
        check_pairs(&s, trama_absolute_loss(s.x, t, TRAMA_LOSS_EACH), trama_absolute_loss(s.x, t, TRAMA_LOSS_MEAN),
                    absolute, targets, "absolute_loss");
        check_pairs(&s, trama_huber_loss(s.x, t, 0.75, TRAMA_LOSS_EACH),
                    trama_huber_loss(s.x, t, 0.75, TRAMA_LOSS_MEAN), huber, targets, "huber_loss");
        check_pairs(&s, trama_binary_cross_entropy(s.x, t, 3, TRAMA_LOSS_EACH),
                    trama_binary_cross_entropy(s.x, t, 3, TRAMA_LOSS_MEAN), binary, targets, "binary_cross_entropy");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(binary_cross_entropy_of_large_logits_does_not_overflow)
{
    const double far[] = {800, -800, 800, -800}, target[] = {1, 0, 0, 1}, wanted[] = {0, 0, 800, 800};
    start();
    setting s = setting_of("R,R");
    trama_value *x = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(4), far, s.mesh, "R,R");
    trama_value *t = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(4), target, s.mesh, "R,R");
    check(&s, trama_binary_cross_entropy(x, t, 1, TRAMA_LOSS_EACH), TRAMA_SHAPE(4), wanted, "binary_cross_entropy");
    end(&s);
    stop();
}
END_TEST

START_TEST(dropout_leaves_the_same_elements_on_every_mesh)
{
    double first[ROWS][COLUMNS];
    int kept = 0;
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        trama_value *y = trama_dropout(trama_add_scalar(s.x, 10), 0.25, 5, 6);
        double is[ROWS][COLUMNS];
        must(trama_program_status(s.g.p));
        must(trama_read(s.g.e, y, is, sizeof is));
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                demand(is[i][j] == 0 || fabs(is[i][j] - (numbers[i][j] + 10) / 0.75) < 1e-12, "element %d,%d is %g", i,
                       j, is[i][j]);
        for (int i = 0; i < ROWS && !f; i++)
            for (int j = 0; j < COLUMNS; j++)
                kept += is[i][j] != 0;
        if (!f)
            memcpy(first, is, sizeof is);
        demand(!memcmp(first, is, sizeof is), "layout %s gives another dropout", forms[f]);
        end(&s);
    }
    demand(kept > ROWS * COLUMNS / 2 && kept < ROWS * COLUMNS, "%d elements are left", kept);
    stop();
}
END_TEST

/* (x - mean) / sqrt(variance + eps) of n elements, `step` apart; mean 0 unless centred. */
static void norm_of(const double *x, int n, int step, double eps, bool centred, double *y)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n && centred; i++)
        mean += x[i * step] / n;
    for (int i = 0; i < n; i++)
        squares += (x[i * step] - mean) * (x[i * step] - mean) / n;
    for (int i = 0; i < n; i++)
        y[i * step] = (x[i * step] - mean) / sqrt(squares + eps);
}

START_TEST(norms_bring_lines_and_groups_to_mean_0_and_variance_1)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double layer[ROWS][COLUMNS], rms[ROWS][COLUMNS], all[ROWS][COLUMNS], groups[ROWS][6];
        for (int i = 0; i < ROWS; i++) {
            norm_of(numbers[i], COLUMNS, 1, 0.1, true, layer[i]);
            norm_of(numbers[i], COLUMNS, 1, 0.2, false, rms[i]);
            for (int g = 0; g < 2; g++)
                norm_of(&numbers[i][3 * g], 3, 1, 0.1, true, &groups[i][3 * g]);
            for (int j = 0; j < COLUMNS; j++) {
                layer[i][j] = layer[i][j] * weights[j] + weights[COLUMNS - 1 - j];
                rms[i][j] *= weights[j];
            }
            for (int j = 0; j < 6; j++)
                groups[i][j] *= weights[j];
        }
        norm_of(numbers[0], ROWS * COLUMNS, 1, 0, true, all[0]);
        trama_value *w = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(COLUMNS), weights, s.mesh, "R,R");
        trama_value *b = trama_flip(w, TRAMA_DIMS(0)), *even = trama_slice(s.x, 1, 0, 6);
        check(&s, trama_layer_norm(s.x, 1, w, b, 0.1), TRAMA_SHAPE(ROWS, COLUMNS), layer[0], "layer_norm");
        check(&s, trama_layer_norm(s.x, 2, NULL, NULL, 0), TRAMA_SHAPE(ROWS, COLUMNS), all[0], "layer_norm of all");
        check(&s, trama_rms_norm(s.x, 1, w, 0.2), TRAMA_SHAPE(ROWS, COLUMNS), rms[0], "rms_norm");
        check(&s, trama_group_norm(even, 2, trama_slice(w, 0, 0, 6), NULL, 0.1), TRAMA_SHAPE(ROWS, 6), groups[0],
              "group_norm");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(batch_norm_takes_the_statistics_of_columns)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double trained[ROWS][COLUMNS], given[ROWS][COLUMNS], means[COLUMNS], variances[COLUMNS];
        for (int j = 0; j < COLUMNS; j++) {
            double mean = 0, squares = 0;
            for (int i = 0; i < ROWS; i++)
                mean += numbers[i][j] / ROWS;
            for (int i = 0; i < ROWS; i++)
                squares += (numbers[i][j] - mean) * (numbers[i][j] - mean);
            for (int i = 0; i < ROWS; i++) {
                trained[i][j] = (numbers[i][j] - mean) / sqrt(squares / ROWS + 0.1) * weights[j] + 1;
                given[i][j] = (numbers[i][j] - 1) / sqrt(weights[j] + 0.1) * weights[j];
            }
            means[j] = mean;
            variances[j] = squares / (ROWS - 1);
        }
        trama_value *w = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(COLUMNS), weights, s.mesh, "R,R"), *mean, *variance;
        trama_value *one = trama_affine(w, 0, 1);
        check(&s, trama_batch_norm(s.x, w, one, 0.1, &mean, &variance), TRAMA_SHAPE(ROWS, COLUMNS), trained[0],
              "batch_norm");
        check(&s, mean, TRAMA_SHAPE(COLUMNS), means, "its mean");
        check(&s, variance, TRAMA_SHAPE(COLUMNS), variances, "its variance");
        check(&s, trama_batch_norm_with(s.x, one, w, w, NULL, 0.1), TRAMA_SHAPE(ROWS, COLUMNS), given[0],
              "batch_norm_with");
        end(&s);
    }
    stop();
}
END_TEST

/* A padded 3 x 3 convolution, the mean of 2 x 2 windows that begin outside, and the largest of 5 x 7, in eager mode. */
START_TEST(windows_of_an_image_hold)
{
    enum { UP = ROWS / 2 + 1, LEFT = COLUMNS / 2 + 1 };
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double sums[ROWS][COLUMNS], means[UP][LEFT], most = numbers[0][0];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                sums[i][j] = 1;
                for (int k = i - 1; k <= i + 1; k++)
                    for (int l = j - 1; l <= j + 1; l++)
                        if (k >= 0 && k < ROWS && l >= 0 && l < COLUMNS)
                            sums[i][j] += weights[2 * (k - i + 1) + l - j + 1] * numbers[k][l];
                most = fmax(most, numbers[i][j]);
            }
        for (int i = 0; i < UP; i++)
            for (int j = 0; j < LEFT; j++) {
                double sum = 0, count = 0;
                for (int k = 2 * i - 1; k <= 2 * i; k++)
                    for (int l = 2 * j - 1; l <= 2 * j; l++)
                        if (k >= 0 && k < ROWS && l >= 0 && l < COLUMNS) {
                            sum += numbers[k][l];
                            count++;
                        }
                means[i][j] = sum / count;
            }
        const double kernel[3][3] = {{weights[0], weights[1], weights[2]},
                                     {weights[2], weights[3], weights[4]},
                                     {weights[4], weights[5], weights[6]}};
        trama_value *image = trama_reshape(s.x, TRAMA_SHAPE(1, 1, ROWS, COLUMNS));
        trama_value *w = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(1, 1, 3, 3), kernel, s.mesh, "R,R");
        trama_value *b = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(1), (const double[]){1}, s.mesh, "R,R");
        check(&s, trama_conv(image, w, b, (&(trama_windows){.before = {1, 1}, .after = {1, 1}})),
              TRAMA_SHAPE(1, 1, ROWS, COLUMNS), sums[0], "conv");
        check(&s, trama_mean_pool(image, (&(trama_windows){.kernel = {2, 2}, .before = {1, 1}, .up = true})),
              TRAMA_SHAPE(1, 1, UP, LEFT), means[0], "mean_pool");
        check(&s, trama_max_pool(image, (&(trama_windows){.kernel = {ROWS, COLUMNS}})), TRAMA_SHAPE(1, 1, 1, 1), &most,
              "max_pool");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(gates_multiply_the_halves_of_a_dim)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double glu[ROWS][3], swiglu[ROWS][3], geglu[ROWS][3];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < 3; j++) {
                const double a = numbers[i][j], b = numbers[i][j + 3];
                glu[i][j] = a / (1 + exp(-b));
                swiglu[i][j] = a / (1 + exp(-a)) * b;
                geglu[i][j] = a * (1 + erf(a / sqrt(2))) / 2 * b;
            }
        trama_value *even = trama_slice(s.x, 1, 0, 6);
        check(&s, trama_glu(even, -1), TRAMA_SHAPE(ROWS, 3), glu[0], "glu");
        check(&s, trama_swiglu(even, 1), TRAMA_SHAPE(ROWS, 3), swiglu[0], "swiglu");
        check(&s, trama_geglu(even, 1), TRAMA_SHAPE(ROWS, 3), geglu[0], "geglu");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(rotary_turns_pairs_by_their_position)
{
    start();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        setting s = setting_of(forms[f]);
        double halves[ROWS][6], pairs[ROWS][6];
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < 3; k++) {
                const double angle = (i + 2) * pow(100, -2 * k / 6.0), c = cos(angle), n = sin(angle);
                halves[i][k] = numbers[i][k] * c - numbers[i][k + 3] * n;
                halves[i][k + 3] = numbers[i][k] * n + numbers[i][k + 3] * c;
                pairs[i][2 * k] = numbers[i][2 * k] * c - numbers[i][2 * k + 1] * n;
                pairs[i][2 * k + 1] = numbers[i][2 * k] * n + numbers[i][2 * k + 1] * c;
            }
        trama_value *even = trama_slice(s.x, 1, 0, 6);
        check(&s, trama_rotary(even, 100, 2, false), TRAMA_SHAPE(ROWS, 6), halves[0], "rotary of halves");
        check(&s, trama_rotary(even, 100, 2, true), TRAMA_SHAPE(ROWS, 6), pairs[0], "rotary, interleaved");
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(wrong_calls_are_refused_with_the_reason)
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(3, 5)),
                *y = trama_input(p, "y", TRAMA_I64, TRAMA_SHAPE(3));
    REFUSED(trama_cross_entropy_with(x, y, 0, NULL, -1, 0, TRAMA_LOSS_MEAN),
            "labels have the dims of the logits without");
    REFUSED(trama_cross_entropy_with(x, y, 1, y, -1, 0, TRAMA_LOSS_MEAN), "weights are a vector of one for each class");
    REFUSED(trama_cross_entropy_with(x, y, 1, NULL, -1, 1.5, TRAMA_LOSS_MEAN), "smoothing 1.5; it is 0 to 1");
    REFUSED(trama_cross_entropy_with(x, y, 1, NULL, -1, 0, (trama_loss_form)7), "form 7 is no trama_loss_form");
    REFUSED(trama_nll_loss(x, trama_sum_over(x, TRAMA_DIMS(1), false), 1, NULL, -1, TRAMA_LOSS_MEAN), "integer labels");
    REFUSED(trama_huber_loss(x, x, 0, TRAMA_LOSS_MEAN), "delta 0; it is above 0");
    REFUSED(trama_dropout(x, 1, 0, 0), "probability 1; it is 0 or more, below 1");
    REFUSED(trama_layer_norm(x, 3, NULL, NULL, 1e-5), "layer_norm of x over 3 dims, eps 1e-05: it has 2 dims");
    REFUSED(trama_rms_norm(x, 1, NULL, -1), "eps is 0 or more");
    REFUSED(trama_group_norm(x, 2, NULL, NULL, 0), "2 groups of its 5 channels");
    REFUSED(trama_batch_norm(y, NULL, NULL, 0, NULL, NULL), "batch_norm of y with 1 dims");
    REFUSED(trama_batch_norm(x, NULL, NULL, -1, NULL, NULL), "eps -1");
    REFUSED(trama_batch_norm(x, y, NULL, 0, NULL, NULL), "y has not the shape [5], the channels of");
    REFUSED(trama_running(x, x, 2), "the momentum is 2, not 0 to 1");
    REFUSED(trama_glu(x, 1), "glu of x: dim 1 is not there, or has no even extent");
    REFUSED(trama_rotary(x, 1e4, 0, false), "the last one even");
    trama_program_destroy(&p);
}
END_TEST

TESTS(cross_entropy_holds_for_weights_smoothing_and_ignored_labels,
      cross_entropy_takes_logits_of_any_rank_and_labels_of_any_integer_type,
      the_gradient_of_cross_entropy_is_softmax_less_one_hot, labels_that_are_no_class_give_nan,
      losses_of_pairs_of_numbers_hold, binary_cross_entropy_of_large_logits_does_not_overflow,
      dropout_leaves_the_same_elements_on_every_mesh, norms_bring_lines_and_groups_to_mean_0_and_variance_1,
      batch_norm_takes_the_statistics_of_columns, windows_of_an_image_hold, gates_multiply_the_halves_of_a_dim,
      rotary_turns_pairs_by_their_position, wrong_calls_are_refused_with_the_reason)
