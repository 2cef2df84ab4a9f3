/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a task on a GPU: its views moved into device memory, its kernels enqueued on the worker's stream. It
 * waits for nothing: StarPU does, for the stream. */
#include "work_gpu.h"

#if TRAMA_HAVE_CUDA
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base.h"
#include "ops.h"

/* ---- Kinds of work ---- */

static void run_own(const work *w, int i, const gpu *g)
{
    const trama_call *call = &w->calls[i];
    own_op_forget_message();
    trama_status status = call->op->own_cuda(call, g->stream);
    if (!status)
        return;
    for (int o = 0; o < call->n_out; o++)
        if (!(call->op->updates >> o & 1))
            gpu_fill(&call->out[o], NAN, g);
    if (w->failed)
        w->failed(w->failed_arg, w->where[i], call->op, status, own_op_message(status));
}

static void run_call(const work *w, int i, const gpu *g)
{
    if (w->calls[i].op->own)
        run_own(w, i, g);
    else
        w->kernels[i]->cuda(&w->calls[i], g);
}

/* All calls from i on, and the sum before them, in one kernel. */
static bool run_chain(const work *w, int i, const gpu *g)
{
    const kernel_chain chain = {.n_calls = w->fused[i].n,
                                .calls = w->calls + i,
                                .inner = w->inner + i,
                                .n_terms = i ? 0 : w->n_terms,
                                .sum = w->sum,
                                .terms = w->terms,
                                .combine = w->combine,
                                .scale = w->scale};
    return gpu_chain(&chain, g);
}

/* Runs a product with the calls fused to it, or one call; returns the number of calls. */
static int run_some(const work *w, int i, const gpu *g)
{
    const fused_run f = w->fused[i];
    if (f.kind == FUSED_ADDITION)
        w->kernels[i]->cuda_add(&w->calls[i], kernel_addition_now(&w->calls[i + 1]), g);
    else if (f.kind != FUSED_EPILOGUE || !w->kernels[i]->cuda_then(&w->calls[i], f.n - 1, &w->calls[i + 1], g))
        return run_call(w, i, g), 1;
    return f.n;
}

void work_cuda_compute(const work *w, const gpu *g)
{
    for (int i = 0, n; i < w->n_calls; i += n) {
        const trama_call *call = &w->calls[i];
        const bool chained = w->fused[i].kind == FUSED_CHAIN && run_chain(w, i, g);
        if (i == 0 && w->n_terms && !chained)
            gpu_reduce(w->sum, w->n_terms, w->terms, w->combine, w->scale, g);
        n = chained ? w->fused[i].n : run_some(w, i, g);
        gpu_check(call);
    }
}

void work_cuda_copy(const work *w, const gpu *g)
{
    for (int i = 0; i + 1 < w->n_views; i += 2)
        gpu_copy(&w->views[i], &w->views[i + 1], g);
}

void work_cuda_reduce(const work *w, const gpu *g)
{
    gpu_reduce(&w->views[0], w->n_views - 1, w->views + 1, w->combine, w->scale, g);
}

void work_cuda_fill(const work *w, const gpu *g)
{
    gpu_fill(&w->views[0], w->scale, g);
}

/* ---- From host addresses to the device's ---- */

/* Where the task's buffers are on the device, and copies of views: one after the other in memory that its worker keeps,
 * from one start of StarPU to the next. */
typedef struct translation {
    int n;
    const work_buffer *home, *here; /* [n] */
    char *memory;
    size_t used, size;
} translation;

static void *take(translation *t, size_t bytes)
{
    void *at = t->memory + t->used;
    t->used += (bytes + 15) / 16 * 16;
    assert(t->used <= t->size);
    return at;
}

/* Bytes of all that is copied. */
static size_t room_for(const work *w, int n_buffers)
{
    size_t n_views = (size_t)(w->n_views + w->n_terms + 1), n_calls = (size_t)w->n_calls;
    for (size_t i = 0; i < n_calls; i++)
        n_views += (size_t)(w->calls[i].n_in + w->calls[i].n_out);
    return (size_t)n_buffers * sizeof(work_buffer) + n_calls * sizeof(trama_call) + n_views * sizeof(trama_view) +
           16 * (2 * n_calls + 8);
}

static translation begin(const work *w, void *const *buffers, int n)
{
    static struct {
        char *memory;
        size_t size;
    } of_worker[STARPU_NMAXWORKERS];
    const int worker = starpu_worker_get_id();
    const size_t need = room_for(w, n);
    if (need > of_worker[worker].size) {
        free(of_worker[worker].memory);
        of_worker[worker].memory = trama_alloc(of_worker[worker].size = 2 * need);
    }
    translation t = {.n = n, .home = w->buffers, .memory = of_worker[worker].memory, .size = of_worker[worker].size};
    work_buffer *here = take(&t, (size_t)n * sizeof *here);
    for (int i = 0; i < n; i++)
        here[i] = work_buffer_of(buffers[i]);
    t.here = here;
    return t;
}

/* Which buffer a byte is in; tiles of one shard lie between each other's rows. -1: it has none, as boxes without
 * elements and operands of which only the shape counts. */
static int buffer_of(const translation *t, const void *data)
{
    for (int i = 0; data && i < t->n; i++) {
        const work_buffer *b = &t->home[i];
        const int64_t at = (const char *)data - b->from;
        if (at >= 0 && at / b->ld < b->rows && at % b->ld < b->run)
            return i;
    }
    return -1;
}

/* Rows may be closer together on the device. */
static void move_view(const translation *t, trama_view *v)
{
    const int i = buffer_of(t, v->data);
    if (i < 0) {
        v->data = NULL;
        return;
    }
    const work_buffer *home = &t->home[i], *here = &t->here[i];
    const int64_t at = (char *)v->data - home->from, ld = home->ld / (int64_t)trama_dtype_size(v->dtype);
    v->data = here->from + at / home->ld * here->ld + at % home->ld;
    for (int d = 0; home->rows > 1 && d < v->ndim; d++)
        if (v->stride[d] >= ld)
            v->stride[d] = v->stride[d] / ld * (here->ld / (int64_t)trama_dtype_size(v->dtype));
}

static trama_view *moved_views(translation *t, int n, const trama_view *views)
{
    trama_view *copies = take(t, (size_t)n * sizeof *copies);
    for (int i = 0; i < n; i++) {
        copies[i] = views[i];
        move_view(t, &copies[i]);
    }
    return copies;
}

static trama_call *moved_calls(translation *t, int n, const trama_call *calls)
{
    trama_call *copies = take(t, (size_t)n * sizeof *copies);
    for (int i = 0; i < n; i++) {
        copies[i] = calls[i];
        copies[i].in = moved_views(t, calls[i].n_in, calls[i].in);
        copies[i].out = moved_views(t, calls[i].n_out, calls[i].out);
    }
    return copies;
}

void work_run_on_gpu(void *buffers[], void *argument)
{
    const work *given = argument;
    translation t = begin(given, buffers, (int)STARPU_TASK_GET_NBUFFERS(starpu_task_get_current()));
    work here = *given;
    here.calls = moved_calls(&t, given->n_calls, given->calls);
    if (given->n_terms) {
        here.terms = moved_views(&t, given->n_terms, given->terms);
        here.sum = moved_views(&t, 1, given->sum);
    }
    if (given->n_calls == 0)
        here.views = moved_views(&t, given->n_views, given->views);
    gpu_forget_errors();
    here.kind->cuda(&here, gpu_here());
    if (given->n_calls == 0)
        gpu_check(&(trama_call){.n_out = given->n_views > 0,
                                .out = here.views,
                                .n_in = given->n_views > 1 ? given->n_views - 1 : 0,
                                .in = here.views + 1});
}
#endif
