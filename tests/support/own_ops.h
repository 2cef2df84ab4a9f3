/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are not built in, for tests of what a user defines: with gradients, several results, new dims, other types,
 * an update, and kernels that fail. */
#ifndef OWN_OPS_H
#define OWN_OPS_H

#include "trama.h"

/* gate [...] of x [...] and w [...]: x w + w w. rows [b, k], [b] of x [b, k]: rows divided by their sums, and the sums.
 * dot [b] of x [b, k] and w [k]: sums over k of x w. positive [b] (i64) of x [b, k]: how many elements of a row are
 * positive. powers [b, n] of x [b]: x^1 to x^n, n an attribute. blend: s = s / 2 + x, over s. All take f64. */
enum { GATE, ROWS, DOT, POSITIVE, POWERS, BLEND, N_OWN };
extern const trama_op *own[N_OWN]; /* while they are defined */

/* An element of an f64 view. */
static inline double *number(const trama_view *v, int ndim, const int64_t *index)
{
    return trama_element(v, ndim, index);
}

void define_own(void);
void destroy_own(void);

/* Kernels alone, for other definitions. picky copies x, and fails where an element is 13. */
trama_status gate_cpu(const trama_call *call);
trama_status rows_cpu(const trama_call *call);
trama_status dot_cpu(const trama_call *call);
trama_status picky_cpu(const trama_call *call);

#endif
