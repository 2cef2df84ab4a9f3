/* SPDX-License-Identifier: Apache-2.0 */
/* Small messages, which may be bundled. */
#ifndef BUNDLE_CANDIDATES_H
#define BUNDLE_CANDIDATES_H

#include "planner.h"

/* A message that may be bundled with others. */
typedef struct candidate {
    const plan_step *step;
    int at; /* of the step in the plan */
    int bucket, dtype;
    int64_t elements, bytes;
    plan_region from; /* sent: the region that its buffer is packed from, else its own region */
    bool early;       /* sent: `from` is written again before the others are ready */
} candidate;

typedef ARRAY(candidate) candidates;

/* 0: between the same places, of one bucket, level and type, so that they may be bundled. */
int candidates_compare_ways(const candidate *c, const candidate *d);

/* Those of a plan; such that may be bundled follow each other. The caller frees the list. */
candidates candidates_find(const plan *p);

#endif
