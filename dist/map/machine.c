/* SPDX-License-Identifier: Apache-2.0 */
/* The machine table: construction, distances, printing. */
#include "machine.h"

#include <assert.h>

machine *machine_uniform(int n_ranks, int workers)
{
    machine *m = trama_alloc(sizeof *m);
    m->n_ranks = m->n_places = n_ranks;
    m->places = trama_alloc((size_t)n_ranks * sizeof *m->places);
    for (int r = 0; r < n_ranks; r++)
        m->places[r] = (machine_place){.rank = r, .workers = workers, .path = {0, 0, 0, r}};
    return m;
}

void machine_destroy(machine **m)
{
    if (!*m)
        return;
    free((*m)->places);
    free(*m);
    *m = NULL;
}

int machine_distance(const machine *m, int place, int other)
{
    if (place == other)
        return 0;
    const machine_place *a = &m->places[place], *b = &m->places[other];
    if (a->rank == b->rank)
        return 1;
    int level = 0;
    while (level < MACHINE_DEPTH && a->path[level] == b->path[level])
        level++;
    return 2 + MACHINE_DEPTH - level;
}

bool machine_same_node(const machine *m, int place, int other)
{
    return m->places[place].path[0] == m->places[other].path[0];
}

bool machine_is_flat(const machine *m)
{
    for (int i = 1; i < m->n_places; i++)
        if (m->places[i].rank == m->places[i - 1].rank || machine_distance(m, i - 1, i) != machine_distance(m, 0, 1) ||
            machine_distance(m, 0, i) != machine_distance(m, 0, 1))
            return false;
    return m->n_places < 2 || machine_distance(m, 0, 1) <= 3; /* siblings: any two places have one parent */
}

int machine_first_place(const machine *m, int rank)
{
    int low = 0, high = m->n_places - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (m->places[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    assert(m->places[low].rank == rank);
    return low;
}

int machine_workers(const machine *m, int rank)
{
    int workers = 0;
    for (int i = machine_first_place(m, rank); i < m->n_places && m->places[i].rank == rank; i++)
        workers += m->places[i].workers;
    return workers;
}

void machine_describe(const machine *m, text *out)
{
    for (int i = 0; i < m->n_places; i++) {
        const machine_place *p = &m->places[i];
        text_add(out, "place %d: rank %d, %s, kind %d, %d workers, at %d.%d.%d.%d\n", i, p->rank,
                 p->gpu ? "GPU" : "CPU", p->kind, p->workers, p->path[0], p->path[1], p->path[2], p->path[3]);
    }
}
