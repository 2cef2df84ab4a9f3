/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of convolutions and pools: how they lie on the spatial dims, and the elements that one of their places
 * reads. */
#include "onnx_windows.h"

/* ---- Geometry ---- */

/* The number of windows along one dim. With ceil_mode a last window may reach beyond the padding, but not begin there.
 */
static int64_t windows(const window_dim *d, bool up)
{
    int64_t span = d->in + d->before + d->after - (d->kernel - 1) * d->dilation - 1;
    int64_t out = span < 0 ? 0 : span / d->stride + 1;
    if (up && span >= 0 && span % d->stride && out * d->stride < d->in + d->before)
        out++;
    return out;
}

/* SAME_UPPER and SAME_LOWER: as many windows as strides, the odd element of padding at the end or at the beginning. */
static void pad_same(window_dim *d, bool lower)
{
    int64_t out = (d->in + d->stride - 1) / d->stride;
    int64_t total = max_i64((out - 1) * d->stride + (d->kernel - 1) * d->dilation + 1 - d->in, 0);
    d->before = lower ? total - total / 2 : total / 2;
    d->after = total - d->before;
}

/* Extents and kernels are bounded, since a builder appends an op for each place of a kernel. */
static bool is_sound(const window_dim *d)
{
    enum { MOST_EXTENT = 1 << 26, MOST_KERNEL = 1 << 10, MOST = 1 << 20 };
    return d->in >= 0 && d->in <= MOST_EXTENT && d->kernel >= 1 && d->kernel <= MOST_KERNEL && d->stride >= 1 &&
           d->stride <= MOST && d->dilation >= 1 && d->dilation <= MOST && d->before >= 0 && d->before <= MOST &&
           d->after >= 0 && d->after <= MOST;
}

/* A list of one number a spatial dim, or of two; `otherwise` where it is not given. */
static bool spatial_list(onnx_node *n, const char *name, int count, int64_t otherwise, onnx_ints *list)
{
    *list = attribute_ints(n, name);
    for (; !list->given && list->n < count; list->n++)
        list->at[list->n] = otherwise;
    return list->n == count || node_fail(n, TRAMA_E_SHAPE, "'%s' has %d numbers instead of %d", name, list->n, count);
}

bool windows_of(onnx_node *n, trama_shape x, const int64_t *kernel, window_geometry *g)
{
    onnx_ints shape, strides, dilations, pads;
    *g = (window_geometry){.n = x.ndim - 2};
    if (g->n < 1 || g->n > WINDOW_DIMS)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "operand 0 has %d dims instead of 3 to 5", x.ndim);
    if (!spatial_list(n, "kernel_shape", g->n, 1, &shape) || !spatial_list(n, "strides", g->n, 1, &strides) ||
        !spatial_list(n, "dilations", g->n, 1, &dilations) || !spatial_list(n, "pads", 2 * g->n, 0, &pads))
        return false;
    bool upper = attribute_is(n, "auto_pad", "NOTSET", "SAME_UPPER");
    bool lower = attribute_is(n, "auto_pad", "NOTSET", "SAME_LOWER");
    for (int i = 0; i < g->n; i++) {
        window_dim *d = &g->dim[i];
        *d = (window_dim){x.dim[i + 2],
                          kernel && !shape.given ? kernel[i] : shape.at[i],
                          strides.at[i],
                          dilations.at[i],
                          pads.at[i],
                          pads.at[i + g->n],
                          0};
        if (!is_sound(d) || (kernel && d->kernel != kernel[i]))
            return node_fail(n, TRAMA_E_UNSUPPORTED,
                             "dim %d: its extent is only known when fed or above 2^26, the kernel is above 1,024, or "
                             "stride, dilation or pads are wrong",
                             i + 2);
        if (upper || lower)
            pad_same(d, lower);
        d->out = windows(d, attribute_int(n, "ceil_mode", 0));
    }
    return true;
}

/* ---- Elements ---- */

/* Splits dim [a b] into [a, b], or joins dims [a, b] to [a b]. */
static trama_shape split_dim(trama_shape shape, int dim, int64_t inner)
{
    for (int d = shape.ndim++; d > dim; d--)
        shape.dim[d] = shape.dim[d - 1];
    shape.dim[dim] = inner ? shape.dim[dim] / inner : shape.dim[dim];
    shape.dim[dim + 1] = inner ? inner : 1;
    return shape;
}

trama_value *window_along(onnx_node *n, trama_value *x, int dim, int64_t from, int64_t count, int64_t step)
{
    int64_t offset[TRAMA_MAX_NDIM] = {0};
    if (!x)
        return NULL;
    trama_shape shape = x->shape;
    offset[dim] = from;
    shape.dim[dim] = count * step;
    bool whole = from == 0 && trama_shape_equal(shape, x->shape);
    trama_value *y = whole ? x : trama_window_at(n->where, x, offset, shape);
    if (step == 1 || !y)
        return y;
    y = trama_slice_at(n->where, trama_reshape_at(n->where, y, split_dim(shape, dim, step)), dim + 1, 0, 1);
    shape.dim[dim] = count;
    return trama_reshape_at(n->where, y, shape);
}

trama_value *spread_along(onnx_node *n, trama_value *x, int dim, int64_t at, int64_t count, int64_t step)
{
    int64_t offset[TRAMA_MAX_NDIM] = {0};
    if (!x)
        return NULL;
    trama_shape shape = x->shape;
    if (step > 1) {
        x = trama_reshape_at(n->where, x, split_dim(shape, dim, 0));
        shape.dim[dim] *= step;
        x = trama_reshape_at(n->where, trama_pad_at(n->where, x, dim + 1, 0, step - 1), shape);
    }
    offset[dim] = -at;
    shape.dim[dim] = count;
    return x ? trama_window_at(n->where, x, offset, shape) : NULL;
}
