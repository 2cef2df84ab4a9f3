/* SPDX-License-Identifier: Apache-2.0 */
/* The views between which concat, stride and flip copy. */
#ifndef CODELETS_JOIN_H
#define CODELETS_JOIN_H

#include "view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EACH_CONCAT(X) X(2) X(3) X(4)

/* concat: the parts of the result and of operand i that have the same elements; false where there are none. */
bool concat_views(const trama_call *call, int i, trama_view *to, trama_view *from);
trama_view strided_view(const trama_call *call); /* stride: the elements of the operand that the result has */
trama_view flipped_view(const trama_call *call); /* flip: the operand, read from its other ends, by negative strides */

#ifdef __cplusplus
}
#endif
#endif
