/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that an op reads beyond its own part of an operand: neighbours of a stencil, rows at a border. They come
 * beside changes of layout, from the processes whose part they are. */
#include "infer_inside.h"

/* Whether an axis splits a dim of operand t of which neighbours are read. */
static bool splits_reach(const rule_tensor *tensor, const trama_layout *layout)
{
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_SPLIT && !reach_is_none(&tensor->reach[layout->axis[a].dim]))
            return true;
    return false;
}

/* How many of n indices from lo on, which may wrap around, lie among `own` from `from` on. */
static int64_t among(int64_t lo, int64_t n, int64_t from, int64_t own, int64_t extent)
{
    int64_t inside = 0;
    for (int turn = -1; turn <= 1; turn++)
        inside += max_i64(0, min_i64(lo + n, from + own + turn * extent) - max_i64(lo, from + turn * extent));
    return min_i64(inside, own);
}

/* Elements of a box that another one lacks. */
static int64_t lacking(const box *needed, const box *own, const box *whole)
{
    int64_t all = 1, inside = 1;
    for (int d = 0; d < whole->ndim; d++) {
        const int64_t n = min_i64(needed->n[d], whole->n[d]);
        all *= n;
        inside *= among(needed->lo[d], n, own->lo[d], own->n[d], whole->n[d]);
    }
    return all - inside;
}

int64_t infer_reach_bytes(const trama_node *node, const trama_rule *rule, const op_layouts *op)
{
    box whole[2 * TRAMA_MAX_OPERANDS], own[2 * TRAMA_MAX_OPERANDS];
    const int n = rule->n_in + rule->n_out;
    unsigned reaching = 0;
    int64_t most = 0;
    for (int t = 0; t < rule->n_in; t++)
        if (node_reads(node, t) && trama_shape_count(node->in[t]->shape) && splits_reach(&rule->tensor[t], &op->in[t]))
            reaching |= 1u << t;
    if (!reaching || !trama_shape_count(node->out[0]->shape))
        return 0;
    for (int t = 0; t < n; t++)
        whole[t] = infer_whole(node, rule, t);
    for (int position = 0; position < op->mesh->size; position++) {
        int64_t bytes = 0;
        for (int t = 0; t < n; t++)
            layout_box(op->mesh, op_layout_of(op, rule->n_in, t), &whole[t], position, &own[t]);
        if (!layout_present(&op->out[0], position) || !box_count(&own[rule->n_in]))
            continue;
        for (int t = 0; t < rule->n_in; t++)
            if (reaching >> t & 1) {
                const box needed = rule_operand_box(rule, t, own, &whole[t]);
                bytes += lacking(&needed, &own[t], &whole[t]) * (int64_t)trama_dtype_size(node->in[t]->dtype);
            }
        most = max_i64(most, bytes);
    }
    return most;
}
