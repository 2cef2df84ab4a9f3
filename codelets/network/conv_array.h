/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors with spatial dims, 1 to 3, as ops over windows read them. For CPUs and GPUs alike. */
#ifndef CODELETS_CONV_ARRAY_H
#define CODELETS_CONV_ARRAY_H

#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Spatial dims, with leading ones of extent 1. */
enum { CONV_SPACE = 3 };

/* A box of a tensor [n, channels, space], or of weights [out, in, kernel]. Steps are in elements. */
typedef struct conv_array {
    char *data;
    int64_t n[2], step[2];
    int64_t space[CONV_SPACE], space_step[CONV_SPACE], offset[CONV_SPACE];
} conv_array;

/* Of a view with 3 to 5 dims. */
conv_array conv_array_of(const trama_view *view);

/* The attribute from `slot` on of spatial dim d of CONV_SPACE, whose leading ones have the value `leading`. */
int64_t conv_attribute(const trama_call *call, int slot, int d, int64_t leading);

/* The offset of an index in the spatial dims. */
static TRAMA_HOST_DEVICE inline int64_t conv_offset(const conv_array *a, const int64_t *at)
{
    int64_t offset = 0;
    for (int d = 0; d < CONV_SPACE; d++)
        offset += at[d] * a->space_step[d];
    return offset;
}

/* Elements of the spatial dims. */
static inline int64_t conv_elements(const conv_array *a)
{
    return a->space[0] * a->space[1] * a->space[2];
}

/* A convolution y = conv(x, w), or one of its gradients. */
typedef struct conv_call {
    trama_dtype dtype;
    conv_array x, w, y;
    int64_t stride[CONV_SPACE], dilation[CONV_SPACE], before[CONV_SPACE];
    int64_t groups, in, out; /* groups of this box, and channels of each */
} conv_call;

/* Tensors x, w and y, operands and then results, have these numbers. */
conv_call conv_call_of(const trama_call *call, int x, int w, int y);

#ifdef __cplusplus
}
#endif
#endif
