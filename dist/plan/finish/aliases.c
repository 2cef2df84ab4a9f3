/* SPDX-License-Identifier: Apache-2.0 */
/* Results without a buffer: on the cores, a reshaped, transposed, cut-out or repeated operand is read where its
 * elements lie. Each tile of the result is part of the operand's tile of the same number, so StarPU orders their users.
 * A peephole over finished steps; it changes no element and no message. */
#include <string.h>

#include "planner.h"
#include "uses.h"

enum {
    LEAST_RUN = 16, /* elements that follow each other: less than that is read faster from a copy */
    SOON = 64       /* steps: for so many a buffer may wait for readers of few of its elements */
};

typedef struct alias_pass {
    plan *p;
    const trama_program *program;
    plan_uses uses, writes;   /* writes: of imported buffers */
    bool *bound;              /* [shards] a value that is kept lies there, or a shard lies in it */
    ARRAY(plan_shard) before; /* [plan->aliases] the shard as it was */
} alias_pass;

/* ---- The steps ---- */

static bool can_read(const alias_pass *a, plan_use use)
{
    const plan_step *s = &a->p->steps.at[use.step];
    return s->kind <= STEP_REDUCE && !plan_on_gpu(a->p, s->place);
}

/* The op that makes all of a shard of another one, and the first of its steps; op NULL: there is none, or others use
 * the shard. */
typedef struct alias_maker {
    const trama_node *op;
    int source, step;
} alias_maker;

static alias_maker find_maker(const alias_pass *a, int shard)
{
    const plan *p = a->p;
    alias_maker maker = {.source = -1};
    for (int i = 0; i < a->uses.of[shard].n; i++) {
        const plan_use use = a->uses.of[shard].at[i];
        const plan_step *s = &p->steps.at[use.step];
        if (plan_use_operand(p, use)->access == ACCESS_READ) {
            if (!can_read(a, use))
                return (alias_maker){0};
            continue;
        }
        const trama_node *op = plan_copying_node(p, a->program, s);
        const int from = op ? plan_step_operand(p, s, p->calls.at[s->call].in[0])->region.shard : -1;
        if (!op || (maker.op && from != maker.source))
            return (alias_maker){0};
        if (!maker.op)
            maker = (alias_maker){op, from, use.step};
    }
    return maker;
}

/* A state or an input, as another plan has it. */
static bool is_import(const plan_shard *of)
{
    return of->source == SHARD_IMPORT && !of->host;
}

static bool is_source(const plan_shard *of, const plan_shard *s)
{
    return (of->source == SHARD_OWN || of->source == SHARD_ALIAS || is_import(of)) && of->place == s->place &&
           of->dtype == s->dtype;
}

/* By buffer the operands that write it where it is imported, directly or through shards that lie in it, as messages
 * do. */
static plan_uses find_writes(const plan *p)
{
    plan_uses writes = plan_no_uses(p);
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[i], k);
            const int buffer = plan_buffer_of(p, o->region.shard);
            if (o->access != ACCESS_READ && is_import(&p->shards.at[buffer]))
                *ARRAY_PUSH(&writes.of[buffer]) = (plan_use){i, k};
        }
    return writes;
}

/* Whether a step writes an imported source from when an alias would be made to its last reader: an update of a state
 * does, before others read the state as it was. */
static bool is_written_meanwhile(const alias_pass *a, int shard, const alias_maker *maker)
{
    const int buffer = plan_buffer_of(a->p, maker->source), last = a->uses.of[shard].at[a->uses.of[shard].n - 1].step,
              first = plan_uses_from(&a->writes, buffer, maker->step);
    return first < a->writes.of[buffer].n && a->writes.of[buffer].at[first].step <= last;
}

/* ---- The elements ---- */

static trama_view view_of(const plan_shard *s, const int64_t *stride)
{
    trama_view v = {.dtype = s->dtype, .ndim = s->box.ndim};
    memcpy(v.extent, s->box.n, sizeof v.extent);
    memcpy(v.offset, s->box.lo, sizeof v.offset);
    memcpy(v.stride, stride, sizeof v.stride);
    return v;
}

/* Whether so many elements follow each other in memory, or all. */
static bool has_runs(const trama_view *v, int64_t least)
{
    int64_t run = 1, all = 1;
    for (int d = v->ndim - 1; d >= 0; d--) {
        run *= run == all && (v->extent[d] == 1 || v->stride[d] == run) ? v->extent[d] : 1;
        all *= v->extent[d];
    }
    return run >= least || run == all;
}

/* The dim that has the cut of x: the same dim, or one with pieces of the same elements; -1: none has. */
static int find_cut(const trama_view *x, int dim, int parts, const trama_view *y)
{
    const int64_t n = x->extent[dim], piece = n / parts * x->stride[dim];
    for (int d = 0; d < y->ndim; d++) {
        const int64_t m = y->extent[d];
        const bool even = n % parts == 0 && m % parts == 0 && m / parts * y->stride[d] == piece;
        if (m >= parts && (even || (m == n && y->stride[d] == x->stride[dim])))
            return d;
    }
    return -1;
}

/* ---- The pass ---- */

static void make_alias(alias_pass *a, int64_t least_run, const alias_maker *maker, int shard)
{
    plan *p = a->p;
    plan_shard *s = &p->shards.at[shard];
    const plan_shard *of = &p->shards.at[maker->source];
    const plan_alias dense = plan_dense(&of->box), *base = of->source == SHARD_ALIAS ? plan_alias_of(p, of) : &dense;
    const trama_view x = view_of(of, base->stride);
    trama_view y = view_of(s, dense.stride);
    int64_t at;
    if (!is_source(of, s) || is_written_meanwhile(a, shard, maker) ||
        !maker->op->op->view(maker->op->attributes, &x, &y, &at))
        return;
    const int cut = of->cut_parts > 1 ? find_cut(&x, of->cut_dim, of->cut_parts, &y) : -1;
    if ((of->cut_parts > 1 && cut < 0) || !has_runs(&y, least_run))
        return;
    plan_alias made = {.at = base->at + at};
    memcpy(made.stride, y.stride, sizeof made.stride);
    *ARRAY_PUSH(&a->before) = *s;
    *s = (plan_shard){.source = SHARD_ALIAS,
                      .value = s->value,
                      .place = s->place,
                      .dtype = s->dtype,
                      .box = s->box,
                      .cut_dim = cut,
                      .cut_parts = of->cut_parts,
                      .import = p->aliases.n,
                      .within = plan_buffer_of(p, maker->source),
                      .reuses = -1,
                      .lane = s->lane};
    *ARRAY_PUSH(&p->aliases) = made;
}

static bool makes_alias(const alias_pass *a, const plan_step *s)
{
    return plan_copying_node(a->p, a->program, s) &&
           a->p->shards.at[plan_step_operand(a->p, s, a->p->calls.at[s->call].out[0])->region.shard].source ==
               SHARD_ALIAS;
}

/* The last step that uses a shard and stays; -1. */
static int last_use(const alias_pass *a, int shard)
{
    int i = a->uses.of[shard].n - 1;
    while (i >= 0 && makes_alias(a, &a->p->steps.at[a->uses.of[shard].at[i].step]))
        i--;
    return i < 0 ? -1 : a->uses.of[shard].at[i].step;
}

/* [shards] whether the aliases in it would hold a buffer up for long, of which they are less than half. */
static bool *find_held_up(const alias_pass *a)
{
    const plan *p = a->p;
    const size_t n = (size_t)max_i64(1, p->shards.n);
    int64_t *late = trama_alloc(n * sizeof *late); /* bytes of aliases that are used after it */
    bool *held_up = trama_alloc(n);
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->source == SHARD_ALIAS && !is_import(&p->shards.at[s->within]) &&
            last_use(a, i) > last_use(a, s->within) + SOON)
            late[s->within] += plan_shard_bytes(s);
    }
    for (int i = 0; i < p->shards.n; i++)
        held_up[i] = late[i] && plan_shard_bytes(&p->shards.at[i]) > 2 * late[i];
    free(late);
    return held_up;
}

/* Gives buffers back to the aliases in shards that they would hold up. */
static void undo_aliases(const alias_pass *a)
{
    plan *p = a->p;
    bool *held_up = find_held_up(a);
    int n = 0;
    for (int i = 0; i < p->shards.n; i++) {
        plan_shard *s = &p->shards.at[i];
        if (s->source != SHARD_ALIAS)
            continue;
        const int alias = s->import;
        if (held_up[s->within]) {
            *s = a->before.at[alias];
        } else {
            s->import = n;
            p->aliases.at[n++] = p->aliases.at[alias];
        }
    }
    p->aliases.n = n;
    free(held_up);
}

static void drop_makers(const alias_pass *a)
{
    plan *p = a->p;
    int n = 0;
    for (int i = 0; i < p->steps.n; i++)
        if (!makes_alias(a, &p->steps.at[i]))
            p->steps.at[n++] = p->steps.at[i];
    p->steps.n = n;
}

void read_in_place(partition *q, const bool *kept)
{
    plan *p = q->p;
    if (!plan_count_copies(p, q->s.program))
        return;
    const int64_t least = q->s.options.in_place ? q->s.options.in_place : LEAST_RUN;
    alias_pass a = {.p = p,
                    .program = q->s.program,
                    .uses = plan_find_uses(p),
                    .writes = find_writes(p),
                    .bound = plan_kept_shards(p, kept)};
    for (int i = 0; i < p->shards.n; i++)
        if (p->shards.at[i].within >= 0)
            a.bound[p->shards.at[i].within] = true;
    for (int i = 0; i < p->shards.n; i++) {
        const plan_shard *s = &p->shards.at[i];
        if (s->source != SHARD_OWN || a.bound[i] || plan_on_gpu(p, s->place) || !box_count(&s->box))
            continue;
        const alias_maker maker = find_maker(&a, i);
        if (maker.op)
            make_alias(&a, least, &maker, i);
    }
    undo_aliases(&a);
    drop_makers(&a);
    ARRAY_FREE(&a.before);
    plan_uses_free(&a.writes);
    free(a.bound);
    plan_uses_free(&a.uses);
}
