/* SPDX-License-Identifier: Apache-2.0 */
/* The rule validator: every op under every combination of placements, run on simulated processes and recombined.
 *
 *   wrong rules   the layouts that inference chooses must give the op's result, whatever was given.
 *   missing rules layouts that inference refuses though some layout of the results would be right; the known ones are
 *                 listed with their reason.
 *
 * Sizes are uneven (5 over 2 is 60/40), values differ in sign and size; a layout counts as right for a missing rule
 * only if it is right for all sizes that divide nothing, all values, and 2 and 3 processes. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"
#include "validator.h"

static void check_inferred(const trial *s, const combination *c)
{
    op_layouts inferred = infer_combination(s, c);
    for (int seed = 1; seed <= 2; seed++) {
        trial again = *s;
        again.seed = 1000 * (uint64_t)seed;
        if (is_right(&again, inferred.in, inferred.out))
            continue;
        text t = {0};
        describe_call(&t, s, c->in, NULL);
        text_add(&t, " is inferred as ");
        describe_call(&t, s, inferred.in, inferred.out);
        ck_abort_msg("wrong rule: %s", t.at);
    }
}

static void visit_wrong(void *arg, const trial *s, const combination *c)
{
    (void)arg;
    check_inferred(s, c);
}

/* Whether a call has complex operands: its rule is that of real ones, which all sizes are tried for. */
static bool is_complex_call(const trama_node *node)
{
    bool is = dtype_parts(node->out[0]->dtype) > 1;
    for (int t = 0; t < node->op->n_in; t++)
        is |= dtype_parts(node->in[t]->dtype) > 1;
    return is;
}

START_TEST(what_inference_chooses_is_right_for_every_combination_on_one_axis)
{
    static const char *const meshes[] = {"2", "3", "[3,1]", "[1,20,2]"};
    for (int i = 0; i < n_op_cases; i++)
        for (int variant = 0; variant < N_VARIANTS; variant++)
            for (int m = 0; m < 4; m++) {
                trama_program *p = trama_program_create();
                trama_value *result = op_cases[i].build(p, &op_cases[i], variant);
                ck_assert_msg(result != NULL, "%s: %s", op_cases[i].name, trama_program_error(p));
                trama_mesh *mesh = trama_mesh_create(meshes[m]);
                trial s = trial_of(&op_cases[i], result->node, result->node->rule, mesh, 1);
                const int all = suite_is_sanitized() ? 0 : is_complex_call(result->node) ? 1 : 5;
                const int share = suite_is_sanitized() ? 8 : 3; /* builds without a sanitizer run beside it */
                if (suite_is_long() || variant < all || (i + variant + m) % share == 0)
                    each_combination(&s, operands_at_once(&s), visit_wrong, NULL);
                trama_mesh_destroy(&mesh);
                trama_program_destroy(&p);
            }
}
END_TEST

START_TEST(what_inference_chooses_is_right_on_several_axes)
{
    static const char *const meshes[] = {"2,2", "2,3", "3,2", "2,2,2", "2,1,3", "[2,1],[1,20,1]", "2,[1,3]"};
    int n = suite_is_long() ? 3000 : suite_is_sanitized() ? 6 : 60;
    uint64_t seed = 7;
    for (int i = 0; i < n_op_cases; i++)
        for (int k = 0; k < n; k++) {
            trama_program *p = trama_program_create();
            trama_value *result = op_cases[i].build(p, &op_cases[i], random_below(&seed, N_VARIANTS));
            trama_mesh *mesh = trama_mesh_create(meshes[random_below(&seed, 7)]);
            k += is_complex_call(result->node) && !suite_is_long() ? 4 : 0;
            trial s = trial_of(&op_cases[i], result->node, result->node->rule, mesh, 1);
            combination c;
            for (int t = 0; t < result->node->op->n_in; t++) {
                layout_list list = {0};
                trial_layouts(mesh, result->node->in[t], true, &list);
                bool alike = result->node->op->updates && t > 0 && result->node->in[t]->shape.ndim;
                c.in[t] = alike ? c.in[0] : list.at[random_below(&seed, list.n)];
                ARRAY_FREE(&list);
            }
            check_inferred(&s, &c);
            trama_mesh_destroy(&mesh);
            trama_program_destroy(&p);
        }
}
END_TEST

/* Ops without operands, and results that are asked for in a layout. */
START_TEST(a_result_wanted_in_pieces_is_made_in_pieces)
{
    for (int i = 0; i < n_op_cases; i++) {
        trama_program *p = trama_program_create();
        trama_value *result = op_cases[i].build(p, &op_cases[i], 0);
        trama_mesh *mesh = trama_mesh_create("2,3");
        trial s = trial_of(&op_cases[i], result->node, result->node->rule, mesh, 1);
        layout_list list = {0};
        trial_layouts(mesh, result, false, &list);
        for (int k = 0; k < list.n; k++) {
            const trama_layout *in[TRAMA_MAX_OPERANDS] = {0}, *out[TRAMA_MAX_OPERANDS] = {&list.at[k]};
            op_layouts inferred;
            infer_op(&(infer_question){.node = result->node,
                                       .rule = result->node->rule,
                                       .mesh = mesh,
                                       .in = in,
                                       .out = out,
                                       .moves = true},
                     &inferred, NULL);
            ck_assert_msg(is_right(&s, inferred.in, inferred.out), "%s", op_cases[i].name);
            if (result->node->op->n_in == 0)
                ck_assert(trama_layout_equal(&inferred.out[0], &list.at[k]));
        }
        ARRAY_FREE(&list);
        trama_mesh_destroy(&mesh);
        trama_program_destroy(&p);
    }
}
END_TEST

/* The layouts that a search may choose: none of them is inferred from other layouts. */
START_TEST(an_op_is_right_in_every_layout_in_which_it_may_compute)
{
    static const char *const meshes[] = {"2", "3", "[1,20,2]", "2,3", "2,[1,3]"};
    int tried = 0;
    for (int i = 0; i < n_op_cases; i++)
        for (int m = 0; m < 5; m++) {
            const int share = suite_is_long() ? 1 : suite_is_sanitized() ? 20 : 2;
            trama_program *p = trama_program_create();
            trama_value *result = op_cases[i].build(p, &op_cases[i], (i + m) % N_VARIANTS);
            trama_mesh *mesh = trama_mesh_create(meshes[m]);
            const trial s = trial_of(&op_cases[i], result->node, result->node->rule, mesh, 1);
            op_layouts_list list = {0};
            ck_assert(infer_every(result->node, result->node->rule, mesh, 10000, &list));
            ck_assert_int_ge(list.n, 1);
            for (int k = 0; k < list.n; k++) {
                text t = {0};
                if (mesh->ndim > 1 && (i + k) % share)
                    continue;
                describe_call(&t, &s, list.at[k].in, list.at[k].out);
                ck_assert_msg(is_right(&s, list.at[k].in, list.at[k].out), "wrong: %s", t.at);
                free(t.at);
                tried++;
            }
            ARRAY_FREE(&list);
            trama_mesh_destroy(&mesh);
            trama_program_destroy(&p);
        }
    ck_assert_int_gt(tried, n_op_cases * 5);
}
END_TEST

/* ---- Missing rules ---- */

/* A refused combination (as text) and the layouts of result 0 that have been right for all samples so far. */
typedef struct refusal {
    char *name;
    int samples;
    ARRAY(trama_layout) right;
} refusal;

typedef struct refusals {
    ARRAY(refusal) at;
} refusals;

static refusal *find_refusal(refusals *r, const trial *s, const combination *c, bool *known)
{
    text t = {0};
    text_add(&t, "%s:", s->name);
    for (int i = 0; i < s->node->op->n_in; i++) {
        text_add(&t, " ");
        layout_text(&t, s->mesh, &c->in[i]);
    }
    for (int i = 0; i < r->at.n; i++)
        if (!strcmp(r->at.at[i].name, t.at)) {
            free(t.at);
            *known = true;
            return &r->at.at[i];
        }
    *known = false;
    refusal *made = ARRAY_PUSH(&r->at);
    made->name = text_take(&t);
    return made;
}

/* Tries the layouts of the results, all results alike; keeps those that are right here and were before. */
static void visit_missing(void *arg, const trial *s, const combination *c)
{
    if (!is_refused(s, c))
        return;
    bool known;
    refusal *r = find_refusal(arg, s, c, &known);
    layout_list candidates = {0};
    if (known)
        for (int i = 0; i < r->right.n; i++)
            *ARRAY_PUSH(&candidates) = r->right.at[i];
    else
        trial_layouts(s->mesh, s->node->out[0], true, &candidates);
    r->right.n = 0;
    r->samples++;
    for (int i = 0; i < candidates.n; i++) {
        trama_layout out[TRAMA_MAX_OPERANDS];
        for (int o = 0; o < s->node->op->n_out; o++)
            out[o] = candidates.at[i];
        if (is_right(s, c->in, out))
            *ARRAY_PUSH(&r->right) = candidates.at[i];
    }
    ARRAY_FREE(&candidates);
}

/* Prefixes of refusals that stand, and why. */
static const struct {
    const char *prefix, *reason;
} accepted[] = {
    {"sqrt: P(max)", "a term may be negative where the largest is not"},
    {"log: P(max)", "a term may be negative where the largest is not"},
    {"tan: P(m", "it rises between its poles only"},
    {"asin: P(m", "a term may be outside of the domain"},
    {"acos: P(m", "a term may be outside of the domain"},
    {"atanh: P(m", "a term may be outside of the domain"},
    {"acosh: P(max)", "a term may be outside of the domain where the largest is not"},
    {"log1p: P(max)", "a term may be below -1 where the largest is not"},
    {"log2: P(max)", "a term may be negative where the largest is not"},
    {"log10: P(max)", "a term may be negative where the largest is not"},
    {"rsqrt: P(m", "it falls where a term is positive only"},
    {"copysign", "a sign is no maximum or minimum"},
    {"maximum: P(max) P(max)", "P(max) of both is not worth a rule"},
    {"maximum of a row: P(max) P(max)", "P(max) of both is not worth a rule"},
    {"maximum of a column and a row: P(max) P(max)", "P(max) of both is not worth a rule"},
    {"maximum of a scalar: P(max) P(max)", "P(max) of both is not worth a rule"},
    {"minimum: P(min) P(min)", "P(min) of both is not worth a rule"},
    {"minimum of a row: P(min) P(min)", "P(min) of both is not worth a rule"},
    {"minimum of a column and a row: P(min) P(min)", "P(min) of both is not worth a rule"},
    {"minimum of a scalar: P(min) P(min)", "P(min) of both is not worth a rule"},
    {"less", "a comparison with a term that is NaN is false"},
    {"greater", "a comparison with a term that is NaN is false"},
    {"elu", "alpha may be negative"},
    {"celu", "alpha may be negative"},
    {"leaky_relu", "the slope may be negative"},
    {"select: R P(m", "P(max) of both is not worth a rule"},
    {"select of a row by a column: R P(m", "P(max) of both is not worth a rule"},
    {"select of a scalar: R P(m", "P(max) of both is not worth a rule"},
    {"pow_slope_y: R P(m", "a slope is no maximum or minimum"},
    {"bitwise_not: P(", "the bits of a term are not worth a rule"},
    {"isnan: P(m", "not worth a rule"},
    {"left_shift", "the shift of a term is not worth a rule"},
    {"right_shift", "the shift of a term is not worth a rule"},
    {"prelu: R P(avg)", "a slope is never partial"},
    {"prelu of a row: R P(avg)", "a slope is never partial"},
    {"prelu of a column and a row: R P(avg)", "a slope is never partial"},
    {"prelu of a scalar: R P(avg)", "a slope is never partial"},
    {"isfinite: P(", "the sum of finite terms may overflow"},
    {"isfinite of c128: P(", "the sum of finite terms may overflow"},
    {"logical_or of c128: ", "terms that are not 0 may add up to 0"},
    {"scale by 0: P(m", "not worth a rule"},
    {"scale of integers: ", "the product of each term is cut to an integer"},
    {"cast f64 to f32: P(", "each term would be rounded"},
    {"cast bf16 to f16: P(", "each term would be rounded"},
    {"cast f64 to i32: P(m", "a term may be too large where the extremum is not"},
    {"cast i32 to f64: P(", "only casts between floats pass, where i64 would be rounded"},
    {"tanh_grad: P(m", "a gradient is no maximum or minimum"},
    {"expand to all: P(", "the split that the shape operand brings is worth more"},
    {"expand to dim 1: ", "the split that the shape operand brings is worth more"},
    {"equal of c128: ", "of 0 and 1, of which the cases are, the mean of two is 0 or 1 where both are"},
    {"not_equal of c128, a column and a row: ", "the same"},
    {"expand of c128 to dim 1: ", "the split that the shape operand brings is worth more"},
    {"expand to dims 0 and 2, kept, average: ", "the split that the shape operand brings is worth more"},
    {"concat of ", "averages and extrema beside splits or of several operands are not worth a rule"},
    {"scatter that sets in dim 1: P(m", "P(max) of both is not worth a rule"},
    {"scatter_along that sets in dim 1: P(m", "P(max) of both is not worth a rule"},
    {"scatter_along, max in dim 0: P(max) R P(max)", "P(max) of both is not worth a rule"},
    {"gather_grad", "the split that the shape operand brings is worth more"},
    {"gather_along_grad", "the split that the shape operand brings is worth more"},
    {"assign: P(", "state is never partial"},
    {"increment: P(", "state is never partial"},
    {"accumulate: R R R P(avg)", "the weight is everybody's"},
    {"assign_if: P(", "state is never partial"},
    {"sgd: P(", "state is never partial"},
    {"schedule: ", "a schedule may be any function"},
    {"descend: ", "state is never partial"},
    {"momentum", "state is never partial"},
    {"adam", "state is never partial"},
    {"attention: R R P(avg)", "no partial value passes an op of several results"},
    {"attention, causal: R R P(avg)", "no partial value passes an op of several results"},
    {"attention, heads in groups: R R P(avg)", "no partial value passes an op of several results"},
    {"attention, one group: R R P(avg)", "no partial value passes an op of several results"},
    {"attention_masked: R R P(avg)", "no partial value passes an op of several results"},
    {"attention_masked by a row: R R P(avg)", "no partial value passes an op of several results"},
    {"attention_grad: R R R R", "no partial value passes an op of several results"},
    {"attention_grad: R R P(avg)", "no partial value passes an op of several results"},
    {"attention_grad, heads in groups: R R R R", "no partial value passes an op of several results"},
    {"attention_grad, heads in groups: R R P(avg)", "no partial value passes an op of several results"},
    {"attention_grad, one group: R R R R", "no partial value passes an op of several results"},
    {"attention_grad, one group: R R P(avg)", "no partial value passes an op of several results"},
    {"attention_masked_grad: R R R R R", "no partial value passes an op of several results"},
    {"attention_masked_grad: R R P(avg)", "no partial value passes an op of several results"},
    {"conv of a line: S(2) S(0)", "windows would read all of it beyond its part"},
    {"conv of a line: S(2) P", "windows would read all of it beyond its part"},
    {"conv of a line, strided: S(2) S(0)", "windows would read all of it beyond its part"},
    {"conv of a line, strided: S(2) P", "windows would read all of it beyond its part"},
    {"conv_transposed of a line: S(2) S(1)", "windows would read all of it beyond its part"},
    {"conv_transposed of a line: S(2) P", "windows would read all of it beyond its part"},
    {"conv_weights of a line: S(2) S(1)", "windows would read all of it beyond its part"},
    {"conv_weights of a line: S(2) P", "windows would read all of it beyond its part"},
    {"max_unpool of a line: S(0) S(2)", "windows would read all of it beyond its part"},
    {"max_unpool of a line: S(1) S(2)", "windows would read all of it beyond its part"},
    {"max_unpool of a line: P(sum) S(2)", "windows would read all of it beyond its part"},
    {"max_unpool of a line: P(avg) S(2)", "windows would read all of it beyond its part"},
    {"conv of planes in groups: R S(1)", "channels of a group are not split"},
    {"conv of planes in groups: S(2) S(1)", "windows would read all of it beyond its part"},
    {"conv of planes in groups: S(2) P", "windows would read all of it beyond its part"},
    {"conv of planes in groups: S(3) S(1)", "windows would read all of it beyond its part"},
    {"conv of planes in groups: S(3) P", "windows would read all of it beyond its part"},
    {"conv_transposed of planes in groups: R S(1)", "channels of a group are not split"},
    {"conv_transposed of planes in groups: S(2) S(1)", "windows would read all of it beyond its part"},
    {"conv_transposed of planes in groups: S(2) P", "windows would read all of it beyond its part"},
    {"conv_transposed of planes in groups: S(3) S(1)", "windows would read all of it beyond its part"},
    {"conv_transposed of planes in groups: S(3) P", "windows would read all of it beyond its part"},
    {"conv_weights of planes in groups: S(2) S(3)", "windows would read all of it beyond its part"},
    {"conv_weights of planes in groups: S(2) P", "windows would read all of it beyond its part"},
    {"conv_weights of planes in groups: S(3) S(2)", "windows would read all of it beyond its part"},
    {"conv_weights of planes in groups: S(3) P", "windows would read all of it beyond its part"},
};

static bool is_accepted(const char *name)
{
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        if (!strncmp(name, accepted[i].prefix, strlen(accepted[i].prefix)))
            return true;
    return false;
}

static void collect(const op_case *c, refusals *found, int *samples)
{
    static const char *const meshes[] = {"2", "3"};
    for (int variant = 0; variant < N_GENERIC; variant++)
        for (int m = 0; m < 2; m++)
            for (int seed = 1; seed <= 8; seed++, ++*samples) {
                trama_program *p = trama_program_create();
                trama_value *result = c->build(p, c, variant);
                trama_mesh *mesh = trama_mesh_create(meshes[m]);
                trial s = trial_of(c, result->node, result->node->rule, mesh, 77 * (uint64_t)seed);
                each_combination(&s, operands_at_once(&s), visit_missing, found);
                trama_mesh_destroy(&mesh);
                trama_program_destroy(&p);
            }
}

START_TEST(no_right_placement_is_refused_without_a_reason)
{
    text missing = {0};
    for (int i = 0; i < n_op_cases; i += suite_is_sanitized() && !suite_is_long() ? 4 : 1) {
        refusals found = {0};
        int samples = 0;
        collect(&op_cases[i], &found, &samples);
        for (int k = 0; k < found.at.n; k++) {
            refusal *r = &found.at.at[k];
            if (r->right.n && r->samples == samples && !is_accepted(r->name)) {
                trama_mesh *mesh = trama_mesh_create("2");
                text_add(&missing, "  %s -> ", r->name);
                layout_text(&missing, mesh, &r->right.at[0]);
                text_add(&missing, "\n");
                trama_mesh_destroy(&mesh);
            }
            free(r->name);
            ARRAY_FREE(&r->right);
        }
        ARRAY_FREE(&found.at);
    }
    ck_assert_msg(missing.n == 0, "placements that are right but refused:\n%.4000s", missing.at);
    free(missing.at);
}
END_TEST

START_TEST(every_op_has_a_case)
{
    for (int k = 0; k < trama_n_ops; k++) {
        bool found = false;
        for (int i = 0; i < n_op_cases; i++)
            found |= !strcmp(op_cases[i].op, trama_ops[k]->name);
        ck_assert_msg(found, "no case for %s", trama_ops[k]->name);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        every_op_has_a_case,
        what_inference_chooses_is_right_for_every_combination_on_one_axis,
        what_inference_chooses_is_right_on_several_axes,
        a_result_wanted_in_pieces_is_made_in_pieces,
        an_op_is_right_in_every_layout_in_which_it_may_compute,
        no_right_placement_is_refused_without_a_reason,
    };
    return suite_run("validator", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
