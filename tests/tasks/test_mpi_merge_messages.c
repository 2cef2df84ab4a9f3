/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge over ranks: what crosses ranks when. */
#include "merging.h"

/* Messages and bytes of this rank in one run. */
static context_counters of_run(network *net, const samples *s, int from, int n)
{
    must(trama_wait(net->e));
    context_counters before = context_count(ctx);
    run_part(net, s, from, n);
    must(trama_wait(net->e));
    context_counters after = context_count(ctx);
    return (context_counters){.messages_sent = after.messages_sent - before.messages_sent,
                              .messages_received = after.messages_received - before.messages_received,
                              .bytes_sent = after.bytes_sent - before.bytes_sent,
                              .bytes_received = after.bytes_received - before.bytes_received};
}

/* Data parallel: within a cycle only the loss, which is listed, is summed. The applied step moves each gradient
 * once, however many micro-steps there were. */
START_TEST(gradients_cross_ranks_once_a_cycle)
{
    start();
    int64_t applied_bytes = -1, applied_messages = -1;
    for (int k = 2; k <= 8 && n_ranks >= 2; k *= 2) {
        network net = merging_network("dp=2", TRAMA_F64, false, k);
        samples s = samples_new(&net, 4 * k, 0);
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < k; i++) {
                context_counters moved = of_run(&net, &s, 4 * i, 4);
                if (i < k - 1)
                    demand(moved.bytes_received <= 16 && moved.messages_received <= 2,
                           "k = %d: %" PRId64 " bytes come within a cycle", k, moved.bytes_received);
                else if (applied_bytes < 0)
                    applied_bytes = moved.bytes_received, applied_messages = moved.messages_received;
                else
                    demand(moved.bytes_received == applied_bytes && moved.messages_received == applied_messages,
                           "k = %d: %" PRId64 " bytes instead of %" PRId64, k, moved.bytes_received, applied_bytes);
            }
        samples_free(&s);
        network_free(&net);
    }
    int64_t parameters = 0;
    for (int l = 0; l < 3; l++)
        parameters += small_sizes[l + 1] * (small_sizes[l] + 1);
    if (my_rank < 2 && n_ranks == 2)
        demand(applied_bytes >= 8 * parameters && applied_bytes <= 8 * parameters + 16,
               "%" PRId64 " bytes for %" PRId64, applied_bytes, 8 * parameters);
    stop();
}
END_TEST

TESTS(gradients_cross_ranks_once_a_cycle)
