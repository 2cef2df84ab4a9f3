/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that do not do the same: what they record is compared when it is compiled, what they call where the user asks
 * for it. All ranks are told the same, every later call says it again, and nothing waits for ever. */
#include "context.h"
#include "harness.h"

/* The last rank does otherwise. */
static bool astray(void)
{
    return my_rank == n_ranks - 1;
}

/* ---- Repeated messages ---- */

static char told[1024];

/* All ranks have the same message, which has all the words. */
static void demand_told(int line, trama_status status, const char *const *words)
{
    char mine[sizeof told] = "", *all = malloc((size_t)n_ranks * sizeof mine);
    demand(status == TRAMA_E_ORDER, "line %d: status %d: %s", line, (int)status, trama_error());
    snprintf(told, sizeof told, "%s", trama_error());
    snprintf(mine, sizeof mine, "%s", told);
    must(context_gather(ctx, "told", mine, sizeof mine, all));
    for (int r = 0; r < n_ranks; r++)
        demand(!strcmp(all + (size_t)r * sizeof mine, mine), "line %d: \"%s\", but rank %d has \"%s\"", line, mine, r,
               all + (size_t)r * sizeof mine);
    for (; *words; words++)
        demand(strstr(mine, *words), "line %d: \"%s\" does not say \"%s\"", line, mine, *words);
    free(all);
}
#define expect_told(call, ...) demand_told(__LINE__, call, (const char *const[]){__VA_ARGS__, NULL})

static void demand_again(int line, trama_status status)
{
    demand(status == TRAMA_E_ORDER && !strcmp(trama_error(), told), "line %d: status %d, \"%s\" instead of \"%s\"",
           line, (int)status, trama_error(), told);
}
#define expect_again(call) demand_again(__LINE__, call)

/* Ends it all, and begins anew. */
static void start_again(const trama_config *config)
{
    expect_again(trama_stop(&ctx));
    demand(!ctx, "trama_stop leaves the context");
    start_with(config);
}

/* ---- Programs that are not the same ---- */

/* Adds one thing to a program, on the last rank another one; the loss is what is trained. */
typedef trama_value *variation(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other);

static trama_value *parameter(trama_program *p, const char *name, trama_init init)
{
    return trama_parameter(p, name, TRAMA_F64, TRAMA_SHAPE(4, 4), &init);
}

static trama_value *range(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x,
                        parameter(p, "w", (trama_init){.low = -1, .high = other ? 1.0000000000000002 : 1, .seed = 7}));
}

static trama_value *seed(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, parameter(p, "w", (trama_init){.low = -1, .high = 1, .seed = other ? 8 : 7}));
}

static trama_value *stream(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, parameter(p, "w", (trama_init){.low = -1, .high = 1, .stream = other}));
}

static trama_value *first_number(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, parameter(p, "w", (trama_init){.low = 2 + other, .high = 2 + other}));
}

static trama_value *content(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    double numbers[4][4] = {{0}};
    numbers[3][3] = other ? 1e-300 : 0;
    return trama_matmul(x, trama_constant(p, TRAMA_F64, TRAMA_SHAPE(4, 4), numbers));
}

static trama_value *attribute(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_scale(x, other ? 0.25 : 0.5);
}

static trama_value *permutation(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_value *cube = parameter(p, "w", (trama_init){.high = 1});
    cube = trama_reshape(trama_mul(x, cube), TRAMA_SHAPE(1, 2, 2, 4));
    const int as_it_is[] = {0, 1, 2, 3}, turned[] = {0, 2, 1, 3};
    return trama_transpose(cube, other ? turned : as_it_is);
}

static trama_value *random_seed(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_value *noise = trama_uniform_fixed(p, TRAMA_F64, TRAMA_SHAPE(4, 4), 0, 1, other ? 3 : 2, 1, 0);
    return trama_mul(x, noise);
}

static trama_value *annotation(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_shard(trama_relu(x), mesh, other ? "S(1)" : "S(0)");
}

static trama_value *fixed(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_shard_op(trama_relu(x), mesh, other ? "S(1)" : "S(0)", NULL);
}

static trama_value *order(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    const int up[] = {0, 1}, down[] = {1, 0};
    must(trama_order(p, 2, other ? down : up));
    return trama_relu(x);
}

static trama_value *kind_of_op(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return other ? trama_relu(x) : trama_tanh(x);
}

static trama_value *trainable(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return trama_matmul(x, other ? trama_state(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL)
                                 : trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL));
}

static trama_value *longer(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_value *y = trama_relu(x);
    if (other)
        trama_tanh(y);
    return y;
}

static double constant_factor(int64_t n, const double *numbers)
{
    return numbers[0];
}

static double other_factor(int64_t n, const double *numbers)
{
    return numbers[0] + 0 * (double)n;
}

static trama_value *minimized(trama_program *p, trama_value *x, trama_schedule schedule)
{
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(4, 4), NULL);
    trama_optimizer sgd = trama_sgd(0.1);
    sgd.schedule = schedule;
    return trama_minimize(trama_mean(trama_square(trama_matmul(x, w))), &sgd);
}

static trama_value *numbers_of_schedule(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return minimized(p, x, (trama_schedule){.factor = constant_factor, .numbers = {1, other}});
}

static trama_value *merged(trama_program *p, trama_value *x, int64_t k, unsigned how)
{
    trama_value *effect = minimized(p, x, trama_schedule_constant(0));
    trama_gradient_merge(trama_target_create(p, "merging", effect), k, how);
    return trama_relu(x);
}

static trama_value *merge_length(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return merged(p, x, other ? 3 : 2, TRAMA_MERGE_AVG);
}

static trama_value *merge_kind(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    return merged(p, x, 2, other ? TRAMA_MERGE_AVG | TRAMA_MERGE_SYNC_EACH : TRAMA_MERGE_AVG);
}

static trama_status nothing(const trama_call *call)
{
    return TRAMA_OK;
}

static const trama_op *own;
static trama_value *own_rule(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    trama_op_definition d = {
        .name = "mine", .n_in = 1, .n_out = 1, .rule = other ? "[i]j->[i]j" : "ij->ij", .cpu = nothing};
    must(trama_op_define(&d, &own));
    return trama_apply(own, 1, &x, NULL);
}

/* As all ranks have it, but at another line and with another callback: the same program. */
static trama_value *only_addresses(trama_program *p, const trama_mesh *mesh, trama_value *x, bool other)
{
    if (other)
        return minimized(p, x, (trama_schedule){.factor = other_factor, .numbers = {1}});
    return minimized(p, x, (trama_schedule){.factor = constant_factor, .numbers = {1}});
}

/* Compiles the program, in which the last rank has its variation. */
static trama_status compile_varied(variation *vary, trama_executable **e)
{
    trama_mesh *mesh = mesh_of("2");
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 4));
    trama_target_create(p, "t", vary(p, mesh, x, astray()));
    demand(!trama_program_status(p), "recording: %s", trama_program_error(p));
    trama_status status = trama_compile(ctx, p, e);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&own);
    return status;
}

START_TEST(programs_that_differ_in_anything_are_refused_with_both_lines)
{
    static const struct {
        variation *vary;
        const char *zero, *other; /* as rank 0 and the last rank have it */
    } cases[] = {{range, "from -1 to 1, seed 7", "from -1 to 1.0000000000000002, seed 7"},
                 {seed, "seed 7", "seed 8"},
                 {stream, "stream 0", "stream 1"},
                 {first_number, "parameter of 2", "parameter of 3"},
                 {content, "f64[4,4] = constant #", "f64[4,4] = constant #"},
                 {attribute, "factor=0.5", "factor=0.25"},
                 {permutation, "perm=[0,1,2,3]", "perm=[0,2,1,3]"},
                 {random_seed, "seed=2", "seed=3"},
                 {annotation, "as S(0)", "as S(1)"},
                 {fixed, "fixed on 2 as S(0)", "fixed on 2 as S(1)"},
                 {order, "order 0,1", "order 1,0"},
                 {kind_of_op, "tanh(x)", "relu(x)"},
                 {trainable, "w f64[4,4] = parameter", "w f64[4,4] = state"},
                 {longer, "target t: relu", "= tanh(relu"},
                 {numbers_of_schedule, "numbers=[1]", "numbers=[1,1]"},
                 {merge_length, "over 2 micro-steps", "over 3 micro-steps"},
                 {merge_kind, "micro-steps", "each summed over the mesh"},
                 {own_rule, "by \"ij->ij\"", "by \"[i]j->[i]j\""}};
    char other[40];
    start();
    snprintf(other, sizeof other, " Rank %d at ", n_ranks - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trama_executable *e = NULL;
        expect_told(compile_varied(cases[i].vary, &e), "different programs. Rank 0 at ", other, cases[i].zero,
                    cases[i].other, "test_mpi_disagree.c:");
        demand(!e, "an executable in spite of the error");
        start_again(NULL);
    }
    stop();
}
END_TEST

START_TEST(addresses_and_lines_make_no_difference)
{
    trama_executable *e = NULL;
    start();
    must(compile_varied(only_addresses, &e));
    must(trama_executable_destroy(&e));
    stop();
}
END_TEST

START_TEST(a_mistake_of_one_rank_is_told_to_all)
{
    start();
    trama_program *p = trama_program_create();
    trama_executable *e = NULL;
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(4, 4));
    trama_target_create(p, "t", trama_relu(x));
    if (astray())
        trama_matmul(x, trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(5, 4)));
    expect(trama_compile(ctx, p, &e), TRAMA_E_SHAPE, "matmul", "test_mpi_disagree.c:");
    demand(!e, "an executable in spite of the error");
    trama_program_destroy(&p);
    stop(); /* which finds nothing wrong: they make the same calls */
}
END_TEST

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
                    cases[i].last, "test_mpi_disagree.c:");
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
        expect(trama_stop(&ctx), TRAMA_E_ORDER, "trama_compile() at ", "trama_stop() after ", "test_mpi_disagree.c:");
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
        expect_told(trama_program_status(p), cases[i].zero, cases[i].last, "test_mpi_disagree.c:");
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

TESTS(programs_that_differ_in_anything_are_refused_with_both_lines, addresses_and_lines_make_no_difference,
      a_mistake_of_one_rank_is_told_to_all, calls_that_differ_are_told_with_both_lines,
      a_rank_that_stops_before_the_others_is_told, eager_ops_that_differ_are_told_with_both_lines,
      a_program_is_compared_where_calls_are_not)
