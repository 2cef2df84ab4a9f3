/* SPDX-License-Identifier: Apache-2.0 */
/* Works on a GPU: their kernels, enqueued on the stream of the worker or of one of its lanes. */
#include "work_gpu.h"

#if TRAMA_HAVE_CUDA
#include <math.h>

#include "base.h"
#include "ops.h"

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
    int more = 0;
    if (f.kind == FUSED_ADDITION) {
        w->kernels[i]->cuda_add(&w->calls[i], kernel_addition_now(&w->calls[i + 1]), g);
        return f.n;
    }
    if (f.kind == FUSED_EPILOGUE)
        more = w->kernels[i]->cuda_then(&w->calls[i], f.n - 1, &w->calls[i + 1], w->inner + i + 1, g);
    if (more <= 0)
        run_call(w, i, g);
    return more <= 0 ? 1 : 1 + more;
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
#endif
