/* SPDX-License-Identifier: Apache-2.0 */
/* Two schemes for a sum that changes its layout, counted process by process from the definition of layouts alone. A
 * plan must cost no more than the cheaper one. */
#ifndef SCHEME_H
#define SCHEME_H

#include "change.h"

/* The most elements that one process receives, and messages, with those that it sends to sum slices; elements that a
 * process of the source sends, on the average of those that have some; elements that all receive together: by slices at
 * most, wherever these lie. */
typedef struct scheme {
    int64_t received, messages, sent, total;
} scheme;

/* Each target receives every term of its box. */
scheme scheme_at_once(const change *c);

/* Each process of the source sums a slice along dim, and each target takes what it lacks from these. */
scheme scheme_by_slices(const change *c, int dim);

#endif
