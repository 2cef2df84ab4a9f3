/* SPDX-License-Identifier: Apache-2.0 */
/* The factor table of a node: from a rule string, from the function of its op, or whole. */
#include <assert.h>
#include <string.h>

#include "program.h"
#include "rule.h"
#include "rule_text.h"

/* The error that every rule can meet. */
static trama_status shape_error(const trama_node *node, const char *problem)
{
    text t = {0};
    for (int i = 0; i < node->op->n_in; i++) {
        text_add(&t, "%s", i ? ", " : "");
        value_text(&t, node->in[i]);
    }
    trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: %s", node->op->name, t.at ? t.at : "nothing", problem);
    free(t.at);
    return TRAMA_E_SHAPE;
}

/* Unifies the extents of two dims that share a factor: a known extent replaces TRAMA_ANY. False where they differ. */
static bool unify(int64_t *extent, int64_t other)
{
    if (*extent == TRAMA_ANY)
        *extent = other;
    return other == TRAMA_ANY || other == *extent;
}

/* The state of reading a rule string: the factor of each letter, and of each position of "..." counted from the
 * right. */
typedef struct reading {
    trama_rule *rule;
    const trama_node *node;
    int letter[128], dots[TRAMA_MAX_NDIM], n_dots;
    const char *problem;
} reading;

/* Keeps the first problem. */
static void complain(reading *r, const char *problem)
{
    if (!r->problem)
        r->problem = problem;
}

/* Adds a factor; a problem where the table is full. */
static int new_factor(reading *r, int64_t extent)
{
    if (r->rule->n_factors < RULE_MAX_FACTORS)
        return rule_add_factor(r->rule, extent);
    complain(r, "it has more different dims than a rule can name");
    return 0;
}

/* Number of letters in a tensor's part of the string, and whether it has "...". */
static int count_letters(const char *part, size_t n, bool *dots)
{
    rule_dim_text item = {0};
    int letters = 0;
    *dots = rule_has_dots(part, n);
    for (const char *at = part; rule_next_dim(&at, part + n, &item);)
        letters++;
    return letters;
}

/* Adds the factors of "...", which are first in rule order. Each has the extent of an operand that is not repeated
 * there. */
static void read_dots(reading *r, const char *string)
{
    int64_t extents[TRAMA_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int t = 0; t < r->node->op->n_in; t++) {
        const trama_shape *shape = &r->node->in[t]->shape;
        size_t n = rule_part(string);
        bool dots;
        int n_dots = shape->ndim - count_letters(string, n, &dots);
        for (int i = 0; dots && i < n_dots; i++)
            if (extents[i] == 1)
                extents[i] = shape->dim[n_dots - 1 - i];
        if (dots && n_dots > r->n_dots)
            r->n_dots = n_dots;
        string += n + (string[n] == ',');
    }
    for (int i = r->n_dots - 1; i >= 0; i--)
        r->dots[i] = new_factor(r, extents[i]);
}

static void operand_dim(reading *r, rule_tensor *tensor, int factor, int64_t extent, bool repeats)
{
    int64_t *shared = &r->rule->factor[factor].extent;
    if (repeats && extent == 1 && *shared != 1) {
        rule_add_dim(tensor, -1);
        return;
    }
    if (!unify(shared, extent))
        complain(r, "the dims do not agree");
    rule_add_dim(tensor, factor);
}

/* The number of indices of a dim with a stride: 7 with stride 2 gives 4. */
static int64_t strided(int64_t extent, int64_t stride)
{
    return extent == TRAMA_ANY ? TRAMA_ANY : (extent + stride - 1) / stride;
}

/* A dim of which neighbours are read. With a stride the factor has the extent of the rule, or else extent / stride
 * rounded up. */
static void reached_dim(reading *r, rule_tensor *tensor, int factor, int64_t extent, const rule_dim_text *item)
{
    const bool own = item->stride > 0;
    const int d = tensor->ndim;
    operand_dim(r, tensor, factor,
                !own                        ? extent
                : item->extent != TRAMA_ANY ? item->extent
                                            : strided(extent, item->stride),
                false);
    tensor->reach[d] = (rule_reach){
        .before = item->before, .after = item->after, .stride = item->stride, .wraps = item->wraps, .own_extent = own};
    if (own && item->extent > (INT64_C(1) << 60) / item->stride)
        complain(r, "its stride leads beyond 2^60");
    if (!reach_fits(&tensor->reach[d], extent))
        complain(r, "neighbours are read further on than the dim is long");
}

/* Dims of extent 1 in "..." have no factor, unless all operands have 1 there. */
static void read_operand(reading *r, rule_tensor *tensor, const char *part, size_t n, const trama_shape *shape)
{
    bool dots;
    int letters = count_letters(part, n, &dots), d = 0;
    if (shape->ndim < letters || (!dots && shape->ndim != letters)) {
        complain(r, "the number of dims does not fit");
        return;
    }
    for (int i = shape->ndim - letters - 1; i >= 0; i--, d++)
        operand_dim(r, tensor, r->dots[i], shape->dim[d], true);
    rule_dim_text item = {0};
    for (const char *at = part; rule_next_dim(&at, part + n, &item) && !r->problem; d++) {
        int *factor = &r->letter[(unsigned char)item.letter];
        if (*factor < 0)
            *factor = new_factor(r, item.extent);
        if (!unify(&r->rule->factor[*factor].extent, item.extent))
            complain(r, "the dims do not agree");
        r->rule->factor[*factor].whole |= item.whole;
        reached_dim(r, tensor, *factor, shape->dim[d], &item);
    }
}

/* A letter that no operand has must have an extent, as k=3. */
static void read_result(reading *r, rule_tensor *tensor, const char *part, size_t n)
{
    rule_dim_text item = {0};
    bool dots;
    int letters = count_letters(part, n, &dots);
    if (letters + (dots ? r->n_dots : 0) > TRAMA_MAX_NDIM) {
        complain(r, "a result would have too many dims");
        return;
    }
    for (int i = r->n_dots - 1; dots && i >= 0; i--)
        rule_add_dim(tensor, r->dots[i]);
    for (const char *at = part; rule_next_dim(&at, part + n, &item) && !r->problem;) {
        int *factor = &r->letter[(unsigned char)item.letter];
        if (*factor < 0)
            *factor = new_factor(r, item.extent);
        if (!unify(&r->rule->factor[*factor].extent, item.extent))
            complain(r, "the dims do not agree");
        r->rule->factor[*factor].whole |= item.whole;
        rule_add_dim(tensor, *factor);
    }
}

static void read_marks(trama_rule *rule, const char *marks)
{
    for (int t = 0; marks && t < rule->n_in; t++) {
        size_t n = strcspn(marks, ",");
        for (size_t from = 0; from < n;) {
            size_t word = strcspn(marks + from, ",+");
            unsigned set = 0;
            bool known = rule_mark(marks + from, word, &set);
            assert(known); /* from ops.def, or checked by trama_op_define */
            (void)known;
            rule->tensor[t].pass |= set;
            from += word + 1;
        }
        marks += n + (marks[n] == ',');
    }
}

trama_status rule_parse(trama_rule *rule, const char *string, const trama_node *node)
{
    reading r = {.rule = rule, .node = node};
    memset(r.letter, -1, sizeof r.letter);
    read_dots(&r, string);
    for (int t = 0; t < node->op->n_in && !r.problem; t++) {
        size_t n = rule_part(string);
        read_operand(&r, &rule->tensor[t], string, n, &node->in[t]->shape);
        string += n + (string[n] == ',');
    }
    string = strstr(string, "->");
    for (int t = 0; t < node->op->n_out && !r.problem; t++) {
        string += t ? 1 : 2;
        size_t n = rule_part(string);
        read_result(&r, &rule->tensor[node->op->n_in + t], string, n);
        string += n;
    }
    return r.problem ? shape_error(node, r.problem) : TRAMA_OK;
}

/* The factor of a dim that is never split; dims of equal extent share it. -1: the table is full. */
static int whole_factor(trama_rule *rule, int64_t extent)
{
    for (int f = 0; f < rule->n_factors && extent != TRAMA_ANY; f++)
        if (rule->factor[f].extent == extent)
            return f;
    if (rule->n_factors == RULE_MAX_FACTORS)
        return -1;
    int f = rule_add_factor(rule, extent);
    rule->factor[f].whole = true;
    return f;
}

/* The table of an op without a rule: it computes on whole operands, and results have the shape of operand 0. */
static trama_status replicated(trama_rule *rule, const trama_node *node)
{
    for (int t = 0; t < node->op->n_in; t++)
        for (int d = 0; d < node->in[t]->shape.ndim; d++) {
            int factor = whole_factor(rule, node->in[t]->shape.dim[d]);
            if (factor < 0)
                return shape_error(node, "it has more different dims than an op without a rule can have");
            rule_add_dim(&rule->tensor[t], factor);
        }
    for (int o = 0; o < node->op->n_out; o++)
        rule->tensor[node->op->n_in + o] = rule->tensor[0];
    return TRAMA_OK;
}

/* Complex numbers have none. */
static void drop_extremes(trama_rule *rule, const trama_node *node, const trama_dtype *dtype)
{
    bool complex = false;
    for (int o = 0; o < node->op->n_out; o++)
        complex |= dtype_parts(dtype[o]) > 1;
    for (int i = 0; i < node->op->n_in; i++)
        if (complex || dtype_parts(node->in[i]->dtype) > 1)
            rule->tensor[i].pass &= ~(unsigned)PASS_MONOTONE;
}

trama_status rule_build(trama_rule *rule, const trama_node *node, const trama_dtype *dtype)
{
    const trama_op *op = node->op;
    memset(rule, 0, sizeof *rule);
    assert(op->n_in + op->n_out <= RULE_MAX_TENSORS);
    rule->n_in = op->n_in;
    rule->n_out = op->n_out;
    trama_status status = op->infer  ? op->infer(rule, node)
                          : op->rule ? rule_parse(rule, op->rule, node)
                                     : replicated(rule, node);
    if (!status)
        rule_settle(rule);
    if (!status)
        read_marks(rule, op->partial);
    if (!status)
        drop_extremes(rule, node, dtype);
    for (int i = 0; !status && i < op->n_out; i++)
        if ((op->updates >> i & 1) && !trama_shape_equal(rule_shape(rule, i), node->in[i]->shape))
            status = shape_error(node, "the state that is updated has another shape than the result");
    return status;
}
