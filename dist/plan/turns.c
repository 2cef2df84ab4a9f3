/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that take the parts of an operand in turn, as these arrive from other processes: each part is a step of its own,
 * which computes while later parts are on their way. */
#include "planner.h"

static bool is_in_results(const trama_rule *rule, int factor)
{
    for (int o = 0; o < rule->n_out; o++)
        if (rule_dim_of(rule, rule->n_in + o, factor) >= 0)
            return true;
    return false;
}

/* The part that lies where a box of the first result does, by the dim of the same number from the last one, is the
 * process's own where both are split alike. It is there at once, so it comes first; where each part makes one of a
 * result, which others wait for, it comes last. Replicas of the result take all parts in one order. */
static int first_part(const compute_group *g, const box *result, const in_turns *of, int ndim)
{
    const trama_node *node = g->nodes.at[0];
    const box whole = partition_whole(g->q, node->out[0]->id);
    const int d = result->ndim - ndim + of->dim;
    const int own = d < 0 || whole.n[d] == 0 ? 0 : (int)min_i64(result->lo[d] * of->parts / whole.n[d], of->parts - 1);
    return is_in_results(g->q->s.rules[node->id], of->factor) ? (own + of->parts - 1) % of->parts : own;
}

bool turns_find(const compute_group *g, int position, const box *result, in_turns *found)
{
    const partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const trama_rule *rule = q->s.rules[node->id];
    for (int t = 0; t < rule->n_in && g->nodes.n == 1; t++) {
        for (int f = 0; f < rule->n_factors; f++) {
            const int d = rule->factor[f].in_turn ? rule_dim_of(rule, t, f) : -1;
            if (d < 0 || rule->tensor[t].dim[d].n != 1)
                continue;
            const plan_local_box *piece = compute_operand(g, node, t, position);
            const plan_shard *shard = &q->p->shards.at[piece->region.shard];
            if (!shard->arrives || shard->cut_dim != d || shard->cut_parts < 2 ||
                !box_equal(&shard->box, &piece->region.box))
                continue;
            *found = (in_turns){.factor = f, .dim = d, .parts = shard->cut_parts, .shard = piece->region.shard};
            found->first = first_part(g, result, found, shard->box.ndim);
            return true;
        }
    }
    return false;
}

bool turns_cut(const compute_group *g, const plan_local_box *piece, int t, int *dim, int *parts)
{
    const trama_rule *rule = g->q->s.rules[g->leader];
    in_turns of;
    if (!turns_find(g, piece->position, &piece->region.box, &of))
        return false;
    const plan_shard *shard = &g->q->p->shards.at[of.shard];
    const int d = rule_dim_of(rule, t, of.factor);
    if (d < 0 || piece->region.box.lo[d] != shard->box.lo[of.dim] || piece->region.box.n[d] != shard->box.n[of.dim])
        return false;
    *dim = d;
    *parts = of.parts;
    return true;
}

void turns_part(const compute_group *g, const in_turns *of, int i, int64_t *lo, int64_t *n)
{
    const box tile = plan_tile(&g->q->p->shards.at[of->shard], (of->first + of->parts - i) % of->parts);
    *lo = tile.lo[of->dim];
    *n = tile.n[of->dim];
}
