/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a completed program that finds its changes of layout, and a table of their bytes. */
#include "changes.h"

#include "hash.h"

/* ---- Changes ---- */

typedef struct walk {
    const layouts *l;
    layout_changes *list;
    int *last; /* [value id] the value's last change; -1: none */
} walk;

const trama_layout *change_layout(const layout_change *change, const trama_mesh **mesh)
{
    const bool made = change->operand == SETTLES;
    *mesh = made ? change->from_mesh : change->to_mesh;
    return made ? change->from : change->to;
}

static void note(walk *w, layout_change change)
{
    change.before = w->last[change.value->id];
    w->last[change.value->id] = w->list->n;
    *ARRAY_PUSH(w->list) = change;
}

/* The node needs a value in a layout. */
static void want(walk *w, const trama_node *node, int t, const trama_mesh *mesh, const trama_layout *layout)
{
    const trama_value *v = node->in[t];
    const trama_mesh *rests_on = w->l->mesh[v->id];
    const trama_layout *rests_as = &w->l->value[v->id];
    if (!mesh || !rests_on || layout_lies(mesh, layout, rests_on, rests_as))
        return;
    for (int i = w->last[v->id]; i >= 0; i = w->list->at[i].before) {
        const trama_mesh *on;
        const trama_layout *as = change_layout(&w->list->at[i], &on);
        if (layout_lies(mesh, layout, on, as))
            return;
    }
    note(w, (layout_change){v, node, t, 0, rests_on, mesh, rests_as, layout});
}

/* The node makes a value in another layout than the value's own. */
static void settle(walk *w, const trama_node *node, int result)
{
    const trama_value *v = node->out[result];
    const op_layouts *op = w->l->op[node->id];
    const trama_mesh *rests_on = w->l->mesh[v->id];
    const trama_layout *rests_as = &w->l->value[v->id];
    if (op->mesh && rests_on && !layout_lies(op->mesh, &op->out[result], rests_on, rests_as))
        note(w, (layout_change){v, node, SETTLES, 0, op->mesh, rests_on, &op->out[result], rests_as});
}

static void walk_node(walk *w, const trama_node *node)
{
    const layouts *l = w->l;
    if (node->op->alias) {
        const int result = node->out[0]->id;
        want(w, node, 0, l->mesh[result], &l->value[result]);
        return;
    }
    for (int t = 0; t < node->op->n_in; t++)
        if (node_reads(node, t))
            want(w, node, t, l->op[node->id]->mesh, &l->op[node->id]->in[t]);
    for (int o = 0; o < node->op->n_out; o++)
        settle(w, node, o);
}

void find_changes(const trama_program *program, const layouts *l, const bool *needed, layout_changes *list)
{
    walk w = {.l = l, .list = list, .last = trama_alloc((size_t)program->values.n * sizeof *w.last)};
    for (int i = 0; i < program->values.n; i++)
        w.last[i] = -1;
    for (int i = 0; i < program->nodes.n; i++)
        if (!needed || needed[i])
            walk_node(&w, program->nodes.at[i]);
    free(w.last);
}

/* ---- Bytes ---- */

struct counted_transfer {
    transfer t;
    int64_t bytes;
};

static transfer transfer_of(const trama_value *v, int64_t nominal, const trama_mesh *from_mesh,
                            const trama_layout *from, const trama_mesh *to_mesh, const trama_layout *to)
{
    const box whole = box_whole(value_nominal_shape(v, nominal));
    return transfer_between(from_mesh, from, to_mesh, to, &whole, trama_dtype_size(v->dtype));
}

transfer change_transfer(const layout_change *c, int64_t nominal)
{
    return transfer_of(c->value, nominal, c->from_mesh, c->from, c->to_mesh, c->to);
}

static uint64_t hash_of_transfer(const transfer *t)
{
    uint64_t hash = hash_word(hash_address(HASH_START, t->from_mesh), t->element);
    for (int d = 0; d < t->whole.ndim; d++)
        hash = hash_word(hash, (uint64_t)t->whole.n[d]);
    return layout_hash(layout_hash(hash, &t->from), &t->to);
}

int64_t bytes_between(transfer_bytes *table, const trama_value *value, int64_t nominal, const trama_mesh *from_mesh,
                      const trama_layout *from, const trama_mesh *to_mesh, const trama_layout *to)
{
    if (layout_lies(from_mesh, from, to_mesh, to))
        return 0;
    const transfer t = transfer_of(value, nominal, from_mesh, from, to_mesh, to);
    const uint64_t hash = hash_of_transfer(&t);
    for (int probe = 0, i; (i = hash_table_find(&table->by_content, hash, &probe)) >= 0;)
        if (transfer_equal(&table->counted.at[i].t, &t))
            return table->counted.at[i].bytes;
    hash_table_add(&table->by_content, hash, table->counted.n);
    const int64_t bytes = reshard_most_bytes(&t);
    *ARRAY_PUSH(&table->counted) = (struct counted_transfer){t, bytes};
    return bytes;
}

void transfer_bytes_free(transfer_bytes *table)
{
    ARRAY_FREE(&table->counted);
    hash_table_free(&table->by_content);
}

int64_t change_bytes(transfer_bytes *table, const layout_changes *list, int i, int64_t nominal)
{
    const layout_change *c = &list->at[i];
    int64_t least = bytes_between(table, c->value, nominal, c->from_mesh, c->from, c->to_mesh, c->to);
    for (int k = c->before; k >= 0; k = list->at[k].before) {
        const trama_mesh *mesh;
        const trama_layout *source = change_layout(&list->at[k], &mesh);
        least = min_i64(least, bytes_between(table, c->value, nominal, mesh, source, c->to_mesh, c->to));
    }
    return least;
}

int64_t reach_bytes(const trama_node *node, const layouts *l, int64_t nominal)
{
    const op_layouts *op = l->op[node->id];
    trama_rule rule;
    if (!op || !op->mesh || op->mesh->size == 1 || !rule_reaches_any(node->rule))
        return 0;
    complete_rule(node, nominal, &rule);
    return infer_reach_bytes(node, &rule, op);
}

int64_t layouts_bytes(const trama_program *program, const layouts *l, int64_t nominal)
{
    layout_changes changes = {0};
    transfer_bytes table = {0};
    int64_t bytes = 0;
    find_changes(program, l, NULL, &changes);
    for (int i = 0; i < changes.n; i++)
        bytes += change_bytes(&table, &changes, i, nominal);
    for (int i = 0; i < program->nodes.n; i++)
        bytes += reach_bytes(program->nodes.at[i], l, nominal);
    transfer_bytes_free(&table);
    ARRAY_FREE(&changes);
    return bytes;
}
