/* SPDX-License-Identifier: Apache-2.0 */
/* An eager program in a live context, and what its values must be. */
#ifndef EAGER_HARNESS_H
#define EAGER_HARNESS_H

#include "eager.h"
#include "network.h"
#include "pieces.h"

typedef struct eager {
    trama_program *p;
    trama_executable *e;
} eager;

static inline eager eager_begin(void)
{
    eager g;
    must(trama_eager(ctx, &g.p, &g.e));
    return g;
}

static inline void eager_end_now(eager *g)
{
    must(trama_program_status(g->p));
    must(trama_executable_destroy(&g->e));
    trama_program_destroy(&g->p);
}

/* The value is as told, exactly. */
static inline void demand_value(eager *g, const trama_value *v, const double *wanted, const char *what)
{
    trama_shape shape = trama_value_shape(v);
    int64_t n = trama_shape_count(shape);
    trama_dtype dtype = trama_value_dtype(v);
    size_t bytes = (size_t)n * trama_dtype_size(dtype);
    void *at = malloc(bytes + 1);
    must(trama_program_status(g->p));
    must(trama_read(g->e, v, at, bytes));
    for (int64_t i = 0; i < n; i++)
        demand(number_at(at, dtype, i) == wanted[i], "%s: element %" PRId64 " is %.17g instead of %.17g", what, i,
               number_at(at, dtype, i), wanted[i]);
    free(at);
}

#endif
