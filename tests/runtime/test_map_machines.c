/* SPDX-License-Identifier: Apache-2.0 */
/* The map by traffic on described machines: hwloc's synthetic topologies and XML. The table is made of cards and places
 * as a context makes it. No StarPU, no MPI. */
#include "harness.h"
#include "map.h"
#include "map_traffic.h"
#include "node.h"
#include "place.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static hwloc_topology_t topology_of(const char *description)
{
    hwloc_topology_t t;
    ck_assert_int_eq(hwloc_topology_init(&t), 0);
    ck_assert_int_eq(hwloc_topology_set_synthetic(t, description), 0);
    ck_assert_int_eq(hwloc_topology_load(t), 0);
    return t;
}

/* The same machine as if it came from somebody else, in XML. */
static hwloc_topology_t through_xml(const char *description)
{
    hwloc_topology_t t = topology_of(description), again;
    char *xml;
    int length;
    ck_assert_int_eq(hwloc_topology_export_xmlbuffer(t, &xml, &length, 0), 0);
    ck_assert_int_eq(hwloc_topology_init(&again), 0);
    ck_assert_int_eq(hwloc_topology_set_xmlbuffer(again, xml, length), 0);
    ck_assert_int_eq(hwloc_topology_load(again), 0);
    hwloc_free_xmlbuffer(t, xml);
    hwloc_topology_destroy(t);
    return again;
}

/* The cards of n ranks: nodes are dealt to ranks in blocks, or in turn. */
static node_card *cards_of(hwloc_topology_t t, int nodes, int n, bool in_turn)
{
    node_card *cards = trama_alloc((size_t)n * sizeof *cards);
    for (int r = 0; r < n; r++) {
        unsigned pu;
        snprintf(cards[r].node, NODE_TEXT, "node %d", in_turn ? r % nodes : r * nodes / n);
        snprintf(cards[r].cpu_kind, NODE_TEXT, "cpu:test");
        hwloc_bitmap_foreach_begin(pu, hwloc_topology_get_allowed_cpuset(t)) cards[r].allowed[pu / 64] |= UINT64_C(1)
                                                                                                          << (pu % 64);
        hwloc_bitmap_foreach_end();
    }
    return cards;
}

static void add_places(machine *m, hwloc_topology_t t, const node_card *cards, int rank)
{
    place_claim claim = {.quota = 0};
    place_list places;
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    node_allowed(&cards[rank], allowed);
    claim.allowed = allowed;
    claim.sharers = node_sharers(cards, m->n_ranks, rank, &claim.index);
    ck_assert_msg(!place_find(t, &claim, &places), "%s", trama_error());
    m->places = trama_resize(m->places, (size_t)(m->n_places + places.n) * sizeof *m->places);
    for (int i = 0; i < places.n; i++) {
        machine_place p = {
            .rank = rank,
            .kind = node_kind(cards, m->n_ranks, rank, -1),
            .workers = places.at[i].n,
            .path = {node_index(cards, rank), places.at[i].package, places.at[i].domain, node_local_rank(cards, rank)}};
        m->places[m->n_places++] = p;
    }
    place_free(&places);
    hwloc_bitmap_free(allowed);
}

/* Takes the topology: that of every node. */
static machine *machine_of(hwloc_topology_t t, int nodes, int ranks, bool in_turn)
{
    machine *m = trama_alloc(sizeof *m);
    node_card *cards = cards_of(t, nodes, ranks, in_turn);
    m->n_ranks = ranks;
    for (int r = 0; r < ranks; r++)
        add_places(m, t, cards, r);
    free(cards);
    hwloc_topology_destroy(t);
    return m;
}

/* One layer x w of a model whose weight is split along mp and whose batch along dp, and the update of w. */
static process_traffic *traffic_of_layer(const char *axes, int64_t batch, int64_t in, int64_t out)
{
    layouts l;
    trama_mesh *mesh = trama_mesh_create(axes), *lone = trama_mesh_create("1");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(batch, in));
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(in, out), NULL);
    bool dp_first = !strcmp(trama_mesh_axis_name(mesh, 0), "dp");
    trama_shard(x, mesh, dp_first ? "S(0),S(1)" : "S(1),S(0)");
    trama_shard(w, mesh, dp_first ? "R,S(0)" : "S(0),R");
    trama_value *loss = trama_mean(trama_square(trama_relu(trama_matmul(x, w))));
    trama_optimizer sgd = trama_sgd(0.1);
    trama_target_create(p, "train", trama_minimize(loss, &sgd), loss);
    ck_assert_msg(!p->status, "%s", p->error);
    ck_assert_msg(!complete_program(p, batch, lone, &l), "%s", trama_error());
    process_traffic *t = traffic_of_program(p, &l, batch, mesh->size, NULL);
    layouts_free(&l);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&lone);
    return t;
}

/* How much dearer the map by order is. Takes both. */
static double gain_of_map(process_traffic *t, machine *m)
{
    process_map *order = map_by_order(t->n, NULL, m), *map = map_by_traffic(t, t->n, m);
    double gain = map_cost(order, t, m) / map_cost(map, t, m);
    int *load = trama_alloc((size_t)m->n_places * sizeof *load);
    for (int i = 0; i < map->n; i++)
        load[map->place[i]]++;
    for (int p = 0; p < m->n_places; p++)
        ck_assert(load[p] >= t->n / m->n_places && load[p] <= (t->n + m->n_places - 1) / m->n_places);
    free(load);
    map_destroy(&order);
    map_destroy(&map);
    traffic_destroy(&t);
    machine_destroy(&m);
    return gain;
}

START_TEST(a_table_of_a_described_machine_has_its_levels)
{
    machine *m = machine_of(topology_of("package:2 numa:2 core:4 pu:2"), 2, 8, true);
    ck_assert_int_eq(m->n_places, 8); /* four ranks a node, a domain each */
    ck_assert_int_eq(machine_distance(m, 0, 1), 6);
    ck_assert_int_eq(machine_distance(m, 0, 2), 4); /* the next rank of node 0: the other domain of the package */
    ck_assert_int_eq(machine_distance(m, 0, 4), 5);
    machine_destroy(&m);
    m = machine_of(through_xml("package:2 numa:2 core:4 pu:2"), 2, 2, false);
    ck_assert_int_eq(m->n_places, 8); /* a rank a node, with all four domains */
    ck_assert_int_eq(machine_distance(m, 0, 3), 1);
    ck_assert_int_eq(machine_distance(m, 3, 4), 6);
    machine_destroy(&m);
}
END_TEST

START_TEST(first_fit_is_dearer_on_two_nodes_that_took_ranks_in_turn)
{
    machine *m = machine_of(topology_of("numa:1 core:4 pu:1"), 2, 8, true);
    double gain = gain_of_map(traffic_of_layer("dp=4,mp=2", 4096, 8, 64), m);
    ck_assert_msg(gain >= 1.5, "%.2f times", gain);
}
END_TEST

/* One rank a node with all of it: weights are summed along the strided axis, which first fit lays across the nodes. */
START_TEST(first_fit_is_dearer_on_two_packages_of_four_domains)
{
    machine *m = machine_of(through_xml("package:2 numa:2 core:4 pu:2"), 4, 4, false);
    double gain = gain_of_map(traffic_of_layer("dp=4,mp=4", 16, 512, 512), m);
    ck_assert_msg(gain >= 1.5, "%.2f times", gain);
}
END_TEST

START_TEST(first_fit_is_dearer_with_two_processes_a_place)
{
    machine *m = machine_of(topology_of("package:2 numa:1 core:8 pu:1"), 2, 4, false);
    ck_assert_int_eq(m->n_places, 4);
    double gain = gain_of_map(traffic_of_layer("dp=2,mp=4", 16, 512, 512), m);
    ck_assert_msg(gain >= 1.5, "%.2f times", gain);
}
END_TEST

START_TEST(first_fit_is_kept_where_it_is_best)
{
    machine *m = machine_of(through_xml("numa:2 core:4 pu:1"), 2, 4, false);
    ck_assert_double_eq(gain_of_map(traffic_of_layer("mp=2,dp=2", 16, 512, 512), m), 1);
}
END_TEST

TESTS(a_table_of_a_described_machine_has_its_levels, first_fit_is_dearer_on_two_nodes_that_took_ranks_in_turn,
      first_fit_is_dearer_on_two_packages_of_four_domains, first_fit_is_dearer_with_two_processes_a_place,
      first_fit_is_kept_where_it_is_best)
