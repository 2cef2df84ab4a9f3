/* SPDX-License-Identifier: Apache-2.0 */
/* Every builder that other ops compute, with complex operands: the result is that of its definition, or the builder
 * refuses the operand by its own name. */
#include <complex.h>

#include "eager_harness.h"
#include "trama_array.h"
#include "trama_attention.h"
#include "trama_complex.h"
#include "trama_composed.h"
#include "trama_convolution.h"
#include "trama_network.h"
#include "trama_random.h"

typedef double _Complex z128;

enum { ROWS = 4, COLUMNS = 6 };

static trama_c64 z_at[ROWS][COLUMNS];

typedef struct setting {
    eager g;
    trama_mesh *mesh;
    trama_value *z; /* c64 [ROWS, COLUMNS], with some zeros */
} setting;

static setting begin(const char *layout)
{
    setting s = {eager_begin(), mesh_of("dp=2,mp=2"), NULL};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            z_at[i][j] = CMPLXF((float)((3 * i + 5 * j) % 4 - 1) / 2, (float)((i + 7 * j) % 3 - 1) / 4);
    s.z = trama_tensor(s.g.p, TRAMA_C64, TRAMA_SHAPE(ROWS, COLUMNS), z_at, s.mesh, layout);
    return s;
}

static void end(setting *s)
{
    eager_end_now(&s->g);
    trama_mesh_destroy(&s->mesh);
}

/* Elements are right but for roundings of f32, of the type that is told. */
static void check(setting *s, trama_value *v, trama_dtype dtype, int64_t n, const z128 *wanted, const char *what)
{
    z128 is[ROWS * ROWS * COLUMNS];
    must(trama_program_status(s->g.p));
    demand(trama_value_dtype(v) == dtype, "%s is %s", what, trama_dtype_name(trama_value_dtype(v)));
    trama_value *wide = trama_cast(trama_value_dtype(v) == TRAMA_BOOL ? trama_cast(v, TRAMA_F64) : v, TRAMA_C128);
    must(trama_read(s->g.e, wide, is, (size_t)n * sizeof *is));
    for (int64_t i = 0; i < n; i++)
        demand(cabs(is[i] - wanted[i]) <= 1e-6 * fmax(1, cabs(wanted[i])),
               "%s: element %" PRId64 " is %g%+gi instead of %g%+gi", what, i, creal(is[i]), cimag(is[i]),
               creal(wanted[i]), cimag(wanted[i]));
}

static const char *const forms[] = {"R,R", "S(0),S(1)", "S(1),S(0)", "S(0)[1],S(0)[0]"};
#define FOR_LAYOUTS(s)                                                                                                 \
    for (size_t l = 0; l < sizeof forms / sizeof *forms; l++)                                                          \
        for (setting s = begin(forms[l]), *once = &s; once; end(&s), once = NULL)

/* ---- Reductions ---- */

typedef z128 folded(const trama_c64 *z, int step, int n);

static z128 any_of(const trama_c64 *z, int step, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= z[i * step] != 0;
    return any;
}

static z128 all_of(const trama_c64 *z, int step, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= z[i * step] != 0;
    return all;
}

static z128 norm_1_of(const trama_c64 *z, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += cabs((z128)z[i * step]);
    return sum;
}

static z128 norm_2_of(const trama_c64 *z, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += pow(cabs((z128)z[i * step]), 2);
    return sqrt(sum);
}

/* By pairs: the mean of |x - y|^2 / 2. */
static z128 variance_of(const trama_c64 *z, int step, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sum += pow(cabs((z128)z[i * step] - (z128)z[j * step]), 2) / 2;
    return sum / n / n;
}

static z128 sample_deviation_of(const trama_c64 *z, int step, int n)
{
    return csqrt(variance_of(z, step, n) * n / (n - 1));
}

static void check_reduction(setting *s, trama_value *of_rows, trama_value *of_columns, trama_value *of_all, folded *f,
                            trama_dtype dtype, const char *what)
{
    z128 rows[ROWS], columns[COLUMNS], all = f(z_at[0], 1, ROWS * COLUMNS);
    for (int i = 0; i < ROWS; i++)
        rows[i] = f(z_at[i], 1, COLUMNS);
    for (int j = 0; j < COLUMNS; j++)
        columns[j] = f(&z_at[0][j], COLUMNS, ROWS);
    check(s, of_rows, dtype, ROWS, rows, what);
    check(s, of_columns, dtype, COLUMNS, columns, what);
    check(s, of_all, dtype, 1, &all, what);
}
#define CHECK_REDUCTION(dtype, f, name, ...)                                                                           \
    check_reduction(&s, trama_##name##_at(TRAMA_HERE, s.z, TRAMA_DIMS(-1), true __VA_ARGS__),                          \
                    trama_##name##_at(TRAMA_HERE, s.z, TRAMA_DIMS(0), false __VA_ARGS__),                              \
                    trama_##name##_at(TRAMA_HERE, s.z, 0, NULL, false __VA_ARGS__), f, dtype, #name)

START_TEST(reductions_are_those_of_their_definitions)
{
    start();
    FOR_LAYOUTS(s)
    {
        CHECK_REDUCTION(TRAMA_BOOL, any_of, any_true, );
        CHECK_REDUCTION(TRAMA_BOOL, all_of, all_true, );
        CHECK_REDUCTION(TRAMA_F32, norm_1_of, norm_1, );
        CHECK_REDUCTION(TRAMA_F32, norm_2_of, norm_2, );
        CHECK_REDUCTION(TRAMA_F32, variance_of, variance, , 0);
        CHECK_REDUCTION(TRAMA_F32, sample_deviation_of, deviation, , 1);
    }
    stop();
}
END_TEST

/* PyTorch 2.15: z = torch.tensor([1+2j, 3-1j, -2+.5j, .5-1.5j], dtype=torch.complex128, requires_grad=True);
 * torch.var(z) gives the variance, torch.std(z).backward() then z.grad. */
START_TEST(the_variance_of_complex_numbers_is_that_of_pytorch)
{
    const z128 at[] = {1 + 2 * I, 3 - I, -2 + 0.5 * I, 0.5 - 1.5 * I};
    const z128 variance = 6.729166666666667, slopes[] = {CMPLX(0.04818694246524266, 0.2569970264812942),
                                                         CMPLX(0.3051839689465369, -0.1284985132406471),
                                                         CMPLX(-0.3373085972566986, 0.06424925662032355),
                                                         CMPLX(-0.016062314155080887, -0.19274776986097064)};
    start();
    setting s = begin("R,R");
    trama_value *z = trama_tensor(s.g.p, TRAMA_C128, TRAMA_SHAPE(4), at, s.mesh, "S(0),R");
    check(&s, trama_variance(z, 1), TRAMA_F64, 1, &variance, "the variance");
    check(&s, trama_gradient(trama_deviation(z, 1), z), TRAMA_C128, 4, slopes, "the gradient of the deviation");
    end(&s);
    stop();
}
END_TEST

/* ---- Other results ---- */

START_TEST(shapes_patterns_and_products_keep_complex_numbers)
{
    start();
    FOR_LAYOUTS(s)
    {
        z128 same[ROWS * COLUMNS], lower[ROWS * COLUMNS], upper[ROWS * COLUMNS], filled[ROWS * COLUMNS];
        z128 products[ROWS * ROWS], unit[ROWS * ROWS];
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < COLUMNS; j++) {
                const int at = i * COLUMNS + j;
                same[at] = z_at[i][j];
                lower[at] = j <= i ? same[at] : 0;
                upper[at] = j >= i ? same[at] : 0;
                filled[at] = z_at[i][j] == 0 ? 7 : same[at];
            }
            for (int j = 0; j < ROWS; j++) {
                products[i * ROWS + j] = (z128)z_at[i][0] * (z128)z_at[j][0];
                unit[i * ROWS + j] = i == j;
            }
        }
        const int64_t labels[ROWS] = {0, 1, 2, 3};
        trama_value *row = trama_squeeze(trama_slice(s.z, 1, 0, 1), 1);
        trama_value *label = trama_tensor(s.g.p, TRAMA_I64, TRAMA_SHAPE(ROWS), labels, s.mesh, "R,R");
        check(&s, trama_flatten(trama_unsqueeze(s.z, 1), 0, -1), TRAMA_C64, ROWS * COLUMNS, same, "flatten");
        check(&s, trama_tril(s.z, 0), TRAMA_C64, ROWS * COLUMNS, lower, "tril");
        check(&s, trama_triu(s.z, 0), TRAMA_C64, ROWS * COLUMNS, upper, "triu");
        trama_value *zero = trama_equal(s.z, trama_scalar(s.g.p, TRAMA_C64, 0));
        check(&s, trama_masked_fill(s.z, zero, 7), TRAMA_C64, ROWS * COLUMNS, filled, "masked_fill");
        check(&s, trama_outer(row, row), TRAMA_C64, ROWS * ROWS, products, "outer");
        check(&s, trama_one_hot(label, ROWS, TRAMA_C64), TRAMA_C64, ROWS * ROWS, unit, "one_hot");
        check(&s, trama_eye(s.g.p, TRAMA_C64, ROWS, ROWS), TRAMA_C64, ROWS * ROWS, unit, "eye");
    }
    stop();
}
END_TEST

START_TEST(layers_that_are_linear_take_complex_numbers)
{
    start();
    FOR_LAYOUTS(s)
    {
        z128 turned[ROWS * COLUMNS], far[ROWS * COLUMNS];
        trama_c64 dropped[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < COLUMNS / 2; k++) {
                const double angle = i * pow(10000, -2.0 * k / COLUMNS);
                const z128 a = z_at[i][k], b = z_at[i][k + COLUMNS / 2];
                turned[i * COLUMNS + k] = a * cos(angle) - b * sin(angle);
                turned[i * COLUMNS + k + COLUMNS / 2] = a * sin(angle) + b * cos(angle);
                far[i * COLUMNS + k] = 2 * cabs(a);
                far[i * COLUMNS + k + COLUMNS / 2] = 2 * cabs(b);
            }
        check(&s, trama_rotary(s.z, 10000, 0, false), TRAMA_C64, ROWS * COLUMNS, turned, "rotary");
        check(&s, trama_absolute_loss(s.z, trama_neg(s.z), TRAMA_LOSS_EACH), TRAMA_F32, ROWS * COLUMNS, far,
              "absolute_loss");
        must(trama_read(s.g.e, trama_dropout(s.z, 0.5, 1, 2), dropped, sizeof dropped));
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < COLUMNS; k++)
                demand(dropped[i][k] == 0 || dropped[i][k] == 2 * z_at[i][k], "dropout: [%d, %d] is %g%+gi", i, k,
                       crealf(dropped[i][k]), cimagf(dropped[i][k]));
    }
    stop();
}
END_TEST

/* The state becomes 3/4 of 1 and 1/4 of 8i. */
START_TEST(a_running_mean_of_complex_numbers_is_one)
{
    static const trama_init one = {1, 1, 0, 0};
    const trama_c64 new = CMPLXF(0, 8);
    trama_c64 is;
    start();
    trama_program *p = trama_program_create();
    trama_value *state = trama_state(p, "state", TRAMA_C64, TRAMA_SHAPE(1), &one);
    trama_value *next = trama_running(state, trama_constant(p, TRAMA_C64, TRAMA_SHAPE(1), &new), 0.25);
    trama_target *update = trama_target_create(p, "update", next);
    trama_executable *e = compile(p);
    must(trama_run(e, update));
    must(trama_read(e, state, &is, sizeof is));
    demand(is == CMPLXF(0.75F, 2), "running gives %g%+gi", crealf(is), cimagf(is));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* ---- Refusals ---- */

static trama_program *p;

static void check_refused(const trama_value *made, const char *name)
{
    const char *error = trama_program_error(p);
    demand(!made && trama_program_status(p) == TRAMA_E_DTYPE, "%s takes complex numbers (%s)", name, error);
    demand(strstr(error, name) && strstr(error, "test_complex_builders.c:"), "%s is not named: %s", name, error);
    trama_program_clear_error(p);
}
#define REFUSED(name, ...) check_refused(trama_##name(__VA_ARGS__), #name)

START_TEST(builders_that_need_an_order_or_real_squares_refuse_by_their_name)
{
    p = trama_program_create();
    trama_value *z = trama_input(p, "z", TRAMA_C64, TRAMA_SHAPE(4, 6)), *mean, *variance;
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4, 6));
    trama_value *image = trama_input(p, "image", TRAMA_C64, TRAMA_SHAPE(2, 3, 8));
    trama_value *w = trama_input(p, "w", TRAMA_C64, TRAMA_SHAPE(5, 3, 2));
    trama_value *back = trama_input(p, "back", TRAMA_C64, TRAMA_SHAPE(3, 5, 2));
    trama_value *channels = trama_input(p, "channels", TRAMA_C64, TRAMA_SHAPE(6));
    trama_value *labels = trama_input(p, "labels", TRAMA_I64, TRAMA_SHAPE(4));
    const trama_windows pairs = {.kernel = {2}};
    REFUSED(clip, z, NULL, NULL);
    REFUSED(log_sum_exp, z);
    REFUSED(log_softmax, z, 0);
    REFUSED(softmax, z, 0);
    REFUSED(cross_entropy, z, labels);
    check_refused(trama_cross_entropy_with(z, labels, 1, NULL, -1, 0, TRAMA_LOSS_MEAN), "cross_entropy");
    REFUSED(nll_loss, z, labels, 1, NULL, -1, TRAMA_LOSS_MEAN);
    REFUSED(binary_cross_entropy, z, z, 1, TRAMA_LOSS_MEAN);
    REFUSED(binary_cross_entropy, x, z, 1, TRAMA_LOSS_MEAN);
    REFUSED(square_loss, z, z, TRAMA_LOSS_MEAN);
    REFUSED(square_loss, x, z, TRAMA_LOSS_MEAN);
    REFUSED(huber_loss, z, z, 1, TRAMA_LOSS_MEAN);
    REFUSED(huber_loss, x, z, 1, TRAMA_LOSS_MEAN);
    REFUSED(layer_norm, z, 1, NULL, NULL, 1e-5);
    REFUSED(rms_norm, z, 1, NULL, 1e-5);
    REFUSED(group_norm, z, 2, NULL, NULL, 1e-5);
    REFUSED(batch_norm, z, NULL, NULL, 1e-5, &mean, &variance);
    check_refused(trama_batch_norm_with(z, channels, channels, NULL, NULL, 1e-5), "batch_norm");
    REFUSED(glu, z, 1);
    REFUSED(swiglu, z, 1);
    REFUSED(geglu, z, 1);
    REFUSED(attention, z, z, z);
    REFUSED(conv, image, w, NULL, NULL);
    REFUSED(conv_transposed, image, back, NULL, NULL);
    REFUSED(max_pool, image, &pairs);
    REFUSED(mean_pool, image, &pairs);
    REFUSED(sum_pool, image, &pairs);
    REFUSED(argmax, z, 0);
    check_refused(trama_argmin_last(z, 0, false), "argmin");
    REFUSED(sort, z, 0, false);
    REFUSED(argsort, z, 0, false);
    REFUSED(top_k, z, 2, 0, true);
    REFUSED(cummax, z, 0);
    REFUSED(cummin, z, 0);
    check_refused(trama_random_integers(p, TRAMA_C64, TRAMA_SHAPE(4), 0, 9, 1, 2), "random_integers");
    trama_program_destroy(&p);
}
END_TEST

/* Pointwise ops refuse by their name, or give z's shape. */
START_TEST(pointwise_builders_take_complex_numbers_or_refuse_by_their_name)
{
    p = trama_program_create();
    trama_value *z = trama_input(p, "z", TRAMA_C64, TRAMA_SHAPE(4, 6)), *made;
#define TRY(name, ...)                                                                                                 \
    made = trama_##name(__VA_ARGS__);                                                                                  \
    if (!made)                                                                                                         \
        check_refused(made, #name);
#define TRY_UNARY(name) TRY(name, z)
#define TRY_BINARY(name) TRY(name, z, z)
    TRAMA_UNARY_OPS(TRY_UNARY)
    TRAMA_BINARY_OPS(TRY_BINARY)
    trama_program_destroy(&p);
}
END_TEST

/* ---- All builders ---- */

/* The builders above, of these headers. */
static const char tried[] =
    " squeeze unsqueeze flatten outer any_true all_true norm_1 norm_2 variance deviation log_sum_exp log_softmax "
    "one_hot eye tril triu cross_entropy cross_entropy_with nll_loss binary_cross_entropy square_loss absolute_loss "
    "huber_loss "
    "layer_norm rms_norm group_norm batch_norm batch_norm_with running dropout glu swiglu geglu rotary attention conv "
    "conv_transposed max_pool mean_pool sum_pool ";

START_TEST(every_builder_of_these_headers_is_tried)
{
    static const char *const headers[] = {"family/trama_composed.h", "network/trama_network.h",
                                          "network/trama_attention.h", "network/trama_convolution.h"};
    for (size_t h = 0; h < sizeof headers / sizeof *headers; h++) {
        char path[4096], line[512], name[64], word[70];
        int found = 0;
        snprintf(path, sizeof path, "%s/../../dist/%s", TRAMA_TEST_FOLDER, headers[h]);
        FILE *file = fopen(path, "r");
        demand(file != NULL, "%s cannot be read", path);
        while (fgets(line, sizeof line, file)) {
            const char *end_of_name = strstr(line, "_at(trama_where");
            if (strncmp(line, "trama_value *trama_", 19) || !end_of_name)
                continue;
            snprintf(name, sizeof name, "%.*s", (int)(end_of_name - line - 19), line + 19);
            snprintf(word, sizeof word, " %s ", name);
            demand(strstr(tried, word) != NULL, "%s of %s is not tried with complex numbers", name, headers[h]);
            found++;
        }
        fclose(file);
        demand(found > 0, "no builder found in %s", headers[h]);
    }
}
END_TEST

TESTS(reductions_are_those_of_their_definitions, the_variance_of_complex_numbers_is_that_of_pytorch,
      shapes_patterns_and_products_keep_complex_numbers, layers_that_are_linear_take_complex_numbers,
      a_running_mean_of_complex_numbers_is_one, builders_that_need_an_order_or_real_squares_refuse_by_their_name,
      pointwise_builders_take_complex_numbers_or_refuse_by_their_name, every_builder_of_these_headers_is_tried)
