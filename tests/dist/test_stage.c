/* SPDX-License-Identifier: Apache-2.0 */
/* Two levels: many small messages become few, values stay, bytes are at most doubled, and with partials none is added.
 */
#include <check.h>

#include "change.h"
#include "partition.h"
#include "suite.h"
#include "trama_reshard_plan.h"

typedef struct staged_case {
    const char *from_mesh, *from, *to_mesh, *to;
    int ndim;
    int64_t extent[3];
    int messages; /* of one process, sent and received, at most */
    double ratio; /* of bytes to the lower bound, at most; 0: there is none */
} staged_case;

static const staged_case cases[] = {
    {"10,10", "S(0),S(0)", "10,10", "S(1),S(1)", 2, {100, 100}, 38, 2},
    {"10,10", "S(0)[1],S(0)[0]", "10,10", "S(1),S(1)", 2, {100, 100}, 38, 2},
    {"10,10", "S(0),S(0)", "10,10", "S(1)[1],S(1)[0]", 2, {101, 103}, 44, 2},
    {"10,10", "S(0),S(0)", "10,10", "R,R", 2, {103, 3}, 38, 1.02},
    {"90", "S(0)", "90", "S(1)", 2, {90, 90}, 36, 2},
    {"100", "S(0)", "100", "S(2)", 3, {100, 2, 100}, 38, 2},
    {"100", "S(0)", "100", "R", 2, {100, 5}, 38, 1.02},
    {"100", "S(0)", "100", "R", 2, {70, 5}, 44, 1.02}, /* some have nothing */
    {"97", "S(0)", "97", "R", 2, {970, 5}, 48, 1.1},
    {"97", "S(0)", "97", "S(1)", 2, {97, 97}, 192, 1}, /* no rows and columns: some would get more than twice */
    {"100", "P", "100", "R", 2, {100, 8}, 76, 0},
    {"100", "P(max)", "100", "S(0)", 2, {200, 3}, 38, 0},
    {"100", "P(avg)", "100", "S(1)", 2, {3, 100}, 38, 0},
    {"10,10", "P,P", "10,10", "R,R", 1, {1000}, 76, 0},
    {"10,10", "P(min),P(min)", "10,10", "S(0),S(0)", 1, {500}, 38, 0},
    {"1:0", "R", "100", "R", 2, {7, 11}, 21, 1},
    {"100", "S(0)", "1:99", "R", 1, {200}, 28, 1.02},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static change change_of(const staged_case *s)
{
    change c = {.from_mesh = trama_mesh_create(s->from_mesh),
                .to_mesh = trama_mesh_create(s->to_mesh),
                .shape = trama_shape_of(s->ndim, s->extent),
                .max_tiles = 1,
                .seed = 3,
                .two_levels = true};
    ck_assert_msg(!trama_layout_parse(c.from_mesh, s->ndim, s->from, &c.from), "%s", trama_error());
    ck_assert_msg(!trama_layout_parse(c.to_mesh, s->ndim, s->to, &c.to), "%s", trama_error());
    return c;
}

/* Tries the change on a machine with a rank for each process. */
static void try_on_ranks(change *c)
{
    const int n = change_ids(c->from_mesh, c->to_mesh);
    machine *m = machine_uniform(n, 1);
    process_map *map = map_by_order(n, NULL, m);
    c->machine = m;
    c->map = map;
    change_try(c, NULL);
    map_destroy(&map);
    machine_destroy(&m);
}

static void free_change(change *c)
{
    trama_mesh *from = (trama_mesh *)c->from_mesh, *to = (trama_mesh *)c->to_mesh;
    trama_mesh_destroy(&from);
    trama_mesh_destroy(&to);
}

START_TEST(values_stay_and_bytes_are_at_most_doubled)
{
    for (int i = 0; i < N_CASES; i++) {
        change c = change_of(&cases[i]);
        try_on_ranks(&c);
        free_change(&c);
    }
}
END_TEST

/* The processes of the target are as many as those of the source, but others, or the same in another order. */
START_TEST(other_processes_get_what_they_want)
{
    static const staged_case ways[] = {
        {"100", "S(0)", "100", "R", 2, {100, 5}, 0, 0},
        {"100", "P", "100", "R", 2, {100, 5}, 0, 0},
        {"10,10", "S(0),S(1)", "10,10", "R,R", 2, {100, 50}, 0, 0},
    };
    for (int i = 0; i < 6; i++) {
        change c = change_of(&ways[i / 2]);
        int ids[100];
        for (int k = 0; k < 100; k++)
            ids[k] = i % 2 ? 199 - k : 99 - k;
        trama_mesh *same = (trama_mesh *)c.to_mesh;
        c.to_mesh = trama_mesh_create_ids(same->ndim, same->shape, NULL, ids);
        trama_mesh_destroy(&same);
        try_on_ranks(&c);
        free_change(&c);
    }
}
END_TEST

static trama_reshard_cost cost_of(const change *c)
{
    trama_reshard_plan *p = NULL;
    ck_assert_msg(!trama_reshard_plan_create(c->from_mesh, &c->from, c->to_mesh, &c->to, TRAMA_F32, c->shape, &p), "%s",
                  trama_error());
    trama_reshard_cost says = trama_reshard_plan_cost(p);
    trama_reshard_plan_destroy(&p);
    return says;
}

static void demand_few_messages(const staged_case *s)
{
    change c = change_of(s);
    trama_reshard_cost says = cost_of(&c);
    ck_assert_msg(says.messages <= s->messages, "%s to %s: %d messages", s->from, s->to, says.messages);
    ck_assert_msg(!s->ratio == (says.bound < 0), "%s to %s", s->from, s->to);
    ck_assert_msg(says.bound < 0 || (double)says.received <= s->ratio * (double)says.bound,
                  "%s to %s: %lld bytes of %lld", s->from, s->to, (long long)says.received, (long long)says.bound);
    free_change(&c);
}

START_TEST(messages_are_few)
{
    for (int i = 0; i < N_CASES; i++)
        demand_few_messages(&cases[i]);
}
END_TEST

/* Of 18 x 18 processes each line is 3 x 6 again, but for transposes, whose bytes are doubled once. */
START_TEST(hops_of_many_messages_are_two_hops_again)
{
    static const staged_case again[] = {
        {"324", "P(max)", "324", "S(0)", 1, {648}, 2 * 14, 0},
        {"324", "S(0)", "324", "R", 1, {648}, 2 * 14, 1},
        {"18,18", "P,P", "18,18", "S(0)[1],S(0)[0]", 1, {648}, 2 * 14, 0},
        {"324", "P", "324", "R", 2, {324, 2}, 4 * 14, 0},
        {"324", "S(0)", "324", "S(1)", 2, {324, 324}, 2 * 35, 2},
    };
    for (int i = 0; i < 5; i++)
        demand_few_messages(&again[i]);
    for (int i = 0; i < 2; i++) {
        change c = change_of(&again[i]);
        try_on_ranks(&c);
        free_change(&c);
    }
}
END_TEST

/* Up to 64 messages, and messages of 1 MiB and more, go straight. Messages of 64 KiB and more go in two hops only where
 * these are at the bound, too: a gather, but no transpose. */
START_TEST(few_or_large_messages_cost_no_more_than_the_bound)
{
    static const staged_case straight[] = {
        {"8,8", "S(0),S(0)", "8,8", "S(1),S(1)", 2, {64, 64}, 126, 1},
        {"16,16", "S(0),S(0)", "16,16", "S(1),S(1)", 2, {65536, 16384}, 510, 1},
        {"256", "S(0)", "256", "R", 1, {256 << 18}, 510, 1},
        {"256", "S(0)", "256", "R", 1, {256 << 14}, 4 * 15, 1},
    };
    for (int i = 0; i < 4; i++) {
        change c = change_of(&straight[i]);
        trama_reshard_cost says = cost_of(&c);
        ck_assert_int_eq(says.received, says.bound);
        ck_assert_int_eq(says.messages, straight[i].messages);
        free_change(&c);
    }
}
END_TEST

/* MPI counts in int: 8 GiB go in messages of up to 1 GiB. */
START_TEST(no_message_is_larger_than_mpi_counts)
{
    static const staged_case large[] = {{"2", "S(0)", "2", "R", 2, {1 << 16, 1 << 15}, 16, 1},
                                        {"2", "P", "2", "R", 2, {1 << 16, 1 << 15}, 1 << 20, 0}};
    for (int i = 0; i < 2; i++) {
        change c = change_of(&large[i]);
        trama_reshard_plan *p = NULL;
        const trama_move *moves;
        ck_assert(!trama_reshard_plan_create(c.from_mesh, &c.from, c.to_mesh, &c.to, TRAMA_F32, c.shape, &p));
        int64_t n = trama_reshard_plan_moves(p, &moves);
        for (int64_t k = 0; k < n; k++)
            ck_assert_int_le(moves[k].bytes, 1 << 30);
        ck_assert_int_ge(n, 8);
        trama_reshard_plan_destroy(&p);
        free_change(&c);
    }
}
END_TEST

/* Of 4 terms the heavy process would get 3 times its 20/23; as it is, no one gets more than of a sum on all of them. */
START_TEST(sums_to_pieces_by_weight_go_by_way_of_equal_pieces)
{
    static const staged_case heavy[] = {
        {"[20,1,1,1]", "P", "[20,1,1,1]", "S(0)", 2, {1000, 30}, 0, 2 * 0.75},
        {"[1,1,20,1]", "P(max)", "[1,1,20,1]", "S(1)", 2, {30, 1001}, 0, 2 * 0.75},
        {"[1,30,2,1,1,1,1]", "P(avg)", "[1,30,2,1,1,1,1]", "S(0)", 1, {20000}, 0, 2 * 6 / 7.},
        {"[20,1,1],2", "P,S(1)", "[20,1,1],2", "S(0),S(1)", 2, {1500, 34}, 0, 2 / 3.},
        {"2,[1,9,1,1]", "P,P", "2,[1,9,1,1]", "R,S(0)", 1, {30000}, 0, 2 * 7 / 8.},
        {"2,[1,9,1,1]", "S(0),P", "2,[1,9,1,1]", "S(0),S(0)", 1, {60000}, 0, 0.75},
        {"[3,1]", "P", "[3,1]", "S(0)", 1, {9000}, 0, 0.75},          /* at once is less */
        {"[20,1,1,1]", "P", "[20,1,1,1]", "S(0)", 1, {1000}, 0, 2.7}, /* too little for two hops */
    };
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++) {
        change c = change_of(&heavy[i]);
        trama_reshard_plan *p = NULL;
        try_on_ranks(&c);
        ck_assert(!trama_reshard_plan_create(c.from_mesh, &c.from, c.to_mesh, &c.to, TRAMA_F64, c.shape, &p));
        double bytes = 8 * (double)trama_shape_count(c.shape), got = trama_reshard_plan_cost(p).received / bytes;
        ck_assert_msg(got <= heavy[i].ratio * 1.02, "case %zu: %g times the tensor", i, got);
        trama_reshard_plan_destroy(&p);
        free_change(&c);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {values_stay_and_bytes_are_at_most_doubled,
                            other_processes_get_what_they_want,
                            messages_are_few,
                            hops_of_many_messages_are_two_hops_again,
                            few_or_large_messages_cost_no_more_than_the_bound,
                            sums_to_pieces_by_weight_go_by_way_of_equal_pieces,
                            no_message_is_larger_than_mpi_counts};
    return suite_run("stage", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
