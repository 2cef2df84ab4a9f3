/* SPDX-License-Identifier: Apache-2.0 */
/* Updates in parts. Processes that hold a parameter alike, and make terms of its gradient, sum a part of the gradient
 * each and update that part; then the parts are gathered. No process repeats the work of others, and the states of the
 * optimizer lie in parts. A sum over p processes goes by slices anyway, of which each process would gather the others:
 * both ways receive 2 (p - 1) / p of the parameter's bytes. Xu and others 2020, "Automatic cross-replica sharding of
 * weight update in data-parallel training". */
#include "complete_internal.h"

/* A dim is even where its largest part is at most a quarter above the mean. */
enum { EVEN_ABOVE = 5, EVEN_BELOW = 4 };

/* ---- Slots ---- */

/* The parameter that a state is, or to which it belongs. */
static const trama_value *parameter_of(const trama_value *state)
{
    return state->state->slot_of ? state->state->slot_of : state;
}

/* A slot lies like its parameter where the user does not say otherwise. */
static void lay_slot(const completion *c, const trama_value *slot, const trama_layout *layout)
{
    if (!slot->mesh && c->l->mesh[slot->id] == c->l->mesh[slot->state->slot_of->id])
        c->l->value[slot->id] = *layout;
}

/* Updates in parts, and the slots, which lie in them. */
static void set_parts(const completion *c, const trama_value *x, const trama_layout *part)
{
    c->updated[x->id] = *part;
    for (int i = c->slot[x->id]; i; i = c->slot[i - 1])
        lay_slot(c, c->program->values.at[i - 1], part);
}

/* ---- Which parameters ---- */

/* Where axes have weights this is the mean of the pieces. */
static int64_t bytes_on_process(const trama_mesh *mesh, const trama_layout *layout, const trama_value *v)
{
    return trama_shape_count(v->shape) * (int64_t)trama_dtype_size(v->dtype) /
           axes_size(mesh, layout_axes(layout, TRAMA_SPLIT));
}

/* Whether the axes that differ split what is whole. */
static bool splits_more(const trama_layout *whole, const trama_layout *part)
{
    bool more = false;
    for (int a = 0; a < whole->naxes; a++) {
        const trama_placement *w = &whole->axis[a], *p = &part->axis[a];
        if (w->kind == p->kind && (w->kind != TRAMA_SPLIT || (w->dim == p->dim && w->order == p->order)))
            continue;
        if (w->kind != TRAMA_REPLICATE || p->kind != TRAMA_SPLIT)
            return false;
        more = true;
    }
    return more && !part->mask;
}

/* A slot that lies as the user wishes decides for its parameter; where several differ, the first one, and the op that
 * updates them says so. */
static void take_wish(const completion *c, const trama_value *slot)
{
    const int of = slot->state->slot_of->id;
    c->shares[of] = false;
    if (!c->wished[of].naxes && c->l->mesh[slot->id] == c->l->mesh[of] &&
        splits_more(&c->l->value[of], &c->l->value[slot->id]))
        c->wished[of] = c->l->value[slot->id];
}

static void find_slots(const completion *c)
{
    const trama_program *p = c->program;
    for (int i = p->values.n - 1; i >= 0; i--) {
        const trama_value *v = p->values.at[i], *of = v->state->slot_of;
        if (!of)
            continue;
        c->slot[i] = c->slot[of->id];
        c->slot[of->id] = i + 1;
        lay_slot(c, v, &c->l->value[of->id]);
    }
    for (int i = 0; i < p->values.n; i++)
        if (p->values.at[i]->state->slot_of && p->values.at[i]->mesh)
            take_wish(c, p->values.at[i]);
}

/* A gradient that the user reads by another name is whole anyway. An op of a user may need whole dims of what it
 * updates, or update another state in the same parts, which has them whole. */
static void leave(const completion *c, const trama_node *node)
{
    const trama_value *x = node->op->alias && node->out[0]->fetched ? node->in[0]->gradient.of : NULL;
    const trama_value *first = NULL;
    if (x)
        c->shares[x->id] = false;
    for (int t = 0; t < node->op->n_out; t++) {
        const trama_value *of = node_updates(node, t) ? parameter_of(value_storage(node->in[t])) : NULL;
        if (!of || !of->shape.ndim)
            continue;
        if (!node->op->pointwise || (first && first != of))
            c->shares[(first ? first : of)->id] = c->shares[of->id] = false;
        first = of;
    }
}

void find_shared(const completion *c)
{
    const trama_program *p = c->program;
    for (int i = 0; i < p->values.n; i++) {
        const trama_value *v = p->values.at[i];
        const trama_mesh *mesh = c->l->mesh[i];
        c->shares[i] = v->kind == VALUE_STATE && v->state->share_bytes > 0 && mesh && !c->l->value[i].mask &&
                       bytes_on_process(mesh, &c->l->value[i], v) >= v->state->share_bytes;
    }
    find_slots(c);
    for (int i = 0; i < p->nodes.n; i++)
        leave(c, p->nodes.at[i]);
}

void begin_shared(const completion *c)
{
    for (int i = 0; i < c->program->values.n; i++) {
        c->updated[i] = (trama_layout){0};
        if (c->wished[i].naxes)
            set_parts(c, c->program->values.at[i], &c->wished[i]);
    }
}

/* ---- Which parts ---- */

/* The outermost dim that is even when the axes split it behind those that do already; -1: none. */
static int even_dim(const trama_mesh *mesh, const trama_layout *layout, unsigned axes, trama_shape shape)
{
    for (int d = 0; d < shape.ndim; d++) {
        int split[TRAMA_MAX_AXES];
        int64_t parts = axes_size(mesh, axes);
        for (int i = layout_dim_axes(layout, d, split) - 1; i >= 0; i--)
            parts *= mesh->shape[split[i]];
        const int64_t most = (shape.dim[d] + parts - 1) / parts;
        if (shape.dim[d] >= parts && EVEN_BELOW * parts * most <= EVEN_ABOVE * shape.dim[d])
            return d;
    }
    return -1;
}

void share_update(const completion *c, const trama_value *gradient)
{
    const trama_value *x = gradient->gradient.of;
    if (!x || !c->shares[x->id] || gradient->fetched || c->updated[x->id].naxes ||
        c->l->mesh[gradient->id] != c->l->mesh[x->id])
        return;
    const trama_layout *terms = &c->l->value[gradient->id];
    trama_layout part = c->l->value[x->id];
    const unsigned axes = layout_axes(&part, TRAMA_REPLICATE) & ~layout_axes(terms, TRAMA_SPLIT);
    const int dim = even_dim(c->l->mesh[x->id], &part, axes, x->shape);
    if (!(axes & layout_axes(terms, TRAMA_PARTIAL)) || dim < 0)
        return;
    for (int a = 0; a < part.naxes; a++)
        if (axes >> a & 1)
            layout_add_split(&part, dim, a);
    set_parts(c, x, &part);
}

/* From its first update on a parameter is updated so: a gradient behind that one changes no layout any more. */
const trama_layout *updated_layout(const completion *c, const trama_value *v, const trama_value *state)
{
    const int of = parameter_of(state)->id;
    if (c->shares && !c->updated[of].naxes)
        c->updated[of] = c->l->value[of];
    return c->shares && of == state->id ? &c->updated[of] : &c->l->value[v->id];
}

bool is_shared(const completion *c, const trama_value *x)
{
    return c->updated[x->id].naxes && !trama_layout_equal(&c->updated[x->id], &c->l->value[x->id]);
}
