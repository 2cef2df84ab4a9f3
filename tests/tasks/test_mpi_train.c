/* SPDX-License-Identifier: Apache-2.0 */
/* Training over ranks beside the plain loops, which every rank runs for itself: as many processes as ranks, fewer (the
 * other ranks are idle) and more. */
#include "training.h"

START_TEST(sgd_in_f32_follows_plain_loops_for_200_steps)
{
    start();
    demand(n_ranks > 1, "it takes several ranks");
    train_on_all(TRAMA_F32, false, 200, 1e-5);
    stop();
}
END_TEST

START_TEST(f64_follows_plain_loops)
{
    start();
    train_on_all(TRAMA_F64, false, 60, 1e-10);
    train_on_all(TRAMA_F64, true, 60, 1e-10);
    stop();
}
END_TEST

START_TEST(adamw_in_f32_follows_plain_loops_for_20_steps)
{
    start();
    train_on_all(TRAMA_F32, true, 20, 1e-5);
    stop();
}
END_TEST

START_TEST(halves_follow_plain_loops_loosely_for_20_steps)
{
    start();
    train_halves();
    stop();
}
END_TEST

START_TEST(the_network_of_the_main_job_follows_plain_loops)
{
    static const int full[] = {784, 512, 256, 10};
    start();
    train_beside_plain(&(training){"dp=2,mp=2", TRAMA_F32, false, 2, 1e-5, 3, full, {SANITIZED ? 16 : 128}});
    stop();
}
END_TEST

/* Process ids in any order, and not all of them. */
START_TEST(meshes_of_other_processes_follow_plain_loops)
{
    static const char *const others[] = {"dp=2:1,0",   "mp=2:1,3",      "dp=2,mp=2:3,1,0,2",
                                         "mp=3:5,0,2", "mp=[1,20]:1,0", "dp=[20,1],mp=[1,3]"};
    start();
    for (int i = 0; i < 6; i++)
        train_beside_plain(&(training){others[i], TRAMA_F64, true, 20, 1e-10, 3, small_sizes, {11}});
    stop();
}
END_TEST

START_TEST(batches_of_other_sizes_follow_plain_loops)
{
    start();
    for (int i = 0; i < N_MESHES; i++)
        train_beside_plain(&(training){meshes[i], TRAMA_F64, false, 18, 1e-10, 3, small_sizes, {11, 1, 4}});
    stop();
}
END_TEST

START_TEST(the_smallest_tiles_follow_plain_loops)
{
    start_with(&(trama_config){.max_tiles = 3, .grain_flops = 1, .grain_bytes = 1, .max_in_flight = 4});
    train_on_all(TRAMA_F64, false, 10, 1e-10);
    stop();
}
END_TEST

/* Messages lie in shards, or share a window's memory from round to round and from run to run. */
START_TEST(small_staging_buffers_follow_plain_loops)
{
    static const int64_t windows[] = {300, 2000, 20000};
    for (int i = 0; i < 3; i++) {
        start_with(&(trama_config){.max_in_flight = 4, .staging_bytes = windows[i], .verify = true});
        train_on_all(TRAMA_F64, false, 12, 1e-10);
        stop();
    }
}
END_TEST

START_TEST(two_runs_give_the_same_bits)
{
    for (int i = 2; i < N_MESHES; i++) {
        trace t[2];
        for (int run = 0; run < 2; run++) {
            start_with(&(trama_config){.max_tiles = 2, .max_in_flight = run ? 1 : 3});
            t[run] = trace_of(meshes[i], TRAMA_F32, i % 2, 15, 11);
            stop();
        }
        demand(trace_equal(&t[0], &t[1]), "mesh %s: other bits in the second run", meshes[i]);
        free(t[0].at);
        free(t[1].at);
    }
}
END_TEST

/* Traffic between ranks in a step is as planned, and stays so. */
START_TEST(a_step_moves_what_its_plan_says)
{
    start();
    for (int i = 2; i < N_MESHES; i++) {
        network net = network_new(meshes[i], TRAMA_F32, false, 3, small_sizes);
        samples s = samples_new(&net, 11, 0);
        trama_traffic planned = {0};
        net.e = compile(net.program);
        network_feed(&net, &s);
        must(trama_target_traffic(net.e, net.train, &planned));
        for (int step = 0; step < 5; step++) {
            context_counters before = context_count(ctx);
            must(trama_run(net.e, net.train));
            context_counters after = context_count(ctx);
            int64_t in = after.bytes_received - before.bytes_received, out = after.bytes_sent - before.bytes_sent;
            int64_t n = after.messages_received - before.messages_received + after.messages_sent - before.messages_sent;
            demand(in == planned.bytes_received - planned.collective_received &&
                       out == planned.bytes_sent - planned.collective_sent && n == planned.messages,
                   "mesh %s: %" PRId64 " B in, %" PRId64 " B out, %" PRId64 " messages; planned %" PRId64 ", %" PRId64
                   ", %" PRId64,
                   meshes[i], in, out, n, planned.bytes_received, planned.bytes_sent, planned.messages);
        }
        network_loss(&net);
        samples_free(&s);
        network_free(&net);
    }
    stop();
}
END_TEST

/* Of two terms each rank receives the other one. The loss stays partial until somebody reads it. */
START_TEST(data_parallel_on_two_ranks_moves_each_gradient_once)
{
    start();
    network net = network_new("dp=2", TRAMA_F32, false, 3, small_sizes);
    samples s = samples_new(&net, 12, 0);
    trama_traffic planned = {0};
    net.e = compile(net.program);
    network_feed(&net, &s);
    must(trama_target_traffic(net.e, net.train, &planned));
    int64_t elements = 0;
    for (int l = 0; l < 3; l++)
        elements += (int64_t)small_sizes[l] * small_sizes[l + 1] + small_sizes[l + 1];
    int64_t wanted = my_rank < 2 ? 4 * elements : 0;
    demand(planned.bytes_received == wanted, "rank %d receives %" PRId64 " B a step instead of %" PRId64, my_rank,
           planned.bytes_received, wanted);
    must(trama_run(net.e, net.train));
    network_loss(&net);
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

START_TEST(named_gradients_are_those_of_plain_loops)
{
    start();
    for (int i = 0; i < N_MESHES; i++) {
        network net = network_new(meshes[i], TRAMA_F64, false, 3, small_sizes);
        plain_net plain = plain_new(3, small_sizes, SEED);
        trama_value *dw = trama_gradient(net.loss, net.w[1]);
        trama_target *only = trama_target_create(net.program, "gradient", dw);
        net.e = compile(net.program);
        samples s = samples_new(&net, 11, 3);
        network_feed(&net, &s);
        must(trama_run(net.e, only));
        plain_gradients(&plain, s.n, s.x, s.y);
        double w[17 * 13];
        must(trama_read(net.e, dw, w, sizeof w));
        for (int k = 0; k < 17 * 13; k++)
            demand(fabs(w[k] - plain.w[1].gradient[k]) < 1e-13, "mesh %s: dw1[%d] is %.17g instead of %.17g",
                   meshes[i] ? meshes[i] : "none", k, w[k], plain.w[1].gradient[k]);
        samples_free(&s);
        plain_free(&plain);
        network_free(&net);
    }
    stop();
}
END_TEST

START_TEST(steps_do_not_grow_anything)
{
    start();
    for (int i = 2; i < 5; i++) {
        network net = network_new(meshes[i], TRAMA_F32, true, 3, small_sizes);
        shard_pool_state before = {0};
        int64_t memory = 0;
        net.e = compile(net.program);
        for (int step = 0; step < 400; step++) {
            samples s = samples_new(&net, step % 3 == 2 ? 4 : 11, step % 6);
            network_feed(&net, &s);
            must(trama_run(net.e, net.train));
            samples_free(&s);
            if (step % 10 == 0)
                network_loss(&net);
            if (step == 100) {
                before = shard_pool(ctx);
                memory = memory_now();
            }
        }
        demand(shards_equal(before, shard_pool(ctx)), "mesh %s: %" PRId64 " shards become %" PRId64, meshes[i],
               before.made, shard_pool(ctx).made);
        demand(SANITIZED || memory_now() - memory < 1 << 20, "mesh %s: %" PRId64 " bytes in 300 steps", meshes[i],
               memory_now() - memory);
        network_free(&net);
    }
    stop();
}
END_TEST

/* Questions are not collective: one rank asks about a plan that nobody has made yet. */
START_TEST(one_rank_alone_may_look_at_a_plan)
{
    start();
    network net = network_new("dp=2", TRAMA_F32, false, 3, small_sizes);
    samples s = samples_new(&net, 6, 0);
    net.e = compile(net.program);
    network_feed(&net, &s);
    if (my_rank == 0) {
        char *words;
        trama_traffic traffic = {0};
        must(trama_plan_text(net.e, net.train, false, &words));
        demand(strstr(words, "rank 0"), "%s", words);
        free(words);
        must(trama_target_traffic(net.e, net.train, &traffic));
        must(trama_layout_of(net.e, net.w[0], &words));
        free(words);
    }
    must(trama_run(net.e, net.train));
    network_loss(&net);
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

/* Two executables of one program, their runs and readings interleaved. */
START_TEST(executables_do_not_mix_their_messages)
{
    start();
    network net = network_new("dp=2,mp=2", TRAMA_F64, false, 3, small_sizes), twin = net;
    plain_net plain = plain_new(3, small_sizes, SEED);
    net.e = compile(net.program);
    twin.e = compile(net.program);
    for (int step = 0; step < 10; step++) {
        trama_reading *first, *second;
        double a, b;
        samples s = samples_new(&net, 7, step);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        must(trama_read_start(net.e, net.loss, &first));
        network_feed(&twin, &s);
        must(trama_run(twin.e, twin.train));
        must(trama_read_start(twin.e, twin.loss, &second));
        must(trama_read_wait(&second, &b, sizeof b));
        must(trama_read_wait(&first, &a, sizeof a));
        double wanted = plain_step(&plain, s.n, s.x, s.y, false, net.lr);
        demand(relative(a, wanted) < 1e-10 && !memcmp(&a, &b, sizeof a), "step %d: %.17g and %.17g instead of %.17g",
               step, a, b, wanted);
        samples_free(&s);
    }
    must(trama_executable_destroy(&twin.e));
    plain_free(&plain);
    network_free(&net);
    stop();
}
END_TEST

TESTS(sgd_in_f32_follows_plain_loops_for_200_steps, f64_follows_plain_loops,
      adamw_in_f32_follows_plain_loops_for_20_steps, the_network_of_the_main_job_follows_plain_loops,
      halves_follow_plain_loops_loosely_for_20_steps, meshes_of_other_processes_follow_plain_loops,
      batches_of_other_sizes_follow_plain_loops, the_smallest_tiles_follow_plain_loops,
      small_staging_buffers_follow_plain_loops, two_runs_give_the_same_bits, a_step_moves_what_its_plan_says,
      data_parallel_on_two_ranks_moves_each_gradient_once, named_gradients_are_those_of_plain_loops,
      steps_do_not_grow_anything, one_rank_alone_may_look_at_a_plan, executables_do_not_mix_their_messages)
