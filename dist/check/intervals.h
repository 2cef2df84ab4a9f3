/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals by group, sorted, so that a search finds those of a group that meet a given one without visiting all. */
#ifndef INTERVALS_H
#define INTERVALS_H

#include "base.h"

typedef struct interval {
    int group, what; /* what: the caller's */
    int64_t lo, hi;  /* half-open */
    int64_t reach;   /* the largest hi of the group up to here; set by intervals_sort */
} interval;

typedef ARRAY(interval) intervals;

void intervals_add(intervals *list, int group, int64_t lo, int64_t hi, int what);
void intervals_sort(intervals *list); /* after the last intervals_add */

/* The next interval of the group that meets [lo, hi), from index `from` downwards; -1: none. Begin at intervals_begin
 * and go on at the index found less 1. */
int intervals_begin(const intervals *list, int group, int64_t hi);
int intervals_next(const intervals *list, int group, int64_t lo, int from);

#endif
