/* SPDX-License-Identifier: Apache-2.0 */
/* Losses whose classes are split, and tables that are split by rows: no logit and no row moves. */
#include <check.h>

#include "pair.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

enum { SAMPLES = 8, CLASSES = 30, WIDTH = 6 };

typedef struct network {
    trama_program *p;
    trama_mesh *mesh;
    trama_target *evaluate, *train;
} network;

static trama_value *labels(trama_program *p)
{
    return trama_arange(p, TRAMA_I64, SAMPLES, 1, 3);
}

static network network_of(trama_program *p, trama_mesh *mesh, trama_value *loss)
{
    trama_optimizer sgd = trama_sgd(0.1);
    network n = {p, mesh, trama_target_create(p, "evaluate", loss),
                 trama_target_create(p, "train", trama_minimize(loss, &sgd), loss)};
    ck_assert_msg(n.train != NULL, "%s", trama_program_error(p));
    return n;
}

static const trama_init init = {-1, 1, 9, 9};

/* Logits in memory, split by classes. */
static network losses(const char *mesh_text)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_value *z = trama_parameter(p, "z", TRAMA_F64, TRAMA_SHAPE(SAMPLES, CLASSES), &init);
    ck_assert_ptr_nonnull(trama_shard(z, mesh, "S(1)"));
    return network_of(p, mesh, trama_cross_entropy_with(z, labels(p), 1, NULL, -1, 0.1, TRAMA_LOSS_MEAN));
}

/* A table split by rows. */
static network embeddings(const char *mesh_text)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_value *table = trama_parameter(p, "table", TRAMA_F64, TRAMA_SHAPE(CLASSES, WIDTH), &init);
    ck_assert_ptr_nonnull(trama_shard(table, mesh, "S(0)"));
    return network_of(p, mesh, trama_mean(trama_tanh(trama_embedding(table, labels(p)))));
}

/* The bytes that rank 0 receives in a run. */
static int64_t received(const network *n, const trama_target *t)
{
    machine *m = machine_uniform(2, 1);
    simulation_options o = {.plan = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1}};
    simulation *s = simulation_new(n->p, m, &o);
    simulation_run(s, t);
    const int64_t bytes = plan_count(simulation_plan(s, 0)).received;
    simulation_destroy(&s);
    machine_destroy(&m);
    return bytes;
}

static void network_free(network *n)
{
    trama_program_destroy(&n->p);
    trama_mesh_destroy(&n->mesh);
}

/* The largest logit, the sum of exponentials, the picked logit and the mean of logits: four numbers a sample. */
START_TEST(split_classes_cost_numbers_of_samples_and_no_logits)
{
    network n = losses("mp=2");
    ck_assert_int_le(received(&n, n.evaluate), 4 * SAMPLES * 8);
    ck_assert_int_le(received(&n, n.train), 6 * SAMPLES * 8);
    network_free(&n);
}
END_TEST

/* The rows that were looked up, as terms of a sum; their gradient stays where the rows are. */
START_TEST(a_table_that_is_split_by_rows_is_not_gathered)
{
    network n = embeddings("mp=2");
    ck_assert_int_le(received(&n, n.evaluate), SAMPLES * WIDTH * 8);
    ck_assert_int_le(received(&n, n.train), SAMPLES * WIDTH * 8);
    network_free(&n);
}
END_TEST

START_TEST(results_are_those_of_one_device)
{
    static const char *const meshes[] = {"mp=2", "mp=3", "mp=4"};
    for (int i = 0; i < 6; i++) {
        network n = i % 2 ? losses(meshes[i / 2]) : embeddings(meshes[i / 2]);
        pair_try(n.p, n.train, 0, NULL, NULL, 2, 1e-10, meshes[i / 2]);
        network_free(&n);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {split_classes_cost_numbers_of_samples_and_no_logits,
                            a_table_that_is_split_by_rows_is_not_gathered, results_are_those_of_one_device};
    return suite_run("loss_layouts", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
