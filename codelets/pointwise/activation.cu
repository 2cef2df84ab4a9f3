/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their gradients on a GPU. */
#include "pointwise.cuh"

#include "formula.cuh"

ACTIVATION_OPS(POINTWISE_CUDA)
