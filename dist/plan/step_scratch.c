/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of steps: values that only the calls of one step see have no buffer on a CPU, but room in a memory of
 * the worker that runs the step. */
#include "plan.h"
#include "thresholds.h"

/* The smallest box that has all regions of the shard in the step. */
static box used_box(const plan *p, const plan_step *s, int shard)
{
    box used = {.ndim = -1};
    for (int i = 0; i < s->n_operands; i++) {
        const plan_region *r = &plan_step_operand(p, s, i)->region;
        if (r->shard != shard)
            continue;
        if (used.ndim < 0)
            used = r->box;
        for (int d = 0; d < used.ndim; d++) {
            const int64_t lo = min_i64(used.lo[d], r->box.lo[d]);
            used.n[d] = max_i64(used.lo[d] + used.n[d], r->box.lo[d] + r->box.n[d]) - lo;
            used.lo[d] = lo;
        }
    }
    return used;
}

static bool is_first(const plan *p, const plan_step *s, int operand)
{
    const int shard = plan_step_operand(p, s, operand)->region.shard;
    for (int i = 0; i < operand; i++)
        if (plan_step_operand(p, s, i)->region.shard == shard)
            return false;
    return true;
}

/* Places the values in the order of operands, up to one of a shard; -1: all of them. */
static plan_scratch find_scratch(const plan *p, const plan_step *s, int shard)
{
    plan_scratch found = {0};
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (!plan_in_scratch(p, &p->shards.at[o->region.shard]) || !is_first(p, s, i))
            continue;
        found.box = used_box(p, s, o->region.shard);
        if (o->region.shard == shard)
            break;
        found.at +=
            buffer_padded(box_count(&found.box) * (int64_t)trama_dtype_size(p->shards.at[o->region.shard].dtype));
    }
    return found;
}

plan_scratch plan_scratch_of(const plan *p, const plan_step *s, int operand)
{
    return find_scratch(p, s, plan_step_operand(p, s, operand)->region.shard);
}

int64_t plan_scratch_bytes(const plan *p, const plan_step *s)
{
    return s->kind == STEP_COMPUTE ? find_scratch(p, s, -1).at : 0;
}
