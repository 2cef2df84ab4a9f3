/* SPDX-License-Identifier: Apache-2.0 */
/* The table of op calls. */
#include "cases_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const int64_t sizes[N_VARIANTS][3] = {{5, 7, 11}, {7, 5, 13}, {1, 5, 3}, {2, 1, 4},
                                      {0, 3, 2},  {3, 0, 5},  {4, 6, 2}, {1, 1, 1}};

/* Away from 0 on both sides. */
static dense nonzero(trama_shape shape, uint64_t seed)
{
    dense d = dense_random(shape, seed, -1.5, 1.5, false);
    for (int64_t i = 0; i < trama_shape_count(shape); i++)
        d.at[i] += d.at[i] < 0 ? -0.5 : 0.5;
    return d;
}

/* A third each: finite, infinite, NaN. */
static dense special(trama_shape shape, uint64_t seed)
{
    dense d = dense_random(shape, seed, -3, 2, true);
    for (int64_t i = 0; i < trama_shape_count(shape); i++)
        d.at[i] = d.at[i] > 0 ? NAN : d.at[i] < -1 ? copysign(INFINITY, d.at[i] + 2.5) : d.at[i];
    return d;
}

dense dense_of_domain(trama_shape shape, domain d, int64_t classes, uint64_t seed)
{
    switch (d) {
    case POSITIVE:
        return dense_random(shape, seed, 0.1, 3, false);
    case NONZERO:
        return nonzero(shape, seed);
    case UNIT:
        return dense_random(shape, seed, -0.9, 0.9, false);
    case INTEGER:
        return dense_random(shape, seed, -3, 3, true);
    case LABEL:
        return dense_random(shape, seed, 0, (double)(classes ? classes - 1 : 0), true);
    case INDEX:
        return dense_random(shape, seed, -3, 3, true);
    case FLAG:
        return dense_random(shape, seed, 0, 1, true);
    case WIDE:
        return dense_random(shape, seed, -5, 5, false);
    case SPECIAL:
        return special(shape, seed);
    case ABOVE_1:
        return dense_random(shape, seed, 1.5, 4, false);
    case STEP:
        return dense_random(shape, seed, 1, 5, true);
    default:
        return dense_random(shape, seed, -2, 2, false);
    }
}

int64_t case_classes(const trama_node *node)
{
    const trama_shape *z = &node->in[0]->shape;
    return z->ndim ? z->dim[z->ndim - 1] : 0;
}

/* ---- Operands ---- */

static trama_dtype type_of_f64 = TRAMA_F64; /* the type that operands of f64 get */

trama_value *operand(trama_program *p, trama_dtype dtype, trama_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", p->values.n);
    return trama_input(p, name, dtype == TRAMA_F64 ? type_of_f64 : dtype, shape);
}

static trama_value *state(trama_program *p, trama_dtype dtype, trama_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "s%d", p->values.n);
    return trama_state(p, name, dtype, shape, NULL);
}

trama_shape plane(int variant)
{
    return trama_shape_of(2, sizes[variant]);
}

trama_shape block(int variant)
{
    return trama_shape_of(3, sizes[variant]);
}

trama_value *apply(trama_program *p, const op_case *c, int n, trama_value *const *in, const trama_attributes *a)
{
    return trama_apply_at(TRAMA_HERE, p, trama_op_find(c->op), n, in, a);
}

/* ---- Builders ---- */

/* integer: 1 for an integer operand. */
static trama_value *unary(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, c->integer[0] ? TRAMA_I64 : TRAMA_F64, block(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.real = {c->real}});
}

static trama_value *clamp(trama_program *p, const op_case *c, int variant)
{
    (void)c;
    return trama_clamp(operand(p, TRAMA_F64, block(variant)), -0.7, 1.1);
}

/* integer: the operand's type. The second number is not one of integers only where the type is none. */
static trama_value *scalars(trama_program *p, const op_case *c, int variant)
{
    trama_dtype dtype = (trama_dtype)c->integer[0];
    double second = trama_dtype_is_float(dtype) ? -0.5 : -2;
    trama_value *x = operand(p, dtype, block(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.real = {c->real, second}});
}

/* integer: from, to. */
static trama_value *cast(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, (trama_dtype)c->integer[0], plane(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.integer = {[CAST_DTYPE] = c->integer[1]}});
}

/* integer: the shapes of both operands, 0: all dims; 1: the last; 2: the last is 1; 3: none. */
static trama_value *binary(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant];
    trama_shape shapes[] = {plane(variant), TRAMA_SHAPE(n[1]), TRAMA_SHAPE(n[0], 1), TRAMA_SCALAR};
    trama_value *in[2];
    bool bits = !(trama_op_find(c->op)->kinds & TRAMA_KIND_FLOAT) && trama_op_find(c->op)->kinds;
    for (int i = 0; i < 2; i++)
        in[i] = operand(p, bits ? TRAMA_I64 : TRAMA_F64, shapes[c->integer[i]]);
    return apply(p, c, 2, in, &(trama_attributes){.real = {c->real}});
}

/* integer: the shapes of condition, x and y, as in binary. */
static trama_value *selection(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant];
    trama_shape shapes[] = {plane(variant), TRAMA_SHAPE(n[1]), TRAMA_SHAPE(n[0], 1), TRAMA_SCALAR};
    trama_value *in[3];
    for (int i = 0; i < 3; i++)
        in[i] = operand(p, i ? TRAMA_F64 : TRAMA_BOOL, shapes[c->integer[i]]);
    return apply(p, c, 3, in, NULL);
}

/* integer: trans_x, trans_y, batch dims of x and y: 0 none, 1 one, 2 one of extent 1. */
static trama_value *product(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant];
    trama_value *in[2];
    for (int i = 0; i < 2; i++) {
        int64_t rows = i ? n[1] : n[0], columns = i ? n[2] : n[1], batch = c->integer[2 + i] == 2 ? 1 : 5;
        if (c->integer[i]) {
            int64_t swap = rows;
            rows = columns;
            columns = swap;
        }
        in[i] =
            operand(p, TRAMA_F64, c->integer[2 + i] ? TRAMA_SHAPE(batch, rows, columns) : TRAMA_SHAPE(rows, columns));
    }
    return apply(p, c, 2, in, &(trama_attributes){.integer = {c->integer[0], c->integer[1]}});
}

static trama_value *product_over_batch(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant];
    trama_value *in[2];
    for (int i = 0; i < 2; i++)
        in[i] = operand(p, TRAMA_F64, TRAMA_SHAPE(5, n[1], n[i ? 2 : 0]));
    return apply(p, c, 2, in, &(trama_attributes){.integer = {[MATMUL_TRANS_X] = 1, [MATMUL_SUM_BATCH] = 1}});
}

/* integer: row and matrix, row and transposed matrices, transposed matrix and column, matrices and column, vectors. */
static trama_value *vectors(trama_program *p, const op_case *c, int variant)
{
    const int64_t *n = sizes[variant], form = c->integer[0];
    trama_shape vector = TRAMA_SHAPE(n[1]), matrices[] = {TRAMA_SHAPE(n[1], n[2]), TRAMA_SHAPE(5, n[2], n[1]),
                                                          TRAMA_SHAPE(n[1], n[2]), TRAMA_SHAPE(5, n[2], n[1]), vector};
    bool row = form < 2;
    trama_value *in[2];
    for (int i = 0; i < 2; i++)
        in[i] = operand(p, TRAMA_F64, (i == 0) == row ? vector : matrices[form]);
    return apply(p, c, 2, in, &(trama_attributes){.integer = {form == 2, form == 1}});
}

/* integer: mask of dims, keep_dim, and for argmin last. */
static trama_value *reduction(trama_program *p, const op_case *c, int variant)
{
    trama_value *x = operand(p, TRAMA_F64, block(variant));
    return apply(p, c, 1, &x, &(trama_attributes){.integer = {c->integer[0], c->integer[1]}});
}

/* integer: mask of dims, keep_dim, average. */
static trama_value *expansion(trama_program *p, const op_case *c, int variant)
{
    trama_shape full = block(variant), few = {0};
    for (int d = 0; d < 3; d++)
        if (!(c->integer[0] >> d & 1) || c->integer[1])
            few.dim[few.ndim++] = c->integer[0] >> d & 1 ? 1 : full.dim[d];
    trama_value *in[] = {operand(p, TRAMA_F64, few), operand(p, TRAMA_F64, full)};
    return apply(p, c, 2, in, &(trama_attributes){.integer = {c->integer[0], c->integer[1], c->integer[2]}});
}

static trama_value *source(trama_program *p, const op_case *c, int variant)
{
    if (c->integer[0] == 2)
        return trama_arange(p, TRAMA_F64, block(variant).dim[0] * 7, -1, 0.5);
    return c->integer[0] ? trama_uniform_fixed(p, TRAMA_F64, block(variant), -1, 2, 0x123456789abcdef, 3, 1)
                         : trama_fill(p, TRAMA_F64, block(variant), 2.5);
}

static trama_value *drawn(trama_program *p, const op_case *c, int variant)
{
    trama_value *step = operand(p, TRAMA_I64, TRAMA_SCALAR);
    trama_shape shape = block(variant);
    trama_attributes a = {
        .integer =
            {[SOURCE_DTYPE] = TRAMA_F64, [SOURCE_NDIM] = 3, [SOURCE_SEED] = 0x123456789abcdef, [SOURCE_STREAM] = 3},
        .real = {[SOURCE_LOW] = -1, [SOURCE_HIGH] = 2}};
    memcpy(&a.integer[SOURCE_DIM], shape.dim, 3 * sizeof *shape.dim);
    return apply(p, c, 1, &step, &a);
}

static double falling(int64_t step, const double *numbers)
{
    return numbers[0] / (double)(1 + step * step);
}

static trama_value *scheduled(trama_program *p, const op_case *c, int variant)
{
    trama_value *t = operand(p, TRAMA_I64, TRAMA_SCALAR);
    (void)variant;
    return apply(p, c, 1, &t,
                 &(trama_attributes){.integer = {[SCHEDULE_WARMUP] = 2, [SCHEDULE_FACTOR] = (intptr_t)falling},
                                     .real = {[SCHEDULE_LR] = 0.1, [SCHEDULE_NUMBERS] = 0.5}});
}

/* integer: tensors, how many of them are state, scalars behind them, the first attribute. */
static trama_value *update(trama_program *p, const op_case *c, int variant)
{
    trama_value *in[TRAMA_MAX_OPERANDS];
    int tensors = (int)c->integer[0], n = tensors + (int)c->integer[2];
    for (int i = 0; i < n; i++)
        in[i] = i < c->integer[1] ? state(p, TRAMA_F64, plane(variant))
                : i < tensors     ? operand(p, TRAMA_F64, plane(variant))
                                  : operand(p, c->domains[i] == REAL ? TRAMA_F64 : TRAMA_I64, TRAMA_SCALAR);
    return apply(p, c, n, in, &(trama_attributes){.integer = {c->integer[3]}, .real = {0.1, 0.9, 0.99, 1e-3}});
}

/* integer: axis, inverse, or whether the extent of the real line is odd; real: inner. */
static trama_value *fourier(trama_program *p, const op_case *c, int variant)
{
    const int axis = (int)c->integer[0];
    trama_shape shape = block(variant);
    trama_attributes a = {.integer = {axis, c->integer[1]}, .real = {0.5, c->real}};
    if (strcmp(c->op, "fft")) { /* an extent of 1 or more, even or odd as told */
        const int64_t n = shape.dim[axis] / 2 * 2 + (c->integer[1] ? 1 : 2);
        a.integer[FOURIER_EXTENT] = n;
        shape.dim[axis] = strcmp(c->op, "rfft") ? n / 2 + 1 : n;
    }
    trama_value *x = operand(p, TRAMA_F64, shape);
    return apply(p, c, 1, &x, &a);
}

/* Builders of calls with c128 in the place of f64. */
#define WITH_COMPLEX(builder)                                                                                           \
    static trama_value *builder##_of_complex(trama_program *p, const op_case *c, int variant)                          \
    {                                                                                                                  \
        type_of_f64 = TRAMA_C128;                                                                                      \
        trama_value *result = builder(p, c, variant);                                                                  \
        type_of_f64 = TRAMA_F64;                                                                                       \
        return result;                                                                                                 \
    }
WITH_COMPLEX(unary)
WITH_COMPLEX(fourier)
WITH_COMPLEX(binary)
WITH_COMPLEX(scalars)
WITH_COMPLEX(reduction)
WITH_COMPLEX(scanned)
WITH_COMPLEX(expansion)
WITH_COMPLEX(product)
WITH_COMPLEX(vectors)
WITH_COMPLEX(selection)
WITH_COMPLEX(transposed)
WITH_COMPLEX(gathered)
WITH_COMPLEX(gathered_grad)
WITH_COMPLEX(scattered)
WITH_COMPLEX(flipped)
WITH_COMPLEX(gathered_along)
WITH_COMPLEX(scattered_along)
WITH_COMPLEX(joined)
WITH_COMPLEX(strided)
WITH_COMPLEX(windowed)
WITH_COMPLEX(reshaped)

/* clang-format off */
#define GRADIENT(op, y) {#op, #op, {REAL, y}, binary, {0, 0}, 0}

const op_case op_cases[] = {
#define UNARY(name, types, partial, flops, domain, ...) {#name, #name, {domain}, unary, {0}, 0},
#define BINARY(name, types, partial, flops, x, y, ...) BROADCAST(name, x, y)
#define COMPARISON(name, flops, x, y, ...) BROADCAST(name, x, y)
#define PREDICATE(name, flops, domain, ...) {#name, #name, {domain}, unary, {0}, 0},
#define UNARY_BITS(name, types, domain, ...) {#name, #name, {domain}, unary, {1}, 0},
#define BINARY_BITS(name, types, x, y, ...) BROADCAST(name, x, y)
#define BROADCAST(name, x, y)                                                                                          \
    {#name, #name, {x, y}, binary, {0, 0}, 0},                                                                         \
    {#name " of a row", #name, {x, y}, binary, {0, 1}, 0},                                                             \
    {#name " of a column and a row", #name, {x, y}, binary, {2, 1}, 0},                                                \
    {#name " of a scalar", #name, {x, y}, binary, {3, 0}, 0},
#define REDUCTION(name, dtype, partial, infer, flops, domain, ...)                                                     \
    {#name " of all", #name, {domain}, reduction, {7, 0}, 0},                                                          \
    {#name " of dim 1", #name, {domain}, reduction, {2, 0}, 0},                                                        \
    {#name " of dims 0 and 2, kept", #name, {domain}, reduction, {5, 1}, 0},
#include "ops.def"
    {"matmul", "matmul", {REAL, REAL}, product, {0, 0, 0, 0}, 0},
    {"matmul x'", "matmul", {REAL, REAL}, product, {1, 0, 0, 0}, 0},
    {"matmul y'", "matmul", {REAL, REAL}, product, {0, 1, 0, 0}, 0},
    {"matmul of a row and a matrix", "matmul", {REAL, REAL}, vectors, {0}, 0},
    {"matmul of a row and matrices, y'", "matmul", {REAL, REAL}, vectors, {1}, 0},
    {"matmul of a matrix and a column, x'", "matmul", {REAL, REAL}, vectors, {2}, 0},
    {"matmul of matrices and a column", "matmul", {REAL, REAL}, vectors, {3}, 0},
    {"matmul of vectors", "matmul", {REAL, REAL}, vectors, {4}, 0},
    {"matmul x' y'", "matmul", {REAL, REAL}, product, {1, 1, 0, 0}, 0},
    {"matmul, batched", "matmul", {REAL, REAL}, product, {0, 0, 1, 1}, 0},
    {"matmul y', batched by one matrix", "matmul", {REAL, REAL}, product, {0, 1, 1, 0}, 0},
    {"matmul x', batched by a batch of one", "matmul", {REAL, REAL}, product, {1, 0, 2, 1}, 0},
    {"matmul x', summed over the batch", "matmul", {REAL, REAL}, product_over_batch, {0}, 0},
    {"add of scalars", "add", {REAL, REAL}, binary, {3, 3}, 0},
    {"sub of scalars", "sub", {REAL, REAL}, binary, {3, 3}, 0},
    {"stop_gradient", "stop_gradient", {REAL}, unary, {0}, 0},
    {"reshard", "reshard", {REAL}, unary, {0}, 0},
    {"scale by 2", "scale", {REAL}, unary, {0}, 2},
    {"scale by -3", "scale", {REAL}, unary, {0}, -3},
    {"scale by 0", "scale", {REAL}, unary, {0}, 0},
    {"scale of integers", "scale", {INTEGER}, unary, {1}, 2},
    {"affine, 2 x - 0.5", "affine", {REAL}, scalars, {TRAMA_F64}, 2},
    {"affine, -0.5 - x", "affine", {REAL}, scalars, {TRAMA_F64}, -1},
    {"affine of integers", "affine", {INTEGER}, scalars, {TRAMA_I64}, 3},
    {"div_scalar", "div_scalar", {REAL}, scalars, {TRAMA_F64}, -3},
    {"scalar_div", "scalar_div", {NONZERO}, scalars, {TRAMA_F64}, -3},
    {"abs", "abs", {REAL}, unary, {0}, 0},
    {"neg of integers", "neg", {INTEGER}, unary, {1}, 0},
    {"clamp", "clamp", {REAL}, clamp, {0}, 0},
    {"cast f32 to f64", "cast", {REAL}, cast, {TRAMA_F32, TRAMA_F64}, 0},
    {"cast f64 to f32", "cast", {REAL}, cast, {TRAMA_F64, TRAMA_F32}, 0},
    {"cast f16 to f32", "cast", {REAL}, cast, {TRAMA_F16, TRAMA_F32}, 0},
    {"cast bf16 to f16", "cast", {REAL}, cast, {TRAMA_BF16, TRAMA_F16}, 0},
    {"cast f64 to i32", "cast", {REAL}, cast, {TRAMA_F64, TRAMA_I32}, 0},
    {"cast i32 to f64", "cast", {INTEGER}, cast, {TRAMA_I32, TRAMA_F64}, 0},
    {"cast i32 to u8", "cast", {INTEGER}, cast, {TRAMA_I32, TRAMA_U8}, 0},
    {"elu", "elu", {REAL}, unary, {0}, 0.7},
    {"celu", "celu", {REAL}, unary, {0}, 0.7},
    {"leaky_relu", "leaky_relu", {REAL}, unary, {0}, 0.1},
    {"elu_grad", "elu_grad", {REAL, REAL}, binary, {0, 0}, 0.7},
    {"celu_grad", "celu_grad", {REAL, REAL}, binary, {0, 0}, 0.7},
    {"leaky_relu_grad", "leaky_relu_grad", {REAL, REAL}, binary, {0, 0}, 0.1},
    {"select", "select", {FLAG, REAL, REAL}, selection, {0, 0, 0}, 0},
    {"select of a row by a column", "select", {FLAG, REAL, REAL}, selection, {2, 1, 0}, 0},
    {"select of a scalar", "select", {FLAG, REAL, REAL}, selection, {0, 3, 0}, 0},
    {"pow_slope_x", "pow_slope_x", {POSITIVE, REAL}, binary, {0, 0}, 0},
    {"pow_slope_y", "pow_slope_y", {POSITIVE, REAL}, binary, {0, 0}, 0},
    GRADIENT(silu_grad, REAL),
    GRADIENT(mish_grad, REAL),
    GRADIENT(gelu_tanh_grad, REAL),
    GRADIENT(hard_sigmoid_grad, WIDE),
    GRADIENT(hard_swish_grad, WIDE),
    GRADIENT(selu_grad, REAL),
    GRADIENT(relu_grad, REAL),
    GRADIENT(gelu_grad, REAL),
    GRADIENT(tanh_grad, UNIT),
    GRADIENT(sigmoid_grad, POSITIVE),
    {"argmax of dim 0", "argmax", {REAL}, reduction, {1, 0}, 0},
    {"argmax of dim 2, kept", "argmax", {REAL}, reduction, {4, 1}, 0},
    {"argmin of dim 1, the last", "argmin", {INTEGER}, reduction, {2, 0, 1}, 0},
    {"expand to all", "expand", {REAL, REAL}, expansion, {7, 0, 0}, 0},
    {"expand to dim 1", "expand", {REAL, REAL}, expansion, {2, 0, 0}, 0},
    {"expand to dims 0 and 2, kept, average", "expand", {REAL, REAL}, expansion, {5, 1, 1}, 0},
    {"fill", "fill", {REAL}, source, {0}, 0},
    {"arange", "arange", {REAL}, source, {2}, 0},
    {"uniform", "uniform", {REAL}, source, {1}, 0},
    {"draw", "draw", {STEP}, drawn, {0}, 0},
    {"assign", "assign", {REAL, REAL}, update, {2, 1, 0}, 0},
    {"accumulate", "accumulate", {REAL, REAL, FLAG, REAL}, update, {2, 1, 2}, 0},
    {"assign_if", "assign_if", {REAL, REAL, FLAG}, update, {2, 1, 1}, 0},
    {"increment", "increment", {REAL}, update, {1, 1, 0}, 0},
    {"sgd", "sgd", {REAL, REAL}, update, {2, 1, 0}, 0},
    {"schedule", "schedule", {STEP}, scheduled, {0}, 0},
    {"descend", "descend", {REAL, REAL, REAL, FLAG}, update, {2, 1, 2}, 0},
    {"momentum", "momentum", {REAL, REAL, REAL, REAL, FLAG}, update, {3, 2, 2}, 0},
    {"momentum, nesterov", "momentum", {REAL, REAL, REAL, REAL, FLAG}, update, {3, 2, 2, 1}, 0},
    {"adam", "adam", {REAL, REAL, POSITIVE, REAL, REAL, STEP, FLAG}, update, {4, 3, 3}, 0},
    {"adam, decoupled", "adam", {REAL, REAL, POSITIVE, REAL, REAL, STEP, FLAG}, update, {4, 3, 3, 1}, 0},
    {"lamb", "lamb", {REAL, POSITIVE, REAL, REAL, STEP, FLAG}, update, {4, 2, 2}, 0},
#define CASE(...) {__VA_ARGS__},
#define OF_COMPLEX(builder) builder##_of_complex
#define TRIED(...)
#include "complex_cases.def"
#include "index_cases.def"
#include "network_cases.def"
#include "norm_cases.def"
#include "window_cases.def"
#include "attention_cases.def"
#include "shape_cases.def"
#include "scan_cases.def"
};
/* clang-format on */
const int n_op_cases = (int)(sizeof op_cases / sizeof *op_cases);
