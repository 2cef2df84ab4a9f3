/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a cycle of micro-steps are those of all its samples, beside plain loops. */
#include "merging.h"

/* The gradients of a cycle into the plain parameters: of all samples at once, or those of the micro-steps in all. */
static void plain_merge(plain_net *plain, const samples *s, const cycle *c, bool total)
{
    plain_net sum = plain_new(plain->n, plain->size, SEED);
    for (int i = 0, from = 0; total && i < cycle_length(c); from += c->batch[i++]) {
        plain_gradients(plain, c->batch[i], s->x + (int64_t)from * plain->size[0], s->y + from);
        for (int k = 0; k < 2 * plain->n; k++)
            for (int64_t j = 0; j < plain_parameter_at(plain, k)->n; j++)
                plain_parameter_at(&sum, k)->gradient[j] += plain_parameter_at(plain, k)->gradient[j];
    }
    if (!total)
        plain_gradients(plain, s->n, s->x, s->y);
    for (int k = 0; total && k < 2 * plain->n; k++)
        memcpy(plain_parameter_at(plain, k)->gradient, plain_parameter_at(&sum, k)->gradient,
               (size_t)plain_parameter_at(plain, k)->n * sizeof(double));
    plain_free(&sum);
}

static void merged_gradients_on(const char *mesh, unsigned how)
{
    static const cycle cycles[] = {{{17, 1, 30, 9, 7}}, {{1, 1, 60, 1, 1}}, {{13, 13, 12, 13, 13}}};
    bool total = how & TRAMA_MERGE_SUM;
    network net = network_untrained(mesh, TRAMA_F64, 3, small_sizes);
    plain_net plain = plain_new(3, small_sizes, SEED);
    trama_optimizer sgd = trama_sgd(0.05);
    trama_value *listed[7] = {trama_minimize(net.loss, &sgd)};
    for (int i = 0; i < 6; i++)
        listed[i + 1] = trama_merged_gradient(listed[0], network_parameter(&net, i));
    net.train = trama_target_at(TRAMA_HERE, net.program, "train", 7, listed);
    trama_gradient_merge(net.train, 5, how);
    net.e = compile(net.program);
    for (int step = 0; step < 3; step++) {
        samples s = samples_new(&net, 64, step);
        run_cycle(&net, &s, &cycles[step]);
        plain_merge(&plain, &s, &cycles[step], total);
        for (int i = 0; i < 6; i++) {
            double wrong = tensor_differs(net.e, listed[i + 1], plain_parameter_at(&plain, i)->gradient);
            demand(wrong <= 1e-12, "mesh %s, %u: the gradient of %s differs by %g in step %d", mesh ? mesh : "none",
                   how, trama_value_name(network_parameter(&net, i)), wrong, step);
            plain_sgd(plain_parameter_at(&plain, i), sgd.lr);
        }
        samples_free(&s);
    }
    demand(tensors_differ(&net, &plain) <= 1e-12, "mesh %s: parameters differ", mesh ? mesh : "none");
    plain_free(&plain);
    network_free(&net);
}

/* Of 64 samples in uneven micro-steps; as mean and total, summed over the mesh at the end or each time. */
START_TEST(merged_gradients_are_those_of_all_samples)
{
    start();
    for (int i = 0; i < N_MESHES; i++)
        for (unsigned how = TRAMA_MERGE_AVG; how <= (TRAMA_MERGE_SUM | TRAMA_MERGE_SYNC_EACH); how++)
            merged_gradients_on(meshes[i], how);
    stop();
}
END_TEST

TESTS(merged_gradients_are_those_of_all_samples)
