/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements lie that an index points at. The dim that it points into may be a part of the tensor: an index of
 * another part reads 0 and writes nothing. */
#ifndef CODELETS_INDEX_H
#define CODELETS_INDEX_H

#include "kernel.h"
#include "ops.h"
#include "scratch.h"

/* ---- Places ---- */

enum { ELSEWHERE = -1, NOWHERE = -2 }; /* of an index in another part, of one that is not there */

/* The dim that indices point into: a box of it, and its step in memory. */
typedef struct indexed_dim {
    int64_t global, offset, extent, step;
} indexed_dim;

static inline indexed_dim indexed_dim_of(const trama_view *v, int d)
{
    return (indexed_dim){v->global[d], v->offset[d], v->extent[d], v->stride[d]};
}

/* The place of an index in the box, or one of the names above. */
static TRAMA_HOST_DEVICE inline int64_t place(const indexed_dim *d, int64_t index)
{
    const int64_t at = index < 0 ? index + d->global : index, inside = at - d->offset;
    if (at < 0 || at >= d->global)
        return NOWHERE;
    return inside >= 0 && inside < d->extent ? inside : ELSEWHERE;
}

static TRAMA_HOST_DEVICE inline int64_t index_at(const void *data, int64_t i, bool wide)
{
    return wide ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static inline int indexed_axis(const trama_call *call)
{
    return (int)call->attributes->integer[INDEX_AXIS];
}

static inline trama_scatter_how scatter_how(const trama_call *call)
{
    return (trama_scatter_how)call->attributes->integer[SCATTER_HOW];
}

/* ---- Lists of places ---- */

/* The indices in row-major order: the offsets in memory of index i in the tensor that has the dim, or a name of places,
 * and in the one that has the dims of the index. */
typedef struct places {
    int64_t n, *full, *part;
    scratch memory;
} places;

#ifdef __cplusplus
extern "C" {
#endif

/* part: the view that has the dims of the index at axis. False where there is no memory. scratch_free(&p->memory) frees
 * it in both cases. */
bool places_of(places *p, const trama_view *index, const trama_view *part, int axis, const indexed_dim *dim);

/* A view without n dims from d on, at their first elements. */
trama_view view_without_dims(const trama_view *v, int d, int n);

#ifdef __cplusplus
}
#endif

#endif
