/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of attention that are made of other ops and keep all scores: those of a mask, and second ones. */
#ifndef ATTENTION_SCORES_H
#define ATTENTION_SCORES_H

#include "families.h"

/* The mask of a call of attention or of its gradient; NULL: none. */
trama_value *attention_mask(const trama_node *node);

/* The gradient of the mask of a call of attention, where g is the gradient of its result, and delta that of
 * attention.def. */
trama_value *attention_mask_gradient(const trama_node *node, trama_value *delta, trama_value *g);

#endif
