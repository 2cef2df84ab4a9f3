/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the changes of layout that are one collective: only one axis changes and its pieces are equal, or one process
 * sends the whole tensor to all. */
#include "collective_choice.h"

box collective_part(const box *whole, int dim, int n, int i)
{
    box b = *whole;
    b.n[dim] /= n;
    b.lo[dim] += b.n[dim] * i;
    return b;
}

static bool same_placement(const trama_placement *a, const trama_placement *b)
{
    return a->kind == b->kind && (a->kind != TRAMA_SPLIT || (a->dim == b->dim && a->order == b->order)) &&
           (a->kind != TRAMA_PARTIAL || a->reduce == b->reduce);
}

/* The only axis along which the layouts differ; -1: none, or several. */
static int changed_axis(const transfer *t)
{
    int found = -1;
    for (int a = 0; a < t->to_mesh->ndim; a++) {
        if (t->to_mesh->shape[a] == 1 || same_placement(&t->from.axis[a], &t->to.axis[a]))
            continue;
        if (found >= 0)
            return -1;
        found = a;
    }
    return found;
}

/* The collective that changes one axis, if the pieces are equal. */
static bool find_form(const transfer *t, bool nccl, collective_choice *w)
{
    const trama_placement *from = &t->from.axis[w->axis], *to = &t->to.axis[w->axis];
    bool whole = to->kind == TRAMA_REPLICATE;
    w->get = from->kind == TRAMA_SPLIT ? from->dim : -1;
    w->give = to->kind == TRAMA_SPLIT ? to->dim : -1;
    w->sums = from->kind == TRAMA_PARTIAL && !nccl;
    w->gathers = w->sums && whole;
    if (to->kind == TRAMA_PARTIAL || from->kind == TRAMA_REPLICATE || (w->get >= 0 && w->get == w->give))
        return false;
    if (from->kind == TRAMA_PARTIAL && nccl)
        w->form = whole ? PLAN_ALL_REDUCE : PLAN_REDUCE_SCATTER;
    else
        w->form = from->kind == TRAMA_SPLIT && whole ? PLAN_ALL_GATHER : PLAN_ALL_TO_ALL;
    return true;
}

collective_member collective_member_at(const transfer *t, const collective_choice *w, int position)
{
    const trama_mesh *mesh = t->to_mesh;
    int coordinate[TRAMA_MAX_AXES];
    collective_member m = {.n = mesh->shape[w->axis]};
    mesh_coordinate(mesh, position, coordinate);
    m.index = coordinate[w->axis];
    layout_box(mesh, &t->from, &t->whole, position, &m.from);
    layout_box(mesh, &t->to, &t->whole, position, &m.to);
    coordinate[w->axis] = 0;
    layout_box(mesh, &t->from, &t->whole, mesh_position(mesh, coordinate), &m.whole);
    if (w->get >= 0)
        m.whole.n[w->get] *= m.n;
    return m;
}

static bool is_part(const box *whole, int dim, int n, int i, const box *b)
{
    box part = dim < 0 ? *whole : collective_part(whole, dim, n, i);
    return (dim < 0 || whole->n[dim] % n == 0) && box_equal(&part, b);
}

int collective_even_dim(const box *b, int n)
{
    for (int d = 0; d < b->ndim; d++)
        if (b->n[d] % n == 0)
            return d;
    return -1;
}

static bool is_even(const transfer *t, const collective_choice *w)
{
    for (int i = 0; i < t->to_mesh->size; i++) {
        collective_member m = collective_member_at(t, w, i);
        if (box_count(&m.whole) == 0 || !is_part(&m.whole, w->get, m.n, m.index, &m.from) ||
            !is_part(&m.whole, w->give, m.n, m.index, &m.to) || (w->gathers && collective_even_dim(&m.whole, m.n) < 0))
            return false;
    }
    return true;
}

static bool is_broadcast(const transfer *t, int root, collective_choice *w)
{
    *w = (collective_choice){.form = PLAN_BROADCAST, .axis = -1, .give = -1, .get = -1, .root = root};
    if (root < 0 || t->reduced || t->kept || box_count(&t->whole) == 0 || (!t->from.mask && t->from_mesh->size > 1))
        return false;
    for (int a = 0; a < t->to_mesh->ndim; a++)
        if (t->to.axis[a].kind != TRAMA_REPLICATE && t->to_mesh->shape[a] > 1)
            return false;
    return true;
}

bool find_collective(const transfer *t, int root, bool nccl_sums, collective_choice *w)
{
    if (is_broadcast(t, root, w))
        return true;
    *w = (collective_choice){.axis = changed_axis(t)};
    return t->one_mesh && !t->from.mask && w->axis >= 0 && find_form(t, nccl_sums, w) && is_even(t, w);
}
