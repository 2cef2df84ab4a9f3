/* SPDX-License-Identifier: Apache-2.0 */
/* How long planning of the main job's step takes on a mesh, and what one rank has to do in it; one rank a process. It
 * runs no step and needs neither StarPU nor MPI. For rank 0 and one in the middle it prints
 *   processes rank complete_seconds plan_seconds steps messages peers
 * complete: layouts of the whole program, once. plan: from the extents fed to the rank's plan, as tasks/run/run.c
 * does it. Medians of --repeat. Usage: plan [--mesh dp=2,mp=2] [--hidden 512,256] [--batch 128] [--repeat 5]   (--batch: per
 * process along dp) */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "main_job.h"
#include "target_plans.h"

static int data_parallel(const trama_mesh *mesh)
{
    for (int a = 0; a < trama_mesh_ndim(mesh); a++) {
        const char *name = trama_mesh_axis_name(mesh, a);
        if (name && !strcmp(name, "dp"))
            return trama_mesh_extent(mesh, a);
    }
    return 1;
}

static double complete(target_plans *p)
{
    double start = bench_now();
    bench_try(target_plans_complete(p), "completion");
    return bench_now() - start;
}

static double make_plan(target_plans *p, int rank, const plan *leaves, plan **made)
{
    plan_destroy(made);
    double start = bench_now();
    bench_try(target_plans_prepare(p), "shapes");
    *made = target_plans_plan(p, rank, leaves);
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

static void measure(target_plans *p, int rank, int repeat)
{
    plan *leaves, *made = NULL;
    double *completing = trama_alloc((size_t)repeat * sizeof *completing),
           *planning = trama_alloc((size_t)repeat * sizeof *planning);
    for (int i = 0; i < repeat; i++)
        completing[i] = complete(p);
    leaves = target_plans_leaves(p, rank);
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

int main(int argc, char **argv)
{
    main_job job =
        main_job_new(bench_option(argc, argv, "mesh", "dp=2,mp=2"), bench_option(argc, argv, "hidden", "512,256"));
    int repeat = bench_number(argc, argv, "repeat", 5), batch = bench_number(argc, argv, "batch", 128);
    target_plans p =
        target_plans_new(job.program, job.train, machine_uniform(trama_mesh_size(job.mesh), 1), (int64_t)batch * data_parallel(job.mesh));
    measure(&p, 0, repeat);
    if (p.machine->n_ranks > 1)
        measure(&p, p.machine->n_ranks / 2, repeat);
    target_plans_free(&p);
    main_job_free(&job);
    return 0;
}
