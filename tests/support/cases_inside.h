/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the table of op calls share this: operands, sizes, and the builders that the table names. */
#ifndef CASES_INSIDE_H
#define CASES_INSIDE_H

#include "cases.h"
#include "ops.h"
#include "trama_array.h"
#include "trama_ops.h"

typedef trama_value *case_builder(trama_program *p, const op_case *c, int variant);

case_builder gathered, gathered_along, gathered_grad, scattered, scattered_along, joined, strided,
    flipped;                                 /* cases_index.c */
case_builder normed, norm_derived;           /* cases_norm.c */
case_builder convolved, pooled;              /* cases_window.c */
case_builder normalised, loss;               /* cases_network.c */
case_builder attended, attention_derived;    /* cases_attention.c */
case_builder scanned, chosen;                /* cases_scan.c */
case_builder transposed, reshaped, reshaped_like, windowed; /* cases_shape.c */

extern const int64_t sizes[N_VARIANTS][3];
trama_shape plane(int variant);                                               /* the first two of the sizes */
trama_shape block(int variant);                                               /* all three */
trama_value *operand(trama_program *p, trama_dtype dtype, trama_shape shape); /* a new input */
/* The op of the case on these operands. */
trama_value *apply(trama_program *p, const op_case *c, int n, trama_value *const *in, const trama_attributes *a);

#endif
