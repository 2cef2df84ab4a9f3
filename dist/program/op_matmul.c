/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: its rule by transposition, its gradients. */
#include "families.h"

trama_status matmul_infer(trama_rule *rule, const trama_node *node)
{
    static const char *const strings[2][2] = {{"...mk,...kn->...mn", "...mk,...nk->...mn"},
                                              {"...km,...kn->...mn", "...km,...nk->...mn"}};
    const int64_t *trans = node->attributes.integer;
    return rule_parse(rule, strings[trans[MATMUL_TRANS_X] != 0][trans[MATMUL_TRANS_Y] != 0], node);
}

trama_value *trama_matmul_at(trama_where where, trama_value *x, trama_value *y, bool trans_x, bool trans_y)
{
    trama_attributes a = {.integer = {[MATMUL_TRANS_X] = trans_x, [MATMUL_TRANS_Y] = trans_y}};
    return program_append(NULL, where, &trama_op_matmul, 2, (trama_value *[]){x, y}, &a);
}

/* out = op(x) op(y): dx = G op(y)', dy = op(x)' G; transposed operands swap roles. */
void matmul_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *x = node->in[0], *y = node->in[1], *g = d_out[0];
    bool tx = node->attributes.integer[MATMUL_TRANS_X], ty = node->attributes.integer[MATMUL_TRANS_Y];
    if (node_wants(node, 0)) {
        trama_value *d = tx ? trama_matmul_at(node->where, y, g, ty, true) : trama_matmul_at(node->where, g, y, false, !ty);
        d_in[0] = gradient_unbroadcast(d, x);
    }
    if (node_wants(node, 1)) {
        trama_value *d = ty ? trama_matmul_at(node->where, g, x, true, tx) : trama_matmul_at(node->where, x, g, !tx, false);
        d_in[1] = gradient_unbroadcast(d, y);
    }
}
