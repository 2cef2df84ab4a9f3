/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a rank's plan: pieces of distributed values, their shards and tiles, and the steps that name them. */
#include <string.h>

#include "planner.h"
#include "thresholds.h"

/* ---- Pieces ---- */

const local_positions *partition_locals(partition *q, const trama_mesh *mesh)
{
    for (int i = 0; i < q->locals.n; i++)
        if (q->locals.at[i].mesh == mesh)
            return &q->locals.at[i];
    local_positions *l = ARRAY_PUSH(&q->locals);
    l->mesh = mesh;
    for (int i = 0; i < mesh->size; i++)
        if (is_mine(q, place_of(q, mesh, i)))
            *ARRAY_PUSH(&l->at) = i;
    return l;
}

box partition_whole(const partition *q, int value)
{
    return box_whole(q->s.shapes[value]);
}

int term_of(const trama_mesh *mesh, const trama_layout *layout, int position)
{
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(mesh, position, coordinate);
    return axes_position(mesh, layout_axes(layout, TRAMA_PARTIAL), coordinate);
}

const plan_local_box *find_piece(const plan_dist_value *h, int place, const box *b, int term)
{
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_local_box *p = &h->pieces.at[i];
        if (p->place == place && p->term == term && box_equal(&p->region.box, b))
            return p;
    }
    return NULL;
}

void partition_pieces(partition *q, const trama_mesh *mesh, const trama_layout *layout, const box *whole,
                      plan_dist_value *h)
{
    const local_positions *mine = partition_locals(q, mesh);
    for (int i = 0; i < mine->at.n; i++) {
        int position = mine->at.at[i], place = place_of(q, mesh, position);
        box b;
        if (!layout_present(layout, position))
            continue;
        layout_box(mesh, layout, whole, position, &b);
        int term = term_of(mesh, layout, position);
        if (find_piece(h, place, &b, term))
            continue;
        plan_local_box *piece = ARRAY_PUSH(&h->pieces);
        *piece = (plan_local_box){.place = place, .term = term, .position = position, .region = {-1, b}};
    }
}

int pieces_on(const plan_dist_value *h, int place)
{
    int n = 0;
    for (int i = 0; i < h->pieces.n; i++)
        n += h->pieces.at[i].place == place;
    return n;
}

plan_dist_value *find_dist_value(plan *p, int value, const trama_mesh *mesh, const trama_layout *layout)
{
    for (int probe = 0, i; (i = plan_next_of(p, value, &probe)) >= 0;) {
        plan_dist_value *h = &p->dist_values.at[i];
        if (h->mesh == mesh && trama_layout_equal(&h->layout, layout))
            return h;
    }
    return NULL;
}

/* ---- Shards and steps ---- */

int partition_shard(partition *q, shard_source source, int value, int place, const box *b, int cut_dim, int cut_parts)
{
    if (plan_on_gpu(q->p, place))
        cut_parts = 1;
    const plan_shard made = {.source = source,
                             .value = value,
                             .place = place,
                             .dtype = q->s.program->values.at[value]->dtype,
                             .box = *b, /* b may be the box of another shard, and the array moves */
                             .cut_dim = cut_parts > 1 ? cut_dim : -1,
                             .cut_parts = cut_parts,
                             .import = -1,
                             .within = -1,
                             .reuses = -1};
    *ARRAY_PUSH(&q->p->shards) = made;
    return q->p->shards.n - 1;
}

plan_step *partition_step(partition *q, step_kind kind, int place, int n, const plan_operand *operands)
{
    plan_step *s = ARRAY_PUSH(&q->p->steps);
    *s = (plan_step){.kind = kind,
                     .place = place,
                     .lane = lane_at(q, place),
                     .operand = q->p->operands.n,
                     .n_operands = n,
                     .exchanges_before = q->p->exchanges.n};
    for (int i = 0; i < n; i++)
        *ARRAY_PUSH(&q->p->operands) = operands[i];
    return s;
}

step_access write_access(const plan *p, const plan_region *r)
{
    const plan_shard *s = &p->shards.at[r->shard];
    if (s->source == SHARD_INTERNAL)
        return ACCESS_NONE;
    int first, last;
    plan_tiles(s, &r->box, &first, &last);
    box from = plan_tile(s, first), to = plan_tile(s, last);
    for (int d = 0; d < r->box.ndim; d++)
        if (r->box.lo[d] != from.lo[d] || r->box.lo[d] + r->box.n[d] != to.lo[d] + to.n[d])
            return ACCESS_UPDATE;
    return ACCESS_WRITE;
}

bool *partition_large_states(const partition *q)
{
    const trama_program *p = q->s.program;
    const int64_t least = q->s.options.early_bytes ? q->s.options.early_bytes : EARLY_BYTES;
    bool *large = trama_alloc((size_t)max_i64(1, p->values.n));
    for (int i = 0; i < p->values.n; i++) {
        const trama_mesh *mesh = q->s.l->mesh[i];
        const int64_t element = (int64_t)trama_dtype_size(p->values.at[i]->dtype);
        if (!value_is_state(p->values.at[i]) || !mesh)
            continue;
        const box whole = partition_whole(q, i);
        large[i] = layout_largest(mesh, &q->s.l->value[i], &whole) * element >= least;
    }
    return large;
}
