/* SPDX-License-Identifier: Apache-2.0 */
/* Training where ranks read each other's memory: the bits are those of copied messages. */
#include "context.h"
#include "training.h"

enum { STEPS = 12 };

typedef struct outcome {
    float loss[STEPS];
    float *parameters;
    int64_t n, borrowed;
    bool shares; /* ranks read each other's memory */
} outcome;

static int64_t sum_of_ranks(int64_t mine)
{
    int64_t *all = calloc((size_t)n_ranks, sizeof *all), sum = 0;
    must(context_gather(ctx, "test", &mine, sizeof mine, all));
    for (int r = 0; r < n_ranks; r++)
        sum += all[r];
    free(all);
    return sum;
}

static outcome train(const char *mesh, const trama_config *config, int k)
{
    static const int batches[] = {24, 12, 23}; /* plans of their own */
    start_with(config);
    network net = network_new(mesh, TRAMA_F32, true, 3, small_sizes);
    outcome o = {.shares = context_machine(ctx)->loan_bytes > 0};
    if (k > 1)
        demand(trama_gradient_merge(net.train, k, TRAMA_MERGE_AVG), "%s", trama_error());
    net.e = compile(net.program);
    const context_counters before = context_count(ctx);
    for (int i = 0; i < STEPS; i++) {
        samples s = samples_new(&net, batches[k > 1 ? 0 : i / 2 % 3], i);
        network_feed(&net, &s);
        must(trama_run(net.e, net.train));
        if (i % 3 == 0)
            must(trama_run(net.e, net.eval));
        o.loss[i] = (float)network_loss(&net);
        samples_free(&s);
    }
    o.borrowed = sum_of_ranks(context_count(ctx).messages_borrowed - before.messages_borrowed);
    for (int l = 0; l < net.n; l++)
        o.n += (int64_t)net.size[l + 1] * (net.size[l] + 1);
    o.parameters = malloc((size_t)o.n * sizeof *o.parameters);
    int64_t at = 0;
    for (int i = 0; i < 2 * net.n; at += (int64_t)net.size[i / 2 + 1] * (i % 2 ? 1 : net.size[i / 2]), i++)
        must(trama_read(net.e, network_parameter(&net, i), &o.parameters[at],
                        sizeof(float) * (size_t)(net.size[i / 2 + 1] * (i % 2 ? 1 : net.size[i / 2]))));
    network_free(&net);
    stop();
    return o;
}

static void compare(const char *mesh, const outcome *a, const outcome *b)
{
    demand(!memcmp(a->loss, b->loss, sizeof a->loss), "mesh %s: the losses differ", mesh);
    demand(a->n == b->n && !memcmp(a->parameters, b->parameters, (size_t)a->n * sizeof(float)),
           "mesh %s: the parameters differ", mesh);
}

START_TEST(loans_change_no_bit)
{
    int64_t borrowed = 0;
    bool shares = false;
    for (int i = 2; i < N_MESHES; i++)
        for (int k = 1; k <= 2; k++) {
            trama_config config = {.size = sizeof config, .loan_bytes = INT64_MAX};
            outcome copied = train(meshes[i], &config, k);
            demand(copied.borrowed == 0, "mesh %s: %" PRId64 " loans that are not wanted", meshes[i], copied.borrowed);
            for (int arenas = 0; arenas < 2; arenas++) {
                config.loan_bytes = 1;
                config.arena_bytes = arenas;
                outcome lent = train(meshes[i], &config, k);
                compare(meshes[i], &copied, &lent);
                borrowed += lent.borrowed;
                shares = lent.shares; /* unless the system lets no rank map the memory of another one */
                free(lent.parameters);
            }
            free(copied.parameters);
        }
    demand(!shares || borrowed > 100, "%" PRId64 " messages are loans", borrowed);
}
END_TEST

TESTS(loans_change_no_bit)
