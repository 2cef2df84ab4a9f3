/* SPDX-License-Identifier: Apache-2.0 */
/* The holders of a source box, the targets of a target box, and the holder that serves each target: closed forms, so
 * that every rank finds the same without messages. */
#include <assert.h>
#include <string.h>

#include "exchange.h"
#include "thresholds.h"

/* Distinct places of the positions that have the given coordinates but along free axes, in the order of positions. */
static void places_of(const exchange *x, const trama_mesh *mesh, const trama_layout *layout, const int *coordinate,
                      unsigned free_axes, int_list *places)
{
    partition *q = x->q;
    int at[TRAMA_MAX_AXES], n = axes_size(mesh, free_axes);
    memcpy(at, coordinate, sizeof at);
    places->n = 0;
    q->stamp++;
    for (int i = 0; i < n; i++) {
        axes_coordinate(mesh, free_axes, i, at);
        int position = mesh_position(mesh, at);
        if (!layout_present(layout, position))
            continue;
        int place = place_of(q, mesh, position);
        if (q->seen[place] == q->stamp)
            continue;
        q->seen[place] = q->stamp;
        *ARRAY_PUSH(places) = place;
    }
}

bool list_has(const int_list *l, int place)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == place)
            return true;
    return false;
}

/* The holder for target number i: one of the nearest, in rotation. */
int choose_holder(const exchange *x, const int_list *holders, int target, int64_t i, int *n_nearest)
{
    const machine *m = x->q->s.machine;
    int nearest = machine_distance(m, holders->at[0], target), n = 0;
    for (int h = 1; h < holders->n; h++) {
        int d = machine_distance(m, holders->at[h], target);
        nearest = d < nearest ? d : nearest;
    }
    for (int h = 0; h < holders->n; h++)
        n += machine_distance(m, holders->at[h], target) == nearest;
    if (n_nearest)
        *n_nearest = n;
    int skip = (int)(i % n);
    for (int h = 0; h < holders->n; h++)
        if (machine_distance(m, holders->at[h], target) == nearest && skip-- == 0)
            return holders->at[h];
    assert(!"one of the nearest");
    return -1;
}

/* With two terms of several holders each, a target that is holder number h of one takes the other from its holder
 * number h, on the same line of the mesh; so holders serve as many targets each. */
int term_holder(const exchange *x, const group *g, int term, int i)
{
    const int_list *holders = &g->holders[term];
    int to = g->targets.at[i];
    if (list_has(holders, to))
        return to;
    int from = choose_holder(x, holders, to, target_number(g, i), NULL);
    if (holders->n == 1 || g->terms != 2)
        return from;
    const int_list *own = &g->holders[1 - term];
    for (int h = 0; h < min_i64(own->n, holders->n); h++)
        if (own->at[h] == to &&
            machine_distance(x->q->s.machine, holders->at[h], to) == machine_distance(x->q->s.machine, from, to))
            return holders->at[h];
    return from;
}

/* Sets held_here for the terms of this rank's source pieces. */
static void mark_terms(const exchange *x, group *g)
{
    const plan_dist_value *h = &x->q->p->dist_values.at[x->source];
    for (int i = 0; i < h->pieces.n; i++)
        g->held_here[reduced_of(x, h->pieces.at[i].position)] = true;
}

void group_holders(const exchange *x, group *g, const int *from_coordinate, bool sends)
{
    int at[TRAMA_MAX_AXES];
    g->terms = axes_size(x->t.from_mesh, x->t.reduced);
    g->holders = trama_alloc((size_t)g->terms * sizeof *g->holders);
    g->held_here = trama_alloc((size_t)g->terms * sizeof *g->held_here);
    const bool own_only = sends && g->terms > 2; /* of two terms, the holder of one depends on the other's */
    if (own_only)
        mark_terms(x, g);
    for (int term = 0; term < g->terms; term++) {
        if (own_only && !g->held_here[term])
            continue;
        g->held_here[term] = false;
        memcpy(at, from_coordinate, sizeof at);
        axes_coordinate(x->t.from_mesh, x->t.kept, g->kept, at);
        axes_coordinate(x->t.from_mesh, x->t.reduced, term, at);
        places_of(x, x->t.from_mesh, &x->t.from, at,
                  layout_unsplit_axes(x->t.from_mesh, &x->t.from) & ~(x->t.kept | x->t.reduced), &g->holders[term]);
        for (int h = 0; h < g->holders[term].n; h++)
            g->held_here[term] |= is_mine(x->q, g->holders[term].at[h]);
    }
}

void group_targets(const exchange *x, group *g, const int *to_coordinate)
{
    int at[TRAMA_MAX_AXES];
    memcpy(at, to_coordinate, sizeof at);
    axes_coordinate(x->t.to_mesh, x->t.kept, g->kept, at);
    axes_coordinate(x->t.to_mesh, x->t.fresh_sum, 0, at);
    places_of(x, x->t.to_mesh, &x->t.to, at, transfer_target_axes(&x->t), &g->targets);
    g->n_targets = g->targets.n;
}

/* Whether every target holds one of the terms. */
static bool all_hold(const exchange *x, const group *g)
{
    partition *q = x->q;
    q->stamp++;
    for (int term = 0; term < g->terms; term++)
        for (int h = 0; h < g->holders[term].n; h++)
            q->seen[g->holders[term].at[h]] = q->stamp;
    for (int i = 0; i < g->targets.n; i++)
        if (q->seen[g->targets.at[i]] != q->stamp)
            return false;
    return true;
}

bool is_sliced(const exchange *x, const group *g)
{
    return transfer_is_sliced(g->terms, g->targets.n, g->terms == 2 && all_hold(x, g));
}

void group_free(group *g)
{
    for (int i = 0; i < g->terms; i++)
        ARRAY_FREE(&g->holders[i]);
    free(g->holders);
    free(g->held_here);
    ARRAY_FREE(&g->targets);
}

/* Whether a formula finds holders: the meshes are equal, no process is masked, and each has a place of its own. */
static bool has_lines(const exchange *x)
{
    return x->distinct && !x->t.from.mask && x->t.one_mesh;
}

/* Finds the coordinates of the holder for target number i along the axes that cut no dim of the source, and returns
 * these axes. Along axes that stay whole they are the target's own, so that nothing goes along these; along the others
 * they rotate. */
static unsigned line_coordinate(const exchange *x, const group *g, int i, int *at)
{
    unsigned axes = layout_unsplit_axes(x->t.from_mesh, &x->t.from) & ~x->t.kept,
             turns = axes & ~transfer_target_axes(&x->t), others = transfer_target_axes(&x->t) & ~axes;
    memcpy(at, g->to_coordinate, TRAMA_MAX_AXES * sizeof *at);
    axes_coordinate(x->t.to_mesh, transfer_target_axes(&x->t), i, at);
    int64_t number = g->number * axes_size(x->t.to_mesh, others) + axes_position(x->t.to_mesh, others, at);
    axes_coordinate(x->t.to_mesh, turns, (int)(number % axes_size(x->t.to_mesh, turns)), at);
    return axes;
}

int line_holder(const exchange *x, const group *g, int i)
{
    int at[TRAMA_MAX_AXES];
    if (!has_lines(x))
        return -1;
    unsigned axes = line_coordinate(x, g, i, at);
    return g->holders[0].at[axes_position(x->t.from_mesh, axes, at)];
}

bool is_served_elsewhere(const exchange *x, const group *g, const int *from_coordinate)
{
    if (!x->q->flat || x->t.kept || !has_lines(x) || region_bytes(x, &g->region) >= SLICE_BYTES)
        return false;
    int n = axes_size(x->t.to_mesh, transfer_target_axes(&x->t));
    for (int i = 0; i < n; i++) {
        int at[TRAMA_MAX_AXES], coordinate[TRAMA_MAX_AXES];
        unsigned axes = line_coordinate(x, g, i, at);
        for (int a = 0; a < x->t.from_mesh->ndim; a++)
            coordinate[a] = axes >> a & 1 ? at[a] : from_coordinate[a];
        if (is_mine(x->q, place_of(x->q, x->t.from_mesh, mesh_position(x->t.from_mesh, coordinate))))
            return false;
    }
    return true;
}
