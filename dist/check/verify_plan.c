/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies plans. It takes nothing from planning but the plans. */
#include "verify_plan.h"

#include <stdlib.h>

#include "flow.h"
#include "verify_calls.h"

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

static const plan_operand *buffer_of(const message *m)
{
    return plan_step_operand(m->p, m->step, 0);
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
    return m->p->shards.at[buffer_of(m)->region.shard].source == SHARD_BUNDLE;
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
            return wrong(v, s, "its receiver expects another box than its sender sends");
        if (is_bundle(s) != is_bundle(r) ||
            (is_bundle(s) && !same_parts(s->p, buffer_of(s)->region.shard, r->p, buffer_of(r)->region.shard)))
            return wrong(v, s, "other messages are taken out of it than were put in");
    }
    return TRAMA_OK;
}

/* ---- Collectives ---- */

static const plan_step *step_of(const part *t)
{
    return &t->p->steps.at[t->step];
}

static const plan_group *group_of(const part *t)
{
    return &t->p->groups.at[step_of(t)->collective.group];
}

static int compare_groups(const part *a, const part *b)
{
    const plan_group *g = group_of(a), *h = group_of(b);
    for (int i = 0; i < g->n && i < h->n; i++)
        if (g->places[i] != h->places[i])
            return g->places[i] < h->places[i] ? -1 : 1;
    return g->n - h->n;
}

static int compare_parts(const void *a, const void *b)
{
    const part *t = a, *u = b;
    int order = compare_groups(t, u);
    order = order ? order : t->number - u->number;
    return order ? order : plan_member(t->p, step_of(t)) - plan_member(u->p, step_of(u));
}

/* The number of collectives before a step that have the same place and the same group. */
static int number_of(const plan *p, int step)
{
    const plan_step *s = &p->steps.at[step];
    int n = 0;
    for (int i = 0; i < step; i++)
        n += p->steps.at[i].kind == STEP_COLLECTIVE && p->steps.at[i].place == s->place &&
             p->steps.at[i].collective.group == s->collective.group;
    return n;
}

static void collect_parts(verification *v)
{
    for (int r = 0; r < v->n; r++)
        for (int i = 0; i < v->plans[r]->steps.n; i++)
            if (v->plans[r]->steps.at[i].kind == STEP_COLLECTIVE)
                *ARRAY_PUSH(&v->parts) = (part){v->plans[r], r, i, number_of(v->plans[r], i), false};
    if (v->parts.n)
        qsort(v->parts.at, (size_t)v->parts.n, sizeof *v->parts.at, compare_parts);
}

static trama_status wrong_part(const verification *v, const part *t, const char *problem)
{
    const plan_step *s = step_of(t);
    text places = {0};
    for (int i = 0; i < group_of(t)->n; i++)
        text_add(&places, " %d", group_of(t)->places[i]);
    trama_fail(NOWHERE, TRAMA_E_SYSTEM,
               "verify: %s of %lld elements of %s among places%s, number %d of place %d of rank %d: %s",
               collective_name(s->collective.form), (long long)s->collective.count,
               trama_value_name(v->program->values.at[t->p->exchanges.at[s->exchange].value]), places.at, t->number,
               s->place, t->rank, problem);
    free(places.at);
    return TRAMA_E_SYSTEM;
}

static bool same_collective(const part *a, const part *b)
{
    const plan_collective *c = &step_of(a)->collective, *d = &step_of(b)->collective;
    return c->form == d->form && c->root == d->root && c->count == d->count && c->dtype == d->dtype &&
           step_of(a)->exchange == step_of(b)->exchange &&
           (c->form < PLAN_REDUCE_SCATTER || step_of(a)->reduce == step_of(b)->reduce);
}

/* A buffer is contiguous and has as many elements as the collective says. */
static bool buffer_fits(const part *t, int operand)
{
    const plan_step *s = step_of(t);
    const plan_operand *o = plan_step_operand(t->p, s, operand);
    const plan_shard *shard = &t->p->shards.at[o->region.shard];
    const plan_collective *c = &s->collective;
    bool reads = o->access == ACCESS_READ;
    bool many = reads ? c->form == PLAN_ALL_TO_ALL || c->form == PLAN_REDUCE_SCATTER : c->form <= PLAN_ALL_TO_ALL;
    box_rows rows;
    return box_in_rows(&shard->box, &o->region.box, &rows) && rows.rows == 1 && shard->dtype == c->dtype &&
           !shard->host && box_count(&o->region.box) == c->count * (many ? group_of(t)->n : 1);
}

static bool buffers_fit(const part *t)
{
    bool fit = true;
    for (int k = 0; k + 1 < step_of(t)->n_operands; k++)
        fit = fit && buffer_fits(t, k);
    return fit;
}

/* Entries i .. i + n - 1 must be the n members of one collective. */
static trama_status match_parts(const verification *v)
{
    for (int i = 0, n; i < v->parts.n; i += n) {
        const part *first = &v->parts.at[i];
        n = group_of(first)->n;
        for (int k = 0; k < n; k++) {
            const part *t = first + k;
            if (i + k >= v->parts.n || compare_groups(first, t) || t->number != first->number ||
                plan_member(t->p, step_of(t)) != k)
                return wrong_part(v, first, "a member takes no part in it");
            if (!same_collective(first, t))
                return wrong_part(v, t, "another member takes part in another collective there");
            if (!buffers_fit(t))
                return wrong_part(v, t, "its buffers do not fit the elements that it moves");
        }
    }
    return TRAMA_OK;
}

/* The entries of the collective that a step takes part in. */
static part *find_parts(const verification *v, int rank, int step)
{
    part key = {v->plans[rank], rank, step, number_of(v->plans[rank], step), false};
    part *mine = bsearch(&key, v->parts.at, (size_t)v->parts.n, sizeof *v->parts.at, compare_parts);
    return mine - plan_member(mine->p, step_of(mine));
}

/* Notes that a member has reached its step. Returns whether all have. */
static bool meet(verification *v, int rank, int step)
{
    part *parts = find_parts(v, rank, step);
    bool all = true;
    for (int k = 0; k < group_of(parts)->n; k++) {
        parts[k].there |= parts[k].rank == rank && parts[k].step == step;
        all &= parts[k].there;
    }
    return all;
}

/* ---- Counts ---- */

/* Adds the bytes of a message to its exchange; those of a bundle to the exchanges of its parts. */
static void add_message(const plan *p, const plan_step *s, int64_t *of)
{
    const plan_region *r = &plan_step_operand(p, s, 0)->region;
    if (p->shards.at[r->shard].source != SHARD_BUNDLE) {
        of[s->exchange] += bytes_of(p, r);
        return;
    }
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].within == r->shard)
            of[p->shards.at[i].exchange] += bytes_of(p, &(plan_region){i, p->shards.at[i].box});
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
        bytes += p->shards.at[r->shard].place != s->place ? bytes_of(p, r) : 0;
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
    return status ? status : complain(p, program, plan_misplaced(p), " as a GPU's memory does not allow");
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

/* ---- Progress ---- */

static message *find(messages *list, int from, int to, int64_t tag)
{
    message key = {.from = from, .to = to, .tag = tag};
    return bsearch(&key, list->at, (size_t)list->n, sizeof *list->at, compare);
}

typedef struct walk {
    verification *v;
    int rank;
    flow *steps;
} walk;

static bool take(void *arg, int step)
{
    const walk *w = arg;
    const plan_step *s = &w->v->plans[w->rank]->steps.at[step];
    if (s->kind == STEP_COLLECTIVE)
        return meet(w->v, w->rank, step);
    if (s->kind == STEP_SEND)
        find(&w->v->sends, w->rank, s->peer, s->tag)->sent = true;
    return s->kind != STEP_RECEIVE || find(&w->v->sends, s->peer, w->rank, s->tag)->sent;
}

/* The first message that the rank waits for; NULL: none. */
static const message *first_wait(const walk *w)
{
    const plan *p = w->v->plans[w->rank];
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (!flow_is_done(w->steps, i) && s->kind == STEP_RECEIVE &&
            !find(&w->v->sends, s->peer, w->rank, s->tag)->sent)
            return find(&w->v->receives, s->peer, w->rank, s->tag);
    }
    return NULL;
}

static trama_status run(verification *v)
{
    trama_status status = TRAMA_OK;
    walk *ranks = trama_alloc((size_t)v->n * sizeof *ranks);
    for (int r = 0; r < v->n; r++)
        ranks[r] = (walk){v, r, flow_new(v->plans[r])};
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < v->n; r++)
            moved |= flow_first(ranks[r].steps) >= 0 && flow_advance(ranks[r].steps, take, &ranks[r]);
    }
    for (int r = 0; r < v->n && !status; r++) {
        const message *m = first_wait(&ranks[r]);
        if (m)
            status = wrong(v, m, "it is waited for in a circle");
    }
    for (int i = 0; i < v->parts.n && !status; i++)
        if (!flow_is_done(ranks[v->parts.at[i].rank].steps, v->parts.at[i].step))
            status = wrong_part(v, &v->parts.at[i], "it is waited for in a circle");
    for (int r = 0; r < v->n; r++)
        flow_destroy(&ranks[r].steps);
    free(ranks);
    return status;
}

trama_status plan_verify(const plan *const *plans, int n, const trama_program *program)
{
    verification v = {.plans = plans, .program = program, .n = n};
    collect(&v);
    collect_parts(&v);
    trama_status status = match(&v);
    if (!status)
        status = match_parts(&v);
    for (int r = 0; r < n && !status; r++)
        status = count(plans[r]);
    for (int r = 0; r < n && !status; r++)
        status = room(plans[r]);
    for (int r = 0; r < n && !status; r++)
        status = order(plans[r], program);
    for (int r = 0; r < n && !status; r++)
        status = calls_verify(plans[r], program);
    if (!status)
        status = run(&v);
    ARRAY_FREE(&v.sends);
    ARRAY_FREE(&v.receives);
    ARRAY_FREE(&v.parts);
    return status;
}
