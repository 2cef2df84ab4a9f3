/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are only known when fed, for estimates before: that of a value is a multiple of the one that is fed, or
 * a part of it, where a reshape has merged or divided it. */
#include <math.h>

#include "program.h"

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
        return node->in[t]->open[d] * (double)reach_per(reach) / (double)reach_stride(reach);
    return node->in[t]->open[d] / fmax(1, known_factors(rule, dim));
}

static double factor_times(const trama_node *node, int factor)
{
    double times = 0;
    for (int t = 0; t < node->op->n_in && times == 0; t++)
        for (int d = 0; d < node->rule->tensor[t].ndim && times == 0; d++)
            times = times_by(node, factor, t, d);
    return times > 0 ? times : 1;
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
        v->open[d] = (float)times;
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
            shape.dim[d] = extent_of(nominal, v->open[d]);
    return shape;
}
