/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels along one whole dim: they get their lines, as many as lie side by side. */
#ifndef CODELETS_ALONG_H
#define CODELETS_ALONG_H

#include "loop.h"

enum { ALONG_ARRAYS = 4 };

/* The dim of each array: results first, then operands. */
typedef struct along {
    const trama_call *call;
    int64_t n[ALONG_ARRAYS];    /* elements of a line */
    int64_t step[ALONG_ARRAYS]; /* from one to the next */
    void *scratch;              /* of the kernel; may be NULL */
} along;

/* Calls row over all dims but the axis, as loop_run does; it gets the along as `with`, and data of the first element of
 * lines. Operands without data have lines like result 0. */
void along_run(const trama_call *call, int axis, loop_row *row, void *scratch);

#endif
