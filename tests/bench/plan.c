/* SPDX-License-Identifier: Apache-2.0 */
/* How long planning of the main job's step takes on a mesh, and what one rank has to do in it; one rank a process. It
 * runs no step and needs neither StarPU nor MPI. For rank 0 and one in the middle it prints
 *   processes rank complete_seconds plan_seconds steps messages peers
 * complete: layouts of the whole program, once. plan: from the extents fed to the rank's plan, as tasks/run/run.c does it.
 * Medians of --repeat.
 * Usage: plan [--mesh dp=2,mp=2] [--hidden 512,256] [--batch 128] [--repeat 5]   (--batch: per process along dp) */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "fuse.h"
#include "main_job.h"
#include "partition.h"

enum { GRAIN_FLOPS = 2000000, GRAIN_BYTES = 65536, NOMINAL = 1024 }; /* trama_config's defaults */

typedef struct planner {
    main_job job;
    const trama_program *program;
    trama_mesh *single;
    machine *machine;
    process_map *map;
    layouts l;
    bool *needed, *kept, *leaf; /* [node], [value], [value] */
    int *leader;                /* [node] */
    trama_shape *shapes;        /* [value] */
    trama_rule *rules;          /* [node] */
} planner;

static bool is_leaf(const trama_value *v)
{
    return v->kind == VALUE_INPUT || v->kind == VALUE_STATE || v->kind == VALUE_CONSTANT ||
           (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
}

static int data_parallel(const trama_mesh *mesh)
{
    for (int a = 0; a < trama_mesh_ndim(mesh); a++) {
        const char *name = trama_mesh_axis_name(mesh, a);
        if (name && !strcmp(name, "dp"))
            return trama_mesh_extent(mesh, a);
    }
    return 1;
}

/* What a target needs, as tasks/run/run.c finds it. */
static void find_needs(planner *p)
{
    const trama_program *program = p->program;
    const trama_target *target = p->job.train;
    program_closure(program, target->values.n, target->values.at, p->needed);
    for (int i = 0; i < target->values.n; i++)
        p->kept[target->values.at[i]->id] = target->values.at[i]->kind != VALUE_EFFECT;
    for (int i = 0; i < program->nodes.n; i++) {
        const trama_node *node = program->nodes.at[i];
        for (int k = 0; p->needed[i] && k < node->op->n_in; k++)
            p->leaf[node->in[k]->id] |= is_leaf(node->in[k]);
        p->needed[i] &= node->op->n_in > 0;
    }
}

static void set_up(planner *p, int batch)
{
    const trama_program *program = p->program = p->job.program;
    size_t nodes = (size_t)program->nodes.n, values = (size_t)program->values.n;
    int processes = trama_mesh_size(p->job.mesh);
    p->single = trama_mesh_parse("1");
    p->machine = machine_uniform(processes, 1);
    p->map = map_by_order(processes, NULL, p->machine);
    p->needed = trama_alloc(nodes);
    p->kept = trama_alloc(values);
    p->leaf = trama_alloc(values);
    p->leader = trama_alloc(nodes * sizeof *p->leader);
    p->shapes = trama_alloc(values * sizeof *p->shapes);
    p->rules = trama_alloc(nodes * sizeof *p->rules);
    find_needs(p);
    for (size_t i = 0; i < values; i++)
        p->shapes[i] = program->values.at[i]->shape;
    p->shapes[p->job.x->id].dim[0] = p->shapes[p->job.y->id].dim[0] = (int64_t)batch * data_parallel(p->job.mesh);
}

static double complete(planner *p)
{
    layouts_free(&p->l);
    p->l = (layouts){0};
    double start = bench_now();
    bench_try(complete_program(p->program, NOMINAL, p->single, &p->l), "completion");
    return bench_now() - start;
}

static partition *begin(const planner *p, int rank)
{
    plan_source source = {.program = p->program,
                          .l = &p->l,
                          .shapes = p->shapes,
                          .rules = p->rules,
                          .map = p->map,
                          .machine = p->machine,
                          .options = {.grain_flops = GRAIN_FLOPS, .grain_bytes = GRAIN_BYTES},
                          .rank = rank};
    return partition_begin(&source);
}

/* Where the leaves are before the step. */
static plan *holder(const planner *p, int rank)
{
    partition *q = begin(p, rank);
    for (int i = 0; i < p->program->values.n; i++)
        if (p->leaf[i])
            partition_input(q, i);
    return partition_end(&q);
}

static double make_plan(planner *p, int rank, const plan *leaves, plan **made)
{
    plan_destroy(made);
    double start = bench_now();
    bench_try(program_resolve(p->program, p->needed, p->shapes, p->rules), "shapes");
    fuse_program(p->program, p->needed, &p->l, p->shapes, true, p->leader);
    partition *q = begin(p, rank);
    for (int i = 0; i < p->program->values.n; i++)
        if (p->leaf[i])
            partition_import(q, i, leaves, i);
    partition_run(q, p->needed, p->leader, p->kept);
    *made = partition_end(&q);
    return bench_now() - start;
}

static int count_peers(const plan *made, int n_ranks)
{
    bool *seen = trama_alloc((size_t)n_ranks);
    int n = 0;
    for (int i = 0; i < made->steps.n; i++) {
        const plan_step *s = &made->steps.at[i];
        if (s->kind >= STEP_SEND && !seen[s->peer]) {
            seen[s->peer] = true;
            n++;
        }
    }
    free(seen);
    return n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int n, double *of)
{
    qsort(of, (size_t)n, sizeof *of, compare);
    return of[n / 2];
}

static void measure(planner *p, int rank, int repeat)
{
    plan *leaves, *made = NULL;
    double *completing = trama_alloc((size_t)repeat * sizeof *completing),
           *planning = trama_alloc((size_t)repeat * sizeof *planning);
    for (int i = 0; i < repeat; i++)
        completing[i] = complete(p);
    leaves = holder(p, rank);
    for (int i = 0; i < repeat; i++)
        planning[i] = make_plan(p, rank, leaves, &made);
    assert(made);
    plan_totals totals = plan_count(made);
    printf("%d %d %.9f %.9f %d %d %d\n", p->machine->n_ranks, rank, median(repeat, completing),
           median(repeat, planning), totals.steps, totals.messages, count_peers(made, p->machine->n_ranks));
    plan_destroy(&made);
    plan_destroy(&leaves);
    free(completing);
    free(planning);
}

static void tear_down(planner *p)
{
    void *owned[] = {p->needed, p->kept, p->leaf, p->leader, p->shapes, p->rules};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    layouts_free(&p->l);
    map_destroy(&p->map);
    machine_destroy(&p->machine);
    trama_mesh_destroy(&p->single);
    main_job_free(&p->job);
}

int main(int argc, char **argv)
{
    planner p = {.job = main_job_new(bench_option(argc, argv, "mesh", "dp=2,mp=2"),
                                     bench_option(argc, argv, "hidden", "512,256"))};
    int repeat = bench_number(argc, argv, "repeat", 5);
    set_up(&p, bench_number(argc, argv, "batch", 128));
    measure(&p, 0, repeat);
    if (p.machine->n_ranks > 1)
        measure(&p, p.machine->n_ranks / 2, repeat);
    tear_down(&p);
    return 0;
}
