/* SPDX-License-Identifier: Apache-2.0 */
/* The models but for the decoder, each in few ops. */
#include "models.h"

#include <stdio.h>
#include <string.h>

/* Lays a value out: axis a of the mesh as `placement(a)`, where `at` is the placement of the axes of that name, NULL
 * for all axes. */
static trama_value *lay(trama_value *v, const trama_mesh *mesh, const char *name, const char *at)
{
    char layout[TRAMA_MAX_AXES * 16] = "";
    if (!mesh)
        return v;
    for (int a = 0; a < trama_mesh_ndim(mesh); a++) {
        const char *axis = trama_mesh_axis_name(mesh, a);
        snprintf(layout + strlen(layout), 16, "%s%s", a ? "," : "", !name || (axis && !strcmp(axis, name)) ? at : "R");
    }
    return trama_shard(v, mesh, layout);
}

/* ---- Perceptron ---- */

static void record_mlp(model *m, const model_sizes *s)
{
    enum { PIXELS = 784, CLASSES = 10 };
    int64_t batch = s->gpt.sequences, in = PIXELS;
    for (int a = 0; a < trama_mesh_ndim(m->mesh); a++) {
        const char *axis = trama_mesh_axis_name(m->mesh, a);
        batch *= axis && !strcmp(axis, "dp") ? trama_mesh_extent(m->mesh, a) : 1;
    }
    trama_value *h = trama_input(m->program, "x", TRAMA_F32, TRAMA_SHAPE(batch, PIXELS));
    trama_value *labels = trama_input(m->program, "y", TRAMA_I64, TRAMA_SHAPE(batch));
    lay(h, m->mesh, "dp", "S(0)");
    for (int i = 0; i <= s->n_hidden; i++) {
        const int64_t out = i < s->n_hidden ? s->hidden[i] : CLASSES;
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        trama_value *w = trama_parameter(m->program, name, TRAMA_F32, TRAMA_SHAPE(in, out), NULL);
        lay(w, m->mesh, "mp", i % 2 ? "S(0)" : i == s->n_hidden ? "R" : "S(1)");
        snprintf(name, sizeof name, "b%d", i);
        h = trama_add(trama_matmul(h, w), trama_parameter(m->program, name, TRAMA_F32, TRAMA_SHAPE(out), NULL));
        h = i < s->n_hidden ? trama_relu(h) : h;
        in = out;
    }
    m->loss = trama_cross_entropy(h, labels);
}

/* ---- Conjugate gradients (Hestenes and Stiefel 1952) ---- */

static void record_cg(model *m, const model_sizes *s)
{
    char layout[TRAMA_MAX_AXES * 8] = "";
    for (int a = 0; a < trama_mesh_ndim(m->mesh); a++)
        snprintf(layout + strlen(layout), 8, "%sS(%d)", a ? "," : "", a == 1);
    trama_value *matrix = trama_state(m->program, "A", TRAMA_F64, TRAMA_SHAPE(s->n, s->n), NULL);
    if (m->mesh)
        trama_shard(matrix, m->mesh, layout);
    static const char *const names[] = {"x", "r", "p"};
    trama_value *v[3], *rho = trama_state(m->program, "rho", TRAMA_F64, TRAMA_SCALAR, NULL);
    for (int i = 0; i < 3; i++)
        v[i] = lay(trama_state(m->program, names[i], TRAMA_F64, TRAMA_SHAPE(s->n, 1), NULL), m->mesh, NULL, "S(0)");
    trama_value *q = trama_matmul(matrix, v[2]);
    trama_value *alpha = trama_div(rho, trama_sum(trama_mul(v[2], q)));
    trama_value *x = trama_add(v[0], trama_mul(alpha, v[2])), *r = trama_sub(v[1], trama_mul(alpha, q));
    trama_value *next = trama_sum_square(r), *p = trama_add(r, trama_mul(trama_div(next, rho), v[2]));
    m->target = trama_target_create(m->program, "step", trama_assign(v[0], x), trama_assign(v[1], r),
                                    trama_assign(v[2], p), trama_assign(rho, next));
}

/* ---- Heat equation: an explicit step of a five-point stencil ---- */

static trama_status never(const trama_call *call)
{
    return trama_kernel_fail("%s is planned and never runs", call->op->name);
}

static void record_heat(model *m, const model_sizes *s)
{
    static const trama_op_definition diffuse = {.name = "diffuse",
                                                .n_in = 2,
                                                .n_out = 1,
                                                .rule = "ij,i{1:1}j{1:1}->ij",
                                                .updates = 1,
                                                .flops = 7,
                                                .cpu = never};
    if (trama_op_define(&diffuse, &m->op))
        return;
    trama_value *u[2];
    for (int i = 0; i < 2; i++) {
        u[i] = trama_state(m->program, i ? "v" : "u", TRAMA_F64, TRAMA_SHAPE(s->n, s->n), NULL);
        if (m->mesh)
            trama_shard(u[i], m->mesh, trama_mesh_ndim(m->mesh) == 1 ? "S(0)" : "S(0),S(1)");
    }
    trama_value *operands[] = {u[1], u[0]};
    m->target = trama_target_create(m->program, "step", trama_apply(m->op, 2, operands, NULL));
}

/* ---- All of them ---- */

model model_record(int which, trama_mesh *mesh, const model_sizes *sizes)
{
    model m = {.mesh = mesh};
    if (which == MODEL_GPT) {
        m.decoder = decoder_new(mesh, sizes->gpt);
        m.program = m.decoder.program;
        m.loss = m.decoder.loss;
        return m;
    }
    m.program = trama_program_create();
    which == MODEL_MLP ? record_mlp(&m, sizes) : which == MODEL_CG ? record_cg(&m, sizes) : record_heat(&m, sizes);
    return m;
}

void model_train(model *m)
{
    trama_optimizer sgd = trama_sgd(0.1);
    if (m->decoder.program) {
        decoder_train(&m->decoder);
        m->target = m->decoder.train;
    } else if (m->loss) {
        m->target = trama_target_create(m->program, "train", trama_minimize(m->loss, &sgd), m->loss);
    }
}

void model_free(model *m)
{
    if (m->decoder.program) {
        decoder_free(&m->decoder);
    } else {
        trama_program_destroy(&m->program);
        trama_mesh_destroy(&m->mesh);
    }
    trama_op_destroy(&m->op);
}
