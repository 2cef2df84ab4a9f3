/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops on windows: for each element of the result, loops over all that it may be made of. */
#include "reference_inside.h"

enum { SPACE = 2 };

/* The elements of a window: index stride o - before + dilation k along each spatial dim. */
static bool read_by(const trama_call *call, const trama_view *x, const point *o, const point *k, point *i)
{
    bool inside = true;
    for (int d = SPACE; d < x->ndim; d++) {
        const int s = d - SPACE;
        i->at[d] = o->at[d] * integer(call, CONV_STRIDE + s) - integer(call, CONV_BEFORE + s) +
                   k->at[d] * integer(call, CONV_DILATION + s);
        inside &= i->at[d] >= 0 && i->at[d] < x->global[d];
    }
    return inside;
}

/* A view that FOR_EACH goes through: spatial dims as `extent` has them, one element of the first two dims. */
static trama_view places(int ndim, const int64_t *extent)
{
    trama_view v = {.ndim = ndim, .extent = {1, 1}};
    for (int d = SPACE; d < ndim; d++)
        v.extent[d] = extent[d - SPACE];
    return v;
}

/* ---- Convolutions ---- */

/* Adds x w to y, for all that the boxes have: whichever of the three is the result of the call. */
static void convolve(const trama_call *call, const trama_view *x, const trama_view *w, const trama_view *y)
{
    const int64_t groups = integer(call, CONV_GROUPS);
    const int64_t out = w->global[0] / groups;
    trama_view kernel = places(w->ndim, w->global + SPACE);
    point iw, io, k;
    agree(call, x, 0, y, 0);
    agree(call, y, 1, w, 0);
    if (groups == 1)
        agree(call, x, 1, w, 1);
    else if (out &&
             (x->offset[1] * out != w->offset[0] * w->global[1] || x->extent[1] * out != w->extent[0] * w->global[1]))
        impossible(call, "the boxes of operands are of different groups");
    fill_result(call, 0);
    trama_view channels = *w;
    for (int d = SPACE; d < w->ndim; d++)
        channels.extent[d] = 1;
    FOR_EACH(&channels, &iw)
    {
        const int64_t group = iw.at[0] / out;
        trama_view windows = *y;
        windows.offset[1] = iw.at[0];
        windows.extent[1] = 1;
        if (y == &call->in[0]) /* the gradient of x: windows of any place, also beyond what the box needs */
            for (int d = SPACE; d < y->ndim; d++) {
                windows.offset[d] = 0;
                windows.extent[d] = y->global[d];
            }
        FOR_EACH_AS(window, &windows, &io)
        FOR_EACH_AS(place, &kernel, &k)
        {
            point ix = io;
            ix.at[1] = group * w->global[1] + iw.at[1];
            point ik = iw;
            for (int d = SPACE; d < w->ndim; d++)
                ik.at[d] = k.at[d];
            if (!read_by(call, x, &io, &k, &ix))
                continue;
            bool here = true;
            for (int d = SPACE; d < x->ndim && x == &call->out[0]; d++)
                here &= ix.at[d] >= x->offset[d] && ix.at[d] < x->offset[d] + x->extent[d];
            if (!here)
                continue;
            if (y == &call->out[0])
                *element(call, y, &io) += *element(call, x, &ix) * *element(call, w, &ik);
            else if (x == &call->out[0])
                *element(call, x, &ix) += *element(call, y, &io) * *element(call, w, &ik);
            else
                *element(call, w, &ik) += *element(call, y, &io) * *element(call, x, &ix);
        }
    }
}

void run_conv(const trama_call *call)
{
    convolve(call, &call->in[0], &call->in[1], &call->out[0]);
}

void run_conv_transposed(const trama_call *call)
{
    convolve(call, &call->out[0], &call->in[1], &call->in[0]);
}

void run_conv_weights(const trama_call *call)
{
    convolve(call, &call->in[0], &call->out[0], &call->in[1]);
}

/* ---- Pools ---- */

static trama_view kernel_of(const trama_call *call)
{
    return places(call->in[0].ndim, call->attributes->integer + POOL_KERNEL);
}

static int64_t flat(const trama_view *x, const point *i)
{
    int64_t at = 0;
    for (int d = SPACE; d < x->ndim; d++)
        at = at * x->global[d] + i->at[d];
    return at;
}

static void agree_planes(const trama_call *call)
{
    agree(call, &call->in[0], 0, &call->out[0], 0);
    agree(call, &call->in[0], 1, &call->out[0], 1);
}

void run_max_pool(const trama_call *call)
{
    const trama_view *x = &call->in[0], kernel = kernel_of(call);
    point o, k;
    agree_planes(call);
    FOR_EACH(&call->out[0], &o)
    {
        double best = 0, index = -1;
        FOR_EACH_AS(place, &kernel, &k)
        {
            point i = o;
            if (!read_by(call, x, &o, &k, &i))
                continue;
            const double v = get(call, 0, &i);
            if (index >= 0 && (v <= best || isnan(best)))
                continue;
            best = v;
            index = (double)flat(x, &i);
        }
        put(call, 0, &o, best);
        put(call, 1, &o, index);
    }
}

void run_sum_pool(const trama_call *call)
{
    const trama_view *x = &call->in[0], kernel = kernel_of(call);
    point o, k;
    agree_planes(call);
    FOR_EACH(&call->out[0], &o)
    {
        double sum = 0;
        FOR_EACH_AS(place, &kernel, &k)
        {
            point i = o;
            sum += read_by(call, x, &o, &k, &i) ? get(call, 0, &i) : 0;
        }
        put(call, 0, &o, sum);
    }
}

/* For each element of the result, all windows that have it: x[i] += y[o], if index[o] is i or there is no index. */
static void spread(const trama_call *call, bool indexed)
{
    const trama_view *x = &call->out[0], kernel = kernel_of(call), y = places(x->ndim, call->in[0].global + SPACE);
    point i, o, k;
    agree_planes(call);
    FOR_EACH(x, &i)
    {
        double sum = 0;
        FOR_EACH_AS(window, &y, &o)
        FOR_EACH_AS(place, &kernel, &k)
        {
            point read = i;
            o.at[0] = i.at[0];
            o.at[1] = i.at[1];
            if (read_by(call, x, &o, &k, &read) && flat(x, &read) == flat(x, &i) &&
                (!indexed || get(call, 1, &o) == (double)flat(x, &i)))
                sum += get(call, 0, &o);
            o.at[0] = o.at[1] = 0;
        }
        put(call, 0, &i, sum);
    }
}

void run_sum_unpool(const trama_call *call)
{
    spread(call, false);
}

void run_max_unpool(const trama_call *call)
{
    spread(call, true);
}

void run_max_pool_at(const trama_call *call)
{
    const trama_view *x = &call->in[0], kernel = kernel_of(call);
    point o, k;
    agree_planes(call);
    FOR_EACH(&call->out[0], &o)
    {
        double found = 0;
        FOR_EACH_AS(place, &kernel, &k)
        {
            point i = o;
            if (read_by(call, x, &o, &k, &i) && get(call, 1, &o) == (double)flat(x, &i))
                found = get(call, 0, &i);
        }
        put(call, 0, &o, found);
    }
}
