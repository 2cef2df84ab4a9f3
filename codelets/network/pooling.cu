/* SPDX-License-Identifier: Apache-2.0 */
/* Pools on a GPU: a thread for each window, or for each element of x, which adds up the windows that have it. Sums are
 * kept in double, as on CPUs. */
#include "conv_space.cuh"
#include "index.h"
#include "number.cuh"
#include "pooling.h"

enum { THREADS = 256 };

/* The elements of an array [n, channels, space], row-major. */
struct elements {
    int64_t count;
    divisor channels;
    space positions;
};

static elements elements_of(const conv_array &a)
{
    return {a.n[0] * a.n[1] * conv_elements(&a), divisor_of(whole(a.n[1])), space_of(a)};
}

/* An image, a channel, and a place in the spatial dims. */
struct pool_index {
    int64_t image, channel, at[CONV_SPACE];
};

static __device__ inline pool_index index_of(const elements &all, int64_t i)
{
    pool_index index;
    const int64_t plane = index_in(all.positions, i, index.at);
    index.image = quotient(all.channels, plane);
    index.channel = plane - index.image * all.channels.by;
    return index;
}

static __device__ inline int64_t place_in(const conv_array &a, const pool_index &i, const int64_t *at)
{
    return i.image * a.step[0] + i.channel * a.step[1] + conv_offset(&a, at);
}

/* The index of an element of x in the flattened spatial dims. */
static __device__ inline int64_t flat_index(const pool &p, const int64_t (&at)[CONV_SPACE])
{
    int64_t flat = 0;
    for (int d = 0; d < CONV_SPACE; d++)
        flat = flat * p.global[d] + at[d] + p.x.offset[d];
    return flat;
}

/* Calls each(at) for the elements of x in window i, in order. */
template <typename F> static __device__ inline void each_element(const pool &p, const pool_index &i, F each)
{
    int64_t k[CONV_SPACE], at[CONV_SPACE];
    for (k[0] = 0; k[0] < p.kernel[0]; k[0]++)
        for (k[1] = 0; k[1] < p.kernel[1]; k[1]++)
            for (k[2] = 0; k[2] < p.kernel[2]; k[2]++) {
                bool inside = true;
                for (int d = 0; d < CONV_SPACE; d++) {
                    at[d] = p.first[d] + i.at[d] * p.stride[d] + k[d] * p.dilation[d];
                    inside &= at[d] >= 0 && at[d] < p.x.space[d];
                }
                if (inside)
                    each(at);
            }
}

/* Calls each(at) for the windows at positions of y that have element i of x: those whose first element lies at most the
 * length of a window before it. */
template <typename F> static __device__ inline void each_window(const pool &p, const pool_index &i, F each)
{
    int64_t lo[CONV_SPACE], hi[CONV_SPACE], at[CONV_SPACE] = {};
    for (int d = 0; d < CONV_SPACE; d++) {
        const int64_t distance = i.at[d] - p.first[d], farthest = distance - (p.kernel[d] - 1) * p.dilation[d];
        lo[d] = farthest > 0 ? (farthest + p.stride[d] - 1) / p.stride[d] : 0;
        hi[d] = distance < 0 ? 0 : distance / p.stride[d] + 1;
        hi[d] = hi[d] < p.y.space[d] ? hi[d] : p.y.space[d];
    }
    const auto is_read = [&](int d) {
        return p.dilation[d] == 1 || (i.at[d] - p.first[d] - at[d] * p.stride[d]) % p.dilation[d] == 0;
    };
    for (at[0] = lo[0]; at[0] < hi[0]; at[0]++)
        for (at[1] = lo[1]; at[1] < hi[1] && is_read(0); at[1]++)
            for (at[2] = lo[2]; at[2] < hi[2] && is_read(1); at[2]++)
                if (is_read(2))
                    each(at);
}

/* Calls each(index) for the thread's elements. */
template <typename F> static __device__ inline void each_of_thread(const elements &all, F each)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all.count; i += threads)
        each(index_of(all, i));
}

template <typename T> __global__ void __launch_bounds__(THREADS) max_windows(pool p, elements windows)
{
    typedef typename of<T>::number number;
    each_of_thread(windows, [&](const pool_index &i) {
        number best = 0;
        int64_t index = -1;
        each_element(p, i, [&](const int64_t(&at)[CONV_SPACE]) {
            const number v = of<T>::load(((const T *)p.x.data)[place_in(p.x, i, at)]);
            if (index < 0 || (!(v <= best) && !of<T>::is_nan(best))) {
                best = v;
                index = flat_index(p, at);
            }
        });
        ((T *)p.y.data)[place_in(p.y, i, i.at)] = of<T>::store(best);
        ((int64_t *)p.index.data)[place_in(p.index, i, i.at)] = index;
    });
}

template <typename T> __global__ void __launch_bounds__(THREADS) sum_windows(pool p, elements windows)
{
    each_of_thread(windows, [&](const pool_index &i) {
        double sum = 0;
        each_element(p, i, [&](const int64_t(&at)[CONV_SPACE]) {
            sum += (double)of<T>::load(((const T *)p.x.data)[place_in(p.x, i, at)]);
        });
        ((T *)p.y.data)[place_in(p.y, i, i.at)] = of<T>::real(sum);
    });
}

/* by_index: of the windows those whose index is that of the element. */
template <typename T> __global__ void __launch_bounds__(THREADS) spread_windows(pool p, elements x, bool by_index)
{
    each_of_thread(x, [&](const pool_index &i) {
        const int64_t flat = flat_index(p, i.at);
        double sum = 0;
        each_window(p, i, [&](const int64_t(&at)[CONV_SPACE]) {
            if (!by_index || index_at(p.index.data, place_in(p.index, i, at), p.wide) == flat)
                sum += (double)of<T>::load(((const T *)p.y.data)[place_in(p.y, i, at)]);
        });
        ((T *)p.x.data)[place_in(p.x, i, i.at)] = of<T>::real(sum);
    });
}

template <typename T> __global__ void __launch_bounds__(THREADS) take_elements(pool p, elements windows)
{
    each_of_thread(windows, [&](const pool_index &i) {
        int64_t at[CONV_SPACE];
        const bool here = pool_find(&p, i.at, index_at(p.index.data, place_in(p.index, i, i.at), p.wide), at);
        ((T *)p.y.data)[place_in(p.y, i, i.at)] = here ? ((const T *)p.x.data)[place_in(p.x, i, at)] : of<T>::real(0);
    });
}

#define LAUNCH_POOL(kernel, with, dtype, all, g, ...)                                                                  \
    with(dtype, [&](auto zero) {                                                                                       \
        if (all.count)                                                                                                 \
            GPU_LAUNCH(kernel<decltype(zero)>, gpu_blocks(all.count, THREADS, g), THREADS, g, __VA_ARGS__);            \
    })

extern "C" void cuda_max_pool(const trama_call *call, const gpu *g)
{
    const pool p = pool_of(call, &call->in[0], &call->out[0], &call->out[1]);
    const elements windows = elements_of(p.y);
    LAUNCH_POOL(max_windows, with_number, call->out[0].dtype, windows, g, p, windows);
}

extern "C" void cuda_sum_pool(const trama_call *call, const gpu *g)
{
    const pool p = pool_of(call, &call->in[0], &call->out[0], &call->out[0]);
    const elements windows = elements_of(p.y);
    LAUNCH_POOL(sum_windows, with_float, call->out[0].dtype, windows, g, p, windows);
}

extern "C" void cuda_max_pool_at(const trama_call *call, const gpu *g)
{
    const pool p = pool_of(call, &call->in[0], &call->out[0], &call->in[1]);
    const elements windows = elements_of(p.y);
    LAUNCH_POOL(take_elements, with_float, call->out[0].dtype, windows, g, p, windows);
}

extern "C" void cuda_sum_unpool(const trama_call *call, const gpu *g)
{
    const pool p = pool_of(call, &call->out[0], &call->in[0], &call->in[0]);
    const elements x = elements_of(p.x);
    LAUNCH_POOL(spread_windows, with_float, call->out[0].dtype, x, g, p, x, false);
}

extern "C" void cuda_max_unpool(const trama_call *call, const gpu *g)
{
    const pool p = pool_of(call, &call->out[0], &call->in[0], &call->in[1]);
    const elements x = elements_of(p.x);
    LAUNCH_POOL(spread_windows, with_float, call->out[0].dtype, x, g, p, x, true);
}
