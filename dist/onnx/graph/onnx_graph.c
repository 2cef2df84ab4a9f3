/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a graph once, in its order: names, inputs, initializers, then nodes, each folded or built, then outputs. */
#include "onnx.h"

#include <stdio.h>
#include <string.h>

#include "hash.h"

/* ---- Names ---- */

void *onnx_fail(trama_onnx *graph, trama_status status, const char *format, ...)
{
    char message[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return program_fail(graph->program, graph->where, status, "%s: %s", graph->label, message);
}

static int *slot_of(const trama_onnx *graph, const char *name)
{
    uint64_t at = hash_text(HASH_START, name);
    for (;; at++) {
        int *slot = &graph->slot[at % (uint64_t)graph->slots];
        if (!*slot || !strcmp(graph->names.at[*slot - 1].name, name))
            return slot;
    }
}

onnx_name *onnx_find(const trama_onnx *graph, const char *name)
{
    int slot = name && graph->slots ? *slot_of(graph, name) : 0;
    return slot ? &graph->names.at[slot - 1] : NULL;
}

static void grow_slots(trama_onnx *graph)
{
    free(graph->slot);
    graph->slots = 2 * graph->slots + 64;
    graph->slot = trama_alloc((size_t)graph->slots * sizeof *graph->slot);
    for (int i = 0; i < graph->names.n; i++)
        *slot_of(graph, graph->names.at[i].name) = i + 1;
}

onnx_name *onnx_add(trama_onnx *graph, const char *name, const char *what)
{
    if (!name || !*name)
        return onnx_fail(graph, TRAMA_E_ARGUMENT, "%s has no name", what);
    if (onnx_find(graph, name))
        return onnx_fail(graph, TRAMA_E_ARGUMENT, "%s '%s': the name is taken; a graph gives each name once", what,
                         name);
    if (2 * graph->names.n >= graph->slots)
        grow_slots(graph);
    onnx_name *added = ARRAY_PUSH(&graph->names);
    added->name = trama_text_copy(name);
    *slot_of(graph, name) = graph->names.n;
    return added;
}

/* The host tensor of a name as a value. */
static trama_value *value_of_host(trama_onnx *graph, const onnx_name *name, bool trained)
{
    const host_tensor *t = name->host;
    const bool scalar = !t->shape.ndim && !graph->options->train_scalars;
    if (!name->initializer || graph->options->frozen || scalar || !trama_dtype_is_float(t->dtype))
        return trama_value_rename_at(
            graph->where, trama_constant_at(graph->where, graph->program, t->dtype, t->shape, t->data), name->name);
    trama_value *state = trained
                             ? trama_parameter_at(graph->where, graph->program, name->name, t->dtype, t->shape, NULL)
                             : trama_state_at(graph->where, graph->program, name->name, t->dtype, t->shape, NULL);
    *ARRAY_PUSH(&graph->lists[TRAMA_ONNX_PARAMETERS]) = (int)(name - graph->names.at);
    return trama_initial_at(graph->where, state, t->data);
}

trama_value *onnx_value(trama_onnx *graph, onnx_name *name, bool trained)
{
    if (name->value || graph->program->status)
        return name->value;
    if (!name->host)
        return onnx_fail(graph, TRAMA_E_ARGUMENT, "'%s' has no content", name->name);
    bool open = false;
    for (int64_t i = 0; name->host->open && i < name->host->count; i++)
        open |= name->host->open[i] != 0;
    if (!open)
        return name->value = value_of_host(graph, name, trained);
    name->value = onnx_extents_value(graph, name->host);
    if (!name->value && !graph->program->status)
        onnx_fail(graph, TRAMA_E_UNSUPPORTED,
                  "'%s' is computed of extents that are only known when fed, and an op computes with it; give the dims "
                  "extents in the options",
                  name->name);
    return name->value;
}

/* ---- Inputs and initializers ---- */

static bool add_initializers(trama_onnx *graph, const Onnx__GraphProto *g)
{
    if (g->n_sparse_initializer)
        return onnx_fail(graph, TRAMA_E_UNSUPPORTED, "sparse initializers are not supported");
    for (size_t i = 0; i < g->n_initializer; i++) {
        Onnx__TensorProto *proto = g->initializer[i];
        text why = {0};
        trama_status status;
        host_tensor *t = host_of_proto(proto, graph->source, &status, &why);
        onnx_name *name = t ? onnx_add(graph, proto->name, "an initializer") : NULL;
        if (!t)
            onnx_fail(graph, status, "initializer '%s': %s", proto->name ? proto->name : "", why.at ? why.at : "");
        if (name)
            *name = (onnx_name){.name = name->name, .host = t, .initializer = true};
        else
            host_free(t);
        free(why.at);
        if (!name)
            return false;
    }
    return true;
}

int64_t onnx_given_extent(const trama_onnx *graph, const char *name)
{
    for (int i = 0; i < graph->options->n_dims; i++)
        if (!strcmp(graph->options->dims[i].name, name))
            return graph->options->dims[i].extent;
    return TRAMA_ANY;
}

static bool has_name(const Onnx__TensorShapeProto__Dimension *dim)
{
    return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param && *dim->dim_param;
}

static bool input_shape(trama_onnx *graph, const char *name, const Onnx__TensorShapeProto *proto, trama_shape *shape)
{
    if (!proto)
        return onnx_fail(graph, TRAMA_E_UNSUPPORTED, "input '%s': its number of dims is not given", name);
    if (proto->n_dim > TRAMA_MAX_NDIM)
        return onnx_fail(graph, TRAMA_E_UNSUPPORTED, "input '%s' has %zu dims, and %d are the most", name, proto->n_dim,
                         TRAMA_MAX_NDIM);
    *shape = (trama_shape){.ndim = (int)proto->n_dim};
    for (int d = 0; d < shape->ndim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = proto->dim[d];
        bool known = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        shape->dim[d] = known ? dim->dim_value : has_name(dim) ? onnx_given_extent(graph, dim->dim_param) : TRAMA_ANY;
        if (known && dim->dim_value < 0)
            return onnx_fail(graph, TRAMA_E_ARGUMENT, "input '%s': dim %d has the extent %lld", name, d,
                             (long long)dim->dim_value);
    }
    return true;
}

static const trama_onnx_constant *constant_of(const trama_onnx *graph, const char *name)
{
    for (int i = 0; name && i < graph->options->n_constants; i++)
        if (!strcmp(graph->options->constants[i].name, name))
            return &graph->options->constants[i];
    return NULL;
}

static bool shape_fits(trama_shape shape, trama_shape fed)
{
    bool fits = shape.ndim == fed.ndim;
    for (int d = 0; fits && d < shape.ndim; d++)
        fits = fed.dim[d] >= 0 && (shape.dim[d] == TRAMA_ANY || shape.dim[d] == fed.dim[d]);
    return fits;
}

/* An input whose content the options give. */
static bool add_constant(trama_onnx *graph, const trama_onnx_constant *c, trama_dtype dtype, trama_shape shape)
{
    if (dtype != c->dtype || !shape_fits(shape, c->shape))
        return onnx_fail(graph, TRAMA_E_ARGUMENT, "input '%s': the constant has another element type or shape",
                         c->name);
    onnx_name *name = onnx_add(graph, c->name, "an input");
    host_tensor *t = name ? host_create(dtype, c->shape) : NULL;
    if (!t)
        return name && onnx_fail(graph, TRAMA_E_MEMORY, "input '%s': there is no memory for it", c->name);
    if (t->count)
        memcpy(t->data, c->data, (size_t)t->count * trama_dtype_size(dtype));
    name->host = t;
    return true;
}

static void name_extents(trama_onnx *graph, const trama_value *input, const Onnx__TensorShapeProto *proto)
{
    for (int d = 0; input && d < input->shape.ndim; d++)
        if (input->shape.dim[d] == TRAMA_ANY && has_name(proto->dim[d]))
            onnx_name_extent(graph, input, d, proto->dim[d]->dim_param);
}

static bool add_input(trama_onnx *graph, const Onnx__ValueInfoProto *info)
{
    const trama_onnx_constant *constant = constant_of(graph, info->name);
    trama_dtype dtype;
    trama_shape shape;
    const char *type, *label = info->name ? info->name : "";
    bool tensor = info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    if (!tensor)
        return onnx_fail(graph, TRAMA_E_UNSUPPORTED, "input '%s' is no tensor", label);
    if (host_dtype(info->type->tensor_type->elem_type, &dtype, &type))
        return onnx_fail(graph, TRAMA_E_UNSUPPORTED, "input '%s': elements %s are not supported", label, type);
    if (!input_shape(graph, label, info->type->tensor_type->shape, &shape))
        return false;
    if (constant)
        return add_constant(graph, constant, dtype, shape);
    onnx_name *name = onnx_add(graph, info->name, "an input");
    if (!name)
        return false;
    *ARRAY_PUSH(&graph->lists[TRAMA_ONNX_INPUTS]) = graph->names.n - 1;
    name->value = trama_input_at(graph->where, graph->program, info->name, dtype, shape);
    name_extents(graph, name->value, info->type->tensor_type->shape);
    return name->value != NULL;
}

/* Older models list initializers among the inputs, too. */
static bool add_inputs(trama_onnx *graph, const Onnx__GraphProto *g)
{
    for (int i = 0; i < graph->options->n_constants; i++) {
        size_t k = 0;
        while (k < g->n_input && strcmp(g->input[k]->name ? g->input[k]->name : "", graph->options->constants[i].name))
            k++;
        if (k == g->n_input)
            return onnx_fail(graph, TRAMA_E_ARGUMENT, "the graph has no input '%s'", graph->options->constants[i].name);
    }
    for (size_t i = 0; i < g->n_input; i++)
        if (!onnx_find(graph, g->input[i]->name) && !add_input(graph, g->input[i]))
            return false;
    return true;
}

/* ---- Nodes ---- */

/* The operator set of a domain; 0: not imported. */
static int opset_of(const trama_onnx *graph, const char *domain)
{
    for (size_t i = 0; i < graph->proto->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = graph->proto->opset_import[i];
        bool same = onnx_domain_is_default(domain) ? onnx_domain_is_default(set->domain)
                                                   : set->domain && !strcmp(set->domain, domain);
        if (same)
            return set->version < 0 || set->version > 1000 ? 1000 : (int)set->version;
    }
    return 0;
}

static bool find_op(onnx_node *n)
{
    const char *domain = n->proto->domain, *name = n->proto->op_type ? n->proto->op_type : "";
    bool others;
    n->opset = opset_of(n->graph, domain);
    if (!n->opset)
        return node_fail(n, TRAMA_E_ARGUMENT, "the model imports no operator set of '%s'", domain ? domain : "");
    n->op = onnx_op_find(domain, name, n->opset, &others);
    if (!n->op)
        return node_fail(n, TRAMA_E_UNSUPPORTED,
                         others ? "this op is not supported as of operator set %d" : "this op is not supported",
                         n->opset);
    int given = node_inputs(n);
    if (given < n->op->n_in || given > n->op->most_in)
        return node_fail(n, TRAMA_E_ARGUMENT, "it has %d operands, not %d to %d", given, n->op->n_in, n->op->most_in);
    for (int i = 0; i < given; i++)
        if ((i < n->op->n_in || n->op->most_in == ONNX_MANY) && !node_has(n, i))
            return node_fail(n, TRAMA_E_ARGUMENT, "operand %d is missing", i);
    return node_check_attributes(n);
}

/* Operands were made before: graphs are in order. */
static bool check_operands_exist(onnx_node *n)
{
    for (int i = 0; i < node_inputs(n); i++)
        if (node_has(n, i) && !onnx_find(n->graph, n->proto->input[i]))
            return node_fail(n, TRAMA_E_ARGUMENT,
                             "it reads '%s', which no input, initializer or earlier node gives: the graph is not in "
                             "order, or has a cycle",
                             n->proto->input[i]);
    return true;
}

static bool is_asked(const onnx_node *n, size_t i)
{
    return i < n->proto->n_output && *n->proto->output[i];
}

static bool give_host(onnx_node *n, host_tensor *t)
{
    for (size_t i = 1; i < n->proto->n_output; i++)
        if (is_asked(n, i))
            return host_free(t), node_fail(n, TRAMA_E_UNSUPPORTED, "output %zu of constant operands", i);
    onnx_name *name = is_asked(n, 0) ? onnx_add(n->graph, n->proto->output[0], "a node's output") : NULL;
    if (name)
        name->host = t;
    else
        host_free(t);
    return name || !is_asked(n, 0);
}

/* The text without a beginning that it may have. */
static const char *behind(const char *words, const char *beginning)
{
    size_t n = strlen(beginning);
    return strncmp(words, beginning, n) ? words : words + n;
}

/* Puts the name of the node before the message of a builder of Trama. */
static void name_error(onnx_node *n)
{
    trama_program *p = n->graph->program;
    char place[320], label[200], *message = trama_text_copy(p->error);
    trama_status status = p->status;
    snprintf(place, sizeof place, "%s:%d: ", n->where.file ? n->where.file : "", n->where.line);
    const char *rest = behind(behind(behind(message, place), n->graph->label), ": ");
    if (!strstr(rest, node_label(n, label, sizeof label))) {
        trama_program_clear_error(p);
        node_fail(n, status, "%s", rest);
    }
    free(message);
}

static bool give_values(onnx_node *n, trama_value **out, int first_node)
{
    for (size_t i = 0; i < n->proto->n_output; i++) {
        if (!is_asked(n, i))
            continue;
        if (!out[i])
            return node_fail(n, TRAMA_E_UNSUPPORTED, "output %zu ('%s') is not supported", i, n->proto->output[i]);
        onnx_name *name = onnx_add(n->graph, n->proto->output[i], "a node's output");
        if (!name)
            return false;
        name->value = out[i];
        if (out[i]->kind == VALUE_RESULT && out[i]->node->id >= first_node)
            trama_value_rename_at(n->where, out[i], name->name);
    }
    return true;
}

static bool build_values(onnx_node *n)
{
    trama_program *p = n->graph->program;
    int first = p->nodes.n;
    trama_value **out = trama_alloc((n->proto->n_output + 8) * sizeof *out);
    if (n->op->build)
        n->op->build(n, out);
    else
        node_fail(n, TRAMA_E_UNSUPPORTED, "it is supported for constant operands only");
    if (p->status)
        name_error(n);
    bool given = !p->status && give_values(n, out, first);
    free(out);
    return given && !p->status;
}

static bool add_node(trama_onnx *graph, const Onnx__NodeProto *proto)
{
    onnx_node n = {.graph = graph, .proto = proto, .where = graph->where};
    if (!find_op(&n) || !check_operands_exist(&n))
        return false;
    bool foldable = n.op->fold && (n.op->fold_shapes || node_known(&n));
    host_tensor *folded = foldable ? n.op->fold(&n) : NULL;
    if (graph->program->status) {
        host_free(folded);
        name_error(&n);
        return false;
    }
    return folded ? give_host(&n, folded) : build_values(&n);
}

static bool add_outputs(trama_onnx *graph, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_output; i++) {
        onnx_name *name = onnx_find(graph, g->output[i]->name);
        if (!name)
            return onnx_fail(graph, TRAMA_E_ARGUMENT, "no node gives the output '%s'",
                             g->output[i]->name ? g->output[i]->name : "");
        if (!onnx_value(graph, name, true))
            return false;
        *ARRAY_PUSH(&graph->lists[TRAMA_ONNX_OUTPUTS]) = (int)(name - graph->names.at);
    }
    return true;
}

bool onnx_walk(trama_onnx *graph)
{
    const Onnx__GraphProto *g = graph->proto->graph;
    int opset = opset_of(graph, "");
    if (!g)
        return onnx_fail(graph, TRAMA_E_ARGUMENT, "the model has no graph");
    if (opset > ONNX_NEWEST)
        return onnx_fail(graph, TRAMA_E_UNSUPPORTED, "operator set %d is newer than %d; export with an older one",
                         opset, ONNX_NEWEST);
    if (!add_initializers(graph, g) || !add_inputs(graph, g))
        return false;
    onnx_read_sums(graph);
    for (size_t i = 0; i < g->n_node; i++)
        if (!add_node(graph, g->node[i]) || memory_is_short())
            return false;
    return add_outputs(graph, g);
}
