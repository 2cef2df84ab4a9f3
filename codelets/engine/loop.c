/* SPDX-License-Identifier: Apache-2.0 */
/* Walking strided views: one call per row. */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "walk.h"

enum { FEW = 2 * TRAMA_MAX_OPERANDS };

/* A walk and its current position. */
typedef struct row_walk {
    walk w;
    int64_t *size; /* [n], bytes of an element */
    void **data;   /* [n], the current row */
} row_walk;

static void walk_rows(row_walk *r, loop_row *row, const void *with);

void loop_run(int n, const trama_view *const *view, loop_row *row, const void *with)
{
    int64_t few_numbers[(TRAMA_MAX_NDIM + 1) * FEW], *numbers = few_numbers;
    void *few_data[FEW];
    row_walk r = {.data = few_data};
    const bool many = n > FEW;

    if (many) {
        numbers = trama_alloc((TRAMA_MAX_NDIM + 1) * (size_t)n * sizeof *numbers);
        r.data = trama_alloc((size_t)n * sizeof *r.data);
    }
    r.size = numbers + (ptrdiff_t)TRAMA_MAX_NDIM * n;
    for (int a = 0; a < n; a++) {
        r.data[a] = view[a]->data;
        r.size[a] = (int64_t)trama_dtype_size(view[a]->dtype);
    }
    if (walk_of(&r.w, n, view, numbers))
        walk_rows(&r, row, with);
    if (many) {
        free(numbers);
        free(r.data);
    }
}

/* A row that takes some steps only, and room to pack elements that lie otherwise. */
enum { DENSE = 256, LARGEST = sizeof(trama_c128) };
typedef struct dense {
    loop_row *row;
    row_steps steps;
    const void *with;
    int results, n;
    int64_t size[DENSE_ARRAYS];
    trama_dtype dtype[DENSE_ARRAYS];
    _Alignas(64) char pack[DENSE_ARRAYS][DENSE * LARGEST];
} dense;

/* Whether the row takes the arrays as they lie. */
static bool is_dense(const dense *d, const int64_t *step)
{
    int repeated = 0;
    for (int a = 0; a < d->n; a++) {
        if (step[a] != 1 && (step[a] != 0 || a < d->results))
            return false;
        repeated += step[a] == 0;
    }
    return repeated <= (d->steps == STEPS_1_OR_0);
}

static void dense_row(int64_t n, void *const *data, const int64_t *step, const void *with)
{
    static const int64_t unit[] = {1, 1, 1, 1, 1, 1, 1, 1};
    _Static_assert(sizeof unit == DENSE_ARRAYS * sizeof *unit, "a step for each array");
    dense *d = (dense *)with;
    void *at[DENSE_ARRAYS], *part[DENSE_ARRAYS];

    if (n == 1 || is_dense(d, step)) {
        d->row(n, data, n == 1 ? unit : step, d->with);
        return;
    }
    for (int64_t from = 0; from < n; from += DENSE) {
        const int64_t now = min_i64(n - from, DENSE);
        for (int a = 0; a < d->n; a++) {
            at[a] = (char *)data[a] + from * step[a] * d->size[a];
            part[a] = step[a] == 1 ? at[a] : d->pack[a];
            if (a >= d->results && step[a] != 1 &&
                (step[a] || !from)) /* a repeated element is there from the first on */
                kernel_copy_row(d->dtype[a], now, part[a], 1, at[a], step[a]);
        }
        d->row(now, part, unit, d->with);
        for (int a = 0; a < d->results; a++)
            if (step[a] != 1)
                kernel_copy_row(d->dtype[a], now, at[a], step[a], part[a], 1);
    }
}

void loop_dense(int results, int n, const trama_view *const *view, loop_row *row, row_steps steps, const void *with)
{
    dense d;
    d.row = row, d.steps = steps, d.with = with, d.results = results, d.n = n;
    for (int a = 0; a < n; a++) {
        d.dtype[a] = view[a]->dtype;
        d.size[a] = (int64_t)trama_dtype_size(view[a]->dtype);
    }
    loop_run(n, view, dense_row, &d);
}

void loop_call(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES], row_steps steps, const void *with)
{
    const trama_view *view[DENSE_ARRAYS];
    loop_row *row = rows[call->out[0].dtype];

    if (!row || call->n_out + call->n_in > DENSE_ARRAYS)
        kernel_impossible(call, row ? "it has too many operands" : "no kernel for this element type");
    for (int i = 0; i < call->n_out; i++)
        view[i] = &call->out[i];
    for (int i = 0; i < call->n_in; i++)
        view[call->n_out + i] = &call->in[i];
    loop_dense(call->n_out, call->n_out + call->n_in, view, row, steps, with);
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

trama_view view_part(const trama_view *view, int part)
{
    trama_view parts = *view;
    if (trama_dtype_kind_of(view->dtype) != TRAMA_KIND_COMPLEX)
        return parts;
    parts.dtype = view->dtype == TRAMA_C64 ? TRAMA_F32 : TRAMA_F64;
    parts.data = (char *)view->data + (size_t)part * trama_dtype_size(parts.dtype);
    for (int d = 0; d < parts.ndim; d++)
        parts.stride[d] *= 2;
    return parts;
}

static void view_text(text *out, const char *what, int i, const trama_view *view)
{
    text_add(out, " %s %d %s[", what, i, trama_dtype_name(view->dtype));
    for (int d = 0; d < view->ndim; d++)
        text_add(out, "%s%lld", d ? "," : "", (long long)view->extent[d]);
    text_add(out, "]");
}

void kernel_impossible(const trama_call *call, const char *why)
{
    text t = {0};
    text_add(&t, "%s%s: %s:", call->op ? "op " : "a change of layout", call->op ? call->op->name : "", why);
    for (int i = 0; i < call->n_in; i++)
        view_text(&t, "operand", i, &call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        view_text(&t, "result", i, &call->out[i]);
    fatal("%s", t.at);
}

static void advance(row_walk *r, int d, int64_t by)
{
    for (int a = 0; a < r->w.n; a++)
        r->data[a] = (char *)r->data[a] + by * r->w.step[d][a] * r->size[a];
}

static void walk_rows(row_walk *r, loop_row *row, const void *with)
{
    const int last = r->w.ndim - 1;
    int64_t index[TRAMA_MAX_NDIM] = {0};
    int d;

    do {
        row(r->w.extent[last], r->data, r->w.step[last], with);
        for (d = last - 1; d >= 0; d--) {
            advance(r, d, 1);
            if (++index[d] < r->w.extent[d])
                break;
            advance(r, d, -index[d]);
            index[d] = 0;
        }
    } while (d >= 0);
}
