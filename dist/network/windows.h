/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of convolutions and pools: their attributes, and how rules and builders read them. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "families.h"
#include "trama_convolution.h"

/* The windows along one spatial dim. */
typedef struct window_dim {
    int64_t kernel, stride, dilation, before;
} window_dim;

/* Spatial dim d of an op's attributes. */
window_dim window_of(const trama_attributes *a, int d, int64_t kernel);

/* The attributes of a node whose tensors have ndim dims: E_SHAPE where one is outside of its limits. */
trama_status windows_check(const trama_node *node, int ndim);

/* Adds spatial dim d to the rule. Bit masks of operands and then results: wide, the tensors that have the elements of
 * windows, and narrow, those that have an element for each window. */
void windows_add_dim(trama_rule *rule, const trama_node *node, int d, window_dim w, unsigned wide, unsigned narrow);

/* Appends an op with the windows of a node; the result has the spatial extents of `shaped`. b may be NULL. */
trama_value *windows_apply(const trama_node *node, const trama_op *op, trama_value *a, trama_value *b,
                           const trama_value *shaped);

/* The user's windows on x: defaults set, checked against x, and kernel [spatial dims] of a convolution, or NULL. False
 * with an error that names `call`. */
bool windows_read(trama_where where, const char *call, const trama_value *x, const int64_t *kernel,
                  const trama_windows *given, trama_windows *own);
/* The number of windows along spatial dim d of extent n, at least 0. */
int64_t windows_count(const trama_windows *w, int d, int64_t n);
/* Writes them as attributes; extents: of the result. */
void windows_write(const trama_windows *w, int spatial, const int64_t *extents, trama_attributes *a);

#endif
