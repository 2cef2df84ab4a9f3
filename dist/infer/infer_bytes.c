/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an inference: of neighbours, on the edges of the op, and of its reverse. The layouts in which gradients
 * are made and needed follow from those of the op, whether the program derives gradients or not, so that training
 * changes no layout of an evaluation. */
#include "infer_inside.h"

/* ---- The reverse ---- */

/* The axes that split some factor of the op. */
static unsigned working_axes(const inference *q, const op_layouts *r)
{
    unsigned axes = 0;
    for (int t = 0; t < q->n_tensors; t++)
        axes |= layout_axes(op_layout_of(r, q->rule->n_in, t), TRAMA_SPLIT);
    return axes;
}

/* From the gradient that the op makes, S like the operand and terms along axes that split other factors only, to the
 * one that is needed: of a parameter like it, of an operand that is S like it, of one that is P the sum, else as it
 * comes. */
static int64_t operand_bytes(const inference *q, const op_layouts *r, int t, unsigned working)
{
    const bool leaf = q->node->in[t]->kind == VALUE_STATE;
    trama_layout made = r->in[t], needed = made;
    for (int a = 0; a < made.naxes; a++) {
        const trama_placement *given = q->given[t] ? &q->given[t]->axis[a] : NULL;
        if (made.axis[a].kind != TRAMA_SPLIT)
            made.axis[a] = working >> a & 1 ? (trama_placement){.kind = TRAMA_PARTIAL, .reduce = TRAMA_SUM}
                                            : (trama_placement){.kind = TRAMA_REPLICATE};
        needed.axis[a] = made.axis[a];
        if (given && given->kind == TRAMA_SPLIT)
            needed.axis[a] = *given;
        else if ((given && given->kind == TRAMA_PARTIAL) ||
                 (leaf && ((given && given->kind == TRAMA_REPLICATE) || made.axis[a].kind == TRAMA_PARTIAL)))
            needed.axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
    }
    if (layout_check(q->mesh, q->rule->tensor[t].ndim, &needed, false))
        return 0;
    return infer_edge_bytes(q, t, &made, &needed);
}

/* From the gradient of the result as its readers make it, S where they take a split, to the one that the op needs: S
 * where it makes a split, R where it makes terms. */
static int64_t result_bytes(const inference *q, const op_layouts *r, int o)
{
    const trama_layout *given = q->given[q->rule->n_in + o];
    trama_layout comes = r->out[o], needed = comes;
    for (int a = 0; a < comes.naxes; a++) {
        if (needed.axis[a].kind == TRAMA_PARTIAL)
            needed.axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        comes.axis[a] = needed.axis[a];
        if (given && given->axis[a].kind == TRAMA_SPLIT)
            comes.axis[a] = given->axis[a];
        else if (given && given->axis[a].kind != TRAMA_OPEN)
            comes.axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
    }
    if (layout_check(q->mesh, q->rule->tensor[q->rule->n_in + o].ndim, &comes, false))
        return 0;
    return infer_edge_bytes(q, q->rule->n_in + o, &comes, &needed);
}

/* The bytes of the changes of layout of the gradients of the operands that train. */
static int64_t reverse_bytes(const inference *q, const op_layouts *r)
{
    int64_t bytes = 0;
    if (!q->trains || !q->node->op->gradient)
        return 0;
    const unsigned working = working_axes(q, r);
    for (int t = 0; t < q->rule->n_in; t++)
        if (q->trains >> t & 1 && infer_uses(q, t))
            bytes += operand_bytes(q, r, t, working);
    for (int o = 0; o < q->rule->n_out; o++)
        bytes += result_bytes(q, r, o);
    return bytes;
}

/* ---- The op ---- */

/* Whether an operand is not in the layout that the user fixed for it, as far as that is said. */
static bool breaks_fixed(const inference *q, const op_layouts *r)
{
    for (int t = 0; q->node->fixed && t < q->rule->n_in; t++)
        for (int a = 0; a < q->mesh->ndim; a++) {
            const trama_placement *fixed = &q->node->fixed->in[t].axis[a], *computed = &r->in[t].axis[a];
            if (fixed->kind != TRAMA_OPEN &&
                (fixed->kind != computed->kind || (fixed->kind == TRAMA_SPLIT && fixed->dim != computed->dim)))
                return true;
        }
    return false;
}

/* The layout at the other end of the edge of operand or result t, which is computed as said. Where assignments of a
 * contested axis are compared, an open axis of a result keeps its split, and its terms are counted as summed; else a
 * split is counted as gathered, and terms stay. */
static trama_layout other_end(const inference *q, int t, const trama_layout *computed)
{
    const bool result = t >= q->rule->n_in;
    trama_layout end = q->given[t] ? *q->given[t] : layout_uniform(q->mesh, TRAMA_OPEN);
    end.mask = NULL;
    for (int a = 0; a < end.naxes; a++)
        if (end.axis[a].kind == TRAMA_OPEN)
            end.axis[a] = result && computed->axis[a].kind == (q->contested ? TRAMA_SPLIT : TRAMA_PARTIAL)
                              ? computed->axis[a]
                              : (trama_placement){.kind = TRAMA_REPLICATE};
    return end;
}

int64_t infer_bytes(const inference *q, const op_layouts *r)
{
    if (breaks_fixed(q, r))
        return INT64_MAX;
    int64_t cost = infer_reach_bytes(q->node, q->rule, r) + (q->contested ? reverse_bytes(q, r) : 0);
    for (int t = 0; t < q->n_tensors; t++) {
        const bool result = t >= q->rule->n_in;
        if (!infer_uses(q, t) && !(result && q->contested))
            continue;
        const trama_layout *computed = op_layout_of(r, q->rule->n_in, t);
        const trama_layout end = other_end(q, t, computed);
        if (!layout_check(q->mesh, q->rule->tensor[t].ndim, &end, false))
            cost += infer_edge_bytes(q, t, result ? computed : &end, result ? &end : computed);
    }
    return cost;
}
