/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the work of a task inside a StarPU codelet. */
#include "work.h"

enum { CHUNK_BYTES = 16 << 10 };

static void run_calls(const work *w)
{
    for (int i = 0; i < w->n_calls; i++)
        w->kernels[i]->cpu(&w->calls[i]);
}

static int64_t count(const trama_view *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++)
        n *= v->extent[d];
    return n;
}

/* The part of a view that a chunk covers, as a 1-d view; scalars stay whole. */
static trama_view chunk_of(const trama_view *v, int64_t from, int64_t n)
{
    trama_view c = *v;
    if (count(v) == 1)
        return c;
    c.ndim = 1;
    c.extent[0] = c.global[0] = n;
    c.stride[0] = 1;
    c.offset[0] = 0;
    c.data = (char *)v->data + (size_t)from * trama_dtype_size(v->dtype);
    return c;
}

static void run_chunk(const trama_call *call, const trama_kernel *kernel, int64_t from, int64_t n)
{
    trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    trama_call part = *call;
    for (int i = 0; i < call->n_in; i++)
        in[i] = chunk_of(&call->in[i], from, n);
    for (int i = 0; i < call->n_out; i++)
        out[i] = chunk_of(&call->out[i], from, n);
    part.in = in;
    part.out = out;
    kernel->cpu(&part);
}

void work_compute(const work *w)
{
    if (!w->chunk) {
        run_calls(w);
        return;
    }
    int64_t n = count(&w->calls[0].out[0]);
    for (int64_t from = 0; from < n; from += w->chunk)
        for (int i = 0; i < w->n_calls; i++)
            run_chunk(&w->calls[i], w->kernels[i], from, from + w->chunk < n ? w->chunk : n - from);
}

void work_copy(const work *w)
{
    kernel_copy(&w->views[0], &w->views[1]);
}

void work_reduce(const work *w)
{
    kernel_reduce(&w->views[0], w->n_views - 1, w->views + 1, w->combine, w->scale);
}

void work_fill(const work *w)
{
    kernel_fill(&w->views[0], w->scale);
}

/* A view that is one contiguous run of n elements, or one element. */
static bool is_run(const trama_view *v, int64_t n)
{
    int64_t expected = 1;
    if (count(v) == 1)
        return true;
    for (int d = v->ndim - 1; d >= 0; d--) {
        if (v->extent[d] != 1 && v->stride[d] != expected)
            return false;
        expected *= v->extent[d];
    }
    return expected == n;
}

void work_find_chunk(work *w)
{
    w->chunk = 0;
    if (w->n_calls < 2)
        return;
    int64_t n = count(&w->calls[0].out[0]);
    size_t size = 1;
    for (int i = 0; i < w->n_calls; i++) {
        const trama_call *c = &w->calls[i];
        if (!c->op->pointwise)
            return;
        for (int k = 0; k < c->n_in + c->n_out; k++) {
            const trama_view *v = k < c->n_in ? &c->in[k] : &c->out[k - c->n_in];
            if (!is_run(v, n) || (k >= c->n_in && count(v) != n))
                return;
            size = trama_dtype_size(v->dtype) > size ? trama_dtype_size(v->dtype) : size;
        }
    }
    if (n > (int64_t)(CHUNK_BYTES / size))
        w->chunk = (int64_t)(CHUNK_BYTES / size);
}

static void run_on_cpu(void *buffers[], void *argument)
{
    (void)buffers;
    const work *w = argument;
    w->run(w);
}

struct starpu_codelet work_codelet = {
    .cpu_funcs = {run_on_cpu},
    .cpu_funcs_name = {"run_on_cpu"},
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .name = "trama",
};
