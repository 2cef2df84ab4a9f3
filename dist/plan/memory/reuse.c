/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers by liveness: a shard takes over the buffer of one that no step uses any more. Both have the same form, so
 * their tiles are the same handles, and StarPU orders the new writers behind the old readers. Hardly a step waits that
 * could run: the new writer needs results of the old users anyway (lineage.h). On a GPU, which has no arenas, it may
 * also stand LONG_AGO steps behind them. */
#include "lineage.h"
#include "spans.h"

enum {
    MOST_TRIED = 16, /* of the buffers that were freed last */
    LONG_AGO = 32    /* times the workers of the rank */
};

typedef struct freed_buffer {
    int shard; /* its last user */
    int step;  /* the last one on it */
    int needs; /* exchanges that the steps on it need */
} freed_buffer;

/* Buffers of one place, dtype, extents and cut. */
typedef struct buffer_form {
    int shard;                 /* one that has it */
    ARRAY(freed_buffer) freed; /* the last one last */
    int oldest;                /* those before it are taken */
} buffer_form;

/* For each step the shards that begin, or end, with it. */
typedef struct shards_by_step {
    int *at;   /* [steps] the first; -1 */
    int *next; /* [shards] the next; -1 */
} shards_by_step;

typedef struct reuse {
    plan *p;
    const shard_spans *spans;
    lineage *steps;
    int long_ago; /* steps */
    shards_by_step begins, ends;
    ARRAY(buffer_form) forms;
    hash_table by_form;
} reuse;

/* when: [shards] steps; -1 */
static shards_by_step by_step(const plan *p, const int *when)
{
    shards_by_step list = {new_numbers(p->steps.n), new_numbers(p->shards.n)};
    for (int i = 0; i < p->shards.n; i++)
        if (when[i] >= 0) {
            list.next[i] = list.at[when[i]];
            list.at[when[i]] = i;
        }
    return list;
}

static void by_step_free(shards_by_step *list)
{
    free(list->at);
    free(list->next);
}

static buffer_form *form_of(reuse *r, int shard)
{
    const plan_shard *s = &r->p->shards.at[shard];
    const int form[] = {s->place, (int)s->dtype, s->box.ndim, s->cut_dim, s->cut_parts};
    const uint64_t hash =
        hash_bytes(hash_bytes(HASH_START, form, sizeof form), s->box.n, (size_t)s->box.ndim * sizeof *s->box.n);
    for (int probe = 0, i; (i = hash_table_find(&r->by_form, hash, &probe)) >= 0;)
        if (plan_has_form_of(&r->p->shards.at[r->forms.at[i].shard], s))
            return &r->forms.at[i];
    hash_table_add(&r->by_form, hash, r->forms.n);
    buffer_form *f = ARRAY_PUSH(&r->forms);
    f->shard = shard;
    return f;
}

/* The buffer for a shard that begins in a step: the one that was freed last and can be taken at once, or the oldest;
 * -1: none. */
static int find_freed(reuse *r, const buffer_form *f, int step)
{
    const int before = exchanges_before(&r->p->steps.at[step]);
    for (int i = f->freed.n - 1; i >= (int)max_i64(f->oldest, f->freed.n - MOST_TRIED); i--)
        if (f->freed.at[i].needs <= before && lineage_is_behind(r->steps, step, f->freed.at[i].shard))
            return i;
    if (f->oldest == f->freed.n || !plan_on_gpu(r->p, r->p->shards.at[f->shard].place))
        return -1;
    const freed_buffer *oldest = &f->freed.at[f->oldest];
    return oldest->needs <= before && oldest->step + r->long_ago < step ? f->oldest : -1;
}

static void take(reuse *r, int shard, int step)
{
    buffer_form *f = form_of(r, shard);
    int at = find_freed(r, f, step);
    if (at < 0)
        return;
    const int taken = f->freed.at[at].shard, first = r->p->shards.at[taken].reuses;
    r->p->shards.at[shard].reuses = first < 0 ? taken : first;
    if (at == f->oldest) {
        f->oldest++;
        return;
    }
    for (f->freed.n--; at < f->freed.n; at++)
        f->freed.at[at] = f->freed.at[at + 1];
}

static void give(reuse *r, int shard, int step)
{
    *ARRAY_PUSH(&form_of(r, shard)->freed) = (freed_buffer){shard, step, r->spans->needs[shard]};
}

static bool can_share(const reuse *r, int shard)
{
    return !r->spans->fixed[shard] && r->p->shards.at[shard].source == SHARD_OWN;
}

void reuse_buffers(partition *q, const shard_spans *s)
{
    plan *p = q->p;
    reuse r = {.p = p,
               .spans = s,
               .steps = lineage_new(p, s->base),
               .long_ago = LONG_AGO * machine_workers(q->s.machine, q->s.rank),
               .begins = by_step(p, s->first),
               .ends = by_step(p, s->last)};
    for (int i = 0; i < p->steps.n; i++) {
        for (int k = r.begins.at[i]; k >= 0; k = r.begins.next[k])
            if (can_share(&r, k))
                take(&r, k, i);
        for (int k = r.ends.at[i]; k >= 0; k = r.ends.next[k])
            if (can_share(&r, k))
                give(&r, k, i);
    }
    for (int i = 0; i < r.forms.n; i++)
        ARRAY_FREE(&r.forms.at[i].freed);
    ARRAY_FREE(&r.forms);
    hash_table_free(&r.by_form);
    lineage_free(&r.steps);
    by_step_free(&r.begins);
    by_step_free(&r.ends);
}
