/* SPDX-License-Identifier: Apache-2.0 */
/* One unit is one step of an optimizer over the parameters of the main job. Gradients are given: they lie in memory
 * and stay, so that there is nothing to compute but the update.
 * Usage: optimizer sgd|momentum|adam|adamw|lamb|clip [--hidden 512,256] [--plan summary|steps]
 *        (clip: adamw whose gradients are clipped by their norm) */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "main_job.h"
#include "program.h"

static trama_optimizer momentum(double lr)
{
    trama_optimizer o = trama_sgd(lr);
    o.momentum = 0.9;
    return o;
}

static trama_optimizer clip(double lr)
{
    trama_optimizer o = trama_adamw(lr);
    o.clip_norm = 1;
    return o;
}

static const struct {
    const char *name;
    trama_optimizer (*make)(double lr);
} optimizers[] = {{"sgd", trama_sgd},     {"momentum", momentum}, {"adam", trama_adam},
                  {"adamw", trama_adamw}, {"lamb", trama_lamb},   {"clip", clip}};

static trama_optimizer optimizer_named(const char *name)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (!strcmp(name, optimizers[i].name))
            return optimizers[i].make(1e-3);
    bench_fail("usage: optimizer sgd|momentum|adam|adamw|lamb|clip");
}

/* An op whose gradient is its second operand itself; never computed, since nothing but the gradient is wanted. */
static void second_operand(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    (void)d_out;
    d_in[0] = node->in[1];
}

static const trama_op has_gradient = {
    .name = "has_gradient", .n_in = 2, .n_out = 1, .rule = "...,...->...", .gradient = second_operand};

/* A loss of w whose gradient is state. */
static trama_value *loss_of(main_job *job, int i)
{
    trama_value *w = job->parameter[i];
    trama_init init = {-1, 1, 2, (uint64_t)i};
    char name[24];
    snprintf(name, sizeof name, "g%d", i);
    trama_value *g = trama_state(job->program, name, TRAMA_F32, trama_value_shape(w), &init);
    return trama_sum(trama_apply_at(TRAMA_HERE, job->program, &has_gradient, 2, (trama_value *[]){w, g}, NULL));
}

int main(int argc, char **argv)
{
    trama_optimizer optimizer = optimizer_named(argc > 1 ? argv[1] : "");
    main_job job = main_job_forward("1", bench_option(argc, argv, "hidden", "512,256"));
    trama_value *loss = loss_of(&job, 0);
    for (int i = 1; i < 2 * job.n_layers; i++)
        loss = trama_add(loss, loss_of(&job, i));
    trama_target *step = trama_target_create(job.program, "step", trama_minimize(loss, &optimizer));
    bench_serve_program(job.program, step, bench_option(argc, argv, "plan", NULL));
    main_job_free(&job);
    return 0;
}
