/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of the calls in norm_cases.def. */
#include "cases_inside.h"

trama_value *normed(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, TRAMA_F64, block(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.integer = {c->integer[0], c->integer[1]}, .real = {c->real}});
}

trama_value *norm_derived(trama_program *p, const op_case *c, int variant)
{
    trama_shape kept = block(variant);
    kept.dim[c->integer[0]] = 1;
    trama_value *in[] = {operand(p, TRAMA_F64, block(variant)), operand(p, TRAMA_F64, block(variant)),
                         operand(p, TRAMA_F64, kept)};
    return apply(p, c, 3, in, &(trama_attributes){.integer = {c->integer[0], c->integer[1]}});
}
