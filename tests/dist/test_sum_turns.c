/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of many large terms, which exceed the staging buffer: their terms go in turns, so that messages stay large; and
 * messages in the same tiles share the steps that order or copy them, and few wait for each other. Values are checked
 * by change_try. */
#include <check.h>

#include "change.h"
#include "planner.h"
#include "suite.h"

enum { TERMS = 32, WINDOW = 64 << 10 };

static int count(const plan *p, step_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++)
        n += p->steps.at[i].kind == kind;
    return n;
}

/* To replicas on the same mesh. c: shape, max_tiles, staging_bytes and look. */
static void try_gather(const char *mesh, const char *from, int ranks, change c)
{
    trama_mesh *a = trama_mesh_create(mesh);
    machine *m = machine_uniform(ranks, 1);
    process_map *map = map_by_order(a->size, NULL, m);
    c.from_mesh = c.to_mesh = a;
    c.to = layout_uniform(a, TRAMA_REPLICATE);
    c.machine = m;
    c.map = map;
    c.seed = 7;
    ck_assert_msg(!trama_layout_parse(a, c.shape.ndim, from, &c.from), "%s", trama_error());
    change_try(&c, NULL);
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&a);
}

/* From terms; n: elements of 8 bytes. */
static void try_tiles(const char *mesh, const char *from, int64_t n, int ranks, int64_t window, int max_tiles,
                      void (*look)(const change *c, plan *const *plans))
{
    try_gather(mesh, from, ranks,
               (change){.shape = TRAMA_SHAPE(n), .max_tiles = max_tiles, .staging_bytes = window, .look = look});
}

static void try_sum(const char *mesh, const char *from, int64_t n, int ranks, int64_t window,
                    void (*look)(const change *c, plan *const *plans))
{
    try_tiles(mesh, from, n, ranks, window, 1, look);
}

/* Each process has a slice of 4 KiB: all terms of it are 128 KiB, and four are a quarter of the staging buffer. */
static void has_eight_turns(const change *c, plan *const *plans)
{
    for (int r = 0; r < TERMS; r++) {
        ck_assert_int_eq(count(plans[r], STEP_REDUCE), TERMS / 4);
        ck_assert_int_eq(count(plans[r], STEP_SEND), 2 * (TERMS - 1));
        ck_assert_int_eq(count(plans[r], STEP_RECEIVE), 2 * (TERMS - 1));
        ck_assert_int_eq(plan_count(plans[r]).messages, 4 * (TERMS - 1));
        ck_assert_int_le(plans[r]->exchanges.at[0].buffers, WINDOW);
    }
}

START_TEST(a_process_sends_two_messages_to_each_other_one)
{
    try_sum("32", "P", TERMS * 512, TERMS, WINDOW, has_eight_turns);
}
END_TEST

static void has_one_turn(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++)
        ck_assert_int_eq(count(plans[r], STEP_REDUCE), 1);
}

START_TEST(terms_that_fit_are_summed_at_once)
{
    try_sum("32", "P", TERMS * 512, TERMS, 4 * WINDOW, has_one_turn);
}
END_TEST

/* A shard of one tile is lent to all sends of the terms, to those of the sum, and to all receives, and taken back: six
 * steps, and one for each round of the staging buffer and one for each half of it. */
static void has_few_orders(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++)
        ck_assert_int_le(count(plans[r], STEP_ORDER), 6 + TERMS / 4 + 2);
}

START_TEST(messages_in_one_tile_share_their_orders)
{
    try_sum("32", "P", TERMS * 512, TERMS, WINDOW, has_few_orders);
}
END_TEST

enum { TILES = 7 };

/* Before and behind the messages the shard of terms and that of sums are lent as a whole, each twice at most. A tile is
 * lent to the messages that end in it, which are sent, and to those of itself or of itself and the next one, which are
 * received. The sum of the process is sent from one tile. */
static void has_orders_of_tiles(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++)
        ck_assert_int_le(count(plans[r], STEP_ORDER), 4 + TILES + 2 * TILES + 1);
}

START_TEST(messages_in_several_tiles_share_the_orders_of_whole_shards)
{
    try_tiles("32", "P", TERMS * 512, TERMS, 64 * WINDOW, TILES, has_orders_of_tiles);
}
END_TEST

enum { WORKERS = 4 };

/* The workers of a place sum its slice, whose four terms are 4 MiB; its messages are not cut. */
static void has_a_sum_for_each_worker(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++) {
        ck_assert_int_eq(count(plans[r], STEP_REDUCE), c->max_tiles);
        ck_assert_int_eq(count(plans[r], STEP_SEND), 2 * (c->machine->n_ranks - 1));
        ck_assert_int_eq(count(plans[r], STEP_COPY), 0);
    }
}

START_TEST(workers_share_the_sum_of_a_slice)
{
    for (int workers = 1; workers <= WORKERS; workers *= 2)
        try_tiles("4", "P", 4 << 17, 4, 0, workers, has_a_sum_for_each_worker);
}
END_TEST

/* Each term is packed for each other process, and the sum for all; one step unpacks their sums. */
static void has_one_copy_to_unpack(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++)
        ck_assert_int_eq(count(plans[r], STEP_COPY), TERMS - 1 + 1 + 1);
}

START_TEST(small_messages_are_unpacked_by_one_step)
{
    try_sum("32", "P", TERMS * 9, TERMS, 64 * WINDOW, has_one_copy_to_unpack);
}
END_TEST

/* Places with several processes have turns without a message; slices are odd or empty, turns and pieces unequal. */
START_TEST(turns_are_right_wherever_processes_are)
{
    static const char *const meshes[][2] = {{"5", "P"},     {"9", "P"},     {"13", "P(max)"}, {"17", "P(avg)"},
                                            {"3,6", "P,R"}, {"3,6", "P,P"}, {"4,5", "S(0),P"}};
    static const int64_t sizes[] = {1, 7, 1009, 5000};
    static const int64_t windows[] = {64, 1024, 16384};
    for (int i = 0; i < 7; i++)
        for (int n = 0; n < 4; n++)
            for (int w = suite_is_sanitized() ? (i + n) % 3 : 0; w < 3; w += suite_is_sanitized() ? 3 : 1)
                for (int ranks = 1; ranks <= 7; ranks += 2)
                    try_sum(meshes[i][0], meshes[i][1], sizes[n], ranks, windows[w], NULL);
}
END_TEST

/* Those of two processes in each tile: the copies of one wait for no other's. */
static void has_tiles_of_columns(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++) {
        int n = 0;
        for (int i = 0; i < plans[r]->shards.n; i++) {
            const plan_shard *s = &plans[r]->shards.at[i];
            n += s->source == SHARD_OWN && s->cut_dim == 1 && s->cut_parts == 8 && box_count(&s->box) == 64 * 48;
        }
        ck_assert_int_eq(n, 1);
    }
}

START_TEST(columns_of_16_processes_arrive_in_8_tiles)
{
    try_gather("16", "S(1)", 16, (change){.shape = TRAMA_SHAPE(64, 48), .max_tiles = 1, .look = has_tiles_of_columns});
    try_gather("16", "S(1)", 16, (change){.shape = TRAMA_SHAPE(64, 47), .max_tiles = 1}); /* unequal seams */
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_process_sends_two_messages_to_each_other_one,
        terms_that_fit_are_summed_at_once,
        messages_in_one_tile_share_their_orders,
        messages_in_several_tiles_share_the_orders_of_whole_shards,
        workers_share_the_sum_of_a_slice,
        columns_of_16_processes_arrive_in_8_tiles,
        small_messages_are_unpacked_by_one_step,
        turns_are_right_wherever_processes_are,
    };
    return suite_run("sum_turns", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
