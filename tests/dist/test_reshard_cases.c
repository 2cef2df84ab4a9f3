/* SPDX-License-Identifier: Apache-2.0 */
/* Particular changes of layout: who sends what to whom, in which order terms are summed, and what it costs. */
#include <check.h>
#include <string.h>

#include "change.h"
#include "choose.h"
#include "partition.h"
#include "suite.h"
#include "trama_reshard_plan.h"

/* One change by text, one process a rank where there are as many; moved as in change_try. */
static void try_text(const char *from_mesh, const char *from, const char *to_mesh, const char *to, trama_shape shape,
                     int ranks, int ids, bool exact, change_traffic *moved)
{
    trama_mesh *a = trama_mesh_create(from_mesh), *b = trama_mesh_create(to_mesh);
    machine *m = machine_uniform(ranks, 2);
    process_map *map = map_by_order(ids, NULL, m);
    change c = {.from_mesh = a, .to_mesh = b, .shape = shape, .machine = m, .map = map, .max_tiles = 2, .seed = 1};
    c.exact = exact;
    ck_assert_msg(!trama_layout_parse(a, shape.ndim, from, &c.from), "%s", trama_error());
    ck_assert_msg(!trama_layout_parse(b, shape.ndim, to, &c.to), "%s", trama_error());
    change_try(&c, moved);
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

START_TEST(terms_that_stay_partial_on_one_place_do_not_mix_their_messages)
{
    try_text("4,2:6,2,4,1,5,0,7,8", "S(0),P(sum)", "4,2:6,2,4,1,5,0,7,8", "P(avg),P(avg)", TRAMA_SHAPE(2), 2, 9, false,
             NULL);
    for (int ranks = 2; ranks <= 4; ranks++) {
        try_text("2,2:0,2,1,3", "P(sum),S(0)", "2,2:0,2,1,3", "P(sum),R", TRAMA_SHAPE(5, 3), ranks, 4, true, NULL);
        try_text("2,2:2,1,3,0", "P(max),S(0)", "2,2:2,1,3,0", "P(max),S(1)", TRAMA_SHAPE(5, 3), ranks, 4, true, NULL);
        try_text("2,2,2:0,4,2,6,1,5,3,7", "P(sum),S(0),P(avg)", "2,2,2:0,4,2,6,1,5,3,7", "P(sum),R,R",
                 TRAMA_SHAPE(5, 3), ranks, 8, false, NULL);
    }
}
END_TEST

/* The largest number of elements that one of 64 processes receives, as a fraction of the tensor. */
static double received_on_8x8(const char *from, const char *to)
{
    change_traffic moved[64];
    int64_t most = 0;
    try_text("8,8", from, "8,8", to, TRAMA_SHAPE(128, 64), 64, 64, false, moved);
    for (int i = 0; i < 64; i++)
        most = moved[i].received > most ? moved[i].received : most;
    return (double)most / (128 * 64);
}

/* dist/README.md, "Bytes of a change of layout": published examples. */
START_TEST(two_axis_changes_on_8x8_cost_what_the_table_says)
{
    ck_assert_double_eq_tol(received_on_8x8("R,S(0)", "S(1),S(1)"), 0.0137, 5e-5);
    ck_assert_double_eq_tol(received_on_8x8("S(0),S(0)", "S(1),S(1)"), 0.0154, 5e-5);
    ck_assert_double_eq_tol(received_on_8x8("S(0),S(1)", "S(1),S(0)"), 0.0156, 5e-5);
    ck_assert_double_eq_tol(received_on_8x8("S(0),S(0)", "R,S(0)"), 0.125, 5e-5);
    ck_assert_double_eq_tol(received_on_8x8("R,S(0)", "S(0),R"), 0.125, 5e-5);
    ck_assert_double_eq_tol(received_on_8x8("P,P", "R,R"), 1.97, 2e-3);
    ck_assert_double_eq_tol(received_on_8x8("P,R", "R,R"), 1.09, 5e-3);
}
END_TEST

/* Two targets that outnumber their holder exchange slices: the root of a broadcast sends the tensor once. */
START_TEST(a_root_sends_once_however_many_receive)
{
    change_traffic moved[9];
    try_text("1:0", "R", "8:1,2,3,4,5,6,7,8", "R", TRAMA_SHAPE(64, 65), 9, 9, true, moved);
    ck_assert_int_eq(moved[0].sent, 64 * 65);
    for (int i = 1; i < 9; i++) {
        ck_assert_int_eq(moved[i].received, 64 * 65);
        ck_assert_int_le(moved[i].sent, 7 * 8 * 65);
    }
    try_text("1:0", "R", "2,4", "R,R", TRAMA_SHAPE(3, 4567), 8, 8, true, moved);
    ck_assert_int_eq(moved[0].sent, 3 * 4567);
}
END_TEST

START_TEST(one_target_takes_a_large_box_from_several_holders)
{
    change_traffic moved[5];
    try_text("4:0,1,2,3", "R", "1:4", "R", TRAMA_SHAPE(200, 181), 5, 5, true, moved);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(moved[i].sent, 50 * 181);
}
END_TEST

/* Two nodes of two ranks have a replica each. A rank without the tensor receives it from its own node. */
START_TEST(a_target_takes_what_it_lacks_from_the_nearest_holder)
{
    machine_place places[4];
    for (int r = 0; r < 4; r++)
        places[r] = (machine_place){.rank = r, .workers = 1, .path = {r / 2, 0, 0, r}};
    machine m = {.n_ranks = 4, .n_places = 4, .places = places};
    process_map *map = map_by_order(4, NULL, &m);
    trama_mesh *holders = trama_mesh_create("2:0,2"), *all = trama_mesh_create("4"),
               *turned = trama_mesh_create("4:3,2,1,0");
    change c = {
        .from_mesh = holders, .to_mesh = all, .shape = TRAMA_SHAPE(3, 5), .machine = &m, .map = map, .max_tiles = 1};
    change_traffic moved[4];
    ck_assert(!trama_layout_parse(holders, 2, "R", &c.from) && !trama_layout_parse(all, 2, "R", &c.to));
    for (int i = 0; i < 2; i++) {
        change_try(&c, moved);
        ck_assert_int_eq(moved[0].sent, 15);
        ck_assert_int_eq(moved[2].sent, 15);
        ck_assert_int_eq(moved[1].sent + moved[3].sent, 0);
        c.to_mesh = turned;
    }
    map_destroy(&map);
    trama_mesh_destroy(&holders);
    trama_mesh_destroy(&all);
    trama_mesh_destroy(&turned);
}
END_TEST

/* Messages complete in tiles of the target, so that nothing is unpacked; each process copies its own part alone. */
START_TEST(an_all_gather_copies_nothing_but_its_own_part)
{
    trama_mesh *mesh = trama_mesh_create("4");
    machine *m = machine_uniform(4, 4);
    process_map *map = map_by_order(4, NULL, m);
    trama_program *p = trama_program_create();
    trama_shape shape = TRAMA_SHAPE(8, 3);
    trama_layout split, whole;
    ck_assert(!trama_layout_parse(mesh, 2, "S(0)", &split) && !trama_layout_parse(mesh, 2, "R", &whole));
    trama_input(p, "x", TRAMA_F64, shape);
    layouts l = {.n_values = 1, .mesh = (const trama_mesh *[]){mesh}, .value = &split};
    for (int r = 0; r < 4; r++) {
        plan_source source = {p, &l, &shape, NULL, map, m, {.grain_flops = 1 << 20, .grain_bytes = 1 << 20}, r};
        partition *q = partition_begin(&source);
        partition_input(q, 0);
        partition_reshard(q, 0, mesh, &whole, -1, false);
        plan *plan_ = partition_end(&q);
        int of_kind[STEP_RECEIVE + 1] = {0};
        for (int i = 0; i < plan_->steps.n; i++)
            of_kind[plan_->steps.at[i].kind]++;
        ck_assert_int_eq(of_kind[STEP_COPY], 1);
        ck_assert_int_eq(of_kind[STEP_SEND], 3);
        ck_assert_int_eq(of_kind[STEP_RECEIVE], 3);
        ck_assert_int_eq(plan_->steps.n, 7);
        plan_destroy(&plan_);
    }
    trama_program_destroy(&p);
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* With the replicas' help each would receive 270 elements, in messages to 255 others; in lines 2 15/16 of 256, from 15.
 */
START_TEST(small_sums_stay_on_their_line_of_a_large_mesh)
{
    change_traffic moved[256];
    try_text("16,16", "P,R", "16,16", "R,R", TRAMA_SHAPE(256), 256, 256, false, moved);
    for (int i = 0; i < 256; i++) {
        ck_assert_int_eq(moved[i].received, 480);
        ck_assert_int_eq(moved[i].sent, 480);
    }
    try_text("16,16", "P,R", "16,16", "R,R", TRAMA_SHAPE(7), 256, 256, false, NULL);
    try_text("3,70", "R,P", "3,70", "R,S(0)", TRAMA_SHAPE(5, 7), 210, 210, false, NULL);
}
END_TEST

START_TEST(a_split_becomes_a_sum_of_terms_where_it_is)
{
    static const char *const texts[][3] = {{"4", "S(0)", "P"},
                                           {"4", "S(1)", "P(avg)"},
                                           {"2,3", "S(0),R", "P,S(0)"},
                                           {"2,3", "S(0)[1],S(0)[0]", "P,R"},
                                           {"2,3", "S(0)[1],S(0)[0]", "P,P(avg)"},
                                           {"2,3", "S(1),S(0)", "P(avg),S(1)"}};
    for (int i = 0; i < 6; i++)
        for (int ranks = 1; ranks <= 6; ranks++)
            try_text(texts[i][0], texts[i][1], texts[i][0], texts[i][2], TRAMA_SHAPE(5, 3), ranks, 6, false, NULL);
    change_traffic moved[4];
    try_text("4", "S(0)", "4", "P", TRAMA_SHAPE(5, 3), 4, 4, true, moved);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(moved[i].received, 0);
    try_text("4", "P(max)", "4", "P", TRAMA_SHAPE(8, 3), 4, 4, true, moved);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(moved[i].received, 3 * 6);
}
END_TEST

/* A two-step all-reduce gave replicas different last bits. */
START_TEST(pytorch_171916_sums_are_in_the_order_of_terms_and_equal_on_all_replicas)
{
    try_text("6,5,1", "P,P,R", "6,5,1", "R,R,R", TRAMA_SHAPE(13, 7), 30, 30, true, NULL); /* few enough for one hop */
    try_text("7", "P", "7", "R", TRAMA_SHAPE(5, 3), 7, 7, true, NULL);
    try_text("7", "P", "7", "R", TRAMA_SHAPE(150, 91), 7, 7, true, NULL);
    try_text("3,2", "P,P", "3,2", "R,R", TRAMA_SHAPE(150, 91), 6, 6, true, NULL);
    try_text("3,2", "P,P", "3,2", "S(0),R", TRAMA_SHAPE(151, 91), 6, 6, true, NULL);
    try_text("3,2", "P,P", "5:1,2,0,4,3", "R", TRAMA_SHAPE(151, 91), 6, 6, true, NULL);
    try_text("3,2", "P,R", "3,2", "R,R", TRAMA_SHAPE(151, 91), 3, 6, true, NULL);
}
END_TEST

/* All-gathers along two axes were merged as if the pieces were those of one: a row was lost. */
START_TEST(pytorch_194457_all_gather_of_5x3_on_2x2)
{
    static const char *const splits[] = {"S(0),S(0)", "S(0)[1],S(0)[0]", "S(0),S(1)", "S(1),S(0)", "S(1)[1],S(1)[0]"};
    for (int i = 0; i < 5; i++)
        for (int ranks = 1; ranks <= 4; ranks++)
            try_text("2,2", splits[i], "2,2", "R,R", TRAMA_SHAPE(5, 3), ranks, 4, true, NULL);
}
END_TEST

/* Sums instead of averages and extrema on P -> S, zeroes for R -> P(max), pieces of -1. */
START_TEST(paddle_partial_kinds_survive_and_5_over_4_has_no_negative_piece)
{
    static const char *const kinds[] = {"P(sum)", "P(avg)", "P(max)", "P(min)"};
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < 4; l++) {
            try_text("4", kinds[k], "4", "S(0)", TRAMA_SHAPE(5), 4, 4, false, NULL);
            try_text("4", "R", "4", kinds[k], TRAMA_SHAPE(5), 4, 4, false, NULL);
            try_text("4", kinds[k], "4", kinds[l], TRAMA_SHAPE(5), 4, 4, false, NULL);
        }
    try_text("4", "S(0)", "4", "S(1)", TRAMA_SHAPE(5, 6), 4, 4, true, NULL);
    try_text("2", "P", "2", "S(0)", TRAMA_SHAPE(11, 20), 2, 2, true, NULL);
}
END_TEST

/* The targets of one row block are two, one of which has no term of it: half a block of both terms and the other half's
 * sum, 2 * 48 + 48 elements, instead of two blocks of 96. */
START_TEST(terms_that_some_targets_lack_are_summed_in_slices)
{
    change_traffic moved[4];
    try_text("2,2", "S(0),P", "2,2", "R,S(0)", TRAMA_SHAPE(12, 16), 4, 4, true, moved);
    const int64_t received[] = {96, 144, 144, 96};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(moved[i].received, received[i]);
}
END_TEST

/* Two terms, which all have: the one that a process lacks comes from its peer, in one message, though replicas could
 * help; that costs the same bytes in more messages. */
START_TEST(two_terms_with_replicas_go_between_peers)
{
    static const char *const layouts_of[][2] = {{"2,4", "P,R"}, {"4,2", "R,P"}};
    for (int i = 0; i < 2; i++) {
        change_traffic moved[8];
        try_text(layouts_of[i][0], layouts_of[i][1], layouts_of[i][0], "R,R", TRAMA_SHAPE(24, 16), 8, 8, true, moved);
        for (int k = 0; k < 8; k++) {
            ck_assert_int_eq(moved[k].received, 24 * 16);
            ck_assert_int_eq(moved[k].sent, 24 * 16);
        }
    }
}
END_TEST

/* N elements of t terms: those who have them sum N/t each, (t-1)/t N, and the targets get N: not t N, nor (t+p-1)/p N
 * in slices of p targets. A root that has a term sums its part of it, too: (t-1)/t N + (t-1)/t N, not (t-1) N. */
START_TEST(sums_for_other_processes_are_made_where_the_terms_are)
{
    static const struct {
        const char *from_mesh, *from, *to_mesh, *to;
        int ids;
        int64_t most; /* of 64 x 96 = 6144 elements */
    } cases[] = {
        {"2:0,1", "P", "1:2", "R", 3, 6144},
        {"4:0,1,2,3", "P", "1:4", "R", 5, 6144},
        {"2:0,1", "P(max)", "2:2,3", "R", 4, 6144},
        {"4:0,1,2,3", "P(avg)", "4:4,5,6,7", "S(0)", 8, 3 * 1536},
        {"4", "P(min)", "1:0", "R", 4, 2 * 3 * 1536},
        {"2,2", "P,R", "1:4", "R", 5, 6144},
        {"2,2:0,1,2,3", "S(1),P", "2:4,5", "R", 6, 6144},
        {"4", "P mask{1,1,1,1}", "1:0", "P(sum)", 4, 2 * 3 * 1536},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_traffic moved[8];
        int64_t most = 0;
        try_text(cases[i].from_mesh, cases[i].from, cases[i].to_mesh, cases[i].to, TRAMA_SHAPE(64, 96), cases[i].ids,
                 cases[i].ids, true, moved);
        for (int r = 0; r < cases[i].ids; r++)
            most = max_i64(most, moved[r].received);
        ck_assert_msg(most == cases[i].most, "case %zu: %lld elements, not %lld", i, (long long)most,
                      (long long)cases[i].most);
    }
}
END_TEST

/* 4 elements: 32 bytes fewer do not pay for the messages of a second hop. */
START_TEST(tiny_sums_go_at_once)
{
    change_traffic moved[5];
    try_text("4:0,1,2,3", "P", "1:4", "R", TRAMA_SHAPE(4), 5, 5, true, moved);
    ck_assert_int_eq(moved[4].received, 4 * 4);
    ck_assert_int_eq(moved[0].received, 0);
}
END_TEST

/* Terms that change their kind go in two changes, whatever they cost. */
static bool changes_kind(const transfer *t)
{
    return t->one_mesh && t->reduced & t->fresh_sum;
}

/* Completion chooses layouts by this number. */
START_TEST(what_a_change_is_said_to_cost_is_what_its_plan_receives)
{
    static const char *const meshes[] = {"2,2", "3,2", "4:1,4,2,5"};
    trama_shape shape = TRAMA_SHAPE(12, 17);
    const box whole = box_whole(shape);
    int compared = 0;
    for (int i = 0; i < 9; i++) {
        trama_mesh *a = trama_mesh_create(meshes[i / 3]), *b = trama_mesh_create(meshes[i % 3]);
        layout_list from = {0}, to = {0};
        every_layout(a, shape.ndim, true, &from);
        every_layout(b, shape.ndim, true, &to);
        for (int64_t k = i; k < (int64_t)from.n * to.n; k += 5) {
            const trama_layout *f = &from.at[k / to.n], *g = &to.at[k % to.n];
            transfer t = transfer_between(a, f, b, g, &whole, 4);
            trama_reshard_plan *p = NULL;
            if (changes_kind(&t))
                continue;
            ck_assert(!trama_reshard_plan_create(a, f, b, g, TRAMA_F32, shape, &p));
            int64_t received = trama_reshard_plan_cost(p).received;
            ck_assert_msg(reshard_most_bytes(&t) == received, "meshes %s and %s, pair %lld: %lld bytes, not %lld",
                          meshes[i / 3], meshes[i % 3], (long long)k, (long long)reshard_most_bytes(&t),
                          (long long)received);
            trama_reshard_plan_destroy(&p);
            compared++;
        }
        ARRAY_FREE(&from);
        ARRAY_FREE(&to);
        trama_mesh_destroy(&a);
        trama_mesh_destroy(&b);
    }
    ck_assert_int_gt(compared, 1000);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        terms_that_stay_partial_on_one_place_do_not_mix_their_messages,
        two_axis_changes_on_8x8_cost_what_the_table_says,
        a_root_sends_once_however_many_receive,
        one_target_takes_a_large_box_from_several_holders,
        a_target_takes_what_it_lacks_from_the_nearest_holder,
        an_all_gather_copies_nothing_but_its_own_part,
        small_sums_stay_on_their_line_of_a_large_mesh,
        a_split_becomes_a_sum_of_terms_where_it_is,
        terms_that_some_targets_lack_are_summed_in_slices,
        two_terms_with_replicas_go_between_peers,
        sums_for_other_processes_are_made_where_the_terms_are,
        tiny_sums_go_at_once,
        what_a_change_is_said_to_cost_is_what_its_plan_receives,
        pytorch_171916_sums_are_in_the_order_of_terms_and_equal_on_all_replicas,
        pytorch_194457_all_gather_of_5x3_on_2x2,
        paddle_partial_kinds_survive_and_5_over_4_has_no_negative_piece,
    };
    return suite_run("reshard_cases", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
