/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one exchange: staged while the engine walks, then emitted so that nobody waits for what could go first. */
#include "exchange.h"

enum { RECENT_PACKS = 8 }; /* who gets the same as others gets it at once after them */

/* ---- Steps ---- */

staged *stage_step(exchange *x, int stage, step_kind kind, int place)
{
    staged *s = ARRAY_PUSH(&x->steps);
    s->stage = stage;
    s->many = -1;
    s->step = (plan_step){.kind = kind, .place = place, .lane = -1, .scale = 1};
    return s;
}

/* Accounts for what a step takes from another place of this rank. */
void count_between(exchange *x, int place, const plan_region *from)
{
    int64_t bytes = box_count(&from->box) * (int64_t)x->element;
    if (x->q->p->shards.at[from->shard].place == place)
        return;
    x->count.sent += bytes;
    x->count.received += bytes;
}

void stage_copy(exchange *x, int stage, int place, plan_region to, plan_region from)
{
    if (box_count(&to.box) == 0)
        return;
    count_between(x, place, &from);
    staged *s = stage_step(x, stage, STEP_COPY, place);
    s->n = 2;
    s->operands[0] = (plan_operand){to, write_access(x->q->p, &to)};
    s->operands[1] = (plan_operand){from, ACCESS_READ};
}

/* A buffer for a message that holds `b` in row-major order: its own box, so that regions of it are boxes too. */
static int message_shard(exchange *x, int place, const box *b)
{
    return partition_shard(x->q, SHARD_MESSAGE, x->value, place, b, -1, 1);
}

static void stage_message(exchange *x, int stage, step_kind kind, int place, int peer_place, plan_region buffer,
                          int phase, int term)
{
    staged *s = stage_step(x, stage, kind, place);
    s->n = 1;
    s->operands[0] = (plan_operand){buffer, kind == STEP_SEND ? ACCESS_READ : ACCESS_WRITE};
    s->step.peer = x->q->s.machine->places[peer_place].rank;
    s->step.peer_place = peer_place;
    s->step.key.phase = phase;
    s->step.key.term = term;
    s->step.key.box = buffer.box;
    int64_t bytes = box_count(&buffer.box) * (int64_t)x->element;
    *(kind == STEP_SEND ? &x->count.sent : &x->count.received) += bytes;
    x->count.messages++;
}

/* What is sent: a tile as it lies, else a packed copy, made once however many get it. */
void stage_send(exchange *x, int phase, int place, int peer_place, plan_region from, int term)
{
    plan *p = x->q->p;
    plan_region buffer = from;
    if (plan_exact_tile(&p->shards.at[from.shard], &from.box) < 0) {
        buffer.shard = -1;
        for (int i = (int)max_i64(0, x->packs.n - RECENT_PACKS); i < x->packs.n; i++)
            if (x->packs.at[i].region.shard == from.shard && box_equal(&x->packs.at[i].region.box, &from.box))
                buffer.shard = x->packs.at[i].message;
        if (buffer.shard < 0) {
            buffer.shard = message_shard(x, place, &from.box);
            *ARRAY_PUSH(&x->packs) = (packed){from, buffer.shard};
            stage_copy(x, phase ? PACK_AGAIN : PACK, place, buffer, from);
        }
    }
    stage_message(x, phase ? SEND_AGAIN : SENDS, STEP_SEND, place, peer_place, buffer, phase, term);
}

/* A buffer that a message from peer_place is received into. */
plan_region stage_receive_buffer(exchange *x, int phase, int place, int peer_place, const box *b, int term)
{
    plan_region buffer = {message_shard(x, place, b), *b};
    stage_message(x, POST, STEP_RECEIVE, place, peer_place, buffer, phase, term);
    return buffer;
}

void stage_receive(exchange *x, int phase, int place, int peer_place, plan_region to, int term)
{
    if (plan_exact_tile(&x->q->p->shards.at[to.shard], &to.box) >= 0)
        stage_message(x, phase ? RECEIVE_AGAIN : RECEIVES, STEP_RECEIVE, place, peer_place, to, phase, term);
    else
        stage_copy(x, phase ? UNPACK_AGAIN : UNPACK, place, to,
                   stage_receive_buffer(x, phase, place, peer_place, &to.box, term));
}

/* ---- This rank's pieces ---- */

int kept_of(const exchange *x, const trama_mesh *mesh, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(mesh, position, coordinate);
    return axes_position(mesh, x->kept, coordinate);
}

int reduced_of(const exchange *x, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(x->from_mesh, position, coordinate);
    return axes_position(x->from_mesh, x->reduced, coordinate);
}

const plan_piece *source_piece(const exchange *x, int place, const box *b, int kept, int term)
{
    const plan_holding *h = &x->q->p->holdings.at[x->source];
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_piece *s = &h->pieces.at[i];
        if (s->place == place && box_equal(&s->region.box, b) && kept_of(x, x->from_mesh, s->position) == kept &&
            reduced_of(x, s->position) == term)
            return s;
    }
    return NULL;
}

/* Whether a target piece gets the value; the others of a new P(sum) are zero. */
bool gets_value(const exchange *x, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(x->to_mesh, position, coordinate);
    return axes_position(x->to_mesh, x->fresh_sum, coordinate) == 0;
}

const plan_piece *target_piece(const exchange *x, int place, const box *b, int kept)
{
    const plan_holding *h = &x->q->p->holdings.at[x->target];
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_piece *t = &h->pieces.at[i];
        if (t->place == place && gets_value(x, t->position) && kept_of(x, x->to_mesh, t->position) == kept &&
            box_equal(&t->region.box, b))
            return t;
    }
    return NULL;
}


/* ---- The plan ---- */

void emit_stages(exchange *x, int number)
{
    partition *q = x->q;
    for (int stage = 0; stage < STAGES; stage++)
        for (int i = 0; i < x->steps.n; i++) {
            const staged *s = &x->steps.at[i];
            if (s->stage != stage)
                continue;
            const plan_operand *operands = s->many >= 0 ? &x->sources.at[s->many] : s->operands;
            plan_step *step = partition_step(q, s->step.kind, s->step.place, s->n, operands);
            int operand = step->operand;
            *step = s->step;
            step->operand = operand;
            step->n_operands = s->n;
            step->exchange = number;
        }
}
