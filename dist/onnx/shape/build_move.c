/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of ONNX that cut, join and rearrange tensors. */
#include <math.h>

#include "onnx_ops.h"
#include "trama_array.h"

/* ---- Windows ---- */

/* The window of x along one dim; x itself where it is all of it. */
static trama_value *cut(onnx_node *n, trama_value *x, int dim, int64_t from, int64_t extent)
{
    bool whole = x && from == 0 && extent == x->shape.dim[dim];
    return whole ? x : trama_slice_at(n->where, x, dim, from, extent);
}

/* All operands, which the caller frees. */
static trama_value **all_of(onnx_node *n)
{
    trama_value **x = trama_alloc((size_t)node_inputs(n) * sizeof *x);
    for (int i = 0; i < node_inputs(n); i++)
        x[i] = node_in(n, i);
    return x;
}

ONNX_BUILD(build_concat)
{
    trama_value **x = all_of(n);
    int dim = node_inputs(n) && x[0] ? node_dim(n, attribute_int(n, "axis", 1), x[0]->shape.ndim) : -1;
    if (dim >= 0)
        out[0] = trama_concat_at(n->where, dim, node_inputs(n), x);
    if (out[0] && node_inputs(n) == 2 && out[0]->shape.dim[dim] == TRAMA_ANY)
        onnx_name_sum(n->graph, out[0], dim, x);
    free(x);
}

ONNX_BUILD(build_einsum)
{
    char *equation = attribute_text(n, "equation");
    trama_value **x = all_of(n);
    if (equation)
        out[0] = trama_einsum_at(n->where, equation, node_inputs(n), x);
    free(x);
    free(equation);
}

/* The extents of the parts: given, or equal but for a smaller last one. */
static onnx_ints parts_of(onnx_node *n, int64_t extent)
{
    onnx_ints parts = node_list(n, "split", 1);
    if (parts.given)
        return parts;
    int64_t count = attribute_int(n, "num_outputs", (int64_t)n->proto->n_output);
    if (count < 1 || count > ONNX_LIST || extent < 0) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "%lld parts of the extent %lld", (long long)count, (long long)extent);
        return parts;
    }
    int64_t part = (extent + count - 1) / count;
    for (; parts.n < count; parts.n++, extent -= part)
        parts.at[parts.n] = min_i64(part, max_i64(extent, 0));
    return parts;
}

ONNX_BUILD(build_split)
{
    trama_value *x = node_in(n, 0);
    int dim = x ? node_dim(n, attribute_int(n, "axis", 0), x->shape.ndim) : -1;
    if (dim < 0)
        return;
    onnx_ints parts = parts_of(n, x->shape.dim[dim]);
    int64_t from = 0;
    for (int i = 0; i < parts.n; from += parts.at[i++])
        if (i < (int)n->proto->n_output)
            out[i] = cut(n, x, dim, from, parts.at[i]);
    if (from != x->shape.dim[dim] || parts.n != (int)n->proto->n_output)
        node_fail(n, TRAMA_E_SHAPE, "%d parts of %lld elements for %zu outputs of %lld", parts.n, (long long)from,
                  n->proto->n_output, (long long)x->shape.dim[dim]);
}

/* Elements of dim d by their numbers. */
static trama_value *pick(onnx_node *n, trama_value *x, int d, const slice_range *range)
{
    trama_value *at = range->origin
                          ? build_count(n, TRAMA_I64, range->origin, d)
                          : trama_fill_at(n->where, n->graph->program, TRAMA_I64, TRAMA_SHAPE(1), (double)range->from);
    return at ? trama_gather_at(n->where, x, at, d) : NULL;
}

static void *other_extent(onnx_node *n, int d)
{
    return node_fail(n, TRAMA_E_UNSUPPORTED, "dim %d is sliced to another extent, and both are only known when fed", d);
}

/* Elements of dim d from an extent on. */
static trama_value *pick_from(onnx_node *n, trama_value *x, int d, const slice_range *range)
{
    trama_onnx *graph = n->graph;
    const int64_t extent = x->shape.dim[d];
    const number start = range->start > 0 ? (number){.open = range->start} : number_of(-range->start),
                 all = extent == TRAMA_ANY ? (number){.open = onnx_origin(graph, x, d)} : number_of(extent),
                 end = range->origin ? (number){.open = range->origin} : all,
                 many = onnx_difference_of(graph, (number[]){end, start});
    if (extent == TRAMA_ANY && end.open != all.open &&
        onnx_difference_of(graph, (number[]){all, end}).open == OPEN_COMPUTED)
        return other_extent(n, d);
    trama_value *at = many.open ? build_count(n, TRAMA_I64, many.open, d) : build_arange(n, TRAMA_I64, many.i, 1, 0);
    trama_value *first = !at          ? NULL
                         : start.open ? onnx_extent_value(graph, start.open)
                                      : trama_fill_at(n->where, graph->program, TRAMA_I64, TRAMA_SCALAR, start.r);
    return first ? trama_gather_at(n->where, x, trama_add_at(n->where, at, first), d) : NULL;
}

/* Whether a slice to an extent takes all of dim d, since that is no longer. A term of its extent takes less. */
static bool takes_all(onnx_node *n, const trama_value *x, int d, int64_t origin)
{
    if (x->shape.dim[d] != TRAMA_ANY)
        return false;
    const int64_t own = onnx_origin(n->graph, x, d);
    if (open_base(own) == open_base(origin) && open_times(own) <= open_times(origin))
        return true;
    if (onnx_difference_of(n->graph, (number[]){{.open = own}, {.open = origin}}).open != OPEN_COMPUTED)
        return false;
    return other_extent(n, d);
}

ONNX_BUILD(build_slice)
{
    trama_value *x = node_in(n, 0), *y = x;
    slice_range ranges[TRAMA_MAX_NDIM];
    if (!x || !slice_ranges(n, x->shape, ranges))
        return;
    for (int d = 0; d < x->shape.ndim && y; d++) {
        const slice_range *r = &ranges[d];
        if (r->start)
            y = pick_from(n, y, d, r);
        else if (r->origin ? !takes_all(n, x, d, r->origin) : r->picked)
            y = n->graph->program->status ? NULL : pick(n, y, d, r);
        else if (!r->origin)
            y = r->step == 1 ? cut(n, y, d, r->from, r->extent)
                             : trama_slice_by_at(n->where, y, d, r->from, r->extent, r->step);
    }
    out[0] = y;
}

/* ---- Pad ---- */

/* The pads of each dim: of those that operand 3 names, or of all. */
static bool pads_of(onnx_node *n, trama_shape in, int64_t *before, int64_t *after)
{
    onnx_ints pads = node_list(n, attribute_has(n, "paddings") ? "paddings" : "pads", 1),
              axes = node_ints(n, 3, "axes");
    int count = axes.given ? axes.n : in.ndim;
    if (pads.n != 2 * count)
        return node_fail(n, TRAMA_E_SHAPE, "%d pads for %d dims", pads.n, count);
    for (int i = 0; i < count; i++) {
        int d = axes.given ? node_dim(n, axes.at[i], in.ndim) : i;
        int64_t first = pads.at[i], last = pads.at[i + count], extent = d < 0 ? 0 : in.dim[d];
        bool fits = first > -MOST_BYTES && first < MOST_BYTES && last > -MOST_BYTES && last < MOST_BYTES;
        if (d < 0 || !fits || (extent == TRAMA_ANY && (first || last)))
            return node_fail(n, TRAMA_E_UNSUPPORTED, "pads %lld and %lld of dim %d", (long long)first, (long long)last,
                             d);
        before[d] = first;
        after[d] = last;
    }
    return true;
}

/* x with pads at both ends of one dim; negative ones take elements away. */
static trama_value *pad_dim(onnx_node *n, trama_value *x, int d, int64_t before, int64_t after, trama_pad_mode mode,
                            double value)
{
    const int64_t extent = x->shape.dim[d], more_before = max_i64(before, 0), more_after = max_i64(after, 0);
    if (more_before || more_after)
        x = trama_pad_with_at(n->where, x, d, more_before, more_after, mode, value);
    const int64_t kept = max_i64(extent + before + after, 0);
    return x && (before < 0 || after < 0) ? cut(n, x, d, max_i64(-before, 0), kept) : x;
}

ONNX_BUILD(build_pad)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"}; /* as trama_pad_mode */
    trama_value *x = node_in(n, 0);
    int64_t before[TRAMA_MAX_NDIM] = {0}, after[TRAMA_MAX_NDIM] = {0};
    int mode = 0;
    double value;
    if (!node_number(n, 2, attribute_real(n, "value", 0), &value))
        node_fail(n, TRAMA_E_UNSUPPORTED, "the value must be a constant number");
    while (mode < 4 && !attribute_is(n, "mode", "constant", modes[mode]))
        mode++;
    if (mode == 4)
        node_fail(n, TRAMA_E_UNSUPPORTED, "'mode' is none of constant, edge, reflect and wrap");
    if (!x || mode == 4 || !pads_of(n, x->shape, before, after))
        return;
    for (int d = 0; x && d < x->shape.ndim; d++)
        x = pad_dim(n, x, d, before[d], after[d], (trama_pad_mode)mode, value);
    out[0] = x;
}

/* ---- One-hot ---- */

/* Indices count from the end where they are negative. */
ONNX_BUILD(build_one_hot)
{
    trama_value *indices = node_in(n, 0);
    const host_tensor *values = node_host(n, 2);
    double depth;
    if (!indices || !node_number(n, 1, 0, &depth) || !values || values->count != 2 || depth < 1 || depth > 1e9) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "depth and values must be constants");
        return;
    }
    int ndim = indices->shape.ndim + 1, dim = node_dim(n, attribute_int(n, "axis", -1), ndim);
    trama_shape shape = {.ndim = ndim};
    if (dim < 0 || ndim > TRAMA_MAX_NDIM)
        return;
    for (int d = 0, from = 0; d < ndim; d++)
        shape.dim[d] = d == dim ? 1 : indices->shape.dim[from++];
    trama_value *index = trama_reshape_at(n->where, trama_cast_at(n->where, indices, TRAMA_I64), shape);
    trama_value *ahead = build_arange(n, TRAMA_I64, (int64_t)depth, ndim, dim);
    trama_value *behind = trama_affine_at(n->where, ahead, 1, -depth);
    trama_value *hit =
        trama_logical_or_at(n->where, trama_equal_at(n->where, index, ahead), trama_equal_at(n->where, index, behind));
    double off = host_get(values, 0).r, on = host_get(values, 1).r;
    out[0] = trama_affine_at(n->where, trama_cast_at(n->where, hit, values->dtype), on - off, off);
}

/* ---- Blocks of an image ---- */

/* Reshapes x [n, c, h, w] to 6 dims, permutes them, and reshapes them to 4. */
static trama_value *rearrange(onnx_node *n, trama_value *x, trama_shape apart, const int *perm, trama_shape whole)
{
    return trama_reshape_at(n->where, trama_transpose_at(n->where, trama_reshape_at(n->where, x, apart), perm), whole);
}

static bool block_size(onnx_node *n, const trama_value *x, int64_t *b)
{
    *b = attribute_int(n, "blocksize", 0);
    return x && ((*b >= 1 && *b < 1 << 15 && x->shape.ndim == 4) ||
                 node_fail(n, TRAMA_E_SHAPE, "'blocksize' is below 1, or operand 0 has not 4 dims"));
}

ONNX_BUILD(build_space_to_depth)
{
    trama_value *x = node_in(n, 0);
    int64_t b;
    if (!block_size(n, x, &b))
        return;
    const int64_t *d = x->shape.dim;
    out[0] = rearrange(n, x, TRAMA_SHAPE(d[0], d[1], d[2] / b, b, d[3] / b, b), (const int[]){0, 3, 5, 1, 2, 4},
                       TRAMA_SHAPE(d[0], d[1] * b * b, d[2] / b, d[3] / b));
}

ONNX_BUILD(build_depth_to_space)
{
    trama_value *x = node_in(n, 0);
    int64_t b;
    if (!block_size(n, x, &b))
        return;
    const int64_t *d = x->shape.dim, c = d[1] / (b * b);
    trama_shape whole = TRAMA_SHAPE(d[0], c, d[2] * b, d[3] * b);
    if (attribute_is(n, "mode", "DCR", "DCR"))
        out[0] = rearrange(n, x, TRAMA_SHAPE(d[0], b, b, c, d[2], d[3]), (const int[]){0, 3, 4, 1, 5, 2}, whole);
    else if (attribute_is(n, "mode", "DCR", "CRD"))
        out[0] = rearrange(n, x, TRAMA_SHAPE(d[0], c, b, b, d[2], d[3]), (const int[]){0, 1, 4, 2, 5, 3}, whole);
    else
        node_fail(n, TRAMA_E_ARGUMENT, "'mode' is neither DCR nor CRD");
}
