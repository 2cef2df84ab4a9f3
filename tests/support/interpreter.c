/* SPDX-License-Identifier: Apache-2.0 */
/* The plan interpreter. */
#include "interpreter.h"

#include <math.h>
#include <string.h>

#include "flow.h"
#include "meetings.h"
#include "reference.h"

typedef struct message {
    const plan_step *step;
    int from, to;
    int64_t tag, n, bytes;
    double *data;
    box box;
    bool received;
} message;

typedef struct walker {
    const plan *p;
    memory *m;
    int rank, at;
    flow *steps;
    struct run *of;
    traffic *sent, *received; /* [exchange] */
} walker;

typedef struct run {
    const world *w;
    const trama_shape *shapes;
    int n_ranks;
    walker *ranks;
    ARRAY(message) messages;
    meetings met;
    text wrong;
} run;

static const trama_value *value_of(const run *r, const plan *p, int shard)
{
    return r->w->program->values.at[p->shards.at[shard].value];
}

/* Records the first thing that is wrong; returns false. */
static bool fail(run *r, const walker *k, const char *problem, const plan_region *region)
{
    if (r->wrong.n)
        return false;
    text_add(&r->wrong, "rank %d, step %d: %s", k->rank, k->at, problem);
    if (region) {
        text_add(&r->wrong, ": %s #%d", value_of(r, k->p, region->shard)->name, region->shard);
        box_text(&r->wrong, &region->box);
    }
    text steps = {0};
    plan_describe(k->p, r->w->program, &steps);
    text_add(&r->wrong, "\nall steps of the rank:\n%s", steps.at ? steps.at : "none\n");
    free(steps.at);
    return false;
}

static plan_operand *operand_of(const walker *k, const plan_step *s, int i)
{
    return &k->p->operands.at[s->operand + i];
}

/* The message that a step receives; NULL where it was not sent yet. */
static message *arrived(run *r, const walker *k, const plan_step *s)
{
    for (int i = 0; i < r->messages.n; i++) {
        message *m = &r->messages.at[i];
        if (!m->received && m->to == k->rank && m->from == s->peer && m->tag == s->tag)
            return m;
    }
    return NULL;
}

static void store(walker *k, const plan_region *region, const double *data)
{
    FOR_EACH_ELEMENT(k->m, region->shard, &region->box, at)
    {
        k->m->data[region->shard][at] = *data++;
        k->m->known[region->shard][at] = 1;
    }
}

static void forget_box(walker *k, int shard, const box *b)
{
    FOR_EACH_ELEMENT(k->m, shard, b, at)
    {
        k->m->data[shard][at] = NAN;
        k->m->known[shard][at] = 0;
    }
}

/* A GPU has a memory of its own: its shards are one tile, messages have buffers beside them, and what comes from
 * another memory of the rank comes tile by tile, of which nothing is left out but where a sum is made in parts. */
static bool lies_well(run *r, walker *k, const plan_step *s, int i)
{
    const plan_operand *o = operand_of(k, s, i);
    const plan_shard *shard = &k->p->shards.at[o->region.shard];
    const machine_place *places = r->w->machine->places;
    bool gpu = places[s->place].gpu, far = shard->place != s->place && (gpu || places[shard->place].gpu);
    bool goes = s->kind == STEP_SEND || s->kind == STEP_RECEIVE;
    if (places[shard->place].gpu && (shard->cut_parts != 1 || shard->source == SHARD_VIEW))
        return fail(r, k, "a shard of a GPU is cut, or lies in another one", &o->region);
    if (gpu && goes && shard->source != SHARD_MESSAGE && shard->source != SHARD_BUNDLE)
        return fail(r, k, "a message lies in a shard of a GPU", &o->region);
    if (gpu && s->lane != 0)
        return fail(r, k, "a step of a GPU is not on its worker", NULL);
    if (!far || s->kind == STEP_ORDER || goes)
        return true;
    bool part = s->n_terms > 0 && i >= s->n_operands - s->n_terms;
    for (int t = 0; t < shard->cut_parts; t++) {
        box tile = plan_tile(shard, t);
        if (o->access == ACCESS_READ && !shard->host &&
            (part ? box_contains(&tile, &o->region.box) : box_equal(&tile, &o->region.box)))
            return true;
    }
    return fail(r, k, "takes from another memory what is no tile", &o->region);
}

/* Written tiles lose their content; operands to read must have been written. */
static bool enter_step(run *r, walker *k, const plan_step *s)
{
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = operand_of(k, s, i);
        const plan_shard *shard = &k->p->shards.at[o->region.shard];
        if (!box_contains(&shard->box, &o->region.box))
            return fail(r, k, "an operand lies outside its shard", &o->region);
        if (!lies_well(r, k, s, i))
            return false;
        if ((shard->source == SHARD_INTERNAL) != (o->access == ACCESS_NONE))
            return fail(r, k, "internal shards, and only they, have no access mode", &o->region);
        if (o->access == ACCESS_READ && !memory_is_known(k->m, &o->region))
            return fail(r, k, "reads what was never written", &o->region);
        if (o->access == ACCESS_NONE)
            forget_box(k, o->region.shard, &o->region.box);
        if (o->access == ACCESS_WRITE && shard->source != SHARD_VIEW) { /* a view is as its shard is */
            int first, last;
            plan_tiles(shard, &o->region.box, &first, &last);
            for (int tile = first; tile <= last; tile++) {
                box b = plan_tile(shard, tile);
                forget_box(k, o->region.shard, &b);
            }
        }
    }
    return true;
}

/* A part of what a step computes: indices along a dim of its results, counted from the last one. */
typedef struct slice {
    int dim;
    int64_t from, n; /* n -1: all of it */
} slice;

/* The part of a region that belongs to it, where calls keep the order of elements. */
static plan_region slice_of(const plan_region *region, slice part)
{
    plan_region p = *region;
    const int d = p.box.ndim - 1 - part.dim;
    if (part.n >= 0 && d >= 0 && p.box.n[d] != 1) {
        p.box.lo[d] += part.from;
        p.box.n[d] = part.n;
    }
    return p;
}

static bool run_call(run *r, walker *k, const plan_step *s, const plan_call *c, slice part)
{
    const trama_node *node = r->w->program->nodes.at[c->node];
    trama_view in[TRAMA_MAX_OPERANDS] = {0}, out[TRAMA_MAX_OPERANDS] = {0};
    for (int t = 0; t < node->op->n_in; t++) {
        trama_shape shape = r->shapes[node->in[t]->id];
        if (c->in[t] < 0) {
            in[t] = (trama_view){.dtype = node->in[t]->dtype, .ndim = shape.ndim};
            memcpy(in[t].global, shape.dim, sizeof shape.dim);
            continue;
        }
        const plan_operand *o = operand_of(k, s, c->in[t]);
        if (k->p->shards.at[o->region.shard].place != s->place)
            return fail(r, k, "an operand is on another place than its op", &o->region);
        const plan_region region = slice_of(&o->region, part);
        if (o->access == ACCESS_WRITE && !memory_is_known(k->m, &region))
            return fail(r, k, "reads what it only declares to write", &region);
        if (!memory_is_known(k->m, &region))
            return fail(r, k, "an op reads what was never written", &region);
        in[t] = memory_view(k->m, &region, shape);
    }
    for (int i = 0; i < node->op->n_out; i++) {
        const plan_operand *o = operand_of(k, s, c->out[i]);
        if (o->access == ACCESS_READ)
            return fail(r, k, "writes what it only declares to read", &o->region);
        const plan_region region = slice_of(&o->region, part);
        out[i] = memory_view(k->m, &region, r->shapes[node->out[i]->id]);
    }
    trama_call call = {node->op, node->attributes, node->op->n_in, node->op->n_out, in, out, c->goes_on};
    reference_call(&call);
    for (int i = 0; i < node->op->n_out; i++) {
        const plan_region region = slice_of(&operand_of(k, s, c->out[i])->region, part);
        bool rounds = !node->op->exact && trama_dtype_is_float(node->out[i]->dtype);
        double error = rounds ? r->w->error * r->w->machine->places[s->place].kind : 0;
        FOR_EACH_ELEMENT(k->m, region.shard, &region.box, at)
        {
            k->m->known[region.shard][at] = 1;
            k->m->data[region.shard][at] *= 1 + error;
        }
    }
    return true;
}

/* A product and what is fused to it: nobody else sees its result, and where it is computed right into a state it must
 * not read that. */
static bool run_product(run *r, walker *k, const plan_step *s, const plan_call *c)
{
    const plan_operand *last = operand_of(k, s, c[c->fused.n - 1].out[0]);
    for (int t = 0; c->fused.kind == FUSED_ADDITION && t < r->w->program->nodes.at[c->node]->op->n_in; t++)
        if (operand_of(k, s, c->in[t])->region.shard == last->region.shard)
            return fail(r, k, "a product reads the state that it is computed into", &last->region);
    const plan_operand *made = operand_of(k, s, c->out[0]);
    if (made->access != ACCESS_NONE)
        return fail(r, k, "a result that is read elsewhere is fused away", &made->region);
    for (int i = 0; i < c->fused.n; i++)
        if (!run_call(r, k, s, &c[i], (slice){.n = -1}))
            return false;
    forget_box(k, made->region.shard, &made->region.box);
    return true;
}

/* Calls that keep the order of elements: all of them on one part of the elements, then on the next. */
static bool run_elements_of(run *r, walker *k, const plan_step *s, const plan_call *c)
{
    const box *b = &operand_of(k, s, c->out[0])->region.box;
    int d = 0;
    for (int i = 1; i < b->ndim; i++)
        d = b->n[i] > b->n[d] ? i : d;
    const int64_t n = b->ndim ? b->n[d] : 1, first = n > 1 ? n / 2 : n;
    for (int64_t from = 0; from < n; from += first)
        for (int i = 0; i < c->fused.n; i++) {
            const slice part = {b->ndim ? b->ndim - 1 - d : 0, from, from + first < n ? first : n - from};
            if (!run_call(r, k, s, &c[i], part))
                return false;
        }
    return true;
}

/* As the step's calls say which of them are one. */
static bool run_calls(run *r, walker *k, const plan_step *s)
{
    const plan_call *calls = &k->p->calls.at[s->call];
    for (int i = 0, n; i < s->n_calls; i += n) {
        const fused_run f = calls[i].fused;
        n = f.kind == FUSED_NOT ? 1 : f.n;
        if (n < 1 || n > s->n_calls - i)
            return fail(r, k, "calls are fused that are not there", NULL);
        bool product = f.kind == FUSED_ADDITION || f.kind == FUSED_EPILOGUE;
        if (!(product               ? run_product(r, k, s, &calls[i])
              : f.kind == FUSED_NOT ? run_call(r, k, s, &calls[i], (slice){.n = -1})
                                    : run_elements_of(r, k, s, &calls[i])))
            return false;
    }
    return true;
}

static double combined(trama_reduce how, double a, double b)
{
    return how == TRAMA_MAX ? fmax(a, b) : how == TRAMA_MIN ? fmin(a, b) : a + b;
}

static int64_t bytes_of(const run *r, const walker *k, const plan_region *region)
{
    return box_count(&region->box) * (int64_t)trama_dtype_size(value_of(r, k->p, region->shard)->dtype);
}

static void count_message(const run *r, const walker *k, const plan_step *s, traffic *of)
{
    const plan_region *region = &operand_of(k, s, 0)->region;
    of[s->exchange].messages++;
    if (k->p->shards.at[region->shard].source != SHARD_BUNDLE)
        of[s->exchange].bytes += bytes_of(r, k, region);
    for (int i = 0; i < k->p->shards.n; i++) { /* parts of a bundle */
        const plan_shard *part = &k->p->shards.at[i];
        if (part->within == region->shard && part->source == SHARD_MESSAGE)
            of[part->exchange].bytes += bytes_of(r, k, &(plan_region){i, part->box});
    }
}

/* A copy or sum from another place of the rank counts as traffic between places too. */
static void count_between_places(const run *r, const walker *k, const plan_step *s, int first, int end)
{
    for (int i = first; i < end; i++) {
        const plan_region *from = &operand_of(k, s, i)->region;
        if (k->p->shards.at[from->shard].place == s->place)
            continue;
        k->sent[s->exchange].bytes += bytes_of(r, k, from);
        k->received[s->exchange].bytes += bytes_of(r, k, from);
    }
}

/* Fills `to` from operands first .. end - 1 of the step (fills: from none), element by element of one box that all
 * share. */
static bool run_elements(run *r, walker *k, const plan_step *s, const plan_region to, int first, int end)
{
    int64_t n = box_count(&to.box);
    double *result = trama_alloc((size_t)n * sizeof *result);
    for (int64_t i = 0; i < n && s->kind == STEP_FILL; i++)
        result[i] = s->scale;
    for (int o = first; o < end; o++) {
        const plan_region from = operand_of(k, s, o)->region;
        double *x = result;
        if (!box_equal(&from.box, &to.box)) {
            free(result);
            return fail(r, k, "source and destination are different boxes", &from);
        }
        FOR_EACH_ELEMENT(k->m, from.shard, &from.box, at)
        {
            *x = o == first ? k->m->data[from.shard][at] : combined(s->reduce, *x, k->m->data[from.shard][at]);
            x++;
        }
    }
    for (int64_t i = 0; i < n && s->kind != STEP_FILL; i++)
        result[i] *= s->scale;
    count_between_places(r, k, s, first, end);
    store(k, &to, result);
    free(result);
    return true;
}

static bool run_movement(run *r, walker *k, const plan_step *s)
{
    const plan_region to = operand_of(k, s, 0)->region;
    if (operand_of(k, s, 0)->access == ACCESS_READ || k->p->shards.at[to.shard].place != s->place)
        return fail(r, k, "the destination is only read, or on another place", &to);
    for (int o = 2; s->kind == STEP_COPY && o < s->n_operands; o += 2) /* further copies of the step */
        if (operand_of(k, s, o)->access == ACCESS_READ ||
            !run_elements(r, k, s, operand_of(k, s, o)->region, o + 1, o + 2))
            return fail(r, k, "one of several copies goes wrong", &to);
    return run_elements(r, k, s, to, 1, s->kind == STEP_COPY ? 2 : s->n_operands);
}

static bool run_collective(run *r, walker *k, const plan_step *s)
{
    const plan_operand *o = operand_of(k, s, 0);
    bool gets = o->access == ACCESS_WRITE;
    double *result = trama_alloc((size_t)(gets ? box_count(&o->region.box) : 0) * sizeof *result);
    if (!meetings_result(&r->met, s, gets ? box_count(&o->region.box) : 0, result)) {
        free(result);
        return fail(r, k, "members of one group meet in different collectives", NULL);
    }
    if (gets)
        store(k, &o->region, result);
    free(result);
    k->received[s->exchange].bytes += meetings_bytes(k->p, s, true);
    k->sent[s->exchange].bytes += meetings_bytes(k->p, s, false);
    return true;
}

/* Both sides number their messages by these keys, so equal ones might be taken for each other. */
static bool is_confused(const plan_step *a, const plan_step *b)
{
    return a->exchange == b->exchange && a->key.level == b->key.level && a->key.term == b->key.term &&
           a->place == b->place && a->peer_place == b->peer_place && box_equal(&a->key.box, &b->key.box);
}

static bool run_send(run *r, walker *k, const plan_step *s)
{
    const plan_region from = operand_of(k, s, 0)->region;
    const plan_shard *shard = &k->p->shards.at[from.shard];
    if (plan_exact_tile(shard, &from.box) < 0 || s->peer == k->rank || s->peer < 0 || s->peer >= r->n_ranks)
        return fail(r, k, "a message is no tile, or goes nowhere", &from);
    for (int i = 0; i < r->messages.n; i++) {
        const message *other = &r->messages.at[i];
        if (other->from != k->rank || other->to != s->peer)
            continue;
        if (other->tag == s->tag || is_confused(other->step, s))
            return fail(r, k, "two messages have one tag, or nothing to tell them apart", &from);
    }
    message *m = ARRAY_PUSH(&r->messages);
    *m = (message){.from = k->rank, .to = s->peer, .tag = s->tag, .step = s};
    m->n = box_count(&from.box);
    m->box = from.box;
    m->bytes = bytes_of(r, k, &from);
    m->data = trama_alloc((size_t)m->n * sizeof *m->data);
    double *x = m->data;
    FOR_EACH_ELEMENT(k->m, from.shard, &from.box, at)
    *x++ = k->m->data[from.shard][at];
    count_message(r, k, s, k->sent);
    return true;
}

static bool run_receive(run *r, walker *k, const plan_step *s)
{
    const plan_region to = operand_of(k, s, 0)->region;
    if (plan_exact_tile(&k->p->shards.at[to.shard], &to.box) < 0 || operand_of(k, s, 0)->access != ACCESS_WRITE)
        return fail(r, k, "a message does not fill a tile", &to);
    message *m = arrived(r, k, s);
    if (!box_equal(&m->box, &to.box))
        return fail(r, k, "the message received is another box than the one sent", &to);
    store(k, &to, m->data);
    m->received = true;
    count_message(r, k, s, k->received);
    return true;
}

static bool run_step(run *r, walker *k, const plan_step *s)
{
    if (s->kind == STEP_SEND)
        return run_send(r, k, s);
    if (s->kind == STEP_RECEIVE)
        return run_receive(r, k, s);
    if (s->kind == STEP_ORDER)
        return true;
    if (s->kind == STEP_COLLECTIVE)
        return run_collective(r, k, s);
    if (s->kind != STEP_COMPUTE)
        return run_movement(r, k, s);
    const machine_place *place = &r->w->machine->places[s->place];
    if (place->rank != k->rank || s->lane < -1 || s->lane >= place->workers)
        return fail(r, k, "no such worker on this rank", NULL);
    if (s->n_terms &&
        !run_elements(r, k, s, operand_of(k, s, s->sum)->region, s->n_operands - s->n_terms, s->n_operands))
        return false;
    if (!run_calls(r, k, s))
        return false;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = operand_of(k, s, i);
        if (o->access == ACCESS_NONE)
            forget_box(k, o->region.shard, &o->region.box);
    }
    return true;
}

/* A message waits until it is there. */
static bool take(void *arg, int step)
{
    walker *k = arg;
    const plan_step *s = &k->p->steps.at[step];
    k->at = step;
    if (k->of->wrong.n || (s->kind == STEP_RECEIVE && !arrived(k->of, k, s)))
        return false;
    if (s->kind == STEP_COLLECTIVE && !meetings_arrive(&k->of->met, k->m, s))
        return false;
    return enter_step(k->of, k, s) && run_step(k->of, k, s);
}

static int messages_between(const run *r, int from, int to)
{
    int n = 0;
    for (int i = 0; i < r->messages.n; i++)
        n += r->messages.at[i].from == from && r->messages.at[i].to == to;
    return n;
}

static void run_all(run *r)
{
    for (bool further = true; further && !r->wrong.n;) {
        further = false;
        for (int i = 0; i < r->n_ranks; i++)
            further |= flow_first(r->ranks[i].steps) >= 0 && flow_advance(r->ranks[i].steps, take, &r->ranks[i]);
    }
    for (int i = 0; i < r->n_ranks; i++) {
        walker *k = &r->ranks[i];
        k->at = flow_first(k->steps);
        if (k->at >= 0)
            fail(r, k, "waits for ever: no rank can go on", &operand_of(k, &k->p->steps.at[k->at], 0)->region);
    }
    for (int i = 0; i < r->messages.n && !r->wrong.n; i++) {
        const message *m = &r->messages.at[i];
        if (!m->received || m->tag < 0 || m->tag >= messages_between(r, m->from, m->to))
            text_add(&r->wrong, "a message from rank %d to %d with tag %lld is never received, or misses its number",
                     m->from, m->to, (long long)m->tag);
    }
}

/* The plan's account of each exchange against what ran. */
static void check_account(run *r, const walker *k)
{
    for (int i = 0; i < k->p->exchanges.n && !r->wrong.n; i++) {
        const plan_exchange *e = &k->p->exchanges.at[i];
        if (e->sent != k->sent[i].bytes || e->received != k->received[i].bytes ||
            e->messages != k->sent[i].messages + k->received[i].messages)
            text_add(&r->wrong,
                     "rank %d: exchange %d sent %lld and received %lld bytes, but accounts for %lld and %lld", k->rank,
                     i, (long long)k->sent[i].bytes, (long long)k->received[i].bytes, (long long)e->sent,
                     (long long)e->received);
    }
}

char *interpret(const world *w, memory *const *ranks, const trama_shape *shapes, traffic *sent)
{
    run r = {.w = w, .shapes = shapes, .n_ranks = w->machine->n_ranks};
    r.ranks = trama_alloc((size_t)r.n_ranks * sizeof *r.ranks);
    for (int i = 0; i < r.n_ranks; i++) {
        size_t n = (size_t)ranks[i]->p->exchanges.n * sizeof(traffic);
        r.ranks[i] = (walker){.p = ranks[i]->p, .m = ranks[i], .rank = i, .of = &r, .steps = flow_new(ranks[i]->p)};
        r.ranks[i].sent = trama_alloc(n);
        r.ranks[i].received = trama_alloc(n);
    }
    run_all(&r);
    for (int i = 0; i < r.n_ranks; i++)
        check_account(&r, &r.ranks[i]);
    if (sent)
        *sent = (traffic){0};
    for (int i = 0; i < r.messages.n; i++) {
        const message *m = &r.messages.at[i];
        if (sent) {
            sent->messages++;
            sent->bytes += m->bytes;
        }
        free(m->data);
    }
    meetings_free(&r.met);
    for (int i = 0; i < r.n_ranks; i++) {
        flow_destroy(&r.ranks[i].steps);
        free(r.ranks[i].sent);
        free(r.ranks[i].received);
    }
    ARRAY_FREE(&r.messages);
    free(r.ranks);
    return r.wrong.n ? text_take(&r.wrong) : NULL;
}
