/* SPDX-License-Identifier: Apache-2.0 */
/* Times of flops and of bytes. */
#include "step_cost.h"

#include <math.h>

#include "step_name.h"

int step_times(const plan_operand *o)
{
    static const int times[] = {[ACCESS_NONE] = 0, [ACCESS_READ] = 1, [ACCESS_WRITE] = 2, [ACCESS_UPDATE] = 2};
    return times[o->access];
}

/* Of a step's results, or of its operands that are read only. */
static double bytes_of(const plan *p, const plan_step *s, bool results)
{
    double bytes = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (o->access != ACCESS_NONE && (o->access != ACCESS_READ) == results)
            bytes += step_times(o) * (double)plan_region_bytes(p, &o->region);
    }
    return bytes;
}

double step_bytes(const plan *p, const plan_step *s)
{
    return bytes_of(p, s, false) + bytes_of(p, s, true);
}

static double remote_bytes(const plan *p, const plan_step *s)
{
    double bytes = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_operand *o = plan_step_operand(p, s, i);
        if (plan_is_remote(p, s->place, &p->shards.at[o->region.shard]))
            bytes += (double)plan_region_bytes(p, &o->region);
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

/* The name under which a machine has the rates of the step's op. Products with a vector have kernels of their own, and
 * ops that a program defines share the rates of `own`. */
static const char *rates_of(const cluster_kind *k, const plan *p, const plan_step *s, const trama_node *node)
{
    static const char *const moves[] = {[STEP_COPY] = "copy", [STEP_REDUCE] = "add", [STEP_FILL] = "fill"};
    if (node && node->op->own && !cluster_has_rates(k, node->op->name) && cluster_has_rates(k, "own"))
        return "own";
    if (!node || node->op != &trama_op_matmul)
        return node ? node->op->name : moves[s->kind];
    const plan_call *call = &p->calls.at[s->call];
    while (call->node != node->id)
        call++;
    const box *result = &plan_step_operand(p, s, call->out[0])->region.box;
    const bool vector = result->ndim >= 1 &&
                        (result->n[result->ndim - 1] == 1 || (result->ndim >= 2 && result->n[result->ndim - 2] == 1));
    return vector ? "matvec" : node->op->name;
}

/* plain: those of the bytes that come at the rate of memory, whatever the op. */
static double seconds_of_bytes(const cluster_kind *k, bool gpu, const char *op, double bytes, double plain,
                               step_reuse reuse)
{
    const double memory = cluster_rate_of(k, gpu, NULL, RATE_MEMORY, bytes);
    double seconds = (bytes - plain) / cluster_rate_of(k, gpu, op, RATE_MEMORY, bytes) + plain / memory;
    if (gpu || (reuse.cached <= 0 && reuse.far <= 0 && reuse.lent <= 0))
        return seconds;
    if (reuse.far > 0 && k->far_rate > 0)
        seconds = fmax(seconds, reuse.far / k->far_rate + (bytes - reuse.far) / memory);
    if (reuse.lent > 0 && cluster_has_rates(k, "lent"))
        seconds += reuse.lent * fmax(0, 1 / cluster_rate_of(k, false, "lent", RATE_MEMORY, reuse.lent) - 1 / memory);
    if (reuse.cached <= 0 || k->cache_rate <= 0)
        return seconds;
    const double saved = reuse.cached * (1 / memory - 1 / k->cache_rate);
    return fmin(seconds, fmax(seconds - saved, bytes / k->cache_rate));
}

double step_seconds(const cluster_kind *k, const plan *p, const trama_program *program, const plan_step *s,
                    double bytes, step_reuse reuse)
{
    if (!step_moves(s))
        return 0;
    const bool gpu = plan_on_gpu(p, s->place);
    const trama_node *node = s->kind == STEP_COMPUTE ? step_main_node(p, program, s) : NULL;
    const char *op = rates_of(k, p, s, node);
    const double remote = remote_bytes(p, s);
    const bool product = node && node->op == &trama_op_matmul && !gpu;
    const double moves = seconds_of_bytes(k, gpu, op, bytes, product ? bytes_of(p, s, true) : 0, reuse);
    const double computes =
        s->flops > 0 ? s->flops / cluster_rate_of(k, gpu, op, (int)dtype_of(p, s, node), s->flops) : 0;
    return (product ? computes + moves : fmax(computes, moves)) + remote / k->pcie;
}
