/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong uses of the API: each answers with its status and a message that names what and where, and changes nothing. */
#include "harness.h"

/* ---- Work after every mistake: s becomes s + sum(x), y = 2 x ---- */

typedef struct work_left {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *s, *y, *update;
    trama_target *t;
    trama_executable *e;
    double sum; /* s must be this */
} work_left;

static work_left begin(void)
{
    work_left w = {.mesh = trama_mesh_create("dp=2,mp=2"), .p = trama_program_create()};
    start();
    w.x = trama_shard(trama_input(w.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 3)), w.mesh, "S(0),R");
    w.s = trama_state(w.p, "s", TRAMA_F64, TRAMA_SCALAR, NULL);
    w.y = trama_add(w.x, w.x);
    w.update = trama_assign(w.s, trama_add(w.s, trama_sum(w.x)));
    w.t = trama_target_create(w.p, "t", w.y, w.update);
    w.e = compile(w.p);
    must(trama_feed(w.e, w.x, ((double[]){1, 2, 3, 4, 5, 6}), TRAMA_SHAPE(2, 3)));
    return w;
}

/* With what was fed last: nothing wrong may have taken its place. */
static void works(work_left *w)
{
    double y[6], s;
    must(trama_run(w->e, w->t));
    w->sum += 21;
    must(trama_read(w->e, w->y, y, sizeof y));
    for (int i = 0; i < 6; i++)
        demand(y[i] == 2 * (i + 1), "after the mistake y[%d] is %g", i, y[i]);
    must(trama_read(w->e, w->s, &s, sizeof s));
    demand(s == w->sum, "after the mistake s is %g instead of %g", s, w->sum);
}

static void end(work_left *w)
{
    works(w);
    must(trama_executable_destroy(&w->e));
    trama_program_destroy(&w->p);
    trama_mesh_destroy(&w->mesh);
    stop();
}

/* ---- Contexts ---- */

static void refuse_start(const trama_config *config, const char *what)
{
    trama_context *c = NULL;
    expect(trama_start(config, &c), TRAMA_E_ARGUMENT, what, "expected");
    demand(!c, "a context in spite of the error");
}

START_TEST(options_out_of_range_are_refused)
{
    expect(trama_start(NULL, NULL), TRAMA_E_ARGUMENT, "trama_start", "NULL");
    refuse_start(&(trama_config){.workers = -1}, "config.workers is -1");
    refuse_start(&(trama_config){.workers = 1 << 20}, "config.workers");
    refuse_start(&(trama_config){.max_in_flight = 65}, "config.max_in_flight is 65");
    refuse_start(&(trama_config){.max_tiles = -2}, "config.max_tiles is -2");
    refuse_start(&(trama_config){.watchdog = -1}, "config.watchdog is -1");
    refuse_start(&(trama_config){.grain_flops = -1}, "config.grain_flops is -1");
    refuse_start(&(trama_config){.grain_bytes = -1}, "config.grain_bytes is -1");
    refuse_start(&(trama_config){.nominal = -7}, "config.nominal is -7");
    static const char *const wrong[][2] = {
        {"TRAMA_WORKERS", "two"}, {"TRAMA_MAX_IN_FLIGHT", "99"}, {"TRAMA_MAX_TILES", "-1"}, {"TRAMA_WATCHDOG", "1s"}};
    for (int i = 0; i < 4; i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        refuse_start(NULL, wrong[i][0]);
        expect(trama_start(NULL, &ctx), TRAMA_E_ARGUMENT, wrong[i][1]);
        unsetenv(wrong[i][0]);
    }
    work_left w = begin();
    end(&w);
}
END_TEST

START_TEST(a_communicator_needs_mpi)
{
    int no_communicator = 0;
    trama_status status = trama_start(&(trama_config){.communicator = &no_communicator}, &ctx);
    demand(status == TRAMA_E_ARGUMENT || status == TRAMA_E_UNSUPPORTED, "%s", trama_status_text(status));
    demand(strstr(trama_error(), "config.communicator"), "%s", trama_error());
    work_left w = begin();
    end(&w);
}
END_TEST

START_TEST(a_second_context_is_refused)
{
    work_left w = begin();
    trama_context *second = NULL;
    expect(trama_start(NULL, &second), TRAMA_E_ORDER, "trama_stop");
    demand(!second, "a second context");
    end(&w);
}
END_TEST

START_TEST(stopping_before_executables_are_destroyed_is_refused)
{
    work_left w = begin();
    trama_executable *other;
    char first[64], second[64];
    snprintf(first, sizeof first, "test_errors.c:%d), which trama_executable_destroy ends", __LINE__ + 1);
    must(trama_compile(ctx, w.p, &other));
    double own[3] = {0};
    trama_wrapped *wrapped;
    trama_host_box piece = {.data = own, .bytes = sizeof own, .extent = {3}};
    snprintf(second, sizeof second, "test_errors.c:%d), which trama_release ends", __LINE__ + 1);
    must(trama_wrap(ctx, "mine", TRAMA_F64, TRAMA_SHAPE(3), 1, &piece, TRAMA_READ_WRITE, &wrapped));
    expect(trama_stop(&ctx), TRAMA_E_ORDER, "trama_stop", "the executable (", first, "the wrapped tensor 'mine' (",
           second);
    must(trama_release(&wrapped));
    demand(ctx, "the context is gone");
    works(&w);
    must(trama_executable_destroy(&other));
    expect(trama_stop(&ctx), TRAMA_E_ORDER, "the executable (");
    end(&w);
    must(trama_stop(&ctx)); /* twice is none too many */
    must(trama_executable_destroy(&other));
    must(trama_executable_destroy(NULL));
    must(trama_stop(NULL));
}
END_TEST

/* ---- Compiling ---- */

START_TEST(compiling_needs_its_arguments_and_a_target)
{
    work_left w = begin();
    trama_executable *e = NULL;
    trama_program *empty = trama_program_create();
    expect_here(trama_compile(NULL, w.p, &e), TRAMA_E_ARGUMENT, "trama_compile", "context");
    expect_here(trama_compile(ctx, NULL, &e), TRAMA_E_ARGUMENT, "trama_compile", "program");
    expect_here(trama_compile(ctx, w.p, NULL), TRAMA_E_ARGUMENT, "trama_compile", "executable");
    expect_here(trama_compile(ctx, empty, &e), TRAMA_E_ARGUMENT, "no target", "trama_target_create");
    demand(!e, "an executable in spite of the error");
    trama_program_destroy(&empty);
    end(&w);
}
END_TEST

/* A fresh program with x [2, 3], on which a builder errs; the message is that of the builder's line. */
typedef struct broken {
    trama_program *p;
    trama_value *x, *n;
    int line;
} broken;

static broken broken_new(void)
{
    broken b = {.p = trama_program_create()};
    b.x = trama_parameter(b.p, "x", TRAMA_F64, TRAMA_SHAPE(2, 3), NULL);
    b.n = trama_input(b.p, "n", TRAMA_I32, TRAMA_SHAPE(2, 3));
    return b;
}

static void refuse_compile(broken *b, const void *built, trama_status status, const char *what, const char *also)
{
    demand(!trama_neg(b->x), "builders go on after an error");
    trama_target_create(b->p, "t", b->x);
    expect_broken(b->p, __FILE__, b->line, built, status, what, also);
    demand(!strcmp(trama_error(), trama_program_error(b->p)), "not the first error: %s", trama_error());
    trama_program_destroy(&b->p);
}

#define REFUSE(build, status, what, also)                                                                              \
    do {                                                                                                               \
        broken b = broken_new();                                                                                       \
        b.line = __LINE__;                                                                                             \
        const void *built = build;                                                                                     \
        refuse_compile(&b, built, status, what, also);                                                                 \
    } while (0)

START_TEST(the_first_error_of_a_builder_is_what_compiling_says)
{
    work_left w = begin();
    trama_value *xx[] = {w.x};
    REFUSE(trama_matmul(b.x, b.x), TRAMA_E_SHAPE, "matmul", "[2,3]");
    REFUSE(trama_add(b.x, b.n), TRAMA_E_DTYPE, "add", "i32");
    REFUSE(trama_exp(b.n), TRAMA_E_DTYPE, "exp", "i32");
    REFUSE(trama_add(b.x, w.x), TRAMA_E_ARGUMENT, "add", "another program");
    REFUSE(trama_reshape(b.x, TRAMA_SHAPE(4)), TRAMA_E_SHAPE, "reshape", "[4]");
    REFUSE(trama_transpose(b.x, ((int[]){0, 0})), TRAMA_E_SHAPE, "transpose", "permutation");
    REFUSE(trama_softmax(b.x, 2), TRAMA_E_SHAPE, "softmax", "2");
    REFUSE(trama_sum_over(b.x, 1, ((int[]){5}), false), TRAMA_E_SHAPE, "sum", "5");
    REFUSE(trama_input(b.p, "x", TRAMA_F32, TRAMA_SCALAR), TRAMA_E_ARGUMENT, "input", "'x' is taken");
    REFUSE(trama_input(b.p, "", TRAMA_F32, TRAMA_SCALAR), TRAMA_E_ARGUMENT, "input", "name");
    REFUSE(trama_input(b.p, "y", (trama_dtype)77, TRAMA_SCALAR), TRAMA_E_DTYPE, "'y'", "77");
    REFUSE(trama_parameter(b.p, "w", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY), NULL), TRAMA_E_SHAPE, "'w'", "fed");
    REFUSE(trama_constant(b.p, TRAMA_F32, TRAMA_SHAPE(2), NULL), TRAMA_E_ARGUMENT, "constant", "NULL");
    REFUSE(trama_shard(b.x, w.mesh, "S(0)"), TRAMA_E_LAYOUT, "shard of x", "2 axes");
    REFUSE(trama_shard(b.x, w.mesh, "S(2),R"), TRAMA_E_LAYOUT, "shard of x", "2");
    REFUSE(trama_shard(b.x, w.mesh, "[0,0]"), TRAMA_E_LAYOUT, "shard of x", "0");
    REFUSE(trama_shard(b.x, w.mesh, "S(0),Q"), TRAMA_E_LAYOUT, "shard of x", "Q");
    REFUSE(trama_shard(b.x, w.mesh, "R,S(0) mask{1,0}"), TRAMA_E_LAYOUT, "shard of x", "mask");
    REFUSE(trama_shard(b.x, NULL, "R"), TRAMA_E_LAYOUT, "shard of x", "mesh is NULL");
    REFUSE(trama_gradient(b.x, b.x), TRAMA_E_SHAPE, "gradient", "scalar");
    REFUSE(trama_gradient(trama_sum(b.x), b.n), TRAMA_E_DTYPE, "gradient", "i32");
    REFUSE(trama_minimize(trama_sum(b.x), NULL), TRAMA_E_ARGUMENT, "minimize", "optimizer");
    REFUSE(trama_target_at(TRAMA_HERE, b.p, "t", 1, xx), TRAMA_E_ARGUMENT, "target 't'", "another program");
    REFUSE(trama_assign(b.n, trama_cast(b.x, TRAMA_I32)), TRAMA_E_ARGUMENT, "assign", "no state");
    end(&w);
}
END_TEST

/* Errors of compiling itself name the line of the value or op. */
START_TEST(programs_that_cannot_be_laid_out_are_refused)
{
    work_left w = begin();
    trama_executable *e = NULL;
    trama_mesh *other = trama_mesh_create("2:4,5");
    trama_program *p = trama_program_create();
    trama_value *a = trama_shard(trama_input(p, "a", TRAMA_F32, TRAMA_SHAPE(4)), w.mesh, "S(0),R");
    trama_value *b = trama_shard(trama_input(p, "b", TRAMA_F32, TRAMA_SHAPE(4)), other, "S(0)");
    trama_target_create(p, "t", trama_add(a, b));
    expect(trama_compile(ctx, p, &e), TRAMA_E_LAYOUT, __FILE__, "add", "a", "b", "dp=2,mp=2", "2:4,5", "trama_reshard");
    trama_program_destroy(&p);
    p = trama_program_create();
    trama_value *s = trama_shard(trama_state(p, "state", TRAMA_F32, TRAMA_SHAPE(4), NULL), w.mesh, "P(sum),R");
    trama_target_create(p, "t", s);
    expect(trama_compile(ctx, p, &e), TRAMA_E_LAYOUT, __FILE__, "state", "cannot be partial");
    trama_program_destroy(&p);
    p = trama_program_create();
    s = trama_state(p, "state", TRAMA_F32, TRAMA_SHAPE(4), NULL);
    demand(!trama_shard_begin(p, w.mesh, NULL), "no scope");
    trama_target_create(p, "t", trama_neg(s));
    expect(trama_compile(ctx, p, &e), TRAMA_E_ORDER, __FILE__, "is open; call trama_shard_end");
    trama_program_destroy(&p);
    demand(!e, "an executable in spite of the error");
    trama_mesh_destroy(&other);
    end(&w);
}
END_TEST

/* Recorded and shown, and not ignored where it would have to be done. */
START_TEST(stages_and_offload_cannot_be_compiled_yet)
{
    start();
    for (int i = 0; i < 2; i++) {
        trama_program *p = trama_program_create();
        trama_executable *e = NULL;
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4));
        if (i == 0)
            trama_offload(x, "cpu");
        else
            must(trama_stage(p, 3));
        trama_target_create(p, "t", trama_neg(x));
        expect(trama_compile(ctx, p, &e), TRAMA_E_UNSUPPORTED, __FILE__, i ? "stage 3" : "x is offloaded",
               i ? "trama_stage" : "trama_offload");
        demand(!e, "an executable in spite of the error");
        trama_program_destroy(&p);
    }
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    expect(trama_stage(p, 0), TRAMA_E_UNSUPPORTED, __FILE__, "eager");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

START_TEST(state_that_is_too_large_is_refused)
{
    work_left w = begin();
    trama_executable *e = NULL;
    trama_program *p = trama_program_create();
    trama_value *small = trama_state(p, "small", TRAMA_F64, TRAMA_SHAPE(3), NULL);
    trama_value *large = trama_state(p, "large", TRAMA_F64, TRAMA_SHAPE(INT64_C(1) << 45), NULL);
    trama_target_create(p, "t", small, large);
    expect(trama_compile(ctx, p, &e), TRAMA_E_MEMORY, "large", __FILE__);
    demand(!e, "an executable in spite of the error");
    trama_program_destroy(&p);
    end(&w);
}
END_TEST

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
    expect(trama_feed(w.e, w.x, data, TRAMA_SHAPE(INT64_C(1) << 45, 3)), TRAMA_E_MEMORY, "x", __FILE__);
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

TESTS(options_out_of_range_are_refused, a_communicator_needs_mpi, a_second_context_is_refused,
      stopping_before_executables_are_destroyed_is_refused, compiling_needs_its_arguments_and_a_target,
      the_first_error_of_a_builder_is_what_compiling_says, programs_that_cannot_be_laid_out_are_refused,
      stages_and_offload_cannot_be_compiled_yet, state_that_is_too_large_is_refused,
      feeding_what_does_not_fit_is_refused, feeding_other_boxes_than_the_layout_has_is_refused,
      writing_what_does_not_fit_is_refused, running_what_cannot_run_is_refused, reading_what_does_not_fit_is_refused,
      local_boxes_that_are_not_there_are_refused, questions_without_room_for_the_answer_are_refused,
      rewinding_is_for_eager_programs)
