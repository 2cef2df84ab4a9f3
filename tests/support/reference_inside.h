/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the reference ops share this: elements by their global index, and the checks of boxes. */
#ifndef REFERENCE_INSIDE_H
#define REFERENCE_INSIDE_H

#include <math.h>
#include <string.h>

#include "ops.h"
#include "reference.h"

#define OP(name, ...) void run_##name(const trama_call *call);
#include "ops.def"

/* Runs a call with complex operands or results; false where it has none. */
bool run_complex(const trama_call *call, void (*run)(const trama_call *call));

/* Ends the program, or the attempt. */
_Noreturn void impossible(const trama_call *call, const char *problem);

typedef struct point {
    int ndim;
    int64_t at[TRAMA_MAX_NDIM]; /* global */
} point;

/* The first element of a box; false where it is empty. */
static inline bool first(const trama_view *v, point *i)
{
    i->ndim = v->ndim;
    for (int d = 0; d < v->ndim; d++) {
        i->at[d] = v->offset[d];
        if (v->extent[d] == 0)
            return false;
    }
    return true;
}

static inline bool next(const trama_view *v, point *i)
{
    for (int d = v->ndim - 1; d >= 0; d--) {
        if (++i->at[d] < v->offset[d] + v->extent[d])
            return true;
        i->at[d] = v->offset[d];
    }
    return false;
}

#define FOR_EACH_AS(more, view, i) for (bool more = first(view, i); more; more = next(view, i))
#define FOR_EACH(view, i) FOR_EACH_AS(some_, view, i)

/* Kernels know extents only, so where two tensors share a dim their boxes must be the same there, if it is not
 * repeated. */
static inline void agree(const trama_call *call, const trama_view *a, int dim_a, const trama_view *b, int dim_b)
{
    bool repeats = a->global[dim_a] == 1 || b->global[dim_b] == 1;
    if (!repeats && (a->offset[dim_a] != b->offset[dim_b] || a->extent[dim_a] != b->extent[dim_b]))
        impossible(call, "two operands, or an operand and the result, are different parts of a dim");
}

/* All dims of a and b, aligned at the right but for the last `but` ones. */
static inline void agree_all(const trama_call *call, const trama_view *a, const trama_view *b, int but)
{
    for (int i = but + 1; i <= a->ndim && i <= b->ndim; i++)
        agree(call, a, a->ndim - i, b, b->ndim - i);
}

/* The element of a global index; dims of global extent 1 repeat, and missing leading dims too. */
static inline double *element(const trama_call *call, const trama_view *v, const point *i)
{
    int64_t at = 0;
    int skipped = i->ndim - v->ndim;
    if (skipped < 0 || !v->data)
        impossible(call, skipped < 0 ? "an operand has too many dims" : "an operand has no data");
    for (int d = 0; d < v->ndim; d++) {
        int64_t wanted = v->global[d] == 1 ? 0 : i->at[d + skipped];
        if (wanted < v->offset[d] || wanted >= v->offset[d] + v->extent[d])
            impossible(call, "an operand's box lacks an element that the result's box needs");
        at += (wanted - v->offset[d]) * v->stride[d];
    }
    return (double *)v->data + at * (trama_dtype_kind_of(v->dtype) == TRAMA_KIND_COMPLEX ? 2 : 1);
}

static inline double get(const trama_call *call, int operand, const point *i)
{
    return *element(call, &call->in[operand], i);
}

static inline void put(const trama_call *call, int result, const point *i, double x)
{
    *element(call, &call->out[result], i) = x;
}

static inline int64_t integer(const trama_call *call, int slot)
{
    return call->attributes->integer[slot];
}

static inline double real(const trama_call *call, int slot)
{
    return call->attributes->real[slot];
}

static inline void fill_result(const trama_call *call, double x)
{
    point i;
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i, x);
}

/* Of a reduction: the index without the reduced dims, or with 0 in their place; and that its views agree in the others.
 */
point reduced(const trama_call *call, const point *full);
void agree_kept(const trama_call *call, const trama_view *full, const trama_view *few);

#endif
