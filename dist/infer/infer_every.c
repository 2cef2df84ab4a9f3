/* SPDX-License-Identifier: Apache-2.0 */
/* All the layouts in which an op can compute, by its rule alone. */
#include "infer_inside.h"

/* One axis splits nothing, a factor (1 + its number), or carries terms: of one operand (first_terms + its number), or
 * of all operands that may be joint (first_terms + n_in). */
typedef struct every {
    inference q;
    trama_layout given[TRAMA_MAX_OPERANDS];
    int first_terms, n_choices;
    op_layouts_list *list;
} every;

static bool splits(inference *q, int axis, int factor)
{
    bool equal_only = false;
    axis_list *s = &q->split[factor];
    if (!infer_computes(q, factor) || !rule_splittable(q->rule, factor, &equal_only))
        return false;
    int64_t parts = q->mesh->weight_sum[axis];
    for (int i = 0; i < s->n; i++)
        parts *= q->mesh->weight_sum[s->axes[i]];
    if (equal_only && q->rule->factor[factor].extent % parts)
        return false;
    s->axes[s->n++] = axis;
    q->taken |= 1u << axis;
    return true;
}

/* Gives the operands that the choice names terms along the axis; false where there are none. */
static bool carries(every *e, int axis, int choice)
{
    bool any = false;
    for (int t = 0; t < e->q.rule->n_in; t++) {
        const unsigned pass = e->q.rule->tensor[t].pass;
        const bool joint = choice == e->first_terms + e->q.rule->n_in,
                   chosen = joint ? pass & PASS_JOINT : choice == e->first_terms + t && pass >> TRAMA_SUM & 1;
        if (chosen && node_reads(e->q.node, t)) {
            e->given[t].axis[axis] = (trama_placement){.kind = TRAMA_PARTIAL, .reduce = TRAMA_SUM};
            any = true;
        }
    }
    return any;
}

static void add(every *e, unsigned carried)
{
    op_layouts made;
    infer_made(&e->q, &made);
    bool passes = true, there = false;
    for (int a = 0; a < e->q.mesh->ndim; a++)
        passes &= !(carried >> a & 1) || made.out[0].axis[a].kind == TRAMA_PARTIAL;
    for (int o = 0; o < e->q.rule->n_out; o++)
        passes &= !node_updates(e->q.node, o) || trama_layout_equal(&made.in[o], &made.out[o]);
    for (int i = 0; i < e->list->n && passes && !there; i++)
        there = infer_same(&e->q, &e->list->at[i], &made);
    if (passes && !there)
        *ARRAY_PUSH(e->list) = made;
}

static void choose(every *e, int axis, unsigned carried)
{
    if (axis == e->q.mesh->ndim) {
        add(e, carried);
        return;
    }
    for (int choice = 0; choice < e->n_choices; choice++) {
        const every before = *e;
        if (choice == 0)
            choose(e, axis + 1, carried);
        else if (choice < e->first_terms ? splits(&e->q, axis, choice - 1) : carries(e, axis, choice))
            choose(e, axis + 1, choice < e->first_terms ? carried : carried | 1u << axis);
        *e = before;
    }
}

bool infer_every(const trama_node *node, const trama_rule *rule, const trama_mesh *mesh, int most,
                 op_layouts_list *list)
{
    const int n_terms = rule->n_out == 1 ? rule->n_in + 1 : 0;
    every e = {.q = {.node = node, .rule = rule, .mesh = mesh, .n_tensors = rule->n_in + rule->n_out},
               .first_terms = 1 + rule->n_factors,
               .n_choices = 1 + rule->n_factors + n_terms,
               .list = list};
    int64_t n = 1;
    for (int a = 0; a < mesh->ndim; a++)
        if (!count_times(&n, e.n_choices, most))
            return false;
    for (int t = 0; t < rule->n_in; t++) {
        e.given[t] = layout_uniform(mesh, TRAMA_REPLICATE);
        e.q.given[t] = &e.given[t];
    }
    choose(&e, 0, 0);
    return true;
}
