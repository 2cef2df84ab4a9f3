/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder, through the public headers. */
#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int axis_of(const trama_mesh *mesh, const char *name)
{
    for (int a = 0; a < trama_mesh_ndim(mesh); a++)
        if (trama_mesh_axis_name(mesh, a) && !strcmp(trama_mesh_axis_name(mesh, a), name))
            return a;
    return -1;
}

static int extent_of(const trama_mesh *mesh, const char *name)
{
    const int axis = axis_of(mesh, name);
    return axis < 0 ? 1 : trama_mesh_extent(mesh, axis);
}

/* The processes of a mesh at coordinate i of an axis, as a mesh of its other axes; the whole mesh without the axis. */
static trama_mesh *slice(const trama_mesh *mesh, int axis, int i)
{
    int shape[TRAMA_MAX_AXES], n = 0, behind = 1;
    const char *names[TRAMA_MAX_AXES];
    for (int a = 0; a < trama_mesh_ndim(mesh); a++) {
        if (a == axis)
            continue;
        shape[n] = trama_mesh_extent(mesh, a);
        names[n++] = trama_mesh_axis_name(mesh, a);
        if (a > axis)
            behind *= trama_mesh_extent(mesh, a);
    }
    const int stages = axis < 0 ? 1 : trama_mesh_extent(mesh, axis), size = trama_mesh_size(mesh) / stages;
    int *ids = malloc((size_t)size * sizeof *ids);
    for (int k = 0; k < size; k++)
        ids[k] = trama_mesh_id(mesh, axis < 0 ? k : (k / behind * stages + i) * behind + k % behind);
    trama_mesh *made = trama_mesh_child(mesh, n, shape, names, ids);
    free(ids);
    return made;
}

/* Splits a dim along the axis of that name, where the mesh has it. */
static void split(trama_value *value, const trama_mesh *mesh, const char *name, int dim)
{
    char layout[TRAMA_MAX_AXES * 16] = "";
    for (int a = 0; a < trama_mesh_ndim(mesh); a++)
        snprintf(layout + strlen(layout), 16, a == axis_of(mesh, name) ? "%sS(%d)" : "%sR", a ? "," : "", dim);
    if (mesh)
        trama_shard(value, mesh, layout);
}

static trama_value *parameter(decoder *d, const char *name, trama_shape shape)
{
    static const trama_init init = {-0.01, 0.01, 1, 1};
    return trama_parameter(d->program, name, TRAMA_F32, shape, &init);
}

int decoder_stages(const trama_mesh *mesh)
{
    return extent_of(mesh, "pp");
}

decoder decoder_new(trama_mesh *mesh, decoder_sizes s)
{
    decoder d = {.program = trama_program_create(), .mesh = mesh};
    d.n_stages = decoder_stages(mesh);
    for (int i = 0; i < d.n_stages; i++)
        d.stage[i] = !mesh ? NULL : slice(d.mesh, axis_of(d.mesh, "pp"), i);
    const trama_mesh *first = d.stage[0], *last = d.stage[d.n_stages - 1];
    const int64_t batch = (int64_t)s.sequences * extent_of(d.mesh, "dp");
    trama_value *tokens = trama_input(d.program, "tokens", TRAMA_I64, TRAMA_SHAPE(batch, s.length));
    trama_value *labels = trama_input(d.program, "labels", TRAMA_I64, TRAMA_SHAPE(batch * s.length));
    split(tokens, first, "dp", 0);
    split(labels, last, "dp", 0);
    trama_value *x = trama_embedding(parameter(&d, "words", TRAMA_SHAPE(s.words, s.features)), tokens);
    x = trama_reshape(trama_add(x, parameter(&d, "places", TRAMA_SHAPE(s.length, s.features))),
                      TRAMA_SHAPE(batch * s.length, s.features));
    const transformer_sizes sizes = {batch, s.length, s.features, s.heads, 4 * s.features, false};
    for (int i = 0, stage = 0; i < s.layers; i++) {
        const int next = i * d.n_stages / s.layers;
        char name[24], layout[TRAMA_MAX_AXES * 16] = "";
        snprintf(name, sizeof name, "block%d", i);
        for (int a = 0; a < trama_mesh_ndim(d.stage[next]); a++)
            snprintf(layout + strlen(layout), 16, "%s%s", a ? "," : "",
                     a == axis_of(d.stage[next], "dp") ? "S(0)" : "R");
        if (next != stage)
            x = trama_reshard(x, d.stage[next], layout);
        stage = next;
        const transformer_block b = transformer_block_new(d.program, x, name, sizes);
        split(b.parameter[BLOCK_QKV], d.stage[stage], "mp", 1);
        split(b.parameter[BLOCK_UP], d.stage[stage], "mp", 1);
        x = b.out;
    }
    x = trama_layer_norm(x, 1, parameter(&d, "norm.w", TRAMA_SHAPE(s.features)),
                         parameter(&d, "norm.b", TRAMA_SHAPE(s.features)), 1e-5);
    trama_value *classes = parameter(&d, "classes", TRAMA_SHAPE(s.features, s.words));
    split(classes, last, "mp", 1);
    d.loss = trama_cross_entropy(trama_matmul(x, classes), labels);
    return d;
}

void decoder_train(decoder *d)
{
    trama_optimizer adamw = trama_adamw(1e-4);
    d->train = trama_target_create(d->program, "train", trama_minimize(d->loss, &adamw), d->loss);
}

void decoder_free(decoder *d)
{
    trama_program_destroy(&d->program);
    for (int i = 0; i < d->n_stages; i++)
        trama_mesh_destroy(&d->stage[i]);
    trama_mesh_destroy(&d->mesh);
}
