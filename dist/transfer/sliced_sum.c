/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by slices: each process of the source sums a slice, and the targets take parts of these sums. */
#include <string.h>

#include "candidates.h"
#include "thresholds.h"

/* ---- Changes in which slices save nothing ---- */

/* Whether the axes that cut the source cut the target first, in the same order. Each process then wants a part of the
 * box of which it has a term. */
static bool is_nested(const transfer *t)
{
    if (!t->one_mesh || t->from.mask || t->to.mask)
        return false;
    for (int d = 0; d < t->whole.ndim; d++) {
        int from[TRAMA_MAX_AXES], to[TRAMA_MAX_AXES], n = layout_dim_axes(&t->from, d, from);
        if (layout_dim_axes(&t->to, d, to) < n || memcmp(from, to, (size_t)n * sizeof *from) != 0)
            return false;
    }
    return true;
}

/* Axes that neither cut the source nor stay partial: slices of sums lie along them. */
static unsigned slice_axes(const transfer *t)
{
    return layout_unsplit_axes(t->from_mesh, &t->from) & ~t->kept;
}

static bool is_weighted(const trama_mesh *mesh, unsigned axes)
{
    for (int a = 0; a < mesh->ndim; a++)
        if (axes >> a & 1 && mesh->weights[a])
            return true;
    return false;
}

/* Whether slices can save nothing: all processes want pieces of one size, of boxes of which they have a term. The first
 * process, which has the largest piece, then receives directly about the least that the process with the largest slice
 * can receive. */
static bool is_least_directly(const transfer *t)
{
    box held, most, least;
    unsigned axes = slice_axes(t);
    bool begins_terms = layout_axes(&t->to, TRAMA_PARTIAL) & ~t->kept;
    if (!is_nested(t) || begins_terms || is_weighted(t->to_mesh, ~0u))
        return false;
    layout_box(t->from_mesh, &t->from, &t->whole, 0, &held);
    layout_box(t->to_mesh, &t->to, &t->whole, 0, &most);
    layout_box(t->to_mesh, &t->to, &t->whole, t->to_mesh->size - 1, &least);
    int n = axes_size(t->from_mesh, axes), terms = axes_size(t->from_mesh, t->reduced);
    int64_t slice = (box_count(&held) + n - 1) / n, received = (terms - 1) * slice;
    received += max_i64(0, box_count(&least) - slice);
    int64_t direct = transfer_received(t, 0).bytes;
    return box_count(&most) == 0 || direct - direct / (HOP_SHARE + 1) <= received * (int64_t)t->element;
}

/* ---- The routes ---- */

/* The source mesh without weights along the slices, so that these are even; NULL where weights are absent or decide
 * more than slices. */
static trama_mesh *without_weights(const transfer *t)
{
    unsigned axes = slice_axes(t);
    bool partial = layout_has(&t->to, TRAMA_PARTIAL);
    if (!is_weighted(t->from_mesh, axes) || t->kept || t->from.mask || (t->one_mesh && partial))
        return NULL;
    trama_mesh *even = mesh_copy(t->from_mesh);
    for (int a = 0; a < even->ndim; a++)
        if (axes >> a & 1)
            mesh_drop_weights(even, a);
    return even;
}

static trama_layout cut_along(const transfer *t, int dim)
{
    trama_layout between = t->from;
    between.mask = NULL;
    for (int a = 0; a < between.naxes; a++)
        if (slice_axes(t) >> a & 1)
            layout_add_split(&between, dim, a);
    return between;
}

/* Bytes of the route, plus the envelopes of the messages that it has more than the direct change. */
static int64_t cost_against(const transfer_load *slices, const transfer_load *direct)
{
    return slices->bytes + MESSAGE_BYTES * max_i64(0, slices->messages - direct->messages);
}

static bool is_cheaper(const transfer_load *slices, const transfer_load *direct)
{
    const int64_t saved = direct->bytes / (HOP_SHARE + 1) + (direct->bytes % (HOP_SHARE + 1) != 0); /* at least */
    return cost_against(slices, direct) <= direct->bytes - saved &&
           slices->of_source <= max_i64(direct->bytes, direct->of_source);
}

/* Tries slices along each dim on `mesh`, which is the source mesh with or without weights; keeps the cheapest. */
static void try_slices(const transfer *t, const transfer_load *direct, const trama_mesh *mesh, route *found,
                       transfer_load *least)
{
    route r = {.from_mesh = mesh, .mesh = mesh, .to_mesh = t->to_mesh, .from = t->from, .to = t->to};
    for (int d = 0; d < t->whole.ndim; d++) {
        r.between = cut_along(t, d);
        transfer_load l = load_of_route(t, &r, MOST_ASKED);
        if (!is_cheaper(&l, direct) || (found->mesh && cost_against(&l, direct) >= cost_against(least, direct)))
            continue;
        *found = r;
        *least = l;
    }
}

/* The cheapest route over slices; false where none is cheaper than the direct change. */
static bool find_slices(const transfer *t, const transfer_load *direct, route *found)
{
    transfer_load least;
    trama_mesh *even = without_weights(t);
    try_slices(t, direct, t->from_mesh, found, &least);
    if (even)
        try_slices(t, direct, even, found, &least);
    if (even && found->mesh == even)
        found->owned = even;
    else
        trama_mesh_destroy(&even);
    return found->mesh != NULL;
}

bool find_sliced_sum(const transfer *t, route *found)
{
    *found = (route){0};
    if (!t->reduced || box_count(&t->whole) == 0 || is_least_directly(t))
        return false;
    transfer_load direct = load_directly(t, MOST_ASKED);
    return find_slices(t, &direct, found);
}
