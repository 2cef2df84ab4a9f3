/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their gradients on a GPU. */
#include "pointwise_ops.cuh"

#include "activation.def"
