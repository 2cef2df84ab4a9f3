/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying plans. It trusts nothing that planning says of itself. */
#include "verify.h"

#include <string.h>

typedef struct message {
    int from, to;
    int64_t tag;
    const plan *p;
    const plan_step *step;
    bool sent;
} message;

typedef ARRAY(message) messages;

typedef struct walk {
    int at;
    ARRAY(int) waits; /* receives that are posted and have not arrived: in verification.receives */
} walk;

typedef struct verification {
    const plan *const *plans;
    const trama_program *program;
    int n;
    messages sends, receives; /* sorted by from, to, tag */
    walk *ranks;
} verification;

static const plan_operand *buffer_of(const message *m)
{
    return &m->p->operands.at[m->step->operand];
}

static int64_t bytes_of(const plan *p, const plan_region *r)
{
    return box_count(&r->box) * (int64_t)trama_dtype_size(p->shards.at[r->shard].dtype);
}

static int compare(const void *a, const void *b)
{
    const message *m = a, *n = b;
    if (m->from != n->from)
        return m->from < n->from ? -1 : 1;
    if (m->to != n->to)
        return m->to < n->to ? -1 : 1;
    return m->tag < n->tag ? -1 : m->tag > n->tag;
}

static trama_status wrong(const verification *v, const message *m, const char *problem)
{
    const plan_shard *s = &m->p->shards.at[buffer_of(m)->region.shard];
    text b = {0};
    box_text(&b, &buffer_of(m)->region.box);
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
        qsort(v->sends.at, (size_t)v->sends.n, sizeof *v->sends.at, compare);
    if (v->receives.n)
        qsort(v->receives.at, (size_t)v->receives.n, sizeof *v->receives.at, compare);
}

static trama_status match(const verification *v)
{
    for (int i = 0; i < v->sends.n || i < v->receives.n; i++) {
        const message *s = i < v->sends.n ? &v->sends.at[i] : NULL, *r = i < v->receives.n ? &v->receives.at[i] : NULL;
        if (s && i && compare(s, s - 1) == 0)
            return wrong(v, s, "another message has its number");
        if (!s || (r && compare(r, s) < 0))
            return wrong(v, r, "nobody sends it");
        if (!r || compare(s, r) < 0)
            return wrong(v, s, "nobody receives it");
        if (!box_equal(&buffer_of(s)->region.box, &buffer_of(r)->region.box) ||
            bytes_of(s->p, &buffer_of(s)->region) != bytes_of(r->p, &buffer_of(r)->region))
            return wrong(v, s, "another box is received than is sent");
    }
    return TRAMA_OK;
}

/* ---- Counts ---- */

/* What goes between places of the rank without a message. */
static int64_t between(const plan *p, const plan_step *s)
{
    if (s->kind == STEP_ORDER)
        return 0;
    int first = s->kind == STEP_COPY || s->kind == STEP_REDUCE ? 1 : s->n_operands - s->n_terms;
    int64_t bytes = 0;
    for (int k = first; k < s->n_operands; k++) {
        const plan_region *r = &p->operands.at[s->operand + k].region;
        bytes += p->shards.at[r->shard].place != s->place ? bytes_of(p, r) : 0;
    }
    return bytes;
}

static trama_status order(const plan *p, const trama_program *program)
{
    int shard = plan_unordered(p);
    if (shard < 0)
        return TRAMA_OK;
    const plan_shard *s = &p->shards.at[shard];
    text b = {0};
    box_text(&b, &s->box);
    trama_fail(NOWHERE, TRAMA_E_SYSTEM, "verify: rank %d uses the memory of message %s%s for two things at once",
               p->rank, trama_value_name(program->values.at[s->value]), b.at);
    free(b.at);
    return TRAMA_E_SYSTEM;
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
        int64_t own = s->kind < STEP_SEND ? between(p, s) : bytes_of(p, &p->operands.at[s->operand].region);
        in[s->exchange] += s->kind == STEP_SEND ? 0 : own;
        out[s->exchange] += s->kind == STEP_RECEIVE ? 0 : own;
    }
    for (int e = 0; e < p->exchanges.n; e++)
        right &= in[e] == p->exchanges.at[e].received && out[e] == p->exchanges.at[e].sent;
    free(in);
    free(out);
    return right ? TRAMA_OK
                 : trama_fail(NOWHERE, TRAMA_E_SYSTEM, "verify: rank %d moves other bytes than its plan says", p->rank);
}

/* Buffers that messages have, against what the exchanges say. */
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

/* ---- Progress ---- */

static bool touches(const plan *p, const plan_step *s, const plan_region *posted)
{
    const plan_shard *shard = &p->shards.at[posted->shard];
    int first, last;
    plan_tiles(shard, &posted->box, &first, &last);
    for (int k = 0; k < s->n_operands; k++) {
        const plan_region *r = &p->operands.at[s->operand + k].region;
        int from, to;
        if (r->shard != posted->shard)
            continue;
        plan_tiles(shard, &r->box, &from, &to);
        if (from <= last && first <= to)
            return true;
    }
    return false;
}

static message *find(messages *list, int from, int to, int64_t tag)
{
    message key = {.from = from, .to = to, .tag = tag};
    return bsearch(&key, list->at, (size_t)list->n, sizeof *list->at, compare);
}

/* Whether everything that the step touches has arrived; what has is no longer waited for. */
static bool may_go(verification *v, int rank, const plan_step *s)
{
    walk *w = &v->ranks[rank];
    for (int i = 0; i < w->waits.n;) {
        const message *r = &v->receives.at[w->waits.at[i]];
        if (find(&v->sends, r->from, r->to, r->tag)->sent) {
            w->waits.at[i] = w->waits.at[--w->waits.n];
            continue;
        }
        if (!s || touches(v->plans[rank], s, &buffer_of(r)->region))
            return false;
        i++;
    }
    return true;
}

static bool advance(verification *v, int rank)
{
    const plan *p = v->plans[rank];
    walk *w = &v->ranks[rank];
    int from = w->at;
    for (; w->at < p->steps.n && may_go(v, rank, &p->steps.at[w->at]); w->at++) {
        const plan_step *s = &p->steps.at[w->at];
        if (s->kind == STEP_SEND)
            find(&v->sends, rank, s->peer, s->tag)->sent = true;
        if (s->kind == STEP_RECEIVE)
            *ARRAY_PUSH(&w->waits) = (int)(find(&v->receives, s->peer, rank, s->tag) - v->receives.at);
    }
    return w->at > from;
}

static trama_status run(verification *v)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < v->n; r++)
            moved |= advance(v, r);
    }
    for (int r = 0; r < v->n; r++)
        if (!may_go(v, r, v->ranks[r].at < v->plans[r]->steps.n ? &v->plans[r]->steps.at[v->ranks[r].at] : NULL))
            return wrong(v, &v->receives.at[v->ranks[r].waits.at[0]], "it is waited for in a circle");
    return TRAMA_OK;
}

trama_status plan_verify(const plan *const *plans, int n, const trama_program *program)
{
    verification v = {.plans = plans, .program = program, .n = n};
    v.ranks = trama_alloc((size_t)n * sizeof *v.ranks);
    collect(&v);
    trama_status status = match(&v);
    for (int r = 0; r < n && !status; r++)
        status = count(plans[r]);
    for (int r = 0; r < n && !status; r++)
        status = room(plans[r]);
    for (int r = 0; r < n && !status; r++)
        status = order(plans[r], program);
    if (!status)
        status = run(&v);
    for (int r = 0; r < n; r++)
        ARRAY_FREE(&v.ranks[r].waits);
    free(v.ranks);
    ARRAY_FREE(&v.sends);
    ARRAY_FREE(&v.receives);
    return status;
}
