/* SPDX-License-Identifier: Apache-2.0 */
/* The last rank does otherwise than the others, and all are told so. */
#ifndef DISAGREEMENT_H
#define DISAGREEMENT_H

#include "context.h"
#include "harness.h"

/* The last rank does otherwise. */
static inline bool astray(void)
{
    return my_rank == n_ranks - 1;
}

static char told[1024];

/* All ranks have the same message, which has all the words. */
static inline void demand_told(int line, trama_status status, const char *const *words)
{
    char mine[sizeof told] = "", *all = malloc((size_t)n_ranks * sizeof mine);
    demand(status == TRAMA_E_ORDER, "line %d: status %d: %s", line, (int)status, trama_error());
    snprintf(told, sizeof told, "%s", trama_error());
    snprintf(mine, sizeof mine, "%s", told);
    must(context_gather(ctx, "told", mine, sizeof mine, all));
    for (int r = 0; r < n_ranks; r++)
        demand(!strcmp(all + (size_t)r * sizeof mine, mine), "line %d: \"%s\", but rank %d has \"%s\"", line, mine, r,
               all + (size_t)r * sizeof mine);
    for (; *words; words++)
        demand(strstr(mine, *words), "line %d: \"%s\" does not say \"%s\"", line, mine, *words);
    free(all);
}
#define expect_told(call, ...) demand_told(__LINE__, call, (const char *const[]){__VA_ARGS__, NULL})

static inline void demand_again(int line, trama_status status)
{
    demand(status == TRAMA_E_ORDER && !strcmp(trama_error(), told), "line %d: status %d, \"%s\" instead of \"%s\"",
           line, (int)status, trama_error(), told);
}
#define expect_again(call) demand_again(__LINE__, call)

/* Ends it all, and begins anew. */
static inline void start_again(const trama_config *config)
{
    expect_again(trama_stop(&ctx));
    demand(!ctx, "trama_stop leaves the context");
    start_with(config);
}

/* Adds one thing to a program, on the last rank another one; the loss is what is trained. */
typedef trama_value *variation(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other);

static inline trama_value *parameter(trama_program *p, const char *name, trama_init init)
{
    return trama_parameter(p, name, TRAMA_F64, TRAMA_SHAPE(4, 4), &init);
}

static inline trama_value *seed(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, parameter(p, "w", (trama_init){.low = -1, .high = 1, .seed = other ? 8 : 7}));
}

static const trama_op *own; /* of a variation that defines one */

/* Compiles the program, in which the last rank has its variation. */
static inline trama_status compile_varied(variation *vary, trama_executable **e)
{
    trama_mesh *mesh = mesh_of("2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 4));
    trama_target_create(p, "t", vary(p, mesh, x, astray()));
    demand(!trama_program_status(p), "recording: %s", trama_program_error(p));
    trama_status status = trama_compile(ctx, p, e);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&own);
    return status;
}

#endif
