/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of x at indices that are known while loading: each run of neighbours is one window. */
#include "onnx_ops.h"

enum { MOST_RUNS = 64, MOST_TAKEN = 1 << 26 };

/* The end of the run of neighbours that begins at indices[from]. */
static int64_t run_end(const int64_t *indices, int64_t from, int64_t count)
{
    int64_t to = from + 1;
    while (to < count && indices[to] == indices[to - 1] + 1)
        to++;
    return to;
}

trama_value *build_take(onnx_node *n, trama_value *x, int dim, int64_t count, const int64_t *indices)
{
    trama_value *all = NULL;
    int runs = 0;
    if (!x || !count)
        return x ? trama_slice_at(n->where, x, dim, 0, 0) : NULL;
    for (int64_t from = 0, to; from < count; from = to) {
        to = run_end(indices, from, count);
        if (runs++ == MOST_RUNS)
            return node_fail(n, TRAMA_E_UNSUPPORTED, "indices that are not in order, in more than %d runs", MOST_RUNS);
        trama_value *part = trama_slice_at(n->where, x, dim, indices[from], to - from);
        part = from || to < count ? trama_pad_at(n->where, part, dim, from, count - to) : part;
        all = all ? trama_add_at(n->where, all, part) : part;
    }
    return all;
}

static int64_t *index_room(onnx_node *n, int64_t count)
{
    int64_t *indices = count <= MOST_TAKEN ? trama_try_alloc((size_t)count * sizeof *indices) : NULL;
    return indices ? indices : node_fail(n, TRAMA_E_MEMORY, "there is no memory for %lld indices", (long long)count);
}

/* ---- Slices of any step ---- */

trama_value *build_steps(onnx_node *n, trama_value *x, int dim, const slice_range *range)
{
    int64_t *indices = x ? index_room(n, range->extent) : NULL;
    for (int64_t i = 0; indices && i < range->extent; i++)
        indices[i] = range->from + i * range->step;
    trama_value *y = indices ? build_take(n, x, dim, range->extent, indices) : NULL;
    free(indices);
    return y;
}

/* ---- Gather ---- */

/* Dim `dim` of x becomes the dims of the indices. */
static trama_shape gathered(trama_shape x, int dim, trama_shape indices)
{
    trama_shape shape = {.ndim = x.ndim - 1 + indices.ndim};
    for (int d = 0; d < shape.ndim && d < TRAMA_MAX_NDIM; d++)
        shape.dim[d] = d < dim ? x.dim[d] : d < dim + indices.ndim ? indices.dim[d - dim] : x.dim[d - indices.ndim + 1];
    return shape;
}

ONNX_BUILD(build_gather)
{
    trama_value *x = node_in(n, 0);
    const host_tensor *at = node_host(n, 1);
    int dim = x ? node_dim(n, attribute_int(n, "axis", 0), x->shape.ndim) : -1;
    if (dim < 0)
        return;
    int64_t extent = x->shape.dim[dim];
    if (!at || at->open || extent == TRAMA_ANY || x->shape.ndim - 1 + at->shape.ndim > TRAMA_MAX_NDIM) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "the indices must be constants, of a dim whose extent is known");
        return;
    }
    int64_t *indices = index_room(n, at->count);
    for (int64_t i = 0; indices && i < at->count; i++) {
        int64_t index = host_get(at, i).i;
        indices[i] = index < 0 ? index + extent : index;
        if (index < -extent || index >= extent)
            node_fail(n, TRAMA_E_ARGUMENT, "the index %lld is not there (%lld elements)", (long long)index,
                      (long long)extent);
    }
    trama_value *y = indices ? build_take(n, x, dim, at->count, indices) : NULL;
    if (y)
        out[0] = at->shape.ndim == 1 ? y : trama_reshape_at(n->where, y, gathered(x->shape, dim, at->shape));
    free(indices);
}

/* ---- Pads that repeat x ---- */

/* The index in a dim of `extent` elements from which a pad takes element i. */
static int64_t edge_index(int64_t i, int64_t extent)
{
    return max_i64(0, min_i64(i, extent - 1));
}

static int64_t reflect_index(int64_t i, int64_t extent)
{
    int64_t period = max_i64(2 * (extent - 1), 1), at = (i % period + period) % period;
    return at < extent ? at : period - at;
}

static int64_t wrap_index(int64_t i, int64_t extent)
{
    return (i % extent + extent) % extent;
}

trama_value *build_repeating_pad(onnx_node *n, trama_value *x, const int64_t *offset, trama_shape shape)
{
    static const struct {
        const char *mode;
        int64_t (*index)(int64_t i, int64_t extent);
    } modes[] = {{"edge", edge_index}, {"reflect", reflect_index}, {"wrap", wrap_index}};
    int m = 0;
    while (m < 3 && !attribute_is(n, "mode", "constant", modes[m].mode))
        m++;
    if (m == 3)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "'mode' is none of constant, edge, reflect and wrap");
    for (int d = 0; x && d < shape.ndim; d++) {
        int64_t extent = x->shape.dim[d];
        if (shape.dim[d] == extent && !offset[d])
            continue;
        int64_t *indices = extent > 0 ? index_room(n, shape.dim[d]) : NULL;
        for (int64_t i = 0; indices && i < shape.dim[d]; i++)
            indices[i] = modes[m].index(i + offset[d], extent);
        x = indices ? build_take(n, x, d, shape.dim[d], indices)
                    : node_fail(n, TRAMA_E_SHAPE, "dim %d has no elements to repeat", d);
        free(indices);
    }
    return x;
}
