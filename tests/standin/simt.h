/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for CUDA's threads, for tests: with this file included first, a .cu file compiles as plain C++17 and its
 * kernels run on the processor, thread by thread. It is no part of the library and is never installed.
 * It knows what codelets/gpu/launch.cuh allows: threads, blocks, __shared__ arrays of fixed size, barriers and shuffles. */
#ifndef STANDIN_SIMT_H
#define STANDIN_SIMT_H

#ifdef __CUDACC__
#error "simt.h stands in for nvcc; it is not for its code"
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#include <math.h> /* overloads for float, in the global namespace as CUDA has them */
#include <stdlib.h>

#include <cuda_runtime.h>

/* Threads of a block share it, and blocks run one after the other in one thread of the processor. */
#undef __shared__
#define __shared__ static thread_local
#undef __constant__
#define __constant__ static
#undef __launch_bounds__
#define __launch_bounds__(...)

extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;
static const int warpSize = 32;

/* ---- Starting kernels ------------------------------------------------------------------------ */

/* The order in which threads, and blocks, run: forward, reverse, or shuffled by any other number. A kernel whose bits
 * depend on it has a race. At first as TRAMA_STANDIN_ORDER says ("forward", "reverse", a number), else forward. */
enum { SIMT_FORWARD, SIMT_REVERSE };
extern "C" void simt_order(unsigned order);

/* Runs body(with) once for every thread of every block. Ends the process with a message where a GPU would hang, or do
 * what is not defined: a barrier that some threads never reach, a shuffle from a lane that takes no part, more threads
 * than a block can have. */
void simt_run(const char *kernel, dim3 grid, dim3 block, void (*body)(const void *), const void *with);

/* Names the calling thread: "kernel copy, block (0,0,0), thread (3,0,0)", or "the host". */
const char *simt_where(void);

template <typename F> void simt_launch(dim3 grid, dim3 block, F f)
{
    simt_run(
        "kernel", grid, block, [](const void *with) { (*(const F *)with)(); }, &f);
}

/* The stand-in for CUDA's run time (standin.h) has these: work is done in the order of a stream; an argument of a
 * kernel points to memory of a GPU. */
void simt_enqueue(void *stream, std::function<void()> work);
extern "C" unsigned long simt_launches(void); /* of kernels, without those that a graph launches */
extern "C" unsigned long simt_branches(void); /* of graphs: nodes that are not just after the one before */
void simt_check_argument(const char *kernel, int number, uintptr_t address);

template <typename A> void simt_check(const char *kernel, int number, A argument)
{
    if constexpr (std::is_pointer<A>::value)
        if constexpr (!std::is_function<std::remove_pointer_t<A>>::value)
            simt_check_argument(kernel, number, (uintptr_t)argument);
}

/* As a launch does, takes the arguments as they are now, and passes them to each thread. */
template <typename F, typename... A>
void simt_launch_on(void *stream, const char *kernel, dim3 grid, dim3 block, F f, A... arguments)
{
    int number = 0;
    (simt_check(kernel, ++number, arguments), ...);
    const auto thread = [f, kept = std::tuple<A...>(arguments...)] { std::apply(f, kept); };
    const auto work = [=] {
        simt_run(
            kernel, grid, block, [](const void *with) { (*(decltype(thread) *)with)(); }, &thread);
    };
    simt_enqueue(stream, work);
}

/* ---- Barriers and shuffles ------------------------------------------------------------------- */

void simt_barrier(const char *file, int line);

/* The value of lane `from` of the warp; the lanes of the mask wait for each other. */
uint64_t simt_exchange(unsigned mask, uint64_t value, int from, const char *file, int line);

#define SIMT_WHERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(SIMT_WHERE)
{
    simt_barrier(file, line);
}

static inline int simt_lane(void)
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

static inline void __syncwarp(unsigned mask = ~0u, SIMT_WHERE)
{
    simt_exchange(mask, 0, simt_lane(), file, line);
}

template <typename T> T simt_shuffle(unsigned mask, T value, int from, const char *file, int line)
{
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA shuffles 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = simt_exchange(mask, bits, from, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* width, a power of two, cuts the warp into parts that shuffle by themselves. */
template <typename T> T __shfl_sync(unsigned mask, T value, int from, int width = 32, SIMT_WHERE)
{
    return simt_shuffle(mask, value, (simt_lane() & -width) + (from & (width - 1)), file, line);
}

template <typename T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_WHERE)
{
    const int lane = simt_lane(), from = lane - (int)by;
    return simt_shuffle(mask, value, from < (lane & -width) ? lane : from, file, line);
}

template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_WHERE)
{
    const int lane = simt_lane(), from = lane + (int)by;
    return simt_shuffle(mask, value, from >= (lane & -width) + width ? lane : from, file, line);
}

template <typename T> T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, SIMT_WHERE)
{
    const int lane = simt_lane(), from = lane ^ with;
    return simt_shuffle(mask, value, from >= (lane & -width) + width ? lane : from, file, line);
}

/* ---- Loads, stores and atomic integers --------------------------------------------------------- */

#define SIMT_LOAD(name)                                                                                                \
    template <typename T> static inline T name(const T *from)                                                          \
    {                                                                                                                  \
        return *from;                                                                                                  \
    }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)

#define SIMT_STORE(name)                                                                                               \
    template <typename T> static inline void name(T *to, T value)                                                      \
    {                                                                                                                  \
        *to = value;                                                                                                   \
    }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)

static inline void __threadfence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

template <typename T> T simt_atomic_max(T *at, T value)
{
    T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (old < value && !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return old;
}

#define SIMT_ATOMIC(type)                                                                                              \
    static inline type atomicAdd(type *at, type value)                                                                 \
    {                                                                                                                  \
        return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                                  \
    static inline type atomicMax(type *at, type value)                                                                 \
    {                                                                                                                  \
        return simt_atomic_max(at, value);                                                                             \
    }                                                                                                                  \
    static inline type atomicExch(type *at, type value)                                                                \
    {                                                                                                                  \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                                       \
    }                                                                                                                  \
    static inline type atomicCAS(type *at, type expected, type value)                                                  \
    {                                                                                                                  \
        __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
        return expected;                                                                                               \
    }
SIMT_ATOMIC(int)
SIMT_ATOMIC(unsigned)
SIMT_ATOMIC(unsigned long long)

/* ---- Arithmetic ------------------------------------------------------------------------------ */

#define SIMT_MIN_MAX(type)                                                                                             \
    static inline type min(type a, type b)                                                                             \
    {                                                                                                                  \
        return b < a ? b : a;                                                                                          \
    }                                                                                                                  \
    static inline type max(type a, type b)                                                                             \
    {                                                                                                                  \
        return a < b ? b : a;                                                                                          \
    }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline int __mulhi(int a, int b)
{
    return (int)((int64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}

static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
/* glibc declares functions of these names and exports none. */
#define __expf(x) expf(x)
#define __logf(x) logf(x)
static inline float __fdividef(float x, float y)
{
    return x / y;
}

/* Rounded once, to nearest even, and never fused with what is around it. */
#define SIMT_ROUNDED(name, type, expression)                                                                           \
    static inline type name##_rn(type x, type y)                                                                       \
    {                                                                                                                  \
        volatile type result = expression;                                                                             \
        return result;                                                                                                 \
    }
SIMT_ROUNDED(__fadd, float, x + y)
SIMT_ROUNDED(__fsub, float, x - y)
SIMT_ROUNDED(__fmul, float, x *y)
SIMT_ROUNDED(__fdiv, float, x / y)
SIMT_ROUNDED(__dadd, double, x + y)
SIMT_ROUNDED(__dsub, double, x - y)
SIMT_ROUNDED(__dmul, double, x *y)
SIMT_ROUNDED(__ddiv, double, x / y)
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
static inline double __fma_rn(double x, double y, double z)
{
    return fma(x, y, z);
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline double __dsqrt_rn(double x)
{
    return sqrt(x);
}
static inline float __double2float_rn(double x)
{
    return (float)x;
}

template <typename To, typename From> To simt_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __int_as_float(int x)
{
    return simt_bits<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return simt_bits<float>(x);
}
static inline int __float_as_int(float x)
{
    return simt_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return simt_bits<unsigned>(x);
}
static inline double __longlong_as_double(long long x)
{
    return simt_bits<double>(x);
}
static inline long long __double_as_longlong(double x)
{
    return simt_bits<long long>(x);
}

#endif
