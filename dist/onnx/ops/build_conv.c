/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions. */
#include "onnx_windows.h"

/* Operands x and w, and their windows; the extents of w after the first two are the kernel. */
static bool read_operands(onnx_node *n, trama_value **x, trama_value **w, window_geometry *g, trama_windows *windows)
{
    *x = node_in(n, 0);
    *w = node_in(n, 1);
    if (!*x || !*w)
        return false;
    if ((*x)->shape.ndim != (*w)->shape.ndim)
        return node_fail(n, TRAMA_E_SHAPE, "operands of %d and %d dims", (*x)->shape.ndim, (*w)->shape.ndim);
    if (!windows_of(n, (*x)->shape, (*w)->shape.dim + 2, g))
        return false;
    *windows = windows_as(g);
    windows->groups = attribute_int(n, "group", 1);
    return windows->groups > 0 || node_fail(n, TRAMA_E_SHAPE, "group is %lld", (long long)windows->groups);
}

static trama_value *bias_of(onnx_node *n)
{
    return node_has(n, 2) ? node_in(n, 2) : NULL;
}

ONNX_BUILD(build_conv)
{
    trama_value *x, *w;
    window_geometry g;
    trama_windows windows;
    if (read_operands(n, &x, &w, &g, &windows))
        out[0] = trama_conv_at(n->where, x, w, bias_of(n), &windows);
}

/* Sets the padding, or the elements at the end, to those that output_padding, output_shape or auto_pad ask for. */
static bool pad_result(onnx_node *n, const window_geometry *g, trama_windows *windows)
{
    onnx_ints more = attribute_ints(n, "output_padding"), given = attribute_ints(n, "output_shape");
    bool upper = attribute_is(n, "auto_pad", "NOTSET", "SAME_UPPER");
    bool same = upper || attribute_is(n, "auto_pad", "NOTSET", "SAME_LOWER");
    if ((more.given && more.n != g->n) || (given.given && given.n != g->n && given.n != g->n + 2))
        return node_fail(n, TRAMA_E_SHAPE, "output_padding or output_shape has another length");
    for (int i = 0; i < g->n; i++) {
        const window_dim *d = &g->dim[i];
        windows->more[i] = more.given ? more.at[i] : 0;
        if (!given.given && !same)
            continue;
        int64_t all = d->stride * (d->in - 1) + windows->more[i] + (d->kernel - 1) * d->dilation + 1;
        int64_t extent = given.given ? given.at[given.n - g->n + i] : d->in * d->stride;
        int64_t total = max_i64(all - extent, 0);
        windows->before[i] = upper ? total / 2 : total - total / 2;
        windows->after[i] = all - extent - windows->before[i];
    }
    return true;
}

ONNX_BUILD(build_conv_transpose)
{
    trama_value *x, *w;
    window_geometry g;
    trama_windows windows;
    if (read_operands(n, &x, &w, &g, &windows) && pad_result(n, &g, &windows))
        out[0] = trama_conv_transposed_at(n->where, x, w, bias_of(n), &windows);
}
