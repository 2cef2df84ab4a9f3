/* SPDX-License-Identifier: Apache-2.0 */
/* Work beside messages, which may take longer than they need (delay.h).
 * Usage: overlap dp|alone|mp|sequence [--mesh SPEC] [--delay 0] [--count N] [--plan summary|steps]
 *   dp        one unit is a step of the main job, without feeding it [--hidden 1024,1024,1024] [--batch 512]
 *             [--optimizer sgd|adamw]
 *   alone     the same on each rank for itself, on its share of the cores; without --delay and --count
 *   mp        micro-batches through column-then-row blocks [--micro 6] [--blocks 3] [--batch 128] [--width 1024]
 *   sequence  causal attention of one head over a sequence that is split, forward and backward [--length 4096]
 *   --delay  microseconds by which each request of MPI that completes is held back; 0: none
 *   --count  each rank prints how many of its requests completed in N units, instead of being served */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "delay.h"
#include "main_job.h"
#include "micro_batches.h"

#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

/* Of all that were started, whether or not the context knows of them. */
static struct {
    int rank, ranks;
} world = {0, 1};

/* The cores that the program may use are shared out. */
static void keep_to_own_cores(void)
{
    cpu_set_t all, mine;
    int n = bench_cores(), seen = 0, share = n / world.ranks > 1 ? n / world.ranks : 1;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&mine);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all) && seen++ / share == world.rank % n)
            CPU_SET(core, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}

static trama_context *start(bool alone)
{
    trama_config config = {0};
    trama_context *context;
#if TRAMA_HAVE_MPI
    static MPI_Comm self = MPI_COMM_SELF;
    int threads;
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0); /* as Trama does where it starts MPI */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    if (alone)
        config.communicator = &self;
#endif
    if (alone)
        keep_to_own_cores();
    bench_try(trama_start(&config, &context), "start");
    return context;
}

static void feed(trama_executable *e, const main_job *job, int batch)
{
    float *images;
    int64_t *labels;
    main_job_samples(batch, &images, &labels);
    bench_try(trama_feed(e, job->x, images, TRAMA_SHAPE(batch, MAIN_JOB_IN)), "feed");
    bench_try(trama_feed(e, job->y, labels, TRAMA_SHAPE(batch)), "feed");
    free(images);
    free(labels);
}

/* The first units are not counted: they may have to set something up. */
static void count(bench_target *t, int n)
{
    bench_run_target(t, 3);
    delay_counts before = delay_count();
    bench_run_target(t, n);
    delay_counts after = delay_count();
    printf("%" PRId64 " %" PRId64 "\n", after.envelopes - before.envelopes, after.data - before.data);
    fflush(stdout);
}

static void serve(int argc, char **argv, bench_target *t)
{
    const char *counted = bench_option(argc, argv, "count", NULL);
    int units = bench_number(argc, argv, "count", 1);
    delay_set(atoi(bench_option(argc, argv, "delay", "0")));
    bench_print_plan(t, bench_option(argc, argv, "plan", NULL));
    if (counted)
        count(t, units);
    else
        bench_serve(world.rank, world.ranks, bench_run_target, t);
    delay_set(0);
    bench_try(trama_executable_destroy(&t->executable), "destroy");
}

static main_job job_of(int argc, char **argv)
{
    bool adamw = !strcmp(bench_option(argc, argv, "optimizer", "sgd"), "adamw");
    main_job job = main_job_forward(bench_option(argc, argv, "mesh", !strcmp(argv[1], "dp") ? "dp=2" : "1"),
                                    bench_option(argc, argv, "hidden", "1024,1024,1024"));
    trama_optimizer optimizer = adamw ? trama_adamw(1e-3) : trama_sgd(0.1);
    job.train = trama_target_create(job.program, "train", trama_minimize(job.loss, &optimizer), job.loss);
    return job;
}

static void serve_dp(int argc, char **argv, trama_context *context)
{
    main_job job = job_of(argc, argv);
    bench_target t = {.target = job.train};
    bench_try(trama_compile(context, job.program, &t.executable), "compile");
    feed(t.executable, &job, bench_number(argc, argv, "batch", 512));
    serve(argc, argv, &t);
    main_job_free(&job);
}

static void serve_mp(int argc, char **argv, trama_context *context)
{
    micro_batches m = {.n = bench_number(argc, argv, "micro", 6),
                       .blocks = bench_number(argc, argv, "blocks", 3),
                       .batch = bench_number(argc, argv, "batch", 128),
                       .width = bench_number(argc, argv, "width", 1024)};
    if (m.n > MOST_MICRO_BATCHES)
        bench_fail("--micro takes at most %d", MOST_MICRO_BATCHES);
    micro_batches_make(&m, bench_option(argc, argv, "mesh", "mp=2"));
    if (!m.program)
        bench_fail("%s", trama_error());
    bench_target t = {.target = m.forward};
    bench_try(trama_compile(context, m.program, &t.executable), "compile");
    serve(argc, argv, &t);
    micro_batches_free(&m);
}

static void serve_sequence(int argc, char **argv, trama_context *context)
{
    const trama_shape shape = TRAMA_SHAPE(1, 1, bench_number(argc, argv, "length", 4096), 64);
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create(bench_option(argc, argv, "mesh", "sp=2"));
    trama_value *in[3], *results[4];
    for (int i = 0; i < 3; i++)
        in[i] = trama_shard(trama_parameter(p, (const char *[]){"q", "k", "v"}[i], TRAMA_F32, shape,
                                            &(trama_init){-1, 1, 1, (uint64_t)i}),
                            mesh, "S(2)");
    results[0] = trama_attention_with(in[0], in[1], in[2], NULL, true, 0);
    trama_value *loss = trama_sum(trama_square(results[0]));
    for (int i = 0; i < 3; i++)
        results[i + 1] = trama_gradient(loss, in[i]);
    bench_target t = {.target = trama_target_at(TRAMA_HERE, p, "step", 4, results)};
    if (!t.target)
        bench_fail("%s", mesh ? trama_program_error(p) : trama_error());
    bench_try(trama_compile(context, p, &t.executable), "compile");
    serve(argc, argv, &t);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool alone = !strcmp(what, "alone"), blocks = !strcmp(what, "mp"), sequence = !strcmp(what, "sequence");
    if (!alone && !blocks && !sequence && strcmp(what, "dp"))
        bench_fail("usage: overlap dp|alone|mp|sequence");
    trama_context *context = start(alone);
    (blocks ? serve_mp : sequence ? serve_sequence : serve_dp)(argc, argv, context);
    bench_try(trama_stop(&context), "stop");
#if TRAMA_HAVE_MPI
    MPI_Finalize();
#endif
    return 0;
}
