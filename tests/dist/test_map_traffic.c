/* SPDX-License-Identifier: Apache-2.0 */
/* The traffic of programs: against numbers worked out by hand, against what plans send, and what a map by it gains. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "map_traffic.h"
#include "mlp.h"
#include "suite.h"
#include "trama_ops.h"

static int64_t bytes_between(const process_traffic *t, int one, int other)
{
    int64_t sum = 0;
    for (int i = 0; i < t->pairs.n; i++)
        if (t->pairs.at[i].one == one && t->pairs.at[i].other == other)
            sum += t->pairs.at[i].bytes;
    return sum;
}

static process_traffic *of_mlp(const mlp *m, int batch)
{
    layouts l;
    trama_mesh *lone = trama_mesh_create("1");
    ck_assert_msg(!complete_program(m->program, batch, lone, &l), "%s", trama_error());
    process_traffic *t = traffic_of_program(m->program, &l, batch, m->mesh->size, NULL);
    layouts_free(&l);
    trama_mesh_destroy(&lone);
    return t;
}

/* ---- The table ---- */

START_TEST(traffic_adds_up_in_either_order)
{
    process_traffic *t = traffic_new(4);
    traffic_add(t, 0, 3, 5);
    traffic_add(t, 3, 0, 7);
    traffic_add(t, 1, 1, 100); /* itself */
    traffic_add(t, 1, 2, 0);
    traffic_add(t, 2, MAP_RANK, 9);
    traffic_add(t, 2, 1, 1);
    ck_assert_int_eq(traffic_total(t), 13);
    traffic_pack(t);
    ck_assert_int_eq(t->pairs.n, 2);
    ck_assert_int_eq(bytes_between(t, 0, 3), 12);
    ck_assert_int_eq(bytes_between(t, 1, 2), 1);
    for (int i = 0; i < 1 << 18; i++) /* many entries of few pairs take little room */
        traffic_add(t, i % 4, (i + 1) % 4, 2);
    ck_assert_int_lt(t->pairs.n, 1 << 17);
    ck_assert_int_eq(traffic_total(t), 13 + (1 << 19));
    traffic_destroy(&t);
    ck_assert_ptr_null(t);
}
END_TEST

/* The numbers of test_counts.c, all ranks together. */
START_TEST(the_traffic_of_training_is_what_its_plans_send)
{
    static const int even[] = {8, 12, 4}, deep[] = {8, 12, 8, 12, 4};
    static const struct {
        const char *mesh;
        int layers;
        const int *sizes;
        int64_t bytes;
    } jobs[] = {{"1", 2, even, 0},
                {"dp=2", 2, even, 2 * 1280},
                {"dp=4", 2, even, 6 * 1280},
                {"mp=2", 2, even, 2 * 256},
                {"mp=2", 4, deep, 2 * 1280},
                {"mp=4", 4, deep, 6 * 1280},
                {"dp=2,mp=2", 2, even, 4 * (128 + 384 + 48 + 192 + 32)}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        mlp m = mlp_new(jobs[i].mesh, jobs[i].layers, jobs[i].sizes, "sgd");
        process_traffic *t = of_mlp(&m, 8);
        ck_assert_msg(traffic_total(t) == jobs[i].bytes, "%s, %d layers: %lld bytes, not %lld", jobs[i].mesh,
                      jobs[i].layers, (long long)traffic_total(t), (long long)jobs[i].bytes);
        traffic_destroy(&t);
        mlp_free(&m);
    }
}
END_TEST

/* A value of f32 that is brought from one layout to another, maybe on another mesh; the bytes of each pair of n. */
static process_traffic *of_reshard(const char *from_mesh, const char *from, const char *to_mesh, const char *to,
                                   trama_shape shape, int n)
{
    trama_mesh *m = trama_mesh_create(from_mesh), *k = trama_mesh_create(to_mesh), *lone = trama_mesh_create("1");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, shape);
    layouts l;
    trama_shard(x, m, from);
    trama_target_create(p, "t", trama_reshard(x, k, to));
    ck_assert_msg(!p->status, "%s", p->error);
    ck_assert_msg(!complete_program(p, 8, lone, &l), "%s", trama_error());
    process_traffic *t = traffic_of_program(p, &l, 8, n, NULL);
    layouts_free(&l);
    trama_program_destroy(&p);
    trama_mesh_destroy(&m);
    trama_mesh_destroy(&k);
    trama_mesh_destroy(&lone);
    return t;
}

START_TEST(a_change_of_layout_moves_what_its_processes_lack)
{
    static const struct {
        const char *from_mesh, *from, *to_mesh, *to;
        int64_t shape[2];
        int one, other;
        int64_t pair, all; /* between those two; between all */
    } cases[] = {
        {"4", "S(0)", "4", "R", {8, 1}, 0, 3, 16, 4 * 24},         /* each lacks 6 elements, 2 of each other one */
        {"4", "S(0)", "4", "R", {65536, 1}, 1, 2, 131072, 786432}, /* slices: the same bytes */
        {"4", "S(0)", "4", "S(1)", {8, 8}, 0, 1, 32, 4 * 48},      /* 2 x 2 elements each way */
        {"4", "R", "4", "S(1)", {8, 8}, 0, 1, 0, 0},
        {"2,2", "S(0)[0],S(0)[1]", "2,2", "S(0)[1],S(0)[0]", {8, 1}, 1, 2, 16, 16}, /* the two middle quarters change */
        {"2,2", "S(0),S(1)", "2,2", "S(0),R", {4, 4}, 0, 1, 32, 64},                /* along the second axis alone */
        {"2,2", "R,S(0)", "2,2", "R,R", {4, 4}, 2, 3, 64, 128},
        {"2,3", "R,S(0)", "2,3", "R,R", {65536, 3}, 0, 1, 524292, 3145728}, /* 6 times 2/3, likewise; 21846 and 21845
                                                                               rows */
        {"4", "R mask{1,1,1,0}", "4", "R", {8, 1}, 0, 3, 32, 32},           /* the next holder along the axis */
        {"2:0,1", "S(0)", "2:2,3", "S(0)", {8, 1}, 0, 2, 16, 32},
        {"2:0,1", "S(0)", "2:2,3", "R", {8, 1}, 0, 3, 16, 64},
        {"2:0,1", "S(0)", "2:1,2", "S(0)", {8, 1}, 0, 1, 16, 32},
        {"2:0,1", "P", "1:2", "R", {64, 96}, 0, 1, 24576, 49152}, /* each sums a half, of which 2 gets two */
        {"2:0,1", "R", "2:1,2", "R", {8, 1}, 1, 2, 32, 32},       /* 1 has it; between meshes holders take turns */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        process_traffic *t = of_reshard(cases[i].from_mesh, cases[i].from, cases[i].to_mesh, cases[i].to,
                                        trama_shape_of(2, cases[i].shape), 6);
        int64_t pair = bytes_between(t, cases[i].one, cases[i].other), all = traffic_total(t);
        ck_assert_msg(pair == cases[i].pair && all == cases[i].all, "case %zu: %lld bytes of %lld, not %lld of %lld", i,
                      (long long)pair, (long long)all, (long long)cases[i].pair, (long long)cases[i].all);
        traffic_destroy(&t);
    }
}
END_TEST

/* ---- Maps by the traffic of programs ---- */

/* One place a rank; nodes took ranks in blocks, or in turn. */
static machine *machine_of(int nodes, int ranks, bool in_turn)
{
    machine *m = machine_uniform(nodes * ranks, 1);
    for (int r = 0; r < m->n_ranks; r++) {
        machine_place *p = &m->places[r];
        p->path[0] = in_turn ? r % nodes : r / ranks;
        p->path[3] = in_turn ? r / nodes : r % ranks;
    }
    return m;
}

/* Cost by order divided by cost by traffic. */
static double gain_of_map(const process_traffic *t, const machine *m)
{
    process_map *order = map_by_order(t->n, NULL, m), *map = map_by_traffic(t, t->n, m);
    double gain = map_cost(order, t, m) / map_cost(map, t, m);
    map_destroy(&order);
    map_destroy(&map);
    return gain;
}

/* The plan's own traffic: a perceptron whose weights are larger than its batch, and one whose batch is larger. Four
 * ranks of four places each; or four nodes of four ranks, which the launcher dealt out in turn. */
START_TEST(a_training_step_is_mapped_by_what_it_exchanges)
{
    static const int wide[] = {64, 256, 256, 16}, slim[] = {2, 64, 2, 64, 2};
    machine *places = simulation_machine(4, 4, 2), *turns = machine_of(4, 4, true);
    for (int p = 0; p < 16; p++)
        places->places[p].path[0] = p / 4;
    mlp data = mlp_new("dp=4,mp=4", 3, wide, "sgd"), model = mlp_new("dp=4,mp=4", 4, slim, "sgd");
    process_traffic *t = of_mlp(&data, 64), *u = of_mlp(&model, 4096);
    double one = gain_of_map(t, places), two = gain_of_map(u, turns);
    ck_assert_msg(one >= 1.5, "data parallel: by order %.2f times dearer", one);
    ck_assert_msg(two >= 1.5, "model parallel: by order %.2f times dearer", two);
    traffic_destroy(&t);
    traffic_destroy(&u);
    mlp_free(&data);
    mlp_free(&model);
    machine_destroy(&places);
    machine_destroy(&turns);
}
END_TEST

/* The plans' real traffic of one step, by pairs of processes that are on the ranks order[process]. */
static process_traffic *planned(const mlp *m, int batch, const machine *table, const int *order)
{
    dense x, y;
    int process_at[64];
    simulation *s = simulation_new(m->program, table, &(simulation_options){.order = order, .nominal = batch});
    process_traffic *t = traffic_new(m->mesh->size);
    mlp_batch(m, batch, 1, &x, &y);
    simulation_feed(s, m->x, &x);
    simulation_feed(s, m->y, &y);
    simulation_run(s, m->train);
    for (int i = 0; i < t->n; i++)
        process_at[order ? order[i] : i] = i;
    for (int r = 0; r < table->n_ranks; r++) {
        const plan *p = simulation_plan(s, r);
        for (int i = 0; i < p->steps.n; i++) {
            const plan_step *step = &p->steps.at[i];
            if (step->kind != STEP_SEND)
                continue;
            const plan_region *sent = &p->operands.at[step->operand].region;
            traffic_add(t, process_at[step->place], process_at[step->peer_place],
                        box_count(&sent->box) * (int64_t)trama_dtype_size(p->shards.at[sent->shard].dtype));
        }
    }
    traffic_pack(t);
    simulation_destroy(&s);
    dense_free(&x);
    dense_free(&y);
    return t;
}

/* One rank a process. The estimate of each pair against what the plans send, and the plans' bytes times distance by
 * order against those of the map. */
START_TEST(plans_on_the_map_send_less_far)
{
    static const int wide[] = {16, 64, 64, 8}, slim[] = {2, 16, 2, 16, 2};
    static const struct {
        const char *mesh;
        bool wide;
        int batch;
        int nodes, ranks;
        bool in_turn;
    } cases[] = {{"dp=4,mp=2", true, 16, 2, 4, false},
                 {"dp=4,mp=2", false, 256, 2, 4, true},
                 {"dp=2,mp=4", true, 16, 4, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine *m = machine_of(cases[i].nodes, cases[i].ranks, cases[i].in_turn);
        mlp job = cases[i].wide ? mlp_new(cases[i].mesh, 3, wide, "sgd") : mlp_new(cases[i].mesh, 4, slim, "sgd");
        process_traffic *guess = of_mlp(&job, cases[i].batch), *real = planned(&job, cases[i].batch, m, NULL);
        process_map *order = map_by_order(8, NULL, m), *map = map_by_traffic(guess, 8, m);
        process_traffic *moved = planned(&job, cases[i].batch, m, map->place);
        int64_t wrong = 0;
        for (int a = 0; a < 8; a++)
            for (int b = a + 1; b < 8; b++)
                wrong += llabs(bytes_between(guess, a, b) - bytes_between(real, a, b));
        double gain = map_cost(order, real, m) / map_cost(map, moved, m);
        ck_assert_msg(wrong * 10 <= traffic_total(real), "%s: %lld of %lld bytes are between others", cases[i].mesh,
                      (long long)wrong, (long long)traffic_total(real));
        ck_assert_msg(gain >= 1.2, "%s: plans by order are %.2f times dearer", cases[i].mesh, gain);
        process_traffic *all[] = {guess, real, moved};
        for (int k = 0; k < 3; k++)
            traffic_destroy(&all[k]);
        map_destroy(&order);
        map_destroy(&map);
        mlp_free(&job);
        machine_destroy(&m);
    }
}
END_TEST

/* Not a million: a process exchanges with those on its two lines only. */
START_TEST(the_traffic_of_a_thousand_processes_is_a_sparse_table)
{
    static const int sizes[] = {1024, 4096, 1024, 16};
    mlp m = mlp_new("dp=64,mp=16", 3, sizes, "adamw");
    layouts l;
    trama_mesh *lone = trama_mesh_create("1");
    ck_assert_msg(!complete_program(m.program, 8192, lone, &l), "%s", trama_error());
    process_traffic *t = traffic_of_program(m.program, &l, 8192, 1024, NULL);
    ck_assert_int_gt(t->pairs.n, 1024);
    ck_assert_int_le(t->pairs.n, 1024 * (63 + 15));
    traffic_destroy(&t);
    layouts_free(&l);
    trama_mesh_destroy(&lone);
    mlp_free(&m);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        traffic_adds_up_in_either_order,
        the_traffic_of_training_is_what_its_plans_send,
        a_change_of_layout_moves_what_its_processes_lack,
        a_training_step_is_mapped_by_what_it_exchanges,
        plans_on_the_map_send_less_far,
        the_traffic_of_a_thousand_processes_is_a_sparse_table,
    };
    return suite_run("map_traffic", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
