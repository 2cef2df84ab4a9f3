/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that move and do not change: transpose, reshape, window, and reshard within one place. */
#include <string.h>

#include "kernel.h"
#include "loop.h"
#include "ops.h"

trama_view transposed_view(const trama_call *call)
{
    const trama_view *in = &call->in[0];
    const int64_t *perm = &call->attributes->integer[SHAPE_DIM];
    trama_view turned = *in;

    for (int d = 0; d < in->ndim; d++) {
        turned.extent[d] = in->extent[perm[d]];
        turned.stride[d] = in->stride[perm[d]];
        turned.offset[d] = in->offset[perm[d]];
        turned.global[d] = in->global[perm[d]];
    }
    return turned;
}

void cpu_transpose(const trama_call *call)
{
    const trama_view turned = transposed_view(call);
    kernel_copy(&call->out[0], &turned);
}

/* The parts that the boxes of operand and result have in common, as views of each. */
bool window_views(const trama_call *call, trama_view *to, trama_view *from, bool *all)
{
    const int64_t *offset = &call->attributes->integer[WINDOW_OFFSET];
    const int64_t size = (int64_t)trama_dtype_size(call->out[0].dtype);
    int64_t first = 0, start = 0;
    bool none = false;

    *to = call->out[0];
    *from = call->in[0];
    *all = true;
    for (int d = 0; d < to->ndim; d++) {
        const int64_t shift =
            from->offset[d] - offset[d] - to->offset[d]; /* begin of the operand's box, counted in the result's */
        const int64_t lo = shift > 0 ? shift : 0, end = shift + from->extent[d];
        const int64_t n = (end < to->extent[d] ? end : to->extent[d]) - lo;
        *all &= n == to->extent[d];
        none |= n <= 0;
        first += lo * to->stride[d];
        start += (lo - shift) * from->stride[d];
        to->extent[d] = from->extent[d] = n;
    }
    if (none)
        return false;
    to->data = (char *)to->data + first * size;
    from->data = (char *)from->data + start * size;
    return true;
}

void cpu_window(const trama_call *call)
{
    trama_view to, from;
    bool all;
    const bool some = window_views(call, &to, &from, &all);

    if (!all)
        kernel_fill(&call->out[0], 0);
    if (some)
        kernel_copy(&to, &from);
}

void cpu_reshard(const trama_call *call)
{
    kernel_copy(&call->out[0], &call->in[0]);
}

/* ---- reshape ------------------------------------------------------------------------------------ */

/* A position in a view in row-major order. */
typedef struct cursor {
    trama_view view; /* trailing dims merged where memory runs on; at least one dim */
    int64_t index[TRAMA_MAX_NDIM], at;
} cursor;

static cursor cursor_of(const trama_view *view)
{
    cursor c = {.view = *view};
    int last = -1;

    for (int d = 0; d < view->ndim; d++) {
        const int64_t extent = view->extent[d], stride = view->stride[d];
        const bool runs_on = last >= 0 && c.view.stride[last] == stride * extent;
        if (extent == 1)
            continue;
        last += !runs_on;
        c.view.extent[last] = runs_on ? c.view.extent[last] * extent : extent;
        c.view.stride[last] = stride;
    }
    if (last < 0)
        c.view.extent[++last] = c.view.stride[0] = 1;
    c.view.ndim = last + 1;
    return c;
}

/* Elements left in the current row. */
static int64_t cursor_run(const cursor *c)
{
    const int last = c->view.ndim - 1;
    return c->view.extent[last] - c->index[last];
}

static void cursor_advance(cursor *c, int64_t by)
{
    int d = c->view.ndim - 1;
    c->index[d] += by;
    c->at += by * c->view.stride[d];
    for (; d > 0 && c->index[d] == c->view.extent[d]; d--) {
        c->at += c->view.stride[d - 1] - c->index[d] * c->view.stride[d];
        c->index[d] = 0;
        c->index[d - 1]++;
    }
}

/* A run of n elements at the cursor, as a view. */
static trama_view cursor_view(const cursor *c, int64_t n)
{
    const int last = c->view.ndim - 1;
    trama_view run = {.dtype = c->view.dtype, .ndim = 1, .extent = {n}, .stride = {c->view.stride[last]}};
    run.data = (char *)c->view.data + c->at * (int64_t)trama_dtype_size(run.dtype);
    return run;
}

void cpu_reshape(const trama_call *call)
{
    cursor to = cursor_of(&call->out[0]), from = cursor_of(&call->in[0]);
    int64_t left = view_count(&call->out[0]);

    if (left != view_count(&call->in[0]))
        kernel_impossible(call, "the boxes have unlike numbers of elements");
    while (left > 0) {
        const int64_t a = cursor_run(&to), b = cursor_run(&from), n = a < b ? a : b;
        const trama_view destination = cursor_view(&to, n), source = cursor_view(&from, n);
        kernel_copy(&destination, &source);
        cursor_advance(&to, n);
        cursor_advance(&from, n);
        left -= n;
    }
}
