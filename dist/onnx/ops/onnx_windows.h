/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of convolutions and pools on the spatial dims of x [n, c, ...]. */
#ifndef ONNX_WINDOWS_H
#define ONNX_WINDOWS_H

#include "onnx_ops.h"

enum { WINDOW_DIMS = 3 };

typedef struct window_dim {
    int64_t in, kernel, stride, dilation, before, after; /* before, after: padding */
    int64_t out;                                         /* windows */
} window_dim;
typedef struct window_geometry {
    int n; /* spatial dims; dim i is dim i + 2 of x */
    window_dim dim[WINDOW_DIMS];
} window_geometry;

/* Reads the attributes; kernel [n]: that of the weights, NULL: kernel_shape. False with an error. */
bool windows_of(onnx_node *n, trama_shape x, const int64_t *kernel, window_geometry *g);

/* Elements from, from + step, .. of x along dim: `count` of them, 0 outside of x. */
trama_value *window_along(onnx_node *n, trama_value *x, int dim, int64_t from, int64_t count, int64_t step);
/* The reverse: element i of x at index at + i step of a dim of `count` elements, 0 between them. */
trama_value *spread_along(onnx_node *n, trama_value *x, int dim, int64_t at, int64_t count, int64_t step);

#endif
