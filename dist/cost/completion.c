/* SPDX-License-Identifier: Apache-2.0 */
/* A completed copy of a program, read value by value or as text. */
#include "changes.h"
#include "explain.h"
#include "layout_search.h"
#include "marks.h"
#include "process_memory.h"
#include "trama_complete.h"

struct trama_completion {
    const trama_program *asked; /* the user's; queries name its values */
    trama_program *of;          /* the copy */
    trama_mesh *single;
    int64_t nominal;
    layouts l;
    marks m;
};

/* ---- Create and destroy ---- */

static trama_status complete(const char *call, const trama_program *program, int64_t nominal, trama_completion *c)
{
    if (program->status)
        return trama_fail(NOWHERE, program->status, "%s", program->error);
    trama_status status = scope_check_closed(NOWHERE, program, call);
    if (status)
        return status;
    *c = (trama_completion){.asked = program,
                            .of = program_copy(program),
                            .single = mesh_new(1, (int[]){1}, NULL, NULL),
                            .nominal = complete_nominal(program, nominal)};
    if (c->of->status)
        return trama_fail(NOWHERE, c->of->status, "%s", c->of->error);
    status = search_complete(c->of, nominal, c->single, &c->l);
    return status ? status : marks_complete(c->of, &c->m);
}

static void clear(trama_completion *c)
{
    marks_free(&c->m);
    layouts_free(&c->l);
    trama_mesh_destroy(&c->single);
    trama_program_destroy(&c->of);
}

static trama_status check(const char *call, const trama_program *program, int64_t nominal, const void *result,
                          const char *its_name)
{
    if (program && result && nominal >= 1)
        return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the %s%s", call,
                      !program  ? "program"
                      : !result ? its_name
                                : "nominal extent is below 1",
                      !program || !result ? " is NULL" : "");
}

trama_status trama_completion_create(const trama_program *program, int64_t nominal, trama_completion **completion)
{
    trama_completion made = {0};
    trama_status status = check("trama_completion_create", program, nominal, completion, "completion's address");
    if (status)
        return status;
    status = complete("trama_completion_create", program, nominal, &made);
    if (status)
        return clear(&made), status;
    trama_completion *own = trama_alloc(sizeof made);
    *own = made;
    status = memory_status(NOWHERE, "trama_completion_create");
    if (status)
        trama_completion_destroy(&own);
    else
        *completion = own;
    return status;
}

void trama_completion_destroy(trama_completion **completion)
{
    if (!completion || !*completion)
        return;
    clear(*completion);
    free(*completion);
    *completion = NULL;
}

/* ---- Value by value ---- */

/* The copy of the user's value; NULL for an effect and for a value that is newer than the copy. */
static const trama_value *find(const trama_completion *c, const trama_value *value)
{
    bool there = c && value && value->program == c->asked && value->id < c->of->values.n;
    const trama_value *v = there ? c->of->values.at[value->id] : NULL;
    return v && v->kind != VALUE_EFFECT ? v : NULL;
}

const trama_mesh *trama_completion_mesh(const trama_completion *completion, const trama_value *value)
{
    const trama_value *v = find(completion, value);
    return v ? completion->l.mesh[v->id] : NULL;
}

bool trama_completion_layout(const trama_completion *completion, const trama_value *value, trama_layout *layout)
{
    const trama_value *v = find(completion, value);
    if (v && layout)
        *layout = completion->l.value[v->id];
    return v && layout;
}

const char *trama_completion_device(const trama_completion *completion, const trama_value *value)
{
    const trama_value *v = find(completion, value);
    return v && completion->m.offload[v->id] ? "cpu" : NULL;
}

int trama_completion_stage(const trama_completion *completion, const trama_value *value)
{
    const trama_value *v = find(completion, value);
    return v ? completion->m.stage[v->id] - 1 : TRAMA_NO_STAGE;
}

/* The layouts of the op that made the value; NULL where no op made it. */
static const op_layouts *find_op(const trama_completion *c, const trama_value *value)
{
    const trama_value *v = find(c, value);
    return v && v->node ? c->l.op[v->node->id] : NULL;
}

/* Whether the split form of the op that made the value replaces it. */
static bool is_replaced(const trama_completion *c, const trama_value *value)
{
    return find(c, value)->node->op != value->node->op;
}

const trama_mesh *trama_completion_op_mesh(const trama_completion *completion, const trama_value *value)
{
    const op_layouts *op = find_op(completion, value);
    return op ? op->mesh : NULL;
}

bool trama_completion_operand(const trama_completion *completion, const trama_value *value, int i, trama_layout *layout)
{
    const op_layouts *op = find_op(completion, value);
    bool there = op && layout && i >= 0 && i < value->node->op->n_in && !is_replaced(completion, value);
    if (there)
        *layout = op->in[i];
    return there;
}

bool trama_completion_result(const trama_completion *completion, const trama_value *value, int i, trama_layout *layout)
{
    const op_layouts *op = find_op(completion, value);
    bool there = op && layout && i >= 0 && i < value->node->op->n_out && !is_replaced(completion, value);
    if (there)
        *layout = op->out[i];
    return there;
}

trama_status trama_completion_bytes(const trama_completion *completion, int64_t *bytes, int64_t *bound)
{
    if (!completion)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_completion_bytes: the completion is NULL");
    layout_search found = {0};
    if (bound)
        search_layouts(completion->of, &completion->l, completion->nominal, &found);
    else
        found.bytes = layouts_bytes(completion->of, &completion->l, completion->nominal);
    if (found.found)
        layouts_free(&found.better);
    trama_status status = memory_status(NOWHERE, "trama_completion_bytes");
    if (!status && bytes)
        *bytes = found.bytes;
    if (!status && bound)
        *bound = found.bound;
    return status;
}

static trama_status count_memory(const char *call, const trama_completion *c, bool states_alone, int64_t *bytes)
{
    if (!c || !bytes)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the %s is NULL", call,
                          c ? "address of the bytes" : "completion");
    *bytes = layouts_memory(c->of, &c->l, c->nominal, states_alone);
    return memory_status(NOWHERE, call);
}

trama_status trama_completion_state_bytes(const trama_completion *completion, int64_t *bytes)
{
    return count_memory("trama_completion_state_bytes", completion, true, bytes);
}

trama_status trama_completion_memory_bytes(const trama_completion *completion, int64_t *bytes)
{
    return count_memory("trama_completion_memory_bytes", completion, false, bytes);
}

/* ---- As text ---- */

static void value_line(text *t, const trama_value *v, const layouts *l, const marks *m)
{
    value_text(t, v);
    text_add(t, " on ");
    mesh_text(t, l->mesh[v->id]);
    text_add(t, " as ");
    layout_text(t, l->mesh[v->id], &l->value[v->id]);
    if (m->stage[v->id])
        text_add(t, ", stage %d", m->stage[v->id] - 1);
    if (m->offload[v->id])
        text_add(t, ", rests in host memory");
    text_add(t, "\n");
}

trama_status trama_complete_text(const trama_program *program, int64_t nominal, char **text_)
{
    trama_completion c = {0};
    trama_status status = check("trama_complete_text", program, nominal, text_, "text's address");
    if (!status)
        status = complete("trama_complete_text", program, nominal, &c);
    if (!status) {
        text t = {0};
        order_text(&t, &c.of->order);
        for (int i = 0; i < c.of->values.n; i++)
            if (c.of->values.at[i]->kind != VALUE_EFFECT)
                value_line(&t, c.of->values.at[i], &c.l, &c.m);
        text_add(&t, "%s", c.l.report);
        explain_changes(&t, c.of, &c.l, nominal);
        status = text_give(&t, "trama_complete_text", text_);
    }
    clear(&c);
    return status;
}
