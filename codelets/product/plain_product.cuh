/* SPDX-License-Identifier: Apache-2.0 */
/* Products of any type of numbers on a GPU, without a library. */
#ifndef CODELETS_PLAIN_PRODUCT_CUH
#define CODELETS_PLAIN_PRODUCT_CUH

#include "number.cuh"
#include "product.h"
#include "walk.cuh"

/* Enqueues the products of a batch, which walks out, x and y, or their sum, with one rounding. wide: out is f32, of
 * halves. */
void multiply_plainly(const product *p, trama_dtype dtype, bool wide, const grid_walk<3> &batch, bool sums,
                      const gpu *g);

#endif
