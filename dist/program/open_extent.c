/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed: those of a rule's factors by what is fed, and estimates before. The extent of a
 * value is a multiple of the one that is fed, or a part or a power of it, where a reshape has merged or divided it. */
#include <float.h>
#include <math.h>

#include "program.h"

/* ---- Fed ---- */

int64_t rule_extent(const trama_rule *rule, int t, int d, int64_t extent)
{
    const rule_reach *reach = &rule->tensor[t].reach[d];
    const int64_t n = rule_dim_extent(rule, &rule->tensor[t].dim[d]);
    if (extent != TRAMA_ANY)
        return extent;
    if (reach->joins)
        return reach->own;
    return reach->own_extent && n != TRAMA_ANY ? n * reach_stride(reach) / reach_per(reach) : n;
}

/* Sets the one factor of a dim that is not known, if there is one; false where the extent is no multiple of the known
 * ones. */
static bool set_open_factor(trama_rule *rule, const rule_dim *dim, int64_t extent)
{
    int64_t known = 1, *open = NULL;
    for (int i = 0; i < dim->n; i++) {
        int64_t *n = &rule->factor[(int)dim->factor[i]].extent;
        *n == TRAMA_ANY ? (void)(open = n) : (void)(known *= *n);
    }
    if (!open)
        return true;
    if (!known || extent % known)
        return false;
    *open = extent / known;
    return true;
}

/* Of a dim with an extent of its own. Where a row has no elements, the other side has none either. */
static void resolve_own(trama_rule *rule, const rule_reach *reach, int factor, int64_t extent, text *why)
{
    int64_t *own = &rule->factor[factor].extent;
    const int64_t all = rule_extent_of(rule, reach->of_dim) ? extent * reach_per(reach) : 0,
                  stride = reach_stride(reach);
    const bool empty = !rule_extent_of(rule, reach->of_row);
    if (*own != TRAMA_ANY) {
        if (reach->divides && (empty ? all : all % stride || all / stride != *own))
            text_add(why, " where the others have %lld times %lld", (long long)*own, (long long)(empty ? 0 : stride));
    } else if (reach->divides && all % stride) {
        text_add(why, ", not a multiple of %lld", (long long)stride);
    } else {
        *own = divide_up(all, stride);
    }
}

/* Sets the factors of dim d of operand t; `why` says what does not fit. */
static void resolve_dim(trama_rule *rule, int t, int d, int64_t extent, text *why)
{
    const rule_dim *dim = &rule->tensor[t].dim[d];
    const rule_reach *reach = &rule->tensor[t].reach[d];
    if (reach->joins)
        return; /* rule_join has done it */
    if (reach->own_extent) {
        resolve_own(rule, reach, dim->factor[0], extent, why);
    } else if (!reach_fits(reach, extent)) {
        text_add(why, ", and neighbours are read further on");
    } else if (!set_open_factor(rule, dim, extent)) {
        text_add(why, ", not a multiple of the extents that divide it");
    } else if (rule_dim_extent(rule, dim) != extent) {
        text_add(why, " where the other operands have %lld", (long long)rule_dim_extent(rule, dim));
    }
}

/* rows: of the dims that are read by rows of another length, which is known once the others are set. */
static trama_status resolve_dims(trama_rule *rule, const trama_node *node, const trama_shape *known, bool rows)
{
    for (int t = 0; t < rule->n_in; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++) {
            text why = {0};
            const int64_t extent = known[t].dim[d];
            if (extent != TRAMA_ANY && rows == reach_is_rows(&rule->tensor[t].reach[d]))
                resolve_dim(rule, t, d, extent, &why);
            if (!why.at)
                continue;
            trama_fail(node->where, TRAMA_E_SHAPE, "%s: dim %d of operand %d (%s) is %lld%s", node->op->name, d, t,
                       trama_value_name(node->in[t]), (long long)extent, why.at);
            free(why.at);
            return TRAMA_E_SHAPE;
        }
    return TRAMA_OK;
}

trama_status rule_resolve(trama_rule *rule, const trama_node *node, const trama_shape *known)
{
    rule_join(rule, known);
    trama_status status = resolve_dims(rule, node, known, false);
    rule_settle(rule);
    return status ? status : resolve_dims(rule, node, known, true);
}

/* ---- Estimated ---- */

/* An extent as times * fed^power, of all dims that are fed alike. */
static fed_extent extent_known(double times)
{
    return (fed_extent){(float)times, 0};
}

static fed_extent extent_times(fed_extent a, fed_extent b, int sign)
{
    return (fed_extent){sign > 0 ? a.times * b.times : a.times / fmaxf(b.times, FLT_MIN), a.power + sign * b.power};
}

/* Of a dim that is only known when fed. */
static fed_extent dim_fed(const trama_value *v, int d)
{
    return v->open ? v->open[d] : (fed_extent){1, 1};
}

/* The product of the known factors of a dim. */
static double known_factors(const trama_rule *rule, const rule_dim *dim)
{
    double known = 1;
    for (int i = 0; i < dim->n; i++)
        if (rule->factor[(int)dim->factor[i]].extent != TRAMA_ANY)
            known *= (double)rule->factor[(int)dim->factor[i]].extent;
    return known;
}

static fed_extent factor_fed(const trama_node *node, int factor);

static fed_extent factors_fed(const trama_node *node, unsigned factors)
{
    fed_extent all = extent_known(1);
    for (int f = 0; f < node->rule->n_factors; f++)
        if (factors >> f & 1)
            all = extent_times(all, factor_fed(node, f), 1);
    return all;
}

/* A factor by dim d of operand t; 0 times where that dim does not tell. */
static fed_extent fed_by(const trama_node *node, int factor, int t, int d)
{
    const trama_rule *rule = node->rule;
    const rule_dim *dim = &rule->tensor[t].dim[d];
    const rule_reach *reach = &rule->tensor[t].reach[d];
    bool has = false;
    for (int i = 0; i < dim->n; i++)
        has |= dim->factor[i] == factor;
    if (!has || node->in[t]->shape.dim[d] != TRAMA_ANY)
        return extent_known(0);
    const fed_extent fed = dim_fed(node->in[t], d);
    if (reach_is_rows(reach))
        return extent_times(extent_times(fed, factors_fed(node, reach->of_dim), 1), factors_fed(node, reach->of_row),
                            -1);
    if (reach->own_extent)
        return extent_times(fed, extent_known((double)reach_per(reach) / (double)reach_stride(reach)), 1);
    return extent_times(fed, extent_known(fmax(1, known_factors(rule, dim))), -1);
}

/* Of extents that grow alike the sum, else the one that grows faster: a known part is forgotten, and the estimate is too
 * small by as much. */
static fed_extent extent_sum(fed_extent a, fed_extent b)
{
    if (a.power == b.power)
        return (fed_extent){a.times + b.times, a.power};
    return a.power > b.power ? a : b;
}

/* The sum of the joined dims with the factor; 0 times where there are none. */
static fed_extent joined_fed(const trama_node *node, int factor)
{
    fed_extent sum = extent_known(0);
    for (int t = 0; t < node->op->n_in; t++)
        for (int d = 0; d < node->rule->tensor[t].ndim; d++) {
            const rule_tensor *tensor = &node->rule->tensor[t];
            const int64_t n = node->in[t]->shape.dim[d];
            if (tensor->reach[d].joins && tensor->dim[d].factor[0] == factor)
                sum = extent_sum(sum, n == TRAMA_ANY ? dim_fed(node->in[t], d) : extent_known((double)n));
        }
    return sum;
}

static fed_extent factor_fed(const trama_node *node, int factor)
{
    const int64_t known = node->rule->factor[factor].extent;
    if (known != TRAMA_ANY)
        return extent_known((double)known);
    fed_extent fed = joined_fed(node, factor);
    for (int t = 0; t < node->op->n_in && fed.times <= 0; t++)
        for (int d = 0; d < node->rule->tensor[t].ndim && fed.times <= 0; d++)
            fed = fed_by(node, factor, t, d);
    return fed.times > 0 ? fed : (fed_extent){1, 1};
}

void value_copy_open(trama_value *to, const trama_value *from)
{
    const size_t bytes = (size_t)from->shape.ndim * sizeof *from->open;
    to->open = from->open ? memcpy(trama_alloc(bytes), from->open, bytes) : NULL;
}

static void set_fed(trama_value *v, int d, fed_extent fed)
{
    if (!v->open && (fed.times != 1 || fed.power != 1)) {
        v->open = trama_alloc((size_t)v->shape.ndim * sizeof *v->open);
        for (int i = 0; i < v->shape.ndim; i++)
            v->open[i] = (fed_extent){1, 1};
    }
    if (v->open)
        v->open[d] = fed;
}

void value_open_extents(trama_value *v)
{
    const trama_rule *rule = v->node->rule;
    const rule_tensor *tensor = &rule->tensor[rule->n_in + v->result];
    for (int d = 0; d < tensor->ndim; d++) {
        fed_extent fed = extent_known(1);
        if (v->shape.dim[d] != TRAMA_ANY)
            continue;
        for (int i = 0; i < tensor->dim[d].n; i++)
            fed = extent_times(fed, factor_fed(v->node, tensor->dim[d].factor[i]), 1);
        set_fed(v, d, fed);
    }
}

static int64_t extent_of(int64_t nominal, fed_extent fed)
{
    return (int64_t)fmin(fmax(1, round(fed.times * pow((double)nominal, fed.power))), 0x1p60);
}

int64_t node_nominal_extent(const trama_node *node, int factor, int64_t nominal)
{
    const int64_t extent = node->rule->factor[factor].extent;
    return extent == TRAMA_ANY ? extent_of(nominal, factor_fed(node, factor)) : extent;
}

trama_shape value_nominal_shape(const trama_value *v, int64_t nominal)
{
    trama_shape shape = v->shape;
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] == TRAMA_ANY)
            shape.dim[d] = extent_of(nominal, dim_fed(v, d));
    return shape;
}
