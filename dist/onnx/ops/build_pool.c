/* SPDX-License-Identifier: Apache-2.0 */
/* Average and max pools. */
#include "onnx_windows.h"

static bool read_operand(onnx_node *n, trama_value **x, window_geometry *g, trama_windows *windows)
{
    *x = node_in(n, 0);
    if (!*x || !windows_of(n, (*x)->shape, NULL, g))
        return false;
    *windows = windows_as(g);
    windows->up = attribute_int(n, "ceil_mode", 0);
    return true;
}

ONNX_BUILD(build_average_pool)
{
    trama_value *x;
    window_geometry g;
    trama_windows windows;
    if (!read_operand(n, &x, &g, &windows))
        return;
    windows.padded = attribute_int(n, "count_include_pad", 0);
    out[0] = trama_mean_pool_at(n->where, x, &windows);
}

/* Indices into the whole of x: those into the spatial dims, and of the image and the channel. */
static trama_value *whole_index(onnx_node *n, trama_value *x, trama_value *index)
{
    trama_shape planes = {.ndim = x->shape.ndim, .dim = {x->shape.dim[0], x->shape.dim[1]}};
    int64_t elements = 1;
    for (int d = 2; d < planes.ndim; d++) {
        planes.dim[d] = 1;
        elements *= x->shape.dim[d];
    }
    trama_value *first =
        trama_arange_at(n->where, x->program, TRAMA_I64, planes.dim[0] * planes.dim[1], 0, (double)elements);
    return first ? trama_add_at(n->where, index, trama_reshape_at(n->where, first, planes)) : NULL;
}

ONNX_BUILD(build_max_pool)
{
    trama_value *x;
    window_geometry g;
    trama_windows windows;
    if (!read_operand(n, &x, &g, &windows))
        return;
    out[0] = trama_max_pool_at(n->where, x, &windows);
    bool indices = n->proto->n_output > 1 && *n->proto->output[1];
    if (indices && attribute_int(n, "storage_order", 0))
        node_fail(n, TRAMA_E_UNSUPPORTED, "indices are in row-major order; storage_order 1 asks for another");
    else if (indices && out[0])
        out[1] = whole_index(n, x, trama_result(out[0], 1));
}
