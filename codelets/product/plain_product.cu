/* SPDX-License-Identifier: Apache-2.0 */
/* Products in plain tiles: of integers, and of all that cuBLASLt has no kernel for. */
#include "plain_product.cuh"

/* Products of a batch, or their sum, in tiles of out. Integers are computed modulo 2^32 or 2^64, halves in f32. */
struct tiled_product {
    product p;
    divisor across, down; /* tiles */
    grid_walk<3> batch;
    int64_t terms; /* products in a sum; else 1 */
};
template <typename T> struct wrapped;
#define WRAPPED(dtype, type, unused)                                                                                   \
    template <> struct wrapped<type> {                                                                                 \
        typedef WRAP_##dtype number;                                                                                   \
    };
EACH_REAL(WRAPPED, )
EACH_INTEGER(WRAPPED, )
template <> struct wrapped<trama_bf16> {
    typedef float number;
};
template <> struct wrapped<trama_f16> {
    typedef float number;
};

enum { TILE = 32, TILE_ROWS = 8 };
template <typename T, typename OUT> __global__ void multiply_tiles(tiled_product t)
{
    typedef typename wrapped<T>::number number;
    __shared__ number xs[TILE][TILE + 1], ys[TILE][TILE + 1];
    const int64_t rest = quotient(t.across, blockIdx.x), batch = quotient(t.down, rest);
    const int64_t row = (rest - batch * t.down.by) * TILE, column = (blockIdx.x - rest * t.across.by) * TILE;
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const product &p = t.p;
    number sum[TILE / TILE_ROWS] = {};
    int64_t at[3];

    for (int64_t term = 0; term < t.terms; term++) {
        grid_walk_at(t.batch, batch + term, at);
        const T *x = (const T *)t.batch.data[1] + at[1], *y = (const T *)t.batch.data[2] + at[2];
        for (int64_t l = 0; l < p.k; l += TILE) {
            for (int i = ty; i < TILE; i += TILE_ROWS) {
                const bool in_x = row + i < p.m && l + tx < p.k, in_y = l + i < p.k && column + tx < p.n;
                xs[i][tx] = in_x ? (number)of<T>::load(x[(row + i) * p.row[1] + (l + tx) * p.column[1]]) : number(0);
                ys[i][tx] = in_y ? (number)of<T>::load(y[(l + i) * p.row[2] + (column + tx) * p.column[2]]) : number(0);
            }
            __syncthreads();
            const int n = p.k - l < TILE ? (int)(p.k - l) : TILE;
            for (int k = 0; k < n; k++)
#pragma unroll
                for (int i = 0; i < TILE / TILE_ROWS; i++)
                    sum[i] += xs[ty + i * TILE_ROWS][k] * ys[k][tx];
            __syncthreads();
        }
    }
    OUT *out = (OUT *)t.batch.data[0] + at[0];
#pragma unroll
    for (int i = 0; i < TILE / TILE_ROWS; i++) {
        const int64_t m = row + ty + i * TILE_ROWS, n = column + tx;
        if (m >= p.m || n >= p.n)
            continue;
        OUT *to = out + m * p.row[0] + n * p.column[0];
        const number product = p.alpha == 1 ? sum[i] : (number)(p.alpha * (double)sum[i]);
        *to = of<OUT>::store(p.beta == 0 ? product : product + (number)of<OUT>::load(*to));
    }
}

void multiply_plainly(const product *p, trama_dtype dtype, bool wide, const grid_walk<3> &batch, bool sums,
                      const gpu *g)
{
    const tiled_product t = {*p, divisor_of((p->n + TILE - 1) / TILE), divisor_of((p->m + TILE - 1) / TILE), batch,
                             sums ? batch.count : 1};
    const unsigned tiles = (unsigned)(t.across.by * t.down.by * (sums ? 1 : batch.count));
    with_number(dtype, [&](auto zero) {
        typedef decltype(zero) type;
        if constexpr (is_half<type>)
            if (wide) {
                GPU_LAUNCH((multiply_tiles<type, float>), tiles, dim3(TILE, TILE_ROWS), g, t);
                return;
            }
        GPU_LAUNCH((multiply_tiles<type, type>), tiles, dim3(TILE, TILE_ROWS), g, t);
    });
}
