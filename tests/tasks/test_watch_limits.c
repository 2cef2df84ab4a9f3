/* SPDX-License-Identifier: Apache-2.0 */
/* Watches on one rank: steps that stay under way, which another rank would wait for; ends and wrong calls. */
#include <stdatomic.h>

#include "executable.h"
#include "watching.h"

/* ---- Waiting for no more than it must ---- */

static atomic_int released;

/* A learning rate that step n does not get before n steps are released. */
static double gate(int64_t n, const double *numbers)
{
    while (atomic_load(&released) <= n)
        usleep(100);
    return numbers[0];
}

/* A call waits for the step of `lag` calls ago, which is let go just before it: for a later one it would wait for ever.
 */
START_TEST(a_full_window_of_steps_stays_under_way)
{
    enum { LAG = 3 };
    start_with(&(trama_config){.max_in_flight = LAG});
    trama_program *p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SCALAR, &(trama_init){.low = 1, .high = 1});
    trama_value *loss = trama_square(w);
    trama_optimizer sgd = trama_sgd(0.25);
    sgd.schedule.factor = gate;
    sgd.schedule.numbers[0] = 1;
    trama_target *step = trama_target_create(p, "step", trama_minimize(loss, &sgd), loss);
    trama_executable *e = compile(p);
    trama_watch *watch;
    double at;
    bool known;
    must(trama_watch_create(e, LAG, &watch));
    for (int i = 1; i <= 20; i++) {
        atomic_store(&released, i - LAG);
        must(trama_run(e, step));
        must(trama_watch_next(watch, w, &at, sizeof at, &known));
        demand(known == (i > LAG) && (!known || at == ldexp(1, LAG - i)), "step %d: %g", i, at);
    }
    atomic_store(&released, 20);
    must(trama_watch_destroy(&watch));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

static int window_of_inputs(int set, int64_t bytes)
{
    start_with(&(trama_config){.max_in_flight = set});
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_U8, TRAMA_SHAPE(bytes));
    trama_target_create(p, "run", trama_max(x));
    trama_executable *e = compile(p);
    int window = e->runs.max;
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
    return window;
}

/* Each step in flight has buffers for its inputs. */
START_TEST(more_steps_are_in_flight_where_their_inputs_are_small)
{
    ck_assert_int_eq(window_of_inputs(0, 64 << 10), 8);
    ck_assert_int_eq(window_of_inputs(0, (64 << 10) + 1), 2);
    ck_assert_int_eq(window_of_inputs(3, 1), 3);
}
END_TEST

/* ---- Ends, errors ---- */

START_TEST(room_of_another_size_is_refused_at_every_call)
{
    start();
    counting c = counting_new("2", "S(0)");
    for (int lag = 0; lag < 3; lag++) {
        trama_watch *watch;
        double room[2] = {0};
        bool known = true;
        must(trama_watch_create(c.e, lag, &watch));
        for (int i = 0; i < 5; i++) {
            must(trama_run(c.e, c.step));
            expect_here(trama_watch_next(watch, c.total, room, 4, &known), TRAMA_E_SHAPE, "room for 4 bytes", "has 8");
            expect_here(trama_watch_next(watch, c.total, room, 16, &known), TRAMA_E_SHAPE, "room for 16 bytes");
            must(
                trama_watch_next(watch, c.total, i % 2 ? room : NULL, i % 2 ? 8 : 0, &known)); /* nothing was started */
            demand(known == (i >= lag), "lag %d, call %d", lag, i);
        }
        must(trama_watch_destroy(&watch));
    }
    counting_free(&c);
    stop();
}
END_TEST

START_TEST(executable_and_watch_go_in_either_order)
{
    start();
    counting c = counting_new("2", "S(0)");
    trama_watch *first, *second, *third;
    double sum = 0;
    bool known = true;
    must(trama_watch_create(c.e, 2, &first));
    must(trama_watch_create(c.e, 2, &second));
    must(trama_watch_create(c.e, 0, &third));
    for (int i = 0; i < 2; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(first, c.total, NULL, 0, &known));
        must(trama_watch_next(second, c.twice, NULL, 0, &known));
    }
    must(trama_watch_destroy(&second)); /* with readings under way, from the middle of the list */
    must(trama_executable_destroy(&c.e));
    expect_here(trama_watch_next(first, c.total, &sum, sizeof sum, &known), TRAMA_E_ORDER, "trama_watch_next",
                "destroyed");
    must(trama_watch_rest(first, &sum, sizeof sum, &known));
    demand(!known && sum == 0, "what was under way is dropped");
    must(trama_watch_destroy(&first));
    must(trama_watch_destroy(&third));
    must(trama_watch_destroy(&third)); /* NULL by now */
    must(trama_watch_destroy(NULL));
    counting_free(&c);
    stop();
}
END_TEST

START_TEST(a_wrong_call_says_so_and_takes_nothing)
{
    start();
    counting c = counting_new("2", "S(0)");
    trama_watch *watch = NULL;
    double sum = -1, wide[WATCHED];
    bool known = false;
    expect_here(trama_watch_create(NULL, 1, &watch), TRAMA_E_ARGUMENT, "executable", "NULL");
    expect_here(trama_watch_create(c.e, 1, NULL), TRAMA_E_ARGUMENT, "address", "NULL");
    expect_here(trama_watch_create(c.e, -1, &watch), TRAMA_E_ARGUMENT, "lag of -1");
    expect_here(trama_watch_create(c.e, TRAMA_WATCH_MOST + 1, &watch), TRAMA_E_ARGUMENT, "lag of 257", "256");
    demand(!watch, "an error makes no watch");
    must(trama_watch_create(c.e, 1, &watch));
    expect_here(trama_watch_next(NULL, c.total, &sum, sizeof sum, &known), TRAMA_E_ARGUMENT, "the watch is NULL");
    expect_here(trama_watch_next(watch, NULL, &sum, sizeof sum, &known), TRAMA_E_ARGUMENT, "trama_watch_next");
    expect_here(trama_watch_next(watch, c.total, &sum, sizeof sum, &known), TRAMA_E_ORDER, "trama_watch_next");
    must(trama_run(c.e, c.step));
    expect_here(trama_watch_next(watch, c.total, &sum, sizeof sum, NULL), TRAMA_E_ARGUMENT, "known is NULL");
    must(trama_watch_next(watch, c.total, &sum, sizeof sum, &known));
    must(trama_run(c.e, c.step));
    expect_here(trama_watch_next(watch, c.elements, wide, sizeof wide, &known), TRAMA_E_SHAPE, "room for 56 bytes",
                "has 8"); /* total is what comes */
    expect_here(trama_watch_rest(watch, wide, sizeof wide, &known), TRAMA_E_SHAPE, "room for 56 bytes", "has 8");
    must(trama_watch_next(watch, c.elements, &sum, sizeof sum, &known));
    demand(known && sum == WATCHED, "total of step 1 is %g", sum);
    must(trama_watch_rest(watch, wide, sizeof wide, &known));
    demand(known && wide[WATCHED - 1] == 2, "elements of step 2 are %g", wide[WATCHED - 1]);
    must(trama_watch_destroy(&watch));
    must(trama_watch_create(c.e, 0, &watch));
    expect_here(trama_watch_next(watch, c.elements, &sum, sizeof sum, &known), TRAMA_E_SHAPE, "room for 8 bytes",
                "elements has 56");
    must(trama_watch_next(watch, c.elements, wide, sizeof wide, &known));
    demand(known && wide[0] == 2, "without a lag it is this step's");
    must(trama_watch_destroy(&watch));
    counting_free(&c);
    stop();
}
END_TEST

TESTS(a_full_window_of_steps_stays_under_way, more_steps_are_in_flight_where_their_inputs_are_small,
      room_of_another_size_is_refused_at_every_call, executable_and_watch_go_in_either_order,
      a_wrong_call_says_so_and_takes_nothing)
