/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of ops.def as kernels for cores: a file that includes this and then a part of the list defines cpu_NAME for
 * all pointwise ops of that part. */
#ifndef CODELETS_POINTWISE_OPS_H
#define CODELETS_POINTWISE_OPS_H

#include "formula.h"
#include "kernel.h"
#include "loop.h"
#include "pointwise_forms.h"

#define FORMULA_VALUE(name, dtype, x, y, with) formula_##name##_##dtype(x, y, with)

#define POINTWISE(form, name, types, ...)                                                                              \
    ROWS(form##_ROW, EACH_##types, name, FORMULA_VALUE)                                                                \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        loop_call(call, name##_rows, form##_STEPS, call->attributes->real);                                            \
    }
/* A repeated operand of a form without a loop for it is packed. */
#define UNARY_STEPS STEPS_1
#define BINARY_STEPS STEPS_1
#define BROADCAST_STEPS STEPS_1_OR_0

#define COMPARISON_ROW(dtype, type, name, VALUE)                                                                       \
    DENSE_ROW_2(, name##_##dtype, bool, type,                                                                          \
                EXPANDED(VALUE, name, COMPUTE_##dtype, LOAD(dtype, a[i]), LOAD(dtype, b[i]), with))
#define COMPARISON(name, ...) COMPARING(name, EACH_DTYPE)
#define EQUALITY(name, ...) COMPARING(name, EACH_ELEMENT)
#define COMPARING(name, EACH)                                                                                          \
    ROWS(COMPARISON_ROW, EACH, name, FORMULA_VALUE)                                                                    \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        const trama_view *a = &call->in[0], *b = &call->in[1];                                                         \
        if (a->dtype != b->dtype || call->out[0].dtype != TRAMA_BOOL)                                                  \
            kernel_impossible(call, "the result is bool, the operands are of one element type");                       \
        loop_dense(1, 3, (const trama_view *[]){&call->out[0], a, b}, name##_rows[a->dtype], STEPS_1, NULL);           \
    }

#define PREDICATE_ROW(dtype, type, name, VALUE)                                                                        \
    DENSE_ROW_1(, name##_##dtype, bool, type, EXPANDED(VALUE, name, COMPUTE_##dtype, LOAD(dtype, a[i]), 0, with))
#define PREDICATE(name, ...)                                                                                           \
    ROWS(PREDICATE_ROW, EACH_ELEMENT, name, FORMULA_VALUE)                                                             \
    void cpu_##name(const trama_call *call)                                                                            \
    {                                                                                                                  \
        if (call->out[0].dtype != TRAMA_BOOL)                                                                          \
            kernel_impossible(call, "the result is bool");                                                             \
        loop_dense(1, 2, (const trama_view *[]){&call->out[0], &call->in[0]}, name##_rows[call->in[0].dtype], STEPS_1, \
                   NULL);                                                                                              \
    }

#endif
