/* SPDX-License-Identifier: Apache-2.0 */
/* A program with searched layouts computes the numbers of the same program without a search, on one rank and several.
 */
#include "harness.h"
#include "network.h"

enum { STEPS = 8, BATCH = 12 };

/* A nominal batch so small that splits of weights take fewer bytes than data parallelism. */
static void start_with_batch(int64_t nominal)
{
    trama_config config = {.size = sizeof config, .nominal = nominal};
    must(trama_start(&config, &ctx));
    my_rank = trama_context_rank(ctx);
    n_ranks = trama_context_ranks(ctx);
}

typedef struct outcome {
    double loss[STEPS];
    double w[20 * 17];
    int64_t received, kept, needed; /* bytes in a step; of states on a process; of all values at a time */
} outcome;

typedef struct way {
    bool searched;
    int64_t within;    /* bytes of states; 0: no limit */
    int64_t in_memory; /* bytes at a time; 0: no limit */
    double clip;       /* the norm; 0: none */
} way;

static outcome train_by(way how, const char *mesh, int k, int64_t nominal)
{
    outcome o = {0};
    trama_optimizer adam = trama_adamw(1e-3);
    start_with_batch(nominal);
    adam.clip_norm = how.clip > 0 ? how.clip : adam.clip_norm;
    network net = network_untrained(mesh, TRAMA_F64, 3, small_sizes);
    for (int l = 0; l < net.n && (how.within || how.in_memory); l++) /* else they are annotated as whole */
        demand(trama_annotation_clear(net.w[l]) != NULL, "%s", trama_program_error(net.program));
    net = network_trained_by(net, &adam);
    if (k > 1)
        demand(trama_gradient_merge(net.train, k, TRAMA_MERGE_AVG) != NULL, "%s", trama_program_error(net.program));
    if (how.within)
        must(trama_search_layouts_within(net.program, how.within));
    else if (how.in_memory)
        must(trama_search_layouts_in_memory(net.program, how.in_memory));
    else if (how.searched)
        must(trama_search_layouts(net.program));
    net.e = compile(net.program);
    for (int step = 0; step < STEPS; step++) {
        samples s = samples_new(&net, BATCH, step);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        o.loss[step] = network_loss(&net);
        samples_free(&s);
    }
    must(trama_read(net.e, net.w[0], o.w, sizeof o.w));
    trama_layout layout;
    trama_completion *c;
    must(trama_completion_create(net.program, nominal, &c));
    must(trama_completion_bytes(c, &o.received, NULL));
    must(trama_completion_state_bytes(c, &o.kept));
    must(trama_completion_memory_bytes(c, &o.needed));
    demand(trama_completion_layout(c, net.x, &layout), "x has no layout");
    demand(!strchr(mesh, '=') || (layout.axis[0].kind == TRAMA_SPLIT && layout.axis[0].dim == 0),
           "the annotation of x is lost");
    trama_completion_destroy(&c);
    network_free(&net);
    stop();
    return o;
}

static outcome train(const char *mesh, bool searched, int k, int64_t nominal)
{
    return train_by((way){.searched = searched}, mesh, k, nominal);
}

static void expect_equal(const outcome *a, const outcome *b, const char *mesh, int k)
{
    for (int i = 0; i < STEPS; i++)
        demand(fabs(a->loss[i] - b->loss[i]) <= 1e-10 * fabs(b->loss[i]), "%s, k %d, step %d: loss %.17g, not %.17g",
               mesh, k, i, a->loss[i], b->loss[i]);
    for (int i = 0; i < 20 * 17; i++)
        demand(fabs(a->w[i] - b->w[i]) <= 1e-9, "%s, k %d, weight %d: %.17g, not %.17g", mesh, k, i, a->w[i], b->w[i]);
}

START_TEST(searched_layouts_train_alike_with_fewer_bytes)
{
    static const char *const meshes[] = {"dp=2", "dp=3", "dp=2,mp=2"};
    for (int m = 0; m < 3; m++)
        for (int k = 1; k <= 2; k++) {
            const outcome plain = train(meshes[m], false, k, 4), searched = train(meshes[m], true, k, 4);
            expect_equal(&searched, &plain, meshes[m], k);
            demand(searched.received < plain.received, "%s: %" PRId64 " bytes, and %" PRId64 " without a search",
                   meshes[m], searched.received, plain.received);
        }
}
END_TEST

/* With a batch so large that states are whole without a limit: 731 parameters in f64, and two moments of each. */
START_TEST(a_limit_of_states_changes_no_numbers)
{
    static const struct {
        const char *mesh;
        int64_t limit;
    } cases[] = {{"dp=2", 9500}, {"dp=3", 6500}, {"dp=2,mp=2", 6000}};
    for (int i = 0; i < 3; i++)
        for (int clipped = 0; clipped < 2; clipped++)
            for (int k = 1; k <= 2; k++) {
                const double clip = clipped ? 0.5 : 0;
                const outcome whole = train_by((way){.clip = clip}, "dp=2", k, 256);
                const outcome parts = train_by((way){.within = cases[i].limit, .clip = clip}, cases[i].mesh, k, 256);
                expect_equal(&parts, &whole, cases[i].mesh, k);
                demand(whole.kept > 3 * 731 * 8 && parts.kept <= cases[i].limit,
                       "%s: %" PRId64 " bytes of states, and %" PRId64 " without a limit", cases[i].mesh, parts.kept,
                       whole.kept);
            }
}
END_TEST

/* The batch of 256 takes most of the memory. */
START_TEST(a_limit_of_memory_changes_no_numbers)
{
    static const char *const meshes[] = {"dp=2", "dp=3", "dp=2,mp=2"};
    for (int i = 0; i < 3; i++)
        for (int k = 1; k <= 2; k++) {
            const outcome whole = train_by((way){.searched = true}, meshes[i], k, 256);
            const int64_t limit = whole.needed * (k > 1 ? 22 : 19) / 20; /* sums of merged gradients stay whole */
            const outcome parts = train_by((way){.in_memory = limit}, meshes[i], k, 256);
            expect_equal(&parts, &whole, meshes[i], k);
            demand(parts.needed <= limit, "%s: %" PRId64 " bytes of memory, and %" PRId64 " without a limit", meshes[i],
                   parts.needed, whole.needed);
        }
}
END_TEST

/* On machines whose links are slow, beside one device. merged: by k = 1, so that two programs are laid out alike. */
START_TEST(chosen_layouts_train_as_one_device)
{
    static const char form[] = "kind node\ncores 1\ncore f64 1Gflop/s\nswitch top\nnodes 4 node in top %s 5us\n";
    static const char *const links[] = {"1MB/s", "100GB/s"};
    const outcome plain = train("1", false, 1, BATCH);
    for (int i = 0; i < 8; i++) {
        const int processes = i / 2 % 2 ? 4 : 2, merged = i / 4;
        char described[200], *table;
        trama_cluster *cluster;
        start_with_batch(BATCH);
        snprintf(described, sizeof described, form, links[i % 2]);
        must(trama_cluster_create(described, &cluster));
        network net = network_new(NULL, TRAMA_F64, true, 3, small_sizes);
        must(trama_auto_shard(net.train, cluster, &(trama_auto_options){.processes = processes, .any = BATCH}, &table));
        demand(strstr(table, "chosen") != NULL, "%s", table);
        trama_text_free(&table);
        trama_cluster_destroy(&cluster);
        if (merged)
            demand(trama_gradient_merge(net.train, 1, TRAMA_MERGE_AVG) != NULL, "%s", trama_program_error(net.program));
        net.e = compile(net.program);
        for (int step = 0; step < STEPS; step++) {
            samples s = samples_new(&net, BATCH, step);
            network_feed(&net, &s);
            must(trama_run(net.e, net.train));
            const double loss = network_loss(&net);
            demand(fabs(loss - plain.loss[step]) <= 1e-10 * fabs(plain.loss[step]),
                   "%s, %d processes, step %d: loss %.17g", links[i % 2], processes, step, loss);
            samples_free(&s);
        }
        network_free(&net);
        stop();
    }
}
END_TEST

START_TEST(two_runs_of_a_search_have_equal_bits)
{
    const outcome a = train("dp=2,mp=2", true, 1, 4), b = train("dp=2,mp=2", true, 1, 4);
    demand(!memcmp(a.loss, b.loss, sizeof a.loss) && !memcmp(a.w, b.w, sizeof a.w), "the bits differ");
}
END_TEST

/* A program whose states do not fit is refused, and compiles without the limit. */
START_TEST(a_limit_that_no_layouts_keep_is_refused)
{
    start_with_batch(256);
    network net = network_new("dp=2", TRAMA_F64, true, 3, small_sizes);
    must(trama_search_layouts_within(net.program, 1000));
    demand(trama_compile(ctx, net.program, &net.e) == TRAMA_E_MEMORY && !net.e, "compiled: %s", trama_error());
    demand(strstr(trama_error(), "test_search.c:") && strstr(trama_error(), "may keep 1000 bytes of states"), "%s",
           trama_error());
    must(trama_search_layouts(net.program));
    net.e = compile(net.program);
    network_free(&net);
    stop();
}
END_TEST

/* Plain training keeps the limit; the sums of merged gradients come besides. */
START_TEST(a_limit_of_memory_holds_for_micro_steps)
{
    int64_t needed;
    trama_completion *c;
    const trama_optimizer adam = trama_adamw(1e-3);
    start_with_batch(256);
    network net = network_untrained("dp=2", TRAMA_F64, 3, small_sizes);
    for (int l = 0; l < net.n; l++) /* else they are annotated as whole */
        demand(trama_annotation_clear(net.w[l]) != NULL, "%s", trama_program_error(net.program));
    net = network_trained_by(net, &adam);
    must(trama_completion_create(net.program, 256, &c));
    must(trama_completion_memory_bytes(c, &needed));
    trama_completion_destroy(&c);
    demand(trama_gradient_merge(net.train, 2, TRAMA_MERGE_AVG) != NULL, "%s", trama_program_error(net.program));
    must(trama_search_layouts_in_memory(net.program, needed * 19 / 20));
    must(trama_completion_create(net.program, 256, &c));
    trama_completion_destroy(&c);
    demand(trama_compile(ctx, net.program, &net.e) == TRAMA_E_MEMORY && !net.e, "compiled: %s", trama_error());
    must(trama_search_layouts_in_memory(net.program, 2 * needed));
    net.e = compile(net.program);
    network_free(&net);
    stop();
}
END_TEST

START_TEST(eager_mode_refuses_a_search)
{
    trama_program *p;
    trama_executable *e;
    start();
    must(trama_eager(ctx, &p, &e));
    trama_search_layouts(p);
    demand(trama_program_status(p) == TRAMA_E_UNSUPPORTED, "%s", trama_program_error(p));
    demand(strstr(trama_program_error(p), "eager mode") != NULL, "%s", trama_program_error(p));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        searched_layouts_train_alike_with_fewer_bytes, a_limit_of_states_changes_no_numbers,
        a_limit_of_memory_changes_no_numbers,          chosen_layouts_train_as_one_device,
        two_runs_of_a_search_have_equal_bits,          a_limit_that_no_layouts_keep_is_refused,
        a_limit_of_memory_holds_for_micro_steps,       eager_mode_refuses_a_search,
    };
    return run_tests(__FILE__, tests, sizeof tests / sizeof *tests);
}
