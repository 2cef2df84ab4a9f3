/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their gradients, element by element. */
#include "activation.h"
#include "loop.h"

ACTIVATION_OPS(POINTWISE)
