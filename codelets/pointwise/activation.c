/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their gradients, element by element. */
#include "pointwise_ops.h"

#include "activation.def"
