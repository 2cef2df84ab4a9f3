/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers by liveness: a shard takes over the buffer of one that no step uses any more. Both have the same form, so
 * their tiles are the same handles, and StarPU orders the new writers behind the old readers. Hardly a step waits that
 * could run: the new writer needs results of the old users anyway (lineage.h), or these stand LONG_AGO steps before it.
 *
 * All ranks walk the same ops and exchanges, so a step may wait for those before it on any rank, but bundles arrive
 * later than they stand: when the last of their parts is sent, which is in the last exchange of their bucket. So
 * exchanges count: a step needs the first n of them, where a message of number n - 1 reaches it, through steps of any
 * rank; and a step that is made when there are m may wait for those that need m or fewer. */
#include <string.h>

#include "lineage.h"
#include "planner.h"

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
    int *base; /* [shards] the shard whose memory it lies in */
    lineage *steps;
    int long_ago;      /* steps */
    bool *fixed;       /* [shards] others may use the buffer behind the plan, or at any time */
    int *first, *last; /* [shards] steps that use it or a part of it; -1 */
    int *needs;        /* [shards] exchanges that its users need */
    shards_by_step begins, ends;
    ARRAY(buffer_form) forms;
    hash_table by_form;
} reuse;

static int *new_numbers(int n)
{
    const size_t bytes = (size_t)max_i64(1, n) * sizeof(int);
    return memset(trama_alloc(bytes), -1, bytes);
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* [shards] The shard whose memory each lies in. */
static int *find_bases(const plan *p)
{
    int *base = new_numbers(p->shards.n);
    for (int i = 0; i < p->shards.n; i++)
        for (base[i] = i; p->shards.at[base[i]].within >= 0;)
            base[i] = p->shards.at[base[i]].within;
    return base;
}

static bool has_memory(const plan_shard *s)
{
    return s->within < 0 && s->source != SHARD_IMPORT && s->source != SHARD_HOST && s->source != SHARD_TOKEN;
}

/* Values that are read later are found by plan_find. An internal shard has no handle that orders its users. A shard
 * that is read before it is written has its content from elsewhere. Its views hold nobody up: steps on the shard itself
 * stand before and behind their use (STEP_ORDER). */
static void find_fixed(reuse *r, const bool *kept)
{
    plan *p = r->p;
    for (int i = 0; i < p->shards.n; i++)
        r->fixed[i] |= p->shards.at[i].source != SHARD_OWN || r->first[i] < 0;
    for (int i = 0; i < p->dist_values.n; i++) {
        const plan_dist_value *h = &p->dist_values.at[i];
        for (int k = 0; kept[h->value] && plan_find(p, h->value) == h && k < h->pieces.n; k++)
            r->fixed[r->base[h->pieces.at[k].region.shard]] = true;
    }
}

/* The exchanges up to the last one of its bucket. */
static int *find_bucket_ends(const plan *p)
{
    int *end = new_numbers(p->exchanges.n), *last = new_numbers(p->exchanges.n); /* buckets are fewer */
    for (int i = p->exchanges.n - 1; i >= 0; i--) {
        const int bucket = p->exchanges.at[i].bucket;
        const bool alone = bucket < 0 || bucket >= p->exchanges.n;
        if (!alone && last[bucket] < 0)
            last[bucket] = i + 1;
        end[i] = alone ? i + 1 : last[bucket];
    }
    free(last);
    return end;
}

/* [exchanges] What its messages need on any rank: exchanges for the ops before the value, and the bucket. */
static int *find_exchange_needs(const plan *p, const trama_program *program)
{
    int *needs = find_bucket_ends(p);
    int *of_value = new_numbers(program->values.n), *of_node = new_numbers(program->nodes.n);
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        int *of = e->node >= 0 ? &of_node[e->node] : &of_value[e->value];
        *of = later(*of, needs[i]);
    }
    for (int i = 0; i < program->nodes.n; i++) {
        const trama_node *node = program->nodes.at[i];
        for (int t = 0; t < node->op->n_in; t++)
            of_node[i] = later(of_node[i], of_value[node->in[t]->id]);
        for (int o = 0; o < node->op->n_out; o++)
            of_value[node->out[o]->id] = later(of_value[node->out[o]->id], of_node[i]);
    }
    for (int i = 0; i < p->exchanges.n; i++)
        needs[i] = later(needs[i], of_value[p->exchanges.at[i].value]);
    free(of_value);
    free(of_node);
    return needs;
}

/* The exchanges that there are when a step is made; its own one does not count. */
static int exchanges_before(const plan_step *s)
{
    return s->exchange >= 0 && s->kind != STEP_COMPUTE ? s->exchange : s->exchanges_before;
}

/* needs: of the steps that wrote the operand, or, where this one writes, of all that used it. */
static int needs_of(const reuse *r, const plan_step *s, const int *of_exchange, const int *written)
{
    int needs = s->kind == STEP_RECEIVE || s->kind == STEP_COLLECTIVE ? of_exchange[s->exchange] : 0;
    for (int k = 0; k < s->n_operands; k++) {
        const plan_operand *o = plan_step_operand(r->p, s, k);
        const int shard = r->base[o->region.shard];
        needs = later(needs, (o->access == ACCESS_READ ? written : r->needs)[shard]);
    }
    return needs;
}

static void find_spans(reuse *r, const trama_program *program)
{
    const plan *p = r->p;
    int *of_exchange = find_exchange_needs(p, program), *written = new_numbers(p->shards.n);
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        const int needs = needs_of(r, s, of_exchange, written);
        for (int k = 0; k < s->n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, s, k);
            const int shard = r->base[o->region.shard];
            if (r->first[shard] < 0) {
                r->first[shard] = i;
                r->fixed[shard] |= o->access == ACCESS_READ;
            }
            r->last[shard] = i;
            r->needs[shard] = later(r->needs[shard], needs);
            if (o->access != ACCESS_READ)
                written[shard] = later(written[shard], needs);
        }
    }
    free(of_exchange);
    free(written);
}

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
    for (int i = f->freed.n - 1; i >= later(f->oldest, f->freed.n - MOST_TRIED); i--)
        if (f->freed.at[i].needs <= before && lineage_is_behind(r->steps, step, f->freed.at[i].shard))
            return i;
    if (f->oldest == f->freed.n)
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
    *ARRAY_PUSH(&form_of(r, shard)->freed) = (freed_buffer){shard, step, r->needs[shard]};
}

/* Message buffers do, though no shard takes over theirs. */
static bool comes_and_goes(const reuse *r, int shard)
{
    const plan_shard *s = &r->p->shards.at[shard];
    return has_memory(s) && r->first[shard] >= 0 && !(s->source == SHARD_OWN && r->fixed[shard]);
}

/* What lives in a step, by place; buffers that others may use live in all. */
static void count_footprint(reuse *r)
{
    plan *p = r->p;
    int64_t *live = trama_alloc((size_t)max_i64(1, p->gpus.n) * sizeof *live);
    while (p->footprint.n < p->gpus.n)
        *ARRAY_PUSH(&p->footprint) = (plan_footprint){0};
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (has_memory(s) && s->reuses < 0)
            p->footprint.at[s->place].bytes += plan_shard_bytes(s);
        if (has_memory(s) && !comes_and_goes(r, i))
            live[s->place] += plan_shard_bytes(s);
    }
    for (int i = 0; i < p->gpus.n; i++)
        p->footprint.at[i].live = live[i];
    for (int i = 0; i < p->steps.n; i++) {
        for (int s = r->begins.at[i]; s >= 0; s = r->begins.next[s])
            if (comes_and_goes(r, s)) {
                const int place = p->shards.at[s].place;
                live[place] += plan_shard_bytes(&p->shards.at[s]);
                p->footprint.at[place].live = max_i64(p->footprint.at[place].live, live[place]);
            }
        for (int s = r->ends.at[i]; s >= 0; s = r->ends.next[s])
            if (comes_and_goes(r, s))
                live[p->shards.at[s].place] -= plan_shard_bytes(&p->shards.at[s]);
    }
    free(live);
}

void reuse_buffers(partition *q, const bool *kept)
{
    plan *p = q->p;
    reuse r = {.p = p,
               .base = find_bases(p),
               .long_ago = LONG_AGO * machine_workers(q->s.machine, q->s.rank),
               .fixed = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *r.fixed),
               .first = new_numbers(p->shards.n),
               .last = new_numbers(p->shards.n),
               .needs = new_numbers(p->shards.n)};
    find_spans(&r, q->s.program);
    find_fixed(&r, kept);
    r.steps = lineage_new(p, r.base);
    r.begins = by_step(p, r.first);
    r.ends = by_step(p, r.last);
    for (int i = 0; i < p->steps.n; i++) {
        for (int k = r.begins.at[i]; k >= 0; k = r.begins.next[k])
            if (!r.fixed[k])
                take(&r, k, i);
        for (int k = r.ends.at[i]; k >= 0; k = r.ends.next[k])
            if (!r.fixed[k])
                give(&r, k, i);
    }
    count_footprint(&r);
    for (int i = 0; i < r.forms.n; i++)
        ARRAY_FREE(&r.forms.at[i].freed);
    ARRAY_FREE(&r.forms);
    hash_table_free(&r.by_form);
    lineage_free(&r.steps);
    free(r.base);
    free(r.fixed);
    free(r.first);
    free(r.last);
    free(r.needs);
    by_step_free(&r.begins);
    by_step_free(&r.ends);
}
