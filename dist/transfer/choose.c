/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the form of a change of layout, and counts its bytes. */
#include "choose.h"

#include "candidates.h"
#include "thresholds.h"

/* ---- Kinds ---- */

/* The dim along which n slices of each local box are most even: the sum of the largest slices is least. */
static int evenest_dim(const transfer *t, int n)
{
    int64_t sum[TRAMA_MAX_NDIM] = {0};
    int best = 0;
    for (int position = 0; position < t->to_mesh->size; position++) {
        box b;
        layout_box(t->to_mesh, &t->to, &t->whole, position, &b);
        for (int d = 0; d < b.ndim; d++) {
            box slice = b;
            slice.n[d] = (b.n[d] + n - 1) / n;
            sum[d] += box_count(&slice);
        }
    }
    for (int d = 1; d < t->whole.ndim; d++)
        best = sum[d] < sum[best] ? d : best;
    return best;
}

/* The route from terms of one kind to terms of another: slices of the sums are the new terms. */
static bool find_new_kind(const transfer *t, route *found)
{
    unsigned changed = t->reduced & t->fresh_sum;
    if (!t->one_mesh || !changed || !t->whole.ndim)
        return false;
    int dim = evenest_dim(t, axes_size(t->to_mesh, changed));
    *found = (route){t->from_mesh, t->to_mesh, t->to_mesh, t->from, t->to, t->to, NULL};
    for (int a = 0; a < t->to.naxes; a++)
        if (changed >> a & 1)
            layout_add_split(&found->between, dim, a);
    return true;
}

/* Whether every process of the mesh has the whole tensor. */
static bool is_everywhere(const transfer *t)
{
    return t->one_mesh && !t->from.mask && !t->reduced && !layout_has(&t->from, TRAMA_SPLIT) &&
           !layout_has(&t->from, TRAMA_PARTIAL);
}

/* ---- The decision ---- */

/* Replicas help to sum terms, so that each process receives fewer bytes. Where that takes many small messages, each
 * line of the mesh sums on its own: it saves no bytes against the table for one axis, but a process has messages with
 * its line only. */
transfer reshard_directly(const transfer *direct, bool distinct)
{
    transfer t = *direct;
    unsigned all = (1u << t.to_mesh->ndim) - 1, lines = 0;
    unsigned split = layout_axes(&t.from, TRAMA_SPLIT) | layout_axes(&t.to, TRAMA_SPLIT);
    bool masked = t.from.mask || t.to.mask;
    if (!t.reduced || masked || !t.one_mesh || !distinct)
        return t;
    for (int a = 0; a < t.to_mesh->ndim; a++)
        if (t.from.axis[a].kind == TRAMA_REPLICATE && t.to.axis[a].kind == TRAMA_REPLICATE)
            lines |= 1u << a;
    int targets = axes_size(t.to_mesh, all & ~(layout_axes(&t.to, TRAMA_SPLIT) | t.kept | t.fresh_sum));
    int64_t slice = box_count(&t.whole) * (int64_t)t.element / axes_size(t.to_mesh, split) / targets;
    if (targets > MANY_MESSAGES && slice < SMALL_BYTES)
        t.kept |= lines;
    return t;
}

static int64_t cost_of(const transfer *t, const route *r)
{
    transfer_load l = load_of_route(t, r, MOST_ASKED);
    return l.bytes + MESSAGE_BYTES * l.messages;
}

/* Takes a route if there is none yet, or if it costs less than the one taken. */
static void offer(reshard_choice *c, reshard_form form, route r)
{
    if (reshard_has_route(c) && cost_of(&c->t, &c->route) <= cost_of(&c->t, &r)) {
        trama_mesh_destroy(&r.owned);
        return;
    }
    trama_mesh_destroy(&c->route.owned);
    c->form = form;
    c->route = r;
}

static void offer_routes(reshard_choice *c, const reshard_setting *s)
{
    route r;
    if (find_new_kind(&c->t, &r))
        offer(c, RESHARD_NEW_KIND, r);
    if (s->distinct && s->within == PART_OF_NOTHING && find_sliced_sum(&c->t, &r))
        offer(c, RESHARD_SLICED_SUM, r);
    if (s->distinct && find_two_hops(&c->t, s->within, &r))
        offer(c, RESHARD_TWO_HOPS, r);
}

reshard_choice reshard_choose(const transfer *t, const reshard_setting *s)
{
    reshard_choice c = {.form = RESHARD_DIRECT, .t = reshard_directly(t, s->distinct)};
    if (is_everywhere(&c.t))
        c.form = RESHARD_IN_PLACE;
    else if (s->collectives && find_collective(&c.t, s->root, s->nccl_sums, &c.collective))
        c.form = RESHARD_COLLECTIVE;
    else
        offer_routes(&c, s);
    return c;
}

reshard_part reshard_hop_of(const reshard_choice *c, reshard_part within)
{
    static const reshard_part parts[] = {
        [RESHARD_TWO_HOPS] = PART_OF_TWO_HOPS, [RESHARD_SLICED_SUM] = PART_OF_SLICED_SUM};
    return c->form == RESHARD_NEW_KIND ? within : parts[c->form];
}

int64_t reshard_most_bytes(const transfer *t)
{
    reshard_choice c = reshard_choose(t, &(reshard_setting){.distinct = true});
    int64_t bytes =
        reshard_has_route(&c) ? load_of_route(t, &c.route, MOST_ASKED).bytes : load_directly(&c.t, MOST_ASKED).bytes;
    trama_mesh_destroy(&c.route.owned);
    return bytes;
}
