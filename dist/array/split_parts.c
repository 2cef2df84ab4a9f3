/* SPDX-License-Identifier: Apache-2.0 */
/* Split forms of scans, products and the k largest along a split dim. A scan of a part goes on from the scan of the
 * totals of the parts before it. */
#include "split_parts.h"

#include <math.h>

#include "trama_array.h"
#include "trama_composed.h"

/* ---- Parts ---- */

bool parts_find(const trama_node *node, const trama_value *x, int dim, int64_t n, parts *p)
{
    const int64_t length = x->shape.dim[dim];
    if (length == TRAMA_ANY || length == 0 || x->shape.ndim == TRAMA_MAX_NDIM)
        return false;
    *p = (parts){node, dim, length, n, (length + n - 1) / n * n};
    return true;
}

trama_value *parts_own(const parts *p, int ndim)
{
    trama_value *index = indices_along(p->node, 0, ndim, p->padded, 1);
    return trama_less_at(p->node->where, index, scalar_like(p->node->where, index, (double)p->length));
}

trama_value *parts_divide(const parts *p, trama_value *x, double fill)
{
    if (p->padded > p->length)
        x = trama_pad_at(p->node->where, x, p->dim, 0, p->padded - p->length);
    if (p->padded > p->length && fill != 0)
        x = trama_select_at(p->node->where, parts_own(p, x->shape.ndim - p->dim), x,
                            scalar_like(p->node->where, x, fill));
    trama_shape apart = x->shape;
    for (int d = apart.ndim++; d > p->dim; d--)
        apart.dim[d] = apart.dim[d - 1];
    apart.dim[p->dim] = p->n;
    apart.dim[p->dim + 1] = p->padded / p->n;
    return trama_reshape_at(p->node->where, x, apart);
}

trama_value *parts_join(const parts *p, trama_value *x)
{
    x = trama_flatten_at(p->node->where, x, p->dim, p->dim + 1);
    return p->padded > p->length ? trama_slice_at(p->node->where, x, p->dim, 0, p->length) : x;
}

/* ---- Scans ---- */

/* Sums and products are kept in double, and rounded once. */
static trama_value *in_double(const parts *p, trama_value *x)
{
    const bool complex = is_complex(x);
    return complex || trama_dtype_is_float(x->dtype)
               ? trama_cast_at(p->node->where, x, complex ? TRAMA_C128 : TRAMA_F64)
               : x;
}

/* The node's scan along another dim. */
static trama_value *scan_along(const trama_node *node, trama_value *x, int dim, bool exclusive)
{
    trama_attributes a = *node->attributes;
    a.integer[SCAN_AXIS] = dim;
    a.integer[SCAN_EXCLUSIVE] = exclusive;
    return program_append(NULL, node->where, node->op, 1, &x, &a);
}

static trama_value *scan_by_parts(const trama_node *node, const parts *p, double fill, const trama_op *total,
                                  const trama_op *join)
{
    const int inner = p->dim + 1;
    trama_value *x = parts_divide(p, in_double(p, node->in[0]), fill);
    trama_value *scan = scan_along(node, x, inner, node->attributes->integer[SCAN_EXCLUSIVE]);
    trama_value *before = scan_along(node, reduce_dims(p->node->where, total, x, 1, &inner, true), p->dim, true);
    return trama_cast_at(p->node->where, parts_join(p, apply2(p->node->where, join, scan, before)),
                         node->out[0]->dtype);
}

/* The recurrence of the node along another dim, in its direction. */
static trama_value *recurrence_along(const trama_node *node, trama_value *a, trama_value *b, int dim, bool exclusive)
{
    trama_attributes with = *node->attributes;
    with.integer[SCAN_AXIS] = dim;
    with.integer[SCAN_EXCLUSIVE] = exclusive;
    with.integer[SCAN_LATE] = false;
    return program_append(NULL, node->where, node->op, 2, (trama_value *[]){a, b}, &with);
}

/* With s the recurrence of a part that begins with 0, and p the product of the part's a up to element i, y_i = s_i +
 * p_i times the last y of the part before. These last y follow a recurrence of the last s and p. Where a is late, the a
 * of the element before takes its place. */
void recurrence_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const bool exclusive = node->attributes->integer[SCAN_EXCLUSIVE], reverse = node->attributes->integer[SCAN_REVERSE];
    parts p;
    if (!parts_find(node, node->in[0], dim, n, &p))
        return;
    trama_value *a = in_double(&p, node->in[0]), *b = parts_divide(&p, in_double(&p, node->in[1]), 0);
    if (node->attributes->integer[SCAN_LATE])
        a = trama_shift_at(node->where, a, dim, reverse ? -1 : 1);
    a = parts_divide(&p, a, 1);
    const int inner = dim + 1;
    trama_value *s = recurrence_along(node, a, b, inner, false);
    trama_value *last = trama_slice_at(node->where, s, inner, reverse ? 0 : p.padded / p.n - 1, 1);
    trama_value *before = recurrence_along(node, trama_prod_at(node->where, a, 1, &inner, true), last, dim, true);
    trama_value *product = trama_cumprod_at(node->where, a, inner, exclusive, reverse);
    s = exclusive ? recurrence_along(node, a, b, inner, true) : s;
    trama_value *y = trama_add_at(node->where, s, trama_mul_at(node->where, product, before));
    out[0] = trama_cast_at(node->where, parts_join(&p, y), node->out[0]->dtype);
}

void cumsum_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    parts p;
    if (parts_find(node, node->in[0], dim, n, &p))
        out[0] = scan_by_parts(node, &p, 0, &trama_op_sum, &trama_op_add);
}

void cumprod_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    parts p;
    if (parts_find(node, node->in[0], dim, n, &p))
        out[0] = scan_by_parts(node, &p, 1, &trama_op_prod, &trama_op_mul);
}

/* The extreme of the elements before the part, and its index, where they hold one that is no worse than that of the
 * part; else the part's. The index n of the scan of the parts' extremes says that no part is before. Padding behind the
 * end would come first in a reverse scan. */
static void extreme_by_parts(const trama_node *node, int dim, int64_t n, const trama_op *no_worse, trama_value **out)
{
    const trama_where where = node->where;
    const bool exclusive = node->attributes->integer[SCAN_EXCLUSIVE], reverse = node->attributes->integer[SCAN_REVERSE];
    parts p;
    if (!parts_find(node, node->in[0], dim, n, &p) || (reverse && p.padded > p.length))
        return;
    const int inner = dim + 1;
    const int64_t length = p.padded / p.n;
    trama_value *x = parts_divide(&p, node->in[0], 0);
    trama_value *first = indices_along(node, dim, x->shape.ndim, p.n, length);
    trama_value *all = scan_along(node, x, inner, false), *best = exclusive ? scan_along(node, x, inner, true) : all;
    trama_value *index = trama_result(best, 1), *place = trama_add_at(where, index, first);
    if (exclusive) {
        trama_value *none = trama_equal_at(where, index, scalar_like(where, index, (double)length));
        place = trama_select_at(where, none, scalar_like(where, index, (double)p.length), place);
    }

    const int64_t end = reverse ? 0 : length - 1;
    trama_value *ends = trama_add_at(where, trama_slice_at(where, trama_result(all, 1), inner, end, 1), first);
    trama_value *before = scan_along(node, trama_slice_at(where, all, inner, end, 1), dim, true);
    trama_value *part = trama_result(before, 1), *last = scalar_like(where, part, (double)p.n - 1);
    trama_value *before_at = trama_gather_along_at(where, ends, trama_minimum_at(where, part, last), dim);

    trama_value *kept = apply2(where, no_worse, before, best);
    if (trama_dtype_is_float(x->dtype))
        kept = trama_logical_or_at(where, kept, trama_isnan_at(where, before));
    kept = trama_logical_and_at(where, kept, trama_less_equal_at(where, part, last));
    out[0] = parts_join(&p, trama_select_at(where, kept, before, best));
    out[1] = parts_join(&p, trama_select_at(where, kept, before_at, place));
}

void cummax_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    extreme_by_parts(node, dim, n, &trama_op_greater_equal, out);
}

void cummin_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    extreme_by_parts(node, dim, n, &trama_op_less_equal, out);
}

/* ---- Products, and the k largest ---- */

/* Products of parts, of other reduced dims too; then those of the parts' products. */
void prod_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    parts p;
    int dims[TRAMA_MAX_NDIM], n_dims = 0;
    if (!parts_find(node, node->in[0], dim, n, &p))
        return;
    for (int d = 0; d < node->in[0]->shape.ndim; d++)
        if (node->attributes->integer[REDUCE_AXES] >> d & 1)
            dims[n_dims++] = d + (d >= dim);
    trama_value *x = parts_divide(&p, widened(node->where, node->in[0]), 1);
    trama_value *products = trama_prod_at(node->where, x, n_dims, dims, true);
    products = trama_prod_at(node->where, products, 1, &dim, true);
    out[0] =
        trama_cast_at(node->where, trama_reshape_at(node->where, products, node->out[0]->shape), node->out[0]->dtype);
}

/* The k largest, or least, of each part, then those of these. Equal ones stay in the order of their indices. Padding is
 * the last that would be chosen, which integers may not have. */
void top_k_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    trama_attributes a = *node->attributes;
    const int64_t k = a.integer[TOP_K];
    parts p;
    if (k == 0 || !trama_dtype_is_float(node->in[0]->dtype) || !parts_find(node, node->in[0], dim, n, &p))
        return;
    const int64_t length = p.padded / p.n;
    trama_value *x = parts_divide(&p, node->in[0], a.integer[SORT_DESCENDING] ? -INFINITY : NAN);
    a.integer[SORT_AXIS] = dim + 1;
    a.integer[TOP_K] = k < length ? k : length;
    trama_value *best = program_append(NULL, node->where, node->op, 1, &x, &a);
    trama_value *first = indices_along(node, dim, x->shape.ndim, p.n, length);
    trama_value *index = trama_add_at(node->where, trama_result(best, 1), first);
    best = trama_flatten_at(node->where, best, dim, dim + 1);
    index = trama_flatten_at(node->where, index, dim, dim + 1);
    a = *node->attributes;
    out[0] = program_append(NULL, node->where, node->op, 1, &best, &a);
    out[1] = trama_gather_along_at(node->where, index, trama_result(out[0], 1), dim);
}
