/* SPDX-License-Identifier: Apache-2.0 */
/* Searches within a limit of the states that a process keeps: on small programs against all layouts that there are. */
#include "searched_program.h"

/* Whole states of 8 x 12 f32 and two moments take 1,152 bytes. */
static trama_value *adam_step(void)
{
    const trama_optimizer adam = trama_adam(0.1);
    trama_value *w = parameter("w", TRAMA_SHAPE(8, 12), NULL);
    trama_value *loss = trama_sum(trama_square(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), w)));
    return trama_minimize(loss, &adam);
}

/* The same, with the weight whole on each process. */
static trama_value *adam_step_of_whole(void)
{
    const trama_optimizer adam = trama_adam(0.1);
    trama_value *w = parameter("w", TRAMA_SHAPE(8, 12), "R");
    trama_value *loss = trama_sum(trama_square(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), w)));
    return trama_minimize(loss, &adam);
}

/* Two weights, of which the smaller one is cheaper to keep whole. */
static trama_value *step_of_two(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_value *v = parameter("v", TRAMA_SHAPE(8, 3), NULL), *w = parameter("w", TRAMA_SHAPE(3, 9), NULL);
    trama_value *y = trama_matmul(trama_relu(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), v)), w);
    return trama_minimize(trama_sum(y), &sgd);
}

/* The first one on processes 0 and 1, the second one on 1 and 2, so that 1 keeps both. */
static trama_value *step_on_two_meshes(void)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_mesh *behind = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){1, 2});
    trama_value *v = parameter("v", TRAMA_SHAPE(8, 3), NULL), *w = parameter("w", TRAMA_SHAPE(3, 9), NULL);
    trama_value *h = trama_reshard(trama_matmul(input("x", TRAMA_SHAPE(64, 8), "S(0)"), v), behind, "S(0)");
    trama_value *made = trama_minimize(trama_sum(trama_matmul(h, w)), &sgd);
    trama_mesh_destroy(&behind);
    return made;
}

static const limited_program limited[] = {
    {"adam, whole", "2", adam_step, 2000, false, 0, 0},
    {"adam, halves", "2", adam_step, 700, false, 0, 0},
    {"adam, thirds", "3", adam_step, 500, false, 0, 0},
    {"adam, halves of moments", "2", adam_step_of_whole, 800, false, 0, 0},
    {"adam, too little of moments", "2", adam_step_of_whole, 700, true, 0, 0},
    {"adam, too little", "2", adam_step, 300, true, 0, 0},
    {"two, whole", "2", step_of_two, 300, false, 0, 0},
    {"two, one of them", "2", step_of_two, 170, false, 0, 0},
    {"two, halves", "2", step_of_two, 120, false, 0, 3},
    {"two by weights", "[2,1]", step_of_two, 170, false, 32, 2},
    {"two meshes, whole", "2", step_on_two_meshes, 204, false, 0, 0},
    {"two meshes, a half", "2", step_on_two_meshes, 160, false, 0, 0},
    {"two meshes, halves", "2", step_on_two_meshes, 110, false, 0, 0},
};
enum { LIMITED = sizeof limited / sizeof *limited };

START_TEST(a_limit_of_states_is_kept_with_the_fewest_bytes)
{
    for (int i = 0; i < LIMITED; i++) {
        check_limit(&limited[i], trama_search_layouts_within_at);
        tear_down();
        set_up();
    }
}
END_TEST

/* Of the annotation of a large batch: each process keeps a half of each weight, and as many bytes move as without the
 * limit: weights are gathered, their gradients are scattered. */
START_TEST(a_limit_gives_fully_sharded_weights)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_completion *c;
    int64_t bytes, bound, kept;
    mesh = trama_mesh_create("2");
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(perceptron(512), &sgd)));
    ck_assert_int_eq(trama_search_layouts_within(p, (12 * 16 + 16 * 8) * 4 / 2), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_bytes(c, &bytes, &bound), TRAMA_OK);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(bytes, (12 * 16 + 16 * 8) * 4);
    ck_assert_int_eq(bound, bytes);
    ck_assert_int_eq(kept, bytes / 2);
    trama_completion_destroy(&c);
}
END_TEST

/* 384 bytes of w and as many of each moment, and a count of steps of 8, which is no tensor to split. */
START_TEST(a_limit_is_told_with_the_bytes_of_states)
{
    char *said;
    int64_t kept;
    trama_completion *c;
    mesh = trama_mesh_create("2");
    ck_assert_ptr_nonnull(adam_step());
    ck_assert_int_eq(trama_search_layouts_within(p, 700), TRAMA_OK);
    ck_assert_int_eq(trama_complete_text(p, 64, &said), TRAMA_OK);
    ck_assert_msg(strstr(said, "a process keeps 584 B of states, and may keep 700\n"), "%s", said);
    trama_text_free(&said);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(kept, 584);
    trama_completion_destroy(&c);
    ck_assert_int_eq(trama_search_layouts_within(p, 300), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_E_MEMORY);
    ck_assert_msg(strstr(trama_error(), "test_state_limit.c") && strstr(trama_error(), "may keep 300 bytes"), "%s",
                  trama_error());
    ck_assert_int_eq(trama_search_layouts(p), TRAMA_OK); /* without a limit */
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(kept, 1160);
    trama_completion_destroy(&c);
}
END_TEST

/* Weights on two processes each: only the one of 384 bytes is split, that of 96 stays whole. */
START_TEST(each_process_has_the_limit)
{
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_completion *c;
    int64_t kept;
    mesh = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){0, 1});
    trama_value *x = input("x", TRAMA_SHAPE(64, 8), "S(0)"), *w = parameter("w0", TRAMA_SHAPE(8, 12), NULL);
    trama_value *h = trama_matmul(x, w);
    trama_mesh *behind = trama_mesh_create_ids(1, (int[]){2}, NULL, (int[]){2, 3});
    h = trama_reshard(h, behind, "S(0)");
    trama_value *loss = trama_sum(trama_square(trama_matmul(h, parameter("w1", TRAMA_SHAPE(12, 2), NULL))));
    ck_assert_ptr_nonnull(trama_target_create(p, "train", trama_minimize(loss, &sgd)));
    ck_assert_int_eq(trama_search_layouts_within(p, 200), TRAMA_OK);
    ck_assert_int_eq(trama_completion_create(p, 64, &c), TRAMA_OK);
    trama_layout w0, w1;
    ck_assert(trama_completion_layout(c, program_leaf_named(p, "w0", NULL), &w0));
    ck_assert(trama_completion_layout(c, program_leaf_named(p, "w1", NULL), &w1));
    ck_assert_int_eq(w0.axis[0].kind, TRAMA_SPLIT);
    ck_assert_int_eq(w1.axis[0].kind, TRAMA_REPLICATE);
    ck_assert_int_eq(trama_completion_state_bytes(c, &kept), TRAMA_OK);
    ck_assert_int_eq(kept, 192);
    trama_completion_destroy(&c);
    trama_mesh_destroy(&behind);
}
END_TEST

START_TEST(a_limit_above_zero_is_wanted)
{
    ck_assert_int_eq(trama_search_layouts_within(p, 0), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_program_error(p), "0 bytes of states"), "%s", trama_program_error(p));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_limit_of_states_is_kept_with_the_fewest_bytes,
        a_limit_gives_fully_sharded_weights,
        a_limit_is_told_with_the_bytes_of_states,
        each_process_has_the_limit,
        a_limit_above_zero_is_wanted,
    };
    return suite_run("state_limit", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
