/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, predicates, logic and bits, element by element with broadcasting. */
#include "pointwise_ops.h"

#include "logic.def"
