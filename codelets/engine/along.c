/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over the lines of a call. */
#include "along.h"

void along_run(const trama_call *call, int axis, loop_row *row, void *scratch)
{
    const int n = call->n_out + call->n_in;
    along a = {.call = call, .scratch = scratch};
    trama_view start[ALONG_ARRAYS];
    const trama_view *view[ALONG_ARRAYS];

    if (!row || n > ALONG_ARRAYS)
        kernel_impossible(call, row ? "it has too many operands for lines" : "it does not take this element type");
    for (int i = 0; i < n; i++) {
        const trama_view *v = i < call->n_out ? &call->out[i] : &call->in[i - call->n_out];
        start[i] = view_without(v->data ? v : &call->out[0], axis);
        a.n[i] = v->extent[axis];
        a.step[i] = v->stride[axis];
        view[i] = &start[i];
    }
    loop_run(n, view, row, &a);
}
