/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions, element by element with broadcasting. */
#include "pointwise_ops.h"

#include "math.def"
