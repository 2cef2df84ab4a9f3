/* SPDX-License-Identifier: Apache-2.0 */
/* Damage to plans that must be noticed. */
#ifndef DAMAGE_H
#define DAMAGE_H

#include <string.h>

#include "plan.h"

/* Nothing is sent before everything has been received. */
static inline void damage_sends_wait(plan *p)
{
    plan_step order = {.kind = STEP_ORDER, .lane = -1, .exchange = -1, .operand = p->operands.n};
    plan_step *before = p->steps.at;
    int n = p->steps.n;
    memset(&p->steps, 0, sizeof p->steps);
    for (int i = 0; i < n; i++) {
        if (before[i].kind < STEP_SEND)
            continue;
        order.place = before[i].place;
        plan_operand o = p->operands.at[before[i].operand];
        o.access = ACCESS_UPDATE;
        *ARRAY_PUSH(&p->operands) = o;
        order.n_operands++;
        if (before[i].kind == STEP_RECEIVE)
            *ARRAY_PUSH(&p->steps) = before[i];
    }
    *ARRAY_PUSH(&p->steps) = order;
    for (int i = 0; i < n; i++)
        if (before[i].kind != STEP_RECEIVE)
            *ARRAY_PUSH(&p->steps) = before[i];
    free(before);
}

#endif
