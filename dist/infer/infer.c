/* SPDX-License-Identifier: Apache-2.0 */
/* Layout inference over factor tables, the same for every op. */
#include "infer_inside.h"

#include <string.h>

#include "choose.h"

int infer_claim(const trama_rule *rule, const trama_mesh *mesh, int tensor, const trama_layout *layout, int factor,
                int *axes)
{
    bool equal_only;
    int dim = rule_dim_of(rule, tensor, factor);
    if (dim < 0 || !rule_splittable(rule, factor, &equal_only))
        return 0;
    int n = layout_dim_axes(layout, dim, axes), kept = 0;
    if (!equal_only)
        return n;
    int64_t left = rule->factor[factor].extent;
    for (; kept < n && left >= 0 && left % mesh->weight_sum[axes[kept]] == 0; kept++)
        left /= mesh->weight_sum[axes[kept]]; /* so that every piece is a multiple of the later factors' extents */
    return kept;
}

static bool list_equal(const axis_list *a, const axis_list *b)
{
    return a->n == b->n && !memcmp(a->axes, b->axes, (size_t)a->n * sizeof *a->axes);
}

bool infer_uses(const inference *q, int t)
{
    return q->given[t] && node_reads(q->node, t);
}

box infer_whole(const trama_node *node, const trama_rule *rule, int t)
{
    const trama_shape *shape = &node_tensor(node, t)->shape;
    box whole = {.ndim = rule->tensor[t].ndim};
    for (int d = 0; d < whole.ndim; d++)
        whole.n[d] = max_i64(rule_extent(rule, t, d, shape->dim[d]), 1);
    return whole;
}

int64_t infer_edge_bytes(const inference *q, int t, const trama_layout *from, const trama_layout *to)
{
    const trama_value *v = node_tensor(q->node, t);
    const box whole = infer_whole(q->node, q->rule, t);
    const layout_list *held = q->held && t < q->rule->n_in ? q->held[t] : NULL;
    for (int i = 0; held && i < held->n; i++)
        if (trama_layout_equal(&held->at[i], to))
            return 0;
    transfer edge = transfer_between(q->mesh, from, q->mesh, to, &whole, trama_dtype_size(v->dtype));
    return reshard_most_bytes(&edge);
}

/* Received bytes on the op's edges if the factor is split by the candidate. */
static int64_t candidate_cost(const inference *q, int factor, const axis_list *candidate)
{
    int64_t cost = 0;
    for (int t = 0; t < q->n_tensors; t++) {
        int dim = rule_dim_of(q->rule, t, factor);
        if (dim < 0 || !infer_uses(q, t))
            continue;
        trama_layout wanted = *q->given[t];
        wanted.mask = NULL;
        for (int a = 0; a < wanted.naxes; a++)
            if (wanted.axis[a].kind == TRAMA_OPEN || (wanted.axis[a].kind == TRAMA_SPLIT && wanted.axis[a].dim == dim))
                wanted.axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        trama_layout from = *q->given[t];
        for (int a = 0; a < from.naxes; a++)
            if (from.axis[a].kind == TRAMA_OPEN)
                from.axis[a].kind = TRAMA_REPLICATE;
        layout_split(&wanted, dim, candidate->n, candidate->axes);
        bool result = t >= q->rule->n_in; /* a result changes from the op's layout to the layout asked for */
        cost += infer_edge_bytes(q, t, result ? &wanted : &from, result ? &from : &wanted);
    }
    return cost;
}

static axis_list claim_of(const inference *q, int t, int factor)
{
    axis_list claim = {0}, all;
    if (!q->given[t])
        return claim;
    all.n = infer_claim(q->rule, q->mesh, t, q->given[t], factor, all.axes);
    for (int i = 0; i < all.n; i++)
        if (!(q->taken >> all.axes[i] & 1) && (!q->only[all.axes[i]] || q->only[all.axes[i]] == factor + 1))
            claim.axes[claim.n++] = all.axes[i];
    return claim;
}

static void report_conflict(const inference *q, int factor, int first, int second, const axis_list *kept)
{
    if (!q->report)
        return;
    const trama_node *node = q->node;
    const trama_value *values[2];
    int tensors[] = {first, second};
    for (int i = 0; i < 2; i++)
        values[i] = node_tensor(node, tensors[i]);
    text_add(q->report, "%s:%d: %s: %s (%s:%d) and %s (%s:%d) split factor %d by different axes; axis %d keeps it\n",
             node->where.file ? node->where.file : "?", node->where.line, node->op->name, values[0]->name,
             values[0]->where.file ? values[0]->where.file : "?", values[0]->where.line, values[1]->name,
             values[1]->where.file ? values[1]->where.file : "?", values[1]->where.line, factor,
             kept->n ? kept->axes[0] : -1);
}

static void decide_factor(inference *q, int factor)
{
    axis_list best = {0};
    int best_from = -1;
    int64_t best_cost = 0;
    for (int t = 0; t < q->n_tensors; t++) {
        axis_list claim = claim_of(q, t, factor);
        if (!claim.n || (best.n && list_equal(&claim, &best)))
            continue;
        if (!best.n) {
            best = claim;
            best_from = t;
            best_cost = -1; /* unknown until a second candidate needs it */
            continue;
        }
        if (best_cost < 0)
            best_cost = candidate_cost(q, factor, &best);
        int64_t cost = candidate_cost(q, factor, &claim);
        int other = t;
        if (cost < best_cost) {
            best = claim;
            best_cost = cost;
            other = best_from;
            best_from = t;
        }
        report_conflict(q, factor, best_from, other, &best);
    }
    q->split[factor] = best;
    for (int i = 0; i < best.n; i++)
        q->taken |= 1u << best.axes[i];
}

/* ---- Partial values ---- */

static trama_reduce flipped(trama_reduce kind)
{
    return kind == TRAMA_MAX ? TRAMA_MIN : kind == TRAMA_MIN ? TRAMA_MAX : kind;
}

static bool kinds_mix(trama_reduce a, trama_reduce b)
{
    return a == b || (a <= TRAMA_AVG && b <= TRAMA_AVG);
}

static bool fits_result(const trama_layout *out, trama_reduce kind)
{
    for (int a = 0; a < out->naxes; a++)
        if (out->axis[a].kind == TRAMA_PARTIAL && !kinds_mix(out->axis[a].reduce, kind))
            return false;
    return true;
}

/* Whether a replicated operand of an op with a scalar result becomes a term without a message: one process keeps it. */
static bool is_free_term(const inference *q, int t, int axis)
{
    return q->rule->tensor[q->rule->n_in].ndim == 0 && q->given[t] && q->given[t]->axis[axis].kind == TRAMA_REPLICATE;
}

/* Whether partial operands along an axis pass to the result; sets the operands that stay partial and the result's
 * kind. */
static bool partial_passes(const inference *q, int axis, unsigned *keep, trama_reduce *kind)
{
    int n_partial = 0, first = -1, n_joint = 0;
    unsigned together = 0;
    bool joint = true;
    *kind = TRAMA_SUM;
    for (int t = 0; t < q->rule->n_in; t++) {
        if (q->node->op->shape_only >> t & 1)
            continue;
        const trama_placement *p = q->given[t] ? &q->given[t]->axis[axis] : NULL;
        bool partial = p && p->kind == TRAMA_PARTIAL, may_join = q->rule->tensor[t].pass & PASS_JOINT;
        n_joint += may_join;
        together |= (unsigned)may_join << t;
        joint &= partial ? may_join && p->reduce <= TRAMA_AVG && (!n_partial || p->reduce == *kind)
                         : !may_join || is_free_term(q, t, axis);
        if (!partial)
            continue;
        if (!n_partial++)
            *kind = p->reduce;
        if (first < 0 && (q->rule->tensor[t].pass >> p->reduce & 1))
            first = t;
    }
    if (!n_partial || q->rule->n_out != 1)
        return false;
    *keep = 0;
    if (joint && (n_partial == n_joint || *kind == TRAMA_SUM)) {
        *keep = together;
        return true;
    }
    if (first < 0)
        return false;
    *keep = 1u << first;
    *kind = q->given[first]->axis[axis].reduce;
    if (q->rule->tensor[first].pass & PASS_FALLING)
        *kind = flipped(*kind);
    return true;
}

static void pass_partials(const inference *q, op_layouts *r)
{
    for (int a = 0; a < q->mesh->ndim; a++) {
        unsigned keep;
        trama_reduce kind;
        if ((q->taken >> a & 1) || !partial_passes(q, a, &keep, &kind) || !fits_result(&r->out[0], kind))
            continue;
        r->out[0].axis[a] = (trama_placement){.kind = TRAMA_PARTIAL, .reduce = kind};
        for (int t = 0; t < q->rule->n_in; t++) {
            if (!(keep >> t & 1) || !q->given[t] || (q->node->op->shape_only >> t & 1))
                continue;
            const trama_placement *given = &q->given[t]->axis[a];
            r->in[t].axis[a] = given->kind == TRAMA_PARTIAL ? *given : r->out[0].axis[a];
        }
    }
}

/* ---- The result ---- */

static trama_layout split_layout(const inference *q, int t)
{
    trama_layout layout = layout_uniform(q->mesh, TRAMA_REPLICATE);
    for (int f = 0; f < q->rule->n_factors; f++) {
        int dim = q->split[f].n ? rule_dim_of(q->rule, t, f) : -1;
        if (dim >= 0)
            layout_split(&layout, dim, q->split[f].n, q->split[f].axes);
        else if (t >= q->rule->n_in && q->split[f].n && !(rule_factors(q->rule, t) >> f & 1))
            for (int i = 0; i < q->split[f].n; i++)
                layout.axis[q->split[f].axes[i]] =
                    (trama_placement){.kind = TRAMA_PARTIAL, .reduce = q->rule->factor[f].reduce};
    }
    return layout;
}

/* A factor that only shape-only operands have is repeated, not summed. */
bool infer_computes(const inference *q, int factor)
{
    for (int t = 0; t < q->n_tensors; t++)
        if (node_reads(q->node, t) && (rule_factors(q->rule, t) >> factor & 1))
            return true;
    return false;
}

/* Takes the splits of the known results before those of operands. */
static void claim_results(inference *q)
{
    for (int t = q->rule->n_in; t < q->n_tensors; t++)
        for (int f = 0; f < q->rule->n_factors; f++) {
            axis_list claim = claim_of(q, t, f);
            if (q->split[f].n || !claim.n)
                continue;
            q->split[f] = claim;
            for (int i = 0; i < claim.n; i++)
                q->taken |= 1u << claim.axes[i];
        }
}

void infer_made(const inference *q, op_layouts *r)
{
    *r = (op_layouts){.mesh = q->mesh};
    for (int t = 0; t < q->rule->n_in; t++)
        r->in[t] = split_layout(q, t);
    for (int t = 0; t < q->rule->n_out; t++)
        r->out[t] = split_layout(q, q->rule->n_in + t);
    pass_partials(q, r);
}

/* The ways to infer: the splits of operands come first, or those of known results; and what splits a dim that must be
 * whole splits nothing, or another dim. */
typedef enum { OPERANDS_FIRST, RESULTS_FIRST, MOVED } way;

static void attempt(const inference *start, way how, op_layouts *r)
{
    inference q = *start;
    const trama_rule *rule = q.rule;
    if (how == RESULTS_FIRST)
        claim_results(&q);
    for (int f = 0; f < rule->n_factors; f++)
        if (infer_computes(&q, f) && !q.split[f].n)
            decide_factor(&q, f);
    if (how == MOVED)
        infer_move(&q);
    infer_made(&q, r);
}

static bool results_are_split(const inference *q)
{
    for (int t = q->rule->n_in; t < q->n_tensors; t++)
        if (q->given[t] && layout_has(q->given[t], TRAMA_SPLIT))
            return true;
    return false;
}

bool infer_same(const inference *q, const op_layouts *a, const op_layouts *b)
{
    for (int t = 0; t < q->n_tensors; t++)
        if (!trama_layout_equal(op_layout_of(a, q->rule->n_in, t), op_layout_of(b, q->rule->n_in, t)))
            return false;
    return true;
}

/* The cheapest inference so far. */
typedef struct finding {
    op_layouts layouts;
    inference q;
    way how;
    int64_t cost; /* -1: not counted yet */
} finding;

static void consider(finding *best, const inference *q, way how)
{
    op_layouts other;
    attempt(q, how, &other);
    if (infer_same(q, &best->layouts, &other))
        return;
    if (best->cost < 0)
        best->cost = infer_bytes(&best->q, &best->layouts);
    const int64_t cost = infer_bytes(q, &other);
    if (cost < best->cost)
        *best = (finding){other, *q, how, cost};
}

static bool is_given(const inference *q)
{
    int n = 0;
    for (int t = 0; t < q->n_tensors; t++)
        n += infer_uses(q, t) && layout_has(q->given[t], TRAMA_SPLIT);
    return n > 0;
}

/* Infers in each way that can matter, and takes the one with the fewest received bytes, at a tie the first: an operand
 * may use an axis for a summed factor that a result needs for its split. */
void infer_op(const infer_question *question, op_layouts *result, text *report)
{
    const trama_rule *rule = question->rule;
    inference q = {.node = question->node,
                   .rule = rule,
                   .mesh = question->mesh,
                   .n_tensors = rule->n_in + rule->n_out,
                   .held = question->held,
                   .trains = question->trains};
    for (int t = 0; t < rule->n_in; t++)
        q.given[t] = question->in[t];
    for (int t = 0; t < rule->n_out; t++)
        q.given[rule->n_in + t] = question->out ? question->out[t] : NULL;
    finding best = {.q = q, .how = OPERANDS_FIRST, .cost = -1};
    attempt(&q, best.how, &best.layouts);
    if (results_are_split(&q))
        consider(&best, &q, RESULTS_FIRST);
    if (question->moves && infer_may_move(&q))
        consider(&best, &q, MOVED);
    const contest c = is_given(&q) ? infer_contest(&q) : (contest){0};
    q.contested = best.q.contested = true;
    best.cost = -1;
    for (int i = 0; infer_assign(&q, &c, i); i++)
        consider(&best, &q, OPERANDS_FIRST);
    *result = best.layouts;
    if (report) {
        best.q.report = report;
        attempt(&best.q, best.how, result);
    }
}
