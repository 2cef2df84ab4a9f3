/* SPDX-License-Identifier: Apache-2.0 */
/* Updates in parts: which process updates what, and for how many bytes. */
#include <check.h>
#include <string.h>

#include "defining.h"
#include "descent.h"
#include "families.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_composed.h"

static trama_program *p;
static trama_mesh *mesh;

static void set_up(void)
{
    p = trama_program_create();
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

/* mean((x w)^2) of x [64, 12] and w [rows, columns], trained by adam. */
typedef struct one_weight {
    const char *mesh, *x, *w; /* w NULL: not annotated */
    int64_t shape[2];         /* of w; 0: 12 and 16 */
    double clip_norm;         /* 0: none */
    bool fetched;             /* a target names the gradient that is applied */
    const char *slot;         /* w.m is annotated so; NULL: it is not */
    trama_update_rule rule;   /* in place of adam's */
} one_weight;

static trama_completion *complete(const one_weight *o, int64_t share_bytes)
{
    trama_completion *c;
    trama_optimizer adam = trama_adam(0.1);
    const int64_t rows = o->shape[0] ? o->shape[0] : 12, columns = o->shape[1] ? o->shape[1] : 16;
    adam.share_bytes = share_bytes;
    adam.clip_norm = o->clip_norm > 0 ? o->clip_norm : adam.clip_norm;
    adam.rule = o->rule ? o->rule : adam.rule;
    tear_down();
    set_up();
    mesh = trama_mesh_create(o->mesh);
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(64, rows)), mesh, o->x);
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(rows, columns), NULL);
    if (o->w)
        trama_shard(w, mesh, o->w);
    trama_value *loss = trama_mean(trama_square(trama_matmul(x, w))), *done = trama_minimize(loss, &adam);
    trama_value *named = o->fetched ? trama_merged_gradient(done, w) : loss;
    if (o->slot)
        trama_shard(program_leaf_named(p, "w.m", NULL), mesh, o->slot);
    ck_assert_msg(trama_target_create(p, "train", done, named) != NULL, "%s", trama_program_error(p));
    ck_assert_msg(trama_completion_create(p, 1, &c) == TRAMA_OK, "%s", trama_error());
    return c;
}

static void check_lies(const trama_completion *c, const char *name, const char *as)
{
    trama_layout layout;
    text found = {0};
    const trama_value *v = program_leaf_named(p, name, NULL);
    ck_assert(trama_completion_layout(c, v, &layout));
    layout_text(&found, trama_completion_mesh(c, v), &layout);
    ck_assert_str_eq(found.at, as);
    free(found.at);
}

static int64_t bytes_of(const trama_completion *c)
{
    int64_t bytes;
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, NULL), TRAMA_OK);
    return bytes;
}

/* Bytes of a completion with shared updates less those of the one without, whose slots lie as w does. */
static int64_t added_bytes(const one_weight *o, const char *w, const char *slots)
{
    trama_completion *c = complete(o, 0);
    const char *slot = o->rule == heavy_ball ? "w.b" : "w.v";
    const int64_t before = bytes_of(c);
    check_lies(c, "w", w);
    check_lies(c, slot, w);
    trama_completion_destroy(&c);
    c = complete(o, 1);
    const int64_t after = bytes_of(c);
    check_lies(c, "w", w);
    check_lies(c, slot, slots);
    trama_completion_destroy(&c);
    return after - before;
}

START_TEST(a_process_updates_a_part_for_as_many_bytes)
{
    static const struct {
        one_weight o;
        const char *w, *slots;
    } of[] = {
        {{.mesh = "2", .x = "S(0)"}, "R", "S(0)"},
        {{.mesh = "3", .x = "S(0)"}, "R", "S(0)"},
        {{.mesh = "4", .x = "S(0)", .shape = {3, 16}}, "R", "S(1)"}, /* 3 rows are no 4 parts */
        {{.mesh = "4", .x = "S(0)", .shape = {6, 16}}, "R", "S(1)"}, /* nor are 6 nearly even */
        {{.mesh = "2,2", .x = "S(0),R", .w = "R,S(1)"}, "R,S(1)", "S(0),S(1)"},
        {{.mesh = "2,2", .x = "S(0),S(0)"}, "R,R", "S(0),S(0)"},
        {{.mesh = "2,3", .x = "S(0),R", .w = "R,R"}, "R,R", "S(0),S(0)"}, /* along replicas of the terms, too */
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        ck_assert_int_le(added_bytes(&of[i].o, of[i].w, of[i].slots), 0);
}
END_TEST

/* The norm is summed over parts: one number of f64 comes from each other process. */
START_TEST(a_norm_is_summed_over_parts)
{
    static const one_weight of[] = {{.mesh = "2,3", .x = "R,S(0)", .w = "R,R", .clip_norm = 1},
                                    {.mesh = "2,3", .x = "S(0),R", .w = "R,R", .clip_norm = 1}};
    ck_assert_int_eq(added_bytes(&(one_weight){.mesh = "2", .x = "S(0)", .clip_norm = 1}, "R", "S(0)"), 8);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(added_bytes(&of[i], "R,R", "S(0),S(0)"), 5 * 8);
}
END_TEST

/* Its slot is read by an op before the one that updates it; w may be split or masked besides. */
START_TEST(slots_of_rules_of_several_ops_lie_in_parts)
{
    static const struct {
        one_weight o;
        const char *w, *slots;
    } of[] = {
        {{.mesh = "4", .x = "S(0)", .rule = heavy_ball}, "R", "S(0)"},
        {{.mesh = "2", .x = "S(0)", .w = "S(1)", .rule = heavy_ball}, "S(1)", "S(1)"},
        {{.mesh = "3", .x = "S(0)", .w = "R mask{0,1,1}", .rule = heavy_ball}, "R mask{0,1,1}", "R mask{0,1,1}"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        ck_assert_int_le(added_bytes(&of[i].o, of[i].w, of[i].slots), 0);
}
END_TEST

/* A user's op updates rows, and needs each column whole. */
static trama_op_definition by_columns = {
    .name = "by_columns", .n_in = 2, .n_out = 1, .rule = "[a]b,[a]b->[a]b", .updates = 1};

static void update_by_columns(const trama_update *u)
{
    static const trama_op *op;
    op = op ? op : defined(by_columns);
    trama_update_set(u, u->parameter,
                     trama_apply(op, 2, (trama_value *[]){u->parameter, trama_update_gradient(u)}, NULL));
}

START_TEST(an_op_that_needs_whole_dims_updates_the_whole)
{
    const one_weight o = {.mesh = "2", .x = "S(0)", .rule = update_by_columns};
    trama_completion *c = complete(&o, 1);
    check_lies(c, "w", "R");
    ck_assert_int_eq(bytes_of(c), 768);
    trama_completion_destroy(&c);
}
END_TEST

START_TEST(others_are_updated_as_they_lie)
{
    static const one_weight of[] = {
        {.mesh = "2", .x = "S(0)", .fetched = true},      /* the gradient is whole anyway */
        {.mesh = "2", .x = "S(0)", .slot = "R"},          /* the user wishes so */
        {.mesh = "2", .x = "R"},                          /* there are no terms */
        {.mesh = "3", .x = "S(0)", .w = "R mask{0,1,1}"}, /* not every process has w */
        {.mesh = "5", .x = "S(0)", .shape = {7, 7}},      /* parts would not be even */
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        ck_assert_int_eq(added_bytes(&of[i], of[i].w ? of[i].w : "R", of[i].w ? of[i].w : "R"), 0);
}
END_TEST

/* sgd with momentum, in a state that is no slot. */
static void momentum_of_its_own(const trama_update *u)
{
    trama_value *w = u->parameter, *b = trama_state(w->program, "mine", w->dtype, w->shape, NULL);
    trama_value *in[] = {w, b, trama_update_gradient(u), trama_update_lr(u), trama_update_taken(u)};
    trama_attributes a = {.real = {[MOMENTUM_FACTOR] = 0.5}};
    trama_value *moved = program_append(w->program, u->where, &trama_op_momentum, 5, in, &a);
    trama_update_set(u, w, trama_result(moved, 0));
    trama_update_set(u, b, trama_result(moved, 1));
}

START_TEST(a_state_that_is_no_slot_keeps_its_parameter_whole)
{
    trama_completion *c = complete(&(one_weight){.mesh = "2", .x = "S(0)", .rule = momentum_of_its_own}, 1);
    check_lies(c, "w", "R");
    check_lies(c, "mine", "R");
    ck_assert_int_eq(bytes_of(c), 768);
    trama_completion_destroy(&c);
}
END_TEST

/* 768 bytes of w are fewer than the default asks for. */
START_TEST(small_parameters_are_updated_whole)
{
    const one_weight o = {.mesh = "2", .x = "S(0)"};
    const int64_t of_default = trama_adam(0.1).share_bytes;
    static const struct {
        int64_t share_bytes;
        const char *slots;
    } of[] = {{0, "R"}, {768, "S(0)"}, {769, "R"}};
    ck_assert_int_eq(of_default, 4 << 20);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        trama_completion *c = complete(&o, of[i].share_bytes);
        check_lies(c, "w.m", of[i].slots);
        trama_completion_destroy(&c);
    }
}
END_TEST

/* A slot that the user splits decides, whatever the size of the parameter. */
START_TEST(a_slot_may_be_annotated_in_parts)
{
    one_weight o = {.mesh = "2", .x = "S(0)", .w = "R", .slot = "S(1)"};
    trama_completion *c = complete(&o, 0);
    check_lies(c, "w", "R");
    check_lies(c, "w.m", "S(1)");
    check_lies(c, "w.v", "S(1)");
    ck_assert_int_eq(bytes_of(c), 768);
    trama_completion_destroy(&c);
}
END_TEST

static void refuse_slot(const one_weight *o, const char *slot, const char *as, const char *why)
{
    trama_completion *c = complete(o, 1);
    trama_completion_destroy(&c);
    ck_assert_ptr_nonnull(trama_shard(program_leaf_named(p, slot, NULL), mesh, as));
    ck_assert_int_eq(trama_completion_create(p, 1, &c), TRAMA_E_LAYOUT);
    ck_assert_msg(strstr(trama_error(), why) != NULL, "%s", trama_error());
}

/* A slot in fewer parts than its parameter is refused, as an update of it would need what others have. */
START_TEST(a_slot_in_fewer_parts_is_refused)
{
    refuse_slot(&(one_weight){.mesh = "2", .x = "R", .w = "S(0)"}, "w.m", "R",
                "updates w.m, which lies as R, in the layout S(0)");
}
END_TEST

/* Two slots of one op cannot lie in different parts. */
START_TEST(slots_in_different_parts_are_refused)
{
    refuse_slot(&(one_weight){.mesh = "2", .x = "S(0)", .w = "R", .slot = "S(0)"}, "w.v", "S(1)", "shard it like that");
    refuse_slot(&(one_weight){.mesh = "2", .x = "S(0)", .w = "R", .slot = "R"}, "w.v", "S(0)", "shard it like that");
}
END_TEST

/* w takes 16 KiB, and so does each moment, of which a process has a half. The part of w lies in w. */
START_TEST(a_process_needs_memory_for_its_part)
{
    int64_t of[2];
    for (int i = 0; i < 2; i++) {
        trama_completion *c = complete(&(one_weight){.mesh = "2", .x = "S(0)", .shape = {64, 64}}, i);
        ck_assert_int_eq(trama_completion_memory_bytes(c, &of[i]), TRAMA_OK);
        trama_completion_destroy(&c);
    }
    ck_assert_int_ge(of[0] - of[1], 2 * 8192);
}
END_TEST

START_TEST(a_negative_size_is_refused)
{
    trama_optimizer adam = trama_adam(0.1);
    adam.share_bytes = -1;
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(3), NULL);
    ck_assert_ptr_null(trama_minimize(trama_sum(w), &adam));
    ck_assert_msg(strstr(trama_program_error(p), "share_bytes must not be negative") != NULL, "%s",
                  trama_program_error(p));
}
END_TEST

static void check_told(const one_weight *o, const char *line)
{
    char *told;
    trama_completion *c = complete(o, 1);
    trama_completion_destroy(&c);
    ck_assert_int_eq(trama_complete_text(p, 1, &told), TRAMA_OK);
    ck_assert_msg(strstr(told, line) != NULL, "%s", told);
    trama_text_free(&told);
}

/* The lines of a gathered update, and of a gradient that is summed for a norm, say why. */
START_TEST(a_completion_tells_of_parts)
{
    check_told(&(one_weight){.mesh = "2", .x = "S(0)"},
               "from S(0) to R: 384 B, since each process updates a part, and the updated w lies as R");
    check_told(&(one_weight){.mesh = "2", .x = "S(0)", .clip_norm = 1},
               "from P(sum) to S(0): 384 B, since each process updates a part, and sums that of the");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_process_updates_a_part_for_as_many_bytes,
        a_norm_is_summed_over_parts,
        slots_of_rules_of_several_ops_lie_in_parts,
        an_op_that_needs_whole_dims_updates_the_whole,
        others_are_updated_as_they_lie,
        a_state_that_is_no_slot_keeps_its_parameter_whole,
        small_parameters_are_updated_whole,
        a_slot_may_be_annotated_in_parts,
        a_slot_in_fewer_parts_is_refused,
        slots_in_different_parts_are_refused,
        a_process_needs_memory_for_its_part,
        a_negative_size_is_refused,
        a_completion_tells_of_parts,
    };
    return suite_run("shared_updates", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
