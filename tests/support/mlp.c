/* SPDX-License-Identifier: Apache-2.0 */
/* The perceptron. */
#include "mlp.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "S(d)" on the axis of that name, R on others. */
static const char *along(const mlp *m, const char *name, int dim, char *layout)
{
    layout[0] = 0;
    for (int a = 0; a < trama_mesh_ndim(m->mesh); a++) {
        const char *axis = trama_mesh_axis_name(m->mesh, a);
        bool hit = axis && !strcmp(axis, name) && dim >= 0;
        snprintf(layout + strlen(layout), 16, hit ? "%sS(%d)" : "%sR", a ? "," : "", dim);
    }
    return layout;
}

/* Even layers by column, odd ones by row; a last layer whose turn would be column is replicated. */
static void shard_layer(mlp *m, int i)
{
    char layout[64];
    bool column = i % 2 == 0, whole = column && i == m->n_layers - 1;
    trama_shard(m->w[i], m->mesh, along(m, "mp", whole ? -1 : column ? 1 : 0, layout));
    trama_shard(m->b[i], m->mesh, along(m, "mp", whole || !column ? -1 : 0, layout));
}

mlp mlp_new(const char *mesh, int n_layers, const int *sizes, const char *optimizer)
{
    mlp m = {.program = trama_program_create(), .mesh = trama_mesh_create(mesh), .n_layers = n_layers};
    char layout[64], name[16];
    m.x = trama_input(m.program, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, sizes[0]));
    m.y = trama_input(m.program, "y", TRAMA_I64, TRAMA_SHAPE(TRAMA_ANY));
    trama_shard(m.x, m.mesh, along(&m, "dp", 0, layout));
    trama_value *h = m.x;
    for (int i = 0; i < n_layers; i++) {
        double bound = 1 / sqrt(sizes[i]);
        trama_init init = {-bound, bound, 7, (uint64_t)(2 * i)}, bias = {-0.1, 0.1, 7, (uint64_t)(2 * i + 1)};
        snprintf(name, sizeof name, "w%d", i);
        m.w[i] = trama_parameter(m.program, name, TRAMA_F64, TRAMA_SHAPE(sizes[i], sizes[i + 1]), &init);
        snprintf(name, sizeof name, "b%d", i);
        m.b[i] = trama_parameter(m.program, name, TRAMA_F64, TRAMA_SHAPE(sizes[i + 1]), &bias);
        shard_layer(&m, i);
        h = trama_add(trama_matmul(h, m.w[i]), m.b[i]);
        if (i < n_layers - 1)
            h = trama_relu(h);
    }
    m.logits = h;
    m.loss = trama_cross_entropy(h, m.y);
    trama_optimizer o = !strcmp(optimizer, "sgd") ? trama_sgd(0.1) : trama_adamw(1e-2);
    m.train = trama_target_create(m.program, "train", trama_minimize(m.loss, &o), m.loss);
    return m;
}

void mlp_free(mlp *m)
{
    trama_program_destroy(&m->program);
    trama_mesh_destroy(&m->mesh);
}

void mlp_batch(const mlp *m, int batch, uint64_t seed, dense *x, dense *y)
{
    int64_t classes = m->logits->shape.dim[1];
    *x = dense_random(TRAMA_SHAPE(batch, m->x->shape.dim[1]), seed, 0, 1, false);
    *y = dense_random(TRAMA_SHAPE(batch), seed + 1, 0, (double)classes - 1, true);
}

mlp_job mlp_job_new(mlp m, int ranks, int k, const plan_options *options)
{
    mlp_job j = {.m = m, .machine = machine_uniform(ranks ? ranks : trama_mesh_size(m.mesh), 1)};
    j.s = simulation_of_cycle(m.program, m.train, k, j.machine, &(simulation_options){.plan = *options});
    return j;
}

void mlp_job_step(mlp_job *j, int batch, uint64_t seed)
{
    dense x, y;
    mlp_batch(&j->m, batch, seed, &x, &y);
    simulation_feed(j->s, j->m.x, &x);
    simulation_feed(j->s, j->m.y, &y);
    simulation_run(j->s, j->m.train);
    dense_free(&x);
    dense_free(&y);
}

void mlp_job_free(mlp_job *j)
{
    simulation_destroy(&j->s);
    machine_destroy(&j->machine);
    mlp_free(&j->m);
}
