/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping, over and over. */
#ifndef CYCLES_H
#define CYCLES_H

#include <dirent.h>
#include <malloc.h>

#include "network.h"

static inline int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    demand(d, "cannot read %s", folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static inline int threads(void)
{
    return count_entries("/proc/self/task");
}

static inline int open_files(void)
{
    return count_entries("/proc/self/fd");
}

/* Bytes that were allocated and not freed. */
static inline int64_t heap_now(void)
{
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

/* Three steps of training from the start; the last loss. */
static inline double train_a_little(const char *mesh)
{
    network net = network_new(mesh, TRAMA_F64, true, 3, small_sizes);
    double loss = 0;
    net.e = compile(net.program);
    for (int step = 0; step < 3; step++) {
        samples s = samples_new(&net, 11, step);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        samples_free(&s);
        loss = network_loss(&net);
    }
    network_free(&net);
    return loss;
}

static inline double plain_a_little(void)
{
    plain_net plain = plain_new(3, small_sizes, SEED);
    network net = network_new(NULL, TRAMA_F64, true, 3, small_sizes);
    double loss = 0;
    for (int step = 0; step < 3; step++) {
        samples s = samples_new(&net, 11, step);
        loss = plain_step(&plain, s.n, s.x, s.y, true, net.lr);
        samples_free(&s);
    }
    plain_free(&plain);
    network_free(&net);
    return loss;
}

/* MPI and StarPU fill their own pools at first, and StarPU 1.4.10 by itself keeps 2 KB of each start. */
enum { STARTS = 100, WARM = 30, KEPT = 3 << 10 };

START_TEST(a_hundred_starts_and_stops_leave_nothing_behind)
{
    double wanted = plain_a_little();
    int files = 0, tasks = 0;
    int64_t memory = 0, heap = 0;
    for (int i = 0; i < STARTS; i++) {
        start();
        double loss = train_a_little(i % 2 ? "dp=2,mp=2" : "dp=3");
        demand(relative(loss, wanted) < 1e-10, "start %d: the loss is %.17g instead of %.17g", i, loss, wanted);
        stop();
        if (i == WARM - 1) {
            files = open_files();
            tasks = threads();
            memory = memory_now();
            heap = heap_now();
        }
    }
    memory = memory_now() - memory, heap = heap_now() - heap;
    demand(open_files() == files, "%d open files become %d", files, open_files());
    demand(threads() == tasks, "%d threads become %d", tasks, threads());
    demand(SANITIZED || heap < (STARTS - WARM) * KEPT, "%" PRId64 " bytes of heap in %d starts", heap, STARTS - WARM);
    demand(SANITIZED || memory < 4 << 20, "%" PRId64 " bytes in %d starts", memory, STARTS - WARM);
}
END_TEST

#endif
