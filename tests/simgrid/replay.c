/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps that `trama rehearse --graph` wrote as tasks and messages of a StarPU that was built for SimGrid, one
 * process a rank, and prints the simulated seconds. It shares no code with the rehearsal: StarPU schedules, StarPU-MPI
 * sends, and SimGrid has the time.
 *
 * A step i has a handle without data, done[i]. The step writes it, and the steps that wait for i read it. A message has
 * a handle of its bytes, which tasks without a worker put between its neighbours. */
#include <inttypes.h>
#include <starpu.h>
#include <starpu_mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { TASK, ORDER, SEND, RECEIVE } kind;

typedef struct step {
    kind kind;
    int priority, worker, peer;
    int64_t tag, bytes;
    double us;
    int n_before, *before; /* steps that it waits for */
    starpu_data_handle_t done, data;
} step;

typedef struct steps {
    int n;
    bool whole; /* its last line was there */
    step *at;
} steps;

static void fail(const char *what)
{
    fprintf(stderr, "replay: %s\n", what);
    exit(EXIT_FAILURE);
}

static void *grow(void *list, size_t n, size_t size)
{
    void *grown = (n & (n - 1)) && list ? list : realloc(list, (n ? 2 * n : 1) * size);
    if (!grown)
        fail("no memory");
    return grown;
}

static void *allocate(int n, size_t size)
{
    void *made = calloc((size_t)n, size);
    if (!made)
        fail("no memory");
    return made;
}

/* ---- The file ---- */

typedef struct edge {
    int from, to;
} edge;

/* "KIND RANK STEP PRIORITY WORKER SECONDS PEER TAG BYTES NAME: NEXT..."; lines of other ranks are skipped. */
static void take_line(char *line, int rank, steps *s, edge **edges, size_t *n_edges)
{
    char word[16];
    int of, number, end;
    step new = {0};
    double seconds;
    s->whole |= !strcmp(line, "# end\n");
    if (*line == '#')
        return;
    if (sscanf(line, "%15s %d %d %d %d %lf %d %" SCNd64 " %" SCNd64 " %*[^:]:%n", word, &of, &number, &new.priority,
               &new.worker, &seconds, &new.peer, &new.tag, &new.bytes, &end) != 9)
        fail(line);
    if (of != rank)
        return;
    if (number != s->n)
        fail("the steps are not in order");
    new.kind = !strcmp(word, "send")      ? SEND
               : !strcmp(word, "receive") ? RECEIVE
               : !strcmp(word, "order")   ? ORDER
                                          : TASK;
    new.us = 1e6 * seconds;
    s->at = grow(s->at, (size_t)s->n, sizeof *s->at);
    s->at[s->n++] = new;
    char *rest = line + end;
    for (char *next; (number = (int)strtol(rest, &next, 10)), next != rest; rest = next) {
        *edges = grow(*edges, *n_edges, sizeof **edges);
        (*edges)[(*n_edges)++] = (edge){s->n - 1, number};
    }
}

static steps read_steps(const char *path, int rank)
{
    steps s = {0};
    edge *edges = NULL;
    size_t n_edges = 0, room = 0;
    char *line = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path);
    while (getline(&line, &room, file) >= 0)
        take_line(line, rank, &s, &edges, &n_edges);
    fclose(file);
    free(line);
    if (!s.whole)
        fail("the file lacks its end");
    for (size_t i = 0; i < n_edges; i++) {
        step *to = &s.at[edges[i].to];
        to->before = grow(to->before, (size_t)to->n_before, sizeof *to->before);
        to->before[to->n_before++] = edges[i].from;
    }
    free(edges);
    return s;
}

/* ---- StarPU ---- */

static double cost(struct starpu_task *task, unsigned worker, unsigned implementation)
{
    (void)worker;
    (void)implementation;
    return *(const double *)task->cl_arg;
}

static void nothing(void *buffers[], void *argument)
{
    (void)buffers;
    (void)argument;
}

static struct starpu_perfmodel model = {.type = STARPU_PER_WORKER, .symbol = "step", .worker_cost_function = cost};
static struct starpu_codelet works = {
    .cpu_funcs = {nothing}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .model = &model, .name = "step"};
static struct starpu_codelet joins = {.where = STARPU_NOWHERE, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "join"};

static void submit(struct starpu_codelet *codelet, step *of, const starpu_data_handle_t *handles, int n,
                   const enum starpu_data_access_mode *modes)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = codelet;
    task->cl_arg = &of->us;
    task->priority = of->priority;
    task->nbuffers = n;
    task->dyn_handles = allocate(n, sizeof *task->dyn_handles); /* StarPU frees both */
    task->dyn_modes = allocate(n, sizeof *task->dyn_modes);
    memcpy(task->dyn_handles, handles, (size_t)n * sizeof *handles);
    memcpy(task->dyn_modes, modes, (size_t)n * sizeof *modes);
    if (codelet == &works && of->worker >= 0) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = (unsigned)of->worker;
    }
    const int status = starpu_task_submit(task);
    if (status)
        fail(strerror(-status));
}

/* The two ends of a message: what it waits for, then its data, then done. */
static void submit_message(step *of)
{
    const bool sends = of->kind == SEND;
    if (sends)
        starpu_mpi_isend_detached_prio(of->data, of->peer, of->tag, of->priority, MPI_COMM_WORLD, NULL, NULL);
    else
        starpu_mpi_irecv_detached(of->data, of->peer, of->tag, MPI_COMM_WORLD, NULL, NULL);
    /* A writer of the data waits until they have left. */
    starpu_data_handle_t handles[] = {of->done, of->data};
    submit(&joins, of, handles, 2, (enum starpu_data_access_mode[]){STARPU_W, sends ? STARPU_RW : STARPU_R});
}

static void submit_step(const steps *s, step *of)
{
    const int n = of->n_before + 1;
    starpu_data_handle_t *handles = allocate(n, sizeof *handles);
    enum starpu_data_access_mode *modes = allocate(n, sizeof *modes);
    for (int i = 0; i < of->n_before; i++) {
        handles[i] = s->at[of->before[i]].done;
        modes[i] = STARPU_R;
    }
    handles[n - 1] = of->kind < SEND ? of->done : of->data;
    modes[n - 1] = STARPU_W;
    submit(of->kind == TASK ? &works : &joins, of, handles, n, modes);
    if (of->kind >= SEND)
        submit_message(of);
    free(handles);
    free(modes);
}

/* Returns a buffer that all messages share, whose content says nothing. */
static void *register_handles(steps *s)
{
    int64_t most = 1;
    for (int i = 0; i < s->n; i++)
        most = s->at[i].bytes > most ? s->at[i].bytes : most;
    char *buffer = allocate(1, (size_t)most);
    for (int i = 0; i < s->n; i++) {
        step *of = &s->at[i];
        starpu_void_data_register(&of->done);
        if (of->kind >= SEND)
            starpu_variable_data_register(&of->data, STARPU_MAIN_RAM, (uintptr_t)buffer, (size_t)of->bytes);
    }
    return buffer;
}

int main(int argc, char **argv)
{
    int rank;
    if (argc != 2 || starpu_mpi_init_conf(&argc, &argv, 1, MPI_COMM_WORLD, NULL))
        fail("takes the file of a graph");
    starpu_mpi_comm_rank(MPI_COMM_WORLD, &rank);
    steps s = read_steps(argv[1], rank);
    void *buffer = register_handles(&s);
    starpu_mpi_barrier(MPI_COMM_WORLD);
    const double begin = starpu_timing_now();
    for (int i = 0; i < s.n; i++)
        submit_step(&s, &s.at[i]);
    starpu_task_wait_for_all();
    starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    starpu_mpi_barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9f\n", (starpu_timing_now() - begin) / 1e6);
    for (int i = 0; i < s.n; i++) {
        starpu_data_unregister(s.at[i].done);
        if (s.at[i].kind >= SEND)
            starpu_data_unregister(s.at[i].data);
        free(s.at[i].before);
    }
    free(s.at);
    free(buffer);
    starpu_mpi_shutdown();
    return EXIT_SUCCESS;
}
