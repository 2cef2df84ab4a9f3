/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that move boxes: they move in the memory of a GPU. */
#ifndef TESTS_CODELETS_ON_GPU_BOXES_H
#define TESTS_CODELETS_ON_GPU_BOXES_H

#include "on_gpu.h"

static inline void run_copy(const trama_view *device, const gpu *g, void *with)
{
    (void)with;
    gpu_copy(&device[0], &device[1], g);
}

static inline void on_gpu_copy(const trama_view *destination, const trama_view *source)
{
    const trama_view views[] = {*destination, *source};
    on_gpu_run(2, 1, views, run_copy, NULL);
}
#define kernel_copy on_gpu_copy

static inline void run_fill(const trama_view *device, const gpu *g, void *with)
{
    gpu_fill(&device[0], *(double *)with, g);
}

static inline void on_gpu_fill(const trama_view *destination, double value)
{
    on_gpu_run(1, 1, destination, run_fill, &value);
}
#define kernel_fill on_gpu_fill

typedef struct reduce_of_terms {
    int n;
    kernel_combine combine;
    double scale;
    size_t workspace; /* 0: all of it */
} reduce_of_terms;

static inline void run_reduce(const trama_view *device, const gpu *g, void *with)
{
    const reduce_of_terms *t = with;
    gpu less = *g;
    if (t->workspace)
        less.workspace_bytes = t->workspace;
    gpu_reduce(&device[0], t->n, device + 1, t->combine, t->scale, &less);
}

static inline void on_gpu_reduce(const trama_view *destination, int n, const trama_view *sources,
                                 kernel_combine combine, double scale)
{
    reduce_of_terms with = {n, combine, scale, 0};
    trama_view *views = malloc(((size_t)n + 1) * sizeof *views);
    views[0] = *destination;
    memcpy(views + 1, sources, (size_t)n * sizeof *views);
    on_gpu_run(n + 1, 1, views, run_reduce, &with);
    free(views);
}
#define kernel_reduce on_gpu_reduce

#endif
