/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is the chain of hop.c written by hand for StarPU-MPI, whose thread drives the one worker of each rank, as
 * Trama lets it on few cores: StarPU is told so, and a receive from oneself keeps that thread from sleeping.
 * Usage: plain_hop [--hops 200] [--elements 16] */
#include "bench.h"

#if TRAMA_HAVE_MPI
#include <semaphore.h>
#include <starpu_mpi.h>
#include <stdlib.h>

typedef struct chain {
    int rank, hops, elements;
    starpu_data_handle_t *x, *y, keep[2]; /* x, y [hops + 1]: y[i] is made of x[i], and sent; x[i + 1] is received */
    float *data;                          /* [2, hops + 1, elements] */
    int64_t kept[2];
    sem_t ended;
} chain;

static void scale(void *buffers[], void *arg)
{
    const float *x = (const float *)STARPU_VECTOR_GET_PTR(buffers[0]);
    float *y = (float *)STARPU_VECTOR_GET_PTR(buffers[1]);
    uint32_t n = STARPU_VECTOR_GET_NX(buffers[0]);
    (void)arg;
    for (uint32_t i = 0; i < n; i++)
        y[i] = 2 * x[i];
}

static struct starpu_codelet scale_codelet = {
    .cpu_funcs = {scale}, .nbuffers = 2, .modes = {STARPU_R, STARPU_W}, .name = "scale"};

static void end_chain(void *arg)
{
    chain *c = arg;
    sem_post(&c->ended);
}

static void hop(chain *c, int i)
{
    void (*callback)(void *) = i == c->hops - 1 ? end_chain : NULL;
    if (i % 2 != c->rank) {
        starpu_mpi_irecv_detached(c->x[i + 1], 1 - c->rank, i, MPI_COMM_WORLD, callback, c);
        return;
    }
    struct starpu_task *task = starpu_task_create();
    task->cl = &scale_codelet;
    task->handles[0] = c->x[i];
    task->handles[1] = c->y[i];
    if (starpu_task_submit(task))
        bench_fail("starpu_task_submit failed");
    starpu_mpi_isend_detached(c->y[i], 1 - c->rank, i, MPI_COMM_WORLD, callback, c);
}

static void run(void *arg, int n)
{
    chain *c = arg;
    starpu_mpi_irecv_detached(c->keep[0], c->rank, c->hops, MPI_COMM_WORLD, NULL, NULL);
    starpu_resume();
    for (; n > 0; n--) {
        for (int i = 0; i < c->hops; i++)
            hop(c, i);
        sem_wait(&c->ended);
    }
    starpu_mpi_isend_detached(c->keep[1], c->rank, c->hops, MPI_COMM_WORLD, NULL, NULL);
    starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    starpu_pause();
}

static void register_vectors(chain *c)
{
    size_t n = (size_t)c->hops + 1;
    c->x = malloc(2 * n * sizeof *c->x);
    c->y = c->x + n;
    c->data = calloc(2 * n * (size_t)c->elements, sizeof *c->data);
    for (size_t i = 0; i < 2 * n; i++)
        starpu_vector_data_register(&c->x[i], STARPU_MAIN_RAM, (uintptr_t)(c->data + i * (size_t)c->elements),
                                    (uint32_t)c->elements, sizeof *c->data);
    for (int i = 0; i < 2; i++)
        starpu_variable_data_register(&c->keep[i], STARPU_MAIN_RAM, (uintptr_t)&c->kept[i], sizeof c->kept[i]);
}

static void unregister_vectors(chain *c)
{
    for (int i = 0; i < 2 * (c->hops + 1); i++)
        starpu_data_unregister(c->x[i]);
    for (int i = 0; i < 2; i++)
        starpu_data_unregister(c->keep[i]);
    free(c->x);
    free(c->data);
}

static void start_starpu(void)
{
    static const char *const variables[] = {"STARPU_MPI_DRIVER_CALL_FREQUENCY", "STARPU_MPI_DRIVER_TASK_FREQUENCY",
                                            "STARPU_WORKERS_NOBIND", "STARPU_MPI_NOBIND"};
    struct starpu_conf conf;
    for (int i = 0; i < 4; i++)
        setenv(variables[i], "1", 1);
    setenv("STARPU_MPI_NDETACHED_SEND", "0", 1);
    setenv("STARPU_MPI_CACHE", "0", 1);
    starpu_conf_init(&conf);
    conf.sched_policy_name = "lws";
    conf.ncpus = 1;
    conf.ncuda = 0;
    conf.catch_signals = 0;
    if (starpu_mpi_init_conf(NULL, NULL, 0, MPI_COMM_WORLD, &conf))
        bench_fail("starpu_mpi_init_conf failed");
}

int main(int argc, char **argv)
{
    chain c = {.hops = bench_number(argc, argv, "hops", 200), .elements = bench_number(argc, argv, "elements", 16)};
    int threads, ranks;
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0); /* without it, ranks that share a core take 4 ms a hop */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2)
        bench_fail("2 ranks, please");
    start_starpu();
    sem_init(&c.ended, 0, 0);
    register_vectors(&c);
    starpu_pause();
    bench_serve(c.rank, ranks, run, &c);
    starpu_resume();
    unregister_vectors(&c);
    starpu_mpi_shutdown();
    MPI_Finalize();
    return 0;
}
#else
int main(void)
{
    bench_fail("built without MPI");
}
#endif
