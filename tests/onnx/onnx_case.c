/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one test of ONNX's own suite, and compares with the tolerances of ONNX's own runner. */
#include "onnx_case.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.h"

enum { MOST_TENSORS = 64 };

/* onnx/backend/test/loader and case/model: the tolerances of all tests of version 1.12 */
static const double relative_tolerance = 1e-3, absolute_tolerance = 1e-7;

typedef struct running {
    const char *folder;
    case_report *report;
    trama_program *program;
    trama_onnx *model;
    trama_executable *executable;
    trama_mesh *mesh;
    trama_target *target;
} running;

static bool say(running *r, case_result result, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool say(running *r, case_result result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->report->message, sizeof r->report->message, format, arguments);
    va_end(arguments);
    r->report->result = result;
    return false;
}

/* ---- Files ---- */

static void *read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    void *content = malloc(*bytes + 1);
    bool whole = content && fread(content, 1, *bytes, f) == *bytes;
    fclose(f);
    if (whole)
        return content;
    free(content);
    return NULL;
}

/* The tensor of a data set; NULL where there is none, with a message where it is no tensor that Trama can hold. */
static host_tensor *read_tensor(running *r, int set, const char *kind, int i)
{
    char path[600];
    size_t bytes;
    trama_status status;
    text why = {0};
    snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%d.pb", r->folder, set, kind, i);
    void *content = read_file(path, &bytes);
    host_tensor *t = content ? host_of_bytes(content, bytes, &status, &why) : NULL;
    if (content && !t)
        say(r, status == TRAMA_E_UNSUPPORTED ? CASE_UNSUPPORTED : CASE_FAILED, "%s %d: %s", kind, i, why.at);
    free(content);
    free(why.at);
    return t;
}

/* ---- Loading ---- */

static void name_op(running *r, const Onnx__GraphProto *g)
{
    const char *op = g->n_node == 1 ? g->node[0]->op_type : "graph of several ops";
    snprintf(r->report->op, sizeof r->report->op, "%s", op);
}

/* Whether an op must know that input while it is loaded. */
static bool is_needed_known(const Onnx__ModelProto *m, const char *name)
{
    for (size_t k = 0; k < m->graph->n_node; k++) {
        const Onnx__NodeProto *node = m->graph->node[k];
        bool others;
        const onnx_op *op = NULL;
        for (size_t s = 0; s < m->n_opset_import && !op; s++)
            op = onnx_op_find(node->domain, node->op_type, (int)m->opset_import[s]->version, &others);
        for (size_t i = 0; op && i < node->n_input && i < 32; i++)
            if (!strcmp(node->input[i], name) && op->constants >> i & 1)
                return true;
    }
    return false;
}

/* The inputs that ops must know, as data set 0 gives them. */
static int known_inputs(running *r, const Onnx__ModelProto *m, trama_onnx_constant *known, host_tensor **content)
{
    int n = 0, at = 0;
    for (size_t i = 0; i < m->graph->n_input && i < MOST_TENSORS; i++) {
        bool initializer = false;
        for (size_t k = 0; k < m->graph->n_initializer; k++)
            initializer |= !strcmp(m->graph->initializer[k]->name, m->graph->input[i]->name);
        if (initializer)
            continue;
        host_tensor *t = is_needed_known(m, m->graph->input[i]->name) ? read_tensor(r, 0, "input", at) : NULL;
        at++;
        if (!t)
            continue;
        content[n] = t;
        known[n++] = (trama_onnx_constant){m->graph->input[i]->name, t->dtype, t->shape, t->data};
    }
    return n;
}

static bool load(running *r)
{
    char path[600];
    size_t bytes;
    snprintf(path, sizeof path, "%s/model.onnx", r->folder);
    void *content = read_file(path, &bytes);
    Onnx__ModelProto *m = content ? onnx__model_proto__unpack(NULL, bytes, content) : NULL;
    free(content);
    if (!m || !m->graph)
        return say(r, CASE_FAILED, "%s cannot be read", path);
    name_op(r, m->graph);
    trama_onnx_constant known[MOST_TENSORS];
    host_tensor *known_content[MOST_TENSORS];
    trama_onnx_options options = {.constants = known, .n_constants = known_inputs(r, m, known, known_content)};
    options.size = sizeof options;
    r->program = trama_program_create();
    r->model = trama_onnx_load(r->program, path, &options);
    for (int i = 0; i < options.n_constants; i++)
        host_free(known_content[i]);
    onnx__model_proto__free_unpacked(m, NULL);
    if (r->model)
        return true;
    trama_status status = trama_program_status(r->program);
    return say(r, status == TRAMA_E_UNSUPPORTED || status == TRAMA_E_DTYPE ? CASE_UNSUPPORTED : CASE_FAILED, "%s",
               trama_program_error(r->program));
}

/* ---- Running ---- */

static void split_inputs(running *r, const case_mesh *mesh)
{
    r->mesh = mesh->spec ? trama_mesh_create(mesh->spec) : NULL;
    for (int i = 0; r->mesh && i < trama_onnx_count(r->model, TRAMA_ONNX_INPUTS); i++) {
        trama_value *x = trama_onnx_number(r->model, TRAMA_ONNX_INPUTS, i);
        int ndim = trama_value_shape(x).ndim;
        char layout[64] = "";
        if (mesh->first)
            snprintf(layout, sizeof layout, ndim ? "S(0)" : "R");
        if (mesh->last && (!mesh->first || ndim > 1))
            sprintf(layout + strlen(layout), ndim ? "%sS(%d)" : "%sR", *layout ? "," : "", ndim - 1);
        else if (mesh->last)
            strcat(layout, ",R");
        trama_shard(x, r->mesh, layout);
    }
}

static bool make_target(running *r)
{
    trama_value *outputs[MOST_TENSORS];
    int n = 0;
    for (int i = 0; i < trama_onnx_count(r->model, TRAMA_ONNX_OUTPUTS) && i < MOST_TENSORS; i++) {
        trama_value *y = trama_onnx_number(r->model, TRAMA_ONNX_OUTPUTS, i);
        bool twice = false;
        for (int k = 0; k < n; k++)
            twice |= outputs[k] == y;
        if (!twice)
            outputs[n++] = y;
    }
    r->target = trama_target_at(TRAMA_HERE, r->program, "outputs", n, outputs);
    return r->target || say(r, CASE_FAILED, "target: %s", trama_error());
}

/* ONNX's tests of bf16 keep truncated bits of uint16, in some cases of another shape than the model's. */
static bool is_judged(running *r, const host_tensor *t, const trama_value *v)
{
    return !t || t->dtype != TRAMA_U16 || trama_value_dtype(v) != TRAMA_BF16 ||
           say(r, CASE_UNSUPPORTED, "its data is uint16 for bf16");
}

static bool feed(running *r, int set)
{
    for (int i = 0, at = 0; i < trama_onnx_count(r->model, TRAMA_ONNX_INPUTS); i++, at++) {
        trama_value *x = trama_onnx_number(r->model, TRAMA_ONNX_INPUTS, i);
        host_tensor *t = read_tensor(r, set, "input", at);
        if (!is_judged(r, t, x))
            return host_free(t), false;
        if (!t)
            return *r->report->message ? false : say(r, CASE_FAILED, "there is no input %d", at);
        if (t->dtype == trama_value_dtype(x)) {
            trama_status status = trama_feed(r->executable, x, t->data, t->shape);
            host_free(t);
            if (status)
                return say(r, CASE_FAILED, "feed: %s", trama_error());
            continue;
        }
        host_free(t);
        return say(r, CASE_FAILED, "input %d has another element type", at);
    }
    return true;
}

static bool is_close(double got, double wanted)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return got == wanted;
    return fabs(got - wanted) <= absolute_tolerance + relative_tolerance * fabs(wanted);
}

static bool compare_elements(running *r, int i, const host_tensor *wanted, const void *got)
{
    for (int64_t k = 0; k < wanted->count; k++) {
        double a = element_of(wanted->dtype, got, k), b = element_of(wanted->dtype, wanted->data, k);
        if (!is_close(a, b))
            return say(r, CASE_FAILED, "output %d, element %lld: %.9g instead of %.9g", i, (long long)k, a, b);
    }
    return true;
}

static bool compare(running *r, int i, const host_tensor *wanted)
{
    trama_value *y = trama_onnx_number(r->model, TRAMA_ONNX_OUTPUTS, i);
    trama_shape shape;
    if (trama_extents(r->executable, y, &shape))
        return say(r, CASE_FAILED, "output %d: %s", i, trama_error());
    if (trama_value_dtype(y) != wanted->dtype || !trama_shape_equal(shape, wanted->shape))
        return say(r, CASE_FAILED, "output %d has another element type or shape", i);
    size_t bytes = (size_t)wanted->count * trama_dtype_size(wanted->dtype);
    void *got = calloc(bytes + 1, 1);
    bool same = !trama_read(r->executable, y, got, bytes) ? compare_elements(r, i, wanted, got)
                                                          : say(r, CASE_FAILED, "read: %s", trama_error());
    free(got);
    return same;
}

static bool run_set(running *r, int set)
{
    if (!feed(r, set))
        return false;
    if (trama_run(r->executable, r->target))
        return say(r, CASE_FAILED, "run: %s", trama_error());
    for (int i = 0; i < trama_onnx_count(r->model, TRAMA_ONNX_OUTPUTS); i++) {
        host_tensor *wanted = read_tensor(r, set, "output", i);
        if (!is_judged(r, wanted, trama_onnx_number(r->model, TRAMA_ONNX_OUTPUTS, i)))
            return host_free(wanted), false;
        bool same =
            wanted ? compare(r, i, wanted) : *r->report->message || say(r, CASE_FAILED, "there is no output %d", i);
        host_free(wanted);
        if (!same || *r->report->message)
            return false;
    }
    return true;
}

static bool has_set(const running *r, int set)
{
    char path[600];
    size_t bytes;
    snprintf(path, sizeof path, "%s/test_data_set_%d/output_0.pb", r->folder, set);
    void *content = read_file(path, &bytes);
    free(content);
    return content;
}

void case_run(trama_context *context, const char *folder, const case_mesh *mesh, case_report *report)
{
    running r = {.folder = folder, .report = report};
    *report = (case_report){.result = CASE_PASSED};
    bool good = load(&r);
    if (good) {
        split_inputs(&r, mesh);
        good = make_target(&r);
    }
    if (good && trama_compile(context, r.program, &r.executable))
        good = say(&r, CASE_FAILED, "compile: %s", trama_error());
    if (good && !has_set(&r, 0))
        good = say(&r, CASE_FAILED, "there is no data set");
    for (int set = 0; good && has_set(&r, set); set++)
        good = run_set(&r, set);
    if (r.executable)
        trama_executable_destroy(&r.executable);
    trama_onnx_destroy(&r.model);
    trama_program_destroy(&r.program);
    trama_mesh_destroy(&r.mesh);
}
