/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills boxes on a GPU. It knows no op. */
#include "kernel.h"
#include "number.cuh"
#include "unit.cuh"
#include "view.h"
#include "walk.cuh"

enum { THREADS = 256, IN_FLIGHT = 4 };

/* ---- Copy -------------------------------------------------------------------------------------- */

/* Each thread reads IN_FLIGHT units before it writes them. */
template <typename U> __global__ void copy_units(grid_walk<2> w)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += threads * IN_FLIGHT) {
        U held[IN_FLIGHT];
        int64_t to[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (i + k * threads < w.count) {
                int64_t at[2];
                grid_walk_at(w, i + k * threads, at);
                held[k] = ((const U *)w.data[1])[at[1]];
                to[k] = at[0];
            }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (i + k * threads < w.count)
                ((U *)w.data[0])[to[k]] = held[k];
    }
}

static void copy_walk(grid_walk<2> w, size_t size, const gpu *g)
{
    const int units = grid_walk_units(w, size, (int)(16 / size));
    grid_walk_join(&w, units);
    with_unit(units * size, [&](auto unit) {
        typedef decltype(unit) U;
        GPU_LAUNCH(copy_units<U>, gpu_blocks((w.count + IN_FLIGHT - 1) / IN_FLIGHT, THREADS, g), THREADS, g, w);
    });
}

/* Elements first to first + n of a walk that is one run. */
static void copy_part(grid_walk<2> w, int64_t first, int64_t n, size_t size, const gpu *g)
{
    if (n == 0)
        return;
    w.count = n;
    w.extent[0] = divisor_of(n);
    for (int a = 0; a < 2; a++)
        w.data[a] = (char *)w.data[a] + first * (int64_t)size;
    copy_walk(w, size, g);
}

/* A run of at least LONG_RUN bytes is cut so that all of it but its ends moves in the widest units. */
enum { LONG_RUN = 1 << 16 };
static bool is_long_run(const grid_walk<2> &w, size_t size)
{
    const uintptr_t to = (uintptr_t)w.data[0], from = (uintptr_t)w.data[1];
    return w.ndim == 1 && w.step[0][0] == 1 && w.step[0][1] == 1 && to % 16 == from % 16 &&
           w.count * (int64_t)size >= LONG_RUN;
}

static void copy_run(const grid_walk<2> &w, size_t size, const gpu *g)
{
    const int64_t unit = (int64_t)(16 / size), head = (int64_t)(-(uintptr_t)w.data[0] % 16 / size);
    const int64_t body = (w.count - head) / unit * unit;
    copy_part(w, 0, head, size, g);
    copy_part(w, head, body, size, g);
    copy_part(w, head + body, w.count - head - body, size, g);
}

/* A plane whose rows are contiguous in the destination and whose columns are in the source, turned tile by tile through
 * shared memory, in words of N elements each. The other dims are walked: each element of that walk is a plane. */
struct plane {
    int64_t rows, columns;     /* along the destination's contiguous dim, along the source's */
    int64_t out_step, in_step; /* from column to column in the destination, from row to row in the source */
    divisor row_tiles, column_tiles;
    grid_walk<2> rest;
};
enum { TILE = 32, TILE_ROWS = 8, LEAST_PLANE = 8 };

template <typename W, typename E> union word {
    W whole;
    E at[sizeof(W) / sizeof(E)];
};

/* A tile has TILE x TILE blocks of N rows and N columns. A thread turns a block in its registers, so that shared memory
 * holds whole words: word i of block (r, c) has the rows of block r in column i of block c. */
template <typename W, typename E> __global__ void __launch_bounds__(TILE *TILE_ROWS) copy_tiles(plane p)
{
    constexpr int N = (int)(sizeof(W) / sizeof(E));
    __shared__ W tile[N][TILE][TILE + 1];
    const int64_t across = quotient(p.column_tiles, blockIdx.x), down = quotient(p.row_tiles, across);
    const int64_t column = (blockIdx.x - across * p.column_tiles.by) * TILE;      /* in words */
    const int64_t row = (across - down * p.row_tiles.by) * TILE, x = threadIdx.x; /* in words */
    int64_t at[2];

    grid_walk_at(p.rest, down, at);
    E *out = (E *)p.rest.data[0] + at[0];
    const E *in = (const E *)p.rest.data[1] + at[1];
#pragma unroll
    for (int k = 0; k < TILE; k += TILE_ROWS) {
        const int r = k + (int)threadIdx.y;
        word<W, E> read[N], turned[N];
        if ((row + r) * N >= p.rows || (column + x) * N >= p.columns)
            continue;
#pragma unroll
        for (int i = 0; i < N; i++)
            read[i].whole = *(const W *)(in + ((row + r) * N + i) * p.in_step + (column + x) * N);
#pragma unroll
        for (int i = 0; i < N; i++) {
#pragma unroll
            for (int j = 0; j < N; j++)
                turned[i].at[j] = read[j].at[i];
            tile[i][r][x] = turned[i].whole;
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k += TILE_ROWS) {
        const int c = k + (int)threadIdx.y;
        if ((column + c) * N < p.columns && (row + x) * N < p.rows)
#pragma unroll
            for (int i = 0; i < N; i++)
                *(W *)(out + ((column + c) * N + i) * p.out_step + (row + x) * N) = tile[i][x][c];
    }
}

/* The dim along which array a is contiguous and long enough for tiles to pay, or -1. */
static int contiguous_dim(const grid_walk<2> &w, int a)
{
    int d = w.ndim - 1;
    while (d >= 0 && !(w.step[d][a] == 1 && w.extent[d].by >= LEAST_PLANE))
        d--;
    return d;
}

/* The walk without a dim, at index 0 of it. */
static grid_walk<2> walk_without(grid_walk<2> w, int d)
{
    w.count /= w.extent[d].by;
    if (w.ndim == 1) {
        w.extent[0] = divisor_of(1);
        return w;
    }
    w.ndim--;
    for (; d < w.ndim; d++) {
        w.extent[d] = w.extent[d + 1];
        for (int a = 0; a < 2; a++)
            w.step[d][a] = w.step[d + 1][a];
    }
    return w;
}

/* Whether all rows and columns of the plane are whole words of n elements, and fill a tile of them. */
static bool has_words(const plane &p, size_t size, int n)
{
    const uintptr_t bytes = (uintptr_t)n * size;
    int64_t all = p.rows | p.columns | p.out_step | p.in_step;
    for (int d = 0; d < p.rest.ndim; d++)
        all |= p.rest.extent[d].by == 1 ? 0 : p.rest.step[d][0] | p.rest.step[d][1];
    return p.rows >= TILE * n && p.columns >= TILE * n && all % n == 0 && (uintptr_t)p.rest.data[0] % bytes == 0 &&
           (uintptr_t)p.rest.data[1] % bytes == 0;
}

template <typename W, typename E> static void copy_words(plane p, const gpu *g)
{
    const int64_t n = TILE * (int64_t)(sizeof(W) / sizeof(E));
    p.row_tiles = divisor_of((p.rows + n - 1) / n);
    p.column_tiles = divisor_of((p.columns + n - 1) / n);
    const int64_t tiles = p.row_tiles.by * p.column_tiles.by * p.rest.count;
    GPU_LAUNCH((copy_tiles<W, E>), (unsigned)tiles, dim3(TILE, TILE_ROWS), g, p);
}

static bool copy_planes(const grid_walk<2> &w, size_t size, const gpu *g)
{
    const int row = contiguous_dim(w, 0), column = contiguous_dim(w, 1);
    if (row < 0 || column < 0 || row == column)
        return false;
    plane p = {};
    p.rows = w.extent[row].by;
    p.columns = w.extent[column].by;
    p.out_step = w.step[column][0];
    p.in_step = w.step[row][1];
    p.rest = walk_without(walk_without(w, row > column ? row : column), row > column ? column : row);
    if (size == 1 && has_words(p, size, 4))
        copy_words<uint32_t, uint8_t>(p, g);
    else if (size == 2 && has_words(p, size, 4))
        copy_words<uint64_t, uint16_t>(p, g);
    else if (size == 2 && has_words(p, size, 2))
        copy_words<uint32_t, uint16_t>(p, g);
    else if (size == 4 && has_words(p, size, 2))
        copy_words<uint64_t, uint32_t>(p, g);
    else
        with_unit(size, [&](auto unit) { copy_words<decltype(unit), decltype(unit)>(p, g); });
    return true;
}

void gpu_copy(const trama_view *destination, const trama_view *source, const gpu *g)
{
    const trama_view *const views[] = {destination, source};
    const size_t size = trama_dtype_size(destination->dtype);
    grid_walk<2> w;
    bool same;

    if (!grid_walk_of(&w, views))
        return;
    same = w.data[0] == w.data[1];
    for (int d = 0; d < w.ndim; d++)
        same &= w.step[d][0] == w.step[d][1];
    if (same)
        return;
    if (is_long_run(w, size))
        copy_run(w, size, g);
    else if (!copy_planes(w, size, g))
        copy_walk(w, size, g);
}

/* ---- Fill -------------------------------------------------------------------------------------- */

template <typename U> __global__ void fill_units(grid_walk<1> w, U value)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += threads) {
        int64_t at[1];
        grid_walk_at(w, i, at);
        ((U *)w.data[0])[at[0]] = value;
    }
}

void gpu_fill(const trama_view *destination, double value, const gpu *g)
{
    const size_t size = trama_dtype_size(destination->dtype);
    unsigned char bytes[16];
    grid_walk<1> w;

    if (trama_dtype_kind_of(destination->dtype) == TRAMA_KIND_COMPLEX) {
        const trama_view real = view_part(destination, 0), imaginary = view_part(destination, 1);
        gpu_fill(&real, value, g);
        return gpu_fill(&imaginary, 0, g);
    }
    if (!grid_walk_of(&w, &destination))
        return;
    with_dtype(destination->dtype, [&](auto element) {
        element = of<decltype(element)>::real(value);
        for (size_t i = 0; i < sizeof bytes; i += sizeof element)
            memcpy(bytes + i, &element, sizeof element);
    });
    const int units = grid_walk_units(w, size, (int)(16 / size));
    grid_walk_join(&w, units);
    with_unit(units * size, [&](auto unit) {
        memcpy(&unit, bytes, sizeof unit);
        GPU_LAUNCH(fill_units<decltype(unit)>, gpu_blocks(w.count, THREADS, g), THREADS, g, w, unit);
    });
}
