/* SPDX-License-Identifier: Apache-2.0 */
/* The staging buffer. Where the message buffers of an exchange exceed it, they use its memory in turn. Messages go in
 * rounds, which use the halves of the staging buffer in turn, so that one round is sent while the next is packed.
 *
 * Ranks never wait in a circle: all ranks take messages in one order, which sender and receiver find alone, so a
 * message waits for earlier ones only. */
#include <string.h>

#include "exchange.h"
#include "thresholds.h"

/* A message; entries are sorted in the order in which messages go. Entries that need their buffers at the same time,
 * like the terms of a sum, form a unit. */
typedef struct entry {
    int level, piece, turn, to, term;
    const box *box;
    int step; /* in exchange.steps */
    int unit; /* number of the entry's unit */
} entry;

typedef struct buffer {
    int shard, place, unit, round;
    int64_t bytes;
} buffer;

typedef struct staging {
    exchange *x;
    int n_places;
    int64_t *half, *cursor; /* [place] bytes */
    int *shard;             /* [place] the staging buffer, -1 */
    ARRAY(int) unit_of;     /* [shard - exchange.first_shard] -1 */
    ARRAY(entry) entries;
    ARRAY(buffer) buffers; /* by unit */
    ARRAY(int) rounds;     /* [unit] */
    ARRAY(int) start;      /* [round] its first buffer */
} staging;

int64_t staging_bytes(const partition *q)
{
    return q->s.options.staging_bytes ? q->s.options.staging_bytes : STAGING_BYTES;
}

static int64_t padded(const exchange *x, int shard)
{
    return buffer_padded(region_bytes(x, &x->q->p->shards.at[shard].box));
}

static bool is_message(const exchange_step *s)
{
    return s->step.kind == STEP_SEND || s->step.kind == STEP_RECEIVE || s->crosses;
}

/* ---- The order of messages ---- */

static int compare(const void *a, const void *b)
{
    const entry *e = a, *f = b;
    const int keys[][2] = {{e->level, f->level}, {e->piece, f->piece}, {e->turn, f->turn}, {e->to, f->to}};
    int order = COMPARE_KEYS(keys);
    order = order ? order : box_compare(e->box, f->box);
    return order ? order : (e->term > f->term) - (e->term < f->term);
}

/* In each turn every place sends to another one; the terms of a sum have turn 0, since they must arrive at one time. */
static void sort_messages(staging *w)
{
    exchange *x = w->x;
    for (int i = 0; i < x->steps.n; i++) {
        const exchange_step *s = &x->steps.at[i];
        if (!is_message(s))
            continue;
        const plan_path path = s->crosses ? (plan_path){s->step.place, s->step.peer_place} : plan_path_of(&s->step);
        int n = x->q->s.machine->n_places;
        *ARRAY_PUSH(&w->entries) = (entry){s->step.key.level,
                                           s->piece,
                                           s->sums ? 0 : (path.to - path.from + n) % n,
                                           path.to,
                                           s->sums ? 0 : s->step.key.term,
                                           &s->step.key.box,
                                           i,
                                           0};
    }
    if (w->entries.n)
        qsort(w->entries.at, (size_t)w->entries.n, sizeof *w->entries.at, compare);
    for (int i = 1; i < w->entries.n; i++)
        w->entries.at[i].unit = w->entries.at[i - 1].unit + (compare(&w->entries.at[i - 1], &w->entries.at[i]) != 0);
}

/* ---- Buffers ---- */

/* Packs a region again for another receiver, since the first copy may be gone by then. Returns the new buffer. */
static int pack_again(staging *w, int shard)
{
    exchange *x = w->x;
    int copy = partition_shard(x->q, SHARD_MESSAGE, x->value, x->q->p->shards.at[shard].place,
                               &x->q->p->shards.at[shard].box, -1, 1);
    for (int i = 0, n = x->steps.n; i < n; i++) {
        exchange_step s = x->steps.at[i];
        if (s.step.kind != STEP_COPY || s.operands[0].region.shard != shard)
            continue;
        s.operands[0].region.shard = copy;
        *ARRAY_PUSH(&x->steps) = s;
        break;
    }
    return copy;
}

/* The unit that uses a shard of the exchange; -1: none yet. */
static int *unit_of(staging *w, int shard)
{
    int at = shard - w->x->first_shard;
    while (w->unit_of.n <= at)
        *ARRAY_PUSH(&w->unit_of) = -1;
    return &w->unit_of.at[at];
}

static void find_buffers(staging *w)
{
    exchange *x = w->x;
    for (int i = 0; i < w->entries.n; i++) {
        int unit = w->entries.at[i].unit, step = w->entries.at[i].step;
        int shard = x->steps.at[step].operands[0].region.shard;
        shard_source source = x->q->p->shards.at[shard].source;
        if (source != SHARD_MESSAGE && source != SHARD_VIEW)
            continue;
        if (source == SHARD_MESSAGE && *unit_of(w, shard) >= 0 && *unit_of(w, shard) != unit) {
            shard = pack_again(w, shard);
            x->steps.at[step].operands[0].region.shard = shard;
        }
        if (*unit_of(w, shard) >= 0)
            continue;
        *unit_of(w, shard) = unit;
        if (source == SHARD_MESSAGE)
            *ARRAY_PUSH(&w->buffers) = (buffer){shard, x->q->p->shards.at[shard].place, unit, 0, padded(x, shard)};
    }
}

/* ---- Rounds ---- */

/* Counts the bytes of a unit's buffers on each place in w->cursor. Returns the first buffer of the next unit. */
static int unit_bytes(staging *w, int at)
{
    memset(w->cursor, 0, (size_t)w->n_places * sizeof *w->cursor);
    int unit = w->buffers.at[at].unit;
    for (; at < w->buffers.n && w->buffers.at[at].unit == unit; at++)
        w->cursor[w->buffers.at[at].place] += w->buffers.at[at].bytes;
    return at;
}

static void make_buffers(staging *w, int64_t bytes)
{
    w->x->count.buffers = 0;
    for (int p = 0; p < w->n_places; p++)
        w->half[p] = bytes / 2 / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    for (int at = 0; at < w->buffers.n;) {
        at = unit_bytes(w, at);
        for (int p = 0; p < w->n_places; p++)
            w->half[p] = max_i64(w->half[p], w->cursor[p]);
    }
    for (int i = 0; i < w->buffers.n; i++) {
        int place = w->buffers.at[i].place;
        box memory = {.ndim = 1, .n = {2 * w->half[place] / (int64_t)w->x->t.element}};
        if (w->shard[place] >= 0)
            continue;
        w->shard[place] = partition_shard(w->x->q, SHARD_WINDOW, w->x->value, place, &memory, -1, 1);
        w->x->count.buffers += 2 * w->half[place];
    }
}

static void assign_rounds(staging *w)
{
    int64_t *used = trama_alloc((size_t)w->n_places * sizeof *used);
    int round = 0, units = w->entries.n ? w->entries.at[w->entries.n - 1].unit + 1 : 0;
    for (int unit = 0, at = 0; unit < units; unit++) {
        int end = at < w->buffers.n && w->buffers.at[at].unit == unit ? unit_bytes(w, at) : at;
        for (int p = 0; p < w->n_places && end > at; p++)
            if (used[p] + w->cursor[p] > w->half[p]) {
                round++;
                memset(used, 0, (size_t)w->n_places * sizeof *used);
                break;
            }
        for (; at < end; at++) {
            buffer *b = &w->buffers.at[at];
            plan_shard *s = &w->x->q->p->shards.at[b->shard];
            b->round = round;
            s->within = w->shard[b->place];
            s->at = (round % 2 * w->half[b->place] + used[b->place]) / (int64_t)w->x->t.element;
            used[b->place] += b->bytes;
        }
        *ARRAY_PUSH(&w->rounds) = round;
    }
    w->x->rounds = round;
    free(used);
}

/* The round of a step's messages: of the first where it comes before them, else of the last; -1: it has none. */
static int round_of(staging *w, const exchange_step *s)
{
    const exchange *x = w->x;
    const bool before = s->phase <= PACK || s->phase == PACK_AGAIN;
    const plan_operand *operands = s->many >= 0 ? &x->sources.at[s->many] : s->operands;
    int round = -1;
    for (int k = 0; k < s->n && s->phase != RETURN; k++) {
        const int shard = operands[k].region.shard;
        const shard_source source = x->q->p->shards.at[shard].source;
        if (shard < x->first_shard || (source != SHARD_MESSAGE && source != SHARD_VIEW))
            continue;
        const int its = w->rounds.at[*unit_of(w, shard)];
        if (round < 0 || (before ? its < round : its > round))
            round = its;
    }
    return round;
}

/* A step gets the round of its messages. A step without one gets the first round, or the last if it follows the sums.
 */
static void assign_steps(staging *w)
{
    exchange *x = w->x;
    for (int i = 0; i < w->entries.n; i++)
        x->steps.at[w->entries.at[i].step].round = w->rounds.at[w->entries.at[i].unit];
    for (int i = 0; i < x->steps.n; i++) {
        exchange_step *s = &x->steps.at[i];
        if (is_message(s))
            continue;
        const int round = round_of(w, s);
        s->round = round >= 0 ? round : s->phase > REDUCE ? x->rounds : 0;
        if (s->behind >= 0)
            s->round = (int)max_i64(s->round, x->steps.at[s->behind].round);
    }
}

/* Buffers of a round on a place, as operands. */
static void add_round(staging *w, int round, int place, step_access access)
{
    for (int i = w->start.at[round]; i < w->start.at[round + 1]; i++) {
        int shard = w->buffers.at[i].shard;
        if (w->buffers.at[i].place == place)
            *ARRAY_PUSH(&w->x->sources) = (plan_operand){{shard, w->x->q->p->shards.at[shard].box}, access};
    }
}

/* Orders the buffers of a round behind those of round `before`, which used the same half of the staging buffer: at the
 * beginning of the round, or for the next run at the end of this one. */
static void order_half(staging *w, int phase, int round, int place, int before)
{
    int first = w->x->sources.n;
    add_round(w, before, place, ACCESS_UPDATE);
    add_round(w, round, place, ACCESS_WRITE);
    exchange_step *s = add_step(w->x, phase, STEP_ORDER, place);
    s->many = first;
    s->n = w->x->sources.n - first;
    s->round = phase == RETURN ? w->x->rounds : round;
}

static void order_rounds(staging *w)
{
    size_t bytes = 2 * (size_t)w->n_places * sizeof(int);
    int *last = trama_alloc(bytes), *first = trama_alloc(bytes); /* [half][place] the rounds that use it; -1 */
    memset(last, -1, bytes);
    memset(first, -1, bytes);
    for (int i = 0; i < w->buffers.n; i++) {
        while (w->start.n <= w->buffers.at[i].round)
            *ARRAY_PUSH(&w->start) = i;
    }
    while (w->start.n <= w->x->rounds + 1)
        *ARRAY_PUSH(&w->start) = w->buffers.n;
    for (int i = 0; i < w->buffers.n; i++) {
        int round = w->buffers.at[i].round, place = w->buffers.at[i].place;
        int half = round % 2 * w->n_places + place;
        if (last[half] >= 0 && last[half] != round)
            order_half(w, LEND, round, place, last[half]);
        last[half] = round;
        first[half] = first[half] < 0 ? round : first[half];
    }
    for (int half = 0; half < 2 * w->n_places; half++)
        if (last[half] != first[half])
            order_half(w, RETURN, first[half], half % w->n_places, last[half]);
    free(last);
    free(first);
}

/* Counts the message buffers. Returns whether those of one place exceed the staging buffer. */
static bool is_over(staging *w, int64_t bytes)
{
    exchange *x = w->x;
    bool over = false;
    for (int i = x->first_shard; i < x->q->p->shards.n; i++) {
        const plan_shard *s = &x->q->p->shards.at[i];
        if (s->source != SHARD_MESSAGE)
            continue;
        over |= (w->cursor[s->place] += padded(x, i)) > bytes;
        x->count.buffers += region_bytes(x, &s->box);
    }
    return over;
}

void staging_rounds(exchange *x)
{
    staging w = {.x = x, .n_places = x->q->s.machine->n_places};
    int64_t bytes = staging_bytes(x->q);
    size_t n = (size_t)w.n_places;
    w.cursor = trama_alloc(n * sizeof *w.cursor);
    if (is_over(&w, bytes)) {
        w.half = trama_alloc(n * sizeof *w.half);
        w.shard = trama_alloc(n * sizeof *w.shard);
        memset(w.shard, -1, n * sizeof *w.shard);
        sort_messages(&w);
        find_buffers(&w);
        make_buffers(&w, bytes);
        assign_rounds(&w);
        assign_steps(&w);
        order_rounds(&w);
    }
    free(w.cursor);
    free(w.half);
    free(w.shard);
    ARRAY_FREE(&w.unit_of);
    ARRAY_FREE(&w.entries);
    ARRAY_FREE(&w.buffers);
    ARRAY_FREE(&w.rounds);
    ARRAY_FREE(&w.start);
}
