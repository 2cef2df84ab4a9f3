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
