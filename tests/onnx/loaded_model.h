/* SPDX-License-Identifier: Apache-2.0 */
/* Made models as programs. */
#ifndef LOADED_MODEL_H
#define LOADED_MODEL_H

#include "../tasks/harness.h"

#include "model_maker.h"
#include "trama_onnx.h"

typedef struct loaded {
    trama_program *p;
    trama_onnx *model;
} loaded;

static inline loaded load_with(const maker *m, const trama_onnx_options *options, trama_onnx_read *read, void *data)
{
    loaded l = {.p = trama_program_create()};
    trama_onnx_source source = {.name = "made.onnx", .read = read, .data = data};
    uint8_t *bytes = make_bytes(m, &source.bytes);
    source.model = bytes;
    l.model = trama_onnx_create(l.p, &source, options);
    free(bytes);
    return l;
}

static inline loaded load(const maker *m)
{
    loaded l = load_with(m, NULL, NULL, NULL);
    demand(l.model, "%s", trama_program_error(l.p));
    return l;
}

static inline void unload(loaded *l)
{
    trama_onnx_destroy(&l->model);
    trama_program_destroy(&l->p);
}

static inline void check_shape(const loaded *l, const char *name, trama_shape shape)
{
    demand(trama_shape_equal(trama_value_shape(trama_onnx_find(l->model, name)), shape), "the shape of '%s'", name);
}

/* The model loads, and its y has that shape. */
static inline void loads_as(const maker *m, trama_shape shape)
{
    loaded l = load(m);
    check_shape(&l, "y", shape);
    unload(&l);
}

/* Loading fails with that status, and the message names the parts; the list ends with NULL. */
static inline void refuses(const maker *m, const trama_onnx_options *options, trama_status status,
                           const char *const *parts)
{
    loaded l = load_with(m, options, NULL, NULL);
    demand(!l.model && trama_program_status(l.p) == status, "%s: %s", trama_status_text(trama_program_status(l.p)),
           trama_program_error(l.p));
    for (; *parts; parts++)
        demand(strstr(trama_program_error(l.p), *parts), "\"%s\" does not say \"%s\"", trama_program_error(l.p),
               *parts);
    unload(&l);
}
#define REFUSES(m, options, status, ...)                                                                               \
    refuses(m, options, status, (const char *const[]){"loaded_model.h", "made.onnx", __VA_ARGS__, NULL})

/* Computes value `name` for x. */
static inline void compute(const loaded *l, const char *name, const float *x, trama_shape shape, void *y, size_t bytes)
{
    trama_target *t = trama_target_create(l->p, name, trama_onnx_find(l->model, name));
    trama_executable *e = compile(l->p);
    if (x)
        must(trama_feed(e, trama_onnx_find(l->model, "x"), x, shape));
    must(trama_run(e, t));
    must(trama_read(e, trama_onnx_find(l->model, name), y, bytes));
    must(trama_executable_destroy(&e));
}

#endif
