/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed: those of a rule's factors by what is fed, and estimates before. The extent of a
 * value is a multiple of the one that is fed, or a part of it, where a reshape has merged or divided it. */
#include <math.h>

#include "program.h"

/* ---- Fed ---- */

int64_t rule_extent(const trama_rule *rule, int t, int d, int64_t extent)
{
    const rule_reach *reach = &rule->tensor[t].reach[d];
    const int64_t n = rule_dim_extent(rule, &rule->tensor[t].dim[d]);
    if (extent != TRAMA_ANY)
        return extent;
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

/* Sets the factors of dim d of operand t; `why` says what does not fit. */
static void resolve_dim(trama_rule *rule, int t, int d, int64_t extent, text *why)
{
    const rule_dim *dim = &rule->tensor[t].dim[d];
    const rule_reach *reach = &rule->tensor[t].reach[d];
    if (reach->own_extent) {
        int64_t *own = &rule->factor[(int)dim->factor[0]].extent;
        const int64_t all = extent * reach_per(reach), stride = reach_stride(reach);
        if (*own == TRAMA_ANY && reach->divides && all % stride)
            text_add(why, ", not a multiple of %lld", (long long)stride);
        else if (*own == TRAMA_ANY)
            *own = divide_up(all, stride);
    } else if (!reach_fits(reach, extent)) {
        text_add(why, ", and neighbours are read further on");
    } else if (!set_open_factor(rule, dim, extent)) {
        text_add(why, ", not a multiple of the extents that divide it");
    } else if (rule_dim_extent(rule, dim) != extent) {
        text_add(why, " where the other operands have %lld", (long long)rule_dim_extent(rule, dim));
    }
}

trama_status rule_resolve(trama_rule *rule, const trama_node *node, const trama_shape *known)
{
    for (int t = 0; t < rule->n_in; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++) {
            text why = {0};
            const int64_t extent = known[t].dim[d];
            if (extent != TRAMA_ANY)
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

/* ---- Estimated ---- */

/* Of a dim that is only known when fed. */
static double times_fed(const trama_value *v, int d)
{
    return v->open ? v->open[d] : 1;
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

/* How many times the extent that is fed a factor has, by dim d of operand t; 0 where that dim does not tell. */
static double times_by(const trama_node *node, int factor, int t, int d)
{
    const trama_rule *rule = node->rule;
    const rule_dim *dim = &rule->tensor[t].dim[d];
    const rule_reach *reach = &rule->tensor[t].reach[d];
    bool has = false;
    for (int i = 0; i < dim->n; i++)
        has |= dim->factor[i] == factor;
    if (!has || node->in[t]->shape.dim[d] != TRAMA_ANY)
        return 0;
    if (reach->own_extent)
        return times_fed(node->in[t], d) * (double)reach_per(reach) / (double)reach_stride(reach);
    return times_fed(node->in[t], d) / fmax(1, known_factors(rule, dim));
}

static double factor_times(const trama_node *node, int factor)
{
    double times = 0;
    for (int t = 0; t < node->op->n_in && times == 0; t++)
        for (int d = 0; d < node->rule->tensor[t].ndim && times == 0; d++)
            times = times_by(node, factor, t, d);
    return times > 0 ? times : 1;
}

void value_copy_open(trama_value *to, const trama_value *from)
{
    const size_t bytes = (size_t)from->shape.ndim * sizeof *from->open;
    to->open = from->open ? memcpy(trama_alloc(bytes), from->open, bytes) : NULL;
}

static void set_times(trama_value *v, int d, float times)
{
    if (!v->open && times != 1) {
        v->open = trama_alloc((size_t)v->shape.ndim * sizeof *v->open);
        for (int i = 0; i < v->shape.ndim; i++)
            v->open[i] = 1;
    }
    if (v->open)
        v->open[d] = times;
}

void value_open_extents(trama_value *v)
{
    const trama_rule *rule = v->node->rule;
    const rule_tensor *tensor = &rule->tensor[rule->n_in + v->result];
    for (int d = 0; d < tensor->ndim; d++) {
        const rule_dim *dim = &tensor->dim[d];
        if (v->shape.dim[d] != TRAMA_ANY)
            continue;
        double times = known_factors(rule, dim);
        for (int i = 0; i < dim->n; i++)
            if (rule->factor[(int)dim->factor[i]].extent == TRAMA_ANY)
                times *= factor_times(v->node, dim->factor[i]);
        set_times(v, d, (float)times);
    }
}

static int64_t extent_of(int64_t nominal, double times)
{
    return (int64_t)fmin(fmax(1, round((double)nominal * times)), 0x1p60);
}

int64_t node_nominal_extent(const trama_node *node, int factor, int64_t nominal)
{
    const int64_t extent = node->rule->factor[factor].extent;
    return extent == TRAMA_ANY ? extent_of(nominal, factor_times(node, factor)) : extent;
}

trama_shape value_nominal_shape(const trama_value *v, int64_t nominal)
{
    trama_shape shape = v->shape;
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] == TRAMA_ANY)
            shape.dim[d] = extent_of(nominal, times_fed(v, d));
    return shape;
}
