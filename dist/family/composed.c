/* SPDX-License-Identifier: Apache-2.0 */
/* Builders whose results other ops compute. Their layouts and gradients follow from these ops. */
#include <math.h>

#include "families.h"
#include "trama_complex.h"
#include "trama_composed.h"

/* ---- Shapes ---- */

static bool is_dim(trama_where where, const char *name, const trama_value *x, int dim, int n_dims, int *at)
{
    *at = dim < 0 ? dim + n_dims : dim;
    if (*at >= 0 && *at < n_dims)
        return true;
    program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there (%d dims)", name, x->name, dim,
                 n_dims);
    return false;
}

trama_value *trama_squeeze_at(trama_where where, trama_value *x, int dim)
{
    int at;
    if (!x || !is_dim(where, "squeeze", x, dim, x->shape.ndim, &at))
        return NULL;
    trama_shape shape = x->shape;
    if (shape.dim[at] != 1)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "squeeze of %s: dim %d has extent %lld, and not 1",
                            x->name, dim, (long long)shape.dim[at]);
    for (int d = at; d + 1 < shape.ndim; d++)
        shape.dim[d] = shape.dim[d + 1];
    shape.ndim--;
    return trama_reshape_at(where, x, shape);
}

trama_value *trama_unsqueeze_at(trama_where where, trama_value *x, int dim)
{
    int at;
    if (!x || !is_dim(where, "unsqueeze", x, dim, x->shape.ndim + 1, &at))
        return NULL;
    trama_shape shape = x->shape;
    if (shape.ndim == TRAMA_MAX_NDIM)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "unsqueeze of %s: it has %d dims, the most there are",
                            x->name, shape.ndim);
    for (int d = shape.ndim; d > at; d--)
        shape.dim[d] = shape.dim[d - 1];
    shape.dim[at] = 1;
    shape.ndim++;
    return trama_reshape_at(where, x, shape);
}

trama_value *trama_flatten_at(trama_where where, trama_value *x, int first, int last)
{
    int from, to;
    if (!x || !is_dim(where, "flatten", x, first, x->shape.ndim, &from) ||
        !is_dim(where, "flatten", x, last, x->shape.ndim, &to))
        return NULL;
    trama_shape shape = x->shape;
    if (to < from)
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "flatten of %s: dim %d comes before dim %d", x->name,
                            last, first);
    int64_t all = 1;
    bool any = false;
    for (int d = from; d <= to; d++) {
        any = any || shape.dim[d] == TRAMA_ANY;
        all *= shape.dim[d];
    }
    shape.dim[from] = any ? TRAMA_ANY : all;
    for (int d = to + 1; d < shape.ndim; d++)
        shape.dim[d - to + from] = shape.dim[d];
    shape.ndim -= to - from;
    return reshape_cut(where, x, shape, NULL, any ? RESHAPE_CUT(from, from) | RESHAPE_CUT(to + 1, from + 1) : 0);
}

trama_value *trama_outer_at(trama_where where, trama_value *x, trama_value *y)
{
    for (int i = 0; i < 2 && x && y; i++) {
        const trama_value *v = i ? y : x;
        if (v->shape.ndim != 1)
            return program_fail(v->program, where, TRAMA_E_SHAPE, "outer of %s and %s: %s has %d dims, and not 1",
                                x->name, y->name, v->name, v->shape.ndim);
    }
    return trama_mul_at(where, trama_unsqueeze_at(where, x, 1), trama_unsqueeze_at(where, y, 0));
}

/* ---- Reductions ---- */

static trama_value *is_not_0(trama_where where, trama_value *x)
{
    return is_complex(x) ? trama_not_equal_at(where, x, scalar_like(where, x, 0)) : trama_cast_at(where, x, TRAMA_BOOL);
}

trama_value *trama_any_true_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    return x ? trama_max_at(where, is_not_0(where, x), n, dims, keep_dim) : NULL;
}

trama_value *trama_all_true_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    return x ? trama_min_at(where, is_not_0(where, x), n, dims, keep_dim) : NULL;
}

trama_value *trama_norm_1_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    return trama_sum_at(where, trama_abs_at(where, x), n, dims, keep_dim);
}

trama_value *trama_norm_2_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    trama_value *squares = trama_sum_square_at(where, x, n, dims, keep_dim);
    return x ? trama_cast_at(where, trama_sqrt_at(where, squares), dtype_part(x->dtype)) : NULL;
}

/* The number of elements that are reduced to one; 0 where it is not known. */
static double count_reduced(const trama_value *x, int n, const int *dims)
{
    double count = 1;
    for (int i = 0; i < (n ? n : x->shape.ndim); i++) {
        const int d = n ? (dims[i] < 0 ? dims[i] + x->shape.ndim : dims[i]) : i;
        count = x->shape.dim[d] == TRAMA_ANY ? 0 : count * (double)x->shape.dim[d];
    }
    return count;
}

/* |x|^2, real */
static trama_value *square_of_size(trama_where where, trama_value *x)
{
    trama_value *square = trama_square_at(where, trama_real_at(where, x));
    return x && is_complex(x) ? trama_add_at(where, square, trama_square_at(where, trama_imag_at(where, x))) : square;
}

trama_value *trama_variance_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim, double less)
{
    trama_value *mean = trama_mean_at(where, x, n, dims, true),
                *far = square_of_size(where, trama_sub_at(where, x, mean));
    trama_value *variance = trama_mean_at(where, far, n, dims, keep_dim);
    if (!variance || less == 0)
        return variance;
    const double count = count_reduced(x, n, dims);
    if (count == 0)
        return program_fail(x->program, where, TRAMA_E_SHAPE,
                            "variance of %s: its number of elements is not known before it is fed, so it cannot be "
                            "lessened by %g",
                            x->name, less);
    return trama_scale_at(where, variance, count / (count - less));
}

trama_value *trama_deviation_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim, double less)
{
    return trama_sqrt_at(where, trama_variance_at(where, x, n, dims, keep_dim, less));
}

/* The largest elements, where they are finite, else 0: subtracted, they leave no exponent above 0, and no NaN. */
static trama_value *finite_max(trama_where where, trama_value *x, int n, const int *dims)
{
    trama_value *top = trama_stop_gradient_at(where, trama_max_at(where, x, n, dims, true));
    return top ? trama_masked_fill_at(where, top, trama_logical_not_at(where, trama_isfinite_at(where, top)), 0) : NULL;
}

trama_value *trama_log_sum_exp_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    if (!is_real(where, "log_sum_exp", x))
        return NULL;
    trama_value *top = finite_max(where, x, n, dims);
    trama_value *sum = trama_sum_at(where, trama_exp_at(where, trama_sub_at(where, x, top)), n, dims, keep_dim);
    trama_value *log = trama_log_at(where, sum);
    return log ? trama_add_at(where, log, trama_reshape_at(where, top, log->shape)) : NULL;
}

trama_value *trama_log_softmax_at(trama_where where, trama_value *x, int dim)
{
    if (!is_real(where, "log_softmax", x))
        return NULL;
    trama_value *below = trama_sub_at(where, x, finite_max(where, x, 1, &dim));
    return trama_sub_at(where, below,
                        trama_log_at(where, trama_sum_at(where, trama_exp_at(where, below), 1, &dim, true)));
}

/* ---- Patterns by comparing indices ---- */

/* The mesh that a value is on; NULL where none is known yet. */
static const trama_mesh *mesh_of(const trama_value *v)
{
    const program_session *session = v->program->session;
    return v->mesh || !session || !v->computed ? v->mesh : session->mesh_of(session, v);
}

trama_value *pattern_for(trama_where where, trama_value *pattern, trama_value *x)
{
    const trama_mesh *mesh = pattern ? mesh_of(x) : NULL, *its = pattern ? mesh_of(pattern) : NULL;
    if (!mesh || !its || trama_mesh_equal(its, mesh))
        return pattern;
    trama_value *moved = program_record(NULL, where, &trama_op_reshard, 1, &pattern, NULL);
    if (!moved)
        return NULL;
    moved->mesh = mesh;
    program_lay_out(moved, layout_uniform(mesh, TRAMA_REPLICATE));
    moved->annotated.where = where;
    return program_run(moved);
}

trama_value *trama_one_hot_at(trama_where where, trama_value *labels, int64_t n, trama_dtype dtype)
{
    if (!labels)
        return NULL;
    if (n < 0 || !trama_dtype_is_integer(labels->dtype))
        return program_fail(labels->program, where, n < 0 ? TRAMA_E_ARGUMENT : TRAMA_E_DTYPE,
                            "one_hot of %s (%s): labels are integers, of %lld classes", labels->name,
                            trama_dtype_name(labels->dtype), (long long)n);
    trama_value *classes = pattern_for(where, trama_arange_at(where, labels->program, labels->dtype, n, 0, 1), labels);
    return trama_cast_at(where, trama_equal_at(where, trama_unsqueeze_at(where, labels, -1), classes), dtype);
}

/* [rows, columns]: whether column - row, the number of the diagonal, is `wanted` of diagonal. */
static trama_value *diagonals(trama_where where, trama_program *p, int64_t rows, int64_t columns, int64_t diagonal,
                              trama_value *(*wanted)(trama_where, trama_value *, trama_value *))
{
    trama_value *row = trama_arange_at(where, p, TRAMA_I64, rows, (double)diagonal, 1);
    return wanted(where, trama_arange_at(where, p, TRAMA_I64, columns, 0, 1), trama_unsqueeze_at(where, row, 1));
}

trama_value *trama_eye_at(trama_where where, trama_program *program, trama_dtype dtype, int64_t rows, int64_t columns)
{
    return trama_cast_at(where, diagonals(where, program, rows, columns, 0, trama_equal_at), dtype);
}

static trama_value *triangle(trama_where where, const char *name, trama_value *x, int64_t diagonal,
                             trama_value *(*wanted)(trama_where, trama_value *, trama_value *))
{
    if (!x)
        return NULL;
    const int n = x->shape.ndim;
    if (n < 2 || x->shape.dim[n - 2] == TRAMA_ANY || x->shape.dim[n - 1] == TRAMA_ANY)
        return program_fail(x->program, where, TRAMA_E_SHAPE,
                            "%s of %s: the last two dims are a matrix of known extents", name, x->name);
    trama_value *kept = diagonals(where, x->program, x->shape.dim[n - 2], x->shape.dim[n - 1], diagonal, wanted);
    return trama_masked_fill_at(where, x, pattern_for(where, trama_logical_not_at(where, kept), x), 0);
}

trama_value *trama_tril_at(trama_where where, trama_value *x, int64_t diagonal)
{
    return triangle(where, "tril", x, diagonal, trama_less_equal_at);
}

trama_value *trama_triu_at(trama_where where, trama_value *x, int64_t diagonal)
{
    return triangle(where, "triu", x, diagonal, trama_greater_equal_at);
}
