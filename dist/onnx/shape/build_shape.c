/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of ONNX that give a tensor another shape; and constants that builders need. */
#include "onnx_ops.h"
#include "trama_array.h"

#include <string.h>

/* ---- For other files ---- */

trama_value *build_constant(onnx_node *n, trama_dtype dtype, trama_shape shape, const double *data)
{
    host_tensor *t = host_create(dtype, shape);
    if (!t)
        return node_fail(n, TRAMA_E_MEMORY, "there is no memory for a constant");
    for (int64_t i = 0; i < t->count; i++)
        element_set(dtype, t->data, i, data[i]);
    trama_value *v = trama_constant_at(n->where, n->graph->program, dtype, shape, t->data);
    host_free(t);
    return v;
}

trama_value *build_arange(onnx_node *n, trama_dtype dtype, int64_t count, int ndim, int dim)
{
    if (count == TRAMA_ANY)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "the extent of dim %d is only known when fed", dim);
    enum { MOST = 1 << 26 };
    double *data = count <= MOST ? trama_try_alloc((size_t)count * sizeof *data) : NULL;
    if (!data)
        return node_fail(n, TRAMA_E_MEMORY, "there is no memory for %lld numbers", (long long)count);
    trama_shape shape = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        shape.dim[d] = d == dim ? count : 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = (double)i;
    trama_value *v = build_constant(n, dtype, shape, data);
    free(data);
    return v;
}

trama_value *build_reshaped(onnx_node *n, trama_value *x, int at, int ndim)
{
    if (!x)
        return NULL;
    if (x->shape.ndim > 1)
        return node_fail(n, TRAMA_E_SHAPE, "'%s' has %d dims instead of 1", x->name, x->shape.ndim);
    trama_shape shape = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        shape.dim[d] = d == at && x->shape.ndim ? x->shape.dim[0] : 1;
    return trama_reshape_at(n->where, x, shape);
}

/* ---- Extents of 1 ---- */

trama_shape shape_without(trama_shape shape, unsigned dims)
{
    trama_shape left = {0};
    for (int d = 0; d < shape.ndim; d++)
        if (!(dims >> d & 1))
            left.dim[left.ndim++] = shape.dim[d];
    return left;
}

static bool squeezed(onnx_node *n, trama_shape in, trama_shape *shape)
{
    onnx_ints axes = node_list(n, "axes", 1);
    unsigned dims = node_dims(n, &axes, in.ndim);
    for (int d = 0; d < in.ndim; d++) {
        dims |= !axes.given && in.dim[d] == 1 ? 1u << d : 0;
        if ((dims >> d & 1) && in.dim[d] != 1)
            return node_fail(n, TRAMA_E_SHAPE, "dim %d has the extent %lld, not 1", d, (long long)in.dim[d]);
    }
    *shape = shape_without(in, dims);
    return !n->graph->program->status;
}

static bool unsqueezed(onnx_node *n, trama_shape in, trama_shape *shape)
{
    onnx_ints axes = node_list(n, "axes", 1);
    if (in.ndim + axes.n > TRAMA_MAX_NDIM)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "the result has %d dims, and %d are the most", in.ndim + axes.n,
                         TRAMA_MAX_NDIM);
    *shape = (trama_shape){.ndim = in.ndim + axes.n};
    unsigned dims = node_dims(n, &axes, shape->ndim);
    for (int d = 0, from = 0; d < shape->ndim; d++)
        shape->dim[d] = dims >> d & 1 || from == in.ndim ? 1 : in.dim[from++];
    return !n->graph->program->status;
}

typedef bool reshaping(onnx_node *n, trama_shape in, trama_shape *shape);

static void build_reshaping(onnx_node *n, reshaping *to, trama_value **out)
{
    trama_value *x = node_in(n, 0);
    trama_shape shape;
    if (x && to(n, x->shape, &shape))
        out[0] = trama_reshape_at(n->where, x, shape);
}

static host_tensor *fold_reshaping(onnx_node *n, reshaping *to)
{
    trama_shape shape;
    host_tensor *t = to(n, node_shape(n, 0), &shape) ? fold_copy(n) : NULL;
    if (t)
        t->shape = shape;
    return t;
}

ONNX_BUILD(build_squeeze)
{
    build_reshaping(n, squeezed, out);
}

ONNX_FOLD(fold_squeeze)
{
    return fold_reshaping(n, squeezed);
}

ONNX_BUILD(build_unsqueeze)
{
    build_reshaping(n, unsqueezed, out);
}

ONNX_FOLD(fold_unsqueeze)
{
    return fold_reshaping(n, unsqueezed);
}

/* ---- Transpose ---- */

static bool permutation(onnx_node *n, int ndim, int *perm)
{
    onnx_ints list = attribute_ints(n, "perm");
    if (list.given && list.n != ndim)
        return node_fail(n, TRAMA_E_SHAPE, "'perm' has %d dims instead of %d", list.n, ndim);
    node_dims(n, &list, ndim);
    for (int d = 0; d < ndim; d++)
        perm[d] = list.given ? (int)list.at[d] : ndim - 1 - d;
    return !n->graph->program->status;
}

ONNX_BUILD(build_transpose)
{
    int perm[TRAMA_MAX_NDIM];
    trama_value *x = node_in(n, 0);
    if (x && permutation(n, x->shape.ndim, perm))
        out[0] = trama_transpose_at(n->where, x, perm);
}
