/* SPDX-License-Identifier: Apache-2.0 */
/* Walking strided views: alignment, order and merging of dims, then one call per row. */
#include "loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { FEW = 2 * TRAMA_MAX_OPERANDS };

/* The dims to walk, outermost first. */
typedef struct walk {
    int n, ndim;
    int64_t extent[TRAMA_MAX_NDIM];
    int64_t *step[TRAMA_MAX_NDIM]; /* each [n], in elements */
    int64_t *size;                 /* [n], bytes of an element */
    void **data;                   /* [n], the current row */
} walk;

static bool walk_dims(walk *w, const trama_view *const *view);
static void walk_merge(walk *w);
static void walk_rows(walk *w, loop_row *row, const void *with);

void loop_run(int n, const trama_view *const *view, loop_row *row, const void *with)
{
    int64_t few_numbers[(TRAMA_MAX_NDIM + 1) * FEW], *numbers = few_numbers;
    void *few_data[FEW];
    walk w = {.n = n, .data = few_data};
    const bool many = n > FEW;

    if (many) {
        numbers = trama_alloc((TRAMA_MAX_NDIM + 1) * (size_t)n * sizeof *numbers);
        w.data = trama_alloc((size_t)n * sizeof *w.data);
    }
    for (int d = 0; d < TRAMA_MAX_NDIM; d++)
        w.step[d] = numbers + (ptrdiff_t)d * n;
    w.size = numbers + (ptrdiff_t)TRAMA_MAX_NDIM * n;
    for (int a = 0; a < n; a++) {
        w.data[a] = view[a]->data;
        w.size[a] = (int64_t)trama_dtype_size(view[a]->dtype);
    }
    if (walk_dims(&w, view)) {
        walk_merge(&w);
        walk_rows(&w, row, with);
    }
    if (many) {
        free(numbers);
        free(w.data);
    }
}

void loop_call(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES], const void *with)
{
    const trama_view *view[2 * TRAMA_MAX_OPERANDS];
    loop_row *row = rows[call->out[0].dtype];

    if (!row)
        kernel_impossible(call, "no kernel for this element type");
    for (int i = 0; i < call->n_out; i++)
        view[i] = &call->out[i];
    for (int i = 0; i < call->n_in; i++)
        view[call->n_out + i] = &call->in[i];
    loop_run(call->n_out + call->n_in, view, row, with);
}

int64_t view_count(const trama_view *view)
{
    int64_t count = 1;
    for (int d = 0; d < view->ndim; d++)
        count *= view->extent[d];
    return count;
}

trama_view view_without(const trama_view *view, int d)
{
    trama_view rest = *view;
    const size_t tail = (size_t)(--rest.ndim - d) * sizeof rest.extent[0];

    memmove(&rest.extent[d], &rest.extent[d + 1], tail);
    memmove(&rest.stride[d], &rest.stride[d + 1], tail);
    memmove(&rest.offset[d], &rest.offset[d + 1], tail);
    memmove(&rest.global[d], &rest.global[d + 1], tail);
    return rest;
}

static void print_view(const char *what, int i, const trama_view *view)
{
    fprintf(stderr, " %s %d %s[", what, i, trama_dtype_name(view->dtype));
    for (int d = 0; d < view->ndim; d++)
        fprintf(stderr, "%s%lld", d ? "," : "", (long long)view->extent[d]);
    fprintf(stderr, "]");
}

_Noreturn void kernel_impossible(const trama_call *call, const char *why)
{
    fprintf(stderr, "trama: op %s: %s:", call->op ? call->op->name : "?", why);
    for (int i = 0; i < call->n_in; i++)
        print_view("operand", i, &call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        print_view("result", i, &call->out[i]);
    fprintf(stderr, "\n");
    abort();
}

/* The step of an array along dim d of the space. */
static int64_t step_along(const trama_view *space, const trama_view *view, int d)
{
    const int own = d - space->ndim + view->ndim;
    return own < 0 || view->extent[own] == 1 ? 0 : view->stride[own];
}

/* Puts dim d of the space behind all dims with larger or equal strides of array 0. */
static void walk_insert(walk *w, const trama_view *const *view, int d)
{
    int at = w->ndim++;
    int64_t *step = w->step[at];

    for (int a = 0; a < w->n; a++)
        step[a] = step_along(view[0], view[a], d);
    for (; at > 0 && llabs(w->step[at - 1][0]) < llabs(step[0]); at--) {
        w->extent[at] = w->extent[at - 1];
        w->step[at] = w->step[at - 1];
    }
    w->extent[at] = view[0]->extent[d];
    w->step[at] = step;
}

/* At least one dim, maybe of extent 1; false if there is nothing to walk. */
static bool walk_dims(walk *w, const trama_view *const *view)
{
    for (int d = 0; d < view[0]->ndim; d++) {
        if (view[0]->extent[d] == 0)
            return false;
        if (view[0]->extent[d] > 1)
            walk_insert(w, view, d);
    }
    if (w->ndim == 0) {
        w->ndim = 1;
        w->extent[0] = 1;
        memset(w->step[0], 0, (size_t)w->n * sizeof *w->step[0]);
    }
    return true;
}

static bool can_merge(const walk *w, int outer, int inner)
{
    for (int a = 0; a < w->n; a++)
        if (w->step[outer][a] != w->step[inner][a] * w->extent[inner])
            return false;
    return true;
}

/* Merges each dim into the one before it where all arrays run on without a gap. */
static void walk_merge(walk *w)
{
    int last = 0;
    for (int d = 1; d < w->ndim; d++) {
        const bool merged = can_merge(w, last, d);
        const int64_t before = merged ? w->extent[last] : 1;
        last += !merged;
        w->extent[last] = before * w->extent[d];
        w->step[last] = w->step[d];
    }
    w->ndim = last + 1;
}

static void advance(walk *w, int d, int64_t by)
{
    for (int a = 0; a < w->n; a++)
        w->data[a] = (char *)w->data[a] + by * w->step[d][a] * w->size[a];
}

static void walk_rows(walk *w, loop_row *row, const void *with)
{
    const int last = w->ndim - 1;
    int64_t index[TRAMA_MAX_NDIM] = {0};
    int d;

    do {
        row(w->extent[last], w->data, w->step[last], with);
        for (d = last - 1; d >= 0; d--) {
            advance(w, d, 1);
            if (++index[d] < w->extent[d])
                break;
            advance(w, d, -index[d]);
            index[d] = 0;
        }
    } while (d >= 0);
}
