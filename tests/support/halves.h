/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 and f16 by the words of IEEE 754 in doubles, beside the library's tricks with bits. */
#ifndef HALVES_H
#define HALVES_H

#include "trama_base.h"

/* The value of a half's bits. */
double half_value(trama_dtype dtype, uint16_t bits);

/* The half nearest to x, of two the one with an even last bit, as its value; a too large x is infinite. */
double half_round(trama_dtype dtype, double x);

/* The bits of a value that half_round gave. */
uint16_t half_bits(trama_dtype dtype, double x);

#endif
