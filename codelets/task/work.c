/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the work of a task inside a StarPU codelet. */
#include "work.h"

#include "work_gpu.h"

enum { CHUNK_BYTES = 16 << 10, WORK_MAX_TERMS = 16 };

static void report(const work *w, int number, trama_status status, const char *message)
{
    if (status && w->failed)
        w->failed(w->failed_arg, w->where[number], w->calls[number].op, status, message);
}

static trama_view at_scratch(const trama_view *v, char *scratch)
{
    trama_view moved = *v;
    moved.data = scratch + (uintptr_t)v->data;
    return moved;
}

/* A call with its views; room for those that lie in scratch memory. */
typedef struct placed_call {
    trama_call call;
    trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
} placed_call;

static void place_call(const work *w, int number, char *scratch, placed_call *p)
{
    const unsigned bits = scratch ? w->in_scratch[number] : 0;
    const trama_call *call = &w->calls[number];
    p->call = *call;
    if (!bits)
        return;
    for (int i = 0; i < call->n_in; i++)
        p->in[i] = bits >> i & 1 ? at_scratch(&call->in[i], scratch) : call->in[i];
    for (int o = 0; o < call->n_out; o++)
        p->out[o] = bits >> (TRAMA_MAX_OPERANDS + o) & 1 ? at_scratch(&call->out[o], scratch) : call->out[o];
    p->call.in = p->in;
    p->call.out = p->out;
}

static void run_kernel(const work *w, int number, const trama_call *call)
{
    const char *message;
    trama_status status = kernel_run(w->kernels[number], call, &message);
    report(w, number, status, message);
}

static void run_addition(const work *w, int number, const trama_call *product, char *scratch)
{
    const char *message;
    placed_call next;
    place_call(w, number + 1, scratch, &next);
    trama_status status = kernel_add(w->kernels[number], product, kernel_addition_now(&next.call), &message);
    report(w, number, status, message);
}

static void run_calls(const work *w, char *scratch)
{
    if (w->n_terms) {
        const trama_view sum = scratch ? at_scratch(w->sum, scratch) : *w->sum;
        kernel_reduce(&sum, w->n_terms, w->terms, w->combine, w->scale);
    }
    for (int i = 0; i < w->n_calls; i++) {
        placed_call placed;
        place_call(w, i, scratch, &placed);
        if (w->fused[i].kind == FUSED_ADDITION)
            run_addition(w, i++, &placed.call, scratch);
        else
            run_kernel(w, i, &placed.call);
    }
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

/* The sum of a chunk stays in cache: nobody else reads it. */
static void sum_chunk(const work *w, int64_t from, int64_t n, trama_view *sum)
{
    trama_view terms[WORK_MAX_TERMS];
    for (int i = 0; i < w->n_terms; i++)
        terms[i] = chunk_of(&w->terms[i], from, n);
    kernel_reduce(sum, w->n_terms, terms, w->combine, w->scale);
}

/* Values in scratch memory have room for a chunk only where others have all elements, so that they stay in cache. */
static void run_chunk(const work *w, int number, const trama_view *sum, int64_t from, int64_t n, char *scratch)
{
    const trama_call *call = &w->calls[number];
    const unsigned bits = scratch ? w->in_scratch[number] : 0;
    placed_call whole;
    trama_view in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    place_call(w, number, scratch, &whole);
    for (int i = 0; i < call->n_in; i++)
        in[i] = w->n_terms && call->in[i].data == w->sum->data
                    ? *sum
                    : chunk_of(&whole.call.in[i], bits >> i & 1 ? 0 : from, n);
    for (int o = 0; o < call->n_out; o++)
        out[o] = chunk_of(&whole.call.out[o], bits >> (TRAMA_MAX_OPERANDS + o) & 1 ? 0 : from, n);
    whole.call.in = in;
    whole.call.out = out;
    run_kernel(w, number, &whole.call);
}

static void compute(const work *w)
{
    char *scratch = w->scratch ? w->scratch[starpu_worker_get_id()] : NULL;
    if (!w->chunk) {
        run_calls(w, scratch);
        return;
    }
    _Alignas(64) char memory[CHUNK_BYTES];
    int64_t n = count(&w->calls[0].out[0]);
    for (int64_t from = 0; from < n; from += w->chunk) {
        int64_t here = from + w->chunk < n ? w->chunk : n - from;
        trama_view sum;
        if (w->n_terms) {
            sum = chunk_of(w->sum, 0, here);
            sum.data = memory;
            sum_chunk(w, from, here, &sum);
        }
        for (int i = 0; i < w->n_calls; i++)
            run_chunk(w, i, &sum, from, here, scratch);
    }
}

static void nothing(const work *w)
{
    (void)w;
}

static void copy(const work *w)
{
    for (int i = 0; i + 1 < w->n_views; i += 2)
        kernel_copy(&w->views[i], &w->views[i + 1]);
}

static void reduce(const work *w)
{
    kernel_reduce(&w->views[0], w->n_views - 1, w->views + 1, w->combine, w->scale);
}

static void fill(const work *w)
{
    kernel_fill(&w->views[0], w->scale);
}

#if TRAMA_HAVE_CUDA
#define CUDA(name) work_cuda_##name
#else
#define CUDA(name) NULL
#endif
const work_kind work_compute = {compute, CUDA(compute)}, work_copy = {copy, CUDA(copy)},
                work_reduce = {reduce, CUDA(reduce)}, work_fill = {fill, CUDA(fill)}, work_nothing = {nothing, NULL},
                work_collective = {NULL, CUDA(collective)};

work_buffer work_buffer_of(const void *interface)
{
    const struct starpu_matrix_interface *m = interface;
    const struct starpu_vector_interface *v = interface;
    if (v->id == STARPU_VECTOR_INTERFACE_ID) {
        int64_t bytes = (int64_t)v->nx * (int64_t)v->elemsize;
        return (work_buffer){(char *)v->ptr, bytes, 1, bytes};
    }
    int64_t size = (int64_t)m->elemsize;
    return (work_buffer){(char *)m->ptr, m->nx * size, m->ny, m->ld * size};
}

/* Whether the op's kernel for GPUs computes all element types of a call. */
static bool kinds_on_gpu(const trama_call *call)
{
    unsigned kinds = 0;
    for (int i = 0; i < call->n_in + call->n_out; i++)
        kinds |= trama_dtype_kind_of(i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype);
    return !(kinds & ~call->op->gpu_kinds);
}

bool work_on_gpu(const work *w)
{
    bool can = w->kind->cuda;
    for (int i = 0; w->kind == &work_compute && i < w->n_calls; i++) {
        const trama_call *call = &w->calls[i];
        can = can && (call->op->own ? call->op->own_cuda != NULL : w->kernels[i]->cuda && kinds_on_gpu(call));
    }
    return can;
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
    const fused_run all = w->fused[0];
    const int64_t n = count(&w->calls[0].out[0]);
    size_t size = 1;
    w->chunk = 0;
    if ((all.kind != FUSED_CHUNKS && all.kind != FUSED_CHAIN) || all.n < w->n_calls || w->n_terms > WORK_MAX_TERMS)
        return;
    for (int i = 0; i < w->n_terms; i++)
        if (!is_run(&w->terms[i], n))
            return;
    for (int i = 0; i < w->n_calls; i++) {
        const trama_call *c = &w->calls[i];
        for (int k = 0; k < c->n_in + c->n_out; k++) {
            const trama_view *v = k < c->n_in ? &c->in[k] : &c->out[k - c->n_in];
            if (!is_run(v, n))
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
    w->kind->cpu(w);
}

struct starpu_codelet work_codelet = {
    .cpu_funcs = {run_on_cpu},
    .cpu_funcs_name = {"run_on_cpu"},
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .name = "trama",
};
