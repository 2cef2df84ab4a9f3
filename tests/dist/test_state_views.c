/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of states and inputs that readers find in place, and the steps that write them. */
#include <check.h>

#include "pair.h"
#include "suite.h"
#include "trama_composed.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "verify_plan.h"

static trama_value *turned(trama_value *x)
{
    return trama_transpose(x, ((int[]){1, 0, 2}));
}

/* Of a plan that runs no more: the last reader of a part of a state and the step that writes the state change places.
 */
static void check_late_reader(plan *p)
{
    int reader = -1, writer = -1;
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[i], k);
            const plan_shard *s = &p->shards.at[o->region.shard];
            if (s->source == SHARD_ALIAS)
                reader = i;
            else if (s->source == SHARD_IMPORT && o->access != ACCESS_READ)
                writer = i;
        }
    ck_assert_int_gt(writer, reader);
    const plan_step late = p->steps.at[reader];
    p->steps.at[reader] = p->steps.at[writer];
    p->steps.at[writer] = late;
    ck_assert_int_ge(plan_wrong_alias(p), 0);
}

/* A state whose update is recorded before its reader, one where it is recorded behind, and one without; and an input,
 * which is fed again while readers go on. */
START_TEST(states_and_inputs_are_read_in_place)
{
    enum { BEFORE, BEHIND, NEVER };
    static const int aliases[] = {1, 2, 2}, copies[] = {2, 0, 0}; /* a copy for each tile */
    for (int written = BEFORE; written <= NEVER; written++) {
        machine *m = machine_uniform(1, 2);
        trama_program *p = trama_program_create();
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(8, 4, 32));
        trama_value *s = trama_parameter(p, "s", TRAMA_F64, TRAMA_SHAPE(8, 4, 32), &(trama_init){-1, 1, 1, 1});
        const trama_optimizer sgd = trama_sgd(0.1);
        trama_value *part = turned(s), *loss = trama_mean(trama_square(trama_softmax(part, -1)));
        trama_value *late = written == BEFORE ? trama_minimize(loss, &sgd) : NULL;
        trama_value *y = trama_add(trama_softmax(trama_softmax(part, -1), 0), trama_softmax(turned(x), -1));
        if (written == BEHIND)
            late = trama_minimize(loss, &sgd);
        trama_target *t = trama_target_at(NOWHERE, p, "t", 1 + (late != NULL), (trama_value *[]){y, late});
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        pair both = pair_new(p, m, &(simulation_options){.plan = {.max_tiles = 2, 1, 1}}, "states and inputs");
        for (int i = 0; i < 3; i++) {
            dense data = dense_random(x->shape, (uint64_t)i, -1, 1, false);
            pair_feed(&both, x, &data);
            pair_run(&both, t, 1e-12);
            dense_free(&data);
        }
        const plan *made = simulation_plan(both.many, 0);
        ck_assert_msg(made->aliases.n == aliases[written] && plan_count_copies(made, p) == copies[written],
                      "case %d: %d aliases, %d copies", written, made->aliases.n, plan_count_copies(made, p));
        ck_assert_int_eq(plan_wrong_alias(made), -1);
        if (written == BEHIND)
            check_late_reader((plan *)made);
        pair_free(&both);
        trama_program_destroy(&p);
        machine_destroy(&m);
    }
}
END_TEST

/* On two processes: the gradient of w is exchanged beside the new content of s, which is written behind the reader of
 * a part of s, whose other operand is that gradient. */
START_TEST(messages_of_updates_wait_for_no_reader)
{
    const trama_shape shapes[] = {TRAMA_SHAPE(4, 32), TRAMA_SHAPE(4, 1, 32)}; /* of s, read as it is or reshaped */
    for (int i = 0; i < 2; i++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create("2");
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(8, 4, 32));
        trama_value *w = trama_parameter(p, "w", TRAMA_F64, shapes[0], &(trama_init){-1, 1, 1, 1});
        trama_value *s = trama_parameter(p, "s", TRAMA_F64, shapes[i], &(trama_init){-1, 1, 1, 2});
        trama_value *t = trama_parameter(p, "t", TRAMA_F64, shapes[i], NULL);
        trama_shard(x, mesh, "S(0)");
        trama_shard(w, mesh, "R");
        trama_shard(s, mesh, "S(0)");
        trama_shard(t, mesh, "R");
        trama_value *g = trama_gradient(trama_mean(trama_square(trama_mul(x, w))), w);
        trama_value *z = trama_softmax(trama_add(g, trama_reshape(s, shapes[0])), -1);
        trama_value *next = trama_tanh(s);
        trama_target *all =
            trama_target_at(NOWHERE, p, "all", 3, (trama_value *[]){z, trama_assign(s, next), trama_assign(t, next)});
        ck_assert_msg(all != NULL, "%s", trama_program_error(p));
        dense data = dense_random(x->shape, 5, -1, 1, false);
        pair_try(p, all, 1, &x, &data, 4, 1e-12, "updates");
        dense_free(&data);
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {states_and_inputs_are_read_in_place, messages_of_updates_wait_for_no_reader};
    return suite_run("state_views", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
