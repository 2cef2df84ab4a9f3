/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is a training step of the main job through Trama, fed as a user feeds it: the next samples of a data set in
 * memory, copied by trama_feed.
 * Usage: step [--what train|gradients|micro] [--mesh SPEC] [--hidden 512,256] [--batch 128] [--merge 1] [--count N]
 *             [--plan summary|steps]
 *   --what   gradients: instead of a step the gradients alone, for someone to read; micro: a micro-step of a cycle that
 *            never ends, which adds the gradients to those before
 *   --merge  micro-steps of --batch samples that a step takes its gradients from
 *   --count  each rank prints how many bytes it sends in N units, instead of being served */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "context.h"
#include "main_job.h"

enum { SAMPLES = 8192 };

typedef struct training {
    trama_executable *executable;
    main_job job;
    int batch, merge, at;
    float *images;   /* [SAMPLES, 784] */
    int64_t *labels; /* [SAMPLES] */
} training;

/* ---- Jobs ---- */

static main_job merging(const char *mesh, const char *hidden, int64_t k)
{
    main_job job = main_job_new(mesh, hidden);
    trama_gradient_merge(job.train, k, TRAMA_MERGE_AVG);
    return job;
}

static main_job listing_gradients(const char *mesh, const char *hidden)
{
    main_job job = main_job_forward(mesh, hidden);
    trama_value *values[2 * MAIN_JOB_MAX_LAYERS + 1];
    int n = 2 * job.n_layers;
    for (int i = 0; i < n; i++)
        values[i] = trama_gradient(job.loss, job.parameter[i]);
    values[n] = job.loss;
    job.train = trama_target_at(TRAMA_HERE, job.program, "gradients", n + 1, values);
    return job;
}

static main_job job_of(int argc, char **argv)
{
    const char *what = bench_option(argc, argv, "what", "train");
    const char *mesh = bench_option(argc, argv, "mesh", "1"), *hidden = bench_option(argc, argv, "hidden", "512,256");
    int merge = bench_number(argc, argv, "merge", 1);
    if (!strcmp(what, "train"))
        return merging(mesh, hidden, merge);
    if (merge > 1)
        bench_fail("--merge is for --what train");
    if (!strcmp(what, "gradients"))
        return listing_gradients(mesh, hidden);
    if (!strcmp(what, "micro"))
        return merging(mesh, hidden, INT64_MAX);
    bench_fail("--what takes train, gradients or micro");
}

/* ---- Running it ---- */

static void feed(training *t)
{
    int batch = t->batch;
    const float *images = t->images + (size_t)t->at * MAIN_JOB_IN;
    bench_try(trama_feed(t->executable, t->job.x, images, TRAMA_SHAPE(batch, MAIN_JOB_IN)), "feed");
    bench_try(trama_feed(t->executable, t->job.y, t->labels + t->at, TRAMA_SHAPE(batch)), "feed");
    t->at = t->at + 2 * batch <= SAMPLES ? t->at + batch : 0;
}

static void run(void *arg, int n)
{
    training *t = arg;
    for (int64_t i = 0; i < (int64_t)n * t->merge; i++) {
        feed(t);
        bench_try(trama_run(t->executable, t->job.train), "run");
    }
    bench_try(trama_wait(t->executable), "wait");
}

/* The first unit is not counted: it may have to set something up. */
static void count(training *t, const trama_context *context, int n)
{
    run(t, 1);
    int64_t before = context_count(context).bytes_sent;
    run(t, n);
    printf("%" PRId64 "\n", context_count(context).bytes_sent - before);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    training t = {.job = job_of(argc, argv),
                  .batch = bench_number(argc, argv, "batch", 128),
                  .merge = bench_number(argc, argv, "merge", 1)};
    const char *plan = bench_option(argc, argv, "plan", NULL), *counted = bench_option(argc, argv, "count", NULL);
    int units = bench_number(argc, argv, "count", 1);
    trama_context *context;
    if (t.batch > SAMPLES)
        bench_fail("--batch takes at most %d", SAMPLES);
    main_job_samples(SAMPLES, &t.images, &t.labels);
    bench_try(trama_start(NULL, &context), "start");
    bench_try(trama_compile(context, t.job.program, &t.executable), "compile");
    if (plan) {
        feed(&t);
        bench_print_plan(&(bench_target){t.executable, t.job.train}, plan);
    }
    if (counted)
        count(&t, context, units);
    else
        bench_serve(trama_context_rank(context), trama_context_ranks(context), run, &t);
    bench_try(trama_executable_destroy(&t.executable), "destroy");
    bench_try(trama_stop(&context), "stop");
    main_job_free(&t.job);
    free(t.images);
    free(t.labels);
    return 0;
}
