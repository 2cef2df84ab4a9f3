/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that end on a value of the device, on one rank and on several: what is handed out when, and that nothing grows.
 */
#include "executable.h"
#include "watching.h"

/* Each call hands out what was read `lag` calls before; the rest comes in order. */
static void values_come_late(const char *mesh, const char *layout, int lag)
{
    enum { STEPS = 20 };
    counting c = counting_new(mesh, layout);
    trama_watch *total, *elements;
    double sum = -1, at[WATCHED];
    bool known, known_too;
    must(trama_watch_create(c.e, lag, &total));
    must(trama_watch_create(c.e, lag / 2, &elements));
    for (int i = 1; i <= STEPS; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(total, c.total, &sum, sizeof sum, &known));
        must(trama_watch_next(elements, i % 2 ? c.elements : c.twice, at, sizeof at, &known_too));
        demand(known == (i > lag) && sum == (i > lag ? WATCHED * (i - lag) : -1), "lag %d, step %d: %d, %g", lag, i,
               known, sum);
        int then = i - lag / 2;
        demand(known_too == (then > 0), "lag %d, step %d: %d", lag / 2, i, known_too);
        for (int k = 0; known_too && k < WATCHED; k++)
            demand(at[k] == then * (then % 2 ? 1 : 2), "lag %d, step %d: element %d is %g", lag / 2, i, k, at[k]);
    }
    for (int i = STEPS - lag + 1; i <= STEPS; i++) {
        must(trama_watch_rest(total, &sum, sizeof sum, &known));
        demand(known && sum == WATCHED * i, "rest of lag %d: %d, %g instead of %d", lag, known, sum, WATCHED * i);
    }
    must(trama_watch_rest(total, &sum, sizeof sum, &known));
    demand(!known, "there is more than there was");
    must(trama_run(c.e, c.step));
    must(trama_watch_next(total, c.total, &sum, sizeof sum, &known));
    demand(known == (lag == 0), "a drained watch begins anew");
    must(trama_watch_destroy(&total));
    must(trama_watch_destroy(&elements));
    demand(!total && !elements, "destroying nulls");
    counting_free(&c);
}

START_TEST(each_call_hands_out_what_was_read_so_many_calls_ago)
{
    start();
    for (int lag = 0; lag <= 5; lag++) {
        values_come_late("2", "S(0)", lag);
        values_come_late("3", "R", lag);
    }
    values_come_late("2,2", "S(0),S(0)", 3);
    values_come_late("1:1", "R", 2);
    values_come_late("1", "R", 19);
    stop();
}
END_TEST

/* The loop of the header: it ends exactly `lag` steps after the one that it waits for. */
static void loops_end_lag_steps_late(const char *mesh, const char *layout, int lag)
{
    counting c = counting_new(mesh, layout);
    trama_watch *watch;
    double sum = 0, now[WATCHED];
    bool known;
    int steps = 0;
    must(trama_watch_create(c.e, lag, &watch));
    do {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(watch, c.total, &sum, sizeof sum, &known));
        steps++;
    } while (!known || sum < 9 * WATCHED);
    must(trama_watch_destroy(&watch));
    must(trama_read(c.e, c.elements, now, sizeof now));
    demand(steps == 9 + lag && sum == 9 * WATCHED && now[0] == 9 + lag, "lag %d: %d steps, sum %g, element %g", lag,
           steps, sum, now[0]);
    counting_free(&c);
}

START_TEST(all_ranks_leave_a_loop_lag_steps_after_the_one_that_it_waits_for)
{
    start();
    for (int lag = 0; lag <= 6; lag++) {
        loops_end_lag_steps_late("1", "R", lag);
        loops_end_lag_steps_late("4", "S(0)", lag);
    }
    stop();
}
END_TEST

static void watching_does_not_grow(const char *mesh, const char *layout, int lag, int steps)
{
    counting c = counting_new(mesh, layout);
    trama_watch *watch;
    double sum;
    bool known;
    int readers = 0;
    int64_t memory = 0;
    shard_pool_state shards = {0};
    must(trama_watch_create(c.e, lag, &watch));
    for (int i = 0; i < steps; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(watch, c.total, &sum, sizeof sum, &known));
        if (i == 100 || i == steps - 1) {
            must(trama_wait(c.e));
            shard_pool_state now = shard_pool(ctx);
            demand(i == 100 || (shards_equal(now, shards) && c.e->plans.n_of[PLAN_READ] == readers),
                   "shards or readers grow: %d to %d readers", readers, c.e->plans.n_of[PLAN_READ]);
            demand(i == 100 || suite_is_sanitized() || memory_now() - memory < 8 << 20, "memory grows");
            shards = now;
            readers = c.e->plans.n_of[PLAN_READ];
            memory = memory_now();
        }
    }
    demand(readers == lag + 1, "%d readers for a lag of %d", readers, lag);
    must(trama_watch_destroy(&watch));
    counting_free(&c);
}

START_TEST(thousands_of_steps_hold_what_a_hundred_held)
{
    start();
    if (n_ranks == 1) {
        watching_does_not_grow("1", "R", 2, suite_is_sanitized() ? 500 : 5000);
        watching_does_not_grow("2", "S(0)", 7, suite_is_sanitized() ? 500 : 3000);
    } else {
        watching_does_not_grow("2", "S(0)", 2, suite_is_sanitized() ? 300 : 2000);
    }
    stop();
}
END_TEST

/* A rank that wants nothing takes part all the same. */
START_TEST(a_rank_may_want_nothing)
{
    start();
    counting c = counting_new("2", "S(0)");
    trama_watch *watch;
    bool known;
    double sum = 0;
    must(trama_watch_create(c.e, 1, &watch));
    for (int i = 1; i <= 5; i++) {
        must(trama_run(c.e, c.step));
        must(trama_watch_next(watch, c.total, my_rank == 0 ? &sum : NULL, my_rank == 0 ? sizeof sum : 0, &known));
        demand(known == (i > 1) && sum == (my_rank == 0 ? WATCHED * (i - 1) : 0), "step %d: %g", i, sum);
    }
    must(trama_watch_destroy(&watch));
    counting_free(&c);
    stop();
}
END_TEST

/* In eager mode each step has a value of its own, which may be forgotten while it is read. */
static void eager_steps_are_watched(const char *mesh_text, int lag)
{
    trama_program *p;
    trama_executable *e;
    trama_watch *watch;
    trama_mesh *mesh = mesh_of(mesh_text);
    double data[WATCHED] = {1, 2, 3, 4, 5, 6, 7}, sum;
    bool known;
    must(trama_eager(ctx, &p, &e));
    trama_value *x = trama_keep(trama_tensor(p, TRAMA_F64, TRAMA_SHAPE(WATCHED), data, mesh, "S(0)"));
    must(trama_watch_create(e, lag, &watch));
    for (int i = 1; i <= 30; i++) {
        int mark = trama_program_mark(p);
        must(trama_watch_next(watch, trama_sum(trama_scale(x, i)), &sum, sizeof sum, &known));
        must(trama_program_rewind(p, mark));
        demand(known == (i > lag) && (!known || sum == 28 * (i - lag)), "lag %d, step %d: %d, %g", lag, i, known, sum);
    }
    must(trama_watch_destroy(&watch));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

START_TEST(eager_values_are_watched_too)
{
    start();
    for (int lag = 0; lag <= 3; lag++)
        eager_steps_are_watched("2", lag);
    stop();
}
END_TEST

/* An applied value is that of the last step that was applied; before the first one there is nothing to read. */
START_TEST(merged_gradients_are_watched_from_the_first_applied_step_on)
{
    start();
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 1));
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(1, 1), NULL), *loss = trama_mean(trama_mul(x, w));
    trama_optimizer sgd = trama_sgd(1);
    trama_value *done = trama_minimize(loss, &sgd), *merged = trama_merged_gradient(done, w);
    trama_target *train = trama_target_create(p, "train", done, merged);
    trama_gradient_merge(train, 3, TRAMA_MERGE_SUM);
    trama_executable *e = compile(p);
    trama_watch *watch;
    double at = -1;
    bool known;
    must(trama_watch_create(e, 1, &watch));
    for (int i = 1; i <= 9; i++) { /* gradients 1, 2, ..., 9: merged 6, 15, 24 */
        const double data = i;
        must(trama_feed(e, x, &data, TRAMA_SHAPE(1, 1)));
        must(trama_run(e, train));
        if (i < 3) {
            expect_here(trama_watch_next(watch, merged, &at, sizeof at, &known), TRAMA_E_NOT_KEPT, "trama_watch_next");
            continue;
        }
        must(trama_watch_next(watch, merged, &at, sizeof at, &known));
        const double wanted = i == 3 ? -1 : i <= 6 ? 6 : 15;
        demand(known == (i > 3) && at == wanted, "micro-step %d: %g instead of %g", i, at, wanted);
    }
    must(trama_watch_destroy(&watch));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

TESTS(each_call_hands_out_what_was_read_so_many_calls_ago,
      all_ranks_leave_a_loop_lag_steps_after_the_one_that_it_waits_for, thousands_of_steps_hold_what_a_hundred_held,
      a_rank_may_want_nothing, eager_values_are_watched_too,
      merged_gradients_are_watched_from_the_first_applied_step_on)
