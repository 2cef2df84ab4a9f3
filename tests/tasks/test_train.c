/* SPDX-License-Identifier: Apache-2.0 */
/* Training in one rank, on every mesh, beside plain loops in double precision; tiles, windows and workers change no
 * bit. */
#include "training.h"

START_TEST(the_plain_philox_gives_the_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                 {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                  {0xa4093822, 0x299f31d0},
                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}; /* Random123, kat_vectors */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t word[4];
        plain_philox(known[i].counter, known[i].key, word);
        ck_assert_mem_eq(word, known[i].word, sizeof word);
    }
}
END_TEST

START_TEST(parameters_start_as_the_header_says_on_every_mesh)
{
    start();
    for (int i = 0; i < N_MESHES; i++)
        for (int wide = 0; wide < 2; wide++) {
            network net = network_new(meshes[i], wide ? TRAMA_F64 : TRAMA_F32, false, 3, small_sizes);
            plain_net plain = plain_new(3, small_sizes, SEED);
            net.e = compile(net.program);
            double wrong = parameters_differ(&net, &plain);
            demand(wrong <= (wide ? 1e-16 : 3e-8), "mesh %s: parameters differ by %g", meshes[i], wrong);
            plain_free(&plain);
            network_free(&net);
        }
    stop();
}
END_TEST

START_TEST(sgd_in_f32_follows_plain_loops_for_200_steps)
{
    start();
    train_on_all(TRAMA_F32, false, 200, 1e-5);
    stop();
}
END_TEST

START_TEST(sgd_in_f64_follows_plain_loops_for_200_steps)
{
    start();
    train_on_all(TRAMA_F64, false, 200, 1e-10);
    stop();
}
END_TEST

START_TEST(adamw_in_f64_follows_plain_loops_for_200_steps)
{
    start();
    train_on_all(TRAMA_F64, true, 200, 1e-10);
    stop();
}
END_TEST

START_TEST(adamw_in_f32_follows_plain_loops_for_20_steps)
{
    start();
    train_on_all(TRAMA_F32, true, 20, 1e-5);
    stop();
}
END_TEST

START_TEST(halves_follow_plain_loops_loosely_for_20_steps)
{
    start();
    train_halves();
    stop();
}
END_TEST

START_TEST(the_network_of_the_main_job_follows_plain_loops)
{
    static const int full[] = {784, 512, 256, 10};
    start();
    for (int i = 1; i < 5; i++)
        train_beside_plain(&(training){meshes[i], TRAMA_F32, i == 4, 2, 1e-5, 3, full, {SANITIZED ? 16 : 128}});
    stop();
}
END_TEST

/* Tasks of the least size, cut as far as it goes. */
START_TEST(the_smallest_tiles_follow_plain_loops)
{
    for (int ways = 2; ways <= 5; ways += 3) {
        start_with(&(trama_config){
            .max_tiles = ways, .grain_flops = 1, .grain_bytes = 1, .workers = 3, .max_in_flight = ways});
        train_on_all(TRAMA_F64, ways == 2, 20, 1e-10);
        stop();
    }
}
END_TEST

START_TEST(unfused_ops_follow_plain_loops)
{
    start_with(&(trama_config){.no_fusion = true});
    train_on_all(TRAMA_F64, true, 20, 1e-10);
    stop();
}
END_TEST

START_TEST(batches_of_other_sizes_follow_plain_loops)
{
    start();
    for (int i = 0; i < N_MESHES; i++) {
        train_beside_plain(&(training){meshes[i], TRAMA_F64, true, 60, 1e-10, 3, small_sizes, {11, 4}});
        train_beside_plain(&(training){meshes[i], TRAMA_F64, false, 30, 1e-10, 3, small_sizes, {7, 1, 2}});
    }
    stop();
}
END_TEST

/* More extents than any cache keeps, so that plans are made, forgotten and made again. */
START_TEST(batches_of_forty_sizes_follow_plain_loops)
{
    start();
    network net = network_new("dp=2,mp=2", TRAMA_F64, false, 3, small_sizes);
    plain_net plain = plain_new(3, small_sizes, SEED);
    net.e = compile(net.program);
    for (int step = 0; step < 80; step++) {
        samples s = samples_new(&net, 1 + step * 7 % 40, step);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        double loss = network_loss(&net), wanted = plain_step(&plain, s.n, s.x, s.y, false, net.lr);
        demand(relative(loss, wanted) <= 1e-10, "step %d of %d samples: %.17g instead of %.17g", step, s.n, loss,
               wanted);
        samples_free(&s);
    }
    plain_free(&plain);
    network_free(&net);
    stop();
}
END_TEST

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
        for (int workers = 1; workers <= 3; workers++) {
            config.workers = workers;
            trace t = trace_under(&config, meshes[i], i % 2);
            demand(trace_equal(&t, &wanted), "mesh %s: other bits with %d workers", meshes[i], workers);
            free(t.at);
        }
        free(wanted.at);
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
            demand(fabs(w[k] - plain.w[1].gradient[k]) < 1e-13, "mesh %s: dw1[%d] is %.17g instead of %.17g", meshes[i],
                   k, w[k], plain.w[1].gradient[k]);
        for (int k = 0; k < 17; k++)
            demand(fabs(b[k] - plain.b[0].gradient[k]) < 1e-13, "mesh %s: db0[%d] is %.17g instead of %.17g", meshes[i],
                   k, b[k], plain.b[0].gradient[k]);
        samples_free(&s);
        plain_free(&plain);
        network_free(&net);
    }
    stop();
}
END_TEST

TESTS(the_plain_philox_gives_the_published_answers, parameters_start_as_the_header_says_on_every_mesh,
      sgd_in_f32_follows_plain_loops_for_200_steps, sgd_in_f64_follows_plain_loops_for_200_steps,
      adamw_in_f64_follows_plain_loops_for_200_steps, adamw_in_f32_follows_plain_loops_for_20_steps,
      halves_follow_plain_loops_loosely_for_20_steps, the_network_of_the_main_job_follows_plain_loops,
      the_smallest_tiles_follow_plain_loops, unfused_ops_follow_plain_loops, batches_of_other_sizes_follow_plain_loops,
      batches_of_forty_sizes_follow_plain_loops, short_batches_between_do_not_grow_anything,
      two_runs_and_any_number_of_workers_give_the_same_bits, any_window_gives_the_same_bits,
      steps_in_flight_give_the_same_bits_as_steps_one_by_one, named_gradients_are_those_of_plain_loops)
