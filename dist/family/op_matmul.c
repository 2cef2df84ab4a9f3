/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: its rule, by transposition and for vectors, and its gradients. */
#include <stdio.h>

#include "families.h"

/* A vector has only the contracted dim. */
trama_status matmul_infer(trama_rule *rule, const trama_node *node)
{
    static const char *const forms[2][3] = {{"...mk", "...km", "k"}, {"...kn", "...nk", "k"}};
    bool vector[2];
    char string[32];
    for (int i = 0; i < 2; i++) {
        vector[i] = node->in[i]->shape.ndim == 1;
        if (vector[i] && node->attributes.integer[i])
            return trama_fail(node->where, TRAMA_E_SHAPE,
                              "matmul: %s is a vector, which has no dims to transpose: leave trans_%c away",
                              node->in[i]->name, "xy"[i]);
    }
    const char *x = forms[0][vector[0] ? 2 : node->attributes.integer[MATMUL_TRANS_X] != 0];
    const char *y = forms[1][vector[1] ? 2 : node->attributes.integer[MATMUL_TRANS_Y] != 0];
    snprintf(string, sizeof string, "%s,%s->%s%s%s", x, y, vector[0] && vector[1] ? "" : "...", vector[0] ? "" : "m",
             vector[1] ? "" : "n");
    return rule_parse(rule, string, node);
}

trama_value *trama_matmul_at(trama_where where, trama_value *x, trama_value *y, bool trans_x, bool trans_y)
{
    trama_attributes a = {.integer = {[MATMUL_TRANS_X] = trans_x, [MATMUL_TRANS_Y] = trans_y}};
    return program_append(NULL, where, &trama_op_matmul, 2, (trama_value *[]){x, y}, &a);
}

static trama_shape with_one(trama_shape shape, int at)
{
    for (int d = shape.ndim++; d > at; d--)
        shape.dim[d] = shape.dim[d - 1];
    shape.dim[at] = 1;
    return shape;
}

/* Reshapes the value to have an extent of 1 for the rows or columns that a product with a vector lacks. */
static trama_value *matrix(trama_where where, trama_value *v, bool lacks_rows, bool lacks_columns)
{
    trama_shape shape = v->shape;
    if (lacks_columns)
        shape = with_one(shape, shape.ndim);
    if (lacks_rows)
        shape = with_one(shape, shape.ndim - 1);
    return lacks_rows || lacks_columns ? trama_reshape_at(where, v, shape) : v;
}

static trama_value *gradient_of(trama_where where, trama_value *d, trama_value *matrix, trama_value *operand)
{
    d = gradient_unbroadcast(d, matrix);
    return operand->shape.ndim == 1 ? trama_reshape_at(where, d, operand->shape) : d;
}

/* out = op(x) op(y): dx = G op(y)', dy = op(x)' G; transposed operands swap roles. Vectors are matrices of one row or
 * one column. */
void matmul_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    bool row = node->in[0]->shape.ndim == 1, column = node->in[1]->shape.ndim == 1;
    bool tx = node->attributes.integer[MATMUL_TRANS_X], ty = node->attributes.integer[MATMUL_TRANS_Y];
    trama_value *x = matrix(where, node->in[0], row, false), *y = matrix(where, node->in[1], false, column);
    trama_value *g = matrix(where, d_out[0], row, column);
    if (node_wants(node, 0)) {
        trama_value *d = tx ? trama_matmul_at(where, y, g, ty, true) : trama_matmul_at(where, g, y, false, !ty);
        d_in[0] = gradient_of(where, d, x, node->in[0]);
    }
    if (node_wants(node, 1)) {
        trama_value *d = ty ? trama_matmul_at(where, g, x, true, tx) : trama_matmul_at(where, x, g, !tx, false);
        d_in[1] = gradient_of(where, d, y, node->in[1]);
    }
}
