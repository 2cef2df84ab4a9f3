/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges that GPUs make together: where one axis alone changes and its pieces are equal, the processes along it take
 * part in one collective, in place of messages. Which exchange is one, all ranks find alike, from boxes. It knows no
 * library that does them. */
#include "exchange.h"

/* One process of the mesh and its group. */
typedef struct member {
    int index, n;
    box whole;    /* what the group has together, or each term of it */
    box from, to; /* what the process has, and gets */
} member;

static box part_of(const box *whole, int dim, int n, int i)
{
    box b = *whole;
    b.n[dim] /= n;
    b.lo[dim] += b.n[dim] * i;
    return b;
}

/* ---- Which exchange is one ---- */

static bool same_placement(const trama_placement *a, const trama_placement *b)
{
    return a->kind == b->kind && (a->kind != TRAMA_SPLIT || (a->dim == b->dim && a->order == b->order)) &&
           (a->kind != TRAMA_PARTIAL || a->reduce == b->reduce);
}

/* The one axis along which the layouts differ; -1: none or several do. */
static int changed_axis(const exchange *x)
{
    int found = -1;
    for (int a = 0; a < x->t.to_mesh->ndim; a++) {
        if (x->t.to_mesh->shape[a] == 1 || same_placement(&x->t.from.axis[a], &x->t.to.axis[a]))
            continue;
        if (found >= 0)
            return -1;
        found = a;
    }
    return found;
}

/* What the change of one axis is called, if the pieces are equal. */
static bool find_form(const exchange *x, collective_way *w)
{
    const trama_placement *f = &x->t.from.axis[w->axis], *t = &x->t.to.axis[w->axis];
    bool nccl = x->q->s.options.nccl_sums, whole = t->kind == TRAMA_REPLICATE;
    w->get = f->kind == TRAMA_SPLIT ? f->dim : -1;
    w->give = t->kind == TRAMA_SPLIT ? t->dim : -1;
    w->sums = f->kind == TRAMA_PARTIAL && !nccl;
    w->gathers = w->sums && whole;
    if (t->kind == TRAMA_PARTIAL || f->kind == TRAMA_REPLICATE || (w->get >= 0 && w->get == w->give))
        return false;
    if (f->kind == TRAMA_PARTIAL && nccl)
        w->form = whole ? PLAN_ALL_REDUCE : PLAN_REDUCE_SCATTER;
    else
        w->form = f->kind == TRAMA_SPLIT && whole ? PLAN_ALL_GATHER : PLAN_ALL_TO_ALL;
    return true;
}

static member member_at(const exchange *x, const collective_way *w, int position)
{
    const trama_mesh *mesh = x->t.to_mesh;
    int coordinate[TRAMA_MAX_AXES];
    member m = {.n = mesh->shape[w->axis]};
    mesh_coordinate(mesh, position, coordinate);
    m.index = coordinate[w->axis];
    layout_box(mesh, &x->t.from, &x->t.whole, position, &m.from);
    layout_box(mesh, &x->t.to, &x->t.whole, position, &m.to);
    coordinate[w->axis] = 0;
    layout_box(mesh, &x->t.from, &x->t.whole, mesh_position(mesh, coordinate), &m.whole);
    if (w->get >= 0)
        m.whole.n[w->get] *= m.n;
    return m;
}

static bool is_part(const box *whole, int dim, int n, int i, const box *b)
{
    box part = dim < 0 ? *whole : part_of(whole, dim, n, i);
    return (dim < 0 || whole->n[dim] % n == 0) && box_equal(&part, b);
}

/* The outermost dim of which n members get equal parts; -1. */
static int even_dim(const box *b, int n)
{
    for (int d = 0; d < b->ndim; d++)
        if (b->n[d] % n == 0)
            return d;
    return -1;
}

static bool is_even(const exchange *x, const collective_way *w)
{
    for (int i = 0; i < x->t.to_mesh->size; i++) {
        member m = member_at(x, w, i);
        if (box_count(&m.whole) == 0 || !is_part(&m.whole, w->get, m.n, m.index, &m.from) ||
            !is_part(&m.whole, w->give, m.n, m.index, &m.to) || (w->gathers && even_dim(&m.whole, m.n) < 0))
            return false;
    }
    return true;
}

/* Whether each process has a GPU to itself. */
static bool on_gpus(const exchange *x)
{
    if (x->t.to.mask || x->t.to_mesh->size < 2 || !map_is_apart(x->q->s.map, x->t.to_mesh))
        return false;
    for (int i = 0; i < x->t.to_mesh->size; i++)
        if (!plan_on_gpu(x->q->p, place_of(x->q, x->t.to_mesh, i)))
            return false;
    return true;
}

/* The one place that holds the tensor, and all of it; -1 where there are others or it is no member. */
static int find_root(const exchange *x)
{
    int root = -1;
    for (int i = 0; i < x->t.from_mesh->size; i++) {
        box b;
        if (!layout_present(&x->t.from, i))
            continue;
        layout_box(x->t.from_mesh, &x->t.from, &x->t.whole, i, &b);
        if (root >= 0 || !box_equal(&b, &x->t.whole))
            return -1;
        root = place_of(x->q, x->t.from_mesh, i);
    }
    for (int i = 0; i < x->t.to_mesh->size; i++)
        if (place_of(x->q, x->t.to_mesh, i) == root)
            return root;
    return -1;
}

static bool is_broadcast(const exchange *x, collective_way *w)
{
    *w = (collective_way){.form = PLAN_BROADCAST, .axis = -1, .give = -1, .get = -1};
    if (x->t.reduced || x->t.kept || box_count(&x->t.whole) == 0 || (!x->t.from.mask && x->t.from_mesh->size > 1))
        return false;
    for (int a = 0; a < x->t.to_mesh->ndim; a++)
        if (x->t.to.axis[a].kind != TRAMA_REPLICATE && x->t.to_mesh->shape[a] > 1)
            return false;
    w->root = find_root(x);
    return w->root >= 0;
}

bool find_collective(const exchange *x, collective_way *w)
{
    if (!x->q->s.options.collectives || !on_gpus(x))
        return false;
    if (is_broadcast(x, w))
        return true;
    *w = (collective_way){.axis = changed_axis(x)};
    return x->t.one_mesh && !x->t.from.mask && w->axis >= 0 && find_form(x, w) && is_even(x, w);
}

/* ---- Groups ---- */

static bool same_group(const plan_group *a, const plan_group *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->places[i] != b->places[i])
            return false;
    return a->n == b->n;
}

/* The group of a position, by number in the plan. */
static int group_of(exchange *x, const collective_way *w, int position)
{
    const trama_mesh *mesh = x->t.to_mesh;
    plan *p = x->q->p;
    plan_group g = {.n = w->axis < 0 ? mesh->size : mesh->shape[w->axis]};
    int coordinate[TRAMA_MAX_AXES];
    g.places = trama_alloc((size_t)g.n * sizeof *g.places);
    mesh_coordinate(mesh, position, coordinate);
    for (int i = 0; i < g.n; i++) {
        if (w->axis >= 0)
            coordinate[w->axis] = i;
        g.places[i] = place_of(x->q, mesh, w->axis < 0 ? i : mesh_position(mesh, coordinate));
    }
    for (int i = 0; i < p->groups.n; i++)
        if (same_group(&p->groups.at[i], &g)) {
            free(g.places);
            return i;
        }
    *ARRAY_PUSH(&p->groups) = g;
    return p->groups.n - 1;
}

static plan_region token_of(partition *q, int value, int place)
{
    const box none = {.ndim = 0};
    for (int i = 0; i < q->p->shards.n; i++)
        if (q->p->shards.at[i].source == SHARD_TOKEN && q->p->shards.at[i].place == place)
            return (plan_region){i, none};
    int token = partition_shard(q, SHARD_TOKEN, value, place, &none, -1, 1);
    q->p->shards.at[token].dtype = TRAMA_U8;
    return (plan_region){token, none};
}

/* ---- Memory ---- */

/* Part i of a region along a dim; -1: all of it. */
static plan_region part_in(const plan_region *r, int dim, int n, int i)
{
    return (plan_region){r->shard, dim < 0 ? r->box : part_of(&r->box, dim, n, i)};
}

/* Whether the parts of a region along a dim (-1: all of it) lie one after the other, without gaps. */
static bool lies_in_order(const exchange *x, const plan_region *r, int dim)
{
    const plan_shard *s = &x->q->p->shards.at[r->shard];
    box_rows rows;
    for (int d = 0; d < dim; d++)
        if (r->box.n[d] > 1)
            return false;
    return !s->host && !s->strided && box_in_rows(&s->box, &r->box, &rows) && rows.rows == 1;
}

/* Memory for n boxes that differ in nothing but where they lie: a bundle, whose parts are the shards behind it. */
static plan_region make_bundle(exchange *x, int place, int n, const plan_region *like, int dim)
{
    partition *q = x->q;
    const plan_region r = *like;
    box first = part_in(&r, dim, n, 0).box;
    const box memory = {.ndim = 1, .n = {n * box_count(&first)}};
    int bundle = partition_shard(q, SHARD_BUNDLE, x->value, place, &memory, -1, 1);
    for (int i = 0; i < n; i++) {
        const box b = part_in(&r, dim, n, i).box;
        int number = partition_shard(q, SHARD_MESSAGE, x->value, place, &b, -1, 1);
        plan_shard *part = &q->p->shards.at[number];
        part->within = bundle;
        part->at = i * box_count(&b);
        part->exchange = q->p->exchanges.n;
    }
    x->count.buffers += region_bytes(x, &memory);
    return (plan_region){bundle, memory};
}

static plan_region bundle_part(const exchange *x, int bundle, int i)
{
    return (plan_region){bundle + 1 + i, x->q->p->shards.at[bundle + 1 + i].box};
}

/* Copies the parts of a region into those of a bundle, or the other way. */
static void stage_parts(exchange *x, int stage, int place, const plan_region *r, int dim, int n, int bundle, bool into)
{
    staged *s = stage_step(x, stage, STEP_COPY, place);
    s->many = x->sources.n;
    s->n = 2 * n;
    for (int i = 0; i < n; i++) {
        plan_region whole = part_in(r, dim, n, i), part = bundle_part(x, bundle, i);
        *ARRAY_PUSH(&x->sources) = (plan_operand){into ? part : whole, ACCESS_WRITE};
        *ARRAY_PUSH(&x->sources) = (plan_operand){into ? whole : part, ACCESS_READ};
    }
}

/* Memory that has the parts of a region one after the other: as they lie, or a bundle that they are packed into, or out
 * of, at that stage. */
static plan_region in_order(exchange *x, int stage, int place, plan_region r, int dim, int n, bool into)
{
    if (lies_in_order(x, &r, dim))
        return r;
    n = dim < 0 ? 1 : n;
    plan_region buffer = make_bundle(x, place, n, &r, dim);
    stage_parts(x, stage, place, &r, dim, n, buffer.shard, into);
    return buffer;
}

/* ---- Steps ---- */

/* A member's part in a collective of its group, of count elements. */
static staged *stage_together(exchange *x, int stage, int place, plan_collective c, const plan_region *to,
                              const plan_region *from)
{
    staged *s = stage_step(x, stage, STEP_COLLECTIVE, place);
    s->many = x->sources.n;
    if (to)
        *ARRAY_PUSH(&x->sources) = (plan_operand){*to, ACCESS_WRITE};
    if (from)
        *ARRAY_PUSH(&x->sources) = (plan_operand){*from, ACCESS_READ};
    *ARRAY_PUSH(&x->sources) = (plan_operand){token_of(x->q, x->value, place), ACCESS_UPDATE};
    s->n = x->sources.n - s->many;
    s->step.collective = c;
    s->step.collective.dtype = x->q->s.program->values.at[x->value]->dtype;
    plan_share share = plan_share_of(x->q->p, &s->step);
    x->count.received += share.received;
    x->count.sent += share.sent;
    x->count.together_received += share.received;
    x->count.together_sent += share.sent;
    x->count.collectives++;
    return s;
}

/* The sums of what an all-to-all has brought, in the order of members, as all sums are made. */
static void stage_sum(exchange *x, int place, const plan_region *to, int bundle, int n)
{
    staged *s = stage_step(x, REDUCE, STEP_REDUCE, place);
    s->many = x->sources.n;
    s->n = 1 + n;
    s->step.reduce = x->t.reduce;
    s->step.scale = x->t.scale;
    *ARRAY_PUSH(&x->sources) = (plan_operand){*to, write_access(x->q->p, to)};
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&x->sources) = (plan_operand){bundle_part(x, bundle, i), ACCESS_READ};
}

/* n terms of a box, from the members. */
static plan_region make_terms(exchange *x, int place, const box *b, int n)
{
    return make_bundle(x, place, n, &(plan_region){-1, *b}, -1);
}

/* Each member gets a part of all terms, sums it, and where all get all gives it to the others. */
static void stage_sums(exchange *x, const collective_way *w, int place, int team, const member *m, plan_region from,
                       plan_region to)
{
    int dim = w->gathers ? even_dim(&m->whole, m->n) : w->give;
    box part = part_of(&m->whole, dim, m->n, m->index);
    plan_region given = in_order(x, PACK, place, from, dim, m->n, true), terms = make_terms(x, place, &part, m->n);
    plan_collective c = {.form = w->form, .group = team, .count = box_count(&part)};
    stage_together(x, SENDS, place, c, &terms, &given);
    plan_region sum = to;
    if (w->gathers) {
        sum = (plan_region){partition_shard(x->q, SHARD_MESSAGE, x->value, place, &part, -1, 1), part};
        x->count.buffers += region_bytes(x, &part);
    }
    stage_sum(x, place, &sum, terms.shard, m->n);
    if (!w->gathers)
        return;
    plan_region all = in_order(x, UNPACK_AGAIN, place, to, dim, m->n, false);
    c.form = PLAN_ALL_GATHER;
    stage_together(x, SEND_AGAIN, place, c, &all, &sum);
}

static void stage_broadcast(exchange *x, const collective_way *w, int place, int team, plan_region to)
{
    const plan_group *g = &x->q->p->groups.at[team];
    plan_collective c = {.form = w->form, .group = team, .count = box_count(&x->t.whole)};
    while (g->places[c.root] != w->root)
        c.root++;
    if (place == w->root) {
        const plan_region from = source_piece(x, place, &x->t.whole, 0, 0)->region;
        plan_region given = in_order(x, PACK, place, from, -1, 1, true);
        if (from.shard != to.shard)
            stage_copy(x, UNPACK, place, to, from);
        stage_together(x, SENDS, place, c, NULL, &given);
    } else {
        plan_region got = in_order(x, UNPACK, place, to, -1, 1, false);
        stage_together(x, SENDS, place, c, &got, NULL);
    }
}

static const plan_region *region_on(const plan_holding *h, int place)
{
    for (int i = 0; i < h->pieces.n; i++)
        if (h->pieces.at[i].place == place)
            return &h->pieces.at[i].region;
    return NULL;
}

static void stage_member(exchange *x, const collective_way *w, int position)
{
    int place = place_of(x->q, x->t.to_mesh, position), team = group_of(x, w, position);
    const plan_region to = *region_on(&x->q->p->holdings.at[x->target], place);
    if (w->form == PLAN_BROADCAST) {
        stage_broadcast(x, w, place, team, to);
        return;
    }
    const plan_region from = *region_on(&x->q->p->holdings.at[x->source], place);
    const member m = member_at(x, w, position);
    if (w->sums) {
        stage_sums(x, w, place, team, &m, from, to);
        return;
    }
    plan_region given = in_order(x, PACK, place, from, w->give, m.n, true);
    plan_region got = in_order(x, UNPACK, place, to, w->get, m.n, false);
    bool parts = w->form == PLAN_ALL_TO_ALL || w->form == PLAN_REDUCE_SCATTER;
    plan_collective c = {.form = w->form, .group = team, .count = box_count(&m.from) / (parts ? m.n : 1)};
    staged *s = stage_together(x, SENDS, place, c, &got, &given);
    s->step.reduce = x->t.reduce;
    s->step.scale = x->t.scale;
}

void stage_collective(exchange *x, const collective_way *w)
{
    for (int i = 0; i < x->t.to_mesh->size; i++) /* those of other ranks too */
        group_of(x, w, i);
    const local_positions mine = *partition_locals(x->q, x->t.to_mesh);
    for (int i = 0; i < mine.at.n; i++)
        stage_member(x, w, mine.at.at[i]);
}
