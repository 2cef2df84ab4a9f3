/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms: an op for each dim. */
#include <math.h>

#include "families.h"
#include "trama_complex.h"
#include "trama_fourier.h"

/* ---- Builders ---- */

/* A transform that is being built. */
typedef struct transform {
    trama_where where;
    const char *name;
    int n, dims[TRAMA_MAX_NDIM];
    int64_t extent; /* of the last dim, in real elements; -1: as it is */
    trama_fourier_norm norm;
    bool inverse;
} transform;

static bool list_dims(transform *t, const trama_value *x, int n, const int *dims)
{
    unsigned seen = 0;
    t->n = n ? n : x->shape.ndim;
    if (n < 0 || n > x->shape.ndim || (n && !dims))
        return program_fail(x->program, t->where, TRAMA_E_ARGUMENT, "%s of %s: %d dims of %d%s", t->name, x->name, n,
                            x->shape.ndim, n && !dims ? ", and their list is NULL" : ""),
               false;
    for (int i = 0; i < t->n; i++) {
        const int given = n ? dims[i] : i, d = given < 0 ? given + x->shape.ndim : given;
        if (d < 0 || d >= x->shape.ndim)
            return program_fail(x->program, t->where, TRAMA_E_SHAPE, "%s of %s: dim %d is not there (%d dims)", t->name,
                                x->name, given, x->shape.ndim),
                   false;
        if (seen >> d & 1)
            return program_fail(x->program, t->where, TRAMA_E_ARGUMENT, "%s of %s: dim %d is listed twice", t->name,
                                x->name, given),
                   false;
        if (x->shape.dim[d] == TRAMA_ANY)
            return program_fail(x->program, t->where, TRAMA_E_SHAPE,
                                "%s of %s: the extent of dim %d is only known when fed", t->name, x->name, given),
                   false;
        seen |= 1u << d;
        t->dims[i] = d;
    }
    return true;
}

static bool is_read(transform *t, const trama_value *x, int n, const int *dims)
{
    if (!x)
        return false;
    if ((unsigned)t->norm > TRAMA_FOURIER_FORWARD)
        return program_fail(x->program, t->where, TRAMA_E_ARGUMENT, "%s of %s: %d is no norm", t->name, x->name,
                            (int)t->norm),
               false;
    return list_dims(t, x, n, dims);
}

/* The factor of one dim of n elements. */
static double factor_of(const transform *t, int64_t n)
{
    const bool whole = t->norm == (t->inverse ? TRAMA_FOURIER_BACKWARD : TRAMA_FOURIER_FORWARD);
    return t->norm == TRAMA_FOURIER_ORTHO ? 1 / sqrt((double)n) : whole ? 1 / (double)n : 1;
}

static trama_value *transform_dim(const transform *t, trama_value *x, int d)
{
    if (!x)
        return NULL;
    const trama_attributes a = {.integer = {[FOURIER_AXIS] = d, [FOURIER_INVERSE] = t->inverse},
                                .real = {[FOURIER_FACTOR] = factor_of(t, x->shape.dim[d])}};
    return program_append(NULL, t->where, &trama_op_fft, 1, &x, &a);
}

/* The real transform of the last dim, with the attributes of its gradient. */
static trama_value *transform_last(const transform *t, trama_value *x)
{
    const int d = t->dims[t->n - 1];
    if (!x)
        return NULL;
    const int64_t n = t->inverse ? t->extent : x->shape.dim[d];
    const trama_attributes a = {.integer = {[FOURIER_AXIS] = d, [FOURIER_EXTENT] = n},
                                .real = {[FOURIER_FACTOR] = factor_of(t, n), [FOURIER_INNER] = t->inverse ? 2 : 1}};
    return program_append(NULL, t->where, t->inverse ? &trama_op_irfft : &trama_op_rfft, 1, &x, &a);
}

trama_value *trama_fft_at(trama_where where, trama_value *x, int n, const int *dims, trama_fourier_norm norm)
{
    transform t = {.where = where, .name = "fft", .norm = norm};
    if (!is_read(&t, x, n, dims))
        return NULL;
    for (int i = t.n - 1; i >= 0; i--)
        x = transform_dim(&t, x, t.dims[i]);
    return x;
}

trama_value *trama_ifft_at(trama_where where, trama_value *x, int n, const int *dims, trama_fourier_norm norm)
{
    transform t = {.where = where, .name = "ifft", .norm = norm, .inverse = true};
    if (!is_read(&t, x, n, dims))
        return NULL;
    for (int i = 0; i < t.n; i++)
        x = transform_dim(&t, x, t.dims[i]);
    return x;
}

static bool has_last(const transform *t, const trama_value *x)
{
    if (t->n == 0)
        program_fail(x->program, t->where, TRAMA_E_SHAPE, "%s of %s: it has no dims", t->name, x->name);
    return t->n > 0;
}

trama_value *trama_rfft_at(trama_where where, trama_value *x, int n, const int *dims, trama_fourier_norm norm)
{
    transform t = {.where = where, .name = "rfft", .norm = norm};
    if (!is_read(&t, x, n, dims) || !has_last(&t, x))
        return NULL;
    x = transform_last(&t, x);
    for (int i = t.n - 2; i >= 0; i--)
        x = transform_dim(&t, x, t.dims[i]);
    return x;
}

trama_value *trama_irfft_at(trama_where where, trama_value *x, int64_t extent, int n, const int *dims,
                            trama_fourier_norm norm)
{
    transform t = {.where = where, .name = "irfft", .norm = norm, .inverse = true, .extent = extent};
    if (!is_read(&t, x, n, dims) || !has_last(&t, x))
        return NULL;
    for (int i = 0; i < t.n - 1; i++)
        x = transform_dim(&t, x, t.dims[i]);
    return transform_last(&t, x);
}

/* ---- Rules and element types ---- */

/* The axis has n elements on the real side and n / 2 + 1 on the complex one. */
trama_status rfft_infer(trama_rule *rule, const trama_node *node)
{
    const trama_value *x = node->in[0];
    const int64_t axis = node->attributes->integer[FOURIER_AXIS], n = node->attributes->integer[FOURIER_EXTENT];
    const bool inverse = node->op == &trama_op_irfft;
    if (axis < 0 || axis >= x->shape.ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: axis is %lld, and it has %d dims", node->op->name,
                          x->name, (long long)axis, x->shape.ndim);
    const int64_t is = x->shape.dim[axis], due = inverse ? n / 2 + 1 : n;
    if (n < 1 || is != due)
        return trama_fail(node->where, TRAMA_E_SHAPE,
                          "%s of %s: %lld real elements have a spectrum of %lld; dim %lld has %lld elements, not %lld",
                          node->op->name, x->name, (long long)n, (long long)(n / 2 + 1), (long long)axis, (long long)is,
                          (long long)due);
    for (int d = 0; d < x->shape.ndim; d++) {
        const int f = rule_add_factor(rule, x->shape.dim[d]);
        const int made = d == axis ? rule_add_factor(rule, inverse ? n : n / 2 + 1) : f;
        rule->factor[f].whole = rule->factor[made].whole = d == axis;
        rule_add_dim(&rule->tensor[0], f);
        rule_add_dim(&rule->tensor[1], made);
    }
    return TRAMA_OK;
}

trama_status rfft_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *x = node->in[0];
    if (x->dtype != TRAMA_F32 && x->dtype != TRAMA_F64)
        return trama_fail(node->where, TRAMA_E_DTYPE, "rfft of %s (%s): it takes f32 and f64: cast it", x->name,
                          trama_dtype_name(x->dtype));
    *dtype = x->dtype == TRAMA_F32 ? TRAMA_C64 : TRAMA_C128;
    return TRAMA_OK;
}

/* ---- Gradients: the adjoint maps ---- */

void fft_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_attributes a = *node->attributes;
    a.integer[FOURIER_INVERSE] = !a.integer[FOURIER_INVERSE];
    d_in[0] = program_append(NULL, node->where, &trama_op_fft, 1, d_out, &a);
}

void rfft_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const trama_op *reverse = node->op == &trama_op_irfft ? &trama_op_rfft : &trama_op_irfft;
    d_in[0] = program_append(NULL, node->where, reverse, 1, d_out, node->attributes);
}
