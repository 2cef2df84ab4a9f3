/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge by tasks and messages: within a cycle only those of forward, backward and accumulation. */
#define _GNU_SOURCE
#include "submitted.h"

#include "merging.h"

/* This rank's tasks and traffic. */
typedef struct work_done {
    int64_t tasks, messages, bytes;
} work_done;

static work_done work_so_far(trama_executable *e)
{
    must(trama_wait(e));
    context_counters c = context_count(ctx);
    return (work_done){submitted, c.messages_sent + c.messages_received, c.bytes_sent + c.bytes_received};
}

static work_done work_since(trama_executable *e, work_done before)
{
    work_done now = work_so_far(e);
    return (work_done){now.tasks - before.tasks, now.messages - before.messages, now.bytes - before.bytes};
}

static bool work_equal(work_done a, work_done b)
{
    return a.tasks == b.tasks && a.messages == b.messages && a.bytes == b.bytes;
}

static work_done work_of_run(trama_executable *e, const trama_target *target)
{
    work_done before = work_so_far(e);
    must(trama_run(e, target));
    return work_since(e, before);
}

/* A network whose loss nobody lists: it trains, merged over k micro-steps; or, k 0, its target is the gradients. */
static network counted_network(const char *mesh, int k)
{
    network net = network_untrained(mesh, TRAMA_F64, 3, small_sizes);
    trama_optimizer adamw = trama_adamw(1e-3);
    trama_value *listed[6];
    for (int i = 0; i < 6 && !k; i++)
        listed[i] = trama_gradient(net.loss, network_parameter(&net, i));
    if (k)
        listed[0] = trama_minimize(net.loss, &adamw);
    net.train = trama_target_at(TRAMA_HERE, net.program, "train", k ? 1 : 6, listed);
    if (k)
        trama_gradient_merge(net.train, k, TRAMA_MERGE_AVG);
    net.e = compile(net.program);
    samples s = samples_new(&net, 12, 0);
    network_feed(&net, &s);
    samples_free(&s);
    return net;
}

/* Two cycles, the second of them flushed. All micro-steps within one are alike, and a flush is what the last one has
 * more. */
static work_done within_cycle(const network *net, const char *mesh)
{
    work_done within = work_of_run(net->e, net->train), again = work_of_run(net->e, net->train),
              open = work_of_run(net->e, net->train);
    demand(work_equal(within, again), "mesh %s: %" PRId64 " tasks, then %" PRId64, mesh, within.tasks, again.tasks);
    again = work_of_run(net->e, net->train);
    demand(work_equal(within, again), "mesh %s: %" PRId64 " tasks, and later %" PRId64, mesh, within.tasks,
           again.tasks);
    work_done before = work_so_far(net->e);
    must(trama_flush(net->e, net->train));
    work_done flush = work_since(net->e, before);
    demand(open.tasks == within.tasks + flush.tasks && open.messages == within.messages + flush.messages &&
               open.bytes == within.bytes + flush.bytes,
           "mesh %s: %" PRId64 " tasks and %" PRId64 " bytes, within %" PRId64 " and %" PRId64 ", flushed %" PRId64
           " and %" PRId64,
           mesh, open.tasks, open.bytes, within.tasks, within.bytes, flush.tasks, flush.bytes);
    return within;
}

/* One task an op. Forward: 3 products, 3 sums, 2 relu; backward: the loss, 2 products and 2 relu back to the first
 * layer, 3 gradients of weights and 3 of biases: 19. And 6 accumulations. Or fused: 3 layers forward, the loss, 2
 * layers back, 6 gradients, each added up where it is computed: 12. */
START_TEST(data_parallel_micro_steps_are_forward_backward_and_accumulation)
{
    for (int fused = 0; fused < 2; fused++) {
        start_with(&(trama_config){.max_tiles = 1, .no_fusion = !fused, .map_by_order = true});
        char mesh[16];
        snprintf(mesh, sizeof mesh, "dp=%d", n_ranks);
        network net = counted_network(mesh, 3);
        work_done within = within_cycle(&net, mesh);
        demand(within.tasks == (fused ? 12 : 19 + 6), "%s: %" PRId64 " tasks within a cycle", mesh, within.tasks);
        demand(within.messages == 0 && within.bytes == 0, "%s: %" PRId64 " messages within a cycle", mesh,
               within.messages);
        network_free(&net);
        stop();
    }
}
END_TEST

/* Boxes of the parameters that this rank has. */
static int count_boxes(const network *net)
{
    int n = 0;
    for (int i = 0; i < 6; i++) {
        int boxes;
        must(trama_local_count(net->e, network_parameter(net, i), &boxes));
        n += boxes;
    }
    return n;
}

/* Gradients that are nowhere partial: with them in the target's list instead of updates, all is the same but for the
 * accumulations. */
START_TEST(model_parallel_micro_steps_are_forward_backward_and_accumulation)
{
    static const char *const split[] = {"1", "mp=2", "mp=3", "mp=4"};
    for (int fused = 0; fused < 2; fused++) {
        start_with(&(trama_config){.max_tiles = 1, .no_fusion = !fused, .map_by_order = true});
        for (int i = 0; i < 4; i++) {
            network net = counted_network(split[i], 3), beside = counted_network(split[i], 0);
            work_done within = within_cycle(&net, split[i]), plain = work_of_run(beside.e, beside.train);
            plain.tasks += fused ? 0 : count_boxes(&net);
            demand(work_equal(within, plain),
                   "mesh %s: %" PRId64 " tasks, %" PRId64 " messages, %" PRId64
                   " bytes; of forward and backward %" PRId64 ", %" PRId64 ", %" PRId64,
                   split[i], within.tasks, within.messages, within.bytes, plain.tasks, plain.messages, plain.bytes);
            network_free(&net);
            network_free(&beside);
        }
        stop();
    }
}
END_TEST

/* 32 rows, of which every process has as many however they are cut: what crosses is what crosses in plain training. */
START_TEST(bytes_of_a_cycle_do_not_depend_on_its_length)
{
    static const char *const kinds[] = {"dp=2", "mp=2", "dp=2,mp=2"};
    start_with(&(trama_config){.map_by_order = true});
    for (int i = 0; i < 3; i++) {
        int64_t plain = 0;
        for (int k = 1; k <= 8; k *= 2) {
            network net = counted_network(kinds[i], k);
            samples s = samples_new(&net, 32, 0);
            cycle c = {{0}};
            for (int m = 0; m < k; m++)
                c.batch[m] = 32 / k;
            work_done before = work_so_far(net.e);
            run_cycle(&net, &s, &c);
            work_done done = work_since(net.e, before);
            plain = k == 1 ? done.bytes : plain;
            demand(done.bytes == plain, "mesh %s: %" PRId64 " bytes in a cycle of %d, %" PRId64 " in plain training",
                   kinds[i], done.bytes, k, plain);
            samples_free(&s);
            network_free(&net);
        }
    }
    stop();
}
END_TEST

TESTS(data_parallel_micro_steps_are_forward_backward_and_accumulation,
      model_parallel_micro_steps_are_forward_backward_and_accumulation, bytes_of_a_cycle_do_not_depend_on_its_length)
