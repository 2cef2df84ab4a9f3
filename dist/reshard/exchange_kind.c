/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of an exchange, and the bytes that its processes and places lack. Both follow from the transfer and the map,
 * without holdings. */
#include "exchange.h"
#include "thresholds.h"

/* Replicas help to sum what is partial, so that each receives less. Where that would be many small messages, each line
 * of the mesh sums on its own: not fewer bytes than the table for one axis says, but only a line of neighbours. */
static void keep_lines_apart(exchange *x)
{
    unsigned all = (1u << x->t.to_mesh->ndim) - 1, lines = 0;
    unsigned split = layout_axes(&x->t.from, TRAMA_SPLIT) | layout_axes(&x->t.to, TRAMA_SPLIT);
    bool masked = x->t.from.mask || x->t.to.mask;
    if (!x->t.reduced || masked || !x->t.one_mesh || !map_is_apart(x->q->s.map, x->t.to_mesh))
        return;
    for (int a = 0; a < x->t.to_mesh->ndim; a++)
        if (x->t.from.axis[a].kind == TRAMA_REPLICATE && x->t.to.axis[a].kind == TRAMA_REPLICATE)
            lines |= 1u << a;
    int targets = axes_size(x->t.to_mesh, all & ~(layout_axes(&x->t.to, TRAMA_SPLIT) | x->t.kept | x->t.fresh_sum));
    int64_t slice = region_bytes(x, &x->t.whole) / axes_size(x->t.to_mesh, split) / targets;
    if (targets > MANY_MESSAGES && slice < SMALL_BYTES)
        x->t.kept |= lines;
}

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

/* ---- What places lack ---- */

/* A box that a process of a place has, or is to have. */
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

/* Those of this rank's processes that have, or are to have, something; sorted, and equal ones once. */
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

/* Of the box that one is to have, what none of those has that share its place. */
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

/* The dim along which n slices of everybody's piece are most even: the sum of the largest ones is least. */
static int evenest_dim(const exchange *x, int n)
{
    int64_t sum[TRAMA_MAX_NDIM] = {0};
    int best = 0;
    for (int position = 0; position < x->t.to_mesh->size; position++) {
        box b;
        layout_box(x->t.to_mesh, &x->t.to, &x->t.whole, position, &b);
        for (int d = 0; d < b.ndim; d++) {
            box slice = b;
            slice.n[d] = (b.n[d] + n - 1) / n;
            sum[d] += box_count(&slice);
        }
    }
    for (int d = 1; d < x->t.whole.ndim; d++)
        best = sum[d] < sum[best] ? d : best;
    return best;
}

/* Terms of one kind become terms of another: each process sums a slice, which is its new term. Returns whether they do;
 * then between is the layout of those slices. */
bool changes_kind(const exchange *x, trama_layout *between)
{
    int axes[TRAMA_MAX_AXES];
    unsigned changed = x->t.reduced & x->t.fresh_sum;
    if (!x->t.one_mesh || !changed || !x->t.whole.ndim)
        return false;
    int dim = evenest_dim(x, axes_size(x->t.to_mesh, changed));
    *between = x->t.to;
    for (int a = 0; a < between->naxes; a++)
        if (changed >> a & 1)
            between->axis[a] =
                (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = layout_dim_axes(between, dim, axes)};
    return true;
}

/* Whether every process of the mesh has the whole tensor. */
bool is_everywhere(const exchange *x)
{
    return x->t.one_mesh && !x->t.from.mask && !x->t.reduced && !layout_has(&x->t.from, TRAMA_SPLIT) &&
           !layout_has(&x->t.from, TRAMA_PARTIAL);
}

exchange exchange_between(partition *q, int value, const trama_mesh *from_mesh, const trama_layout *from,
                          const trama_mesh *to_mesh, const trama_layout *to)
{
    const box whole = partition_whole(q, value);
    size_t element = trama_dtype_size(q->s.program->values.at[value]->dtype);
    exchange x = {.q = q, .value = value, .t = transfer_between(from_mesh, from, to_mesh, to, &whole, element)};
    keep_lines_apart(&x);
    return x;
}
