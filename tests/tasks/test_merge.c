/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge on one rank and on several: k micro-batches are one batch, whatever the mesh, the sizes, and where a
 * cycle ends. */
#include "merging.h"
#include "program.h"

static const cycle even[] = {{{6, 6, 6, 6}}, {{8, 8}}, {{3, 3, 3, 3, 3, 3, 3, 3}}};
enum { N_EVEN = sizeof even / sizeof *even };
static const cycle single[] = {{{11}}, {{7}}}, uneven[] = {{{5, 7, 1, 4}}, {{3}}, {{6, 2, 9, 9}}, {{4, 4, 1}}};

/* On every mesh, in 2, 4 and 8 equal micro-steps; sanitized in one of these. */
static void merge_everywhere(unsigned how, trama_dtype dtype, bool adamw, int steps, double tolerance)
{
    for (int i = 0; i < N_MESHES; i++)
        for (int c = 0; c < N_EVEN; c++)
            if (!suite_is_sanitized() || c == i % N_EVEN)
                merge_how_beside_plain(meshes[i], dtype, adamw, cycle_length(&even[c]), how, 1, &even[c], steps,
                                       tolerance);
}

/* Over ranks, with fewer steps where the dtype or the kind of merge is another one. */
START_TEST(k_micro_batches_are_one_batch)
{
    start();
    const int adamw_steps = suite_is_sanitized() && n_ranks == 1 ? 10 : n_ranks > 1 ? 20 : 100;
    merge_everywhere(TRAMA_MERGE_AVG, TRAMA_F32, false, suite_is_sanitized() ? 10 : 100, 1e-6);
    merge_everywhere(TRAMA_MERGE_SYNC_EACH, TRAMA_F64, false, suite_is_sanitized() || n_ranks > 1 ? 10 : 30, 1e-10);
    merge_everywhere(TRAMA_MERGE_AVG, TRAMA_F64, true, adamw_steps, 1e-10);
    stop();
}
END_TEST

START_TEST(uneven_micro_batches_count_by_their_samples_and_short_cycles_are_flushed)
{
    start();
    for (int i = 0; i < N_MESHES; i++)
        merge_beside_plain(meshes[i], TRAMA_F64, i % 2, 4, 4, uneven, n_ranks > 1 ? 16 : 24, 1e-10);
    stop();
}
END_TEST

static void *content(const network *net, trama_value *v, size_t *bytes)
{
    *bytes = (size_t)trama_shape_count(v->shape) * trama_dtype_size(v->dtype);
    void *data = malloc(*bytes);
    must(trama_read(net->e, v, data, *bytes));
    return data;
}

static bool same_weights(const network *a, const network *b)
{
    bool same = true;
    for (int l = 0; l < 3; l++) {
        size_t bytes;
        void *one = content(a, a->w[l], &bytes), *other = content(b, b->w[l], &bytes);
        same &= !memcmp(one, other, bytes);
        free(one);
        free(other);
    }
    return same;
}

/* To the bit: as without a merge. */
START_TEST(a_cycle_of_one_is_plain_training)
{
    start();
    for (int i = 0; i < N_MESHES; i++)
        for (int adamw = 0; adamw < 2; adamw++) {
            network merged = merging_network(meshes[i], TRAMA_F32, adamw, 1),
                    plain = network_new(meshes[i], TRAMA_F32, adamw, 3, small_sizes);
            plain.e = compile(plain.program);
            for (int step = 0; step < (n_ranks > 1 ? 4 : 20); step++) {
                samples s = samples_new(&merged, cycle_samples(&single[step % 2]), step);
                run_cycle(&merged, &s, &single[step % 2]);
                run_cycle(&plain, &s, &single[step % 2]);
                samples_free(&s);
            }
            demand(same_weights(&merged, &plain), "mesh %s: other bits", meshes[i] ? meshes[i] : "none");
            network_free(&merged);
            network_free(&plain);
        }
    stop();
}
END_TEST

/* Parameters stand still until a cycle ends; k may change between cycles, and a cycle may end early. */
START_TEST(gradients_are_applied_when_a_cycle_ends)
{
    start();
    network net = merging_network("dp=2,mp=2", TRAMA_F64, false, 3);
    plain_net plain = plain_new(3, small_sizes, SEED);
    samples s = samples_new(&net, 24, 1);
    must(trama_flush(net.e, net.train)); /* of nothing */
    run_part(&net, &s, 0, 6);
    run_part(&net, &s, 6, 6);
    demand(parameters_differ(&net, &plain) <= 1e-15, "parameters moved within a cycle");
    demand(trama_merge_set(net.e, net.train, 2) == TRAMA_E_ORDER && strstr(trama_error(), "2 of 3"), "%s",
           trama_error());
    run_part(&net, &s, 12, 12);
    plain_step(&plain, 24, s.x, s.y, false, net.lr);
    demand(parameters_differ(&net, &plain) <= 1e-12, "the cycle of three is not one batch");
    must(trama_merge_set(net.e, net.train, 2));
    run_part(&net, &s, 0, 12);
    run_part(&net, &s, 12, 12);
    plain_step(&plain, 24, s.x, s.y, false, net.lr);
    demand(parameters_differ(&net, &plain) <= 1e-12, "the cycle of two is not one batch");
    run_part(&net, &s, 0, 24);
    must(trama_flush(net.e, net.train));
    plain_step(&plain, 24, s.x, s.y, false, net.lr);
    demand(parameters_differ(&net, &plain) <= 1e-12, "the cycle that was flushed is not one batch");
    samples_free(&s);
    plain_free(&plain);
    network_free(&net);
    stop();
}
END_TEST

/* The merged gradient of a cycle, beside this micro-step's; and the total. */
START_TEST(merged_gradients_read_as_of_the_last_step_applied)
{
    start();
    for (int total = 0; total < 2; total++) {
        trama_program *p = trama_program_create();
        trama_mesh *mesh = trama_mesh_create("dp=2");
        trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 2));
        trama_init zero = {0};
        trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(2), &zero);
        trama_shard(x, mesh, "S(0)");
        trama_value *loss = trama_mean(trama_sum_over(trama_mul(x, w), 1, (int[]){1}, false));
        trama_optimizer sgd = trama_sgd(1);
        trama_value *step = trama_minimize(loss, &sgd), *now = trama_gradient(loss, w),
                    *merged = trama_merged_gradient(step, w);
        trama_target *t = trama_target_create(p, "train", step, now, merged);
        trama_gradient_merge(t, 2, total ? TRAMA_MERGE_SUM : TRAMA_MERGE_AVG);
        trama_executable *e = compile(p);
        const double first[] = {1, 2, 3, 4, 5, 6}, second[] = {10, 20};
        double g[2];
        must(trama_feed(e, x, first, TRAMA_SHAPE(3, 2)));
        must(trama_run(e, t));
        demand(trama_read(e, merged, g, sizeof g) == TRAMA_E_NOT_KEPT, "%s", trama_error());
        must(trama_read(e, now, g, sizeof g));
        demand(g[0] == 3 && g[1] == 4, "this micro-step's gradient is %g %g", g[0], g[1]);
        must(trama_feed(e, x, second, TRAMA_SHAPE(1, 2)));
        must(trama_run(e, t));
        must(trama_read(e, merged, g, sizeof g));
        demand(relative(g[0], total ? 13 : 19. / 4) < 1e-14 && relative(g[1], total ? 24 : 32. / 4) < 1e-14,
               "the merged gradient is %g %g", g[0], g[1]);
        must(trama_run(e, t)); /* a new cycle: the merged gradient stays, the other one follows */
        double later[2];
        must(trama_read(e, merged, later, sizeof later));
        demand(!memcmp(g, later, sizeof g), "the merged gradient moved within a cycle");
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    stop();
}
END_TEST

/* Bytes of shards that a network of one split weight needs when it has merged. */
static size_t bytes_of_split_weight(unsigned how)
{
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create("dp=4");
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 64));
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(64, 256), &(trama_init){.low = 1, .high = 1});
    trama_shard(x, mesh, "S(0)");
    trama_shard(w, mesh, "S(0)");
    trama_value *loss = trama_mean(trama_matmul(x, w));
    trama_optimizer sgd = trama_sgd(1);
    trama_target *t = trama_target_create(p, "train", trama_minimize(loss, &sgd));
    trama_gradient_merge(t, 2, how);
    trama_executable *e = compile(p);
    double *data = calloc(4 * 64, sizeof *data);
    for (int i = 0; i < 4; i++) {
        must(trama_feed(e, x, data, TRAMA_SHAPE(4, 64)));
        must(trama_run(e, t));
    }
    must(trama_wait(e));
    size_t bytes = shard_pool(ctx).used_bytes;
    free(data);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    return bytes;
}

/* Each micro-step's sum instead of terms: the same values, and of a split parameter's gradient no process has all. */
START_TEST(micro_steps_that_sync_keep_less)
{
    start();
    for (int i = 0; i < N_MESHES; i++) {
        merge_how_beside_plain(meshes[i], TRAMA_F64, false, 4, TRAMA_MERGE_SYNC_EACH, 1, even, n_ranks > 1 ? 4 : 10,
                               1e-10);
        merge_how_beside_plain(meshes[i], TRAMA_F64, true, 4, TRAMA_MERGE_SYNC_EACH, 4, uneven, n_ranks > 1 ? 4 : 10,
                               1e-10);
    }
    const char *device = getenv("TRAMA_DEVICE");
    if (n_ranks == 1 && (!device || !strcmp(device, "cpu"))) { /* the boxes of all processes; GPUs keep products, too */
        size_t whole = 64 * 256 * sizeof(double), terms = bytes_of_split_weight(TRAMA_MERGE_AVG),
               synced = bytes_of_split_weight(TRAMA_MERGE_SYNC_EACH);
        /* the weight and four sums of terms; or the weight, one sum, and the terms of one micro-step, which do not stay
         */
        demand(terms >= 5 * whole && synced <= 6 * whole + 16384, "%zu bytes with terms, %zu without", terms, synced);
    }
    stop();
}
END_TEST

static void copy_parameters(const network *from, const network *to)
{
    for (int l = 0; l < 3; l++)
        for (int bias = 0; bias < 2; bias++) {
            size_t bytes;
            trama_value *v = bias ? from->b[l] : from->w[l];
            void *data = content(from, v, &bytes);
            must(trama_write(to->e, bias ? to->b[l] : to->w[l], data, bytes));
            free(data);
        }
}

/* From plain training to a merge and back: cycles of one micro-step are plain training to the bit, before and after. */
START_TEST(k_goes_from_one_to_more_and_back)
{
    start();
    for (int i = 0; i < N_MESHES; i++) {
        network merged = merging_network(meshes[i], TRAMA_F32, false, 1),
                plain = network_new(meshes[i], TRAMA_F32, false, 3, small_sizes);
        plain.e = compile(plain.program);
        for (int round = 0; round < 3; round++) {
            must(trama_merge_set(merged.e, merged.train, 1));
            for (int step = 0; step < 5; step++) {
                samples s = samples_new(&merged, 11, step);
                run_cycle(&merged, &s, single);
                run_cycle(&plain, &s, single);
                samples_free(&s);
            }
            demand(same_weights(&merged, &plain), "mesh %s, round %d: other bits", meshes[i] ? meshes[i] : "none",
                   round);
            must(trama_merge_set(merged.e, merged.train, 4));
            samples s = samples_new(&merged, 24, round);
            run_cycle(&merged, &s, even);
            demand(!same_weights(&merged, &plain), "the cycle of four applied nothing");
            samples_free(&s);
            copy_parameters(&merged, &plain);
        }
        network_free(&merged);
        network_free(&plain);
    }
    stop();
}
END_TEST

TESTS(k_micro_batches_are_one_batch, uneven_micro_batches_count_by_their_samples_and_short_cycles_are_flushed,
      a_cycle_of_one_is_plain_training, gradients_are_applied_when_a_cycle_ends,
      merged_gradients_read_as_of_the_last_step_applied, micro_steps_that_sync_keep_less,
      k_goes_from_one_to_more_and_back)
