/* SPDX-License-Identifier: Apache-2.0 */
/* Golden numbers: which changes of layout a training step consists of, and how many messages and bytes they cost, one
 * process a rank. All are worked out by hand from dist/README.md: an all-reduce of M bytes among t processes takes
 * 2 (t-1)/t M of each; among two it is one message each way, among more a reduce-scatter and an all-gather. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "mlp.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static const int even[] = {8, 12, 4}, deep[] = {8, 12, 8, 12, 4}, uneven[] = {7, 5, 3};

static const plan_options fine = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1};

/* One trained step, and the next ones like it. k: micro-steps of a cycle. */
static mlp_job job_of(const char *mesh, int n_layers, const int *sizes, int batch, int k)
{
    mlp_job j = mlp_job_new(mlp_new(mesh, n_layers, sizes, "sgd"), 0, k, &fine);
    mlp_job_step(&j, batch, 1);
    return j;
}

static mlp_job job_new(const char *mesh, int n_layers, const int *sizes)
{
    return job_of(mesh, n_layers, sizes, 8, 1);
}

/* Exchanges and bytes of every rank, messages and bytes of all together. */
static void expect(const mlp_job *j, const char *name, int exchanges, int64_t received, int messages, int64_t bytes)
{
    for (int r = 0; r < j->machine->n_ranks; r++) {
        const plan *p = simulation_plan(j->s, r);
        ck_assert_msg(p->exchanges.n == exchanges, "%s: rank %d takes part in %d changes of layout, not %d", name, r,
                      p->exchanges.n, exchanges);
        ck_assert_msg(received < 0 || plan_count(p).received == received, "%s: rank %d receives %lld bytes, not %lld",
                      name, r, (long long)plan_count(p).received, (long long)received);
    }
    traffic t = simulation_traffic(j->s);
    ck_assert_msg(t.messages == messages && t.bytes == bytes, "%s: %d messages of %lld bytes, not %d of %lld", name,
                  t.messages, (long long)t.bytes, messages, (long long)bytes);
}

static void try(const char *mesh, int n_layers, const int *sizes, int exchanges, int64_t received, int messages,
                int64_t bytes)
{
    mlp_job j = job_new(mesh, n_layers, sizes);
    expect(&j, mesh, exchanges, received, messages, bytes);
    simulation_run(j.s, j.m.train);
    expect(&j, mesh, exchanges, received, messages, bytes);
    mlp_job_free(&j);
}

/* w0 8*12, b0 12, w1 12*4, b1 4: 160 elements of 8 bytes, M = 1280. All four are small and go together. */
START_TEST(data_parallel_training_reduces_each_parameter_once_a_step)
{
    try("dp=2", 2, even, 4, 1280, 2, 2 * 1280);
    /* each receives 3 pieces to reduce and 3 that are reduced, of M/4 */
    try("dp=4", 2, even, 4, 6 * 1280 / 4, 4 * 6, 4 * 6 * 1280 / 4);
}
END_TEST

/* 7*5 + 5 + 5*3 + 3 = 58 elements. A process gets 2 terms of its piece and gives it to 2: 4 M in all. */
START_TEST(pieces_that_do_not_divide_cost_no_more_in_all)
{
    try("dp=3", 2, uneven, 4, -1, 3 * 4, 4 * 58 * 8);
}
END_TEST

START_TEST(data_parallel_training_changes_nothing_but_partial_gradients)
{
    mlp_job j = job_new("dp=4", 2, even);
    const plan *p = simulation_plan(j.s, 0);
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        ck_assert_int_eq(e->from.axis[0].kind, TRAMA_PARTIAL);
        ck_assert_int_eq(e->to.axis[0].kind, TRAMA_REPLICATE);
        ck_assert_str_eq(j.m.program->nodes.at[e->node]->op->name, "sgd");
    }
    mlp_job_free(&j);
}
END_TEST

/* One block: forward 8x4 elements, 256 bytes; its input needs no gradient. Two blocks: forward 8x8 and 8x4, backward
 * the 8x8 between them, of which the gradient of the bias between them is a sum. */
START_TEST(model_parallel_blocks_reduce_once_forward_and_once_backward)
{
    int64_t blocks = 512 + 256 + 512;
    try("mp=2", 2, even, 1, 256, 2, 2 * 256);
    try("mp=2", 4, deep, 3, blocks, 3 * 2, 2 * blocks);
    try("mp=4", 4, deep, 3, 6 * blocks / 4, 3 * 4 * 6, 6 * blocks);
}
END_TEST

/* Along mp the block's result of half the batch, 4x4: 128 bytes. Along dp halves of w0, b0, w1: 384 + 48 + 192. b1, 32
 * bytes, is whole along mp: there are two terms, and each process gets the one that it lacks from its peer along dp,
 * with the halves of the others. */
START_TEST(both_together_cost_the_sum)
{
    try("dp=2,mp=2", 2, even, 5, 128 + 384 + 48 + 192 + 32, 4 + 4, 4 * (128 + 384 + 48 + 192 + 32));
}
END_TEST

/* The terms of a gradient that nobody else reads go right into the update. */
START_TEST(gradients_are_summed_by_their_updates)
{
    mlp_job j = job_new("dp=2", 2, even);
    for (int r = 0; r < 2; r++) {
        const plan *p = simulation_plan(j.s, r);
        int updates = 0;
        for (int i = 0; i < p->steps.n; i++) {
            ck_assert_int_ne(p->steps.at[i].kind, STEP_REDUCE);
            ck_assert(p->steps.at[i].n_terms == 0 || p->steps.at[i].n_terms == 2);
            updates += p->steps.at[i].n_terms > 0;
        }
        ck_assert_int_eq(updates, 4);
    }
    mlp_job_free(&j);
}
END_TEST

START_TEST(one_process_sends_nothing)
{
    try("1", 2, even, 0, 0, 0, 0);
}
END_TEST

/* ---- Merged over micro-steps ---- */

/* Each rank receives these bytes in a cycle, its end once, the rest k times; messages of gradients count both ways. */
static void expect_cycle(simulation *s, const trama_program *program, int ranks, int k, const char *name,
                         int64_t received, int messages)
{
    for (int r = 0; r < ranks; r++) {
        const plan *const plans[] = {simulation_plan(s, r), simulation_apply_plan(s, r)};
        int64_t bytes = 0;
        int n = 0;
        for (int part = 0; part < 2 && plans[part]; part++)
            for (int i = 0; i < plans[part]->exchanges.n; i++) {
                const plan_exchange *e = &plans[part]->exchanges.at[i];
                bytes += e->received * (part ? 1 : k);
                n += program->values.at[e->value]->gradient.of ? e->messages : 0;
            }
        ck_assert_msg(n == messages, "%s, k = %d: gradients take rank %d %d messages, not %d", name, k, r, n, messages);
        ck_assert_msg(bytes == received, "%s, k = %d: rank %d receives %lld bytes in a cycle, not %lld", name, k, r,
                      (long long)bytes, (long long)received);
    }
}

/* 32 rows in all. */
static void try_merged(const char *mesh, int n_layers, const int *sizes, int64_t received, int messages)
{
    for (int k = 1; k <= 8; k *= 2) {
        mlp_job j = job_of(mesh, n_layers, sizes, 32 / k, k);
        expect_cycle(j.s, j.m.program, j.machine->n_ranks, k, mesh, received, messages);
        mlp_job_free(&j);
    }
}

/* 160 elements, M = 1280: P -> R among t takes 2 (t-1)/t M, once, however many micro-steps there are. All gradients go
 * in one message each way, or one to sum and one that is summed with each of three. */
START_TEST(merged_gradients_are_reduced_once_a_cycle)
{
    try_merged("dp=2", 2, even, 1280, 2);
    try_merged("dp=4", 2, even, 6 * 1280 / 4, 4 * 3);
}
END_TEST

/* Activations cross in every micro-step, and all rows of a cycle are as many as ever: of one block 32x4 elements, 1024
 * bytes; of two forward 32x8 and 32x4, backward 32x8. Gradients are split as their parameters, and do not cross. */
START_TEST(activations_of_a_cycle_are_those_of_its_rows)
{
    int64_t blocks = 2048 + 1024 + 2048;
    try_merged("mp=2", 2, even, 1024, 0);
    try_merged("mp=2", 4, deep, blocks, 0);
    try_merged("mp=4", 4, deep, 6 * blocks / 4, 0);
}
END_TEST

/* Along mp the block's result of half the rows, 16x4: 512 bytes. Along dp as without a merge: halves of w0, b0, w1, and
 * b1, all in one message each way. */
START_TEST(both_together_cost_the_sum_in_a_cycle)
{
    try_merged("dp=2,mp=2", 2, even, 512 + 384 + 48 + 192 + 32, 2);
}
END_TEST

/* ---- Several data-parallel worlds in one program ---- */

static void check_group(const plan *p, const trama_program *program, const trama_value *w, unsigned axes)
{
    int found = 0;
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        if (!trama_shape_equal(program->values.at[e->value]->shape, w->shape))
            continue;
        found++;
        ck_assert_msg(layout_axes(&e->from, TRAMA_PARTIAL) == axes, "the gradient of %s is partial on axes %x", w->name,
                      layout_axes(&e->from, TRAMA_PARTIAL));
        ck_assert_uint_eq(layout_axes(&e->to, TRAMA_REPLICATE), 3);
    }
    ck_assert_msg(found == 1, "the gradient of %s changes its layout %d times", w->name, found);
}

enum { WORLDS = 3, WORLD_PARAMETERS = 4 };

/* A perceptron of two layers a world; no two parameters have the same shape. */
typedef struct worlds {
    trama_program *program;
    trama_mesh *mesh;
    trama_value *x[WORLDS], *parameter[WORLDS][WORLD_PARAMETERS];
    trama_target *train;
} worlds;

/* Mesh 2x4; batches over axis 0, over axis 1, over both. */
static worlds worlds_new(void)
{
    static const char *const layouts_of[] = {"S(0),R", "R,S(0)", "S(0),S(0)"};
    static const int sizes[WORLDS][3] = {{8, 16, 8}, {8, 32, 24}, {24, 40, 48}};
    worlds w = {.program = trama_program_create(), .mesh = trama_mesh_create("2,4")};
    trama_value *loss = NULL;
    trama_optimizer o = trama_sgd(0.1);
    for (int i = 0; i < WORLDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "x%d", i);
        w.x[i] = trama_input(w.program, name, TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, sizes[i][0]));
        trama_shard(w.x[i], w.mesh, layouts_of[i]);
        for (int k = 0; k < WORLD_PARAMETERS; k++) {
            int in = sizes[i][k / 2], out = sizes[i][k / 2 + 1];
            snprintf(name, sizeof name, "%c%d.%d", k % 2 ? 'b' : 'w', i, k / 2);
            w.parameter[i][k] =
                trama_parameter(w.program, name, TRAMA_F64, k % 2 ? TRAMA_SHAPE(out) : TRAMA_SHAPE(in, out), NULL);
        }
        trama_value **p = w.parameter[i], *h = trama_relu(trama_add(trama_matmul(w.x[i], p[0]), p[1]));
        trama_value *mine = trama_mean(trama_square(trama_add(trama_matmul(h, p[2]), p[3])));
        loss = loss ? trama_add(loss, mine) : mine;
    }
    w.train = trama_target_create(w.program, "train", trama_minimize(loss, &o));
    return w;
}

/* Elements: 128 + 16 + 128 + 8 = 280, 256 + 32 + 768 + 24 = 1080, 960 + 40 + 1920 + 48 = 2968, of 8 bytes: 2240, 8640
 * and 23744. Along one axis of p where q replicas help: (p + pq - 2)/(pq) M, which is M among 2 with 4 and 5/4 M among
 * 4 with 2; among all 8: 2 7/8 M = 7/4 M. Nothing else crosses, and k changes nothing. Each process sums an eighth of
 * everything, and gets with each of 7 others a message of terms and one of sums: 28 both ways. */
START_TEST(each_world_reduces_over_exactly_its_own_axes)
{
    const int64_t received = 2240 + 8640 / 4 * 5 + 23744 / 4 * 7;
    machine *m = machine_uniform(8, 1);
    for (int k = 1; k <= 8; k *= 2) {
        worlds w = worlds_new();
        simulation *s = simulation_of_cycle(w.program, w.train, k, m, &(simulation_options){.plan = fine});
        for (int i = 0; i < WORLDS; i++) {
            dense data = dense_random(TRAMA_SHAPE(64 / k, w.x[i]->shape.dim[1]), (uint64_t)i, -1, 1, false);
            simulation_feed(s, w.x[i], &data);
            dense_free(&data);
        }
        simulation_run(s, w.train);
        for (int r = 0; r < 8; r++) {
            const plan *p = (k > 1 ? simulation_apply_plan : simulation_plan)(s, r);
            ck_assert_int_eq(p->exchanges.n, WORLDS * WORLD_PARAMETERS);
            ck_assert(k == 1 || simulation_plan(s, r)->exchanges.n == 0);
            for (int i = 0; i < WORLDS; i++)
                for (int n = 0; n < WORLD_PARAMETERS; n++)
                    check_group(p, w.program, w.parameter[i][n], (unsigned)i + 1);
        }
        expect_cycle(s, w.program, 8, k, "three worlds", received, 28);
        simulation_destroy(&s);
        trama_program_destroy(&w.program);
        trama_mesh_destroy(&w.mesh);
    }
    machine_destroy(&m);
}
END_TEST

/* It is summed when that target runs, and the other one does not know of it. */
START_TEST(a_gradient_that_another_target_lists_is_merged_all_the_same)
{
    dense seen[2];
    for (int k = 1; k <= 4; k += 3) {
        mlp m = mlp_new("dp=2", 2, even, "sgd");
        trama_value *d = trama_gradient(m.loss, m.w[0]);
        trama_target *look = trama_target_create(m.program, "look", d);
        mlp_job j = mlp_job_new(m, 0, k, &fine);
        mlp_job_step(&j, 8, 1);
        expect_cycle(j.s, m.program, 2, k, "dp=2", 1280, 2);
        simulation_run(j.s, look);
        ck_assert_int_eq(plan_count(simulation_plan(j.s, 0)).received, 8 * 12 * 8);
        seen[k > 1] = simulation_value(j.s, d);
        mlp_job_free(&j);
    }
    ck_assert_double_le(dense_difference(&seen[0], &seen[1]), 1e-14);
    dense_free(&seen[0]);
    dense_free(&seen[1]);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        data_parallel_training_reduces_each_parameter_once_a_step,
        pieces_that_do_not_divide_cost_no_more_in_all,
        data_parallel_training_changes_nothing_but_partial_gradients,
        model_parallel_blocks_reduce_once_forward_and_once_backward,
        both_together_cost_the_sum,
        gradients_are_summed_by_their_updates,
        one_process_sends_nothing,
        merged_gradients_are_reduced_once_a_cycle,
        activations_of_a_cycle_are_those_of_its_rows,
        both_together_cost_the_sum_in_a_cycle,
        a_gradient_that_another_target_lists_is_merged_all_the_same,
        each_world_reduces_over_exactly_its_own_axes,
    };
    return suite_run("counts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
