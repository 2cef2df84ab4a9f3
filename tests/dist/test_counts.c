/* SPDX-License-Identifier: Apache-2.0 */
/* Golden numbers: which changes of layout a training step consists of, and how many messages and bytes they cost, one
 * process a rank. All are worked out by hand from semantics.md: an all-reduce of M bytes among t processes takes
 * 2 (t-1)/t M of each; among two it is one message each way, among more a reduce-scatter and an all-gather. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "mlp.h"
#include "suite.h"

static const int even[] = {8, 12, 4}, deep[] = {8, 12, 8, 12, 4}, uneven[] = {7, 5, 3};

/* One trained step, and the next ones like it. */
typedef struct job {
    mlp m;
    machine *machine;
    simulation *s;
} job;

static job job_new(const char *mesh, int n_layers, const int *sizes)
{
    job j = {.m = mlp_new(mesh, n_layers, sizes, "sgd")};
    dense x, y;
    j.machine = machine_uniform(trama_mesh_size(j.m.mesh), 1);
    j.s = simulation_new(j.m.program, j.machine, &(simulation_options){.plan = {.ways = 1, .grain_flops = 1, .grain_bytes = 1}});
    mlp_batch(&j.m, 8, 1, &x, &y);
    simulation_feed(j.s, j.m.x, &x);
    simulation_feed(j.s, j.m.y, &y);
    simulation_run(j.s, j.m.train);
    dense_free(&x);
    dense_free(&y);
    return j;
}

static void job_free(job *j)
{
    simulation_destroy(&j->s);
    machine_destroy(&j->machine);
    mlp_free(&j->m);
}

/* Exchanges and bytes of every rank, messages and bytes of all together. */
static void expect(const job *j, const char *name, int exchanges, int64_t received, int messages, int64_t bytes)
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
    job j = job_new(mesh, n_layers, sizes);
    expect(&j, mesh, exchanges, received, messages, bytes);
    simulation_run(j.s, j.m.train);
    expect(&j, mesh, exchanges, received, messages, bytes);
    job_free(&j);
}

/* w0 8*12, b0 12, w1 12*4, b1 4: 160 elements of 8 bytes, M = 1280. All four are small and go together. */
START_TEST(data_parallel_training_reduces_each_parameter_once_a_step)
{
    try("dp=2", 2, even, 4, 1280, 2, 2 * 1280);
    /* each receives 3 pieces to reduce and 3 that are reduced, of M/4 */
    try("dp=4", 2, even, 4, 6 * 1280 / 4, 4 * 6, 4 * 6 * 1280 / 4);
}
END_TEST

/* 7*5 + 5 + 5*3 + 3 = 58 elements. Whoever reduces a piece gets 2 terms of it and gives it to 2: 4 M in all. */
START_TEST(pieces_that_do_not_divide_cost_no_more_in_all)
{
    try("dp=3", 2, uneven, 4, -1, 3 * 4, 4 * 58 * 8);
}
END_TEST

START_TEST(data_parallel_training_changes_nothing_but_partial_gradients)
{
    job j = job_new("dp=4", 2, even);
    const plan *p = simulation_plan(j.s, 0);
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        ck_assert_int_eq(e->from.axis[0].kind, TRAMA_PARTIAL);
        ck_assert_int_eq(e->to.axis[0].kind, TRAMA_REPLICATE);
        ck_assert_str_eq(j.m.program->nodes.at[e->node]->op->name, "sgd");
    }
    job_free(&j);
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
 * bytes, is whole on the replicas along mp, which help: each reduces a quarter (8 bytes, which go with the halves of the
 * others) and gathers three. */
START_TEST(both_together_cost_the_sum)
{
    try("dp=2,mp=2", 2, even, 5, 128 + 384 + 48 + 192 + 32, 4 + 4 + 4 * 3, 4 * (128 + 384 + 48 + 192 + 32));
}
END_TEST

/* The terms of a gradient that nobody else reads go right into the update. */
START_TEST(gradients_are_summed_by_their_updates)
{
    job j = job_new("dp=2", 2, even);
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
    job_free(&j);
}
END_TEST

START_TEST(one_process_sends_nothing)
{
    try("1", 2, even, 0, 0, 0, 0);
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

/* Mesh 2x4; batches over axis 0, over axis 1, over both. */
START_TEST(each_world_reduces_over_exactly_its_own_axes)
{
    static const char *const layouts_of[] = {"S(0),R", "R,S(0)", "S(0),S(0)"};
    trama_program *p = trama_program_new();
    trama_mesh *mesh = trama_mesh_parse("2,4");
    trama_value *x[3], *w[3], *loss = NULL;
    trama_optimizer o = trama_sgd(0.1);
    for (int i = 0; i < 3; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "x%d", i);
        snprintf(name[1], sizeof name[1], "w%d", i);
        x[i] = trama_input(p, name[0], TRAMA_F64, TRAMA_SHAPE(16, 5 + i));
        w[i] = trama_parameter(p, name[1], TRAMA_F64, TRAMA_SHAPE(5 + i, 3), NULL);
        trama_shard(x[i], mesh, layouts_of[i]);
        trama_value *mine = trama_mean(trama_square(trama_matmul(x[i], w[i])));
        loss = loss ? trama_add(loss, mine) : mine;
    }
    trama_target *train = trama_target_new(p, "train", trama_minimize(loss, &o));
    machine *m = machine_uniform(8, 1);
    simulation *s = simulation_new(p, m, &(simulation_options){.plan = {.ways = 1, .grain_flops = 1, .grain_bytes = 1}});
    for (int i = 0; i < 3; i++) {
        dense data = dense_random(x[i]->shape, (uint64_t)i, -1, 1, false);
        simulation_feed(s, x[i], &data);
        dense_free(&data);
    }
    simulation_run(s, train);
    for (int r = 0; r < 8; r++)
        for (int i = 0; i < 3; i++)
            check_group(simulation_plan(s, r), p, w[i], (unsigned)i + 1);
    ck_assert_int_eq(simulation_plan(s, 0)->exchanges.n, 3);
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
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
        each_world_reduces_over_exactly_its_own_axes,
    };
    return suite_run("counts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
