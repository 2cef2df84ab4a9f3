/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function that works on a context. The functions of dist are in tests/dist. */
#include "nulls.h"

#include <stdlib.h>

#include "suite.h"
#include "trama.h"

#define W TRAMA_HERE

static trama_context *c;
static trama_program *p;
static trama_value *x, *s, *y;
static trama_target *t, *merging;
static trama_executable *e;
static trama_mesh *mesh;
static trama_layout layout;
static trama_shape shape;
static double data[6] = {1, 2, 3, 4, 5, 6};

static void set_up(void)
{
    mesh = trama_mesh_create("2");
    shape = TRAMA_SHAPE(2, 3);
    p = trama_program_create();
    x = trama_input(p, "x", TRAMA_F64, shape);
    s = trama_parameter(p, "s", TRAMA_F64, shape, NULL);
    y = trama_add(x, s);
    t = trama_target_create(p, "t", y);
    trama_optimizer sgd = trama_sgd(0.1);
    merging =
        trama_gradient_merge(trama_target_create(p, "merging", trama_minimize(trama_sum(y), &sgd)), 2, TRAMA_MERGE_AVG);
    TAKES(trama_layout_parse(mesh, 2, "S(0)", &layout));
    TAKES(trama_start(NULL, &c));
    TAKES(trama_compile(c, p, &e));
    TAKES(trama_feed(e, x, data, shape));
    TAKES(trama_run(e, t));
}

static void tear_down(void)
{
    TAKES(trama_executable_destroy(&e));
    TAKES(trama_stop(&c));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(contexts)
{
    trama_config config = {.workers = 1};
    trama_context *other = NULL;
    REFUSES(trama_start(&config, NULL));
    REFUSES(trama_start(NULL, NULL));
    REFUSES(trama_start_fortran(&config, 0, NULL));
    REFUSES(trama_start_fortran(NULL, 0, &other)); /* MPI is not there, or a context is */
    ck_assert_ptr_null(other);
    TAKES(trama_stop(NULL));
    TAKES(trama_stop(&other));
    GIVES(-1, trama_context_rank(NULL));
    GIVES(0, trama_context_ranks(NULL));
    SAYS(p, trama_context_describe(NULL));
}
END_TEST

START_TEST(compiling)
{
    trama_executable *made = NULL;
    trama_program *eager = NULL;
    REFUSES(trama_compile_at(W, NULL, p, &made));
    REFUSES(trama_compile_at(W, c, NULL, &made));
    REFUSES(trama_compile_at(W, c, p, NULL));
    TAKES(trama_executable_destroy(NULL));
    TAKES(trama_executable_destroy(&made));
    REFUSES(trama_eager(NULL, &eager, &made));
    REFUSES(trama_eager(c, NULL, &made));
    REFUSES(trama_eager(c, &eager, NULL));
    ck_assert(!made && !eager);
}
END_TEST

START_TEST(eager_programs)
{
    trama_executable *own;
    trama_program *eager;
    TAKES(trama_eager(c, &eager, &own));
    GIVES(0, trama_program_mark(NULL));
    REFUSES(trama_program_rewind(NULL, 0));
    PASSES(trama_keep(NULL));
    SAYS(eager, trama_tensor_at(W, NULL, TRAMA_F64, shape, data, mesh, "S(0)"));
    SAYS(eager, trama_tensor_at(W, eager, TRAMA_F64, shape, NULL, mesh, "S(0)"));
    SAYS(eager, trama_tensor_at(W, eager, TRAMA_F64, shape, data, NULL, "S(0)"));
    SAYS(eager, trama_tensor_at(W, eager, TRAMA_F64, shape, data, mesh, NULL));
    TAKES(trama_executable_destroy(&own));
    trama_program_destroy(&eager);
}
END_TEST

START_TEST(feeding_running_and_writing)
{
    const void *pieces[] = {data};
    int64_t offset[2], extent[2];
    int n;
    REFUSES(trama_feed_at(W, NULL, x, data, shape));
    REFUSES(trama_feed_at(W, e, NULL, data, shape));
    REFUSES(trama_feed_at(W, e, x, NULL, shape));
    REFUSES(trama_feed_local_at(W, NULL, x, shape, 1, pieces));
    REFUSES(trama_feed_local_at(W, e, NULL, shape, 1, pieces));
    REFUSES(trama_feed_local_at(W, e, x, shape, 1, NULL));
    REFUSES(trama_feed_local_count_at(W, NULL, x, shape, &n));
    REFUSES(trama_feed_local_count_at(W, e, NULL, shape, &n));
    REFUSES(trama_feed_local_count_at(W, e, x, shape, NULL));
    REFUSES(trama_feed_local_box_at(W, NULL, x, shape, 0, offset, extent));
    REFUSES(trama_feed_local_box_at(W, e, NULL, shape, 0, offset, extent));
    REFUSES(trama_feed_local_box_at(W, e, x, shape, 0, NULL, extent));
    REFUSES(trama_feed_local_box_at(W, e, x, shape, 0, offset, NULL));
    REFUSES(trama_feed_dataset_at(W, NULL, x, "/tmp/none.h5", "x", NULL, shape));
    REFUSES(trama_feed_dataset_at(W, e, NULL, "/tmp/none.h5", "x", NULL, shape));
    REFUSES(trama_feed_dataset_at(W, e, x, NULL, "x", NULL, shape));
    REFUSES(trama_feed_dataset_at(W, e, x, "/tmp/none.h5", NULL, NULL, shape));
    REFUSES(trama_feed_dataset_at(W, e, x, "/tmp/none.h5", "x", NULL, shape));
    REFUSES(trama_write_dataset_at(W, NULL, s, "/tmp/none.h5", "x", NULL));
    REFUSES(trama_write_dataset_at(W, e, NULL, "/tmp/none.h5", "x", NULL));
    REFUSES(trama_write_dataset_at(W, e, s, NULL, "x", NULL));
    REFUSES(trama_write_dataset_at(W, e, s, "/tmp/none.h5", NULL, NULL));
    REFUSES(trama_run_at(W, NULL, t));
    REFUSES(trama_run_at(W, e, NULL));
    REFUSES(trama_merge_set_at(W, NULL, merging, 2));
    REFUSES(trama_merge_set_at(W, e, NULL, 2));
    REFUSES(trama_flush_at(W, NULL, merging));
    REFUSES(trama_flush_at(W, e, NULL));
    REFUSES(trama_write_at(W, NULL, s, data, sizeof data));
    REFUSES(trama_write_at(W, e, NULL, data, sizeof data));
    REFUSES(trama_write_at(W, e, s, NULL, sizeof data));
    REFUSES(trama_wait(NULL));
}
END_TEST

START_TEST(readings)
{
    double room[6];
    trama_reading *reading = NULL;
    REFUSES(trama_read_at(W, NULL, y, room, sizeof room));
    REFUSES(trama_read_at(W, e, NULL, room, sizeof room));
    TAKES(trama_read_at(W, e, y, NULL, 0));
    REFUSES(trama_read_start_at(W, NULL, y, &reading));
    REFUSES(trama_read_start_at(W, e, NULL, &reading));
    REFUSES(trama_read_start_at(W, e, y, NULL));
    REFUSES(trama_read_wait(NULL, room, sizeof room));
    REFUSES(trama_read_wait(&reading, room, sizeof room));
    GIVES(false, trama_read_ready(NULL));
    TAKES(trama_read_start_at(W, e, y, &reading));
    TAKES(trama_read_wait(&reading, NULL, 0));
    char *words = NULL;
    REFUSES(trama_print_at(W, NULL, y, 3, &words));
    REFUSES(trama_print_at(W, e, NULL, 3, &words));
    REFUSES(trama_print_at(W, e, y, 3, NULL));
    ck_assert(!words && !reading);
}
END_TEST

START_TEST(state)
{
    trama_merge_cycle cycle;
    GIVES(0, trama_state_count(NULL));
    GIVES(NULL, trama_state_number(NULL, 0));
    GIVES(NULL, trama_state_find(NULL, "s"));
    GIVES(NULL, trama_state_find(e, NULL));
    REFUSES(trama_write_local_at(W, NULL, s, 0, data, sizeof data / 2));
    REFUSES(trama_write_local_at(W, e, NULL, 0, data, sizeof data / 2));
    REFUSES(trama_write_local_at(W, e, s, 0, NULL, sizeof data / 2));
    REFUSES(trama_merge_position_at(W, NULL, merging, &cycle));
    REFUSES(trama_merge_position_at(W, e, NULL, &cycle));
    REFUSES(trama_merge_position_at(W, e, merging, NULL));
    REFUSES(trama_merge_resume_at(W, NULL, merging, &cycle));
    REFUSES(trama_merge_resume_at(W, e, NULL, &cycle));
    REFUSES(trama_merge_resume_at(W, e, merging, NULL));
}
END_TEST

START_TEST(files)
{
    trama_checkpoint *found = NULL;
    trama_dtype dtype;
    trama_shape read;
    void *content = NULL;
    int64_t box[2] = {0, 1};
    REFUSES(trama_save_at(W, NULL, "/tmp", NULL));
    REFUSES(trama_save_at(W, e, NULL, NULL));
    REFUSES(trama_save_wait_at(W, NULL));
    REFUSES(trama_load_at(W, NULL, "/tmp/none", NULL, &found));
    REFUSES(trama_load_at(W, e, NULL, NULL, &found));
    TAKES(trama_load_at(W, e, "/tmp/trama-none", NULL, NULL));
    trama_feeder *rows = NULL;
    const trama_feeder_options taken = {.batch = 1};
    REFUSES(trama_feeder_create_at(W, NULL, "d", &taken, &rows));
    REFUSES(trama_feeder_create_at(W, e, NULL, &taken, &rows));
    REFUSES(trama_feeder_create_at(W, e, "d", NULL, &rows));
    REFUSES(trama_feeder_create_at(W, e, "d", &taken, NULL));
    TAKES(trama_feeder_create_at(W, e, "d", &taken, &rows));
    REFUSES(trama_feeder_add_at(W, NULL, x, "/tmp/none.npy", NULL));
    REFUSES(trama_feeder_add_at(W, rows, NULL, "/tmp/none.npy", NULL));
    REFUSES(trama_feeder_add_at(W, rows, x, NULL, NULL));
    REFUSES(trama_feeder_next_at(W, NULL, NULL));
    REFUSES(trama_feeder_seek_at(W, NULL, 0, 0));
    ck_assert_int_eq(0, trama_feeder_rows(NULL));
    ck_assert_int_eq(0, trama_feeder_epoch(NULL));
    ck_assert_int_eq(0, trama_feeder_row(NULL));
    trama_feeder_destroy(&rows);
    trama_feeder_destroy(&rows);
    trama_feeder_destroy(NULL);
    REFUSES(trama_checkpoint_open(NULL, &found));
    REFUSES(trama_checkpoint_open("/tmp/none.h5", NULL));
    trama_checkpoint_destroy(NULL);
    trama_checkpoint_destroy(&found);
    ck_assert_str_eq("", trama_checkpoint_path(NULL));
    GIVES(-1, trama_checkpoint_step(NULL));
    GIVES(NULL, trama_checkpoint_get(NULL, "key"));
    GIVES(NULL, trama_checkpoint_get(found, NULL));
    GIVES(0, trama_checkpoint_key_count(NULL));
    GIVES(NULL, trama_checkpoint_key(NULL, 0));
    GIVES(0, trama_checkpoint_count(NULL));
    GIVES(NULL, trama_checkpoint_name(NULL, 0));
    GIVES(0, trama_checkpoint_dtype(NULL, 0));
    GIVES(0, trama_checkpoint_shape(NULL, 0).ndim);
    GIVES(-1, trama_checkpoint_find(NULL, "s"));
    GIVES(-1, trama_checkpoint_find(found, NULL));
    REFUSES(trama_checkpoint_verify(NULL, 0));
    REFUSES(trama_checkpoint_read(NULL, 0, data, sizeof data));
    REFUSES(trama_checkpoint_read(found, 0, NULL, sizeof data));
    REFUSES(trama_checkpoint_read_box(NULL, 0, box, box, data, sizeof data));
    REFUSES(trama_checkpoint_read_box(found, 0, NULL, box, data, sizeof data));
    REFUSES(trama_checkpoint_read_box(found, 0, box, NULL, data, sizeof data));
    REFUSES(trama_checkpoint_read_box(found, 0, box, box, NULL, sizeof data));
    GIVES(false, trama_checkpoint_is_summed(NULL));
    REFUSES(trama_checkpoint_write(NULL, "/tmp/none.h5", NULL));
    REFUSES(trama_checkpoint_write(found, NULL, NULL));
    ck_assert_str_eq("", trama_checkpoint_missing(NULL));
    ck_assert_str_eq("", trama_checkpoint_left_over(NULL));
    REFUSES(trama_read_npy(NULL, &dtype, &read, &content));
    REFUSES(trama_read_npy("/tmp/none.npy", NULL, &read, &content));
    REFUSES(trama_read_npy("/tmp/none.npy", &dtype, NULL, &content));
    REFUSES(trama_read_npy("/tmp/none.npy", &dtype, &read, NULL));
    trama_npy_free(NULL);
    trama_npy_free(&content);
    REFUSES(trama_write_npy(NULL, TRAMA_F64, shape, data));
    REFUSES(trama_write_npy("/tmp/none.npy", TRAMA_F64, shape, NULL));
}
END_TEST

START_TEST(boxes_of_this_rank)
{
    int64_t offset[2], extent[2];
    double room[6];
    int n;
    REFUSES(trama_local_count(NULL, s, &n));
    REFUSES(trama_local_count(e, NULL, &n));
    REFUSES(trama_local_count(e, s, NULL));
    REFUSES(trama_local_box(NULL, s, 0, offset, extent));
    REFUSES(trama_local_box(e, NULL, 0, offset, extent));
    REFUSES(trama_local_box(e, s, 0, NULL, extent));
    REFUSES(trama_local_box(e, s, 0, offset, NULL));
    REFUSES(trama_read_local(NULL, s, 0, room, sizeof room));
    REFUSES(trama_read_local(e, NULL, 0, room, sizeof room));
    REFUSES(trama_read_local(e, s, 0, NULL, sizeof room));
}
END_TEST

START_TEST(questions)
{
    trama_traffic traffic = {0};
    trama_shape extents;
    char *words = NULL;
    REFUSES(trama_extents(NULL, s, &extents));
    REFUSES(trama_extents(e, NULL, &extents));
    REFUSES(trama_extents(e, s, NULL));
    REFUSES(trama_plan_text(NULL, t, false, &words));
    REFUSES(trama_plan_text(e, NULL, false, &words));
    REFUSES(trama_plan_text(e, t, false, NULL));
    REFUSES(trama_plan_graph(NULL, t, &words));
    REFUSES(trama_plan_graph(e, NULL, &words));
    REFUSES(trama_plan_graph(e, t, NULL));
    REFUSES(trama_tensor_describe(NULL, s, &words));
    REFUSES(trama_tensor_describe(e, NULL, &words));
    REFUSES(trama_tensor_describe(e, s, NULL));
    REFUSES(trama_tensor_svg(NULL, s, &words));
    REFUSES(trama_tensor_svg(e, NULL, &words));
    REFUSES(trama_tensor_svg(e, s, NULL));
    REFUSES(trama_layout_of(NULL, s, &words));
    REFUSES(trama_layout_of(e, NULL, &words));
    REFUSES(trama_layout_of(e, s, NULL));
    REFUSES(trama_target_traffic(NULL, t, &traffic));
    REFUSES(trama_target_traffic(e, NULL, &traffic));
    REFUSES(trama_target_traffic(e, t, NULL));
    ck_assert_ptr_null(words);
}
END_TEST

START_TEST(pictures)
{
    char *words = NULL;
    REFUSES(trama_layout_picture(NULL, &layout, shape, &words));
    REFUSES(trama_layout_picture(mesh, NULL, shape, &words));
    REFUSES(trama_layout_picture(mesh, &layout, shape, NULL));
    REFUSES(trama_layout_svg(NULL, &layout, shape, "title", &words));
    REFUSES(trama_layout_svg(mesh, NULL, shape, "title", &words));
    REFUSES(trama_layout_svg(mesh, &layout, shape, "title", NULL));
    REFUSES(trama_layout_svg(mesh, &layout, shape, NULL, &words));
    ck_assert_ptr_null(words);
}
END_TEST

START_TEST(watches)
{
    trama_watch *watch = NULL;
    double room[6];
    bool known;
    REFUSES(trama_watch_create_at(W, NULL, 0, &watch));
    REFUSES(trama_watch_create_at(W, e, 0, NULL));
    REFUSES(trama_watch_next_at(W, NULL, y, room, sizeof room, &known));
    REFUSES(trama_watch_rest_at(W, NULL, room, sizeof room, &known));
    TAKES(trama_watch_destroy(NULL));
    TAKES(trama_watch_destroy(&watch));
    TAKES(trama_watch_create_at(W, e, 0, &watch));
    REFUSES(trama_watch_next_at(W, watch, NULL, room, sizeof room, &known));
    REFUSES(trama_watch_next_at(W, watch, y, room, sizeof room, NULL));
    TAKES(trama_watch_next_at(W, watch, y, NULL, 0, &known));
    REFUSES(trama_watch_rest_at(W, watch, room, sizeof room, NULL));
    TAKES(trama_watch_rest_at(W, watch, NULL, 0, &known));
    TAKES(trama_watch_destroy(&watch));
}
END_TEST

START_TEST(wrapped_tensors)
{
    trama_host_box piece = {.data = data, .bytes = sizeof data, .extent = {2, 3}};
    trama_wrapped *w = NULL, *none = NULL;
    trama_traffic traffic = {0};
    bool copied;
    REFUSES(trama_wrap_at(W, NULL, "w", TRAMA_F64, shape, 1, &piece, TRAMA_READ_WRITE, &w));
    REFUSES(trama_wrap_at(W, c, NULL, TRAMA_F64, shape, 1, &piece, TRAMA_READ_WRITE, &w));
    REFUSES(trama_wrap_at(W, c, "w", TRAMA_F64, shape, 1, NULL, TRAMA_READ_WRITE, &w));
    REFUSES(trama_wrap_at(W, c, "w", TRAMA_F64, shape, 1, &piece, TRAMA_READ_WRITE, NULL));
    ck_assert_ptr_null(w);
    TAKES(trama_wrap_at(W, c, "w", TRAMA_F64, shape, 1, &piece, TRAMA_READ_WRITE, &w));
    REFUSES(trama_feed_wrapped_at(W, NULL, x, w, &copied));
    REFUSES(trama_feed_wrapped_at(W, e, NULL, w, &copied));
    REFUSES(trama_feed_wrapped_at(W, e, x, NULL, &copied));
    TAKES(trama_feed_wrapped_at(W, e, x, w, NULL));
    REFUSES(trama_read_wrapped_at(W, NULL, y, w));
    REFUSES(trama_read_wrapped_at(W, e, NULL, w));
    REFUSES(trama_read_wrapped_at(W, e, y, NULL));
    REFUSES(trama_write_wrapped_at(W, NULL, s, w));
    REFUSES(trama_write_wrapped_at(W, e, NULL, w));
    REFUSES(trama_write_wrapped_at(W, e, s, NULL));
    REFUSES(trama_reshard_wrapped_at(W, NULL, w));
    REFUSES(trama_reshard_wrapped_at(W, w, NULL));
    REFUSES(trama_wrapped_traffic(NULL, &traffic));
    REFUSES(trama_wrapped_traffic(w, NULL));
    REFUSES(trama_wait_wrapped(NULL));
    TAKES(trama_release(NULL));
    TAKES(trama_release(&none));
    TAKES(trama_release(&w));
}
END_TEST

START_TEST(pieces)
{
    trama_block_cyclic dealt = {
        .rows = 2, .columns = 3, .row_block = 1, .column_block = 1, .ld = 2, .grid_rows = 1, .grid_columns = 1};
    trama_host_box piece, *made = NULL;
    int n;
    REFUSES(trama_host_box_of_layout(NULL, &layout, TRAMA_F64, shape, 0, data, &piece));
    REFUSES(trama_host_box_of_layout(mesh, NULL, TRAMA_F64, shape, 0, data, &piece));
    TAKES(trama_host_box_of_layout(mesh, &layout, TRAMA_F64, shape, 0, NULL, &piece));
    REFUSES(trama_host_box_of_layout(mesh, &layout, TRAMA_F64, shape, 0, data, NULL));
    REFUSES(trama_host_boxes_block_cyclic(NULL, TRAMA_F64, data, sizeof data, &n, &made));
    REFUSES(trama_host_boxes_block_cyclic(&dealt, TRAMA_F64, data, sizeof data, NULL, &made));
    REFUSES(trama_host_boxes_block_cyclic(&dealt, TRAMA_F64, data, sizeof data, &n, NULL));
    ck_assert_ptr_null(made);
    TAKES(trama_host_boxes_block_cyclic(&dealt, TRAMA_F64, NULL, 0, &n, &made));
    free(made);
}
END_TEST

static trama_status copy(const trama_call *call)
{
    const trama_view *in = &call->in[0], *out = &call->out[0];
    int64_t i[TRAMA_MAX_NDIM];
    for (bool more = trama_first(out, i); more; more = trama_next(out, i))
        *(double *)trama_element(out, out->ndim, i) = *(const double *)trama_element(in, out->ndim, i);
    return TRAMA_OK;
}

START_TEST(validation)
{
    trama_op_definition d = {.name = "copied", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = copy};
    trama_value_range range = {-1, 1};
    trama_validation found;
    const trama_op *op;
    TAKES(trama_op_define(&d, &op));
    trama_value *copied = trama_apply(op, 1, &s, NULL);
    REFUSES(trama_op_validate_at(W, NULL, &range, &found));
    TAKES(trama_op_validate_at(W, copied, NULL, &found));
    free(found.text);
    TAKES(trama_op_validate_at(W, copied, &range, NULL));
    trama_program_destroy(&p);
    trama_op_destroy(&op);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        contexts, compiling,  eager_programs,     feeding_running_and_writing,
        readings, state,      boxes_of_this_rank, questions,
        pictures, watches,    wrapped_tensors,    pieces,
        files,    validation,
    };
    return suite_run("nulls", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
