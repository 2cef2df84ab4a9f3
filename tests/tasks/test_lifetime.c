/* SPDX-License-Identifier: Apache-2.0 */
/* How long values, readings, plans and programs live. */
#include "network.h"

/* ---- Lifetimes ---- */

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
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SCALAR), *y = trama_square(x), *z = trama_neg(y);
    trama_target *a = trama_target_create(p, "a", y), *b = trama_target_create(p, "b", y, z);
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
    doubler d = {.p = trama_program_create()};
    d.x = trama_input(d.p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY));
    d.y = trama_add(d.x, d.x);
    d.t = trama_target_create(d.p, "t", d.y);
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

START_TEST(a_reading_that_outlives_its_executable_is_an_error_and_is_freed)
{
    start();
    for (int i = 0; i < 3; i++) {
        doubler d = doubler_new();
        trama_reading *x = NULL, *y = NULL, *first = NULL;
        double at[5];
        doubler_feed(&d, 5);
        must(trama_run(d.e, d.t));
        must(trama_read_start(d.e, d.x, &first));
        must(trama_read_start(d.e, d.x, &x));
        must(trama_read_start(d.e, d.y, &y));
        must(trama_read_wait(&first, at, sizeof at));
        doubler_free(&d);
        if (i == 1)
            stop();
        demand(trama_read_ready(x) && trama_read_ready(y), "there is nothing to wait for");
        expect(trama_read_wait(&y, at, sizeof at), TRAMA_E_ORDER, "test_lifetime.c:", "trama_read_wait", "destroyed");
        expect(trama_read_wait(&x, NULL, 0), TRAMA_E_ORDER, "trama_read_wait", "of x was destroyed");
        demand(!x && !y, "the readings stay");
        if (i == 1)
            start();
    }
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
        trama_traffic traffic = {0};
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

START_TEST(the_program_may_go_on_or_go_away_after_compiling)
{
    start();
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SCALAR), *y = trama_neg(x);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *first = compile(p), *second;
    trama_value *z = trama_square(y);
    trama_target *later = trama_target_create(p, "later", z);
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

TESTS(values_of_a_target_live_until_it_runs_again, a_value_of_two_targets_is_that_of_the_last_run,
      feeding_many_extents_leaves_the_values_of_the_last_run, readings_outlive_the_plans_of_many_extents,
      a_reading_that_outlives_its_executable_is_an_error_and_is_freed,
      asking_for_plans_of_many_extents_leaves_the_values_of_the_last_run,
      the_program_may_go_on_or_go_away_after_compiling)
