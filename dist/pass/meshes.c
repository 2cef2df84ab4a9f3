/* SPDX-License-Identifier: Apache-2.0 */
/* The meshes of values and ops: from operands, else from the first consumer, else from scalars, else the mesh of one
 * process. A node is looked at again only where a value next to it got its mesh. */
#include "complete_internal.h"

#include <stdlib.h>

static bool lends_mesh(const trama_value *v)
{
    return v->shape.ndim > 0;
}

/* Whether an op makes a tensor of scalars alone. That tensor lies on the mesh of its consumer. */
static bool awaits_consumer(const trama_node *node)
{
    bool made_of_scalars = node->op->n_out > 0 && lends_mesh(node->out[0]);
    for (int t = 0; t < node->op->n_in; t++)
        made_of_scalars &= !lends_mesh(node->in[t]);
    return made_of_scalars;
}

trama_status complete_mesh(const trama_node *node, const trama_mesh *const *of, const trama_mesh *made,
                           const trama_mesh **mesh)
{
    const trama_value *from = NULL;
    *mesh = node->fixed ? node->fixed->mesh : NULL;
    if (*mesh)
        return TRAMA_OK;
    for (int pass = 0; pass < 2 && !*mesh; pass++) {
        if (pass == 1 && awaits_consumer(node))
            *mesh = made;
        for (int t = 0; t < node->op->n_in; t++) {
            const trama_value *v = node->in[t];
            const trama_mesh *m = of[t];
            if (!m || (pass == 0) != lends_mesh(v))
                continue;
            if (*mesh && m != *mesh && pass == 0) {
                text names = {0};
                mesh_text(&names, *mesh);
                text_add(&names, " and ");
                mesh_text(&names, m);
                trama_fail(node->where, TRAMA_E_LAYOUT,
                           "%s: %s and %s are on different meshes, %s; bring one over by trama_reshard", node->op->name,
                           from->name, v->name, names.at);
                free(names.at);
                return TRAMA_E_LAYOUT;
            }
            if (!*mesh) {
                *mesh = m;
                from = v;
            }
        }
    }
    if (!*mesh)
        *mesh = made;
    return TRAMA_OK;
}

trama_status node_mesh(const layouts *l, const trama_node *node, const trama_mesh **mesh)
{
    const trama_mesh *of[TRAMA_MAX_OPERANDS];
    for (int t = 0; t < node->op->n_in; t++)
        of[t] = l->mesh[node->in[t]->id];
    return complete_mesh(node, of, node->op->n_out ? l->mesh[node->out[0]->id] : NULL, mesh);
}

/* ---- Nodes to look at, in order ---- */

/* Keys in a binary heap, the least first. */
typedef ARRAY(int64_t) heap;

static void heap_push(heap *h, int64_t key)
{
    int i = h->n;
    for (*ARRAY_PUSH(h) = key; i > 0 && h->at[(i - 1) / 2] > key; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = key;
}

static int64_t heap_pop(heap *h)
{
    const int64_t least = h->at[0], key = h->at[--h->n];
    int i = 0;
    for (int k; (k = 2 * i + 1) < h->n; i = k) {
        k += k + 1 < h->n && h->at[k + 1] < h->at[k];
        if (h->at[k] >= key)
            break;
        h->at[i] = h->at[k];
    }
    h->at[i] = key;
    return least;
}

/* ---- Spreading ---- */

/* Rounds of two sweeps: down gives the mesh of a node to its results, and where that changes nothing, up gives it to
 * the operands of the first node that it changes. */
typedef enum { DOWN, UP } direction;

typedef struct spreading {
    const trama_program *p;
    layouts *l;
    int *first, *near;  /* [value + 1], [first of the last]: the nodes whose mesh or results depend on a value's */
    heap due[2];        /* round << 32 | node; up: all of one round */
    bool *is_due[2];    /* [node] */
    ARRAY(int) waiting; /* nodes that await consumers, until tensors give no mesh any more */
    int64_t round;
    int at; /* the node that is looked at; -1 between sweeps */
} spreading;

/* Calls visit for the values that a node depends on. */
static void each_near(spreading *s, const trama_node *node, void (*visit)(spreading *, int node, int value))
{
    for (int t = 0; t < node->op->n_in; t++)
        visit(s, node->id, node->in[t]->id);
    for (int o = 0; o < node->op->n_out; o++) {
        visit(s, node->id, node->out[o]->id);
        if (node->out[o]->gradient.colocated)
            visit(s, node->id, node->out[o]->gradient.colocated->id);
    }
}

static void count_near(spreading *s, int node, int value)
{
    (void)node;
    s->first[value + 1]++;
}

static void put_near(spreading *s, int node, int value)
{
    s->near[s->first[value]++] = node;
}

static void find_near(spreading *s)
{
    const int n = s->p->values.n;
    s->first = trama_alloc((size_t)(n + 1) * sizeof *s->first);
    for (int i = 0; i < s->p->nodes.n; i++)
        each_near(s, s->p->nodes.at[i], count_near);
    for (int v = 0; v < n; v++)
        s->first[v + 1] += s->first[v];
    s->near = trama_alloc((size_t)max_i64(1, s->first[n]) * sizeof *s->near);
    for (int i = 0; i < s->p->nodes.n; i++)
        each_near(s, s->p->nodes.at[i], put_near);
    for (int v = n; v > 0; v--) /* put_near moved each to the next one's */
        s->first[v] = s->first[v - 1];
    s->first[0] = 0;
}

/* A node behind the one at hand is looked at in this round, others in the next. */
static void make_due(spreading *s, int node)
{
    const int64_t round[] = {[DOWN] = s->round + (node <= s->at), [UP] = 0};
    for (direction d = DOWN; d <= UP; d++) {
        if (s->is_due[d][node])
            continue;
        s->is_due[d][node] = true;
        heap_push(&s->due[d], round[d] << 32 | node);
    }
}

static bool give_mesh(spreading *s, const trama_value *v, const trama_mesh *mesh)
{
    if (s->l->mesh[v->id])
        return false;
    s->l->mesh[v->id] = mesh;
    for (int i = s->first[v->id]; i < s->first[v->id + 1]; i++)
        make_due(s, s->near[i]);
    return true;
}

static trama_status spread_down(spreading *s, bool scalars_lend, bool *changed)
{
    for (int i = 0; scalars_lend && i < s->waiting.n; i++)
        heap_push(&s->due[DOWN], s->round << 32 | s->waiting.at[i]);
    if (scalars_lend)
        s->waiting.n = 0;
    while (s->due[DOWN].n && s->due[DOWN].at[0] >> 32 == s->round) {
        s->at = (int)(heap_pop(&s->due[DOWN]) & INT32_MAX);
        const trama_node *node = s->p->nodes.at[s->at];
        const trama_mesh *mesh;
        if (awaits_consumer(node) && !scalars_lend) {
            *ARRAY_PUSH(&s->waiting) = s->at;
            continue;
        }
        s->is_due[DOWN][s->at] = false;
        trama_status status = node_mesh(s->l, node, &mesh);
        if (status)
            return status;
        for (int o = 0; o < node->op->n_out; o++) {
            const trama_value *colocated = node->out[o]->gradient.colocated;
            const trama_mesh *own = colocated ? s->l->mesh[colocated->id] : mesh;
            *changed |= own && give_mesh(s, node->out[o], own);
        }
        if (mesh && node->op->follows)
            *changed |= give_mesh(s, node->in[0], mesh);
    }
    return TRAMA_OK;
}

static bool spread_up(spreading *s)
{
    bool changed = false;
    while (s->due[UP].n && !changed) {
        const int i = (int)heap_pop(&s->due[UP]);
        const trama_node *node = s->p->nodes.at[i];
        const trama_mesh *mesh;
        s->is_due[UP][i] = false;
        node_mesh(s->l, node, &mesh);
        if (!mesh && node->op->n_out)
            mesh = s->l->mesh[node->out[0]->id];
        for (int t = 0; mesh && t < node->op->n_in && !node->op->alias; t++)
            changed |= give_mesh(s, node->in[t], mesh);
    }
    return changed;
}

trama_status spread_meshes(completion *c)
{
    const trama_program *p = c->program;
    spreading s = {.p = p, .l = c->l, .at = -1};
    trama_status status = TRAMA_OK;
    find_near(&s);
    for (direction d = DOWN; d <= UP; d++)
        s.is_due[d] = trama_alloc((size_t)max_i64(1, p->nodes.n));
    for (int i = 0; i < p->nodes.n; i++)
        make_due(&s, i);
    for (bool changed = true, scalars_lend = false; (changed || !scalars_lend) && !status;) {
        scalars_lend = !changed; /* when no tensor gives a mesh any more */
        changed = false;
        status = spread_down(&s, scalars_lend, &changed);
        s.at = p->nodes.n; /* changes from here on are for the next round */
        changed |= !status && !changed && spread_up(&s);
        s.round++;
        s.at = -1;
    }
    for (int i = 0; i < p->values.n; i++)
        if (!c->l->mesh[i])
            c->l->mesh[i] = c->single;
    for (direction d = DOWN; d <= UP; d++) {
        ARRAY_FREE(&s.due[d]);
        free(s.is_due[d]);
    }
    ARRAY_FREE(&s.waiting);
    free(s.first);
    free(s.near);
    return status;
}
