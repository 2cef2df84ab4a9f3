/* SPDX-License-Identifier: Apache-2.0 */
/* How windows lie on spatial dims. */
#include "windows.h"

#include "sized.h"

enum { SPACE = 2 }; /* the first spatial dim */

/* Products of a step and an extent, or a step and a kernel, stay below 2^63. */
static const int64_t MOST = INT64_C(1) << 30, MOST_STEP = INT64_C(1) << 22, MOST_EXTENT = INT64_C(1) << 40;

window_dim window_of(const trama_attributes *a, int d, int64_t kernel)
{
    return (window_dim){kernel, a->integer[CONV_STRIDE + d], a->integer[CONV_DILATION + d],
                        a->integer[CONV_BEFORE + d]};
}

static bool within(int64_t x, int64_t least, int64_t most)
{
    return x >= least && x <= most;
}

trama_status windows_check(const trama_node *node, int ndim)
{
    const trama_attributes *a = node->attributes;
    if (!within(ndim, SPACE + 1, SPACE + TRAMA_SPATIAL_DIMS))
        return trama_fail(node->where, TRAMA_E_SHAPE,
                          "%s of %s: it has %d dims; 3 to 5 are needed: [n, channels, space ..]", node->op->name,
                          node->in[0]->name, ndim);
    for (int d = 0; d < ndim - SPACE; d++)
        if (!within(a->integer[CONV_STRIDE + d], 1, MOST_STEP) ||
            !within(a->integer[CONV_DILATION + d], 1, MOST_STEP) || !within(a->integer[CONV_BEFORE + d], -MOST, MOST) ||
            !within(a->integer[CONV_EXTENT + d], 0, MOST_EXTENT))
            return trama_fail(node->where, TRAMA_E_SHAPE,
                              "%s of %s: stride, dilation, before or extent of spatial dim %d is out of range",
                              node->op->name, node->in[0]->name, d);
    for (int t = 0; t < node->op->n_in; t++)
        for (int d = SPACE; d < node->in[t]->shape.ndim; d++)
            if (!within(node->in[t]->shape.dim[d], 0, MOST_EXTENT))
                return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: dim %d of %s is only known when fed",
                                  node->op->name, node->in[0]->name, d, node->in[t]->name);
    return TRAMA_OK;
}

void windows_add_dim(trama_rule *rule, const trama_node *node, int d, window_dim w, unsigned wide, unsigned narrow)
{
    const unsigned operands = (1u << rule->n_in) - 1;
    const bool spreads = wide & ~operands;
    const int64_t last = w.dilation * (w.kernel - 1);
    rule_reach reach = spreads ? (rule_reach){.before = last - w.before, .after = w.before, .per = w.stride}
                               : (rule_reach){.before = w.before, .after = last - w.before, .stride = w.stride};
    reach.own_extent = true;
    int64_t extent = node->attributes->integer[CONV_EXTENT + d];
    if (!spreads && (narrow & operands))
        extent = node->in[__builtin_ctz(narrow & operands)]->shape.dim[SPACE + d];
    const int f = rule_add_factor(rule, extent);
    rule->factor[f].reduce = TRAMA_SUM;
    for (int t = 0; t < rule->n_in + rule->n_out; t++)
        if ((wide | narrow) >> t & 1) {
            rule_add_dim(&rule->tensor[t], f);
            if ((operands & (spreads ? narrow : wide)) >> t & 1)
                rule->tensor[t].reach[SPACE + d] = reach;
        }
}

trama_value *windows_apply(const trama_node *node, const trama_op *op, trama_value *a, trama_value *b,
                           const trama_value *shaped)
{
    trama_attributes attributes = *node->attributes;
    for (int d = SPACE; d < shaped->shape.ndim; d++)
        attributes.integer[CONV_EXTENT + d - SPACE] = shaped->shape.dim[d];
    return program_append(NULL, node->where, op, b ? 2 : 1, (trama_value *[]){a, b}, &attributes);
}

/* ---- Builders ---- */

static bool wrong(trama_where where, const char *call, const trama_value *x, int d, const char *problem)
{
    program_fail(x->program, where, TRAMA_E_ARGUMENT, "%s of %s, spatial dim %d: %s", call, x->name, d, problem);
    return false;
}

/* The reason why there are no such windows; NULL: there are. */
static const char *problem_of(const trama_windows *w, int d, const int64_t *kernel)
{
    if (kernel && w->kernel[d] != kernel[d])
        return "the kernel is not that of the weights; leave it 0";
    if (!within(w->kernel[d], 1, MOST))
        return "the kernel needs 1 to 2^30 elements";
    if (!within(w->stride[d], 1, MOST_STEP) || !within(w->dilation[d], 1, MOST_STEP))
        return "strides and dilations are 1 to 2^22";
    if (!within(w->before[d], -MOST, MOST) || !within(w->after[d], -MOST, MOST) || !within(w->more[d], 0, MOST))
        return "before and after are at most 2^30, and more is not negative";
    return NULL;
}

bool windows_read(trama_where where, const char *call, const trama_value *x, const int64_t *kernel,
                  const trama_windows *given, trama_windows *own)
{
    const trama_windows none = {0};
    const int spatial = x->shape.ndim - SPACE;
    if (!within(spatial, 1, TRAMA_SPATIAL_DIMS)) {
        program_fail(x->program, where, TRAMA_E_SHAPE,
                     "%s of %s: it has %d dims; 3 to 5 are needed: "
                     "[n, channels, space ..]",
                     call, x->name, x->shape.ndim);
        return false;
    }
    trama_status status = sized_read(where, call, SIZED(trama_windows, padded), own, given ? given : &none);
    if (status) {
        program_fail(x->program, NOWHERE, status, "%s", trama_error());
        return false;
    }
    own->groups = own->groups ? own->groups : 1;
    for (int d = 0; d < spatial; d++) {
        own->kernel[d] = own->kernel[d] || !kernel ? own->kernel[d] : kernel[d];
        own->stride[d] = own->stride[d] ? own->stride[d] : kernel ? 1 : own->kernel[d];
        own->dilation[d] = own->dilation[d] ? own->dilation[d] : 1;
        const char *problem = problem_of(own, d, kernel);
        if (!problem && !within(x->shape.dim[SPACE + d], 0, MOST_EXTENT))
            problem = "its extent is only known when fed";
        if (problem)
            return wrong(where, call, x, d, problem);
    }
    return true;
}

int64_t windows_count(const trama_windows *w, int d, int64_t n)
{
    const int64_t span = n + w->before[d] + w->after[d] - w->dilation[d] * (w->kernel[d] - 1) - 1;
    int64_t count = span < 0 ? 0 : span / w->stride[d] + 1;
    if (w->up && span >= 0 && span % w->stride[d] && count * w->stride[d] < n + w->before[d])
        count++;
    return count;
}

void windows_write(const trama_windows *w, int spatial, const int64_t *extents, trama_attributes *a)
{
    for (int d = 0; d < spatial; d++) {
        a->integer[CONV_STRIDE + d] = w->stride[d];
        a->integer[CONV_DILATION + d] = w->dilation[d];
        a->integer[CONV_BEFORE + d] = w->before[d];
        a->integer[CONV_EXTENT + d] = extents[d];
    }
}
