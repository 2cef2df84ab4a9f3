/* SPDX-License-Identifier: Apache-2.0 */
/* Over and over: starting and stopping, compiling and destroying, and a thousand steps, on one rank and on
 * two. Nothing grows. */
#include <dirent.h>
#include <malloc.h>

#include "idleness.h"
#include "network.h"

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    demand(d, "cannot read %s", folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int threads(void)
{
    return count_entries("/proc/self/task");
}

static int open_files(void)
{
    return count_entries("/proc/self/fd");
}

/* Bytes that were allocated and not freed. */
static int64_t heap_now(void)
{
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

/* Three steps of training from the start; the last loss. */
static double train_a_little(const char *mesh)
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

static double plain_a_little(void)
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
    demand(suite_is_sanitized() || heap < (STARTS - WARM) * KEPT, "%" PRId64 " bytes of heap in %d starts", heap,
           STARTS - WARM);
    demand(suite_is_sanitized() || memory < 4 << 20, "%" PRId64 " bytes in %d starts", memory, STARTS - WARM);
}
END_TEST

START_TEST(executables_come_and_go_in_one_context)
{
    double wanted = plain_a_little();
    shard_pool_state before = {0};
    int64_t memory = 0;
    start();
    for (int i = 0; i < 60; i++) {
        double loss = train_a_little(i % 2 ? "dp=2,mp=2" : "mp=2");
        demand(relative(loss, wanted) < 1e-10, "executable %d: the loss is %.17g instead of %.17g", i, loss, wanted);
        demand(shard_pool(ctx).used == 0, "%" PRId64 " shards are not given back", shard_pool(ctx).used);
        if (i == 9) {
            before = shard_pool(ctx);
            memory = memory_now();
        }
    }
    demand(shards_equal(before, shard_pool(ctx)), "%" PRId64 " shards become %" PRId64, before.made,
           shard_pool(ctx).made);
    demand(suite_is_sanitized() || memory_now() - memory < 2 << 20, "%" PRId64 " bytes in 50 executables",
           memory_now() - memory);
    stop();
}
END_TEST

START_TEST(a_thousand_steps_hold_what_ten_held)
{
    static const char *const meshes[] = {"1", "dp=2,mp=2"};
    for (int i = 0; i < 2; i++) {
        start();
        network net = network_new(meshes[i], TRAMA_F32, true, 3, small_sizes);
        samples s = samples_new(&net, 11, 0);
        shard_pool_state after_ten = {0};
        int64_t memory = 0;
        net.e = compile(net.program);
        for (int step = 1; step <= 1000; step++) {
            network_feed(&net, &s);
            must(trama_run(net.e, net.train));
            if (step == 10) {
                network_loss(&net);
                after_ten = shard_pool(ctx);
            }
            if (step == 200) { /* StarPU's own pools are warm */
                network_loss(&net);
                memory = memory_now();
            }
        }
        network_loss(&net);
        demand(shards_equal(after_ten, shard_pool(ctx)),
               "mesh %s: %" PRId64 " shards of %" PRId64 " B become %" PRId64 " of %" PRId64 " B", meshes[i],
               after_ten.made, after_ten.used_bytes, shard_pool(ctx).made, shard_pool(ctx).used_bytes);
        demand(suite_is_sanitized() || memory_now() - memory < 1 << 20, "mesh %s: %" PRId64 " bytes in 800 steps",
               meshes[i], memory_now() - memory);
        samples_free(&s);
        network_free(&net);
        stop();
    }
}
END_TEST

START_TEST(an_executable_may_be_destroyed_with_all_in_flight)
{
    for (int i = 0; i < 5; i++) {
        start_with(&(trama_config){.max_in_flight = 8});
        network net = network_new("dp=2,mp=2", TRAMA_F32, true, 3, small_sizes);
        samples s = samples_new(&net, 11, 0);
        net.e = compile(net.program);
        for (int step = 0; step < 8; step++) {
            network_feed(&net, &s);
            must(trama_run(net.e, net.train));
        }
        samples_free(&s);
        network_free(&net);
        stop();
    }
}
END_TEST

/* Nothing is submitted: the workers sleep. */
START_TEST(an_idle_executable_burns_no_core)
{
    start();
    network net = network_new("dp=2", TRAMA_F32, false, 3, small_sizes);
    samples s = samples_new(&net, 11, 0);
    net.e = compile(net.program);
    network_feed(&net, &s);
    must(trama_run(net.e, net.train));
    network_loss(&net);
    demand(comes_to_rest(), "the workers do not sleep");
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

TESTS(a_hundred_starts_and_stops_leave_nothing_behind, executables_come_and_go_in_one_context,
      a_thousand_steps_hold_what_ten_held, an_executable_may_be_destroyed_with_all_in_flight,
      an_idle_executable_burns_no_core)
