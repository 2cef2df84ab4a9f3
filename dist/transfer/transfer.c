/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout without plans: their axes, and the bytes that processes lack and receive. */
#include "transfer.h"

#include <string.h>

#include "bound.h"
#include "thresholds.h"

/* ---- Axes ---- */

/* Finds the partial axes that stay, are summed, or begin, and the factor of the result. Along an axis of size 1 the one
 * term is the value. */
static void classify_axes(transfer *t)
{
    for (int a = 0; a < t->from_mesh->ndim; a++) {
        const trama_placement *f = &t->from.axis[a];
        const trama_placement *g = t->one_mesh ? &t->to.axis[a] : NULL;
        double size = t->from_mesh->shape[a];
        bool linear = g && g->kind == TRAMA_PARTIAL && reduce_is_linear(g->reduce);
        if (f->kind == TRAMA_SPLIT && linear && size > 1) {
            t->kept |= 1u << a;
            t->own |= 1u << a;
            t->scale *= g->reduce == TRAMA_AVG ? size : 1;
        }
        if (f->kind != TRAMA_PARTIAL || size == 1)
            continue;
        if (linear ? reduce_is_linear(f->reduce) : g && g->kind == TRAMA_PARTIAL && g->reduce == f->reduce) {
            t->kept |= 1u << a;
            if (g->reduce != f->reduce)
                t->scale *= f->reduce == TRAMA_AVG ? 1 / size : size;
        } else {
            t->reduced |= 1u << a;
            if (f->reduce == TRAMA_AVG)
                t->scale /= size;
        }
        t->reduce = f->reduce == TRAMA_AVG ? TRAMA_SUM : f->reduce;
    }
    for (int a = 0; a < t->to_mesh->ndim; a++)
        if (t->to.axis[a].kind == TRAMA_PARTIAL && t->to.axis[a].reduce == TRAMA_SUM && !(t->kept >> a & 1))
            t->fresh_sum |= 1u << a;
}

transfer transfer_between(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                          const trama_layout *to, const box *whole, size_t element)
{
    transfer t = {.from_mesh = from_mesh,
                  .to_mesh = to_mesh,
                  .one_mesh = from_mesh == to_mesh || trama_mesh_equal(from_mesh, to_mesh),
                  .from = *from,
                  .to = *to,
                  .whole = *whole,
                  .element = element,
                  .scale = 1};
    classify_axes(&t);
    return t;
}

bool transfer_equal(const transfer *a, const transfer *b)
{
    return a->from_mesh == b->from_mesh && a->to_mesh == b->to_mesh && a->element == b->element &&
           box_equal(&a->whole, &b->whole) && trama_layout_equal(&a->from, &b->from) &&
           trama_layout_equal(&a->to, &b->to);
}

unsigned transfer_target_axes(const transfer *t)
{
    return layout_unsplit_axes(t->to_mesh, &t->to) & ~(t->kept | t->fresh_sum);
}

bool transfer_same_own(const transfer *t, const int *from_coordinate, const int *to_coordinate)
{
    return axes_position(t->from_mesh, t->own, from_coordinate) == axes_position(t->to_mesh, t->own, to_coordinate);
}

/* ---- Elements that a process lacks ---- */

/* One target process, and the source boxes that meet its target box. */
typedef struct intake {
    const transfer *t;
    int at[TRAMA_MAX_AXES]; /* in the target mesh */
    box wanted;
    int there;             /* the position of the process in the source; -1: it holds nothing */
    int targets, self;     /* processes that want the same box; its number among them */
    int64_t elements, met; /* elements wanted that source boxes have; number of these boxes */
    transfer_load load;
} intake;

static void visit_wanted(void *arg, const box *piece, const int *coordinate)
{
    intake *in = arg;
    box common;
    if (!transfer_same_own(in->t, coordinate, in->at) || !box_intersect(piece, &in->wanted, &common))
        return;
    in->elements += box_count(&common);
    in->met++;
}

/* Elements of the wanted box that the process does not hold. Sets met to the number of source boxes that have them. */
static int64_t lacking(intake *in, int position)
{
    const transfer *t = in->t;
    int64_t n = bound_lacking(t->from_mesh, &t->from, t->to_mesh, &t->to, &t->whole, position);
    if (t->own || (n && mesh_is_weighted(t->from_mesh))) /* some boxes are for other processes, or may be empty */
        layout_overlaps(t->from_mesh, &t->from, &t->whole, &in->wanted, visit_wanted, in);
    else if (n)
        in->met = min_i64(n, layout_pieces(t->from_mesh, &t->from, &t->whole, &in->wanted));
    return t->own ? in->elements - (box_count(&in->wanted) - n) : n;
}

static intake intake_at(const transfer *t, int position)
{
    intake in = {.t = t};
    mesh_coordinate(t->to_mesh, position, in.at);
    layout_box(t->to_mesh, &t->to, &t->whole, position, &in.wanted);
    return in;
}

int64_t transfer_wanted(const transfer *t, int position)
{
    intake in = intake_at(t, position);
    if (!t->own)
        return box_count(&in.wanted);
    layout_overlaps(t->from_mesh, &t->from, &t->whole, &in.wanted, visit_wanted, &in);
    return in.elements;
}

int64_t transfer_lacking(const transfer *t, int position)
{
    intake in = intake_at(t, position);
    return lacking(&in, position);
}

/* ---- Bytes that it receives ---- */

bool transfer_is_sliced(int terms, int targets, bool all_hold)
{
    return targets > 1 && terms > 1 && !(terms == 2 && all_hold);
}

bool transfer_is_scattered(int64_t targets, int64_t holders, int64_t boxes, int64_t region_bytes)
{
    return targets > 1 && targets > holders * boxes && region_bytes >= SLICE_BYTES;
}

int transfer_holders(const transfer *t)
{
    return axes_size(t->from_mesh, layout_unsplit_axes(t->from_mesh, &t->from) & ~(t->kept | t->reduced));
}

/* The position in the source of the process at one of the target mesh; -1 where it holds nothing. */
static int position_there(const transfer *t, int position)
{
    int there = mesh_find_hinted(t->from_mesh, t->to_mesh->ids[position], position);
    return there >= 0 && layout_present(&t->from, there) ? there : -1;
}

/* Whether a source position has a term of the box with that coordinate, for a target. */
static bool holds(const transfer *t, int there, const int *box_coordinate, const int *to_coordinate)
{
    int at[TRAMA_MAX_AXES];
    unsigned split = layout_axes(&t->from, TRAMA_SPLIT);
    if (there < 0)
        return false;
    mesh_coordinate(t->from_mesh, there, at);
    return axes_position(t->from_mesh, split, at) == axes_position(t->from_mesh, split, box_coordinate) &&
           axes_position(t->from_mesh, t->kept, at) == axes_position(t->to_mesh, t->kept, to_coordinate);
}

/* Whether all targets of the wanted box hold a term of the source box with that coordinate. */
static bool all_hold(const intake *in, const int *box_coordinate)
{
    const transfer *t = in->t;
    unsigned axes = transfer_target_axes(t);
    int at[TRAMA_MAX_AXES], n = axes_size(t->to_mesh, axes);
    if (!holds(t, in->there, box_coordinate, in->at))
        return false;
    if (t->one_mesh && !t->from.mask && !t->to.mask) /* along these axes all hold one box, or several */
        return axes_size(t->from_mesh, axes & layout_axes(&t->from, TRAMA_SPLIT)) == 1;
    memcpy(at, in->at, sizeof at);
    for (int i = 0; i < n; i++) {
        axes_coordinate(t->to_mesh, axes, i, at);
        int position = mesh_position(t->to_mesh, at);
        if (layout_present(&t->to, position) && !holds(t, position_there(t, position), box_coordinate, at))
            return false;
    }
    return true;
}

static void take(intake *in, int64_t elements, int64_t of_source, int64_t messages)
{
    int64_t element = (int64_t)in->t->element;
    in->load.bytes += elements * element;
    in->load.of_source += of_source * element;
    in->load.messages += messages;
}

/* Each source box sends its part of the lacking elements in one message. Where the targets outnumber all holders, the
 * elements are scattered. */
static void take_boxes(intake *in, int position)
{
    const transfer *t = in->t;
    int64_t n = lacking(in, position), met = in->met;
    if (n == 0)
        return;
    int64_t messages = met - (n < box_count(&in->wanted) && met > 1);
    if (transfer_is_scattered(in->targets, transfer_holders(t), met, n * (int64_t)t->element / met))
        take(in, n, n / in->targets, messages * in->targets);
    else
        take(in, n, n, messages);
}

/* Takes the terms of one source box in its intersection with the wanted box. */
static void take_terms(void *arg, const box *piece, const int *coordinate)
{
    intake *in = arg;
    const transfer *t = in->t;
    box region;
    if (!transfer_same_own(t, coordinate, in->at) || !box_intersect(piece, &in->wanted, &region))
        return;
    int terms = axes_size(t->from_mesh, t->reduced), received = terms - holds(t, in->there, coordinate, in->at);
    if (!transfer_is_sliced(terms, in->targets, terms == 2 && all_hold(in, coordinate))) {
        take(in, received * box_count(&region), received * box_count(&region), received);
        return;
    }
    box slice = box_slice(&region, in->targets, in->self);
    int64_t all = box_count(&region), mine = slice.ndim < 0 ? 0 : box_count(&slice);
    int64_t slices = region.ndim ? min_i64(in->targets, region.n[box_slice_dim(&region, in->targets)]) : 1;
    take(in, received * mine + all - mine, received * mine, mine ? received + in->targets - 1 : slices);
}

/* Counts the processes that want its box, and finds its number among them. */
static void count_targets(intake *in)
{
    const transfer *t = in->t;
    unsigned axes = transfer_target_axes(t);
    int at[TRAMA_MAX_AXES], n = axes_size(t->to_mesh, axes), self = axes_position(t->to_mesh, axes, in->at);
    in->targets = t->to.mask ? 0 : n;
    in->self = t->to.mask ? 0 : self;
    memcpy(at, in->at, sizeof at);
    for (int i = 0; i < n && t->to.mask; i++) {
        axes_coordinate(t->to_mesh, axes, i, at);
        bool present = layout_present(&t->to, mesh_position(t->to_mesh, at));
        in->targets += present;
        in->self += present && i < self;
    }
}

transfer_load transfer_received(const transfer *t, int position)
{
    intake in = intake_at(t, position);
    if (!layout_present(&t->to, position) || axes_position(t->to_mesh, t->fresh_sum, in.at) ||
        box_count(&in.wanted) == 0)
        return in.load;
    count_targets(&in);
    in.there = position_there(t, position);
    if (t->reduced)
        layout_overlaps(t->from_mesh, &t->from, &t->whole, &in.wanted, take_terms, &in);
    else
        take_boxes(&in, position);
    return in.load;
}
