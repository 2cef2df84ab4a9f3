/* SPDX-License-Identifier: Apache-2.0 */
/* Trama as a guest of a program of one rank or of several, which starts no MPI itself: the host's own things stay as
 * they are, before, during and after. */
#include "hosted.h"

#include <fcntl.h>

#include "idleness.h"
#include "suite.h"

/* Over ranks, the first start brings MPI with threads, files and variables of its own, which stay until exit. */
static void allow_mpi(snapshot *before, const host *h)
{
    snapshot now;
    demand(!getenv("OMPI_MCA_mpi_yield_when_idle"), "Trama's own variable for MPI stays");
    snapshot_free(before);
    snapshot_take(&now, h);
    before->environment = now.environment;
    before->files = now.files;
    before->threads = now.threads;
}

START_TEST(a_host_finds_everything_as_it_was)
{
    host h;
    host_start(&h);
    snapshot before, during, after;
    for (int i = 0; i < 3; i++) {
        const bool keeps = i < 2; /* else the main thread may be bound meanwhile */
        snapshot_take(&before, &h);
        start_with(&(trama_config){.size = sizeof(trama_config), .keep_affinity = keeps});
        for (int k = 0; k < 2; k++) {
            snapshot_take(&during, &h);
            if (keeps)
                demand_undisturbed(&before, &during, k ? "after a program" : "after trama_start");
            snapshot_free(&during);
            train_bits("dp=2,mp=2");
        }
        stop();
        snapshot_take(&after, &h);
        if (i == 0 && n_ranks > 1)
            allow_mpi(&before, &h);
        demand_equal(&before, &after);
        snapshot_free(&before);
        snapshot_free(&after);
    }
    host_end(&h);
}
END_TEST

START_TEST(a_start_that_fails_leaves_everything_as_it_was)
{
    host h;
    host_start(&h);
    snapshot before, after;
    snapshot_take(&before, &h);
    demand(trama_start(&(trama_config){.workers = 1000}, &ctx), "1000 workers");
    demand(trama_start(&(trama_config){.max_in_flight = -1}, &ctx), "window -1");
    snapshot_take(&after, &h);
    demand_equal(&before, &after);
    snapshot_free(&before);
    snapshot_free(&after);
    host_end(&h);
}
END_TEST

static size_t stack_of_new_threads(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
}

static void set_stack_of_new_threads(size_t bytes)
{
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_setstacksize(&attributes, bytes);
    demand(!pthread_setattr_default_np(&attributes), "a stack of %zu bytes", bytes);
    pthread_attr_destroy(&attributes);
}

/* As under ulimit -s 256: the workers' stacks are larger, those of the host's threads are not. */
START_TEST(small_stacks_suffice_and_stay)
{
    const size_t small = 256 << 10, before = stack_of_new_threads();
    start(); /* MPI's threads stay as they are from here */
    stop();
    set_stack_of_new_threads(small);
    start();
    demand(stack_of_new_threads() == small, "%zu bytes for the host's threads", stack_of_new_threads());
    train_bits("dp=2");
    stop();
    demand(stack_of_new_threads() == small, "%zu bytes after the end", stack_of_new_threads());
    set_stack_of_new_threads(before);
}
END_TEST

START_TEST(nothing_is_printed)
{
    char name[] = "/tmp/trama_guest_XXXXXX";
    int file = mkstemp(name), out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    struct stat written;
    unlink(name);
    fflush(NULL);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    remembered log = {0};
    start_with(&(trama_config){.log = remember, .log_data = &log});
    train_bits("dp=2");
    stop();
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    fstat(file, &written);
    close(file);
    close(out);
    close(error);
    demand(written.st_size == 0, "%lld bytes were printed", (long long)written.st_size);
}
END_TEST

static uint64_t signals_blocked(int thread)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    FILE *f = fopen(path, "r");
    demand(f, "cannot read %s", path);
    while (fgets(line, sizeof line, f) && sscanf(line, "SigBlk: %llx", &blocked) != 1)
        ;
    fclose(f);
    return blocked;
}

START_TEST(no_thread_of_trama_takes_a_signal_of_the_host)
{
    static const int hosts[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD, SIGIO};
    static const int own[] = {SIGSEGV, SIGFPE, SIGPROF};
    names before = entries_of("/proc/self/task", false);
    start();
    names now = entries_of("/proc/self/task", false);
    int come = 0;
    for (int i = 0; i < now.n; i++) {
        int known = 0, thread = atoi(now.at[i]);
        for (int k = 0; k < before.n; k++)
            known |= atoi(before.at[k]) == thread;
        come += !known;
        uint64_t blocked = known ? ~UINT64_C(0) : signals_blocked(thread);
        for (size_t k = 0; k < sizeof hosts / sizeof *hosts; k++)
            demand(blocked >> (hosts[k] - 1) & 1, "thread %d may take signal %d", thread, hosts[k]);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            demand(known || !(blocked >> (own[k] - 1) & 1), "thread %d does not take signal %d", thread, own[k]);
    }
    demand(come > 0, "trama_start makes no thread");
    names_free(&before);
    names_free(&now);
    stop();
}
END_TEST

/* x / y: a half of the least normal number, and 1 / 0. */
static void divide(double *quotient)
{
    const double x[2] = {2.2250738585072014e-308, 1}, y[2] = {2, 0};
    trama_program *p = trama_program_create();
    trama_value *a = trama_input(p, "a", TRAMA_F64, TRAMA_SHAPE(2)),
                *b = trama_input(p, "b", TRAMA_F64, TRAMA_SHAPE(2));
    trama_value *q = trama_div(a, b);
    trama_target *t = trama_target_create(p, "t", q);
    trama_executable *e = compile(p);
    must(trama_feed(e, a, x, TRAMA_SHAPE(2)));
    must(trama_feed(e, b, y, TRAMA_SHAPE(2)));
    must(trama_run(e, t));
    must(trama_read(e, q, quotient, 2 * sizeof *quotient));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

/* A host that flushes denormals, and in which dividing by zero traps. */
START_TEST(the_hosts_floating_point_mode_is_not_its_workers)
{
    start();
    uint64_t wanted = train_bits("dp=2,mp=2");
    stop();
    fenv_t usual;
    fegetenv(&usual);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(0x9dc0);
#endif
    fesetround(FE_UPWARD);
    unsigned before[3], after[3];
    double quotient[2];
    floating_now(before);
    start();
    uint64_t got = train_bits("dp=2,mp=2");
    divide(quotient);
    stop();
    floating_now(after);
    fesetenv(&usual);
    demand(quotient[0] == 1.1125369292536007e-308 && isinf(quotient[1]), "%g %g", quotient[0], quotient[1]);
    demand(!memcmp(before, after, sizeof before), "the host's mode changed");
    demand(got == wanted, "other bits in another mode of the host");
}
END_TEST

/* A runtime of OpenMP binds the main thread to one core. */
START_TEST(a_bound_main_thread_does_not_bind_the_workers)
{
    cpu_set_t all, one, now;
    sched_getaffinity(0, sizeof all, &all);
    host h;
    host_start(&h); /* its first thread may go anywhere */
    only_core(0, &one);
    sched_setaffinity(0, sizeof one, &one);
    start_with(&(trama_config){.workers = 2 * CPU_COUNT(&all) + 1}); /* too many to be bound */
    names threads = entries_of("/proc/self/task", false);
    int held = 0;
    for (int i = 0; i < threads.n; i++) {
        sched_getaffinity(atoi(threads.at[i]), sizeof now, &now);
        held += CPU_COUNT(&now) < CPU_COUNT(&all);
    }
    names_free(&threads);
    stop();
    sched_getaffinity(0, sizeof now, &now);
    sched_setaffinity(0, sizeof all, &all);
    host_end(&h);
    demand(CPU_EQUAL(&now, &one), "the main thread's cores changed");
    demand(CPU_COUNT(&all) == 1 || held <= POOL, "%d threads are held to some of the cores", held);
}
END_TEST

START_TEST(the_blas_is_the_hosts_while_trama_rests)
{
    if (suite_skips(!openblas_set_num_threads || !openblas_get_num_threads, "threads of OpenBLAS, this BLAS has none"))
        return; /* the snapshots show the uses of an OpenBLAS over OpenMP */
    int before = openblas_get_num_threads();
    openblas_set_num_threads(2);
    int hosts = openblas_get_num_threads(); /* 1 where there is one core */
    start();
    demand(openblas_get_num_threads() == hosts, "%d threads after trama_start", openblas_get_num_threads());
    train_bits("dp=2");
    demand(comes_to_rest(), "the workers do not sleep");
    demand(openblas_get_num_threads() == hosts, "%d threads in a Trama that rests", openblas_get_num_threads());
    openblas_set_num_threads(1);
    train_bits("dp=2");
    demand(comes_to_rest(), "the workers do not sleep");
    demand(openblas_get_num_threads() == 1, "what the host sets meanwhile is lost");
    openblas_set_num_threads(hosts);
    stop();
    demand(openblas_get_num_threads() == hosts, "%d threads after trama_stop", openblas_get_num_threads());
    openblas_set_num_threads(before);
}
END_TEST

/* Their runs alternate, and each has state of its own. */
START_TEST(programs_of_one_context_do_not_meddle)
{
    start();
    uint64_t alone[3];
    const char *meshes[] = {"dp=2,mp=2", "dp=3", "1"};
    network net[3];
    for (int i = 0; i < 3; i++)
        alone[i] = train_bits(meshes[i]);
    for (int i = 0; i < 3; i++) {
        net[i] = network_new(meshes[i], TRAMA_F32, true, 3, small_sizes);
        net[i].e = compile(net[i].program);
    }
    for (int step = 0; step < 3; step++)
        for (int i = 0; i < 3; i++)
            network_steps(&net[i], step, step + 1);
    for (int i = 0; i < 3; i++)
        demand(network_bits(&net[i]) == alone[i], "mesh %s: other bits beside other programs", meshes[i]);
    for (int i = 2; i >= 0; i--)
        network_free(&net[i]);
    stop();
}
END_TEST

TESTS(a_host_finds_everything_as_it_was, a_start_that_fails_leaves_everything_as_it_was, small_stacks_suffice_and_stay,
      nothing_is_printed, no_thread_of_trama_takes_a_signal_of_the_host,
      the_hosts_floating_point_mode_is_not_its_workers, a_bound_main_thread_does_not_bind_the_workers,
      the_blas_is_the_hosts_while_trama_rests, programs_of_one_context_do_not_meddle)
