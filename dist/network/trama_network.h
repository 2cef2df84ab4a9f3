/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and layers of neural networks, which other ops compute, so that layouts and gradients follow from these ops.
 * trama_program.h tells errors; dims are negative from the end. */
#ifndef TRAMA_NETWORK_H
#define TRAMA_NETWORK_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* ---- Losses ---- */

/* Of the losses of all samples. */
typedef enum trama_loss_form {
    TRAMA_LOSS_MEAN, /* their mean, a scalar; of weighted classes the sum divided by the sum of the weights */
    TRAMA_LOSS_SUM,  /* their sum, a scalar */
    TRAMA_LOSS_EACH  /* all of them */
} trama_loss_form;

/* Mean cross entropy: z [.., n] logits, labels [..] integers in 0..n-1 (other labels give NaN) -> the mean over all
 * samples of -log softmax(z)[label], a scalar. Of z [batch, n] it is one op where the classes are whole; where they
 * are split, and for other ranks, it is computed as trama_cross_entropy_with. */
#define trama_cross_entropy(z, labels) trama_cross_entropy_at(TRAMA_HERE, z, labels)
trama_value *trama_cross_entropy_at(trama_where where, trama_value *z, trama_value *labels);

/* Cross entropy: logits z with the classes along dim, labels in the shape of z without dim. The loss of a sample is
 *
 *   -(1 - smoothing) w[label] log p[label] - smoothing / classes sum of w[c] log p[c],  p = softmax of z along dim,
 *
 * as PyTorch's. weights: [classes], or NULL for ones. smoothing: 0 to 1. Samples whose label is `ignored`, which need
 * be no class, have the loss 0 and do not count in the mean. Other labels that are no class give NaN. Where dim is
 * split, no logits move: each process needs the largest logit, the sum of the exponentials and the picked logit of each
 * sample, three sums or extremes in the shape of the labels. */
#define trama_cross_entropy_with(z, labels, dim, weights, ignored, smoothing, form)                                    \
    trama_cross_entropy_with_at(TRAMA_HERE, z, labels, dim, weights, ignored, smoothing, form)
trama_value *trama_cross_entropy_with_at(trama_where where, trama_value *z, trama_value *labels, int dim,
                                         trama_value *weights, int64_t ignored, double smoothing, trama_loss_form form);
/* Negative log likelihood: -w[label] log_p[label], of logarithms of probabilities; else as above. */
#define trama_nll_loss(log_p, labels, dim, weights, ignored, form)                                                     \
    trama_nll_loss_at(TRAMA_HERE, log_p, labels, dim, weights, ignored, form)
trama_value *trama_nll_loss_at(trama_where where, trama_value *log_p, trama_value *labels, int dim,
                               trama_value *weights, int64_t ignored, trama_loss_form form);
/* Binary cross entropy of logits x and targets t in 0 to 1: -w t log s(x) - (1 - t) log(1 - s(x)), s the sigmoid, w =
 * positive_weight. It does not overflow. */
#define trama_binary_cross_entropy(x, t, positive_weight, form)                                                        \
    trama_binary_cross_entropy_at(TRAMA_HERE, x, t, positive_weight, form)
trama_value *trama_binary_cross_entropy_at(trama_where where, trama_value *x, trama_value *t, double positive_weight,
                                           trama_loss_form form);
#define trama_square_loss(x, y, form) trama_square_loss_at(TRAMA_HERE, x, y, form) /* (x - y)^2 */
trama_value *trama_square_loss_at(trama_where where, trama_value *x, trama_value *y, trama_loss_form form);
#define trama_absolute_loss(x, y, form) trama_absolute_loss_at(TRAMA_HERE, x, y, form) /* |x - y| */
trama_value *trama_absolute_loss_at(trama_where where, trama_value *x, trama_value *y, trama_loss_form form);
/* Huber's loss: e^2 / 2 for |e| <= delta, else delta (|e| - delta / 2), e = x - y. delta > 0. PyTorch's smooth L1 loss
 * is this one divided by delta. */
#define trama_huber_loss(x, y, delta, form) trama_huber_loss_at(TRAMA_HERE, x, y, delta, form)
trama_value *trama_huber_loss_at(trama_where where, trama_value *x, trama_value *y, double delta, trama_loss_form form);

/* ---- Layers ---- */

/* Layer norm over the last `dims` dims: (x - mean) / sqrt(variance + eps), times weight plus bias, which broadcast and
 * may be NULL. eps >= 0, usually 1e-5. Means are sums in double. Where one normalised dim is split, processes exchange
 * two sums of each line, RMS norm one. Several of them become one dim first, of which the first may be split evenly. */
#define trama_layer_norm(x, dims, weight, bias, eps) trama_layer_norm_at(TRAMA_HERE, x, dims, weight, bias, eps)
trama_value *trama_layer_norm_at(trama_where where, trama_value *x, int dims, trama_value *weight, trama_value *bias,
                                 double eps);
/* x / sqrt(mean of x^2 + eps), times weight. */
#define trama_rms_norm(x, dims, weight, eps) trama_rms_norm_at(TRAMA_HERE, x, dims, weight, eps)
trama_value *trama_rms_norm_at(trama_where where, trama_value *x, int dims, trama_value *weight, double eps);
/* The layer norm of each group of channels of x [batch, channels, ..], with weight and bias [channels] or NULL. As many
 * groups as channels: instance norm. */
#define trama_group_norm(x, groups, weight, bias, eps) trama_group_norm_at(TRAMA_HERE, x, groups, weight, bias, eps)
trama_value *trama_group_norm_at(trama_where where, trama_value *x, int64_t groups, trama_value *weight,
                                 trama_value *bias, double eps);

/* Batch norm (Ioffe and Szegedy 2015) of x [n, channels, ..]: each channel less its mean, divided by sqrt(variance +
 * eps), times weight plus bias, [channels] or NULL. The statistics are those of x over all dims but the channels, over
 * all processes that the batch is split over. *mean and *variance, unless NULL, become the statistics [channels]; this
 * variance is divided by one element less, as PyTorch keeps it. trama_batch_norm_with takes statistics [channels] that
 * are given: those of trama_running, for inference. */
#define trama_batch_norm(x, weight, bias, eps, mean, variance)                                                         \
    trama_batch_norm_at(TRAMA_HERE, x, weight, bias, eps, mean, variance)
trama_value *trama_batch_norm_at(trama_where where, trama_value *x, trama_value *weight, trama_value *bias, double eps,
                                 trama_value **mean, trama_value **variance);
#define trama_batch_norm_with(x, mean, variance, weight, bias, eps)                                                    \
    trama_batch_norm_with_at(TRAMA_HERE, x, mean, variance, weight, bias, eps)
trama_value *trama_batch_norm_with_at(trama_where where, trama_value *x, trama_value *mean, trama_value *variance,
                                      trama_value *weight, trama_value *bias, double eps);
/* Updates a state to (1 - momentum) state + momentum value; both have one shape, and 0 <= momentum <= 1. A target that
 * trains names the result. */
#define trama_running(state, value, momentum) trama_running_at(TRAMA_HERE, state, value, momentum)
trama_value *trama_running_at(trama_where where, trama_value *state, trama_value *value, double momentum);

/* Elements of x become 0 with the given probability, 0 <= probability < 1, and the others are divided by 1 -
 * probability. They are chosen by trama_uniform with this seed and stream: the same ones on every mesh, others in each
 * run. A target for inference has no dropout: leave the call out there, or give the probability 0. All extents of x are
 * known. */
#define trama_dropout(x, probability, seed, stream) trama_dropout_at(TRAMA_HERE, x, probability, seed, stream)
trama_value *trama_dropout_at(trama_where where, trama_value *x, double probability, uint64_t seed, uint32_t stream);

/* Gated linear units: dim of x has two halves a and b, and the result is a sigmoid(b), silu(a) b or gelu(a) b. */
#define trama_glu(x, dim) trama_glu_at(TRAMA_HERE, x, dim)
trama_value *trama_glu_at(trama_where where, trama_value *x, int dim);
#define trama_swiglu(x, dim) trama_swiglu_at(TRAMA_HERE, x, dim)
trama_value *trama_swiglu_at(trama_where where, trama_value *x, int dim);
#define trama_geglu(x, dim) trama_geglu_at(TRAMA_HERE, x, dim)
trama_value *trama_geglu_at(trama_where where, trama_value *x, int dim);

/* Rotary embedding (Su et al. 2021) of x [.., n, d], d even: at position m, from `first` on, the pair i of elements is
 * turned by the angle m base^(-2 i / d), base > 0, usually 10,000. Pairs are elements 2 i and 2 i + 1, interleaved, or
 * i and i + d / 2, as in GPT-NeoX and LLaMA. n and d are known. */
#define trama_rotary(x, base, first, interleaved) trama_rotary_at(TRAMA_HERE, x, base, first, interleaved)
trama_value *trama_rotary_at(trama_where where, trama_value *x, double base, int64_t first, bool interleaved);

TRAMA_API_END
#endif
