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

/* Seconds that bytes take more than from memory, at the rate of an op's name. */
static double slower(const cluster_kind *k, const char *name, double bytes, double memory)
{
    if (bytes <= 0 || !cluster_has_rates(k, name))
        return 0;
    return bytes * fmax(0, 1 / cluster_rate_of(k, false, name, RATE_MEMORY, bytes) - 1 / memory);
}

/* The work of a step on a core. */
typedef struct core_work {
    const char *op;         /* of its rates */
    double computes, bytes; /* seconds of its flops; step_bytes */
    double plain;           /* those of the bytes that come at the rate of memory, whatever the op */
    double memory;          /* that rate */
} core_work;

/* Of operands that are far, and of all others at the rate of memory. */
static double seconds_of_far(const cluster_kind *k, const core_work *w, step_reuse reuse)
{
    if (reuse.far <= 0 || k->far_rate <= 0)
        return 0;
    const double writes = k->far_writes > 0 ? k->far_writes : k->far_rate;
    return (reuse.far - reuse.far_written) / k->far_rate + reuse.far_written / writes +
           (w->bytes - reuse.far) / w->memory;
}

/* Of operands in caches, at the rate of the op. */
static double seconds_of_near(const cluster_kind *k, const core_work *w, double cached)
{
    const double rate = cluster_rate_of(k, false, w->op, RATE_MEMORY, w->bytes);
    const double seconds = (w->bytes - w->plain) / rate + w->plain / w->memory;
    if (cached <= 0 || k->cache_rate <= 0)
        return seconds;
    const double saved = cached * (1 / w->memory - 1 / k->cache_rate);
    return fmin(seconds, fmax(seconds - saved, w->bytes / k->cache_rate));
}

static double seconds_on_core(const cluster_kind *k, const core_work *w, const trama_node *node, step_reuse reuse)
{
    const double near = seconds_of_near(k, w, reuse.cached), far = seconds_of_far(k, w, reuse);
    double seconds = fmax(fmax(w->computes, near), far);
    if (node && node->op == &trama_op_matmul)
        seconds = w->computes + fmax(near, far);
    else if (node && node->op->own) /* its rate of flops is that of data in the core's cache */
        seconds = fmax(w->computes + near * (1 - reuse.cached / fmax(1, w->bytes)), far);
    return seconds + slower(k, "lent", reuse.lent, w->memory) + slower(k, "shared", reuse.shared, w->memory);
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
    const double computes =
        s->flops > 0 ? s->flops / cluster_rate_of(k, gpu, op, (int)dtype_of(p, s, node), s->flops) : 0;
    if (gpu)
        return remote / k->pcie + fmax(computes, bytes / cluster_rate_of(k, true, op, RATE_MEMORY, bytes));
    const core_work w = {.op = op,
                         .computes = computes,
                         .bytes = bytes,
                         .plain = node && node->op == &trama_op_matmul ? bytes_of(p, s, true) : 0,
                         .memory = cluster_rate_of(k, false, NULL, RATE_MEMORY, bytes)};
    return remote / k->pcie + seconds_on_core(k, &w, node, reuse);
}
