/* SPDX-License-Identifier: Apache-2.0 */
/* The search for places by traffic: against all maps where there are few, and on machines on which the map by order
 * is far dearer. Machines and traffic are plain tables. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "map_traffic.h"
#include "mesh.h"
#include "suite.h"

/* A fixed sequence of numbers below `below` (Steele, Lea, Flood 2014: SplitMix64). */
static int64_t draw(uint64_t *state, int64_t below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ z >> 31) % (uint64_t)below);
}

/* ---- Machines ---- */

/* One place a rank, on nodes of some packages of some domains, filled in order. */
typedef struct described {
    int nodes, ranks;      /* ranks on each node */
    int packages, domains; /* of a node; domains of a package */
    bool interleaved;      /* rank r is on node r % nodes, as cyclic launchers do; else in blocks */
} described;

static machine *machine_of(described d)
{
    machine *m = machine_uniform(d.nodes * d.ranks, 1);
    for (int r = 0; r < m->n_ranks; r++) {
        int node = d.interleaved ? r % d.nodes : r / d.ranks, local = d.interleaved ? r / d.nodes : r % d.ranks;
        int domain = local * d.packages * d.domains / d.ranks;
        machine_place p = {.rank = r, .workers = 1, .path = {node, domain / d.domains, domain, local}};
        m->places[r] = p;
    }
    return m;
}

/* ---- Traffic ---- */

/* All pairs along each axis of a mesh exchange bytes[axis]. */
static process_traffic *along_axes(const char *axes, const int64_t *bytes)
{
    trama_mesh *mesh = trama_mesh_create(axes);
    process_traffic *t = traffic_new(mesh->size);
    for (int i = 0; i < mesh->size; i++)
        for (int a = 0; a < mesh->ndim; a++) {
            int at[TRAMA_MAX_AXES];
            mesh_coordinate(mesh, i, at);
            for (at[a]++; at[a] < mesh->shape[a]; at[a]++)
                traffic_add(t, i, mesh_position(mesh, at), bytes[a]);
        }
    traffic_pack(t);
    trama_mesh_destroy(&mesh);
    return t;
}

/* ---- The search against all maps ---- */

typedef struct all_maps {
    const process_traffic *t;
    const machine *m;
    int n, least, place[16], load[64];
    double best;
} all_maps;

/* The least cost of any map that is as even as the one by order: from the definition, with no sums kept. */
static void try_all(all_maps *a, int process, int extra)
{
    if (process == a->n) {
        process_map map = {.n = a->n, .place = a->place};
        double cost = map_cost(&map, a->t, a->m);
        a->best = a->best < 0 || cost < a->best ? cost : a->best;
        return;
    }
    for (int p = 0; p < a->m->n_places; p++) {
        bool over = a->load[p] >= a->least;
        if (a->load[p] > a->least || (over && !extra))
            continue;
        a->load[p]++;
        a->place[process] = p;
        try_all(a, process + 1, extra - over);
        a->load[p]--;
    }
}

static double least_cost(const process_traffic *t, int n, const machine *m)
{
    all_maps a = {.t = t, .m = m, .n = n, .least = n / m->n_places, .best = -1};
    try_all(&a, 0, n % m->n_places);
    return a.best;
}

/* Each place has n / n_places processes, rounded down or up. */
static void check_balance(const process_map *map, const machine *m)
{
    int *load = trama_alloc((size_t)m->n_places * sizeof *load);
    for (int i = 0; i < map->n; i++) {
        ck_assert(map->place[i] >= 0 && map->place[i] < m->n_places);
        load[map->place[i]]++;
    }
    for (int p = 0; p < m->n_places; p++)
        ck_assert_int_le(load[p] - map->n / m->n_places, map->n % m->n_places > 0);
    for (int p = 0; p < m->n_places; p++)
        ck_assert_int_ge(load[p], map->n / m->n_places);
    free(load);
}

/* Cost by order divided by cost by traffic; both maps are checked. *best: cost by traffic, divided by the least of all
 * maps. */
static double gain_of_map(const process_traffic *t, int n, const machine *m, double *best)
{
    process_map *order = map_by_order(n, NULL, m), *map = map_by_traffic(t, n, m), *again = map_by_traffic(t, n, m);
    double by_order = map_cost(order, t, m), cost = map_cost(map, t, m);
    ck_assert(cost <= by_order);
    ck_assert(cost < by_order || !memcmp(order->place, map->place, (size_t)n * sizeof *map->place));
    ck_assert_mem_eq(map->place, again->place, (size_t)n * sizeof *map->place);
    ck_assert(map->distinct == order->distinct && map->n == n && map->n_ranks == m->n_ranks);
    check_balance(map, m);
    if (best) {
        double least = least_cost(t, n, m);
        *best = least > 0 ? cost / least : 1 + cost;
    }
    map_destroy(&order);
    map_destroy(&map);
    map_destroy(&again);
    return cost > 0 ? by_order / cost : 1;
}

static process_traffic *random_traffic(int n, uint64_t *state)
{
    process_traffic *t = traffic_new(n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (draw(state, 3))
                traffic_add(t, i, j, draw(state, 4) ? draw(state, 100) : draw(state, 10000));
    return t;
}

/* Random traffic has no structure that would help, so this is the hard case; programs' traffic is below. */
START_TEST(random_traffic_is_mapped_within_a_few_percent_of_the_best)
{
    static const described machines[] = {
        {2, 4, 2, 1, true}, {1, 7, 2, 2, false}, {3, 2, 1, 1, true}, {2, 3, 1, 3, false}};
    uint64_t state = 1;
    int optimal = 0, all = 0;
    double worst = 1;
    for (size_t k = 0; k < sizeof machines / sizeof *machines; k++)
        for (int round = 0; round < (suite_is_long() ? 100 : 10); round++) {
            machine *m = machine_of(machines[k]);
            int n = m->n_places < 7 ? m->n_places : m->n_places - round % 2;
            process_traffic *t = random_traffic(n, &state);
            double best;
            gain_of_map(t, n, m, &best);
            worst = best > worst ? best : worst;
            optimal += best == 1;
            all++;
            traffic_destroy(&t);
            machine_destroy(&m);
        }
    ck_assert_msg(worst < 1.02 && optimal * 10 >= all * 9, "%d of %d are best, the worst is %.3f times dearer", optimal,
                  all, worst);
}
END_TEST

START_TEST(more_processes_than_places_share_them_evenly)
{
    uint64_t state = 5;
    machine *m = machine_of((described){2, 2, 1, 1, true}), *three = machine_uniform(3, 1);
    for (int n = 5; n <= 9; n++) {
        process_traffic *t = random_traffic(n, &state);
        double best;
        gain_of_map(t, n, n < 9 ? m : three, &best);
        ck_assert_msg(best < 1.02, "%d processes: %.3f times the least", n, best);
        traffic_destroy(&t);
    }
    machine_destroy(&m);
    machine_destroy(&three);
}
END_TEST

START_TEST(what_cannot_be_better_is_by_order)
{
    static const int64_t equal[] = {10};
    machine *m = machine_uniform(4, 1), *one = machine_uniform(1, 1);
    process_traffic *none = traffic_new(6), *all = along_axes("4", equal);
    ck_assert_double_eq(gain_of_map(none, 1, m, NULL), 1); /* one process */
    ck_assert_double_eq(gain_of_map(none, 6, m, NULL), 1); /* no traffic: equal cost, so by order */
    ck_assert_double_eq(gain_of_map(all, 4, m, NULL), 1);  /* all alike */
    ck_assert_double_eq(gain_of_map(all, 4, one, NULL), 1);
    traffic_destroy(&none);
    traffic_destroy(&all);
    machine_destroy(&m);
    machine_destroy(&one);
}
END_TEST

START_TEST(huge_traffic_does_not_overflow)
{
    machine *m = machine_of((described){2, 4, 1, 1, true});
    process_traffic *t = along_axes("4,2", (int64_t[]){INT64_MAX / 1000, INT64_MAX});
    double best;
    traffic_add(t, 0, 1, INT64_MAX);
    ck_assert_double_gt(gain_of_map(t, 8, m, &best), 1.5);
    ck_assert_double_lt(best, 1.001); /* weights lose their last bits */
    traffic_destroy(&t);
    machine_destroy(&m);
}
END_TEST

/* ---- Machines where the order is dear ---- */

/* At most 8 processes, so that the least cost of all is known. */
START_TEST(heavy_pairs_come_together_where_first_fit_parts_them)
{
    static const struct {
        described machine;
        const char *mesh;
        int64_t bytes[3];
    } cases[] = {
        {{2, 4, 1, 1, true}, "dp=4,mp=2", {1, 100}}, /* ranks go round the nodes: the inner axis crosses them */
        {{2, 4, 1, 1, true}, "dp=2,mp=4", {1, 100}},
        {{2, 4, 1, 1, false}, "mp=2,dp=4", {100, 1}}, /* ranks in blocks: the strided axis is the heavy one */
        {{4, 2, 1, 1, false}, "mp=2,dp=4", {100, 1}},
        {{2, 4, 1, 1, false}, "a=2,b=2,c=2", {100, 1, 10}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine *m = machine_of(cases[i].machine);
        process_traffic *t = along_axes(cases[i].mesh, cases[i].bytes);
        double best, gain = gain_of_map(t, t->n, m, &best);
        ck_assert_msg(gain >= 1.5 && best == 1, "case %zu: by order %.2f times dearer; %.3f of the least", i, gain,
                      best);
        traffic_destroy(&t);
        machine_destroy(&m);
    }
}
END_TEST

/* One rank with a place in each domain, beside another one on the node: packages of two domains. Inside a rank all
 * places are one apart, so four processes that exchange much belong to one rank. */
START_TEST(places_of_a_rank_are_nearer_than_ranks)
{
    machine m = {.n_ranks = 2, .n_places = 8, .places = trama_alloc(8 * sizeof(machine_place))};
    for (int p = 0; p < 8; p++)
        m.places[p] = (machine_place){.rank = p / 4, .workers = 2, .path = {0, p % 4 / 2, p % 4, p / 4}};
    process_traffic *t = along_axes("mp=4,dp=2", (int64_t[]){100, 1});
    double best, gain = gain_of_map(t, 8, &m, &best);
    ck_assert_msg(gain >= 1.5 && best == 1, "by order %.2f times dearer; %.3f of the least", gain, best);
    traffic_destroy(&t);
    free(m.places);
}
END_TEST

/* ---- Large machines ---- */

START_TEST(a_thousand_processes_are_mapped_by_their_traffic)
{
    static const struct {
        const char *mesh;
        int64_t bytes[3];
        described machine;
        double gain;
    } cases[] = {{"mp=16,dp=64", {1000, 1}, {64, 16, 1, 1, false}, 1.9}, /* 6 to 3 apart, and the rest */
                 {"dp=64,mp=16", {1, 1000}, {64, 16, 1, 1, true}, 1.9},
                 {"dp=8,mp=8,pp=16", {1, 1000, 1}, {64, 16, 2, 2, true}, 1.5},
                 {"32,32", {10, 10}, {64, 16, 2, 2, false}, 1},
                 {"1024", {1}, {64, 16, 2, 2, false}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        process_traffic *t = along_axes(cases[i].mesh, cases[i].bytes);
        machine *m = machine_of(cases[i].machine);
        double gain = gain_of_map(t, 1024, m, NULL);
        ck_assert_msg(gain >= cases[i].gain, "%s: by order %.2f times dearer", cases[i].mesh, gain);
        traffic_destroy(&t);
        machine_destroy(&m);
    }
}
END_TEST

/* The same traffic among processes whose numbers say nothing: the search finds again what the order of a mesh gave. And
 * traffic of all pairs without any structure is mapped, too. */
START_TEST(a_thousand_processes_in_any_order_are_mapped_alike)
{
    static const int64_t bytes[] = {100, 10, 1};
    machine *m = machine_of((described){64, 16, 2, 2, false});
    process_traffic *t = along_axes("16,8,8", bytes), *shuffled = traffic_new(1024), *random = traffic_new(1024);
    uint64_t state = 9;
    int number[1024];
    for (int i = 0; i < 1024; i++) {
        int k = (int)draw(&state, i + 1);
        number[i] = number[k];
        number[k] = i;
    }
    for (int i = 0; i < t->pairs.n; i++)
        traffic_add(shuffled, number[t->pairs.at[i].one], number[t->pairs.at[i].other], t->pairs.at[i].bytes);
    for (int i = 0; i < 1024; i++)
        for (int j = 0; j < i; j++)
            traffic_add(random, i, j, 1 + draw(&state, 1000));
    process_map *plain = map_by_traffic(t, 1024, m), *found = map_by_traffic(shuffled, 1024, m);
    process_map *any = map_by_traffic(random, 1024, m);
    double ratio = map_cost(found, shuffled, m) / map_cost(plain, t, m);
    ck_assert_double_lt(ratio, 1.02);
    process_traffic *all[] = {t, shuffled, random};
    process_map *maps[] = {plain, found, any};
    for (int i = 0; i < 3; i++) {
        traffic_destroy(&all[i]);
        map_destroy(&maps[i]);
    }
    machine_destroy(&m);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        random_traffic_is_mapped_within_a_few_percent_of_the_best,
        more_processes_than_places_share_them_evenly,
        what_cannot_be_better_is_by_order,
        huge_traffic_does_not_overflow,
        heavy_pairs_come_together_where_first_fit_parts_them,
        places_of_a_rank_are_nearer_than_ranks,
        a_thousand_processes_are_mapped_by_their_traffic,
        a_thousand_processes_in_any_order_are_mapped_alike,
    };
    return suite_run("map", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
