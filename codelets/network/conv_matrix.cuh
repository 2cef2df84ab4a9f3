/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of convolutions on a GPU between their products: tensors become matrices in scratch memory, and matrices
 * tensors. */
#ifndef CODELETS_CONV_MATRIX_CUH
#define CODELETS_CONV_MATRIX_CUH

#include "conv_space.cuh"
#include "number.cuh"

enum { CONV_THREADS = 256 };

/* Along a spatial dim, position i of one array and place k of the kernel lead to index by i + first + k step of
 * another. */
struct reach {
    int64_t by, first, step;
};

/* A matrix [rows, columns] in scratch memory, with the distance of its rows. */
struct scratch_matrix {
    void *data;
    int64_t rows, ld;
    divisor columns;
};

/* Calls each(row, column) for the thread's elements. */
template <typename F> static __device__ inline void each_in_matrix(const scratch_matrix &m, F each)
{
    const int64_t count = m.rows * m.columns.by, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int64_t row = quotient(m.columns, i);
        each(row, i - row * m.columns.by);
    }
}

/* READS: a number of a matrix becomes an element of a tensor, of the same type; else the reverse, and the number may be
 * wider. */
template <bool READS, typename T, typename NUMBER>
static __device__ inline void move_element(NUMBER *number, T *element)
{
    if constexpr (READS)
        *number = *element;
    else
        *element = of<T>::store((typename of<T>::number)of<NUMBER>::load(*number));
}

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
    each_in_matrix(c.to, [&](int64_t row, int64_t column) {
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
            inside ? ((const T *)c.x.data)[image * c.x.step[0] + channel * c.x.step[1] + conv_offset(&c.x, at)]
                   : of<T>::real(0);
    });
}

/* Rows of a matrix are channels of an array from `channel` on, columns its positions. */
struct channels {
    scratch_matrix matrix;
    conv_array array;
    int64_t channel, position;
    space positions;
};

/* READS: the matrix becomes the array's elements; else these become the matrix. */
template <typename T, typename NUMBER, bool READS>
__global__ void __launch_bounds__(CONV_THREADS) move_channels(channels c)
{
    each_in_matrix(c.matrix, [&](int64_t row, int64_t column) {
        int64_t p[CONV_SPACE];
        const int64_t image = index_in(c.positions, c.position + column, p);
        move_element<READS>((NUMBER *)c.matrix.data + row * c.matrix.ld + column,
                            (T *)c.array.data + image * c.array.step[0] + (c.channel + row) * c.array.step[1] +
                                conv_offset(&c.array, p));
    });
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

/* READS: the matrix becomes the weights; else these become the matrix. */
template <typename T, typename NUMBER, bool READS>
__global__ void __launch_bounds__(CONV_THREADS) move_weights(weights m)
{
    each_in_matrix(m.matrix, [&](int64_t row, int64_t column) {
        int64_t k[CONV_SPACE];
        const int64_t group = quotient(m.rows, row), channel = index_in(m.places, m.column + column, k);
        move_element<READS>((NUMBER *)m.matrix.data + row * m.matrix.ld + column,
                            (T *)m.w.data + m.first + group * m.group_step + (row - group * m.rows.by) * m.row_step +
                                channel * m.column_step + conv_offset(&m.w, k));
    });
}

#endif
