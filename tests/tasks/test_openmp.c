/* SPDX-License-Identifier: Apache-2.0 */
/* A host with OpenMP that binds its threads: their cores are Trama's too, and nobody disturbs them while Trama rests.
 * GCC's runtime is loaded by hand, so that it finds its variables set. */
#include "hosted.h"

#include <dlfcn.h>

#include "context.h"
#include "idleness.h"
#include "suite.h"

static int (*openmp_threads)(void);
static void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
static cpu_set_t all; /* before OpenMP */

static bool load_openmp(void)
{
    static void *library;
    if (library)
        return true;
    sched_getaffinity(0, sizeof all, &all);
    setenv("OMP_PROC_BIND", "close", 1);
    setenv("OMP_PLACES", "threads", 1);
    library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (suite_skips(!library, "loops of OpenMP, there is no libgomp.so.1"))
        return false;
    *(void **)&openmp_threads = dlsym(library, "omp_get_max_threads");
    *(void **)&parallel = dlsym(library, "GOMP_parallel");
    demand(openmp_threads && parallel, "libgomp lacks its functions");
    return true;
}

START_TEST(workers_take_all_places_of_openmp)
{
    start();
    int wanted = context_config(ctx)->workers;
    stop();
    if (!load_openmp())
        return;
    cpu_set_t bound, now;
    sched_getaffinity(0, sizeof bound, &bound);
    demand(CPU_COUNT(&bound) == 1, "libgomp leaves the main thread on %d cores", CPU_COUNT(&bound));
    start();
    int workers = context_config(ctx)->workers;
    stop();
    sched_getaffinity(0, sizeof now, &now);
    demand(workers == wanted, "%d workers instead of %d", workers, wanted);
    demand(CPU_EQUAL(&now, &bound), "the main thread's cores changed");
}
END_TEST

static void spin(void *arg)
{
    double begin = seconds();
    while (seconds() - begin < *(const double *)arg)
        ;
}

/* Of threads that are not in `known`, in clock ticks. */
static long ticks_of_others(const names *known)
{
    long sum = 0;
    names threads = entries_of("/proc/self/task", false);
    for (int i = 0; i < threads.n; i++) {
        bool is_known = false;
        for (int k = 0; k < known->n; k++)
            is_known |= !strcmp(known->at[k], threads.at[i]);
        char path[64];
        long user = 0, system = 0;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", atoi(threads.at[i]));
        FILE *f = is_known ? NULL : fopen(path, "r");
        if (f && fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) == 2)
            sum += user + system;
        if (f)
            fclose(f);
    }
    names_free(&threads);
    return sum;
}

START_TEST(loops_of_openmp_have_the_cores_while_trama_rests)
{
    double time = 0.5, moment = 0.01;
    if (!load_openmp())
        return;
    int before = openmp_threads();
    parallel(spin, &moment, 0, 0); /* its threads are there now */
    names hosts = entries_of("/proc/self/task", false);
    start();
    train_bits("dp=2");
    demand(comes_to_rest(), "the workers do not sleep");
    long ticks = ticks_of_others(&hosts);
    parallel(spin, &time, 0, 0);
    ticks = ticks_of_others(&hosts) - ticks;
    int during = openmp_threads();
    train_bits("dp=2");
    stop();
    names_free(&hosts);
    demand(during == before && openmp_threads() == before, "%d threads of OpenMP become %d", before, during);
    demand(100 * ticks <= 5 * sysconf(_SC_CLK_TCK), "Trama's threads took %ld ticks of a loop of the host", ticks);
}
END_TEST

TESTS(workers_take_all_places_of_openmp, loops_of_openmp_have_the_cores_while_trama_rests)
