/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps are to go first, on plans of known shape. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "mlp.h"
#include "priority.h"
#include "suite.h"
#include "trama_ops.h"

static const int wide[] = {300, 200, 100, 10};

static mlp_job job_new(const char *mesh)
{
    mlp_job j = mlp_job_new(mlp_new(mesh, 3, wide, "adamw"), 0, 1, &(plan_options){.max_tiles = 1});
    mlp_job_step(&j, 18, 1);
    return j;
}

/* The last step before `at` that wrote a tile. */
static void mark_writer(const plan *p, int at, int shard, int tile, bool *marked)
{
    for (int i = at - 1; i >= 0; i--)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[i], k);
            bool writes = o->access == ACCESS_WRITE || o->access == ACCESS_UPDATE;
            int first, last;
            if (!writes || o->region.shard != shard)
                continue;
            plan_tiles(&p->shards.at[shard], &o->region.box, &first, &last);
            if (first <= tile && tile <= last) {
                marked[i] = true;
                return;
            }
        }
}

static void mark_packing(const plan *p, int bundle, bool *marked)
{
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const plan_operand *o = plan_step_operand(p, &p->steps.at[i], k);
            bool writes = o->access == ACCESS_WRITE || o->access == ACCESS_UPDATE;
            marked[i] |= writes && plan_used_as(p, o->region.shard) == bundle;
        }
}

/* Marks the writers of a region, or of its whole bundle. */
static void mark_writers(const plan *p, int at, const plan_region *region, bool *marked)
{
    int first, last, used = plan_used_as(p, region->shard);
    if (p->shards.at[used].source == SHARD_BUNDLE) {
        mark_packing(p, used, marked);
        return;
    }
    plan_tiles(&p->shards.at[region->shard], &region->box, &first, &last);
    for (int tile = first; tile <= last; tile++)
        mark_writer(p, at, region->shard, tile, marked);
}

/* Marks steps that write sent data, also by copies and sums, step by step. */
static void find_sent(const plan *p, bool *sent)
{
    for (int i = p->steps.n - 1; i >= 0; i--) {
        const plan_step *s = &p->steps.at[i];
        bool moves = s->kind == STEP_COPY || s->kind == STEP_REDUCE;
        for (int k = 0; k < s->n_operands && (s->kind == STEP_SEND || (moves && sent[i])); k++) {
            const plan_operand *o = plan_step_operand(p, s, k);
            if (o->access == ACCESS_READ || o->access == ACCESS_UPDATE)
                mark_writers(p, i, &o->region, sent);
        }
    }
}

START_TEST(what_is_sent_goes_before_what_is_not)
{
    static const char *const meshes[] = {"dp=2", "dp=4", "mp=2", "dp=2,mp=2", "dp=3,mp=2"};
    for (int i = 0; i < 5; i++) {
        mlp_job j = job_new(meshes[i]);
        for (int r = 0; r < j.machine->n_ranks; r++) {
            const plan *p = simulation_plan(j.s, r);
            bool sent[4096] = {false};
            int n = 0;
            ck_assert_int_lt(p->steps.n, 4096);
            find_sent(p, sent);
            for (int k = 0; k < p->steps.n; k++) {
                const plan_step *s = &p->steps.at[k];
                if (s->kind >= STEP_SEND) {
                    ck_assert_msg(s->priority > 0 && s->priority < PRIORITY_SENT, "%s: message %d", meshes[i], k);
                    continue;
                }
                ck_assert_msg((s->priority >= PRIORITY_SENT) == sent[k], "%s, rank %d: step %d has priority %d",
                              meshes[i], r, k, s->priority);
                n += sent[k];
            }
            ck_assert_int_gt(n, 0);
        }
        mlp_job_free(&j);
    }
}
END_TEST

/* A message of these elements takes longer than their copies and sums, and a product longer than both. */
START_TEST(of_what_is_sent_moves_go_before_computations)
{
    mlp_job j = job_new("dp=4");
    const plan *p = simulation_plan(j.s, 1);
    int least_move = INT32_MAX, most_compute = 0;
    for (int k = 0; k < p->steps.n; k++) {
        const plan_step *s = &p->steps.at[k];
        const bool moves = s->kind == STEP_COPY || s->kind == STEP_REDUCE;
        if (moves && s->priority >= PRIORITY_SENT)
            least_move = s->priority < least_move ? s->priority : least_move;
        if (s->kind == STEP_COMPUTE)
            most_compute = s->priority > most_compute ? s->priority : most_compute;
    }
    ck_assert_int_gt(most_compute, PRIORITY_SENT);
    ck_assert_int_lt(most_compute, PRIORITY_MOVED);
    ck_assert_int_ge(least_move, PRIORITY_MOVED);
    ck_assert_int_lt(least_move, INT32_MAX);
    mlp_job_free(&j);
}
END_TEST

/* Layers of equal size: their messages take equally long, and the next run needs the first layer first. */
START_TEST(the_state_that_the_next_run_needs_first_is_sent_first)
{
    static const int equal[] = {200, 200, 200, 200};
    mlp_job j = mlp_job_new(mlp_new("dp=2", 3, equal, "sgd"), 0, 1, &(plan_options){.max_tiles = 1});
    mlp_job_step(&j, 18, 1);
    const plan *p = simulation_plan(j.s, 0);
    int n = 0, last = 0;
    for (int k = 0; k < p->steps.n; k++) { /* the gradient of the last layer comes first */
        const plan_step *s = &p->steps.at[k];
        if (s->kind != STEP_SEND || plan_region_bytes(p, &plan_step_operand(p, s, 0)->region) < 200 * 200)
            continue;
        ck_assert_msg(s->priority > last, "step %d: %d after %d", k, s->priority, last);
        last = s->priority;
        n++;
    }
    ck_assert_int_eq(n, 3);
    mlp_job_free(&j);
}
END_TEST

enum { CHAIN = 12, BESIDE = 30 };

typedef struct job {
    machine *m;
    trama_program *program;
    trama_value *x;
    simulation *s;
} job;

static job job_begin(int workers)
{
    job j = {.m = machine_uniform(1, workers), .program = trama_program_create()};
    j.x = trama_input(j.program, "x", TRAMA_F64, TRAMA_SHAPE(40, 40));
    return j;
}

/* Its plan, after a run. */
static const plan *job_run(job *j, int n, trama_value *const *values)
{
    trama_target *t = trama_target_at(NOWHERE, j->program, "t", n, values);
    ck_assert_msg(!trama_program_status(j->program), "%s", trama_program_error(j->program));
    j->s = simulation_new(j->program, j->m, &(simulation_options){.plan = {.max_tiles = 1}});
    dense data = dense_random(j->x->shape, 1, -1, 1, false);
    simulation_feed(j->s, j->x, &data);
    simulation_run(j->s, t);
    dense_free(&data);
    return simulation_plan(j->s, 0);
}

static void job_end(job *j)
{
    simulation_destroy(&j->s);
    trama_program_destroy(&j->program);
    machine_destroy(&j->m);
}

/* Sums of products, recorded first, which `CHAIN` products in a row do not need. */
static const plan *chain_and_more(job *j, int *first_of_chain)
{
    trama_value *values[BESIDE + 1], *z = j->x;
    for (int i = 0; i < BESIDE; i++)
        values[i] = trama_sum(trama_matmul(j->x, trama_scale(j->x, i + 2)));
    *first_of_chain = j->program->nodes.n;
    for (int i = 0; i < CHAIN; i++)
        z = trama_matmul(z, j->x);
    values[BESIDE] = z;
    return job_run(j, BESIDE + 1, values);
}

static void demand_no_priorities(const plan *p)
{
    for (int i = 0; i < p->steps.n; i++)
        ck_assert_int_eq(p->steps.at[i].priority, 0);
}

START_TEST(a_chain_that_is_longer_than_the_rest_takes_goes_first)
{
    int first, last = INT32_MAX, n = 0;
    job j = job_begin(8);
    const plan *p = chain_and_more(&j, &first);
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *step = &p->steps.at[i];
        if (step->kind != STEP_COMPUTE)
            continue;
        if (p->calls.at[step->call].node < first) {
            ck_assert_int_eq(step->priority, 0);
            continue;
        }
        ck_assert_msg(step->priority > 0 && step->priority < last, "product %d of the chain: %d after %d", n,
                      step->priority, last); /* it falls along the chain */
        last = step->priority;
        n++;
    }
    ck_assert_int_eq(n, CHAIN);
    job_end(&j);
}
END_TEST

START_TEST(where_all_work_is_one_worker_s_the_plan_s_order_stands)
{
    mlp_job j = job_new("1");
    demand_no_priorities(simulation_plan(j.s, 0));
    mlp_job_free(&j);
}
END_TEST

START_TEST(one_worker_has_no_use_for_that)
{
    int first;
    job j = job_begin(1);
    demand_no_priorities(chain_and_more(&j, &first));
    job_end(&j);
}
END_TEST

START_TEST(a_lone_step_has_nothing_to_go_before)
{
    job j = job_begin(8);
    trama_value *product = trama_matmul(j.x, j.x);
    const plan *p = job_run(&j, 1, &product);
    ck_assert_int_eq(p->steps.n, 1);
    demand_no_priorities(p);
    job_end(&j);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        what_is_sent_goes_before_what_is_not,
        of_what_is_sent_moves_go_before_computations,
        the_state_that_the_next_run_needs_first_is_sent_first,
        where_all_work_is_one_worker_s_the_plan_s_order_stands,
        a_chain_that_is_longer_than_the_rest_takes_goes_first,
        a_lone_step_has_nothing_to_go_before,
        one_worker_has_no_use_for_that,
    };
    return suite_run("priority", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
