/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are loans: plans say which may be, and no rank waits for itself through them. */
#include <string.h>

#include "mlp.h"
#include "suite.h"
#include "trama_ops.h"

enum { BATCH = 12, LAYERS = 10 };

static const int sizes[LAYERS + 1] = {40, 80, 64, 48, 88, 72, 56, 40, 80, 64, 10};

static mlp_job trained(const char *mesh, int k, int64_t arena_bytes, int64_t staging_bytes)
{
    mlp_job j = {.m = mlp_new(mesh, LAYERS, sizes, "adamw")};
    j.machine = machine_uniform(trama_mesh_size(j.m.mesh), 1);
    j.machine->loan_bytes = 1;
    j.s = simulation_of_cycle(j.m.program, j.m.train, k, j.machine,
                              &(simulation_options){.plan = {.max_tiles = 2,
                                                             .grain_flops = 1,
                                                             .grain_bytes = 1,
                                                             .arena_bytes = arena_bytes,
                                                             .staging_bytes = staging_bytes}});
    for (int i = 0; i < k + 2; i++)
        mlp_job_step(&j, BATCH, (uint64_t)i + 1);
    return j;
}

/* The receive of a send in the plan of its receiver. */
static const plan_step *receive_of(const mlp_job *j, int rank, const plan_step *send)
{
    const plan *p = simulation_plan(j->s, send->peer);
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind == STEP_RECEIVE && p->steps.at[i].peer == rank && p->steps.at[i].tag == send->tag)
            return &p->steps.at[i];
    ck_abort_msg("nobody receives a message");
}

typedef struct counts {
    int messages, lent, within; /* and those whose memory is used again in the run */
} counts;

static counts count(const mlp_job *j)
{
    counts n = {0};
    for (int r = 0; r < j->machine->n_ranks; r++) {
        const plan *p = simulation_plan(j->s, r);
        for (int i = 0; i < p->steps.n; i++) {
            const plan_step *s = &p->steps.at[i];
            if (s->kind != STEP_SEND)
                continue;
            const int span = receive_of(j, r, s)->span;
            n.messages++;
            n.lent += span && span <= s->span;
            n.within += span && span <= s->span && s->span < INT32_MAX;
        }
    }
    return n;
}

START_TEST(loans_let_all_ranks_go_on)
{
    static const char *const meshes[] = {"dp=2", "mp=2", "mp=3", "dp=2,mp=2", "dp=4"};
    for (int i = 0; i < 5; i++)
        for (int k = 1; k <= 2; k++)
            for (int arenas = 0; arenas < 2; arenas++) {
                mlp_job j = trained(meshes[i], k, arenas ? 1 : INT64_MAX, 0);
                ck_assert_msg(!simulation_verify(j.s), "%s", trama_error());
                mlp_job_free(&j);
            }
}
END_TEST

static void expect_all(const char *mesh, int but, bool arenas)
{
    mlp_job j = trained(mesh, 1, arenas ? 1 : INT64_MAX, 0);
    const counts n = count(&j);
    ck_assert_int_gt(n.messages, LAYERS);
    ck_assert_int_ge(n.lent, n.messages - but);
    ck_assert(arenas ? n.within > 0 : n.within == 0);
    mlp_job_free(&j);
}

/* A sum over two ranks has one message each way, which the receiver adds to its own term. */
START_TEST(sums_of_two_terms_are_loans)
{
    for (int arenas = 0; arenas < 2; arenas++) {
        expect_all("mp=2", 0, arenas);
        expect_all("dp=2", 2, arenas); /* but a bundle of small gradients */
    }
}
END_TEST

/* With three terms each rank sums a part, and receives the others in place. */
START_TEST(messages_received_in_place_are_none)
{
    mlp_job j = trained("mp=3", 1, INT64_MAX, 0);
    const counts n = count(&j);
    ck_assert_int_eq(2 * n.lent, n.messages);
    mlp_job_free(&j);
}
END_TEST

START_TEST(ranks_that_share_no_memory_lend_nothing)
{
    mlp_job j = mlp_job_new(mlp_new("mp=2", LAYERS, sizes, "adamw"), 0, 1, &(plan_options){.max_tiles = 1});
    mlp_job_step(&j, BATCH, 1);
    ck_assert_int_eq(count(&j).lent, 0);
    mlp_job_free(&j);
}
END_TEST

/* The buffer of message `which` of a kind, the step, and its place in the plan. */
typedef struct found {
    int at, shard;
    plan_step step;
} found;

static found find(const plan *p, step_kind kind, int which)
{
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind == kind && p->steps.at[i].tag == which)
            return (found){i, plan_step_operand(p, &p->steps.at[i], 0)->region.shard, p->steps.at[i]};
    ck_abort_msg("there is no message %d", which);
}

/* Inserts a step behind which the users of two shards come together. */
static void insert_order(plan *p, int at, found one, found other)
{
    const plan_step order = {.kind = STEP_ORDER,
                             .lane = -1,
                             .place = one.step.place,
                             .operand = p->operands.n,
                             .n_operands = 2,
                             .exchange = one.step.exchange};
    const int shards[] = {one.shard, other.shard};
    for (int i = 0; i < 2; i++)
        *ARRAY_PUSH(&p->operands) = (plan_operand){{shards[i], p->shards.at[shards[i]].box}, ACCESS_UPDATE};
    ARRAY_PUSH(&p->steps);
    memmove(&p->steps.at[at + 1], &p->steps.at[at], (size_t)(p->steps.n - at - 1) * sizeof order);
    p->steps.at[at] = order;
}

/* Message 1 waits until the memory of message 0 is free, and the readers of that wait for message 1. */
START_TEST(a_rank_that_waits_for_itself_through_a_loan_is_found)
{
    for (int lent = 0; lent < 2; lent++) {
        mlp_job j = trained("mp=2", 1, INT64_MAX, 0);
        plan *from = (plan *)simulation_plan(j.s, 0), *to = (plan *)simulation_plan(j.s, 1);
        const found sent = find(from, STEP_SEND, 1), received = find(to, STEP_RECEIVE, 1);
        for (int i = 0; i < from->steps.n; i++)
            from->steps.at[i].span *= lent;
        ck_assert_msg(!simulation_verify(j.s), "%s", trama_error());
        insert_order(from, sent.at, find(from, STEP_SEND, 0), sent);
        insert_order(to, received.at + 1, find(to, STEP_RECEIVE, 0), received);
        ck_assert_int_eq(simulation_verify(j.s), lent ? TRAMA_E_SYSTEM : TRAMA_OK);
        ck_assert(!lent || strstr(trama_error(), "circle"));
        mlp_job_free(&j);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {loans_let_all_ranks_go_on, sums_of_two_terms_are_loans, messages_received_in_place_are_none,
                            ranks_that_share_no_memory_lend_nothing,
                            a_rank_that_waits_for_itself_through_a_loan_is_found};
    return suite_run("loans", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
