/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated ranks against one device. */
#include "pair.h"

#include <check.h>

pair pair_new(const trama_program *program, const machine *m, const simulation_options *options, const char *name)
{
    ck_assert_msg(!trama_program_status(program), "%s: %s", name, trama_program_error(program));
    return (pair){simulation_new(program, m, options), single_new(program), program, name};
}

void pair_free(pair *p)
{
    simulation_destroy(&p->many);
    single_destroy(&p->one);
}

void pair_feed(const pair *p, const trama_value *input, const dense *data)
{
    simulation_feed(p->many, input, data);
    single_feed(p->one, input, data);
}

void pair_compare(const pair *p, const trama_value *value, double tolerance)
{
    dense got = simulation_value(p->many, value);
    double wrong = dense_difference(&got, single_value(p->one, value));
    ck_assert_msg(wrong <= tolerance, "%s: %s differs by %g from one device (line %d)", p->name, value->name, wrong,
                  value->where.line);
    dense_free(&got);
}

void pair_run(const pair *p, const trama_target *target, double tolerance)
{
    simulation_run(p->many, target);
    single_run(p->one, target);
    for (int i = 0; i < target->values.n; i++)
        if (target->values.at[i]->kind != VALUE_EFFECT)
            pair_compare(p, target->values.at[i], tolerance);
    for (int i = 0; i < p->program->values.n; i++)
        if (p->program->values.at[i]->kind == VALUE_STATE)
            pair_compare(p, p->program->values.at[i], tolerance);
}

void pair_try(const trama_program *program, const trama_target *target, int n, trama_value *const *inputs,
              const dense *feeds, int n_ranks, double tolerance, const char *name)
{
    for (int ranks = 1; ranks <= n_ranks; ranks++)
        for (int round = 0; round < 3; round++) {
            machine *m = machine_uniform(ranks, 2);
            simulation_options o = {
                .plan = {.max_tiles = 1 + (ranks + round) % 3, 1, 1, .in_place = 1, .no_fusion = !round}};
            machine_vary(m, round < 2 ? 0 : ranks % MACHINE_VARIANTS);
            pair p = pair_new(program, m, &o, name);
            for (int i = 0; i < n; i++)
                pair_feed(&p, inputs[i], &feeds[i]);
            pair_run(&p, target, tolerance);
            pair_free(&p);
            machine_destroy(&m);
        }
}
