/* SPDX-License-Identifier: Apache-2.0 */
/* A child of fork has the memory of a context and none of its threads: every call answers an error there, none waits,
 * and its end leaves the parent's StarPU and MPI alone. */
#include <signal.h>
#include <sys/wait.h>

#include "harness.h"
#include "suite.h"

enum { N = 64, RUNS = 8, OWN_STATUS = 9, PATIENCE = 60 };

/* LeakSanitizer asks: what the parent's threads hold is lost in a child. */
static bool is_child;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_child;
}

static trama_program *p;
static trama_value *x, *w, *product;
static trama_target *t;
static trama_executable *e, *eager;
static trama_program *eager_program;
static trama_value *eager_value;
static trama_reading *reading;
static trama_watch *watch;
static trama_wrapped *wrapped;
static float data[N * N];

static void begin(void)
{
    start();
    p = trama_program_create();
    x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(N, N));
    w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(N, N), &(trama_init){.low = 2, .high = 2});
    product = trama_matmul(x, w);
    t = trama_target_create(p, "t", product);
    e = compile(p);
    for (int i = 0; i < N * N; i++)
        data[i] = 1;
    must(trama_feed(e, x, data, TRAMA_SHAPE(N, N)));
    for (int i = 0; i < RUNS; i++)
        must(trama_run(e, t));
    must(trama_eager(ctx, &eager_program, &eager));
    eager_value = trama_constant(eager_program, TRAMA_F32, TRAMA_SHAPE(N, N), data);
    eager_value = trama_add(eager_value, eager_value);
    must(trama_watch_create(e, 1, &watch));
    trama_host_box all = {.extent = {N, N}, .stride = {N, 1}, .data = data, .bytes = sizeof data};
    must(trama_wrap(ctx, "data", TRAMA_F32, TRAMA_SHAPE(N, N), my_rank == 0, &all, TRAMA_READ_WRITE, &wrapped));
    must(trama_read_start(e, product, &reading));
}

/* Exits 1 with a message where a call answers anything but E_ORDER that speaks of fork. */
static void refused(const char *call, trama_status status)
{
    if (status == TRAMA_E_ORDER && strstr(trama_error(), "fork"))
        return;
    fprintf(stderr, "in a child of fork %s gives \"%s\" (%s)\n", call, trama_status_text(status), trama_error());
    _exit(1);
}
#define is_refused(call) refused(#call, call)

static void call_everything(void)
{
    trama_context *other = NULL;
    trama_program *q;
    trama_executable *f;
    trama_watch *another_watch;
    trama_wrapped *another;
    trama_shape shape;
    trama_traffic traffic = {0};
    bool known;
    char *said;
    int n;
    int64_t offset[2], extent[2];
    is_refused(trama_start(NULL, &other));
    is_refused(trama_compile(ctx, p, &f));
    is_refused(trama_eager(ctx, &q, &f));
    is_refused(trama_feed(e, x, data, TRAMA_SHAPE(N, N)));
    is_refused(trama_run(e, t));
    is_refused(trama_wait(e));
    is_refused(trama_read(e, product, data, sizeof data));
    is_refused(trama_read_wait(&reading, data, sizeof data));
    is_refused(trama_read_local(e, product, 0, data, sizeof data));
    is_refused(trama_local_count(e, product, &n));
    is_refused(trama_local_box(e, product, 0, offset, extent));
    is_refused(trama_write(e, w, data, sizeof data));
    is_refused(trama_extents(e, product, &shape));
    is_refused(trama_print(e, product, 8, &said));
    is_refused(trama_plan_text(e, t, false, &said));
    is_refused(trama_plan_graph(e, t, &said));
    is_refused(trama_layout_of(e, product, &said));
    is_refused(trama_tensor_describe(e, product, &said));
    is_refused(trama_tensor_svg(e, product, &said));
    is_refused(trama_target_traffic(e, t, &traffic));
    is_refused(trama_merge_set(e, t, 2));
    is_refused(trama_flush(e, t));
    is_refused(trama_watch_create(e, 1, &another_watch));
    is_refused(trama_watch_next(watch, product, data, sizeof data, &known));
    is_refused(trama_watch_rest(watch, data, sizeof data, &known));
    is_refused(trama_watch_destroy(&watch));
    is_refused(trama_wrap(ctx, "more", TRAMA_F32, TRAMA_SHAPE(0), 0, NULL, TRAMA_READ_ONLY, &another));
    is_refused(trama_feed_wrapped(e, x, wrapped, NULL));
    is_refused(trama_read_wrapped(e, product, wrapped));
    is_refused(trama_write_wrapped(e, w, wrapped));
    is_refused(trama_reshard_wrapped(wrapped, wrapped));
    is_refused(trama_wait_wrapped(wrapped));
    is_refused(trama_release(&wrapped));
    is_refused(trama_read(eager, eager_value, data, sizeof data));
    trama_add(eager_value, eager_value);
    is_refused(trama_program_status(eager_program) ? TRAMA_E_ORDER : TRAMA_OK);
    is_refused(trama_executable_destroy(&e));
    is_refused(trama_stop(&ctx));
    trama_context_rank(ctx);
    free(trama_context_describe(ctx));
}

/* Check would end all processes of the group with a child that hangs. */
static void end_in_time(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE);
}

static int status_of(pid_t child)
{
    int status = -1;
    demand(waitpid(child, &status, 0) == child, "no child");
    return status;
}

START_TEST(every_call_in_a_child_of_fork_is_an_error)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        end_in_time();
        call_everything();
        _exit(0);
    }
    int status = status_of(child);
    demand(status == 0, "the child ends with status %x", (unsigned)status);
}
END_TEST

START_TEST(a_child_of_fork_exits_with_its_own_status)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        end_in_time();
        is_child = true;
        exit(OWN_STATUS);
    }
    int status = status_of(child);
    demand(WIFEXITED(status) && WEXITSTATUS(status) == OWN_STATUS, "the child ends with status %x", (unsigned)status);
}
END_TEST

START_TEST(the_parent_goes_on)
{
    static float result[N * N];
    must(trama_read_wait(&reading, result, sizeof result));
    for (int i = 0; i < N * N; i++)
        demand(result[i] == 2 * N, "element %d is %g", i, (double)result[i]);
    must(trama_run(e, t));
    must(trama_watch_destroy(&watch));
    must(trama_release(&wrapped));
    must(trama_executable_destroy(&eager));
    must(trama_executable_destroy(&e));
    stop();
    trama_program_destroy(&eager_program);
    trama_program_destroy(&p);
}
END_TEST

START_TEST(a_child_may_start_a_context_where_its_parent_has_none)
{
    if (suite_skips(n_ranks > 1, "contexts of children, MPI is the parent's"))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        end_in_time();
        _exit(trama_start(NULL, &ctx) || trama_stop(&ctx));
    }
    int status = status_of(child);
    demand(status == 0, "the child ends with status %x", (unsigned)status);
}
END_TEST

START_TEST(work_begins)
{
    begin();
}
END_TEST

TESTS(work_begins, every_call_in_a_child_of_fork_is_an_error, a_child_of_fork_exits_with_its_own_status,
      the_parent_goes_on, a_child_may_start_a_context_where_its_parent_has_none)
