/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of updates with scalar operands, for CPUs and GPUs alike. */
#ifndef CODELETS_UPDATE_H
#define CODELETS_UPDATE_H

#include "number.h"
#include "ops.h"

/* X(EACH, name, results, tensors, scalars, ELEMENT): the element types, and the numbers of results and operands, which
 * are tensors, then scalars. name_constants makes constants c[] of the scalars for a whole step, and decides its
 * effect. ELEMENT(dtype, type, at) computes: at(0), at(1), ... are the elements of the results, then of the tensors. */
#define UPDATE_OPS(X)                                                                                                  \
    X(EACH_FLOAT, descend, 1, 2, 2, DESCEND)                                                                           \
    X(EACH_FLOAT, momentum, 2, 3, 2, MOMENTUM)                                                                         \
    X(EACH_FLOAT, adam, 3, 4, 3, ADAM)                                                                                 \
    X(EACH_FLOAT, lamb, 3, 4, 2, LAMB)

/* The constants of one step, in the type that it is computed in. */
enum { LR, DECAY, L2, KEEP1, TAKE1, CORRECTION1, KEEP2, TAKE2, CORRECTION2, EPS, NESTEROV, N_CONSTANTS };

/* The effect on the results: all stay; the last becomes 0 and the others stay; all are computed. */
typedef enum update_kind { UPDATE_STAYS, UPDATE_CLEARS, UPDATE_COMPUTES } update_kind;

/* name_constants(scalars in the order of the operands, attributes, c): c comes with zeros. */
#define UPDATE_CONSTANTS(name)                                                                                         \
    FORMULA update_kind name##_constants(const double *scalar, const trama_attributes *a, double *c)

/* w | w, g; lr, apply */
UPDATE_CONSTANTS(descend)
{
    c[LR] = scalar[0];
    c[L2] = a->real[UPDATE_WEIGHT_DECAY];
    return scalar[1] != 0 ? UPDATE_COMPUTES : UPDATE_STAYS;
}
#define DESCEND(dtype, type, AT)                                                                                       \
    const type w = AT(1);                                                                                              \
    AT(0) = w - c[LR] * (AT(2) + c[L2] * w);

/* w, b | w, b, g; lr, apply */
UPDATE_CONSTANTS(momentum)
{
    c[LR] = scalar[0];
    c[L2] = a->real[UPDATE_WEIGHT_DECAY];
    c[KEEP1] = a->real[MOMENTUM_FACTOR];
    c[NESTEROV] = (double)a->integer[MOMENTUM_NESTEROV];
    return scalar[1] != 0 ? UPDATE_COMPUTES : UPDATE_STAYS;
}
#define MOMENTUM(dtype, type, AT)                                                                                      \
    const type w = AT(2), g = AT(4) + c[L2] * w;                                                                       \
    const type b = c[KEEP1] * AT(3) + g;                                                                               \
    AT(0) = w - c[LR] * (c[NESTEROV] != 0 ? g + c[KEEP1] * b : b);                                                     \
    AT(1) = b;

/* The moments m and v, and the direction; at(M) and at(V) are the moments before. */
#define MOMENTS(dtype, type, AT, M, V)                                                                                 \
    const type m = c[KEEP1] * AT(M) + c[TAKE1] * g, v = c[KEEP2] * AT(V) + c[TAKE2] * g * g;                           \
    const type direction = m * c[CORRECTION1] / (MATH_##dtype(sqrt)(v * c[CORRECTION2]) + c[EPS]);

FORMULA void moment_constants(const double *real, double t, double *c)
{
    const double beta1 = real[ADAM_BETA1], beta2 = real[ADAM_BETA2];
    c[KEEP1] = beta1;
    c[TAKE1] = 1 - beta1;
    c[CORRECTION1] = 1 / (1 - pow(beta1, t));
    c[KEEP2] = beta2;
    c[TAKE2] = 1 - beta2;
    c[CORRECTION2] = 1 / (1 - pow(beta2, t));
    c[EPS] = real[ADAM_EPS];
}

/* w, m, v | w, m, v, g; lr, t, apply. lr is the paper's schedule multiplier (its alpha is 1), so it scales the decay as
 * well. */
UPDATE_CONSTANTS(adam)
{
    if (scalar[2] == 0)
        return UPDATE_STAYS;
    c[LR] = scalar[0];
    c[DECAY] = a->integer[ADAM_DECOUPLED] ? a->real[UPDATE_WEIGHT_DECAY] : 0;
    c[L2] = a->integer[ADAM_DECOUPLED] ? 0 : a->real[UPDATE_WEIGHT_DECAY];
    moment_constants(a->real, scalar[1], c);
    return UPDATE_COMPUTES;
}
#define ADAM(dtype, type, AT)                                                                                          \
    const type w = AT(3), g = AT(6) + c[L2] * w;                                                                       \
    MOMENTS(dtype, type, AT, 4, 5)                                                                                     \
    AT(0) = w - c[LR] * (direction + c[DECAY] * w);                                                                    \
    AT(1) = m;                                                                                                         \
    AT(2) = v;

/* m, v, direction | m, v, w, g; t, apply */
UPDATE_CONSTANTS(lamb)
{
    if (scalar[1] == 0)
        return UPDATE_CLEARS;
    c[DECAY] = a->real[UPDATE_WEIGHT_DECAY];
    moment_constants(a->real, scalar[0], c);
    return UPDATE_COMPUTES;
}
#define LAMB(dtype, type, AT)                                                                                          \
    const type g = AT(6);                                                                                              \
    MOMENTS(dtype, type, AT, 3, 4)                                                                                     \
    AT(2) = direction + c[DECAY] * AT(5);                                                                              \
    AT(0) = m;                                                                                                         \
    AT(1) = v;

/* m | m, d; keep, weight: the weighted d is added to m, or replaces it. With weight 0 d is not read, as in a product
 * that is added. */
UPDATE_CONSTANTS(accumulate)
{
    c[KEEP1] = scalar[0] != 0;
    c[TAKE1] = scalar[1];
    return scalar[1] != 0 ? UPDATE_COMPUTES : scalar[0] != 0 ? UPDATE_STAYS : UPDATE_CLEARS;
}
#define ADD_WEIGHTED(dtype, type, AT) AT(0) = AT(1) + c[TAKE1] * AT(2);
#define SET_WEIGHTED(dtype, type, AT) AT(0) = c[TAKE1] * AT(2);

#endif
