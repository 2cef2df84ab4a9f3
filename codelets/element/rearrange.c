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

/* Goes to element i of the view. */
static void cursor_seek(cursor *c, int64_t i)
{
    c->at = 0;
    for (int d = c->view.ndim - 1; d >= 0; d--) {
        c->index[d] = d ? i % c->view.extent[d] : i;
        c->at += c->index[d] * c->view.stride[d];
        i /= c->view.extent[d];
    }
}

static char *cursor_data(const cursor *c)
{
    return (char *)c->view.data + c->at * (int64_t)trama_dtype_size(c->view.dtype);
}

/* Copies the next n elements. */
static void cursor_copy(cursor *to, cursor *from, int64_t n)
{
    while (n > 0) {
        const int64_t a = cursor_run(to), b = cursor_run(from), least = a < b ? a : b, now = least < n ? least : n;
        kernel_copy_row(to->view.dtype, now, cursor_data(to), to->view.stride[to->view.ndim - 1], cursor_data(from),
                        from->view.stride[from->view.ndim - 1]);
        cursor_advance(to, now);
        cursor_advance(from, now);
        n -= now;
    }
}

/* The number in the whole tensor, row-major, of element i of the box. */
static int64_t number_of(const trama_view *box, int64_t i)
{
    int64_t number = 0, times = 1;
    for (int d = box->ndim - 1; d >= 0; d--) {
        number += (box->offset[d] + i % box->extent[d]) * times;
        times *= box->global[d];
        i /= box->extent[d];
    }
    return number;
}

/* The element of the box that has a number in the whole tensor; -1: it is in another box. */
static int64_t place_of(const trama_view *box, int64_t number)
{
    int64_t i = 0, times = 1;
    for (int d = box->ndim - 1; d >= 0; d--) {
        const int64_t index = number % box->global[d] - box->offset[d];
        if (index < 0 || index >= box->extent[d])
            return -1;
        i += index * times;
        times *= box->extent[d];
        number /= box->global[d];
    }
    return i;
}

/* The elements of the box have successive numbers up to each multiple of this. */
static int64_t successive(const trama_view *box)
{
    int64_t n = 1;
    for (int d = box->ndim - 1; d >= 0; d--) {
        n *= box->extent[d];
        if (box->extent[d] != box->global[d])
            break;
    }
    return n;
}

void reshape_check(const trama_call *call)
{
    const trama_view *out = &call->out[0], *in = &call->in[0];
    const int64_t last = view_count(out) - 1;
    if (last >= 0 && (place_of(in, number_of(out, 0)) < 0 || place_of(in, number_of(out, last)) < 0))
        kernel_impossible(call, "the operand's box lacks elements of the result's");
}

/* The operand's box begins or ends elsewhere than that of the result: elements go by their numbers. */
static void reshape_by_number(const trama_call *call)
{
    const trama_view *out = &call->out[0], *in = &call->in[0];
    const int64_t count = view_count(out), n_out = successive(out), n_in = successive(in);
    cursor to = cursor_of(out), from = cursor_of(in);

    reshape_check(call);
    for (int64_t i = 0; i < count;) {
        const int64_t source = place_of(in, number_of(out, i)), a = n_out - i % n_out, b = n_in - source % n_in;
        cursor_seek(&from, source);
        cursor_copy(&to, &from, a < b ? a : b);
        i += a < b ? a : b;
    }
}

void cpu_reshape(const trama_call *call)
{
    const trama_view *out = &call->out[0], *in = &call->in[0];
    const int64_t count = view_count(out);

    if (count != view_count(in)) {
        reshape_by_number(call);
    } else if (count) {
        cursor to = cursor_of(out), from = cursor_of(in);
        cursor_copy(&to, &from, count);
    }
}

void cpu_reshape_like(const trama_call *call)
{
    cpu_reshape(call);
}
