/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that do not call the same, or run other ops in eager mode, are told where the user asks for it: all ranks the
 * same, every later call again, and nothing waits for ever. */
#include "disagreement.h"

/* ---- Calls that are not the same ---- */

/* The calls below share this scene. */
typedef struct scene {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *w, *y;
    trama_target *t, *merging;
    trama_executable *e;
    trama_watch *watch;
    trama_reading *reading;
    trama_wrapped *host;
    double numbers[16];
} scene;

static const trama_config comparing = {.check_calls = true};

static scene scene_new(void)
{
    scene s = {.mesh = mesh_of("2"), .p = trama_program_create()};
    s.x = trama_shard(trama_input(s.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 4)), s.mesh, "S(0)");
    s.w = trama_parameter(s.p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL);
    s.y = trama_value_rename(trama_matmul(s.x, s.w), "y");
    trama_optimizer sgd = trama_sgd(0.1);
    s.t = trama_target_create(s.p, "t", s.y);
    s.merging = trama_target_create(s.p, "merging", trama_minimize(trama_mean(trama_square(s.y)), &sgd));
    trama_gradient_merge(s.merging, 2, TRAMA_MERGE_AVG);
    s.e = compile(s.p);
    must(trama_watch_create(s.e, 1, &s.watch));
    must(trama_feed(s.e, s.x, s.numbers, TRAMA_SHAPE(4, 4)));
    must(trama_run(s.e, s.t));
    return s;
}

static trama_status do_run(scene *s)
{
    return trama_run(s->e, s->t);
}
static trama_status do_run_merging(scene *s)
{
    return trama_run(s->e, s->merging);
}
static trama_status do_feed(scene *s)
{
    return trama_feed(s->e, s->x, s->numbers, TRAMA_SHAPE(4, 4));
}
static trama_status do_feed_less(scene *s)
{
    return trama_feed(s->e, s->x, s->numbers, TRAMA_SHAPE(3, 4));
}
static trama_status do_read(scene *s)
{
    return trama_read(s->e, s->y, NULL, 0);
}
static trama_status do_read_other(scene *s)
{
    return trama_read(s->e, s->w, NULL, 0);
}
static trama_status do_read_start(scene *s)
{
    return trama_read_start(s->e, s->y, &s->reading);
}
static trama_status do_print(scene *s)
{
    char *words = NULL;
    trama_status status = trama_print(s->e, s->y, 4, &words);
    free(words);
    return status;
}
static trama_status do_watch(scene *s)
{
    bool known;
    return trama_watch_next(s->watch, s->y, NULL, 0, &known);
}
static trama_status do_write(scene *s)
{
    return trama_write(s->e, s->w, s->numbers, sizeof s->numbers);
}
static trama_status do_merge_set(scene *s)
{
    return trama_merge_set(s->e, s->merging, 2);
}
static trama_status do_merge_set_other(scene *s)
{
    return trama_merge_set(s->e, s->merging, 3);
}
static trama_status do_flush(scene *s)
{
    return trama_flush(s->e, s->merging);
}
static trama_status do_compile(scene *s)
{
    trama_executable *e = NULL;
    return trama_compile(ctx, s->p, &e);
}
static trama_status do_eager(scene *s)
{
    trama_program *p = NULL;
    trama_executable *e = NULL;
    return trama_eager(ctx, &p, &e);
}
static trama_status do_wrap(scene *s)
{
    trama_host_box piece = {.data = s->numbers, .extent = {my_rank == 0 ? 4 : 0}, .bytes = sizeof s->numbers};
    return trama_wrap(ctx, "host", TRAMA_F64, TRAMA_SHAPE(4), 1, &piece, TRAMA_READ_WRITE, &s->host);
}
static trama_status do_destroy(scene *s)
{
    return trama_executable_destroy(&s->e);
}

/* Everything that is left says it again, and is freed all the same. */
static void all_say_it_again(scene *s)
{
    trama_status (*const calls[])(scene *) = {do_run,   do_feed,      do_read,  do_read_start, do_print,   do_watch,
                                              do_write, do_merge_set, do_flush, do_wrap,       do_compile, do_eager};
    for (size_t i = 0; i < sizeof calls / sizeof *calls && s->e; i++)
        demand_again(-(int)i, calls[i](s));
    must(trama_watch_destroy(&s->watch));
    if (s->e)
        expect_again(trama_executable_destroy(&s->e));
    demand(!s->e, "the executable stays");
    trama_program_destroy(&s->p);
    trama_mesh_destroy(&s->mesh);
}

START_TEST(calls_that_differ_are_told_with_both_lines)
{
    static const struct {
        trama_status (*all)(scene *), (*other)(scene *);
        const char *zero, *last;
    } cases[] = {
        {do_run, do_read, "trama_run(t #0)", "trama_read(y "},
        {do_run, do_run_merging, "trama_run(t #0)", "trama_run(merging #1)"},
        {do_feed, do_feed_less, "trama_feed(x #0, [4,4])", "trama_feed(x #0, [3,4])"},
        {do_read, do_read_other, "trama_read(y ", "trama_read(w #1)"},
        {do_read, do_read_start, "trama_read(y ", "trama_read_start(y "},
        {do_print, do_watch, "trama_print(y ", "trama_watch_next(y "},
        {do_write, do_flush, "trama_write(w #1)", "trama_flush(merging #1)"},
        {do_merge_set, do_merge_set_other, "trama_merge_set(merging #1, [2])", "trama_merge_set(merging #1, [3])"},
        {do_compile, do_run, "trama_compile()", "trama_run(t #0)"},
        {do_run, do_eager, "trama_run(t #0)", "trama_eager()"},
        {do_wrap, do_run, "trama_wrap('host')", "trama_run(t #0)"},
        {do_destroy, do_run, "trama_executable_destroy()", "trama_run(t #0)"}};
    char other[40];
    start_with(&comparing);
    snprintf(other, sizeof other, ", rank %d trama_", n_ranks - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene s = scene_new();
        expect_told((astray() ? cases[i].other : cases[i].all)(&s), "different calls: rank 0 ", other, cases[i].zero,
                    cases[i].last, "test_mpi_disagree_calls.c:");
        all_say_it_again(&s);
        start_again(&comparing);
    }
    stop();
}
END_TEST

START_TEST(a_rank_that_stops_before_the_others_is_told)
{
    start_with(&comparing);
    trama_program *p = trama_program_create();
    trama_executable *e = NULL;
    trama_target_create(p, "t", trama_relu(trama_input(p, "x", TRAMA_F64, TRAMA_SCALAR)));
    must(trama_compile(ctx, p, &e));
    must(trama_executable_destroy(&e));
    if (astray()) {
        expect(trama_stop(&ctx), TRAMA_E_ORDER, "trama_compile() at ", "trama_stop() after ",
               "test_mpi_disagree_calls.c:");
    } else {
        expect(trama_compile(ctx, p, &e), TRAMA_E_ORDER, "trama_compile() at ", "trama_stop() after ");
        expect(trama_stop(&ctx), TRAMA_E_ORDER, "trama_compile() at ", "trama_stop() after ");
    }
    demand(!ctx, "trama_stop leaves the context");
    trama_program_destroy(&p);
    start();
    stop();
}
END_TEST

/* ---- Eager mode ---- */

typedef trama_value *eager_step(trama_program *p, trama_value *x);

static trama_value *eager_relu(trama_program *p, trama_value *x)
{
    return trama_relu(x);
}
static trama_value *eager_tanh(trama_program *p, trama_value *x)
{
    return trama_tanh(x);
}
static trama_value *eager_half(trama_program *p, trama_value *x)
{
    return trama_scale(x, 0.5);
}
static trama_value *eager_double(trama_program *p, trama_value *x)
{
    return trama_scale(x, 2);
}
static trama_value *eager_one(trama_program *p, trama_value *x)
{
    return trama_add(x, trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 1})));
}
static trama_value *eager_two(trama_program *p, trama_value *x)
{
    return trama_add(x, trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 2})));
}
static trama_value *eager_square(trama_program *p, trama_value *x)
{
    return trama_mul(x, x);
}
static trama_value *eager_other_operand(trama_program *p, trama_value *x)
{
    return trama_mul(x, trama_keep(trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(2), NULL)));
}

START_TEST(eager_ops_that_differ_are_told_with_both_lines)
{
    static const struct {
        eager_step *all, *other;
        const char *zero, *last;
    } cases[] = {{eager_relu, eager_tanh, "= relu(", "= tanh("},
                 {eager_half, eager_double, "factor=0.5)", "factor=2)"},
                 {eager_one, eager_two, "constant #", "constant #"},
                 {eager_square, eager_other_operand, "= mul(", ", s)"}};
    start_with(&comparing);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_program *p = NULL;
        trama_executable *e = NULL;
        double numbers[2] = {1, 2};
        trama_mesh *mesh = mesh_of("2");
        must(trama_eager(ctx, &p, &e));
        trama_value *x = trama_relu(trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(2), numbers, mesh, "S(0)"));
        must(trama_program_status(p));
        trama_value *y = (astray() ? cases[i].other : cases[i].all)(p, x);
        demand(!y || trama_program_status(p), "case %d: no error", (int)i);
        expect_told(trama_program_status(p), cases[i].zero, cases[i].last, "test_mpi_disagree_calls.c:");
        trama_program_clear_error(p);
        trama_relu(x);
        expect_again(trama_program_status(p));
        expect_again(trama_read(e, x, NULL, 0));
        expect_again(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
        start_again(&comparing);
    }
    stop();
}
END_TEST

START_TEST(a_program_is_compared_where_calls_are_not)
{
    trama_executable *e = NULL;
    start();
    scene s = scene_new();
    expect_told(compile_varied(seed, &e), "seed 7", "seed 8");
    all_say_it_again(&s);
    expect_again(trama_stop(&ctx));
}
END_TEST

TESTS(calls_that_differ_are_told_with_both_lines, a_rank_that_stops_before_the_others_is_told,
      eager_ops_that_differ_are_told_with_both_lines, a_program_is_compared_where_calls_are_not)
