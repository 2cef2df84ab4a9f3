/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: legality, boxes, terms, holders. The text forms are in layout_text.c. */
#include "layout.h"

#include <assert.h>
#include <string.h>

#include "hash.h"

trama_layout layout_uniform(const trama_mesh *mesh, trama_placement_kind kind)
{
    trama_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.naxes = mesh->ndim;
    for (int a = 0; a < mesh->ndim; a++)
        layout.axis[a].kind = kind;
    return layout;
}

uint64_t layout_hash(uint64_t hash, const trama_layout *layout)
{
    hash = hash_word(hash, (uint64_t)layout->naxes);
    for (int a = 0; a < layout->naxes; a++)
        hash = hash_word(hash, (uint64_t)layout->axis[a].kind << 32 | (uint32_t)layout->axis[a].dim);
    return hash;
}

bool layout_has(const trama_layout *layout, trama_placement_kind kind)
{
    return layout_axes(layout, kind) != 0;
}

unsigned layout_axes(const trama_layout *layout, trama_placement_kind kind)
{
    unsigned set = 0;
    for (int a = 0; a < layout->naxes; a++)
        set |= (unsigned)(layout->axis[a].kind == kind) << a;
    return set;
}

unsigned layout_unsplit_axes(const trama_mesh *mesh, const trama_layout *layout)
{
    return ((1u << mesh->ndim) - 1) & ~layout_axes(layout, TRAMA_SPLIT);
}

int layout_dim_axes(const trama_layout *layout, int dim, int *axes)
{
    int n = 0;
    for (int a = 0; a < layout->naxes; a++) {
        const trama_placement *p = &layout->axis[a];
        if (p->kind != TRAMA_SPLIT || p->dim != dim)
            continue;
        int at = n++;
        while (at > 0 && layout->axis[axes[at - 1]].order > p->order) {
            axes[at] = axes[at - 1];
            at--;
        }
        axes[at] = a;
    }
    return n;
}

void layout_split(trama_layout *layout, int dim, int n, const int *axes)
{
    for (int i = 0; i < n; i++)
        layout->axis[axes[i]] = (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = i};
}

void layout_add_split(trama_layout *layout, int dim, int axis)
{
    int before[TRAMA_MAX_AXES];
    layout->axis[axis] =
        (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = layout_dim_axes(layout, dim, before)};
}

bool trama_layout_equal(const trama_layout *a, const trama_layout *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->naxes > TRAMA_MAX_AXES || a->naxes != b->naxes || a->mask != b->mask)
        return false;
    for (int i = 0; i < a->naxes; i++) {
        const trama_placement *p = &a->axis[i], *q = &b->axis[i];
        if (p->kind != q->kind || (p->kind == TRAMA_SPLIT && (p->dim != q->dim || p->order != q->order)) ||
            (p->kind == TRAMA_PARTIAL && p->reduce != q->reduce))
            return false;
    }
    return true;
}

/* Orders of the axes on one dim must be 0, 1, ... */
static trama_status check_orders(const trama_layout *layout, int ndim)
{
    for (int d = 0; d < ndim; d++) {
        int axes[TRAMA_MAX_AXES], n = layout_dim_axes(layout, d, axes);
        for (int i = 0; i < n; i++)
            if (layout->axis[axes[i]].order != i)
                return trama_fail(NOWHERE, TRAMA_E_LAYOUT,
                                  "layout: the %d axes that split dim %d need the orders 0 to %d, each once", n, d,
                                  n - 1);
    }
    return TRAMA_OK;
}

static trama_status check_partials(const trama_layout *layout)
{
    bool linear = false, other = false;
    trama_reduce kind = TRAMA_SUM;
    for (int a = 0; a < layout->naxes; a++) {
        if (layout->axis[a].kind != TRAMA_PARTIAL)
            continue;
        trama_reduce reduce = layout->axis[a].reduce;
        bool is_linear = reduce_is_linear(reduce);
        if ((is_linear && other) || (!is_linear && (linear || (other && reduce != kind))))
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT,
                              "layout: a value cannot be P(%s) on one axis and P(%s) on another; only sum and avg mix",
                              reduce_name(reduce), reduce_name(kind));
        linear |= is_linear;
        other |= !is_linear;
        kind = reduce;
    }
    return TRAMA_OK;
}

/* Every combination of coordinates along the split and partial axes must keep a holder. */
static trama_status check_mask(const trama_mesh *mesh, const trama_layout *layout)
{
    if (!layout->mask)
        return TRAMA_OK;
    unsigned set = layout_axes(layout, TRAMA_SPLIT) | layout_axes(layout, TRAMA_PARTIAL);
    int groups = axes_size(mesh, set), coordinate[TRAMA_MAX_AXES];
    unsigned char *held = trama_alloc((size_t)groups);
    for (int i = 0; i < mesh->size; i++) {
        mesh_coordinate(mesh, i, coordinate);
        held[axes_position(mesh, set, coordinate)] |= layout->mask[i];
    }
    bool all = !memchr(held, 0, (size_t)groups);
    free(held);
    return all ? TRAMA_OK
               : trama_fail(
                     NOWHERE, TRAMA_E_LAYOUT,
                     "layout: the mask leaves a piece of the tensor without a holder; masks may only remove replicas");
}

/* Users may fill in a layout by hand, so enum values are checked. */
static bool is_known(const trama_placement *p)
{
    return (unsigned)p->kind <= TRAMA_PARTIAL && (p->kind != TRAMA_PARTIAL || (unsigned)p->reduce <= TRAMA_MIN);
}

trama_status layout_is_null(trama_status status, const trama_mesh *mesh, const char *other)
{
    return trama_fail(NOWHERE, status, "layout: the %s is NULL%s", mesh ? other : "mesh", mesh ? "" : mesh_reason());
}

trama_status layout_of_ndim(int ndim)
{
    return ndim >= 0 && ndim <= TRAMA_MAX_NDIM
               ? TRAMA_OK
               : trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: a tensor has 0 to %d dims, not %d", TRAMA_MAX_NDIM, ndim);
}

trama_status layout_check(const trama_mesh *mesh, int ndim, const trama_layout *layout, bool open_allowed)
{
    if (layout->naxes != mesh->ndim)
        return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: it has %d placements, the mesh %d axes", layout->naxes,
                          mesh->ndim);
    if (layout_of_ndim(ndim))
        return TRAMA_E_LAYOUT;
    for (int a = 0; a < mesh->ndim; a++) {
        const trama_placement *p = &layout->axis[a];
        if (!is_known(p))
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: axis %d has an invalid placement, kind %d, reduce %d",
                              a, (int)p->kind, (int)p->reduce);
        if (p->kind == TRAMA_SPLIT && (p->dim < 0 || p->dim >= ndim))
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: axis %d splits dim %d of a tensor of %d dims", a,
                              p->dim, ndim);
        if (p->kind == TRAMA_OPEN && !open_allowed)
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: axis %d is open ('?') where a full layout is needed",
                              a);
    }
    trama_status status = check_orders(layout, ndim);
    if (!status)
        status = check_partials(layout);
    return status ? status : check_mask(mesh, layout);
}

trama_status trama_layout_mask(const trama_mesh *mesh, int tensor_ndim, const unsigned char *mask, trama_layout *layout)
{
    if (!mesh || !layout)
        return layout_is_null(TRAMA_E_LAYOUT, mesh, "layout");
    for (int i = 0; mask && i < mesh->size; i++)
        if (mask[i] > 1)
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: the mask has a value %d; it takes 0 and 1", mask[i]);
    trama_layout masked = *layout;
    masked.mask = mesh_mask(mesh, mask);
    trama_status status = layout_check(mesh, tensor_ndim, &masked, true);
    if (!status)
        *layout = masked;
    return status;
}

trama_status trama_layout_from_mapping(const trama_mesh *mesh, int tensor_ndim, const int *mapping,
                                       trama_layout *layout)
{
    if (!mesh || !layout || (tensor_ndim > 0 && !mapping))
        return layout_is_null(TRAMA_E_LAYOUT, mesh, layout ? "mapping" : "layout");
    if (layout_of_ndim(tensor_ndim))
        return TRAMA_E_LAYOUT;
    trama_layout result = layout_uniform(mesh, TRAMA_REPLICATE);
    for (int d = 0; d < tensor_ndim; d++) {
        int axis = mapping[d];
        if (axis < -1 || axis >= mesh->ndim)
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: dim %d is mapped to axis %d of a mesh of %d axes", d,
                              axis, mesh->ndim);
        if (axis >= 0 && result.axis[axis].kind == TRAMA_SPLIT)
            return trama_fail(NOWHERE, TRAMA_E_LAYOUT, "layout: axis %d would split both dim %d and dim %d", axis,
                              result.axis[axis].dim, d);
        if (axis >= 0)
            layout_split(&result, d, 1, &axis);
    }
    *layout = result;
    return TRAMA_OK;
}

void layout_box(const trama_mesh *mesh, const trama_layout *layout, const box *whole, int position, box *result)
{
    int coordinate[TRAMA_MAX_AXES], axes[TRAMA_MAX_AXES];
    mesh_coordinate(mesh, position, coordinate);
    *result = *whole;
    for (int d = 0; d < whole->ndim; d++) {
        int n = layout_dim_axes(layout, d, axes);
        for (int i = 0; i < n; i++) {
            int64_t lo;
            mesh_piece(mesh, axes[i], result->n[d], coordinate[axes[i]], &lo, &result->n[d]);
            result->lo[d] += lo;
        }
    }
}

int64_t layout_largest(const trama_mesh *mesh, const trama_layout *layout, const box *whole)
{
    const int n = mesh_is_weighted(mesh) ? mesh->size : 1; /* of equal parts the first is the largest */
    int64_t most = 0;
    for (int position = 0; position < n; position++) {
        box b;
        layout_box(mesh, layout, whole, position, &b);
        most = max_i64(most, box_count(&b));
    }
    return most;
}

bool layout_present(const trama_layout *layout, int position)
{
    return !layout->mask || layout->mask[position];
}

int axes_size(const trama_mesh *mesh, unsigned set)
{
    int size = 1;
    for (int a = 0; a < mesh->ndim; a++)
        if (set >> a & 1)
            size *= mesh->shape[a];
    return size;
}

int axes_position(const trama_mesh *mesh, unsigned set, const int *coordinate)
{
    int position = 0;
    for (int a = 0; a < mesh->ndim; a++)
        if (set >> a & 1)
            position = position * mesh->shape[a] + coordinate[a];
    return position;
}

void axes_coordinate(const trama_mesh *mesh, unsigned set, int position, int *coordinate)
{
    for (int a = mesh->ndim - 1; a >= 0; a--)
        if (set >> a & 1) {
            coordinate[a] = position % mesh->shape[a];
            position /= mesh->shape[a];
        }
}

/* One dim of a layout: the axes that cut it, major first. */
typedef struct cut {
    int n, axes[TRAMA_MAX_AXES];
} cut;

typedef struct search {
    const trama_mesh *mesh;
    const box *where;
    cut cuts[TRAMA_MAX_NDIM];
    layout_visit *visit;
    void *arg;
    box piece;
    int coordinate[TRAMA_MAX_AXES];
} search;

static void search_dim(search *s, int dim, int64_t lo, int64_t n, int level);

static void search_next(search *s, int dim)
{
    if (dim == s->where->ndim)
        s->visit(s->arg, &s->piece, s->coordinate);
    else
        search_dim(s, dim, s->piece.lo[dim], s->piece.n[dim], 0);
}

/* Visits the pieces of [lo, lo + n), below a level of the dim's cut, that meet the searched interval. */
static void search_dim(search *s, int dim, int64_t lo, int64_t n, int level)
{
    int64_t from = max_i64(s->where->lo[dim], lo), to = min_i64(s->where->lo[dim] + s->where->n[dim], lo + n);
    if (from >= to)
        return;
    const cut *c = &s->cuts[dim];
    if (level == c->n) {
        box saved = s->piece;
        s->piece.lo[dim] = lo;
        s->piece.n[dim] = n;
        search_next(s, dim + 1);
        s->piece = saved;
        return;
    }
    int axis = c->axes[level];
    int first = mesh_piece_find(s->mesh, axis, n, from - lo), last = mesh_piece_find(s->mesh, axis, n, to - 1 - lo);
    for (int i = first; i <= last; i++) {
        int64_t offset, length;
        mesh_piece(s->mesh, axis, n, i, &offset, &length);
        s->coordinate[axis] = i;
        search_dim(s, dim, lo + offset, length, level + 1);
    }
    s->coordinate[axis] = 0;
}

void layout_overlaps(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where,
                     layout_visit *visit, void *arg)
{
    search s = {.mesh = mesh, .where = where, .visit = visit, .arg = arg, .piece = *whole};
    for (int d = 0; d < whole->ndim; d++)
        s.cuts[d].n = layout_dim_axes(layout, d, s.cuts[d].axes);
    search_next(&s, 0);
}

/* The number along a dim of the piece that holds element x. */
static int64_t piece_number(const trama_mesh *mesh, const cut *c, int64_t n, int64_t x)
{
    int64_t number = 0, lo = 0;
    for (int i = 0; i < c->n; i++) {
        int at = mesh_piece_find(mesh, c->axes[i], n, x - lo);
        int64_t offset;
        mesh_piece(mesh, c->axes[i], n, at, &offset, &n);
        number = number * mesh->shape[c->axes[i]] + at;
        lo += offset;
    }
    return number;
}

/* The first and the last piece along dim d that meet `where`. */
static void piece_range(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where, int d,
                        cut *c, int64_t *first, int64_t *last)
{
    c->n = layout_dim_axes(layout, d, c->axes);
    *first = piece_number(mesh, c, whole->n[d], where->lo[d]);
    *last = piece_number(mesh, c, whole->n[d], where->lo[d] + where->n[d] - 1);
}

int64_t layout_number(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where,
                      const box *piece)
{
    int64_t number = 0, first, last;
    for (int d = 0; d < whole->ndim; d++) {
        cut c;
        piece_range(mesh, layout, whole, where, d, &c, &first, &last);
        number = number * (last - first + 1) + piece_number(mesh, &c, whole->n[d], piece->lo[d]) - first;
    }
    return number;
}

int64_t layout_pieces(const trama_mesh *mesh, const trama_layout *layout, const box *whole, const box *where)
{
    int64_t n = 1, first, last;
    for (int d = 0; d < whole->ndim; d++) {
        cut c;
        piece_range(mesh, layout, whole, where, d, &c, &first, &last);
        n *= min_i64(last - first + 1, where->n[d]); /* in a dim shorter than its axes most pieces are empty */
    }
    return n;
}
