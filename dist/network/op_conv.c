/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and its two gradients. Each is linear in both operands, and the gradients of each are the other two. */
#include "ops.h"
#include "windows.h"

enum { BATCH, CHANNELS, SPACE };

/* The operands, and then the result, that are x, w and y of y = conv(x, w). */
typedef struct roles {
    int x, w, y;
} roles;

static roles roles_of(const trama_node *node)
{
    return node->op == &trama_op_conv              ? (roles){0, 1, 2}
           : node->op == &trama_op_conv_transposed ? (roles){2, 1, 0}
                                                   : (roles){0, 2, 1};
}

/* ---- Rule ---- */

static trama_status shape_error(const trama_node *node, const char *problem)
{
    text t = {0};
    value_text(&t, node->in[0]);
    text_add(&t, " and ");
    value_text(&t, node->in[1]);
    trama_status status = trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: %s", node->op->name, t.at, problem);
    free(t.at);
    return status;
}

static int add_factor(trama_rule *rule, int64_t extent, bool whole)
{
    const int f = rule_add_factor(rule, extent);
    rule->factor[f].reduce = TRAMA_SUM;
    rule->factor[f].whole = whole;
    return f;
}

/* A dim of groups and, in each, of channels. */
static void add_channels(rule_tensor *tensor, int group, int channel)
{
    rule_dim *dim = &tensor->dim[tensor->ndim++];
    *dim = (rule_dim){0};
    if (group >= 0)
        dim->factor[(int)dim->n++] = (signed char)group;
    dim->factor[(int)dim->n++] = (signed char)channel;
}

/* Tiles pack the elements of their positions, for all channels of the result. So tiles are cut along positions where
 * there are more of these than weights to pack, and tiles of the gradient of weights along the channels of x. */
static void cut_positions(trama_rule *rule, const trama_node *node, int o, int c)
{
    const roles r = roles_of(node);
    const int result = r.y == 2 ? o : r.x == 2 ? c : -1;
    const rule_tensor *tensor = &rule->tensor[2];
    double positions = 1;
    for (int d = 0; result >= 0 && d < tensor->ndim; d++)
        if (d != CHANNELS)
            positions *= (double)rule->factor[(int)tensor->dim[d].factor[0]].extent;
    if (result < 0)
        rule->factor[o].cut_last = true;
    else
        rule->factor[result].cut_last = positions >= 4 * (double)rule->factor[result].extent;
}

trama_status conv_infer(trama_rule *rule, const trama_node *node)
{
    const roles r = roles_of(node);
    const trama_shape *shape[3] = {&node->in[0]->shape, &node->in[1]->shape, NULL};
    const trama_shape *x = shape[r.x], *w = shape[r.w], *y = shape[r.y];
    const int64_t groups = node->attributes->integer[CONV_GROUPS];
    const int spatial = shape[0]->ndim - SPACE;
    trama_status status = windows_check(node, shape[0]->ndim);
    if (status)
        return status;
    if (shape[1]->ndim != shape[0]->ndim)
        return shape_error(node, "both need as many dims");
    if (groups < 1 || (x && x->dim[CHANNELS] % groups) || (y && y->dim[CHANNELS] % groups) || (w && w->dim[0] % groups))
        return shape_error(node, "the channels are not as many groups of equal size");
    const int64_t in = w ? w->dim[CHANNELS] : x->dim[CHANNELS] / groups;
    const int64_t out = (w ? w->dim[0] : y->dim[CHANNELS]) / groups;
    if ((x && x->dim[CHANNELS] != groups * in) || (y && y->dim[CHANNELS] != groups * out))
        return shape_error(node, "the channels are not those of the weights");
    if (x && y && x->dim[BATCH] != y->dim[BATCH])
        return shape_error(node, "the batches differ");
    const int batch = add_factor(rule, (x ? x : y)->dim[BATCH], false);
    const int group = groups > 1 ? add_factor(rule, groups, false) : -1;
    const int c = add_factor(rule, in, false), o = add_factor(rule, out, false);
    rule_tensor *tx = &rule->tensor[r.x], *tw = &rule->tensor[r.w], *ty = &rule->tensor[r.y];
    rule_add_dim(tx, batch);
    rule_add_dim(ty, batch);
    add_channels(tx, group, c);
    add_channels(ty, group, o);
    add_channels(tw, group, o);
    rule_add_dim(tw, c);
    for (int d = 0; d < spatial; d++) {
        const int64_t kernel = w ? w->dim[SPACE + d] : node->attributes->integer[CONV_EXTENT + d];
        if (kernel < 1 || kernel > INT64_C(1) << 30)
            return shape_error(node, "a kernel needs 1 to 2^30 elements along each spatial dim");
        windows_add_dim(rule, node, d, window_of(node->attributes, d, kernel), 1u << r.x, 1u << r.y);
        rule_add_dim(tw, add_factor(rule, kernel, true));
    }
    cut_positions(rule, node, o, c);
    return TRAMA_OK;
}

/* ---- Gradients ---- */

void conv_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const roles r = roles_of(node);
    trama_value *const tensor[3] = {node->in[0], node->in[1], d_out[0]};
    trama_value *x = tensor[r.x], *w = tensor[r.w], *y = tensor[r.y];
    for (int i = 0; i < 2; i++)
        d_in[i] = i == r.x   ? windows_apply(node, &trama_op_conv_transposed, y, w, node->in[i])
                  : i == r.w ? windows_apply(node, &trama_op_conv_weights, x, y, node->in[i])
                             : windows_apply(node, &trama_op_conv, x, w, node->in[i]);
}

/* ---- Builders ---- */

static trama_value *convolved(trama_where where, const trama_op *op, trama_value *x, trama_value *w, trama_value *bias,
                              const trama_windows *windows)
{
    trama_windows own;
    trama_attributes a = {0};
    int64_t extent[TRAMA_SPATIAL_DIMS] = {0};
    if (!x || !w)
        return NULL;
    if (w->shape.ndim != x->shape.ndim)
        return program_fail(x->program, where, TRAMA_E_SHAPE, "%s of %s: it has %d dims, and the weights %s have %d",
                            op->name, x->name, x->shape.ndim, w->name, w->shape.ndim);
    if (!windows_read(where, op->name, x, w->shape.dim + SPACE, windows, &own))
        return NULL;
    for (int d = 0; d < x->shape.ndim - SPACE; d++) {
        const int64_t n = x->shape.dim[SPACE + d];
        const int64_t spread = (n - 1) * own.stride[d] + own.dilation[d] * (own.kernel[d] - 1) + 1 + own.more[d] -
                               own.before[d] - own.after[d];
        extent[d] = op == &trama_op_conv ? windows_count(&own, d, n) : n && spread > 0 ? spread : 0;
    }
    windows_write(&own, x->shape.ndim - SPACE, extent, &a);
    a.integer[CONV_GROUPS] = own.groups;
    trama_value *y = program_append(NULL, where, op, 2, (trama_value *[]){x, w}, &a);
    return y && bias ? trama_add_at(where, y, along_channels(where, y, bias)) : y;
}

trama_value *trama_conv_at(trama_where where, trama_value *x, trama_value *w, trama_value *bias,
                           const trama_windows *windows)
{
    return convolved(where, &trama_op_conv, x, w, bias, windows);
}

trama_value *trama_conv_transposed_at(trama_where where, trama_value *x, trama_value *w, trama_value *bias,
                                      const trama_windows *windows)
{
    return convolved(where, &trama_op_conv_transposed, x, w, bias, windows);
}
