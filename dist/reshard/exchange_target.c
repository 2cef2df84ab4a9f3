/* SPDX-License-Identifier: Apache-2.0 */
/* The shards that an exchange fills. A target piece that lies in a source piece needs none; the others are cut into
 * tiles as messages arrive. */
#include <string.h>

#include "exchange.h"
#include "thresholds.h"

enum { MAX_SEAMS = 64 };

typedef struct seams {
    int n;   /* source boxes that meet the target box */
    int dim; /* the dim along which they differ, -1: none so far, -2: several */
    box first;
    int at[TRAMA_MAX_AXES]; /* the coordinate of the first */
    int64_t lo[MAX_SEAMS + 1], length[MAX_SEAMS + 1];
} seams;

static void visit_seam(void *arg, const box *piece, const int *coordinate)
{
    seams *s = arg;
    for (int d = 0; s->n && d < piece->ndim; d++)
        if (piece->lo[d] != s->first.lo[d] && d != s->dim)
            s->dim = s->dim == -1 ? d : -2;
    if (s->n == 0) {
        s->first = *piece;
        memcpy(s->at, coordinate, sizeof s->at);
    }
    if (s->n == 1 && s->dim >= 0) { /* the first one's dim is not known before */
        s->lo[0] = s->first.lo[s->dim];
        s->length[0] = s->first.n[s->dim];
    }
    if (s->n <= MAX_SEAMS && s->dim >= 0) {
        s->lo[s->n] = piece->lo[s->dim];
        s->length[s->n] = piece->n[s->dim];
    }
    s->n++;
}

/* Cuts the target shard of one source box into as many tiles as messages come in, if these are few, and the messages of
 * a sum again for the workers that sum them: one of them where targets sum slices, else all. */
static void cut_parts(const exchange *x, const plan_local_box *t, int pieces, const group *g, int *dim, int *tiles)
{
    const box *b = &t->region.box;
    const bool sliced = x->t.reduced ? is_sliced(x, g) : is_scattered(x, g, 1);
    const int parts = sliced ? g->targets.n : x->t.reduced ? sum_tiles(x, g) : 1;
    const int cut = b->ndim ? box_slice_dim(b, parts > 1 ? parts : MAX_TILES) : -1;
    int64_t each = 1;
    if ((parts < 2 && !x->t.reduced) || parts > MOST_SUM_TILES || cut < 0 || b->n[cut] < parts)
        return;
    const box part = box_slice(b, parts, 0);
    if (x->t.reduced && sum_turns(x, g, &part) == 1) {
        each = min_i64(g->terms * region_bytes(x, &part) / partition_sum_task(x->q), part.n[cut]);
        each = min_i64(each, partition_most_tiles(x->q, t->place, sliced ? pieces : pieces * parts));
        each = max_i64(1, min_i64(each, MOST_SUM_TILES / parts));
    }
    if ((parts > 1 && parts <= MAX_TILES) || each > 1) {
        *dim = cut;
        *tiles = parts * (int)each;
    }
}

/* Of at most MAX_TILES tiles the most that have as many source boxes each, if each begins with one; 0. */
static int tiles_at_seams(const seams *s, const box *b)
{
    int tiles = (int)min_i64(s->n, MAX_TILES);
    while (s->n % tiles)
        tiles--;
    for (int i = 0; i < tiles; i++) {
        const int first = i * (s->n / tiles), last = first + s->n / tiles - 1;
        const int64_t from = max_i64(s->lo[first], b->lo[s->dim]),
                      to = min_i64(s->lo[last] + s->length[last], b->lo[s->dim] + b->n[s->dim]);
        int64_t lo, length;
        piece_of(b->n[s->dim], tiles, i, &lo, &length);
        if (b->lo[s->dim] + lo != from || to - from != length)
            return 0;
    }
    return tiles;
}

/* Cuts a target shard into tiles as messages arrive, so that these need no unpacking, or those of one tile do not wait
 * for others; else as any shard is cut. Returns whether each tile is the box of one source. */
static bool target_cut(const exchange *x, const plan_local_box *t, int pieces, int *dim, int *parts)
{
    const box *b = &t->region.box;
    partition_cut(x->q, b, x->q->s.program->values.at[x->value]->dtype, t->place, pieces, dim, parts);
    if (box_count(b) == 0 || x->t.own || !gets_value(x, t->position))
        return false;
    seams s = {.dim = -1};
    layout_overlaps(x->t.from_mesh, &x->t.from, &x->t.whole, b, visit_seam, &s);
    group g = {.region = *b, .to_box = *b, .kept = kept_of(x, x->t.to_mesh, t->position)};
    int coordinate[TRAMA_MAX_AXES];
    mesh_coordinate(x->t.to_mesh, t->position, coordinate);
    if (s.n == 1) { /* one source box: its slices, if targets exchange slices */
        group_holders(x, &g, s.at, false);
        group_targets(x, &g, coordinate);
        cut_parts(x, t, pieces, &g, dim, parts);
        group_free(&g);
        return false;
    }
    const int tiles = s.dim < 0 || s.n > MAX_SEAMS || x->t.reduced ? 0 : tiles_at_seams(&s, b);
    if (tiles < 2 || (tiles < s.n && *dim == s.dim && *parts >= tiles))
        return false;
    *dim = s.dim;
    *parts = tiles;
    return tiles == s.n;
}

/* Whether a target piece is a part of a source piece on its place, so that it needs no buffer. */
static bool try_alias(exchange *x, plan_local_box *t)
{
    if (x->fresh || x->t.reduced || x->t.scale != 1 || !gets_value(x, t->position))
        return false;
    const plan_dist_value *h = &x->q->p->dist_values.at[x->source];
    int kept = kept_of(x, x->t.to_mesh, t->position);
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_local_box *s = &h->pieces.at[i];
        if (s->place == t->place && kept_of(x, x->t.from_mesh, s->position) == kept &&
            box_contains(&s->region.box, &t->region.box)) {
            t->region.shard = s->region.shard;
            return true;
        }
    }
    return false;
}

/* Pieces on one place that are equal, like the terms of a new P(max), share one shard. */
static bool same_as_before(const exchange *x, plan_dist_value *h, int i)
{
    plan_local_box *t = &h->pieces.at[i];
    for (int j = 0; j < i; j++) {
        const plan_local_box *u = &h->pieces.at[j];
        if (u->place == t->place && gets_value(x, u->position) == gets_value(x, t->position) &&
            kept_of(x, x->t.to_mesh, u->position) == kept_of(x, x->t.to_mesh, t->position) &&
            box_equal(&u->region.box, &t->region.box)) {
            t->region = u->region;
            return true;
        }
    }
    return false;
}

void make_targets(exchange *x)
{
    partition *q = x->q;
    plan_dist_value *h = &q->p->dist_values.at[x->target];
    for (int i = 0; i < h->pieces.n; i++) {
        plan_local_box *t = &h->pieces.at[i];
        if (t->region.shard >= 0 || try_alias(x, t) || same_as_before(x, h, i))
            continue;
        int dim, parts;
        const bool arrives = target_cut(x, t, pieces_on(h, t->place), &dim, &parts);
        t->region.shard = partition_shard(q, SHARD_OWN, x->value, t->place, &t->region.box, dim, parts);
        q->p->shards.at[t->region.shard].summed =
            x->t.reduced && parts <= partition_sum_tiles(q, region_bytes(x, &t->region.box));
        q->p->shards.at[t->region.shard].arrives = arrives;
        if (x->t.own || !gets_value(x, t->position)) {
            exchange_step *s = add_step(x, CLEAR, STEP_FILL, t->place);
            s->n = 1;
            s->step.scale = 0;
            s->operands[0] = (plan_operand){t->region, ACCESS_WRITE};
        }
    }
}
