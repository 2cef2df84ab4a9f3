/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in window_cases.def. */
#include <string.h>

#include "cases_inside.h"

/* Kernels have 3 elements, and 2 along a second spatial dim. */
static int64_t kernel_of(int d)
{
    return d ? 2 : 3;
}

/* x [n, channels, spatial ..] and y, the windows on it. */
static void shapes_of(const op_case *c, int variant, int64_t in, int64_t out, trama_shape *x, trama_shape *y)
{
    const int spatial = (int)c->integer[0];
    const int64_t stride = c->integer[1], dilation = c->integer[2], before = (int64_t)c->real;
    *x = (trama_shape){.ndim = 2 + spatial, .dim = {spatial > 1 ? 2 : sizes[variant][1], in}};
    *y = (trama_shape){.ndim = 2 + spatial, .dim = {x->dim[0], out}};
    for (int d = 0; d < spatial; d++) {
        x->dim[2 + d] = sizes[variant][d ? 2 : 0] + 3;
        y->dim[2 + d] = (x->dim[2 + d] + 2 * before - dilation * (kernel_of(d) - 1) - 1) / stride + 1;
    }
}

static trama_attributes attributes_of(const op_case *c, trama_shape result)
{
    trama_attributes a = {0};
    for (int d = 0; d < c->integer[0]; d++) {
        a.integer[CONV_STRIDE + d] = c->integer[1];
        a.integer[CONV_DILATION + d] = c->integer[2];
        a.integer[CONV_BEFORE + d] = (int64_t)c->real;
        a.integer[CONV_EXTENT + d] = result.dim[2 + d];
    }
    return a;
}

trama_value *convolved(trama_program *p, const op_case *c, int variant)
{
    const int64_t groups = c->integer[3], in = sizes[variant][2] % 3 + 1, out = sizes[variant][1] % 2 + 2;
    trama_shape x, y, w = {.ndim = 2 + (int)c->integer[0], .dim = {groups * out, in}};
    shapes_of(c, variant, groups * in, groups * out, &x, &y);
    for (int d = 0; d < c->integer[0]; d++)
        w.dim[2 + d] = kernel_of(d);
    const trama_shape *tensors[3] = {&x, &w, &y};
    if (!strcmp(c->op, "conv_transposed"))
        memcpy(tensors, (const trama_shape *[]){&y, &w, &x}, sizeof tensors);
    else if (!strcmp(c->op, "conv_weights"))
        memcpy(tensors, (const trama_shape *[]){&x, &y, &w}, sizeof tensors);
    trama_attributes a = attributes_of(c, *tensors[2]);
    a.integer[CONV_GROUPS] = groups;
    trama_value *operands[] = {operand(p, TRAMA_F64, *tensors[0]), operand(p, TRAMA_F64, *tensors[1])};
    return apply(p, c, 2, operands, &a);
}

trama_value *pooled(trama_program *p, const op_case *c, int variant)
{
    trama_shape x, y;
    const bool spreads = strstr(c->op, "unpool"), indexed = c->domains[1] == LABEL;
    const int64_t channels = sizes[variant][2] % 3 + 1;
    shapes_of(c, variant, channels, channels, &x, &y);
    trama_attributes a = attributes_of(c, spreads ? x : y);
    for (int d = 0; d < c->integer[0]; d++)
        a.integer[POOL_KERNEL + d] = kernel_of(d);
    trama_value *operands[] = {operand(p, TRAMA_F64, spreads ? y : x), NULL};
    if (indexed)
        operands[1] = operand(p, TRAMA_I64, y);
    return apply(p, c, indexed ? 2 : 1, operands, &a);
}
