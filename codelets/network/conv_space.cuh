/* SPDX-License-Identifier: Apache-2.0 */
/* Indices in spatial dims, as arguments of kernels for GPUs. */
#ifndef CODELETS_CONV_SPACE_CUH
#define CODELETS_CONV_SPACE_CUH

#include "conv_array.h"
#include "walk.cuh"

/* Places of the kernel, or positions of an array, in row-major order. */
struct space {
    divisor extent[CONV_SPACE];
};

static inline int64_t whole(int64_t n)
{
    return n > 0 ? n : 1;
}

static inline space space_of(const conv_array &a)
{
    return {{divisor_of(whole(a.space[0])), divisor_of(whole(a.space[1])), divisor_of(whole(a.space[2]))}};
}

/* Index i in the dims of a space; returns the index before them. */
static __device__ inline int64_t index_in(const space &s, int64_t i, int64_t (&at)[CONV_SPACE])
{
    for (int d = CONV_SPACE - 1; d >= 0; d--) {
        const int64_t rest = quotient(s.extent[d], i);
        at[d] = i - rest * s.extent[d].by;
        i = rest;
    }
    return i;
}

#endif
