/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic element by element with broadcasting. Division of integers truncates, and by zero gives 0. */
#include "exponential.h"
#include "kernel.h"
#include "loop.h"
#include "ops.h"

#define ADD(dtype, type, x, y, with) ((WRAP_##dtype)(x) + (WRAP_##dtype)(y))
#define SUB(dtype, type, x, y, with) ((WRAP_##dtype)(x) - (WRAP_##dtype)(y))
#define MUL(dtype, type, x, y, with) ((WRAP_##dtype)(x) * (WRAP_##dtype)(y))
#define DIV(dtype, type, x, y, with) DIVIDE_##dtype(x, y)
POINTWISE(BINARY_ROW, EACH_DTYPE, add, ADD)
POINTWISE(BINARY_ROW, EACH_DTYPE, sub, SUB)
POINTWISE(BINARY_ROW, EACH_DTYPE, mul, MUL)
POINTWISE(BINARY_ROW, EACH_DTYPE, div, DIV)

#define NEG(dtype, type, x, y, with) (-(WRAP_##dtype)(x))
#define ABS(dtype, type, x, y, with) ABS_##dtype(x)
#define ABS_TRAMA_F32(x) fabsf(x)
#define ABS_TRAMA_F64(x) fabs(x)
#define ABS_TRAMA_I32(x) ((x) < 0 ? 0 - (uint32_t)(x) : (uint32_t)(x))
#define ABS_TRAMA_I64(x) ((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x))
#define ABS_TRAMA_U8(x) (x)
#define SIGN(dtype, type, x, y, with) (IS_NAN_##dtype(x) ? (x) : (type)(((x) > 0) - SIGN_BELOW_##dtype(x)))
#define SIGN_BELOW_TRAMA_F32(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_F64(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_I32(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_I64(x) ((x) < 0)
#define SIGN_BELOW_TRAMA_U8(x) 0
#define SQUARE(dtype, type, x, y, with) MUL(dtype, type, x, x, with)
POINTWISE(UNARY_ROW, EACH_DTYPE, neg, NEG)
POINTWISE(UNARY_ROW, EACH_DTYPE, abs, ABS)
POINTWISE(UNARY_ROW, EACH_DTYPE, sign, SIGN)
POINTWISE(UNARY_ROW, EACH_DTYPE, square, SQUARE)

#define SQRT(dtype, type, x, y, with) MATH_##dtype(sqrt)(x)
#define EXP(dtype, type, x, y, with) exp_of_##dtype(x)
#define LOG(dtype, type, x, y, with) MATH_##dtype(log)(x)
POINTWISE(UNARY_ROW, EACH_FLOAT, sqrt, SQRT)
POINTWISE(UNARY_ROW, EACH_FLOAT, exp, EXP)
POINTWISE(UNARY_ROW, EACH_FLOAT, log, LOG)

/* Floats are scaled in their own type, integers in double. */
#define FACTOR(with) (((const trama_attributes *)(with))->real[SCALE_FACTOR])
#define SCALE(dtype, type, x, y, with) SCALE_##dtype(x, FACTOR(with))
#define SCALE_TRAMA_F32(x, factor) ((x) * (float)(factor))
#define SCALE_TRAMA_F64(x, factor) ((x) * (factor))
#define SCALE_TRAMA_I32(x, factor) OF_REAL_TRAMA_I32((x) * (factor))
#define SCALE_TRAMA_I64(x, factor) OF_REAL_TRAMA_I64((double)(x) * (factor))
#define SCALE_TRAMA_U8(x, factor) OF_REAL_TRAMA_U8((x) * (factor))
POINTWISE(UNARY_ROW, EACH_DTYPE, scale, SCALE)

#define BOUND(with, slot) (((const trama_attributes *)(with))->real[slot])
#define CLAMP(dtype, type, x, y, with) CLAMPED(x, (type)BOUND(with, CLAMP_LOW), (type)BOUND(with, CLAMP_HIGH))
#define CLAMPED(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
POINTWISE(UNARY_ROW, EACH_FLOAT, clamp, CLAMP)

/* ---- Two element types ----------------------------------------------------------------------- */

#define EQUAL_ROW(dtype, type, unused)                                                                                 \
    ROW_SIGNATURE(equal_##dtype)                                                                                       \
    {                                                                                                                  \
        uint8_t *out = data[0];                                                                                        \
        const type *a = data[1], *b = data[2];                                                                         \
        (void)with;                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i * step[0]] = LOAD_##dtype(a[i * step[1]]) == LOAD_##dtype(b[i * step[2]]);                           \
    }
EACH_DTYPE(EQUAL_ROW, )
static loop_row *const equal_rows[TRAMA_N_DTYPES] = {EACH_DTYPE(ROW_ENTRY, equal)};

void cpu_equal(const trama_call *call)
{
    const trama_view *a = &call->in[0], *b = &call->in[1];

    if (a->dtype != b->dtype || call->out[0].dtype != TRAMA_U8)
        kernel_impossible(call, "the result is u8, the operands are of one element type");
    loop_run(3, (const trama_view *[]){&call->out[0], a, b}, equal_rows[a->dtype], NULL);
}

#define REAL_OR_WRAP_TRAMA_F32(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_F64(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_BF16(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_F16(out_dtype, out_type, x) OF_REAL_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_I32(out_dtype, out_type, x) STORE_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_I64(out_dtype, out_type, x) STORE_##out_dtype(x)
#define REAL_OR_WRAP_TRAMA_U8(out_dtype, out_type, x) STORE_##out_dtype(x)
#define CAST_ELEMENT(out_dtype, out_type, dtype, x) REAL_OR_WRAP_##dtype(out_dtype, out_type, LOAD_##dtype(x))
#define CAST_ROW(out_dtype, out_type, dtype, type)                                                                     \
    FAST ROW_SIGNATURE(cast_##dtype##_##out_dtype)                                                                     \
    {                                                                                                                  \
        out_type *out = data[0];                                                                                       \
        const type *a = data[1];                                                                                       \
        (void)with;                                                                                                    \
        if (step[0] == 1 && step[1] == 1)                                                                              \
            INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = CAST_ELEMENT(out_dtype, out_type, dtype, a[i]);                                                   \
        else for (int64_t i = 0; i < n; i++) out[i * step[0]] =                                                        \
            CAST_ELEMENT(out_dtype, out_type, dtype, a[i * step[1]]);                                                  \
    }
#define CAST_ROWS(dtype, text, type) EACH_DTYPE(CAST_ROW, dtype, type)
TRAMA_DTYPE_LIST(CAST_ROWS)

#define CAST_TO(out_dtype, out_type, dtype) [out_dtype] = cast_##dtype##_##out_dtype,
#define CAST_FROM(dtype, text, type) [dtype] = {EACH_DTYPE(CAST_TO, dtype)},
static loop_row *const cast_rows[TRAMA_N_DTYPES][TRAMA_N_DTYPES] = {TRAMA_DTYPE_LIST(CAST_FROM)};

void cpu_cast(const trama_call *call)
{
    loop_call(call, cast_rows[call->in[0].dtype], NULL);
}

void cpu_stop_gradient(const trama_call *call)
{
    kernel_copy(&call->out[0], &call->in[0]);
}
