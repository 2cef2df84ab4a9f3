/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as the interpreter runs them: by their definitions, when all members of a group have come. */
#ifndef MEETINGS_H
#define MEETINGS_H

#include "interpreter.h"

/* A member's part in a collective of its group, with what it gives. */
typedef struct arrival {
    const plan_group *group;
    const plan_step *step;
    int member, number; /* of the group's collectives, as this member counts */
    double *data;
} arrival;

typedef struct meetings {
    ARRAY(arrival) arrivals;
} meetings;
void meetings_free(meetings *all);

/* The step has come to its turn; what it reads stays as it is until it is done. Returns whether all members have come
 * to this one; by then it can be done. */
bool meetings_arrive(meetings *all, const memory *m, const plan_step *s);

/* The n elements that the step's place gets; false where the members have come to different collectives. */
bool meetings_result(const meetings *all, const plan_step *s, int64_t n, double *result);

/* Bytes that the place gets or gives, as they go round in a ring. */
int64_t meetings_bytes(const plan *p, const plan_step *s, bool received);

#endif
