/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of state in place. */
#include "kernel.h"
#include "loop.h"
#include "ops.h"

void cpu_assign(const trama_call *call)
{
    kernel_copy(&call->out[0], &call->in[1]);
}

#define INCREMENT(dtype, type, x, y, with) ((WRAP_##dtype)(x) + 1)
POINTWISE(UNARY_ROW, EACH_DTYPE, increment, INCREMENT)

/* Floats in their own type; integers in double, so that a rate below 1 counts. */
#define LR(with) (((const trama_attributes *)(with))->real[UPDATE_LR])
#define SGD(dtype, type, w, g, with) SGD_##dtype(w, g, LR(with))
#define SGD_TRAMA_F32(w, g, lr) ((w) - (float)(lr) * (g))
#define SGD_TRAMA_F64(w, g, lr) ((w) - (lr) * (g))
#define SGD_TRAMA_I32(w, g, lr) OF_REAL_TRAMA_I32((w) - (lr) * (g))
#define SGD_TRAMA_I64(w, g, lr) OF_REAL_TRAMA_I64((double)(w) - (lr) * (double)(g))
#define SGD_TRAMA_U8(w, g, lr) OF_REAL_TRAMA_U8((w) - (lr) * (g))
POINTWISE(BINARY_ROW, EACH_DTYPE, sgd, SGD)

/* ---- adamw -------------------------------------------------------------------------------------- */

/* The constants of one step. lr is the paper's schedule multiplier (its alpha is 1), so it scales the decay as well. */
typedef struct adamw {
    double lr, beta1, beta2, eps, decay;
    double correction1, correction2; /* 1 / (1 - beta^t) */
} adamw;

/* Arrays: results w, m, v; operands w, m, v, g. AT(a, i) is where element i of array a lies. */
#define ADAMW_LOOP(dtype, type, AT)                                                                                    \
    INDEPENDENT                                                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const type w = w_in[AT(3, i)], g = g_in[AT(6, i)];                                                             \
        const type m = keep1 * m_in[AT(4, i)] + take1 * g;                                                             \
        const type v = keep2 * v_in[AT(5, i)] + take2 * g * g;                                                         \
        const type direction = m * correction1 / (MATH_##dtype(sqrt)(v * correction2) + eps);                          \
        w_out[AT(0, i)] = w - lr * (direction + decay * w);                                                            \
        m_out[AT(1, i)] = m;                                                                                           \
        v_out[AT(2, i)] = v;                                                                                           \
    }
#define AT_UNIT(a, i) (i)
#define AT_STEP(a, i) ((i)*step[a])
#define ADAMW_ROW(dtype, type, unused)                                                                                 \
    FAST ROW_SIGNATURE(adamw_##dtype)                                                                                  \
    {                                                                                                                  \
        const adamw *c = with;                                                                                         \
        const type keep1 = (type)c->beta1, take1 = (type)(1 - c->beta1), correction1 = (type)c->correction1;           \
        const type keep2 = (type)c->beta2, take2 = (type)(1 - c->beta2), correction2 = (type)c->correction2;           \
        const type lr = (type)c->lr, eps = (type)c->eps, decay = (type)c->decay;                                       \
        type *w_out = data[0], *m_out = data[1], *v_out = data[2];                                                     \
        const type *w_in = data[3], *m_in = data[4], *v_in = data[5], *g_in = data[6];                                 \
        bool unit = true;                                                                                              \
        for (int a = 0; a < 7; a++)                                                                                    \
            unit &= step[a] == 1;                                                                                      \
        if (unit) {                                                                                                    \
            ADAMW_LOOP(dtype, type, AT_UNIT)                                                                           \
        } else {                                                                                                       \
            ADAMW_LOOP(dtype, type, AT_STEP)                                                                           \
        }                                                                                                              \
    }
EACH_FLOAT(ADAMW_ROW, )
static loop_row *const adamw_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, adamw)};

#define REAL_CASE(dtype, text, type)                                                                                   \
    case dtype:                                                                                                        \
        return (double)*(const type *)view->data;
static double real_of(const trama_view *view)
{
    switch (view->dtype) {
        TRAMA_DTYPE_LIST(REAL_CASE)
    default:
        return NAN;
    }
}

void cpu_adamw(const trama_call *call)
{
    const double *real = call->attributes->real, t = real_of(&call->in[4]);
    const adamw c = {
        .lr = real[UPDATE_LR],
        .beta1 = real[ADAMW_BETA1],
        .beta2 = real[ADAMW_BETA2],
        .eps = real[ADAMW_EPS],
        .decay = real[ADAMW_WEIGHT_DECAY],
        .correction1 = 1 / (1 - pow(real[ADAMW_BETA1], t)),
        .correction2 = 1 / (1 - pow(real[ADAMW_BETA2], t)),
    };
    trama_call state = *call; /* without t */

    state.n_in = 4;
    loop_call(&state, adamw_rows, &c);
}
