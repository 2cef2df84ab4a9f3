/* SPDX-License-Identifier: Apache-2.0 */
/* Mutation of rules: every single change of a factor's role, of a dim's factor, or of a partial mark must be noticed by
 * the validator: a layout is inferred that is wrong, or one is refused that was not. Mutants that change nothing are
 * listed. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"
#include "validator.h"

/* ---- Mutations ---- */

typedef enum { FLIP_WHOLE, REDUCE_OTHERWISE, OTHER_FACTOR, READ_LESS, FLIP_MARK } mutation_kind;

typedef struct mutation {
    mutation_kind kind;
    int where, dim, to;
} mutation;

static const char *const kind_names[] = {"flips whole of factor", "reduces otherwise factor", "gives tensor a factor",
                                         "reads less of operand", "flips a mark of operand"};

static trama_rule mutated(const trama_rule *rule, const mutation *m)
{
    trama_rule r = *rule;
    switch (m->kind) {
    case FLIP_WHOLE:
        r.factor[m->where].whole = !r.factor[m->where].whole;
        break;
    case REDUCE_OTHERWISE:
        r.factor[m->where].reduce = (trama_reduce)m->to;
        break;
    case OTHER_FACTOR:
        r.tensor[m->where].dim[m->dim].factor[0] = (signed char)m->to;
        if (m->to == rule->n_factors)
            r.tensor[m->where].dim[m->dim].n = 0;
        break;
    case READ_LESS:
        *(m->to ? &r.tensor[m->where].reach[m->dim].after : &r.tensor[m->where].reach[m->dim].before) -= 1;
        break;
    default:
        r.tensor[m->where].pass ^= 1u << m->to;
    }
    return r;
}

/* Whether an operand has the factor and some result lacks it. */
static bool is_reduced(const trama_rule *rule, const trama_node *node, int factor)
{
    bool some = false, all = true;
    for (int t = 0; t < rule->n_in; t++)
        some |= !(node->op->shape_only >> t & 1) && (rule_factors(rule, t) >> factor & 1);
    for (int o = 0; o < rule->n_out; o++)
        all &= rule_factors(rule, rule->n_in + o) >> factor & 1;
    return some && !all;
}

/* Whether two rules say the same of every factor that one of them lets be split. Extents are equal. */
static bool is_same(const trama_rule *a, const trama_rule *b)
{
    for (int f = 0; f < a->n_factors; f++) {
        bool equal_a, equal_b, splits = rule_splittable(a, f, &equal_a);
        if (splits != rule_splittable(b, f, &equal_b) || (splits && equal_a != equal_b) ||
            (splits && a->factor[f].reduce != b->factor[f].reduce))
            return false;
        for (int t = 0; t < a->n_in + a->n_out && splits; t++)
            if (rule_dim_of(a, t, f) != rule_dim_of(b, t, f) || ((rule_factors(a, t) ^ rule_factors(b, t)) >> f & 1))
                return false;
    }
    for (int t = 0; t < a->n_in; t++)
        if (a->tensor[t].pass != b->tensor[t].pass)
            return false;
    return true;
}

/* Whether flipping a mark alone can mean anything. */
static bool is_mark(const trama_rule *rule, const trama_node *node, int operand, int bit)
{
    unsigned pass = rule->tensor[operand].pass;
    if (node->op->shape_only >> operand & 1 || node->op->n_out != 1) /* of several results no partial value passes */
        return false;
    const bool complex = dtype_parts(node->in[operand]->dtype) > 1 || dtype_parts(node->out[0]->dtype) > 1;
    if (complex && bit >= TRAMA_MAX && 1u << bit != PASS_JOINT) /* there are no extremes */
        return false;
    if (1u << bit == PASS_FALLING)
        return pass & PASS_MONOTONE;
    if (1u << bit == PASS_JOINT) /* takes effect only if all operands have it */
        return pass & PASS_JOINT || (rule->n_in == 1 && (pass & PASS_LINEAR) != PASS_LINEAR);
    return bit <= TRAMA_MIN;
}

/* Whether splitting a factor can mean anything: an operand has it, or there is none, and elements go by it, not only
 * the shape of an operand. */
static bool is_given(const trama_rule *rule, const trama_node *node, int factor)
{
    bool given = rule->n_in == 0, used = false;
    for (int t = 0; t < rule->n_in + rule->n_out; t++) {
        const bool has = rule_factors(rule, t) >> factor & 1;
        given |= has && t < rule->n_in;
        used |= has && node_reads(node, t);
    }
    return given && used;
}

typedef ARRAY(mutation) mutation_list;

static void list_mutations(const trama_rule *rule, const trama_node *node, mutation_list *list)
{
    for (int f = 0; f < rule->n_factors; f++) {
        if (is_given(rule, node, f))
            *ARRAY_PUSH(list) = (mutation){FLIP_WHOLE, f, 0, 0};
        for (int k = 0; k < 4; k++)
            if (is_reduced(rule, node, f) && !rule->factor[f].whole && k != (int)rule->factor[f].reduce)
                *ARRAY_PUSH(list) = (mutation){REDUCE_OTHERWISE, f, 0, k};
    }
    for (int t = 0; t < rule->n_in + rule->n_out; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++)
            for (int f = 0; rule->tensor[t].dim[d].n && f <= rule->n_factors; f++)
                if (f != rule->tensor[t].dim[d].factor[0] &&
                    (node_reads(node, t) || is_given(rule, node, rule->tensor[t].dim[d].factor[0])))
                    *ARRAY_PUSH(list) = (mutation){OTHER_FACTOR, t, d, f};
    for (int t = 0; t < rule->n_in; t++)
        for (int d = 0; d < rule->tensor[t].ndim; d++)
            for (int end = 0; end < 2 && !reach_is_none(&rule->tensor[t].reach[d]); end++)
                *ARRAY_PUSH(list) = (mutation){READ_LESS, t, d, end};
    for (int t = 0; t < rule->n_in; t++)
        for (int bit = 0; bit < 10; bit++)
            if (is_mark(rule, node, t, bit))
                *ARRAY_PUSH(list) = (mutation){FLIP_MARK, t, 0, bit};
}

/* ---- Judging ---- */

typedef struct verdict {
    const trial *original;
    bool killed;
} verdict;

/* Whether a given split or partial value is taken away from some operand, one of which only the shape is used included.
 */
static bool takes_away(const combination *c, const op_layouts *inferred, int n_in)
{
    for (int t = 0; t < n_in; t++)
        if (c->in[t].axis[0].kind != TRAMA_REPLICATE && !trama_layout_equal(&c->in[t], &inferred->in[t]))
            return true;
    return false;
}

static bool same_layouts(const op_layouts *a, const op_layouts *b, int n_in, int n_out)
{
    bool same = true;
    for (int t = 0; t < n_in; t++)
        same &= trama_layout_equal(&a->in[t], &b->in[t]);
    for (int o = 0; o < n_out; o++)
        same &= trama_layout_equal(&a->out[o], &b->out[o]);
    return same;
}

static void judge(void *arg, const trial *mutant, const combination *c)
{
    verdict *v = arg;
    int n_in = mutant->node->op->n_in, n_out = mutant->node->op->n_out;
    if (v->killed)
        return;
    op_layouts now = infer_combination(mutant, c), before = infer_combination(v->original, c);
    if (same_layouts(&now, &before, n_in, n_out))
        return;
    v->killed = (takes_away(c, &now, n_in) && !takes_away(c, &before, n_in)) || !is_right(mutant, now.in, now.out);
}

/* Ops without operands are judged by the layouts that are wanted of them. */
static void judge_source(const trial *mutant, verdict *v)
{
    layout_list list = {0};
    every_layout(mutant->mesh, mutant->node->out[0]->shape.ndim, false, &list);
    for (int i = 0; i < list.n; i++) {
        const trama_layout *out[TRAMA_MAX_OPERANDS] = {&list.at[i]};
        op_layouts now;
        infer_op(&(infer_question){.node = mutant->node,
                                   .rule = mutant->rule,
                                   .mesh = mutant->mesh,
                                   .in = (const trama_layout *[]){NULL},
                                   .out = out,
                                   .moves = true},
                 &now, NULL);
        v->killed |= !trama_layout_equal(&now.out[0], &list.at[i]) || !is_right(mutant, now.in, now.out);
    }
    ARRAY_FREE(&list);
}

/* Whether the validator tells the mutant from the original, in sizes that divide nothing and in such that do. */
static bool is_killed(const op_case *c, const mutation *m)
{
    static const struct {
        const char *mesh;
        int variant;
    } trials[] = {{"2", 0}, {"3", 0}, {"2", 6}, {"3", 6}};
    verdict v = {.killed = false};
    for (int i = 0; i < 16 && !v.killed; i++) {
        trama_program *p = trama_program_create();
        const trama_node *node = c->build(p, c, trials[i % 4].variant)->node;
        trama_mesh *mesh = trama_mesh_create(trials[i % 4].mesh);
        trama_rule rule = mutated(node->rule, m);
        trial original = trial_of(c, node, node->rule, mesh, 91 * (uint64_t)(i + 1)), mutant = original;
        mutant.rule = &rule;
        v.original = &original;
        if (node->op->n_in)
            each_combination(&mutant, operands_at_once(&mutant), judge, &v);
        else
            judge_source(&mutant, &v);
        trama_mesh_destroy(&mesh);
        trama_program_destroy(&p);
    }
    return v.killed;
}

/* Beginnings of the survivors that change nothing, and why. */
static const struct {
    const char *prefix, *reason;
} equivalent[] = {
    {"sqrt: flips a mark of operand 0.0 2", "test_validator.c says why P(max) does not pass"},
    {"log: flips a mark of operand 0.0 2", "test_validator.c says why P(max) does not pass"},
    {"tan: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"tan: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"asin: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"asin: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"atanh: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"atanh: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"acosh: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"log1p: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"log2: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"log10: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"copysign: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"copysign: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"copysign of a row: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"copysign of a row: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"copysign of a column and a row: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"copysign of a column and a row: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"copysign of a scalar: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"copysign of a scalar: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less of a row: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less of a row: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less of a column and a row: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less of a column and a row: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less of a scalar: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less of a scalar: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less_equal: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less_equal: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less_equal of a row: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less_equal of a row: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"less_equal of a column and a row: flips a mark of operand 1.0 2",
     "test_validator.c says why extrema do not pass"},
    {"less_equal of a column and a row: flips a mark of operand 1.0 3",
     "test_validator.c says why extrema do not pass"},
    {"less_equal of a scalar: flips a mark of operand 1.0 2", "test_validator.c says why extrema do not pass"},
    {"less_equal of a scalar: flips a mark of operand 1.0 3", "test_validator.c says why extrema do not pass"},
    {"greater: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"greater of a row: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater of a row: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"greater of a column and a row: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater of a column and a row: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"greater of a scalar: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater of a scalar: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"greater_equal: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater_equal: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"greater_equal of a row: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater_equal of a row: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"greater_equal of a column and a row: flips a mark of operand 0.0 2",
     "test_validator.c says why extrema do not pass"},
    {"greater_equal of a column and a row: flips a mark of operand 0.0 3",
     "test_validator.c says why extrema do not pass"},
    {"greater_equal of a scalar: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"greater_equal of a scalar: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"elu: flips a mark", "test_validator.c says why it does not pass"},
    {"celu: flips a mark", "test_validator.c says why it does not pass"},
    {"leaky_relu: flips a mark", "test_validator.c says why it does not pass"},
    {"elu_grad: flips a mark of operand 0.0 2", "test_validator.c says why it does not pass"},
    {"elu_grad: flips a mark of operand 0.0 3", "test_validator.c says why it does not pass"},
    {"celu_grad: flips a mark of operand 0.0 2", "test_validator.c says why it does not pass"},
    {"celu_grad: flips a mark of operand 0.0 3", "test_validator.c says why it does not pass"},
    {"leaky_relu_grad: flips a mark of operand 0.0 2", "test_validator.c says why it does not pass"},
    {"leaky_relu_grad: flips a mark of operand 0.0 3", "test_validator.c says why it does not pass"},
    {"pow_slope_y: flips a mark of operand 1.0 2", "test_validator.c says why it does not pass"},
    {"pow_slope_y: flips a mark of operand 1.0 3", "test_validator.c says why it does not pass"},
    {"bitwise_not: flips a mark of operand 0.0 1", "test_validator.c says why it does not pass"},
    {"isnan: flips a mark of operand 0.0 2", "test_validator.c says why it does not pass"},
    {"left_shift", "test_validator.c says why it does not pass"},
    {"right_shift", "test_validator.c says why it does not pass"},
    {"prelu: flips a mark of operand 1.0 1", "test_validator.c says why it does not pass"},
    {"prelu of a row: flips a mark of operand 1.0 1", "test_validator.c says why it does not pass"},
    {"prelu of a column and a row: flips a mark of operand 1.0 1", "test_validator.c says why it does not pass"},
    {"prelu of a scalar: flips a mark of operand 1.0 1", "test_validator.c says why it does not pass"},
    {"scale by 0: flips a mark", "0 times anything is right with any mark"},
    {"scale of integers: flips a mark", "test_validator.c says why no partial value passes"},
    {"cast f64 to f32: flips a mark", "test_validator.c says why sums do not pass"},
    {"cast bf16 to f16: flips a mark", "test_validator.c says why sums do not pass"},
    {"cast f64 to i32: flips a mark of operand 0.0 2", "test_validator.c says why extrema do not pass"},
    {"cast f64 to i32: flips a mark of operand 0.0 3", "test_validator.c says why extrema do not pass"},
    {"cast i32 to f64: flips a mark", "test_validator.c says why nothing passes"},
    {"add of scalars: flips a mark of operand 1.0 0", "whole scalars become terms beside a sum anyway"},
    {"sub of scalars: flips a mark of operand 1.0 0", "whole scalars become terms beside a sum anyway"},
    {"tanh_grad: flips a mark of operand 0.0 2", "the sign of 1 - y^2 is known to nobody"},
    {"tanh_grad: flips a mark of operand 0.0 3", "the sign of 1 - y^2 is known to nobody"},
    {"gather_grad of dim 0: gives tensor a factor 2.0", "of that operand the shape alone is read"},
    {"gather_grad of dim 1 by a matrix: gives tensor a factor 2.1", "of that operand the shape alone is read"},
    {"gather_grad of c128: gives tensor a factor 2.0", "of that operand the shape alone is read"},
    {"gather_along_grad of dim 1: gives tensor a factor 2.1", "of that operand the shape alone is read"},
    {"gather_along_grad of c128: gives tensor a factor 2.1", "of that operand the shape alone is read"},
    {"top_k of dim 1: flips whole of factor 2", "only results have it, and they want nothing here"},
    {"top_k of dim 0, the least: flips whole of factor 1", "only results have it, and they want nothing here"},
    {"reshape mixes dims: flips whole of factor 2", "only results have it, and they want nothing here"},
    {"reshape mixes dims: flips whole of factor 3", "only results have it, and they want nothing here"},
    {"draw: flips whole of factor", "only the result has it, and it wants nothing here"},
    {"draw: gives tensor a factor 1.", "only the result has it, and it wants nothing here"},
    {"assign: flips a mark", "state is never partial"},
    {"increment: flips a mark", "state is never partial"},
    {"sgd: flips a mark", "state is never partial"},
    {"accumulate: flips a mark", "updates are tried on equal layouts; terms of state by tasks/test_merge"},
    {"assign_if: flips a mark", "state is never partial"},
    {"descend: flips a mark", "state is never partial"},
};

static bool is_equivalent(const char *line)
{
    for (size_t i = 0; i < sizeof equivalent / sizeof *equivalent; i++)
        if (!strncmp(line, equivalent[i].prefix, strlen(equivalent[i].prefix)))
            return true;
    return false;
}

static int try_case(const op_case *c, text *survivors)
{
    trama_program *p = trama_program_create();
    const trama_node *node = c->build(p, c, 0)->node;
    mutation_list list = {0};
    int n;
    list_mutations(node->rule, node, &list);
    n = list.n;
    for (int i = 0; i < list.n; i++) {
        const mutation *m = &list.at[i];
        const trama_rule rule = mutated(node->rule, m);
        char line[160];
        if (is_same(&rule, node->rule))
            continue;
        snprintf(line, sizeof line, "%s: %s %d.%d %d", c->name, kind_names[m->kind], m->where, m->dim, m->to);
        if (!is_killed(c, m) && !is_equivalent(line))
            text_add(survivors, "  %s\n", line);
    }
    ARRAY_FREE(&list);
    trama_program_destroy(&p);
    return n;
}

START_TEST(every_mutant_of_a_rule_is_killed)
{
    text survivors = {0};
    int made = 0;
    for (int i = 0; i < n_op_cases; i++)
        made += try_case(&op_cases[i], &survivors);
    ck_assert_int_gt(made, 1000);
    ck_assert_msg(!survivors.n, "of %d mutants these survive:\n%.4000s", made, survivors.at);
    free(survivors.at);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        every_mutant_of_a_rule_is_killed,
    };
    return suite_run("mutants", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
