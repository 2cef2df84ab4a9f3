/* SPDX-License-Identifier: Apache-2.0 */
/* Products and reductions of ONNX. */
#include "onnx_ops.h"

/* ---- Products ---- */

ONNX_BUILD(build_matmul)
{
    trama_value *x = node_in(n, 0), *y = node_in(n, 1);
    out[0] = trama_matmul_at(n->where, x, y, false, false);
}

static trama_value *scaled(onnx_node *n, trama_value *x, double factor)
{
    return factor == 1 ? x : trama_scale_at(n->where, x, factor);
}

/* alpha op(a) op(b) + beta c */
ONNX_BUILD(build_gemm)
{
    trama_value *a = node_in(n, 0), *b = node_in(n, 1);
    if (a && b && (a->shape.ndim != 2 || b->shape.ndim != 2))
        node_fail(n, TRAMA_E_SHAPE, "operands of %d and %d dims are no matrices", a->shape.ndim, b->shape.ndim);
    trama_value *product =
        trama_matmul_at(n->where, a, b, attribute_int(n, "transA", 0), attribute_int(n, "transB", 0));
    out[0] = scaled(n, product, attribute_real(n, "alpha", 1));
    if (node_has(n, 2))
        out[0] = trama_add_at(n->where, out[0], scaled(n, node_in(n, 2), attribute_real(n, "beta", 1)));
}

/* ---- Reductions ---- */

trama_value *reduce_sum_square(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    return trama_sum_at(where, trama_square_at(where, x), n, dims, keep_dim);
}

trama_value *reduce_norm_2(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    return trama_sqrt_at(where, reduce_sum_square(where, x, n, dims, keep_dim));
}

trama_value *reduce_log_sum(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)
{
    return trama_log_at(where, trama_sum_at(where, x, n, dims, keep_dim));
}

ONNX_BUILD(build_reduce)
{
    trama_value *x = node_in(n, 0);
    onnx_ints axes = node_list(n, "axes", 1);
    int dims[ONNX_LIST];
    if (!x)
        return;
    for (int i = 0; i < axes.n; i++)
        dims[i] = node_dim(n, axes.at[i], x->shape.ndim);
    if (n->graph->program->status)
        return;
    if (!axes.n && attribute_int(n, "noop_with_empty_axes", 0)) {
        onnx_reducer *const same[] = {trama_sum_at, trama_mean_at, trama_max_at, trama_min_at, trama_prod_at};
        for (size_t i = 0; i < sizeof same / sizeof *same; i++)
            out[0] = n->op->reduce == same[i] ? x : out[0];
        if (!out[0])
            node_fail(n, TRAMA_E_UNSUPPORTED, "noop_with_empty_axes without axes");
        return;
    }
    out[0] = n->op->reduce(n->where, x, axes.n, dims, attribute_int(n, "keepdims", 1));
}

/* x [n, c, ...] to [n, c, 1, ...] */
ONNX_BUILD(build_global_pool)
{
    trama_value *x = node_in(n, 0);
    int dims[TRAMA_MAX_NDIM], count = 0;
    for (int d = 2; x && d < x->shape.ndim; d++)
        dims[count++] = d;
    if (x && !count)
        node_fail(n, TRAMA_E_SHAPE, "operand 0 has %d dims, and 3 are the least", x->shape.ndim);
    out[0] = n->op->reduce(n->where, x, count, dims, true);
}
