/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that end without trama_stop, at every stage, by every way out: this program starts itself as the victim, and
 * looks at its exit status and at what it has said. */
#include <errno.h>
#include <pthread.h>
#include <starpu.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "harness.h"
#include "suite.h"
#if TRAMA_HAVE_MPI
#include <mpi.h>
#endif

enum { SKIPPED = 77, OWN_STATUS = 7, N = 700, RUNS = 16 };
static const char *const buffered = "still in the buffer of stdout";

/* ---- The victim ---- */

typedef struct job {
    trama_program *program;
    trama_executable *e;
    trama_value *w, *product;
    trama_target *t;
} job;

/* Of several threads that call exit at a time, libc runs the end on all. */
static trama_status leave_from_kernel(const trama_call *call)
{
    static atomic_flag left = ATOMIC_FLAG_INIT;
    (void)call;
    if (!atomic_flag_test_and_set(&left))
        exit(OWN_STATUS);
    return TRAMA_OK;
}

static job record(bool with_own_op)
{
    static const trama_op_definition own = {
        .name = "leaves", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = leave_from_kernel};
    const trama_op *leaves;
    job j = {.program = trama_program_create()};
    trama_mesh *mesh = trama_mesh_create("dp=2");
    j.w = trama_parameter(j.program, "w", TRAMA_F32, TRAMA_SHAPE(N, N), &(trama_init){.low = -1, .high = 1});
    trama_value *rows = trama_parameter(j.program, "rows", TRAMA_F32, TRAMA_SHAPE(N, N), &(trama_init){.high = 1});
    trama_shard(rows, mesh, "S(0)");
    j.product = trama_matmul(rows, j.w);
    if (with_own_op) {
        must(trama_op_define(&own, &leaves));
        j.product = trama_apply(leaves, 1, &j.product, NULL);
    }
    j.t = trama_target_create(j.program, "t", j.product, trama_sum(j.product));
    return j;
}

static void submit(job *j)
{
    must(trama_compile(ctx, j->program, &j->e));
    for (int i = 0; i < RUNS; i++)
        must(trama_run(j->e, j->t));
}

static void *exit_elsewhere(void *arg)
{
    (void)arg;
    exit(OWN_STATUS);
}

static job the_job;

static void stop_late(void)
{
    must(trama_executable_destroy(&the_job.e));
    must(trama_stop(&ctx));
}

static void run_eagerly(void)
{
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    static float data[N * N];
    trama_value *x = trama_constant(p, TRAMA_F32, TRAMA_SHAPE(N, N), data);
    for (int i = 0; i < RUNS; i++)
        x = trama_matmul(x, x);
}

static void start_starpu(void)
{
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = 2;
    conf.ncuda = conf.nopencl = 0;
    demand(!starpu_init(&conf), "StarPU does not start");
}

/* The host's own MPI ends first, in the middle of a run. */
static void finalize(bool then_stop)
{
#if TRAMA_HAVE_MPI
    MPI_Finalize();
#endif
    const char *why = "the program has called MPI_Finalize";
    if (trama_context_ranks(ctx) == 1)
        must(trama_run(the_job.e, the_job.t));
    else
        expect(trama_run(the_job.e, the_job.t), TRAMA_E_ORDER, why);
    if (!then_stop)
        return;
    trama_status expected = trama_context_ranks(ctx) == 1 ? TRAMA_OK : TRAMA_E_ORDER;
    trama_status status = trama_executable_destroy(&the_job.e);
    demand(status == expected && !the_job.e, "the executable is left, %s", trama_error());
    trama_program_destroy(&the_job.program);
    status = trama_stop(&ctx);
    demand(status == expected && !ctx, "the context is left, %s", trama_error());
}

static void start_mpi(void)
{
#if TRAMA_HAVE_MPI
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
#endif
}

static int victim(const char *stage)
{
    printf("%s", buffered);
    if (!strncmp(stage, "finalize", 8))
        start_mpi();
    if (!strcmp(stage, "adopted"))
        start_starpu();
    if (!strcmp(stage, "stop_late"))
        atexit(stop_late);
    start_with(&(trama_config){.max_in_flight = RUNS, .watchdog = 3});
    if (!strcmp(stage, "started"))
        return OWN_STATUS;
    if (!strcmp(stage, "eager")) {
        run_eagerly();
        return OWN_STATUS;
    }
    the_job = record(!strcmp(stage, "kernel"));
    submit(&the_job);
    if (!strcmp(stage, "read")) {
        trama_reading *reading;
        must(trama_read_start(the_job.e, the_job.product, &reading));
    }
    if (!strcmp(stage, "error")) {
        trama_executable *none = NULL;
        expect(trama_run(none, the_job.t), TRAMA_E_ARGUMENT, "executable");
    }
    if (!strncmp(stage, "finalize", 8))
        finalize(!strcmp(stage, "finalize and stop"));
    if (!strcmp(stage, "one rank") && my_rank == 1)
        trama_wait(the_job.e), sleep(1000);
    if (!strcmp(stage, "kernel"))
        sleep(1000);
    if (!strcmp(stage, "thread")) {
        pthread_t other;
        pthread_create(&other, NULL, exit_elsewhere, NULL);
        for (;;)
            must(trama_run(the_job.e, the_job.t));
    }
    if (!strcmp(stage, "zero"))
        return 0;
    exit(OWN_STATUS);
}

/* ---- Watching ---- */

typedef struct outcome {
    int status; /* as waitpid gives it */
    char said[1 << 14];
} outcome;

/* ranks 0: without mpirun. */
static const outcome *watch(const char *stage, int ranks)
{
    static outcome o;
    char command[5000], self[4096], launcher[64] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    demand(length > 0, "no /proc/self/exe");
    self[length] = 0;
    if (ranks)
        snprintf(launcher, sizeof launcher, "mpirun -n %d ", ranks);
    snprintf(command, sizeof command,
             "exec 2>&1; export ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\"; exec timeout 100 %s'%s' victim \"%s\"",
             launcher, self, stage); /* victims leave what they have where it is */
    FILE *out = popen(command, "r");
    demand(out, "%s: %s", command, strerror(errno));
    o.said[fread(o.said, 1, sizeof o.said - 1, out)] = 0;
    while (getc(out) != EOF)
        ;
    o.status = pclose(out);
    return &o;
}

static void leaves_well(const char *stage, int ranks, int status)
{
    for (int i = 0; i < (suite_is_long() ? 2 : 1); i++) {
        const outcome *o = watch(stage, ranks);
        demand(WIFEXITED(o->status) && WEXITSTATUS(o->status) == status, "%s: status %x; it said:\n%.4000s", stage,
               (unsigned)o->status, o->said);
        demand(strstr(o->said, buffered), "%s: what was printed is lost:\n%.4000s", stage, o->said);
    }
}

START_TEST(a_program_may_end_right_after_the_start)
{
    leaves_well("started", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_program_may_end_with_tasks_in_flight)
{
    leaves_well("running", 0, OWN_STATUS);
    leaves_well("zero", 0, 0);
}
END_TEST

START_TEST(a_program_may_end_with_a_reading_under_way)
{
    leaves_well("read", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_program_may_end_after_an_error)
{
    leaves_well("error", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_program_may_end_in_eager_mode)
{
    leaves_well("eager", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_kernel_may_end_the_program)
{
    leaves_well("kernel", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_thread_may_end_the_program_while_another_submits)
{
    leaves_well("thread", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_function_of_atexit_may_stop_the_context)
{
    leaves_well("stop_late", 0, OWN_STATUS);
}
END_TEST

START_TEST(a_host_of_starpu_may_end_with_tasks_in_flight)
{
    leaves_well("adopted", 0, OWN_STATUS);
}
END_TEST

START_TEST(all_ranks_may_end_with_tasks_in_flight)
{
    leaves_well("zero", 2, 0);
    leaves_well("running", 2, OWN_STATUS);
    leaves_well("eager", 2, OWN_STATUS);
    leaves_well("stop_late", 2, OWN_STATUS);
}
END_TEST

START_TEST(a_program_may_end_mpi_before_the_context)
{
    leaves_well("finalize", 2, OWN_STATUS);
    leaves_well("finalize and stop", 2, OWN_STATUS);
    leaves_well("finalize and stop", 1, OWN_STATUS);
}
END_TEST

START_TEST(a_rank_that_ends_alone_keeps_its_status_and_ends_the_job)
{
    const outcome *o = watch("one rank", 2);
    demand(WIFEXITED(o->status) && WEXITSTATUS(o->status) == OWN_STATUS, "status %x; it said:\n%.4000s",
           (unsigned)o->status, o->said);
    demand(strstr(o->said, "rank 0: the program ends without trama_stop"), "it only says:\n%.4000s", o->said);
}
END_TEST

static int watch_all(void)
{
    static const TTest *tests[16];
    int n = 0;
    tests[n++] = a_program_may_end_right_after_the_start;
    tests[n++] = a_program_may_end_with_tasks_in_flight;
    tests[n++] = a_program_may_end_with_a_reading_under_way;
    tests[n++] = a_program_may_end_after_an_error;
    tests[n++] = a_program_may_end_in_eager_mode;
    tests[n++] = a_kernel_may_end_the_program;
    tests[n++] = a_thread_may_end_the_program_while_another_submits;
    tests[n++] = a_function_of_atexit_may_stop_the_context;
    tests[n++] = a_host_of_starpu_may_end_with_tasks_in_flight;
    if (TRAMA_HAVE_MPI && system("mpirun --version >/dev/null 2>&1") == 0) {
        tests[n++] = all_ranks_may_end_with_tasks_in_flight;
        tests[n++] = a_program_may_end_mpi_before_the_context;
        tests[n++] = a_rank_that_ends_alone_keeps_its_status_and_ends_the_job;
    } else {
        printf("skipped: there is no mpirun, and so no program of several ranks\n");
    }
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); /* others do not look at these */
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
    setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 1);
    return run_tests(__FILE__, tests, n);
}

int main(int argc, char **argv)
{
    return argc == 3 && !strcmp(argv[1], "victim") ? victim(argv[2]) : watch_all();
}
