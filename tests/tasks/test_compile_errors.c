/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and programs that are refused, with a message that names what and where; nothing else changes. */
#include "work_left.h"

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
    snprintf(first, sizeof first, "test_compile_errors.c:%d), which trama_executable_destroy ends", __LINE__ + 1);
    must(trama_compile(ctx, w.p, &other));
    double own[3] = {0};
    trama_wrapped *wrapped;
    trama_host_box piece = {.data = own, .bytes = sizeof own, .extent = {3}};
    snprintf(second, sizeof second, "test_compile_errors.c:%d), which trama_release ends", __LINE__ + 1);
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

TESTS(options_out_of_range_are_refused, a_communicator_needs_mpi, a_second_context_is_refused,
      stopping_before_executables_are_destroyed_is_refused, compiling_needs_its_arguments_and_a_target,
      the_first_error_of_a_builder_is_what_compiling_says, programs_that_cannot_be_laid_out_are_refused,
      stages_and_offload_cannot_be_compiled_yet, state_that_is_too_large_is_refused)
