/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of processes, and the pieces of states that they keep. */
#include "state_memory.h"

#include <string.h>

/* ---- Groups ---- */

static int number_of_mesh(const state_memory *m, const trama_mesh *mesh)
{
    int i = 0;
    while (i < m->meshes.n && m->meshes.at[i] != mesh)
        i++;
    return i;
}

static int count_processes(const state_memory *m)
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

state_memory state_memory_of(const trama_program *program, const layouts *l, int64_t nominal)
{
    state_memory m = {.program = program, .nominal = nominal, .n_groups = 1};
    for (int i = 0; i < program->values.n; i++)
        if (value_is_state(program->values.at[i]) && l->mesh[i] && number_of_mesh(&m, l->mesh[i]) == m.meshes.n)
            *ARRAY_PUSH(&m.meshes) = l->mesh[i];
    const int n = count_processes(&m);
    int *group = trama_alloc((size_t)(n + 1) * sizeof *group);
    for (int i = 0; i < m.meshes.n; i++)
        m.n_groups = divide(m.meshes.at[i], n, m.n_groups, group);
    m.keeps = trama_alloc((size_t)(m.meshes.n + 1) * (size_t)(m.n_groups + 1));
    for (int i = 0; i < m.meshes.n; i++)
        for (int k = 0; k < m.meshes.at[i]->size; k++)
            m.keeps[i * m.n_groups + group[m.meshes.at[i]->ids[k]]] = true;
    free(group);
    return m;
}

void state_memory_free(state_memory *m)
{
    ARRAY_FREE(&m->meshes);
    free(m->keeps);
}

/* ---- Pieces ---- */

/* Of equal parts the first is the largest. */
static int64_t largest_piece(const state_memory *m, const trama_value *v, const trama_mesh *mesh,
                             const trama_layout *layout)
{
    const box whole = box_whole(value_nominal_shape(v, m->nominal));
    const int n = mesh_is_weighted(mesh) ? mesh->size : 1;
    int64_t most = 0;
    for (int position = 0; position < n; position++) {
        box b;
        layout_box(mesh, layout, &whole, position, &b);
        most = max_i64(most, box_count(&b));
    }
    return most * (int64_t)trama_dtype_size(v->dtype);
}

int64_t state_memory_use(const state_memory *m, const layouts *l, int64_t *used)
{
    int64_t most = 0;
    memset(used, 0, (size_t)m->n_groups * sizeof *used);
    for (int i = 0; i < m->program->values.n; i++) {
        const trama_value *v = m->program->values.at[i];
        if (!value_is_state(v) || !l->mesh[i])
            continue;
        const int64_t bytes = largest_piece(m, v, l->mesh[i], &l->value[i]);
        const bool *keeps = m->keeps + number_of_mesh(m, l->mesh[i]) * m->n_groups;
        for (int k = 0; k < m->n_groups; k++)
            used[k] += keeps[k] ? bytes : 0;
    }
    for (int k = 0; k < m->n_groups; k++)
        most = max_i64(most, used[k]);
    return most;
}

int64_t layouts_state_bytes(const trama_program *program, const layouts *l, int64_t nominal)
{
    state_memory m = state_memory_of(program, l, nominal);
    int64_t *used = trama_alloc((size_t)m.n_groups * sizeof *used);
    const int64_t most = state_memory_use(&m, l, used);
    free(used);
    state_memory_free(&m);
    return most;
}

double state_memory_whole(const state_memory *m)
{
    double bytes = 0;
    for (int i = 0; i < m->program->values.n; i++) {
        const trama_value *v = m->program->values.at[i];
        if (value_is_state(v))
            bytes += (double)trama_shape_count(value_nominal_shape(v, m->nominal)) * (double)trama_dtype_size(v->dtype);
    }
    return bytes;
}

void state_memory_price(const state_memory *m, const layout_graph *g, const double *price)
{
    for (int i = 0; i < m->program->values.n; i++) {
        const trama_value *v = m->program->values.at[i];
        const value_place *at = &g->value[i];
        if (!value_is_state(v) || at->variable < 0)
            continue;
        const bool *keeps = m->keeps + number_of_mesh(m, at->classes->mesh) * m->n_groups;
        double of_a_byte = 0, *costs = min_sum_costs(g->problem, at->variable);
        for (int k = 0; k < m->n_groups; k++)
            of_a_byte += keeps[k] ? price[k] : 0;
        for (int k = 0; k < at->classes->n; k++)
            costs[k] = layout_graph_tie(at->classes, k) +
                       of_a_byte * (double)largest_piece(m, v, at->classes->mesh, &at->classes->layouts.at[k]);
    }
}
