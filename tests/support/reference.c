/* SPDX-License-Identifier: Apache-2.0 */
/* The reference ops: finding them, and the pointwise ones. They share nothing with codelets but the descriptions of
 * ops.def and trama_ops.h. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "reference_inside.h"

static jmp_buf *escape; /* of reference_try */

void impossible(const trama_call *call, const char *problem)
{
    if (escape)
        longjmp(*escape, 1);
    fprintf(stderr, "reference: %s: %s\n", call->op->name, problem);
    abort();
}

void reference_call(const trama_call *call)
{
    static const struct {
        const trama_op *op;
        void (*run)(const trama_call *call);
    } ops[] = {
#define OP(name, ...) {&trama_op_##name, run_##name},
#include "ops.def"
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].op == call->op) {
            if (!run_complex(call, ops[i].run))
                ops[i].run(call);
            return;
        }
    impossible(call, "the reference does not know it");
}

bool reference_try(const trama_call *call)
{
    jmp_buf here;
    if (setjmp(here)) {
        escape = NULL;
        return false;
    }
    escape = &here;
    reference_call(call);
    escape = NULL;
    return true;
}

/* ---- Pointwise, of any number of operands ---- */

typedef double pointwise(const trama_call *call, const double *x);

static void run_pointwise(const trama_call *call, pointwise *f)
{
    point i;
    for (int t = 0; t < call->n_in; t++)
        agree_all(call, &call->in[t], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    {
        double x[TRAMA_MAX_OPERANDS] = {0};
        for (int t = 0; t < call->n_in; t++)
            x[t] = get(call, t, &i);
        put(call, 0, &i, f(call, x));
    }
}

#define POINTWISE(name, expression)                                                                                    \
    static double name##_of(const trama_call *c, const double *x)                                                      \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        return expression;                                                                                             \
    }                                                                                                                  \
    void run_##name(const trama_call *c)                                                                               \
    {                                                                                                                  \
        run_pointwise(c, name##_of);                                                                                   \
    }
POINTWISE(add, x[0] + x[1])
POINTWISE(sub, x[0] - x[1])
POINTWISE(mul, x[0] * x[1])
POINTWISE(div, x[0] / x[1])
POINTWISE(equal, x[0] == x[1])
POINTWISE(neg, -x[0])
POINTWISE(abs, fabs(x[0]))
POINTWISE(sign, (x[0] > 0) - (x[0] < 0))
POINTWISE(square, x[0] * x[0])
POINTWISE(sqrt, sqrt(x[0]))
POINTWISE(exp, exp(x[0]))
POINTWISE(log, log(x[0]))
POINTWISE(stop_gradient, x[0])
POINTWISE(reshard, x[0])
POINTWISE(relu, x[0] > 0 ? x[0] : 0)
POINTWISE(tanh, tanh(x[0]))
POINTWISE(sigmoid, 1 / (1 + exp(-x[0])))
POINTWISE(relu_grad, x[1] > 0 ? x[0] : 0)
POINTWISE(tanh_grad, x[0] * (1 - x[1] * x[1]))
POINTWISE(sigmoid_grad, x[0] * x[1] * (1 - x[1]))
POINTWISE(increment, x[0] + 1)
POINTWISE(assign, x[1])
POINTWISE(sgd, x[0] - real(c, UPDATE_LR) * x[1])

POINTWISE(maximum, fmax(x[0], x[1]))
POINTWISE(minimum, fmin(x[0], x[1]))
POINTWISE(pow, pow(x[0], x[1]))
POINTWISE(mod, x[0] - x[1] * floor(x[0] / x[1]))
POINTWISE(fmod, x[0] - x[1] * trunc(x[0] / x[1]))
POINTWISE(floor_div, floor(x[0] / x[1]))
POINTWISE(atan2, atan2(x[0], x[1]))
POINTWISE(hypot, sqrt(x[0] * x[0] + x[1] * x[1]))
POINTWISE(copysign, x[1] < 0 ? -fabs(x[0]) : fabs(x[0]))
POINTWISE(prelu, x[0] > 0 ? x[0] : x[1] * x[0])
POINTWISE(not_equal, x[0] != x[1])
POINTWISE(less, x[0] < x[1])
POINTWISE(less_equal, x[0] <= x[1])
POINTWISE(greater, x[0] > x[1])
POINTWISE(greater_equal, x[0] >= x[1])
POINTWISE(logical_and, x[0] && x[1])
POINTWISE(logical_or, x[0] || x[1])
POINTWISE(logical_xor, !x[0] != !x[1])
POINTWISE(logical_not, !x[0])
POINTWISE(isnan, isnan(x[0]))
POINTWISE(isinf, isinf(x[0]) != 0)
POINTWISE(isfinite, isfinite(x[0]))
POINTWISE(bitwise_and, (double)((int64_t)x[0] & (int64_t)x[1]))
POINTWISE(bitwise_or, (double)((int64_t)x[0] | (int64_t)x[1]))
POINTWISE(bitwise_xor, (double)((int64_t)x[0] ^ (int64_t)x[1]))
POINTWISE(bitwise_not, -x[0] - 1)
POINTWISE(left_shift, x[1] < 0 ? 0 : ldexp(x[0], (int)x[1]))
POINTWISE(right_shift, x[1] < 0 ? -(x[0] < 0) : floor(ldexp(x[0], -(int)x[1])))
POINTWISE(sin, sin(x[0]))
POINTWISE(cos, cos(x[0]))
POINTWISE(tan, sin(x[0]) / cos(x[0]))
POINTWISE(asin, asin(x[0]))
POINTWISE(acos, acos(-1) / 2 - asin(x[0]))
POINTWISE(atan, atan(x[0]))
POINTWISE(sinh, (exp(x[0]) - exp(-x[0])) / 2)
POINTWISE(cosh, (exp(x[0]) + exp(-x[0])) / 2)
POINTWISE(asinh, asinh(x[0]))
POINTWISE(acosh, log(x[0] + sqrt(x[0] * x[0] - 1)))
POINTWISE(atanh, log((1 + x[0]) / (1 - x[0])) / 2)
POINTWISE(erf, erf(x[0]))
POINTWISE(erfc, 1 - erf(x[0]))
POINTWISE(exp2, exp(x[0] * log(2)))
POINTWISE(expm1, expm1(x[0]))
POINTWISE(log1p, log(1 + x[0]))
POINTWISE(log2, log(x[0]) / log(2))
POINTWISE(log10, log(x[0]) / log(10))
POINTWISE(cbrt, x[0] < 0 ? -pow(-x[0], 1.0 / 3) : pow(x[0], 1.0 / 3))
POINTWISE(rsqrt, 1 / sqrt(x[0]))
POINTWISE(reciprocal, 1 / x[0])
POINTWISE(floor, floor(x[0]))
POINTWISE(ceil, -floor(-x[0]))
POINTWISE(round, nearbyint(x[0]))
POINTWISE(trunc, x[0] < 0 ? -floor(-x[0]) : floor(x[0]))
POINTWISE(pow_slope_x, x[1] == 0 ? 0 : x[1] * pow(x[0], x[1] - 1))
POINTWISE(pow_slope_y, x[0] == 0 && x[1] >= 0 ? 0 : pow(x[0], x[1]) * log(x[0]))
POINTWISE(silu, x[0] / (1 + exp(-x[0])))
POINTWISE(softplus, log(1 + exp(x[0])))
POINTWISE(softsign, x[0] / (1 + fabs(x[0])))
POINTWISE(mish, x[0] * tanh(log(1 + exp(x[0]))))
POINTWISE(hard_sigmoid, fmin(fmax(x[0] / 6 + 0.5, 0), 1))
POINTWISE(hard_swish, x[0] * fmin(fmax(x[0] / 6 + 0.5, 0), 1))
POINTWISE(gelu_tanh, x[0] * (1 + tanh(sqrt(2 / acos(-1)) * (x[0] + 0.044715 * x[0] * x[0] * x[0]))) / 2)
POINTWISE(selu, 1.0507009873554805 * (x[0] > 0 ? x[0] : 1.6732632423543772 * (exp(x[0]) - 1)))
POINTWISE(elu, x[0] > 0 ? x[0] : real(c, ELU_ALPHA) * (exp(x[0]) - 1))
POINTWISE(celu, x[0] > 0 ? x[0] : real(c, ELU_ALPHA) * (exp(x[0] / real(c, ELU_ALPHA)) - 1))
POINTWISE(leaky_relu, x[0] > 0 ? x[0] : real(c, RELU_SLOPE) * x[0])
POINTWISE(selu_grad, x[0] * 1.0507009873554805 * (x[1] > 0 ? 1 : 1.6732632423543772 * exp(x[1])))
POINTWISE(elu_grad, x[0] * (x[1] > 0 ? 1 : real(c, ELU_ALPHA) * exp(x[1])))
POINTWISE(celu_grad, x[0] * (x[1] > 0 ? 1 : exp(x[1] / real(c, ELU_ALPHA))))
POINTWISE(leaky_relu_grad, x[0] * (x[1] > 0 ? 1 : real(c, RELU_SLOPE)))
POINTWISE(hard_sigmoid_grad, fabs(x[1]) < 3 ? x[0] / 6 : 0)
POINTWISE(hard_swish_grad, x[0] * (x[1] <= -3 ? 0 : x[1] >= 3 ? 1 : (2 * x[1] + 3) / 6))
POINTWISE(select, x[0] ? x[1] : x[2])

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double derivative_of_mish(double x)
{
    const double t = tanh(log(1 + exp(x)));
    return t + x * (1 - t * t) * sigmoid(x);
}

static double derivative_of_gelu_tanh(double x)
{
    const double c = sqrt(2 / acos(-1)), t = tanh(c * (x + 0.044715 * pow(x, 3)));
    return (1 + t) / 2 + x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x) / 2;
}

POINTWISE(silu_grad, x[0] * (sigmoid(x[1]) + x[1] * exp(-x[1]) * sigmoid(x[1]) * sigmoid(x[1])))
POINTWISE(mish_grad, x[0] * derivative_of_mish(x[1]))
POINTWISE(gelu_tanh_grad, x[0] * derivative_of_gelu_tanh(x[1]))

static double normal_share(double x)
{
    return 0.5 * (1 + erf(x / sqrt(2)));
}

POINTWISE(gelu, x[0] * normal_share(x[0]))

static double normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * acos(-1));
}

POINTWISE(gelu_grad, x[0] * (normal_share(x[1]) + x[1] * normal_density(x[1])))

static double scaled(const trama_call *c, const double *x)
{
    double y = real(c, SCALE_FACTOR) * x[0];
    return trama_dtype_is_float(c->in[0].dtype) ? y : trunc(y);
}

/* Float types are all double here; integers cut, and u8 wraps. */
static double converted(const trama_call *c, const double *x)
{
    trama_dtype to = (trama_dtype)integer(c, CAST_DTYPE);
    double y = trama_dtype_is_float(to) ? x[0] : trunc(x[0]);
    return to == TRAMA_U8 ? y - 256 * floor(y / 256) : y;
}

POINTWISE(clamp, x[0]<real(c, CLAMP_LOW) ? real(c, CLAMP_LOW) : x[0]> real(c, CLAMP_HIGH) ? real(c, CLAMP_HIGH) : x[0])
POINTWISE(scale, scaled(c, x))
POINTWISE(affine, real(c, SCALE_FACTOR) * x[0] + real(c, AFFINE_OFFSET))
POINTWISE(div_scalar, x[0] / real(c, SCALAR_NUMBER))
POINTWISE(scalar_div, real(c, SCALAR_NUMBER) / x[0])
POINTWISE(cast, converted(c, x))

/* Operand t; warm-up, then the callback's factor. */
void run_schedule(const trama_call *call)
{
    int64_t n = (int64_t)get(call, 0, &(point){0}) - 1, warmup = integer(call, SCHEDULE_WARMUP), after = n - warmup;
    schedule_factor factor = (schedule_factor)(intptr_t)integer(call, SCHEDULE_FACTOR);
    double shape = factor ? factor(after > 0 ? after : 0, call->attributes->real + SCHEDULE_NUMBERS) : 1;
    double rise = after < 0 ? (double)((n < 0 ? 0 : n) + 1) / (double)(warmup + 1) : 1;
    put(call, 0, &(point){0}, real(call, SCHEDULE_LR) * rise * shape);
}

/* ---- Updates: copies of the state where the scalar says that nothing is done ---- */

static double scalar(const trama_call *call, int operand)
{
    return get(call, operand, &(point){0});
}

static void agree_tensors(const trama_call *call, int n)
{
    for (int t = 0; t < n; t++)
        for (int o = 0; o < call->n_out; o++)
            agree_all(call, &call->in[t], &call->out[o], 0);
}

POINTWISE(accumulate, (x[2] != 0 ? x[0] : 0) + x[3] * x[1])
POINTWISE(assign_if, x[2] != 0 ? x[1] : x[0])
POINTWISE(descend, x[3] != 0 ? x[0] - x[2] * (x[1] + real(c, UPDATE_WEIGHT_DECAY) * x[0]) : x[0])

/* As torch.optim.SGD writes it. Operands w, b, g, lr, apply. */
void run_momentum(const trama_call *call)
{
    point i;
    double lr = scalar(call, 3);
    agree_tensors(call, 3);
    FOR_EACH(&call->out[0], &i)
    {
        double w = get(call, 0, &i), b = get(call, 1, &i), g = get(call, 2, &i) + real(call, UPDATE_WEIGHT_DECAY) * w;
        double moved = real(call, MOMENTUM_FACTOR) * b + g;
        if (integer(call, MOMENTUM_NESTEROV))
            g += real(call, MOMENTUM_FACTOR) * moved;
        else
            g = moved;
        put(call, 0, &i, scalar(call, 4) != 0 ? w - lr * g : w);
        put(call, 1, &i, scalar(call, 4) != 0 ? moved : b);
    }
}

/* The moments after a gradient; returns the ratio of the corrected ones. */
static double moments(const trama_call *call, double g, double t, double *m, double *v)
{
    double b1 = real(call, ADAM_BETA1), b2 = real(call, ADAM_BETA2);
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    return *m / (1 - pow(b1, t)) / (sqrt(*v / (1 - pow(b2, t))) + real(call, ADAM_EPS));
}

/* Operands w, m, v, g, lr, t, apply. As torch.optim.AdamW writes it: the decay is multiplied by the learning rate. */
void run_adam(const trama_call *call)
{
    point i;
    double lr = scalar(call, 4), decay = real(call, UPDATE_WEIGHT_DECAY);
    bool decoupled = integer(call, ADAM_DECOUPLED), apply = scalar(call, 6) != 0;
    agree_tensors(call, 4);
    FOR_EACH(&call->out[0], &i)
    {
        double old = get(call, 0, &i), m = get(call, 1, &i), v = get(call, 2, &i), m0 = m, v0 = v;
        double g = get(call, 3, &i) + (decoupled ? 0 : decay * old), w = old * (1 - (decoupled ? lr * decay : 0));
        w -= lr * moments(call, g, scalar(call, 5), &m, &v);
        put(call, 0, &i, apply ? w : old);
        put(call, 1, &i, apply ? m : m0);
        put(call, 2, &i, apply ? v : v0);
    }
}

/* Operands m, v, w, g, t, apply. */
void run_lamb(const trama_call *call)
{
    point i;
    bool apply = scalar(call, 5) != 0;
    agree_tensors(call, 4);
    FOR_EACH(&call->out[0], &i)
    {
        double m = get(call, 0, &i), v = get(call, 1, &i), m0 = m, v0 = v;
        double u = moments(call, get(call, 3, &i), scalar(call, 4), &m, &v);
        u += real(call, UPDATE_WEIGHT_DECAY) * get(call, 2, &i);
        put(call, 0, &i, apply ? m : m0);
        put(call, 1, &i, apply ? v : v0);
        put(call, 2, &i, apply ? u : 0);
    }
}
