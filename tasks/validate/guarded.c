/* SPDX-License-Identifier: Apache-2.0 */
/* Packs boxes of doubles into guarded memory, runs the kernel there, and unpacks the results. */
#include "guarded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "kernel.h"

static int64_t count(const trama_view *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++)
        n *= v->extent[d];
    return n;
}

/* The offset of element k of a box, counted row-major. */
static int64_t place(const trama_view *v, int64_t k)
{
    int64_t at = 0;
    for (int d = v->ndim - 1; d >= 0; d--) {
        at += k % v->extent[d] * v->stride[d];
        k /= v->extent[d];
    }
    return at;
}

/* ---- Guarded memory ---- */

/* The largest extent of any tensor of the call in a dim, counted from the right, as in broadcasts. */
static int64_t largest(const trama_call *call, int from_right)
{
    int64_t most = 0;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const trama_view *v = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        int d = v->ndim - 1 - from_right;
        if (d >= 0) /* a box with neighbours from beyond the tensor's ends may be larger than the tensor */
            most = max_i64(most, max_i64(v->global[d], v->extent[d]));
    }
    return most;
}

/* A view of the box within memory as wide, on either side, as the largest tensor of the call. A kernel may index from
 * its box or in the whole tensor, and boxes may be of different parts of the tensors: each of its accesses then lies
 * within the memory. */
static trama_view guarded(const trama_call *call, const trama_view *box, double around, void **memory)
{
    trama_view v = *box;
    int64_t n = 1, first = 0;
    for (int d = v.ndim - 1; d >= 0; d--) {
        int64_t most = largest(call, v.ndim - 1 - d) + 1;
        v.stride[d] = n;
        first += most * n;
        n *= 3 * most;
    }
    v.data = *memory = trama_alloc((size_t)n * trama_dtype_size(v.dtype));
    const trama_dtype part = dtype_part(v.dtype);
    for (int64_t i = 0; i < n * dtype_parts(v.dtype); i++)
        element_set(part, v.data, i, trama_dtype_is_float(part) ? NAN : around);
    v.data = (char *)v.data + first * (int64_t)trama_dtype_size(v.dtype);
    return v;
}

static void copy_in(const trama_view *to, const trama_view *doubles)
{
    const int width = dtype_parts(to->dtype);
    for (int64_t k = 0; k < count(doubles) * width; k++)
        element_set(dtype_part(to->dtype), to->data, place(to, k / width) * width + k % width,
                    ((const double *)doubles->data)[place(doubles, k / width) * width + k % width]);
}

static void copy_out(const trama_view *doubles, const trama_view *from)
{
    const int width = dtype_parts(from->dtype);
    for (int64_t k = 0; k < count(doubles) * width; k++)
        ((double *)doubles->data)[place(doubles, k / width) * width + k % width] =
            element_of(dtype_part(from->dtype), from->data, place(from, k / width) * width + k % width);
}

typedef struct packed {
    trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    void *memory[2 * TRAMA_MAX_OPERANDS];
} packed;

static void pack(const guard *g, const trama_call *call, packed *p)
{
    memset(p->memory, 0, sizeof p->memory);
    for (int i = 0; i < call->n_in; i++) {
        p->in[i] = guarded(call, &call->in[i], g->around[i], &p->memory[i]);
        copy_in(&p->in[i], &call->in[i]);
    }
    for (int o = 0; o < call->n_out; o++) {
        p->out[o] = guarded(call, &call->out[o], 0, &p->memory[call->n_in + o]);
        if (call->op->updates >> o & 1) {
            copy_in(&p->out[o], &call->in[o]);
            p->in[o] = p->out[o];
        }
    }
}

static void unpack(const trama_call *call, packed *p)
{
    for (int o = 0; o < call->n_out; o++)
        copy_out(&call->out[o], &p->out[o]);
    for (int i = 0; i < call->n_in + call->n_out; i++)
        free(p->memory[i]);
}

static void run(guard *g, const trama_call *call)
{
    const char *message = "";
    g->status = kernel_run(kernel_of(call->op), call, &message);
    if (g->status)
        snprintf(g->message, sizeof g->message, "%s", message);
}

static bool updates_fit(const trama_call *call)
{
    for (int o = 0; o < call->n_out; o++)
        for (int d = 0; (call->op->updates >> o & 1) && d < call->out[o].ndim; d++)
            if (call->out[o].extent[d] != call->in[o].extent[d])
                return false;
    return true;
}

bool guarded_run(guard *g, const trama_call *call)
{
    packed p;
    if (!updates_fit(call))
        return false;
    pack(g, call, &p);
    trama_call real = *call;
    real.in = p.in;
    real.out = p.out;
    run(g, &real);
    unpack(call, &p);
    return !g->status;
}

/* ---- In pieces ---- */

/* Elements from to from + n - 1 of a whole tensor as a 1-d view; scalars stay scalars. */
static trama_view piece(const trama_view *whole, int64_t from, int64_t n, int64_t of)
{
    trama_view v = *whole;
    if (count(whole) == 1 && of != 1)
        return v;
    v.ndim = 1;
    v.extent[0] = v.global[0] = n;
    v.stride[0] = 1;
    v.offset[0] = 0;
    v.data = (double *)whole->data + from * dtype_parts(whole->dtype);
    return v;
}

bool guarded_run_in_pieces(guard *g, const trama_call *call)
{
    int64_t n = count(&call->out[0]), half = n / 2 + 1;
    bool right = true;
    for (int64_t from = 0; from < n && right; from += half) {
        trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
        int64_t here = half < n - from ? half : n - from;
        trama_call part = *call;
        for (int i = 0; i < call->n_in; i++)
            in[i] = piece(&call->in[i], from, here, n);
        for (int o = 0; o < call->n_out; o++)
            out[o] = piece(&call->out[o], from, here, n);
        part.in = in;
        part.out = out;
        right = guarded_run(g, &part);
    }
    return right;
}
