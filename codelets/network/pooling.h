/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over spatial dims, for CPUs and GPUs alike. */
#ifndef CODELETS_POOLING_H
#define CODELETS_POOLING_H

#include <stdbool.h>

#include "conv_array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x has the elements of windows, y and index the windows. */
typedef struct pool {
    conv_array x, y, index;
    int64_t global[CONV_SPACE]; /* of x */
    int64_t kernel[CONV_SPACE], stride[CONV_SPACE], dilation[CONV_SPACE];
    int64_t first[CONV_SPACE]; /* local index of x that position 0 of y reads at place 0 */
    bool wide;                 /* the index is i64 */
    double *plane;             /* on CPUs: numbers for one image and channel of x */
} pool;

/* index: a view like y, which may be y. */
pool pool_of(const trama_call *call, const trama_view *x, const trama_view *y, const trama_view *index);

/* The local indices in x of an index in its flattened spatial dims. False: the window at local indices `window` of y
 * does not have it, or this box does not. */
static TRAMA_HOST_DEVICE inline bool pool_find(const pool *p, const int64_t *window, int64_t index, int64_t *at)
{
    bool inside = index >= 0;
    for (int d = CONV_SPACE - 1; d >= 0 && inside; index /= p->global[d--]) {
        at[d] = (d ? index % p->global[d] : index) - p->x.offset[d];
        const int64_t in_window = at[d] - p->first[d] - window[d] * p->stride[d];
        inside = at[d] >= 0 && at[d] < p->x.space[d] && in_window >= 0 && in_window % p->dilation[d] == 0 &&
                 in_window / p->dilation[d] < p->kernel[d];
    }
    return inside;
}

#ifdef __cplusplus
}
#endif
#endif
