/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: neighbouring threads of a block, a power of two of them, that share one line. */
#ifndef CODELETS_TEAM_CUH
#define CODELETS_TEAM_CUH

#include "launch.cuh"

/* The value of the lane whose number differs from this one's in the bits of `with`. */
template <typename A> static __device__ inline A shuffled(A value, int with)
{
    if constexpr (sizeof(A) < 4)
        return (A)__shfl_xor_sync(~0u, (int)value, with);
    else
        return __shfl_xor_sync(~0u, value, with);
}

/* Joins the values of a team's threads in a fixed order, pairwise in a warp and then warp by warp. Each thread of the
 * team gets the result. All threads of the block call it. */
template <typename A, typename JOIN> static __device__ inline A team_join(A value, int size, JOIN join)
{
    __shared__ A room[32];
    const int thread = (int)threadIdx.x, warps = size / 32, first = thread / size * warps;

    for (int with = 1; with < size && with < 32; with *= 2)
        value = join(value, shuffled(value, with));
    if (warps <= 1)
        return value;
    __syncthreads(); /* all threads have read the room of the join before */
    if (thread % 32 == 0)
        room[thread / 32] = value;
    __syncthreads();
    value = room[first];
    for (int w = 1; w < warps; w++)
        value = join(value, room[first + w]);
    return value;
}

/* The smallest team, up to `most` threads, in which a thread has at most `each` of n items. */
static inline int team_size(int64_t n, int64_t each, int most)
{
    int size = 1;
    while (size < most && size * each < n)
        size *= 2;
    return size;
}

#endif
