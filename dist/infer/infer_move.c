/* SPDX-License-Identifier: Apache-2.0 */
/* Splits of dims that must be whole, as those along which an op sorts or transforms: another dim takes them, so that
 * the processes exchange parts and share the work, and none gathers the whole. */
#include "infer_inside.h"

/* Whether an operand is split by the axis along a dim that must be whole. */
static bool splits_whole(const inference *q, int axis)
{
    for (int t = 0; t < q->rule->n_in; t++) {
        const trama_placement *p = infer_uses(q, t) ? &q->given[t]->axis[axis] : NULL;
        if (!p || p->kind != TRAMA_SPLIT)
            continue;
        if (rule_dim_is_whole(q->rule, t, p->dim))
            return true;
    }
    return false;
}

/* Whether all results have the factor, so that a split of it divides the work, and makes no terms. */
static bool divides_work(const inference *q, int factor)
{
    bool equal_only = false, divides = rule_splittable(q->rule, factor, &equal_only) && !equal_only;
    for (int t = q->rule->n_in; t < q->n_tensors; t++)
        divides &= rule_dim_of(q->rule, t, factor) >= 0;
    return divides;
}

void infer_move(inference *q)
{
    for (int a = 0; a < q->mesh->ndim; a++) {
        int to = -1;
        int64_t most = 0;
        if ((q->taken >> a & 1) || !splits_whole(q, a))
            continue;
        for (int f = 0; f < q->rule->n_factors; f++) {
            int64_t piece = q->rule->factor[f].extent / q->mesh->shape[a];
            for (int i = 0; i < q->split[f].n; i++)
                piece /= q->mesh->shape[q->split[f].axes[i]];
            if (piece > most && divides_work(q, f)) {
                to = f;
                most = piece;
            }
        }
        if (to >= 0) {
            q->split[to].axes[q->split[to].n++] = a;
            q->taken |= 1u << a;
        }
    }
}

bool infer_may_move(const inference *q)
{
    bool may = false;
    for (int a = 0; a < q->mesh->ndim && !q->node->op->updates; a++)
        may |= splits_whole(q, a);
    return may;
}
