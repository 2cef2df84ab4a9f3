/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is the chain of chain.c written by hand for StarPU: a static codelet, starpu_task_create, as many handles,
 * the same scheduler, the same workers, at most two chains in flight.
 * Usage: plain_starpu [--ops 1000] [--elements 16] [--hold yes|no]
 *   --hold   all tasks on one worker [yes], as Trama holds a chain; no: the scheduler's choice */
#include <starpu.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct chain {
    int ops, elements;
    bool hold;
    starpu_data_handle_t *x, b; /* x [ops + 2], b its last */
    float *data;                /* [ops + 2, elements] */
} chain;

static void add(void *buffers[], void *arg)
{
    const float *x = (const float *)STARPU_VECTOR_GET_PTR(buffers[0]);
    const float *b = (const float *)STARPU_VECTOR_GET_PTR(buffers[1]);
    float *y = (float *)STARPU_VECTOR_GET_PTR(buffers[2]);
    uint32_t n = STARPU_VECTOR_GET_NX(buffers[0]);
    (void)arg;
    for (uint32_t i = 0; i < n; i++)
        y[i] = x[i] + b[i];
}

static struct starpu_codelet add_codelet = {
    .cpu_funcs = {add}, .nbuffers = 3, .modes = {STARPU_R, STARPU_R, STARPU_W}, .name = "add"};

static void submit(const chain *c, int i)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = &add_codelet;
    task->handles[0] = c->x[i];
    task->handles[1] = c->b;
    task->handles[2] = c->x[i + 1];
    task->execute_on_a_specific_worker = c->hold;
    if (starpu_task_submit(task))
        bench_fail("starpu_task_submit failed");
}

static void run(void *arg, int n)
{
    const chain *c = arg;
    starpu_resume();
    for (int k = 0; k < n; k++) {
        if (k >= 2)
            starpu_task_wait_for_n_submitted((unsigned)c->ops);
        for (int i = 0; i < c->ops; i++)
            submit(c, i);
    }
    starpu_task_wait_for_all();
    starpu_pause();
}

/* b is the last vector. */
static void register_vectors(chain *c)
{
    c->x = malloc((size_t)(c->ops + 2) * sizeof *c->x);
    c->data = calloc((size_t)(c->ops + 2) * (size_t)c->elements, sizeof *c->data);
    for (int i = 0; i < c->ops + 2; i++)
        starpu_vector_data_register(&c->x[i], STARPU_MAIN_RAM, (uintptr_t)(c->data + (size_t)i * (size_t)c->elements),
                                    (uint32_t)c->elements, sizeof *c->data);
    c->b = c->x[c->ops + 1];
}

int main(int argc, char **argv)
{
    chain c = {.ops = bench_number(argc, argv, "ops", 1000), .elements = bench_number(argc, argv, "elements", 16)};
    struct starpu_conf conf;
    c.hold = strcmp(bench_option(argc, argv, "hold", "yes"), "no") != 0;
    starpu_conf_init(&conf);
    conf.sched_policy_name = "lws";
    conf.ncpus = bench_cores();
    conf.ncuda = 0;
    conf.catch_signals = 0;
    if (starpu_init(&conf))
        bench_fail("starpu_init failed");
    register_vectors(&c);
    starpu_pause();
    bench_serve(0, 1, run, &c);
    starpu_resume();
    for (int i = 0; i < c.ops + 2; i++)
        starpu_data_unregister(c.x[i]);
    starpu_shutdown();
    free(c.x);
    free(c.data);
    return 0;
}
