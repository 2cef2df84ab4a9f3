/* SPDX-License-Identifier: Apache-2.0 */
/* Constants, shapes as tensors, and the ops that exporters apply to shapes. */
#include <string.h>

#include "onnx_ops.h"

/* ---- Sources ---- */

static host_tensor *of_proto(onnx_node *n, Onnx__TensorProto *proto)
{
    text why = {0};
    trama_status status;
    host_tensor *t = proto ? host_of_proto(proto, n->graph->source, &status, &why) : NULL;
    if (!t)
        node_fail(n, proto ? status : TRAMA_E_ARGUMENT, "'value': %s", why.at ? why.at : "there is no tensor");
    free(why.at);
    return t;
}

/* A list of n integers or floats, or one of them as a scalar. */
static host_tensor *of_list(trama_dtype dtype, int ndim, size_t n, const void *data, size_t width)
{
    host_tensor *t = host_create(dtype, ndim ? TRAMA_SHAPE((int64_t)n) : TRAMA_SCALAR);
    if (t && n)
        memcpy(t->data, data, n * width);
    return t;
}

ONNX_FOLD(fold_constant)
{
    const Onnx__AttributeProto *a;
    if ((a = attribute_find(n, "value")))
        return of_proto(n, a->t);
    if ((a = attribute_find(n, "value_int")))
        return of_list(TRAMA_I64, 0, 1, &a->i, sizeof a->i);
    if ((a = attribute_find(n, "value_float")))
        return of_list(TRAMA_F32, 0, 1, &a->f, sizeof a->f);
    if ((a = attribute_find(n, "value_ints")))
        return of_list(TRAMA_I64, 1, a->n_ints, a->ints, sizeof *a->ints);
    if ((a = attribute_find(n, "value_floats")))
        return of_list(TRAMA_F32, 1, a->n_floats, a->floats, sizeof *a->floats);
    return node_fail(n, TRAMA_E_UNSUPPORTED, "its value is a string, sparse or missing");
}

host_tensor *fold_fill_value(onnx_node *n)
{
    const Onnx__AttributeProto *a = attribute_find(n, "value");
    host_tensor *t = a ? of_proto(n, a->t) : host_create(TRAMA_F32, TRAMA_SHAPE(1));
    if (!t || t->count == 1)
        return t;
    host_free(t);
    return node_fail(n, TRAMA_E_SHAPE, "'value' has not one element");
}

/* Shapes and other short lists; longer ones are made by the run. */
ONNX_FOLD(fold_constant_of_shape)
{
    enum { MOST = 64 };
    onnx_ints list = node_extents(n, 0, "shape");
    int64_t count = 1;
    for (int i = 0; i < list.n; i++)
        if (list.open[i] || list.at[i] < 0 || !count_times(&count, list.at[i], MOST))
            return NULL;
    host_tensor *value = list.n <= TRAMA_MAX_NDIM ? fold_fill_value(n) : NULL;
    host_tensor *t = value ? host_create(value->dtype, trama_shape_of(list.n, list.at)) : NULL;
    for (int64_t i = 0; t && i < t->count; i++)
        host_set(t, i, host_get(value, 0));
    host_free(value);
    return t;
}

/* ---- Shapes as tensors ---- */

ONNX_FOLD(fold_shape)
{
    trama_shape shape = node_shape(n, 0);
    int64_t from = attribute_int(n, "start", 0), to = attribute_int(n, "end", shape.ndim);
    from = max_i64(0, min_i64(from < 0 ? from + shape.ndim : from, shape.ndim));
    to = max_i64(from, min_i64(to < 0 ? to + shape.ndim : to, shape.ndim));
    host_tensor *t = host_create(TRAMA_I64, TRAMA_SHAPE(to - from));
    for (int64_t i = from; t && i < to; i++) {
        number extent = number_of(shape.dim[i]);
        extent.open = shape.dim[i] == TRAMA_ANY ? onnx_origin(n->graph, node_in(n, 0), (int)i) : 0;
        host_set(t, i - from, extent);
    }
    return t;
}

ONNX_FOLD(fold_size)
{
    int64_t count = trama_shape_count(node_shape(n, 0));
    number size = number_of(count);
    size.open = count == TRAMA_ANY ? OPEN_COMPUTED : 0;
    host_tensor *t = host_create(TRAMA_I64, TRAMA_SCALAR);
    if (t)
        host_set(t, 0, size);
    return t;
}

static trama_dtype operand_dtype(onnx_node *n)
{
    return node_host(n, 0) ? node_host(n, 0)->dtype : trama_value_dtype(node_in(n, 0));
}

ONNX_FOLD(fold_eye)
{
    enum { MOST = 1 << 24 };
    trama_shape shape = node_shape(n, 0);
    trama_dtype dtype = operand_dtype(n);
    int64_t k = attribute_int(n, "k", 0), count = trama_shape_count(shape);
    const char *name;
    if (attribute_has(n, "dtype") && host_dtype((int32_t)attribute_int(n, "dtype", 0), &dtype, &name))
        return node_fail(n, TRAMA_E_UNSUPPORTED, "elements %s are not supported", name);
    if (shape.ndim != 2 || count < 0 || count > MOST)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "operand 0 is no matrix of a known size below 2^24");
    host_tensor *t = host_create(dtype, shape);
    for (int64_t i = 0; t && i < shape.dim[0]; i++)
        if (k > -shape.dim[0] && k < shape.dim[1] && i + k >= 0 && i + k < shape.dim[1])
            element_set(dtype, t->data, i * shape.dim[1] + i + k, 1);
    return t;
}

/* ---- Moves ---- */

ONNX_FOLD(fold_transpose)
{
    return node_shape(n, 0).ndim < 2 && !attribute_has(n, "perm") ? fold_copy(n) : NULL;
}

/* Of lists only. */
ONNX_FOLD(fold_concat)
{
    int64_t total = 0, at = 0;
    for (int i = 0; i < node_inputs(n); i++) {
        const host_tensor *t = node_host(n, i);
        if (t->shape.ndim != 1 || t->dtype != node_host(n, 0)->dtype)
            return NULL;
        total += t->count;
    }
    host_tensor *all = host_create(node_host(n, 0)->dtype, TRAMA_SHAPE(total));
    for (int i = 0; all && i < node_inputs(n); i++)
        for (int64_t k = 0; k < node_host(n, i)->count; k++)
            host_set(all, at++, host_get(node_host(n, i), k));
    return all;
}

/* An end of a slice within a dim: from 0 to extent, or from -1 to extent - 1 where it runs backwards. */
static int64_t slice_end(int64_t at, int64_t extent, bool backwards)
{
    at = at < 0 && at >= -extent ? at + extent : at;
    return max_i64(backwards ? -1 : 0, min_i64(at, backwards ? extent - 1 : extent));
}

/* Of a dim that is only known when fed: its first element, or its last. More may be fewer than asked for. */
static bool range_of_fed(int64_t start, int64_t end, int64_t step, slice_range *range)
{
    const bool first = start == 0 && end == 1, last = start == -1 && end >= INT32_MAX;
    *range = (slice_range){.from = start, .extent = 1, .step = 1, .picked = true};
    return step > 0 && (first || last);
}

static bool range_of(onnx_node *n, int64_t extent, int64_t start, int64_t end, int64_t step, slice_range *range)
{
    if (extent == TRAMA_ANY && start == 0 && end >= INT32_MAX && step == 1)
        return true;
    if (extent == TRAMA_ANY && range_of_fed(start, end, step, range))
        return true;
    if (extent == TRAMA_ANY || step == 0 || step == INT64_MIN)
        return node_fail(n, TRAMA_E_UNSUPPORTED,
                         "the slice %lld:%lld:%lld of a dim that is only known when fed, or step 0", (long long)start,
                         (long long)end, (long long)step);
    int64_t from = slice_end(start, extent, step < 0), to = slice_end(end, extent, step < 0);
    int64_t span = step > 0 ? to - from : from - to, by = step > 0 ? step : -step;
    *range = (slice_range){.from = from, .extent = span <= 0 ? 0 : (span - 1) / by + 1, .step = step};
    return true;
}

/* A bound that is only known when fed, or a start within a dim that is. Returns whether it is such a range. */
static bool range_of_extents(onnx_node *n, int d, int64_t extent, number start, number end, int64_t step,
                             slice_range *range)
{
    const bool to_end = end.open || end.i >= INT32_MAX;
    if (!start.open && !end.open && (extent != TRAMA_ANY || start.i <= 0 || !to_end || step != 1))
        return false;
    if (step != 1 || !to_end || start.i < 0) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "bounds of dim %d are only known when fed", d);
    } else {
        range->origin = end.open;
        range->start = start.open ? start.open : -start.i;
    }
    return true;
}

bool slice_ranges(onnx_node *n, trama_shape shape, slice_range *ranges)
{
    const onnx_ints starts = node_extent_list(n, "starts", 1), ends = node_extent_list(n, "ends", 2),
                    axes = node_list(n, "axes", 3), steps = node_ints(n, 4, "steps");
    for (int d = 0; d < shape.ndim; d++)
        ranges[d] = (slice_range){.extent = shape.dim[d], .step = 1};
    if (starts.n != ends.n || (axes.given && axes.n != starts.n) || (steps.given && steps.n != starts.n))
        return node_fail(n, TRAMA_E_SHAPE, "starts, ends, axes and steps are of different lengths");
    for (int i = 0; i < starts.n; i++) {
        int d = node_dim(n, axes.given ? axes.at[i] : i, shape.ndim);
        const int64_t step = steps.given ? steps.at[i] : 1;
        const number start = {.open = starts.open[i], .i = starts.at[i]}, end = {.open = ends.open[i], .i = ends.at[i]};
        if (d >= 0 && !range_of_extents(n, d, shape.dim[d], start, end, step, &ranges[d]))
            range_of(n, shape.dim[d], starts.at[i], ends.at[i], step, &ranges[d]);
        if (d < 0 || n->graph->program->status)
            return false;
    }
    return !n->graph->program->status;
}

/* Of lists only. */
ONNX_FOLD(fold_slice)
{
    const host_tensor *from = node_host(n, 0);
    slice_range ranges[TRAMA_MAX_NDIM];
    if (from->shape.ndim != 1 || !slice_ranges(n, from->shape, ranges) || ranges[0].origin || ranges[0].start)
        return NULL;
    host_tensor *t = host_create(from->dtype, TRAMA_SHAPE(ranges[0].extent));
    for (int64_t i = 0; t && i < t->count; i++)
        host_set(t, i, host_get(from, ranges[0].from + i * ranges[0].step));
    return t;
}

/* Of lists, by any indices. */
ONNX_FOLD(fold_gather)
{
    const host_tensor *from = node_host(n, 0), *at = node_host(n, 1);
    if (from->shape.ndim != 1 || at->open || trama_dtype_is_float(at->dtype))
        return NULL;
    host_tensor *t = host_create(from->dtype, at->shape);
    for (int64_t i = 0; t && i < t->count; i++) {
        int64_t index = host_get(at, i).i;
        if (index < -from->count || index >= from->count) {
            host_free(t);
            return node_fail(n, TRAMA_E_ARGUMENT, "the index %lld is not there (%lld elements)", (long long)index,
                             (long long)from->count);
        }
        host_set(t, i, host_get(from, index < 0 ? index + from->count : index));
    }
    return t;
}
