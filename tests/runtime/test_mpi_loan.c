/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the ranks of a node share, and messages whose elements stay in it: under mpirun. */
#include "harness.h"
#include "loan.h"

static int me, ranks;
static bool shares; /* ranks read each other's memory here */

enum { ROUNDS = 40 };

START_TEST(it_starts)
{
    start();
    me = context_rank(ctx);
    ranks = context_ranks(ctx);
    shares = context_machine(ctx)->loan_bytes > 0;
    if (!shares)
        fprintf(stderr, "rank %d: this system lets no rank map the memory of another one: nothing is tested\n", me);
}
END_TEST

START_TEST(it_stops)
{
    stop();
}
END_TEST

static int64_t same_on_all(int64_t mine)
{
    int64_t *all = calloc((size_t)ranks, sizeof *all);
    ck_assert(!context_gather(ctx, "test", &mine, sizeof mine, all));
    const int64_t of_rank_0 = all[0];
    free(all);
    return of_rank_0;
}

/* ---- Memory ---- */

START_TEST(a_rank_reads_what_another_has_written)
{
    if (!shares)
        return;
    const int64_t n = 1000;
    shard *s = shard_get_shared(ctx, here(), TRAMA_F32, 1, &n, -1, 1);
    for (int64_t i = 0; i < n; i++)
        ((float *)s->data)[i] = (float)(1000 * me + i);
    int64_t at = shard_shared_at(ctx, s->data), *all = calloc((size_t)ranks, sizeof *all);
    ck_assert_int_ge(at, 4096); /* the first page is not for shards */
    ck_assert(!context_gather(ctx, "test", &at, sizeof at, all));
    for (int r = 0; r < ranks; r++) {
        if (r == me)
            continue;
        shard *b = shard_borrow(ctx, here(), r, all[r], TRAMA_F32, 1, &n);
        for (int64_t i = 0; i < n; i++)
            ck_assert(((float *)b->data)[i] == (float)(1000 * r + i));
        shard_end(b);
    }
    context_barrier(ctx, "test");
    free(all);
    shard_put(ctx, s);
}
END_TEST

START_TEST(other_shards_lie_elsewhere)
{
    if (!shares)
        return;
    const int64_t n = 1000;
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, &n, -1, 1),
          *t = shard_get_shared(ctx, here(), TRAMA_F32, 1, &n, -1, 1);
    ck_assert_int_eq(shard_shared_at(ctx, s->data), -1);
    ck_assert_int_ge(shard_shared_at(ctx, t->data), 0);
    ck_assert_int_eq(shard_shared_at(ctx, &n), -1);
    shard_put(ctx, s);
    shard_put(ctx, t);
    s = shard_get(ctx, here(), TRAMA_F32, 1, &n, -1, 1); /* the pool tells the two kinds apart */
    ck_assert_int_eq(shard_shared_at(ctx, s->data), -1);
    shard_put(ctx, s);
}
END_TEST

static int compare_starts(const void *a, const void *b)
{
    const shard *s = *(shard *const *)a, *t = *(shard *const *)b;
    return s->data < t->data ? -1 : s->data > t->data;
}

/* Sizes by chance, some in large pages. Evicted shards give their bytes back. */
START_TEST(shards_come_and_go_without_overlaps)
{
    if (!shares)
        return;
    shard *held[40] = {NULL};
    uint64_t state = 88172645463325252u;
    int64_t highest = 0;
    for (int i = 0; i < 4000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        shard **s = &held[(state >> 33) % 40];
        if (*s) {
            shard_put(ctx, *s);
            *s = NULL;
            if (state % 3 == 0)
                shard_pool_limit(ctx, 0);
            shard_pool_limit(ctx, 8 << 20);
            continue;
        }
        const int64_t n = INT64_C(1) << ((state >> 40) % 22), odd = n + (int64_t)((state >> 20) % 100);
        *s = shard_get_shared(ctx, here(), TRAMA_F32, 1, &odd, -1, 1);
        highest = shard_shared_at(ctx, (*s)->data) > highest ? shard_shared_at(ctx, (*s)->data) : highest;
        shard *sorted[40];
        int m = 0;
        for (int k = 0; k < 40; k++)
            if (held[k])
                sorted[m++] = held[k];
        qsort(sorted, (size_t)m, sizeof *sorted, compare_starts);
        for (int k = 1; k < m; k++)
            ck_assert((char *)sorted[k - 1]->data + sorted[k - 1]->bytes <= (char *)sorted[k]->data);
        ck_assert_int_eq((uintptr_t)(*s)->data % 64, 0);
    }
    for (int k = 0; k < 40; k++)
        if (held[k])
            shard_put(ctx, held[k]);
    ck_assert_int_lt(highest, INT64_C(600) << 20); /* 4000 new ones would take gigabytes */
    shard_pool_limit(ctx, 0);
    const int64_t n = 1;
    shard *s = shard_get_shared(ctx, here(), TRAMA_F32, 1, &n, -1, 1);
    ck_assert_int_lt(shard_shared_at(ctx, s->data), 1 << 20); /* all bytes came back */
    shard_put(ctx, s);
    shard_pool_limit(ctx, 64 << 20);
}
END_TEST

/* ---- Loans ---- */

typedef struct reading {
    float right;
    int64_t n, wrong;
    double pause;
} reading;

/* Reads all elements late. */
static void read_late(void *buffers[], void *arg)
{
    reading *r = arg;
    pause_for(r->pause);
    shard_view v = shard_buffer_view(buffers[0]);
    for (int64_t i = 0; i < v.run; i++)
        r->wrong += ((const float *)v.ptr)[i] != r->right;
}

static struct starpu_codelet late_reader = {
    .cpu_funcs = {read_late}, .nbuffers = 1, .modes = {STARPU_R}, .name = "late_reader"};

/* Both ends of loans of rank 0 to all others: at [r] on rank 0, at [0] elsewhere. */
static loan **meet(size_t bytes)
{
    loan **ends = calloc((size_t)ranks, sizeof *ends);
    loan_cell *mine = calloc((size_t)ranks, sizeof *mine), *all = calloc((size_t)(ranks * ranks), sizeof *all);
    for (int r = 0; r < ranks; r++)
        if (me != r && (me == 0 || r == 0)) {
            ends[r] = loan_make(ctx, bytes);
            mine[r] = loan_here(ends[r]);
        }
    ck_assert(!context_gather(ctx, "test", mine, (size_t)ranks * sizeof *mine, all));
    for (int r = 0; r < ranks; r++)
        if (ends[r])
            loan_meet(ends[r], r, all[r * ranks + me]);
    free(mine);
    free(all);
    return ends;
}

/* Rank 0 increments and lends a tensor in each round; each other rank reads it while rank 0 would go on. */
static void demand_rounds(int64_t n, double pause)
{
    shard *s = shard_get_shared(ctx, here(), TRAMA_F32, 1, &n, -1, 1), *b = NULL;
    memset(s->data, 0, s->bytes);
    const int64_t at = same_on_all(shard_shared_at(ctx, s->data));
    loan **ends = meet(s->bytes);
    reading *readings = calloc(ROUNDS, sizeof *readings);
    fence *f = fence_new(ctx);
    const context_counters before = context_count(ctx);
    if (me)
        b = shard_borrow(ctx, here(), 0, at, TRAMA_F32, 1, &n);
    context_barrier(ctx, "test");
    context_wake(ctx);
    for (int i = 0; i < ROUNDS; i++) {
        if (me == 0)
            submit(&increment, s->tile[0], NULL, f);
        for (int r = 1; r < ranks && me == 0; r++)
            loan_give(ctx, ends[r], s->tile[0], (envelope){.rank = r, .label = "lent", .step = i}, f);
        if (me == 0)
            continue;
        readings[i] = (reading){(float)(i + 1), n, 0, i % 4 == me % 4 ? pause : 0};
        loan_take(ctx, ends[0], b->tile[0], (envelope){.rank = 0, .label = "lent", .step = i}, f);
        submit(&late_reader, b->tile[0], &readings[i], f);
        submit(&late_reader, b->tile[0], &readings[i], f);
        loan_return(ends[0], b->tile[0], f);
    }
    context_rest(ctx);
    ck_assert_int_eq(fence_wait(ctx, f, "loans"), TRAMA_OK);
    fence_free(f);
    for (int i = 0; i < ROUNDS; i++)
        ck_assert_int_eq(readings[i].wrong, 0);
    const context_counters after = context_count(ctx);
    const int64_t bytes = 4 * n * ROUNDS;
    ck_assert_int_eq(after.bytes_sent - before.bytes_sent, me ? 0 : (ranks - 1) * bytes);
    ck_assert_int_eq(after.bytes_received - before.bytes_received, me ? bytes : 0);
    ck_assert_int_eq(after.messages_received - before.messages_received, me ? ROUNDS : 0);
    ck_assert_int_eq(after.messages_borrowed - before.messages_borrowed, me ? ROUNDS : 0);
    for (int r = 0; r < ranks; r++) /* at once, though the other end may still look at a cell */
        loan_end(&ends[r]);
    if (b)
        shard_end(b);
    context_barrier(ctx, "test");
    shard_put(ctx, s);
    free(readings);
    free(ends);
}

START_TEST(a_writer_waits_for_the_readers_of_another_rank)
{
    if (!shares)
        return;
    demand_rounds(1, 0.002);
    demand_rounds(100000, 0.002);
    demand_rounds(1 << 21, 0);
}
END_TEST

/* ---- None ---- */

START_TEST(ranks_that_may_not_lend_share_nothing)
{
    const trama_config config = {.size = sizeof config, .loan_bytes = INT64_MAX};
    ck_assert(!context_create(&config, "cpu:test", NULL, &ctx));
    ck_assert_int_eq(context_machine(ctx)->loan_bytes, 0);
    const int64_t n = 10;
    shard *s = shard_get_shared(ctx, here(), TRAMA_F32, 1, &n, -1, 1);
    ck_assert_int_eq(shard_shared_at(ctx, s->data), -1);
    shard_put(ctx, s);
    stop();
}
END_TEST

TESTS(it_starts, a_rank_reads_what_another_has_written, other_shards_lie_elsewhere, shards_come_and_go_without_overlaps,
      a_writer_waits_for_the_readers_of_another_rank, it_stops, ranks_that_may_not_lend_share_nothing)
