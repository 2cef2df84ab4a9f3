/* SPDX-License-Identifier: Apache-2.0 */
/* The order and the numbers of messages. Sender and receiver find the same, since both sort by keys that both know. */
#include "messages.h"

#include <stdlib.h>

#include "planner.h"

int messages_compare(const void *a, const void *b)
{
    const plan_step *s = *(const plan_step *const *)a, *t = *(const plan_step *const *)b;
    plan_path of_s = plan_path_of(s), of_t = plan_path_of(t);
    const int keys[][2] = {
        {(int)s->kind, (int)t->kind}, {s->peer, t->peer},     {s->exchange, t->exchange}, {s->key.level, t->key.level},
        {s->key.term, t->key.term},   {of_s.from, of_t.from}, {of_s.to, of_t.to}};
    int order = COMPARE_KEYS(keys);
    return order ? order : box_compare(&s->key.box, &t->key.box);
}

void number_messages(plan *p)
{
    ARRAY(plan_step *) messages = {0};
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind >= STEP_SEND)
            *ARRAY_PUSH(&messages) = &p->steps.at[i];
    if (messages.n)
        qsort(messages.at, (size_t)messages.n, sizeof *messages.at, messages_compare);
    for (int i = 0; i < messages.n; i++) {
        const plan_step *before = i ? messages.at[i - 1] : NULL;
        bool same = before && before->kind == messages.at[i]->kind && before->peer == messages.at[i]->peer;
        messages.at[i]->tag = same ? before->tag + 1 : 0;
    }
    ARRAY_FREE(&messages);
}
