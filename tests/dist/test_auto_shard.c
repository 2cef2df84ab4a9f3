/* SPDX-License-Identifier: Apache-2.0 */
/* Mesh and layouts chosen by predicted time, for programs without annotations and with some. */
#include "auto_choice.h"
#include "target_plans.h"
#include "trama_attention.h"

/* Not inline: else GCC 12 takes the text for the variable that points to it. */
__attribute__((noinline)) static char *choose(int processes)
{
    char *table = NULL;
    const trama_auto_options o = {.size = sizeof o, .processes = processes};
    ck_assert_msg(!trama_auto_shard(train, cluster, &o, &table), "%s", trama_error());
    return table;
}

static int lines_of(const char *at)
{
    int n = 0;
    for (; *at; at++)
        n += *at == '\n';
    return n;
}

START_TEST(a_large_batch_is_split_and_a_small_one_gives_split_weights)
{
    static const int64_t batches[] = {4096, 8};
    for (int i = 0; i < 2; i++) {
        int size;
        build(batches[i], i ? 2048 : 64);
        char *table = choose(4);
        expect_chosen(table, i ? "split weights" : "data parallel");
        /* Head, data parallel, weights split along mp=2 and mp=4, split states, searched on dp=4 and dp=2,mp=2. */
        ck_assert_int_eq(lines_of(table), 1 + 1 + 2 + 1 + 2);
        ck_assert_ptr_nonnull(strstr(table, "split weights  mp=4 "));
        trama_text_free(&table);
        const trama_layout of_w = layout_of(w[0], &size);
        ck_assert_int_eq(size, 4);
        ck_assert_int_eq(of_w.axis[0].kind, i ? TRAMA_SPLIT : TRAMA_REPLICATE);
        if (!i)
            ck_assert_int_eq(layout_of(x, &size).axis[0].kind, TRAMA_SPLIT);
        tear_down();
        set_up();
    }
}
END_TEST

/* w0 starts split by columns, so that completion splits w1 by rows, and the products are summed once forward. */
START_TEST(weights_start_split_by_columns_and_by_rows_in_turn)
{
    static const char row[] = "split weights  mp=4 ";
    build(64, 256);
    char *said = choose(4);
    const char *at = strstr(said, row);
    ck_assert_msg(at != NULL, "%s", said);
    ck_assert_double_eq(strtod(at + strlen(row), NULL), 2.0 * 3 / 4 * 64 * 24 * 4); /* an all-reduce of [64, 24] */
    trama_text_free(&said);
}
END_TEST

/* Three weights: the columns of the third one meet no rows. It is small, and best whole. */
START_TEST(a_weight_without_a_partner_may_stay_whole)
{
    enum { BATCH = 8, HIDDEN = 2048 };
    static const char row[] = "split pairs    mp=2 ";
    const trama_optimizer adamw = trama_adamw(0.01);
    x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(BATCH, HIDDEN));
    labels = trama_input(p, "labels", TRAMA_I64, TRAMA_SHAPE(BATCH));
    trama_value *last = x;
    for (int i = 0; i < 2; i++) {
        w[i] = trama_parameter(p, i ? "w1" : "w0", TRAMA_F32, TRAMA_SHAPE(HIDDEN, HIDDEN), &init);
        last = trama_relu(trama_matmul(last, w[i]));
    }
    trama_value *third = trama_parameter(p, "w2", TRAMA_F32, TRAMA_SHAPE(HIDDEN, 12), &init);
    trama_value *loss = trama_cross_entropy(trama_matmul(last, third), labels);
    train = trama_target_create(p, "train", trama_minimize(loss, &adamw), loss);
    char *table = choose(2);
    expect_chosen(table, row);
    ck_assert_double_eq(strtod(strstr(table, row) + strlen(row), NULL), 2.0 * 1 / 2 * BATCH * HIDDEN * 4);
    ck_assert_ptr_nonnull(strstr(table, "split weights  mp=2 "));
    int size;
    ck_assert_int_eq(layout_of(w[0], &size).axis[0].dim, 1);
    ck_assert_int_eq(layout_of(w[1], &size).axis[0].dim, 0);
    ck_assert_int_eq(layout_of(third, &size).axis[0].kind, TRAMA_REPLICATE);
    trama_text_free(&table);
}
END_TEST

/* Weights of queries, keys and values meet the rows of the last one together: none is without a partner. */
START_TEST(weights_of_one_op_have_one_partner)
{
    enum { BATCH = 8, LENGTH = 4, HEADS = 4, EACH = 16, FEATURES = HEADS * EACH };
    static const char *const names[] = {"wq", "wk", "wv", "wo"};
    const trama_optimizer adamw = trama_adamw(0.01);
    trama_value *weight[4], *part[3];
    x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(BATCH, LENGTH, FEATURES));
    for (int i = 0; i < 4; i++)
        weight[i] = trama_parameter(p, names[i], TRAMA_F32, TRAMA_SHAPE(FEATURES, FEATURES), &init);
    for (int i = 0; i < 3; i++)
        part[i] = trama_transpose(trama_reshape(trama_matmul(x, weight[i]), TRAMA_SHAPE(BATCH, LENGTH, HEADS, EACH)),
                                  ((int[]){0, 2, 1, 3}));
    trama_value *heads = trama_transpose(trama_attention(part[0], part[1], part[2]), ((int[]){0, 2, 1, 3}));
    trama_value *out = trama_matmul(trama_reshape(heads, TRAMA_SHAPE(BATCH, LENGTH, FEATURES)), weight[3]);
    trama_value *loss = trama_sum_square(out);
    train = trama_target_create(p, "train", trama_minimize(loss, &adamw), loss);
    char *table = choose(2);
    ck_assert_msg(!strstr(table, "split pairs") && strstr(table, "split weights  mp=2 "), "%s", table);
    trama_text_free(&table);
}
END_TEST

/* Where links cost nothing, weights split over 4 processes take as long as those over 2 with a split batch, but for
 * 3 %, and receive a quarter of the bytes. */
START_TEST(of_ways_that_take_as_long_fewer_bytes_count)
{
    static const char described[] = "kind node\ncores 1\ncore f32 50Gflop/s\ncore memory 20GB/s\ntask 1us\nmessage 0s\n"
                                    "switch top\nnodes 4 node in top 1000TB/s 0s\n";
    trama_cluster_destroy(&cluster);
    ck_assert_msg(!trama_cluster_create(described, &cluster), "%s", trama_error());
    build(512, 2048);
    char *table = choose(4);
    expect_chosen(table, "split weights  mp=4");
    trama_text_free(&table);
}
END_TEST

START_TEST(chosen_layouts_compute_the_values_of_one_device)
{
    build(6, 32);
    char *table = choose(4);
    trama_text_free(&table);
    compare_with_one_device(6, "chosen");
}
END_TEST

START_TEST(annotations_are_compared_with_a_search)
{
    int size;
    build(8, 256);
    trama_mesh *mesh = trama_mesh_create("2");
    ck_assert_ptr_nonnull(trama_shard(x, mesh, "S(0)"));
    char *table = choose(2);
    ck_assert_ptr_nonnull(strstr(table, "as annotated"));
    ck_assert_int_eq(lines_of(table), 3);
    expect_chosen(table, "searched");
    trama_text_free(&table);
    const trama_layout of_x = layout_of(x, &size);
    ck_assert(of_x.axis[0].kind == TRAMA_SPLIT && of_x.axis[0].dim == 0 && size == 2);
    table = choose(2); /* again: it starts anew */
    expect_chosen(table, "searched");
    trama_text_free(&table);
    trama_mesh_destroy(&mesh);
}
END_TEST

START_TEST(a_second_choice_replaces_the_first)
{
    int size;
    build(8, 256);
    char *table = choose(4);
    trama_text_free(&table);
    table = choose(2);
    ck_assert_int_eq(lines_of(table), 5);
    trama_text_free(&table);
    layout_of(w[0], &size);
    ck_assert_int_eq(size, 2);
}
END_TEST

/* The mesh of an earlier choice is no mesh of the program any more, so its processes do not count. */
START_TEST(processes_are_those_of_the_last_choice)
{
    build(8, 256);
    char *table = choose(4);
    trama_text_free(&table);
    ck_assert_int_eq(target_plans_processes(p), 4);
    table = choose(2);
    trama_text_free(&table);
    ck_assert_int_eq(target_plans_processes(p), 2);
    const trama_auto_options o = {.processes = -1};
    ck_assert_int_eq(trama_auto_shard(train, cluster, &o, NULL), TRAMA_E_ARGUMENT);
    ck_assert_int_eq(target_plans_processes(p), 2);
    ck_assert_ptr_nonnull(p->start.mesh);
}
END_TEST

START_TEST(later_annotations_count_more_than_a_choice)
{
    int size;
    build(8, 256);
    char *table = choose(4);
    trama_text_free(&table);
    trama_mesh *mesh = trama_mesh_create("4");
    ck_assert_ptr_nonnull(trama_shard(x, mesh, "S(1)"));
    const trama_layout layout = layout_of(x, &size);
    ck_assert(layout.naxes == 1 && layout.axis[0].kind == TRAMA_SPLIT && layout.axis[0].dim == 1);
    trama_mesh_destroy(&mesh);
}
END_TEST

START_TEST(an_order_has_places_for_all_processes)
{
    static const int order[] = {1, 0};
    const trama_auto_options o = {.processes = 4};
    build(8, 16);
    ck_assert_int_eq(trama_order(p, 2, order), TRAMA_OK);
    ck_assert_int_eq(trama_auto_shard(train, cluster, &o, NULL), TRAMA_E_ARGUMENT);
    char *table = choose(2);
    trama_text_free(&table);
}
END_TEST

START_TEST(states_start_where_there_is_no_input)
{
    int size;
    trama_value *a = trama_state(p, "a", TRAMA_F32, TRAMA_SHAPE(512, 512), &init),
                *v = trama_state(p, "v", TRAMA_F32, TRAMA_SHAPE(512, 1), &init);
    train = trama_target_create(p, "step", trama_assign(v, trama_matmul(a, v)));
    char *table = choose(4);
    trama_text_free(&table);
    const trama_layout of_a = layout_of(a, &size);
    ck_assert(of_a.axis[0].kind == TRAMA_SPLIT && size == 4);
}
END_TEST

START_TEST(errors_leave_the_program_as_it_was)
{
    char *table = NULL, *before, *after;
    build(8, 16);
    before = trama_program_text(p);
    trama_auto_options o = {.size = sizeof o, .processes = -1};
    ck_assert_int_eq(trama_auto_shard(train, cluster, &o, &table), TRAMA_E_ARGUMENT);
    o.processes = 2;
    o.any = -2;
    ck_assert_int_eq(trama_auto_shard(train, cluster, &o, &table), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(trama_gradient_merge(train, 3, TRAMA_MERGE_AVG));
    o.any = 0;
    ck_assert_int_eq(trama_auto_shard(train, cluster, &o, &table), TRAMA_E_UNSUPPORTED);
    ck_assert_ptr_null(table);
    ck_assert(!p->search.asked && !p->start.mesh && !p->start.at.n);
    after = trama_program_text(p);
    ck_assert_ptr_null(strstr(after, "start on"));
    trama_text_free(&before);
    trama_text_free(&after);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        a_large_batch_is_split_and_a_small_one_gives_split_weights,
        weights_start_split_by_columns_and_by_rows_in_turn,
        a_weight_without_a_partner_may_stay_whole,
        weights_of_one_op_have_one_partner,
        of_ways_that_take_as_long_fewer_bytes_count,
        chosen_layouts_compute_the_values_of_one_device,
        annotations_are_compared_with_a_search,
        a_second_choice_replaces_the_first,
        processes_are_those_of_the_last_choice,
        later_annotations_count_more_than_a_choice,
        an_order_has_places_for_all_processes,
        states_start_where_there_is_no_input,
        errors_leave_the_program_as_it_was,
    };
    return suite_run("auto_shard", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
