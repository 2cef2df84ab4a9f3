/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in shape_cases.def. */
#include "cases_inside.h"

#include <string.h>

/* integer: the permutation. */
trama_value *transposed(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, TRAMA_F64, block(variant));
    return trama_transpose(x, ((int[]){(int)c->integer[0], (int)c->integer[1], (int)c->integer[2]}));
}

/* A reshape whose dim 0 may be split unevenly. */
static trama_value *by_rows(trama_value *x, trama_shape shape)
{
    trama_attributes a = {.integer = {[SHAPE_NDIM] = shape.ndim, [RESHAPE_ROWS] = 1}};
    memcpy(&a.integer[SHAPE_DIM], shape.dim, sizeof shape.dim);
    return trama_apply_at(TRAMA_HERE, x->program, &trama_op_reshape, 1, &x, &a);
}

/* integer: 0 joins the first dims, 1 joins the last, 2 adds dims of 1, 3 cuts dim 0 into 2 (6) x a, 4 mixes dims, 5
 * joins the first dims by rows, 6 cuts dim 0 by rows, 7 does both. */
trama_value *reshaped(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant];
    switch (c->integer[0]) {
    case 0:
        return trama_reshape(operand(p, TRAMA_F64, block(variant)), TRAMA_SHAPE(n[0] * n[1], n[2]));
    case 1:
        return trama_reshape(operand(p, TRAMA_F64, block(variant)), TRAMA_SHAPE(n[0], n[1] * n[2]));
    case 2:
        return trama_reshape(operand(p, TRAMA_F64, block(variant)), TRAMA_SHAPE(1, n[0], 1, n[1], n[2], 1));
    case 3:
        return trama_reshape(operand(p, TRAMA_F64, TRAMA_SHAPE(6 * n[0], n[1])), TRAMA_SHAPE(6, n[0], n[1]));
    case 4:
        return trama_reshape(operand(p, TRAMA_F64, TRAMA_SHAPE(4, 6, n[0])), TRAMA_SHAPE(6, 4, n[0]));
    case 5:
        return by_rows(operand(p, TRAMA_F64, block(variant)), TRAMA_SHAPE(n[0] * n[1], n[2]));
    case 6:
        return by_rows(operand(p, TRAMA_F64, TRAMA_SHAPE(n[0] * 3, n[1])), TRAMA_SHAPE(n[0], 3, n[1]));
    default:
        return by_rows(operand(p, TRAMA_F64, TRAMA_SHAPE(n[0], 6, n[1])), TRAMA_SHAPE(n[0] * 2, 3, n[1]));
    }
}

/* integer: 0 joins the first dims, 3 cuts dim 0; the second operand has another shape. */
trama_value *reshaped_like(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant];
    const trama_shape whole = block(variant), first = TRAMA_SHAPE(3 * n[0], n[1]);
    trama_value *like = operand(p, TRAMA_F64, TRAMA_SHAPE(n[1]));
    return c->integer[0] ? trama_reshape_like(operand(p, TRAMA_F64, first), TRAMA_SHAPE(3, n[0], n[1]), like)
                         : trama_reshape_like(operand(p, TRAMA_F64, whole), TRAMA_SHAPE(n[0] * n[1], n[2]), like);
}

/* integer: 0 a slice of the first dim, 1 padding of the last, 2 a shift, 3 all dims at once. */
trama_value *windowed(trama_program *p, const op_case *c, int variant)
{
    trama_shape shape = block(variant);
    trama_value *x = operand(p, TRAMA_F64, shape);
    int64_t n = shape.dim[0];
    switch (c->integer[0]) {
    case 0:
        return trama_slice(x, 0, n > 1, n > 2 ? n - 2 : n - (n > 1));
    case 1:
        return trama_pad(x, 2, 1, 2);
    case 2:
        return trama_shift(x, 0, -1);
    default:
        return trama_window(x, ((int64_t[]){-1, 1, 2}), TRAMA_SHAPE(n + 3, shape.dim[1], 4));
    }
}
