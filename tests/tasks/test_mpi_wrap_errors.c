/* SPDX-License-Identifier: Apache-2.0 */
/* The host's arrays as tensors: wrong boxes, ranks that disagree, wrong uses, kernels that fail. */
#include "rows.h"

static trama_status try_wrap(trama_shape shape, int n, const trama_host_box *pieces)
{
    trama_wrapped *w = NULL;
    trama_status status = trama_wrap(ctx, "a", TRAMA_F64, shape, n, pieces, TRAMA_READ_WRITE, &w);
    demand(!w, "a wrapped tensor in spite of the error");
    return status;
}

START_TEST(what_does_not_fit_is_refused)
{
    start();
    double data[64] = {0};
    trama_shape shape = TRAMA_SHAPE(8, 4);
    trama_host_box good = {.data = data, .bytes = sizeof data, .extent = {8, 4}}, p = good;
    p.bytes = 8 * 4 * 8 - 1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "'a'", "box 0, [0:8,0:4]", "255 bytes", "256");
    p = good;
    p.stride[0] = 3;
    p.stride[1] = 1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "share memory");
    p = good;
    p.stride[0] = 8;
    p.stride[1] = -1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "strides are in elements, positive");
    p = good;
    p.offset[0] = 1;
    expect(try_wrap(shape, 1, &p), TRAMA_E_SHAPE, "[1:9,0:4]", "[8,4]", "not within");
    p = good;
    p.data = NULL;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "NULL");
    p = good;
    p.data = (char *)data + 4;
    expect(try_wrap(shape, 1, &p), TRAMA_E_ARGUMENT, "aligned");
    trama_host_box two[] = {good, good};
    two[0].extent[0] = 5;
    two[1].offset[0] = 4;
    two[1].extent[0] = 4;
    two[1].data = data + 32;
    if (n_ranks == 1)
        expect(try_wrap(shape, 2, two), TRAMA_E_LAYOUT, "box 0 of rank 0, [0:5,0:4]", "box 1 of rank 0, [4:8,0:4]",
               "overlap");
    two[0].extent[0] = 4;
    two[1].data = data + 15; /* the last element of the first box */
    expect(try_wrap(shape, 2, two), TRAMA_E_ARGUMENT, "test_mpi_wrap_errors.c", "box 0, [0:4,0:4]", "box 1, [4:8,0:4]",
           "memory of its own");
    expect(try_wrap(shape, -1, two), TRAMA_E_ARGUMENT, "negative");
    expect(try_wrap(TRAMA_SHAPE(TRAMA_ANY), 0, NULL), TRAMA_E_SHAPE, "it must be known");
    trama_wrapped *w = NULL;
    expect_here(trama_wrap(NULL, "a", TRAMA_F64, shape, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT, "context");
    expect_here(trama_wrap(ctx, NULL, TRAMA_F64, shape, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT, "name");
    expect_here(trama_wrap(ctx, "a", (trama_dtype)77, shape, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_DTYPE, "77");
    stop();
}
END_TEST

START_TEST(ranks_that_disagree_are_told)
{
    start();
    double data[64] = {0};
    trama_wrapped *w = NULL;
    trama_host_box p = {.data = data, .bytes = sizeof data, .extent = {4, 4}};
    trama_shape mine = TRAMA_SHAPE(8, my_rank ? 4 : 5);
    if (n_ranks > 1) {
        expect_here(trama_wrap(ctx, "a", TRAMA_F64, mine, 0, NULL, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT, "shapes",
                    "ranks 0 and 1");
        expect_here(trama_wrap(ctx, my_rank ? "a" : "b", TRAMA_F64, TRAMA_SHAPE(8, 4), 0, NULL, TRAMA_READ_ONLY, &w),
                    TRAMA_E_ARGUMENT, "names");
        p.offset[0] = my_rank == 1 ? 3 : my_rank ? 4 : 0;
        expect_here(trama_wrap(ctx, "a", TRAMA_F64, TRAMA_SHAPE(8, 4), 1, &p, TRAMA_READ_ONLY, &w), TRAMA_E_LAYOUT,
                    "of rank 0, [0:4,0:4]", "of rank 1, [3:7,0:4]");
        p.bytes = my_rank == 1 ? 1 : p.bytes; /* all learn what is wrong on one */
        expect_here(trama_wrap(ctx, "a", TRAMA_F64, TRAMA_SHAPE(8, 4), 1, &p, TRAMA_READ_ONLY, &w), TRAMA_E_ARGUMENT,
                    "1 bytes");
    }
    demand(!w, "a wrapped tensor in spite of the error");
    stop();
}
END_TEST

START_TEST(wrong_uses_are_refused_and_change_nothing)
{
    trama_config config = {.map_by_order = true};
    start_with(&config);
    rows r = rows_new();
    rows_fill(&r, 0);
    trama_shape shape = TRAMA_SHAPE(ROWS, COLUMNS), other = TRAMA_SHAPE(ROWS, COLUMNS + 1);
    trama_wrapped *part = NULL, *wide = NULL, *ints = NULL, *gone = NULL;
    must(trama_wrap(ctx, "x", TRAMA_F64, shape, 1, &r.piece, TRAMA_READ_ONLY, &r.w));
    must(trama_wrap(ctx, "part", TRAMA_F64, shape, 0, NULL, TRAMA_READ_WRITE, &part));
    must(trama_wrap(ctx, "wide", TRAMA_F64, other, 0, NULL, TRAMA_READ_WRITE, &wide));
    must(trama_wrap(ctx, "ints", TRAMA_I32, shape, 0, NULL, TRAMA_READ_WRITE, &ints));
    must(trama_feed_wrapped(r.e, r.x, r.w, NULL));
    must(trama_run(r.e, r.t));
    expect_here(trama_read_wrapped(r.e, r.y, r.w), TRAMA_E_ARGUMENT, "'x'", "TRAMA_READ_ONLY");
    expect_here(trama_reshard_wrapped(part, r.w), TRAMA_E_LAYOUT, "'part'", "0 of its 148");
    expect_here(trama_reshard_wrapped(r.w, r.w), TRAMA_E_ARGUMENT, "both source and target");
    expect_here(trama_reshard_wrapped(r.w, wide), TRAMA_E_SHAPE, "[37,4]", "[37,5]");
    expect_here(trama_reshard_wrapped(r.w, ints), TRAMA_E_DTYPE, "f64", "i32");
    expect_here(trama_read_wrapped(r.e, r.y, ints), TRAMA_E_DTYPE, "f64", "i32");
    expect_here(trama_feed_wrapped(r.e, r.x, wide, NULL), TRAMA_E_LAYOUT, "'wide'");
    expect_here(trama_feed_wrapped(r.e, r.y, r.w, NULL), TRAMA_E_ARGUMENT, "is no input");
    expect_here(trama_write_wrapped(r.e, r.x, r.w), TRAMA_E_ARGUMENT, "x is no parameter");
    expect_here(trama_feed_wrapped(r.e, r.x, gone, NULL), TRAMA_E_ARGUMENT, "was it released");
    expect_here(trama_read_wrapped(NULL, r.x, part), TRAMA_E_ARGUMENT, "executable is NULL");
    must(trama_reshard_wrapped(r.w, part)); /* boxes that are nowhere are not read */
    rows_check(&r, 0);
    expect(trama_stop(&ctx), TRAMA_E_ORDER, "release");
    must(trama_release(&part));
    must(trama_release(&wide));
    must(trama_release(&ints));
    must(trama_release(&gone));
    rows_free(&r);
    stop();
}
END_TEST

static trama_status failing_cpu(const trama_call *call)
{
    (void)call;
    return trama_kernel_fail("on purpose");
}

START_TEST(what_a_failed_kernel_made_is_told)
{
    double data[ROWS * COLUMNS];
    trama_host_box all = {.data = data, .bytes = sizeof data, .extent = {ROWS, COLUMNS}};
    const trama_op_definition d = {.name = "failing", .n_in = 1, .n_out = 1, .rule = "ij->ij", .cpu = failing_cpu};
    const trama_op *op = NULL;
    trama_wrapped *w = NULL;
    start();
    must(trama_op_define(&d, &op));
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), NULL);
    trama_value *y = trama_apply(op, 1, &x, NULL);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    must(trama_wrap(ctx, "w", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), my_rank == 0, &all, TRAMA_READ_WRITE, &w));
    must(trama_run(e, t));
    must(trama_read_wrapped(e, y, w));
    trama_status status = trama_wait_wrapped(w);
    demand(status == TRAMA_E_KERNEL || (my_rank && !status), "%s", trama_status_text(status));
    demand(!status || strstr(trama_error(), "on purpose"), "%s", trama_error());
    expect(trama_executable_destroy(&e), TRAMA_E_KERNEL, "failing");
    must(trama_wait_wrapped(w));
    must(trama_release(&w));
    trama_program_destroy(&p);
    trama_op_destroy(&op);
    stop();
}
END_TEST

TESTS(what_does_not_fit_is_refused, ranks_that_disagree_are_told, wrong_uses_are_refused_and_change_nothing,
      what_a_failed_kernel_made_is_told)
