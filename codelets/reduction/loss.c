/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy of logits z [batch, n] and labels [batch], and its gradient. The losses are divided by the global
 * batch, so that those of pieces are terms of a sum. A label outside 0..n-1 gives NaN, in the loss and in its row of
 * the gradient. */
#include "line.h"
#include "ops.h"

static int64_t label_at(const trama_view *labels, int64_t i)
{
    const int64_t at = i * labels->stride[0];
    switch (labels->dtype) {
    case TRAMA_I64:
        return ((const int64_t *)labels->data)[at];
    case TRAMA_I32:
        return ((const int32_t *)labels->data)[at];
    case TRAMA_U8:
        return ((const uint8_t *)labels->data)[at];
    default:
        return -1;
    }
}

#define LOSS(dtype, type, unused)                                                                                      \
    static double loss_##dtype(const trama_view *z, const trama_view *labels)                                          \
    {                                                                                                                  \
        double loss = 0;                                                                                               \
        for (int64_t i = 0; i < z->extent[0]; i++) {                                                                   \
            const type *row = (const type *)z->data + i * z->stride[0];                                                \
            const int64_t label = label_at(labels, i);                                                                 \
            NUMBER_##dtype top;                                                                                        \
            if (label < 0 || label >= z->extent[1])                                                                    \
                return NAN;                                                                                            \
            loss += log(exp_sum_##dtype(row, z->stride[1], z->extent[1], &top));                                       \
            loss += (double)top - LOAD(dtype, row[label * z->stride[1]]);                                             \
        }                                                                                                              \
        return loss;                                                                                                   \
    }
EACH_FLOAT(LOSS, )

#define LOSS_CASE(dtype, type, unused)                                                                                 \
    case dtype:                                                                                                        \
        *(type *)call->out[0].data = OF_REAL(dtype, loss_##dtype(z, labels) / batch);                                 \
        break;

void cpu_cross_entropy(const trama_call *call)
{
    const trama_view *z = &call->in[0], *labels = &call->in[1];
    const double batch = (double)z->global[0];

    switch (z->dtype) {
        EACH_FLOAT(LOSS_CASE, )
    default:
        kernel_impossible(call, "logits are real numbers");
    }
}

/* to = factor exp(row - top), less g at the label */
#define LOSS_GRAD(dtype, type, unused)                                                                                 \
    static void loss_grad_row_##dtype(int64_t n, type *to, int64_t to_step, const type *row, int64_t step,             \
                                      NUMBER_##dtype top, double factor, int64_t label, double g)                      \
    {                                                                                                                  \
        NUMBER_##dtype terms[LINE_BLOCK];                                                                              \
        for (int64_t from = 0; from < n; from += LINE_BLOCK) {                                                         \
            exp_block_##dtype(terms, row + from * step, step, n - from, top);                                          \
            for (int64_t j = from; j < n && j < from + LINE_BLOCK; j++)                                                \
                to[j * to_step] = OF_REAL(dtype, factor * terms[j - from] - (j == label ? g : 0));                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void loss_grad_##dtype(const trama_call *call)                                                              \
    {                                                                                                                  \
        const trama_view *z = &call->in[0], *out = &call->out[0];                                                      \
        const int64_t n = z->extent[1];                                                                                \
        const double g = LOAD(dtype, *(const type *)call->in[2].data) / (double)z->global[0];                         \
        for (int64_t i = 0; i < z->extent[0]; i++) {                                                                   \
            const type *row = (const type *)z->data + i * z->stride[0];                                                \
            const int64_t label = label_at(&call->in[1], i);                                                           \
            const bool known = label >= 0 && label < n;                                                                \
            NUMBER_##dtype top = 0;                                                                                    \
            const double factor = known ? g / exp_sum_##dtype(row, z->stride[1], n, &top) : NAN;                       \
            loss_grad_row_##dtype(n, (type *)out->data + i * out->stride[0], out->stride[1], row, z->stride[1], top,   \
                                  factor, label, g);                                                                   \
        }                                                                                                              \
    }
EACH_FLOAT(LOSS_GRAD, )

#define LOSS_GRAD_CASE(dtype, type, unused)                                                                            \
    case dtype:                                                                                                        \
        loss_grad_##dtype(call);                                                                                       \
        break;

void cpu_cross_entropy_grad(const trama_call *call)
{
    switch (call->out[0].dtype) {
        EACH_FLOAT(LOSS_GRAD_CASE, )
    default:
        kernel_impossible(call, "logits are real numbers");
    }
}
