/* SPDX-License-Identifier: Apache-2.0 */
/* Layout inference for one op, as completion does it, for inspection. */
#ifndef TRAMA_RULE_H
#define TRAMA_RULE_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Infers the layouts of the op that made `value`. in [operands] and out [results] are its known layouts on the mesh,
 * "?" allowed; out NULL: forward inference. inferred_in and inferred_out get the layouts on which the op computes and
 * of its results; either may be NULL. A split stays wherever it can; -1 and R of an operand may become a split, which
 * needs no message. Dims must be known: E_SHAPE. E_ARGUMENT for a value that no op made, E_LAYOUT for layouts that do
 * not fit. */
#define trama_rule_infer(value, mesh, in, out, inferred_in, inferred_out)                                              \
    trama_rule_infer_at(TRAMA_HERE, value, mesh, in, out, inferred_in, inferred_out)
trama_status trama_rule_infer_at(trama_where where, const trama_value *value, const trama_mesh *mesh,
                                 const trama_layout *in, const trama_layout *out, trama_layout *inferred_in,
                                 trama_layout *inferred_out);

int trama_value_operands(const trama_value *value); /* operands of the op that made it; 0 without an op */
int trama_value_results(const trama_value *value);  /* results of that op */
const trama_value *trama_value_operand(const trama_value *value, int i); /* operand i of that op; NULL outside */

TRAMA_API_END
#endif
