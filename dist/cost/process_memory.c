/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of processes, and the pieces of values that they have. */
#include "process_memory.h"

#include <string.h>

#include "changes.h"

/* ---- Groups ---- */

static int number_of_mesh(const process_memory *m, const trama_mesh *mesh)
{
    int i = 0;
    while (i < m->meshes.n && m->meshes.at[i] != mesh)
        i++;
    return i;
}

static int count_processes(const process_memory *m)
{
    int n = 0;
    for (int i = 0; i < m->meshes.n; i++)
        n = (int)max_i64(n, mesh_processes(m->meshes.at[i]));
    return n;
}

/* Divides each group by whether its processes are on the mesh. group [n]; returns the number of groups, 0 .. that - 1.
 */
static int divide(const trama_mesh *mesh, int n, int n_groups, int *group)
{
    bool *on = trama_alloc((size_t)n + 1);
    int *number = trama_alloc((size_t)(2 * n_groups + 1) * sizeof *number); /* [group, on the mesh] 1 + the new one */
    int made = 0;
    for (int k = 0; k < mesh->size; k++)
        on[mesh->ids[k]] = true;
    for (int i = 0; i < n; i++) {
        int *its = &number[2 * group[i] + on[i]];
        *its = *its ? *its : ++made;
        group[i] = *its - 1;
    }
    free(on);
    free(number);
    return made;
}

/* The values that count, and whose meshes make groups. */
static bool counts(const process_memory *m, const trama_value *v, const layouts *l)
{
    return l->mesh[v->id] && (value_is_state(v) || !m->states_alone);
}

static void add_mesh(process_memory *m, const trama_mesh *mesh)
{
    if (mesh && number_of_mesh(m, mesh) == m->meshes.n)
        *ARRAY_PUSH(&m->meshes) = mesh;
}

static void find_groups(process_memory *m, const layouts *l)
{
    for (int i = 0; i < m->program->values.n; i++)
        if (counts(m, m->program->values.at[i], l))
            add_mesh(m, l->mesh[i]);
    for (int i = 0; i < m->program->nodes.n && !m->states_alone; i++)
        add_mesh(m, l->op[i]->mesh);
    const int n = count_processes(m);
    int *group = trama_alloc((size_t)(n + 1) * sizeof *group);
    m->n_groups = 1;
    for (int i = 0; i < m->meshes.n; i++)
        m->n_groups = divide(m->meshes.at[i], n, m->n_groups, group);
    m->has = trama_alloc((size_t)(m->meshes.n + 1) * (size_t)(m->n_groups + 1));
    for (int i = 0; i < m->meshes.n; i++)
        for (int k = 0; k < m->meshes.at[i]->size; k++)
            m->has[i * m->n_groups + group[m->meshes.at[i]->ids[k]]] = true;
    free(group);
}

/* ---- Times ---- */

/* The operand whose memory a result may share; -1: it has its own. */
static int shared_operand(const trama_node *node, int o)
{
    if (node_updates(node, o))
        return o;
    return node->op->n_out == 1 && (node->op->alias || node->op->view) ? 0 : -1;
}

static bool shares_memory(const trama_value *v)
{
    return v->kind == VALUE_RESULT && shared_operand(v->node, v->result) >= 0;
}

static bool reads(const trama_node *node, int t)
{
    return node_reads(node, t) || node->op->alias;
}

/* The node until which a value stays even without readers; -1: none. Ops with several results fill each of them. */
static int least_until(const trama_value *v, int last)
{
    if (value_is_state(v) || v->kind == VALUE_CONSTANT || v->fetched)
        return last;
    return v->kind == VALUE_RESULT && v->node->op->n_out > 1 ? v->node->id : -1;
}

static void find_times(process_memory *m)
{
    const trama_program *p = m->program;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        m->from[i] = v->kind == VALUE_RESULT ? v->node->id : 0;
        m->until[i] = least_until(v, m->n_moments - 1);
    }
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in; t++) {
            int *until = &m->until[p->nodes.at[i]->in[t]->id];
            *until = reads(p->nodes.at[i], t) && i > *until ? i : *until;
        }
}

process_memory process_memory_of(const trama_program *program, const layouts *l, int64_t nominal, bool states_alone)
{
    const size_t n = (size_t)program->values.n + 1;
    process_memory m = {.program = program,
                        .nominal = nominal,
                        .states_alone = states_alone,
                        .n_moments = program->nodes.n ? program->nodes.n : 1,
                        .from = trama_alloc(n * sizeof *m.from),
                        .until = trama_alloc(n * sizeof *m.until)};
    find_groups(&m, l);
    find_times(&m);
    m.peak = trama_alloc(((size_t)m.n_groups + 1) * sizeof *m.peak);
    return m;
}

void process_memory_free(process_memory *m)
{
    ARRAY_FREE(&m->meshes);
    free(m->has);
    free(m->from);
    free(m->until);
    free(m->peak);
}

/* ---- Pieces ---- */

static int64_t largest_piece(const process_memory *m, const trama_value *v, const trama_mesh *mesh,
                             const trama_layout *layout)
{
    const box whole = box_whole(value_nominal_shape(v, m->nominal));
    return layout_largest(mesh, layout, &whole) * (int64_t)trama_dtype_size(v->dtype);
}

/* [groups] which processes are on a mesh. */
static const bool *groups_on(const process_memory *m, const trama_mesh *mesh)
{
    return m->has + number_of_mesh(m, mesh) * m->n_groups;
}

/* Memory of values [values] as they rest, and behind these of copies [changes]. */
typedef struct holders {
    const layouts *l;
    layout_changes changes;
    int n_values, *latest; /* [values] 1 + the last change of each; 0: none */
    int *of;               /* [values] the memory that a value is in */
    int *until;            /* [values + changes] -1: it is not needed */
} holders;

/* The memory in which a node reads operand t. It updates a state in the state's own, also a part of it. */
static int memory_read(const holders *h, const trama_node *node, int t)
{
    const trama_value *v = node->in[t];
    if (node_updates(node, t))
        return h->of[v->id];
    const int result = node->op->alias ? node->out[0]->id : -1;
    const trama_mesh *mesh = result < 0 ? h->l->op[node->id]->mesh : h->l->mesh[result], *has;
    const trama_layout *layout = result < 0 ? &h->l->op[node->id]->in[t] : &h->l->value[result];
    if (layout_lies(mesh, layout, h->l->mesh[v->id], &h->l->value[v->id]))
        return h->of[v->id];
    for (int k = h->latest[v->id] - 1; k >= 0; k = h->changes.at[k].before) {
        const trama_layout *as = change_layout(&h->changes.at[k], &has);
        if (layout_lies(mesh, layout, has, as))
            return h->n_values + k;
    }
    return h->of[v->id];
}

static void keep(holders *h, int memory, int node)
{
    h->until[memory] = node > h->until[memory] ? node : h->until[memory];
}

static bool settles(const holders *h, const trama_value *v)
{
    for (int k = h->latest[v->id] - 1; k >= 0; k = h->changes.at[k].before)
        if (h->changes.at[k].operand == SETTLES)
            return true;
    return false;
}

/* A view shares the copy that it reads, unless it settles in another layout. A value stays to the last reader of its
 * copies, too, since prices count it so (find_times). */
static void pass_node(process_memory *m, holders *h, const trama_node *node)
{
    for (int t = 0; t < node->op->n_in; t++)
        if (reads(node, t)) {
            keep(h, memory_read(h, node, t), node->id);
            keep(h, h->of[node->in[t]->id], node->id);
        }
    for (int o = 0; o < node->op->n_out; o++) {
        const trama_value *out = node->out[o];
        const int t = shared_operand(node, o);
        if (t >= 0 && (node_updates(node, o) || !settles(h, out)))
            h->of[out->id] = memory_read(h, node, t);
        if (m->until[out->id] >= 0 && (out->fetched || !shares_memory(out)))
            keep(h, h->of[out->id], out->fetched ? m->n_moments - 1 : node->id);
    }
}

static holders holders_of(process_memory *m, const layouts *l)
{
    const trama_program *p = m->program;
    holders h = {.l = l, .n_values = p->values.n};
    find_changes(p, l, NULL, &h.changes);
    const size_t n = (size_t)p->values.n + (size_t)h.changes.n + 1;
    h.latest = trama_alloc(n * sizeof *h.latest);
    h.of = trama_alloc(n * sizeof *h.of);
    h.until = trama_alloc(n * sizeof *h.until);
    for (size_t i = 0; i < n; i++)
        h.until[i] = -1;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        h.of[i] = i;
        if (v->kind != VALUE_RESULT)
            h.until[i] = least_until(v, m->n_moments - 1);
    }
    for (int i = 0; i < h.changes.n; i++) {
        h.latest[h.changes.at[i].value->id] = i + 1;
        h.until[p->values.n + i] = h.changes.at[i].node->id;
    }
    for (int i = 0; i < p->nodes.n; i++)
        pass_node(m, &h, p->nodes.at[i]);
    return h;
}

static void holders_free(holders *h)
{
    ARRAY_FREE(&h->changes);
    free(h->latest);
    free(h->of);
    free(h->until);
}

/* Adds the bytes at `from`, and takes them off behind `until`. need [groups, moments + 1] */
static void add_span(const process_memory *m, int64_t *need, const trama_mesh *mesh, int64_t bytes, const int span[2])
{
    const bool *on = groups_on(m, mesh);
    for (int k = 0; k < m->n_groups; k++) {
        int64_t *of_group = need + (size_t)k * ((size_t)m->n_moments + 1);
        of_group[span[0]] += on[k] ? bytes : 0;
        of_group[span[1] + 1] -= on[k] ? bytes : 0;
    }
}

/* Sums the changes of need from node to node. */
static int64_t find_peaks(const process_memory *m, const int64_t *need)
{
    int64_t most = 0;
    for (int k = 0; k < m->n_groups; k++) {
        int64_t now = 0;
        m->peak[k] = (memory_peak){0};
        for (int i = 0; i < m->n_moments; i++) {
            now += need[(size_t)k * ((size_t)m->n_moments + 1) + (size_t)i];
            if (now > m->peak[k].bytes)
                m->peak[k] = (memory_peak){i, now};
        }
        most = max_i64(most, m->peak[k].bytes);
    }
    return most;
}

int64_t process_memory_count(process_memory *m, const layouts *l)
{
    holders h = holders_of(m, l);
    int64_t *need = trama_alloc(((size_t)m->n_groups + 1) * ((size_t)m->n_moments + 1) * sizeof *need);
    for (int i = 0; i < m->program->values.n; i++) {
        const trama_value *v = m->program->values.at[i];
        if (h.until[i] >= 0 && counts(m, v, l))
            add_span(m, need, l->mesh[i], largest_piece(m, v, l->mesh[i], &l->value[i]),
                     (int[]){m->from[i], h.until[i]});
    }
    for (int i = 0; i < h.changes.n && !m->states_alone; i++) {
        const layout_change *c = &h.changes.at[i];
        const trama_mesh *mesh;
        const trama_layout *layout = change_layout(c, &mesh);
        if (node_updates(c->node, c->operand == SETTLES ? c->value->result : c->operand))
            continue; /* a part of a state lies in the state */
        add_span(m, need, mesh, largest_piece(m, c->value, mesh, layout),
                 (int[]){c->node->id, h.until[h.n_values + i]});
    }
    const int64_t most = find_peaks(m, need);
    free(need);
    holders_free(&h);
    return most;
}

int64_t layouts_memory(const trama_program *program, const layouts *l, int64_t nominal, bool states_alone)
{
    process_memory m = process_memory_of(program, l, nominal, states_alone);
    const int64_t bytes = process_memory_count(&m, l);
    process_memory_free(&m);
    return bytes;
}

/* ---- Prices ---- */

/* Whether a value counts, with memory of its own in all layouts. */
static bool has_price(const process_memory *m, const trama_value *v)
{
    return m->until[v->id] >= 0 && !shares_memory(v) && (value_is_state(v) || !m->states_alone);
}

double process_memory_whole(const process_memory *m)
{
    double bytes = 0;
    for (int i = 0; i < m->program->values.n; i++) {
        const trama_value *v = m->program->values.at[i];
        if (has_price(m, v))
            bytes += (double)trama_shape_count(value_nominal_shape(v, m->nominal)) * (double)trama_dtype_size(v->dtype);
    }
    return bytes;
}

/* The price of a byte of a value on a mesh. */
static double price_of(const process_memory *m, const trama_value *v, const trama_mesh *mesh, int n,
                       const memory_price *prices)
{
    const bool *on = groups_on(m, mesh);
    double price = 0;
    for (int i = 0; i < n; i++)
        if (on[prices[i].group] && m->from[v->id] <= prices[i].node && prices[i].node <= m->until[v->id])
            price += prices[i].price;
    return price;
}

static void add_price(const process_memory *m, const trama_value *v, const value_place *at, double price, double *costs)
{
    const layout_classes *c = at->classes;
    double *of_class = trama_alloc((size_t)(c->layouts.n + 1) * sizeof *of_class);
    for (int i = 0; i < c->layouts.n; i++)
        of_class[i] = price * (double)largest_piece(m, v, c->mesh, &c->layouts.at[i]);
    for (int k = 0; k < c->n; k++)
        costs[k] += of_class[c->of[k]];
    free(of_class);
}

void process_memory_price(const process_memory *m, const layout_graph *g, int n, const memory_price *prices)
{
    for (int i = 0; i < m->program->values.n; i++) {
        const trama_value *v = m->program->values.at[i];
        const value_place *at = &g->value[i];
        if (!has_price(m, v) || at->variable < 0)
            continue;
        const double price = price_of(m, v, at->classes->mesh, n, prices);
        if (price > 0)
            add_price(m, v, at, price, min_sum_costs(g->problem, at->variable));
    }
}
