/* SPDX-License-Identifier: Apache-2.0 */
/* The main job's program, through the public headers. */
#include "main_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

int main_job_sizes(const char *hidden, int size[MAIN_JOB_MAX_LAYERS + 1])
{
    int n = 0;
    size[n++] = MAIN_JOB_IN;
    for (char *rest; *hidden; hidden = *rest == ',' ? rest + 1 : rest) {
        long width = strtol(hidden, &rest, 10);
        if (rest == hidden || width < 1 || n == MAIN_JOB_MAX_LAYERS)
            bench_fail("--hidden takes up to %d sizes, such as 512,256", MAIN_JOB_MAX_LAYERS - 1);
        size[n++] = (int)width;
    }
    size[n] = MAIN_JOB_OUT;
    return n;
}

void main_job_samples(int n, float **images, int64_t **labels)
{
    size_t samples = (size_t)n;
    *images = malloc(sizeof **images * samples * MAIN_JOB_IN);
    *labels = malloc(sizeof **labels * samples);
    srand(1);
    for (int i = 0; i < n * MAIN_JOB_IN; i++)
        (*images)[i] = (float)(rand() % 256) / 255;
    for (int i = 0; i < n; i++)
        (*labels)[i] = rand() % MAIN_JOB_OUT;
}

/* Splits a dim along the mesh axis of that name; dim -1: nowhere. */
static void shard(const main_job *job, trama_value *value, const char *name, int dim)
{
    char layout[TRAMA_MAX_AXES * 16] = "";
    for (int a = 0; a < trama_mesh_ndim(job->mesh); a++) {
        const char *axis = trama_mesh_axis_name(job->mesh, a);
        bool split = dim >= 0 && axis && !strcmp(axis, name);
        snprintf(layout + strlen(layout), 16, split ? "%sS(%d)" : "%sR", a ? "," : "", dim);
    }
    trama_shard(value, job->mesh, layout);
}

static trama_value *layer(main_job *job, trama_value *h, int i)
{
    bool column = i % 2 == 0, whole = column && i == job->n_layers - 1;
    double bound = 1 / sqrt(job->size[i]);
    trama_init init = {-bound, bound, 1, (uint64_t)(2 * i)};
    char name[24];
    snprintf(name, sizeof name, "w%d", i);
    trama_value *w = trama_parameter(job->program, name, TRAMA_F32, TRAMA_SHAPE(job->size[i], job->size[i + 1]), &init);
    snprintf(name, sizeof name, "b%d", i);
    trama_value *b = trama_parameter(job->program, name, TRAMA_F32, TRAMA_SHAPE(job->size[i + 1]), NULL);
    shard(job, w, "mp", whole ? -1 : column);
    shard(job, b, "mp", whole || !column ? -1 : 0);
    job->parameter[2 * i] = w;
    job->parameter[2 * i + 1] = b;
    h = trama_add(trama_matmul(h, w), b);
    return i < job->n_layers - 1 ? trama_relu(h) : h;
}

main_job main_job_forward(const char *mesh, const char *hidden)
{
    main_job job = {.program = trama_program_create(), .mesh = trama_mesh_create(mesh)};
    if (!job.mesh)
        bench_fail("%s", trama_error());
    job.n_layers = main_job_sizes(hidden, job.size);
    job.x = trama_input(job.program, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, MAIN_JOB_IN));
    job.y = trama_input(job.program, "y", TRAMA_I64, TRAMA_SHAPE(TRAMA_ANY));
    shard(&job, job.x, "dp", 0);
    trama_value *h = job.x;
    for (int i = 0; i < job.n_layers; i++)
        h = layer(&job, h, i);
    job.loss = trama_cross_entropy(h, job.y);
    return job;
}

main_job main_job_new(const char *mesh, const char *hidden)
{
    main_job job = main_job_forward(mesh, hidden);
    trama_optimizer sgd = trama_sgd(0.1);
    job.train = trama_target_create(job.program, "train", trama_minimize(job.loss, &sgd), job.loss);
    if (trama_program_status(job.program))
        bench_fail("%s", trama_program_error(job.program));
    return job;
}

void main_job_free(main_job *job)
{
    trama_program_destroy(&job->program);
    trama_mesh_destroy(&job->mesh);
}
