/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that fail: one rank hears of it from every call, several learn it where they meet. */
#include "harness.h"
#include "own_ops.h"

static trama_status mute_cpu(const trama_call *call)
{
    return picky_cpu(call) ? TRAMA_E_MEMORY : TRAMA_OK;
}

typedef struct picky {
    remembered log;
    const trama_op *op;
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *y, *sum;
    trama_target *t;
    trama_executable *e;
    char place[300]; /* where the op is applied */
} picky;

enum { N_PICKY = 8 };

static void picky_begin(picky *f, const char *spec, trama_status (*cpu)(const trama_call *call))
{
    *f = (picky){.mesh = NULL};
    start_with(&(trama_config){.log = remember, .log_data = &f->log, .max_in_flight = 3});
    must(trama_op_define(
        &(trama_op_definition){
            .name = "picky", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = cpu, .pointwise = true},
        &f->op));
    f->mesh = mesh_of(spec);
    f->p = trama_program_create();
    f->x = trama_shard(trama_input(f->p, "x", TRAMA_F64, TRAMA_SHAPE(N_PICKY)), f->mesh, "S(0)");
    snprintf(f->place, sizeof f->place, "%s:%d: the kernel of picky failed on rank ", __FILE__, __LINE__ + 1);
    f->y = trama_apply(f->op, 1, &f->x, NULL);
    f->sum = trama_sum(f->y);
    f->t = trama_target_create(f->p, "t", f->y, f->sum);
    f->e = compile(f->p);
}

/* 13 at a place, or nowhere for -1; and one run. */
static trama_status picky_run(picky *f, int at)
{
    double x[N_PICKY];
    for (int i = 0; i < N_PICKY; i++)
        x[i] = i == at ? 13 : i;
    trama_status status = trama_feed(f->e, f->x, x, TRAMA_SHAPE(N_PICKY));
    return status ? status : trama_run(f->e, f->t);
}

static void picky_end(picky *f)
{
    trama_program_destroy(&f->p);
    trama_mesh_destroy(&f->mesh);
    trama_op_destroy(&f->op);
    stop();
}

static void demand_same_failure(picky *f)
{
    double y[N_PICKY];
    trama_reading *reading = NULL;
    must(picky_run(f, -1));
    must(trama_read(f->e, f->y, y, sizeof y));
    demand(y[7] == 7 && !f->log.lines, "it fails for nothing");
    must(picky_run(f, 5));
    expect(trama_wait(f->e), TRAMA_E_KERNEL, f->place, "rank 0: 13 is no number to work with");
    demand(f->log.lines == 1 && f->log.level == TRAMA_LOG_ERROR && strstr(f->log.last, f->place), "%d lines: %s",
           f->log.lines, f->log.last);
    expect(picky_run(f, -1), TRAMA_E_KERNEL, f->place);
    expect(trama_run(f->e, f->t), TRAMA_E_KERNEL, f->place);
    expect(trama_read(f->e, f->y, y, sizeof y), TRAMA_E_KERNEL, f->place);
    expect(trama_read_start(f->e, f->y, &reading), TRAMA_E_KERNEL, f->place);
    expect(trama_wait(f->e), TRAMA_E_KERNEL, f->place);
    demand(y[7] == 7 && !reading, "an error that gives something");
    demand(f->log.lines == 1, "%d lines are logged", f->log.lines);
}

/* Of several ranks, the one that failed learns it first: see the case after. */
START_TEST(a_failure_is_logged_once_and_comes_back_from_every_call)
{
    picky f;
    picky_begin(&f, "2", picky_cpu);
    if (n_ranks == 1)
        demand_same_failure(&f);
    must(trama_executable_destroy(&f.e)); /* it was told */
    picky_end(&f);
}
END_TEST

/* x is split over two processes. The last rank that has a process holds the second half. */
static const char *spread(void)
{
    return n_ranks == 2 ? "2" : "4";
}

static void demand_told(const picky *f, trama_status status, int failed)
{
    char rank[400];
    snprintf(rank, sizeof rank, "%s%d: 13 is no number to work with", f->place, failed);
    demand(status == TRAMA_E_KERNEL && strstr(trama_error(), rank), "%s: \"%s\" does not say \"%s\"",
           trama_status_text(status), trama_error(), rank);
}

/* One rank alone knows at once: see the case before. */
START_TEST(all_ranks_learn_of_a_failure_where_they_read_together)
{
    picky f;
    double y[N_PICKY], sum;
    trama_reading *reading = NULL;
    start();
    int last = n_ranks - 1;
    stop();
    for (int at = 0; last > 0 && at < N_PICKY; at += N_PICKY - 1) {
        int failed = at ? last : 0;
        picky_begin(&f, spread(), picky_cpu);
        for (int i = 0; i < 5; i++) /* runs go on, and nobody waits for a rank that has left */
            must(picky_run(&f, i == 2 ? at : -1));
        trama_status status = trama_wait(f.e);
        if (my_rank == failed)
            demand_told(&f, status, failed);
        else
            demand(!status, "rank %d: %s", my_rank, trama_error());
        demand(f.log.lines == (my_rank == failed), "rank %d logs %d lines: %s", my_rank, f.log.lines, f.log.last);
        must(trama_read_start(f.e, f.y, &reading));
        status = trama_read_wait(&reading, y, sizeof y);
        if (my_rank == failed)
            demand_told(&f, status, failed);
        else
            demand(!status && y[3] == 3, "rank %d: %s", my_rank, trama_error());
        demand_told(&f, trama_read(f.e, f.sum, &sum, sizeof sum), failed);
        demand_told(&f, picky_run(&f, -1), failed);
        demand_told(&f, trama_run(f.e, f.t), failed);
        demand_told(&f, trama_read(f.e, f.y, NULL, 0), failed);
        demand_told(&f, trama_read_start(f.e, f.y, &reading), failed);
        must(trama_executable_destroy(&f.e));
        demand(f.log.lines == (my_rank == failed), "rank %d logs %d lines: %s", my_rank, f.log.lines, f.log.last);
        picky_end(&f);
    }
}
END_TEST

START_TEST(all_ranks_learn_of_a_failure_where_they_destroy_the_executable)
{
    picky f;
    picky_begin(&f, spread(), picky_cpu);
    must(picky_run(&f, 0));
    demand_told(&f, trama_executable_destroy(&f.e), 0);
    demand(!f.e, "it is not destroyed");
    picky_end(&f);
}
END_TEST

START_TEST(a_kernel_may_fail_without_a_word_and_destroy_tells_what_nobody_heard)
{
    picky f;
    picky_begin(&f, "2", mute_cpu);
    must(picky_run(&f, 2));
    expect(trama_executable_destroy(&f.e), TRAMA_E_KERNEL, f.place);
    demand(!f.e, "it is not destroyed");
    picky_end(&f);
    picky_begin(&f, "1", mute_cpu);
    must(picky_run(&f, 2));
    expect(trama_read(f.e, f.sum, &(double){0}, sizeof(double)), TRAMA_E_KERNEL, f.place);
    must(trama_executable_destroy(&f.e));
    picky_end(&f);
}
END_TEST

static trama_status silent_cpu(const trama_call *call)
{
    (void)call;
    return TRAMA_E_MEMORY;
}

START_TEST(a_status_without_a_message_is_told_by_its_text)
{
    picky f;
    picky_begin(&f, "1", silent_cpu);
    must(picky_run(&f, -1));
    if (my_rank == 0) /* which has the mesh's process, and learns it first */
        expect(trama_wait(f.e), TRAMA_E_KERNEL, f.place, trama_status_text(TRAMA_E_MEMORY));
    expect(trama_read(f.e, f.sum, &(double){0}, sizeof(double)), TRAMA_E_KERNEL, f.place,
           trama_status_text(TRAMA_E_MEMORY));
    must(trama_executable_destroy(&f.e));
    picky_end(&f);
}
END_TEST

START_TEST(a_failure_in_eager_mode_ends_the_program)
{
    picky f;
    trama_program *p;
    trama_executable *e;
    double data[] = {1, 13, 2}, got[3];
    picky_begin(&f, "1", picky_cpu);
    must(trama_executable_destroy(&f.e));
    must(trama_eager(ctx, &p, &e));
    trama_value *x = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(3), data), *y = trama_apply(f.op, 1, &x, NULL);
    demand(y != NULL, "%s", trama_program_error(p));
    expect(trama_read(e, y, got, sizeof got), TRAMA_E_KERNEL, "picky", "13 is no number");
    demand(!trama_relu(x) && trama_program_status(p) == TRAMA_E_KERNEL, "a program that goes on");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    picky_end(&f);
}
END_TEST

TESTS(a_failure_is_logged_once_and_comes_back_from_every_call, all_ranks_learn_of_a_failure_where_they_read_together,
      all_ranks_learn_of_a_failure_where_they_destroy_the_executable,
      a_kernel_may_fail_without_a_word_and_destroy_tells_what_nobody_heard,
      a_status_without_a_message_is_told_by_its_text, a_failure_in_eager_mode_ends_the_program)
