/* SPDX-License-Identifier: Apache-2.0 */
/* Average and max pools, one spatial dim after the other: sums and maxima of windows are those of rows of columns. */
#include "onnx_windows.h"

#include <math.h>

/* A constant of numbers along one dim of x. */
static trama_value *along(onnx_node *n, const trama_value *x, int dim, const double *data)
{
    trama_shape shape = {.ndim = x->shape.ndim};
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = d == dim ? x->shape.dim[d] : 1;
    return build_constant(n, x->dtype, shape, data);
}

/* The elements from the first of the first window to the last of the last one. */
static int64_t reach(const window_dim *d)
{
    return d->out ? (d->out - 1) * d->stride + (d->kernel - 1) * d->dilation + 1 : 0;
}

/* ---- Average ---- */

/* One over the elements that each window counts. */
static void shares(const window_dim *d, bool with_padding, double *share)
{
    int64_t low = with_padding ? -d->before : 0, high = with_padding ? d->in + d->after : d->in;
    for (int64_t i = 0; i < d->out; i++) {
        int64_t count = 0;
        for (int64_t k = 0; k < d->kernel; k++) {
            int64_t at = i * d->stride + k * d->dilation - d->before;
            count += at >= low && at < high;
        }
        share[i] = 1 / (double)count;
    }
}

static trama_value *average(onnx_node *n, trama_value *x, int dim, const window_dim *d, double *numbers)
{
    trama_value *sum = NULL;
    for (int64_t k = 0; k < d->kernel && x; k++) {
        trama_value *term = window_along(n, x, dim, k * d->dilation - d->before, d->out, d->stride);
        sum = sum ? trama_add_at(n->where, sum, term) : term;
    }
    shares(d, attribute_int(n, "count_include_pad", 0), numbers);
    return sum ? trama_mul_at(n->where, sum, along(n, sum, dim, numbers)) : NULL;
}

/* ---- Maximum ---- */

/* The smallest number of a type, added to the zeros that a window has outside of x. */
static double lowest(trama_dtype dtype)
{
    return trama_dtype_is_float(dtype) ? -INFINITY : dtype == TRAMA_I32 ? -0x1p31 : dtype == TRAMA_I64 ? -0x1p63 : 0;
}

/* The elements that windows read, `length` from the padding on, lowest outside of x. */
static trama_value *padded(onnx_node *n, trama_value *x, int dim, const window_dim *d, int64_t length, double *numbers)
{
    trama_value *y = window_along(n, x, dim, -d->before, length, 1);
    for (int64_t i = 0; i < length; i++)
        numbers[i] = i >= d->before && i < d->before + d->in ? 0 : lowest(x->dtype);
    bool leaves = d->before || length > d->in;
    return leaves && y ? trama_add_at(n->where, y, along(n, y, dim, numbers)) : y;
}

/* The maxima of 1, 2, 4, .. neighbours, the last step with an overlap; then every stride-th of them. */
static trama_value *maximum(onnx_node *n, trama_value *x, int dim, const window_dim *d, double *numbers)
{
    int64_t length = reach(d);
    trama_value *y = padded(n, x, dim, d, length, numbers);
    for (int64_t taps = 1, step; taps < d->kernel; taps += step) {
        step = min_i64(taps, d->kernel - taps);
        length -= step * d->dilation;
        trama_value *left = window_along(n, y, dim, 0, length, 1);
        y = trama_maximum_at(n->where, left, window_along(n, y, dim, step * d->dilation, length, 1));
    }
    return window_along(n, y, dim, 0, d->out, d->stride);
}

/* ---- Both ---- */

typedef trama_value *pool_along(onnx_node *n, trama_value *x, int dim, const window_dim *d, double *numbers);

static trama_value *pool(onnx_node *n, pool_along *apply)
{
    trama_value *x = node_in(n, 0);
    window_geometry g;
    if (!x || !windows_of(n, x->shape, NULL, &g))
        return NULL;
    for (int i = 0; i < g.n && x; i++) {
        double *numbers = trama_try_alloc((size_t)reach(&g.dim[i]) * sizeof *numbers);
        if (!numbers)
            return node_fail(n, TRAMA_E_MEMORY, "there is no memory for %lld windows", (long long)g.dim[i].out);
        x = apply(n, x, i + 2, &g.dim[i], numbers);
        free(numbers);
    }
    return x;
}

ONNX_BUILD(build_average_pool)
{
    out[0] = pool(n, average);
}

ONNX_BUILD(build_max_pool)
{
    out[0] = pool(n, maximum);
}
