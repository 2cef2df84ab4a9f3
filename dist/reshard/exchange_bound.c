/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that the processes and places of an exchange lack, and the most that they buffer. They follow from the
 * transfer and the map, without distributed values. */
#include "exchange.h"

#include "thresholds.h"

/* Bytes that the processes of this rank lack; -1 where terms are summed, which has another bound. */
int64_t lacking_bytes(const exchange *x)
{
    if (x->t.reduced)
        return -1;
    const local_positions *mine = partition_locals(x->q, x->t.to_mesh);
    int64_t elements = 0;
    for (int i = 0; i < mine->at.n; i++)
        if (layout_present(&x->t.to, mine->at.at[i]) && gets_value(x, mine->at.at[i]))
            elements += transfer_lacking(&x->t, mine->at.at[i]);
    return elements * (int64_t)x->t.element;
}

/* ---- Bytes that places lack ---- */

/* A box that a process on a place holds, or wants. */
typedef struct share {
    int place, kept, own; /* own: position along the axes whose pieces become terms */
    int position;
    box b;
} share;
typedef ARRAY(share) shares;

static int compare_shares(const void *a, const void *b)
{
    const share *one = a, *other = b;
    const int keys[][2] = {{one->place, other->place}, {one->kept, other->kept}, {one->own, other->own}};
    int order = COMPARE_KEYS(keys);
    return order ? order : box_compare(&one->b, &other->b);
}

/* The boxes of this rank's processes in a layout, sorted, equal ones once. takes: only those that get the value. */
static shares shares_of(const exchange *x, const trama_mesh *mesh, const trama_layout *layout, bool takes)
{
    shares s = {0};
    int coordinate[TRAMA_MAX_AXES], n = 0;
    const local_positions *mine = partition_locals(x->q, mesh);
    for (int i = 0; i < mine->at.n; i++) {
        int position = mine->at.at[i];
        if (!layout_present(layout, position) || (takes && !gets_value(x, position)))
            continue;
        mesh_coordinate(mesh, position, coordinate);
        share *made = ARRAY_PUSH(&s);
        *made = (share){.place = place_of(x->q, mesh, position),
                        .kept = kept_of(x, mesh, position),
                        .own = axes_position(mesh, x->t.own, coordinate),
                        .position = position};
        layout_box(mesh, layout, &x->t.whole, position, &made->b);
    }
    if (s.n)
        qsort(s.at, (size_t)s.n, sizeof *s.at, compare_shares);
    for (int i = 0; i < s.n; i++)
        if (!n || compare_shares(&s.at[n - 1], &s.at[i]))
            s.at[n++] = s.at[i];
    s.n = n;
    return s;
}

/* Elements of a wanted box that no process on its place holds. */
static int64_t share_lacking(const exchange *x, const share *to, const shares *from)
{
    box common;
    int64_t n = transfer_wanted(&x->t, to->position);
    for (int i = 0; i < from->n; i++) {
        const share *s = &from->at[i];
        if (s->place == to->place && s->kept == to->kept && s->own == to->own && box_intersect(&s->b, &to->b, &common))
            n -= box_count(&common);
    }
    return n;
}

int64_t least_bytes(const exchange *x)
{
    if (x->t.reduced)
        return -1;
    int64_t elements = 0;
    shares from = shares_of(x, x->t.from_mesh, &x->t.from, false), to = shares_of(x, x->t.to_mesh, &x->t.to, true);
    for (int i = 0; i < to.n; i++)
        elements += share_lacking(x, &to.at[i], &from);
    ARRAY_FREE(&from);
    ARRAY_FREE(&to);
    return elements * (int64_t)x->t.element;
}

/* ---- Buffers that hold the messages of any place ---- */

/* Axes along which processes with unequal coordinates exchange nothing: each line sums on its own, or both layouts cut
 * a dim by them in the same way. */
static unsigned still_axes(const transfer *t)
{
    unsigned still = t->kept & ~t->own;
    for (int d = 0; d < t->whole.ndim; d++) {
        int from[TRAMA_MAX_AXES], to[TRAMA_MAX_AXES];
        const int n = layout_dim_axes(&t->from, d, from), m = layout_dim_axes(&t->to, d, to);
        for (int k = 0; k < n && k < m && from[k] == to[k]; k++)
            still |= 1u << from[k];
    }
    return still;
}

static int64_t most_bytes(const exchange *x, const trama_layout *layout)
{
    int64_t most = 0;
    for (int position = 0; position < x->t.from_mesh->size; position++) {
        box b;
        layout_box(x->t.from_mesh, layout, &x->t.whole, position, &b);
        most = max_i64(most, region_bytes(x, &b));
    }
    return most;
}

/* Whether the messages of a process fit in the staging buffer, where each has a place and all are of one mesh. It sends
 * each of its peers, and receives from each, at most the smaller of their boxes; and as a target that exchanges slices
 * of each source box at most its own box. */
static bool fits_by_peers(const exchange *x)
{
    const transfer *t = &x->t;
    if (!x->distinct || !t->one_mesh || t->from.mask || t->to.mask)
        return false;
    const unsigned all = (1u << t->from_mesh->ndim) - 1, moving = all & ~still_axes(t);
    const int64_t peers = axes_size(t->from_mesh, moving),
                  sources = axes_size(t->from_mesh, moving & layout_axes(&t->from, TRAMA_SPLIT)),
                  from = most_bytes(x, &t->from), to = most_bytes(x, &t->to);
    return 2 * (peers * min_i64(from, to) + to + BUFFER_ALIGNMENT * peers * (1 + sources)) <= staging_bytes(x->q);
}

/* The same where places share processes: all messages of all processes fit. */
static bool fits_together(const exchange *x)
{
    const int64_t buffer = staging_bytes(x->q), n = x->t.from_mesh->size + x->t.to_mesh->size;
    return (int64_t)BUFFER_ALIGNMENT * x->t.from_mesh->size * x->t.to_mesh->size <= buffer &&
           max_i64(region_bytes(x, &x->t.whole), BUFFER_ALIGNMENT) <= buffer / n;
}

bool is_small(const exchange *x)
{
    return staging_bytes(x->q) / VIEW_SHARE > BUNDLE_MESSAGE && !x->t.own && !x->t.fresh_sum &&
           (fits_together(x) || fits_by_peers(x));
}
