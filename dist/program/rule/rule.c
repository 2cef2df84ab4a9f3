/* SPDX-License-Identifier: Apache-2.0 */
/* Factor tables. They know dims and factors, no meshes. */
#include "rule.h"

#include <assert.h>

int rule_add_factor(trama_rule *rule, int64_t extent)
{
    assert(rule->n_factors < RULE_MAX_FACTORS);
    rule->factor[rule->n_factors] = (rule_factor){.extent = extent};
    return rule->n_factors++;
}

void rule_add_dim(rule_tensor *tensor, int factor)
{
    rule_dim *dim = &tensor->dim[tensor->ndim++];
    *dim = (rule_dim){0};
    if (factor >= 0)
        dim->factor[dim->n++] = (signed char)factor;
}

int64_t rule_dim_extent(const trama_rule *rule, const rule_dim *dim)
{
    int64_t extent = 1;
    for (int i = 0; i < dim->n; i++) {
        int64_t f = rule->factor[(int)dim->factor[i]].extent;
        if (f == TRAMA_ANY)
            return TRAMA_ANY;
        extent *= f;
    }
    return extent;
}

int64_t rule_extent_of(const trama_rule *rule, unsigned factors)
{
    int64_t extent = 1;
    for (int f = 0; f < rule->n_factors; f++) {
        if (!(factors >> f & 1))
            continue;
        if (rule->factor[f].extent == TRAMA_ANY)
            return TRAMA_ANY;
        if (!count_times(&extent, rule->factor[f].extent, INT64_MAX))
            extent = INT64_MAX; /* no tensor is that large */
    }
    return extent;
}

/* Row i of the result begins at element i of_row of a run of dims, which lies in row i of_row / of_dim of the operand.
 * Without elements no row matters. */
void rule_settle(trama_rule *rule)
{
    for (int t = 0; t < rule->n_in; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++) {
            rule_reach *reach = &rule->tensor[t].reach[d];
            const int64_t row = rule_extent_of(rule, reach->of_row), dim = rule_extent_of(rule, reach->of_dim);
            if (!reach_is_rows(reach) || row == TRAMA_ANY || dim == TRAMA_ANY)
                continue;
            const int64_t common = max_i64(1, common_divisor(row, dim));
            reach->stride = max_i64(1, row / common);
            reach->per = max_i64(1, dim / common);
            reach->before = reach->per - 1;
            reach->after = reach->stride - 1;
        }
}

void rule_join(trama_rule *rule, const trama_shape *operands)
{
    int64_t sum[RULE_MAX_FACTORS] = {0};
    for (int t = 0; t < rule->n_in; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++) {
            rule_reach *reach = &rule->tensor[t].reach[d];
            if (!reach->joins)
                continue;
            const int f = rule->tensor[t].dim[d].factor[0];
            reach->own = operands[t].dim[d];
            reach->before = sum[f] == TRAMA_ANY ? 0 : sum[f];
            reach->after = -reach->before;
            if (sum[f] == TRAMA_ANY || reach->own == TRAMA_ANY)
                sum[f] = TRAMA_ANY;
            else if (__builtin_add_overflow(sum[f], reach->own, &sum[f]))
                sum[f] = INT64_MAX; /* no tensor is that large */
            rule->factor[f].extent = sum[f];
        }
}

/* The range of a factor that a process computes: that of any dim of it of which no neighbours are read. */
static void factor_range(const trama_rule *rule, int factor, const box *boxes, int64_t *lo, int64_t *n)
{
    for (int t = rule->n_in + rule->n_out - 1; t >= 0; t--) {
        int d = rule_dim_of(rule, t, factor);
        if (d < 0 || !reach_is_none(&rule->tensor[t].reach[d]))
            continue;
        *lo = boxes[t].lo[d];
        *n = boxes[t].n[d];
        return;
    }
}

box rule_operand_box(const trama_rule *rule, int t, const box *boxes, const box *whole)
{
    box inner = boxes[t];
    for (int d = 0; d < inner.ndim; d++)
        if (!reach_is_none(&rule->tensor[t].reach[d]))
            factor_range(rule, rule->tensor[t].dim[d].factor[0], boxes, &inner.lo[d], &inner.n[d]);
    return rule_reached(rule, t, &inner, whole);
}

bool rule_reaches(const trama_rule *rule, int t)
{
    for (int d = 0; d < rule->tensor[t].ndim; d++)
        if (!reach_is_none(&rule->tensor[t].reach[d]))
            return true;
    return false;
}

bool rule_reaches_any(const trama_rule *rule)
{
    for (int t = 0; t < rule->n_in; t++)
        if (rule_reaches(rule, t))
            return true;
    return false;
}

box rule_reached(const trama_rule *rule, int t, const box *inner, const box *whole)
{
    box b = *inner;
    for (int d = 0; d < b.ndim; d++) {
        const rule_reach *r = &rule->tensor[t].reach[d];
        if (reach_is_none(r))
            continue;
        int64_t lo = divide_up(reach_stride(r) * b.lo[d] - r->before, reach_per(r));
        int64_t hi = divide_up(reach_stride(r) * (b.lo[d] + b.n[d] - 1) + 1 + r->after, reach_per(r));
        if (b.n[d] == 0)
            hi = lo;
        if (!r->wraps) {
            lo = min_i64(max_i64(lo, 0), whole->n[d]);
            hi = min_i64(max_i64(hi, lo), whole->n[d]);
        }
        b.lo[d] = lo;
        b.n[d] = max_i64(hi - lo, 0);
    }
    return b;
}

trama_shape rule_shape(const trama_rule *rule, int i)
{
    const rule_tensor *tensor = &rule->tensor[rule->n_in + i];
    trama_shape shape = {.ndim = tensor->ndim};
    for (int d = 0; d < tensor->ndim; d++)
        shape.dim[d] = rule_dim_extent(rule, &tensor->dim[d]);
    return shape;
}

unsigned rule_factors(const trama_rule *rule, int t)
{
    unsigned set = 0;
    for (int d = 0; d < rule->tensor[t].ndim; d++)
        for (int i = 0; i < rule->tensor[t].dim[d].n; i++)
            set |= 1u << rule->tensor[t].dim[d].factor[i];
    return set;
}

/* The leading factor of a dim: the first factor whose extent is not 1. */
static int leading(const trama_rule *rule, const rule_dim *dim)
{
    for (int i = 0; i < dim->n; i++)
        if (rule->factor[(int)dim->factor[i]].extent != 1)
            return dim->factor[i];
    return dim->n ? dim->factor[0] : -1;
}

bool rule_dim_is_whole(const trama_rule *rule, int t, int dim)
{
    const rule_dim *d = &rule->tensor[t].dim[dim];
    bool whole = false;
    for (int i = 0; i < d->n; i++)
        whole |= rule->factor[(int)d->factor[i]].whole;
    return whole;
}

int rule_dim_of(const trama_rule *rule, int t, int factor)
{
    for (int d = 0; d < rule->tensor[t].ndim; d++)
        if (leading(rule, &rule->tensor[t].dim[d]) == factor)
            return d;
    return -1;
}

double rule_points(const trama_rule *rule, const double *extent)
{
    double product[RULE_MAX_ADDENDS + 1], sum = 0; /* 0: of extents that are of no addend */
    unsigned used = 0;
    for (int a = 0; a <= RULE_MAX_ADDENDS; a++)
        product[a] = 1;
    for (int f = 0; f < rule->n_factors; f++) {
        const int a = rule->factor[f].addend;
        used |= 1u << a;
        product[a] *= rule->factor[f].no_work ? 1 : extent[f];
    }
    for (int a = 1; a <= RULE_MAX_ADDENDS; a++)
        sum += used >> a & 1 ? product[a] : 0;
    return used >> 1 ? product[0] * sum : product[0];
}

bool rule_splittable(const trama_rule *rule, int factor, bool *equal_only)
{
    *equal_only = false;
    if (rule->factor[factor].whole)
        return false;
    for (int t = 0; t < rule->n_in + rule->n_out; t++) {
        for (int d = 0; d < rule->tensor[t].ndim; d++) {
            const rule_dim *dim = &rule->tensor[t].dim[d];
            for (int i = 0; i < dim->n; i++) {
                if (dim->factor[i] != factor)
                    continue;
                if (leading(rule, dim) != factor)
                    return false;
                int64_t extent = rule_dim_extent(rule, dim);
                *equal_only |= extent != rule->factor[factor].extent;
            }
        }
    }
    return true;
}
