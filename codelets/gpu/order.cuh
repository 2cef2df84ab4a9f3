/* SPDX-License-Identifier: Apache-2.0 */
/* Elements numbered row-major, and their offsets. Dims are merged where memory runs on, and keep their order. */
#ifndef CODELETS_ORDER_CUH
#define CODELETS_ORDER_CUH

#include "walk.cuh"

struct row_major {
    int ndim; /* at least 1 */
    int64_t count;
    divisor extent[TRAMA_MAX_NDIM];
    int64_t stride[TRAMA_MAX_NDIM];
};

/* Without dims: one element. */
static inline row_major row_major_one(void)
{
    row_major order = {};
    order.ndim = order.count = 1;
    order.extent[0] = divisor_of(1);
    return order;
}

/* Adds an inner dim. */
static inline void row_major_add(row_major *order, int64_t extent, int64_t stride)
{
    const int last = order->ndim - 1;
    const bool first = order->extent[last].by == 1, merges = first || order->stride[last] == stride * extent;

    order->count *= extent;
    if (extent <= 1)
        return;
    order->ndim += !merges;
    order->extent[order->ndim - 1] = divisor_of(merges ? order->extent[last].by * extent : extent);
    order->stride[order->ndim - 1] = stride;
}

/* The offset of element i from the first. */
static __device__ inline int64_t row_major_at(const row_major &order, int64_t i)
{
    int64_t at = 0;
    for (int d = order.ndim - 1; d > 0; d--) {
        const int64_t rest = quotient(order.extent[d], i);
        at += (i - rest * order.extent[d].by) * order.stride[d];
        i = rest;
    }
    return at + i * order.stride[0];
}

/* Whether each n elements, from a multiple of n on, are neighbours in memory, at a multiple of their bytes if data
 * is. */
static inline bool row_major_packs(const row_major &order, int n)
{
    const int last = order.ndim - 1;
    int64_t all = order.extent[last].by;
    for (int d = 0; d < last; d++)
        all |= order.stride[d];
    return order.stride[last] == 1 && all % n == 0;
}

#endif
