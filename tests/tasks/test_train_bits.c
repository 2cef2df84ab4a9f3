/* SPDX-License-Identifier: Apache-2.0 */
/* Training on one rank and on several: windows, workers and a second run change no bit, and steps do not grow anything.
 */
#include "training.h"

/* ---- Bits ---- */

static trace trace_under(const trama_config *config, const char *mesh, bool adamw)
{
    start_with(config);
    trace t = trace_of(mesh, TRAMA_F32, adamw, 30, 11);
    stop();
    return t;
}

START_TEST(two_runs_and_any_number_of_workers_give_the_same_bits)
{
    for (int i = 0; i < N_MESHES; i++) {
        trama_config config = {.max_tiles = 2, .grain_flops = 1, .grain_bytes = 1, .workers = 1};
        trace wanted = trace_under(&config, meshes[i], i % 2);
        for (int workers = 1; workers <= (n_ranks > 1 ? 1 : 3); workers++) { /* several ranks share the cores */
            config.workers = workers;
            trace t = trace_under(&config, meshes[i], i % 2);
            demand(trace_equal(&t, &wanted), "mesh %s: other bits with %d workers", meshes[i] ? meshes[i] : "none",
                   workers);
            free(t.at);
        }
        free(wanted.at);
    }
}
END_TEST

START_TEST(two_runs_give_the_same_bits)
{
    for (int i = 2; i < N_MESHES; i++) {
        trace t[2];
        for (int run = 0; run < 2; run++) {
            start_with(&(trama_config){.max_tiles = 2, .max_in_flight = run ? 1 : 3});
            t[run] = trace_of(meshes[i], TRAMA_F32, i % 2, 15, 11);
            stop();
        }
        demand(trace_equal(&t[0], &t[1]), "mesh %s: other bits in the second run", meshes[i]);
        free(t[0].at);
        free(t[1].at);
    }
}
END_TEST

START_TEST(any_window_gives_the_same_bits)
{
    trama_config config = {.max_tiles = 2, .max_in_flight = 1};
    trace wanted = trace_under(&config, "dp=2,mp=2", true);
    static const int windows[] = {2, 3, 64};
    for (int i = 0; i < 3; i++) {
        config.max_in_flight = windows[i];
        trace t = trace_under(&config, "dp=2,mp=2", true);
        demand(trace_equal(&t, &wanted), "other bits with a window of %d", windows[i]);
        free(t.at);
    }
    free(wanted.at);
}
END_TEST

/* Nothing is read between the steps, so that as many are in flight as the window lets. */
START_TEST(steps_in_flight_give_the_same_bits_as_steps_one_by_one)
{
    start_with(&(trama_config){.max_in_flight = 5, .max_tiles = 2});
    trace t[2] = {{0}, {0}};
    for (int together = 0; together < 2; together++) {
        network net = network_new("dp=2", TRAMA_F32, false, 3, small_sizes);
        net.e = compile(net.program);
        for (int step = 0; step < 60; step++) {
            samples s = samples_new(&net, step % 7 ? 11 : 5, step);
            network_feed(&net, &s);
            samples_free(&s);
            must(trama_run(net.e, net.train));
            if (!together)
                must(trama_wait(net.e));
        }
        trace_read(&t[together], net.e, net.loss, sizeof(float));
        trace_read(&t[together], net.e, net.w[0], 20 * 17 * sizeof(float));
        trace_read(&t[together], net.e, net.b[2], 10 * sizeof(float));
        network_free(&net);
    }
    demand(trace_equal(&t[0], &t[1]), "steps in flight disturb each other");
    free(t[0].at);
    free(t[1].at);
    stop();
}
END_TEST

/* ---- Gradients ---- */

/* The whole gradient chain again by name, read while training goes on. */
START_TEST(named_gradients_are_those_of_plain_loops)
{
    start();
    for (int i = 0; i < N_MESHES; i++) {
        network net = network_new(meshes[i], TRAMA_F64, false, 3, small_sizes);
        plain_net plain = plain_new(3, small_sizes, SEED);
        trama_value *dw = trama_gradient(net.loss, net.w[1]), *db = trama_gradient(net.loss, net.b[0]);
        trama_target *both = trama_target_create(net.program, "gradients", dw, db);
        net.e = compile(net.program);
        samples s = samples_new(&net, 11, 3);
        network_feed(&net, &s);
        must(trama_run(net.e, both));
        plain_gradients(&plain, s.n, s.x, s.y);
        double w[17 * 13], b[17];
        must(trama_read(net.e, dw, w, sizeof w));
        must(trama_read(net.e, db, b, sizeof b));
        for (int k = 0; k < 17 * 13; k++)
            demand(fabs(w[k] - plain.w[1].gradient[k]) < 1e-13, "mesh %s: dw1[%d] is %.17g instead of %.17g",
                   meshes[i] ? meshes[i] : "none", k, w[k], plain.w[1].gradient[k]);
        for (int k = 0; k < 17; k++)
            demand(fabs(b[k] - plain.b[0].gradient[k]) < 1e-13, "mesh %s: db0[%d] is %.17g instead of %.17g",
                   meshes[i] ? meshes[i] : "none", k, b[k], plain.b[0].gradient[k]);
        samples_free(&s);
        plain_free(&plain);
        network_free(&net);
    }
    stop();
}
END_TEST

/* ---- Growth ---- */

START_TEST(short_batches_between_do_not_grow_anything)
{
    start();
    for (int i = 0; i < N_MESHES; i++) {
        network net = network_new(meshes[i], TRAMA_F32, true, 3, small_sizes);
        shard_pool_state before = {0};
        net.e = compile(net.program);
        for (int step = 0; step < 120; step++) {
            samples s = samples_new(&net, step % 3 == 2 ? 4 : 11, step % 6);
            network_feed(&net, &s);
            must(trama_run(net.e, step % 5 == 4 ? net.eval : net.train));
            network_loss(&net);
            samples_free(&s);
            if (step == 30)
                before = shard_pool(ctx);
        }
        demand(shards_equal(before, shard_pool(ctx)),
               "mesh %s: %" PRId64 " shards were made up to step 30, %" PRId64 " up to step 120",
               meshes[i] ? meshes[i] : "none", before.made, shard_pool(ctx).made);
        network_free(&net);
    }
    stop();
}
END_TEST

START_TEST(steps_do_not_grow_anything)
{
    start();
    for (int i = 2; i < 5; i++) {
        network net = network_new(meshes[i], TRAMA_F32, true, 3, small_sizes);
        shard_pool_state before = {0};
        int64_t memory = 0;
        net.e = compile(net.program);
        for (int step = 0; step < 400; step++) {
            samples s = samples_new(&net, step % 3 == 2 ? 4 : 11, step % 6);
            network_feed(&net, &s);
            must(trama_run(net.e, net.train));
            samples_free(&s);
            if (step % 10 == 0)
                network_loss(&net);
            if (step == 100) {
                before = shard_pool(ctx);
                memory = memory_now();
            }
        }
        demand(shards_equal(before, shard_pool(ctx)), "mesh %s: %" PRId64 " shards become %" PRId64, meshes[i],
               before.made, shard_pool(ctx).made);
        demand(suite_is_sanitized() || memory_now() - memory < 1 << 20, "mesh %s: %" PRId64 " bytes in 300 steps",
               meshes[i], memory_now() - memory);
        network_free(&net);
    }
    stop();
}
END_TEST

TESTS(two_runs_and_any_number_of_workers_give_the_same_bits, two_runs_give_the_same_bits,
      any_window_gives_the_same_bits, steps_in_flight_give_the_same_bits_as_steps_one_by_one,
      named_gradients_are_those_of_plain_loops, short_batches_between_do_not_grow_anything, steps_do_not_grow_anything)
