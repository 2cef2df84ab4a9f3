/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of shards, and the bytes that they take. */
#include "spans.h"

#include <string.h>

static int later(int a, int b)
{
    return a > b ? a : b;
}

int *new_numbers(int n)
{
    const size_t bytes = (size_t)max_i64(1, n) * sizeof(int);
    return memset(trama_alloc(bytes), -1, bytes);
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

bool has_buffer(const plan *p, const plan_shard *s)
{
    return s->within < 0 && !plan_in_scratch(p, s) && s->source != SHARD_IMPORT && s->source != SHARD_HOST &&
           s->source != SHARD_TOKEN;
}

int exchanges_before(const plan_step *s)
{
    return s->exchange >= 0 && s->kind != STEP_COMPUTE ? s->exchange : s->exchanges_before;
}

/* Values that are read later are found by plan_find. An internal shard has no handle that orders its users. A shard
 * that is read before it is written has its content from elsewhere. Its views hold nobody up: steps on the shard itself
 * stand before and behind their use (STEP_ORDER). */
static void find_fixed(const plan *p, const bool *kept, shard_spans *s)
{
    for (int i = 0; i < p->shards.n; i++) {
        const shard_source source = p->shards.at[i].source;
        s->fixed[i] |= (source != SHARD_OWN && source != SHARD_MESSAGE && source != SHARD_WINDOW) || s->first[i] < 0;
    }
    for (int i = 0; i < p->dist_values.n; i++) {
        const plan_dist_value *h = &p->dist_values.at[i];
        for (int k = 0; kept[h->value] && plan_find(p, h->value) == h && k < h->pieces.n; k++)
            s->fixed[s->base[h->pieces.at[k].region.shard]] = true;
    }
}

int *find_bucket_ends(const plan *p)
{
    int buckets = 0;
    for (int i = 0; i < p->exchanges.n; i++) {
        const int bucket = p->exchanges.at[i].bucket;
        buckets = bucket >= buckets && bucket < OWN_BUCKET ? bucket + 1 : buckets;
    }
    int *end = new_numbers(p->exchanges.n), *last = new_numbers(buckets);
    for (int i = p->exchanges.n - 1; i >= 0; i--) {
        const int bucket = p->exchanges.at[i].bucket;
        const bool alone = bucket < 0 || bucket >= OWN_BUCKET;
        if (!alone && last[bucket] < 0)
            last[bucket] = i + 1;
        end[i] = alone ? i + 1 : last[bucket];
    }
    free(last);
    return end;
}

/* [exchanges] The exchanges that the messages of one need on any rank: those for the ops before its value and itself,
 * or where they are bundled, its bucket. */
typedef struct exchange_needs {
    int *alone, *bundled;
} exchange_needs;

static exchange_needs find_exchange_needs(const plan *p, const trama_program *program)
{
    exchange_needs needs = {new_numbers(p->exchanges.n), find_bucket_ends(p)};
    int *of_value = new_numbers(program->values.n), *of_node = new_numbers(program->nodes.n);
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        int *of = e->node >= 0 ? &of_node[e->node] : &of_value[e->value];
        *of = later(*of, needs.bundled[i]);
    }
    for (int i = 0; i < program->nodes.n; i++) {
        const trama_node *node = program->nodes.at[i];
        for (int t = 0; t < node->op->n_in; t++)
            of_node[i] = later(of_node[i], of_value[node->in[t]->id]);
        for (int o = 0; o < node->op->n_out; o++)
            of_value[node->out[o]->id] = later(of_value[node->out[o]->id], of_node[i]);
    }
    for (int i = 0; i < p->exchanges.n; i++) {
        needs.alone[i] = later(i + 1, of_value[p->exchanges.at[i].value]);
        needs.bundled[i] = later(needs.bundled[i], needs.alone[i]);
    }
    free(of_value);
    free(of_node);
    return needs;
}

/* 0 where no message or collective reaches the step. */
static int needs_of_message(const plan *p, const plan_step *s, const exchange_needs *needs)
{
    if (s->kind == STEP_COLLECTIVE)
        return needs->bundled[s->exchange];
    if (s->kind != STEP_RECEIVE)
        return 0;
    const bool bundled = p->shards.at[plan_step_operand(p, s, 0)->region.shard].source == SHARD_BUNDLE;
    return (bundled ? needs->bundled : needs->alone)[s->exchange];
}

/* needs: of its own message. Adds those of the steps that wrote an operand, or where this one writes, of all that used
 * it. */
static int needs_of(const plan *p, const shard_spans *s, const plan_step *step, int needs, const int *written)
{
    for (int k = 0; k < step->n_operands; k++) {
        const plan_operand *o = plan_step_operand(p, step, k);
        const int shard = s->base[o->region.shard];
        needs = later(needs, (o->access == ACCESS_READ ? written : s->needs)[shard]);
    }
    return needs;
}

static void find_steps(const plan *p, const trama_program *program, shard_spans *s)
{
    exchange_needs of_exchange = find_exchange_needs(p, program);
    int *written = new_numbers(p->shards.n);
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *step = &p->steps.at[i];
        const int needs = needs_of(p, s, step, needs_of_message(p, step, &of_exchange), written);
        for (int k = 0; k < step->n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, step, k);
            const int shard = s->base[o->region.shard];
            if (s->first[shard] < 0) {
                s->first[shard] = i;
                s->fixed[shard] |= o->access == ACCESS_READ;
            }
            s->last[shard] = i;
            s->needs[shard] = later(s->needs[shard], needs);
            if (o->access != ACCESS_READ)
                written[shard] = later(written[shard], needs);
        }
    }
    free(of_exchange.alone);
    free(of_exchange.bundled);
    free(written);
}

shard_spans spans_find(const partition *q, const bool *kept)
{
    const plan *p = q->p;
    shard_spans s = {.base = find_bases(p),
                     .first = new_numbers(p->shards.n),
                     .last = new_numbers(p->shards.n),
                     .needs = new_numbers(p->shards.n),
                     .fixed = trama_alloc((size_t)max_i64(1, p->shards.n) * sizeof *s.fixed)};
    find_steps(p, q->s.program, &s);
    find_fixed(p, kept, &s);
    return s;
}

void spans_free(shard_spans *s)
{
    free(s->base);
    free(s->first);
    free(s->last);
    free(s->needs);
    free(s->fixed);
    *s = (shard_spans){0};
}

/* ---- Bytes ---- */

/* Message buffers do, though no shard takes over theirs. */
static bool comes_and_goes(const plan *p, const shard_spans *s, int shard)
{
    const plan_shard *at = &p->shards.at[shard];
    return has_buffer(p, at) && s->first[shard] >= 0 && !(at->source == SHARD_OWN && s->fixed[shard]);
}

/* The most that lives in a step of the place; buffers that others may use live in all. */
static int64_t count_live(const plan *p, const shard_spans *s, int place)
{
    int64_t *more = trama_alloc(((size_t)p->steps.n + 1) * sizeof *more), live = 0, most = 0;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *shard = &p->shards.at[i];
        const int64_t bytes = has_buffer(p, shard) && shard->place == place ? plan_shard_bytes(shard) : 0;
        const bool comes = comes_and_goes(p, s, i);
        more[comes ? s->first[i] : 0] += bytes;
        more[comes ? s->last[i] + 1 : p->steps.n] -= bytes;
    }
    for (int i = 0; i < p->steps.n; i++)
        most = max_i64(most, live += more[i]);
    free(more);
    return most;
}

/* The scratch memory that a worker of each place needs for the largest step there. */
static void count_scratch(plan *p, const machine *m)
{
    for (int i = 0; i < p->steps.n; i++) {
        plan_footprint *f = &p->footprint.at[p->steps.at[i].place];
        f->scratch = max_i64(f->scratch, plan_scratch_bytes(p, &p->steps.at[i]));
    }
    for (int i = 0; i < p->footprint.n; i++) {
        p->footprint.at[i].bytes += p->footprint.at[i].scratch * m->places[i].workers;
        p->footprint.at[i].live += p->footprint.at[i].scratch * m->places[i].workers;
    }
}

static void count_footprint(plan *p, const shard_spans *s, const machine *m)
{
    while (p->footprint.n < p->gpus.n)
        *ARRAY_PUSH(&p->footprint) = (plan_footprint){0};
    for (int i = 0; i < p->shards.n; i++)
        if (has_buffer(p, &p->shards.at[i]) && p->shards.at[i].reuses < 0)
            p->footprint.at[p->shards.at[i].place].bytes += plan_shard_bytes(&p->shards.at[i]);
    for (int i = 0; i < p->footprint.n; i++)
        if (p->footprint.at[i].bytes)
            p->footprint.at[i].live = count_live(p, s, i);
    count_scratch(p, m);
}

void share_memory(partition *q, const bool *kept)
{
    mark_shared(q);
    shard_spans s = spans_find(q, kept);
    reuse_buffers(q, &s);
    count_footprint(q->p, &s, q->s.machine);
    pack_buffers(q, &s);
    find_loan_spans(q, &s);
    spans_free(&s);
}
