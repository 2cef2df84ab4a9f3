/* SPDX-License-Identifier: Apache-2.0 */
/* A StarPU program whose tasks sleep, so that it is known what its trace must tell. Knows nothing of Trama.
 *
 * sleeper lone N: two workers, times in N ms
 *     worker 0   nap 200   nap.grad 200   (nothing is asked for: 60)   update.nap 50
 *     worker 1   reshard.nap 150   merge.nap 100
 * nap ends 50 after reshard.nap at the earliest. nap.grad and merge.nap need nap, update.nap needs nap.grad;
 * update.nap is step 1, the others step 0.
 *
 * sleeper pair N: two ranks of one worker, a message from 0 to 1 that takes 400
 *     rank 0   nap 100   other 200 after the message left
 *     rank 1   meet 120 after the message left   use 200
 * use needs what nap made; meet begins before the message can arrive.
 *
 * All times are the least: on a busy machine each may be longer, and none is shorter. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu.h>
#if TRAMA_HAVE_MPI
#include <starpu_mpi.h>
#endif

enum { LARGE = 1 << 18 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void sleep_until(double ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1e3)};
    t.tv_nsec = (long)((ms - (double)t.tv_sec * 1e3) * 1e6);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static int scale; /* N */

/* Waits for a task or a message to come, and sleeps from then on. */
static void sleep_after(const _Atomic double *moment, double time)
{
    while (*moment == 0)
        sleep_until(now() + 0.2);
    sleep_until(*moment + scale * time);
}

static void nap(void *buffers[], void *argument)
{
    int time;
    const _Atomic double *after; /* ends 50 after that at the earliest; NULL */
    _Atomic double *done;        /* gets when it ended; NULL */
    double begin = now();
    (void)buffers;
    starpu_codelet_unpack_args(argument, &time, &after, &done);
    sleep_until(begin + scale * (double)time);
    if (after)
        sleep_after(after, 50);
    if (done)
        *done = now();
}

static struct starpu_codelet writes = {.cpu_funcs = {nap}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "nap"};
static struct starpu_codelet reads = {.cpu_funcs = {nap}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "nap"};

static starpu_data_handle_t buffer(const char *name, float *memory, size_t n)
{
    starpu_data_handle_t handle;
    starpu_vector_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)memory, (uint32_t)n, sizeof *memory);
    starpu_data_set_name(handle, name);
    return handle;
}

static void must(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "sleeper: %s: %d\n", what, result);
        exit(EXIT_FAILURE);
    }
}

typedef struct sleep_task {
    const char *name;
    int worker, time;
    double flops;
    const _Atomic double *after;
    _Atomic double *done;
} sleep_task;

static void submit(sleep_task t, starpu_data_handle_t in, starpu_data_handle_t out)
{
    must(in ? starpu_task_insert(&reads, STARPU_NAME, t.name, STARPU_EXECUTE_ON_WORKER, t.worker, STARPU_VALUE, &t.time,
                                 sizeof t.time, STARPU_VALUE, &t.after, sizeof t.after, STARPU_VALUE, &t.done,
                                 sizeof t.done, STARPU_FLOPS, t.flops, STARPU_R, in, STARPU_RW, out, 0)
            : starpu_task_insert(&writes, STARPU_NAME, t.name, STARPU_EXECUTE_ON_WORKER, t.worker, STARPU_VALUE,
                                 &t.time, sizeof t.time, STARPU_VALUE, &t.after, sizeof t.after, STARPU_VALUE, &t.done,
                                 sizeof t.done, STARPU_FLOPS, t.flops, STARPU_RW, out, 0),
         t.name);
}

static void run_lone(void)
{
    static float memory[4];
    static _Atomic double resharded;
    must(starpu_init(NULL), "starpu_init");
    starpu_data_handle_t a = buffer("a", memory, 1), b = buffer("b", memory + 1, 1);
    starpu_data_handle_t c = buffer("c", memory + 2, 1), d = buffer("d", memory + 3, 1);
    starpu_iteration_push(0);
    submit((sleep_task){.name = "nap", .worker = 0, .time = 200, .flops = 4e8 * scale, .after = &resharded}, NULL, a);
    submit((sleep_task){.name = "reshard.nap", .worker = 1, .time = 150, .done = &resharded}, NULL, c);
    submit((sleep_task){.name = "nap.grad", .worker = 0, .time = 200, .flops = 1e8 * scale}, a, b);
    submit((sleep_task){.name = "merge.nap", .worker = 1, .time = 100}, a, d);
    starpu_iteration_pop();
    starpu_task_wait_for_all();
    sleep_until(now() + 60 * scale);
    starpu_iteration_push(1);
    submit((sleep_task){.name = "update.nap", .worker = 0, .time = 50}, NULL, b);
    starpu_iteration_pop();
    starpu_task_wait_for_all();
    starpu_data_handle_t all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        starpu_data_unregister(all[i]);
    starpu_shutdown();
}

#if TRAMA_HAVE_MPI

/* ---- A message that takes its time ---- */

/* A large message carries the time at which it left, of the clock that all ranks of a machine share. */
typedef struct large {
    _Atomic double left;
    char rest[LARGE - sizeof(double)];
} large;

static large message;
static MPI_Request *slow; /* of the large message */

static bool is_large(int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (size_t)count * (size_t)size >= LARGE;
}

int MPI_Isend(const void *memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (is_large(count, type))
        message.left = now();
    return PMPI_Isend(memory, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *memory, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    slow = is_large(count, type) ? request : slow;
    return PMPI_Irecv(memory, count, type, source, tag, comm, request);
}

/* It is not said to be there before its time. */
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (request == slow) {
        PMPI_Request_get_status(*request, flag, MPI_STATUS_IGNORE);
        if (!*flag || now() < message.left + 400 * scale)
            return *flag = 0, MPI_SUCCESS;
        slow = NULL;
    }
    return PMPI_Test(request, flag, status);
}

static void meet(void *buffers[], void *argument)
{
    int time;
    (void)buffers;
    starpu_codelet_unpack_args(argument, &time);
    sleep_after(&message.left, time);
}

static struct starpu_codelet meets = {.cpu_funcs = {meet}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "meet"};

static void submit_meeting(const char *name, int time, starpu_data_handle_t handle)
{
    must(starpu_task_insert(&meets, STARPU_NAME, name, STARPU_VALUE, &time, sizeof time, STARPU_RW, handle, 0), name);
}

static void run_pair(void)
{
    static float small[2];
    int rank;
    must(starpu_mpi_init_conf(NULL, NULL, 1, MPI_COMM_WORLD, NULL), "starpu_mpi_init");
    starpu_mpi_comm_rank(MPI_COMM_WORLD, &rank);
    starpu_data_handle_t x = buffer("x", (float *)&message, LARGE / sizeof(float));
    starpu_data_handle_t y = buffer("y", small, 1), z = buffer("z", small + 1, 1);
    starpu_mpi_data_register(x, -1, rank);
    starpu_mpi_barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        static _Atomic double done;
        submit((sleep_task){.name = "nap", .worker = 0, .time = 100, .done = &done}, NULL, x);
        must(starpu_mpi_isend_detached(x, 1, 7, MPI_COMM_WORLD, NULL, NULL), "send");
        while (done == 0) /* else the worker may take the other first, which waits for the message of the nap */
            sleep_until(now() + 0.2);
        submit_meeting("other", 200, y);
    } else {
        must(starpu_mpi_irecv_detached(x, 0, 7, MPI_COMM_WORLD, NULL, NULL), "receive");
        submit_meeting("meet", 120, z);
        submit((sleep_task){.name = "use", .worker = 0, .time = 200}, x, y);
    }
    starpu_task_wait_for_all();
    starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    starpu_mpi_barrier(MPI_COMM_WORLD);
    starpu_data_unregister(x);
    starpu_data_unregister(y);
    starpu_data_unregister(z);
    starpu_mpi_shutdown();
}

#endif

int main(int argc, char **argv)
{
    scale = argc == 3 ? atoi(argv[2]) : 0;
    if (scale > 0 && !strcmp(argv[1], "lone"))
        return run_lone(), EXIT_SUCCESS;
#if TRAMA_HAVE_MPI
    if (scale > 0 && !strcmp(argv[1], "pair"))
        return run_pair(), EXIT_SUCCESS;
#endif
    fprintf(stderr, "sleeper lone|pair N\n");
    return EXIT_FAILURE;
}
