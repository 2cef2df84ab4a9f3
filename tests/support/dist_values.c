/* SPDX-License-Identifier: Apache-2.0 */
/* Scattering and gathering. */
#include "dist_values.h"

#include <math.h>
#include <string.h>

#include "planner.h"

plan *partition_end_with(partition **q, const plan_dist_value **h)
{
    const ptrdiff_t at = *h - (*q)->p->dist_values.at;
    plan *p = partition_end(q);
    *h = &p->dist_values.at[at];
    return p;
}

/* ---- The definition of a layout ---- */

static int coordinate_of(const trama_mesh *mesh, int position, int axis)
{
    for (int a = mesh->ndim - 1; a > axis; a--)
        position /= mesh->shape[a];
    return position % mesh->shape[axis];
}

/* Cuts [lo, lo + n) along an axis and keeps piece i: each gets its share by weight, what is left goes one each to the first. */
static void cut(int64_t *lo, int64_t *n, const trama_mesh *mesh, int axis, int i)
{
    int64_t sum = 0, left = *n, before = 0, mine = 0;
    for (int k = 0; k < mesh->shape[axis]; k++)
        sum += trama_mesh_weight(mesh, axis, k);
    for (int k = 0; k < mesh->shape[axis]; k++)
        left -= *n * trama_mesh_weight(mesh, axis, k) / sum;
    for (int k = 0; k <= i; k++) {
        before += mine;
        mine = *n * trama_mesh_weight(mesh, axis, k) / sum + (k < left ? 1 : 0);
    }
    *lo += before;
    *n = mine;
}

box naive_box(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int position)
{
    box b = {.ndim = shape.ndim};
    for (int d = 0; d < shape.ndim; d++) {
        b.n[d] = shape.dim[d];
        for (int order = 0; order < mesh->ndim; order++)
            for (int a = 0; a < mesh->ndim; a++)
                if (layout->axis[a].kind == TRAMA_SPLIT && layout->axis[a].dim == d && layout->axis[a].order == order)
                    cut(&b.lo[d], &b.n[d], mesh, a, coordinate_of(mesh, position, a));
    }
    return b;
}

int naive_terms(const trama_mesh *mesh, const trama_layout *layout)
{
    int n = 1;
    for (int a = 0; a < mesh->ndim; a++)
        n *= layout->axis[a].kind == TRAMA_PARTIAL ? mesh->shape[a] : 1;
    return n;
}

int naive_term(const trama_mesh *mesh, const trama_layout *layout, int position)
{
    int term = 0;
    for (int a = 0; a < mesh->ndim; a++)
        if (layout->axis[a].kind == TRAMA_PARTIAL)
            term = term * mesh->shape[a] + coordinate_of(mesh, position, a);
    return term;
}

dense combine_terms(const trama_mesh *mesh, const trama_layout *layout, const dense *terms)
{
    dense value = dense_copy(&terms[0]);
    double scale = 1;
    trama_reduce how = TRAMA_SUM;
    for (int a = 0; a < mesh->ndim; a++) {
        if (layout->axis[a].kind != TRAMA_PARTIAL)
            continue;
        how = layout->axis[a].reduce;
        scale *= how == TRAMA_AVG ? mesh->shape[a] : 1;
    }
    for (int64_t i = 0, n = trama_shape_count(value.shape); i < n; i++) {
        for (int t = 1; t < naive_terms(mesh, layout); t++) {
            double x = value.at[i], y = terms[t].at[i];
            value.at[i] = how == TRAMA_MAX ? (x > y ? x : y) : how == TRAMA_MIN ? (x < y ? x : y) : x + y;
        }
        value.at[i] /= scale;
    }
    return value;
}

dense *random_terms(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, uint64_t seed)
{
    int n = naive_terms(mesh, layout);
    dense *terms = trama_alloc((size_t)n * sizeof *terms);
    for (int t = 0; t < n; t++)
        terms[t] = dense_random(shape, seed + 1000 * (uint64_t)t, -50, 50, false);
    return terms;
}

dense *terms_of_value(const trama_mesh *mesh, const trama_layout *layout, const dense *value)
{
    int n = naive_terms(mesh, layout);
    dense *terms = trama_alloc((size_t)n * sizeof *terms);
    for (int position = mesh->size - 1; position >= 0; position--) {
        dense *term = &terms[naive_term(mesh, layout, position)];
        bool zero = false;
        for (int a = 0; a < mesh->ndim; a++)
            zero |= layout->axis[a].kind == TRAMA_PARTIAL && layout->axis[a].reduce == TRAMA_SUM &&
                    coordinate_of(mesh, position, a) > 0;
        dense_free(term);
        *term = dense_copy(value);
        for (int64_t i = 0; zero && i < trama_shape_count(value->shape); i++)
            term->at[i] = 0;
    }
    return terms;
}

void free_terms(const trama_mesh *mesh, const trama_layout *layout, dense *terms)
{
    for (int t = 0; t < naive_terms(mesh, layout); t++)
        dense_free(&terms[t]);
    free(terms);
}

/* ---- Scattering and gathering ---- */

void scatter(const world *w, memory *const *ranks, int value, const dense *terms)
{
    for (int r = 0; r < w->machine->n_ranks; r++) {
        const plan_dist_value *h = plan_find(ranks[r]->p, value);
        for (int i = 0; i < h->pieces.n; i++) {
            const plan_local_box *piece = &h->pieces.at[i];
            const box *shard = &ranks[r]->p->shards.at[piece->region.shard].box, *b = &piece->region.box;
            const dense *term = &terms[piece->term];
            box whole = box_whole(term->shape);
            for (int64_t k = 0, n = box_count(b); k < n; k++) {
                int64_t at = box_place(shard, b, k);
                ranks[r]->data[piece->region.shard][at] = term->at[box_place(&whole, b, k)];
                ranks[r]->known[piece->region.shard][at] = 1;
            }
        }
    }
}

static char *complaint(const char *problem, const box *b, int rank, int place, int term)
{
    text t = {0};
    text_add(&t, "dist_value: %s: rank %d, place %d, term %d, ", problem, rank, place, term);
    box_text(&t, b);
    return text_take(&t);
}

static const plan_local_box *piece_at(const plan_dist_value *h, int place, const box *b, int term)
{
    for (int i = 0; i < h->pieces.n; i++)
        if (h->pieces.at[i].place == place && h->pieces.at[i].term == term && box_equal(&h->pieces.at[i].region.box, b))
            return &h->pieces.at[i];
    return NULL;
}

/* Every process has its piece; every piece has its process. */
static char *check_pieces(const world *w, const plan_dist_value *const *dist_values, trama_shape shape)
{
    const trama_mesh *mesh = dist_values[0]->mesh;
    const trama_layout *layout = &dist_values[0]->layout;
    int **uses = trama_alloc((size_t)w->machine->n_ranks * sizeof *uses);
    char *wrong = NULL;
    for (int r = 0; r < w->machine->n_ranks; r++)
        uses[r] = trama_alloc((size_t)dist_values[r]->pieces.n * sizeof **uses);
    for (int position = 0; position < mesh->size && !wrong; position++) {
        if (layout->mask && !layout->mask[position])
            continue;
        box b = naive_box(mesh, layout, shape, position);
        int place = map_place(w->map, mesh->ids[position]), rank = w->machine->places[place].rank;
        int term = naive_term(mesh, layout, position);
        const plan_local_box *piece = piece_at(dist_values[rank], place, &b, term);
        if (piece)
            uses[rank][piece - dist_values[rank]->pieces.at]++;
        else
            wrong = complaint("a process lacks its piece", &b, rank, place, term);
    }
    for (int r = 0; r < w->machine->n_ranks; r++) {
        for (int i = 0; i < dist_values[r]->pieces.n && !wrong; i++) {
            const plan_local_box *p = &dist_values[r]->pieces.at[i];
            if (!uses[r][i])
                wrong = complaint("a piece that no process needs", &p->region.box, r, p->place, p->term);
        }
        free(uses[r]);
    }
    free(uses);
    return wrong;
}

/* Copies a piece into its term; where an element is there already it must be the same. */
static char *gather_piece(const memory *m, int rank, const plan_local_box *piece, dense *term)
{
    const plan_shard *shard = &m->p->shards.at[piece->region.shard];
    const box *b = &piece->region.box;
    box whole = box_whole(term->shape);
    if (shard->place != piece->place || !box_contains(&shard->box, b))
        return complaint("a piece is in another place's shard or outside it", b, rank, piece->place, piece->term);
    if (!memory_is_known(m, &piece->region))
        return complaint("a piece was never written", b, rank, piece->place, piece->term);
    for (int64_t k = 0, n = box_count(b); k < n; k++) {
        double x = m->data[piece->region.shard][box_place(&shard->box, b, k)], *y = &term->at[box_place(&whole, b, k)];
        if (!isnan(*y) && *y != x)
            return complaint("replicas differ", b, rank, piece->place, piece->term);
        *y = x;
    }
    return NULL;
}

char *gather(const world *w, memory *const *ranks, const plan_dist_value *const *dist_values, trama_shape shape,
             dense *result)
{
    const trama_mesh *mesh = dist_values[0]->mesh;
    const trama_layout *layout = &dist_values[0]->layout;
    char *wrong = check_pieces(w, dist_values, shape);
    dense *terms = trama_alloc((size_t)naive_terms(mesh, layout) * sizeof *terms);
    for (int t = 0; t < naive_terms(mesh, layout); t++)
        terms[t] = dense_new(shape);
    for (int r = 0; r < w->machine->n_ranks; r++)
        for (int i = 0; i < dist_values[r]->pieces.n && !wrong; i++)
            wrong = gather_piece(ranks[r], r, &dist_values[r]->pieces.at[i], &terms[dist_values[r]->pieces.at[i].term]);
    if (!wrong)
        *result = combine_terms(mesh, layout, terms);
    free_terms(mesh, layout, terms);
    return wrong;
}
