/* SPDX-License-Identifier: Apache-2.0 */
/* Alignment, order and merging of dims. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

/* The step of an array along dim d of the space. */
static int64_t step_along(const trama_view *space, const trama_view *view, int d)
{
    const int own = d - space->ndim + view->ndim;
    return own < 0 || view->extent[own] == 1 ? 0 : view->stride[own];
}

/* Puts dim d of the space behind all dims with larger or equal strides of array 0. */
static void walk_insert(walk *w, const trama_view *const *view, int d)
{
    int at = w->ndim++;
    int64_t *step = w->step[at];

    for (int a = 0; a < w->n; a++)
        step[a] = step_along(view[0], view[a], d);
    for (; at > 0 && llabs(w->step[at - 1][0]) < llabs(step[0]); at--) {
        w->extent[at] = w->extent[at - 1];
        w->step[at] = w->step[at - 1];
    }
    w->extent[at] = view[0]->extent[d];
    w->step[at] = step;
}

/* At least one dim, maybe of extent 1; false if there is nothing to walk. */
static bool walk_dims(walk *w, const trama_view *const *view)
{
    for (int d = 0; d < view[0]->ndim; d++) {
        if (view[0]->extent[d] == 0)
            return false;
        if (view[0]->extent[d] > 1)
            walk_insert(w, view, d);
    }
    if (w->ndim == 0) {
        w->ndim = 1;
        w->extent[0] = 1;
        memset(w->step[0], 0, (size_t)w->n * sizeof *w->step[0]);
    }
    return true;
}

static bool can_merge(const walk *w, int outer, int inner)
{
    for (int a = 0; a < w->n; a++)
        if (w->step[outer][a] != w->step[inner][a] * w->extent[inner])
            return false;
    return true;
}

/* Merges each dim into the one before it where all arrays run on without a gap. */
static void walk_merge(walk *w)
{
    int last = 0;
    for (int d = 1; d < w->ndim; d++) {
        const bool merged = can_merge(w, last, d);
        const int64_t before = merged ? w->extent[last] : 1;
        last += !merged;
        w->extent[last] = before * w->extent[d];
        w->step[last] = w->step[d];
    }
    w->ndim = last + 1;
}

bool walk_of(walk *w, int n, const trama_view *const *view, int64_t *steps)
{
    *w = (walk){.n = n};
    for (int d = 0; d < TRAMA_MAX_NDIM; d++)
        w->step[d] = steps + (ptrdiff_t)d * n;
    if (!walk_dims(w, view))
        return false;
    walk_merge(w);
    return true;
}
