/* SPDX-License-Identifier: Apache-2.0 */
/* Rooflines of steps. */
#include "step_cost.h"

#include <math.h>

#include "step_name.h"

static double operand_bytes(const plan *p, const plan_operand *o)
{
    return (double)box_count(&o->region.box) * (double)trama_dtype_size(p->shards.at[o->region.shard].dtype);
}

double step_bytes(const plan *p, const plan_step *s)
{
    double bytes = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (o->access != ACCESS_NONE)
            bytes += operand_bytes(p, o);
    }
    return bytes;
}

static double remote_bytes(const plan *p, const plan_step *s)
{
    double bytes = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (plan_is_remote(p, s->place, &p->shards.at[o->region.shard]))
            bytes += operand_bytes(p, o);
    }
    return bytes;
}

/* The element type in which a step computes. */
static trama_dtype dtype_of(const plan *p, const plan_step *s, const trama_node *node)
{
    if (node && node->op->n_in && trama_dtype_is_float(node->in[0]->dtype))
        return node->in[0]->dtype;
    if (node)
        return node->out[0]->dtype;
    return p->shards.at[plan_step_operand(p, s, 0)->region.shard].dtype;
}

double step_seconds(const cluster_kind *k, const plan *p, const trama_program *program, const plan_step *s)
{
    static const char *const moves[] = {[STEP_COPY] = "copy", [STEP_REDUCE] = "sum", [STEP_FILL] = "fill"};
    if (s->kind == STEP_ORDER || s->kind >= STEP_COLLECTIVE)
        return 0;
    const bool gpu = plan_on_gpu(p, s->place);
    const trama_node *node = s->kind == STEP_COMPUTE ? step_main_node(p, program, s) : NULL;
    const char *op = node ? node->op->name : moves[s->kind];
    const double bytes = step_bytes(p, s), remote = remote_bytes(p, s);
    double seconds = bytes / cluster_rate_of(k, gpu, op, RATE_MEMORY, bytes);
    if (s->flops > 0)
        seconds = fmax(seconds, s->flops / cluster_rate_of(k, gpu, op, (int)dtype_of(p, s, node), s->flops));
    return seconds + remote / k->pcie;
}
