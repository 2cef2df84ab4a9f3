/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of views, for kernels on CPUs and GPUs. */
#ifndef CODELETS_VIEW_H
#define CODELETS_VIEW_H

#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The smaller and the larger of two extents, and one rounded up to a multiple. */
static inline int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}
static inline int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}
static inline int64_t rounded_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Number of elements in the box. */
int64_t view_count(const trama_view *view);
/* The view without dim d, at index 0 of that dim; the other dims stay. */
trama_view view_without(const trama_view *view, int d);
/* Of a complex view the real (0) or imaginary (1) parts; a real view itself. */
trama_view view_part(const trama_view *view, int part);

/* Ends the process: planning must have refused this call, or CUDA reports an error. The message names op and shapes. */
void kernel_impossible(const trama_call *call, const char *why) __attribute__((noreturn));

/* ---- Views that ops compute on: in the .c file of the op ---------------------------------------- */

/* Reductions: whether they reduce dim d; the operand at index 0 of the reduced dims, as a view that fits the result;
 * the number of elements of the whole tensor that make one result. */
bool is_reduced(const trama_call *call, int d);
trama_view kept_view(const trama_call *call);
double reduced_count(const trama_call *call);
/* expand: the operand with the dims of axes put back, repeated along them; the number of repetitions. */
trama_view expanded_view(const trama_call *call);
double expand_repeats(const trama_call *call);

/* transpose: the operand with its dims in the order of the result. */
trama_view transposed_view(const trama_call *call);
/* window: the parts of the result and of the operand that have the same elements; false where there are none. *all: the
 * whole result is such a part. */
bool window_views(const trama_call *call, trama_view *to, trama_view *from, bool *all);

/* reshape: ends the process where the operand's box lacks the first or the last element of the result's. */
void reshape_check(const trama_call *call);

#ifdef __cplusplus
}
#endif
#endif
