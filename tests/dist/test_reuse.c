/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that shards share one after the other: how many a plan needs, and that none is taken over too early. */
#include "simulation.h"
#include "suite.h"
#include "trama_ops.h"
#include "verify_plan.h"

enum { N = 8, CHAIN = 12 };

static trama_value *chain_of(trama_value *x, int n)
{
    trama_value *z = x;
    for (int i = 0; i < n; i++)
        z = trama_matmul(z, x);
    return z;
}

/* The plan of chains of products, of which the last is kept. */
typedef struct chain {
    machine *m;
    trama_program *p;
    simulation *s;
    const plan *made;
} chain;

static chain chain_begin(int workers, int chains)
{
    static const simulation_options one_tile = {.plan = {.max_tiles = 1}};
    chain c = {.m = machine_uniform(1, workers), .p = trama_program_create()};
    trama_value *x = trama_parameter(c.p, "x", TRAMA_F32, TRAMA_SHAPE(N, N), &(trama_init){.low = -1, .high = 1});
    trama_value *result[] = {chain_of(x, CHAIN), chains > 1 ? chain_of(trama_scale(x, 2), CHAIN) : NULL};
    trama_target *t = trama_target_at(NOWHERE, c.p, "t", chains, result);
    c.s = simulation_new(c.p, c.m, &one_tile);
    simulation_run(c.s, t);
    c.made = simulation_plan(c.s, 0);
    return c;
}

static void chain_end(chain *c)
{
    simulation_destroy(&c->s);
    trama_program_destroy(&c->p);
    machine_destroy(&c->m);
}

static int count_buffers(const plan *p)
{
    int n = 0;
    for (int i = 0; i < p->shards.n; i++)
        n += p->shards.at[i].source == SHARD_OWN && p->shards.at[i].reuses < 0;
    return n;
}

/* Each product needs the one before; the last one's buffer is that of a value which others may read. */
START_TEST(a_chain_needs_two_buffers_and_that_of_its_result)
{
    chain c = chain_begin(1, 1);
    const plan *made = c.made;
    ck_assert_int_eq(count_buffers(made), 3);
    ck_assert_int_eq(made->footprint.at[0].bytes, 3 * N * N * 4);
    ck_assert_int_eq(made->footprint.at[0].live, 3 * N * N * 4);
    chain_end(&c);
}
END_TEST

START_TEST(a_buffer_that_is_taken_over_too_early_is_found)
{
    chain c = chain_begin(1, 1);
    const plan *made = c.made;
    plan *damaged = (plan *)made; /* of the simulation, which runs it no more */
    ck_assert_int_eq(plan_unordered(made), -1);
    int own[CHAIN], n = 0;
    for (int i = 0; i < made->shards.n; i++)
        if (made->shards.at[i].source == SHARD_OWN)
            own[n++] = i;
    ck_assert_int_eq(n, CHAIN);
    for (int i = 0; i + 1 < CHAIN - 1; i++) { /* the product that reads it */
        const int before = made->shards.at[own[i + 1]].reuses;
        const int first = made->shards.at[own[i]].reuses;
        damaged->shards.at[own[i + 1]].reuses = first < 0 ? own[i] : first;
        ck_assert_int_ge(plan_unordered(made), 0);
        damaged->shards.at[own[i + 1]].reuses = before;
    }
    const int last = own[CHAIN - 1], reused = made->shards.at[own[2]].reuses;
    ck_assert_int_ge(reused, 0);
    damaged->shards.at[own[2]].box.n[0]--; /* of another form */
    ck_assert_int_eq(plan_unordered(made), own[2]);
    damaged->shards.at[own[2]].box.n[0]++;
    ck_assert_int_eq(made->shards.at[last].reuses, -1);
    chain_end(&c);
}
END_TEST

/* Independent work of the other worker may not wait for it. */
START_TEST(work_beside_has_buffers_of_its_own)
{
    chain c = chain_begin(2, 2);
    ck_assert_int_eq(count_buffers(c.made), 2 * 3 + 1); /* and the scaled one */
    chain_end(&c);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_chain_needs_two_buffers_and_that_of_its_result,
                            a_buffer_that_is_taken_over_too_early_is_found, work_beside_has_buffers_of_its_own};
    return suite_run("reuse", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
