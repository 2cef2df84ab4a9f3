/* SPDX-License-Identifier: Apache-2.0 */
/* What goes in and what comes out: feeding, reading, writing, printing, asking, with one rank and several processes. */
#include "network.h"
#include "pieces.h"

static const int four[] = {0, 1, 2, 3, -1};

static const struct {
    trama_dtype dtype;
    const char *name;
} dtypes[] = {{TRAMA_F32, "f32"}, {TRAMA_F64, "f64"}, {TRAMA_I32, "i32"}, {TRAMA_I64, "i64"}, {TRAMA_U8, "u8"}};

static trama_mesh *mesh_of(const char *spec)
{
    trama_mesh *mesh = trama_mesh_parse(spec);
    demand(mesh, "mesh %s: %s", spec, trama_error());
    return mesh;
}

/* i -> 3 i + 1, which fits u8 for fewer than 85 elements. */
static void fill_numbers(void *data, trama_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        set_number(data, dtype, i, (double)(3 * i + 1));
}

/* ---- Every dtype, shape and layout ---- */

typedef struct shape_case {
    trama_shape shape;
    const char *layouts[5]; /* on dp=2,mp=2 */
} shape_case;

static void read_back(const shape_case *c, const char *layout, trama_dtype dtype)
{
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_new();
    trama_value *x = trama_shard(trama_input(p, "x", dtype, c->shape), mesh, layout);
    trama_value *twice = trama_add(x, x), *wide = trama_cast(x, TRAMA_F64);
    trama_target *t = trama_target_new(p, "t", twice, wide);
    trama_executable *e = compile(p);
    int64_t n = trama_shape_count(c->shape);
    size_t bytes = (size_t)n * trama_dtype_size(dtype);
    void *data = malloc(bytes + 1), *read = malloc(bytes + 1);
    double *cast = malloc((size_t)n * sizeof *cast + 1);
    trama_layout l;
    must(trama_layout_parse(mesh, c->shape.ndim, layout, &l));
    fill_numbers(data, dtype, n);
    must(trama_feed(e, x, data, c->shape));
    memset(read, 0xee, bytes);
    must(trama_read(e, x, read, bytes));
    demand(!memcmp(read, data, bytes), "%s %s: what is fed is not what is read", trama_dtype_name(dtype), layout);
    demand_local(e, x, mesh, &l, c->shape, dtype, data, four);
    must(trama_run(e, t));
    must(trama_read(e, twice, read, bytes));
    must(trama_read(e, wide, cast, (size_t)n * sizeof *cast));
    for (int64_t i = 0; i < n; i++) {
        double in = number_at(data, dtype, i), sum = dtype == TRAMA_U8 ? fmod(2 * in, 256) : 2 * in;
        demand(number_at(read, dtype, i) == sum, "%s %s: x + x of element %" PRId64 " is %g", trama_dtype_name(dtype),
               layout, i, number_at(read, dtype, i));
        demand(cast[i] == in, "%s %s: element %" PRId64 " cast is %g", trama_dtype_name(dtype), layout, i, cast[i]);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    free(data);
    free(read);
    free(cast);
}

START_TEST(every_dtype_shape_and_layout_reads_back)
{
    const shape_case cases[] = {
        {TRAMA_SCALAR, {"R,R"}},
        {TRAMA_SHAPE(1), {"R,R", "S(0),R", "S(0),S(0)", "R,S(0)"}},
        {TRAMA_SHAPE(3), {"R,R", "S(0),R", "S(0),S(0)", "S(0)[1],S(0)[0]"}},
        {TRAMA_SHAPE(7, 5), {"R,R", "S(0),S(1)", "S(1),S(0)", "S(1)[1],S(1)[0]", "R,S(0)"}},
        {TRAMA_SHAPE(2, 3, 5), {"S(2),S(0)", "S(1),R", "S(1),S(1)"}},
        {TRAMA_SHAPE(0), {"R,R", "S(0),R", "S(0),S(0)"}},
        {TRAMA_SHAPE(4, 0, 3), {"R,R", "S(0),S(1)", "S(1),S(2)"}},
    };
    start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 5 && cases[i].layouts[k]; k++)
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                read_back(&cases[i], cases[i].layouts[k], dtypes[d].dtype);
    stop();
}
END_TEST

/* A host array is the value, whatever its layout: of a new P(sum) one process holds it and the others nothing. */
static void partial_inputs(const char *layout)
{
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_new();
    double data[6] = {1, -2, 3, -4, 5, -6}, read[6];
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(2, 3)), mesh, layout);
    trama_value *c = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 3), data), mesh, layout);
    trama_target *t = trama_target_new(p, "t", trama_reshard(x, mesh, "R,S(1)"), trama_relu(c), c);
    trama_executable *e = compile(p);
    must(trama_feed(e, x, data, TRAMA_SHAPE(2, 3)));
    must(trama_read(e, x, read, sizeof read));
    demand(!memcmp(read, data, sizeof data), "%s: the input reads back as %g instead of %g", layout, read[0], data[0]);
    must(trama_run(e, t));
    must(trama_read(e, c, read, sizeof read));
    demand(!memcmp(read, data, sizeof data), "%s: the constant reads back as %g instead of %g", layout, read[0], data[0]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(what_the_host_gives_is_the_value_in_partial_layouts_too)
{
    static const char *const layouts[] = {"P(max),R", "P(avg),R", "P(min),S(0)", "P(sum),R", "S(1),P(sum)", "P(sum),P(sum)",
                                          "P(avg),P(sum)"};
    start();
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        partial_inputs(layouts[i]);
    stop();
}
END_TEST

START_TEST(numbers_that_are_none_come_through)
{
    start();
    trama_mesh *mesh = mesh_of("3");
    trama_program *p = trama_program_new();
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY)), mesh, "S(0)");
    trama_value *y = trama_neg(x);
    trama_target *t = trama_target_new(p, "t", y);
    trama_executable *e = compile(p);
    float in[5] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-42f}, out[5];
    must(trama_feed(e, x, in, TRAMA_SHAPE(5)));
    must(trama_run(e, t));
    must(trama_read(e, x, out, sizeof out));
    demand(!memcmp(in, out, sizeof in), "bits of what is fed change");
    must(trama_read(e, y, out, sizeof out));
    demand(isnan(out[0]) && out[1] == -INFINITY && out[2] == INFINITY && !signbit(out[3]) && out[4] == -1e-42f,
           "neg of what is no number");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

/* ---- Order ---- */

/* A counter: each run adds what is fed to the state. */
typedef struct counter {
    trama_mesh *mesh;
    trama_program *p;
    trama_value *x, *s, *next;
    trama_target *run;
    trama_executable *e;
} counter;

static counter counter_new(const char *layout)
{
    counter c = {.mesh = mesh_of("2"), .p = trama_program_new()};
    c.x = trama_shard(trama_input(c.p, "x", TRAMA_F64, TRAMA_SHAPE(5)), c.mesh, layout);
    c.s = trama_shard(trama_state(c.p, "s", TRAMA_F64, TRAMA_SHAPE(5), NULL), c.mesh, layout);
    c.next = trama_add(c.s, c.x);
    c.run = trama_target_new(c.p, "run", trama_assign(c.s, c.next), c.next);
    c.e = compile(c.p);
    return c;
}

static void counter_free(counter *c)
{
    must(trama_executable_destroy(&c->e));
    trama_program_destroy(&c->p);
    trama_mesh_destroy(&c->mesh);
}

static void counter_feed(counter *c, double x)
{
    must(trama_feed(c->e, c->x, ((double[]){x, x, x, x, x}), TRAMA_SHAPE(5)));
}

static void demand_all(const double *at, double wanted, const char *what)
{
    for (int i = 0; i < 5; i++)
        demand(at[i] == wanted, "%s: element %d is %g instead of %g", what, i, at[i], wanted);
}

START_TEST(a_reading_is_of_its_place_in_the_program)
{
    start();
    counter c = counter_new("S(0)");
    enum { RUNS = 40 };
    trama_reading *state[RUNS], *input[RUNS], *next[RUNS];
    double at[5];
    for (int i = 0; i < RUNS; i++) {
        counter_feed(&c, i);
        must(trama_read_start(c.e, c.x, &input[i]));
        must(trama_run(c.e, c.run));
        must(trama_read_start(c.e, c.s, &state[i]));
        must(trama_read_start(c.e, c.next, &next[i]));
    }
    for (int i = RUNS - 1; i >= 0; i--) { /* in any order of waits */
        must(trama_read_wait(&state[i], at, sizeof at));
        demand(!state[i], "the reading is not taken away");
        demand_all(at, i * (i + 1) / 2, "state");
    }
    for (int i = 0; i < RUNS; i++) {
        must(trama_read_wait(&input[i], at, sizeof at));
        demand_all(at, i, "input");
        must(trama_read_wait(&next[i], i % 2 ? NULL : at, i % 2 ? 0 : sizeof at));
        if (i % 2 == 0)
            demand_all(at, i * (i + 1) / 2, "next");
    }
    counter_free(&c);
    stop();
}
END_TEST

START_TEST(a_write_falls_between_the_runs_around_it)
{
    static const char *const layouts[] = {"R", "S(0)"};
    start();
    for (int l = 0; l < 2; l++) {
        counter c = counter_new(layouts[l]);
        trama_reading *before, *after;
        double at[5] = {100, 100, 100, 100, 100};
        counter_feed(&c, 1);
        for (int i = 0; i < 20; i++)
            must(trama_run(c.e, c.run));
        must(trama_read_start(c.e, c.s, &before));
        must(trama_write(c.e, c.s, at, sizeof at));
        must(trama_read_start(c.e, c.s, &after));
        must(trama_run(c.e, c.run));
        must(trama_read_wait(&before, at, sizeof at));
        demand_all(at, 20, "before the write");
        must(trama_read_wait(&after, at, sizeof at));
        demand_all(at, 100, "after the write");
        must(trama_read(c.e, c.s, at, sizeof at));
        demand_all(at, 101, "after the run");
        counter_free(&c);
    }
    stop();
}
END_TEST

START_TEST(a_feed_does_not_reach_runs_before_it)
{
    for (int window = 1; window <= 4; window++) {
        start_with(&(trama_config){.window = window});
        counter c = counter_new("S(0)");
        double at[5], wanted = 0;
        for (int i = 0; i < 100; i++) {
            counter_feed(&c, 1000);
            counter_feed(&c, i); /* the last one counts */
            must(trama_run(c.e, c.run));
            wanted += i;
            if (i % 3 == 0) {
                must(trama_run(c.e, c.run)); /* the same again */
                wanted += i;
            }
        }
        must(trama_read(c.e, c.s, at, sizeof at));
        demand_all(at, wanted, "sum of what was fed");
        counter_free(&c);
        stop();
    }
}
END_TEST

START_TEST(a_reading_tells_when_it_is_ready)
{
    start();
    counter c = counter_new("S(0)");
    trama_reading *r;
    double at[5];
    counter_feed(&c, 1);
    must(trama_run(c.e, c.run));
    must(trama_read_start(c.e, c.s, &r));
    double begin = seconds();
    while (!trama_read_ready(r) && seconds() - begin < 60)
        usleep(1000);
    demand(trama_read_ready(r), "the reading never gets ready by itself");
    must(trama_read_wait(&r, at, sizeof at));
    demand_all(at, 1, "state");
    demand(!trama_read_ready(NULL), "no reading is ready");
    counter_free(&c);
    stop();
}
END_TEST

/* ---- What lives how long ---- */

START_TEST(values_of_a_target_live_until_it_runs_again)
{
    start();
    network net = network_new("dp=2,mp=2", TRAMA_F64, false, 3, small_sizes);
    plain_net plain = plain_new(3, small_sizes, SEED);
    net.e = compile(net.program);
    samples first = samples_new(&net, 6, 0), second = samples_new(&net, 4, 1), third = samples_new(&net, 6, 2);
    double logits[60], again[60];
    network_feed(&net, &first);
    must(trama_run(net.e, net.eval));
    must(trama_read(net.e, net.logits, logits, sizeof logits));
    double loss = network_loss(&net), wanted = plain_step(&plain, 6, first.x, first.y, false, net.lr);
    demand(relative(loss, wanted) < 1e-12, "eval computes the loss %.17g instead of %.17g", loss, wanted);
    must(trama_run(net.e, net.train));
    network_feed(&net, &second);
    must(trama_run(net.e, net.train));
    must(trama_read(net.e, net.logits, again, sizeof again)); /* of eval, which did not run again */
    demand(!memcmp(logits, again, sizeof again), "the logits changed without a run of their target");
    trama_shape shape;
    must(trama_extents(net.e, net.logits, &shape));
    demand(trama_shape_equal(shape, TRAMA_SHAPE(6, 10)), "extents of the logits");
    must(trama_extents(net.e, net.x, &shape));
    demand(trama_shape_equal(shape, TRAMA_SHAPE(4, 20)), "extents of x as last fed");
    plain_step(&plain, 4, second.x, second.y, false, net.lr);
    network_feed(&net, &third);
    must(trama_run(net.e, net.eval));
    loss = network_loss(&net);
    wanted = plain_gradients(&plain, 6, third.x, third.y);
    demand(relative(loss, wanted) < 1e-12, "eval of trained parameters is %.17g instead of %.17g", loss, wanted);
    samples_free(&first);
    samples_free(&second);
    samples_free(&third);
    plain_free(&plain);
    network_free(&net);
    stop();
}
END_TEST

START_TEST(a_value_of_two_targets_is_that_of_the_last_run)
{
    start();
    trama_program *p = trama_program_new();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SCALAR), *y = trama_square(x), *z = trama_neg(y);
    trama_target *a = trama_target_new(p, "a", y), *b = trama_target_new(p, "b", y, z);
    trama_executable *e = compile(p);
    for (int i = 1; i <= 8; i++) {
        double in = i, out;
        must(trama_feed(e, x, &in, TRAMA_SCALAR));
        must(trama_run(e, i % 2 ? a : b));
        must(trama_read(e, y, &out, sizeof out));
        demand(out == i * i, "run %d of two targets in turn: y is %g", i, out);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* y = 2 x over fed extents; more of them than any cache keeps. */
typedef struct doubler {
    trama_program *p;
    trama_value *x, *y;
    trama_target *t;
    trama_executable *e;
} doubler;

static doubler doubler_new(void)
{
    doubler d = {.p = trama_program_new()};
    d.x = trama_input(d.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY));
    d.y = trama_add(d.x, d.x);
    d.t = trama_target_new(d.p, "t", d.y);
    d.e = compile(d.p);
    return d;
}

static void doubler_free(doubler *d)
{
    must(trama_executable_destroy(&d->e));
    trama_program_destroy(&d->p);
}

static void doubler_feed(doubler *d, int n)
{
    double in[64];
    for (int i = 0; i < n; i++)
        in[i] = n + i;
    must(trama_feed(d->e, d->x, in, TRAMA_SHAPE(n)));
}

static void demand_doubled(const double *at, int n)
{
    for (int i = 0; i < n; i++)
        demand(at[i] == 2 * (n + i), "element %d of %d is %g", i, n, at[i]);
}

START_TEST(feeding_many_extents_leaves_the_values_of_the_last_run)
{
    start();
    doubler d = doubler_new();
    double at[64];
    doubler_feed(&d, 5);
    must(trama_run(d.e, d.t));
    for (int n = 10; n < 50; n++)
        doubler_feed(&d, n);
    must(trama_read(d.e, d.y, at, 5 * sizeof *at));
    demand_doubled(at, 5);
    must(trama_run(d.e, d.t));
    must(trama_read(d.e, d.y, at, 49 * sizeof *at));
    demand_doubled(at, 49);
    doubler_free(&d);
    stop();
}
END_TEST

START_TEST(readings_outlive_the_plans_of_many_extents)
{
    start();
    doubler d = doubler_new();
    trama_reading *y[40], *x[40];
    double at[64];
    for (int n = 1; n < 40; n++) {
        doubler_feed(&d, n);
        must(trama_run(d.e, d.t));
        must(trama_read_start(d.e, d.x, &x[n]));
        must(trama_read_start(d.e, d.y, &y[n]));
    }
    for (int n = 1; n < 40; n++) {
        must(trama_read_wait(&y[n], at, (size_t)n * sizeof *at));
        demand_doubled(at, n);
        must(trama_read_wait(&x[n], at, (size_t)n * sizeof *at));
        for (int i = 0; i < n; i++)
            demand(at[i] == n + i, "x of %d elements", n);
    }
    doubler_free(&d);
    stop();
}
END_TEST

START_TEST(asking_for_plans_of_many_extents_leaves_the_values_of_the_last_run)
{
    start();
    doubler d = doubler_new();
    double at[64];
    doubler_feed(&d, 5);
    must(trama_run(d.e, d.t));
    for (int n = 20; n < 34; n++) {
        char *words;
        trama_traffic traffic;
        doubler_feed(&d, n);
        must(trama_plan_text(d.e, d.t, true, &words));
        demand(strstr(words, "add"), "a plan without its op:\n%s", words);
        free(words);
        must(trama_target_traffic(d.e, d.t, &traffic));
        demand(traffic.steps >= 1 && !traffic.messages && !traffic.bytes_received, "traffic of one rank");
    }
    must(trama_read(d.e, d.y, at, 5 * sizeof *at));
    demand_doubled(at, 5);
    doubler_free(&d);
    stop();
}
END_TEST

/* ---- Pieces ---- */

START_TEST(boxes_are_fed_and_read_as_the_layout_cuts_them)
{
    static const char *const layouts[] = {"S(0),S(1)", "S(1),S(0)", "S(1)[1],S(1)[0]", "R,S(0)", "R,R"};
    start();
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        trama_mesh *mesh = mesh_of("dp=2,mp=2");
        trama_program *p = trama_program_new();
        trama_value *x = trama_shard(trama_input(p, "x", TRAMA_I32, TRAMA_SHAPE(TRAMA_ANY, 5)), mesh, layouts[k]);
        trama_value *y = trama_neg(x);
        trama_target *t = trama_target_new(p, "t", y);
        trama_executable *e = compile(p);
        int32_t data[35], read[35], blocks[4][35];
        const void *pieces[4];
        trama_shape shape = TRAMA_SHAPE(7, 5);
        int n;
        fill_numbers(data, TRAMA_I32, 35);
        must(trama_feed(e, x, (int32_t[35]){0}, shape)); /* tells the boxes */
        must(trama_local_count(e, x, &n));
        for (int i = 0; i < n; i++) {
            piece b;
            must(trama_local_box(e, x, i, b.lo, b.n));
            for (int64_t j = 0; j < piece_count(&b, 2); j++)
                blocks[i][j] = data[piece_element(&b, shape, j)];
            pieces[i] = blocks[i];
        }
        must(trama_feed_local(e, x, shape, n, pieces));
        memset(blocks, 0, sizeof blocks); /* it was copied */
        must(trama_run(e, t));
        must(trama_read(e, x, read, sizeof read));
        demand(!memcmp(read, data, sizeof data), "%s: boxes make another whole", layouts[k]);
        must(trama_read(e, y, read, sizeof read));
        for (int i = 0; i < 35; i++)
            demand(read[i] == -data[i], "%s: element %d of neg", layouts[k], i);
        trama_layout l;
        char *layout;
        must(trama_layout_of(e, y, &layout));
        must(trama_layout_parse(mesh, 2, layout, &l));
        demand_local(e, y, mesh, &l, shape, TRAMA_I32, read, four);
        free(layout);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

START_TEST(a_local_box_of_a_partial_value_is_one_term)
{
    start();
    trama_mesh *mesh = mesh_of("2");
    trama_program *p = trama_program_new();
    double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, term[2][4], whole[4]; /* semantics.md, "Values" */
    trama_value *x = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 2), a), mesh, "S(1)");
    trama_value *y = trama_shard(trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2, 2), b), mesh, "S(0)");
    trama_value *z = trama_shard(trama_matmul(x, y), mesh, "P(sum)");
    trama_target *t = trama_target_new(p, "t", z, trama_relu(z));
    trama_executable *e = compile(p);
    int n;
    must(trama_run(e, t));
    must(trama_local_count(e, z, &n));
    demand(n == 2, "%d terms in one rank", n);
    for (int i = 0; i < 2; i++)
        must(trama_read_local(e, z, i, term[i], sizeof term[i]));
    static const double first[] = {5, 6, 15, 18}, second[] = {14, 16, 28, 32}, sum[] = {19, 22, 43, 50};
    bool swapped = term[0][0] != 5;
    demand(!memcmp(term[swapped], first, sizeof first) && !memcmp(term[!swapped], second, sizeof second),
           "terms [%g..] and [%g..]", term[0][0], term[1][0]);
    must(trama_read(e, z, whole, sizeof whole));
    demand(!memcmp(whole, sum, sizeof sum), "the product is [[%g,%g],[%g,%g]]", whole[0], whole[1], whole[2], whole[3]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

START_TEST(state_is_written_in_every_layout)
{
    static const char *const layouts[] = {"R,R", "S(0),R", "S(0),S(1)", "S(1),S(1)"};
    start();
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            trama_mesh *mesh = mesh_of("dp=2,mp=2");
            trama_program *p = trama_program_new();
            trama_dtype dtype = dtypes[d].dtype;
            trama_value *s = trama_shard(trama_state(p, "s", dtype, TRAMA_SHAPE(3, 7), NULL), mesh, layouts[k]);
            trama_target *t = trama_target_new(p, "t", trama_assign(s, trama_add(s, s)));
            trama_executable *e = compile(p);
            int64_t data[21], read[21]; /* room for any dtype */
            size_t bytes = 21 * trama_dtype_size(dtype);
            memset(data, 0, sizeof data);
            must(trama_read(e, s, read, bytes));
            demand(!memcmp(read, data, bytes), "state does not start as zeros");
            fill_numbers(data, dtype, 21);
            must(trama_write(e, s, data, bytes));
            must(trama_read(e, s, read, bytes));
            demand(!memcmp(read, data, bytes), "%s %s: what is written is not read", layouts[k], dtypes[d].name);
            must(trama_run(e, t));
            must(trama_read(e, s, read, bytes));
            for (int i = 0; i < 21; i++)
                demand(number_at(read, dtype, i) == 2 * number_at(data, dtype, i), "%s %s: doubled", layouts[k],
                       dtypes[d].name);
            must(trama_executable_destroy(&e));
            trama_program_destroy(&p);
            trama_mesh_destroy(&mesh);
        }
    stop();
}
END_TEST

/* ---- Text ---- */

START_TEST(printing_shows_shape_layout_and_numbers)
{
    start();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_new();
    float data[6] = {1, 2.5f, -3, 4, 5, 6};
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(2, 3)), mesh, "S(1),R");
    trama_init seven = {7, 7, 0, 0};
    trama_value *s = trama_state(p, "flag", TRAMA_U8, TRAMA_SCALAR, &seven);
    trama_value *none = trama_state(p, "none", TRAMA_I32, TRAMA_SHAPE(2, 0), NULL);
    trama_target_new(p, "t", trama_sum(x), s, none);
    trama_executable *e = compile(p);
    char *words = NULL;
    must(trama_feed(e, x, data, TRAMA_SHAPE(2, 3)));
    must(trama_print(e, x, 100, &words));
    ck_assert_str_eq(words, "x f32[2,3] as S(1),R\n[[1 2.5 -3]\n[4 5 6]]\n");
    free(words);
    must(trama_print(e, x, 2, &words));
    ck_assert_str_eq(words, "x f32[2,3] as S(1),R\n[[1 2.5 ...\n");
    free(words);
    must(trama_print(e, s, 1, &words));
    ck_assert_str_eq(words, "flag u8[] as R\n7\n");
    free(words);
    must(trama_print(e, none, 1, &words));
    ck_assert_ptr_nonnull(strstr(words, "none i32[2,0] as R"));
    free(words);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

START_TEST(completion_and_plans_can_be_looked_at)
{
    start();
    network net = network_new("dp=2,mp=2", TRAMA_F32, false, 3, small_sizes);
    static const char *const w[] = {"R,S(1)", "R,S(0)", "R,R"}, *const b[] = {"R,S(0)", "R,R", "R,R"};
    net.e = compile(net.program);
    char *words;
    for (int l = 0; l < 3; l++) {
        must(trama_layout_of(net.e, net.w[l], &words));
        ck_assert_str_eq(words, w[l]);
        free(words);
        must(trama_layout_of(net.e, net.b[l], &words));
        ck_assert_str_eq(words, b[l]);
        free(words);
    }
    must(trama_layout_of(net.e, net.logits, &words));
    ck_assert_str_eq(words, "S(0),R");
    free(words);
    samples s = samples_new(&net, 6, 0);
    network_feed(&net, &s);
    must(trama_plan_text(net.e, net.train, false, &words)); /* before any run */
    ck_assert_ptr_nonnull(strstr(words, "rank 0: "));
    ck_assert_ptr_nonnull(strstr(words, "receives 0 B, sends 0 B, in 0 messages"));
    free(words);
    must(trama_plan_text(net.e, net.train, true, &words));
    ck_assert_ptr_nonnull(strstr(words, "matmul"));
    ck_assert_ptr_nonnull(strstr(words, "sgd"));
    int lines = 0;
    for (char *c = words; *c; c++)
        lines += *c == '\n';
    free(words);
    trama_traffic traffic;
    must(trama_target_traffic(net.e, net.train, &traffic));
    ck_assert_int_eq(traffic.steps, lines);
    ck_assert_int_eq(traffic.tasks, lines);
    ck_assert_int_eq(traffic.bytes_received, 0);
    ck_assert_int_eq(traffic.bytes_sent, 0);
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

/* ---- Values are values ---- */

/* A target's own value of an input or a state stays when that is fed, written or updated. */
START_TEST(values_of_a_target_do_not_follow_their_operands)
{
    static const char *const layouts[][2] = {{"S(0)", "S(0)"}, {"R", "R"}, {"R", "S(0)"}, {"S(0)", "R"}};
    start();
    for (int i = 0; i < 4; i++) {
        trama_mesh *mesh = mesh_of("2");
        trama_program *p = trama_program_new();
        trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(5)), mesh, layouts[i][0]);
        trama_value *s = trama_shard(trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(5), NULL), mesh, layouts[i][0]);
        trama_value *of_x = trama_reshard(x, mesh, layouts[i][1]), *of_s = trama_stop_gradient(s);
        trama_value *also = trama_reshard(s, mesh, layouts[i][1]);
        trama_target *t = trama_target_new(p, "t", trama_assign(s, trama_add(s, x)), of_x, of_s, also);
        trama_executable *e = compile(p);
        double at[5] = {3, 3, 3, 3, 3}, ten[5] = {10, 10, 10, 10, 10};
        for (int run = 0; run < 3; run++) {
            must(trama_feed(e, x, at, TRAMA_SHAPE(5)));
            must(trama_run(e, t));
            for (int again = 0; again < 3; again++)
                must(trama_feed(e, x, ten, TRAMA_SHAPE(5)));
            must(trama_read(e, of_s, at, sizeof at));
            demand_all(at, run ? 10 : 0, "the state before its update");
            must(trama_read(e, s, at, sizeof at));
            demand_all(at, run ? 13 : 3, "the state after its update");
            must(trama_write(e, s, ten, sizeof ten));
            must(trama_read(e, of_s, at, sizeof at));
            demand_all(at, run ? 10 : 0, "the state before its update, after a write");
            must(trama_read(e, also, at, sizeof at));
            demand_all(at, run ? 10 : 0, "the state before its update, in another layout");
            must(trama_read(e, of_x, at, sizeof at));
            demand_all(at, 3, "the input of the run");
        }
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

/* States take their values at the end of a run: two that take each other's swap. */
START_TEST(states_take_their_values_at_the_end_of_a_run)
{
    static const char *const layouts[] = {"R", "S(0)"};
    start();
    for (int i = 0; i < 16; i++) {
        trama_mesh *mesh = mesh_of("2");
        trama_program *p = trama_program_new();
        trama_init one = {1, 1, 0, 0}, two = {2, 2, 0, 0};
        trama_value *a = trama_state(p, "a", TRAMA_F64, TRAMA_SHAPE(5), &one);
        trama_value *b = trama_state(p, "b", TRAMA_F64, TRAMA_SHAPE(5), &two);
        trama_value *c = trama_state(p, "c", TRAMA_F64, TRAMA_SHAPE(5), NULL);
        trama_shard(a, mesh, layouts[i & 1]);
        trama_shard(b, mesh, layouts[i >> 1 & 1]);
        trama_shard(c, mesh, layouts[i >> 2 & 1]);
        trama_value *sum = trama_add(a, b), *early = trama_assign(a, b);
        trama_value *late = i >> 3 ? trama_square(trama_sub(a, b)) : NULL; /* recorded after a's update */
        trama_value *swap = trama_assign(b, a), *third = trama_assign(c, trama_add(trama_scale(c, 2), sum));
        trama_target *t = late ? trama_target_new(p, "t", early, swap, third, late)
                               : trama_target_new(p, "t", third, swap, early);
        trama_executable *e = compile(p);
        double at[5], wanted[3] = {1, 2, 0};
        for (int run = 0; run < 5; run++) {
            double before[3] = {wanted[0], wanted[1], wanted[2]};
            wanted[0] = before[1];
            wanted[1] = before[0];
            wanted[2] = 2 * before[2] + 3;
            must(trama_run(e, t));
            must(trama_read(e, a, at, sizeof at));
            demand_all(at, wanted[0], "a takes b");
            must(trama_read(e, b, at, sizeof at));
            demand_all(at, wanted[1], "b takes a");
            must(trama_read(e, c, at, sizeof at));
            demand_all(at, wanted[2], "c takes 2 c + a + b");
            if (late) {
                must(trama_read(e, late, at, sizeof at));
                demand_all(at, 1, "(a - b)^2");
            }
        }
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

START_TEST(targets_without_ops_run_too)
{
    start();
    trama_program *p = trama_program_new();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY));
    trama_value *s = trama_state(p, "s", TRAMA_F32, TRAMA_SHAPE(2), NULL);
    trama_value *u = trama_uniform(p, TRAMA_F32, TRAMA_SHAPE(2), 0, 1, 7, 1, 0);
    trama_value *c = trama_constant(p, TRAMA_F32, TRAMA_SHAPE(2), ((float[]){4, 5}));
    trama_target *t = trama_target_new(p, "leaves", x, s, u, c);
    trama_executable *e = compile(p);
    float at[2];
    expect_here(trama_run(e, t), TRAMA_E_ORDER, "'leaves'", "input x");
    must(trama_feed(e, x, ((float[]){1, 2}), TRAMA_SHAPE(2)));
    must(trama_run(e, t));
    must(trama_read(e, u, at, sizeof at));
    for (int i = 0; i < 2; i++)
        demand(at[i] == (float)plain_uniform(7, 1, 0, (uint64_t)i, 0, 1), "uniform %d is %.9g", i, (double)at[i]);
    must(trama_read(e, c, at, sizeof at));
    demand(at[0] == 4 && at[1] == 5, "the constant is [%g, %g]", (double)at[0], (double)at[1]);
    must(trama_read(e, x, at, sizeof at));
    demand(at[1] == 2, "the input is [.., %g]", (double)at[1]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* A mean over no sample is no number, but nothing is learnt from it. */
START_TEST(an_empty_batch_changes_no_parameter)
{
    static const char *const meshes[] = {"1", "dp=2", "mp=2", "dp=2,mp=2"};
    start();
    for (int i = 0; i < 4; i++) {
        network net = network_new(meshes[i], TRAMA_F64, false, 3, small_sizes);
        plain_net plain = plain_new(3, small_sizes, SEED);
        net.e = compile(net.program);
        samples none = samples_new(&net, 0, 0), some = samples_new(&net, 5, 1);
        for (int k = 0; k < 2; k++) {
            network_feed(&net, &none);
            must(trama_run(net.e, net.train));
            demand(isnan(network_loss(&net)), "the mean over no sample is %g", network_loss(&net));
            demand(parameters_differ(&net, &plain) <= 1e-14, "mesh %s: no sample changes a parameter by %g", meshes[i],
                   parameters_differ(&net, &plain));
            network_feed(&net, &some);
            must(trama_run(net.e, net.train));
            double loss = network_loss(&net), wanted = plain_step(&plain, 5, some.x, some.y, false, net.lr);
            demand(relative(loss, wanted) < 1e-12, "mesh %s: then the loss is %.17g instead of %.17g", meshes[i], loss,
                   wanted);
        }
        samples_free(&none);
        samples_free(&some);
        plain_free(&plain);
        network_free(&net);
    }
    stop();
}
END_TEST

/* ---- Refusals ---- */

START_TEST(what_is_nowhere_is_refused_with_a_reason)
{
    start();
    network net = network_new("dp=2", TRAMA_F32, true, 3, small_sizes);
    net.e = compile(net.program);
    float room[200];
    trama_shape shape;
    expect_here(trama_read(net.e, net.x, room, sizeof room), TRAMA_E_ORDER, "trama_read", "x", "fed");
    expect_here(trama_read(net.e, net.loss, room, 4), TRAMA_E_ORDER, "run");
    expect(trama_extents(net.e, net.x, &shape), TRAMA_E_ORDER, "x");
    expect_here(trama_run(net.e, net.train), TRAMA_E_ORDER, "train", "needs the input", "not fed");
    samples s = samples_new(&net, 6, 0);
    network_feed(&net, &s);
    must(trama_run(net.e, net.train));
    expect_here(trama_read(net.e, net.logits, room, 240), TRAMA_E_ORDER, trama_value_name(net.logits), "run");
    trama_value *hidden = NULL; /* of no target */
    trama_program *p = trama_program_new();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4));
    hidden = trama_square(x);
    trama_value *sum = trama_sum(hidden);
    trama_target *t = trama_target_new(p, "t", sum);
    trama_executable *e = compile(p);
    must(trama_feed(e, x, ((float[]){1, 2, 3, 4}), TRAMA_SHAPE(4)));
    expect_here(trama_read(e, hidden, room, 16), TRAMA_E_NOT_KEPT, trama_value_name(hidden), "trama_target_new");
    must(trama_run(e, t));
    expect_here(trama_read(e, hidden, room, 16), TRAMA_E_NOT_KEPT, trama_value_name(hidden));
    must(trama_read(e, sum, room, 4));
    demand(room[0] == 30, "the sum of squares is %g", (double)room[0]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

START_TEST(the_program_may_go_on_or_go_away_after_compiling)
{
    start();
    trama_program *p = trama_program_new();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SCALAR), *y = trama_neg(x);
    trama_target *t = trama_target_new(p, "t", y);
    trama_executable *first = compile(p), *second;
    trama_value *z = trama_square(y);
    trama_target *later = trama_target_new(p, "later", z);
    float in = 3, out;
    must(trama_feed(first, x, &in, TRAMA_SCALAR));
    must(trama_run(first, t));
    must(trama_read(first, y, &out, 4));
    demand(out == -3, "neg 3 is %g", (double)out);
    expect_here(trama_run(first, later), TRAMA_E_ARGUMENT, "later", "compiled");
    expect_here(trama_read(first, z, &out, 4), TRAMA_E_ARGUMENT, trama_value_name(z), "compiled");
    second = compile(p);
    must(trama_feed(second, x, &in, TRAMA_SCALAR));
    must(trama_run(second, later));
    must(trama_read(second, z, &out, 4));
    demand(out == 9, "neg 3 squared is %g", (double)out);
    must(trama_run(first, t)); /* both live */
    must(trama_executable_destroy(&first));
    must(trama_executable_destroy(&second));
    trama_program_destroy(&p);
    stop();
}
END_TEST

TESTS(every_dtype_shape_and_layout_reads_back, what_the_host_gives_is_the_value_in_partial_layouts_too,
      numbers_that_are_none_come_through, a_reading_is_of_its_place_in_the_program,
      a_write_falls_between_the_runs_around_it, a_feed_does_not_reach_runs_before_it, a_reading_tells_when_it_is_ready,
      values_of_a_target_live_until_it_runs_again, a_value_of_two_targets_is_that_of_the_last_run,
      feeding_many_extents_leaves_the_values_of_the_last_run, readings_outlive_the_plans_of_many_extents,
      asking_for_plans_of_many_extents_leaves_the_values_of_the_last_run,
      boxes_are_fed_and_read_as_the_layout_cuts_them, a_local_box_of_a_partial_value_is_one_term,
      state_is_written_in_every_layout, printing_shows_shape_layout_and_numbers, completion_and_plans_can_be_looked_at,
      values_of_a_target_do_not_follow_their_operands, states_take_their_values_at_the_end_of_a_run,
      targets_without_ops_run_too, an_empty_batch_changes_no_parameter, what_is_nowhere_is_refused_with_a_reason, the_program_may_go_on_or_go_away_after_compiling)
