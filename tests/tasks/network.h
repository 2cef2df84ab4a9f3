/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the main job through Trama on any mesh, beside the plain loops of plain.h. */
#ifndef NETWORK_H
#define NETWORK_H

#include "harness.h"
#include "plain.h"

enum { SEED = 1 };
static const int small_sizes[] = {20, 17, 13, 10};

typedef struct network {
    int n;
    int size[PLAIN_MOST_LAYERS + 1];
    trama_dtype dtype, inner; /* of parameters, samples and loss; of the layers */
    bool adamw;
    double lr;
    trama_program *program;
    trama_mesh *mesh;
    trama_value *x, *y, *logits, *loss, *w[PLAIN_MOST_LAYERS], *b[PLAIN_MOST_LAYERS];
    trama_target *train, *eval; /* eval: logits and loss of the same parameters */
    trama_executable *e;
} network;

/* w0 b0 w1 b1 ... */
static inline trama_value *network_parameter(const network *net, int i)
{
    return i % 2 ? net->b[i / 2] : net->w[i / 2];
}

static inline int axis_named(const trama_mesh *mesh, const char *name)
{
    for (int a = 0; a < trama_mesh_ndim(mesh); a++)
        if (trama_mesh_axis_name(mesh, a) && !strcmp(trama_mesh_axis_name(mesh, a), name))
            return a;
    return -1;
}

/* Replicated but for one axis; nothing without a mesh. */
static inline void shard_along(trama_value *v, const trama_mesh *mesh, const char *axis, const char *placement)
{
    char layout[64] = "";
    if (!mesh)
        return;
    int at = axis_named(mesh, axis);
    for (int a = 0; a < trama_mesh_ndim(mesh); a++)
        snprintf(layout + strlen(layout), sizeof layout - strlen(layout), "%s%s", a ? "," : "",
                 a == at ? placement : "R");
    trama_shard(v, mesh, layout);
}

/* Hidden layers are split alternately by column and by row; a last layer whose turn would be column is replicated. */
static inline const char *layer_placement(int l, int n)
{
    return l % 2 ? "S(0)" : l < n - 1 ? "S(1)" : "R";
}

static inline void network_layers(network *net)
{
    trama_value *h = trama_cast(net->x, net->inner);
    for (int l = 0; l < net->n; l++) {
        char name[16];
        double bound = 1 / sqrt(net->size[l]);
        trama_init init = {-bound, bound, SEED, (uint64_t)(2 * l)};
        snprintf(name, sizeof name, "w%d", l);
        net->w[l] = trama_parameter(net->program, name, net->dtype, TRAMA_SHAPE(net->size[l], net->size[l + 1]), &init);
        snprintf(name, sizeof name, "b%d", l);
        net->b[l] = trama_parameter(net->program, name, net->dtype, TRAMA_SHAPE(net->size[l + 1]), NULL);
        shard_along(net->w[l], net->mesh, "mp", layer_placement(l, net->n));
        h = trama_add(trama_matmul(h, trama_cast(net->w[l], net->inner)), trama_cast(net->b[l], net->inner));
        if (l < net->n - 1)
            h = trama_relu(h);
    }
    net->logits = trama_cast(h, net->dtype);
}

/* Without a target. spec NULL: no annotation at all. */
static inline network network_mixed(const char *spec, trama_dtype dtype, trama_dtype inner, int n, const int *size)
{
    network net = {.n = n, .dtype = dtype, .inner = inner};
    memcpy(net.size, size, (size_t)(n + 1) * sizeof *size);
    net.mesh = spec ? trama_mesh_create(spec) : NULL;
    demand(!spec || net.mesh, "mesh %s: %s", spec, trama_error());
    net.program = trama_program_create();
    net.x = trama_input(net.program, "x", dtype, TRAMA_SHAPE(TRAMA_ANY, size[0]));
    net.y = trama_input(net.program, "y", TRAMA_I64, TRAMA_SHAPE(TRAMA_ANY));
    shard_along(net.x, net.mesh, "dp", "S(0)");
    network_layers(&net);
    net.loss = trama_cross_entropy(net.logits, net.y);
    return net;
}

static inline network network_untrained(const char *spec, trama_dtype dtype, int n, const int *size)
{
    return network_mixed(spec, dtype, dtype, n, size);
}

/* The executable is not made yet. */
static inline network network_trained_by(network net, const trama_optimizer *optimizer)
{
    net.train = trama_target_create(net.program, "train", trama_minimize(net.loss, optimizer), net.loss);
    net.eval = trama_target_create(net.program, "eval", net.logits, net.loss);
    must(trama_program_status(net.program));
    return net;
}

static inline network network_trained(network net, bool adamw)
{
    net.adamw = adamw;
    net.lr = adamw ? 1e-3 : 0.1;
    const trama_optimizer optimizer = adamw ? trama_adamw(net.lr) : trama_sgd(net.lr);
    return network_trained_by(net, &optimizer);
}

static inline network network_new(const char *spec, trama_dtype dtype, bool adamw, int n, const int *size)
{
    return network_trained(network_untrained(spec, dtype, n, size), adamw);
}

static inline void network_free(network *net)
{
    must(trama_executable_destroy(&net->e));
    trama_program_destroy(&net->program);
    trama_mesh_destroy(&net->mesh);
}

/* ---- Batches: samples that f32 holds exactly, a function of step and batch ---- */

typedef struct samples {
    int n;
    double *x;
    void *fed; /* x in the network's dtype */
    int64_t *y;
} samples;

static inline samples samples_new(const network *net, int n, int step)
{
    size_t many = (size_t)n * (size_t)net->size[0];
    samples s = {n, malloc(many * sizeof(double)), malloc(many * sizeof(double)), malloc((size_t)n * sizeof(int64_t))};
    uint64_t state = (uint64_t)step * 1000 + (uint64_t)n;
    for (size_t i = 0; i < many; i++) {
        s.x[i] = (double)random_to(&state, 256) / 256;
        set_number(s.fed, net->dtype, (int64_t)i, s.x[i]);
    }
    for (int i = 0; i < n; i++) /* something to learn: which tenth of the row is brightest */
        s.y[i] = (int64_t)(s.x[(int64_t)i * net->size[0]] * net->size[net->n]);
    return s;
}

static inline void samples_free(samples *s)
{
    free(s->x);
    free(s->fed);
    free(s->y);
}

static inline void network_feed(network *net, const samples *s)
{
    must(trama_feed(net->e, net->x, s->fed, TRAMA_SHAPE(s->n, net->size[0])));
    must(trama_feed(net->e, net->y, s->y, TRAMA_SHAPE(s->n)));
}

static inline double network_loss(network *net)
{
    double room = 0;
    must(trama_read(net->e, net->loss, &room, trama_dtype_size(net->dtype)));
    return number_at(&room, net->dtype, 0);
}

/* Every parameter against the plain one: the largest difference beside 1. */
static inline double parameters_differ(network *net, const plain_net *plain)
{
    double worst = 0;
    for (int l = 0; l < net->n; l++)
        for (int i = 0; i < 2; i++) {
            const plain_parameter *q = i ? &plain->b[l] : &plain->w[l];
            size_t bytes = (size_t)q->n * trama_dtype_size(net->dtype);
            void *read = malloc(bytes);
            must(trama_read(net->e, i ? net->b[l] : net->w[l], read, bytes));
            for (int64_t k = 0; k < q->n; k++) {
                double d = fabs(number_at(read, net->dtype, k) - q->value[k]) / fmax(1, fabs(q->value[k]));
                worst = d <= worst ? worst : d; /* NaN too */
            }
            free(read);
        }
    return worst;
}

/* ---- Training beside the plain loops ---- */

typedef struct training {
    const char *mesh;
    trama_dtype dtype;
    bool adamw;
    int steps;
    double tolerance; /* of every loss, relative; of the parameters at the end, ten times it */
    int n;
    const int *size;
    int batches[3]; /* taken in turn; 0 ends */
} training;

static inline int batch_of(const training *t, int step)
{
    int n = 0;
    while (n < 3 && t->batches[n])
        n++;
    return t->batches[step % n];
}

/* The layers are computed in the inner type. */
static inline void train_in(trama_dtype inner, const training *t)
{
    network net = network_trained(network_mixed(t->mesh, t->dtype, inner, t->n, t->size), t->adamw);
    plain_net plain = plain_new(t->n, t->size, SEED);
    net.e = compile(net.program);
    for (int step = 0; step < t->steps; step++) {
        samples s = samples_new(&net, batch_of(t, step), step);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        double loss = network_loss(&net), wanted = plain_step(&plain, s.n, s.x, s.y, t->adamw, net.lr);
        demand(relative(loss, wanted) <= t->tolerance, "mesh %s, %s, %s: the loss of step %d is %.17g instead of %.17g",
               t->mesh ? t->mesh : "none", trama_dtype_name(t->dtype), t->adamw ? "adamw" : "sgd", step, loss, wanted);
        samples_free(&s);
    }
    double wrong = parameters_differ(&net, &plain);
    demand(wrong <= 10 * t->tolerance, "mesh %s, %s, %s: parameters differ by %g after %d steps",
           t->mesh ? t->mesh : "none", trama_dtype_name(t->dtype), t->adamw ? "adamw" : "sgd", wrong, t->steps);
    plain_free(&plain);
    network_free(&net);
}

static inline void train_beside_plain(const training *t)
{
    train_in(t->dtype, t);
}

/* ---- Bits ---- */

/* Losses and final parameters as they are in memory. */
typedef struct trace {
    size_t n;
    unsigned char *at;
} trace;

static inline void trace_read(trace *t, trama_executable *e, const trama_value *v, size_t bytes)
{
    t->at = realloc(t->at, t->n + bytes);
    must(trama_read(e, v, t->at + t->n, bytes));
    t->n += bytes;
}

static inline trace trace_of(const char *mesh, trama_dtype dtype, bool adamw, int steps, int batch)
{
    network net = network_new(mesh, dtype, adamw, 3, small_sizes);
    trace t = {0};
    net.e = compile(net.program);
    for (int step = 0; step < steps; step++) {
        samples s = samples_new(&net, batch, step);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        trace_read(&t, net.e, net.loss, trama_dtype_size(dtype));
        samples_free(&s);
    }
    for (int l = 0; l < net.n; l++) {
        size_t count = (size_t)net.size[l] * (size_t)net.size[l + 1];
        trace_read(&t, net.e, net.w[l], count * trama_dtype_size(dtype));
        trace_read(&t, net.e, net.b[l], (size_t)net.size[l + 1] * trama_dtype_size(dtype));
    }
    network_free(&net);
    return t;
}

static inline bool trace_equal(const trace *a, const trace *b)
{
    return a->n == b->n && !memcmp(a->at, b->at, a->n);
}

#endif
