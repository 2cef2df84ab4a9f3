/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a line that the threads of a team (line.cuh) hold in registers. */
#ifndef CODELETS_LINE_PART_CUH
#define CODELETS_LINE_PART_CUH

#include "number.cuh"

/* The part of a line of which each thread of a team takes E elements. Where V > 1 they are read and written in packs of
 * V neighbours, else one by one; a thread takes the same elements either way. */
template <typename T, int E, int V> struct line_part {
    typedef typename of<T>::number number;

    /* The place in the part of element e of a thread. */
    template <typename TEAM> static __device__ inline int place(const TEAM &team, int e)
    {
        if constexpr (V > 1)
            return (e / V * team.size + team.rank) * V + e % V;
        else
            return (((e >> team.neighbours) * team.size + team.rank) << team.neighbours) +
                   (e & ((1 << team.neighbours) - 1));
    }
    /* How many elements of the line are in the part. */
    template <typename TEAM> static __device__ inline int within(const TEAM &team, int64_t left)
    {
        const int all = E * team.size;
        return left < all ? (int)left : all;
    }
    /* Reads the thread's elements. For those beyond the `left` elements of the line the first of all is read, so that
     * no read waits for a branch. */
    template <typename TEAM>
    static __device__ inline void read_packs(pack<T, V> (&x)[E / V], const TEAM &team, const T *from, int64_t step,
                                             int64_t left)
    {
        const int end = within(team, left);
#pragma unroll
        for (int p = 0; p < E; p += V) {
            const int wanted = place(team, p), first = wanted < end ? wanted : 0;
            x[p / V] = *(const pack<T, V> *)(from + (V > 1 ? first : first * step));
        }
    }
    /* Calls each(e, there) for each pack of V elements from the thread's element e on. */
    template <typename TEAM, typename F> static __device__ inline void packs(const TEAM &team, int64_t left, F each)
    {
        const int end = within(team, left);
        const bool full = end == E * team.size;
#pragma unroll
        for (int p = 0; p < E; p += V)
            each(p, full || place(team, p) < end);
    }
    /* Writes the V numbers that fill(e, x) puts into x for each pack of the thread within the `left` elements. */
    template <typename TEAM, typename F>
    static __device__ inline void write_packs(const TEAM &team, T *to, int64_t step, int64_t left, F fill)
    {
        packs(team, left, [&](int p, bool there) {
            number x[V];
            const int first = place(team, p);
            if (!there)
                return;
            fill(p, x);
            *(pack<T, V> *)(to + (V > 1 ? first : first * step)) = pack_of_numbers<T>(x);
        });
    }
    /* Writes the number value(e) for each element e of the thread within the `left` elements of the line. */
    template <typename TEAM, typename F>
    static __device__ inline void write(const TEAM &team, T *to, int64_t step, int64_t left, F value)
    {
        write_packs(team, to, step, left, [&](int p, number(&x)[V]) {
#pragma unroll
            for (int v = 0; v < V; v++)
                x[v] = value(p + v);
        });
    }
};

/* One that a thread holds as numbers. */
template <typename T, int E, int V> struct held_part : line_part<T, E, V> {
    typedef typename of<T>::number number;
    number at[E];

    /* `none` stands for elements beyond the line. */
    template <typename TEAM>
    __device__ inline void read(const TEAM &team, const T *from, int64_t step, int64_t left, number none)
    {
        pack<T, V> x[E / V];
        this->read_packs(x, team, from, step, left);
        this->packs(team, left, [&](int p, bool there) {
            number read[V];
            pack_numbers(read, x[p / V]);
#pragma unroll
            for (int v = 0; v < V; v++)
                at[p + v] = there ? read[v] : none;
        });
    }
};

/* One that a thread holds as elements, of which halves take half the registers of their numbers. */
template <typename T, int E, int V> struct packed_part : line_part<T, E, V> {
    typedef typename of<T>::number number;
    pack<T, V> at[E / V];

    template <typename TEAM>
    __device__ inline void read(const TEAM &team, const T *from, int64_t step, int64_t left, T none)
    {
        this->read_packs(at, team, from, step, left);
        if (left >= E * team.size) /* so that packs stay whole */
            return;
        this->packs(team, left, [&](int p, bool there) {
#pragma unroll
            for (int v = 0; v < V; v++)
                if (!there)
                    at[p / V].at[v] = none;
        });
    }
    /* N elements from e on. */
    template <int N> __device__ inline void numbers(number (&to)[N], int e) const
    {
        static_assert(N % V == 0, "whole packs");
#pragma unroll
        for (int p = 0; p < N; p += V) {
            number x[V];
            pack_numbers(x, at[(e + p) / V]);
#pragma unroll
            for (int v = 0; v < V; v++)
                to[p + v] = x[v];
        }
    }
};

#endif
