/* SPDX-License-Identifier: Apache-2.0 */
/* State and what reads it: an op sees a state as it was before the run, wherever it stands; states change at the end.
 */
#include <check.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static trama_mesh *mesh;
static trama_program *p;
static trama_value *w, *s, *x;
static dense fed;

static const trama_init random_init = {-1, 1, 5, 1}, other_init = {-1, 1, 5, 2};

static void set_up(void)
{
    mesh = trama_mesh_create("a=2,b=2");
    p = trama_program_create();
    w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(7, 5), &random_init);
    s = trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(7, 5), &other_init);
    x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(7, 5));
    trama_shard(w, mesh, "S(0),R");
    trama_shard(s, mesh, "R,S(1)");
    fed = dense_random(TRAMA_SHAPE(7, 5), 3, -1, 1, false);
}

static void tear_down(void)
{
    dense_free(&fed);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

static void try(trama_target *target, const char *name)
{
    pair_try(p, target, 1, &x, &fed, 4, 1e-13, name);
}

static trama_value *sgd(trama_value *state, trama_value *g)
{
    trama_attributes a = {.real = {[UPDATE_LR] = 0.5}};
    return trama_apply_at(TRAMA_HERE, p, trama_op_find("sgd"), 2, (trama_value *[]){state, g}, &a);
}

START_TEST(an_op_after_the_update_reads_the_state_before_it)
{
    trama_value *updated = sgd(w, trama_square(x)), *step = trama_sub(updated, w),
                *norm = trama_sum(trama_square(step));
    try(trama_target_create(p, "t", updated, step, norm), "step = new - old");
}
END_TEST

START_TEST(a_forward_pass_recorded_after_minimize_uses_the_old_parameters)
{
    trama_optimizer o = trama_adamw(0.1);
    trama_value *loss = trama_mean(trama_square(trama_sub(w, x))), *effect = trama_minimize(loss, &o);
    trama_value *late = trama_matmul_trans(w, x, false, true);
    try(trama_target_create(p, "t", effect, loss, late), "late use");
}
END_TEST

START_TEST(two_states_swap)
{
    trama_value *one = trama_assign(w, s), *two = trama_assign(s, w);
    try(trama_target_create(p, "t", one, two), "swap");
}
END_TEST

START_TEST(another_name_of_a_state_keeps_the_old_content)
{
    trama_value *same = trama_stop_gradient(w), *moved = trama_reshard(w, mesh, "S(0),S(1)"),
                *everywhere = trama_reshard(s, mesh, "R,R"), *first = trama_assign(w, x), *second = trama_assign(s, x);
    trama_value *late = trama_add(moved, everywhere);
    try(trama_target_create(p, "t", same, moved, everywhere, first, second, late), "aliases");
}
END_TEST

START_TEST(a_state_may_be_updated_again_from_its_update)
{
    trama_value *one = sgd(w, x), *two = sgd(one, trama_square(one)), *three = sgd(two, w);
    try(trama_target_create(p, "t", one, two, three, trama_mul(w, three)), "chain");
}
END_TEST

START_TEST(two_updates_of_one_state_in_one_target_are_an_error)
{
    trama_value *one = trama_assign(w, x), *two = sgd(w, x);
    ck_assert_ptr_nonnull(trama_target_create(p, "first", one));
    ck_assert_int_eq(trama_program_status(p), TRAMA_OK);
    ck_assert_ptr_null(trama_target_create(p, "both", one, two));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_program_error(p), "same state"));
}
END_TEST

START_TEST(state_lies_like_the_state_it_is_updated_with)
{
    trama_optimizer o = trama_adamw(0.1);
    trama_value *loss = trama_mean(trama_square(trama_sub(w, x)));
    trama_target_create(p, "t", trama_minimize(loss, &o));
    trama_mesh *single_process = trama_mesh_create("1");
    layouts l;
    ck_assert_int_eq(complete_program(p, 64, single_process, &l), TRAMA_OK);
    int found = 0;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        if (strcmp(v->name, "w.m") && strcmp(v->name, "w.v"))
            continue;
        found++;
        ck_assert(l.mesh[i] == l.mesh[w->id] && trama_layout_equal(&l.value[i], &l.value[w->id]));
    }
    ck_assert_int_eq(found, 2);
    layouts_free(&l);
    trama_mesh_destroy(&single_process);
}
END_TEST

static void refuse(const char *layout, const char *part)
{
    trama_value *v = trama_state(p, "v", TRAMA_F64, TRAMA_SHAPE(8, 4), NULL);
    trama_value *y = trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(8, 4));
    trama_shard(y, mesh, "S(0),R");
    trama_shard(v, mesh, layout);
    trama_target_create(p, "t", trama_assign(v, y));
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    trama_mesh *single_process = trama_mesh_create("1");
    layouts l;
    ck_assert_int_eq(complete_program(p, 64, single_process, &l), TRAMA_E_LAYOUT);
    ck_assert_msg(strstr(trama_error(), part) && strstr(trama_error(), "test_update.c:"), "%s", trama_error());
    trama_mesh_destroy(&single_process);
}

START_TEST(a_partial_state_cannot_be_updated)
{
    refuse("P,R", "updates v, which lies as P(sum),R");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        an_op_after_the_update_reads_the_state_before_it,
        a_forward_pass_recorded_after_minimize_uses_the_old_parameters,
        two_states_swap,
        another_name_of_a_state_keeps_the_old_content,
        a_state_may_be_updated_again_from_its_update,
        two_updates_of_one_state_in_one_target_are_an_error,
        state_lies_like_the_state_it_is_updated_with,
        a_partial_state_cannot_be_updated,
    };
    return suite_run("update", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
