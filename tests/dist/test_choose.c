/* SPDX-License-Identifier: Apache-2.0 */
/* How one change of layout is made: cases worked out by hand from dist/README.md, and whether costs are those of plans.
 */
#include <check.h>

#include "choose.h"
#include "suite.h"
#include "trama_reshard_plan.h"

static transfer transfer_of(const trama_mesh *a, const char *from, const trama_mesh *b, const char *to,
                            trama_shape shape)
{
    trama_layout f, g;
    const box whole = box_whole(shape);
    ck_assert_int_eq(trama_layout_parse(a, shape.ndim, from, &f), TRAMA_OK);
    ck_assert_int_eq(trama_layout_parse(b, shape.ndim, to, &g), TRAMA_OK);
    return transfer_between(a, &f, b, &g, &whole, 4);
}

/* On f32. */
static void expect(const char *from_mesh, const char *from, const char *to_mesh, const char *to, trama_shape shape,
                   bool distinct, reshard_form form)
{
    trama_mesh *a = trama_mesh_create(from_mesh), *b = trama_mesh_create(to_mesh);
    transfer t = transfer_of(a, from, b, to, shape);
    reshard_choice c = reshard_choose(&t, &(reshard_setting){.distinct = distinct});
    ck_assert_msg(c.form == form, "%s on %s to %s on %s: form %d, not %d", from, from_mesh, to, to_mesh, (int)c.form,
                  (int)form);
    trama_mesh_destroy(&c.route.owned);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

START_TEST(nothing_is_sent_where_every_process_has_all)
{
    expect("4", "R", "4", "S(0)", TRAMA_SHAPE(9, 3), true, RESHARD_IN_PLACE);
    expect("2,2", "R,R", "2,2", "P,S(1)", TRAMA_SHAPE(9, 3), true, RESHARD_IN_PLACE);
}
END_TEST

START_TEST(few_messages_go_directly)
{
    expect("4", "S(0)", "4", "S(1)", TRAMA_SHAPE(64, 64), true, RESHARD_DIRECT);
    expect("4", "P", "4", "R", TRAMA_SHAPE(64, 64), true, RESHARD_DIRECT);
    expect("2:0,1", "S(0)", "2:2,3", "R", TRAMA_SHAPE(8, 8), true, RESHARD_DIRECT);
}
END_TEST

/* 1,023 messages of 4 bytes; among 512 x 256 elements 1,023 of 512 bytes to sum, and as many that are summed. */
START_TEST(many_small_messages_go_over_two_hops)
{
    expect("1024", "S(0)", "1024", "S(1)", TRAMA_SHAPE(1024, 1024), true, RESHARD_TWO_HOPS);
    expect("1024", "P", "1024", "R", TRAMA_SHAPE(512, 256), true, RESHARD_TWO_HOPS);
    expect("1024", "P", "1024", "R", TRAMA_SHAPE(256, 10), true, RESHARD_TWO_HOPS);
    expect("1024", "S(0)", "1024", "S(1)", TRAMA_SHAPE(1024, 1024), false, RESHARD_DIRECT); /* places are shared */
}
END_TEST

/* 1,055 slices of 572 KB are summed and passed on: two hops take as many bytes. Larger slices go directly. */
START_TEST(large_sums_over_many_processes_go_over_two_hops)
{
    static const char *const meshes[] = {"32,32", "32,33", "33,32", "33,33"};
    for (int i = 0; i < 4; i++) {
        expect(meshes[i], "P,R", meshes[i], "R,R", TRAMA_SHAPE(12288, 12288), true, RESHARD_TWO_HOPS);
        expect(meshes[i], "P,R", meshes[i], "R,R", TRAMA_SHAPE(4 * 12288, 12288), true, RESHARD_DIRECT);
    }
}
END_TEST

/* Four who have no term take M each of two that summed M/2 each, and not M/4 of two terms and 3/4 M of each other. */
START_TEST(a_sum_that_others_want_goes_by_slices)
{
    expect("2:0,1", "P", "4:2,3,4,5", "R", TRAMA_SHAPE(512, 512), true, RESHARD_SLICED_SUM);
}
END_TEST

START_TEST(terms_of_another_kind_are_slices_of_sums)
{
    expect("4", "P(max)", "4", "P(sum)", TRAMA_SHAPE(64, 64), true, RESHARD_NEW_KIND);
    expect("4", "P(max)", "4", "P(sum)", TRAMA_SHAPE(64, 64), false, RESHARD_NEW_KIND);
}
END_TEST

/* M is 16,384 bytes. Of 16 processes each sums M/16 of 4 terms, and makes its new term of what 4 of them have. */
START_TEST(a_sum_whose_terms_begin_on_another_axis_goes_by_slices)
{
    trama_mesh *mesh = trama_mesh_create("4,4");
    transfer t = transfer_of(mesh, "P,R", mesh, "R,P", TRAMA_SHAPE(64, 64));
    expect("4,4", "P,R", "4,4", "R,P", TRAMA_SHAPE(64, 64), true, RESHARD_SLICED_SUM);
    ck_assert_int_eq(reshard_most_bytes(&t), (3 + 3) * 16384 / 16);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* Each process a place of its own: the cost summary of the plans of all ranks has the most that one receives. */
START_TEST(a_change_costs_what_its_plan_receives)
{
    static const struct {
        const char *mesh, *from, *to;
        int64_t shape[2];
    } cases[] = {{"100", "S(0)", "S(1)", {100, 100}},     {"100", "S(0)", "S(1)", {200, 300}},
                 {"4", "P(max)", "P(sum)", {64, 64}},     {"4,4", "P,R", "R,P", {64, 64}},
                 {"4,4", "P,R", "S(1),S(0)", {512, 512}}, {"4,4", "P,S(0)", "R,R", {512, 36}},
                 {"3,3", "S(0),S(1)", "R,R", {10, 7}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_mesh *mesh = trama_mesh_create(cases[i].mesh);
        transfer t = transfer_of(mesh, cases[i].from, mesh, cases[i].to, trama_shape_of(2, cases[i].shape));
        trama_reshard_plan *plan;
        ck_assert_int_eq(
            trama_reshard_plan_create(mesh, &t.from, mesh, &t.to, TRAMA_F32, trama_shape_of(2, cases[i].shape), &plan),
            TRAMA_OK);
        int64_t received = trama_reshard_plan_cost(plan).received;
        ck_assert_msg(reshard_most_bytes(&t) == received, "case %zu: %lld bytes, not %lld", i,
                      (long long)reshard_most_bytes(&t), (long long)received);
        trama_reshard_plan_destroy(&plan);
        trama_mesh_destroy(&mesh);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        nothing_is_sent_where_every_process_has_all,
        few_messages_go_directly,
        many_small_messages_go_over_two_hops,
        large_sums_over_many_processes_go_over_two_hops,
        a_sum_that_others_want_goes_by_slices,
        a_sum_whose_terms_begin_on_another_axis_goes_by_slices,
        terms_of_another_kind_are_slices_of_sums,
        a_change_costs_what_its_plan_receives,
    };
    return suite_run("choose", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
