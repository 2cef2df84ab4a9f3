/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient merge for long: nothing grows, and plans come and go within a cycle. */
#include "executable.h"
#include "merging.h"

/* A network with all that a step can have, its merged gradient of w1, and the number of the step. */
typedef struct long_run {
    network net;
    trama_value *merged, *number;
} long_run;

static long_run long_run_new(const char *mesh, int k)
{
    long_run r = {.net = network_untrained(mesh, TRAMA_F64, 3, small_sizes)};
    trama_optimizer adamw = trama_adamw(1e-3);
    adamw.schedule = trama_schedule_cosine(500, 0.1);
    adamw.schedule.warmup = 5;
    adamw.clip_norm = 1;
    adamw.loss_scale = trama_loss_scale_dynamic();
    trama_value *done = trama_minimize(r.net.loss, &adamw);
    r.merged = trama_merged_gradient(done, r.net.w[1]);
    r.number = trama_step_value(done, TRAMA_STEP_NUMBER);
    r.net.train = trama_target_create(r.net.program, "train", done, r.net.loss, r.merged, r.number);
    trama_gradient_merge(r.net.train, k, TRAMA_MERGE_AVG);
    r.net.e = compile(r.net.program);
    return r;
}

/* Counts of objects kept for later. */
typedef struct kept {
    shard_pool_state shards;
    int plans, lowerings, inputs, readers;
} kept;

static kept kept_now(trama_executable *e)
{
    must(trama_wait(e));
    const plan_cache *c = &e->plans;
    kept n = {.shards = shard_pool(ctx),
              .plans = c->n_of[PLAN_TARGET],
              .inputs = c->n_of[PLAN_INPUT],
              .readers = c->n_of[PLAN_READ]};
    for (int i = 0; i < c->n_slots; i++)
        for (const kept_plan *k = c->slots[i]; k; k = k->next)
            n.lowerings += k->key.use == PLAN_TARGET ? k->in->lowerings.n : 0;
    return n;
}

static void read_step(const long_run *r, int64_t wanted)
{
    double gradient[17 * 13];
    int64_t number;
    must(trama_read(r->net.e, r->merged, gradient, sizeof gradient));
    must(trama_read(r->net.e, r->number, &number, sizeof number));
    demand(number == wanted, "%" PRId64 " steps instead of %" PRId64, number, wanted);
}

static void cycles_grow_nothing_on(const char *mesh, int cycles)
{
    static const cycle turns[] = {{{3, 4, 2}}, {{5, 1}}, {{7, 7, 7}}, {{9}}, {{2, 11, 1}}, {{4}}};
    long_run r = long_run_new(mesh, 3);
    samples s = samples_new(&r.net, 21, 0);
    kept warm = {0};
    int64_t memory = 0;
    for (int i = 0; i < cycles; i++) {
        const cycle *c = &turns[i % 6];
        must(trama_merge_set(r.net.e, r.net.train, i % 6 == 3 ? 1 : 3)); /* one is plain training; others are flushed */
        run_cycle(&r.net, &s, c);
        must(trama_flush(r.net.e, r.net.train));
        if (i % 10 == 0)
            read_step(&r, i + 1);
        if (i == cycles / 5) {
            warm = kept_now(r.net.e);
            memory = memory_now();
        }
    }
    kept end = kept_now(r.net.e);
    demand(shards_equal(warm.shards, end.shards),
           "mesh %s: %" PRId64 " shards of %" PRId64 " B become %" PRId64 " of %" PRId64 " B", mesh, warm.shards.made,
           warm.shards.used_bytes, end.shards.made, end.shards.used_bytes);
    demand(warm.plans == end.plans && warm.lowerings == end.lowerings && warm.inputs == end.inputs &&
               warm.readers == end.readers,
           "mesh %s: %d plans, %d lowerings, %d inputs, %d readers become %d, %d, %d, %d", mesh, warm.plans,
           warm.lowerings, warm.inputs, warm.readers, end.plans, end.lowerings, end.inputs, end.readers);
    demand(suite_is_sanitized() || memory_now() - memory < 1 << 20, "mesh %s: %" PRId64 " bytes in %d cycles", mesh,
           memory_now() - memory, cycles - cycles / 5);
    samples_free(&s);
    network_free(&r.net);
}

START_TEST(a_thousand_cycles_of_any_length_hold_what_the_first_ones_held)
{
    start();
    cycles_grow_nothing_on("1", n_ranks > 1 || suite_is_sanitized() ? 100 : 1000);
    cycles_grow_nothing_on("dp=2,mp=2", suite_is_sanitized() ? 100 : n_ranks > 1 ? 400 : 1000);
    stop();
}
END_TEST

/* Merged values stay, to the bit, while the plan that made it is no longer among the last ones. */
static void plans_come_and_go_on(const char *mesh)
{
    static const cycle turns[] = {
        {{1, 2, 3, 4}}, {{5, 6, 7, 8}}, {{9, 10, 11, 12}}, {{13, 1, 14, 2}}, {{15, 16, 3, 9}}};
    network net = network_untrained(mesh, TRAMA_F64, 3, small_sizes);
    plain_net plain = plain_new(3, small_sizes, SEED);
    trama_optimizer adamw = trama_adamw(1e-3);
    trama_value *done = trama_minimize(net.loss, &adamw), *merged = trama_merged_gradient(done, net.w[1]);
    net.train = trama_target_create(net.program, "train", done, merged);
    trama_gradient_merge(net.train, 4, TRAMA_MERGE_AVG);
    net.e = compile(net.program);
    double last[17 * 13], now[17 * 13];
    for (int step = 0; step < 15; step++) {
        const cycle *c = &turns[step % 5];
        samples s = samples_new(&net, cycle_samples(c), step);
        for (int i = 0, from = 0; i < 4; from += c->batch[i++]) {
            run_part(&net, &s, from, c->batch[i]);
            if (step == 0 && i < 3)
                continue;
            must(trama_read(net.e, merged, now, sizeof now));
            demand(i == 3 || !memcmp(now, last, sizeof now), "mesh %s: the merged gradient of step %d changes", mesh,
                   step - 1);
        }
        plain_step(&plain, s.n, s.x, s.y, true, 1e-3);
        double wrong = tensor_differs(net.e, merged, plain.w[1].gradient);
        demand(wrong <= 1e-10, "mesh %s: the merged gradient of step %d differs by %g", mesh, step, wrong);
        memcpy(last, now, sizeof last);
        samples_free(&s);
    }
    double wrong = tensors_differ(&net, &plain);
    demand(wrong <= 1e-10, "mesh %s: parameters differ by %g", mesh, wrong);
    /* 8, and the one that still has the merged gradient */
    demand(kept_now(net.e).plans <= 9, "mesh %s: %d plans are kept", mesh, kept_now(net.e).plans);
    plain_free(&plain);
    network_free(&net);
}

START_TEST(batches_of_more_sizes_than_there_are_plans_follow_plain_loops)
{
    start();
    for (int i = 1; i < N_MESHES; i++)
        plans_come_and_go_on(meshes[i]);
    stop();
}
END_TEST

TESTS(a_thousand_cycles_of_any_length_hold_what_the_first_ones_held,
      batches_of_more_sizes_than_there_are_plans_follow_plain_loops)
