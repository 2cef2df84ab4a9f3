/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of a step are done as one. Groups of nodes are made before (dist/pass/group/fuse.c), from the program
 * alone; this file decides by the boxes and buffers that a step has on its place, and by traits of the ops. It names no
 * op. */
#include "planner.h"

/* A compute step, and its calls. */
typedef struct step_calls {
    const plan *p;
    const trama_program *program;
    const plan_step *step;
    plan_call *at; /* [step->n_calls] */
} step_calls;

static const trama_node *node_of(const step_calls *c, int i)
{
    return c->program->nodes.at[c->at[i].node];
}

static const plan_region *region_of(const step_calls *c, int operand)
{
    return &plan_step_operand(c->p, c->step, operand)->region;
}

static trama_dtype dtype_of(const step_calls *c, int operand)
{
    return c->p->shards.at[region_of(c, operand)->shard].dtype;
}

/* How often call i reads an operand of the step. */
static int count_reads(const step_calls *c, int i, int operand)
{
    int n = 0;
    for (int t = 0; t < node_of(c, i)->op->n_in; t++)
        n += c->at[i].in[t] == operand;
    return n;
}

static bool is_internal(const step_calls *c, int operand)
{
    return plan_step_operand(c->p, c->step, operand)->access == ACCESS_NONE;
}

/* Whether call k writes the shard of an operand of call i. */
static bool writes_operand(const step_calls *c, int k, int i)
{
    const int written = region_of(c, c->at[k].out[0])->shard;
    for (int t = 0; t < node_of(c, i)->op->n_in; t++)
        if (c->at[i].in[t] >= 0 && region_of(c, c->at[i].in[t])->shard == written)
            return true;
    return false;
}

/* Whether call i + 1 alone sees the result of call i, as one of its operands, and writes nothing that call i reads. */
static bool is_for_next(const step_calls *c, int i)
{
    const plan_call *made = &c->at[i];
    if (i + 1 >= c->step->n_calls || !is_internal(c, made->out[0]) || count_reads(c, i + 1, made->out[0]) != 1)
        return false;
    for (int k = i + 2; k < c->step->n_calls; k++)
        if (count_reads(c, k, made->out[0]))
            return false;
    return !writes_operand(c, i + 1, i);
}

/* ---- Products ---- */

/* A BLAS that is told a factor of 0 does not multiply, so NaN would be lost. A GPU's kernel takes its factor from the
 * host, where operands cannot be read. */
static bool can_add(const step_calls *c, const trama_node *update)
{
    return update->op->addition == TRAMA_ADDITION_OPERANDS ? !plan_on_gpu(c->p, c->step->place)
                                                           : update->attributes->real[0] != 0;
}

static bool is_addition(const step_calls *c, int i)
{
    if (!is_for_next(c, i) || !node_of(c, i + 1)->op->addition)
        return false;
    return trama_dtype_is_float(node_of(c, i)->out[0]->dtype) && can_add(c, node_of(c, i + 1)) &&
           c->at[i + 1].in[1] == c->at[i].out[0];
}

/* ---- Calls that keep the order of elements ---- */

/* Whether call i is pointwise over the n elements of the step's first result; its operands have n elements or one. */
static bool keeps_order(const step_calls *c, int i, int64_t n)
{
    const trama_op *op = node_of(c, i)->op;
    for (int t = 0; t < op->n_in; t++) {
        const int64_t count = c->at[i].in[t] < 0 ? 0 : box_count(&region_of(c, c->at[i].in[t])->box);
        if (count != n && count != 1)
            return false;
    }
    for (int o = 0; o < op->n_out; o++)
        if (box_count(&region_of(c, c->at[i].out[o])->box) != n)
            return false;
    return op->pointwise;
}

/* Whether call i only converts floats of one type to another. */
static bool is_cast(const step_calls *c, int i)
{
    const trama_node *node = node_of(c, i);
    const trama_op *op = node->op;
    return op->pointwise && op->exact && !op->own && !op->updates && op->n_in == 1 && op->n_out == 1 &&
           trama_dtype_is_float(node->in[0]->dtype) && trama_dtype_is_float(node->out[0]->dtype) &&
           node->in[0]->dtype != node->out[0]->dtype;
}

static bool is_made_since(const step_calls *c, int first, int i, int operand)
{
    bool made = first == 0 && c->step->n_terms && c->step->sum == operand;
    for (int k = first; k < i; k++)
        made |= c->at[k].out[0] == operand;
    return made;
}

/* Whether one kernel of a GPU can compute call i, in a chain from call `first` on, over elements of a type. Scalars of
 * updates may be of any. A cast from another type reads memory. */
static bool is_of_chain(const step_calls *c, int first, int i, trama_dtype dtype)
{
    const trama_node *node = node_of(c, i);
    bool same = node->op->pointwise && !node->op->own && trama_dtype_is_float(dtype);
    if (is_cast(c, i))
        return node->in[0]->dtype == dtype ||
               (node->out[0]->dtype == dtype && !is_made_since(c, first, i, c->at[i].in[0]));
    for (int t = 0; t < node->op->n_in && !node->op->updates; t++)
        same = same && node->in[t]->dtype == dtype;
    for (int o = 0; o < node->op->n_out; o++)
        same = same && node->out[o]->dtype == dtype;
    return same;
}

/* The end of the chain that begins at call i; i: none does. An update ends a chain, and so do an op of another type,
 * another number of elements, a call that is not for chains, and the greatest length. */
static int chain_end(const step_calls *c, int i)
{
    const trama_dtype dtype = node_of(c, i)->out[0]->dtype;
    const int64_t n = box_count(&region_of(c, c->at[i].out[0])->box);
    int end = i;
    while (end < c->step->n_calls && end - i < FUSED_MOST_CHAINED && is_of_chain(c, i, end, dtype) &&
           box_count(&region_of(c, c->at[end].out[0])->box) == n)
        if (node_of(c, end++)->op->updates)
            break;
    return end;
}

/* ---- Products with calls behind them ---- */

/* The calls of the chain behind product i, which its kernel may compute on the way: all that read the product are among
 * them, none updates state (the chain alone then takes no more kernels), and none writes what the product reads. Relu
 * is left to kernels of our own, as cuBLASLt computes it as max(x, 0), which may lose NaN: on an H200 cuBLASLt 13.1
 * does so in products of f32, not of halves. */
static int count_epilogues(const step_calls *c, int i)
{
    const plan_call *made = &c->at[i];
    if (i + 1 >= c->step->n_calls || !plan_on_gpu(c->p, c->step->place) || !is_internal(c, made->out[0]) ||
        dtype_of(c, made->out[0]) != node_of(c, i + 1)->out[0]->dtype ||
        box_count(&region_of(c, made->out[0])->box) != box_count(&region_of(c, c->at[i + 1].out[0])->box))
        return 0;
    const int end = chain_end(c, i + 1);
    if (end == i + 1 || node_of(c, end - 1)->op->updates)
        return 0;
    for (int k = end; k < c->step->n_calls; k++)
        if (count_reads(c, k, made->out[0]))
            return 0;
    for (int k = i + 1; k < end; k++)
        if (writes_operand(c, k, i))
            return 0;
    return end - i - 1;
}

static fused_run fuse_product(const step_calls *c, int i)
{
    if (is_addition(c, i))
        return (fused_run){FUSED_ADDITION, 2};
    const int n = count_epilogues(c, i);
    return n ? (fused_run){FUSED_EPILOGUE, 1 + n} : (fused_run){0};
}

/* `sums`: the sum before the step's calls can be of the first chain. */
static void fuse_chains(const step_calls *c, bool sums)
{
    int i = c->step->n_terms && !sums ? 1 : 0;
    while (i < c->step->n_calls) {
        const int end = chain_end(c, i);
        for (int k = i; k < end; k++) { /* from a cast to another type on a chain would be of that type */
            const bool other = node_of(c, k)->out[0]->dtype != node_of(c, i)->out[0]->dtype;
            const int last = other ? (int)min_i64(end, chain_end(c, k)) : end;
            if (last - k > 1 || (k == 0 && c->step->n_terms))
                c->at[k].fused = (fused_run){FUSED_CHAIN, last - k};
        }
        i = end > i ? end : i + 1;
    }
}

static void fuse_elements(const step_calls *c)
{
    const plan_step *s = c->step;
    const int64_t n = box_count(&region_of(c, c->at[0].out[0])->box);
    bool chunks = n > 1;
    for (int i = 0; i < s->n_calls && chunks; i++)
        chunks = keeps_order(c, i, n);
    const bool whole = !s->n_terms || box_count(&region_of(c, s->sum)->box) == n;
    if (chunks && whole)
        c->at[0].fused = (fused_run){FUSED_CHUNKS, s->n_calls};
    if (plan_on_gpu(c->p, s->place))
        fuse_chains(c, whole && (!s->n_terms || dtype_of(c, s->sum) == node_of(c, 0)->out[0]->dtype));
}

void fuse_calls(partition *q)
{
    for (int i = 0; i < q->p->steps.n; i++) {
        const plan_step *s = &q->p->steps.at[i];
        if (s->kind != STEP_COMPUTE || s->n_calls + (s->n_terms > 0) < 2)
            continue;
        const step_calls c = {q->p, q->s.program, s, &q->p->calls.at[s->call]};
        for (int k = 0; k < s->n_calls; k++)
            if (node_of(&c, k)->op->product)
                c.at[k].fused = fuse_product(&c, k);
        fuse_elements(&c);
    }
}
