/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of traffic from a program's changes of layout. It plans nothing and knows no places: choose.h chooses
 * how a change is made, and this file counts its bytes between processes. */
#include <string.h>

#include "changes.h"
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

typedef struct survey {
    process_traffic *traffic;
    ARRAY(change) changes;
    ARRAY(clique) cliques;
    ARRAY(trama_mesh *) meshes; /* made for routes */
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

static void note_change(survey *s, const transfer *t)
{
    for (int i = 0; i < s->changes.n; i++)
        if (transfer_equal(&s->changes.at[i].t, t)) {
            s->changes.at[i].times++;
            return;
        }
    *ARRAY_PUSH(&s->changes) = (change){.t = *t, .times = 1};
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

static void survey_program(survey *s, const trama_program *program, const layouts *l, int64_t nominal,
                           const bool *needed)
{
    layout_changes all = {0};
    find_changes(program, l, needed, &all);
    for (int i = 0; i < all.n; i++) {
        const transfer t = change_transfer(&all.at[i], nominal);
        note_change(s, &t);
    }
    ARRAY_FREE(&all);
}

process_traffic *traffic_of_program(const trama_program *program, const layouts *l, int64_t nominal, int n,
                                    const bool *needed)
{
    survey s = {.traffic = traffic_new(n)};
    survey_program(&s, program, l, complete_nominal(program, nominal), needed);
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
    return s.traffic;
}
