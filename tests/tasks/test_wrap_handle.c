/* SPDX-License-Identifier: Apache-2.0 */
/* A host that runs StarPU and has registered its arrays: Trama's work and the host's tasks on one handle follow each
 * other, and nobody waits in between. */
#include <starpu.h>

#include "harness.h"

enum { N = 100000, STEPS = 5 };

static void host_work(void *buffers[], void *arg)
{
    double *x = (double *)STARPU_VECTOR_GET_PTR(buffers[0]);
    (void)arg;
    usleep(2000); /* so that whoever does not wait for it reads what was before */
    for (int i = 0; i < N; i++)
        x[i] = 2 * x[i] + i;
}

static struct starpu_codelet host_codelet = {
    .cpu_funcs = {host_work}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "host"};

/* Host: x = 2 x + i. Trama: y = x + 1 and x = y. */
START_TEST(tasks_of_host_and_trama_follow_each_other)
{
    static double x[N], y[N], expected[N];
    starpu_data_handle_t handle;
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = 2;
    conf.ncuda = conf.nopencl = 0;
    demand(!starpu_init(&conf), "StarPU does not start");
    for (int i = 0; i < N; i++)
        x[i] = expected[i] = i % 3;
    starpu_vector_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)x, N, sizeof *x);
    start();
    trama_program *p = trama_program_create();
    trama_value *in = trama_input(p, "in", TRAMA_F64, TRAMA_SHAPE(N));
    const double one_number[] = {1};
    trama_value *out = trama_add(in, trama_constant(p, TRAMA_F64, TRAMA_SCALAR, one_number));
    trama_target *t = trama_target_create(p, "t", out);
    trama_executable *e = compile(p);
    trama_host_box at_x = {.data = x, .bytes = sizeof x, .extent = {N}, .handle = handle};
    trama_host_box at_y = {.data = y, .bytes = sizeof y, .extent = {N}};
    trama_wrapped *wx = NULL, *wy = NULL;
    bool copied = true;
    must(trama_wrap(ctx, "x", TRAMA_F64, TRAMA_SHAPE(N), 1, &at_x, TRAMA_READ_WRITE, &wx));
    must(trama_wrap(ctx, "y", TRAMA_F64, TRAMA_SHAPE(N), 1, &at_y, TRAMA_READ_WRITE, &wy));
    must(trama_feed_wrapped(e, in, wx, &copied));
    demand(!copied, "a copy was made");
    for (int s = 0; s < STEPS; s++) {
        demand(!starpu_task_insert(&host_codelet, STARPU_RW, handle, 0), "the host's task is refused");
        must(trama_run(e, t));
        must(trama_read_wrapped(e, out, wx));
        for (int i = 0; i < N; i++)
            expected[i] = 2 * expected[i] + i + 1;
    }
    demand(!starpu_task_insert(&host_codelet, STARPU_RW, handle, 0), "the host's task is refused");
    must(trama_reshard_wrapped(wx, wy));
    must(trama_wait_wrapped(wy));
    for (int i = 0; i < N; i++)
        demand(y[i] == 2 * expected[i] + i, "element %d is %g, not %g", i, y[i], 2 * expected[i] + i);
    must(trama_release(&wx));
    must(trama_release(&wy));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
    starpu_data_unregister(handle); /* it is the host's still */
    demand(x[N - 1] == y[N - 1], "the handle lost its data");
    starpu_shutdown();
}
END_TEST

TESTS(tasks_of_host_and_trama_follow_each_other)
