/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a verification, for the files that make it up. */
#ifndef VERIFICATION_H
#define VERIFICATION_H

#include "plan.h"

typedef struct message {
    int from, to;
    int64_t tag;
    const plan *p;
    const plan_step *step;
    bool sent;
} message;

typedef ARRAY(message) messages;

/* A member's part in a collective: it is number `number` of its collectives with that group. */
typedef struct part {
    const plan *p;
    int rank, step, number;
    bool there; /* it has reached its step, and waits for the others */
} part;

typedef struct verification {
    const plan *const *plans;
    const trama_program *program;
    int n;
    messages sends, receives; /* sorted by from, to, tag */
    ARRAY(part) parts;        /* sorted by group, number, member */
} verification;

/* verify_plan.c */
int compare_messages(const void *a, const void *b); /* by from, to, tag */
const plan_operand *message_buffer(const message *m);
trama_status verify_fails(const verification *v, const message *m, const char *problem);

/* verify_collectives.c: finds the parts of all ranks; compares the members of each collective; notes that a member has
 * reached its step, and returns whether all have; and reports a problem of a part. */
void verify_collect_parts(verification *v);
trama_status verify_match_parts(const verification *v);
bool verify_meet(verification *v, int rank, int step);
trama_status verify_fails_at(const verification *v, const part *t, const char *problem);

/* verify_progress.c: whether all ranks come to their end. */
trama_status verify_progress(verification *v);

#endif
