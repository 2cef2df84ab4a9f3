/* SPDX-License-Identifier: Apache-2.0 */
/* What an op's rule says of layouts, to look at: the inference that completion uses, for one op. */
#ifndef TRAMA_RULE_H
#define TRAMA_RULE_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* The layouts of the op that made `value`, from those at hand: in [operands], out [results], full layouts on the mesh; out NULL:
 * forward. inferred_in and inferred_out get what the op computes on and makes; either may be NULL. Every split that can
 * stay stays; -1 and R on an operand may become a split, which costs nothing. Dims must be known. E_ARGUMENT for a value that
 * no op made, E_LAYOUT for layouts that do not fit. */
#define trama_rule_infer(value, mesh, in, out, inferred_in, inferred_out)                                              \
    trama_rule_infer_at(TRAMA_HERE, value, mesh, in, out, inferred_in, inferred_out)
trama_status trama_rule_infer_at(trama_where where, const trama_value *value, const trama_mesh *mesh,
                                 const trama_layout *in, const trama_layout *out, trama_layout *inferred_in,
                                 trama_layout *inferred_out);

int trama_value_operands(const trama_value *value); /* of the op that made it; 0 for others */
int trama_value_results(const trama_value *value);  /* of that op */
const trama_value *trama_value_operand(const trama_value *value, int i); /* NULL outside */

TRAMA_API_END
#endif
