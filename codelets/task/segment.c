/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: views moved from host addresses to the device's, once for as long as the buffers stay where they are, and
 * graphs of the kernels. A run waits for nothing: StarPU does, for the stream. */
#include "segment.h"

#if TRAMA_HAVE_CUDA
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "arena.h"
#include "lanes.h"
#include "work_gpu.h"

enum {
    RUNS_BEFORE_GRAPH = 2, /* a graph takes some 10 us a kernel to make */
    LEAST_CALLS = 3,       /* fewer are launched as soon without a graph */
    BYTES_OF_WORK = 4096   /* that its copy takes, guessed for the first time */
};

/* As the worker ran it last. */
typedef struct segment_run {
    arena memory;      /* of here, works and their views */
    size_t expected;   /* bytes of it */
    work_buffer *here; /* [n_buffers] on the device */
    work *works;       /* [n] with views that point there */
    int n_runs;        /* since the buffers lie there */
    bool no_graph;     /* it cannot be recorded, or is not worth it */
    int device;
    cudaGraphExec_t graph;
} segment_run;

/* ---- From host addresses to the device's ---- */

static void *take(segment_run *r, size_t bytes)
{
    return arena_take(&r->memory, bytes, r->expected);
}

/* Which buffer a byte is in: the last one that begins at it or before, or, since tiles of one shard lie between each
 * other's rows, one before that. -1: it has none, as boxes without elements and operands of which only the shape
 * counts. */
static int buffer_of(const segment *s, const void *data)
{
    int first = 0, end = data ? s->n_buffers : 0; /* those behind `end` begin behind the byte */
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if ((uintptr_t)s->buffers[middle].from <= (uintptr_t)data)
            first = middle + 1;
        else
            end = middle;
    }
    for (int i = end - 1; i >= 0; i--) {
        const work_buffer *b = &s->buffers[i];
        const int64_t at = (const char *)data - b->from;
        if (at / b->ld < b->rows && at % b->ld < b->run)
            return i;
    }
    return -1;
}

/* Rows may be closer together on the device. */
static void move_view(const segment *s, trama_view *v)
{
    const int i = buffer_of(s, v->data);
    if (i < 0) {
        v->data = NULL;
        return;
    }
    const work_buffer *home = &s->buffers[i], *here = &s->run->here[i];
    const int64_t at = (char *)v->data - home->from, ld = home->ld / (int64_t)trama_dtype_size(v->dtype);
    v->data = here->from + at / home->ld * here->ld + at % home->ld;
    for (int d = 0; home->rows > 1 && d < v->ndim; d++)
        if (v->stride[d] >= ld)
            v->stride[d] = v->stride[d] / ld * (here->ld / (int64_t)trama_dtype_size(v->dtype));
}

static trama_view *moved_views(const segment *s, int n, const trama_view *views)
{
    trama_view *copies = take(s->run, (size_t)n * sizeof *copies);
    for (int i = 0; i < n; i++) {
        copies[i] = views[i];
        move_view(s, &copies[i]);
    }
    return copies;
}

static trama_call *moved_calls(const segment *s, int n, const trama_call *calls)
{
    trama_call *copies = take(s->run, (size_t)n * sizeof *copies);
    for (int i = 0; i < n; i++) {
        copies[i] = calls[i];
        copies[i].in = moved_views(s, calls[i].n_in, calls[i].in);
        copies[i].out = moved_views(s, calls[i].n_out, calls[i].out);
    }
    return copies;
}

static work moved(const segment *s, const work *home)
{
    work w = *home;
    w.calls = moved_calls(s, home->n_calls, home->calls);
    if (home->n_terms) {
        w.terms = moved_views(s, home->n_terms, home->terms);
        w.sum = moved_views(s, 1, home->sum);
    }
    if (home->n_calls == 0)
        w.views = moved_views(s, home->n_views, home->views);
    return w;
}

/* ---- Runs ---- */

static bool is_own(const work *w)
{
    bool own = false;
    for (int i = 0; i < w->n_calls; i++)
        own |= w->calls[i].op->own != NULL;
    return own;
}

/* A kernel of the user's may do what a stream under record refuses. */
static bool worth_a_graph(const segment *s)
{
    int n_calls = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->works[i]->kind == &work_collective || is_own(s->works[i]))
            return false;
        n_calls += s->works[i]->n_calls + (s->works[i]->n_calls == 0);
    }
    return n_calls >= LEAST_CALLS;
}

static segment_run *new_run(const segment *s)
{
    segment_run *r = trama_alloc(sizeof *r);
    r->no_graph = !worth_a_graph(s);
    r->expected = (size_t)s->n * BYTES_OF_WORK;
    cudaGetDevice(&r->device);
    return r;
}

static void forget(segment_run *r)
{
    if (r->graph)
        gpu_end_graph(r->device, r->graph);
    r->graph = NULL;
    r->n_runs = 0;
    if (r->memory.total)
        r->expected = r->memory.total;
    arena_free(&r->memory);
}

static bool lies_as_before(const segment *s, void *const *buffers)
{
    bool same = s->run->works != NULL;
    for (int i = 0; same && i < s->n_buffers; i++) {
        const work_buffer now = work_buffer_of(buffers[i]), *was = &s->run->here[i];
        same = now.from == was->from && now.ld == was->ld;
    }
    return same;
}

static void move_to(segment *s, void *const *buffers)
{
    segment_run *r = s->run;
    forget(r);
    r->here = take(r, (size_t)s->n_buffers * sizeof *r->here);
    for (int i = 0; i < s->n_buffers; i++)
        r->here[i] = work_buffer_of(buffers[i]);
    r->works = take(r, (size_t)s->n * sizeof *r->works);
    for (int i = 0; i < s->n; i++)
        r->works[i] = moved(s, s->works[i]);
}

static void check(const work *w)
{
    gpu_check(&(trama_call){
        .n_out = w->n_views > 0, .out = w->views, .n_in = w->n_views > 1 ? w->n_views - 1 : 0, .in = w->views + 1});
}

static void enqueue_one(const work *w, const gpu *g)
{
    w->kind->cuda(w, g);
    if (w->n_calls == 0)
        check(w);
}

static void enqueue(const segment *s, const gpu *g)
{
    for (int i = 0; i < s->n; i++)
        enqueue_one(&s->run->works[i], g);
}

/* ---- Graphs ---- */

typedef ARRAY(lane_use) lane_uses;

static void add_uses(const segment *s, lane_uses *uses, int n, const trama_view *views, bool writes)
{
    for (int i = 0; i < n; i++) {
        const int buffer = buffer_of(s, views[i].data);
        if (buffer >= 0)
            *ARRAY_PUSH(uses) = (lane_use){buffer, writes};
    }
}

static void find_uses(const segment *s, const work *w, lane_uses *uses)
{
    uses->n = 0;
    for (int i = 0; i < w->n_calls; i++) {
        add_uses(s, uses, w->calls[i].n_in, w->calls[i].in, false);
        add_uses(s, uses, w->calls[i].n_out, w->calls[i].out, true);
    }
    if (w->n_terms) {
        add_uses(s, uses, w->n_terms, w->terms, false);
        add_uses(s, uses, 1, w->sum, true);
    }
    for (int i = 0; w->n_calls == 0 && i < w->n_views; i++)
        add_uses(s, uses, 1, &w->views[i], i == 0 || (w->kind == &work_copy && i % 2 == 0));
}

/* A lane's stream waits for the works of other lanes; the first time it joins the capture, at its beginning. */
static cudaError_t wait_for_others(const lane_place *at, const gpu *lane, bool *joined, const cudaEvent_t *ends,
                                   cudaEvent_t beginning)
{
    cudaError_t error = *joined ? cudaSuccess : cudaStreamWaitEvent(lane->stream, beginning, 0);
    *joined = true;
    for (int k = 0; k < GPU_LANES && !error; k++)
        if (at->after[k] >= 0)
            error = cudaStreamWaitEvent(lane->stream, ends[at->after[k]], 0);
    return error;
}

/* Enqueues the works on their lanes, whose streams join the capture of the first and leave it. ends: [n + 1] events,
 * behind each work and, as the last, before all. Ends at the first error, before it enqueues outside the capture. */
static cudaError_t enqueue_on_lanes(const segment *s, const gpu *gpus, cudaEvent_t *ends)
{
    lanes *l = lanes_begin(s->n, s->n_buffers);
    lane_uses uses = {0};
    bool joined[GPU_LANES] = {true};
    cudaError_t error = cudaEventRecord(ends[s->n], gpus[0].stream);
    for (int i = 0; i < s->n && !error; i++) {
        find_uses(s, s->works[i], &uses);
        const lane_place at = lanes_add(l, uses.n, uses.at);
        const gpu *lane = &gpus[at.lane];
        if ((error = wait_for_others(&at, lane, &joined[at.lane], ends, ends[s->n])))
            break;
        enqueue_one(&s->run->works[i], lane);
        error = cudaEventRecord(ends[i], lane->stream);
    }
    for (int k = 1; k < GPU_LANES && !error; k++)
        if (joined[k])
            error = cudaStreamWaitEvent(gpus[0].stream, ends[lanes_last(l, k)], 0);
    ARRAY_FREE(&uses);
    lanes_end(l);
    return error;
}

/* NULL where a stream refuses, or there is no memory for a graph. Kernels only start kernels, so they do not. */
static cudaGraphExec_t record(const segment *s)
{
    const gpu *gpus = gpu_lanes();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    cudaEvent_t *ends = trama_alloc(((size_t)s->n + 1) * sizeof(cudaEvent_t));
    cudaError_t error = cudaSuccess;
    for (int i = 0; i <= s->n && !error; i++)
        error = cudaEventCreateWithFlags(&ends[i], cudaEventDisableTiming);
    if (!error && !cudaStreamBeginCapture(gpus->stream, cudaStreamCaptureModeThreadLocal)) {
        error = enqueue_on_lanes(s, gpus, ends);
        if (!cudaStreamEndCapture(gpus->stream, &graph) && !error && cudaGraphInstantiateWithFlags(&made, graph, 0))
            made = NULL;
        if (graph)
            cudaGraphDestroy(graph);
    }
    for (int i = 0; i <= s->n; i++)
        if (ends[i])
            cudaEventDestroy(ends[i]);
    free(ends);
    gpu_forget_errors();
    return made;
}

static void run_on_gpu(void *buffers[], void *argument)
{
    segment *s = argument;
    const gpu *g = gpu_here();
    if (!s->run)
        s->run = new_run(s);
    segment_run *r = s->run;
    if (!lies_as_before(s, buffers))
        move_to(s, buffers);
    gpu_forget_errors();
    if (!r->graph && !r->no_graph && r->n_runs++ >= RUNS_BEFORE_GRAPH) {
        r->graph = record(s);
        r->no_graph = !r->graph;
    }
    if (!r->graph) {
        enqueue(s, g);
        return;
    }
    cudaGraphLaunch(r->graph, g->stream);
    gpu_check(r->works[0].n_calls ? &r->works[0].calls[0] : &(trama_call){0});
}

void segment_end(segment *s)
{
    if (s->run)
        forget(s->run);
    free(s->run);
    s->run = NULL;
}
#else

void segment_end(segment *s)
{
    (void)s;
}

#endif

struct starpu_codelet segment_codelet = {
#if TRAMA_HAVE_CUDA
    .cuda_funcs = {run_on_gpu},
    .cuda_flags = {STARPU_CUDA_ASYNC},
#endif
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .name = "trama",
};
