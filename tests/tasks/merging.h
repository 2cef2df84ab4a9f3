/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients merged over micro-steps, beside plain loops over the whole batch. */
#ifndef MERGING_H
#define MERGING_H

#include "training.h"

/* Batches of the micro-steps of one cycle; 0 ends. */
typedef struct cycle {
    int batch[8];
} cycle;

static inline int cycle_length(const cycle *c)
{
    int n = 0;
    while (n < 8 && c->batch[n])
        n++;
    return n;
}

static inline int cycle_samples(const cycle *c)
{
    int n = 0;
    for (int i = 0; i < cycle_length(c); i++)
        n += c->batch[i];
    return n;
}

/* Micro-step i of the samples of a cycle. */
static inline void run_part(network *net, const samples *all, int from, int n)
{
    size_t row = (size_t)net->size[0] * trama_dtype_size(net->dtype);
    must(trama_feed(net->e, net->x, (char *)all->fed + (size_t)from * row, TRAMA_SHAPE(n, net->size[0])));
    must(trama_feed(net->e, net->y, all->y + from, TRAMA_SHAPE(n)));
    must(trama_run(net->e, net->train));
}

static inline void run_cycle(network *net, const samples *all, const cycle *c)
{
    for (int i = 0, from = 0; i < cycle_length(c); from += c->batch[i++])
        run_part(net, all, from, c->batch[i]);
}

static inline network merging_network_how(const char *mesh, trama_dtype dtype, bool adamw, int64_t k, unsigned how)
{
    network net = network_new(mesh, dtype, adamw, 3, small_sizes);
    demand(trama_gradient_merge(net.train, k, how) == net.train, "%s", trama_program_error(net.program));
    net.e = compile(net.program);
    return net;
}

static inline network merging_network(const char *mesh, trama_dtype dtype, bool adamw, int64_t k)
{
    return merging_network_how(mesh, dtype, adamw, k, TRAMA_MERGE_AVG);
}

/* The norm of what a value differs by from what is wanted, beside the norm of that. */
static inline double tensor_differs(trama_executable *e, const trama_value *v, const double *wanted)
{
    int64_t n = trama_shape_count(trama_value_shape(v));
    trama_dtype dtype = trama_value_dtype(v);
    size_t bytes = (size_t)n * trama_dtype_size(dtype);
    double apart = 0, norm = 0;
    void *read = malloc(bytes);
    must(trama_read(e, v, read, bytes));
    for (int64_t k = 0; k < n; k++) {
        double d = number_at(read, dtype, k) - wanted[k];
        apart += d * d;
        norm += wanted[k] * wanted[k];
    }
    free(read);
    return sqrt(apart / norm);
}

/* Of every parameter: the largest. */
static inline double tensors_differ(const network *net, plain_net *plain)
{
    double worst = 0;
    for (int i = 0; i < 2 * net->n; i++) {
        double d = tensor_differs(net->e, network_parameter(net, i), plain_parameter_at(plain, i)->value);
        worst = d <= worst ? worst : d; /* NaN too */
    }
    return worst;
}

/* The cycles in turn; one that is shorter than k is flushed. how: trama_merge_kind, of which the mean is taken anyway.
 */
static inline void merge_how_beside_plain(const char *mesh, trama_dtype dtype, bool adamw, int64_t k, unsigned how,
                                          int n_cycles, const cycle *cycles, int steps, double tolerance)
{
    network net = merging_network_how(mesh, dtype, adamw, k, how | TRAMA_MERGE_AVG);
    plain_net plain = plain_new(3, small_sizes, SEED);
    for (int step = 0; step < steps; step++) {
        const cycle *c = &cycles[step % n_cycles];
        samples s = samples_new(&net, cycle_samples(c), step);
        run_cycle(&net, &s, c);
        if (cycle_length(c) < k)
            must(trama_flush(net.e, net.train));
        plain_step(&plain, s.n, s.x, s.y, adamw, net.lr);
        samples_free(&s);
    }
    double wrong = tensors_differ(&net, &plain);
    demand(wrong <= tolerance, "mesh %s, %s, %s, k = %d: parameters differ by %g", mesh ? mesh : "none",
           trama_dtype_name(dtype), adamw ? "adamw" : "sgd", (int)k, wrong);
    plain_free(&plain);
    network_free(&net);
}

static inline void merge_beside_plain(const char *mesh, trama_dtype dtype, bool adamw, int64_t k, int n_cycles,
                                      const cycle *cycles, int steps, double tolerance)
{
    merge_how_beside_plain(mesh, dtype, adamw, k, TRAMA_MERGE_AVG, n_cycles, cycles, steps, tolerance);
}

#endif
