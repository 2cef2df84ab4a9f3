/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, predicates, logic and bits, element by element with broadcasting, on a GPU. */
#include "pointwise_ops.cuh"

#include "logic.def"
