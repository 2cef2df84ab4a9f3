/* SPDX-License-Identifier: Apache-2.0 */
/* Schemes by counting: every process of the source is asked what it has for every process of the target. */
#include "scheme.h"

#include <check.h>
#include <string.h>

/* Along one axis of two equal meshes. */
typedef struct along {
    bool stays;   /* a term of the source is a term of the target, or a piece becomes one */
    bool reduced; /* terms are summed */
} along;

static bool is_linear(trama_reduce kind)
{
    return kind == TRAMA_SUM || kind == TRAMA_AVG;
}

static along along_axis(const change *c, int a)
{
    trama_placement from = c->from.axis[a], to = {.kind = TRAMA_REPLICATE};
    if (trama_mesh_equal(c->from_mesh, c->to_mesh))
        to = c->to.axis[a];
    bool both = from.kind == TRAMA_PARTIAL && to.kind == TRAMA_PARTIAL;
    bool like = both && (from.reduce == to.reduce || (is_linear(from.reduce) && is_linear(to.reduce)));
    bool piece = from.kind == TRAMA_SPLIT && to.kind == TRAMA_PARTIAL && is_linear(to.reduce);
    return (along){.stays = like || piece, .reduced = from.kind == TRAMA_PARTIAL && !like};
}

static int coordinate(const trama_mesh *mesh, int position, int axis)
{
    for (int a = mesh->ndim - 1; a > axis; a--)
        position /= mesh->shape[a];
    return position % mesh->shape[axis];
}

/* Whether a source process is on the same coordinates as a process of the other mesh where these stay. */
static bool concerns(const change *c, int from, int other)
{
    for (int a = 0; a < c->from_mesh->ndim; a++)
        if (along_axis(c, a).stays && coordinate(c->from_mesh, from, a) != coordinate(c->from_mesh, other, a))
            return false;
    return true;
}

/* The number of a source process's term among those that are summed, and how many they are. */
static int term_of(const change *c, int from, int *terms)
{
    int term = 0;
    *terms = 1;
    for (int a = 0; a < c->from_mesh->ndim; a++)
        if (along_axis(c, a).reduced) {
            term = term * c->from_mesh->shape[a] + coordinate(c->from_mesh, from, a);
            *terms *= c->from_mesh->shape[a];
        }
    return term;
}

static bool is_present(const trama_layout *l, int position)
{
    return !l->mask || l->mask[position];
}

static int find_id(const trama_mesh *mesh, int id)
{
    for (int i = 0; i < mesh->size; i++)
        if (mesh->ids[i] == id)
            return i;
    return -1;
}

static int64_t count(const box *a, const box *b)
{
    box common;
    return box_intersect(a, b, &common) ? box_count(&common) : 0;
}

/* Of what becomes P(sum) only the first gets the value. */
static bool wants(const change *c, int position)
{
    if (!is_present(&c->to, position))
        return false;
    for (int a = 0; a < c->to_mesh->ndim; a++) {
        trama_placement to = c->to.axis[a];
        bool stays = trama_mesh_equal(c->from_mesh, c->to_mesh) && along_axis(c, a).stays;
        if (to.kind == TRAMA_PARTIAL && to.reduce == TRAMA_SUM && !stays && coordinate(c->to_mesh, position, a))
            return false;
    }
    return true;
}

static void raise(scheme *most, int64_t received, int64_t messages)
{
    most->received = received > most->received ? received : most->received;
    most->messages = messages > most->messages ? messages : most->messages;
}

/* ---- At once ---- */

/* A term of a source box. */
typedef struct piece {
    box box;
    int term;
} piece;

scheme scheme_at_once(const change *c)
{
    scheme most = {0};
    int terms;
    for (int t = 0; t < c->to_mesh->size; t++) {
        box wanted = naive_box(c->to_mesh, &c->to, c->shape, t);
        int there = find_id(c->from_mesh, c->to_mesh->ids[t]);
        ARRAY(piece) seen = {0};
        int64_t received = 0, messages = 0;
        for (int s = 0; s < c->from_mesh->size && wants(c, t); s++) {
            piece p = {naive_box(c->from_mesh, &c->from, c->shape, s), term_of(c, s, &terms)};
            bool again = !concerns(c, s, t) || count(&p.box, &wanted) == 0;
            for (int k = 0; k < seen.n; k++)
                again |= seen.at[k].term == p.term && box_equal(&seen.at[k].box, &p.box);
            if (again)
                continue;
            *ARRAY_PUSH(&seen) = p;
            bool held = false;
            if (there >= 0 && is_present(&c->from, there) && concerns(c, there, t)) {
                box own = naive_box(c->from_mesh, &c->from, c->shape, there);
                held = box_equal(&own, &p.box) && term_of(c, there, &terms) == p.term;
            }
            received += held ? 0 : count(&p.box, &wanted);
            messages += !held;
        }
        ARRAY_FREE(&seen);
        most.total += received;
        raise(&most, received, messages);
    }
    return most;
}

/* ---- By slices ---- */

/* The source with slices along dim where there were terms to sum, or replicas. */
static trama_layout sliced(const change *c, int dim)
{
    trama_layout l = c->from;
    int order = 0;
    l.mask = NULL;
    for (int a = 0; a < l.naxes; a++)
        order += l.axis[a].kind == TRAMA_SPLIT && l.axis[a].dim == dim;
    for (int a = 0; a < l.naxes; a++)
        if (along_axis(c, a).reduced || l.axis[a].kind == TRAMA_REPLICATE)
            l.axis[a] = (trama_placement){.kind = TRAMA_SPLIT, .dim = dim, .order = order++};
    return l;
}

/* A process of the source receives this for its slice; it sends as many messages for others. */
static scheme to_sum(const change *c, const box *slice, int position)
{
    int terms;
    term_of(c, position, &terms);
    int64_t received = box_count(slice) ? terms - is_present(&c->from, position) : 0;
    return (scheme){.received = received * box_count(slice), .messages = 2 * received};
}

/* A target takes its parts of slices that it lacks; c: from the slices. */
static scheme to_deliver(const change *c, const box *slices, int position)
{
    box wanted = naive_box(c->to_mesh, &c->to, c->shape, position);
    scheme s = {0};
    for (int i = 0; i < c->from_mesh->size && wants(c, position); i++) {
        int64_t n = concerns(c, i, position) ? count(&slices[i], &wanted) : 0;
        if (n && c->from_mesh->ids[i] != c->to_mesh->ids[position]) {
            s.received += n;
            s.messages++;
        }
    }
    return s;
}

scheme scheme_by_slices(const change *c, int dim)
{
    scheme most = {0};
    change deliver = *c;
    deliver.from = sliced(c, dim);
    int n = c->from_mesh->size, holders = 0;
    box *slices = trama_alloc((size_t)n * sizeof *slices);
    scheme *of = trama_alloc((size_t)n * sizeof *of);
    for (int i = 0; i < n; i++) {
        slices[i] = naive_box(c->from_mesh, &deliver.from, c->shape, i);
        of[i] = to_sum(c, &slices[i], i);
        holders += box_count(&slices[i]) > 0;
        most.total += of[i].received;
    }
    for (int t = 0; t < c->to_mesh->size; t++) {
        scheme d = to_deliver(&deliver, slices, t), *mine = NULL;
        int there = find_id(c->from_mesh, c->to_mesh->ids[t]);
        if (there >= 0)
            mine = &of[there];
        most.sent += d.received;
        box wanted = naive_box(c->to_mesh, &c->to, c->shape, t);
        most.total += wants(&deliver, t) ? box_count(&wanted) : 0;
        raise(&most, d.received, d.messages);
        if (mine)
            *mine = (scheme){.received = mine->received + d.received, .messages = mine->messages + d.messages};
    }
    for (int i = 0; i < n; i++)
        raise(&most, of[i].received, of[i].messages);
    most.sent = holders ? (most.sent + holders - 1) / holders : 0;
    free(slices);
    free(of);
    return most;
}
