/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of convolutions and pools on the spatial dims of x [n, c, ...]. */
#ifndef ONNX_WINDOWS_H
#define ONNX_WINDOWS_H

#include "onnx_ops.h"
#include "trama_convolution.h"

enum { WINDOW_DIMS = TRAMA_SPATIAL_DIMS };

typedef struct window_dim {
    int64_t in, kernel, stride, dilation, before, after; /* before, after: padding */
} window_dim;
typedef struct window_geometry {
    int n; /* spatial dims; dim i is dim i + 2 of x */
    window_dim dim[WINDOW_DIMS];
} window_geometry;

/* Reads the attributes; kernel [n]: that of the weights, NULL: kernel_shape. False with an error. */
bool windows_of(onnx_node *n, trama_shape x, const int64_t *kernel, window_geometry *g);

/* The same for the builders of dist/network. */
trama_windows windows_as(const window_geometry *g);

#endif
