/* SPDX-License-Identifier: Apache-2.0 */
/* Box arithmetic in 64 bits: tensors may have more than 2^31 elements. */
#include "box.h"

box box_whole(trama_shape shape)
{
    box b = {.ndim = shape.ndim};
    for (int d = 0; d < shape.ndim; d++)
        b.n[d] = shape.dim[d];
    return b;
}

int64_t box_count(const box *b)
{
    int64_t count = 1;
    for (int d = 0; d < b->ndim; d++)
        count *= b->n[d];
    return count;
}

bool box_equal(const box *a, const box *b)
{
    return box_compare(a, b) == 0;
}

bool box_contains(const box *outer, const box *inner)
{
    if (box_count(inner) == 0)
        return true;
    for (int d = 0; d < inner->ndim; d++)
        if (inner->lo[d] < outer->lo[d] || inner->lo[d] + inner->n[d] > outer->lo[d] + outer->n[d])
            return false;
    return true;
}

bool box_intersect(const box *a, const box *b, box *result)
{
    box r = {.ndim = a->ndim};
    bool some = true;
    for (int d = 0; d < a->ndim; d++) {
        int64_t lo = max_i64(a->lo[d], b->lo[d]);
        int64_t hi = min_i64(a->lo[d] + a->n[d], b->lo[d] + b->n[d]);
        r.lo[d] = lo;
        r.n[d] = max_i64(hi - lo, 0);
        some &= r.n[d] > 0;
    }
    *result = r;
    return some;
}

static int compare_i64(const int64_t *a, const int64_t *b, int n)
{
    for (int d = 0; d < n; d++)
        if (a[d] != b[d])
            return a[d] < b[d] ? -1 : 1;
    return 0;
}

int box_compare(const box *a, const box *b)
{
    if (a->ndim != b->ndim)
        return a->ndim < b->ndim ? -1 : 1;
    int order = compare_i64(a->lo, b->lo, a->ndim);
    return order ? order : compare_i64(a->n, b->n, a->ndim);
}

bool box_in_rows(const box *outer, const box *b, box_rows *result)
{
    box_rows r = {.run = 1, .rows = 1};
    int64_t stride = 1;
    for (int d = b->ndim - 1; d >= 0; stride *= outer->n[d--]) {
        r.first += (b->lo[d] - outer->lo[d]) * stride;
        if (b->n[d] == 1)
            continue;
        if (r.rows == 1 && stride == r.run) {
            r.run *= b->n[d];
        } else if (r.rows == 1) {
            r.rows = b->n[d];
            r.ld = stride;
        } else if (stride == r.rows * r.ld) {
            r.rows *= b->n[d];
        } else {
            return false;
        }
    }
    r.ld = r.rows == 1 ? r.run : r.ld;
    *result = r;
    return true;
}

bool box_is_run(const box *outer, const box *b)
{
    box_rows r;
    return box_in_rows(outer, b, &r) && r.rows == 1;
}

void box_text(text *out, const box *b)
{
    text_add(out, "[");
    for (int d = 0; d < b->ndim; d++)
        text_add(out, "%s%lld:%lld", d ? "," : "", (long long)b->lo[d], (long long)(b->lo[d] + b->n[d]));
    text_add(out, "]");
}

void piece_of(int64_t n, int parts, int i, int64_t *lo, int64_t *length)
{
    int64_t each = n / parts, longer = n % parts;
    *lo = each * i + min_i64(i, longer);
    *length = each + (i < longer);
}

int piece_find(int64_t n, int parts, int64_t x)
{
    int64_t each = n / parts, longer = n % parts;
    if (x < (each + 1) * longer)
        return (int)(x / (each + 1));
    return (int)(longer + (x - (each + 1) * longer) / each);
}

int box_slice_dim(const box *b, int n)
{
    int dim = 0;
    for (int d = 0; d < b->ndim; d++)
        if (b->n[d] > b->n[dim])
            dim = d;
    return b->ndim && b->n[0] >= n ? 0 : dim;
}

box box_slice(const box *b, int n, int i)
{
    box s = *b;
    if (!b->ndim) {
        s.ndim = i ? -1 : 0;
        return s;
    }
    int dim = box_slice_dim(b, n);
    int64_t lo;
    piece_of(b->n[dim], n, i, &lo, &s.n[dim]);
    s.lo[dim] += lo;
    return s;
}
