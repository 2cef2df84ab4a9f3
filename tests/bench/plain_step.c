/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a training step of the main job on two ranks, written by hand for StarPU: the products, sums and updates
 * that Trama plans, one worker a rank, whose tasks post MPI's requests and poll them. Samples are copied as they are
 * fed. Usage: plain_step [--mesh dp=2|mp=2] [--hidden 512,256] [--batch 128] */
#include "bench.h"

#if TRAMA_HAVE_MPI
#include <cblas.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <starpu.h>
#include <stdlib.h>
#include <string.h>

#include "main_job.h"

enum { SAMPLES = 8192, WINDOW = 2 };
static const float rate = 0.1f;

/* A buffer and its handle. */
typedef struct tensor {
    float *data;
    starpu_data_handle_t handle;
} tensor;

/* The terms that two ranks exchange, and the requests that carry them. */
typedef struct exchange {
    tensor own, other;
    int count, tag;
    MPI_Request request[2];
} exchange;

typedef struct layer {
    int rows, in, out;  /* of this rank */
    bool last, partial; /* no relu; rows of w are split, so that the product is a term of a sum */
    bool reduced;       /* columns of w are split, so that the gradient of h is a term of a sum */
    tensor w;           /* [in, out] and behind it b [out] */
    tensor *h, *next;   /* [rows, in], [rows, out] */
    tensor dz, *before; /* [rows, out]; the layer's before, NULL in the first */
    exchange forward, backward, gradient;
} layer;

typedef struct step {
    int rank, n, batch, at;
    bool data_parallel;
    layer layers[MAIN_JOB_MAX_LAYERS];
    tensor h[MAIN_JOB_MAX_LAYERS + 1], x[WINDOW], labels[WINDOW]; /* labels: int64_t */
    float *images;                                                /* [SAMPLES, 784] */
    int64_t *classes;
    int tasks;
} step;

static float total_batch;

/* ---- What tasks do ---- */

static float *buffer(void *buffers[], int i)
{
    return (float *)STARPU_VECTOR_GET_PTR(buffers[i]);
}

static void add_bias(const layer *l, const float *b, float *h)
{
    for (int r = 0; r < l->rows; r++, h += l->out)
        for (int c = 0; c < l->out; c++) {
            float z = h[c] + b[c];
            h[c] = z > 0 || l->last ? z : 0;
        }
}

/* w R, h R, the result W */
static void forward(void *buffers[], void *arg)
{
    const layer *l = arg;
    const float *w = buffer(buffers, 0);
    float *z = buffer(buffers, 2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, l->rows, l->out, l->in, 1, buffer(buffers, 1), l->in, w,
                l->out, 0, z, l->out);
    if (!l->partial)
        add_bias(l, w + (size_t)l->in * (size_t)l->out, z);
}

/* w R, both terms R, the result W */
static void join_forward(void *buffers[], void *arg)
{
    const layer *l = arg;
    const float *a = buffer(buffers, 1), *b = buffer(buffers, 2);
    float *z = buffer(buffers, 3);
    for (int i = 0; i < l->rows * l->out; i++)
        z[i] = a[i] + b[i];
    add_bias(l, buffer(buffers, 0) + (size_t)l->in * (size_t)l->out, z);
}

/* logits R, labels R, their gradient W */
static void loss(void *buffers[], void *arg)
{
    const layer *l = arg;
    const float *z = buffer(buffers, 0);
    const int64_t *label = (const int64_t *)STARPU_VECTOR_GET_PTR(buffers[1]);
    float *g = buffer(buffers, 2);
    for (int r = 0; r < l->rows; r++, z += l->out, g += l->out) {
        float most = z[0], sum = 0;
        for (int c = 1; c < l->out; c++)
            most = z[c] > most ? z[c] : most;
        for (int c = 0; c < l->out; c++)
            sum += g[c] = expf(z[c] - most);
        for (int c = 0; c < l->out; c++)
            g[c] = (g[c] / sum - (c == label[r])) / total_batch;
    }
}

static void mask(int n, const float *h, float *g)
{
    for (int i = 0; i < n; i++)
        g[i] = h[i] > 0 ? g[i] : 0;
}

/* w R, dz R, h R, its gradient W */
static void backward(void *buffers[], void *arg)
{
    const layer *l = arg;
    float *g = buffer(buffers, 3);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, l->rows, l->in, l->out, 1, buffer(buffers, 1), l->out,
                buffer(buffers, 0), l->out, 0, g, l->in);
    if (!l->reduced)
        mask(l->rows * l->in, buffer(buffers, 2), g);
}

/* both terms R, h R, its gradient W */
static void join_backward(void *buffers[], void *arg)
{
    const layer *l = arg;
    const float *a = buffer(buffers, 0), *b = buffer(buffers, 1);
    float *g = buffer(buffers, 3);
    for (int i = 0; i < l->rows * l->in; i++)
        g[i] = a[i] + b[i];
    mask(l->rows * l->in, buffer(buffers, 2), g);
}

/* The gradient of w and b times alpha, added to beta times what is there. */
static void add_gradient(const layer *l, const float *h, const float *dz, float alpha, float beta, float *w)
{
    float *b = w + (size_t)l->in * (size_t)l->out;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, l->in, l->out, l->rows, alpha, h, l->in, dz, l->out, beta, w,
                l->out);
    for (int c = 0; c < l->out; c++)
        b[c] = beta == 0 ? 0 : b[c];
    for (int r = 0; r < l->rows; r++, dz += l->out)
        for (int c = 0; c < l->out; c++)
            b[c] += alpha * dz[c];
}

/* h R, dz R, w RW */
static void update(void *buffers[], void *arg)
{
    add_gradient(arg, buffer(buffers, 0), buffer(buffers, 1), -rate, 1, buffer(buffers, 2));
}

/* h R, dz R, the gradient W */
static void gradient(void *buffers[], void *arg)
{
    add_gradient(arg, buffer(buffers, 0), buffer(buffers, 1), 1, 0, buffer(buffers, 2));
}

/* both terms R, w RW */
static void join_update(void *buffers[], void *arg)
{
    const layer *l = arg;
    const float *a = buffer(buffers, 0), *b = buffer(buffers, 1);
    float *w = buffer(buffers, 2);
    for (int i = 0; i < (l->in + 1) * l->out; i++)
        w[i] -= rate * (a[i] + b[i]);
}

/* own R, other W */
static void post(void *buffers[], void *arg)
{
    exchange *e = arg;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(buffer(buffers, 1), e->count, MPI_FLOAT, 1 - rank, e->tag, MPI_COMM_WORLD, &e->request[0]);
    MPI_Isend(buffer(buffers, 0), e->count, MPI_FLOAT, 1 - rank, e->tag, MPI_COMM_WORLD, &e->request[1]);
}

/* own R, other RW; both requests are polled by the worker. */
static void finish(void *buffers[], void *arg)
{
    exchange *e = arg;
    (void)buffers;
    for (int done = 0; !done; sched_yield())
        MPI_Testall(2, e->request, &done, MPI_STATUSES_IGNORE);
}

#define CODELET(function, n, ...)                                                                                      \
    static struct starpu_codelet function##_codelet = {                                                                \
        .cpu_funcs = {function}, .nbuffers = n, .modes = {__VA_ARGS__}, .name = #function}
CODELET(forward, 3, STARPU_R, STARPU_R, STARPU_W);
CODELET(join_forward, 4, STARPU_R, STARPU_R, STARPU_R, STARPU_W);
CODELET(loss, 3, STARPU_R, STARPU_R, STARPU_W);
CODELET(backward, 4, STARPU_R, STARPU_R, STARPU_R, STARPU_W);
CODELET(join_backward, 4, STARPU_R, STARPU_R, STARPU_R, STARPU_W);
CODELET(update, 3, STARPU_R, STARPU_R, STARPU_RW);
CODELET(gradient, 3, STARPU_R, STARPU_R, STARPU_W);
CODELET(join_update, 3, STARPU_R, STARPU_R, STARPU_RW);
CODELET(post, 2, STARPU_R, STARPU_W);
CODELET(finish, 2, STARPU_R, STARPU_RW);

/* ---- A step ---- */

static void submit(step *s, struct starpu_codelet *codelet, void *arg, tensor *const *tensors)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = codelet;
    task->cl_arg = arg;
    task->priority = codelet != &finish_codelet; /* it holds the worker, so all else goes first */
    for (int i = 0; i < codelet->nbuffers; i++)
        task->handles[i] = tensors[i]->handle;
    if (starpu_task_submit(task))
        bench_fail("starpu_task_submit failed");
    s->tasks++;
}
#define SUBMIT(codelet, arg, ...) submit(s, &codelet##_codelet, arg, (tensor *const[]){__VA_ARGS__})

static void submit_forward(step *s, layer *l)
{
    exchange *e = &l->forward;
    SUBMIT(forward, l, &l->w, l->h, l->partial ? &e->own : l->next);
    if (l->partial) {
        SUBMIT(post, e, &e->own, &e->other);
        SUBMIT(finish, e, &e->own, &e->other);
        SUBMIT(join_forward, l, &l->w, &e->own, &e->other, l->next);
    }
}

static void submit_backward(step *s, layer *l)
{
    exchange *e = &l->backward;
    if (l->before) {
        SUBMIT(backward, l, &l->w, &l->dz, l->h, l->reduced ? &e->own : l->before);
        if (l->reduced) {
            SUBMIT(post, e, &e->own, &e->other);
            SUBMIT(finish, e, &e->own, &e->other);
            SUBMIT(join_backward, l, &e->own, &e->other, l->h, l->before);
        }
    }
    if (s->data_parallel) {
        SUBMIT(gradient, l, l->h, &l->dz, &l->gradient.own);
        SUBMIT(post, &l->gradient, &l->gradient.own, &l->gradient.other);
    } else {
        SUBMIT(update, l, l->h, &l->dz, &l->w);
    }
}

static void feed(step *s, int slot)
{
    int rows = s->layers[0].rows, first = s->at + (s->data_parallel ? s->rank * rows : 0);
    starpu_data_acquire(s->x[slot].handle, STARPU_W);
    memcpy(s->x[slot].data, s->images + (size_t)first * MAIN_JOB_IN, sizeof(float) * (size_t)rows * MAIN_JOB_IN);
    starpu_data_release(s->x[slot].handle);
    starpu_data_acquire(s->labels[slot].handle, STARPU_W);
    memcpy(s->labels[slot].data, s->classes + first, sizeof(int64_t) * (size_t)rows);
    starpu_data_release(s->labels[slot].handle);
    s->at = s->at + 2 * s->batch <= SAMPLES ? s->at + s->batch : 0;
}

static void submit_step(step *s, int slot)
{
    layer *last = &s->layers[s->n - 1];
    s->tasks = 0;
    s->layers[0].h = &s->x[slot];
    for (int i = 0; i < s->n; i++)
        submit_forward(s, &s->layers[i]);
    SUBMIT(loss, last, last->next, &s->labels[slot], &last->dz);
    for (int i = s->n - 1; i >= 0; i--)
        submit_backward(s, &s->layers[i]);
    for (int i = s->n - 1; i >= 0 && s->data_parallel; i--) {
        exchange *e = &s->layers[i].gradient;
        SUBMIT(finish, e, &e->own, &e->other);
        SUBMIT(join_update, &s->layers[i], &e->own, &e->other, &s->layers[i].w);
    }
}

static void run(void *arg, int n)
{
    step *s = arg;
    starpu_resume();
    for (int i = 0; i < n; i++) {
        if (i >= WINDOW)
            starpu_task_wait_for_n_submitted((unsigned)s->tasks);
        feed(s, i % WINDOW);
        submit_step(s, i % WINDOW);
    }
    starpu_task_wait_for_all();
    starpu_pause();
}

/* ---- Set-up ---- */

static void tensor_of(tensor *t, size_t count, size_t size)
{
    t->data = calloc(count, size);
    for (size_t i = 0; i < count && size == sizeof(float); i++)
        t->data[i] = ((float)rand() / (float)RAND_MAX - 0.5f) / 16;
    starpu_vector_data_register(&t->handle, STARPU_MAIN_RAM, (uintptr_t)t->data, (uint32_t)count, size);
}

static void exchange_of(exchange *e, int count, int *tags)
{
    e->count = count;
    e->tag = (*tags)++;
    tensor_of(&e->own, (size_t)count, sizeof(float));
    tensor_of(&e->other, (size_t)count, sizeof(float));
}

/* As main_job.h splits them: of mp odd layers by rows, even ones by columns but for the last. */
static void layer_of(step *s, int i, const int *size, int *tags)
{
    layer *l = &s->layers[i];
    bool model = !s->data_parallel, split = model && i % 2 == 0 && i < s->n - 1;
    *l = (layer){.last = i == s->n - 1, .partial = model && i % 2};
    l->reduced = split && i > 0;
    l->rows = s->data_parallel ? s->batch / 2 : s->batch;
    l->in = size[i] / (l->partial ? 2 : 1);
    l->out = size[i + 1] / (split ? 2 : 1);
    l->h = i ? &s->h[i] : NULL; /* the first one's is fed */
    l->next = &s->h[i + 1];
    l->before = i ? &s->layers[i - 1].dz : NULL;
    tensor_of(&l->w, (size_t)(l->in + 1) * (size_t)l->out, sizeof(float));
    tensor_of(l->next, (size_t)l->rows * (size_t)l->out, sizeof(float));
    tensor_of(&l->dz, (size_t)l->rows * (size_t)l->out, sizeof(float));
    if (l->partial)
        exchange_of(&l->forward, l->rows * l->out, tags);
    if (l->reduced)
        exchange_of(&l->backward, l->rows * l->in, tags);
    if (s->data_parallel)
        exchange_of(&l->gradient, (l->in + 1) * l->out, tags);
}

static void step_begin(step *s, const char *hidden)
{
    int size[MAIN_JOB_MAX_LAYERS + 1], tags = 0;
    s->n = main_job_sizes(hidden, size);
    srand(1);
    for (int i = 0; i < s->n; i++)
        layer_of(s, i, size, &tags);
    for (int i = 0; i < WINDOW; i++) {
        tensor_of(&s->x[i], (size_t)s->batch * MAIN_JOB_IN, sizeof(float));
        tensor_of(&s->labels[i], (size_t)s->batch, sizeof(int64_t));
    }
    main_job_samples(SAMPLES, &s->images, &s->classes);
    total_batch = (float)s->batch;
}

/* One worker a rank, each rank on its own core where there are two. */
static void start_starpu(int rank)
{
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.sched_policy_name = "prio";
    conf.ncpus = 1;
    conf.ncuda = 0;
    conf.catch_signals = 0;
    conf.use_explicit_workers_bindid = 1;
    conf.workers_bindid[0] = (unsigned)(rank % bench_cores());
    if (starpu_init(&conf))
        bench_fail("starpu_init failed");
}

int main(int argc, char **argv)
{
    const char *mesh = bench_option(argc, argv, "mesh", "dp=2");
    step s = {.batch = bench_number(argc, argv, "batch", 128), .data_parallel = !strcmp(mesh, "dp=2")};
    int threads, ranks;
    if (!s.data_parallel && strcmp(mesh, "mp=2"))
        bench_fail("--mesh takes dp=2 or mp=2");
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 || s.batch % 2 || 2 * s.batch > SAMPLES)
        bench_fail("2 ranks and an even batch of at most %d, please", SAMPLES / 2);
    bench_blas(1);
    start_starpu(s.rank);
    step_begin(&s, bench_option(argc, argv, "hidden", "512,256"));
    starpu_pause();
    bench_serve(s.rank, ranks, run, &s);
    starpu_resume();
    starpu_shutdown(); /* which ends with the handles that are registered */
    MPI_Finalize();
    return 0;
}
#else
int main(void)
{
    bench_fail("built without MPI");
}
#endif
