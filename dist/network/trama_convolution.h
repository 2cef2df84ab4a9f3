/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools of images and other grids, x [n, channels, space ..] with 1 to 3 spatial dims. trama_program.h
 * tells errors of builders. */
#ifndef TRAMA_CONVOLUTION_H
#define TRAMA_CONVOLUTION_H

#include "trama_program.h"

TRAMA_API_BEGIN

enum {
    TRAMA_SPATIAL_DIMS = 3 /* limit of dims after batch and channels */
};

/* How windows lie on the spatial dims; element d of each list is for dim 2 + d of x. NULL and a zeroed struct: every
 * window that lies within x. Output i reads the indices stride i - before + dilation k, k = 0 .. kernel - 1. Beyond the
 * ends of x are zeros, which a maximum and a mean leave out. */
typedef struct trama_windows {
    size_t size;                        /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    int64_t kernel[TRAMA_SPATIAL_DIMS]; /* pools: elements of a window; convolutions take those of w: 0, or the same */
    int64_t stride[TRAMA_SPATIAL_DIMS]; /* 0: 1; of pools: the kernel */
    int64_t dilation[TRAMA_SPATIAL_DIMS]; /* 0: 1 */
    int64_t before[TRAMA_SPATIAL_DIMS];   /* elements beyond the first end of x that windows may read */
    int64_t after[TRAMA_SPATIAL_DIMS];    /* the same beyond the last end */
    int64_t groups;                       /* convolutions; 0: 1 */
    int64_t more[TRAMA_SPATIAL_DIMS];     /* transposed convolutions: elements added at the end of the result */
    bool up;                              /* pools: a last window may reach beyond `after` if it begins before */
    bool padded;                          /* mean pools: elements of before and after count, as zeros */
} trama_windows;

/* Convolution, as neural networks have it: x [n, groups c, space ..], w [groups o, c, kernel ..], bias [groups o] or
 * NULL:
 *
 *   y[n, o, i ..] = bias[o] + sum over c, k .. of w[o, c, k ..] x[n, c, stride i - before + dilation k, ..]
 *
 * of shape [n, groups o, (extent + before + after - dilation (kernel - 1) - 1) / stride + 1, ..]. Floats only; halves
 * are summed in f32. n, the groups, and without groups c and o may be split; a split of a spatial dim exchanges the
 * elements that windows of two processes read. Spatial extents are known. Memory beside operands and result is bounded.
 *
 * E_SHAPE where the shapes do not fit each other, E_ARGUMENT for windows that do not exist. */
#define trama_conv(x, w, bias, windows) trama_conv_at(TRAMA_HERE, x, w, bias, windows)
trama_value *trama_conv_at(trama_where where, trama_value *x, trama_value *w, trama_value *bias,
                           const trama_windows *windows);
/* The transposed convolution, which is the gradient of a convolution with respect to its operand: x [n, groups o,
 * space ..], w [groups o, c, kernel ..], bias [groups c] or NULL. Extents of the result are
 * (extent - 1) stride + dilation (kernel - 1) + 1 + more - before - after. */
#define trama_conv_transposed(x, w, bias, windows) trama_conv_transposed_at(TRAMA_HERE, x, w, bias, windows)
trama_value *trama_conv_transposed_at(trama_where where, trama_value *x, trama_value *w, trama_value *bias,
                                      const trama_windows *windows);

/* The largest element of each window; NaN is above all numbers. trama_result(result, 1) is the index of the first such
 * element in the flattened spatial dims, i64; the gradient goes to that element. Each window has an element of x. */
#define trama_max_pool(x, windows) trama_max_pool_at(TRAMA_HERE, x, windows)
trama_value *trama_max_pool_at(trama_where where, trama_value *x, const trama_windows *windows);
/* The mean of each window, and the sum; floats. */
#define trama_mean_pool(x, windows) trama_mean_pool_at(TRAMA_HERE, x, windows)
trama_value *trama_mean_pool_at(trama_where where, trama_value *x, const trama_windows *windows);
#define trama_sum_pool(x, windows) trama_sum_pool_at(TRAMA_HERE, x, windows)
trama_value *trama_sum_pool_at(trama_where where, trama_value *x, const trama_windows *windows);

TRAMA_API_END
#endif
