/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions, element by element with broadcasting, on a GPU. */
#include "pointwise_ops.cuh"

#include "math.def"
