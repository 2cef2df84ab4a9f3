/* SPDX-License-Identifier: Apache-2.0 */
/* Received bytes against the lower bound for all pairs of layouts, without partials, of a 2-d tensor on an 8x8 mesh:
 * Trama's plans, and two planners that change one mesh axis at a time, as PyTorch's DTensor has them: greedy from the
 * inner axis to the outer (torch/distributed/tensor/_redistribute.py), and the cheapest sequence of such steps (its
 * graph search). Prints a line each: NAME PAIRS GEOMETRIC_MEAN WORST ABOVE_THE_BOUND over pairs that must move
 * something, then the seconds that a rank needs to plan all pairs, and one pair on 32x32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "partition.h"

enum { P = 8, EXTENT = 1024, AXES = 2, STATES = 11 };

/* One placement an axis: -1 whole, else the dim; where both axes cut one dim, turned: axis 1 cuts it first. */
typedef struct state {
    int dim[AXES];
    bool turned;
} state;

static int list_states(state *states)
{
    int n = 0;
    for (int a = -1; a < 2; a++)
        for (int b = -1; b < 2; b++)
            for (int turned = 0; turned < (a == b && a >= 0 ? 2 : 1); turned++)
                states[n++] = (state){{a, b}, turned};
    return n;
}

static bool same(const state *a, const state *b)
{
    return a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] && a->turned == b->turned;
}

/* Elements that one process holds; all divide. */
static double held(const state *s)
{
    return (double)EXTENT * EXTENT / (s->dim[0] >= 0 ? P : 1) / (s->dim[1] >= 0 ? P : 1);
}

/* The axis that cuts a dim last, which a step may take away. */
static bool is_inner(const state *s, int axis)
{
    return s->dim[0] != s->dim[1] || s->dim[0] < 0 || (s->turned ? axis == 0 : axis == 1);
}

/* Received elements of the step in which an axis takes another placement; INFINITY where the engine has no such step.
 */
static double step_cost(const state *from, int axis, int to, state *after)
{
    *after = *from;
    if (!is_inner(from, axis))
        return INFINITY;
    after->dim[axis] = to;
    after->turned = to >= 0 && to == from->dim[1 - axis] && axis == 0; /* the newcomer cuts last */
    if (from->dim[axis] == to || from->dim[axis] < 0)
        return 0;
    return to < 0 ? held(from) * (P - 1) : held(from) * (P - 1) / P;
}

static double greedy(state at, const state *to)
{
    double cost = 0;
    state after;
    for (int a = AXES - 1; a >= 0 && (at.dim[0] >= 0 || at.dim[1] >= 0); a--) {
        int wanted = to->dim[a];
        if (wanted >= 0 && a == 1 && (at.dim[0] == wanted) != (to->dim[0] == wanted))
            wanted = -1; /* an outer axis cuts the dim before or after, not both */
        if (wanted != at.dim[a]) {
            cost += step_cost(&at, a, wanted, &after);
            at = after;
        }
    }
    for (int a = 0; a < AXES; a++)
        if (to->dim[a] != at.dim[a]) {
            cost += step_cost(&at, a, to->dim[a], &after);
            at = after;
        }
    return cost;
}

/* Bellman-Ford over the states: they are few. */
static double cheapest(const state *states, int n, int from, int to)
{
    double best[STATES];
    for (int i = 0; i < n; i++)
        best[i] = i == from ? 0 : INFINITY;
    for (int round = 0; round < n; round++)
        for (int i = 0; i < n; i++)
            for (int a = 0; a < AXES; a++)
                for (int dim = -1; dim < 2; dim++) {
                    state after;
                    double cost = best[i] + step_cost(&states[i], a, dim, &after);
                    for (int k = 0; k < n; k++)
                        if (same(&states[k], &after) && cost < best[k])
                            best[k] = cost;
                }
    return best[to];
}

static trama_layout layout_of(const trama_mesh *mesh, const state *s)
{
    trama_layout l = {.naxes = mesh->ndim};
    for (int a = 0; a < AXES; a++)
        l.axis[a] = (trama_placement){.kind = s->dim[a] < 0 ? TRAMA_REPLICATE : TRAMA_SPLIT, .dim = s->dim[a]};
    if (s->dim[0] >= 0 && s->dim[0] == s->dim[1])
        l.axis[s->turned ? 0 : 1].order = 1;
    for (int a = 0; a < AXES; a++)
        l.axis[a].dim = s->dim[a] < 0 ? 0 : s->dim[a];
    return l;
}

/* ---- One tally a planner ---- */

typedef struct tally {
    const char *name;
    int pairs, above;
    double logs, worst;
} tally;

static void count(tally *t, double received, double bound)
{
    double ratio = received / bound;
    t->pairs++;
    t->logs += log(ratio);
    t->worst = ratio > t->worst ? ratio : t->worst;
    t->above += ratio > 1 + 1e-9;
}

static void print(const tally *t)
{
    printf("%s %d %.3f %.3f %d\n", t->name, t->pairs, exp(t->logs / t->pairs), t->worst, t->above);
}

static void tally_pairs(const trama_mesh *mesh, const state *states, int n)
{
    tally trama = {.name = "trama"}, axis = {.name = "greedy"}, steps = {.name = "cheapest"};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            trama_layout from = layout_of(mesh, &states[i]), to = layout_of(mesh, &states[k]);
            trama_reshard_plan *p = NULL;
            bench_try(trama_reshard_plan_create(mesh, &from, mesh, &to, TRAMA_F32, TRAMA_SHAPE(EXTENT, EXTENT), &p),
                      "plan");
            trama_reshard_cost c = trama_reshard_plan_cost(p);
            trama_reshard_plan_destroy(&p);
            if (!c.bound)
                continue;
            count(&trama, (double)c.received, (double)c.bound);
            count(&steps, 4 * cheapest(states, n, i, k), (double)c.bound);
            if (!states[i].turned && !states[k].turned) /* it knows one order only */
                count(&axis, 4 * greedy(states[i], &states[k]), (double)c.bound);
        }
    print(&trama);
    print(&axis);
    print(&steps);
}

/* ---- Planning time of one rank ---- */

static double plan_seconds(const trama_mesh *mesh, const trama_layout *from, const trama_layout *to, int rank)
{
    machine *m = machine_uniform(mesh->size, 1);
    process_map *map = map_by_order(mesh->size, NULL, m);
    trama_program *program = trama_program_create();
    trama_shape shape = TRAMA_SHAPE(EXTENT, EXTENT);
    trama_layout given = *from;
    trama_input(program, "x", TRAMA_F32, shape);
    layouts l = {.n_values = 1, .mesh = &mesh, .value = &given};
    plan_source source = {program, &l, &shape, NULL, map, m, {.grain_flops = 2000000, .grain_bytes = 65536}, rank};
    double start = bench_now();
    partition *q = partition_begin(&source);
    partition_input(q, 0);
    partition_reshard(q, 0, mesh, to, -1, false);
    plan *p = partition_end(&q);
    double seconds = bench_now() - start;
    plan_destroy(&p);
    trama_program_destroy(&program);
    map_destroy(&map);
    machine_destroy(&m);
    return seconds;
}

static void time_plans(const trama_mesh *mesh, const state *states, int n)
{
    trama_mesh *large = trama_mesh_create("32,32");
    double all = 0, worst = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            trama_layout from = layout_of(mesh, &states[i]), to = layout_of(mesh, &states[k]);
            all += plan_seconds(mesh, &from, &to, 37);
            double one = plan_seconds(large, &from, &to, 517);
            worst = one > worst ? one : worst;
        }
    printf("all_pairs_seconds %.6f\nworst_pair_seconds %.6f\n", all, worst);
    trama_mesh_destroy(&large);
}

int main(void)
{
    state states[STATES];
    int n = list_states(states);
    trama_mesh *mesh = trama_mesh_create("8,8");
    tally_pairs(mesh, states, n);
    time_plans(mesh, states, n);
    trama_mesh_destroy(&mesh);
    return EXIT_SUCCESS;
}
