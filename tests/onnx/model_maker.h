/* SPDX-License-Identifier: Apache-2.0 */
/* Small ONNX models, made in memory by protobuf-c alone. Knows nothing of the reader under test. */
#ifndef MODEL_MAKER_H
#define MODEL_MAKER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"

enum {
    ONNX_FLOAT = 1,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_INT32 = 6,
    ONNX_INT64,
    ONNX_STRING,
    ONNX_BOOL,
    ONNX_FLOAT16,
    ONNX_DOUBLE
};
enum { MOST_MADE = 32 };

typedef struct maker {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto set, *sets[1];
    Onnx__NodeProto *nodes[MOST_MADE];
    Onnx__TensorProto *initializers[MOST_MADE];
    Onnx__ValueInfoProto *inputs[MOST_MADE], *outputs[MOST_MADE];
} maker;

/* Zeroed memory, which lives until the program ends. */
static inline void *made_room(size_t bytes)
{
    typedef struct piece {
        struct piece *next;
        max_align_t data[];
    } piece;
    static piece *pieces; /* so that no memory is lost */
    piece *p = calloc(1, sizeof *p + bytes + 1);
    p->next = pieces;
    pieces = p;
    return p->data;
}

static inline char *made_text(const char *words)
{
    return strcpy(made_room(strlen(words) + 1), words);
}

static inline void make_begin(maker *m, int64_t opset)
{
    memset(m, 0, sizeof *m);
    onnx__model_proto__init(&m->model);
    onnx__graph_proto__init(&m->graph);
    onnx__operator_set_id_proto__init(&m->set);
    m->set.has_version = 1;
    m->set.version = opset;
    m->set.domain = made_text("");
    m->sets[0] = &m->set;
    m->model.n_opset_import = 1;
    m->model.opset_import = m->sets;
    m->model.graph = &m->graph;
    m->graph.node = m->nodes;
    m->graph.initializer = m->initializers;
    m->graph.input = m->inputs;
    m->graph.output = m->outputs;
}

/* The words of a list with commas; "" is the empty list. */
static inline size_t made_list(const char *words, char ***list)
{
    size_t n = 0;
    *list = made_room(16 * sizeof **list);
    for (const char *at = words; *words;) {
        size_t length = strcspn(at, ",");
        (*list)[n] = made_room(length + 1);
        memcpy((*list)[n++], at, length);
        at += length;
        if (!*at++)
            break;
    }
    return n;
}

/* A value of the type with dims such as "N,3": a number is an extent, another word a name, "?" neither. */
static inline Onnx__ValueInfoProto *made_info(const char *name, int32_t type, const char *dims)
{
    Onnx__ValueInfoProto *info = made_room(sizeof *info);
    Onnx__TypeProto *of = made_room(sizeof *of);
    Onnx__TypeProto__Tensor *tensor = made_room(sizeof *tensor);
    Onnx__TensorShapeProto *shape = made_room(sizeof *shape);
    char **words;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(of);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    info->name = made_text(name);
    info->type = of;
    of->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    of->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = type;
    tensor->shape = shape;
    shape->n_dim = made_list(dims, &words);
    shape->dim = made_room((shape->n_dim + 1) * sizeof *shape->dim);
    for (size_t d = 0; d < shape->n_dim; d++) {
        Onnx__TensorShapeProto__Dimension *dim = shape->dim[d] = made_room(sizeof *dim);
        onnx__tensor_shape_proto__dimension__init(dim);
        if (strchr("-0123456789", *words[d])) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = atoll(words[d]);
        } else if (*words[d] != '?') {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = words[d];
        }
    }
    return info;
}

static inline void make_input(maker *m, const char *name, int32_t type, const char *dims)
{
    m->inputs[m->graph.n_input++] = made_info(name, type, dims);
}

static inline void make_output(maker *m, const char *name)
{
    m->outputs[m->graph.n_output++] = made_info(name, ONNX_FLOAT, "");
}

/* A tensor without content, which the caller sets. */
static inline Onnx__TensorProto *made_tensor(const char *name, int32_t type, const char *dims)
{
    Onnx__TensorProto *t = made_room(sizeof *t);
    char **words;
    onnx__tensor_proto__init(t);
    t->name = made_text(name);
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = made_list(dims, &words);
    t->dims = made_room((t->n_dims + 1) * sizeof *t->dims);
    for (size_t d = 0; d < t->n_dims; d++)
        t->dims[d] = atoll(words[d]);
    return t;
}

static inline void made_raw(Onnx__TensorProto *t, const void *data, size_t bytes)
{
    t->has_raw_data = 1;
    t->raw_data.len = bytes;
    t->raw_data.data = memcpy(made_room(bytes), data, bytes);
}

static inline Onnx__TensorProto *make_initializer(maker *m, const char *name, int32_t type, const char *dims,
                                                  const void *data, size_t bytes)
{
    Onnx__TensorProto *t = m->initializers[m->graph.n_initializer++] = made_tensor(name, type, dims);
    if (data)
        made_raw(t, data, bytes);
    return t;
}

/* Gives a tensor external data. */
static inline void make_external(Onnx__TensorProto *t, const char *location, const char *offset)
{
    const char *const words[][2] = {{"location", location}, {"offset", offset}};
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->external_data = made_room(2 * sizeof *t->external_data);
    for (; t->n_external_data < 2; t->n_external_data++) {
        Onnx__StringStringEntryProto *entry = made_room(sizeof *entry);
        onnx__string_string_entry_proto__init(entry);
        entry->key = made_text(words[t->n_external_data][0]);
        entry->value = made_text(words[t->n_external_data][1]);
        t->external_data[t->n_external_data] = entry;
    }
}

static inline Onnx__NodeProto *make_node(maker *m, const char *op, const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = m->nodes[m->graph.n_node++] = made_room(sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = made_text(op);
    node->n_input = made_list(inputs, &node->input);
    node->n_output = made_list(outputs, &node->output);
    node->attribute = made_room((8) * sizeof *node->attribute);
    return node;
}

static inline Onnx__AttributeProto *made_attribute(Onnx__NodeProto *node, const char *name, int type)
{
    Onnx__AttributeProto *a = node->attribute[node->n_attribute++] = made_room(sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = made_text(name);
    a->has_type = 1;
    a->type = (Onnx__AttributeProto__AttributeType)type;
    return a;
}

static inline Onnx__NodeProto *make_int(Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = made_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = value;
    return node;
}

static inline Onnx__NodeProto *make_tensor_attribute(Onnx__NodeProto *node, const char *name, Onnx__TensorProto *t)
{
    made_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = t;
    return node;
}

/* The serialized model, which the caller frees. */
static inline uint8_t *make_bytes(const maker *m, size_t *n)
{
    uint8_t *bytes = malloc(onnx__model_proto__get_packed_size(&m->model) + 1);
    *n = onnx__model_proto__pack(&m->model, bytes);
    return bytes;
}

/* A constant list of integers; n 0: the scalar list[0]. */
static inline Onnx__NodeProto *make_list(maker *m, const char *name, int n, const int64_t *list)
{
    char dims[16];
    snprintf(dims, sizeof dims, "%d", n);
    Onnx__TensorProto *t = made_tensor(name, ONNX_INT64, n ? dims : "");
    made_raw(t, list, (size_t)(n ? n : 1) * sizeof *list);
    return make_tensor_attribute(make_node(m, "Constant", "", name), "value", t);
}

#endif
