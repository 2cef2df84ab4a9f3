/* SPDX-License-Identifier: Apache-2.0 */
/* The fusion pass. It changes no value, only which steps become one. */
#include "fuse.h"

#include "rule.h"

enum { MAX_EXTERNAL = 24, MAX_CALLS = 64 }; /* a group's operands from outside (handles of its tasks), and its nodes */

typedef struct fusion {
    const trama_program *program;
    const bool *needed;
    const layouts *l;
    const trama_shape *shapes;
    const trama_rule *const *rules;
    int *leader, *external, *calls; /* external, calls [leader]: operands of the group from outside and nodes, so far */
    bool *ended; /* [leader]: its last node updates state, so that nodes which may read the old state come after it; or
                    it takes parts of an operand in turn, and has its result behind the last */
} fusion;

static bool same_layout(const fusion *f, const trama_node *node, int t)
{
    const trama_value *v = node->in[t];
    const op_layouts *mine = f->l->op[node->id], *theirs = f->l->op[v->node->id];
    return mine->mesh == theirs->mesh && trama_layout_equal(&mine->in[t], &theirs->out[v->result]) &&
           trama_layout_equal(&f->l->value[v->id], &theirs->out[v->result]);
}

/* A state that the node updates must not be read by a node that would then run after it instead of before. Pointwise
 * nodes of its own group run before it, on the same elements. */
static bool update_may_move(const fusion *f, const trama_node *node, int leader)
{
    for (int o = 0; o < node->op->n_out; o++) {
        if (!(node->op->updates >> o & 1))
            continue;
        const trama_value *state = value_storage(node->in[o]);
        for (int i = leader; i < node->id; i++) {
            const trama_node *between = f->program->nodes.at[i];
            if (f->leader[i] == leader && between->op->pointwise)
                continue;
            for (int t = 0; f->needed[i] && t < between->op->n_in; t++)
                if (value_storage(between->in[t]) == state)
                    return false;
        }
    }
    return true;
}

/* A reduction to a scalar must not wait for another operand of the node: the group would start later. */
static bool waits_for_more(const fusion *f, const trama_node *node, int leader)
{
    const trama_node *lead = f->program->nodes.at[leader];
    bool waits = false;
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_node *other = node->in[t]->node;
        waits |= other && other->op->n_in > 0 && f->leader[other->id] != leader;
    }
    return waits && !lead->op->pointwise && trama_shape_count(f->shapes[lead->out[0]->id]) == 1;
}

static bool may_join(const fusion *f, const trama_node *node, int leader, int *from_outside)
{
    const trama_value *lead = f->program->nodes.at[leader]->out[0];
    if (!trama_shape_equal(f->shapes[node->out[0]->id], f->shapes[lead->id]) ||
        !trama_layout_equal(&f->l->op[node->id]->out[0], &f->l->op[leader]->out[0]))
        return false;
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        if (v->node && f->leader[v->node->id] == leader) {
            if (!same_layout(f, node, t) || !trama_shape_equal(f->shapes[v->id], f->shapes[lead->id]))
                return false;
        } else if (v->node && v->node->op->n_in > 0 && f->leader[v->node->id] > leader) {
            return false;
        } else if (v->node && v->node->op->alias && v->node->id > leader) {
            return false;
        } else {
            ++*from_outside;
        }
    }
    return f->external[leader] + *from_outside <= MAX_EXTERNAL && f->calls[leader] < MAX_CALLS &&
           !waits_for_more(f, node, leader) && update_may_move(f, node, leader);
}

/* Whether an operand is gathered along a factor that the node may take in turn. */
static bool takes_in_turn(const fusion *f, const trama_node *node)
{
    const trama_rule *rule = f->rules[node->id];
    for (int t = 0; t < rule->n_in; t++)
        for (int k = 0; k < rule->n_factors; k++) {
            const int d = rule->factor[k].in_turn ? rule_dim_of(rule, t, k) : -1;
            const trama_layout *from = &f->l->value[node->in[t]->id], *to = &f->l->op[node->id]->in[t];
            for (int a = 0; d >= 0 && a < from->naxes; a++)
                if (from->axis[a].kind == TRAMA_SPLIT && from->axis[a].dim == d &&
                    (a >= to->naxes || to->axis[a].kind == TRAMA_REPLICATE))
                    return true;
        }
    return false;
}

static void place_node(fusion *f, const trama_node *node)
{
    f->leader[node->id] = node->id;
    f->external[node->id] = node->op->n_in;
    f->calls[node->id] = 1;
    f->ended[node->id] = node->op->updates != 0 || takes_in_turn(f, node);
    if (!node->op->pointwise || node->op->n_in == 0)
        return;
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_node *producer = node->in[t]->node;
        int from_outside = 0;
        if (!producer || !f->needed[producer->id] || producer->op->alias || producer->op->n_in == 0)
            continue;
        int leader = f->leader[producer->id];
        if (f->ended[leader] || !may_join(f, node, leader, &from_outside))
            continue;
        f->ended[leader] = node->op->updates != 0;
        f->leader[node->id] = leader;
        f->external[leader] += from_outside;
        f->calls[leader]++;
        return;
    }
}

void fuse_program(const trama_program *program, const bool *needed, const layouts *l, const trama_shape *shapes,
                  const trama_rule *const *rules, bool enabled, int *leader)
{
    fusion f = {.program = program, .needed = needed, .l = l, .shapes = shapes, .rules = rules, .leader = leader};
    f.external = trama_alloc((size_t)program->nodes.n * sizeof *f.external);
    f.calls = trama_alloc((size_t)program->nodes.n * sizeof *f.calls);
    f.ended = trama_alloc((size_t)program->nodes.n * sizeof *f.ended);
    for (int i = 0; i < program->nodes.n; i++) {
        leader[i] = i;
        if (needed[i] && enabled)
            place_node(&f, program->nodes.at[i]);
    }
    free(f.external);
    free(f.calls);
    free(f.ended);
}

/* Whether nobody but the op's own readers asks for a result: it is not kept, and lies as the op makes it. */
static bool may_be_internal(const trama_node *node, int o, const bool *kept, const layouts *l)
{
    const int value = node->out[o]->id;
    const op_layouts *op = l->op[node->id];
    return !kept[value] && !node->op->updates && !node->op->alias && l->mesh[value] == op->mesh &&
           trama_layout_equal(&l->value[value], &op->out[o]);
}

bool *fuse_internal(const trama_program *program, const bool *needed, const bool *kept, const layouts *l,
                    const int *leader)
{
    const int n = program->nodes.n;
    bool *internal = trama_alloc((size_t)program->values.n * sizeof *internal);
    int *members = trama_alloc((size_t)n * sizeof *members);
    for (int i = 0; i < n; i++)
        members[leader[i]] += needed[i];
    for (int i = 0; i < n; i++) /* alone in its group, a node has no reader but the user */
        for (int o = 0; needed[i] && members[leader[i]] > 1 && o < program->nodes.at[i]->op->n_out; o++)
            internal[program->nodes.at[i]->out[o]->id] = may_be_internal(program->nodes.at[i], o, kept, l);
    for (int i = 0; i < n; i++)
        for (int t = 0; needed[i] && t < program->nodes.at[i]->op->n_in; t++) {
            const trama_value *v = program->nodes.at[i]->in[t];
            if (!v->node || leader[v->node->id] != leader[i])
                internal[v->id] = false;
        }
    free(members);
    return internal;
}

/* Whether more than shapes comes of a node: it updates a state, or its results are kept or read. */
static bool is_read(const trama_node *node, const bool *kept, const bool *read)
{
    bool any = node->op->updates || node->op->n_out == 0;
    for (int o = 0; o < node->op->n_out; o++)
        any |= node->out[o]->kind == VALUE_EFFECT || kept[node->out[o]->id] || read[node->out[o]->id];
    return any;
}

bool *fuse_computed(const trama_program *program, const bool *needed, const bool *kept)
{
    bool *computed = trama_alloc((size_t)max_i64(1, program->nodes.n));
    bool *read = trama_alloc((size_t)max_i64(1, program->values.n));
    for (int i = program->nodes.n - 1; i >= 0; i--) {
        const trama_node *node = program->nodes.at[i];
        computed[i] = needed[i] && is_read(node, kept, read);
        for (int t = 0; computed[i] && t < node->op->n_in; t++)
            if (!(node->op->shape_only >> t & 1))
                read[node->in[t]->id] = true;
    }
    free(read);
    return computed;
}
