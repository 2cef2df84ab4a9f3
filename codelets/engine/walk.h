/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which kernels go over strided views: dims aligned, sorted and merged. For CPUs and GPUs alike. */
#ifndef CODELETS_WALK_H
#define CODELETS_WALK_H

#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The dims to walk, outermost first; at least one. */
typedef struct walk {
    int n, ndim;
    int64_t extent[TRAMA_MAX_NDIM];
    int64_t *step[TRAMA_MAX_NDIM]; /* each [n], in elements */
} walk;

/* Fills in extents and steps for n views: those of view[0] are walked; the others are right-aligned to it, and an
 * extent of 1 is repeated. Dims are ordered by the strides of view[0] and merged where all views allow it. steps: room
 * for TRAMA_MAX_NDIM * n numbers, which the walk keeps. False where there is no element. */
bool walk_of(walk *w, int n, const trama_view *const *view, int64_t *steps);

#ifdef __cplusplus
}
#endif
#endif
