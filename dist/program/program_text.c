/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text, for people and for comparing ranks. The lines contain everything that decides the results, and no
 * address. */
#include <string.h>

#include "hash.h"
#include "program.h"

/* ---- Attributes ---- */

/* The slots of one name in an op's attributes: "axis" has one, "perm[8]" eight, "*factor" one with an address. A slot
 * after the last name is named by its number. */
typedef struct slot_name {
    const char *at;
    int n, slots;
    bool address;
} slot_name;

static slot_name next_name(const char **names)
{
    slot_name name = {.at = *names += strspn(*names, " "), .slots = 1};
    size_t n = strcspn(*names, " |");
    *names += n;
    name.address = *name.at == '*';
    name.at += name.address;
    name.n = (int)strcspn(name.at, " |[");
    if (name.at[name.n] == '[')
        name.slots = atoi(name.at + name.n + 1);
    return name;
}

static void number_text(text *t, const trama_attributes *a, bool real, int slot)
{
    if (real)
        text_add(t, "%.17g", a->real[slot]);
    else
        text_add(t, "%lld", (long long)a->integer[slot]);
}

static bool is_set(const trama_attributes *a, bool real, int slot)
{
    return real ? a->real[slot] != 0 : a->integer[slot] != 0;
}

/* Prints the slots of one name if one is not 0; returns the slot after them. */
static int slots_text(text *t, const trama_attributes *a, bool real, int slot, const slot_name *name)
{
    int end = (int)min_i64(slot + name->slots, TRAMA_MAX_ATTRIBUTES), last = end - 1;
    while (last >= slot && !is_set(a, real, last))
        last--;
    if (last < slot)
        return end;
    text_add(t, ", ");
    if (name->n)
        text_add(t, "%.*s", name->n, name->at);
    else
        text_add(t, "%s%d", real ? "real" : "integer", slot);
    for (int i = slot; i <= last && !name->address; i++) {
        text_add(t, "%s", i > slot ? "," : name->slots > 1 ? "=[" : "=");
        number_text(t, a, real, i);
    }
    text_add(t, "%s", name->slots > 1 && !name->address ? "]" : "");
    return end;
}

static void attributes_text(text *t, const trama_node *node)
{
    const char *names = node->op->attributes ? node->op->attributes : "";
    for (int real = 0; real < 2; real++) {
        for (int slot = 0; slot < TRAMA_MAX_ATTRIBUTES;) {
            slot_name name = next_name(&names);
            slot = slots_text(t, node->attributes, real, slot, &name);
        }
        names += *names == '|';
    }
}

/* ---- Ops and values ---- */

static void fixed_text(text *t, const trama_node *node)
{
    text_add(t, " fixed on ");
    mesh_text(t, node->fixed->mesh);
    for (int i = 0; i < node->op->n_in; i++) {
        text_add(t, i ? "; " : " as ");
        layout_text(t, node->fixed->mesh, &node->fixed->in[i]);
    }
}

static void node_line(text *t, const trama_node *node)
{
    text_add(t, "%s(", node->op->name);
    for (int i = 0; i < node->op->n_in; i++)
        text_add(t, "%s%s", i ? ", " : "", node->in[i]->name);
    attributes_text(t, node);
    text_add(t, ")");
    if (node->op->own && node->op->rule)
        text_add(t, " by \"%s\"%s%s", node->op->rule, node->op->partial ? " partial " : "",
                 node->op->partial ? node->op->partial : "");
    for (int i = 0; i < node->program->merged.n; i++)
        if (node->program->merged.at[i].value->node == node)
            text_add(t, " merged by %s", node->program->merged.at[i].minimized->name);
    if (node->stage)
        text_add(t, " stage %d", node->stage - 1);
    if (node->fixed)
        fixed_text(t, node);
}

static void order_words(text *out, const process_order *order)
{
    for (int i = 0; i < order->n; i++)
        text_add(out, "%s%d", i ? "," : "order ", order->place[i]);
}

void order_text(text *out, const process_order *order)
{
    order_words(out, order);
    if (order->n)
        text_add(out, "  # %s:%d\n", order->where.file, order->where.line);
}

static uint64_t hash_data(const trama_value *v)
{
    return hash_bytes(HASH_START, v->data, (size_t)trama_shape_count(v->shape) * trama_dtype_size(v->dtype));
}

static void state_text(text *t, const trama_value *v)
{
    const trama_init *init = &v->state->init;
    text_add(t, "%s", v->state->trainable ? "parameter" : "state");
    if (v->data)
        text_add(t, " #%016llx", (unsigned long long)hash_data(v));
    else if (init->low != init->high)
        text_add(t, " from %.17g to %.17g, seed %llu, stream %llu", init->low, init->high,
                 (unsigned long long)init->seed, (unsigned long long)init->stream);
    else if (init->low != 0)
        text_add(t, " of %.17g", init->low);
}

/* Prints the source of a value: input, state, constant, op or update. */
static void source_text(text *t, const trama_value *v)
{
    switch (v->kind) {
    case VALUE_INPUT:
        text_add(t, "input");
        break;
    case VALUE_STATE:
        state_text(t, v);
        break;
    case VALUE_CONSTANT:
        text_add(t, "constant");
        if (v->data)
            text_add(t, " #%016llx", (unsigned long long)hash_data(v));
        break;
    case VALUE_RESULT:
        node_line(t, v->node);
        break;
    case VALUE_EFFECT:
        text_add(t, "update");
        break;
    }
}

void value_in_words(text *t, const trama_value *v)
{
    value_text(t, v);
    text_add(t, " = ");
    source_text(t, v);
    for (int e = 0; e < v->update->updated.n; e++)
        text_add(t, " %s", v->update->updated.at[e]->name);
    if (v->mesh) {
        text_add(t, " on ");
        mesh_text(t, v->mesh);
        text_add(t, " as ");
        layout_text(t, v->mesh, v->layout);
    }
    if (v->offload)
        text_add(t, " offloaded");
}

/* ---- Programs ---- */

static void target_text(text *t, const trama_target *target)
{
    text_add(t, "target %s:", target->name);
    for (int v = 0; v < target->values.n; v++)
        text_add(t, " %s", target->values.at[v]->name);
    const target_merge *merge = &target->merge;
    if (merge->k)
        text_add(t, ", gradients merged over %lld micro-steps%s%s", (long long)merge->k,
                 merge->how & TRAMA_MERGE_SUM ? ", their total" : "",
                 merge->how & TRAMA_MERGE_SYNC_EACH ? ", each summed over the mesh" : "");
}

/* Ends a line that begins at `from`, if there is one. */
static void end_line(program_lines *l, size_t from, trama_where where)
{
    if (l->words.n == from)
        return;
    text_add(&l->words, "%c", '\n'); /* overwritten by the final 0 */
    l->words.at[l->words.n - 1] = 0;
    *ARRAY_PUSH(&l->lines) = (program_line){from, where};
}

void program_in_lines(const trama_program *program, program_lines *l)
{
    order_words(&l->words, &program->order);
    end_line(l, 0, program->order.where);
    const size_t behind_order = l->words.n;
    if (program->search.asked)
        text_add(&l->words, "search layouts");
    if (program->search.limit)
        text_add(&l->words, " within %lld B%s%s", (long long)program->search.limit,
                 program->search.of_states ? " of states" : " of memory", program->search.nearest ? " or near it" : "");
    if (program->start.nominal)
        text_add(&l->words, "%s%lld for any extent", program->search.asked ? ", " : "",
                 (long long)program->start.nominal);
    if (program->start.mesh) {
        text_add(&l->words, ", start on ");
        mesh_text(&l->words, program->start.mesh);
        for (int i = 0; i < program->start.at.n; i++)
            text_add(&l->words, " %d:%d:%x", program->start.at.at[i].value, program->start.at.at[i].dim,
                     program->start.at.at[i].axes);
    }
    end_line(l, behind_order, program->search.where);
    for (int i = 0; i < program->values.n; i++) {
        size_t from = l->words.n;
        if (program->values.at[i]) {
            value_in_words(&l->words, program->values.at[i]);
            end_line(l, from, program->values.at[i]->where);
        }
    }
    for (int i = 0; i < program->targets.n; i++) {
        size_t from = l->words.n;
        target_text(&l->words, program->targets.at[i]);
        end_line(l, from, program->targets.at[i]->where);
    }
}

void program_lines_free(program_lines *l)
{
    free(l->words.at);
    ARRAY_FREE(&l->lines);
}

char *trama_program_text(const trama_program *program)
{
    program_lines l = {0};
    text t = {0};
    if (!program)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_program_text: the program is NULL"), NULL;
    program_in_lines(program, &l);
    for (int i = 0; i < l.lines.n; i++)
        text_add(&t, "%s  # %s:%d\n", program_line_words(&l, i), l.lines.at[i].where.file, l.lines.at[i].where.line);
    program_lines_free(&l);
    return text_result(&t, "trama_program_text");
}
