/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a GPU as one task: few tasks, the bits of one task a step, graphs that follow buffers and memory limits. */
#include "executable.h"
#include "harness.h"
#include "instance.h"
#include "itself.h"
#include "network.h"
#include "step_name.h"

#if TRAMA_HAVE_CUDA

enum { STEPS = 24, BATCH = 12 };

unsigned long simt_launches(void) __attribute__((weak)); /* of what stands in for a GPU */
unsigned long simt_branches(void) __attribute__((weak));

static bool start_on_gpu(int gpu_steps, int64_t memory)
{
    trama_config config = {
        .size = sizeof config, .device = TRAMA_GPU, .gpu_steps = gpu_steps, .gpu_memory = memory, .map_by_order = true};
    if (trama_start(&config, &ctx))
        return false;
    my_rank = trama_context_rank(ctx);
    n_ranks = trama_context_ranks(ctx);
    return true;
}

/* Tasks of a run of the largest target that ran. */
static int tasks_of_a_run(const trama_executable *e)
{
    const plan_cache *c = &e->plans;
    int most = 0;
    for (int i = 0; i < c->n_slots; i++)
        for (const kept_plan *k = c->slots[i]; k; k = k->next)
            if (k->key.use == PLAN_TARGET && k->in->lowerings.at[0].tasks > most)
                most = k->in->lowerings.at[0].tasks;
    return most;
}

typedef struct outcome {
    double loss[STEPS];
    float w[20 * 17];
    int tasks;
    unsigned long launches; /* outside of graphs, in the last step */
} outcome;

static outcome train(trama_dtype inner, bool adamw, int gpu_steps, int64_t memory)
{
    outcome o;
    memset(&o, 0, sizeof o);
    demand(start_on_gpu(gpu_steps, memory), "%s", trama_error());
    network net = network_trained(network_mixed(n_ranks > 1 ? "dp=2" : NULL, TRAMA_F32, inner, 3, small_sizes), adamw);
    net.e = compile(net.program);
    for (int step = 0; step < STEPS; step++) {
        samples s = samples_new(&net, BATCH, step % 5);
        must(trama_wait(net.e));
        network_feed(&net, &s);
        const unsigned long before = simt_launches ? simt_launches() : 0;
        must(trama_run(net.e, net.train));
        must(trama_wait(net.e));
        o.launches = simt_launches ? simt_launches() - before : 0;
        o.loss[step] = network_loss(&net);
        samples_free(&s);
    }
    must(trama_read(net.e, net.w[0], o.w, sizeof o.w));
    o.tasks = tasks_of_a_run(net.e);
    network_free(&net);
    stop();
    return o;
}

static void expect_same(const outcome *a, const outcome *b, int gpu_steps)
{
    demand(!memcmp(a->loss, b->loss, sizeof a->loss) && !memcmp(a->w, b->w, sizeof a->w),
           "%d steps a task give other bits than 1", gpu_steps);
}

/* On two ranks gradients are exchanged: joined at will, the steps would wait for each other. */
START_TEST(a_training_step_is_three_tasks_at_most_with_the_bits_of_many)
{
    static const int sizes[] = {2, 5, 0};
    for (int variant = 0; variant < 4; variant++) {
        const trama_dtype inner = variant / 2 ? TRAMA_BF16 : TRAMA_F32;
        const outcome single = train(inner, variant % 2, 1, 0);
        demand(single.tasks > 8, "%d tasks of one step each", single.tasks);
        for (int i = 0; i < 3; i++) {
            const outcome joined = train(inner, variant % 2, sizes[i], 0);
            expect_same(&single, &joined, sizes[i]);
            demand(joined.tasks < single.tasks, "%d tasks instead of %d", joined.tasks, single.tasks);
            if (sizes[i] || n_ranks > 1)
                continue;
            demand(joined.tasks <= 3, "%d tasks", joined.tasks);
            demand(joined.launches == 0, "%lu kernels outside of graphs", joined.launches);
        }
    }
    demand(!simt_branches || simt_branches() > 0, "no graph has a branch");
}
END_TEST

START_TEST(little_memory_cuts_segments)
{
    const outcome roomy = train(TRAMA_F32, true, 0, 0), tight = train(TRAMA_F32, true, 0, 40000);
    expect_same(&roomy, &tight, 256);
    demand(tight.tasks > roomy.tasks, "%d tasks, where there is room %d", tight.tasks, roomy.tasks);
}
END_TEST

/* last = x + x + ..., n additions. */
static void add_often(trama_program *p, trama_value *x, int n, trama_value **last)
{
    *last = x;
    for (int i = 0; i < n; i++)
        *last = trama_add(*last, x);
    must(trama_program_status(p));
}

/* Other extents have other buffers, hence other graphs, which are made and used in turns. */
START_TEST(graphs_are_of_the_buffers_that_are_used)
{
    demand(start_on_gpu(0, 0), "%s", trama_error());
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY)), *y;
    add_often(p, x, 9, &y);
    trama_value *z = trama_matmul(trama_reshape(y, TRAMA_SHAPE(-1, 1)), trama_reshape(x, TRAMA_SHAPE(1, -1)));
    trama_target *t = trama_target_create(p, "t", y, z);
    trama_executable *e = compile(p);
    for (int run = 0; run < 40; run++) {
        static const int extents[] = {5, 64, 5, 17};
        const int n = extents[run % 4];
        float data[64], got[64], product[64 * 64];
        for (int i = 0; i < n; i++)
            data[i] = (float)(run + i);
        must(trama_feed(e, x, data, TRAMA_SHAPE(n)));
        must(trama_run(e, t));
        must(trama_read(e, y, got, (size_t)n * sizeof *got));
        must(trama_read(e, z, product, (size_t)n * (size_t)n * sizeof *product));
        for (int i = 0; i < n; i++)
            demand(got[i] == 10 * data[i] && product[i * n + n - 1] == 10 * data[i] * data[n - 1],
                   "run %d, element %d: %g, %g", run, i, (double)got[i], (double)product[i * n + n - 1]);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

enum { SIDE = 6 };

static void multiply(const float *a, const float *b, float *c)
{
    for (int i = 0; i < SIDE * SIDE; i++) {
        c[i] = 0;
        for (int k = 0; k < SIDE; k++)
            c[i] += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
    }
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Products of x, with its rows sorted between them: an op without a kernel for GPUs. */
START_TEST(a_step_on_a_core_parts_segments)
{
    demand(start_on_gpu(0, 0), "%s", trama_error());
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(SIDE, SIDE));
    trama_value *sorted = trama_sort(trama_matmul(trama_matmul(x, x), x), 1, false);
    trama_value *z = trama_matmul(trama_matmul(sorted, x), x);
    trama_target *t = trama_target_create(p, "t", z);
    trama_executable *e = compile(p);
    for (int run = 0; run < 8; run++) {
        float data[SIDE * SIDE], a[SIDE * SIDE], b[SIDE * SIDE], got[SIDE * SIDE];
        for (int i = 0; i < SIDE * SIDE; i++)
            data[i] = (float)((i * 7 + run) % 5 - 2);
        multiply(data, data, a);
        multiply(a, data, b);
        for (int i = 0; i < SIDE; i++)
            qsort(b + i * SIDE, SIDE, sizeof *b, compare_floats);
        multiply(b, data, a);
        multiply(a, data, b);
        must(trama_feed(e, x, data, TRAMA_SHAPE(SIDE, SIDE)));
        must(trama_run(e, t));
        must(trama_read(e, z, got, sizeof got));
        for (int i = 0; i < SIDE * SIDE; i++)
            demand(got[i] == b[i], "run %d, element %d: %g, not %g", run, i, (double)got[i], (double)b[i]);
    }
    demand(tasks_of_a_run(e) == 3, "%d tasks", tasks_of_a_run(e));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* Traces tell roles from the ends of names. */
START_TEST(names_keep_their_roles)
{
    static const char *const names[][2] = {
        {"matmul", "matmul_and_3"}, {"matmul.grad", "matmul_and_3.grad"}, {"update.adam", "update.adam_and_3"}};
    for (int i = 0; i < 3; i++) {
        char name[40];
        step_joined_name(names[i][0], 3, name, sizeof name);
        demand(!strcmp(name, names[i][1]), "%s instead of %s", name, names[i][1]);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_training_step_is_three_tasks_at_most_with_the_bits_of_many, little_memory_cuts_segments,
                            graphs_are_of_the_buffers_that_are_used, a_step_on_a_core_parts_segments,
                            names_keep_their_roles};
    if (!start_on_gpu(0, 0)) {
        printf("skipped: %s\n", trama_error());
        return 77;
    }
    stop();
    return run_tests(__FILE__, tests, n_ranks > 1 ? 1 : (int)(sizeof tests / sizeof *tests));
}

#else

NO_TESTS("this Trama was built without CUDA")

#endif
