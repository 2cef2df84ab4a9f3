/* SPDX-License-Identifier: Apache-2.0 */
/* Moves one region from its holders to its targets: the whole of it, slices that targets exchange, or terms that they
 * sum. */
#include "exchange.h"

#include "thresholds.h"

enum {
    SPREAD_BYTES = 256 << 10, /* a target takes a region of this size or more in slices from several holders */
    MAX_SPREAD = 4,
    TURN_TERMS = 4 /* the least terms that are summed at a time, if there are more */
};

static bool is_nothing(const box *b)
{
    return b->ndim < 0 || box_count(b) == 0;
}

/* Moves b from a piece s on one place to a piece t on another; NULL where the piece is another rank's. lies_in: the box
 * of s, or NULL; see cut_message. level as in add_send. */
static void move(exchange *x, const group *g, int level, int from, const plan_local_box *s, const box *lies_in, int to,
                 const plan_local_box *t, const box *b)
{
    if (s && t) {
        add_copy(x, level ? UNPACK_AGAIN : UNPACK, to, region_in(t, b), region_in(s, b));
        return;
    }
    cut_message(x, b, lies_in ? lending(x, from, lies_in) : NULL, lending(x, to, &g->to_box), 1);
    for (x->piece = 0; x->piece < x->pieces.n; x->piece++)
        if (s)
            add_send(x, level, from, to, region_in(s, &x->pieces.at[x->piece]), g->kept);
        else
            add_receive(x, level, to, from, region_in(t, &x->pieces.at[x->piece]), g->kept);
}

/* Moves b from the source piece of one place to the target piece of another. */
static void move_from_source(exchange *x, const group *g, int from, int to, const box *b)
{
    if (is_nothing(b) || (!is_mine(x->q, from) && !is_mine(x->q, to)))
        return;
    const plan_local_box *s = is_mine(x->q, from) ? source_piece(x, from, &g->from_box, g->kept, 0) : NULL;
    const plan_local_box *t = is_mine(x->q, to) ? target_piece(x, to, &g->to_box, g->kept) : NULL;
    move(x, g, 0, from, s, x->inside ? NULL : &g->from_box, to, t, b);
}

/* Moves slice number i from target i, which has it, to target j, where one of them is this rank's. */
static void pass_slice(exchange *x, const group *g, const int_list *targets, int i, int j)
{
    box slice = box_slice(&g->region, targets->n, i);
    int from = targets->at[i], to = targets->at[j];
    if (i == j || is_nothing(&slice))
        return;
    const plan_local_box *s = is_mine(x->q, from) ? target_piece(x, from, &g->to_box, g->kept) : NULL;
    const plan_local_box *t = is_mine(x->q, to) ? target_piece(x, to, &g->to_box, g->kept) : NULL;
    move(x, g, 1, from, s, &g->to_box, to, t, &slice);
}

/* Each target sends its slice to the others. */
static void exchange_slices(exchange *x, const group *g, const int_list *targets)
{
    int_list mine = {0};
    for (int i = 0; i < targets->n; i++)
        if (is_mine(x->q, targets->at[i]))
            *ARRAY_PUSH(&mine) = i;
    for (int i = 0; i < targets->n; i++) {
        bool all = is_mine(x->q, targets->at[i]);
        for (int k = 0; k < (all ? targets->n : mine.n); k++)
            pass_slice(x, g, targets, i, all ? k : mine.at[k]);
    }
    ARRAY_FREE(&mine);
}

bool is_scattered(const exchange *x, const group *g, int holders)
{
    return transfer_is_scattered(g->n_targets, holders,
                                 layout_pieces(x->t.from_mesh, &x->t.from, &x->t.whole, &g->to_box),
                                 region_bytes(x, &g->region));
}

/* Moves the whole region to target number i: by a copy if its place holds the region, else from one holder, or from
 * several if the region is large and has enough holders. */
static void move_whole(exchange *x, const group *g, int i, int to)
{
    const int_list *holders = &g->holders[0];
    int64_t number = target_number(g, i);
    int n_nearest;
    if (list_has(holders, to)) {
        const plan_local_box *s = is_mine(x->q, to) ? source_piece(x, to, &g->from_box, g->kept, 0) : NULL;
        const plan_local_box *t = s ? target_piece(x, to, &g->to_box, g->kept) : NULL;
        if (s && s->region.shard != t->region.shard)
            add_copy(x, UNPACK, to, region_in(t, &g->region), region_in(s, &g->region));
        return;
    }
    int from = choose_holder(x, holders, to, number, &n_nearest), near = line_holder(x, g, i);
    const machine *m = x->q->s.machine;
    if (near >= 0 && machine_distance(m, near, to) == machine_distance(m, from, to))
        from = near;
    int spread = (int)min_i64(n_nearest / g->n_targets, MAX_SPREAD);
    if (spread < 2 || region_bytes(x, &g->region) < SPREAD_BYTES) {
        move_from_source(x, g, from, to, &g->region);
        return;
    }
    for (int k = 0; k < spread; k++) {
        box slice = box_slice(&g->region, spread, k);
        move_from_source(x, g, choose_holder(x, holders, to, number * spread + k, NULL), to, &slice);
    }
}

/* Targets that lack the region get a slice each, and exchange slices. */
static void scatter(exchange *x, const group *g)
{
    const int_list *holders = &g->holders[0];
    int_list lacking = {0};
    for (int i = 0; i < g->targets.n; i++)
        if (list_has(holders, g->targets.at[i]))
            move_whole(x, g, i, g->targets.at[i]);
        else
            *ARRAY_PUSH(&lacking) = g->targets.at[i];
    for (int i = 0; i < lacking.n; i++) {
        box slice = box_slice(&g->region, lacking.n, i);
        move_from_source(x, g, choose_holder(x, holders, lacking.at[i], target_number(g, i), NULL), lacking.at[i],
                         &slice);
    }
    exchange_slices(x, g, &lacking);
    ARRAY_FREE(&lacking);
}

void move_group(exchange *x, const group *g)
{
    if (is_scattered(x, g, g->holders[0].n)) {
        scatter(x, g);
        return;
    }
    for (int i = 0; i < g->targets.n; i++)
        move_whole(x, g, i, g->targets.at[i]);
}

bool move_own(exchange *x, group *g)
{
    const plan_dist_value *h = &x->q->p->dist_values.at[x->target];
    unsigned axes = transfer_target_axes(&x->t);
    g->n_targets = axes_size(x->t.to_mesh, axes);
    if (!x->distinct || g->held_here[0] || is_scattered(x, g, g->holders[0].n))
        return false;
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_local_box piece = h->pieces.at[i];
        int coordinate[TRAMA_MAX_AXES];
        if (!gets_value(x, piece.position) || kept_of(x, x->t.to_mesh, piece.position) != g->kept ||
            !box_equal(&piece.region.box, &g->to_box))
            continue;
        mesh_coordinate(x->t.to_mesh, piece.position, coordinate);
        move_whole(x, g, axes_position(x->t.to_mesh, axes, coordinate), piece.place);
    }
    return true;
}

int sum_tiles(const exchange *x, const group *g)
{
    int n = g->terms == 2 ? partition_sum_tiles(x->q, region_bytes(x, &g->region)) : 1;
    return n > 1 && g->region.n[box_slice_dim(&g->region, n)] >= n ? n : 1;
}

/* A part of the region that one target sums, its terms in turns: those from `first` on, and the sum of all before. */
typedef struct sum_turn {
    int target;
    box part;
    int first, n;
    plan_region so_far;
    int step; /* in exchange.steps: the one that wrote so_far; -1: none, or another rank's */
} sum_turn;

/* Adds a term to the operands of the sum, or sends it to the target on another rank. */
static void add_term(exchange *x, const group *g, const sum_turn *turn, int term)
{
    const int to = g->targets.at[turn->target], key = g->kept * g->terms + term;
    const bool mine = is_mine(x->q, to);
    if (!mine && !g->held_here[term])
        return;
    const int from = term_holder(x, g, term, turn->target);
    const plan_local_box *s = is_mine(x->q, from) ? source_piece(x, from, &g->from_box, g->kept, term) : NULL;
    if (mine) {
        plan_region region = s ? add_local_copy(x, 0, to, region_in(s, &turn->part), key)
                               : add_receive_buffer(x, 0, to, from, &turn->part, key);
        count_between(x, to, &region);
        *ARRAY_PUSH(&x->sources) = (plan_operand){region, ACCESS_READ};
    } else if (s) {
        add_send(x, 0, from, to, region_in(s, &turn->part), key);
    }
}

/* Where the sum of a turn goes: the last one's to the target. */
static plan_region sum_region(exchange *x, const group *g, const sum_turn *turn)
{
    const int to = g->targets.at[turn->target];
    if (turn->first + turn->n == g->terms)
        return region_in(target_piece(x, to, &g->to_box, g->kept), &turn->part);
    return (plan_region){partition_shard(x->q, SHARD_OWN, x->value, to, &turn->part, -1, 1), turn->part};
}

/* Sums the terms of a turn, in their order, behind those before. For a target of another rank this rank sends its
 * terms. */
static void sum_terms(exchange *x, const group *g, sum_turn *turn)
{
    const int to = g->targets.at[turn->target], first = x->sources.n, staged_before = x->steps.n;
    const bool mine = is_mine(x->q, to);
    if (mine) {
        const plan_region region = sum_region(x, g, turn);
        *ARRAY_PUSH(&x->sources) = (plan_operand){region, write_access(x->q->p, &region)};
        if (turn->first)
            *ARRAY_PUSH(&x->sources) = (plan_operand){turn->so_far, ACCESS_READ};
        turn->so_far = region;
    }
    for (int k = 0; k < turn->n; k++)
        add_term(x, g, turn, turn->first + k);
    for (int k = staged_before; k < x->steps.n; k++)
        x->steps.at[k].sums = true;
    if (!mine)
        return;
    exchange_step *s = add_step(x, REDUCE, STEP_REDUCE, to);
    s->many = first;
    s->n = x->sources.n - first;
    s->behind = turn->step;
    s->step.reduce = x->t.reduce;
    s->step.scale = turn->first + turn->n == g->terms ? x->t.scale : 1;
    turn->step = x->steps.n - 1;
}

int sum_turns(const exchange *x, const group *g, const box *part)
{
    const int64_t buffer = staging_bytes(x->q), bytes = region_bytes(x, part);
    if (g->terms <= TURN_TERMS || bytes * g->terms <= buffer / 2 || x->t.element < sizeof(float))
        return 1;
    const int64_t message = min_i64(bytes, max_i64(BUFFER_ALIGNMENT, buffer / 4 / TURN_TERMS));
    const int64_t terms = max_i64(TURN_TERMS, buffer / 4 / message);
    return (int)((g->terms + terms - 1) / terms);
}

/* Target number i sums a part of the region: in turns where it is large, and cut again where a turn is. */
static void reduce_part(exchange *x, const group *g, int i, const box *part)
{
    if (is_nothing(part))
        return;
    const int turns = sum_turns(x, g, part);
    cut_message(x, part, &g->from_box, NULL, (g->terms + turns - 1) / turns);
    for (int piece = 0; piece < x->pieces.n; piece++) {
        sum_turn turn = {.target = i, .part = x->pieces.at[piece], .step = -1};
        for (int k = 0; k < turns; k++) {
            int64_t first, n;
            piece_of(g->terms, turns, k, &first, &n);
            turn.first = (int)first;
            turn.n = (int)n;
            x->piece = piece * turns + k;
            sum_terms(x, g, &turn);
        }
    }
}

void reduce_group(exchange *x, group *g)
{
    bool sliced = is_sliced(x, g);
    int tiles = sum_tiles(x, g);
    for (int i = 0; i < g->targets.n; i++)
        for (int k = 0; k < (sliced ? 1 : tiles); k++) {
            box part = sliced ? box_slice(&g->region, g->targets.n, i) : box_slice(&g->region, tiles, k);
            reduce_part(x, g, i, &part);
        }
    if (sliced)
        exchange_slices(x, g, &g->targets);
}
