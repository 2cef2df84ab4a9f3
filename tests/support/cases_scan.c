/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in scan_cases.def. */
#include "cases_inside.h"

/* integer: the first attributes; as many operands as the op has. */
trama_value *scanned(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[2];
    const int n = trama_op_find(c->op)->n_in;
    trama_attributes a = {0};
    for (int i = 0; i < n; i++)
        in[i] = operand(p, TRAMA_F64, block(variant));
    for (int i = 0; i < 4; i++)
        a.integer[i] = c->integer[i];
    return apply(p, c, n, in, &a);
}

/* integer: dim, descending. Half of the elements. */
trama_value *chosen(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, TRAMA_F64, block(variant));
    const int64_t k = (x->shape.dim[c->integer[0]] + 1) / 2;
    return apply(p, c, 1, &x, &(trama_attributes){.integer = {c->integer[0], c->integer[1], k}});
}
