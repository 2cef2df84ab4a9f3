/* SPDX-License-Identifier: Apache-2.0 */
/* When an optimizer's ops run: as soon as they can. Values are compared with those of one device by pair_run. */
#include "one_place.h"
#include "suite.h"
#include "trama_optimizer.h"

static const plan_options apart = {.grain_flops = 1 << 30, .grain_bytes = 1 << 30, .no_fusion = true, .early_bytes = 8};
static trama_value *v, *loss;

/* loss = |relu(x w) v|^2, whose gradient of v is there before that of w. */
static void two_layers(void)
{
    v = trama_parameter(p, "v", TRAMA_F64, TRAMA_SHAPE(8, 8), &init);
    loss = trama_sum_square(trama_matmul(trama_relu(trama_matmul(x, w)), v));
}

static const trama_node *node_of(const plan *plan_, int step)
{
    const plan_step *at = &plan_->steps.at[step];
    return at->kind == STEP_COMPUTE ? p->nodes.at[plan_->calls.at[at->call].node] : NULL;
}

/* The step that overwrites a state. */
static int update_of(const plan *plan_, const trama_value *state)
{
    for (int i = 0; i < plan_->steps.n; i++) {
        const trama_node *node = node_of(plan_, i);
        if (node && node->op->updates && node->in[0] == state)
            return i;
    }
    ck_abort_msg("no step updates %s", state->name);
}

/* The step that makes the gradient of a parameter. */
static int gradient_of(const plan *plan_, const trama_value *parameter)
{
    for (int i = 0; i < plan_->steps.n; i++) {
        const trama_node *node = node_of(plan_, i);
        if (node && node->out[0]->gradient.of == parameter)
            return i;
    }
    ck_abort_msg("no step makes the gradient of %s", parameter->name);
}

static int step_of(const plan *plan_, const trama_value *value)
{
    for (int i = 0; i < plan_->steps.n; i++)
        if (node_of(plan_, i) == value->node)
            return i;
    ck_abort_msg("no step makes %s", value->name);
}

START_TEST(a_layer_is_updated_before_the_gradient_of_the_one_before_it)
{
    two_layers();
    const trama_optimizer adam = trama_adam(1e-3);
    const plan *got = PLAN(1, &apart, trama_minimize(loss, &adam), loss);
    ck_assert_int_lt(gradient_of(got, v), update_of(got, v));
    ck_assert_int_lt(update_of(got, v), gradient_of(got, w));
    ck_assert_int_lt(gradient_of(got, w), update_of(got, w));
}
END_TEST

/* The gradient of w, which is recorded behind that of v, reads v: so nothing is copied. */
START_TEST(a_state_is_overwritten_behind_its_readers)
{
    two_layers();
    trama_value *of_v = trama_gradient(loss, v), *of_w = trama_gradient(loss, w);
    const plan *got = PLAN(1, &apart, trama_assign(v, trama_sub(v, of_v)), trama_assign(w, trama_sub(w, of_w)));
    ck_assert_int_lt(update_of(got, v), gradient_of(got, w));
    for (int i = 0; i < got->steps.n; i++) {
        const trama_node *node = node_of(got, i);
        ck_assert_int_ne(got->steps.at[i].kind, STEP_COPY);
        for (int t = 0; i > update_of(got, v) && node && t < node->op->n_in; t++)
            ck_assert_ptr_ne(node->in[t], v);
    }
}
END_TEST

/* All updates wait for the norm, and the square of each gradient is taken at once. */
START_TEST(squares_of_gradients_are_summed_at_once_where_the_norm_is_bounded)
{
    two_layers();
    trama_optimizer adam = trama_adam(1e-3);
    adam.clip_norm = 1;
    const plan *got = PLAN(1, &apart, trama_minimize(loss, &adam), loss);
    int squares = 0;
    for (int i = gradient_of(got, v); i < gradient_of(got, w); i++)
        squares += node_of(got, i) && node_of(got, i)->op == &trama_op_sum_square;
    ck_assert_int_eq(squares, 1);
    ck_assert_int_lt(gradient_of(got, w), update_of(got, v));
}
END_TEST

static trama_value *decayed[2], *stepped[2]; /* v, w */

static void decay(const trama_update *u)
{
    const int k = u->parameter == w;
    decayed[k] = trama_scale(u->parameter, 0.5);
    stepped[k] = trama_sub(decayed[k], trama_update_gradient(u));
    trama_update_set(u, u->parameter, stepped[k]);
}

/* It needs nothing of the run, and would live throughout. */
START_TEST(the_decay_of_a_state_stands_before_its_reader)
{
    two_layers();
    const trama_optimizer own = trama_optimizer_define("own", 0.1, decay);
    const plan *got = PLAN(1, &apart, trama_minimize(loss, &own), loss);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_lt(gradient_of(got, k ? w : v), step_of(got, decayed[k]));
        ck_assert_int_eq(step_of(got, decayed[k]), step_of(got, stepped[k]) - 1);
    }
    ck_assert_int_lt(update_of(got, v), gradient_of(got, w));
}
END_TEST

START_TEST(small_states_are_updated_where_their_optimizer_was_recorded)
{
    two_layers();
    plan_options options = apart;
    options.early_bytes = 8 * 8 * 8 + 1;
    const trama_optimizer adam = trama_adam(1e-3);
    const plan *got = PLAN(1, &options, trama_minimize(loss, &adam), loss);
    ck_assert_int_lt(gradient_of(got, w), update_of(got, v));
}
END_TEST

START_TEST(without_gradients_the_order_is_that_of_the_program)
{
    trama_value *first = trama_matmul(x, w), *second = trama_relu(first), *third = trama_sum(second);
    const plan *got = PLAN(1, &apart, trama_assign(w, trama_scale(w, 0.5)), third);
    ck_assert_int_eq(step_of(got, first), 0);
    ck_assert_int_eq(step_of(got, second), 1);
    ck_assert_int_eq(step_of(got, third), 2);
    ck_assert_int_eq(update_of(got, w), 4);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_layer_is_updated_before_the_gradient_of_the_one_before_it,
        a_state_is_overwritten_behind_its_readers,
        squares_of_gradients_are_summed_at_once_where_the_norm_is_bounded,
        the_decay_of_a_state_stands_before_its_reader,
        small_states_are_updated_where_their_optimizer_was_recorded,
        without_gradients_the_order_is_that_of_the_program,
    };
    return suite_run("group_order", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
