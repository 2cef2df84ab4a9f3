/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of traffic from a program's changes of layout. It plans nothing and knows no places: choose.h chooses
 * how a change is made, and this file counts its bytes between processes. */
#include <string.h>

#include "choose.h"
#include "map_traffic.h"

enum { MANY_PIECES = 64 }; /* source boxes of one target; with more, all pairs of the group count as equal */

/* ---- Changes of layout ---- */

typedef struct change {
    transfer t;
    int times;        /* number of equal changes in the program */
    unsigned changed; /* split axes that the target does not split in the same way */
} change;

/* All pairs of processes whose coordinates differ only along the axes. */
typedef struct clique {
    const trama_mesh *mesh;
    unsigned axes;
    double bytes; /* of each pair */
} clique;

/* A distributed value: a value in a layout on a mesh. */
typedef struct dist_value {
    const trama_mesh *mesh;
    trama_layout layout;
    int next; /* next one of the same value; -1 */
} dist_value;

typedef struct survey {
    const trama_program *program;
    const layouts *l;
    int64_t nominal;
    process_traffic *traffic;
    ARRAY(change) changes;
    ARRAY(clique) cliques;
    ARRAY(dist_value) dist_values;
    ARRAY(trama_mesh *) meshes; /* made for routes */
    int *of_value;              /* [value id] its last distributed value; -1 */
} survey;

static unsigned changed_axes(const transfer *t)
{
    unsigned changed = 0;
    for (int a = 0; a < t->from_mesh->ndim; a++) {
        const trama_placement *f = &t->from.axis[a], *g = t->one_mesh ? &t->to.axis[a] : NULL;
        bool stays = g && g->kind == TRAMA_SPLIT && g->dim == f->dim && g->order == f->order;
        if (f->kind == TRAMA_SPLIT && t->from_mesh->shape[a] > 1 && !(t->kept >> a & 1) && !stays)
            changed |= 1u << a;
    }
    return changed;
}

static bool same_change(const transfer *a, const transfer *b)
{
    return a->from_mesh == b->from_mesh && a->to_mesh == b->to_mesh && a->element == b->element &&
           box_equal(&a->whole, &b->whole) && trama_layout_equal(&a->from, &b->from) &&
           trama_layout_equal(&a->to, &b->to);
}

static void note_change(survey *s, const trama_value *v, const dist_value *from, const dist_value *to)
{
    trama_shape shape = v->shape;
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = shape.dim[d] == TRAMA_ANY ? s->nominal : shape.dim[d];
    const box whole = box_whole(shape);
    const transfer t =
        transfer_between(from->mesh, &from->layout, to->mesh, &to->layout, &whole, trama_dtype_size(v->dtype));
    for (int i = 0; i < s->changes.n; i++)
        if (same_change(&s->changes.at[i].t, &t)) {
            s->changes.at[i].times++;
            return;
        }
    *ARRAY_PUSH(&s->changes) = (change){.t = t, .times = 1};
}

/* Notes that a value is needed in a layout. The first time it is a change from the value's own layout. */
static void want(survey *s, const trama_value *v, const trama_mesh *mesh, const trama_layout *layout)
{
    dist_value to = {mesh, *layout, s->of_value[v->id]};
    dist_value from = {s->l->mesh[v->id], s->l->value[v->id], -1};
    if (!mesh || !from.mesh)
        return;
    for (int h = to.next; h >= 0; h = s->dist_values.at[h].next)
        if (s->dist_values.at[h].mesh == mesh && trama_layout_equal(&s->dist_values.at[h].layout, layout))
            return;
    if (mesh != from.mesh || !trama_layout_equal(layout, &from.layout))
        note_change(s, v, &from, &to);
    s->of_value[v->id] = s->dist_values.n;
    *ARRAY_PUSH(&s->dist_values) = to;
}

/* Notes the change from the layout of an op's result to the layout of its value. */
static void settle(survey *s, const trama_node *node, int result)
{
    const trama_value *v = node->out[result];
    const op_layouts *op = s->l->op[node->id];
    dist_value made = {op->mesh, op->out[result], -1}, rests = {s->l->mesh[v->id], s->l->value[v->id], 0};
    if (!made.mesh || !rests.mesh)
        return;
    if (made.mesh != rests.mesh || !trama_layout_equal(&made.layout, &rests.layout))
        note_change(s, v, &made, &rests);
    s->of_value[v->id] = s->dist_values.n;
    *ARRAY_PUSH(&s->dist_values) = made;
}

static void survey_node(survey *s, const trama_node *node)
{
    const layouts *l = s->l;
    if (node->op->alias) {
        int result = node->out[0]->id;
        want(s, node->in[0], l->mesh[result], &l->value[result]);
        return;
    }
    for (int t = 0; t < node->op->n_in; t++)
        if (!(node->op->shape_only >> t & 1))
            want(s, node->in[t], l->op[node->id]->mesh, &l->op[node->id]->in[t]);
    for (int o = 0; o < node->op->n_out; o++)
        if (!(node->op->updates >> o & 1))
            settle(s, node, o);
}

/* ---- Exchanges in which all pairs of a group take an equal part ---- */

static void add_clique(survey *s, const trama_mesh *mesh, unsigned axes, double bytes)
{
    for (int i = 0; i < s->cliques.n; i++)
        if (s->cliques.at[i].mesh == mesh && s->cliques.at[i].axes == axes) {
            s->cliques.at[i].bytes += bytes;
            return;
        }
    *ARRAY_PUSH(&s->cliques) = (clique){mesh, axes, bytes};
}

/* Every process of a mesh receives that many bytes on average, evenly from its group. */
static void receive_evenly(survey *s, const trama_mesh *mesh, unsigned axes, double received)
{
    int peers = axes_size(mesh, axes) - 1;
    if (peers > 0 && received > 0)
        add_clique(s, mesh, axes, 2 * received / peers);
}

static void expand_clique(survey *s, const clique *c)
{
    int at[TRAMA_MAX_AXES], n = axes_size(c->mesh, c->axes);
    int64_t bytes = c->bytes < (double)TRAFFIC_MOST ? (int64_t)(c->bytes + 0.5) : TRAFFIC_MOST;
    for (int position = 0; position < c->mesh->size; position++) {
        mesh_coordinate(c->mesh, position, at);
        for (int k = axes_position(c->mesh, c->axes, at) + 1; k < n; k++) {
            axes_coordinate(c->mesh, c->axes, k, at);
            traffic_add(s->traffic, c->mesh->ids[position], c->mesh->ids[mesh_position(c->mesh, at)],
                        max_i64(bytes, 1));
        }
    }
}

/* Average bytes of a process's target box. */
static double target_bytes(const change *c)
{
    double parts = axes_size(c->t.to_mesh, layout_axes(&c->t.to, TRAMA_SPLIT));
    return (double)box_count(&c->t.whole) * (double)c->t.element / parts;
}

/* Average bytes of the target box that a process does not hold. */
static double lacking_bytes(const change *c)
{
    double elements = 0;
    for (int i = 0; i < c->t.to_mesh->size; i++)
        elements += (double)transfer_lacking(&c->t, i);
    return elements / c->t.to_mesh->size * (double)c->t.element;
}

/* Terms on one mesh: if sliced, each target sums a slice of all terms and the targets exchange slices; else each target
 * sums all. */
static void sum_terms(survey *s, const change *c)
{
    const trama_mesh *mesh = c->t.to_mesh;
    int terms = axes_size(mesh, c->t.reduced), senders = axes_size(mesh, c->t.reduced | c->changed);
    unsigned targets = transfer_target_axes(&c->t);
    double bytes = target_bytes(c);
    int n = axes_size(mesh, targets);
    bool hold = axes_size(mesh, targets & layout_axes(&c->t.from, TRAMA_SPLIT)) == 1;
    bool sliced = transfer_is_sliced(terms, n, hold);
    double summed = sliced ? bytes / n : bytes;
    receive_evenly(s, mesh, c->t.reduced | c->changed, c->times * summed * terms * (senders - 1) / senders);
    if (sliced)
        receive_evenly(s, mesh, targets, c->times * (bytes - summed));
}

/* ---- Boxes that go from holders to targets ---- */

/* One target position, and its box to be taken from source boxes. */
typedef struct intake {
    survey *s;
    const change *c;
    int position, self; /* in the target mesh, in the source mesh (-1: not there) */
    int self_at[TRAMA_MAX_AXES];
    box wanted;
    double share; /* share of the box that this target takes; the targets exchange the rest */
} intake;

/* The process from which a target takes a box or term: a holder on the target's own line; on another mesh, in
 * rotation. */
static int choose_holder(const intake *in, int *at)
{
    const trama_mesh *mesh = in->c->t.from_mesh;
    unsigned free = layout_unsplit_axes(mesh, &in->c->t.from) & ~in->c->t.reduced;
    int n = axes_size(mesh, free), first = in->self >= 0 ? axes_position(mesh, free, in->self_at) : in->position % n;
    for (int i = 0; i < n; i++) {
        axes_coordinate(mesh, free, (first + i) % n, at);
        int position = mesh_position(mesh, at);
        if (layout_present(&in->c->t.from, position))
            return position;
    }
    return mesh_position(mesh, at);
}

static void take_piece(void *arg, const box *piece, const int *coordinate)
{
    intake *in = arg;
    const change *c = in->c;
    box common;
    int at[TRAMA_MAX_AXES], terms = axes_size(c->t.from_mesh, c->t.reduced);
    for (int a = 0; a < c->t.from_mesh->ndim; a++) /* a split that becomes a term: only the own box counts */
        if ((c->t.kept & layout_axes(&c->t.from, TRAMA_SPLIT)) >> a & 1 && coordinate[a] != in->self_at[a])
            return;
    if (!box_intersect(piece, &in->wanted, &common))
        return;
    double bytes = (double)box_count(&common) * (double)c->t.element * c->times * in->share + 0.5;
    for (int term = 0; term < terms; term++) {
        memcpy(at, coordinate, sizeof at);
        axes_coordinate(c->t.from_mesh, c->t.reduced, term, at);
        int from = c->t.from_mesh->ids[choose_holder(in, at)];
        traffic_add(in->s->traffic, from, c->t.to_mesh->ids[in->position],
                    bytes < (double)TRAFFIC_MOST ? (int64_t)bytes : TRAFFIC_MOST);
    }
}

static void take_boxes(survey *s, const change *c, double share)
{
    bool one_mesh = c->t.one_mesh;
    for (int i = 0; i < c->t.to_mesh->size; i++) {
        intake in = {.s = s, .c = c, .position = i, .self = i, .share = share};
        if (!layout_present(&c->t.to, i))
            continue;
        if (!one_mesh)
            in.self = mesh_find(c->t.from_mesh, c->t.to_mesh->ids[i]);
        if (in.self >= 0)
            mesh_coordinate(c->t.from_mesh, in.self, in.self_at);
        layout_box(c->t.to_mesh, &c->t.to, &c->t.whole, i, &in.wanted);
        layout_overlaps(c->t.from_mesh, &c->t.from, &c->t.whole, &in.wanted, take_piece, &in);
    }
}

static void count_piece(void *arg, const box *piece, const int *coordinate)
{
    (void)piece;
    (void)coordinate;
    ++*(int *)arg;
}

/* The number of source boxes of the first target. */
static int count_pieces(const change *c)
{
    int n = 0;
    box wanted;
    layout_box(c->t.to_mesh, &c->t.to, &c->t.whole, 0, &wanted);
    layout_overlaps(c->t.from_mesh, &c->t.from, &c->t.whole, &wanted, count_piece, &n);
    return n;
}

/* ---- All of it ---- */

static void add_directly(survey *s, const transfer *t, int times)
{
    const change made = {.t = *t, .times = times, .changed = changed_axes(t)}, *c = &made;
    bool one_mesh = c->t.one_mesh, masked = c->t.from.mask || c->t.to.mask;
    unsigned targets = transfer_target_axes(&c->t);
    int pieces = count_pieces(c), n = axes_size(c->t.to_mesh, targets);
    if (pieces == 0)
        return;
    bool scattered = transfer_is_scattered(n, transfer_holders(&c->t), pieces, (int64_t)target_bytes(c) / pieces);
    if (one_mesh && c->t.reduced) {
        sum_terms(s, c);
    } else if (one_mesh && !masked && !c->changed) {
        return; /* a split of held elements, or a new partial value */
    } else if (one_mesh && !masked && pieces > MANY_PIECES) {
        receive_evenly(s, c->t.to_mesh, c->changed, c->times * lacking_bytes(c));
    } else if (!one_mesh && (scattered || (c->t.reduced && n > 1))) {
        take_boxes(s, c, 1.0 / n);
        receive_evenly(s, c->t.to_mesh, targets, c->times * target_bytes(c) * (n - 1) / n);
    } else {
        take_boxes(s, c, 1);
    }
}

/* Adds a change as the plan makes it if no two processes share a place. */
static void add_change(survey *s, const transfer *t, int times, reshard_part within)
{
    reshard_choice c = reshard_choose(t, &(reshard_setting){.distinct = true, .within = within});
    if (!reshard_has_route(&c)) {
        add_directly(s, &c.t, times);
        return;
    }
    reshard_part hop = reshard_hop_of(&c, within);
    route_hops hops = route_hops_of(&c.route, t);
    add_change(s, &hops.to, times, hop);
    add_change(s, &hops.from, times, hop);
    if (c.route.owned) /* a clique may name it */
        *ARRAY_PUSH(&s->meshes) = c.route.owned;
}

static void survey_program(survey *s, const bool *needed)
{
    const trama_program *p = s->program;
    s->of_value = trama_alloc((size_t)p->values.n * sizeof *s->of_value);
    for (int i = 0; i < p->values.n; i++)
        s->of_value[i] = -1;
    for (int i = 0; i < p->nodes.n; i++)
        if (!needed || needed[i])
            survey_node(s, p->nodes.at[i]);
    free(s->of_value);
}

process_traffic *traffic_of_program(const trama_program *program, const layouts *l, int64_t nominal, int n,
                                    const bool *needed)
{
    survey s = {.program = program, .l = l, .nominal = complete_nominal(program, nominal), .traffic = traffic_new(n)};
    survey_program(&s, needed);
    for (int i = 0; i < s.changes.n; i++)
        add_change(&s, &s.changes.at[i].t, s.changes.at[i].times, PART_OF_NOTHING);
    for (int i = 0; i < s.cliques.n; i++)
        expand_clique(&s, &s.cliques.at[i]);
    traffic_pack(s.traffic);
    for (int i = 0; i < s.meshes.n; i++)
        trama_mesh_destroy(&s.meshes.at[i]);
    ARRAY_FREE(&s.meshes);
    ARRAY_FREE(&s.changes);
    ARRAY_FREE(&s.cliques);
    ARRAY_FREE(&s.dist_values);
    return s.traffic;
}
