/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of formula.h and update.h as types, which are template arguments of kernels. */
#ifndef CODELETS_FORMULA_CUH
#define CODELETS_FORMULA_CUH

#include "launch.cuh"

#include "formula.h"
#include "update.h"

/* add_formula<float>: the number of operands, and the number that the formula makes of theirs and of the reals of the
 * op's attributes. */
#define FORMULA_OF_OP(form, EACH, name)                                                                                \
    template <typename T> struct name##_formula;                                                                       \
    EACH(form##_FORMULA, name)
#define UNARY_FORMULA(dtype, type, name) FORMULA_TYPE(dtype, type, name, 1, x[0])
#define BINARY_FORMULA(dtype, type, name) FORMULA_TYPE(dtype, type, name, 2, x[1])
#define BROADCAST_FORMULA BINARY_FORMULA
#define FORMULA_TYPE(dtype, type, name, n_operands, SECOND)                                                            \
    template <> struct name##_formula<type> {                                                                          \
        static constexpr int operands = n_operands;                                                                    \
        static __device__ inline NUMBER_##dtype of(const NUMBER_##dtype *x, const double *with)                        \
        {                                                                                                              \
            return FORMULA_OF(name, COMPUTE_##dtype)(x[0], SECOND, with);                                              \
        }                                                                                                              \
    };
#define COMPARISON_FORMULA(dtype, type, name) BOOL_TYPE(dtype, type, name, 2, x[1])
#define PREDICATE_FORMULA(dtype, type, name) BOOL_TYPE(dtype, type, name, 1, 0)
#define BOOL_TYPE(dtype, type, name, n_operands, SECOND)                                                               \
    template <> struct name##_formula<type> {                                                                          \
        static constexpr int operands = n_operands;                                                                    \
        static __device__ inline bool of(const NUMBER_##dtype *x, const double *with)                                  \
        {                                                                                                              \
            return FORMULA_OF(name, COMPUTE_##dtype)(x[0], SECOND, with);                                              \
        }                                                                                                              \
    };

/* cast_formula<out_type, type>, of real types. */
template <typename O, typename T> struct cast_formula;
#define CAST_FORMULA(out_dtype, out_type, dtype, type)                                                                 \
    template <> struct cast_formula<out_type, type> {                                                                  \
        static constexpr int operands = 1;                                                                             \
        static __device__ inline out_type element_of(type x)                                                           \
        {                                                                                                              \
            return CAST(out_dtype, dtype, x);                                                                          \
        }                                                                                                              \
    };
#define CAST_FORMULAS(dtype, text, type) EACH_DTYPE(CAST_FORMULA, dtype, type)
TRAMA_REAL_DTYPE_LIST(CAST_FORMULAS)

/* adam_formula<float>: the constants of a step, and the update of one element[], which has results, then tensors. */
#define FORMULA_OF_UPDATE(EACH, name, n_results, n_tensors, n_scalars, ELEMENT)                                        \
    template <typename T> struct name##_formula;                                                                       \
    EACH(UPDATE_FORMULA, name, n_results, n_tensors, n_scalars, ELEMENT)
#define UPDATE_FORMULA(dtype, type, name, n_results, n_tensors, n_scalars, ELEMENT)                                    \
    template <> struct name##_formula<type> {                                                                          \
        static constexpr int results = n_results, tensors = n_tensors, scalars = n_scalars;                            \
        static __device__ inline update_kind constants(const double *scalar, const trama_attributes *a, double *c)     \
        {                                                                                                              \
            return name##_constants(scalar, a, c);                                                                     \
        }                                                                                                              \
        static __device__ inline void of(NUMBER_##dtype *element, const NUMBER_##dtype *c)                             \
        {                                                                                                              \
            (void)c;                                                                                                   \
            EXPANDED(ELEMENT, COMPUTE_##dtype, NUMBER_##dtype, ELEMENT_AT)                                             \
        }                                                                                                              \
    };
#define ELEMENT_AT(a) element[a]

#endif
