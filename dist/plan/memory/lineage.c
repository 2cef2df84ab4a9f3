/* SPDX-License-Identifier: Apache-2.0 */
/* The lineage of steps. */
#include "lineage.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WRITERS = 16, MOST_USERS = 16, MOST_SEEN = 64 };

typedef ARRAY(int) numbers;

struct lineage {
    const plan *p;
    const int *base;
    int n_works, *work; /* [steps] */
    numbers *before;    /* [works] those that it waits for */
    numbers *users;     /* [shards] works, at most MOST_USERS + 1 of them */
    int *seen;          /* [works] the last one from which it was seen, or -1 */
    int from;
};

static bool is_one_work(const plan *p, const plan_step *a, const plan_step *b)
{
    if (a->kind != STEP_COMPUTE || b->kind != STEP_COMPUTE)
        return a->kind != STEP_COMPUTE && b->kind != STEP_COMPUTE && a->exchange >= 0 && a->exchange == b->exchange;
    return p->calls.at[a->call].node == p->calls.at[b->call].node;
}

static void add_last(numbers *list, int number, int most)
{
    if (list->n < most && (!list->n || list->at[list->n - 1] != number))
        *ARRAY_PUSH(list) = number;
}

static void add_step(lineage *l, int step, numbers *writers)
{
    const plan_step *s = &l->p->steps.at[step];
    const int work = l->work[step];
    for (int k = 0; k < s->n_operands; k++) {
        const int shard = l->base[plan_step_operand(l->p, s, k)->region.shard];
        for (int i = 0; i < writers[shard].n; i++)
            if (writers[shard].at[i] != work)
                add_last(&l->before[work], writers[shard].at[i], MOST_SEEN);
        add_last(&l->users[shard], work, MOST_USERS + 1);
    }
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(l->p, s, k);
        if (o->access != ACCESS_READ)
            add_last(&writers[l->base[o->region.shard]], work, MOST_WRITERS);
    }
}

lineage *lineage_new(const plan *p, const int *base)
{
    lineage *l = trama_alloc(sizeof *l);
    numbers *writers = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *writers);
    *l = (lineage){.p = p, .base = base, .from = -1};
    l->work = trama_alloc((size_t)max_i64(1, p->steps.n) * sizeof *l->work);
    l->before = trama_alloc((size_t)max_i64(1, p->steps.n) * sizeof *l->before);
    l->seen = trama_alloc((size_t)max_i64(1, p->steps.n) * sizeof *l->seen);
    l->users = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *l->users);
    for (int i = 0; i < p->steps.n; i++) {
        l->n_works += i > 0 && !is_one_work(p, &p->steps.at[i - 1], &p->steps.at[i]);
        l->work[i] = l->n_works;
        l->seen[i] = -1;
        add_step(l, i, writers);
    }
    l->n_works += p->steps.n > 0;
    for (int i = 0; i < p->shards.n; i++)
        ARRAY_FREE(&writers[i]);
    free(writers);
    return l;
}

void lineage_free(lineage **l_)
{
    lineage *l = *l_;
    for (int i = 0; i < l->n_works; i++)
        ARRAY_FREE(&l->before[i]);
    for (int i = 0; i < l->p->shards.n; i++)
        ARRAY_FREE(&l->users[i]);
    free(l->work);
    free(l->before);
    free(l->users);
    free(l->seen);
    free(l);
    *l_ = NULL;
}

/* Sees the nearest works that this one waits for. */
static void look_back(lineage *l, int work)
{
    int list[MOST_SEEN], n = 0;
    l->from = work;
    list[n++] = work;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < l->before[list[i]].n && n < MOST_SEEN; k++) {
            const int found = l->before[list[i]].at[k];
            if (l->seen[found] != work)
                list[n++] = found;
            l->seen[found] = work;
        }
}

bool lineage_is_behind(lineage *l, int step, int shard)
{
    const numbers *users = &l->users[shard];
    bool behind = users->n <= MOST_USERS;
    if (l->from != l->work[step])
        look_back(l, l->work[step]);
    for (int i = 0; behind && i < users->n; i++)
        behind = l->seen[users->at[i]] == l->work[step];
    return behind;
}
