/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: the mesh and the layouts by name for all ops between trama_shard_begin and trama_shard_end. */
#include <string.h>

#include "program.h"

/* ---- Begin and end ---- */

static void scope_clear(shard_scope *s)
{
    for (int i = 0; i < s->layouts.n; i++) {
        free(s->layouts.at[i].name);
        free(s->layouts.at[i].layout);
    }
    ARRAY_FREE(&s->layouts);
}

void scopes_free(trama_program *p)
{
    for (int i = 0; i < p->scopes.n; i++)
        scope_clear(&p->scopes.at[i]);
    ARRAY_FREE(&p->scopes);
}

static scope_layout *layout_named(const shard_scope *s, const char *name)
{
    for (int i = 0; i < s->layouts.n; i++)
        if (!strcmp(s->layouts.at[i].name, name))
            return &s->layouts.at[i];
    return NULL;
}

/* Stores the pairs of a name and a layout; false for an invalid pair. */
static bool take_layouts(trama_where where, trama_program *p, shard_scope *s, int n, const char *const *layouts)
{
    for (int i = 0; i + 1 < n; i += 2) {
        const char *name = layouts[i], *layout = layouts[i + 1];
        if (!name || !*name || !layout)
            return program_fail(p, where, TRAMA_E_ARGUMENT,
                                "shard_begin: the %s of pair %d is %s; give the name of a value and its layout",
                                layout ? "name" : "layout", i / 2, name && layout ? "empty" : "NULL"),
                   false;
        if (layout_named(s, name))
            return program_fail(p, where, TRAMA_E_ARGUMENT, "shard_begin: '%s' has two layouts, '%s' and '%s'", name,
                                layout_named(s, name)->layout, layout),
                   false;
        *ARRAY_PUSH(&s->layouts) = (scope_layout){.name = trama_text_copy(name), .layout = trama_text_copy(layout)};
    }
    return true;
}

trama_status trama_shard_begin_at(trama_where where, trama_program *p, const trama_mesh *mesh, int n,
                                  const char *const *layouts)
{
    bool none = n == 1 && layouts && !layouts[0];
    if (!p || !mesh || (n && !layouts) || n < 0 || (n % 2 && !none)) {
        program_fail(p, where, TRAMA_E_ARGUMENT, "shard_begin: %s%s",
                     !p              ? "the program is NULL"
                     : !mesh         ? "the mesh is NULL"
                     : n && !layouts ? "the list of layouts is NULL"
                                     : "it takes pairs of a value's name and its layout, or NULL",
                     p && !mesh ? mesh_reason() : "");
        return TRAMA_E_ARGUMENT;
    }
    if (!program_has_order(where, p, "shard_begin", "the ops", mesh))
        return TRAMA_E_LAYOUT;
    shard_scope s = {
        .mesh = program_mesh(p, mesh), .given = program_given_mesh(p, mesh), .where = where, .first_node = p->nodes.n};
    if (!take_layouts(where, p, &s, none ? 0 : n, layouts)) {
        scope_clear(&s);
        return TRAMA_E_ARGUMENT;
    }
    *ARRAY_PUSH(&p->scopes) = s;
    program_is_short(p, where, "shard_begin");
    return p->status;
}

trama_status trama_shard_end_at(trama_where where, trama_program *p)
{
    if (!p || !p->scopes.n) {
        program_fail(p, where, TRAMA_E_ORDER, "shard_end: %s",
                     p ? "no scope is open; call trama_shard_begin before it" : "the program is NULL");
        return TRAMA_E_ORDER;
    }
    shard_scope *s = &p->scopes.at[--p->scopes.n];
    for (int i = 0; i < s->layouts.n; i++)
        if (!s->layouts.at[i].met)
            program_fail(p, where, TRAMA_E_ARGUMENT,
                         "shard_end: no op since trama_shard_begin (%s:%d) reads or makes a value named '%s'",
                         s->where.file, s->where.line, s->layouts.at[i].name);
    scope_clear(s);
    return p->status;
}

trama_status scope_check_closed(trama_where where, const trama_program *p, const char *call)
{
    if (!p->scopes.n)
        return TRAMA_OK;
    const shard_scope *s = &p->scopes.at[p->scopes.n - 1];
    return trama_fail(where, TRAMA_E_ORDER, "%s: the scope of trama_shard_begin (%s:%d) is open; call trama_shard_end",
                      call, s->where.file, s->where.line);
}

/* ---- Between them ---- */

/* The scope's layout for a value; open without one. */
static bool find_layout(const shard_scope *s, trama_where where, const trama_value *v, trama_layout *layout)
{
    scope_layout *named = layout_named(s, v->name);
    *layout = layout_uniform(s->mesh, TRAMA_OPEN);
    if (!named)
        return true;
    named->met = true;
    if (program_layout(v->program, s->given, v->shape.ndim, named->layout, layout))
        return program_fail(v->program, where, TRAMA_E_LAYOUT, "shard_begin (%s:%d): the layout of %s: %s",
                            s->where.file, s->where.line, v->name, trama_error()),
               false;
    return program_combines(where, v->program, "shard_begin", v, s->mesh, layout);
}

/* Lays out a result whose name the scope has, unless the user laid it out already. */
static bool lay_out_result(const shard_scope *s, trama_where where, trama_value *v)
{
    scope_layout *named = layout_named(s, v->name);
    if (named)
        named->met = true;
    return !named || v->mesh || trama_shard_at(where, v, s->given, named->layout);
}

/* Whether a scope sets the op's mesh: alias ops compute nothing, and updates compute where their state is. */
static bool has_place(const trama_node *node)
{
    return !node->op->alias && !node->op->updates;
}

static op_fixed *fix_on(trama_node *node, const trama_mesh *mesh, trama_where where)
{
    op_fixed *fixed = node->fixed = trama_alloc(sizeof *fixed);
    *fixed = (op_fixed){.mesh = mesh, .where = where, .by_scope = true};
    for (int t = 0; t < node->op->n_in; t++)
        fixed->in[t] = layout_uniform(mesh, TRAMA_OPEN);
    return fixed;
}

bool scope_lay_out(trama_node *node)
{
    trama_program *p = node->program;
    if (p->ops_on && has_place(node))
        fix_on(node, p->ops_on, node->where);
    if (!p->scopes.n || node->role != NODE_FORWARD || node->op == &trama_op_reshard || node->op->updates)
        return true;
    const shard_scope *s = &p->scopes.at[p->scopes.n - 1];
    bool good = true;
    if (has_place(node)) {
        op_fixed *fixed = fix_on(node, s->mesh, s->where);
        fixed->given = s->given;
        for (int t = 0; t < node->op->n_in && good; t++)
            good = find_layout(s, node->where, node->in[t], &fixed->in[t]);
    }
    for (int o = 0; o < node->op->n_out && good; o++)
        good = lay_out_result(s, node->where, node->out[o]);
    return good;
}

bool scope_name(trama_where where, trama_value *v)
{
    const trama_program *p = v->program;
    const shard_scope *s = p->scopes.n ? &p->scopes.at[p->scopes.n - 1] : NULL;
    bool inside = s && v->node && v->node->id >= s->first_node;
    return !inside || lay_out_result(s, where, v);
}
