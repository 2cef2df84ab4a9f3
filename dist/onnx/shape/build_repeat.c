/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that repeat elements, or make as many as they are told: Expand, Tile, ConstantOfShape, Range. Extents that are
 * only known when fed come from a value that has them. */
#include "onnx_ops.h"
#include "trama_array.h"

/* The shape of x and another one together, aligned at the right: extents of 1 give way. */
static trama_shape together(trama_shape a, trama_shape b)
{
    trama_shape shape = a.ndim > b.ndim ? a : b;
    for (int d = 1; d <= a.ndim && d <= b.ndim; d++)
        if (shape.dim[shape.ndim - d] == 1)
            shape.dim[shape.ndim - d] = a.dim[a.ndim - d] == 1 ? b.dim[b.ndim - d] : a.dim[a.ndim - d];
    return shape;
}

trama_value *build_broadcast(onnx_node *n, trama_value *x, trama_shape shape)
{
    return x ? trama_broadcast_to_at(n->where, x, together(x->shape, shape)) : NULL;
}

/* ---- Extents that are only known when fed ---- */

/* The vector of trues that is as long as dim d of the node's result is to be. */
static trama_value *trues(onnx_node *n, int64_t origin, int d)
{
    trama_value *v = onnx_trues_of(n->graph, origin);
    if (!v && !n->graph->program->status)
        node_fail(n, TRAMA_E_UNSUPPORTED,
                  "the extent of dim %d is computed of some that are only known when fed; give dims extents in the "
                  "options",
                  d);
    return v;
}

trama_value *build_pattern(onnx_node *n, int ndim, const int64_t *origin)
{
    trama_value *pattern = NULL;
    for (int d = 0; d < ndim; d++) {
        trama_value *v = origin[d] ? trues(n, origin[d], d) : NULL;
        v = v ? build_reshaped(n, v, d, ndim) : NULL;
        pattern = v && pattern ? trama_logical_and_at(n->where, pattern, v) : v ? v : pattern;
    }
    return pattern;
}

/* x, repeated along dims whose extents have the origins [ndim of x]; 0: not along this one. */
static trama_value *repeat_as_fed(onnx_node *n, trama_value *x, const int64_t *origin)
{
    trama_value *pattern = x ? build_pattern(n, x->shape.ndim, origin) : NULL;
    return pattern ? trama_select_at(n->where, pattern, x, x) : x;
}

trama_value *build_count(onnx_node *n, trama_dtype dtype, int64_t origin, int d)
{
    trama_value *v = trues(n, origin, d);
    v = v ? trama_cast_at(n->where, v, TRAMA_I64) : NULL;
    v = v ? trama_cumsum_at(n->where, v, 0, true, false) : NULL;
    return v && dtype != TRAMA_I64 ? trama_cast_at(n->where, v, dtype) : v;
}

/* Whether dim d of x has the extent of that origin. */
static bool is_extent(const onnx_node *n, const trama_value *x, int d, int64_t origin)
{
    return x->shape.dim[d] == TRAMA_ANY && onnx_origin(n->graph, x, d) == origin;
}

/* ---- Ops ---- */

/* A list of extents as a shape; an extent that is only known when fed is 1, since it does not repeat. */
static bool extents(onnx_node *n, const onnx_ints *list, trama_shape *shape)
{
    text why = {0};
    if (list->n > TRAMA_MAX_NDIM)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "the result has %d dims, and %d are the most", list->n,
                         TRAMA_MAX_NDIM);
    *shape = (trama_shape){.ndim = list->n};
    for (int d = 0; d < list->n; d++)
        shape->dim[d] = list->open[d] ? 1 : list->at[d];
    bool fits = shape_check(*shape, TRAMA_F64, false, &why);
    if (!fits)
        node_fail(n, TRAMA_E_SHAPE, "extents of the result: %s", why.at);
    free(why.at);
    return fits;
}

ONNX_BUILD(build_expand)
{
    trama_value *x = node_in(n, 0);
    onnx_ints list = node_extents(n, 1, "shape");
    trama_shape shape;
    if (!x || !extents(n, &list, &shape))
        return;
    x = build_broadcast(n, x, shape);
    int64_t origin[TRAMA_MAX_NDIM] = {0};
    const int more = x ? x->shape.ndim - list.n : 0;
    for (int i = 0; x && i < list.n; i++)
        origin[more + i] = is_extent(n, x, more + i, list.open[i]) ? 0 : list.open[i];
    out[0] = repeat_as_fed(n, x, origin);
}

ONNX_BUILD(build_tile)
{
    trama_value *x = node_in(n, 0);
    const onnx_ints repeats = node_extents(n, 1, "repeats");
    if (x && repeats.n != x->shape.ndim)
        node_fail(n, TRAMA_E_SHAPE, "%d repetitions of %d dims", repeats.n, x->shape.ndim);
    for (int d = 0; x && d < repeats.n && !n->graph->program->status; d++)
        if (repeats.open[d] && x->shape.dim[d] != 1)
            node_fail(n, TRAMA_E_UNSUPPORTED, "dim %d would be repeated as often as is only known when fed", d);
        else if (!repeats.open[d] && repeats.at[d] != 1)
            x = trama_repeat_at(n->where, x, d, repeats.at[d]);
    out[0] = repeat_as_fed(n, x, repeats.open);
}

ONNX_BUILD(build_constant_of_shape)
{
    onnx_ints list = node_extents(n, 0, "shape");
    trama_shape shape;
    host_tensor *value = fold_fill_value(n);
    if (value && extents(n, &list, &shape))
        out[0] = repeat_as_fed(n, trama_fill_at(n->where, n->graph->program, value->dtype, shape, host_get(value, 0).r),
                               list.open);
    host_free(value);
}

/* The numbers from the start on, as many as are told. */
static trama_value *count_on(onnx_node *n, const number *start, const number *many)
{
    const trama_dtype dtype = node_host(n, 0)->dtype;
    trama_value *v = many->open ? build_count(n, dtype, many->open, 0) : build_arange(n, dtype, many->i, 1, 0);
    if (!v || (!start->open && start->r == 0))
        return v;
    return trama_add_at(n->where, v, trama_reshape_at(n->where, node_in(n, 0), TRAMA_SCALAR));
}

/* start, start + 1, .. below an extent; fold_range makes others. */
ONNX_BUILD(build_range)
{
    number x[3];
    for (int i = 0; i < 3; i++) {
        const host_tensor *t = node_host(n, i);
        if (!t || t->count != 1) {
            node_fail(n, TRAMA_E_UNSUPPORTED, "operand %d must be a constant, one number", i);
            return;
        }
        x[i] = host_get(t, 0);
    }
    if (!x[0].open && !x[1].open && !x[2].open)
        node_fail(n, TRAMA_E_UNSUPPORTED, "its operands are parameters; they must be constants");
    else if (!x[1].open || x[2].open || x[2].r != 1)
        node_fail(n, TRAMA_E_UNSUPPORTED, "numbers up to an extent that is only known when fed go on by 1");
    else {
        const bool at_0 = !x[0].open && x[0].r == 0;
        const number many = at_0 ? x[1] : onnx_difference_of(n->graph, (number[]){x[1], x[0]});
        out[0] = count_on(n, &x[0], &many);
    }
}
