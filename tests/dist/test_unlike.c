/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas on places of unlike kind, which compute unlike bits: here each kind with an error of its own. Those of one
 * kind compute, the others receive, and all have the same bits step after step. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "mlp.h"
#include "pair.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static const int sizes[] = {7, 6, 5, 3};
static const char *const meshes[] = {"dp=2", "mp=2",      "dp=2,mp=2", "mp=2,dp=2", "dp=3",
                                     "dp=4", "dp=2,mp=3", "dp=3,mp=2", "mp=5",      "dp=2,mp=2:3,1,0,2"};
enum { N_MESHES = sizeof meshes / sizeof *meshes, STEPS = 5 };
static const double error = 1e-7;

/* ---- Training ---- */

/* The first disagreement of replicas, of the loss or a state; the caller frees. NULL: none. */
static char *disagreement(const mlp *m, simulation *s)
{
    char *wrong = simulation_disagreement(s, m->loss);
    for (int i = 0; i < m->program->values.n && !wrong; i++)
        if (m->program->values.at[i]->kind == VALUE_STATE)
            wrong = simulation_disagreement(s, m->program->values.at[i]);
    return wrong;
}

static void feed(const mlp *m, simulation *s, int step)
{
    dense x, y;
    mlp_batch(m, 6, 10 * (uint64_t)step, &x, &y);
    simulation_feed(s, m->x, &x);
    simulation_feed(s, m->y, &y);
    dense_free(&x);
    dense_free(&y);
}

typedef struct training {
    const char *mesh, *optimizer;
    int k; /* micro-steps of a cycle */
    const machine *machine;
    simulation_options options;
} training;

/* The first disagreement in some steps; the caller frees. NULL: none. */
static char *train(const training *t)
{
    char *wrong = NULL;
    mlp m = mlp_new(t->mesh, 3, sizes, t->optimizer);
    simulation *s = simulation_of_cycle(m.program, m.train, t->k, t->machine, &t->options);
    for (int step = 0; step < STEPS && !wrong; step++) {
        feed(&m, s, step);
        simulation_run(s, m.train);
        wrong = disagreement(&m, s);
    }
    simulation_destroy(&s);
    mlp_free(&m);
    return wrong;
}

static void train_on_all(const char *optimizer, int k)
{
    for (int i = 0; i < N_MESHES; i++)
        for (int variant = 1; variant < MACHINE_VARIANTS; variant++)
            for (int places = 1; places <= 3; places++)
                for (int fusion = 0; fusion < 2; fusion++) {
                    machine *m = simulation_machine(1 + (i + places) % 4, places, 2);
                    machine_vary(m, variant);
                    training t = {meshes[i], optimizer, k, m, {.plan = {2, 1, 1, !fusion}, .error = error}};
                    char *wrong = train(&t);
                    ck_assert_msg(!wrong, "%s on %d ranks of %d places, variant %d: %s", meshes[i], m->n_ranks, places,
                                  variant, wrong);
                    machine_destroy(&m);
                }
}

START_TEST(replicas_that_adamw_updates_stay_equal)
{
    train_on_all("adamw", 1);
}
END_TEST

START_TEST(replicas_that_sgd_updates_stay_equal)
{
    train_on_all("sgd", 1);
}
END_TEST

START_TEST(replicas_whose_gradients_are_merged_stay_equal)
{
    train_on_all("adamw", 3);
}
END_TEST

START_TEST(plans_that_see_no_difference_drift)
{
    machine *m = machine_uniform(2, 1);
    machine_vary(m, 2);
    training t = {"dp=2", "adamw", 1, m, {.plan = {2, 1, 1, false}, .error = error}};
    ck_assert_ptr_null(train(&t));
    t.options.blind = true;
    char *wrong = train(&t);
    ck_assert_ptr_nonnull(wrong);
    ck_assert_ptr_nonnull(strstr(wrong, "replicas differ"));
    free(wrong);
    t.options.error = 0;
    ck_assert_ptr_null(train(&t));
    machine_destroy(&m);
}
END_TEST

/* Whether all gradients are finite, and their norm, is one more thing that steps wait for before they send states:
 * nobody waits in a circle. */
static void step_together(const trama_mesh *mesh, const machine *m, double clip_norm, const simulation_options *options)
{
    trama_program *p = trama_program_create();
    trama_optimizer o = trama_adam(0.01);
    trama_init init = {-1, 1, 3, 4};
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 2));
    trama_value *v = trama_parameter(p, "v", TRAMA_F64, TRAMA_SCALAR, &init);
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 3), &init);
    trama_shard(x, mesh, mesh->ndim == 2 ? "S(0),R" : "S(0)");
    trama_value *part = trama_div(trama_tanh(x), trama_exp(trama_tanh(v)));
    trama_value *loss = trama_mean(trama_square(trama_tanh(trama_matmul_trans(part, w, true, false))));
    o.clip_norm = clip_norm;
    o.loss_scale = trama_loss_scale_dynamic();
    trama_target *t = trama_target_create(p, "t", loss, trama_minimize(loss, &o));
    pair both = pair_new(p, m, options, "step");
    dense data = dense_random(TRAMA_SHAPE(4, 2), 1, -1, 1, false);
    pair_feed(&both, x, &data);
    for (int step = 0; step < 2; step++)
        pair_run(&both, t, 1e-9);
    dense_free(&data);
    pair_free(&both);
    trama_program_destroy(&p);
}

START_TEST(steps_that_need_all_gradients_first_come_to_their_end)
{
    for (int i = 0; i < N_MESHES; i++)
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int variant = 1; variant < MACHINE_VARIANTS; variant++) {
                trama_mesh *mesh = trama_mesh_create(meshes[i]);
                machine *m = machine_uniform(ranks, 2);
                machine_vary(m, variant);
                for (int k = 0; k < 4; k++)
                    step_together(mesh, m, k < 2 ? INFINITY : 0.5,
                                  &(simulation_options){.plan = {1 + i % 2, 1, 1, k % 2}});
                machine_destroy(&m);
                trama_mesh_destroy(&mesh);
            }
}
END_TEST

/* lamb's states are whole where its parameters are split, so these are read by others before they are updated; what
 * arrives early, in one message with other states, does not overwrite them. */
START_TEST(states_that_arrive_together_wait_for_readers_of_the_old_ones)
{
    for (int variant = 1; variant < MACHINE_VARIANTS; variant++)
        for (int ranks = 1; ranks <= 4; ranks++) {
            trama_mesh *mesh = trama_mesh_create("2,2");
            trama_program *p = trama_program_create();
            trama_optimizer o = trama_lamb(0.01);
            trama_init init = {-1, 1, 3, 4};
            machine *m = machine_uniform(ranks, 2);
            machine_vary(m, variant);
            trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 6)), mesh, "S(0),R");
            trama_value *v = trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(6, 5), &init);
            trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3, 5), &init);
            trama_value *y = trama_shard(trama_tanh(trama_matmul(x, v)), mesh, "S(0),S(1)");
            trama_value *loss = trama_mean(trama_square(trama_matmul_trans(y, w, false, true)));
            trama_target *t = trama_target_create(p, "t", loss, trama_minimize(loss, &o));
            pair both = pair_new(p, m, &(simulation_options){.plan = {1, 1, 1, false}}, "lamb");
            dense data = dense_random(x->shape, 1, -1, 1, false);
            pair_feed(&both, x, &data);
            for (int step = 0; step < 2; step++)
                pair_run(&both, t, 1e-9);
            dense_free(&data);
            pair_free(&both);
            machine_destroy(&m);
            trama_program_destroy(&p);
            trama_mesh_destroy(&mesh);
        }
}
END_TEST

/* Values are those of one device, to the errors. */
START_TEST(training_on_unlike_places_is_training)
{
    for (int i = 0; i < N_MESHES; i++)
        for (int variant = 1; variant < MACHINE_VARIANTS; variant++) {
            machine *table = simulation_machine(2, 1 + i % 3, 2);
            machine_vary(table, variant);
            mlp m = mlp_new(meshes[i], 3, sizes, "sgd");
            pair both =
                pair_new(m.program, table, &(simulation_options){.plan = {2, 1, 1, false}, .error = error}, meshes[i]);
            for (int step = 0; step < STEPS; step++) {
                dense x, y;
                mlp_batch(&m, 5, 10 * (uint64_t)step, &x, &y);
                pair_feed(&both, m.x, &x);
                pair_feed(&both, m.y, &y);
                pair_run(&both, m.train, 1e-4);
                dense_free(&x);
                dense_free(&y);
            }
            pair_free(&both);
            mlp_free(&m);
            machine_destroy(&table);
        }
}
END_TEST

/* ---- Bytes ---- */

/* Ranks receive what goes between them; and each exchange, where there is a bound, what its processes lack. */
static void check_account(const simulation *s, int ranks, int64_t bytes)
{
    for (int r = 0; r < ranks; r++) {
        const plan *p = simulation_plan(s, r);
        for (int i = 0; i < p->exchanges.n; i++) {
            const plan_exchange *e = &p->exchanges.at[i];
            ck_assert(e->bound < 0 || e->bound == e->received);
            ck_assert(!e->heterogeneous || e->from.mask);
            bytes -= e->received;
        }
    }
    ck_assert_int_eq(bytes, 0);
}

/* Of one run of a target that a function writes, on ranks of one place each: to all ranks. kinds [ranks]. */
typedef trama_target *write_function(trama_program *p, const trama_mesh *mesh);

static int64_t bytes_of(write_function *write, const char *mesh_text, const int *kinds)
{
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_program *p = trama_program_create();
    trama_target *t = write(p, mesh);
    ck_assert_msg(t != NULL, "%s", trama_program_error(p));
    machine *m = machine_uniform(mesh->size, 1);
    for (int i = 0; i < m->n_places; i++) {
        m->places[i].kind = kinds[i];
        m->places[i].gpu = kinds[i] == 1;
    }
    simulation *s = simulation_new(p, m, &(simulation_options){.plan = {1, 1, 1, false}, .error = error});
    for (int i = 0; i < p->values.n; i++)
        if (p->values.at[i]->kind == VALUE_INPUT) {
            dense data = dense_random(p->values.at[i]->shape, (uint64_t)i, -1, 1, false);
            simulation_feed(s, p->values.at[i], &data);
            dense_free(&data);
        }
    simulation_run(s, t);
    for (int i = 0; i < t->values.n; i++) {
        char *wrong = t->values.at[i]->kind == VALUE_EFFECT ? NULL : simulation_disagreement(s, t->values.at[i]);
        ck_assert_msg(!wrong, "%s", wrong);
    }
    int64_t bytes = simulation_traffic(s).bytes;
    check_account(s, m->n_ranks, bytes);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    return bytes;
}

enum { ROWS = 8, COLUMNS = 5, BYTES = 8 * ROWS * COLUMNS };

static trama_value *replicated(trama_program *p, const trama_mesh *mesh)
{
    return trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS)), mesh, "R");
}

static trama_target *write_tanh(trama_program *p, const trama_mesh *mesh)
{
    return trama_target_create(p, "t", trama_tanh(replicated(p, mesh)));
}

/* Nobody but tanh reads exp. */
static trama_target *write_chain(trama_program *p, const trama_mesh *mesh)
{
    return trama_target_create(p, "t", trama_tanh(trama_softmax(trama_exp(replicated(p, mesh)), 1)));
}

static trama_target *write_moves(trama_program *p, const trama_mesh *mesh)
{
    trama_value *x = replicated(p, mesh), *half = trama_cast(x, TRAMA_F32);
    trama_value *y = trama_relu(trama_neg(trama_transpose(trama_shift(x, 0, 1), NULL)));
    return trama_target_create(p, "t", trama_max(y), trama_reshape(y, TRAMA_SHAPE(ROWS * COLUMNS)), half);
}

/* A result that is transposed goes once, in its last form. */
static trama_target *write_move_of_tanh(trama_program *p, const trama_mesh *mesh)
{
    return trama_target_create(p, "t", trama_transpose(trama_tanh(replicated(p, mesh)), NULL));
}

static trama_target *write_pieces_of_tanh(trama_program *p, const trama_mesh *mesh)
{
    trama_value *whole = trama_shard(trama_tanh(replicated(p, mesh)), mesh, "R");
    return trama_target_create(p, "t", trama_exp(trama_reshard(whole, mesh, "S(0)")));
}

/* A move between two ops that round waits with them. */
static trama_target *write_move_between(trama_program *p, const trama_mesh *mesh)
{
    return trama_target_create(p, "t", trama_softmax(trama_transpose(trama_tanh(replicated(p, mesh)), NULL), 0));
}

START_TEST(results_go_once_to_each_place_of_another_kind)
{
    static const int one[] = {0, 1, 1}, two[] = {0, 0, 1}, tie[] = {1, 0, 0, 1}, three[] = {0, 2, 1},
                     alike[] = {1, 1, 1};
    static write_function *const once[] = {write_tanh, write_chain, write_move_of_tanh, write_move_between};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(bytes_of(once[i], "3", one), BYTES);
        ck_assert_int_eq(bytes_of(once[i], "3", two), BYTES);
        ck_assert_int_eq(bytes_of(once[i], "4", tie), 2 * BYTES);
        ck_assert_int_eq(bytes_of(once[i], "3", three), 2 * BYTES);
        ck_assert_int_eq(bytes_of(once[i], "3", alike), 0);
    }
    ck_assert_int_eq(bytes_of(write_pieces_of_tanh, "2", one), BYTES / 2);
    ck_assert_int_eq(bytes_of(write_pieces_of_tanh, "4", tie), BYTES / 2);
}
END_TEST

START_TEST(what_has_equal_bits_anywhere_is_not_sent)
{
    static const int unlike[] = {0, 1, 2, 1};
    ck_assert_int_eq(bytes_of(write_moves, "4", unlike), 0);
    ck_assert_int_eq(bytes_of(write_tanh, "1", unlike), 0);
}
END_TEST

/* y = x w with rows of x on each process, so that w's gradient is a sum of terms. */
static trama_target *write_step(trama_program *p, const trama_mesh *mesh, const trama_optimizer *o)
{
    trama_init init = {-1, 1, 3, 4};
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(12, ROWS)), mesh, "S(0)");
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), &init), mesh, "R");
    return trama_target_create(p, "t", trama_minimize(trama_sum(trama_square(trama_matmul(x, w))), o));
}

static trama_target *write_sgd(trama_program *p, const trama_mesh *mesh)
{
    trama_optimizer o = trama_sgd(0.1);
    return write_step(p, mesh, &o);
}

static trama_target *write_adam(trama_program *p, const trama_mesh *mesh)
{
    trama_optimizer o = trama_adam(0.1);
    return write_step(p, mesh, &o);
}

/* Terms go to those who update, new states to the others. Two who update sum a half each of the others' terms and
 * exchange the sums. */
START_TEST(steps_send_terms_to_those_who_update_and_states_from_them)
{
    static const int alike[] = {0, 0, 0, 0}, two[] = {0, 1}, three[] = {1, 0, 1}, four[] = {0, 1, 0, 1};
    ck_assert_int_eq(bytes_of(write_sgd, "2", alike), 2 * BYTES);
    ck_assert_int_eq(bytes_of(write_sgd, "2", two), BYTES + BYTES);
    ck_assert_int_eq(bytes_of(write_adam, "2", two), BYTES + 3 * BYTES);
    ck_assert_int_eq(bytes_of(write_sgd, "3", three), 2 * (2 * BYTES / 2 + BYTES / 2) + BYTES);
    ck_assert_int_eq(bytes_of(write_adam, "3", three), 2 * (2 * BYTES / 2 + BYTES / 2) + 3 * BYTES);
    ck_assert_int_eq(bytes_of(write_sgd, "4", four), 2 * (3 * BYTES / 2 + BYTES / 2) + 2 * BYTES);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        replicas_that_adamw_updates_stay_equal,
        replicas_that_sgd_updates_stay_equal,
        replicas_whose_gradients_are_merged_stay_equal,
        plans_that_see_no_difference_drift,
        steps_that_need_all_gradients_first_come_to_their_end,
        states_that_arrive_together_wait_for_readers_of_the_old_ones,
        training_on_unlike_places_is_training,
        results_go_once_to_each_place_of_another_kind,
        what_has_equal_bits_anywhere_is_not_sent,
        steps_send_terms_to_those_who_update_and_states_from_them,
    };
    return suite_run("unlike", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
