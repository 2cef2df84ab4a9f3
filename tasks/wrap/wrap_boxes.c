/* SPDX-License-Identifier: Apache-2.0 */
/* The host's boxes: checks on each rank, and the table of all ranks' boxes. */
#include <string.h>

#include "hash.h"
#include "wrap.h"

/* ---- One rank's boxes ---- */

static box box_of(const trama_host_box *piece, int ndim)
{
    box b = {.ndim = ndim};
    memcpy(b.lo, piece->offset, (size_t)ndim * sizeof *b.lo);
    memcpy(b.n, piece->extent, (size_t)ndim * sizeof *b.n);
    return b;
}

void boxes_strides(const trama_host_box *piece, int ndim, int64_t *stride)
{
    bool given = false;
    int64_t step = 1;
    for (int d = 0; d < ndim; d++)
        given |= piece->stride[d] != 0;
    for (int d = ndim - 1; d >= 0; step *= piece->extent[d--])
        stride[d] = given ? piece->stride[d] : step;
}

/* Sorts the dims of more than one element by their strides; their number. */
static int sort_dims(const box *b, const int64_t *stride, int *dims)
{
    int n = 0;
    for (int d = 0; d < b->ndim; d++) {
        int at = n;
        if (b->n[d] < 2)
            continue;
        for (n++; at > 0 && stride[dims[at - 1]] > stride[d]; at--)
            dims[at] = dims[at - 1];
        dims[at] = d;
    }
    return n;
}

/* Number of elements from the first to the last in memory, gaps included; 0 where elements share memory or the number
 * overflows. */
static int64_t span_of(const box *b, const int64_t *stride)
{
    int dims[TRAMA_MAX_NDIM], n = sort_dims(b, stride, dims);
    int64_t span = 1, add;
    for (int i = 0; i < n; i++) {
        if (stride[dims[i]] < span || __builtin_mul_overflow(b->n[dims[i]] - 1, stride[dims[i]], &add) ||
            __builtin_add_overflow(span, add, &span))
            return 0;
    }
    return span;
}

static bool is_row_major(const box *b, const int64_t *stride)
{
    int64_t step = 1;
    for (int d = b->ndim - 1; d >= 0; step *= b->n[d--])
        if (b->n[d] > 1 && stride[d] != step)
            return false;
    return true;
}

static trama_status wrong_box(trama_where where, trama_status status, const char *name, int i, const box *b,
                              const char *problem)
{
    text t = {0};
    box_text(&t, b);
    trama_fail(where, status, "trama_wrap: '%s': box %d, %s: %s", name, i, t.at, problem);
    free(t.at);
    return status;
}

static trama_status check_piece(trama_where where, const trama_wrapped *w, int i, const trama_host_box *piece)
{
    int64_t stride[TRAMA_MAX_NDIM];
    box b = box_of(piece, w->shape.ndim);
    for (int d = 0; d < b.ndim; d++)
        if (b.lo[d] < 0 || b.n[d] < 0 || b.n[d] > w->shape.dim[d] || b.lo[d] > w->shape.dim[d] - b.n[d]) {
            text t = {0};
            shape_text(&t, w->shape);
            text_add(&t, " is the tensor: the box is not within it");
            trama_status status = wrong_box(where, TRAMA_E_SHAPE, w->name, i, &b, t.at);
            free(t.at);
            return status;
        }
    if (box_count(&b) == 0)
        return TRAMA_OK;
    if (!piece->data)
        return wrong_box(where, TRAMA_E_ARGUMENT, w->name, i, &b, "its data are NULL");
    boxes_strides(piece, b.ndim, stride);
    int64_t span = span_of(&b, stride), size = (int64_t)trama_dtype_size(w->dtype), bytes;
    if (!span || __builtin_mul_overflow(span, size, &bytes))
        return wrong_box(where, TRAMA_E_ARGUMENT, w->name, i, &b,
                         "by its strides elements share memory; strides are in elements, positive, and each dim goes "
                         "beyond those of smaller strides");
    if ((uint64_t)bytes > piece->bytes) {
        text t = {0};
        text_add(&t, "its buffer has %zu bytes, the last element ends at byte %lld", piece->bytes, (long long)bytes);
        trama_status status = wrong_box(where, TRAMA_E_ARGUMENT, w->name, i, &b, t.at);
        free(t.at);
        return status;
    }
    if ((uintptr_t)piece->data % (uintptr_t)size)
        return wrong_box(where, TRAMA_E_ARGUMENT, w->name, i, &b, "its data are not aligned to their element type");
    if (piece->handle && starpu_data_get_local_ptr(piece->handle) != piece->data)
        return wrong_box(where, TRAMA_E_ARGUMENT, w->name, i, &b, "its handle was registered for other memory");
    return TRAMA_OK;
}

static trama_status check_memory(trama_where where, const trama_wrapped *w, int n, const trama_host_box *pieces)
{
    int i, k;
    if (!boxes_share_memory(n, pieces, w->shape.ndim, trama_dtype_size(w->dtype), &i, &k))
        return TRAMA_OK;
    const box one = box_of(&pieces[i], w->shape.ndim), other = box_of(&pieces[k], w->shape.ndim);
    text t = {0};
    text_add(&t, "it shares elements in memory with box %d, ", k);
    box_text(&t, &other);
    text_add(&t, "; give each box memory of its own, or correct its data and strides");
    trama_status status = wrong_box(where, TRAMA_E_ARGUMENT, w->name, i, &one, t.at);
    free(t.at);
    return status;
}

trama_status boxes_check(trama_where where, const trama_wrapped *w, int n, const trama_host_box *pieces)
{
    if (!w->name || !*w->name || n < 0 || (n && !pieces))
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_wrap: the %s",
                          n < 0          ? "number of boxes is negative"
                          : n && !pieces ? "boxes are NULL"
                                         : "name is missing");
    if ((unsigned)w->dtype >= TRAMA_N_DTYPES)
        return trama_fail(where, TRAMA_E_DTYPE, "trama_wrap: '%s': %d is no element type", w->name, (int)w->dtype);
    text why = {0};
    trama_status status = TRAMA_OK;
    if (!shape_check(w->shape, w->dtype, false, &why))
        status = trama_fail(where, TRAMA_E_SHAPE, "trama_wrap: '%s': %s", w->name, why.at);
    free(why.at);
    for (int i = 0; i < n && !status; i++)
        status = check_piece(where, w, i, &pieces[i]);
    return status ? status : check_memory(where, w, n, pieces);
}

/* ---- All ranks' boxes ---- */

/* The message of each rank to all others before its boxes. */
typedef struct wrap_card {
    int64_t shape[1 + TRAMA_MAX_NDIM], dtype, read_only, n, strided;
    uint64_t name;
} wrap_card;

typedef struct wrap_box {
    int64_t lo[TRAMA_MAX_NDIM], n[TRAMA_MAX_NDIM];
} wrap_box;

static wrap_card card_of(const trama_wrapped *w, int n, const trama_host_box *pieces)
{
    wrap_card card;
    memset(&card, 0, sizeof card);
    card.shape[0] = w->shape.ndim;
    memcpy(&card.shape[1], w->shape.dim, (size_t)w->shape.ndim * sizeof *w->shape.dim);
    card.dtype = w->dtype;
    card.read_only = w->read_only;
    card.n = n;
    card.name = hash_text(HASH_START, w->name);
    for (int i = 0; i < n; i++) {
        int64_t stride[TRAMA_MAX_NDIM];
        box b = box_of(&pieces[i], w->shape.ndim);
        boxes_strides(&pieces[i], b.ndim, stride);
        card.strided |= pieces[i].handle || (box_count(&b) && !is_row_major(&b, stride));
    }
    return card;
}

static trama_status compare_cards(trama_where where, const trama_wrapped *w, const wrap_card *cards, int ranks)
{
    for (int r = 1; r < ranks; r++) {
        const wrap_card *a = &cards[0], *b = &cards[r];
        const char *what = a->name != b->name                            ? "names"
                           : memcmp(a->shape, b->shape, sizeof a->shape) ? "shapes"
                           : a->dtype != b->dtype                        ? "element types"
                           : a->read_only != b->read_only                ? "kinds of access"
                                                                         : NULL;
        if (what)
            return trama_fail(where, TRAMA_E_ARGUMENT,
                              "trama_wrap: '%s': ranks 0 and %d give different %s; all ranks wrap one tensor at a time",
                              w->name, r, what);
    }
    return TRAMA_OK;
}

static void add_rank(trama_wrapped *w, int rank, int64_t n, const wrap_box *boxes)
{
    const machine *m = w->planning.machine;
    for (int i = 0; i < n; i++) {
        indexed_box s = {.b.ndim = w->shape.ndim, .place = machine_first_place(m, rank), .rank = rank, .number = i};
        memcpy(s.b.lo, boxes[i].lo, sizeof s.b.lo);
        memcpy(s.b.n, boxes[i].n, sizeof s.b.n);
        if (box_count(&s.b))
            *ARRAY_PUSH(&w->user_boxes.at) = s;
    }
}

static trama_status overlap(trama_where where, const trama_wrapped *w)
{
    int i, k;
    if (!box_index_overlap(&w->user_boxes, &i, &k))
        return TRAMA_OK;
    const indexed_box *a = &w->user_boxes.at.at[i], *b = &w->user_boxes.at.at[k];
    text one = {0}, other = {0};
    box_text(&one, &a->b);
    box_text(&other, &b->b);
    trama_status status = trama_fail(
        where, TRAMA_E_LAYOUT,
        "trama_wrap: '%s': box %d of rank %d, %s, and box %d of rank %d, %s, overlap; boxes are disjoint, or "
        "equal on different ranks",
        w->name, a->number, a->rank, one.at, b->number, b->rank, other.at);
    free(one.at);
    free(other.at);
    return status;
}

enum { FEW_BYTES = 1 << 20 };

static trama_status no_room(trama_where where, const trama_wrapped *w, int64_t boxes)
{
    return trama_fail(where, TRAMA_E_MEMORY, "trama_wrap: '%s': no memory for %lld boxes of each rank", w->name,
                      (long long)boxes);
}

trama_status boxes_gather(trama_where where, trama_wrapped *w, int n, const trama_host_box *pieces)
{
    trama_context *c = w->context;
    int ranks = context_ranks(c);
    int64_t most = 1;
    wrap_card mine = card_of(w, n, pieces), *cards = trama_alloc((size_t)ranks * sizeof *cards);
    trama_status status = context_gather(c, "trama_wrap", &mine, sizeof mine, cards);
    if (!status)
        status = compare_cards(where, w, cards, ranks);
    for (int r = 0; r < ranks; r++) {
        most = max_i64(most, cards[r].n);
        w->user_boxes.strided |= cards[r].strided;
    }
    size_t bytes = (size_t)most * sizeof(wrap_box);
    wrap_box *own = trama_try_alloc(bytes), *all = status ? NULL : trama_try_alloc((size_t)ranks * bytes);
    if (!status && bytes > FEW_BYTES) /* bytes are the same on all ranks, so all take part in the agreement */
        status = context_agree(c, "trama_wrap", own && all ? TRAMA_OK : no_room(where, w, most));
    for (int i = 0; i < n && !status; i++) {
        memcpy(own[i].lo, pieces[i].offset, sizeof own[i].lo);
        memcpy(own[i].n, pieces[i].extent, sizeof own[i].n);
    }
    if (!status)
        status = context_gather(c, "trama_wrap", own, bytes, all);
    for (int r = 0; r < ranks && !status; r++)
        add_rank(w, r, cards[r].n, all + r * most);
    free(own);
    free(all);
    free(cards);
    if (status)
        return status;
    box_index_sort(&w->user_boxes);
    w->complete = box_index_count(&w->user_boxes) == trama_shape_count(w->shape);
    return overlap(where, w);
}
