/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of kernels over strided views. They know views and broadcasting, but no op. */
#ifndef CODELETS_LOOP_H
#define CODELETS_LOOP_H

#include "fast.h"
#include "kernel.h"
#include "number.h"
#include "trama_op.h"
#include "view.h"

/* Before a loop whose arrays are either equal or disjoint, so that updates in place vectorise too. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that does not vectorise is no fault */
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLLED _Pragma("clang loop unroll_count(8)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#define UNROLLED _Pragma("GCC unroll 8") /* where a short loop's time depends on the address of its code */
#endif

/* Computes n elements: element i of array a lies at data[a] + i * step[a], in elements of its own type. */
typedef void loop_row(int64_t n, void *const *data, const int64_t *step, const void *with);

/* Calls row over the whole of view[0]; the other views are right-aligned to it, and an extent of 1 is repeated.
 * Dims are ordered by the strides of view[0] and merged where all views allow it, so rows are as long as can be. */
void loop_run(int n, const trama_view *const *view, loop_row *row, const void *with);

/* The steps that a row takes: 1 only, or 1 and, for one operand, 0. */
typedef enum row_steps { STEPS_1, STEPS_1_OR_0 } row_steps;

/* loop_run with such a row, which writes the first `results` arrays: elements that lie otherwise are packed for it.
 * n <= DENSE_ARRAYS. */
enum { DENSE_ARRAYS = 8 };
void loop_dense(int results, int n, const trama_view *const *view, loop_row *row, row_steps steps, const void *with);

/* loop_dense with the arrays of the call: results first, then operands. rows by the dtype of result 0. */
void loop_call(const trama_call *call, loop_row *const rows[TRAMA_N_DTYPES], row_steps steps, const void *with);

#define ROW_ENTRY(dtype, type, name) [dtype] = name##_##dtype,
#define ROW_SIGNATURE(name) static void name(int64_t n, void *const *data, const int64_t *step, const void *with)

/* Rows for loop_dense, of one and of two operands: ELEMENT is result i, made of a[i] and b[i]. CLONES: FAST or
 * nothing. */
#define DENSE_ROW_1(CLONES, name, out_type, type, ELEMENT)                                                             \
    CLONES ROW_SIGNATURE(name)                                                                                         \
    {                                                                                                                  \
        out_type *out = data[0];                                                                                       \
        const type *a = data[1];                                                                                       \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = ELEMENT;                                                                                          \
    }
#define DENSE_ROW_2(CLONES, name, out_type, type, ELEMENT)                                                             \
    CLONES ROW_SIGNATURE(name)                                                                                         \
    {                                                                                                                  \
        out_type *out = data[0];                                                                                       \
        const type *a = data[1], *b = data[2];                                                                         \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = ELEMENT;                                                                                          \
    }

/* One element-wise kernel per type of a list, and their table `name_rows`. VALUE(name, dtype, x, y, with) is the
 * element made of the operands x and y; for halves dtype is f32 (number.h). BROADCAST_ROW takes STEPS_1_OR_0. */
#define UNARY_ROW(dtype, type, name, VALUE)                                                                            \
    DENSE_ROW_1(FAST, name##_##dtype, type, type, ROW_VALUE(VALUE, name, dtype, LOAD(dtype, a[i]), 0))
#define BINARY_ROW(dtype, type, name, VALUE)                                                                           \
    DENSE_ROW_2(FAST, name##_##dtype, type, type, ROW_VALUE(VALUE, name, dtype, LOAD(dtype, a[i]), LOAD(dtype, b[i])))
#define BROADCAST_ROW(dtype, type, name, VALUE)                                                                        \
    FAST ROW_SIGNATURE(name##_##dtype)                                                                                 \
    {                                                                                                                  \
        type *out = data[0];                                                                                           \
        const type *a = data[1], *b = data[2];                                                                         \
        const NUMBER_##dtype a0 = LOAD(dtype, *a), b0 = LOAD(dtype, *b);                                               \
        if (step[1] == 0) {                                                                                            \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i] = ROW_VALUE(VALUE, name, dtype, a0, LOAD(dtype, b[i]));                                         \
        } else if (step[2] == 0) {                                                                                     \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i] = ROW_VALUE(VALUE, name, dtype, LOAD(dtype, a[i]), b0);                                         \
        } else {                                                                                                       \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i] = ROW_VALUE(VALUE, name, dtype, LOAD(dtype, a[i]), LOAD(dtype, b[i]));                          \
        }                                                                                                              \
    }
#define ROW_VALUE(VALUE, name, dtype, x, y) STORE(dtype, EXPANDED(VALUE, name, COMPUTE_##dtype, x, y, with))
#define ROWS(KIND, EACH, name, VALUE)                                                                                  \
    EACH(KIND, name, VALUE)                                                                                            \
    static loop_row *const name##_rows[TRAMA_N_DTYPES] = {EACH(ROW_ENTRY, name)};

/* The kernels: cpu_NAME for every built-in op. */
#define OP(name, ...) void cpu_##name(const trama_call *call);
#define PRODUCT(name, ...)                                                                                             \
    OP(name, )                                                                                                         \
    void cpu_##name##_add(const trama_call *call, kernel_addition how);
#include "ops.def"
kernel_addition accumulate_how(const trama_call *call);

#endif
