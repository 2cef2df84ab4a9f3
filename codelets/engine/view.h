/* SPDX-License-Identifier: Apache-2.0 */
/* Views as such, for both sides of a kernel. */
#ifndef CODELETS_VIEW_H
#define CODELETS_VIEW_H

#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of elements in the box. */
int64_t view_count(const trama_view *view);
/* The view without dim d, at index 0 of it; strides and the rest stay. */
trama_view view_without(const trama_view *view, int d);

/* Ends the process: the call is one that planning must have refused. Names the op and its shapes. */
void kernel_impossible(const trama_call *call, const char *why) __attribute__((noreturn));

/* ---- What ops make of their views: in the .c file of the op ------------------------------------ */

/* Reductions: whether they reduce dim d; the operand at index 0 of the reduced dims, as a view that fits the result;
 * how many elements of the whole tensor are one result. */
bool is_reduced(const trama_call *call, int d);
trama_view kept_view(const trama_call *call);
double reduced_count(const trama_call *call);
/* expand: the operand with the dims of axes put back, repeated along them; and how often. */
trama_view expanded_view(const trama_call *call);
double expand_repeats(const trama_call *call);

/* transpose: the operand with its dims in the order of the result. */
trama_view transposed_view(const trama_call *call);
/* window: the parts of the result and of the operand that are the same elements; false where there are none. *all:
 * nothing of the result lies outside. */
bool window_views(const trama_call *call, trama_view *to, trama_view *from, bool *all);

#ifdef __cplusplus
}
#endif
#endif
