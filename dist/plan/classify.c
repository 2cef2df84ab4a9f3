/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of exchange it is: which axes are summed, kept or begun, what that scales by, what processes lack. Known
 * from the two layouts alone, without holdings. */
#include "bound.h"
#include "exchange.h"
#include "thresholds.h"

bool same_own(const exchange *x, const int *from_coordinate, const int *to_coordinate)
{
    return axes_position(x->from_mesh, x->own, from_coordinate) == axes_position(x->to_mesh, x->own, to_coordinate);
}

/* Which partial axes stay, are summed, or begin; and what that scales by. One term alone is the value. */
static void classify_axes(exchange *x)
{
    x->scale = 1;
    for (int a = 0; a < x->from_mesh->ndim; a++) {
        const trama_placement *f = &x->from.axis[a];
        const trama_placement *t = x->one_mesh ? &x->to.axis[a] : NULL;
        double size = x->from_mesh->shape[a];
        bool linear = t && t->kind == TRAMA_PARTIAL && reduce_is_linear(t->reduce);
        if (f->kind == TRAMA_SPLIT && linear && size > 1) {
            x->kept |= 1u << a;
            x->own |= 1u << a;
            x->scale *= t->reduce == TRAMA_AVG ? size : 1;
        }
        if (f->kind != TRAMA_PARTIAL || size == 1)
            continue;
        if (linear ? reduce_is_linear(f->reduce) : t && t->kind == TRAMA_PARTIAL && t->reduce == f->reduce) {
            x->kept |= 1u << a;
            if (t->reduce != f->reduce)
                x->scale *= f->reduce == TRAMA_AVG ? 1 / size : size;
        } else {
            x->reduced |= 1u << a;
            if (f->reduce == TRAMA_AVG)
                x->scale /= size;
        }
        x->reduce = f->reduce == TRAMA_AVG ? TRAMA_SUM : f->reduce;
    }
    for (int a = 0; a < x->to_mesh->ndim; a++)
        if (x->to.axis[a].kind == TRAMA_PARTIAL && x->to.axis[a].reduce == TRAMA_SUM && !(x->kept >> a & 1))
            x->fresh_sum |= 1u << a;
}

/* Replicas help to sum what is partial, so that each receives less. Where that would be many small messages, each line
 * of the mesh sums on its own: not fewer bytes than the table for one axis says, but only a line of neighbours. */
static void keep_lines_apart(exchange *x)
{
    unsigned all = (1u << x->to_mesh->ndim) - 1, lines = 0;
    unsigned split = layout_axes(&x->from, TRAMA_SPLIT) | layout_axes(&x->to, TRAMA_SPLIT);
    bool masked = x->from.mask || x->to.mask;
    if (!x->reduced || masked || !x->one_mesh || !map_is_apart(x->q->s.map, x->to_mesh))
        return;
    for (int a = 0; a < x->to_mesh->ndim; a++)
        if (x->from.axis[a].kind == TRAMA_REPLICATE && x->to.axis[a].kind == TRAMA_REPLICATE)
            lines |= 1u << a;
    int targets = axes_size(x->to_mesh, all & ~(layout_axes(&x->to, TRAMA_SPLIT) | x->kept | x->fresh_sum));
    int64_t slice = region_bytes(x, &x->whole) / axes_size(x->to_mesh, split) / targets;
    if (targets > MANY_MESSAGES && slice < SMALL_BYTES)
        x->kept |= lines;
}

/* Elements of the target box at a position that are exchanged at all. */
typedef struct wanted {
    const exchange *x;
    const int *target;
    box box;
    int64_t n;
} wanted;

static void visit_wanted(void *arg, const box *piece, const int *coordinate)
{
    wanted *w = arg;
    box common;
    if (same_own(w->x, coordinate, w->target) && box_intersect(piece, &w->box, &common))
        w->n += box_count(&common);
}

/* Of the target box of a process, what is not in its source box. */
static int64_t lacking(const exchange *x, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    if (!x->own)
        return bound_lacking(x->from_mesh, &x->from, x->to_mesh, &x->to, &x->whole, position);
    mesh_coordinate(x->to_mesh, position, coordinate);
    wanted w = {.x = x, .target = coordinate};
    layout_box(x->to_mesh, &x->to, &x->whole, position, &w.box);
    layout_overlaps(x->from_mesh, &x->from, &x->whole, &w.box, visit_wanted, &w);
    return w.n - (box_count(&w.box) - bound_lacking(x->from_mesh, &x->from, x->to_mesh, &x->to, &x->whole, position));
}

/* Bytes that the processes of this rank lack; -1 where terms are summed, which has another bound. */
int64_t lacking_bytes(const exchange *x)
{
    if (x->reduced)
        return -1;
    const local_positions *mine = partition_locals(x->q, x->to_mesh);
    int64_t elements = 0;
    for (int i = 0; i < mine->at.n; i++)
        if (layout_present(&x->to, mine->at.at[i]) && gets_value(x, mine->at.at[i]))
            elements += lacking(x, mine->at.at[i]);
    return elements * (int64_t)x->element;
}

/* The dim along which n slices of everybody's piece are most even: the sum of the largest ones is least. */
static int evenest_dim(const exchange *x, int n)
{
    int64_t sum[TRAMA_MAX_NDIM] = {0};
    int best = 0;
    for (int position = 0; position < x->to_mesh->size; position++) {
        box b;
        layout_box(x->to_mesh, &x->to, &x->whole, position, &b);
        for (int d = 0; d < b.ndim; d++) {
            box slice = b;
            slice.n[d] = (b.n[d] + n - 1) / n;
            sum[d] += box_count(&slice);
        }
    }
    for (int d = 1; d < x->whole.ndim; d++)
        best = sum[d] < sum[best] ? d : best;
    return best;
}

/* Terms of one kind become terms of another: each process sums a slice, which is its new term. Returns whether they do;
 * then between is the layout of those slices. */
bool changes_kind(const exchange *x, trama_layout *between)
{
    int axes[TRAMA_MAX_AXES];
    unsigned changed = x->reduced & x->fresh_sum;
    if (!x->one_mesh || !changed || !x->whole.ndim)
        return false;
    int dim = evenest_dim(x, axes_size(x->to_mesh, changed));
    *between = x->to;
    for (int a = 0; a < between->naxes; a++)
        if (changed >> a & 1)
            between->axis[a] =
                (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = layout_dim_axes(between, dim, axes)};
    return true;
}

/* Whether every process of the mesh has the whole tensor. */
bool is_everywhere(const exchange *x)
{
    return x->one_mesh && !x->from.mask && !x->reduced && !layout_has(&x->from, TRAMA_SPLIT) &&
           !layout_has(&x->from, TRAMA_PARTIAL);
}

exchange exchange_between(partition *q, int value, const trama_mesh *from_mesh, const trama_layout *from,
                          const trama_mesh *to_mesh, const trama_layout *to)
{
    exchange x = {.q = q,
                  .value = value,
                  .from_mesh = from_mesh,
                  .to_mesh = to_mesh,
                  .one_mesh = from_mesh == to_mesh || trama_mesh_equal(from_mesh, to_mesh),
                  .from = *from,
                  .to = *to,
                  .whole = partition_whole(q, value),
                  .element = trama_dtype_size(q->s.program->values.at[value]->dtype)};
    classify_axes(&x);
    keep_lines_apart(&x);
    return x;
}
