/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong uses of an executable: each answers with its status and a message that names what and where, and changes
 * nothing. */
#include "work_left.h"

/* ---- Feeding and writing ---- */

START_TEST(feeding_what_does_not_fit_is_refused)
{
    work_left w = begin();
    double data[12] = {0};
    trama_shape fits = TRAMA_SHAPE(2, 3), nine = trama_shape_of(9, (int64_t[9]){1, 1, 1, 1, 1, 1, 1, 1, 1});
    expect_here(trama_feed(NULL, w.x, data, fits), TRAMA_E_ARGUMENT, "trama_feed", "executable");
    expect_here(trama_feed(w.e, NULL, data, fits), TRAMA_E_ARGUMENT, "trama_feed", "NULL");
    expect_here(trama_feed(w.e, w.x, NULL, fits), TRAMA_E_ARGUMENT, "trama_feed", "data");
    expect_here(trama_feed(w.e, w.s, data, TRAMA_SCALAR), TRAMA_E_ARGUMENT, "s is no input", "trama_write");
    expect_here(trama_feed(w.e, w.y, data, fits), TRAMA_E_ARGUMENT, "is no input");
    expect_here(trama_feed(w.e, w.x, data, TRAMA_SHAPE(2, 4)), TRAMA_E_SHAPE, "[2,4]", "x f64[any,3]");
    expect_here(trama_feed(w.e, w.x, data, TRAMA_SHAPE(6)), TRAMA_E_SHAPE, "[6]", "x f64[any,3]");
    expect_here(trama_feed(w.e, w.x, data, TRAMA_SHAPE(TRAMA_ANY, 3)), TRAMA_E_SHAPE, "x f64[any,3]");
    expect_here(trama_feed(w.e, w.x, data, TRAMA_SHAPE(-2, 3)), TRAMA_E_SHAPE, "x f64[any,3]");
    expect_here(trama_feed(w.e, w.x, data, nine), TRAMA_E_SHAPE, "x f64[any,3]");
    expect_here(trama_feed(w.e, w.x, data, TRAMA_SHAPE(INT64_MAX / 2, 3)), TRAMA_E_SHAPE, "x f64[any,3]");
    expect(trama_feed(w.e, w.x, data, TRAMA_SHAPE(INT64_C(1) << 45, 3)), TRAMA_E_MEMORY, "x", "work_left.h:");
    expect_here(trama_feed(w.e, w.x, data, TRAMA_SHAPE(INT64_C(1) << 58, 3)), TRAMA_E_SHAPE, "2^60 bytes");
    end(&w);
}
END_TEST

START_TEST(feeding_other_boxes_than_the_layout_has_is_refused)
{
    work_left w = begin();
    double top[3] = {0}, bottom[3] = {0};
    const void *pieces[] = {top, bottom, top}, *lacking[] = {top, NULL};
    trama_shape shape = TRAMA_SHAPE(2, 3);
    int n;
    must(trama_local_count(w.e, w.x, &n));
    demand(n == 2, "%d boxes of x in one rank", n);
    expect_here(trama_feed_local(w.e, w.x, shape, 1, pieces), TRAMA_E_ARGUMENT, "trama_feed_local", "x", "has 2");
    works(&w);
    expect_here(trama_feed_local(w.e, w.x, shape, 3, pieces), TRAMA_E_ARGUMENT, "3 boxes for x");
    expect_here(trama_feed_local(w.e, w.x, shape, -1, pieces), TRAMA_E_ARGUMENT, "trama_feed_local");
    expect_here(trama_feed_local(w.e, w.x, shape, 2, NULL), TRAMA_E_ARGUMENT, "trama_feed_local");
    works(&w);
    expect_here(trama_feed_local(w.e, w.x, shape, 2, lacking), TRAMA_E_ARGUMENT, "trama_feed_local", "x");
    expect_here(trama_feed_local(w.e, w.x, TRAMA_SHAPE(5, 3), 1, pieces), TRAMA_E_ARGUMENT, "x");
    expect_here(trama_feed_local(w.e, w.x, TRAMA_SHAPE(5, 4), 2, pieces), TRAMA_E_SHAPE, "[5,4]");
    expect_here(trama_feed_local(w.e, w.s, TRAMA_SCALAR, 1, pieces), TRAMA_E_ARGUMENT, "is no input");
    end(&w);
}
END_TEST

START_TEST(writing_what_does_not_fit_is_refused)
{
    work_left w = begin();
    double data[6] = {100, 100, 100, 100, 100, 100};
    works(&w);
    expect_here(trama_write(NULL, w.s, data, 8), TRAMA_E_ARGUMENT, "trama_write", "executable");
    expect_here(trama_write(w.e, NULL, data, 8), TRAMA_E_ARGUMENT, "trama_write", "NULL");
    expect_here(trama_write(w.e, w.s, data, 4), TRAMA_E_SHAPE, "trama_write", "4 bytes for s", "has 8");
    expect_here(trama_write(w.e, w.s, NULL, 8), TRAMA_E_SHAPE, "trama_write", "s");
    expect_here(trama_write(w.e, w.s, NULL, 0), TRAMA_E_SHAPE, "trama_write", "s");
    expect_here(trama_write(w.e, w.x, data, 48), TRAMA_E_ARGUMENT, "x is no parameter or state", "trama_feed");
    expect_here(trama_write(w.e, w.y, data, 48), TRAMA_E_ARGUMENT, "is no parameter or state");
    end(&w);
}
END_TEST

/* ---- Running ---- */

START_TEST(a_fed_extent_that_does_not_divide_is_refused)
{
    work_left w = begin();
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "long", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 2));
    trama_target *t[] = {trama_target_create(p, "first", trama_reshape(x, TRAMA_SHAPE(TRAMA_ANY, 4))),
                         trama_target_create(p, "last", trama_reshape(x, TRAMA_SHAPE(4, TRAMA_ANY, 2)))};
    trama_executable *e = compile(p);
    double data[16] = {1, 2, 3, 4};
    for (int i = 0; i < 2; i++) {
        must(trama_feed(e, x, data, TRAMA_SHAPE(7, 2)));
        expect(trama_run(e, t[i]), TRAMA_E_SHAPE, __FILE__, "reshape", "long", "is 7, not a multiple of");
        must(trama_feed(e, x, data, TRAMA_SHAPE(8, 2)));
        must(trama_run(e, t[i]));
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    end(&w);
}
END_TEST

START_TEST(running_what_cannot_run_is_refused)
{
    work_left w = begin();
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "a", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY));
    trama_value *y = trama_input(p, "b", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY)), *z = trama_add(x, y);
    trama_target_create(p, "first", x);
    trama_target *t = trama_target_create(p, "both", z);
    trama_executable *e = compile(p);
    double data[8] = {1, 2, 3, 4}, out[4];
    expect_here(trama_run(NULL, w.t), TRAMA_E_ARGUMENT, "trama_run", "executable");
    expect_here(trama_run(w.e, NULL), TRAMA_E_ARGUMENT, "trama_run", "target");
    expect_here(trama_run(w.e, t), TRAMA_E_ARGUMENT, "'both'", "compiled");
    expect_here(trama_run(e, t), TRAMA_E_ORDER, "'both'", "input a", "not fed");
    must(trama_feed(e, x, data, TRAMA_SHAPE(3)));
    expect_here(trama_run(e, t), TRAMA_E_ORDER, "'both'", "input b");
    must(trama_feed(e, y, data, TRAMA_SHAPE(4)));
    expect(trama_run(e, t), TRAMA_E_SHAPE, __FILE__, "add", "3", "4"); /* the op's line */
    expect_here(trama_read(e, z, out, 24), TRAMA_E_ORDER, "run");
    must(trama_feed(e, x, data, TRAMA_SHAPE(4)));
    must(trama_run(e, t));
    must(trama_read(e, z, out, sizeof out));
    demand(out[3] == 8, "4 + 4 is %g", out[3]);
    must(trama_feed(e, x, data, TRAMA_SHAPE(1))); /* 1 was fed: it never broadcasts */
    expect(trama_run(e, t), TRAMA_E_SHAPE, "add");
    must(trama_read(e, z, out, sizeof out)); /* of the last run that was one */
    demand(out[3] == 8, "4 + 4 is %g", out[3]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    expect(trama_wait(NULL), TRAMA_E_ARGUMENT, "trama_wait", "executable");
    end(&w);
}
END_TEST

/* ---- Reading ---- */

START_TEST(reading_what_does_not_fit_is_refused)
{
    work_left w = begin();
    double room[6];
    trama_reading *r = NULL;
    works(&w);
    expect_here(trama_read(NULL, w.s, room, 8), TRAMA_E_ARGUMENT, "trama_read", "executable");
    expect_here(trama_read(w.e, NULL, room, 8), TRAMA_E_ARGUMENT, "trama_read", "value");
    expect_here(trama_read(w.e, w.s, room, 4), TRAMA_E_SHAPE, "4 bytes", "s has 8");
    expect_here(trama_read(w.e, w.y, room, 40), TRAMA_E_SHAPE, "40 bytes", trama_value_name(w.y), "48");
    expect_here(trama_read(w.e, w.update, room, 8), TRAMA_E_ARGUMENT, "update");
    expect_here(trama_read_start(w.e, w.s, NULL), TRAMA_E_ARGUMENT, "trama_read_start", "reading");
    expect_here(trama_read_start(w.e, NULL, &r), TRAMA_E_ARGUMENT, "value");
    demand(!r, "a reading in spite of the error");
    expect(trama_read_wait(NULL, room, 8), TRAMA_E_ARGUMENT, "trama_read_wait");
    expect(trama_read_wait(&r, room, 8), TRAMA_E_ARGUMENT, "trama_read_wait");
    must(trama_read_start(w.e, w.s, &r));
    expect(trama_read_wait(&r, room, 3), TRAMA_E_SHAPE, "3 bytes", "s has 8");
    demand(!r, "the reading stays after its wait");
    end(&w);
}
END_TEST

START_TEST(local_boxes_that_are_not_there_are_refused)
{
    work_left w = begin();
    int64_t lo[2], n[2];
    double room[3];
    int count;
    trama_value *unseen = trama_neg(w.y); /* after compiling */
    expect(trama_local_count(w.e, unseen, &count), TRAMA_E_ARGUMENT, "trama_local_count", trama_value_name(unseen));
    expect(trama_local_count(w.e, w.y, &count), TRAMA_E_ORDER, "trama_local_count", trama_value_name(w.y));
    expect(trama_local_count(w.e, w.x, NULL), TRAMA_E_ARGUMENT, "trama_local_count");
    expect(trama_local_box(w.e, w.x, 2, lo, n), TRAMA_E_ARGUMENT, "2 boxes of x", "no box 2");
    expect(trama_local_box(w.e, w.x, -1, lo, n), TRAMA_E_ARGUMENT, "no box -1");
    expect(trama_local_box(w.e, w.x, 0, NULL, n), TRAMA_E_ARGUMENT, "trama_local_box");
    expect(trama_read_local(w.e, w.x, 5, room, sizeof room), TRAMA_E_ARGUMENT, "trama_read_local", "no box 5");
    expect(trama_read_local(w.e, w.x, 0, room, 8), TRAMA_E_SHAPE, "8 bytes", "24");
    expect(trama_read_local(w.e, w.x, 0, NULL, 24), TRAMA_E_SHAPE, "trama_read_local");
    must(trama_read_local(w.e, w.x, 1, room, sizeof room));
    demand(room[0] == 4 && room[2] == 6, "the second box of x is [%g, .., %g]", room[0], room[2]);
    end(&w);
}
END_TEST

START_TEST(questions_without_room_for_the_answer_are_refused)
{
    work_left w = begin();
    char *words = NULL;
    trama_shape shape;
    trama_traffic traffic = {0};
    trama_value *unseen = trama_neg(w.y);
    expect_here(trama_print(w.e, w.x, 5, NULL), TRAMA_E_ARGUMENT, "trama_print");
    expect_here(trama_print(w.e, NULL, 5, &words), TRAMA_E_ARGUMENT, "trama_print");
    expect_here(trama_print(w.e, unseen, 5, &words), TRAMA_E_ARGUMENT, trama_value_name(unseen));
    expect_here(trama_print(w.e, w.y, 5, &words), TRAMA_E_ORDER, trama_value_name(w.y));
    expect(trama_layout_of(w.e, unseen, &words), TRAMA_E_ARGUMENT, "trama_layout_of", trama_value_name(unseen));
    expect(trama_layout_of(w.e, w.x, NULL), TRAMA_E_ARGUMENT, "trama_layout_of");
    expect(trama_extents(w.e, w.x, NULL), TRAMA_E_ARGUMENT, "trama_extents");
    expect(trama_extents(w.e, unseen, &shape), TRAMA_E_ARGUMENT, "trama_extents");
    expect(trama_plan_text(w.e, w.t, false, NULL), TRAMA_E_ARGUMENT, "trama_plan_text");
    expect(trama_plan_text(w.e, NULL, false, &words), TRAMA_E_ARGUMENT, "trama_plan_text", "target");
    expect(trama_plan_text(NULL, w.t, false, &words), TRAMA_E_ARGUMENT, "trama_plan_text", "executable");
    expect(trama_plan_graph(w.e, w.t, NULL), TRAMA_E_ARGUMENT, "trama_plan_graph");
    expect(trama_plan_graph(w.e, NULL, &words), TRAMA_E_ARGUMENT, "trama_plan_graph", "target");
    expect(trama_tensor_describe(w.e, w.x, NULL), TRAMA_E_ARGUMENT, "trama_tensor_describe");
    expect(trama_tensor_describe(w.e, unseen, &words), TRAMA_E_ARGUMENT, "trama_tensor_describe");
    expect(trama_tensor_describe(w.e, w.y, &words), TRAMA_E_ORDER, "trama_tensor_describe: ", trama_value_name(w.y));
    expect(trama_tensor_svg(w.e, w.x, NULL), TRAMA_E_ARGUMENT, "trama_tensor_svg");
    expect(trama_tensor_svg(NULL, w.x, &words), TRAMA_E_ARGUMENT, "trama_tensor_svg");
    expect(trama_tensor_svg(w.e, w.y, &words), TRAMA_E_ORDER, "trama_tensor_svg: ", trama_value_name(w.y));
    expect(trama_target_traffic(w.e, w.t, NULL), TRAMA_E_ARGUMENT, "trama_target_traffic");
    expect(trama_target_traffic(w.e, NULL, &traffic), TRAMA_E_ARGUMENT, "target");
    demand(!words, "a text in spite of the error");
    end(&w);
}
END_TEST

START_TEST(rewinding_is_for_eager_programs)
{
    work_left w = begin();
    expect(trama_program_rewind(w.p, 0), TRAMA_E_ARGUMENT, "eager");
    demand(trama_keep(w.x) == w.x, "keep gives its value back");
    demand(!trama_keep(NULL), "keep passes NULL through");
    end(&w);
}
END_TEST

TESTS(feeding_what_does_not_fit_is_refused, feeding_other_boxes_than_the_layout_has_is_refused,
      writing_what_does_not_fit_is_refused, a_fed_extent_that_does_not_divide_is_refused,
      running_what_cannot_run_is_refused, reading_what_does_not_fit_is_refused,
      local_boxes_that_are_not_there_are_refused, questions_without_room_for_the_answer_are_refused,
      rewinding_is_for_eager_programs)
