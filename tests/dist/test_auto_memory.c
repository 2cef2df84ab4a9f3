/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of layouts within less memory than the shortest run takes. */
#include "auto_choice.h"
#include "program.h"

static trama_status choose_within(int64_t bytes, char **table)
{
    const trama_auto_options o = {.size = sizeof o, .processes = 4, .memory_bytes = bytes};
    return trama_auto_shard(train, cluster, &o, table);
}

/* The memory of the way that has the words, as the table says it. */
static int64_t memory_of(const char *table, const char *words)
{
    char mesh[32];
    long long bytes = -1;
    const char *at = strstr(table, words);
    ck_assert_msg(at && sscanf(at + 15, "%31s %*d %*d %*f %lld", mesh, &bytes) == 2, "%s", table);
    return bytes;
}

/* A batch of 4,096 is best split, and all of w and its averages on each rank. With less memory states are split. */
START_TEST(memory_limits_the_choice)
{
    char *table = NULL;
    build(4096, 160);
    ck_assert(!choose_within(0, &table));
    expect_chosen(table, "data parallel");
    const int64_t most = memory_of(table, "data parallel"), less = memory_of(table, "split states");
    ck_assert_int_lt(less, most);
    ck_assert_ptr_null(strstr(table, "too much"));
    trama_text_free(&table);
    ck_assert(!choose_within(most, &table));
    expect_chosen(table, "data parallel");
    trama_text_free(&table);
    ck_assert(!choose_within(most - 1, &table));
    ck_assert_ptr_nonnull(strstr(table, "too much"));
    int64_t least = 0;
    for (const char *line = strchr(table, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        const int64_t bytes = memory_of(line, "");
        const char *last = strchr(line, '\n') - 6;
        ck_assert_msg(!strncmp(last, "chosen", 6) ? bytes < most : true, "%s", table);
        ck_assert_msg((bytes >= most) == !strncmp(last - 2, "too much", 8), "%s", table);
        least = !least || bytes < least ? bytes : least;
    }
    ck_assert_int_lt(least, most);
    trama_text_free(&table);
    ck_assert_int_eq(choose_within(1000, &table), TRAMA_E_MEMORY);
    ck_assert_msg(strstr(trama_error(), "memory_bytes") && strstr(trama_error(), "auto_choice.h:"), "%s",
                  trama_error());
    ck_assert_int_eq(choose_within(-1, &table), TRAMA_E_ARGUMENT);
    ck_assert_ptr_null(table);
}
END_TEST

START_TEST(split_states_compute_the_values_of_one_device)
{
    int size;
    char *table = NULL;
    build(64, 37);
    ck_assert(!choose_within(0, &table));
    const int64_t least = memory_of(table, "split states");
    trama_text_free(&table);
    ck_assert(!choose_within(least, &table));
    expect_chosen(table, "split states");
    trama_text_free(&table);
    const trama_layout of_w = layout_of(w[1], &size);
    ck_assert(size == 4 && of_w.axis[0].kind == TRAMA_SPLIT && of_w.axis[0].dim == 0);
    compare_with_one_device(64, "split states");
}
END_TEST

/* Of the annotation of a large batch a search keeps whole weights, and within less memory it does not. The choice says
 * how much less: a completion of the program keeps it. */
START_TEST(a_search_is_narrowed_to_the_memory)
{
    int size;
    int64_t kept;
    char *table = NULL;
    trama_completion *c;
    build(256, 16);
    trama_mesh *mesh = trama_mesh_create("4");
    ck_assert_ptr_nonnull(trama_shard(x, mesh, "S(0)"));
    ck_assert(!choose_within(0, &table));
    const int64_t whole = memory_of(table, "as annotated");
    ck_assert_int_eq(memory_of(table, "searched"), whole);
    trama_text_free(&table);
    ck_assert_int_eq(layout_of(w[0], &size).axis[0].kind, TRAMA_REPLICATE);
    ck_assert_msg(!choose_within(whole - 1, &table), "%s", trama_error());
    expect_chosen(table, "searched");
    ck_assert_int_lt(memory_of(table, "searched"), whole);
    trama_text_free(&table);
    ck_assert_msg(!trama_completion_create(p, 256, &c), "%s", trama_error());
    ck_assert(!trama_completion_memory_bytes(c, &kept));
    ck_assert(p->search.limit && kept <= p->search.limit);
    trama_completion_destroy(&c);
    compare_with_one_device(256, "narrowed");
    trama_mesh_destroy(&mesh);
}
END_TEST

/* An error says how much memory it takes, and with as much there is a way: buffers of this batch are far more than all
 * states, so that the first limit of a narrower search is below 0. */
START_TEST(the_least_memory_is_told_and_is_enough)
{
    char *table = NULL;
    long long least = 0;
    build(4096, 160);
    trama_mesh *mesh = trama_mesh_create("4");
    ck_assert_ptr_nonnull(trama_shard(x, mesh, "S(0)"));
    ck_assert(!choose_within(0, &table));
    const int64_t whole = memory_of(table, "as annotated");
    trama_text_free(&table);
    ck_assert_int_eq(choose_within(1000, &table), TRAMA_E_MEMORY);
    const char *told = strstr(trama_error(), "and takes ");
    ck_assert_msg(told && sscanf(told, "and takes %lld at least", &least) == 1, "%s", trama_error());
    ck_assert_int_lt(least, whole);
    ck_assert_msg(!choose_within(least, &table), "%s", trama_error());
    ck_assert_int_eq(memory_of(table, "searched"), least);
    trama_text_free(&table);
    ck_assert_int_eq(choose_within(least - 1, &table), TRAMA_E_MEMORY);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* The user's limit would be forgotten, one of an earlier choice is. */
START_TEST(a_limit_of_memory_is_refused_beside_a_choice)
{
    char *table = NULL;
    build(256, 16);
    ck_assert(!trama_search_layouts_in_memory(p, 1 << 20));
    ck_assert_int_eq(choose_within(0, &table), TRAMA_E_ARGUMENT);
    ck_assert(!trama_search_layouts_within(p, 1 << 20));
    ck_assert_int_eq(choose_within(0, &table), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_error(), "memory_bytes") && strstr(trama_error(), "test_auto_memory.c:"), "%s",
                  trama_error());
    ck_assert(!trama_search_layouts(p));
    ck_assert(!choose_within(0, &table));
    trama_text_free(&table);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        memory_limits_the_choice,
        split_states_compute_the_values_of_one_device,
        a_search_is_narrowed_to_the_memory,
        the_least_memory_is_told_and_is_enough,
        a_limit_of_memory_is_refused_beside_a_choice,
    };
    return suite_run("auto_memory", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
