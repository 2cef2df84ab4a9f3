/* SPDX-License-Identifier: Apache-2.0 */
/* The reference ops. They share nothing with codelets but the descriptions of ops.def and trama_ops.h. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

/* ---- Elements ---- */

typedef struct point {
    int ndim;
    int64_t at[TRAMA_MAX_NDIM]; /* global */
} point;

static jmp_buf *escape; /* of reference_try */

static void impossible(const trama_call *call, const char *problem)
{
    if (escape)
        longjmp(*escape, 1);
    fprintf(stderr, "reference: %s: %s\n", call->op->name, problem);
    abort();
}

/* The first element of a box; false where it is empty. */
static bool first(const trama_view *v, point *i)
{
    i->ndim = v->ndim;
    for (int d = 0; d < v->ndim; d++) {
        i->at[d] = v->offset[d];
        if (v->extent[d] == 0)
            return false;
    }
    return true;
}

static bool next(const trama_view *v, point *i)
{
    for (int d = v->ndim - 1; d >= 0; d--) {
        if (++i->at[d] < v->offset[d] + v->extent[d])
            return true;
        i->at[d] = v->offset[d];
    }
    return false;
}

#define FOR_EACH(view, i) for (bool some_ = first(view, i); some_; some_ = next(view, i))

/* The element of a global point; dims of global extent 1 repeat, and missing leading dims too. */
static double *element(const trama_call *call, const trama_view *v, const point *i)
{
    int64_t at = 0;
    int skipped = i->ndim - v->ndim;
    if (skipped < 0 || !v->data)
        impossible(call, skipped < 0 ? "an operand has too many dims" : "an operand has no data");
    for (int d = 0; d < v->ndim; d++) {
        int64_t wanted = v->global[d] == 1 ? 0 : i->at[d + skipped];
        if (wanted < v->offset[d] || wanted >= v->offset[d] + v->extent[d])
            impossible(call, "an operand's box lacks an element that the result's box needs");
        at += (wanted - v->offset[d]) * v->stride[d];
    }
    return (double *)v->data + at;
}

static double get(const trama_call *call, int operand, const point *i)
{
    return *element(call, &call->in[operand], i);
}

static void put(const trama_call *call, int result, const point *i, double x)
{
    *element(call, &call->out[result], i) = x;
}

static int64_t integer(const trama_call *call, int slot)
{
    return call->attributes->integer[slot];
}

static double real(const trama_call *call, int slot)
{
    return call->attributes->real[slot];
}

/* ---- Pointwise, of any number of operands ---- */

typedef double pointwise(const trama_call *call, const double *x);

static void run_pointwise(const trama_call *call, pointwise *f)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        double x[TRAMA_MAX_OPERANDS];
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
    static void run_##name(const trama_call *c)                                                                        \
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

POINTWISE(scale, scaled(c, x))
POINTWISE(cast, converted(c, x))

/* Operands w, m, v, g, t. As torch.optim.AdamW writes it: the decay is multiplied by the learning rate. */
static void run_adamw(const trama_call *call)
{
    double lr = real(call, UPDATE_LR), b1 = real(call, ADAMW_BETA1), b2 = real(call, ADAMW_BETA2);
    point i, scalar = {0};
    double t = get(call, 4, &scalar);
    FOR_EACH(&call->out[0], &i)
    {
        double g = get(call, 3, &i), w = get(call, 0, &i) * (1 - lr * real(call, ADAMW_WEIGHT_DECAY));
        double m = b1 * get(call, 1, &i) + (1 - b1) * g, v = b2 * get(call, 2, &i) + (1 - b2) * g * g;
        double m_hat = m / (1 - pow(b1, t)), v_hat = v / (1 - pow(b2, t));
        put(call, 0, &i, w - lr * m_hat / (sqrt(v_hat) + real(call, ADAMW_EPS)));
        put(call, 1, &i, m);
        put(call, 2, &i, v);
    }
}

/* ---- matmul ---- */

static void run_matmul(const trama_call *call)
{
    const trama_view *x = &call->in[0], *y = &call->in[1];
    bool tx = integer(call, MATMUL_TRANS_X), ty = integer(call, MATMUL_TRANS_Y);
    int kx = x->ndim - (tx ? 2 : 1), ky = y->ndim - (ty ? 1 : 2);
    if (x->offset[kx] != y->offset[ky] || x->extent[kx] != y->extent[ky])
        impossible(call, "the operands hold different parts of the contraction");
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        double sum = 0;
        int m = i.ndim - 2, n = i.ndim - 1;
        for (int64_t k = x->offset[kx]; k < x->offset[kx] + x->extent[kx]; k++) {
            point a = i, b = i;
            a.at[m] = tx ? k : i.at[m];
            a.at[n] = tx ? i.at[m] : k;
            b.at[m] = ty ? i.at[n] : k;
            b.at[n] = ty ? k : i.at[n];
            sum += get(call, 0, &a) * get(call, 1, &b);
        }
        put(call, 0, &i, sum);
    }
}

/* ---- Reductions ---- */

/* The index without the reduced dims, or with 0 in their place. */
static point reduced(const trama_call *call, const point *full)
{
    point r = {0};
    for (int d = 0; d < full->ndim; d++) {
        bool gone = integer(call, REDUCE_AXES) >> d & 1;
        if (!gone || integer(call, REDUCE_KEEP_DIM))
            r.at[r.ndim++] = gone ? 0 : full->at[d];
    }
    return r;
}

static double repetitions(const trama_call *call, const trama_view *full)
{
    double n = 1;
    for (int d = 0; d < full->ndim; d++)
        n *= integer(call, REDUCE_AXES) >> d & 1 ? (double)full->global[d] : 1;
    return n;
}

static void fill_result(const trama_call *call, double x)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i, x);
}

static void sum_scaled(const trama_call *call, double by)
{
    point i;
    fill_result(call, 0);
    FOR_EACH(&call->in[0], &i)
    {
        point r = reduced(call, &i);
        *element(call, &call->out[0], &r) += get(call, 0, &i) / by;
    }
}

static void run_sum(const trama_call *call)
{
    sum_scaled(call, 1);
}

static void run_mean(const trama_call *call)
{
    sum_scaled(call, repetitions(call, &call->in[0]));
}

static void extremum(const trama_call *call, bool max)
{
    point i;
    fill_result(call, max ? -INFINITY : INFINITY);
    FOR_EACH(&call->in[0], &i)
    {
        point r = reduced(call, &i);
        double *y = element(call, &call->out[0], &r), x = get(call, 0, &i);
        *y = max ? fmax(*y, x) : fmin(*y, x);
    }
}

static void run_max(const trama_call *call)
{
    extremum(call, true);
}

static void run_min(const trama_call *call)
{
    extremum(call, false);
}

static void run_argmax(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    int dim = 0;
    while (!(integer(call, REDUCE_AXES) >> dim & 1))
        dim++;
    point i;
    fill_result(call, -1);
    FOR_EACH(x, &i)
    {
        point r = reduced(call, &i), best = i;
        double *y = element(call, &call->out[0], &r);
        best.at[dim] = (int64_t)*y;
        if (*y < 0 || get(call, 0, &i) > get(call, 0, &best))
            *y = (double)i.at[dim];
    }
}

static void run_expand(const trama_call *call)
{
    double by = integer(call, EXPAND_AVERAGE) ? repetitions(call, &call->out[0]) : 1;
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        point r = reduced(call, &i);
        put(call, 0, &i, get(call, 0, &r) / by);
    }
}

/* ---- softmax and cross entropy: along one dim that must be here as a whole ---- */

static int64_t whole_extent(const trama_call *call, const trama_view *v, int dim)
{
    if (v->extent[dim] != v->global[dim])
        impossible(call, "a dim that must be whole is not");
    return v->extent[dim];
}

/* log(sum(exp(x))) along dim at an index. */
static double log_sum_exp(const trama_call *call, int dim, point i)
{
    int64_t n = whole_extent(call, &call->in[0], dim);
    double most = -INFINITY, sum = 0;
    for (i.at[dim] = 0; i.at[dim] < n; i.at[dim]++)
        most = fmax(most, get(call, 0, &i));
    for (i.at[dim] = 0; i.at[dim] < n; i.at[dim]++)
        sum += exp(get(call, 0, &i) - most);
    return most + log(sum);
}

static void run_softmax(const trama_call *call)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i, exp(get(call, 0, &i) - log_sum_exp(call, (int)integer(call, SOFTMAX_AXIS), i)));
}

/* g, y: y (g - sum(g y)) */
static void run_softmax_grad(const trama_call *call)
{
    int dim = (int)integer(call, SOFTMAX_AXIS);
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        double dot = 0;
        point k = i;
        for (k.at[dim] = 0; k.at[dim] < whole_extent(call, &call->in[0], dim); k.at[dim]++)
            dot += get(call, 0, &k) * get(call, 1, &k);
        put(call, 0, &i, get(call, 1, &i) * (get(call, 0, &i) - dot));
    }
}

static bool is_label(double label, int64_t n)
{
    return label >= 0 && label < (double)n && label == trunc(label);
}

static void run_cross_entropy(const trama_call *call)
{
    const trama_view *z = &call->in[0], *labels = &call->in[1];
    double sum = 0;
    point b, scalar = {0};
    FOR_EACH(labels, &b)
    {
        double label = get(call, 1, &b);
        point i = {2, {b.at[0], 0}};
        double norm = log_sum_exp(call, 1, i);
        i.at[1] = is_label(label, z->global[1]) ? (int64_t)label : 0;
        sum += is_label(label, z->global[1]) ? norm - get(call, 0, &i) : NAN;
    }
    if (z->offset[0] != labels->offset[0] || z->extent[0] != labels->extent[0])
        impossible(call, "logits and labels are of different samples");
    put(call, 0, &scalar, sum / (double)z->global[0]);
}

/* z, labels, g */
static void run_cross_entropy_grad(const trama_call *call)
{
    point i, scalar = {0};
    FOR_EACH(&call->out[0], &i)
    {
        point b = {1, {i.at[0]}};
        double label = get(call, 1, &b), hit = label == (double)i.at[1];
        double p = exp(get(call, 0, &i) - log_sum_exp(call, 1, i));
        double d = is_label(label, call->in[0].global[1]) ? p - hit : NAN;
        put(call, 0, &i, get(call, 2, &scalar) * d / (double)call->in[0].global[0]);
    }
}

/* ---- Shapes ---- */

static void run_transpose(const trama_call *call)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        point from = {.ndim = i.ndim};
        for (int d = 0; d < i.ndim; d++)
            from.at[integer(call, SHAPE_DIM + d)] = i.at[d];
        put(call, 0, &i, get(call, 0, &from));
    }
}

static uint64_t linear(const trama_view *v, const point *i)
{
    uint64_t at = 0;
    for (int d = 0; d < v->ndim; d++)
        at = at * (uint64_t)v->global[d] + (uint64_t)i->at[d];
    return at;
}

static void run_reshape(const trama_call *call)
{
    const trama_view *x = &call->in[0];
    point i;
    FOR_EACH(&call->out[0], &i)
    {
        uint64_t at = linear(&call->out[0], &i);
        point from = {.ndim = x->ndim};
        for (int d = x->ndim - 1; d >= 0; d--) {
            from.at[d] = (int64_t)(at % (uint64_t)x->global[d]);
            at /= (uint64_t)x->global[d];
        }
        put(call, 0, &i, get(call, 0, &from));
    }
}

/* ---- Sources ---- */

void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t result[4])
{
    uint32_t x[4], k[2] = {key[0], key[1]};
    memcpy(x, counter, sizeof x);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * x[0], b = (uint64_t)0xCD9E8D57 * x[2];
        uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ k[1],
                         (uint32_t)a};
        memcpy(x, y, sizeof x);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(result, x, sizeof x);
}

double reference_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i)
{
    uint32_t words[4], counter[] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), stream, step};
    uint32_t key[] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    reference_philox(counter, key, words);
    return (double)(words[i % 4] >> 8) / 16777216;
}

static void run_uniform(const trama_call *call)
{
    double low = real(call, SOURCE_LOW), high = real(call, SOURCE_HIGH);
    point i;
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i,
        low + (high - low) * reference_uniform((uint64_t)integer(call, SOURCE_SEED),
                                               (uint32_t)integer(call, SOURCE_STREAM),
                                               (uint32_t)integer(call, SOURCE_STEP), linear(&call->out[0], &i)));
}

static void run_fill(const trama_call *call)
{
    fill_result(call, real(call, SOURCE_VALUE));
}

/* ---- All of them ---- */

void reference_call(const trama_call *call)
{
    static const struct {
        const trama_op *op;
        void (*run)(const trama_call *call);
    } ops[] = {
#define OP(name, ...) {&trama_op_##name, run_##name},
#include "ops.def"
#undef OP
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].op == call->op) {
            ops[i].run(call);
            return;
        }
    impossible(call, "the reference does not know it");
}

bool reference_try(const trama_call *call)
{
    jmp_buf here;
    bool possible = !setjmp(here);
    escape = &here;
    if (possible)
        reference_call(call);
    escape = NULL;
    return possible;
}
