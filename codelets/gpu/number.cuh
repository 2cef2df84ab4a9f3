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
        typedef SUM(dtype) sum;                                                                                        \
        static __device__ inline number load(type x)                                                                   \
        {                                                                                                              \
            return LOAD(dtype, x);                                                                                     \
        }                                                                                                              \
        template <typename X> static __device__ inline type store(X x)                                                 \
        {                                                                                                              \
            return STORE(dtype, x);                                                                                    \
        }                                                                                                              \
        static TRAMA_HOST_DEVICE inline type real(double x)                                                            \
        {                                                                                                              \
            return OF_REAL(dtype, x);                                                                                  \
        }                                                                                                              \
        static __device__ inline type divided(sum x, double divisor)                                                   \
        {                                                                                                              \
            return QUOTIENT(dtype, x, divisor);                                                                        \
        }                                                                                                              \
        template <typename X> static __device__ inline type scaled(X x, double scale)                                  \
        {                                                                                                              \
            return SCALED(dtype, x, scale);                                                                            \
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
            return IS_NAN(dtype, x);                                                                                   \
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

template <typename A, typename B> constexpr bool is_same = false;
template <typename A> constexpr bool is_same<A, A> = true;
template <typename T> constexpr bool is_half = false;
template <> constexpr bool is_half<trama_bf16> = true;
template <> constexpr bool is_half<trama_f16> = true;

/* Two halves at a time are read and written as a word. */
static __device__ inline void pair_load(float *to, const trama_bf16 *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    to[0] = trama_float_of_bits(word << 16);
    to[1] = trama_float_of_bits(word & 0xffff0000);
}
static __device__ inline void pair_load(float *to, const trama_f16 *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    const trama_f16 low = {(uint16_t)word}, high = {(uint16_t)(word >> 16)};
    to[0] = trama_float_of_f16(low);
    to[1] = trama_float_of_f16(high);
}
template <typename T> static __device__ inline void pair_store(T *to, const float *from)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    uint32_t word;
    if (is_same<T, trama_bf16>)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(from[1]), "f"(from[0]));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(from[1]), "f"(from[0]));
    memcpy(to, &word, sizeof word);
#else
    to[0] = of<T>::store(from[0]);
    to[1] = of<T>::store(from[1]);
#endif
}

/* The numbers of a pack, and the pack of numbers. */
template <typename T, int E>
static __device__ inline void pack_numbers(typename of<T>::number (&to)[E], const pack<T, E> &from)
{
    if constexpr (is_half<T> && E % 2 == 0) {
#pragma unroll
        for (int e = 0; e < E; e += 2)
            pair_load(to + e, from.at + e);
    } else {
#pragma unroll
        for (int e = 0; e < E; e++)
            to[e] = of<T>::load(from.at[e]);
    }
}
template <typename T, int E, typename X> static __device__ inline pack<T, E> pack_of_numbers(const X (&from)[E])
{
    pack<T, E> to;
    if constexpr (is_half<T> && E % 2 == 0 && is_same<X, float>) {
#pragma unroll
        for (int e = 0; e < E; e += 2)
            pair_store(to.at + e, from + e);
    } else {
#pragma unroll
        for (int e = 0; e < E; e++)
            to.at[e] = of<T>::store(from[e]);
    }
    return to;
}

/* The neighbours in a pack: 16 bytes of them, but only 8 of one byte, since their accumulators need registers. */
template <typename T> constexpr int pack_of = sizeof(T) == 1 ? 8 : (int)(16 / sizeof(T));

#endif
