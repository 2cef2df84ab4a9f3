/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode: each op that is recorded becomes a snippet (from a cache), an instance and tasks, at once. */
#include "trama_eager.h"

#include <string.h>

#include "executable.h"

enum {
    CACHE_SLOTS = 4096,      /* power of two */
    CACHE_ENTRIES = 1024,    /* above it what was not used for a while goes */
    MAX_OUTSTANDING = 512    /* ops under way */
};

/* All that decides a snippet. Compared as bytes: zeroed before it is filled. */
typedef struct eager_key {
    const trama_op *op; /* NULL: a constant from the host */
    trama_attributes attributes;
    struct {
        uint64_t serial;
        int64_t as;
    } in[TRAMA_MAX_OPERANDS];
    const trama_mesh *mesh; /* of a leaf, or asked for by a reshard */
    int64_t axes[TRAMA_MAX_AXES][4];
    const unsigned char *mask;
    int64_t dtype, ndim, dim[TRAMA_MAX_NDIM];
} eager_key;

typedef struct eager_entry {
    eager_key key;
    snippet *s;
    int64_t used;
} eager_entry;

typedef struct outstanding {
    instance *in;
    flight *f;
} outstanding;

typedef struct eager_state {
    eager_entry *slots[CACHE_SLOTS]; /* open addressing */
    int n_entries;
    uint64_t serials;
    int64_t ops;
    outstanding queue[MAX_OUTSTANDING]; /* a ring */
    int first, n;
    ARRAY(trama_value *) kept;
} eager_state;

/* ---- The cache ---- */

static uint64_t hash_key(const eager_key *key)
{
    uint64_t words[sizeof *key / sizeof(uint64_t)], h = 0;
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
}

static eager_entry **find_slot(eager_state *s, const eager_key *key)
{
    for (uint64_t i = hash_key(key);; i++) {
        eager_entry **slot = &s->slots[i & (CACHE_SLOTS - 1)];
        if (!*slot || !memcmp(&(*slot)->key, key, sizeof *key))
            return slot;
    }
}

static void free_entry(eager_entry *entry)
{
    snippet_destroy(&entry->s);
    free(entry);
}

/* Drops what no instance uses and nobody asked for lately; the rest is entered anew. */
static void shrink_cache(eager_state *s)
{
    eager_entry **all = trama_alloc((size_t)s->n_entries * sizeof *all);
    int n = 0;
    for (int i = 0; i < CACHE_SLOTS; i++) {
        if (s->slots[i])
            all[n++] = s->slots[i];
        s->slots[i] = NULL;
    }
    s->n_entries = 0;
    for (int i = 0; i < n; i++) {
        if (all[i]->s->of.users == 0 && s->ops - all[i]->used > CACHE_ENTRIES / 2) {
            free_entry(all[i]);
            continue;
        }
        *find_slot(s, &all[i]->key) = all[i];
        s->n_entries++;
    }
    free(all);
}

static snippet *cached_snippet(eager_state *s, const eager_key *key)
{
    eager_entry *entry = *find_slot(s, key);
    if (entry)
        entry->used = s->ops;
    return entry ? entry->s : NULL;
}

static trama_status remember(trama_executable *e, const eager_key *key, snippet *made)
{
    eager_state *s = e->eager;
    if (s->n_entries >= CACHE_ENTRIES)
        shrink_cache(s);
    if (s->n_entries >= CACHE_SLOTS - 1) {
        snippet_destroy(&made);
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "eager: %d different ops are alive; forget some with "
                                                   "trama_program_rewind", s->n_entries);
    }
    eager_entry *entry = trama_alloc(sizeof *entry);
    *entry = (eager_entry){.key = *key, .s = made, .used = s->ops};
    made->of.serial = ++s->serials;
    *find_slot(s, key) = entry;
    s->n_entries++;
    return TRAMA_OK;
}

/* ---- What is under way ---- */

static void land_first(trama_executable *e)
{
    eager_state *s = e->eager;
    outstanding *o = &s->queue[s->first];
    flight_wait(e->context, o->f, "an eager op");
    flight_free(o->f);
    instance_release(&o->in);
    s->first = (s->first + 1) % MAX_OUTSTANDING;
    s->n--;
}

/* Submits and holds the instance until its tasks are done; takes the caller's hold. */
static void submit(trama_executable *e, instance *in)
{
    eager_state *s = e->eager;
    while (s->n && (s->n == MAX_OUTSTANDING || flight_done(s->queue[s->first].f)))
        land_first(e);
    flight *f = flight_new(e->context);
    s->queue[(s->first + s->n++) % MAX_OUTSTANDING] = (outstanding){in, f};
    instance_submit(in, context_next_call(e->context), s->ops, f);
}

/* ---- Values that are only declared: constants, state, sources ---- */

static void key_layout(eager_key *key, const trama_mesh *mesh, const trama_layout *layout)
{
    key->mesh = mesh;
    for (int a = 0; a < layout->naxes; a++) {
        const trama_placement *p = &layout->axis[a];
        key->axes[a][0] = p->kind;
        key->axes[a][1] = p->dim;
        key->axes[a][2] = p->order;
        key->axes[a][3] = p->reduce;
    }
    key->mask = layout->mask;
}

/* The first mesh of more than one process decides how processes are spread over the places. */
static void meet_mesh(trama_executable *e, const trama_mesh *mesh)
{
    int n = 1;
    for (int i = 0; i < mesh->size; i++)
        n = (int)max_i64(n, mesh->ids[i] + 1);
    if (e->map->n > 1 || n == 1)
        return;
    map_destroy(&e->map);
    e->map = map_by_order(n, NULL, context_machine(e->context));
    e->planning.map = e->map;
}

static void lay_out_leaf(trama_executable *e, const trama_value *v, const trama_mesh *mesh)
{
    layouts_room(&e->l, e->program->values.n, e->program->nodes.n);
    e->l.mesh[v->id] = v->mesh ? v->mesh : mesh;
    trama_layout *layout = &e->l.value[v->id];
    *layout = v->mesh ? v->layout : layout_uniform(mesh, TRAMA_REPLICATE);
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_OPEN)
            layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
    meet_mesh(e, e->l.mesh[v->id]);
}

static trama_status leaf_snippet(trama_executable *e, const trama_value *v, snippet **found)
{
    const trama_mesh *mesh = e->l.mesh[v->id];
    const trama_layout *layout = &e->l.value[v->id];
    eager_key key;
    memset(&key, 0, sizeof key);
    key_layout(&key, mesh, layout);
    if (v->kind == VALUE_STATE)
        key.op = state_source(v, &key.attributes);
    else if (v->kind == VALUE_RESULT) {
        key.op = v->node->op;
        key.attributes = v->node->attributes;
    }
    key.dtype = v->dtype;
    key.ndim = v->shape.ndim;
    memcpy(key.dim, v->shape.dim, (size_t)v->shape.ndim * sizeof *key.dim);
    *found = cached_snippet(e->eager, &key);
    if (*found)
        return TRAMA_OK;
    snippet *made = NULL;
    trama_status status = TRAMA_OK;
    if (key.op)
        status = snippet_of_source(&e->planning, v->name, key.op, &key.attributes, mesh, layout, &made);
    else
        made = snippet_of_feed(&e->planning, v, v->shape, mesh, layout);
    if (!status)
        status = remember(e, &key, made);
    *found = made;
    return status;
}

trama_status eager_place(trama_executable *e, trama_value *v, const trama_mesh *mesh)
{
    if (v->id < e->n_located && e->at[v->id].in)
        return TRAMA_OK;
    bool declared = v->kind == VALUE_CONSTANT || v->kind == VALUE_STATE ||
                    (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
    if (!declared)
        return trama_fail(v->where, TRAMA_E_UNSUPPORTED,
                          "%s: inputs have no place in eager mode; use trama_constant or trama_tensor", v->name);
    lay_out_leaf(e, v, mesh);
    snippet *s;
    instance *in = NULL;
    trama_status status = leaf_snippet(e, v, &s);
    if (!status)
        status = instance_create(e->context, &s->of, NULL, 1, &in);
    if (status)
        return status;
    executable_put(e, v->id, (located){in, s->result});
    if (v->kind == VALUE_CONSTANT) {
        instance_release(&in);
        return copy_in(e, e->at[v->id], v->data, v->shape, "trama_constant");
    }
    submit(e, in);
    return TRAMA_OK;
}

/* ---- Ops ---- */

static const trama_mesh *operand_mesh(const trama_executable *e, const trama_node *node)
{
    for (int scalars = 0; scalars < 2; scalars++)
        for (int t = 0; t < node->op->n_in; t++) {
            const trama_value *v = node->in[t];
            bool known = v->id < e->n_located && e->at[v->id].in;
            if ((v->shape.ndim == 0) != scalars)
                continue;
            if (v->mesh || known)
                return v->mesh ? v->mesh : e->l.mesh[v->id];
        }
    return e->single;
}

/* An updated value is where its state is. */
static trama_value *stored(trama_value *v)
{
    trama_value *state = value_storage(v);
    return state ? state : v;
}

static trama_status op_snippet(trama_executable *e, const trama_node *node, const located *operands, snippet **found)
{
    eager_key key;
    memset(&key, 0, sizeof key);
    key.op = node->op;
    key.attributes = node->attributes;
    for (int t = 0; t < node->op->n_in; t++) {
        key.in[t].serial = operands[t].in->of->serial;
        key.in[t].as = operands[t].as;
    }
    if (node->op->n_out && node->out[0]->mesh)
        key_layout(&key, node->out[0]->mesh, &node->out[0]->layout);
    *found = cached_snippet(e->eager, &key);
    if (*found)
        return TRAMA_OK;
    if (node->out[0]->mesh)
        meet_mesh(e, node->out[0]->mesh);
    trama_status status = snippet_of_op(&e->planning, node, operands, &e->l, e->single, found);
    return status ? status : remember(e, &key, *found);
}

trama_status eager_copy(trama_executable *e, const trama_value *v, located at, const trama_mesh *mesh,
                        const trama_layout *layout, snippet **found)
{
    eager_key key;
    memset(&key, 0, sizeof key);
    key.in[0].serial = at.in->of->serial;
    key.in[0].as = at.as;
    key_layout(&key, mesh, layout);
    *found = cached_snippet(e->eager, &key);
    if (*found)
        return TRAMA_OK;
    *found = snippet_of_copy(&e->planning, v, at, mesh, layout);
    return remember(e, &key, *found);
}

static trama_status bind_op(trama_executable *e, const trama_node *node, const located *operands, snippet *s)
{
    instance *imports[64], *in = NULL;
    const plan *p = s->of.plan;
    instance **list = p->imports.n > 64 ? trama_alloc((size_t)p->imports.n * sizeof *list) : imports;
    for (int i = 0; i < p->imports.n; i++)
        list[i] = operands[p->imports.at[i].value].in;
    trama_status status = instance_create(e->context, &s->of, list, 1, &in);
    if (list != imports)
        free(list);
    if (status)
        return status;
    for (int o = 0; o < node->op->n_out; o++) {
        int id = node->out[o]->id;
        e->l.mesh[id] = s->l.mesh[s->result + o];
        e->l.value[id] = s->l.value[s->result + o];
        if (!(node->op->updates >> o & 1))
            executable_put(e, id, (located){in, s->result + o});
    }
    submit(e, in);
    return TRAMA_OK;
}

static trama_status run_node(trama_executable *e, const trama_node *node)
{
    located operands[TRAMA_MAX_OPERANDS];
    layouts_room(&e->l, e->program->values.n, e->program->nodes.n);
    const trama_mesh *mesh = operand_mesh(e, node);
    e->eager->ops++;
    for (int t = 0; t < node->op->n_in; t++) {
        trama_value *v = stored(node->in[t]);
        trama_status status = eager_place(e, v, mesh);
        if (status)
            return status;
        operands[t] = e->at[v->id];
        if (v != node->in[t]) {
            e->l.mesh[node->in[t]->id] = e->l.mesh[v->id];
            e->l.value[node->in[t]->id] = e->l.value[v->id];
        }
    }
    snippet *s;
    trama_status status = op_snippet(e, node, operands, &s);
    return status ? status : bind_op(e, node, operands, s);
}

static void node_appended(void *arg, trama_node *node)
{
    if (node->op->n_in == 0)
        return; /* placed when first used, on the mesh where that is */
    trama_status status = run_node(arg, node);
    if (status)
        program_fail(node->program, NOWHERE, status, "%s", trama_error());
}

static bool value_placed(void *arg, const trama_value *v)
{
    const trama_executable *e = arg;
    return v->id < e->n_located && e->at[v->id].in;
}

/* ---- Life ---- */

trama_status trama_eager(trama_context *context, trama_program **program, trama_executable **executable)
{
    if (!context || !program || !executable)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_eager: an argument is NULL");
    trama_executable *e;
    trama_program *p = trama_program_new();
    executable_begin(context, p, &e);
    e->eager = trama_alloc(sizeof *e->eager);
    p->appended = node_appended;
    p->placed = value_placed;
    p->hook_arg = e;
    *program = p;
    *executable = e;
    return TRAMA_OK;
}

void eager_free(trama_executable *e)
{
    eager_state *s = e->eager;
    if (!s)
        return;
    while (s->n)
        land_first(e);
    for (int i = 0; i < CACHE_SLOTS; i++)
        if (s->slots[i])
            free_entry(s->slots[i]);
    ARRAY_FREE(&s->kept);
    free(s);
    e->eager = NULL;
    e->program->appended = NULL;
    e->program->placed = NULL;
}

trama_value *trama_tensor_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                             const void *data, const trama_mesh *mesh, const char *layout)
{
    return trama_shard_at(where, trama_constant_at(where, program, dtype, shape, data), mesh, layout);
}

/* ---- Forgetting ---- */

int trama_program_mark(trama_program *program)
{
    return program ? program->values.n : 0;
}

trama_value *trama_keep(trama_value *value)
{
    if (value && value->program->placed) {
        eager_state *s = ((trama_executable *)value->program->hook_arg)->eager;
        for (int i = 0; i < s->kept.n; i++)
            if (s->kept.at[i] == value)
                return value;
        *ARRAY_PUSH(&s->kept) = value;
    }
    return value;
}

static bool is_kept(const eager_state *s, const trama_value *v)
{
    for (int i = 0; i < s->kept.n; i++)
        if (s->kept.at[i] == v || value_storage(s->kept.at[i]) == v)
            return true;
    return v->kind == VALUE_STATE;
}

/* A kept value moves to a lower number and forgets how it was made. */
static void move_value(trama_executable *e, trama_value *v, int id)
{
    int from = v->id;
    located at = from < e->n_located ? e->at[from] : (located){0};
    const trama_mesh *mesh = from < e->l.n_values ? e->l.mesh[from] : NULL;
    trama_layout layout = from < e->l.n_values ? e->l.value[from] : (trama_layout){0};
    executable_put(e, id, at);
    if (id != from && from < e->n_located)
        executable_put(e, from, (located){0});
    layouts_room(&e->l, id + 1, 1);
    e->l.mesh[id] = mesh;
    e->l.value[id] = layout;
    v->id = id;
    e->program->values.at[id] = v;
    if (v->kind == VALUE_RESULT) {
        v->kind = VALUE_CONSTANT;
        v->node = NULL;
    }
}

static void forget_gradients(trama_program *p, int mark)
{
    int n = 0;
    for (int i = 0; i < p->gradients.n; i++) {
        gradient_table *t = &p->gradients.at[i];
        if (t->loss->id >= mark) {
            ARRAY_FREE(&t->of);
            continue;
        }
        for (int k = 0; k < t->of.n; k++)
            if (k >= mark || (t->of.at[k] && t->of.at[k]->id >= mark))
                t->of.at[k] = NULL;
        p->gradients.at[n++] = *t;
    }
    p->gradients.n = n;
}

static void forget_nodes(trama_program *p, int mark)
{
    int n = p->nodes.n;
    while (n > 0 && p->nodes.at[n - 1]->out[0]->id >= mark)
        n--;
    for (int i = n; i < p->nodes.n; i++)
        free(p->nodes.at[i]);
    p->nodes.n = n;
}

trama_status trama_program_rewind(trama_program *p, int mark)
{
    if (!p || !p->placed || mark < 0 || mark > p->values.n)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_program_rewind: no mark of a program in eager mode");
    trama_executable *e = p->hook_arg;
    forget_gradients(p, mark);
    ARRAY(trama_value *) survivors = {0};
    for (int i = mark; i < p->values.n; i++)
        if (is_kept(e->eager, p->values.at[i]))
            *ARRAY_PUSH(&survivors) = p->values.at[i];
    for (int i = 0; i < survivors.n; i++) /* what was only declared gets its content while its op is known */
        if (!value_storage(survivors.at[i]) || survivors.at[i]->kind == VALUE_STATE)
            eager_place(e, survivors.at[i], e->single);
    forget_nodes(p, mark);
    int end = p->values.n, next = mark;
    trama_value **all = trama_alloc((size_t)(end - mark + 1) * sizeof *all);
    memcpy(all, p->values.at + mark, (size_t)(end - mark) * sizeof *all);
    for (int i = 0; i < end - mark; i++) {
        if (next - mark < survivors.n && survivors.at[next - mark] == all[i]) {
            move_value(e, all[i], next++);
            continue;
        }
        if (all[i]->id < e->n_located)
            executable_put(e, all[i]->id, (located){0});
        program_value_free(all[i]);
    }
    for (int i = next; i < e->l.n_values && i < end; i++)
        e->l.mesh[i] = NULL, e->l.value[i] = (trama_layout){0};
    p->values.n = next;
    free(all);
    ARRAY_FREE(&survivors);
    return TRAMA_OK;
}
