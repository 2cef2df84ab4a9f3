/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of ONNX that find elements by index. */
#include "onnx_ops.h"
#include "trama_array.h"

/* Indices that are known while loading are there. */
static bool are_there(onnx_node *n, int operand, int64_t extent)
{
    const host_tensor *at = node_host(n, operand);
    for (int64_t i = 0; at && !at->open && extent != TRAMA_ANY && i < at->count; i++) {
        int64_t index = host_get(at, i).i;
        if (index < -extent || index >= extent)
            return node_fail(n, TRAMA_E_ARGUMENT, "the index %lld is not there (%lld elements)", (long long)index,
                             (long long)extent);
    }
    return true;
}

/* The attribute axis, where it is a dim of operand 0 that the indices of operand 1 point into; -1 after an error. */
static int indexed_dim(onnx_node *n, const trama_value *x)
{
    int dim = x ? node_dim(n, attribute_int(n, "axis", 0), x->shape.ndim) : -1;
    return dim >= 0 && are_there(n, 1, x->shape.dim[dim]) ? dim : -1;
}

ONNX_BUILD(build_gather)
{
    trama_value *x = node_in(n, 0);
    int dim = indexed_dim(n, x);
    if (dim >= 0)
        out[0] = trama_gather_at(n->where, x, node_in(n, 1), dim);
}

/* x cut to the extents of the index, but for dim. */
ONNX_BUILD(build_gather_elements)
{
    trama_value *x = node_in(n, 0), *index = node_in(n, 1);
    int dim = index ? indexed_dim(n, x) : -1;
    if (dim < 0)
        return;
    for (int d = 0; d < x->shape.ndim && d < index->shape.ndim && x; d++)
        if (d != dim && index->shape.dim[d] < x->shape.dim[d])
            x = trama_slice_at(n->where, x, d, 0, index->shape.dim[d]);
    out[0] = trama_gather_along_at(n->where, x, index, dim);
}

ONNX_BUILD(build_gather_nd)
{
    out[0] = trama_gather_nd_at(n->where, node_in(n, 0), node_in(n, 1), (int)attribute_int(n, "batch_dims", 0));
}

static bool reduction_of(onnx_node *n, trama_scatter_how *how)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (int i = 0; i < 5; i++)
        if (attribute_is(n, "reduction", "none", names[i])) {
            *how = (trama_scatter_how)i;
            return true;
        }
    return node_fail(n, TRAMA_E_ARGUMENT, "'reduction' is none of none, add, mul, max and min");
}

ONNX_BUILD(build_scatter_elements)
{
    trama_scatter_how how = TRAMA_SCATTER_SET;
    trama_value *x = node_in(n, 0);
    int dim = indexed_dim(n, x);
    if (dim >= 0 && reduction_of(n, &how))
        out[0] = trama_scatter_along_at(n->where, x, node_in(n, 1), node_in(n, 2), dim, how);
}

ONNX_BUILD(build_scatter_nd)
{
    trama_scatter_how how = TRAMA_SCATTER_SET;
    if (reduction_of(n, &how))
        out[0] = trama_scatter_nd_at(n->where, node_in(n, 0), node_in(n, 1), node_in(n, 2), how);
}
