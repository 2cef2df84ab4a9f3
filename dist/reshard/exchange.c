/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one exchange: added while the engine walks the pairs of boxes, then emitted by phase. */
#include "exchange.h"

#include "thresholds.h"

enum { RECENT_PACKS = 8 }; /* the packed copies that a send looks at: the receivers of one region follow each other */

/* ---- Steps ---- */

exchange_step *add_step(exchange *x, int phase, step_kind kind, int place)
{
    exchange_step *s = ARRAY_PUSH(&x->steps);
    s->phase = phase;
    s->many = s->behind = -1;
    s->piece = x->piece;
    s->step = (plan_step){.kind = kind, .place = place, .lane = lane_at(x->q, place), .scale = 1};
    return s;
}

/* Counts the bytes that a step takes from another place of this rank. */
void count_between(exchange *x, int place, const plan_region *from)
{
    int64_t bytes = region_bytes(x, &from->box);
    if (x->q->p->shards.at[from->shard].place == place)
        return;
    x->count.sent += bytes;
    x->count.received += bytes;
}

static exchange_step *add_one_copy(exchange *x, int phase, int place, plan_region to, plan_region from)
{
    count_between(x, place, &from);
    exchange_step *s = add_step(x, phase, STEP_COPY, place);
    s->n = 2;
    s->operands[0] = (plan_operand){to, write_access(x->q->p, &to)};
    s->operands[1] = (plan_operand){from, ACCESS_READ};
    return s;
}

/* A buffer for a message that holds `b` in row-major order: its own box, so that regions of it are boxes too. */
static int message_shard(exchange *x, int place, const box *b)
{
    return partition_shard(x->q, SHARD_MESSAGE, x->value, place, b, -1, 1);
}

/* ---- Between memories of the rank ---- */

/* Whether a step on a place may read a region in place. A step reads only whole tiles of another memory. */
static bool is_local(const exchange *x, int place, const plan_region *r)
{
    const plan_shard *s = &x->q->p->shards.at[r->shard];
    return !plan_is_remote(x->q->p, place, s) || (!s->host && plan_exact_tile(s, &r->box) >= 0);
}

plan_region add_local_copy(exchange *x, int level, int place, plan_region from, int term)
{
    int there = x->q->p->shards.at[from.shard].place;
    if (is_local(x, place, &from))
        return from;
    plan_region buffer = {message_shard(x, there, &from.box), from.box};
    exchange_step *s = add_one_copy(x, level ? PACK_AGAIN : PACK, there, buffer, from);
    s->crosses = true;
    s->step.peer_place = place;
    s->step.key.level = level;
    s->step.key.term = term;
    s->step.key.box = from.box;
    return buffer;
}

/* The part of `to` into which a part of `from` is copied; the boxes may differ by whole extents of the tensor. */
static plan_region same_part(const plan_region *to, const plan_region *from, const box *part)
{
    plan_region r = {to->shard, *part};
    for (int d = 0; d < part->ndim; d++)
        r.box.lo[d] += to->box.lo[d] - from->box.lo[d];
    return r;
}

void add_copy(exchange *x, int phase, int place, plan_region to, plan_region from)
{
    const plan_shard source = x->q->p->shards.at[from.shard];
    int level = phase == UNPACK_AGAIN, first, last;
    if (box_count(&to.box) == 0)
        return;
    if (is_local(x, place, &from)) {
        add_one_copy(x, phase, place, to, from);
        return;
    }
    plan_tiles(&source, &from.box, &first, &last);
    for (int i = first; i <= last; i++) {
        plan_region part = {from.shard, plan_tile(&source, i)};
        box_intersect(&part.box, &from.box, &part.box);
        if (is_local(x, place, &part)) {
            add_one_copy(x, phase, place, same_part(&to, &from, &part.box), part);
            continue;
        }
        cut_message(x, &part.box, NULL, NULL, 1);
        for (x->piece = 0; x->piece < x->pieces.n; x->piece++) {
            const box piece = x->pieces.at[x->piece];
            add_one_copy(x, phase, place, same_part(&to, &from, &piece),
                         add_local_copy(x, level, place, (plan_region){from.shard, piece}, 0));
        }
    }
}

/* ---- Messages ---- */

/* Whether a message needs no buffer: it is large, and lies in the shard in one run. MPI packs others piece by piece,
 * for which both ranks must look after it: a message of theirs would wait until the task that runs at the other end is
 * done.
 */
static bool can_lie(const exchange *x, const box *shard, const box *b)
{
    return region_bytes(x, b) >= max_i64(1, staging_bytes(x->q) / VIEW_SHARE) && box_is_run(shard, b);
}

/* Whether a message is one tile of a shard; and whether it can be a view. */
static bool is_tile(const exchange *x, const plan_region *r)
{
    const plan_shard *s = &x->q->p->shards.at[r->shard];
    return !s->strided && lending(x, s->place, &s->box) && box_is_run(&s->box, &r->box) &&
           plan_exact_tile(s, &r->box) >= 0;
}

static bool is_view(const exchange *x, const plan_region *r)
{
    const plan_shard *s = &x->q->p->shards.at[r->shard];
    return !s->strided && lending(x, s->place, &s->box) && can_lie(x, &s->box, &r->box);
}

static void cut_box(exchange *x, const box *b, int64_t most)
{
    int64_t bytes = region_bytes(x, b);
    int dim = 0;
    for (int d = 1; d < b->ndim; d++)
        dim = b->n[dim] > 1 ? dim : d; /* the outermost dim that can be cut, so that pieces are contiguous */
    if (bytes <= most || !b->ndim || b->n[dim] < 2) {
        *ARRAY_PUSH(&x->pieces) = *b;
        return;
    }
    int parts = (int)min_i64(b->n[dim], (bytes + most - 1) / most);
    for (int i = 0; i < parts; i++) {
        box piece = *b;
        int64_t lo;
        piece_of(b->n[dim], parts, i, &lo, &piece.n[dim]);
        piece.lo[dim] += lo;
        cut_box(x, &piece, most);
    }
}

void cut_message(exchange *x, const box *b, const box *from, const box *to, int terms)
{
    int64_t buffer = staging_bytes(x->q);
    x->pieces.n = 0;
    bool lies = from && to && can_lie(x, from, b) && can_lie(x, to, b);
    if (region_bytes(x, b) * terms > (lies ? MOST_MESSAGE : buffer / 2))
        cut_box(x, b, lies ? MOST_MESSAGE : max_i64(BUFFER_ALIGNMENT, buffer / 4 / terms));
    else
        *ARRAY_PUSH(&x->pieces) = *b;
}

static void add_message(exchange *x, int phase, step_kind kind, int place, int peer_place, plan_region buffer,
                        int level, int term)
{
    exchange_step *s = add_step(x, phase, kind, place);
    s->n = 1;
    s->operands[0] = (plan_operand){buffer, kind == STEP_SEND ? ACCESS_READ : ACCESS_WRITE};
    s->step.peer = x->q->s.machine->places[peer_place].rank;
    s->step.peer_place = peer_place;
    s->step.key.level = level;
    s->step.key.term = term;
    s->step.key.box = buffer.box;
    int64_t bytes = region_bytes(x, &buffer.box);
    *(kind == STEP_SEND ? &x->count.sent : &x->count.received) += bytes;
    x->count.messages++;
}

/* Sends a contiguous tile or large run in place, any other region as a packed copy, which several receivers share. */
void add_send(exchange *x, int level, int place, int peer_place, plan_region from, int term)
{
    plan_region buffer = from;
    if (!is_tile(x, &from)) {
        buffer.shard = -1;
        for (int i = (int)max_i64(0, x->packs.n - RECENT_PACKS); i < x->packs.n; i++)
            if (x->packs.at[i].region.shard == from.shard && box_equal(&x->packs.at[i].region.box, &from.box))
                buffer.shard = x->packs.at[i].message;
        if (buffer.shard < 0) {
            bool lies = is_view(x, &from);
            buffer.shard = lies ? message_view(x, place, &from).shard : message_shard(x, place, &from.box);
            *ARRAY_PUSH(&x->packs) = (packed){from, buffer.shard};
            if (lies)
                lend_to_sends(x, level, place, &from, &buffer);
            else
                add_copy(x, level ? PACK_AGAIN : PACK, place, buffer, from);
        }
    }
    add_message(x, level ? SEND_AGAIN : SENDS, STEP_SEND, place, peer_place, buffer, level, term);
}

/* Receives a message from peer_place into a new buffer. */
plan_region add_receive_buffer(exchange *x, int level, int place, int peer_place, const box *b, int term)
{
    plan_region buffer = {message_shard(x, place, b), *b};
    add_message(x, POST, STEP_RECEIVE, place, peer_place, buffer, level, term);
    return buffer;
}

void add_receive(exchange *x, int level, int place, int peer_place, plan_region to, int term)
{
    if (is_tile(x, &to)) {
        add_message(x, level ? RECEIVE_AGAIN : RECEIVES, STEP_RECEIVE, place, peer_place, to, level, term);
        return;
    }
    if (is_view(x, &to)) {
        plan_region view = message_view(x, place, &to);
        lend_to_receive(x, level, place, &to, &view);
        add_message(x, POST, STEP_RECEIVE, place, peer_place, view, level, term);
    } else
        add_copy(x, level ? UNPACK_AGAIN : UNPACK, place, to,
                 add_receive_buffer(x, level, place, peer_place, &to.box, term));
}

/* ---- This rank's pieces ---- */

int kept_of(const exchange *x, const trama_mesh *mesh, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(mesh, position, coordinate);
    return axes_position(mesh, x->t.kept, coordinate);
}

int reduced_of(const exchange *x, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(x->t.from_mesh, position, coordinate);
    return axes_position(x->t.from_mesh, x->t.reduced, coordinate);
}

const plan_local_box *source_piece(const exchange *x, int place, const box *b, int kept, int term)
{
    const plan_dist_value *h = &x->q->p->dist_values.at[x->source];
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_local_box *s = &h->pieces.at[i];
        if (s->place == place && box_equal(&s->region.box, b) && kept_of(x, x->t.from_mesh, s->position) == kept &&
            reduced_of(x, s->position) == term)
            return s;
    }
    return NULL;
}

/* Whether a target piece gets the value; the others of a new P(sum) are zero. */
bool gets_value(const exchange *x, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(x->t.to_mesh, position, coordinate);
    return axes_position(x->t.to_mesh, x->t.fresh_sum, coordinate) == 0;
}

const plan_local_box *target_piece(const exchange *x, int place, const box *b, int kept)
{
    const plan_dist_value *h = &x->q->p->dist_values.at[x->target];
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_local_box *t = &h->pieces.at[i];
        if (t->place == place && gets_value(x, t->position) && kept_of(x, x->t.to_mesh, t->position) == kept &&
            box_equal(&t->region.box, b))
            return t;
    }
    return NULL;
}

/* ---- The plan ---- */

static void emit_with(const exchange *x, const exchange_step *s, int number, const plan_operand *operands)
{
    plan_step *step = partition_step(x->q, s->step.kind, s->step.place, s->n, operands);
    int operand = step->operand;
    *step = s->step;
    step->operand = operand;
    step->n_operands = s->n;
    step->exchange = number;
}

/* The tasks that a copy or a sum is worth, where it writes tiles first to last of its shard. A step that reads another
 * memory reads whole tiles there, so it stays whole, and a sum in turns, which goes on while messages come. */
static int count_parts(const exchange *x, const exchange_step *s, const plan_operand *to, int *first, int *last)
{
    const bool merged = s->many >= 0 && s->step.kind == STEP_COPY;
    if ((s->step.kind != STEP_COPY && s->step.kind != STEP_REDUCE) || merged || s->crosses || s->behind >= 0)
        return 1;
    for (int i = 0; i < s->n; i++)
        if (plan_is_remote(x->q->p, s->step.place, &x->q->p->shards.at[to[i].region.shard]))
            return 1;
    plan_tiles(&x->q->p->shards.at[to->region.shard], &to->region.box, first, last);
    const int64_t least =
        s->step.kind == STEP_COPY ? max_i64(1, x->q->s.options.grain_bytes) : partition_sum_task(x->q);
    const int64_t worth = s->n * region_bytes(x, &to->region.box) / least;
    return (int)max_i64(1, min_i64(worth, *last - *first + 1));
}

/* A step that writes several tiles becomes some that write different ones, so that workers take them at the same
 * time, and steps that meet in a tile do not wait for the other tiles. */
static void emit(const exchange *x, const exchange_step *s, int number)
{
    const plan_operand *operands = s->many >= 0 ? &x->sources.at[s->many] : s->operands;
    int first = 0, last = 0;
    const int parts = count_parts(x, s, operands, &first, &last);
    if (parts == 1) {
        emit_with(x, s, number, operands);
        return;
    }
    plan_operand *cut = trama_alloc((size_t)s->n * sizeof *cut);
    for (int k = 0; k < parts; k++) {
        const plan_shard *shard = &x->q->p->shards.at[operands->region.shard];
        int64_t lo, n;
        piece_of(last - first + 1, parts, k, &lo, &n);
        box part = plan_tile(shard, first + (int)lo);
        const box end = plan_tile(shard, first + (int)(lo + n - 1));
        part.n[shard->cut_dim] = end.lo[shard->cut_dim] + end.n[shard->cut_dim] - part.lo[shard->cut_dim];
        box_intersect(&part, &operands->region.box, &part);
        for (int i = 0; i < s->n; i++)
            cut[i] = (plan_operand){same_part(&operands[i].region, &operands->region, &part), operands[i].access};
        cut->access = write_access(x->q->p, &cut->region);
        emit_with(x, s, number, cut);
    }
    free(cut);
}

/* Emits steps by round, then phase, then in the order in which they were added: a counting sort. */
void emit_phases(exchange *x, int number)
{
    int keys = (x->rounds + 1) * PHASES;
    int *start = trama_alloc((size_t)(keys + 1) * sizeof *start);
    int *order = trama_alloc((size_t)x->steps.n * sizeof *order);
    for (int i = 0; i < x->steps.n; i++)
        start[x->steps.at[i].round * PHASES + x->steps.at[i].phase + 1]++;
    for (int k = 0; k < keys; k++)
        start[k + 1] += start[k];
    for (int i = 0; i < x->steps.n; i++)
        order[start[x->steps.at[i].round * PHASES + x->steps.at[i].phase]++] = i;
    for (int i = 0; i < x->steps.n; i++)
        if (x->steps.at[order[i]].n) /* else it became a part of another */
            emit(x, &x->steps.at[order[i]], number);
    free(start);
    free(order);
}
