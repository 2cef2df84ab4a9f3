/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in network_cases.def. */
#include "cases_inside.h"

/* integer: the dim, operands. */
trama_value *normalised(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[2];
    for (int i = 0; i < c->integer[1]; i++)
        in[i] = operand(p, TRAMA_F64, block(variant));
    return apply(p, c, (int)c->integer[1], in, &(trama_attributes){.integer = {[SOFTMAX_AXIS] = c->integer[0]}});
}

trama_value *loss(trama_program *p, const op_case *c, int variant)
{
    trama_shape z = plane(variant);
    z.dim[1] = z.dim[1] ? z.dim[1] : 1; /* without a class there is no label */
    trama_value *in[3] = {operand(p, TRAMA_F64, z), operand(p, TRAMA_I64, TRAMA_SHAPE(z.dim[0]))};
    in[2] = c->integer[0] == 3 ? operand(p, TRAMA_F64, TRAMA_SCALAR) : NULL;
    return apply(p, c, (int)c->integer[0], in, NULL);
}
