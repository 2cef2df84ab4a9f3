/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of training over ranks: as many as planned, asked about by one rank alone, and not mixed. */
#include "training.h"

/* Traffic between ranks in a step is as planned, and stays so. */
START_TEST(a_step_moves_what_its_plan_says)
{
    start();
    demand(n_ranks > 1, "it takes several ranks");
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
                   ", %" PRId64 ", without %" PRId64 " and %" PRId64 " B by NCCL",
                   meshes[i], in, out, n, planned.bytes_received, planned.bytes_sent, planned.messages,
                   planned.collective_received, planned.collective_sent);
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

TESTS(a_step_moves_what_its_plan_says, data_parallel_on_two_ranks_moves_each_gradient_once,
      one_rank_alone_may_look_at_a_plan, executables_do_not_mix_their_messages)
