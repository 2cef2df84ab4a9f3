/* SPDX-License-Identifier: Apache-2.0 */
/* The scheme of a change of layout: a sum at once, or by way of slices. */
#include <string.h>

#include "transfer.h"

enum {
    MOST_ASKED = 128,   /* processes of a mesh, evenly spaced: what the others receive is like it */
    MESSAGE_BYTES = 64, /* a message costs as much as so many bytes: its envelope, and room in a buffer */
    HOP_SHARE = 16      /* a second hop has to save one of so many bytes */
};

/* ---- What a scheme costs ---- */

/* Number i of those asked of a mesh, and how many are. */
static int asked(const trama_mesh *mesh, int i)
{
    return (int)((int64_t)i * mesh->size / min_i64(mesh->size, MOST_ASKED));
}

static int n_asked(const trama_mesh *mesh)
{
    return (int)min_i64(mesh->size, MOST_ASKED);
}

static void raise(transfer_load *most, int64_t bytes, int64_t messages)
{
    most->bytes = max_i64(most->bytes, bytes);
    most->messages = max_i64(most->messages, messages);
}

/* Bytes that a process of the source sends on the average, where the targets asked receive of_source bytes. */
static int64_t sent_by(const transfer *t, int64_t of_source)
{
    if (!of_source)
        return 0;
    double all = (double)of_source * t->to_mesh->size / n_asked(t->to_mesh);
    double holders = axes_size(t->from_mesh, layout_unsplit_axes(t->from_mesh, &t->from));
    return (int64_t)(all / (holders * (double)layout_pieces(t->from_mesh, &t->from, &t->whole, &t->whole)));
}

/* The most that a process receives; of_source: that one of the source sends. */
static transfer_load most_at_once(const transfer *t)
{
    transfer_load most = {0};
    int64_t of_source = 0;
    for (int i = 0; i < n_asked(t->to_mesh); i++) {
        transfer_load l = transfer_received(t, asked(t->to_mesh, i));
        of_source += l.of_source;
        raise(&most, l.bytes, l.messages);
    }
    most.of_source = sent_by(t, of_source);
    return most;
}

/* At the position of a mesh with that id, where it is there. */
static transfer_load received_by(const transfer *t, int id, int position)
{
    int at = mesh_find_near(t->to_mesh, id, position);
    return at < 0 ? (transfer_load){0} : transfer_received(t, at);
}

/* A process of either mesh may receive in both hops; in the first it also sends as many messages as it receives. */
static transfer_load most_by_way(const transfer *t, const way *w)
{
    transfer to = transfer_between(w->from_mesh, &w->from, w->mesh, &w->between, &t->whole, t->element),
             from = transfer_between(w->mesh, &w->between, w->to_mesh, &w->to, &t->whole, t->element);
    transfer_load most = {0};
    int64_t of_source = 0;
    const trama_mesh *meshes[] = {w->to_mesh, w->mesh};
    for (int k = 0; k < (t->one_mesh ? 1 : 2); k++)
        for (int i = 0; i < n_asked(meshes[k]); i++) {
            int at = asked(meshes[k], i), id = meshes[k]->ids[at];
            transfer_load a = received_by(&to, id, at), b = received_by(&from, id, at);
            of_source += k == 0 ? b.of_source : 0;
            raise(&most, a.bytes + b.bytes, 2 * a.messages + b.messages);
        }
    most.of_source = sent_by(&from, of_source);
    return most;
}

/* ---- Where slices save nothing ---- */

/* Whether all that cuts the source cuts the target first, in the same order: then each process wants a part of what it
 * has a term of. */
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

/* Axes that cut nothing of the source and hold no term that stays: slices of sums lie along them. */
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

/* Whether slices can save nothing: pieces of one size are wanted, each where a term of it is. What the first process,
 * which has the largest, receives at once is then about the least that the one with the largest slice may. */
static bool is_least_at_once(const transfer *t)
{
    box held, most, least;
    unsigned axes = slice_axes(t);
    if (!is_nested(t) || is_weighted(t->to_mesh, ~0u))
        return false;
    layout_box(t->from_mesh, &t->from, &t->whole, 0, &held);
    layout_box(t->to_mesh, &t->to, &t->whole, 0, &most);
    layout_box(t->to_mesh, &t->to, &t->whole, t->to_mesh->size - 1, &least);
    int n = axes_size(t->from_mesh, axes), terms = axes_size(t->from_mesh, t->reduced);
    int64_t slice = (box_count(&held) + n - 1) / n, received = (terms - 1) * slice;
    received += max_i64(0, box_count(&least) - slice);
    return box_count(&most) == 0 ||
           HOP_SHARE * transfer_received(t, 0).bytes <= (HOP_SHARE + 1) * received * (int64_t)t->element;
}

/* ---- By way of slices ---- */

/* The mesh for slices: of one size, where nothing else depends on the weights of their axes. */
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
    int axes[TRAMA_MAX_AXES];
    between.mask = NULL;
    for (int a = 0; a < between.naxes; a++)
        if (slice_axes(t) >> a & 1)
            between.axis[a] =
                (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = layout_dim_axes(&between, dim, axes)};
    return between;
}

/* Bytes, with the envelopes of the messages that it takes more. */
static int64_t cost_beside(const transfer_load *slices, const transfer_load *at_once)
{
    return slices->bytes + MESSAGE_BYTES * max_i64(0, slices->messages - at_once->messages);
}

static bool is_cheaper(const transfer_load *slices, const transfer_load *at_once)
{
    return (HOP_SHARE + 1) * cost_beside(slices, at_once) <= HOP_SHARE * at_once->bytes &&
           slices->of_source <= max_i64(at_once->bytes, at_once->of_source);
}

/* Slices of the source's processes, which are its mesh or one without weights; kept where they are the cheapest so far.
 */
static void try_slices(const transfer *t, const transfer_load *at_once, const trama_mesh *mesh, way *found,
                       transfer_load *least)
{
    way w = {.from_mesh = mesh, .mesh = mesh, .to_mesh = t->to_mesh, .from = t->from, .to = t->to};
    for (int d = 0; d < t->whole.ndim; d++) {
        w.between = cut_along(t, d);
        transfer_load l = most_by_way(t, &w);
        if (!is_cheaper(&l, at_once) || (found->mesh && cost_beside(&l, at_once) >= cost_beside(least, at_once)))
            continue;
        *found = w;
        *least = l;
    }
}

/* The cheapest way over slices and what it costs; false where none is cheaper than all at once. */
static bool find_slices(const transfer *t, const transfer_load *at_once, way *found, transfer_load *least)
{
    trama_mesh *even = without_weights(t);
    try_slices(t, at_once, t->from_mesh, found, least);
    if (even)
        try_slices(t, at_once, even, found, least);
    if (even && found->mesh == even)
        found->owned = even;
    else
        trama_mesh_destroy(&even);
    return found->mesh != NULL;
}

/* Whether an axis of the mesh begins to have terms, of which only the first process gets the value. */
static bool begins_terms(const transfer *t)
{
    unsigned begins = layout_axes(&t->to, TRAMA_PARTIAL) & ~t->kept;
    return t->one_mesh && axes_size(t->to_mesh, begins) > 1;
}

/* load gets the most that a process receives by way of slices, where they are chosen. */
static bool choose_slices(const transfer *t, way *found, transfer_load *load)
{
    *found = (way){0};
    if (!t->reduced || begins_terms(t) || box_count(&t->whole) == 0 || is_least_at_once(t))
        return false;
    transfer_load at_once = most_at_once(t);
    return find_slices(t, &at_once, found, load);
}

bool transfer_by_slices(const transfer *t, way *found)
{
    transfer_load load;
    return choose_slices(t, found, &load);
}

int64_t transfer_most(const transfer *t)
{
    way w;
    transfer_load load;
    if (!choose_slices(t, &w, &load))
        return most_at_once(t).bytes;
    trama_mesh_destroy(&w.owned);
    return load.bytes;
}
