/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong uses of eager mode: each answers with its status and a message that names what and where. */
#include "harness.h"

START_TEST(eager_mode_refuses_what_it_cannot_do)
{
    start();
    trama_program *p = NULL;
    trama_executable *e = NULL;
    expect(trama_eager(NULL, &p, &e), TRAMA_E_ARGUMENT, "trama_eager");
    expect(trama_eager(ctx, NULL, &e), TRAMA_E_ARGUMENT, "trama_eager");
    expect(trama_eager(ctx, &p, NULL), TRAMA_E_ARGUMENT, "trama_eager");
    demand(!p && !e, "something in spite of the error");
    must(trama_eager(ctx, &p, &e));
    double data[4] = {1, 2, 3, 4}, out[4];
    trama_value *c = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(4), data), *twice = trama_add(c, c);
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4));
    trama_reading *r = NULL;
    expect_here(trama_feed(e, x, data, TRAMA_SHAPE(4)), TRAMA_E_UNSUPPORTED, "x", "trama_constant");
    expect(trama_read(e, x, out, sizeof out), TRAMA_E_UNSUPPORTED, __FILE__, "x", "trama_constant");
    expect_here(trama_read(e, twice, out, 24), TRAMA_E_SHAPE, "24 bytes", trama_value_name(twice));
    expect_here(trama_read_start(e, NULL, &r), TRAMA_E_ARGUMENT, "value");
    expect(trama_program_rewind(p, -1), TRAMA_E_ARGUMENT, "trama_program_rewind");
    expect(trama_program_rewind(p, 1000), TRAMA_E_ARGUMENT, "trama_program_rewind");
    expect(trama_program_rewind(NULL, 0), TRAMA_E_ARGUMENT, "trama_program_rewind");
    must(trama_read(e, twice, out, sizeof out));
    demand(out[3] == 8, "4 + 4 is %g", out[3]);
    expect(trama_stop(&ctx), TRAMA_E_ORDER, "the executable of an eager program");
    trama_value *square = trama_square(twice);
    must(trama_read(e, square, out, sizeof out));
    demand(out[3] == 64, "8 squared is %g", out[3]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* Two eager values of one shape and layout share all plans: messages must still name the one that is read. */
START_TEST(eager_errors_name_the_value_that_is_meant)
{
    start();
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    double data[4] = {1, 2, 3, 4}, out[4];
    trama_value *a = trama_value_rename(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(4), data), "first");
    trama_value *b = trama_value_rename(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(4), data), "second");
    must(trama_read(e, a, out, sizeof out));
    expect_here(trama_read(e, b, out, 8), TRAMA_E_SHAPE, "second");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* A builder's error stays on the program until it is cleared; its results can still be read, and after that used. */
static void refuse_eager(int which)
{
    trama_program *p;
    trama_executable *e;
    trama_mesh *two = trama_mesh_create("2"), *other = trama_mesh_create("2:1,0");
    must(trama_eager(ctx, &p, &e));
    double data[4] = {1, 2, 3, 4}, out[4];
    trama_value *a = trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(4), data, two, "S(0)"), *y = trama_neg(a), *wrong = NULL;
    trama_value *b = trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(4), data, other, "S(0)");
    int line = 0;
#define CASE(number, build)                                                                                            \
    case number:                                                                                                       \
        line = __LINE__, wrong = build;                                                                                \
        break
    switch (which) {
        CASE(0, trama_shard(y, two, "R"));
        CASE(1, trama_add(y, b));
        CASE(2, trama_matmul_trans(y, y, true, false));
        CASE(3, trama_neg(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4))));
        CASE(4, trama_shard(a, two, "R"));
        CASE(5, trama_neg(trama_shard(trama_state(p, "s", TRAMA_F64, TRAMA_SCALAR, NULL), two, "P(sum)")));
    }
#undef CASE
    static const struct {
        trama_status status;
        const char *what[3];
    } wanted[] = {{TRAMA_E_ORDER, {"shard of", "computed", "trama_reshard"}},
                  {TRAMA_E_LAYOUT, {"add", "2 and 2:1,0", "trama_reshard"}},
                  {TRAMA_E_SHAPE, {"matmul", "vector", "trans_x"}},
                  {TRAMA_E_UNSUPPORTED, {"x", "eager", "trama_constant"}},
                  {TRAMA_E_ORDER, {"shard of", "computed", "trama_reshard"}},
                  {TRAMA_E_LAYOUT, {"s", "state", "partial"}}};
    char place[300];
    snprintf(place, sizeof place, "%s:%d:", __FILE__, line);
    demand(!wrong, "case %d gives a value", which);
    expect(trama_program_status(p), wanted[which].status, place, wanted[which].what[0], wanted[which].what[1],
           wanted[which].what[2]);
    demand(strstr(trama_program_error(p), place), "the program says \"%s\"", trama_program_error(p));
    must(trama_read(e, y, out, sizeof out));
    demand(out[3] == -4, "neg 4 is %g", out[3]);
    demand(!trama_neg(y), "a value in spite of the error before");
    trama_program_clear_error(p);
    must(trama_program_status(p));
    demand(!*trama_program_error(p), "the error \"%s\" was cleared", trama_program_error(p));
    must(trama_read(e, trama_neg(y), out, sizeof out));
    demand(out[3] == 4, "after the error neg -4 is %g", out[3]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&two);
    trama_mesh_destroy(&other);
}

START_TEST(eager_builders_that_fail_name_their_line)
{
    start();
    for (int i = 0; i < 6; i++)
        refuse_eager(i);
    stop();
}
END_TEST

/* A state's value at its use is gone after an update: a gradient from it is refused, not wrong. */
START_TEST(a_gradient_after_an_update_is_refused)
{
    start();
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(3), NULL);
    trama_value *loss = trama_sum(trama_square(w));
    trama_assign(w, trama_scale(w, 10));
    trama_value *d = trama_gradient(loss, w);
    demand(!d && trama_program_status(p) == TRAMA_E_ORDER, "a gradient from an updated state");
    demand(strstr(trama_program_error(p), "w was updated"), "the program says \"%s\"", trama_program_error(p));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* Both ops share a plan. */
START_TEST(a_result_beyond_the_memory_names_its_own_line)
{
    start();
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    double *data = calloc(1 << 23, sizeof *data);
    trama_value *column = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(1 << 23, 1), data);
    trama_value *row = trama_constant(p, TRAMA_F64, TRAMA_SHAPE(1, 1 << 23), data);
    free(data);
    for (int i = 0; i < 2; i++) {
        char place[64];
        trama_where where = {"a_line.c", 10 + i};
        snprintf(place, sizeof place, "a_line.c:%d: ", where.line);
        demand(!trama_add_at(where, column, row), "there are 2^49 bytes");
        demand(trama_program_status(p) == TRAMA_E_MEMORY, "%s", trama_program_error(p));
        demand(!strncmp(trama_program_error(p), place, strlen(place)), "not %s: %s", place, trama_program_error(p));
        trama_program_clear_error(p);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

TESTS(eager_mode_refuses_what_it_cannot_do, eager_errors_name_the_value_that_is_meant,
      eager_builders_that_fail_name_their_line, a_gradient_after_an_update_is_refused,
      a_result_beyond_the_memory_names_its_own_line)
