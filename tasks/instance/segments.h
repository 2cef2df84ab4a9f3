/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of one GPU become one task. */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "instance.h"

/* Makes segments of the lowered steps that run on GPUs: of each the last step is submitted, with the buffers of all,
 * and the others are joined to it. */
void segments_make(const instance *in, lowering *l);
void segments_free(lowering *l); /* none of its tasks may be in flight */

#endif
