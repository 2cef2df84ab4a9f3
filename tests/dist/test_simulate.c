/* SPDX-License-Identifier: Apache-2.0 */
/* Simulations of hand-made steps, whose times are known by hand. */
#include <math.h>
#include <string.h>

#include "simulate.h"
#include "suite.h"

/* ---- Hand-made ranks ---- */

/* A step of a rank: a task of so many seconds, or an end of a message. It waits for the steps of its bits. */
typedef struct made_step {
    step_kind kind;
    double seconds;
    unsigned before;
    int peer;
    int64_t tag, bytes;
    int priority, worker; /* worker: 1 + the one that it runs on; 0: any */
    bool rendezvous;
} made_step;

#define TASK(takes, waits_for, ...)                                                                                    \
    {                                                                                                                  \
        .kind = STEP_COMPUTE, .seconds = takes, .before = waits_for, __VA_ARGS__                                       \
    }
#define ORDER(waits_for)                                                                                               \
    {                                                                                                                  \
        .kind = STEP_ORDER, .seconds = 7, .before = waits_for                                                          \
    }
#define SEND(waits_for, to, number, size, ...)                                                                         \
    {                                                                                                                  \
        .kind = STEP_SEND, .before = waits_for, .peer = to, .tag = number, .bytes = size, __VA_ARGS__                  \
    }
#define RECEIVE(waits_for, from, number, size)                                                                         \
    {                                                                                                                  \
        .kind = STEP_RECEIVE, .before = waits_for, .peer = from, .tag = number, .bytes = size                          \
    }

static const char two_nodes[] = "kind n\n task 0s\n message 0s\n switch s\n nodes 2 n in s 1GB/s 250ms\n";

typedef struct stage {
    trama_cluster *cluster;
    machine *machine;
    step_names names;
    simulated *s;
} stage;

static stage stage_new(const char *cluster, int ranks, int runs, int window)
{
    stage t = {0};
    ck_assert_msg(!trama_cluster_create(cluster, &t.cluster), "%s", trama_error());
    t.machine = cluster_machine(t.cluster, ranks);
    *ARRAY_PUSH(&t.names.at) = trama_text_copy("task");
    t.s = simulated_new(t.cluster, t.machine, &t.names, runs, window);
    return t;
}

static void stage_free(stage *t)
{
    simulated_free(&t->s);
    step_names_free(&t->names);
    machine_destroy(&t->machine);
    trama_cluster_destroy(&t->cluster);
}

/* Steps of a run wait for each other; with several runs a step waits for the same step of the run before, too. */
static trama_status add_rank(stage *t, int n, const made_step *steps)
{
    graph_messages messages = {0};
    const cluster_kind *kind = cluster_kind_of(t->cluster, 0);
    step_graph g = {.n = n, .submission = kind->submit * n};
    g.steps = trama_alloc(((size_t)n + 1) * sizeof *g.steps);
    g.next = trama_alloc((size_t)(n * n + n + 1) * sizeof *g.next);
    int at = 0;
    for (int i = 0; i < n; i++) {
        const made_step *of = &steps[i];
        g.steps[i] = (graph_step){.seconds = (float)(of->kind >= STEP_SEND ? kind->message : kind->task + of->seconds),
                                  .priority = of->priority,
                                  .next = at,
                                  .message = -1,
                                  .worker = (short)(of->worker - 1),
                                  .kind = (unsigned char)of->kind,
                                  .rendezvous = of->rendezvous,
                                  .later = 1};
        for (int k = 0; k < n; k++)
            if (steps[k].before >> i & 1)
                g.next[at++] = k;
        for (int k = 0; k < n; k++)
            g.steps[i].waits += of->before >> k & 1;
        g.steps[i].again = at;
        g.next[at++] = i;
        if (of->kind >= STEP_SEND)
            *ARRAY_PUSH(&messages) = (graph_message){i, of->peer, of->tag, of->bytes, 0, 0};
    }
    g.steps[n].next = at;
    trama_status status = simulated_add(t->s, g, &messages);
    ARRAY_FREE(&messages);
    return status;
}

static void runs_for(stage *t, double seconds)
{
    ck_assert_msg(!simulated_run(t->s), "%s", trama_error());
    ck_assert_msg(fabs(t->s->now - seconds) < 1e-5 * seconds, "it takes %.9g s, not %.9g s", t->s->now, seconds);
    stage_free(t);
}

/* ---- Orders ---- */

/* The worker also serves messages. The send is ready when the first task ends, before the worker takes the second. */
START_TEST(an_order_takes_no_worker_and_no_time)
{
    stage t = stage_new(two_nodes, 2, 1, 1);
    const made_step sender[] = {TASK(1, 0), ORDER(1), ORDER(2), SEND(4, 1, 1, 0), TASK(3, 0)};
    ck_assert(!add_rank(&t, 5, sender));
    ck_assert(!add_rank(&t, 2, (made_step[]){RECEIVE(0, 0, 1, 0), TASK(4, 1)}));
    runs_for(&t, 1 + 0.5 + 4);
}
END_TEST

START_TEST(messages_go_by_their_priorities)
{
    stage t = stage_new("kind n\n ranks 3\n cores 3\n task 0s\n message 1s\n local 1GB/s 0s\n nodes 1 n", 3, 1, 1);
    const made_step sender[] = {TASK(1, 0), SEND(1, 1, 1, 0, .priority = 1), SEND(1, 2, 1, 0, .priority = 2)};
    ck_assert(!add_rank(&t, 3, sender));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 1, 0)}));
    ck_assert(!add_rank(&t, 2, (made_step[]){RECEIVE(0, 0, 1, 0), TASK(4, 1)}));
    runs_for(&t, 1 + 1 + 1 + 4); /* task, second send, its receive, task */
}
END_TEST

/* One worker is idle when the first task ends: it takes none of the three before all are ready. */
START_TEST(idle_workers_choose_among_all_that_become_ready)
{
    stage t = stage_new("kind n\n cores 2\n task 0s\n nodes 1 n", 1, 1, 1);
    const made_step steps[] = {TASK(1, 0), TASK(3, 1, .priority = 1), TASK(1, 1, .priority = 9),
                               TASK(1, 1, .priority = 9), TASK(3, 4 | 8)};
    ck_assert(!add_rank(&t, 5, steps));
    runs_for(&t, 1 + 1 + 3); /* the first, two of priority 9, the others */
}
END_TEST

/* ---- Cores ---- */

START_TEST(ranks_share_fewer_cores)
{
    stage t = stage_new("kind n\n ranks 4\n cores 2\n task 0s\n nodes 1 n", 4, 1, 1);
    for (int r = 0; r < 3; r++)
        ck_assert(!add_rank(&t, 1, (made_step[]){TASK(1, 0)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){TASK(3, 0)}));
    runs_for(&t, 4); /* half of the speed for 2 s, then a core of its own for the 2 s that are left */
}
END_TEST

START_TEST(nodes_share_their_own_cores_alone)
{
    stage t = stage_new("kind n\n ranks 2\n cores 1\n task 0s\n switch s\n nodes 2 n in s 1GB/s 0s", 4, 1, 1);
    for (int r = 0; r < 4; r++)
        ck_assert(!add_rank(&t, 1, (made_step[]){TASK(r < 2 ? 1 : 2, 0)}));
    runs_for(&t, 4);
}
END_TEST

START_TEST(ranks_submit_one_after_the_other_on_one_core)
{
    stage t = stage_new("kind n\n ranks 4\n cores 1\n submit 1s\n task 0s\n nodes 1 n", 4, 1, 1);
    for (int r = 0; r < 4; r++)
        ck_assert(!add_rank(&t, 1, (made_step[]){TASK(0.5, 0)}));
    runs_for(&t, 6); /* workers have the core behind the last submission */
}
END_TEST

START_TEST(messages_take_shared_cores)
{
    /* The send and the receive take 1 s each on a core that rank 2 computes on, so each takes 2 s. */
    stage t = stage_new("kind n\n ranks 3\n cores 1\n task 0s\n message 1s\n local 1GB/s 0s\n nodes 1 n", 3, 1, 1);
    ck_assert(!add_rank(&t, 1, (made_step[]){SEND(0, 1, 1, 0)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 1, 0)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){TASK(3, 0)}));
    runs_for(&t, 5); /* 2 s each, then the last second of the task */
}
END_TEST

START_TEST(runs_share_cores_as_they_go)
{
    /* 3 runs of 1 s and of 2 s on one core: both have half of it for 6 s, then the longer ones have it alone. */
    stage t = stage_new("kind n\n ranks 2\n cores 1\n task 0s\n nodes 1 n", 2, 3, 2);
    for (int r = 0; r < 2; r++)
        ck_assert(!add_rank(&t, 1, (made_step[]){TASK(r + 1, 0)}));
    runs_for(&t, 9);
}
END_TEST

START_TEST(submission_leaves_gpus_alone)
{
    stage t = stage_new("kind n\n gpus 1\n submit 1s\n task 0s\n nodes 1 n", 1, 1, 1);
    ck_assert(!add_rank(&t, 3, (made_step[]){TASK(1, 0), TASK(1, 0), TASK(1, 0)}));
    runs_for(&t, 4); /* each begins where the one before ends, 1 s behind its submission */
}
END_TEST

START_TEST(submission_takes_the_core_of_the_one_worker)
{
    static const double ends[] = {4, 3}; /* on one core, and where another one is free */
    for (int cores = 1; cores <= 2; cores++) {
        stage t = stage_new(cores == 1 ? "kind n\n submit 1s\n task 0s\n nodes 1 n"
                                       : "kind n\n cores 2\n submit 1s\n task 0s\n nodes 1 n",
                            1, 1, 1);
        ck_assert(!add_rank(&t, 2, (made_step[]){TASK(1, 0, .worker = 1), TASK(1, 0, .worker = 1)}));
        runs_for(&t, ends[cores - 1]);
    }
}
END_TEST

START_TEST(workers_share_the_cores_that_submission_leaves)
{
    /* The submission ends at 3 s. From 2 s until then both tasks have half a core; the third begins at 5.5 s. */
    stage t = stage_new("kind n\n cores 2\n submit 1s\n task 0s\n nodes 1 n", 1, 1, 1);
    ck_assert(!add_rank(&t, 3, (made_step[]){TASK(4, 0), TASK(4, 0), TASK(4, 0)}));
    runs_for(&t, 9.5);
}
END_TEST

/* ---- Tasks ---- */

START_TEST(two_tasks_of_one_worker_take_the_time_of_both)
{
    stage t = stage_new("kind n\n task 500ms\n nodes 1 n", 1, 1, 1);
    ck_assert(!add_rank(&t, 2, (made_step[]){TASK(1, 0), TASK(2, 0)}));
    runs_for(&t, 4);
}
END_TEST

START_TEST(two_workers_share_tasks)
{
    stage t = stage_new("kind n\n cores 2\n task 0s\n nodes 1 n", 1, 1, 1);
    ck_assert(!add_rank(&t, 3, (made_step[]){TASK(2, 0), TASK(3, 0), TASK(4, 0)}));
    runs_for(&t, 6); /* 2 then 4 beside 3 */
}
END_TEST

START_TEST(a_task_waits_for_its_worker)
{
    stage t = stage_new("kind n\n cores 2\n task 0s\n nodes 1 n", 1, 1, 1);
    const made_step steps[] = {TASK(2, 0, .worker = 1), TASK(3, 0, .worker = 1), TASK(1, 0)};
    ck_assert(!add_rank(&t, 3, steps));
    runs_for(&t, 5);
}
END_TEST

START_TEST(the_task_with_the_highest_priority_goes_first)
{
    /* task 0 lets the others begin; task 2 goes first and lets task 3 run beside task 1 */
    const made_step steps[] = {TASK(1, 0, .worker = 1), TASK(4, 1u, .worker = 1),
                               TASK(1, 1u, .worker = 1, .priority = 7), TASK(4, 4u, .worker = 2)};
    stage t = stage_new("kind n\n cores 2\n task 0s\n nodes 1 n", 1, 1, 1);
    ck_assert(!add_rank(&t, 4, steps));
    runs_for(&t, 6);
}
END_TEST

START_TEST(submission_holds_tasks_back)
{
    stage t = stage_new("kind n\n cores 4\n task 0s\n submit 2s\n nodes 1 n", 1, 1, 1);
    ck_assert(!add_rank(&t, 3, (made_step[]){TASK(1, 0), TASK(1, 0), TASK(1, 0)}));
    runs_for(&t, 7);
}
END_TEST

START_TEST(a_run_follows_the_run_before)
{
    /* Two steps, one behind the other, on a worker each: the next run begins beside the second step. */
    const made_step steps[] = {TASK(1, 0, .worker = 1), TASK(1, 1u, .worker = 2)};
    stage t = stage_new("kind n\n cores 2\n task 0s\n nodes 1 n", 1, 5, 2);
    ck_assert(!add_rank(&t, 2, steps));
    runs_for(&t, 6);
    t = stage_new("kind n\n cores 2\n task 0s\n nodes 1 n", 1, 5, 1); /* one run in flight */
    ck_assert(!add_rank(&t, 2, steps));
    runs_for(&t, 10);
}
END_TEST

/* ---- Messages ---- */

START_TEST(a_pipeline_of_two_ranks)
{
    stage t = stage_new(two_nodes, 2, 1, 1);
    ck_assert(!add_rank(&t, 2, (made_step[]){TASK(2, 0), SEND(1u, 1, 4, 1000000000)}));
    ck_assert(!add_rank(&t, 2, (made_step[]){RECEIVE(0, 0, 4, 1000000000), TASK(3, 1u)}));
    runs_for(&t, 2 + 0.5 + 1 + 3); /* the task, both latencies, 1 GB at 1 GB/s, the task */
}
END_TEST

START_TEST(a_rendezvous_waits_for_the_receiver)
{
    for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
        stage t = stage_new(two_nodes, 2, 1, 1);
        const made_step send[] = {SEND(0, 1, 4, 1000000000, .rendezvous = rendezvous)};
        ck_assert(!add_rank(&t, 1, send));
        ck_assert(!add_rank(&t, 2, (made_step[]){TASK(3, 0), RECEIVE(1u, 0, 4, 1000000000)}));
        runs_for(&t, rendezvous ? 3 + 3 * 0.5 + 1 : 3); /* there and back and there; or it has come */
    }
}
END_TEST

START_TEST(messages_cost_a_core)
{
    stage t = stage_new(
        "kind n\n task 0s\n message 1s\n op message memory 1GB/s\n switch s\n nodes 2 n in s 1GB/s 0s\n", 2, 1, 1);
    ck_assert(!add_rank(&t, 2, (made_step[]){SEND(0, 1, 1, 2000000000), TASK(1, 0)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 1, 2000000000)}));
    runs_for(&t, 3 + 2 + 3);
}
END_TEST

START_TEST(two_flows_share_a_link)
{
    stage t = stage_new("kind n\n task 0s\n message 0s\n switch s\n nodes 3 n in s 1GB/s 0s\n", 3, 1, 1);
    const made_step sends[] = {SEND(0, 1, 0, 1000000000), SEND(0, 2, 0, 2000000000)};
    ck_assert(!add_rank(&t, 2, sends));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 0, 1000000000)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 0, 2000000000)}));
    runs_for(&t, 3); /* 2 s for 1 GB each at half the rate, then 1 GB alone */
}
END_TEST

START_TEST(ranks_of_a_node_send_through_its_memory)
{
    stage t = stage_new("kind n\n ranks 2\n cores 2\n task 0s\n message 0s\n local 4GB/s 1s\n nodes 1 n\n", 2, 1, 1);
    ck_assert(!add_rank(&t, 1, (made_step[]){SEND(0, 1, 0, 1000000000)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 0, 1000000000)}));
    runs_for(&t, 1.25);
}
END_TEST

START_TEST(ranks_that_wait_for_each_other_are_an_error)
{
    stage t = stage_new(two_nodes, 2, 1, 1);
    for (int r = 0; r < 2; r++) {
        const made_step steps[] = {TASK(1, 0), RECEIVE(1u, 1 - r, 5, 8), SEND(2u, 1 - r, 5, 8)};
        ck_assert(!add_rank(&t, 3, steps));
    }
    ck_assert_int_eq(simulated_run(t.s), TRAMA_E_SYSTEM);
    ck_assert_msg(strstr(trama_error(), "rank 0, step 1, receives from rank 1 with tag 5"), "%s", trama_error());
    stage_free(&t);
}
END_TEST

START_TEST(a_message_without_its_other_end_is_an_error)
{
    stage t = stage_new(two_nodes, 2, 1, 1);
    ck_assert(!add_rank(&t, 1, (made_step[]){SEND(0, 1, 5, 8)}));
    ck_assert(!add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 6, 8)}));
    ck_assert_int_eq(simulated_run(t.s), TRAMA_E_SYSTEM);
    ck_assert_msg(strstr(trama_error(), "rank 0, step 0, sends to rank 1 with tag 5"), "%s", trama_error());
    stage_free(&t);
    t = stage_new(two_nodes, 2, 1, 1);
    ck_assert(!add_rank(&t, 1, (made_step[]){SEND(0, 1, 5, 8)}));
    ck_assert_int_eq(add_rank(&t, 1, (made_step[]){RECEIVE(0, 0, 5, 16)}), TRAMA_E_SYSTEM);
    stage_free(&t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_order_takes_no_worker_and_no_time,
                                  messages_go_by_their_priorities,
                                  idle_workers_choose_among_all_that_become_ready,
                                  ranks_share_fewer_cores,
                                  nodes_share_their_own_cores_alone,
                                  ranks_submit_one_after_the_other_on_one_core,
                                  messages_take_shared_cores,
                                  runs_share_cores_as_they_go,
                                  submission_leaves_gpus_alone,
                                  submission_takes_the_core_of_the_one_worker,
                                  workers_share_the_cores_that_submission_leaves,
                                  two_tasks_of_one_worker_take_the_time_of_both,
                                  two_workers_share_tasks,
                                  a_task_waits_for_its_worker,
                                  the_task_with_the_highest_priority_goes_first,
                                  submission_holds_tasks_back,
                                  a_run_follows_the_run_before,
                                  a_pipeline_of_two_ranks,
                                  a_rendezvous_waits_for_the_receiver,
                                  messages_cost_a_core,
                                  two_flows_share_a_link,
                                  ranks_of_a_node_send_through_its_memory,
                                  ranks_that_wait_for_each_other_are_an_error,
                                  a_message_without_its_other_end_is_an_error};
    return suite_run("simulate", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
