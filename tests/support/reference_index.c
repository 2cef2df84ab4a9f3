/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops that find elements by index, and those that join tensors or take parts of them. */
#include "reference_inside.h"

/* ---- Gather and scatter ---- */

/* The index from 0 on, or -1 where it is not there. */
static int64_t index_of(double number, int64_t extent)
{
    const int64_t i = (int64_t)number, at = i < 0 ? i + extent : i;
    return at >= 0 && at < extent ? at : -1;
}

/* The dims of a part [A, I, B] that are those of an index [I]. */
static point index_point(const point *part, int axis, int n)
{
    point i = {.ndim = n};
    memcpy(i.at, part->at + axis, (size_t)n * sizeof *i.at);
    return i;
}

/* The point of [A, k, B] for a point of [A, I, B], where I has n dims. */
static point full_point(const point *part, int axis, int n, int64_t k)
{
    point p = {.ndim = part->ndim - n + 1};
    memcpy(p.at, part->at, (size_t)axis * sizeof *p.at);
    p.at[axis] = k;
    memcpy(p.at + axis + 1, part->at + axis + n, (size_t)(part->ndim - axis - n) * sizeof *p.at);
    return p;
}

static void agree_indexed(const trama_call *call, const trama_view *full, const trama_view *index,
                          const trama_view *part, bool along)
{
    const int axis = (int)integer(call, INDEX_AXIS), n = along ? 1 : index->ndim;
    for (int d = 0; d < full->ndim; d++)
        if (d != axis)
            agree(call, full, d, part, d < axis ? d : d + n - 1);
    for (int d = 0; d < index->ndim; d++)
        agree(call, index, d, part, along ? d : axis + d);
}

static bool has(const trama_view *v, int d, int64_t i)
{
    return i >= v->offset[d] && i < v->offset[d] + v->extent[d];
}

static void gather(const trama_call *call, bool along)
{
    const trama_view *x = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int axis = (int)integer(call, INDEX_AXIS), n = along ? 1 : index->ndim;
    point i;
    agree_indexed(call, x, index, out, along);
    FOR_EACH(out, &i)
    {
        const point at = along ? i : index_point(&i, axis, n);
        const int64_t k = index_of(get(call, 1, &at), x->global[axis]);
        const point from = full_point(&i, axis, n, k);
        put(call, 0, &i, k < 0 ? NAN : has(x, axis, k) ? get(call, 0, &from) : 0);
    }
}

void run_gather(const trama_call *call)
{
    gather(call, false);
}

void run_gather_along(const trama_call *call)
{
    gather(call, true);
}

/* Joins the elements of operand `part` with those of the result, in the order of the indices. */
static void scatter(const trama_call *call, int part, bool along, trama_scatter_how how)
{
    const trama_view *u = &call->in[part], *index = &call->in[1], *out = &call->out[0];
    const int axis = (int)integer(call, INDEX_AXIS), n = along ? 1 : index->ndim;
    point i;
    agree_indexed(call, out, index, u, along);
    FOR_EACH(u, &i)
    {
        const point at = along ? i : index_point(&i, axis, n);
        const int64_t k = index_of(get(call, 1, &at), out->global[axis]);
        if (k < 0 || !has(out, axis, k))
            continue;
        const point to = full_point(&i, axis, n, k);
        const double new = get(call, part, &i), old = *element(call, out, &to);
        const double joined = how == TRAMA_SCATTER_SET        ? new
                              : how == TRAMA_SCATTER_ADD      ? old + new
                              : how == TRAMA_SCATTER_MULTIPLY ? old *new
                              : how == TRAMA_SCATTER_MAX      ? fmax(old, new)
                                                              : fmin(old, new);
        put(call, 0, &to, joined);
    }
}

void run_gather_grad(const trama_call *call)
{
    fill_result(call, 0);
    scatter(call, 0, false, TRAMA_SCATTER_ADD);
}

void run_gather_along_grad(const trama_call *call)
{
    fill_result(call, 0);
    scatter(call, 0, true, TRAMA_SCATTER_ADD);
}

/* A scatter knows the parts of the index by their extents alone, so that it needs the whole index. */
static void scatter_into(const trama_call *call, bool along)
{
    const trama_view *index = &call->in[1];
    point i;
    for (int d = 0; d < index->ndim; d++)
        if (!along && index->extent[d] != index->global[d])
            impossible(call, "a part of the index");
    if (along && index->extent[integer(call, INDEX_AXIS)] != index->global[integer(call, INDEX_AXIS)])
        impossible(call, "a part of the index");
    agree_all(call, &call->in[0], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i, get(call, 0, &i));
    scatter(call, 2, along, (trama_scatter_how)integer(call, SCATTER_HOW));
}

void run_scatter(const trama_call *call)
{
    scatter_into(call, false);
}

void run_scatter_along(const trama_call *call)
{
    scatter_into(call, true);
}

/* ---- Joins and parts ---- */

static void concat(const trama_call *call)
{
    const int axis = (int)integer(call, CONCAT_AXIS);
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        point from = i;
        int t = 0;
        while (from.at[axis] >= call->in[t].global[axis])
            from.at[axis] -= call->in[t++].global[axis];
        for (int d = 0; d < i.ndim; d++)
            if (d != axis)
                agree(call, &call->in[t], d, &call->out[0], d);
        put(call, 0, &i, get(call, t, &from));
    }
}

#define CONCAT(n)                                                                                                      \
    void run_concat##n(const trama_call *call)                                                                         \
    {                                                                                                                  \
        concat(call);                                                                                                  \
    }
CONCAT(2)
CONCAT(3)
CONCAT(4)

void run_stride(const trama_call *call)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        point from = i;
        for (int d = 0; d < i.ndim; d++)
            from.at[d] *= integer(call, STRIDE_STEP + d);
        put(call, 0, &i, get(call, 0, &from));
    }
}

void run_flip(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    point i;
    for (int d = 0; d < x->ndim; d++)
        agree(call, x, d, &call->out[0], d);
    FOR_EACH(&call->out[0], &i)
    {
        point from = i;
        for (int d = 0; d < i.ndim; d++)
            from.at[d] = integer(call, FLIP_AXES) >> d & 1 ? x->global[d] - 1 - i.at[d] : i.at[d];
        put(call, 0, &i, get(call, 0, &from));
    }
}
