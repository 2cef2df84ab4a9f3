/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, feeds, writes and readings in the order of the program, however many are in flight; values are those of their
 * place. */
#include "network.h"

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
    counter c = {.mesh = mesh_of("2"), .p = trama_program_create()};
    c.x = trama_shard(trama_input(c.p, "x", TRAMA_F64, TRAMA_SHAPE(5)), c.mesh, layout);
    c.s = trama_shard(trama_state(c.p, "s", TRAMA_F64, TRAMA_SHAPE(5), NULL), c.mesh, layout);
    c.next = trama_add(c.s, c.x);
    c.run = trama_target_create(c.p, "run", trama_assign(c.s, c.next), c.next);
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
    for (int window = 0; window <= 4; window++) {
        start_with(&(trama_config){.max_in_flight = window});
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

/* ---- Values are values ---- */

/* A target's own value of an input or a state stays when that is fed, written or updated. */
START_TEST(values_of_a_target_do_not_follow_their_operands)
{
    static const char *const layouts[][2] = {{"S(0)", "S(0)"}, {"R", "R"}, {"R", "S(0)"}, {"S(0)", "R"}};
    start();
    for (int i = 0; i < 4; i++) {
        trama_mesh *mesh = mesh_of("2");
        trama_program *p = trama_program_create();
        trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(5)), mesh, layouts[i][0]);
        trama_value *s = trama_shard(trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(5), NULL), mesh, layouts[i][0]);
        trama_value *of_x = trama_reshard(x, mesh, layouts[i][1]), *of_s = trama_stop_gradient(s);
        trama_value *also = trama_reshard(s, mesh, layouts[i][1]);
        trama_target *t = trama_target_create(p, "t", trama_assign(s, trama_add(s, x)), of_x, of_s, also);
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
        trama_program *p = trama_program_create();
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
        trama_target *t = late ? trama_target_create(p, "t", early, swap, third, late)
                               : trama_target_create(p, "t", third, swap, early);
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
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY));
    trama_value *s = trama_state(p, "s", TRAMA_F32, TRAMA_SHAPE(2), NULL);
    trama_value *u = trama_uniform_fixed(p, TRAMA_F32, TRAMA_SHAPE(2), 0, 1, 7, 1, 0);
    trama_value *c = trama_constant(p, TRAMA_F32, TRAMA_SHAPE(2), ((float[]){4, 5}));
    trama_target *t = trama_target_create(p, "leaves", x, s, u, c);
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
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4));
    hidden = trama_square(x);
    trama_value *sum = trama_sum(hidden);
    trama_target *t = trama_target_create(p, "t", sum);
    trama_executable *e = compile(p);
    must(trama_feed(e, x, ((float[]){1, 2, 3, 4}), TRAMA_SHAPE(4)));
    expect_here(trama_read(e, hidden, room, 16), TRAMA_E_NOT_KEPT, trama_value_name(hidden), "trama_target_create");
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

TESTS(a_reading_is_of_its_place_in_the_program, a_write_falls_between_the_runs_around_it,
      a_feed_does_not_reach_runs_before_it, a_reading_tells_when_it_is_ready,
      values_of_a_target_do_not_follow_their_operands, states_take_their_values_at_the_end_of_a_run,
      targets_without_ops_run_too, an_empty_batch_changes_no_parameter, what_is_nowhere_is_refused_with_a_reason)
