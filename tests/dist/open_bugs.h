/* SPDX-License-Identifier: Apache-2.0 */
/* Values of small programs on simulated ranks against plain loops, for bugs that other systems have or had. */
#ifndef OPEN_BUGS_H
#define OPEN_BUGS_H

#include <check.h>
#include <math.h>
#include <stdio.h>

#include "simulation.h"
#include "suite.h"
#include "trama_ops.h"

enum { MOST_ELEMENTS = 2000 };

static trama_program *p;
static double counted[MOST_ELEMENTS]; /* 0, 1, 2, ... */

static inline void set_up(void)
{
    p = trama_program_create();
    for (int i = 0; i < MOST_ELEMENTS; i++)
        counted[i] = i;
}

static inline void tear_down(void)
{
    trama_program_destroy(&p);
}

static inline trama_value *constant(trama_shape shape, const double *data, const trama_mesh *mesh, const char *layout)
{
    trama_value *v = trama_shard(trama_constant(p, TRAMA_F64, shape, data), mesh, layout);
    ck_assert_msg(v != NULL, "%s: %s", layout, trama_program_error(p));
    return v;
}

static inline trama_target *target(trama_value *v)
{
    static int number;
    char name[16];
    snprintf(name, sizeof name, "t%d", number++);
    trama_target *t = trama_target_create(p, name, v);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    return t;
}

static inline simulation *run_on(const machine *m, trama_target *t)
{
    simulation *s = simulation_new(p, m, &(simulation_options){.plan = {.max_tiles = 2, 1, 1, false}});
    simulation_run(s, t);
    return s;
}

/* On 1 .. most ranks the elements of v are those of wanted, to rounding. */
static inline void expect(trama_value *v, int most, const double *wanted, const char *what)
{
    static int number;
    trama_target *t = target(v);
    for (int ranks = 1; ranks <= most; ranks++) {
        machine *m = machine_uniform(ranks, 1);
        machine_vary(m, (ranks + number++) % MACHINE_VARIANTS);
        simulation *s = run_on(m, t);
        dense got = simulation_value(s, v);
        for (int64_t i = 0; i < trama_shape_count(got.shape); i++)
            ck_assert_msg(fabs(got.at[i] - wanted[i]) <= 1e-13 * fmax(1, fabs(wanted[i])),
                          "%s, %d ranks: element %d is %.17g, not %.17g", what, ranks, (int)i, got.at[i], wanted[i]);
        dense_free(&got);
        simulation_destroy(&s);
        machine_destroy(&m);
    }
}

#endif
