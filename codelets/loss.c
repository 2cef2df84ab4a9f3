/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy of logits z [batch, n] and labels [batch], and its gradient. The global batch divides, so that losses
 * of pieces are terms of a sum. A label outside 0..n-1 gives NaN, in the loss and in its row of the gradient. */
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

enum { BLOCK = 16 * LANES };

/* terms = exp(z - top) for at most BLOCK elements of a row, filled up to whole vectors; returns how many are real. */
#define EXP_BLOCK(dtype, type, unused)                                                                                 \
    static int64_t exp_block_##dtype(type *terms, const type *z, int64_t step, int64_t left, type top)                 \
    {                                                                                                                  \
        const int64_t m = left < BLOCK ? left : BLOCK, full = (m + LANES - 1) / LANES * LANES;                         \
        for (int64_t j = 0; j < m; j++)                                                                                \
            terms[j] = z[j * step];                                                                                    \
        for (int64_t j = m; j < full; j++)                                                                             \
            terms[j] = LOWEST_##dtype;                                                                                 \
        line_exp_##dtype(full, terms, 1, terms, 1, top);                                                               \
        return m;                                                                                                      \
    }
EACH_FLOAT(EXP_BLOCK, )

/* Of a row z [n]: its maximum, and the sum of exp(z - maximum). */
#define ROW_SUM(dtype, type, unused)                                                                                   \
    static double row_sum_##dtype(const type *z, int64_t step, int64_t n, type *top)                                   \
    {                                                                                                                  \
        double sum = 0;                                                                                                \
        type terms[BLOCK];                                                                                             \
        *top = line_max_##dtype(n, z, step);                                                                           \
        for (int64_t from = 0; from < n; from += BLOCK) {                                                              \
            const int64_t m = exp_block_##dtype(terms, z + from * step, step, n - from, *top);                         \
            sum += line_sum_##dtype(m, terms, 1);                                                                      \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
EACH_FLOAT(ROW_SUM, )

#define LOSS(dtype, type, unused)                                                                                      \
    static double loss_##dtype(const trama_view *z, const trama_view *labels)                                          \
    {                                                                                                                  \
        double loss = 0;                                                                                               \
        for (int64_t i = 0; i < z->extent[0]; i++) {                                                                   \
            const type *row = (const type *)z->data + i * z->stride[0];                                                \
            const int64_t label = label_at(labels, i);                                                                 \
            type top;                                                                                                  \
            if (label < 0 || label >= z->extent[1])                                                                    \
                return NAN;                                                                                            \
            loss += log(row_sum_##dtype(row, z->stride[1], z->extent[1], &top));                                       \
            loss += (double)top - row[label * z->stride[1]];                                                           \
        }                                                                                                              \
        return loss;                                                                                                   \
    }
EACH_FLOAT(LOSS, )

void cpu_cross_entropy(const trama_call *call)
{
    const trama_view *z = &call->in[0], *labels = &call->in[1];
    const double batch = (double)z->global[0];

    if (z->dtype == TRAMA_F32)
        *(float *)call->out[0].data = (float)(loss_TRAMA_F32(z, labels) / batch);
    else if (z->dtype == TRAMA_F64)
        *(double *)call->out[0].data = loss_TRAMA_F64(z, labels) / batch;
    else
        kernel_impossible(call, "logits are real numbers");
}

/* to = factor exp(row - top), less g at the label */
#define LOSS_GRAD(dtype, type, unused)                                                                                 \
    static void loss_grad_row_##dtype(int64_t n, type *to, int64_t to_step, const type *row, int64_t step, type top,   \
                                      double factor, int64_t label, double g)                                          \
    {                                                                                                                  \
        type terms[BLOCK];                                                                                             \
        for (int64_t from = 0; from < n; from += BLOCK) {                                                              \
            exp_block_##dtype(terms, row + from * step, step, n - from, top);                                          \
            for (int64_t j = from; j < n && j < from + BLOCK; j++)                                                     \
                to[j * to_step] = (type)(factor * terms[j - from] - (j == label ? g : 0));                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void loss_grad_##dtype(const trama_call *call)                                                              \
    {                                                                                                                  \
        const trama_view *z = &call->in[0], *out = &call->out[0];                                                      \
        const int64_t n = z->extent[1];                                                                                \
        const double g = *(const type *)call->in[2].data / (double)z->global[0];                                       \
        for (int64_t i = 0; i < z->extent[0]; i++) {                                                                   \
            const type *row = (const type *)z->data + i * z->stride[0];                                                \
            const int64_t label = label_at(&call->in[1], i);                                                           \
            const bool known = label >= 0 && label < n;                                                                \
            type top = 0;                                                                                              \
            const double factor = known ? g / row_sum_##dtype(row, z->stride[1], n, &top) : NAN;                       \
            loss_grad_row_##dtype(n, (type *)out->data + i * out->stride[0], out->stride[1], row, z->stride[1], top,   \
                                  factor, label, g);                                                                   \
        }                                                                                                              \
    }
EACH_FLOAT(LOSS_GRAD, )

void cpu_cross_entropy_grad(const trama_call *call)
{
    if (call->out[0].dtype == TRAMA_F32)
        loss_grad_TRAMA_F32(call);
    else if (call->out[0].dtype == TRAMA_F64)
        loss_grad_TRAMA_F64(call);
    else
        kernel_impossible(call, "logits are real numbers");
}
