/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the main job as plain loops in double precision, and random numbers as trama_ops.h describes them:
 * what training is compared with. Knows nothing of Trama. */
#ifndef PLAIN_H
#define PLAIN_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. */
static inline void plain_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t word[4])
{
    uint32_t k0 = key[0], k1 = key[1], c[4];
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(word, c, sizeof c);
}

static inline double plain_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, double low, double high)
{
    uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), stream, step}, word[4];
    plain_philox(counter, (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, word);
    return low + (high - low) * ((word[i % 4] >> 8) * 0x1p-24);
}

/* ---- The network ---- */

enum { PLAIN_MOST_LAYERS = 4 };

/* A parameter with its gradient and the moments of adamw. */
typedef struct plain_parameter {
    int64_t n;
    double *value, *gradient, *m, *v;
} plain_parameter;

typedef struct plain_net {
    int n; /* layers */
    int size[PLAIN_MOST_LAYERS + 1];
    plain_parameter w[PLAIN_MOST_LAYERS], b[PLAIN_MOST_LAYERS]; /* w [in, out] */
    int64_t steps;
} plain_net;

static inline plain_parameter plain_parameter_new(int64_t n)
{
    double *all = calloc((size_t)(4 * n), sizeof *all);
    return (plain_parameter){n, all, all + n, all + 2 * n, all + 3 * n};
}

/* w0 b0 w1 b1 ... */
static inline plain_parameter *plain_parameter_at(plain_net *p, int i)
{
    return i % 2 ? &p->b[i / 2] : &p->w[i / 2];
}

/* w0 b0 w1 b1 ... are streams 0 1 2 ...; weights uniform in +-1/sqrt(in), biases 0. */
static inline plain_net plain_new(int n, const int *size, uint64_t seed)
{
    plain_net p = {.n = n};
    memcpy(p.size, size, (size_t)(n + 1) * sizeof *size);
    for (int l = 0; l < n; l++) {
        p.w[l] = plain_parameter_new((int64_t)size[l] * size[l + 1]);
        p.b[l] = plain_parameter_new(size[l + 1]);
        double bound = 1 / sqrt(size[l]);
        for (int64_t i = 0; i < p.w[l].n; i++)
            p.w[l].value[i] = plain_uniform(seed, (uint32_t)(2 * l), 0, (uint64_t)i, -bound, bound);
    }
    return p;
}

static inline void plain_free(plain_net *p)
{
    for (int l = 0; l < p->n; l++) {
        free(p->w[l].value);
        free(p->b[l].value);
    }
}

/* y [batch, out] = x [batch, in] w + b, relu where asked */
static inline void plain_forward(const double *x, int batch, const plain_net *p, int l, double *y)
{
    int in = p->size[l], out = p->size[l + 1];
    for (int r = 0; r < batch; r++) {
        double *row = y + (int64_t)r * out;
        memcpy(row, p->b[l].value, (size_t)out * sizeof *row);
        for (int k = 0; k < in; k++)
            for (int c = 0; c < out; c++)
                row[c] += x[(int64_t)r * in + k] * p->w[l].value[(int64_t)k * out + c];
        for (int c = 0; c < out && l < p->n - 1; c++)
            row[c] = row[c] > 0 ? row[c] : 0;
    }
}

/* Mean cross entropy of z [batch, n]; z becomes its gradient. */
static inline double plain_loss(double *z, int batch, int n, const int64_t *label)
{
    double loss = 0;
    for (int r = 0; r < batch; r++) {
        double *row = z + (int64_t)r * n, top = row[0], sum = 0;
        for (int c = 1; c < n; c++)
            top = row[c] > top ? row[c] : top;
        for (int c = 0; c < n; c++)
            sum += exp(row[c] - top);
        loss += log(sum) - (row[label[r]] - top);
        for (int c = 0; c < n; c++)
            row[c] = (exp(row[c] - top) / sum - (c == label[r])) / batch;
    }
    return loss / batch;
}

/* Gradients of a layer from d [batch, out], and of its operand x, which relu made, in dx (NULL: not wanted). */
static inline void plain_backward(plain_net *p, int l, int batch, const double *x, const double *d, double *dx)
{
    int in = p->size[l], out = p->size[l + 1];
    memset(p->w[l].gradient, 0, (size_t)p->w[l].n * sizeof(double));
    memset(p->b[l].gradient, 0, (size_t)p->b[l].n * sizeof(double));
    for (int r = 0; r < batch; r++) {
        const double *row = d + (int64_t)r * out;
        for (int c = 0; c < out; c++)
            p->b[l].gradient[c] += row[c];
        for (int k = 0; k < in; k++) {
            double sum = 0, at = x[(int64_t)r * in + k];
            for (int c = 0; c < out; c++) {
                p->w[l].gradient[(int64_t)k * out + c] += at * row[c];
                sum += row[c] * p->w[l].value[(int64_t)k * out + c];
            }
            if (dx)
                dx[(int64_t)r * in + k] = at > 0 ? sum : 0;
        }
    }
}

/* Forward and backward; the loss. */
static inline double plain_gradients(plain_net *p, int batch, const double *x, const int64_t *label)
{
    double *a[PLAIN_MOST_LAYERS + 1], *d[PLAIN_MOST_LAYERS + 1];
    a[0] = (double *)x;
    d[0] = NULL;
    for (int l = 0; l < p->n; l++) {
        a[l + 1] = malloc((size_t)batch * (size_t)p->size[l + 1] * sizeof(double));
        d[l + 1] = malloc((size_t)batch * (size_t)p->size[l + 1] * sizeof(double));
        plain_forward(a[l], batch, p, l, a[l + 1]);
    }
    double loss = plain_loss(a[p->n], batch, p->size[p->n], label);
    memcpy(d[p->n], a[p->n], (size_t)batch * (size_t)p->size[p->n] * sizeof(double));
    for (int l = p->n - 1; l >= 0; l--)
        plain_backward(p, l, batch, a[l], d[l + 1], d[l]);
    for (int l = 1; l <= p->n; l++) {
        free(a[l]);
        free(d[l]);
    }
    return loss;
}

static inline void plain_sgd(plain_parameter *q, double lr)
{
    for (int64_t i = 0; i < q->n; i++)
        q->value[i] -= lr * q->gradient[i];
}

/* Loshchilov and Hutter 2019, algorithm 2, with weight decay lr * decay. */
static inline void plain_adamw(plain_parameter *q, double lr, int64_t step)
{
    const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01;
    for (int64_t i = 0; i < q->n; i++) {
        double g = q->gradient[i];
        q->m[i] = beta1 * q->m[i] + (1 - beta1) * g;
        q->v[i] = beta2 * q->v[i] + (1 - beta2) * g * g;
        double m = q->m[i] / (1 - pow(beta1, (double)step)), v = q->v[i] / (1 - pow(beta2, (double)step));
        q->value[i] -= lr * (m / (sqrt(v) + eps) + decay * q->value[i]);
    }
}

/* One step of training; the loss before it. adamw: with its defaults, else plain sgd. */
static inline double plain_step(plain_net *p, int batch, const double *x, const int64_t *label, bool adamw, double lr)
{
    double loss = plain_gradients(p, batch, x, label);
    p->steps++;
    for (int i = 0; i < 2 * p->n; i++)
        if (adamw)
            plain_adamw(plain_parameter_at(p, i), lr, p->steps);
        else
            plain_sgd(plain_parameter_at(p, i), lr);
    return loss;
}

#endif
