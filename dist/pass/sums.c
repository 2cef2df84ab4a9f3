/* SPDX-License-Identifier: Apache-2.0 */
/* Values whose terms are summed once, where they are made, because several ops read them and one of these ops, or one
 * behind it, needs the sum. It looks at frozen layouts and decides no other layout. */
#include "complete_internal.h"

void reduce_terms(trama_layout *layout, const trama_layout *summed)
{
    for (int a = 0; a < summed->naxes; a++) {
        if (layout->axis[a].kind != TRAMA_PARTIAL || summed->axis[a].kind == TRAMA_OPEN)
            continue;
        layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        if (summed->axis[a].kind == TRAMA_SPLIT)
            layout_add_split(layout, summed->axis[a].dim, a);
    }
}

/* By value id, along partial axes. */
typedef struct demand {
    int readers;        /* ops that read the value */
    bool accumulates;   /* its terms are added up over micro-steps */
    trama_layout wants; /* the R or S that a reader needs in place of the terms, or one behind it; else open */
} demand;

/* Notes a placement for an axis. A split is preferred to R: whoever needs R gathers it, for as many bytes in all. */
static void want(demand *d, int axis, trama_placement placement)
{
    trama_placement *has = &d->wants.axis[axis];
    if (has->kind == TRAMA_OPEN || (has->kind == TRAMA_REPLICATE && placement.kind == TRAMA_SPLIT))
        *has = placement;
}

/* The reader takes its operand in another layout, which differs in the sums only. */
static void want_directly(demand *d, const trama_layout *have, const trama_layout *reads)
{
    trama_layout summed = *have, wants = *reads;
    for (int a = 0; a < have->naxes; a++)
        if (have->axis[a].kind != TRAMA_PARTIAL || reads->axis[a].kind == TRAMA_PARTIAL)
            wants.axis[a].kind = TRAMA_OPEN;
    reduce_terms(&summed, &wants);
    for (int a = 0; a < have->naxes && trama_layout_equal(&summed, reads); a++)
        if (wants.axis[a].kind != TRAMA_OPEN)
            want(d, a, wants.axis[a]);
}

/* Whether the op turns terms of operand t along the axis into terms of as large a result, and has no others there. */
static bool passes_alone(const completion *c, const trama_node *node, int t, int axis)
{
    const op_layouts *op = c->l->op[node->id];
    const trama_rule *rule = c->rules.of[node->id];
    int64_t n[2] = {1, 1};
    bool alone = node->op->n_out == 1 && !node->out[0]->mesh && op->in[t].axis[axis].kind == TRAMA_PARTIAL;
    for (int i = 0; i < node->op->n_in; i++)
        alone &= i == t || op->in[i].axis[axis].kind != TRAMA_PARTIAL || (node->op->shape_only >> i & 1);
    for (int k = 0; k < 2; k++) {
        const int tensor = k ? rule->n_in : t;
        const trama_value *v = node_tensor(node, tensor);
        for (int d = 0; d < v->shape.ndim; d++)
            n[k] *= rule_extent(rule, tensor, d, v->shape.dim[d]);
    }
    return alone && n[1] >= n[0] && c->l->value[node->out[0]->id].axis[axis].kind == TRAMA_PARTIAL;
}

/* A dim of the result in operand t; -1 where it is none. */
static int dim_in_operand(const trama_rule *rule, int t, int dim)
{
    const rule_dim *d = &rule->tensor[rule->n_in].dim[dim];
    return d->n ? rule_dim_of(rule, t, d->factor[0]) : -1;
}

static void want_behind(completion *c, const trama_node *node, int t, demand *d, const demand *behind)
{
    for (int a = 0; a < behind->wants.naxes; a++) {
        trama_placement placement = behind->wants.axis[a];
        if (placement.kind == TRAMA_OPEN || !passes_alone(c, node, t, a))
            continue;
        if (placement.kind == TRAMA_SPLIT)
            placement.dim = dim_in_operand(c->rules.of[node->id], t, placement.dim);
        if (placement.kind != TRAMA_SPLIT || placement.dim >= 0)
            want(d, a, placement);
    }
}

/* Only forward readers count for forward values, so that gradients do not change these. */
static bool may_decide(const completion *c, const trama_node *reader, const trama_value *v)
{
    return v->node && !v->mesh && c->l->mesh[v->id] == c->l->op[reader->id]->mesh &&
           (v->node->role != NODE_FORWARD || reader->role == NODE_FORWARD);
}

static void find_demands(completion *c, demand *of)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->values.n; i++)
        of[i].wants = layout_uniform(c->l->mesh[i], TRAMA_OPEN);
    for (int i = p->nodes.n - 1; i >= 0; i--) {
        const trama_node *node = p->nodes.at[i];
        for (int t = 0; t < node->op->n_in; t++) {
            const trama_value *v = node->in[t];
            if ((node->op->shape_only >> t & 1) || !layout_has(&c->l->value[v->id], TRAMA_PARTIAL) ||
                !may_decide(c, node, v))
                continue;
            of[v->id].readers++;
            of[v->id].accumulates |= node->role == NODE_MERGE;
            const trama_layout *reads = node->op->alias ? &c->l->value[node->out[0]->id] : &c->l->op[i]->in[t];
            if (node->op->alias && c->l->mesh[node->out[0]->id] != c->l->mesh[v->id])
                continue;
            if (!trama_layout_equal(&c->l->value[v->id], reads))
                want_directly(&of[v->id], &c->l->value[v->id], reads);
            else if (node->op->n_out == 1 && c->l->mesh[node->out[0]->id] == c->l->op[i]->mesh)
                want_behind(c, node, t, &of[v->id], &of[node->out[0]->id]);
        }
    }
}

bool find_sums(completion *c)
{
    const trama_program *p = c->program;
    demand *of = trama_alloc((size_t)p->values.n * sizeof *of);
    bool changed = false;
    find_demands(c, of);
    for (int i = 0; i < p->values.n; i++) {
        if (of[i].readers < 2 || of[i].accumulates)
            continue;
        if (!c->summed[i].naxes)
            c->summed[i] = layout_uniform(c->l->mesh[i], TRAMA_OPEN);
        for (int a = 0; a < of[i].wants.naxes; a++)
            if (of[i].wants.axis[a].kind != TRAMA_OPEN && c->summed[i].axis[a].kind == TRAMA_OPEN) {
                c->summed[i].axis[a] = of[i].wants.axis[a];
                changed = true;
            }
    }
    free(of);
    return changed;
}
