/* SPDX-License-Identifier: Apache-2.0 */
/* Ops along dims that are split, in eager and in compiled programs, against naive loops; NaN, halves, integers. */
#include "small_matrix.h"

typedef trama_value *builder(trama_value *x);
typedef void line(const double *x, int n, double *y);

/* ---- Builders along the last dim, and the loops over one line ---- */

static trama_value *build_softmax(trama_value *x)
{
    return trama_softmax(x, 1);
}

static void softmax_of(const double *x, int n, double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += exp(x[i]);
    for (int i = 0; i < n; i++)
        y[i] = exp(x[i]) / sum;
}

static trama_value *build_layer_norm(trama_value *x)
{
    return trama_layer_norm(x, 1, NULL, NULL, 0.5);
}

static void layer_norm_of(const double *x, int n, double *y)
{
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(square + 0.5);
}

static trama_value *build_rms_norm(trama_value *x)
{
    return trama_rms_norm(x, 1, NULL, 0.5);
}

static void rms_norm_of(const double *x, int n, double *y)
{
    double square = 0;
    for (int i = 0; i < n; i++)
        square += x[i] * x[i] / n;
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(square + 0.5);
}

static trama_value *build_cumsum(trama_value *x)
{
    return trama_cumsum(x, 1);
}

static void cumsum_of(const double *x, int n, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] + (i ? y[i - 1] : 0);
}

static trama_value *build_cumprod(trama_value *x)
{
    return trama_cumprod_over(x, 1, true, true);
}

static void cumprod_of(const double *x, int n, double *y)
{
    for (int i = n - 1; i >= 0; i--)
        y[i] = i < n - 1 ? y[i + 1] * x[i + 1] : 1;
}

static trama_value *build_prod(trama_value *x)
{
    return trama_prod_over(x, TRAMA_DIMS(1), true);
}

static void prod_of(const double *x, int n, double *y)
{
    y[0] = 1;
    for (int i = 0; i < n; i++)
        y[0] *= x[i];
}

static trama_value *build_argmax(trama_value *x)
{
    return trama_argmax_over(x, 1, true);
}

static void argmax_of(const double *x, int n, double *y)
{
    int at = 0;
    for (int i = 1; i < n && !isnan(x[at]); i++)
        at = x[i] > x[at] || isnan(x[i]) ? i : at;
    y[0] = at;
}

static trama_value *build_argmin_last(trama_value *x)
{
    return trama_argmin_last(x, 1, true);
}

static void argmin_last_of(const double *x, int n, double *y)
{
    int at = 0;
    for (int i = 1; i < n; i++)
        at = isnan(x[i]) || (!isnan(x[at]) && x[i] <= x[at]) ? i : at;
    y[0] = at;
}

/* The index of the largest so far, plus that element. */
static trama_value *build_cummax(trama_value *x)
{
    trama_value *y = trama_cummax(x, 1);
    return trama_add(y, trama_cast(trama_result(y, 1), y->dtype));
}

static void cummax_of(const double *x, int n, double *y)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        at = !isnan(x[at]) && (x[i] > x[at] || isnan(x[i])) ? i : at;
        y[i] = x[at] + at;
    }
}

static trama_value *build_cummin_index(trama_value *x)
{
    return trama_result(trama_cummin_over(x, 1, true, false), 1);
}

static void cummin_index_of(const double *x, int n, double *y)
{
    int at = n;
    for (int i = 0; i < n; i++) {
        y[i] = at;
        at = at == n || (!isnan(x[at]) && (x[i] < x[at] || isnan(x[i]))) ? i : at;
    }
}

static trama_value *build_top_k(trama_value *x)
{
    return trama_result(trama_top_k(x, 2, 1, true), 1);
}

static bool comes_first(double x, double y)
{
    return isnan(x) ? !isnan(y) : x > y;
}

static void top_k_of(const double *x, int n, double *y)
{
    for (int i = 0; i < n; i++) {
        int before = 0;
        for (int j = 0; j < n; j++)
            before += comes_first(x[j], x[i]) || (j < i && !comes_first(x[i], x[j]));
        y[before] = i;
    }
}

static trama_value *build_recurrence(trama_value *x)
{
    return trama_recurrence(x, x, 1, false);
}

static void recurrence_of(const double *x, int n, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] + (i ? x[i] * y[i - 1] : 0);
}

/* There and back: the pieces of a column-wise line are no whole columns. */
static trama_value *build_reshapes(trama_value *x)
{
    trama_value *flat = trama_reshape(trama_transpose(x, NULL), TRAMA_SHAPE(ROWS * COLUMNS));
    return trama_transpose(trama_reshape(trama_add(flat, flat), TRAMA_SHAPE(COLUMNS, ROWS)), NULL);
}

static void twice(const double *x, int n, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] = 2 * x[i];
}

static const struct {
    const char *name;
    builder *build;
    line *of;
    int results; /* of a line */
    bool takes_nan, integers;
} ops[] = {
    {"softmax", build_softmax, softmax_of, COLUMNS, true, false},
    {"layer norm", build_layer_norm, layer_norm_of, COLUMNS, true, false},
    {"rms norm", build_rms_norm, rms_norm_of, COLUMNS, true, false},
    {"cumsum", build_cumsum, cumsum_of, COLUMNS, true, true},
    {"cumprod", build_cumprod, cumprod_of, COLUMNS, false, true},
    {"prod", build_prod, prod_of, 1, true, true},
    {"recurrence", build_recurrence, recurrence_of, COLUMNS, true, false},
    {"cummax", build_cummax, cummax_of, COLUMNS, true, true},
    {"index of cummin, exclusive", build_cummin_index, cummin_index_of, COLUMNS, true, true},
    {"top_k", build_top_k, top_k_of, 2, true, false},
    {"reshapes", build_reshapes, twice, COLUMNS, true, true},
    {"argmax", build_argmax, argmax_of, 1, true, true},
    {"argmin, last", build_argmin_last, argmin_last_of, 1, true, true},
};
enum { OPS = sizeof ops / sizeof *ops };

/* The precisions of results: rounded once, and for halves computed in f32. */
static const struct {
    trama_dtype dtype;
    double tolerance;
} types[] = {{TRAMA_F64, 1e-13}, {TRAMA_F32, 3e-6}, {TRAMA_BF16, 1.0 / 128}, {TRAMA_I32, 0}};

static void fill(bool nan, bool integers)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            numbers[i][j] = (double)((3 * i + 5 * j) % 11 - 4) / (integers ? 1 : 2);
            if (nan && (i == 1 ? j == 5 : i == 3 && j % 4 == 0))
                numbers[i][j] = NAN;
        }
}

static void compare(const double *is, int op, double tolerance, const char *form)
{
    for (int i = 0; i < ROWS; i++) {
        double wanted[COLUMNS];
        ops[op].of(numbers[i], COLUMNS, wanted);
        for (int j = 0; j < ops[op].results; j++) {
            const double got = is[i * ops[op].results + j];
            demand((isnan(got) && isnan(wanted[j])) || fabs(got - wanted[j]) <= tolerance * fmax(1, fabs(wanted[j])),
                   "%s of line %d as %s: element %d is %.17g instead of %.17g", ops[op].name, i, form, j, got,
                   wanted[j]);
        }
    }
}

static const char *const along[] = {"R,R", "S(1),R", "S(0),S(1)", "S(1)[1],S(1)[0]"};

START_TEST(eager_ops_compute_on_their_parts)
{
    start();
    for (int i = 0; i < OPS * 4 * 4 * 2; i++) {
        const int op = i % OPS, type = i / OPS % 4, form = i / OPS / 4 % 4;
        const bool nan = i / OPS / 16, integers = types[type].dtype == TRAMA_I32;
        double is[ROWS * COLUMNS];
        if ((integers && (nan || !ops[op].integers)) || (nan && !ops[op].takes_nan))
            continue;
        fill(nan, integers);
        eager g = eager_begin();
        trama_mesh *mesh = mesh_of("dp=2,mp=2");
        trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), numbers, mesh, along[form]);
        trama_value *y = trama_cast(ops[op].build(trama_cast(x, types[type].dtype)), TRAMA_F64);
        must(trama_program_status(g.p));
        must(trama_read(g.e, y, is, (size_t)(ROWS * ops[op].results) * sizeof *is));
        compare(is, op, types[type].tolerance, along[form]);
        eager_end_now(&g);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

START_TEST(compiled_ops_compute_on_their_parts)
{
    start();
    fill(false, false);
    for (int i = 0; i < OPS * 4; i++) {
        const int op = i % OPS, form = i / OPS;
        double is[ROWS * COLUMNS];
        trama_program *p = trama_program_create();
        trama_mesh *mesh = mesh_of("dp=2,mp=2");
        trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), numbers);
        trama_value *y = trama_cast(ops[op].build(trama_shard(x, mesh, along[form])), TRAMA_F64);
        trama_target *t = trama_target_create(p, "t", y);
        trama_executable *e;
        must(trama_compile(ctx, p, &e));
        must(trama_run(e, t));
        must(trama_read(e, y, is, (size_t)(ROWS * ops[op].results) * sizeof *is));
        compare(is, op, 1e-13, along[form]);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

/* Labels that are no class give NaN, in the loss and in their rows of the gradient. */
START_TEST(the_loss_of_split_classes_is_that_of_whole_ones)
{
    start();
    for (size_t form = 0; form < 4; form++) {
        const int32_t labels[2][ROWS] = {{0, 6, 3, 3, 1}, {0, -1, 3, 7, 1}};
        for (int outside = 0; outside < 2; outside++) {
            double loss, d[ROWS][COLUMNS], wanted = 0, p[COLUMNS];
            fill(false, false);
            setting s = setting_of(along[form]);
            trama_value *label = trama_tensor(s.g.p, TRAMA_I32, TRAMA_SHAPE(ROWS), labels[outside], s.mesh, "R,R");
            trama_value *z = trama_cross_entropy(s.x, label), *g = trama_gradient(z, s.x);
            must(trama_program_status(s.g.p));
            must(trama_read(s.g.e, z, &loss, sizeof loss));
            must(trama_read(s.g.e, g, d, sizeof d));
            for (int i = 0; i < ROWS; i++) {
                const int l = labels[outside][i];
                const bool there = l >= 0 && l < COLUMNS;
                softmax_of(numbers[i], COLUMNS, p);
                wanted -= there ? log(p[l]) / ROWS : NAN;
                for (int j = 0; j < COLUMNS; j++)
                    demand(there ? fabs(d[i][j] - (p[j] - (j == l)) / ROWS) < 1e-13 : isnan(d[i][j]),
                           "as %s: gradient %d %d is %g", along[form], i, j, d[i][j]);
            }
            demand(outside ? isnan(loss) : fabs(loss - wanted) < 1e-13, "as %s: %g", along[form], loss);
            end(&s);
        }
    }
    stop();
}
END_TEST

TESTS(eager_ops_compute_on_their_parts, compiled_ops_compute_on_their_parts,
      the_loss_of_split_classes_is_that_of_whole_ones)
