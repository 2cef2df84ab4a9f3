/* SPDX-License-Identifier: Apache-2.0 */
/* How many tiles a box is worth, and along which dim it is cut into them. */
#include <math.h>

#include "planner.h"
#include "thresholds.h"

int64_t partition_most_tiles(const partition *q, int place, int pieces)
{
    const int64_t most = q->s.options.max_tiles ? q->s.options.max_tiles : q->s.machine->places[place].workers;
    return max_i64(1, most / max_i64(1, pieces));
}

int partition_parts(const partition *q, int place, int pieces, plan_worth worth)
{
    const double most = (double)partition_most_tiles(q, place, pieces);
    const double by_bytes = worth.bytes / (double)max_i64(1, q->s.options.grain_bytes),
                 by_flops = worth.flops / (double)max_i64(1, q->s.options.grain_flops);
    return (int)fmax(1, fmin(fmax(by_bytes, by_flops), most));
}

void partition_cut(const partition *q, const box *b, trama_dtype dtype, int place, int pieces, int *cut_dim,
                   int *cut_parts)
{
    int dim = 0;
    for (int d = 1; d < b->ndim; d++)
        if (b->n[d] > b->n[dim])
            dim = d;
    *cut_dim = b->ndim ? dim : -1;
    const plan_worth worth = {.bytes = (double)box_count(b) * (double)trama_dtype_size(dtype)};
    *cut_parts = b->ndim ? (int)max_i64(1, min_i64(partition_parts(q, place, pieces, worth), b->n[dim])) : 1;
}

int partition_sum_tiles(const partition *q, int64_t bytes)
{
    int64_t least = q->s.options.sum_tile ? q->s.options.sum_tile : SUM_TILE;
    return (int)max_i64(1, min_i64(MAX_TILES, bytes / least));
}

int64_t partition_sum_task(const partition *q)
{
    return q->s.options.sum_tile ? q->s.options.sum_tile : SUM_TASK;
}

int64_t cut_minor_extent(const trama_rule *rule, const rule_dim *dim, int leading)
{
    int64_t extent = 1;
    for (int i = 0; i < dim->n; i++)
        if (dim->factor[i] != leading)
            extent *= rule->factor[(int)dim->factor[i]].extent;
    return extent;
}

int cut_factor(const trama_rule *rule, int t, int dim)
{
    bool equal_only, may = true;
    int f = 0;
    while (f < rule->n_factors && rule_dim_of(rule, t, f) != dim)
        f++;
    for (int o = rule->n_in; o < rule->n_in + rule->n_out && f < rule->n_factors; o++) {
        int d = rule_dim_of(rule, o, f);
        may &= d >= 0 && cut_minor_extent(rule, &rule->tensor[o].dim[d], f) == 1;
    }
    return f < rule->n_factors && may && rule_splittable(rule, f, &equal_only) ? f : -1;
}

/* The dim that has most indices of those whose first factor falls into equal parts; -1. */
static int merged_dim_of(const trama_rule *rule, int t, const box *b, int parts)
{
    int best = -1;
    for (int d = 0; d < b->ndim && rule->n_out == 1; d++) {
        const rule_dim *dim = &rule->tensor[t].dim[d];
        const int f = dim->n > 1 ? dim->factor[0] : -1;
        const int64_t minor = f >= 0 ? cut_minor_extent(rule, dim, f) : 0;
        bool equal_only;
        if (minor > 0 && rule_splittable(rule, f, &equal_only) && (best < 0 || b->n[d] > b->n[best]) &&
            b->n[d] % (parts * minor) == 0)
            best = d;
    }
    return best;
}

int cut_dim_of(const trama_rule *rule, int t, const box *b, int parts)
{
    int best = -1;
    int64_t best_room = 0;
    bool best_equal = false;
    for (int d = 0; d < b->ndim; d++) {
        int f = cut_factor(rule, t, d);
        int64_t room = min_i64(b->n[d], parts);
        bool equal = f >= 0 && !rule->factor[f].cut_last;
        if (f < 0 || (best >= 0 && (room != best_room     ? room < best_room
                                    : equal != best_equal ? best_equal
                                                          : b->n[d] <= b->n[best])))
            continue;
        best = d;
        best_room = room;
        best_equal = equal;
    }
    return best < 0 ? merged_dim_of(rule, t, b, parts) : best;
}

/* ---- Sums of large operands to small results ---- */

enum { LITTLE = 512 /* elements */ };

/* The factor of the outermost dim of an operand that is reduced (sum, max, min) and has at least n indices; -1:
 * none. */
static int summed_factor(const trama_rule *rule, int t, const factor_ranges *r, int n)
{
    for (int d = 0; d < rule->tensor[t].ndim; d++)
        for (int f = 0; f < rule->n_factors; f++) {
            bool equal_only;
            if (rule_dim_of(rule, t, f) == d && rule_dim_of(rule, rule->n_in, f) < 0 && r->n[f] >= n &&
                rule->factor[f].reduce != TRAMA_AVG && rule_splittable(rule, f, &equal_only) &&
                cut_minor_extent(rule, &rule->tensor[t].dim[d], f) == 1)
                return f;
        }
    return -1;
}

int summed_parts(const compute_group *g, const plan_local_box *piece, int *factor)
{
    const partition *q = g->q;
    const trama_node *node = g->nodes.at[0];
    const trama_rule *rule = q->s.rules[node->id];
    if (g->nodes.n > 1 || node->op->n_out != 1 || node->op->updates || box_count(&piece->region.box) > LITTLE ||
        halo_reaches(g) || plan_on_gpu(q->p, piece->place))
        return 1;
    factor_ranges r = factor_ranges_of_result(g, node, piece->position, &piece->region.box);
    for (int t = 0; t < rule->n_in; t++) {
        box whole = partition_whole(q, node->in[t]->id), b = factor_box(rule, t, &r, &whole);
        int n = partition_sum_tiles(q, box_count(&b) * (int64_t)trama_dtype_size(node->in[t]->dtype));
        if (n < 2 || (node->op->shape_only >> t & 1))
            continue;
        *factor = summed_factor(rule, t, &r, n);
        if (*factor >= 0)
            return n;
    }
    return 1;
}
