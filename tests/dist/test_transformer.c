/* SPDX-License-Identifier: Apache-2.0 */
/* Transformer blocks over ranks: completion finds tensor parallelism from two annotations a block. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "transformer_block.h"

enum { BLOCKS = 2, BATCH = 2, LENGTH = 5, FEATURES = 12, HEADS = 4 };
enum { ALL_REDUCE = BATCH * LENGTH * FEATURES * 8 }; /* bytes that each of two processes receives: those of x in f64 */

typedef struct network {
    trama_program *p;
    trama_mesh *mesh;
    trama_value *x, *loss;
    trama_target *evaluate, *train;
} network;

/* Of each block the two input weights, and no other value, are annotated: by columns on mp. x is trained, too, so that
 * each block passes a gradient on. */
static network network_new(const char *mesh, bool beside)
{
    static const transformer_sizes sizes = {BATCH, LENGTH, FEATURES, HEADS, 2 * FEATURES, false};
    const trama_init init = {-1, 1, 9, 9};
    network n = {.p = trama_program_create(), .mesh = trama_mesh_create(mesh)};
    transformer_sizes own = sizes;
    own.beside = beside;
    n.x = trama_parameter(n.p, "x", TRAMA_F64, TRAMA_SHAPE(BATCH * LENGTH, FEATURES), &init);
    trama_value *h = n.x;
    for (int i = 0; i < BLOCKS; i++) {
        char name[24];
        snprintf(name, sizeof name, "block%d", i);
        transformer_block b = transformer_block_new(n.p, h, name, own);
        h = b.out;
        ck_assert_ptr_nonnull(trama_shard(b.parameter[BLOCK_QKV], n.mesh, "S(1)"));
        ck_assert_ptr_nonnull(trama_shard(b.parameter[BLOCK_UP], n.mesh, "S(1)"));
    }
    n.loss = trama_mean(trama_square(h));
    trama_optimizer sgd = trama_sgd(0.1);
    n.evaluate = trama_target_create(n.p, "evaluate", n.loss);
    n.train = trama_target_create(n.p, "train", trama_minimize(n.loss, &sgd), n.loss);
    ck_assert_msg(n.train != NULL, "%s", trama_program_error(n.p));
    return n;
}

static void network_free(network *n)
{
    trama_program_destroy(&n->p);
    trama_mesh_destroy(&n->mesh);
}

/* All-reduces of the shape of x in a run. Nothing else is exchanged. */
static int count(simulation *s, const trama_target *t)
{
    simulation_run(s, t);
    const plan *p = simulation_plan(s, 0);
    for (int i = 0; i < p->exchanges.n; i++) {
        const plan_exchange *e = &p->exchanges.at[i];
        ck_assert_int_eq(e->from.axis[0].kind, TRAMA_PARTIAL);
        ck_assert_int_eq(e->to.axis[0].kind, TRAMA_REPLICATE);
        ck_assert_int_eq(e->received, ALL_REDUCE);
    }
    return p->exchanges.n;
}

/* halves: those of a block that each end in a sum over mp, attention and the perceptron, or both at once. The gradient
 * of a norm's result is such a sum, too. It is made before the norm, its weight and its offset read it, so that their
 * gradients are whole on each process. */
static void expect_all_reduces(bool beside, int halves)
{
    network n = network_new("mp=2", beside);
    machine *m = machine_uniform(2, 1);
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *s = simulation_new(n.p, m, &o);
    ck_assert_int_eq(count(s, n.evaluate), halves * BLOCKS);
    ck_assert_int_eq(count(s, n.train), 2 * halves * BLOCKS);
    ck_assert_int_eq(simulation_traffic(s).messages, 2 * (2 * halves * BLOCKS));
    simulation_destroy(&s);
    machine_destroy(&m);
    network_free(&n);
}

START_TEST(attention_and_perceptron_take_one_all_reduce_each_and_direction)
{
    expect_all_reduces(false, 2);
}
END_TEST

START_TEST(a_block_with_both_beside_each_other_takes_one_all_reduce_a_direction)
{
    expect_all_reduces(true, 1);
}
END_TEST

START_TEST(losses_and_states_are_those_of_one_device)
{
    static const char *const meshes[] = {"mp=2", "mp=4", "mp=3"};
    for (int i = 0; i < 3; i++) {
        network n = network_new(meshes[i], i == 1);
        pair_try(n.p, n.train, 0, NULL, NULL, 2, 1e-10, meshes[i]);
        network_free(&n);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        attention_and_perceptron_take_one_all_reduce_each_and_direction,
        a_block_with_both_beside_each_other_takes_one_all_reduce_a_direction,
        losses_and_states_are_those_of_one_device,
    };
    return suite_run("transformer", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
