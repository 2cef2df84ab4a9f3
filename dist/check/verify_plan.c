/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies plans. It takes nothing from planning but the plans. */
#include "verify_plan.h"

#include <stdlib.h>

#include "verification.h"
#include "verify_calls.h"

const plan_operand *message_buffer(const message *m)
{
    return plan_step_operand(m->p, m->step, 0);
}

int compare_messages(const void *a, const void *b)
{
    const message *m = a, *n = b;
    if (m->from != n->from)
        return m->from < n->from ? -1 : 1;
    if (m->to != n->to)
        return m->to < n->to ? -1 : 1;
    return m->tag < n->tag ? -1 : m->tag > n->tag;
}

trama_status verify_fails(const verification *v, const message *m, const char *problem)
{
    const plan_shard *s = &m->p->shards.at[message_buffer(m)->region.shard];
    text b = {0};
    box_text(&b, &message_buffer(m)->region.box);
    trama_fail(NOWHERE, TRAMA_E_SYSTEM, "verify: %s%s from rank %d to rank %d, number %lld: %s",
               trama_value_name(v->program->values.at[s->value]), b.at, m->from, m->to, (long long)m->tag, problem);
    free(b.at);
    return TRAMA_E_SYSTEM;
}

/* ---- Messages ---- */

static void collect(verification *v)
{
    for (int r = 0; r < v->n; r++)
        for (int i = 0; i < v->plans[r]->steps.n; i++) {
            const plan_step *s = &v->plans[r]->steps.at[i];
            if (s->kind == STEP_SEND)
                *ARRAY_PUSH(&v->sends) = (message){r, s->peer, s->tag, v->plans[r], s, false};
            if (s->kind == STEP_RECEIVE)
                *ARRAY_PUSH(&v->receives) = (message){s->peer, r, s->tag, v->plans[r], s, false};
        }
    if (v->sends.n)
        qsort(v->sends.at, (size_t)v->sends.n, sizeof *v->sends.at, compare_messages);
    if (v->receives.n)
        qsort(v->receives.at, (size_t)v->receives.n, sizeof *v->receives.at, compare_messages);
}

static const plan_shard *find_part(const plan *p, int bundle, int64_t at)
{
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].within == bundle && p->shards.at[i].at == at)
            return &p->shards.at[i];
    return NULL;
}

/* Whether a bundle's parts are the same boxes of the same values at the same places, on both sides. */
static bool same_parts(const plan *p, int bundle, const plan *q, int other)
{
    int n = 0;
    for (int i = 0; i < p->shards.n; i++)
        n += p->shards.at[i].within == bundle;
    for (int i = 0; i < q->shards.n; i++) {
        const plan_shard *t = &q->shards.at[i], *s = NULL;
        if (t->within != other)
            continue;
        s = find_part(p, bundle, t->at);
        if (!s || s->value != t->value || s->exchange != t->exchange || !box_equal(&s->box, &t->box))
            return false;
        n--;
    }
    return n == 0;
}

static bool is_bundle(const message *m)
{
    return m->p->shards.at[message_buffer(m)->region.shard].source == SHARD_BUNDLE;
}

static trama_status match(const verification *v)
{
    for (int i = 0; i < v->sends.n || i < v->receives.n; i++) {
        const message *s = i < v->sends.n ? &v->sends.at[i] : NULL, *r = i < v->receives.n ? &v->receives.at[i] : NULL;
        if (s && i && compare_messages(s, s - 1) == 0)
            return verify_fails(v, s, "another message has its number");
        if (!s || (r && compare_messages(r, s) < 0))
            return verify_fails(v, r, "nobody sends it");
        if (!r || compare_messages(s, r) < 0)
            return verify_fails(v, s, "nobody receives it");
        if (!box_equal(&message_buffer(s)->region.box, &message_buffer(r)->region.box) ||
            plan_region_bytes(s->p, &message_buffer(s)->region) != plan_region_bytes(r->p, &message_buffer(r)->region))
            return verify_fails(v, s, "its receiver expects another box than its sender sends");
        if (is_bundle(s) != is_bundle(r) ||
            (is_bundle(s) && !same_parts(s->p, message_buffer(s)->region.shard, r->p, message_buffer(r)->region.shard)))
            return verify_fails(v, s, "other messages are taken out of it than were put in");
    }
    return TRAMA_OK;
}

/* ---- Counts ---- */

/* Adds the bytes of a message to its exchange; those of a bundle to the exchanges of its parts. */
static void add_message(const plan *p, const plan_step *s, int64_t *of)
{
    const plan_region *r = &plan_step_operand(p, s, 0)->region;
    if (p->shards.at[r->shard].source != SHARD_BUNDLE) {
        of[s->exchange] += plan_region_bytes(p, r);
        return;
    }
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].within == r->shard)
            of[p->shards.at[i].exchange] += plan_region_bytes(p, &(plan_region){i, p->shards.at[i].box});
}

/* Bytes that a step brings from other places of the rank without a message. */
static int64_t between(const plan *p, const plan_step *s)
{
    if (s->kind == STEP_ORDER)
        return 0;
    bool copies = s->kind == STEP_COPY;
    int first = copies || s->kind == STEP_REDUCE ? 1 : s->n_operands - s->n_terms;
    int64_t bytes = 0;
    for (int k = first; k < s->n_operands; k += 1 + copies) {
        const plan_region *r = &plan_step_operand(p, s, k)->region;
        bytes += p->shards.at[r->shard].place != s->place ? plan_region_bytes(p, r) : 0;
    }
    return bytes;
}

/* Reports a problem of a shard; -1: no problem. */
static trama_status complain(const plan *p, const trama_program *program, int shard, const char *problem)
{
    if (shard < 0)
        return TRAMA_OK;
    const plan_shard *s = &p->shards.at[shard];
    text b = {0};
    box_text(&b, &s->box);
    trama_fail(NOWHERE, TRAMA_E_SYSTEM, "verify: rank %d uses %s%s%s", p->rank,
               trama_value_name(program->values.at[s->value]), b.at, problem);
    free(b.at);
    return TRAMA_E_SYSTEM;
}

static trama_status order(const plan *p, const trama_program *program)
{
    trama_status status = complain(p, program, plan_unordered(p), " while its memory is used otherwise");
    if (!status)
        status = complain(p, program, plan_misplaced(p), " as a GPU's memory does not allow");
    return status ? status : complain(p, program, plan_wrong_alias(p), " where its elements do not lie, or are lost");
}

static trama_status count(const plan *p)
{
    size_t n = (size_t)p->exchanges.n;
    int64_t *in = trama_alloc(n * sizeof *in), *out = trama_alloc(n * sizeof *out);
    bool right = true;
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (s->exchange < 0)
            continue;
        if (s->kind >= STEP_SEND) {
            add_message(p, s, s->kind == STEP_SEND ? out : in);
            continue;
        }
        if (s->kind == STEP_COLLECTIVE) {
            in[s->exchange] += plan_share_of(p, s).received;
            out[s->exchange] += plan_share_of(p, s).sent;
            continue;
        }
        in[s->exchange] += between(p, s);
        out[s->exchange] += between(p, s);
    }
    for (int e = 0; e < p->exchanges.n; e++)
        right &= in[e] == p->exchanges.at[e].received && out[e] == p->exchanges.at[e].sent;
    free(in);
    free(out);
    return right ? TRAMA_OK
                 : trama_fail(NOWHERE, TRAMA_E_SYSTEM, "verify: rank %d moves other bytes than its plan says", p->rank);
}

/* The plan has no more message buffers than its exchanges say. */
static trama_status room(const plan *p)
{
    int64_t says = 0, has = plan_message_buffers(p);
    for (int e = 0; e < p->exchanges.n; e++)
        says += p->exchanges.at[e].buffers;
    return has <= says ? TRAMA_OK
                       : trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                                    "verify: rank %d has %lld bytes of message buffers, its plan says %lld", p->rank,
                                    (long long)has, (long long)says);
}

trama_status plan_verify(const plan *const *plans, int n, const trama_program *program)
{
    verification v = {.plans = plans, .program = program, .n = n};
    collect(&v);
    verify_collect_parts(&v);
    trama_status status = match(&v);
    if (!status)
        status = verify_match_parts(&v);
    for (int r = 0; r < n && !status; r++)
        status = count(plans[r]);
    for (int r = 0; r < n && !status; r++)
        status = room(plans[r]);
    for (int r = 0; r < n && !status; r++)
        status = order(plans[r], program);
    for (int r = 0; r < n && !status; r++)
        status = calls_verify(plans[r], program);
    if (!status)
        status = verify_progress(&v);
    ARRAY_FREE(&v.sends);
    ARRAY_FREE(&v.receives);
    ARRAY_FREE(&v.parts);
    return status;
}
