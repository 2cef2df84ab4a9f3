/* SPDX-License-Identifier: Apache-2.0 */
/* An asynchronous save returns while runs are under way, and has the state that they leave, not that of later runs.
 * Failures of kernels and folders are told by the next call. A kernel waits for the test here. */
#define _GNU_SOURCE /* nftw */
#include <stdatomic.h>

#include "saved.h"

enum { N = 1200007 /* three slabs on one rank */ };

static atomic_bool is_open;
static atomic_int refuses; /* the kernel fails */

static trama_status wait_cpu(const trama_call *call)
{
    while (!atomic_load(&is_open))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    for (int64_t i = 0; i < call->in[0].extent[0]; i++)
        y[i] = x[i] + 1;
    return atomic_load(&refuses) ? TRAMA_E_ARGUMENT : TRAMA_OK;
}

typedef struct counting {
    const trama_op *op;
    trama_mesh *mesh;
    trama_program *p;
    trama_value *w;
    trama_target *t;
    trama_executable *e;
} counting;

static void hush(void *data, trama_log_level level, const char *words)
{
}

/* Each run adds 1 to all elements of w, once the kernel may. */
static counting counting_new(const char *spec)
{
    counting c = {0};
    atomic_store(&is_open, true);
    atomic_store(&refuses, 0);
    start_with(&(trama_config){.log = hush, .max_in_flight = 4});
    folder_new();
    must(trama_op_define(
        &(trama_op_definition){
            .name = "later", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = wait_cpu, .pointwise = true},
        &c.op));
    c.mesh = mesh_of(spec);
    c.p = trama_program_create();
    c.w = trama_shard(trama_state(c.p, "w", TRAMA_F64, TRAMA_SHAPE(N), NULL), c.mesh, "S(0)");
    c.t = trama_target_create(c.p, "t", trama_assign(c.w, trama_apply(c.op, 1, &c.w, NULL)));
    c.e = compile(c.p);
    return c;
}

static void counting_free(counting *c)
{
    trama_program_destroy(&c->p);
    trama_mesh_destroy(&c->mesh);
    trama_op_destroy(&c->op);
    folder_remove();
    stop();
}

static void expect_all(const counting *c, double wanted)
{
    double *data = malloc(N * sizeof *data);
    must(trama_read(c->e, c->w, data, N * sizeof *data));
    for (int i = 0; i < N; i++)
        demand(data[i] == wanted, "w[%d] is %g instead of %g", i, data[i], wanted);
    free(data);
}

static trama_status save(const counting *c, int64_t step)
{
    return trama_save(c->e, folder, &(trama_save_options){.step = step, .asynchronous = true});
}

/* Were a save to wait for the runs before it, this test would not end. */
static void save_between(const char *spec)
{
    counting c = counting_new(spec);
    must(trama_run(c.e, c.t));
    atomic_store(&is_open, false);
    must(trama_run(c.e, c.t));
    must(save(&c, 2));
    must(trama_run(c.e, c.t));
    must(trama_run(c.e, c.t));
    barrier();
    demand(!strstr(names_in_folder(), ".h5 "), "complete too early: %s", names_in_folder());
    barrier();
    atomic_store(&is_open, true);
    must(save(&c, 4)); /* waits for the first */
    must(trama_run(c.e, c.t));
    must(trama_save_wait(c.e));
    expect_all(&c, 5);
    for (int step = 2; step <= 4; step += 2) {
        char name[60];
        snprintf(name, sizeof name, "step-%012d.h5", step);
        must(trama_load(c.e, in_folder(name), NULL, NULL));
        expect_all(&c, step);
    }
    must(trama_executable_destroy(&c.e));
    counting_free(&c);
}

START_TEST(a_save_has_the_state_of_the_runs_before_it_while_later_ones_go_on)
{
    save_between("1");
    save_between("3");
    save_between("4");
}
END_TEST

START_TEST(a_folder_that_vanishes_is_told_by_the_next_call)
{
    counting c = counting_new("2");
    for (int again = 0; again < 2; again++) {
        atomic_store(&is_open, false);
        must(trama_run(c.e, c.t));
        must(save(&c, 1));
        barrier();
        if (my_rank == 0)
            nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        barrier();
        atomic_store(&is_open, true);
        expect(again ? save(&c, 2) : trama_save_wait(c.e), TRAMA_E_SYSTEM, again ? "trama_save" : "trama_save_wait",
               "step-000000000001.h5");
        must(trama_save_wait(c.e)); /* it was told */
    }
    must(save(&c, 3)); /* the folder is made again */
    must(trama_executable_destroy(&c.e));
    barrier();
    demand(!strcmp(names_in_folder(), "step-000000000003.h5 "), "%s", names_in_folder());
    counting_free(&c);
}
END_TEST

START_TEST(a_failed_kernel_leaves_no_checkpoint)
{
    counting c = counting_new("4");
    must(trama_run(c.e, c.t));
    must(save(&c, 1));
    must(trama_save_wait(c.e));
    atomic_store(&is_open, false);
    atomic_store(&refuses, my_rank == n_ranks - 1);
    must(trama_run(c.e, c.t));
    must(save(&c, 2));
    barrier();
    atomic_store(&is_open, true);
    trama_status status = trama_save_wait(c.e);
    demand(status, "the failure is not told");
    trama_executable_destroy(&c.e);
    barrier();
    demand(!strcmp(names_in_folder(), "step-000000000001.h5 "), "%s", names_in_folder());
    counting_free(&c);
}
END_TEST

TESTS(a_save_has_the_state_of_the_runs_before_it_while_later_ones_go_on,
      a_folder_that_vanishes_is_told_by_the_next_call, a_failed_kernel_leaves_no_checkpoint)
