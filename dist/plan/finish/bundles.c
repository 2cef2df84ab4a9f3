/* SPDX-License-Identifier: Apache-2.0 */
/* Small messages between the same places are bundled into one. Sender and receiver bundle the same, since both sort by
 * keys that both know. */
#include <stdlib.h>
#include <string.h>

#include "bundle_candidates.h"
#include "hash_table.h"
#include "planner.h"
#include "thresholds.h"
#include "uses.h"

/* ---- Bundles ---- */

/* Candidates first .. first + n - 1 become one message, sent or received before step `at`. */
typedef struct together {
    int first, n, at;
} together;

typedef ARRAY(together) togethers;

/* A step that comes before step `at` of the plan as it was. */
typedef struct insertion {
    int at, order;
    plan_step step;
} insertion;

/* A bundle that is sent. A receiver of the same parts gets the same bundle. */
typedef struct sent_bundle {
    int shard;
    together of;
} sent_bundle;

typedef struct bundling {
    partition *q;
    bool *dropped; /* [step] */
    int *packed;   /* [shard] the copy that fills a message; -1 */
    bool *kept;    /* [shard] that copy stays, though it is part of a bundle */
    candidates found;
    plan_uses uses;
    int *others; /* [shard] steps that name it, without that copy and bundled messages */
    ARRAY(insertion) added;
    ARRAY(sent_bundle) sent;
    hash_table sent_by_parts;
} bundling;

static bool is_message(const plan *p, int shard)
{
    return p->shards.at[shard].source == SHARD_MESSAGE;
}

/* A message that is not part of a bundle. */
static bool is_message_buffer(const plan *p, int shard)
{
    return is_message(p, shard) && p->shards.at[shard].within < 0;
}

static void look_at_uses(bundling *b)
{
    const plan *p = b->q->p;
    memset(b->packed, -1, (size_t)p->shards.n * sizeof *b->packed);
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        for (int k = 0; k < s->n_operands; k++) {
            int shard = plan_step_operand(p, s, k)->region.shard;
            if (s->kind == STEP_COPY && k == 0 && is_message_buffer(p, shard))
                b->packed[shard] = i;
            else
                b->others[shard]++;
        }
    }
}

/* The step of a bundle: a bundle is received where its first part would be, and sent where its last part is ready. */
static int place_of_bundle(const candidate *parts, int n)
{
    int at = parts[0].at;
    for (int i = 1; i < n; i++)
        at = (int)(parts[0].step->kind == STEP_SEND ? max_i64(at, parts[i].at) : min_i64(at, parts[i].at));
    return at;
}

static togethers find_together(bundling *b)
{
    const plan *p = b->q->p;
    togethers list = {0};
    for (int i = 0, n; i < b->found.n; i += n) {
        const candidate *first = &b->found.at[i];
        int64_t bytes = first->bytes;
        for (n = 1; i + n < b->found.n && candidates_compare_ways(first, &first[n]) == 0; n++)
            if ((bytes += first[n].bytes) > BUNDLE_BYTES)
                break;
        if (n < 2)
            continue;
        *ARRAY_PUSH(&list) = (together){i, n, place_of_bundle(first, n)};
        for (int k = 0; k < n; k++)
            b->others[plan_step_operand(p, first[k].step, 0)->region.shard]--;
    }
    return list;
}

/* ---- Sources of sent parts ---- */

/* Whether one of the steps from .. to - 1 writes, or also reads, a tile of the region. */
static bool uses(const bundling *b, int from, int to, const plan_region *r, bool also_reads)
{
    const plan *p = b->q->p;
    const plan_shard *shard = &p->shards.at[r->shard];
    int first, last, lo, hi;
    plan_tiles(shard, &r->box, &first, &last);
    for (int i = plan_uses_from(&b->uses, r->shard, from); i < b->uses.of[r->shard].n; i++) {
        const plan_use use = b->uses.of[r->shard].at[i];
        if (use.step >= to)
            break;
        const plan_operand *o = plan_step_operand(p, &p->steps.at[use.step], use.which);
        if (o->access == ACCESS_READ && !also_reads)
            continue;
        plan_tiles(shard, &o->region.box, &lo, &hi);
        if (lo <= last && first <= hi)
            return true;
    }
    return false;
}

/* Finds whether a step writes the source of a part before the bundle is sent. Such an early part must be copied before:
 * by the copy that packs its buffer, which is kept, or at the step that would send it. */
static void look_at_source(bundling *b, candidate *c, int at)
{
    const plan *p = b->q->p;
    int shard = c->from.shard, packed = is_message_buffer(p, shard) ? b->packed[shard] : -1;
    plan_region source = packed >= 0 ? plan_step_operand(p, &p->steps.at[packed], 1)->region : c->from;
    c->early = uses(b, packed >= 0 ? packed + 1 : c->at, at, &source, false);
    if (packed >= 0 && c->early)
        b->kept[shard] = true;
}

static void look_at_sources(bundling *b, const togethers *list)
{
    const plan *p = b->q->p;
    for (int i = 0; i < list->n; i++)
        for (int k = 0; k < list->at[i].n; k++)
            if (b->found.at[list->at[i].first + k].step->kind == STEP_SEND)
                look_at_source(b, &b->found.at[list->at[i].first + k], list->at[i].at);
    for (int i = 0; i < b->found.n; i++) {
        candidate *c = &b->found.at[i];
        int shard = c->from.shard;
        if (is_message_buffer(p, shard) && b->packed[shard] >= 0 && !b->kept[shard])
            c->from = plan_step_operand(p, &p->steps.at[b->packed[shard]], 1)->region;
    }
}

/* Inserts a step before step `at`, with the fields of `like` but another kind and other operands. */
static void insert(bundling *b, int at, const plan_step *like, step_kind kind, int n, const plan_operand *operands)
{
    insertion *made = ARRAY_PUSH(&b->added);
    *made = (insertion){at, b->added.n, *like};
    made->step.kind = kind;
    made->step.operand = b->q->p->operands.n;
    made->step.n_operands = n;
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&b->q->p->operands) = operands[i];
}

/* The part of a bundle that stands for a message: the message's buffer if no other step names it, else a new one. */
static int part_of(bundling *b, const candidate *c, int bundle, int64_t at)
{
    plan *p = b->q->p;
    const plan_region r = plan_step_operand(p, c->step, 0)->region;
    int shard = r.shard;
    bool alone = is_message_buffer(p, shard) && (c->step->kind == STEP_RECEIVE || !b->others[shard]);
    if (!alone) {
        plan_exchange *e = &p->exchanges.at[c->step->exchange];
        shard = partition_shard(b->q, SHARD_MESSAGE, e->value, c->step->place, &r.box, -1, 1);
        e->buffers += c->bytes;
    }
    p->shards.at[shard].within = bundle;
    p->shards.at[shard].at = at;
    p->shards.at[shard].exchange = c->step->exchange;
    return shard;
}

static int new_bundle(bundling *b, const candidate *parts, int n)
{
    box memory = {.ndim = 1};
    for (int i = 0; i < n; i++)
        memory.n[0] += parts[i].elements;
    int value = b->q->p->exchanges.at[parts[0].step->exchange].value;
    return partition_shard(b->q, SHARD_BUNDLE, value, parts[0].step->place, &memory, -1, 1);
}

/* Inserts the message for all parts, which is like one of them. */
static void insert_message(bundling *b, int at, const plan_step *like, int bundle)
{
    const plan *p = b->q->p;
    plan_operand o = {{bundle, p->shards.at[bundle].box}, plan_step_operand(p, like, 0)->access};
    insert(b, at, like, like->kind, 1, &o);
}

static uint64_t hash_of_parts(const bundling *b, const together *of)
{
    const candidate *c = &b->found.at[of->first];
    uint64_t hash = hash_word(hash_word(HASH_START, (uint64_t)of->n), (uint64_t)c->step->place);
    for (int k = 0; k < of->n; k++)
        hash = hash_word(hash_word(hash, (uint64_t)c[k].from.shard), (uint64_t)c[k].step->exchange);
    return hash;
}

static bool are_same(const bundling *b, const together *one, const together *other)
{
    const candidate *mine = &b->found.at[one->first], *theirs = &b->found.at[other->first];
    bool same = one->n == other->n && mine->step->place == theirs->step->place;
    for (int k = 0; same && k < one->n; k++)
        same = mine[k].from.shard == theirs[k].from.shard && box_equal(&mine[k].from.box, &theirs[k].from.box) &&
               mine[k].step->exchange == theirs[k].step->exchange;
    return same;
}

static const sent_bundle *sent_before(const bundling *b, const together *of)
{
    const uint64_t hash = hash_of_parts(b, of);
    for (int probe = 0, i; (i = hash_table_find(&b->sent_by_parts, hash, &probe)) >= 0;)
        if (are_same(b, of, &b->sent.at[i].of))
            return &b->sent.at[i];
    return NULL;
}

/* One copy packs most parts when the last is ready; early parts have copies of their own. Copies that pack a part of
 * the bundle only update it, so that none overwrites another. */
static void send_together(bundling *b, const together *of)
{
    const candidate *parts = &b->found.at[of->first];
    const sent_bundle *before = sent_before(b, of);
    if (before) {
        insert_message(b, before->of.at, parts[0].step, before->shard);
        return;
    }
    plan *p = b->q->p;
    int bundle = new_bundle(b, parts, of->n);
    ARRAY(plan_operand) copies = {0};
    for (int64_t i = 0, to = 0; i < of->n; to += parts[i++].elements) {
        const candidate *c = &parts[i];
        int part = part_of(b, c, bundle, to);
        plan_operand copy[] = {{{part, p->shards.at[part].box}, ACCESS_UPDATE}, {c->from, ACCESS_READ}};
        if (part == c->from.shard)
            p->operands.at[p->steps.at[b->packed[part]].operand].access = ACCESS_UPDATE;
        else if (c->early && !is_message(p, c->from.shard))
            insert(b, c->at, c->step, STEP_COPY, 2, copy);
        else
            for (int k = 0; k < 2; k++)
                *ARRAY_PUSH(&copies) = copy[k];
    }
    for (int i = 0; i < copies.n && copies.n == 2 * of->n; i += 2)
        copies.at[i].access = ACCESS_WRITE;
    if (copies.n)
        insert(b, of->at, parts[0].step, STEP_COPY, copies.n, copies.at);
    insert_message(b, of->at, parts[0].step, bundle);
    hash_table_add(&b->sent_by_parts, hash_of_parts(b, of), b->sent.n);
    *ARRAY_PUSH(&b->sent) = (sent_bundle){bundle, *of};
    ARRAY_FREE(&copies);
}

/* One copy unpacks most parts where the bundle arrives; late parts have copies of their own. */
static void receive_together(bundling *b, const together *of)
{
    const candidate *parts = &b->found.at[of->first];
    int bundle = new_bundle(b, parts, of->n);
    ARRAY(plan_operand) copies = {0};
    for (int64_t i = 0, from = 0; i < of->n; from += parts[i++].elements) {
        const plan_operand to = *plan_step_operand(b->q->p, parts[i].step, 0);
        int part = part_of(b, &parts[i], bundle, from);
        plan_operand copy[] = {to, {{part, to.region.box}, ACCESS_READ}};
        if (part == to.region.shard)
            continue;
        if (uses(b, of->at, parts[i].at, &to.region, true)) /* late: it is still in use */
            insert(b, parts[i].at, parts[i].step, STEP_COPY, 2, copy);
        else
            for (int k = 0; k < 2; k++)
                *ARRAY_PUSH(&copies) = copy[k];
    }
    insert_message(b, of->at, parts[0].step, bundle);
    if (copies.n)
        insert(b, of->at, parts[0].step, STEP_COPY, copies.n, copies.at);
    ARRAY_FREE(&copies);
}

static void bundle(bundling *b, const together *of)
{
    const candidate *parts = &b->found.at[of->first];
    for (int i = 0; i < of->n; i++) {
        plan_exchange *e = &b->q->p->exchanges.at[parts[i].step->exchange];
        e->messages -= i > 0;
        e->bundled++;
    }
    (parts[0].step->kind == STEP_SEND ? send_together : receive_together)(b, of);
    for (int i = 0; i < of->n; i++)
        b->dropped[parts[i].at] = true;
}

/* ---- The plan with bundles ---- */

static int compare_insertions(const void *a, const void *b)
{
    const insertion *i = a, *k = b;
    return i->at != k->at ? (i->at > k->at) - (i->at < k->at) : i->order - k->order;
}

/* Drops copies into buffers that no step needs: bundles are packed from the sources of these copies. */
static void drop_packing(bundling *b, int n_shards)
{
    for (int i = 0; i < n_shards; i++)
        if (b->packed[i] >= 0 && !b->kept[i] && !b->others[i])
            b->dropped[b->packed[i]] = true;
}

static void rebuild(bundling *b)
{
    plan *p = b->q->p;
    plan_step *before = p->steps.at;
    int n = p->steps.n, next = 0;
    qsort(b->added.at, (size_t)b->added.n, sizeof *b->added.at, compare_insertions);
    memset(&p->steps, 0, sizeof p->steps);
    for (int i = 0; i < n; i++) {
        for (; next < b->added.n && b->added.at[next].at == i; next++)
            *ARRAY_PUSH(&p->steps) = b->added.at[next].step;
        if (!b->dropped[i])
            *ARRAY_PUSH(&p->steps) = before[i];
    }
    free(before);
}

void bundle_messages(partition *q)
{
    bundling b = {.q = q, .found = candidates_find(q->p)};
    if (!b.found.n)
        return;
    int n_shards = q->p->shards.n;
    b.dropped = trama_alloc((size_t)q->p->steps.n);
    b.packed = trama_alloc((size_t)n_shards * sizeof *b.packed);
    b.others = trama_alloc((size_t)n_shards * sizeof *b.others);
    b.kept = trama_alloc((size_t)n_shards);
    b.uses = plan_find_uses(q->p);
    look_at_uses(&b);
    togethers list = find_together(&b);
    look_at_sources(&b, &list);
    for (int i = 0; i < list.n; i++)
        bundle(&b, &list.at[i]);
    if (list.n) {
        drop_packing(&b, n_shards);
        rebuild(&b);
    }
    plan_uses_free(&b.uses);
    free(b.dropped);
    free(b.packed);
    free(b.others);
    free(b.kept);
    ARRAY_FREE(&b.added);
    ARRAY_FREE(&b.sent);
    hash_table_free(&b.sent_by_parts);
    ARRAY_FREE(&b.found);
    ARRAY_FREE(&list);
}
