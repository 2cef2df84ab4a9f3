/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: small messages of gradients that need nothing of each other are one message. Values are checked by the
 * interpreter wherever programs are trained (test_train.c, test_random.c); here is what is in a bundle and what is not.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "flow.h"
#include "mlp.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "verify_plan.h"

static const int small[] = {8, 12, 4};

static mlp_job job_new(const char *mesh, int n_layers, const int *sizes, int64_t window)
{
    mlp_job j = mlp_job_new(mlp_new(mesh, n_layers, sizes, "adamw"), 0, 1,
                            &(plan_options){.max_tiles = 1, .staging_bytes = window});
    mlp_job_step(&j, 18, 1);
    return j;
}

static bool is_bundle(const plan *p, const plan_step *s)
{
    return s->kind >= STEP_SEND && p->shards.at[plan_step_operand(p, s, 0)->region.shard].source == SHARD_BUNDLE;
}

static int count_bundles(const plan *p, step_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++)
        n += p->steps.at[i].kind == kind && is_bundle(p, &p->steps.at[i]);
    return n;
}

static trama_status verify(const mlp_job *j)
{
    return simulation_verify(j->s);
}

START_TEST(small_gradients_go_together)
{
    static const char *const meshes[] = {"dp=2", "dp=3", "dp=5", "dp=9", "dp=17"};
    for (int i = 0; i < 5; i++) {
        mlp_job j = job_new(meshes[i], 2, small, 0);
        int n = j.machine->n_ranks, phases = n == 2 ? 1 : 2;
        ck_assert_msg(!verify(&j), "%s: %s", meshes[i], trama_error());
        for (int r = 0; r < n && n <= 5; r++) {
            ck_assert_int_eq(count_bundles(simulation_plan(j.s, r), STEP_SEND), phases * (n - 1));
            ck_assert_int_eq(count_bundles(simulation_plan(j.s, r), STEP_RECEIVE), phases * (n - 1));
            ck_assert_int_eq(plan_count(simulation_plan(j.s, r)).messages, 2 * phases * (n - 1));
        }
        mlp_job_free(&j);
    }
}
END_TEST

/* 8 bytes an element: w0 100 x 120 is 96,000 bytes, w1 120 x 10 is 9,600. */
START_TEST(large_gradients_go_alone_and_bundles_have_an_end)
{
    static const int wide[] = {100, 120, 10}, many[] = {45, 45, 45, 45, 45, 45, 45, 45, 45};
    mlp_job j = job_new("dp=2", 2, wide, 0);
    const plan *p = simulation_plan(j.s, 0);
    ck_assert_int_eq(count_bundles(p, STEP_SEND), 1);
    ck_assert_int_eq(plan_count(p).messages, 2 * 2);
    mlp_job_free(&j);
    j = job_new("dp=2", 8, many, 0); /* 8 times 16,200 and 360 bytes, of which 131,072 go in one */
    p = simulation_plan(j.s, 0);
    ck_assert_int_eq(count_bundles(p, STEP_SEND), 1);
    ck_assert_int_eq(plan_count(p).messages, 2 * 2);
    mlp_job_free(&j);
}
END_TEST

/* With a window of less than 1,024 times the largest message of a bundle messages may lie in shards, or go in rounds.
 */
START_TEST(a_small_window_has_no_bundles)
{
    mlp_job j = job_new("dp=3", 2, small, 4000);
    ck_assert_msg(!verify(&j), "%s", trama_error());
    ck_assert_int_eq(count_bundles(simulation_plan(j.s, 0), STEP_SEND), 0);
    mlp_job_free(&j);
}
END_TEST

START_TEST(what_is_taken_out_is_what_was_put_in)
{
    mlp_job j = job_new("dp=2", 2, small, 0);
    plan *p = (plan *)simulation_plan(j.s, 1);
    plan_shard *part[2] = {NULL};
    for (int i = 0, n = 0; i < p->shards.n && n < 2; i++)
        if (p->shards.at[i].within >= 0 && p->shards.at[p->shards.at[i].within].source == SHARD_BUNDLE)
            part[n++] = &p->shards.at[i];
    ck_assert_ptr_nonnull(part[1]);
    int64_t at = part[0]->at;
    part[0]->at = part[1]->at;
    part[1]->at = at;
    ck_assert(verify(&j) && strstr(trama_error(), "taken out"));
    part[0]->at = at; /* both at one place */
    part[1]->at = at;
    ck_assert(verify(&j));
    mlp_job_free(&j);
}
END_TEST

/* Runs a target, which ends if no bundle waits for itself, and verifies the plans of all ranks. */
static void run_verified(const trama_program *p, const trama_target *t, const trama_value *x, int ranks,
                         const char *name)
{
    mlp_job j = {.m = {.program = (trama_program *)p}, .machine = machine_uniform(ranks, 1)};
    j.s = simulation_new(p, j.machine, &(simulation_options){.plan = {.max_tiles = 1}});
    dense data = dense_random(x->shape, 1, -1, 1, false);
    simulation_feed(j.s, x, &data);
    simulation_run(j.s, t);
    ck_assert_msg(!verify(&j), "%s: %s", name, trama_error());
    dense_free(&data);
    simulation_destroy(&j.s);
    machine_destroy(&j.machine);
}

/* w1's gradient, penalised, is a part of the loss: the gradients of that need its sum, so they cannot go with it. */
START_TEST(a_gradient_of_a_gradient_goes_in_a_bundle_of_its_own)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("dp=3");
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(6, 4)),
                *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 3), &(trama_init){.low = -1, .high = 1}),
                *b = trama_parameter(p, "b", TRAMA_F64, TRAMA_SHAPE(3), NULL);
    trama_shard(x, mesh, "S(0)");
    trama_value *z = trama_add(trama_matmul(x, w), b), *loss = trama_mean(trama_square(z)),
                *d = trama_gradient(loss, w);
    trama_value *penalised = trama_add(loss, trama_sum(trama_square(d)));
    trama_optimizer sgd = trama_sgd(0.1);
    trama_target *t = trama_target_create(p, "train", trama_minimize(penalised, &sgd), penalised);
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    run_verified(p, t, x, 3, "penalised");
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

/* A gradient that two readers take in two layouts, the second of which is made from the first. */
START_TEST(what_is_made_of_a_gradient_that_moved_is_no_part_of_its_bundle)
{
    static const char *const layouts_of[] = {"S(0)", "S(1)", "R"};
    for (int i = 0; i < 9; i++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create("2");
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(6, 4)),
                    *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 8), &(trama_init){.low = -1, .high = 1}),
                    *a = trama_state(p, "a", TRAMA_F64, TRAMA_SHAPE(4, 8), NULL),
                    *b = trama_state(p, "b", TRAMA_F64, TRAMA_SHAPE(4, 8), NULL);
        trama_shard(x, mesh, "S(0)");
        trama_shard(a, mesh, layouts_of[i % 3]);
        trama_shard(b, mesh, layouts_of[i / 3]);
        trama_value *d = trama_gradient(trama_mean(trama_square(trama_matmul(x, w))), w);
        trama_target *t = trama_target_create(p, "t", trama_assign(a, d), trama_assign(b, d));
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        char name[32];
        snprintf(name, sizeof name, "%s, %s", layouts_of[i % 3], layouts_of[i / 3]);
        run_verified(p, t, x, 2, name);
        trama_mesh_destroy(&mesh);
        trama_program_destroy(&p);
    }
}
END_TEST

/* Messages at the end of a cycle do not wait for those of each micro-step, nor the other way round. */
START_TEST(what_ends_a_cycle_has_bundles_of_its_own)
{
    mlp m = mlp_new("dp=2", 2, small, "sgd");
    for (int i = 0; i < 2; i++) { /* this micro-step's gradients are summed each time */
        trama_value *d = trama_gradient(m.loss, m.b[i]);
        d->fetched = true;
        *ARRAY_PUSH(&m.train->values) = d;
    }
    mlp_job j = mlp_job_new(m, 0, 2, &(plan_options){.max_tiles = 1});
    mlp_job_step(&j, 8, 1);
    for (step_kind kind = STEP_SEND; kind <= STEP_RECEIVE; kind++) {
        ck_assert_int_eq(count_bundles(simulation_plan(j.s, 0), kind), 1);
        ck_assert_int_eq(count_bundles(simulation_apply_plan(j.s, 0), kind), 1);
    }
    mlp_job_free(&j);
}
END_TEST

/* ---- Waits of a message ---- */

typedef struct held_back {
    const plan *p;
    const trama_program *program;
    int state; /* id of the buffer that is not filled */
} held_back;

static bool uses(const plan *p, const plan_step *s, int value)
{
    for (int k = 0; k < s->n_operands; k++)
        if (p->shards.at[plan_step_operand(p, s, k)->region.shard].value == value)
            return true;
    return false;
}

static bool take_others(void *arg, int step)
{
    const held_back *h = arg;
    const plan_step *s = &h->p->steps.at[step];
    return s->kind != STEP_RECEIVE && !uses(h->p, s, h->state);
}

static int state_named(const trama_program *p, const char *name)
{
    for (int i = 0; i < p->values.n; i++)
        if (!strcmp(p->values.at[i]->name, name))
            return i;
    ck_abort_msg("no %s", name);
    return -1;
}

static bool is_sent(const plan *p, const flow *f, int state)
{
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind == STEP_SEND && uses(p, &p->steps.at[i], state))
            return flow_is_done(f, i);
    ck_abort_msg("it is never sent");
    return false;
}

/* The last backward pass has got to the first layer, whose gradient is not there yet: that of the second is on its way,
 * and the bundle of small ones. */
START_TEST(a_merged_gradient_leaves_while_others_are_computed)
{
    static const int sizes[] = {120, 120, 120, 4};
    mlp_job j = mlp_job_new(mlp_new("dp=2", 3, sizes, "sgd"), 0, 2, &(plan_options){.max_tiles = 1});
    mlp_job_step(&j, 8, 1);
    held_back h = {simulation_apply_plan(j.s, 0), j.m.program, state_named(j.m.program, "train.w0.merged")};
    flow *f = flow_new(h.p);
    while (flow_advance(f, take_others, &h)) {
    }
    ck_assert(is_sent(h.p, f, state_named(j.m.program, "train.w1.merged")));
    ck_assert(!is_sent(h.p, f, h.state));
    ck_assert_int_eq(count_bundles(h.p, STEP_SEND), 1);
    for (int i = 0; i < h.p->steps.n; i++)
        ck_assert(h.p->steps.at[i].kind != STEP_SEND || !is_bundle(h.p, &h.p->steps.at[i]) || flow_is_done(f, i));
    flow_destroy(&f);
    mlp_job_free(&j);
}
END_TEST

/* Sums of 56 and 280 bytes over 4 processes: terms of slices, then sums, each in one message with each of 3 others. */
typedef enum { LISTED, SUMMED, ASSIGNED, N_USES } use;

static trama_target *small_sums(trama_program *p, trama_mesh *mesh, use u, trama_value **x)
{
    *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(8, 5));
    trama_shard(*x, mesh, "S(0)");
    trama_value *b = trama_state(p, "b", TRAMA_F64, TRAMA_SHAPE(7), NULL),
                *w = trama_state(p, "w", TRAMA_F64, TRAMA_SHAPE(5, 7), NULL);
    if (u == LISTED) {
        trama_value *loss = trama_mean(trama_square(trama_add(trama_matmul(*x, w), b)));
        return trama_target_create(p, "t", trama_gradient(loss, w), trama_gradient(loss, b));
    }
    trama_value *z = trama_matmul(*x, w), *rows = trama_sum_over(z, 1, (int[]){0}, false),
                *product = trama_matmul_at(TRAMA_HERE, *x, z, true, false);
    if (u == SUMMED) {
        trama_shard(rows, mesh, "R");
        trama_shard(product, mesh, "R");
        return trama_target_create(p, "t", rows, product);
    }
    return trama_target_create(p, "t", trama_assign(b, rows), trama_assign(w, product));
}

START_TEST(small_sums_go_together_whatever_they_are)
{
    for (int u = 0; u < N_USES; u++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create("4");
        trama_value *x;
        trama_target *t = small_sums(p, mesh, (use)u, &x);
        ck_assert_msg(t != NULL, "%s", trama_program_error(p));
        mlp_job j = {.m = {.program = p}, .machine = machine_uniform(4, 1)};
        j.s = simulation_new(p, j.machine, &(simulation_options){.plan = {.max_tiles = 1}});
        dense data = dense_random(x->shape, 1, -1, 1, false);
        simulation_feed(j.s, x, &data);
        simulation_run(j.s, t);
        ck_assert_msg(!verify(&j), "use %d: %s", u, trama_error());
        for (int r = 0; r < 4; r++)
            ck_assert_int_eq(plan_count(simulation_plan(j.s, r)).messages, 12);
        dense_free(&data);
        simulation_destroy(&j.s);
        machine_destroy(&j.machine);
        trama_mesh_destroy(&mesh);
        trama_program_destroy(&p);
    }
}
END_TEST

/* 72,000 bytes each: more than 1 / 256 of the window, but a process has messages with its line of 16 only. */
START_TEST(gradients_on_a_large_mesh_go_together_along_its_lines)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("dp=16,mp=8");
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(16, 9000)), *w[2];
    for (int i = 0; i < 2; i++)
        w[i] = trama_parameter(p, i ? "b" : "w", TRAMA_F64, TRAMA_SHAPE(9000), NULL);
    trama_shard(x, mesh, "S(0),R");
    trama_value *loss = trama_mean(trama_square(trama_add(trama_mul(x, w[0]), w[1])));
    trama_optimizer sgd = trama_sgd(0.1);
    trama_target *t = trama_target_create(p, "train", trama_minimize(loss, &sgd), loss);
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    mlp_job j = {.m = {.program = p}, .machine = machine_uniform(128, 1)};
    j.s = simulation_new(p, j.machine, &(simulation_options){.plan = {.max_tiles = 1, .staging_bytes = 17 << 20}});
    dense data = dense_random(x->shape, 1, -1, 1, false);
    simulation_feed(j.s, x, &data);
    simulation_run(j.s, t);
    ck_assert_int_eq(count_bundles(simulation_plan(j.s, 77), STEP_SEND), 2 * 15);
    ck_assert_int_eq(count_bundles(simulation_plan(j.s, 77), STEP_RECEIVE), 2 * 15);
    dense_free(&data);
    simulation_destroy(&j.s);
    machine_destroy(&j.machine);
    trama_mesh_destroy(&mesh);
    trama_program_destroy(&p);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        small_gradients_go_together,
        large_gradients_go_alone_and_bundles_have_an_end,
        a_small_window_has_no_bundles,
        what_is_taken_out_is_what_was_put_in,
        a_gradient_of_a_gradient_goes_in_a_bundle_of_its_own,
        what_is_made_of_a_gradient_that_moved_is_no_part_of_its_bundle,
        what_ends_a_cycle_has_bundles_of_its_own,
        small_sums_go_together_whatever_they_are,
        a_merged_gradient_leaves_while_others_are_computed,
        gradients_on_a_large_mesh_go_together_along_its_lines,
    };
    return suite_run("bundle", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
