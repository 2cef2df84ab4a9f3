/* SPDX-License-Identifier: Apache-2.0 */
/* number.h as templates, for kernels that are written once for all element types. */
#ifndef CODELETS_NUMBER_CUH
#define CODELETS_NUMBER_CUH

#include "launch.cuh"
#include "number.h"

/* The properties of an element type. number: the type in which it is computed; sum: that in which many are summed. */
template <typename T> struct of;
#define OF_TYPE(dtype, type, unused)                                                                                   \
    template <> struct of<type> {                                                                                      \
        typedef NUMBER_##dtype number;                                                                                 \
        typedef SUM(dtype) sum;                                                                                       \
        static __device__ inline number load(type x)                                                                   \
        {                                                                                                              \
            return LOAD(dtype, x);                                                                                    \
        }                                                                                                              \
        template <typename X> static __device__ inline type store(X x)                                                 \
        {                                                                                                              \
            return STORE(dtype, x);                                                                                   \
        }                                                                                                              \
        static TRAMA_HOST_DEVICE inline type real(double x)                                                            \
        {                                                                                                              \
            return OF_REAL(dtype, x);                                                                                 \
        }                                                                                                              \
        static __device__ inline type divided(sum x, double divisor)                                                   \
        {                                                                                                              \
            return QUOTIENT(dtype, x, divisor);                                                                        \
        }                                                                                                              \
        template <typename X> static __device__ inline type scaled(X x, double scale)                                  \
        {                                                                                                              \
            return SCALED(dtype, x, scale);                                                                           \
        }                                                                                                              \
        static __device__ inline number lowest()                                                                       \
        {                                                                                                              \
            return LOWEST_##dtype;                                                                                     \
        }                                                                                                              \
        static __device__ inline number highest()                                                                      \
        {                                                                                                              \
            return HIGHEST_##dtype;                                                                                    \
        }                                                                                                              \
        static __device__ inline bool is_nan(number x)                                                                 \
        {                                                                                                              \
            return IS_NAN(dtype, x);                                                                                  \
        }                                                                                                              \
        static __device__ inline number larger(number a, number b)                                                     \
        {                                                                                                              \
            return MAXIMUM(dtype, a, b);                                                                               \
        }                                                                                                              \
        static __device__ inline number smaller(number a, number b)                                                    \
        {                                                                                                              \
            return MINIMUM(dtype, a, b);                                                                               \
        }                                                                                                              \
    };
EACH_DTYPE(OF_TYPE, )
#undef OF_TYPE

/* Calls f with a value of the element type. False, without a call, where the type is not of the kind. */
#define WITH_TYPE(name, EACH)                                                                                          \
    template <typename F> static bool name(trama_dtype dtype, F f)                                                     \
    {                                                                                                                  \
        switch (dtype) {                                                                                               \
            EACH(CASE_OF_TYPE, )                                                                                       \
        default:                                                                                                       \
            return false;                                                                                              \
        }                                                                                                              \
        return true;                                                                                                   \
    }
#define CASE_OF_TYPE(dtype, type, unused)                                                                              \
    case dtype:                                                                                                        \
        f(type());                                                                                                     \
        break;
WITH_TYPE(with_dtype, EACH_DTYPE)
WITH_TYPE(with_number, EACH_NUMBER)
WITH_TYPE(with_float, EACH_FLOAT)

/* Neighbours that are read and written at once. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];
};

/* The neighbours in a pack: 16 bytes of them, but only 8 of one byte, since their accumulators need registers. */
template <typename T> constexpr int pack_of = sizeof(T) == 1 ? 8 : (int)(16 / sizeof(T));

#endif
