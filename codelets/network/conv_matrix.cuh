/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of convolutions on a GPU between their products: tensors become matrices in scratch memory, and matrices
 * tensors. */
#ifndef CODELETS_CONV_MATRIX_CUH
#define CODELETS_CONV_MATRIX_CUH

#include "conv_array.h"
#include "number.cuh"
#include "walk.cuh"

enum { CONV_THREADS = 256 };

/* Along a spatial dim, position i of one array and place k of the kernel lead to index by i + first + k step of
 * another. */
struct reach {
    int64_t by, first, step;
};

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

static __device__ inline int64_t offset_in(const conv_array &a, const int64_t (&at)[CONV_SPACE])
{
    int64_t offset = 0;
    for (int d = 0; d < CONV_SPACE; d++)
        offset += at[d] * a.space_step[d];
    return offset;
}

/* A matrix [rows, columns] in scratch memory, with the distance of its rows. */
struct scratch_matrix {
    void *data;
    int64_t rows, ld;
    divisor columns;
};

/* Row s, counted from `row`: a channel of x, counted from `channel`, and a place of the kernel. Column p: position
 * `position` + p of the images and the spatial dims of another array. */
struct columns {
    scratch_matrix to;
    conv_array x;
    int64_t row, channel, position;
    space places, positions;
    reach along[CONV_SPACE];
};

template <typename T> __global__ void __launch_bounds__(CONV_THREADS) read_columns(columns c)
{
    const int64_t count = c.to.rows * c.to.columns.by, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int64_t row = quotient(c.to.columns, i), column = i - row * c.to.columns.by;
        int64_t k[CONV_SPACE], p[CONV_SPACE], at[CONV_SPACE];
        const int64_t channel = c.channel + index_in(c.places, c.row + row, k);
        const int64_t image = index_in(c.positions, c.position + column, p);
        bool inside = true;
        for (int d = 0; d < CONV_SPACE; d++) {
            const reach &r = c.along[d];
            at[d] = r.by * p[d] + r.first + k[d] * r.step;
            inside &= at[d] >= 0 && at[d] < c.x.space[d];
        }
        ((T *)c.to.data)[row * c.to.ld + column] =
            inside ? ((const T *)c.x.data)[image * c.x.step[0] + channel * c.x.step[1] + offset_in(c.x, at)]
                   : of<T>::real(0);
    }
}

/* Rows of a matrix are channels of an array from `channel` on, columns its positions. */
struct channels {
    scratch_matrix matrix;
    conv_array array;
    int64_t channel, position;
    space positions;
};

/* READS: the matrix becomes the array's elements; else these become the matrix, whose numbers may be wider. */
template <typename T, typename NUMBER, bool READS>
__global__ void __launch_bounds__(CONV_THREADS) move_channels(channels c)
{
    const int64_t count = c.matrix.rows * c.matrix.columns.by, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int64_t row = quotient(c.matrix.columns, i), column = i - row * c.matrix.columns.by;
        int64_t p[CONV_SPACE];
        const int64_t image = index_in(c.positions, c.position + column, p);
        NUMBER *in_matrix = (NUMBER *)c.matrix.data + row * c.matrix.ld + column;
        T *in_array =
            (T *)c.array.data + image * c.array.step[0] + (c.channel + row) * c.array.step[1] + offset_in(c.array, p);
        if constexpr (READS)
            *in_matrix = *in_array;
        else
            *in_array = of<T>::store((typename of<T>::number)of<NUMBER>::load(*in_matrix));
    }
}

/* Rows of a matrix are channels of weights, `rows` for each group; columns, counted from `column`, are their other
 * channels and the places of the kernel. */
struct weights {
    scratch_matrix matrix;
    conv_array w;
    divisor rows;
    int64_t column;
    int64_t first, group_step, row_step, column_step; /* first: the element of the first row, before the places */
    space places;
};

/* READS: the matrix becomes the weights; else these become the matrix, whose numbers may be wider. */
template <typename T, typename NUMBER, bool READS>
__global__ void __launch_bounds__(CONV_THREADS) move_weights(weights m)
{
    const int64_t count = m.matrix.rows * m.matrix.columns.by, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int64_t row = quotient(m.matrix.columns, i), column = i - row * m.matrix.columns.by;
        const int64_t group = quotient(m.rows, row);
        int64_t k[CONV_SPACE];
        const int64_t channel = index_in(m.places, m.column + column, k);
        NUMBER *in_matrix = (NUMBER *)m.matrix.data + row * m.matrix.ld + column;
        T *in_weights = (T *)m.w.data + m.first + group * m.group_step + (row - group * m.rows.by) * m.row_step +
                        channel * m.column_step + offset_in(m.w, k);
        if constexpr (READS)
            *in_matrix = *in_weights;
        else
            *in_weights = of<T>::store((typename of<T>::number)of<NUMBER>::load(*in_matrix));
    }
}

#endif
