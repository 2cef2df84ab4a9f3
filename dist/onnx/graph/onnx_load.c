/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: a model out of bytes, and its names. */
#include <string.h>

#include "onnx.h"
#include "sized.h"

enum { MODEL_LEVELS = 32 }; /* a graph within two levels of control flow has 16 */

/* ---- Life ---- */

static Onnx__ModelProto *unpack(trama_onnx *graph)
{
    const trama_onnx_source *s = graph->source;
    if (!proto_nests(&onnx__model_proto__descriptor, s->model, s->bytes, MODEL_LEVELS))
        return onnx_fail(graph, TRAMA_E_ARGUMENT, "these %zu bytes are no ONNX model, or nest more than %d messages",
                         s->bytes, MODEL_LEVELS);
    Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, s->bytes, s->model);
    return proto ? proto : onnx_fail(graph, TRAMA_E_ARGUMENT, "these %zu bytes are no ONNX model", s->bytes);
}

/* Frees the parts that only the import needs. */
static void forget_content(trama_onnx *graph)
{
    for (int i = 0; i < graph->names.n; i++) {
        host_free(graph->names.at[i].host);
        graph->names.at[i].host = NULL;
    }
    ARRAY_FREE(&graph->symbols);
    ARRAY_FREE(&graph->trues);
    ARRAY_FREE(&graph->sums);
    graph->source = NULL;
    graph->options = NULL;
    graph->label = NULL;
    graph->proto = NULL;
}

static bool import(trama_onnx *graph)
{
    Onnx__ModelProto *proto = unpack(graph);
    graph->proto = proto;
    bool done = proto && onnx_walk(graph);
    done = !program_is_short(graph->program, graph->where, "trama_onnx_create") && done;
    if (proto)
        onnx__model_proto__free_unpacked(proto, NULL);
    forget_content(graph);
    return done;
}

static bool check_list(trama_where where, trama_program *program, const char *what, int n, const void *list)
{
    return n == 0 || (n > 0 && list) ||
           program_fail(program, where, TRAMA_E_ARGUMENT, "trama_onnx_create: a list of %d %s%s", n, what,
                        n < 0 ? "" : ", which is NULL");
}

static bool check_options(trama_where where, trama_program *program, const trama_onnx_options *o)
{
    if (!check_list(where, program, "dims", o->n_dims, o->dims) ||
        !check_list(where, program, "constants", o->n_constants, o->constants))
        return false;
    for (int i = 0; i < o->n_dims; i++)
        if (!o->dims[i].name || o->dims[i].extent < 0)
            return program_fail(program, where, TRAMA_E_ARGUMENT,
                                "trama_onnx_create: option %d of dims has no name, or an extent below 0", i);
    for (int i = 0; i < o->n_constants; i++)
        if (!o->constants[i].name || (!o->constants[i].data && trama_shape_count(o->constants[i].shape)))
            return program_fail(program, where, TRAMA_E_ARGUMENT,
                                "trama_onnx_create: option %d of constants has no name, or no data", i);
    return true;
}

trama_onnx *trama_onnx_create_at(trama_where where, trama_program *program, const trama_onnx_source *source,
                                 const trama_onnx_options *options)
{
    trama_onnx_source own_source;
    trama_onnx_options own_options = {0};
    if (!program || !source)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "trama_onnx_create: the %s is NULL",
                            program ? "source" : "program");
    if (program->status)
        return NULL;
    trama_status status = sized_read(where, "trama_onnx_create", SIZED(trama_onnx_source, data), &own_source, source);
    if (!status && options)
        status =
            sized_read(where, "trama_onnx_create", SIZED(trama_onnx_options, train_scalars), &own_options, options);
    if (status)
        return program_fail(program, NOWHERE, status, "%s", trama_error());
    if (!check_options(where, program, &own_options))
        return NULL;
    if (!own_source.model)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "trama_onnx_create: the model is NULL");
    trama_onnx *graph = trama_alloc(sizeof *graph);
    *graph = (trama_onnx){.program = program,
                          .where = where,
                          .source = &own_source,
                          .options = &own_options,
                          .label = own_source.name ? own_source.name : "model"};
    if (!import(graph))
        trama_onnx_destroy(&graph);
    return graph;
}

void trama_onnx_destroy(trama_onnx **model)
{
    if (!model || !*model)
        return;
    trama_onnx *graph = *model;
    for (int i = 0; i < graph->names.n; i++)
        free(graph->names.at[i].name);
    for (size_t i = 0; i < sizeof graph->lists / sizeof *graph->lists; i++)
        ARRAY_FREE(&graph->lists[i]);
    ARRAY_FREE(&graph->names);
    free(graph->slot);
    free(graph);
    *model = NULL;
}

/* ---- Names ---- */

static const onnx_name *name_number(const trama_onnx *model, trama_onnx_list list, int i)
{
    return i >= 0 && i < trama_onnx_count(model, list) ? &model->names.at[model->lists[list].at[i]] : NULL;
}

int trama_onnx_count(const trama_onnx *model, trama_onnx_list list)
{
    return model && (unsigned)list <= TRAMA_ONNX_PARAMETERS ? model->lists[list].n : 0;
}

trama_value *trama_onnx_number(const trama_onnx *model, trama_onnx_list list, int i)
{
    const onnx_name *name = name_number(model, list, i);
    return name ? name->value : NULL;
}

const char *trama_onnx_name(const trama_onnx *model, trama_onnx_list list, int i)
{
    const onnx_name *name = name_number(model, list, i);
    return name ? name->name : NULL;
}

trama_value *trama_onnx_find(const trama_onnx *model, const char *name)
{
    const onnx_name *found = model ? onnx_find(model, name) : NULL;
    return found ? found->value : NULL;
}
