/* SPDX-License-Identifier: Apache-2.0 */
/* Targets, and the ops that they need. */
#include <string.h>

#include "program.h"

void program_closure(const trama_program *program, int n, trama_value *const *values, bool *needed)
{
    (void)program;
    ARRAY(const trama_value *) left = {0}; /* a list, since a chain of ops may be longer than the stack is deep */
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&left) = values[i];
    while (left.n) {
        const trama_value *v = left.at[--left.n];
        for (int i = 0; i < v->update->updated.n; i++)
            *ARRAY_PUSH(&left) = v->update->updated.at[i];
        if (!v->node || needed[v->node->id])
            continue;
        needed[v->node->id] = true;
        for (int i = 0; i < v->node->op->n_in; i++)
            *ARRAY_PUSH(&left) = v->node->in[i];
    }
    ARRAY_FREE(&left);
}

/* At most one op may overwrite a value: of two updates of one state, one would be lost. */
static bool check_updates(const trama_target *t)
{
    trama_program *p = t->program;
    bool *needed = trama_alloc((size_t)p->nodes.n);
    const trama_node **by = trama_alloc((size_t)p->values.n * sizeof(trama_node *)), *first = NULL, *second = NULL;
    program_closure(p, t->values.n, t->values.at, needed);
    for (int i = 0; i < p->nodes.n && !second; i++) {
        const trama_node *node = p->nodes.at[i];
        for (int o = 0; needed[i] && o < node->op->n_out && !second; o++) {
            if (!(node->op->updates >> o & 1))
                continue;
            first = by[node->in[o]->id];
            by[node->in[o]->id] = node;
            if (first)
                second = node;
        }
    }
    if (second)
        program_fail(p, t->where, TRAMA_E_ARGUMENT, "target '%s': %s (%s:%d) and %s (%s:%d) update the same state",
                     t->name, first->op->name, first->where.file, first->where.line, second->op->name,
                     second->where.file, second->where.line);
    free(needed);
    free(by);
    return !second;
}

trama_target *trama_target_at(trama_where where, trama_program *program, const char *name, int n,
                              trama_value *const *values)
{
    if (!program || !name || !*name)
        return program_fail(program, where, TRAMA_E_ARGUMENT,
                            program ? "target: it needs a name" : "target: the program is NULL");
    if (n < 0 || (n && !values))
        return program_fail(program, where, TRAMA_E_ARGUMENT, "target '%s': %s", name,
                            n < 0 ? "the number of values is negative" : "the list of values is NULL");
    for (int i = 0; i < program->targets.n; i++)
        if (!strcmp(program->targets.at[i]->name, name))
            return program_fail(program, where, TRAMA_E_ARGUMENT, "target: the name '%s' is taken (%s:%d)", name,
                                program->targets.at[i]->where.file, program->targets.at[i]->where.line);
    for (int i = 0; i < n; i++) {
        if (!values[i])
            return program->status
                       ? NULL
                       : program_fail(program, where, TRAMA_E_ARGUMENT, "target '%s': value %d is NULL", name, i);
        if (values[i]->program != program)
            return program_fail(program, where, TRAMA_E_ARGUMENT, "target '%s': value %s belongs to another program",
                                name, values[i]->name);
    }
    trama_target *t = trama_alloc(sizeof *t);
    *t = (trama_target){.program = program, .id = program->targets.n, .name = trama_text_copy(name), .where = where};
    for (int i = 0; i < n; i++) {
        *ARRAY_PUSH(&t->values) = values[i];
        values[i]->fetched = true;
    }
    *ARRAY_PUSH(&program->targets) = t;
    return check_updates(t) && !program_is_short(program, where, "target") ? t : NULL;
}
