/* SPDX-License-Identifier: Apache-2.0 */
/* Whole training steps on meshes against the same program on one device, in double precision. */
#include <check.h>
#include <stdio.h>

#include "mlp.h"
#include "pair.h"
#include "suite.h"
#include "trama_ops.h"

static const int sizes[] = {7, 6, 5, 3};
static const char *const meshes[] = {"1",         "dp=2", "mp=2",     "dp=2,mp=2",         "mp=2,dp=2",
                                     "dp=3",      "mp=3", "4",        "dp=2,mp=2:3,1,0,2", "dp=2,mp=3",
                                     "dp=3,mp=2", "dp=7", "dp=[3,1]", "mp=[1,20]",         "dp=[20,1],mp=[1,2,40]"};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

/* Some steps; every loss and parameter as on one device, with short batches and none at all. */
static void train(const char *mesh, const char *optimizer, const machine *table, const simulation_options *o)
{
    char name[64];
    mlp m = mlp_new(mesh, 3, sizes, optimizer);
    snprintf(name, sizeof name, "%s, %s, %d ranks, %d tiles", mesh, optimizer, table->n_ranks, o->plan.max_tiles);
    pair both = pair_new(m.program, table, o, name);
    static const int batches[] = {5, 5, 1, 2, 0};
    for (int step = 0; step < 5; step++) {
        dense x, y;
        mlp_batch(&m, batches[step], 10 * (uint64_t)step, &x, &y);
        pair_feed(&both, m.x, &x);
        pair_feed(&both, m.y, &y);
        pair_run(&both, m.train, 1e-12);
        dense_free(&x);
        dense_free(&y);
    }
    pair_free(&both);
    mlp_free(&m);
}

static void train_on_ranks(const char *optimizer)
{
    for (int i = 0; i < N_MESHES; i++)
        for (int ranks = 1; ranks <= 6; ranks++) {
            machine *table = machine_uniform(ranks, 2);
            simulation_options o = {
                .plan = {1 + (ranks + i) % 3, 1, 1, false, .sum_tile = i % 2 ? 16 : 0, .early_bytes = i % 2}};
            train(meshes[i], optimizer, table, &o);
            machine_destroy(&table);
        }
}

START_TEST(sgd_on_every_mesh_and_number_of_ranks_is_sgd_on_one_device)
{
    train_on_ranks("sgd");
}
END_TEST

START_TEST(adamw_on_every_mesh_and_number_of_ranks_is_adamw_on_one_device)
{
    train_on_ranks("adamw");
}
END_TEST

START_TEST(unfused_plans_and_coarse_tiles_give_the_same)
{
    machine *table = machine_uniform(2, 3);
    for (int i = 0; i < N_MESHES; i++)
        for (int ways = 0; ways <= 3; ways++) {
            train(meshes[i], "adamw", table, &(simulation_options){.plan = {ways, 1, 1, true}});
            train(meshes[i], "adamw", table, &(simulation_options){.plan = {ways, 100, 200, false}});
        }
    machine_destroy(&table);
}
END_TEST

START_TEST(ranks_of_several_places_and_other_orders_of_processes_give_the_same)
{
    static const int orders[][6] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 0, 5, 1, 3, 4}};
    const char *const six[] = {"dp=2,mp=3", "dp=3,mp=2", "dp=6", "mp=6"};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            for (int places = 1; places <= 3; places++) {
                machine *table = simulation_machine(1 + k, places, 2);
                train(six[i], "adamw", table,
                      &(simulation_options){.plan = {2, 1, 1, false, .early_bytes = k % 2}, .order = orders[k]});
                machine_destroy(&table);
            }
}
END_TEST

START_TEST(gpus_and_places_of_unlike_kind_give_the_same)
{
    for (int i = 0; i < N_MESHES; i++)
        for (int variant = 1; variant < MACHINE_VARIANTS; variant++)
            for (int places = 1; places <= 3; places++) {
                machine *table = simulation_machine(1 + i % 3, places, 2);
                simulation_options o = {
                    .plan = {i % 3, 1, 1, variant % 2 == 0, .sum_tile = 16 * (i % 2), .early_bytes = i % 3}};
                machine_vary(table, variant);
                train(meshes[i], "adamw", table, &o);
                machine_destroy(&table);
            }
}
END_TEST

/* A sum that its one reader could make, but for a process of the same place whose part of it is empty. */
START_TEST(sums_of_which_somebody_reads_nothing_are_made)
{
    trama_mesh *mesh = trama_mesh_create("2,3");
    trama_program *p = trama_program_create();
    trama_init init = {-1, 1, 1, 2};
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(1, 1)), mesh, "P(min),R");
    trama_value *v = trama_shard(trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(1), &init), mesh, "S(0),R");
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(1, 3), &init), mesh, "S(0)[1],S(0)[0]");
    trama_value *y = trama_reshape(x, TRAMA_SHAPE(1, 1)), *sum = trama_add(y, v), *product = trama_matmul(y, w);
    trama_target *t = trama_target_create(p, "t", sum, product);
    dense data = dense_random(TRAMA_SHAPE(1, 1), 5, -1, 1, false);
    pair_try(p, t, 1, &x, &data, 6, 1e-12, "empty");
    dense_free(&data);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        sgd_on_every_mesh_and_number_of_ranks_is_sgd_on_one_device,
        adamw_on_every_mesh_and_number_of_ranks_is_adamw_on_one_device,
        unfused_plans_and_coarse_tiles_give_the_same,
        ranks_of_several_places_and_other_orders_of_processes_give_the_same,
        gpus_and_places_of_unlike_kind_give_the_same,
        sums_of_which_somebody_reads_nothing_are_made,
    };
    return suite_run("train", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
