/* SPDX-License-Identifier: Apache-2.0 */
/* Shards: how tiles cut a buffer, what codelets see of them, the pool. */
#include "harness.h"

static float *cells(const shard *s)
{
    return s->data;
}

/* Adds 1 to tile t and lets the caller see which elements that were. */
static void touch(shard *s, int tile)
{
    fence *f = fence_new(ctx);
    for (int64_t i = 0; i < s->count; i++)
        cells(s)[i] = 0;
    context_wake(ctx);
    submit(&increment, s->tile[tile], NULL, f);
    context_rest(ctx);
    fence_wait(ctx, f, "touch");
    fence_free(f);
}

static void check_cut(int ndim, const int64_t *extent, int dim, int parts)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, ndim, extent, dim, parts);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(s->n_tiles, parts);
    int64_t inner = 1, at = 0;
    for (int d = ndim - 1; d > dim; d--)
        inner *= extent[d];
    for (int t = 0; t < parts; t++) {
        int64_t most = (extent[dim] + parts - 1) / parts, least = extent[dim] / parts;
        ck_assert_int_eq(s->offset[t], at);
        ck_assert(s->length[t] == (t < extent[dim] % parts ? most : least));
        touch(s, t);
        for (int64_t i = 0; i < s->count; i++) {
            int64_t index = i / inner % extent[dim];
            bool inside = index >= s->offset[t] && index < s->offset[t] + s->length[t];
            ck_assert_float_eq(cells(s)[i], inside ? 1 : 0);
        }
        at += s->length[t];
    }
    ck_assert_int_eq(at, extent[dim]);
    shard_put(ctx, s);
}

START_TEST(tiles_cut_each_dim_into_balanced_pieces)
{
    const int64_t extent[] = {5, 7, 3};
    for (int dim = 0; dim < 3; dim++)
        for (int parts = 2; parts <= extent[dim]; parts++)
            check_cut(3, extent, dim, parts);
    check_cut(1, (int64_t[]){11}, 0, 4);
    check_cut(2, (int64_t[]){1, 13}, 1, 2); /* one row: contiguous pieces */
    check_cut(4, (int64_t[]){2, 3, 4, 5}, 2, 3);
}
END_TEST

START_TEST(one_tile_is_the_whole_shard)
{
    shard *s = shard_get(ctx, here(), TRAMA_F64, 3, (int64_t[]){2, 3, 5}, -1, 1);
    ck_assert_int_eq(s->n_tiles, 1);
    ck_assert_int_eq(s->cut_dim, -1);
    ck_assert_int_eq(s->count, 30);
    ck_assert_uint_eq(s->bytes, 240);
    ck_assert_int_eq(s->stride[0], 15);
    ck_assert_int_eq(s->stride[1], 5);
    ck_assert_int_eq(s->stride[2], 1);
    shard_put(ctx, s);
    s = shard_get(ctx, here(), TRAMA_U8, 0, NULL, -1, 1); /* a scalar */
    ck_assert_int_eq(s->count, 1);
    ck_assert_uint_eq(s->bytes, 1);
    ck_assert_int_eq(s->length[0], 1);
    shard_put(ctx, s);
}
END_TEST

/* Rows 1 and 2 of each half of a [4, 6] shard, as [2, 2, 3]: two halves of columns. */
START_TEST(an_alias_has_elements_and_tiles_of_its_shard)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){4, 6}, 1, 2);
    const int64_t extent[] = {2, 2, 3}, stride[] = {3, 6, 1};
    shard *a = shard_alias(s, 6, 3, extent, stride, 0);
    ck_assert_ptr_eq(a->data, (float *)s->data + 6);
    ck_assert_int_eq(a->n_tiles, 2);
    ck_assert_int_eq(a->count, 12);
    for (int t = 0; t < 2; t++) {
        ck_assert_ptr_eq(a->tile[t], s->tile[t]);
        ck_assert_int_eq(a->offset[t], t);
        ck_assert_int_eq(a->length[t], 1);
    }
    for (int d = 0; d < 3; d++)
        ck_assert_int_eq(a->stride[d], stride[d]);
    shard_end(a);
    shard_put(ctx, s);
}
END_TEST

START_TEST(shards_without_elements_have_a_usable_handle)
{
    shard *s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){0, 9}, 0, 1);
    fence *f = fence_new(ctx);
    ck_assert_int_eq(s->count, 0);
    ck_assert_uint_eq(s->bytes, 0);
    ck_assert_int_eq(s->length[0], 0);
    ck_assert_ptr_nonnull(s->data);
    cells(s)[0] = 0;
    context_wake(ctx);
    submit(&increment, s->tile[0], NULL, f);
    context_rest(ctx);
    ck_assert_int_eq(fence_wait(ctx, f, "empty"), TRAMA_OK);
    ck_assert_float_eq(cells(s)[0], 1);
    fence_free(f);
    shard_put(ctx, s);
    s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){4, 0}, 0, 4); /* cut along a dim that is not empty */
    ck_assert_int_eq(s->n_tiles, 4);
    ck_assert_int_eq(s->length[3], 1);
    shard_put(ctx, s);
}
END_TEST

START_TEST(a_tile_of_2_to_the_32_elements_is_refused_with_the_remedy)
{
    ck_assert_ptr_null(shard_get(ctx, here(), TRAMA_U8, 1, (int64_t[]){INT64_C(1) << 32}, -1, 1));
    ck_assert_ptr_nonnull(strstr(trama_error(), "4294967296 elements"));
    ck_assert_ptr_nonnull(strstr(trama_error(), "TRAMA_MAX_TILES"));
}
END_TEST

START_TEST(buffers_are_aligned)
{
    for (int64_t n = 1; n < (int64_t)8 << 20; n = 3 * n + 1) {
        shard *s = shard_get(ctx, here(), TRAMA_U8, 1, &n, -1, 1);
        size_t alignment = n >= 4 << 20 ? (size_t)2 << 20 : 64;
        ck_assert_uint_eq((uintptr_t)s->data % alignment, 0);
        memset(s->data, 1, s->bytes);
        shard_put(ctx, s);
    }
    shard_pool_limit(ctx, 0);
    shard_pool_limit(ctx, INT64_C(1) << 30);
}
END_TEST

START_TEST(a_shard_that_comes_back_is_used_again)
{
    const int64_t extent[] = {6, 4};
    shard *a = shard_get(ctx, here(), TRAMA_F32, 2, extent, 0, 2);
    shard *b = shard_get(ctx, here(), TRAMA_F32, 2, extent, 0, 2);
    ck_assert_ptr_ne(a, b);
    int64_t made = shard_pool(ctx).made;
    shard_put(ctx, a);
    ck_assert_ptr_ne(shard_get(ctx, here(), TRAMA_F32, 2, extent, 1, 2), a); /* another cut */
    ck_assert_int_eq(shard_pool(ctx).made, made + 1);
    ck_assert_ptr_eq(shard_get(ctx, here(), TRAMA_F32, 2, extent, 0, 2), a);
    shard_put(ctx, b);
    shard_put(ctx, a);
    ck_assert_ptr_eq(shard_get(ctx, here(), TRAMA_F32, 2, extent, 0, 2), b); /* the oldest first */
    ck_assert_int_eq(shard_pool(ctx).made, made + 1);
    shard_put(ctx, b);
}
END_TEST

START_TEST(the_next_user_is_ordered_after_the_last)
{
    const int64_t extent[] = {1000};
    atomic_bool gate = false;
    fence *f = fence_new(ctx);
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, extent, -1, 1);
    memset(s->data, 0, s->bytes);
    context_wake(ctx);
    submit(&gated, s->tile[0], &gate, f);
    submit(&increment, s->tile[0], NULL, f);
    shard_put(ctx, s); /* at once */
    ck_assert(!fence_done(f));
    shard *again = shard_get(ctx, here(), TRAMA_F32, 1, extent, -1, 1);
    ck_assert_ptr_eq(again, s);
    submit(&increment, again->tile[0], NULL, f);
    atomic_store(&gate, true);
    context_rest(ctx);
    fence_wait(ctx, f, "both");
    ck_assert_float_eq(cells(again)[999], 2);
    fence_free(f);
    shard_put(ctx, again);
}
END_TEST

START_TEST(the_pool_is_bounded_and_evicts_the_oldest)
{
    shard *s[10];
    shard_pool_limit(ctx, 0);
    ck_assert_int_eq(shard_pool(ctx).idle, 0);
    shard_pool_limit(ctx, 5 * 4096);
    for (int i = 0; i < 10; i++)
        s[i] = shard_get(ctx, here(), TRAMA_U8, 1, (int64_t[]){4096 - i}, -1, 1);
    int64_t used = shard_pool(ctx).used_bytes;
    for (int i = 0; i < 10; i++)
        shard_put(ctx, s[i]);
    ck_assert_int_eq(shard_pool(ctx).idle, 5);
    ck_assert_int_le(shard_pool(ctx).idle_bytes, 5 * 4096);
    ck_assert_int_eq(shard_pool(ctx).used_bytes, used - 10 * 4096);
    ck_assert_ptr_eq(shard_get(ctx, here(), TRAMA_U8, 1, (int64_t[]){4096 - 5}, -1, 1), s[5]);
    shard_put(ctx, s[5]);
    shard_pool_limit(ctx, INT64_C(1) << 30);
}
END_TEST

static void end_late(void *buffers[], void *arg)
{
    pause_for(0.05);
    atomic_store((atomic_bool *)arg, true);
}

START_TEST(eviction_waits_for_what_is_under_way)
{
    static struct starpu_codelet late = {.cpu_funcs = {end_late}, .nbuffers = 1, .modes = {STARPU_RW}};
    atomic_bool ended = false;
    fence *f = fence_new(ctx);
    shard_pool_limit(ctx, 0);
    shard *s = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){77}, -1, 1);
    context_wake(ctx);
    submit(&late, s->tile[0], &ended, f);
    context_rest(ctx);
    shard_put(ctx, s);
    bool waited = atomic_load(&ended);
    shard_pool_limit(ctx, INT64_C(1) << 30);
    ck_assert(waited);
    fence_wait(ctx, f, "task"); /* a task completes a moment after its data is free */
    fence_free(f);
}
END_TEST

START_TEST(an_impossible_shard_is_an_error)
{
    ck_assert_ptr_null(shard_get(ctx, here(), TRAMA_U8, 1, (int64_t[]){(INT64_C(1) << 32) + 1}, -1, 1));
    ck_assert_ptr_nonnull(strstr(trama_error(), "cut it into more"));
    ck_assert_ptr_null(shard_get(ctx, here(), TRAMA_F64, 2, (int64_t[]){1 << 24, 1 << 24}, 0, 1 << 17));
    ck_assert_ptr_nonnull(strstr(trama_error(), "no memory"));
}
END_TEST

START_TEST(the_host_acquires_all_tiles_after_the_tasks)
{
    static const double time = 0.03;
    fence *f = fence_new(ctx);
    shard *s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){4, 6}, 1, 3);
    memset(s->data, 0, s->bytes);
    context_wake(ctx);
    for (int t = 0; t < 3; t++) {
        submit(&delay, s->tile[t], (void *)(uintptr_t)&time, f);
        submit(&increment, s->tile[t], NULL, f);
    }
    context_rest(ctx);
    ck_assert_int_eq(shard_acquire(ctx, s, STARPU_RW, "test"), TRAMA_OK);
    for (int i = 0; i < 24; i++)
        ck_assert_float_eq(cells(s)[i], 1);
    shard_release(ctx, s);
    fence_wait(ctx, f, "test");
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

START_TEST(a_thousand_rounds_make_no_new_shards)
{
    fence *f = fence_new(ctx);
    int64_t made = 0;
    for (int round = 0; round < 1000; round++) {
        shard *a = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){8, 8}, 0, 2);
        shard *b = shard_get(ctx, here(), TRAMA_F32, 1, (int64_t[]){8}, -1, 1);
        context_wake(ctx);
        submit(&increment, a->tile[round % 2], NULL, f);
        submit(&increment, b->tile[0], NULL, f);
        context_rest(ctx);
        shard_put(ctx, a);
        shard_put(ctx, b);
        if (round == 10)
            made = shard_pool(ctx).made;
    }
    fence_wait(ctx, f, "rounds");
    ck_assert_int_eq(shard_pool(ctx).made, made);
    fence_free(f);
}
END_TEST

static void read_only(void *buffers[], void *arg)
{
}

START_TEST(readers_are_forgotten_in_order_and_without_a_copy)
{
    atomic_bool gate = false;
    static struct starpu_codelet reader = {.cpu_funcs = {read_only}, .nbuffers = 1, .modes = {STARPU_R}};
    fence *f = fence_new(ctx);
    shard *s = shard_get(ctx, here(), TRAMA_F32, 2, (int64_t[]){4, 4}, 0, 2);
    memset(s->data, 0, s->bytes);
    context_wake(ctx);
    submit(&gated, s->tile[0], &gate, f);
    for (int i = 0; i < 50; i++)
        submit(&reader, s->tile[i % 2], NULL, f);
    shard_forget_readers(ctx, s, f);
    submit(&increment, s->tile[0], NULL, f);
    ck_assert(!fence_done(f));
    atomic_store(&gate, true);
    context_rest(ctx);
    ck_assert_int_eq(fence_wait(ctx, f, "readers"), TRAMA_OK);
    ck_assert_float_eq(cells(s)[7], 1);
    ck_assert_float_eq(cells(s)[8], 0);
    fence_free(f);
    shard_put(ctx, s);
}
END_TEST

START_TEST(it_starts)
{
    start();
}
END_TEST

START_TEST(it_stops_and_frees_what_nobody_gave_back)
{
    stop();
}
END_TEST

TESTS(it_starts, tiles_cut_each_dim_into_balanced_pieces, one_tile_is_the_whole_shard,
      an_alias_has_elements_and_tiles_of_its_shard, shards_without_elements_have_a_usable_handle,
      a_tile_of_2_to_the_32_elements_is_refused_with_the_remedy, buffers_are_aligned,
      a_shard_that_comes_back_is_used_again, the_next_user_is_ordered_after_the_last,
      the_pool_is_bounded_and_evicts_the_oldest, eviction_waits_for_what_is_under_way, an_impossible_shard_is_an_error,
      the_host_acquires_all_tiles_after_the_tasks, a_thousand_rounds_make_no_new_shards,
      readers_are_forgotten_in_order_and_without_a_copy, it_stops_and_frees_what_nobody_gave_back)
