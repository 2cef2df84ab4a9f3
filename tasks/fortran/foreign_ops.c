/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for a user's ops in Fortran: boxes of a kernel, messages, names, halves. */
#include "trama_op_define.h"

TRAMA_API_BEGIN
trama_status trama_fortran_view(const trama_call *call, bool result, int i, const int64_t *line, int dtype, int rank,
                                trama_view *view);
bool trama_fortran_stands_for(int dtype, int for_dtype); /* foreign.c */
int64_t trama_fortran_lines(const trama_call *call);
trama_status trama_fortran_kernel_fail(const char *text);
trama_status trama_fortran_refuse(const trama_op_use *use, trama_status status, const char *text);
const char *trama_fortran_op_name(const trama_op *op);
int16_t trama_fortran_bf16_of(double x);
int16_t trama_fortran_f16_of(double x);
float trama_fortran_of_bf16(int16_t bits);
float trama_fortran_of_f16(int16_t bits);
TRAMA_API_END

trama_status trama_fortran_kernel_fail(const char *text)
{
    return trama_kernel_fail("%s", text);
}

trama_status trama_fortran_refuse(const trama_op_use *use, trama_status status, const char *text)
{
    return trama_op_refuse(use, status, "%s", text);
}

const char *trama_fortran_op_name(const trama_op *op)
{
    return op ? op->name : "";
}

/* Number of lines of the first result along its last dim. */
int64_t trama_fortran_lines(const trama_call *call)
{
    const trama_view *of = call->out;
    int64_t n = 1;
    for (int d = 0; d < of->ndim; d++)
        n *= d < of->ndim - 1 ? of->extent[d] : of->extent[d] > 0;
    return n;
}

/* Cuts a box to its part of line `line`, from 1, of the first result: dims aligned on the right, extents of 1
 * repeated. */
static void cut_to_line(const trama_view *of, int64_t line, trama_view *view)
{
    int64_t at = 0, left = line - 1;
    for (int d = of->ndim - 2; d >= 0; d--) {
        int own = d + view->ndim - of->ndim;
        if (own >= 0 && view->extent[own] > 1)
            at += left % of->extent[d] * view->stride[own];
        left /= of->extent[d];
    }
    view->data = (char *)view->data + at * (int64_t)trama_dtype_size(view->dtype);
    int last = view->ndim - 1;
    view->stride[0] = last >= 0 && view->extent[last] > 1 ? view->stride[last] : 0;
    view->extent[0] = of->ndim ? of->extent[of->ndim - 1] : 1;
    view->ndim = 1;
}

/* Box i, from 1, of a kernel's operands or results, as an array of this type and rank; line NULL: the whole box. */
trama_status trama_fortran_view(const trama_call *call, bool result, int i, const int64_t *line, int dtype, int rank,
                                trama_view *view)
{
    const char *kind = result ? "result" : "operand";
    if (i < 1 || i > (result ? call->n_out : call->n_in))
        return trama_kernel_fail("there is no %s %d", kind, i);
    *view = result ? call->out[i - 1] : call->in[i - 1];
    if (!trama_fortran_stands_for(dtype, (int)view->dtype))
        return trama_kernel_fail("%s %d is %s, which the kernel does not take", kind, i, trama_dtype_name(view->dtype));
    if (line && (*line < 1 || *line > trama_fortran_lines(call)))
        return trama_kernel_fail("there is no line %lld", (long long)*line);
    if (line)
        cut_to_line(call->out, *line, view);
    if (rank != view->ndim)
        return trama_kernel_fail("%s %d has %d dims, and not %d", kind, i, view->ndim, rank);
    return TRAMA_OK;
}

/* ---- Halves, which Fortran has as integers of their bits ---- */

int16_t trama_fortran_bf16_of(double x)
{
    return (int16_t)trama_bf16_of_double(x).bits;
}

int16_t trama_fortran_f16_of(double x)
{
    return (int16_t)trama_f16_of_double(x).bits;
}

float trama_fortran_of_bf16(int16_t bits)
{
    return trama_float_of_bf16((trama_bf16){(uint16_t)bits});
}

float trama_fortran_of_f16(int16_t bits)
{
    return trama_float_of_f16((trama_f16){(uint16_t)bits});
}
