/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: its rule, by transposition, for vectors and for sums over a batch, and its gradients. */
#include <stdio.h>

#include "families.h"
#include "trama_complex.h"

/* x [b.., k, m], y [b.., k, n] -> [m, n]: all dims but the last are contracted. */
static trama_status infer_sum(trama_rule *rule, const trama_node *node)
{
    const int ndim = node->in[0]->shape.ndim;
    char string[32];
    if (!node->attributes->integer[MATMUL_TRANS_X] || node->attributes->integer[MATMUL_TRANS_Y] || ndim < 2 ||
        node->in[1]->shape.ndim != ndim)
        return trama_fail(node->where, TRAMA_E_SHAPE,
                          "matmul: sum_batch is for x [b.., k, m], with trans_x, and y [b.., k, n], without trans_y");
    snprintf(string, sizeof string, "%.*skm,%.*skn->mn", ndim - 2, "abcdef", ndim - 2, "abcdef");
    return rule_parse(rule, string, node);
}

/* A vector has only the contracted dim. */
trama_status matmul_infer(trama_rule *rule, const trama_node *node)
{
    static const char *const forms[2][3] = {{"...mk", "...km", "k"}, {"...kn", "...nk", "k"}};
    bool vector[2];
    char string[32];
    if (node->attributes->integer[MATMUL_SUM_BATCH])
        return infer_sum(rule, node);
    for (int i = 0; i < 2; i++) {
        vector[i] = node->in[i]->shape.ndim == 1;
        if (vector[i] && node->attributes->integer[i])
            return trama_fail(node->where, TRAMA_E_SHAPE,
                              "matmul: %s is a vector, which has no dims to transpose: leave trans_%c away",
                              node->in[i]->name, "xy"[i]);
    }
    const char *x = forms[0][vector[0] ? 2 : node->attributes->integer[MATMUL_TRANS_X] != 0];
    const char *y = forms[1][vector[1] ? 2 : node->attributes->integer[MATMUL_TRANS_Y] != 0];
    snprintf(string, sizeof string, "%s,%s->%s%s%s", x, y, vector[0] && vector[1] ? "" : "...", vector[0] ? "" : "m",
             vector[1] ? "" : "n");
    return rule_parse(rule, string, node);
}

trama_value *trama_matmul_at(trama_where where, trama_value *x, trama_value *y, bool trans_x, bool trans_y)
{
    return trama_matmul_op_at(where, x, y, trans_x ? TRAMA_TRANS : TRAMA_NO_TRANS,
                              trans_y ? TRAMA_TRANS : TRAMA_NO_TRANS);
}

static trama_value *refuse_op(trama_where where, const trama_value *x, trama_transposition op)
{
    return program_fail(x->program, where, TRAMA_E_ARGUMENT,
                        "matmul: %d is no way to read %s; there are TRAMA_NO_TRANS, TRAMA_TRANS and TRAMA_CONJ_TRANS",
                        (int)op, x->name);
}

/* Of a real operand the conjugate is not asked for, so that equal products have equal attributes. */
static trama_transposition plain(const trama_value *x, trama_transposition op)
{
    return op == TRAMA_CONJ_TRANS && !is_complex(x) ? TRAMA_TRANS : op;
}

trama_value *trama_matmul_op_at(trama_where where, trama_value *x, trama_value *y, trama_transposition op_x,
                                trama_transposition op_y)
{
    if (!x || !y)
        return NULL;
    if ((unsigned)op_x > TRAMA_CONJ_TRANS)
        return refuse_op(where, x, op_x);
    if ((unsigned)op_y > TRAMA_CONJ_TRANS)
        return refuse_op(where, y, op_y);
    trama_attributes a = {.integer = {[MATMUL_TRANS_X] = plain(x, op_x), [MATMUL_TRANS_Y] = plain(y, op_y)}};
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

/* A matrix as a product reads it. */
typedef struct factor {
    trama_value *value;
    trama_transposition op;
} factor;

/* conj(op(value)), and its transposed matrix. A conjugate that no product reads so is made. */
static factor conjugate(trama_where where, factor f)
{
    if (f.op == TRAMA_NO_TRANS || !is_complex(f.value))
        return (factor){trama_conj_at(where, f.value), f.op};
    return (factor){f.value, f.op == TRAMA_TRANS ? TRAMA_CONJ_TRANS : TRAMA_TRANS};
}

static factor adjoint(trama_where where, factor f)
{
    if (f.op == TRAMA_TRANS)
        return (factor){trama_conj_at(where, f.value), TRAMA_NO_TRANS};
    return (factor){f.value, f.op == TRAMA_NO_TRANS ? TRAMA_CONJ_TRANS : TRAMA_NO_TRANS};
}

static trama_value *times(trama_where where, factor x, factor y)
{
    return trama_matmul_op_at(where, x.value, y.value, x.op, y.op);
}

/* The sum over the batch, where x is transposed and y is not. */
static trama_value *sum_of_products(trama_where where, factor x, factor y)
{
    trama_attributes a = {.integer = {[MATMUL_TRANS_X] = plain(x.value, x.op), [MATMUL_SUM_BATCH] = true}};
    return program_append(NULL, where, &trama_op_matmul, 2, (trama_value *[]){x.value, y.value}, &a);
}

/* out = A B, A = op(x), B = op(y): dA = G B^H, dB = A^H G; dx and dy are their transposes where op transposes. Where a
 * batch of A, not transposed, has one B, one product sums dB over the batch. */
void matmul_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_where where = node->where;
    bool row = node->in[0]->shape.ndim == 1, column = node->in[1]->shape.ndim == 1;
    trama_value *x = matrix(where, node->in[0], row, false), *y = matrix(where, node->in[1], false, column);
    trama_value *out = matrix(where, d_out[0], row, column);
    const factor a = {x, (trama_transposition)node->attributes->integer[MATMUL_TRANS_X]},
                 b = {y, (trama_transposition)node->attributes->integer[MATMUL_TRANS_Y]}, g = {out, TRAMA_NO_TRANS},
                 g_trans = {out, TRAMA_TRANS}, g_adjoint = {out, TRAMA_CONJ_TRANS};
    if (node_wants(node, 0)) {
        trama_value *d = a.op == TRAMA_NO_TRANS ? times(where, g, adjoint(where, b))
                         : a.op == TRAMA_TRANS  ? times(where, conjugate(where, b), g_trans)
                                                : times(where, b, g_adjoint);
        d_in[0] = gradient_of(where, d, x, node->in[0]);
    }
    if (node_wants(node, 1)) {
        const bool shared = a.op == TRAMA_NO_TRANS && x->shape.ndim > 2 && y->shape.ndim == 2;
        trama_value *(*const product)(trama_where, factor, factor) = shared ? sum_of_products : times;
        trama_value *d = b.op == TRAMA_NO_TRANS ? product(where, adjoint(where, a), g)
                         : b.op == TRAMA_TRANS  ? product(where, g_trans, conjugate(where, a))
                                                : product(where, g_adjoint, a);
        d_in[1] = gradient_of(where, d, y, node->in[1]);
    }
}
