/* SPDX-License-Identifier: Apache-2.0 */
/* A small program on one rank with one place: its plan, run beside one device. */
#ifndef ONE_PLACE_H
#define ONE_PLACE_H

#include <check.h>

#include "pair.h"
#include "trama_ops.h"

static trama_program *p;
static trama_mesh *mesh;
static trama_value *x, *w, *row;
static simulation *s;
static machine *table;
static pair both;
static bool on_gpu; /* where plan_of runs */

static const trama_init init = {-1, 1, 1, 1};
static const plan_options coarse = {.grain_flops = 1 << 30, .grain_bytes = 1 << 30},
                          fine = {.grain_flops = 1, .grain_bytes = 1};

static inline void set_up(void)
{
    on_gpu = false;
    p = trama_program_create();
    mesh = trama_mesh_create("2");
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(12, 8));
    w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(8, 8), &init);
    row = trama_parameter(p, "row", TRAMA_F64, TRAMA_SHAPE(8), &init);
}

static inline void drop_run(void)
{
    if (s)
        pair_free(&both);
    s = NULL;
    machine_destroy(&table);
}

static inline void tear_down(void)
{
    drop_run();
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}

/* Runs a target of these values on one rank of one place; its plan. */
static inline const plan *plan_of(int workers, const plan_options *options, int n, trama_value *const *values)
{
    char name[] = {(char)('a' + p->targets.n), 0};
    dense data = dense_random(x->shape, 1, -1, 1, false);
    trama_target *t = trama_target_at(TRAMA_HERE, p, name, n, values);
    drop_run();
    table = machine_uniform(1, workers);
    table->places[0].gpu = on_gpu;
    both = pair_new(p, table, &(simulation_options){.plan = *options}, "one place");
    s = both.many;
    pair_feed(&both, x, &data);
    pair_run(&both, t, 1e-12);
    dense_free(&data);
    return simulation_plan(s, 0);
}
#define PLAN(workers, options, ...)                                                                                    \
    plan_of(workers, options, sizeof((trama_value *[]){__VA_ARGS__}) / sizeof(trama_value *),                          \
            (trama_value *[]){__VA_ARGS__})

static inline int computes(const plan *plan_)
{
    return plan_count(plan_).computes;
}

/* Bit i: worker i has a step of its own. */
static inline int lanes_used(const plan *plan_)
{
    int lanes = 0;
    for (int i = 0; i < plan_->steps.n; i++)
        lanes |= plan_->steps.at[i].lane >= 0 ? 1 << plan_->steps.at[i].lane : 0;
    return lanes;
}

#endif
