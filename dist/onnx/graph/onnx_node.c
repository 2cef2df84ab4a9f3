/* SPDX-License-Identifier: Apache-2.0 */
/* One node as its builder reads it: operands, attributes, and errors that name it. */
#include "onnx.h"

#include <stdio.h>
#include <string.h>

const char *node_label(const onnx_node *n, char *buffer, size_t room)
{
    const char *type = n->proto->op_type ? n->proto->op_type : "";
    const char *name = n->proto->name && *n->proto->name ? n->proto->name : NULL;
    const char *output = n->proto->n_output ? n->proto->output[0] : "";
    snprintf(buffer, room, "node %s'%.100s' (%.60s)", name ? "" : "of ", name ? name : output, type);
    return buffer;
}

void *node_fail(onnx_node *n, trama_status status, const char *format, ...)
{
    char message[700], label[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return onnx_fail(n->graph, status, "%s: %s", node_label(n, label, sizeof label), message);
}

/* ---- Operands ---- */

int node_inputs(const onnx_node *n)
{
    return (int)n->proto->n_input;
}

bool node_has(const onnx_node *n, int i)
{
    return i < node_inputs(n) && *n->proto->input[i];
}

static onnx_name *operand(const onnx_node *n, int i)
{
    return node_has(n, i) ? onnx_find(n->graph, n->proto->input[i]) : NULL;
}

static trama_value *operand_value(onnx_node *n, int i, bool trained)
{
    onnx_name *name = operand(n, i);
    return name ? onnx_value(n->graph, name, trained) : node_fail(n, TRAMA_E_ARGUMENT, "operand %d is missing", i);
}

trama_value *node_in(onnx_node *n, int i)
{
    return operand_value(n, i, true);
}

trama_value *node_state(onnx_node *n, int i)
{
    return operand_value(n, i, false);
}

trama_shape node_shape(onnx_node *n, int i)
{
    const onnx_name *name = operand(n, i);
    return !name ? TRAMA_SCALAR : name->value ? name->value->shape : name->host->shape;
}

const host_tensor *node_host(onnx_node *n, int i)
{
    const onnx_name *name = operand(n, i);
    return name ? name->host : NULL;
}

bool node_known(onnx_node *n)
{
    for (int i = 0; i < node_inputs(n); i++) {
        const onnx_name *name = operand(n, i);
        bool parameter = name && name->initializer && name->host && trama_dtype_is_float(name->host->dtype);
        if (name && (!name->host || parameter))
            return false;
    }
    return true;
}

static bool fits_list(onnx_node *n, const char *what, size_t count)
{
    return count <= ONNX_LIST ||
           node_fail(n, TRAMA_E_UNSUPPORTED, "%s has %zu numbers, and %d are the most", what, count, ONNX_LIST);
}

onnx_ints node_extents(onnx_node *n, int i, const char *what)
{
    onnx_ints list = {.given = node_has(n, i)};
    const host_tensor *t = node_host(n, i);
    if (!list.given)
        return list;
    if (!t)
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand %d (%s) must be a constant, or made of constants and shapes", i,
                  what);
    else if (trama_dtype_is_float(t->dtype))
        node_fail(n, TRAMA_E_DTYPE, "operand %d (%s) has elements %s, not integers", i, what,
                  trama_dtype_name(t->dtype));
    else if (fits_list(n, what, (size_t)t->count))
        for (; list.n < t->count; list.n++) {
            number x = host_get(t, list.n);
            list.at[list.n] = x.i;
            list.open[list.n] = x.open;
        }
    return list;
}

onnx_ints node_ints(onnx_node *n, int i, const char *what)
{
    const onnx_ints list = node_extents(n, i, what);
    for (int k = 0; k < list.n && !n->graph->program->status; k++)
        if (list.open[k])
            node_fail(n, TRAMA_E_UNSUPPORTED,
                      "number %d of operand %d (%s) is only known when fed; give dims extents in the options", k, i,
                      what);
    return list;
}

bool node_number(onnx_node *n, int i, double otherwise, double *x)
{
    const host_tensor *t = node_host(n, i);
    *x = otherwise;
    if (!node_has(n, i))
        return true;
    if (!t || t->count != 1 || t->open)
        return false;
    *x = host_get(t, 0).r;
    return true;
}

/* ---- Attributes ---- */

/* Whether a list of words has the word. */
static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; n && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

bool node_check_attributes(onnx_node *n)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const char *name = n->proto->attribute[i]->name;
        if (!name || strchr(name, ' ') || !has_word(n->op->attributes, name))
            return node_fail(n, TRAMA_E_UNSUPPORTED, "attribute '%s' is not known in operator set %d", name ? name : "",
                             n->opset);
    }
    return true;
}

const Onnx__AttributeProto *attribute_find(onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++)
        if (!strcmp(n->proto->attribute[i]->name, name))
            return n->proto->attribute[i];
    return NULL;
}

bool attribute_has(onnx_node *n, const char *name)
{
    return attribute_find(n, name);
}

/* The attribute where it has that type; models of the first versions give no types. */
static const Onnx__AttributeProto *typed(onnx_node *n, const char *name, int type, const char *words)
{
    const Onnx__AttributeProto *a = attribute_find(n, name);
    if (!a || !a->has_type || (int)a->type == type || a->type == 0)
        return a;
    return node_fail(n, TRAMA_E_ARGUMENT, "attribute '%s' is no %s", name, words);
}

int64_t attribute_int(onnx_node *n, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = typed(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, "integer");
    return a ? a->i : otherwise;
}

double attribute_real(onnx_node *n, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = typed(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "float");
    return a ? (double)a->f : otherwise;
}

onnx_ints attribute_ints(onnx_node *n, const char *name)
{
    const Onnx__AttributeProto *a = typed(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, "list of integers");
    onnx_ints list = {.given = a};
    if (a && fits_list(n, name, a->n_ints))
        for (; list.n < (int)a->n_ints; list.n++)
            list.at[list.n] = a->ints[list.n];
    return list;
}

bool attribute_is(onnx_node *n, const char *name, const char *otherwise, const char *word)
{
    const Onnx__AttributeProto *a = typed(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, "string");
    if (!a)
        return !strcmp(otherwise, word);
    return a->s.len == strlen(word) && !memcmp(a->s.data, word, a->s.len);
}

char *attribute_text(onnx_node *n, const char *name)
{
    const Onnx__AttributeProto *a = typed(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, "string");
    char *copy = a && !memchr(a->s.data, 0, a->s.len) ? trama_try_alloc(a->s.len + 1) : NULL;
    if (!copy)
        return node_fail(n, TRAMA_E_ARGUMENT, "'%s' is not there, or no text", name);
    memcpy(copy, a->s.data, a->s.len);
    copy[a->s.len] = 0;
    return copy;
}

onnx_ints node_list(onnx_node *n, const char *attribute, int i)
{
    return attribute_has(n, attribute) ? attribute_ints(n, attribute) : node_ints(n, i, attribute);
}

onnx_ints node_extent_list(onnx_node *n, const char *attribute, int i)
{
    return attribute_has(n, attribute) ? attribute_ints(n, attribute) : node_extents(n, i, attribute);
}

int node_dim(onnx_node *n, int64_t dim, int ndim)
{
    if (dim >= -ndim && dim < ndim)
        return (int)(dim < 0 ? dim + ndim : dim);
    node_fail(n, TRAMA_E_SHAPE, "dim %lld is not there (%d dims)", (long long)dim, ndim);
    return -1;
}

unsigned node_dims(onnx_node *n, const onnx_ints *list, int ndim)
{
    unsigned dims = 0;
    for (int i = 0; i < list->n; i++) {
        int dim = node_dim(n, list->at[i], ndim);
        if (dim >= 0 && dims >> dim & 1)
            node_fail(n, TRAMA_E_SHAPE, "dim %d is named twice", dim);
        dims |= dim < 0 ? 0 : 1u << dim;
    }
    return dims;
}
