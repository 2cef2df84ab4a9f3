/* SPDX-License-Identifier: Apache-2.0 */
/* Training on one rank and on several, on every mesh, beside plain loops in double precision, which every rank runs for
 * itself. There are as many processes as ranks, fewer (the other ranks are idle) and more. */
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
            demand(wrong <= (wide ? 1e-16 : 3e-8), "mesh %s: parameters differ by %g", meshes[i] ? meshes[i] : "none",
                   wrong);
            plain_free(&plain);
            network_free(&net);
        }
    stop();
}
END_TEST

static void train_on_all(trama_dtype dtype, bool adamw, int steps, double tolerance)
{
    for (int i = 0; i < N_MESHES; i++)
        train_beside_plain(&(training){meshes[i], dtype, adamw, steps, tolerance, 3, small_sizes, {11}});
}

START_TEST(sgd_in_f32_follows_plain_loops_for_200_steps)
{
    start();
    train_on_all(TRAMA_F32, false, 200, 1e-5);
    stop();
}
END_TEST

START_TEST(sgd_in_f64_follows_plain_loops)
{
    start();
    train_on_all(TRAMA_F64, false, n_ranks > 1 ? 60 : 200, 1e-10);
    stop();
}
END_TEST

START_TEST(adamw_in_f64_follows_plain_loops)
{
    start();
    train_on_all(TRAMA_F64, true, n_ranks > 1 ? 60 : 200, 1e-10);
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

/* Of a half, 2^-9 and 2^-12 of it are lost wherever it is stored, a few hundred times on the way of 20 steps. */
static void train_halves(void)
{
    static const char *const some[] = {NULL, "dp=2", "mp=2", "dp=2,mp=2"};
    for (int i = 0; i < 4; i++) {
        train_beside_plain(&(training){some[i], TRAMA_BF16, false, 20, 3e-2, 3, small_sizes, {11}});
        train_beside_plain(&(training){some[i], TRAMA_F16, false, 20, 4e-3, 3, small_sizes, {11}});
        train_in(TRAMA_BF16, &(training){some[i], TRAMA_F32, i & 1, 20, 2e-2, 3, small_sizes, {11}});
    }
}

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
    for (int i = n_ranks > 1 ? 4 : 1; i < 5; i++)
        train_beside_plain(&(training){
            meshes[i], TRAMA_F32, i == 4 && n_ranks == 1, 2, 1e-5, 3, full, {suite_is_sanitized() ? 16 : 128}});
    stop();
}
END_TEST

/* Process ids in any order, and not all of them. */
START_TEST(meshes_of_other_processes_follow_plain_loops)
{
    static const char *const others[] = {"dp=2:1,0",   "mp=2:1,3",      "dp=2,mp=2:3,1,0,2",
                                         "mp=3:5,0,2", "mp=[1,20]:1,0", "dp=[20,1],mp=[1,3]"};
    start();
    for (int i = 0; i < 6; i++)
        train_beside_plain(&(training){others[i], TRAMA_F64, true, 20, 1e-10, 3, small_sizes, {11}});
    stop();
}
END_TEST

/* Tasks of the least size, cut as far as it goes; on one rank also for more workers than cores. */
START_TEST(the_smallest_tiles_follow_plain_loops)
{
    static const int ways[] = {3, 2, 5};
    for (int i = 0; i < (n_ranks > 1 ? 1 : 3); i++) {
        start_with(&(trama_config){
            .max_tiles = ways[i], .grain_flops = 1, .grain_bytes = 1, .workers = i ? 3 : 0, .max_in_flight = ways[i]});
        train_on_all(TRAMA_F64, ways[i] == 2, n_ranks > 1 ? 10 : 20, 1e-10);
        stop();
    }
}
END_TEST

START_TEST(unfused_ops_follow_plain_loops)
{
    start_with(&(trama_config){.no_fusion = true});
    train_on_all(TRAMA_F64, true, n_ranks > 1 ? 5 : 20, 1e-10);
    stop();
}
END_TEST

/* Messages lie in shards, or share a window's memory from round to round and from run to run. */
START_TEST(small_staging_buffers_follow_plain_loops)
{
    static const int64_t windows[] = {300, 2000, 20000};
    for (int i = 0; i < 3; i++) {
        start_with(&(trama_config){.max_in_flight = 4, .staging_bytes = windows[i], .verify = true});
        train_on_all(TRAMA_F64, false, 12, 1e-10);
        stop();
    }
}
END_TEST

START_TEST(batches_of_other_sizes_follow_plain_loops)
{
    start();
    for (int i = 0; i < N_MESHES && n_ranks == 1; i++) {
        train_beside_plain(&(training){meshes[i], TRAMA_F64, true, 60, 1e-10, 3, small_sizes, {11, 4}});
        train_beside_plain(&(training){meshes[i], TRAMA_F64, false, 30, 1e-10, 3, small_sizes, {7, 1, 2}});
    }
    for (int i = 0; i < N_MESHES; i++)
        train_beside_plain(&(training){meshes[i], TRAMA_F64, false, 18, 1e-10, 3, small_sizes, {11, 1, 4}});
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

TESTS(the_plain_philox_gives_the_published_answers, parameters_start_as_the_header_says_on_every_mesh,
      sgd_in_f32_follows_plain_loops_for_200_steps, sgd_in_f64_follows_plain_loops, adamw_in_f64_follows_plain_loops,
      adamw_in_f32_follows_plain_loops_for_20_steps, halves_follow_plain_loops_loosely_for_20_steps,
      the_network_of_the_main_job_follows_plain_loops, meshes_of_other_processes_follow_plain_loops,
      the_smallest_tiles_follow_plain_loops, unfused_ops_follow_plain_loops, small_staging_buffers_follow_plain_loops,
      batches_of_other_sizes_follow_plain_loops, batches_of_forty_sizes_follow_plain_loops)
