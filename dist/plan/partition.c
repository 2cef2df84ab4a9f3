/* SPDX-License-Identifier: Apache-2.0 */
/* Partition: a plan's beginning and end, and the walk over the program's nodes. Compute steps are made in compute.c,
 * exchanges in reshard.c. */
#include "partition.h"

#include <assert.h>
#include <string.h>

#include "choose.h"
#include "fuse.h"
#include "group_order.h"
#include "planner.h"
#include "priority.h"

/* ---- Begin and end ---- */

partition *partition_begin(const plan_source *source)
{
    partition *q = trama_alloc(sizeof *q);
    q->s = *source;
    q->p = trama_alloc(sizeof *q->p);
    q->p->rank = source->rank;
    for (int i = 0; i < source->machine->n_places; i++)
        *ARRAY_PUSH(&q->p->gpus) = source->machine->places[i].gpu;
    q->flat = machine_is_flat(source->machine);
    for (int i = 0; i < source->machine->n_places; i++)
        q->kinds = (int)max_i64(q->kinds, source->machine->places[i].kind + 1);
    q->seen = trama_alloc((size_t)source->machine->n_places * sizeof *q->seen);
    return q;
}

plan *partition_end(partition **partition_)
{
    partition *q = *partition_;
    plan *p = q->p;
    number_messages(p);
    bound_order_chains(p);
    plan_trim(p);
    plan_prioritize(q);
    for (int i = 0; i < q->locals.n; i++)
        ARRAY_FREE(&q->locals.at[i].at);
    ARRAY_FREE(&q->locals);
    ARRAY_FREE(&q->choices);
    free(q->seen);
    hash_table_free(&q->by_shard);
    free(q);
    *partition_ = NULL;
    return p;
}

/* ---- Distributed values from outside, and in other layouts ---- */

static int import_shard(partition *q, int value, const plan *other, const plan_dist_value *h, int piece)
{
    const plan_shard *theirs = &other->shards.at[h->pieces.at[piece].region.shard];
    for (int i = 0; i < q->p->imports.n; i++)
        if (q->p->imports.at[i].value == value && q->p->imports.at[i].shard == h->pieces.at[piece].region.shard)
            for (int s = 0; s < q->p->shards.n; s++)
                if (q->p->shards.at[s].source == SHARD_IMPORT && q->p->shards.at[s].import == i)
                    return s;
    int s = partition_shard(q, SHARD_IMPORT, value, theirs->place, &theirs->box, theirs->cut_dim, theirs->cut_parts);
    q->p->shards.at[s].dtype = theirs->dtype;
    q->p->shards.at[s].host = theirs->host;
    q->p->shards.at[s].strided = theirs->strided;
    q->p->shards.at[s].import = q->p->imports.n;
    *ARRAY_PUSH(&q->p->imports) =
        (plan_import){.value = value, .piece = piece, .shard = h->pieces.at[piece].region.shard};
    return s;
}

void partition_import(partition *q, int value, const plan *other, int as)
{
    const plan_dist_value *theirs = plan_find(other, as);
    assert(theirs && "the other plan keeps the value");
    const trama_mesh *mesh = q->s.l->mesh[value]; /* the other plan may have its own copy of it */
    plan_dist_value h = {.value = value,
                         .mesh = theirs->mesh,
                         .layout = theirs->layout,
                         .user_boxes = theirs->user_boxes,
                         .inside = theirs->inside};
    if (mesh && h.mesh && trama_mesh_equal(mesh, h.mesh))
        h.mesh = mesh;
    for (int i = 0; i < theirs->pieces.n; i++) {
        plan_local_box piece = theirs->pieces.at[i];
        piece.region.shard = import_shard(q, value, other, theirs, i);
        *ARRAY_PUSH(&h.pieces) = piece;
    }
    plan_add(q->p, h);
}

void partition_follow(partition *q, const plan *before)
{
    for (int i = 0; i < q->p->shards.n; i++) {
        plan_shard *mine = &q->p->shards.at[i];
        const plan_import *import = mine->source == SHARD_IMPORT ? &q->p->imports.at[mine->import] : NULL;
        for (int k = 0; import && k < before->shards.n; k++) {
            const plan_shard *theirs = &before->shards.at[k];
            const plan_import *other = theirs->source == SHARD_IMPORT ? &before->imports.at[theirs->import] : NULL;
            if (other && other->value == import->value && other->piece == import->piece)
                mine->lane = theirs->lane;
        }
    }
}

/* New shards for all pieces of a distributed value. */
static void make_shards(partition *q, plan_dist_value *h, shard_source source)
{
    for (int i = 0; i < h->pieces.n; i++) {
        plan_local_box *piece = &h->pieces.at[i];
        int dim, parts, pieces = pieces_on(h, piece->place);
        partition_cut(q, &piece->region.box, q->s.program->values.at[h->value]->dtype, piece->place, pieces, &dim,
                      &parts);
        piece->region.shard = partition_shard(q, source, h->value, piece->place, &piece->region.box, dim, parts);
    }
}

void partition_input(partition *q, int value)
{
    plan_dist_value h = {.value = value, .mesh = q->s.l->mesh[value], .layout = q->s.l->value[value]};
    box whole = partition_whole(q, value);
    partition_pieces(q, h.mesh, &h.layout, &whole, &h);
    make_shards(q, &h, SHARD_INPUT);
    plan_add(q->p, h);
}

static int64_t cost_from(const partition *q, const plan_dist_value *h, const trama_layout *layout)
{
    const box whole = partition_whole(q, h->value);
    size_t element = trama_dtype_size(q->s.program->values.at[h->value]->dtype);
    transfer t = transfer_between(h->mesh, &h->layout, h->mesh, layout, &whole, element);
    return reshard_most_bytes(&t);
}

/* The distributed value of a value from which a layout costs least to make. */
static int best_source(const partition *q, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    int best = -1;
    int64_t least = 0;
    for (int probe = 0, i; (i = plan_next_of(q->p, value, &probe)) >= 0;) {
        const plan_dist_value *h = &q->p->dist_values.at[i];
        if (best < 0) {
            best = i;
            least = -1;
            continue;
        }
        if (h->mesh != mesh || q->p->dist_values.at[best].mesh != mesh)
            continue;
        if (least < 0)
            least = cost_from(q, &q->p->dist_values.at[best], layout);
        int64_t cost = cost_from(q, h, layout);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    assert(best >= 0 && "a value is there before it is used");
    return best;
}

/* ---- Buckets: exchanges of gradients and other ends that do not need each other's results ---- */

/* Values from which only updates are computed: gradients of state, and results that are assigned or only kept. Their
 * messages may wait for each other. */
static bool *find_ends(const trama_program *p, const bool *needed)
{
    bool *ends = trama_alloc((size_t)p->values.n);
    for (int i = 0; i < p->values.n; i++)
        ends[i] = p->values.at[i]->kind == VALUE_RESULT;
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; needed[i] && t < p->nodes.at[i]->op->n_in; t++)
            if (!p->nodes.at[i]->op->updates)
                ends[p->nodes.at[i]->in[t]->id] = false;
    for (int i = 0; i < p->values.n; i++)
        ends[i] |= p->values.at[i]->gradient.of && p->values.at[i]->gradient.of->kind == VALUE_STATE;
    return ends;
}

static bool lies_as(const partition *q, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    return q->s.l->mesh[value] == mesh && trama_layout_equal(&q->s.l->value[value], layout);
}

/* The bucket of a value counts the exchanges of ends and of new states that it needs, one behind the other: the most
 * that its operands need, plus one where such an operand is moved and one where the value is. An update needs those of
 * the earlier readers of its state, for which it waits. The nodes of one task wait for the operands of all. Layouts
 * alone decide, so all ranks find the same. */
static void number_buckets(partition *q, int n, const trama_node *const *nodes)
{
    int most = 0;
    for (int i = 0; i < n; i++)
        for (int t = 0; t < nodes[i]->op->n_in; t++) {
            const op_layouts *op = layouts_of(q, nodes[i]->id);
            int value = nodes[i]->in[t]->id;
            bool moves = nodes[i]->op->alias || !lies_as(q, value, op->mesh, &op->in[t]);
            most = (int)max_i64(most, q->bucket[value] + (moves && q->ends[value]));
            if (nodes[i]->op->updates >> t & 1)
                most = (int)max_i64(most, q->read[value_buffer(nodes[i]->in[t])->id]);
        }
    for (int i = 0; i < n; i++)
        for (int t = 0; t < nodes[i]->op->n_in; t++) {
            int *read = &q->read[value_buffer(nodes[i]->in[t])->id];
            *read = (int)max_i64(*read, most);
        }
    for (int i = 0; i < n; i++)
        for (int o = 0; o < nodes[i]->op->n_out; o++) {
            const op_layouts *op = layouts_of(q, nodes[i]->id);
            int value = nodes[i]->out[o]->id;
            bool moves = !nodes[i]->op->alias && !lies_as(q, value, op->mesh, &op->out[o]);
            q->bucket[value] = most + (moves && (q->ends[value] || nodes[i]->op->updates >> o & 1));
        }
}

const plan_dist_value *partition_reshard(partition *q, int value, const trama_mesh *mesh, const trama_layout *layout,
                                         int node, bool fresh)
{
    plan_dist_value *h = fresh ? NULL : find_dist_value(q->p, value, mesh, layout);
    if (h)
        return h;
    int source = best_source(q, value, mesh, layout), first = q->p->dist_values.n;
    const trama_layout all = heterogeneous_unmasked(q, layout);
    bool own = lies_as(q, value, mesh, layout), some = lies_as(q, value, mesh, &all);
    bool counts = q->bucket && q->ends[value] && !q->p->dist_values.at[source].moved;
    q->next = counts ? q->bucket[value] - some : -1; /* bucket[value] counts the exchange to its own layout */
    q->hops = 0;
    reshard_dist_value(q, source, mesh, layout, node, fresh);
    for (int i = first; i < q->p->dist_values.n; i++)
        q->p->dist_values.at[i].moved = true;
    h = &q->p->dist_values.at[q->p->dist_values.n - 1];
    h->moved = !own;
    return h;
}

/* ---- Nodes ---- */

/* Emits a group: moves of its operands, copies of old values, then its steps. */
static void emit_group(partition *q, compute_group *g, const bool *internal, const partition_wish *wish)
{
    old_copies old = {0};
    for (int i = 0; i < g->nodes.n; i++) {
        const trama_node *node = g->nodes.at[i];
        for (int t = 0; t < node->op->n_in; t++) {
            bool inside = false;
            for (int k = 0; k < i; k++)
                inside |= node->in[t]->node == g->nodes.at[k];
            if (inside || node->op->shape_only >> t & 1)
                continue;
            heterogeneous_operand(g, node, t);
            partition_reshard(q, node->in[t]->id, g->mesh, &layouts_of(q, node->id)->in[t], node->id, false);
        }
    }
    for (int i = 0; i < g->nodes.n; i++)
        copy_old_values(q, wish, g->nodes.at[i], &old);
    halo_fetch(g);
    compute_results(g, internal);
    compute_tiles(g);
    halo_free(g);
    install_old_copies(q, &old);
}

/* Moves the parts of an updated state to all that hold it as it rests. */
static void spread_update(partition *q, const trama_node *node, int result)
{
    const int value = node->out[result]->id;
    const op_layouts *op = layouts_of(q, node->id);
    const plan_dist_value *from = find_dist_value(q->p, value, op->mesh, &op->out[result]),
                          *to = find_dist_value(q->p, value, op->mesh, &q->s.l->value[value]);
    q->next = q->bucket[value] - 1;
    q->hops = 0;
    reshard_into(q, (int)(from - q->p->dist_values.at), (int)(to - q->p->dist_values.at), node->id);
}

/* Reshards a result to its own layout at once, where its op makes another one; its own layout comes first. A result
 * that only some of its holders compute goes to its readers when they run, unless it is kept. */
static void settle(partition *q, const trama_node *node, const bool *internal, const bool *kept)
{
    bool some = layouts_of(q, node->id) != q->s.l->op[node->id];
    for (int o = 0; o < node->op->n_out; o++) {
        int value = node->out[o]->id;
        bool updates = node_updates(node, o);
        if (updates_apart(q, node, o))
            spread_update(q, node, o);
        if (updates || (some && (internal[value] || !kept[value])))
            continue;
        partition_reshard(q, value, q->s.l->mesh[value], &q->s.l->value[value], node->id, false);
        const plan_dist_value *own = find_dist_value(q->p, value, q->s.l->mesh[value], &q->s.l->value[value]);
        plan_prefer(q->p, value, (int)(own - q->p->dist_values.at));
    }
}

/* The result of an alias is its operand's distributed value under another number. Where the user reads it, it is a
 * copy, which stays when the operand is updated or fed again. */
static void emit_alias(partition *q, const trama_node *node, bool kept)
{
    int value = node->out[0]->id;
    const plan_dist_value *from =
        partition_reshard(q, node->in[0]->id, q->s.l->mesh[value], &q->s.l->value[value], node->id, kept);
    plan_dist_value h = {.value = value, .mesh = from->mesh, .layout = from->layout, .inside = from->inside};
    for (int i = 0; i < from->pieces.n; i++)
        *ARRAY_PUSH(&h.pieces) = from->pieces.at[i];
    plan_add(q->p, h);
}

static bool is_there(const partition *q, const trama_node *node)
{
    for (int o = 0; o < node->op->n_out; o++)
        if (!plan_find(q->p, node->out[o]->id))
            return false;
    return true;
}

static int64_t *find_last_reads(const trama_program *p, const bool *needed, const int *turn)
{
    int64_t *last = trama_alloc((size_t)max_i64(1, p->values.n) * sizeof *last);
    memset(last, -1, (size_t)p->values.n * sizeof *last);
    for (int i = 0; i < p->nodes.n; i++) {
        const trama_node *node = p->nodes.at[i];
        for (int t = 0; needed[i] && t < node->op->n_in; t++)
            if (!(node->op->shape_only >> t & 1))
                last[node->in[t]->id] = max_i64(last[node->in[t]->id], read_order(turn, i));
    }
    return last;
}

void partition_run(partition *q, const bool *needed, const int *leader, const bool *kept)
{
    const trama_program *p = q->s.program;
    bool *large = partition_large_states(q);
    group_order order = group_order_find(p, needed, leader, kept, large);
    int64_t *last_read = find_last_reads(p, needed, order.turn);
    partition_wish wish = {kept, order.turn, last_read};
    bool *internal = fuse_internal(p, needed, kept, q->s.l, leader);
    q->bucket = trama_alloc((size_t)p->values.n * sizeof *q->bucket);
    q->read = trama_alloc((size_t)p->values.n * sizeof *q->read);
    q->ends = find_ends(p, needed);
    for (int t = 0; t < order.n && !memory_is_short(); t++) {
        const int i = order.leaders[t];
        const trama_node *node = p->nodes.at[i];
        if (is_there(q, node))
            continue;
        if (node->op->alias) {
            number_buckets(q, 1, &node);
            emit_alias(q, node, kept[node->out[0]->id]);
            continue;
        }
        compute_group g = {.q = q, .leader = i, .mesh = q->s.l->op[i]->mesh};
        for (int k = i; k >= 0; k = order.next[k])
            *ARRAY_PUSH(&g.nodes) = p->nodes.at[k];
        heterogeneous_choose(&g);
        number_buckets(q, g.nodes.n, g.nodes.at);
        emit_group(q, &g, internal, &wish);
        for (int k = 0; k < g.nodes.n; k++)
            settle(q, g.nodes.at[k], internal, kept);
        ARRAY_FREE(&g.nodes);
    }
    if (!q->s.options.no_fusion)
        merge_sums(q, kept);
    fuse_calls(q);
    bundle_messages(q);
    if (!q->s.options.no_fusion)
        read_in_place(q, kept);
    share_memory(q, kept);
    free(q->bucket);
    free(q->read);
    free(q->ends);
    q->bucket = q->read = NULL;
    q->ends = NULL;
    for (int i = 0; q->op && i < p->nodes.n; i++)
        free(q->op[i]);
    free(q->op);
    q->op = NULL;
    group_order_free(&order);
    free(large);
    free(last_read);
    free(internal);
}
