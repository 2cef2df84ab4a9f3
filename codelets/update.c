/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of state in place. */
#include "base.h"
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

/* ---- Updates that a scalar operand can turn off -------------------------------------------------- */

static double real_of(const trama_view *view)
{
    return element_of(view->dtype, view->data, 0);
}

void cpu_assign_if(const trama_call *call)
{
    if (real_of(&call->in[2]))
        kernel_copy(&call->out[0], &call->in[1]);
}

/* Steps are counted from 1, schedules from 0. */
void cpu_schedule(const trama_call *call)
{
    const trama_attributes *a = call->attributes;
    const schedule_factor factor = (schedule_factor)(intptr_t)a->integer[SCHEDULE_FACTOR];
    const double step = fmax(real_of(&call->in[0]) - 1, 0), warmup = (double)a->integer[SCHEDULE_WARMUP];
    double lr = a->real[SCHEDULE_LR];

    if (step < warmup)
        lr *= (step + 1) / (warmup + 1);
    if (factor)
        lr *= factor((int64_t)fmax(step - warmup, 0), &a->real[SCHEDULE_NUMBERS]);
    *(double *)call->out[0].data = lr;
}

/* What an update of one step is made with. */
enum { LR, DECAY, L2, KEEP1, TAKE1, CORRECTION1, KEEP2, TAKE2, CORRECTION2, EPS, NESTEROV, N_CONSTANTS };

/* Rows of n_arrays arrays, results before operands. ELEMENT(dtype, type, AT) is the update of element AT(a) of array a,
 * with constants c[] in the row's type. */
#define UPDATE_ROW(dtype, type, name, ELEMENT, n_arrays)                                                               \
    FAST ROW_SIGNATURE(name##_##dtype)                                                                                 \
    {                                                                                                                  \
        type *array[n_arrays], c[N_CONSTANTS];                                                                         \
        bool unit = true;                                                                                              \
        for (int a = 0; a < (n_arrays); a++) {                                                                         \
            array[a] = data[a];                                                                                        \
            unit &= step[a] == 1;                                                                                      \
        }                                                                                                              \
        for (int k = 0; k < N_CONSTANTS; k++)                                                                          \
            c[k] = (type)((const double *)with)[k];                                                                    \
        if (unit) {                                                                                                    \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                ELEMENT(dtype, type, AT_UNIT)                                                                          \
            }                                                                                                          \
        } else {                                                                                                       \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                ELEMENT(dtype, type, AT_STEP)                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
#define AT_UNIT(a) array[a][i]
#define AT_STEP(a) array[a][i * step[a]]

/* The same for halves: n_arrays / 2 of the arrays are results. */
#define HALF_UPDATE_ROW(dtype, type, name, ELEMENT, n_arrays)                                                          \
    FAST ROW_SIGNATURE(name##_##dtype)                                                                                 \
    {                                                                                                                  \
        type *array[n_arrays];                                                                                         \
        float c[N_CONSTANTS];                                                                                          \
        for (int a = 0; a < (n_arrays); a++)                                                                           \
            array[a] = data[a];                                                                                        \
        for (int k = 0; k < N_CONSTANTS; k++)                                                                          \
            c[k] = (float)((const double *)with)[k];                                                                   \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            float element[n_arrays];                                                                                   \
            _Pragma("GCC unroll 8") for (int a = (n_arrays) / 2; a < (n_arrays); a++) element[a] =                     \
                LOAD_##dtype(AT_STEP(a));                                                                              \
            EXPANDED(ELEMENT, COMPUTE_##dtype, float, AT_LOADED)                                                       \
            _Pragma("GCC unroll 8") for (int a = 0; a < (n_arrays) / 2; a++) AT_STEP(a) = STORE_##dtype(element[a]);   \
        }                                                                                                              \
    }
#define AT_LOADED(a) element[a]
#define UPDATE_ROWS(name, ELEMENT, n_arrays)                                                                           \
    EACH_REAL(UPDATE_ROW, name, ELEMENT, n_arrays)                                                                     \
    EACH_HALF(HALF_UPDATE_ROW, name, ELEMENT, n_arrays)                                                                \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH_FLOAT(ROW_ENTRY, name)};

/* Runs the rows without the scalars behind the first n_in operands. */
static void update(const trama_call *call, int n_in, loop_row *const rows[TRAMA_N_DTYPES], const double *constants)
{
    trama_call tensors = *call;
    tensors.n_in = n_in;
    loop_call(&tensors, rows, constants);
}

/* m | m, d: added, or in their place */
#define ADD_WEIGHTED(dtype, type, AT) AT(0) = AT(1) + c[TAKE1] * AT(2);
#define SET_WEIGHTED(dtype, type, AT) AT(0) = c[TAKE1] * AT(2);
UPDATE_ROWS(add_weighted, ADD_WEIGHTED, 3)
UPDATE_ROWS(set_weighted, SET_WEIGHTED, 3)

kernel_addition accumulate_how(const trama_call *call)
{
    return (kernel_addition){real_of(&call->in[2]) != 0, real_of(&call->in[3])};
}

void cpu_accumulate(const trama_call *call)
{
    const kernel_addition how = accumulate_how(call);
    if (how.factor == 0) { /* of no samples: as a product that is added does */
        if (how.keep == 0)
            kernel_fill(&call->out[0], 0);
        return;
    }
    update(call, 2, how.keep != 0 ? add_weighted_rows : set_weighted_rows, (double[N_CONSTANTS]){[TAKE1] = how.factor});
}

/* w | w, g */
#define DESCEND(dtype, type, AT)                                                                                       \
    const type w = AT(1);                                                                                              \
    AT(0) = w - c[LR] * (AT(2) + c[L2] * w);
UPDATE_ROWS(descend, DESCEND, 3)

void cpu_descend(const trama_call *call)
{
    if (real_of(&call->in[3]))
        update(call, 2, descend_rows,
               (double[N_CONSTANTS]){[LR] = real_of(&call->in[2]), [L2] = call->attributes->real[UPDATE_WEIGHT_DECAY]});
}

/* w, b | w, b, g */
#define MOMENTUM(dtype, type, AT)                                                                                      \
    const type w = AT(2), g = AT(4) + c[L2] * w;                                                                       \
    const type b = c[KEEP1] * AT(3) + g;                                                                               \
    AT(0) = w - c[LR] * (c[NESTEROV] != 0 ? g + c[KEEP1] * b : b);                                                     \
    AT(1) = b;
UPDATE_ROWS(momentum, MOMENTUM, 5)

void cpu_momentum(const trama_call *call)
{
    const trama_attributes *a = call->attributes;
    if (real_of(&call->in[4]))
        update(call, 3, momentum_rows,
               (double[N_CONSTANTS]){[LR] = real_of(&call->in[3]),
                                     [L2] = a->real[UPDATE_WEIGHT_DECAY],
                                     [KEEP1] = a->real[MOMENTUM_FACTOR],
                                     [NESTEROV] = (double)a->integer[MOMENTUM_NESTEROV]});
}

/* The moments m and v, and the direction, of which array is where. */
#define MOMENTS(dtype, type, AT, M, V)                                                                                 \
    const type m = c[KEEP1] * AT(M) + c[TAKE1] * g, v = c[KEEP2] * AT(V) + c[TAKE2] * g * g;                           \
    const type direction = m * c[CORRECTION1] / (MATH_##dtype(sqrt)(v * c[CORRECTION2]) + c[EPS]);

static void moment_constants(const trama_call *call, double t, double *c)
{
    const double *real = call->attributes->real, beta1 = real[ADAM_BETA1], beta2 = real[ADAM_BETA2];
    c[KEEP1] = beta1;
    c[TAKE1] = 1 - beta1;
    c[CORRECTION1] = 1 / (1 - pow(beta1, t));
    c[KEEP2] = beta2;
    c[TAKE2] = 1 - beta2;
    c[CORRECTION2] = 1 / (1 - pow(beta2, t));
    c[EPS] = real[ADAM_EPS];
}

/* w, m, v | w, m, v, g. lr is the paper's schedule multiplier (its alpha is 1), so it scales the decay as well. */
#define ADAM(dtype, type, AT)                                                                                          \
    const type w = AT(3), g = AT(6) + c[L2] * w;                                                                       \
    MOMENTS(dtype, type, AT, 4, 5)                                                                                     \
    AT(0) = w - c[LR] * (direction + c[DECAY] * w);                                                                    \
    AT(1) = m;                                                                                                         \
    AT(2) = v;
UPDATE_ROWS(adam, ADAM, 7)

void cpu_adam(const trama_call *call)
{
    double c[N_CONSTANTS] = {[LR] = real_of(&call->in[4])};
    if (!real_of(&call->in[6]))
        return;
    c[call->attributes->integer[ADAM_DECOUPLED] ? DECAY : L2] = call->attributes->real[UPDATE_WEIGHT_DECAY];
    moment_constants(call, real_of(&call->in[5]), c);
    update(call, 4, adam_rows, c);
}

/* m, v, direction | m, v, w, g */
#define LAMB(dtype, type, AT)                                                                                          \
    const type g = AT(6);                                                                                              \
    MOMENTS(dtype, type, AT, 3, 4)                                                                                     \
    AT(2) = direction + c[DECAY] * AT(5);                                                                              \
    AT(0) = m;                                                                                                         \
    AT(1) = v;
UPDATE_ROWS(lamb, LAMB, 7)

void cpu_lamb(const trama_call *call)
{
    double c[N_CONSTANTS] = {[DECAY] = call->attributes->real[UPDATE_WEIGHT_DECAY]};
    if (!real_of(&call->in[5])) {
        kernel_fill(&call->out[2], 0);
        return;
    }
    moment_constants(call, real_of(&call->in[4]), c);
    update(call, 4, lamb_rows, c);
}
