/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of whole programs: later ops change nothing, optimizers, gradients and masks. */
#include "completing.h"

/* Splits of two annotations that meet in a chain of transposes, which pass them on and on. */
START_TEST(the_fixed_point_ends_and_is_one)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(12, 12), "S(0),?"), *h = x;
    for (int i = 0; i < 20; i++)
        h = trama_add(trama_matmul(trama_transpose(h, NULL), h), x);
    trama_shard(h, mesh, "?,S(1)");
    complete();
    layouts first = l;
    l = (layouts){0};
    complete();
    for (int i = 0; i < p->values.n; i++) {
        ck_assert(!layout_has(&l.value[i], TRAMA_OPEN));
        ck_assert(trama_layout_equal(&l.value[i], &first.value[i]));
    }
    layouts_free(&first);
}
END_TEST

START_TEST(layouts_of_an_evaluation_do_not_change_by_training)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(TRAMA_ANY, 6), "S(0),R");
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(6, 9), NULL), mesh, "R,S(1)");
    trama_value *v = trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(9, 4), NULL);
    trama_value *y = trama_matmul(trama_relu(trama_matmul(x, w)), v), *loss = trama_mean(trama_square(y));
    trama_target_create(p, "evaluate", y, loss);
    complete();
    layouts before = l;
    int n = p->values.n;
    l = (layouts){0};
    trama_optimizer o = trama_adamw(0.1);
    trama_target_create(p, "train", trama_minimize(loss, &o));
    complete();
    for (int i = 0; i < n; i++)
        ck_assert_msg(trama_layout_equal(&l.value[i], &before.value[i]), "%s changes", p->values.at[i]->name);
    layouts_free(&before);
}
END_TEST

START_TEST(the_state_of_an_optimizer_lies_like_its_parameter)
{
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(6, 9), NULL), mesh, "S(1),S(0)");
    trama_optimizer o = trama_adamw(0.1);
    trama_target_create(p, "train", trama_minimize(trama_mean(trama_square(w)), &o));
    complete();
    int found = 0;
    for (int i = 0; i < p->values.n; i++)
        if (!strcmp(p->values.at[i]->name, "w.m") || !strcmp(p->values.at[i]->name, "w.v")) {
            expect_value(p->values.at[i], "S(1),S(0)");
            found++;
        }
    ck_assert_int_eq(found, 2);
}
END_TEST

START_TEST(values_without_annotations_live_on_one_process)
{
    trama_value *z = trama_exp(tensor("x", TRAMA_SHAPE(4), NULL));
    complete();
    ck_assert(trama_mesh_equal(l.mesh[z->id], single));
    expect_value(z, "R");
}
END_TEST

/* ---- Gradients ---- */

static trama_value *gradient_of_w(const char *w_layout, bool named)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "S(0),R");
    trama_value *w = trama_shard(trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(32, 48), NULL), mesh, w_layout);
    trama_value *loss = trama_mean(trama_square(trama_matmul(x, w))), *d = trama_gradient(loss, w);
    if (named)
        trama_target_create(p, "t", d);
    else
        trama_target_create(p, "t", trama_scale(d, 2));
    complete();
    return d;
}

START_TEST(a_gradient_inside_a_program_stays_partial)
{
    expect_value(gradient_of_w("R,R", false), "P,R");
}
END_TEST

START_TEST(a_named_gradient_lies_like_its_value)
{
    expect_value(gradient_of_w("R,R", true), "R,R");
}
END_TEST

START_TEST(a_named_gradient_of_a_split_value_is_split_like_it)
{
    expect_value(gradient_of_w("S(0),R", true), "S(0),R");
}
END_TEST

/* z is partial; relu of it needs the sum, neg would take the terms. */
START_TEST(where_one_reader_needs_the_sum_all_take_it)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "R,S(1)"), *w = tensor("w", TRAMA_SHAPE(32, 48), "R,S(0)");
    trama_value *z = trama_matmul(x, w), *r = trama_relu(z), *n = trama_neg(z);
    complete();
    expect_value(z, "R,R");
    expect_value(r, "R,R");
    expect_value(n, "R,R");
}
END_TEST

/* z is partial. One reader takes the rows of the sum, another could go on with the terms. */
START_TEST(rows_of_a_sum_are_made_once_for_all_readers)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "R,S(1)"), *w = tensor("w", TRAMA_SHAPE(32, 48), "R,S(0)");
    trama_value *z = trama_matmul(x, w), *rows = tensor("rows", TRAMA_SHAPE(64, 48), "R,S(0)");
    trama_value *m = trama_mul(trama_stop_gradient(z), rows), *n = trama_neg(z);
    complete();
    expect_value(z, "R,S(0)");
    expect_value(m, "R,S(0)");
    expect_value(n, "R,S(0)");
}
END_TEST

/* Two products pass the terms of z on, and a relu behind one of them needs their sum. The sum of z, for as many bytes,
 * serves both. */
START_TEST(a_sum_that_is_needed_behind_one_reader_is_made_before_all)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "R,S(1)"), *w = tensor("w", TRAMA_SHAPE(32, 48), "R,S(0)");
    trama_value *z = trama_matmul(x, w), *row = tensor("row", TRAMA_SHAPE(48), "R,R");
    trama_value *r = trama_relu(trama_mul(z, row)), *s = trama_sum_over(z, TRAMA_DIMS(0), false);
    complete();
    expect_value(z, "R,R");
    expect_value(r, "R,R");
    expect_value(s, "R,R");
}
END_TEST

/* Both readers of z end in one sum, which is added to terms of another value: all three are summed at once. */
START_TEST(terms_that_are_added_to_others_stay_terms)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(64, 32), "R,S(1)"), *w = tensor("w", TRAMA_SHAPE(32, 48), "R,S(0)");
    trama_value *z = trama_matmul(x, w), *r = trama_relu(trama_add(trama_scale(z, 2), trama_neg(z)));
    complete();
    expect_value(z, "R,P");
    expect_value(r, "R,R");
}
END_TEST

/* ---- Masks ---- */

static const trama_value *named(const char *name)
{
    for (int i = 0; i < p->values.n; i++)
        if (!strcmp(p->values.at[i]->name, name))
            return p->values.at[i];
    ck_abort_msg("there is no %s", name);
}

/* Processes 0 to 2 hold w, two columns each. */
START_TEST(a_masked_parameter_is_read_everywhere_and_updated_by_its_holders)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(6, 4), "S(0),R");
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 6), NULL);
    ck_assert(trama_shard(w, mesh, "R,S(1) mask{1,1,1,0,0,0}"));
    trama_value *z = trama_matmul(x, w), *loss = trama_mean(trama_square(z));
    trama_optimizer adam = trama_adam(0.1);
    ck_assert(trama_minimize(loss, &adam));
    complete();
    expect_value(w, "R,S(1) mask{1,1,1,0,0,0}");
    expect_value(named("w.m"), "R,S(1) mask{1,1,1,0,0,0}");
    expect_value(named("w.v"), "R,S(1) mask{1,1,1,0,0,0}");
    expect_operand(z, 1, "R,S(1)");
    expect_value(z, "S(0),S(1)");
    const trama_node *update = p->nodes.at[w->state->updated_by - 1];
    for (int t = 0; t < update->op->n_in; t++) {
        bool whole = update->in[t]->shape.ndim == 0;
        expect_operand(update->out[0], t, whole ? "R,R mask{1,1,1,0,0,0}" : "R,S(1) mask{1,1,1,0,0,0}");
    }
    expect_value(update->out[0], "R,S(1) mask{1,1,1,0,0,0}");
}
END_TEST

START_TEST(an_assignment_goes_to_the_holders_of_its_state)
{
    trama_value *x = tensor("x", TRAMA_SHAPE(4, 6), "R,S(1)");
    trama_value *s = trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(4, 6), NULL);
    ck_assert(trama_shard(s, mesh, "R,R mask{0,0,0,0,1,0}"));
    ck_assert(trama_assign(s, x));
    complete();
    expect_operand(p->nodes.at[s->state->updated_by - 1]->out[0], 1, "R,R mask{0,0,0,0,1,0}");
    expect_value(x, "R,S(1)");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_masked_parameter_is_read_everywhere_and_updated_by_its_holders,
        an_assignment_goes_to_the_holders_of_its_state,
        the_fixed_point_ends_and_is_one,
        layouts_of_an_evaluation_do_not_change_by_training,
        the_state_of_an_optimizer_lies_like_its_parameter,
        values_without_annotations_live_on_one_process,
        a_gradient_inside_a_program_stays_partial,
        a_named_gradient_lies_like_its_value,
        a_named_gradient_of_a_split_value_is_split_like_it,
        where_one_reader_needs_the_sum_all_take_it,
        rows_of_a_sum_are_made_once_for_all_readers,
        a_sum_that_is_needed_behind_one_reader_is_made_before_all,
        terms_that_are_added_to_others_stay_terms,
    };
    return suite_run("complete_programs", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
