/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: checks, counts of elements, text. */
#include <string.h>

#include "base.h"

trama_shape trama_shape_of(int n, const int64_t *dim)
{
    if (n > TRAMA_MAX_NDIM || n < 0 || (n && !dim))
        return (trama_shape){.ndim = -1};
    trama_shape shape = {.ndim = n};
    for (int d = 0; d < n; d++)
        shape.dim[d] = dim[d];
    return shape;
}

/* The dims to read: a shape filled in by hand may have an ndim out of range, which counts as 0. */
static int dims_there(trama_shape shape)
{
    return shape.ndim < 0 || shape.ndim > TRAMA_MAX_NDIM ? 0 : shape.ndim;
}

bool trama_shape_equal(trama_shape a, trama_shape b)
{
    return a.ndim == b.ndim && !memcmp(a.dim, b.dim, (size_t)dims_there(a) * sizeof *a.dim);
}

bool count_times(int64_t *count, int64_t factor, int64_t most)
{
    int64_t product;
    if (__builtin_mul_overflow(*count, factor, &product) || product > most)
        return false;
    *count = product;
    return true;
}

int64_t trama_shape_count(trama_shape shape)
{
    int64_t count = 1;
    bool none = false, counts = true;
    for (int d = 0; d < dims_there(shape); d++) {
        if (shape.dim[d] == TRAMA_ANY)
            return TRAMA_ANY;
        none |= shape.dim[d] <= 0;
        counts = counts && count_times(&count, max_i64(1, shape.dim[d]), INT64_MAX);
    }
    return none || dims_there(shape) != shape.ndim ? 0 : counts ? count : INT64_MAX;
}

bool shape_check(trama_shape shape, trama_dtype dtype, bool fed, text *why)
{
    int64_t bytes = (int64_t)trama_dtype_size(dtype);
    if (shape.ndim < 0 || shape.ndim > TRAMA_MAX_NDIM) {
        text_add(why, "a tensor has at most %d dims", TRAMA_MAX_NDIM);
        if (shape.ndim > TRAMA_MAX_NDIM)
            text_add(why, ", not %d", shape.ndim);
        return false;
    }
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] < 0 && !(fed && shape.dim[d] == TRAMA_ANY)) {
            text_add(why, "dim %d has extent %lld%s", d, (long long)shape.dim[d],
                     shape.dim[d] == TRAMA_ANY ? " (TRAMA_ANY); it must be known, only inputs may leave it to be fed"
                                               : "; extents are 0 or more");
            return false;
        }
    for (int d = 0; d < shape.ndim; d++)
        if (!count_times(&bytes, max_i64(1, shape.dim[d]), MOST_BYTES)) {
            shape_text(why, shape);
            text_add(why, " of %s has more than 2^60 bytes, the most that a tensor may have", trama_dtype_name(dtype));
            return false;
        }
    return true;
}

void shape_text(text *out, trama_shape shape)
{
    text_add(out, "[");
    for (int d = 0; d < dims_there(shape); d++)
        if (shape.dim[d] == TRAMA_ANY)
            text_add(out, "%sany", d ? "," : "");
        else
            text_add(out, "%s%lld", d ? "," : "", (long long)shape.dim[d]);
    text_add(out, "]");
}
