/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout on simulated ranks. */
#include "change.h"

#include <check.h>
#include <string.h>

#include "partition.h"
#include "scheme.h"
#include "verify_plan.h"

int64_t change_window(trama_shape shape, int which)
{
    int64_t bytes = 8 * trama_shape_count(shape);
    const int64_t windows[] = {0, 1 << 19, 0, 64 + 2 * bytes, 0, 1 << 19, 0, 0, 64 + bytes / 2, 0, 1 << 19, 0};
    return windows[which % (int)(sizeof windows / sizeof *windows)];
}

/* ---- The cost ---- */

static bool is_partial(const trama_layout *l, int axis)
{
    return l->axis[axis].kind == TRAMA_PARTIAL;
}

static bool is_linear(trama_reduce kind)
{
    return kind == TRAMA_SUM || kind == TRAMA_AVG;
}

static int find_id(const trama_mesh *mesh, int id)
{
    for (int i = 0; i < mesh->size; i++)
        if (mesh->ids[i] == id)
            return i;
    return -1;
}

static int64_t common(const box *a, const box *b)
{
    int64_t n = 1;
    for (int d = 0; d < a->ndim; d++) {
        int64_t lo = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        int64_t end_a = a->lo[d] + a->n[d], end_b = b->lo[d] + b->n[d], end = end_a < end_b ? end_a : end_b;
        n *= end > lo ? end - lo : 0;
    }
    return n;
}

static int coordinate(const trama_mesh *mesh, int position, int axis)
{
    for (int a = mesh->ndim - 1; a > axis; a--)
        position /= mesh->shape[a];
    return position % mesh->shape[axis];
}

/* Where a split becomes a sum of terms each process makes its own piece its term. */
static bool pieces_become_terms(const change *c, int axis)
{
    return c->from.axis[axis].kind == TRAMA_SPLIT && is_partial(&c->to, axis) && is_linear(c->to.axis[axis].reduce) &&
           trama_mesh_equal(c->from_mesh, c->to_mesh);
}

/* Whether a source process is one that a target process may need. */
static bool concerns(const change *c, int from, int to)
{
    for (int a = 0; a < c->to_mesh->ndim; a++)
        if (pieces_become_terms(c, a) && coordinate(c->from_mesh, from, a) != coordinate(c->to_mesh, to, a))
            return false;
    return true;
}

int64_t change_lacking(const change *c, int position)
{
    if (c->to.mask && !c->to.mask[position])
        return 0;
    box wanted = naive_box(c->to_mesh, &c->to, c->shape, position);
    int there = find_id(c->from_mesh, c->to_mesh->ids[position]);
    int64_t lacking = 0;
    ARRAY(box) seen = {0};
    for (int i = 0; i < c->from_mesh->size; i++) {
        box b = naive_box(c->from_mesh, &c->from, c->shape, i);
        bool again = !concerns(c, i, position);
        for (int k = 0; k < seen.n; k++)
            again |= box_equal(&seen.at[k], &b);
        if (again)
            continue;
        *ARRAY_PUSH(&seen) = b;
        lacking += common(&wanted, &b);
    }
    ARRAY_FREE(&seen);
    if (there < 0 || (c->from.mask && !c->from.mask[there]))
        return lacking;
    box held = naive_box(c->from_mesh, &c->from, c->shape, there);
    return lacking - common(&wanted, &held);
}

/* Terms that are reduced rather than kept: along axes that the target splits, and along others. */
typedef struct terms {
    int split, whole;
    unsigned kept; /* axes along which each keeps a term of its own */
} terms;

static terms reduced_terms(const change *c)
{
    bool same = trama_mesh_equal(c->from_mesh, c->to_mesh);
    terms t = {1, 1, 0};
    for (int a = 0; a < c->from_mesh->ndim; a++) {
        if (pieces_become_terms(c, a))
            t.kept |= 1u << a;
        if (!is_partial(&c->from, a))
            continue;
        trama_reduce kind = c->from.axis[a].reduce;
        if (same && is_partial(&c->to, a) &&
            (c->to.axis[a].reduce == kind || (is_linear(kind) && is_linear(c->to.axis[a].reduce)))) {
            t.kept |= 1u << a;
            continue;
        }
        bool split = same && c->to.axis[a].kind == TRAMA_SPLIT;
        *(split ? &t.split : &t.whole) *= c->from_mesh->shape[a];
    }
    return t;
}

/* A whole value becomes P(sum): only the first along the axis gets the value. */
static bool gets_nothing(const change *c, int position)
{
    bool same = trama_mesh_equal(c->from_mesh, c->to_mesh);
    for (int a = c->to_mesh->ndim - 1; a >= 0; a--) {
        int at = position % c->to_mesh->shape[a];
        position /= c->to_mesh->shape[a];
        bool kept = same && c->from.axis[a].kind != TRAMA_REPLICATE;
        if (is_partial(&c->to, a) && c->to.axis[a].reduce == TRAMA_SUM && !kept && at > 0)
            return true;
    }
    return false;
}

static bool becomes_sum(const change *c)
{
    for (int position = 0; position < c->to_mesh->size; position++)
        if (gets_nothing(c, position))
            return true;
    return false;
}

/* The most elements of one of n slices of a box: along the first dim if it has n, else along the longest. */
static int64_t largest_slice(const box *b, int n)
{
    int dim = 0;
    for (int d = 0; d < b->ndim; d++)
        if (b->n[d] > b->n[dim])
            dim = d;
    if (b->ndim && b->n[0] >= n)
        dim = 0;
    return b->ndim && b->n[dim] ? box_count(b) / b->n[dim] * ((b->n[dim] + n - 1) / n) : box_count(b);
}

/* Terms of one kind become terms of another: no row of the table; they are cut along one dim, the same for all
 * processes. */
static bool changes_kind(const change *c, int axis)
{
    return is_partial(&c->from, axis) && is_partial(&c->to, axis) && c->to.axis[axis].reduce == TRAMA_SUM &&
           !is_linear(c->from.axis[axis].reduce) && trama_mesh_equal(c->from_mesh, c->to_mesh);
}

static bool changes_any_kind(const change *c)
{
    for (int a = 0; a < c->to_mesh->ndim; a++)
        if (changes_kind(c, a))
            return true;
    return false;
}

/* The most that a process may get of n elements that an axis cuts. */
static int64_t largest_piece(const trama_mesh *mesh, int axis, int64_t n)
{
    int64_t most = 0, sum = 0;
    for (int i = 0; i < mesh->shape[axis]; i++) {
        sum += trama_mesh_weight(mesh, axis, i);
        most = max_i64(most, trama_mesh_weight(mesh, axis, i));
    }
    bool even = most * mesh->shape[axis] == sum;
    return even ? (n + sum - 1) / sum : min_i64(n, n * most / sum + 1);
}

/* The same where kinds change: their axes cut, along the dim that suits worst, and what they leave is cut evenly. */
static int64_t coarsest_slice(const change *c, const box *b, int n)
{
    int64_t most = b->ndim ? 0 : 1;
    for (int d = 0; d < b->ndim; d++) {
        int64_t length = b->n[d], rest = n;
        for (int a = 0; a < c->to_mesh->ndim && n > 1; a++) {
            if (!changes_kind(c, a))
                continue;
            length = largest_piece(c->to_mesh, a, length);
            rest = max_i64(1, rest / c->to_mesh->shape[a]);
        }
        if (length)
            most = max_i64(most, box_count(b) / b->n[d] * ((length + rest - 1) / rest));
    }
    return most;
}

static int kept_coordinate(const trama_mesh *mesh, unsigned kept, int position)
{
    int at = 0, scale = 1;
    for (int a = mesh->ndim - 1; a >= 0; a--) {
        at += kept >> a & 1 ? position % mesh->shape[a] * scale : 0;
        scale *= mesh->shape[a];
        position /= mesh->shape[a];
    }
    return at;
}

/* Processes that want the same box of the same term, and so can reduce a slice each. */
static int sharers(const change *c, int position, unsigned kept)
{
    box wanted = naive_box(c->to_mesh, &c->to, c->shape, position);
    int n = 0;
    for (int i = 0; i < c->to_mesh->size; i++) {
        box b = naive_box(c->to_mesh, &c->to, c->shape, i);
        bool present = !c->to.mask || c->to.mask[i];
        n += present && box_equal(&b, &wanted) &&
             kept_coordinate(c->to_mesh, kept, i) == kept_coordinate(c->to_mesh, kept, position);
    }
    return n;
}

/* Elements that reducing t terms may bring one process, region by region: each meets the slices' rounding. */
static int64_t reduce_limit(const change *c, int position, terms t)
{
    box wanted = naive_box(c->to_mesh, &c->to, c->shape, position);
    ARRAY(box) seen = {0};
    int64_t limit = 0;
    int slices = becomes_sum(c) ? 1 : (int)min_i64(t.whole, sharers(c, position, t.kept));
    for (int i = 0; i < c->from_mesh->size; i++) {
        box from = naive_box(c->from_mesh, &c->from, c->shape, i), region;
        bool again = false;
        for (int k = 0; k < seen.n; k++)
            again |= box_equal(&seen.at[k], &from);
        if (again || !box_intersect(&from, &wanted, &region))
            continue;
        *ARRAY_PUSH(&seen) = from;
        int64_t slice = changes_any_kind(c) ? coarsest_slice(c, &region, slices) : largest_slice(&region, slices);
        limit += slice * (t.split * t.whole - 1) + box_count(&region) - (slices > 1 ? 0 : slice);
    }
    ARRAY_FREE(&seen);
    return limit;
}

/* The most elements that any process may get. */
static int64_t largest_limit(const change *c, terms t)
{
    int64_t most = 0;
    for (int i = 0; i < c->to_mesh->size; i++)
        most = max_i64(most, change_lacking(c, i) + reduce_limit(c, i, t));
    return most;
}

/* ---- Running it ---- */

trama_program *change_program(const change *c)
{
    trama_program *p = trama_program_create();
    trama_input(p, "x", TRAMA_F64, c->shape);
    return p;
}

int change_ids(const trama_mesh *a, const trama_mesh *b)
{
    int n = 0;
    for (int i = 0; i < a->size; i++)
        n = (int)max_i64(n, a->ids[i] + 1);
    for (int i = 0; i < b->size; i++)
        n = (int)max_i64(n, b->ids[i] + 1);
    return n;
}

static int64_t most_lacking(const change *c)
{
    int64_t most = 0;
    for (int i = 0; i < c->to_mesh->size; i++)
        most = max_i64(most, 8 * change_lacking(c, i));
    return most;
}

/* Without partials: what each lacks. */
static void check_lacking(const change *c, int position, int64_t got, int64_t most)
{
    int64_t lacks = 8 * change_lacking(c, position);
    if (gets_nothing(c, position) || (c->to.mask && !c->to.mask[position]))
        ck_assert_msg(got == 0, "%s: process %d gets %lld bytes for nothing", change_text(c), position, (long long)got);
    else if (c->two_levels)
        ck_assert_msg(got <= 2 * most, "%s: process %d gets %lld bytes", change_text(c), position, (long long)got);
    else
        ck_assert_msg(got == lacks, "%s: process %d lacks %lld bytes and gets %lld", change_text(c), position,
                      (long long)lacks, (long long)got);
}

static int64_t most_received(const change *c, memory *const *ranks)
{
    int64_t most = 0;
    for (int r = 0; r < c->machine->n_ranks; r++)
        most = max_i64(most, plan_count(ranks[r]->p).received);
    return most;
}

/* Source boxes that a target takes terms of, or one more. */
static int64_t count_boxes(const change *c, const scheme *at_once)
{
    terms t = reduced_terms(c);
    return 1 + at_once->messages / (t.split * t.whole);
}

static int64_t total_received(const change *c, memory *const *ranks)
{
    int64_t total = 0;
    for (int r = 0; r < c->machine->n_ranks; r++)
        total += plan_count(ranks[r]->p).received;
    return total;
}

/* So many messages, of terms and of slices that are exchanged for each source box, that a route may be taken on which
 * they are fewer. */
static bool are_many(const change *c, const scheme *at_once)
{
    int64_t messages = at_once->messages + count_boxes(c, at_once) * c->to_mesh->size;
    return max_i64(messages, messages * c->to_mesh->size / c->from_mesh->size) > 64;
}

/* No more than at once; and where the source need not send more, no more than by way of slices, but for a sixteenth and
 * 64 bytes for each message that this would take more. At once a target gets a message less for each box of which it
 * has a term. */
static void check_schemes(const change *c, int64_t got, int64_t total)
{
    scheme at_once = scheme_at_once(c);
    int64_t messages = at_once.messages - count_boxes(c, &at_once), most_total = at_once.total;
    ck_assert_msg(64 * got <= 65 * 8 * at_once.received, "%s: a process gets %lld bytes, all terms are %lld",
                  change_text(c), (long long)got, (long long)(8 * at_once.received));
    for (int d = 0; d < c->shape.ndim && !are_many(c, &at_once); d++) {
        scheme s = scheme_by_slices(c, d);
        int64_t most = 8 * s.received + 64 * max_i64(0, s.messages - messages);
        most_total = max_i64(most_total, s.total);
        ck_assert_msg(8 * s.sent > got || 16 * got <= 17 * most,
                      "%s: a process gets %lld bytes, by way of slices along dim %d %lld", change_text(c),
                      (long long)got, d, (long long)most);
    }
    ck_assert_msg(64 * total <= 65 * 8 * most_total || are_many(c, &at_once),
                  "%s: all together get %lld bytes, by the schemes at most %lld", change_text(c), (long long)total,
                  (long long)(8 * most_total));
}

static void check_bytes(const change *c, memory *const *ranks)
{
    terms t = reduced_terms(c);
    bool reduces = t.split * t.whole > 1;
    int64_t most = c->two_levels ? most_lacking(c) : 0, limit = 8 * largest_limit(c, t);
    for (int i = 0; i < c->to_mesh->size && !reduces; i++)
        check_lacking(c, i, plan_count(ranks[map_place(c->map, c->to_mesh->ids[i])]->p).received, most);
    if (!reduces)
        return;
    int64_t got = most_received(c, ranks);
    ck_assert_msg(got <= limit, "%s: a process gets %lld bytes, the table allows %lld", change_text(c), (long long)got,
                  (long long)limit);
    if (!c->collectives) /* each of which has a scheme of its own */
        check_schemes(c, got, total_received(c, ranks));
}

/* Checks the plan's own bounds. */
static void check_certificate(const change *c, memory *const *ranks)
{
    terms t = reduced_terms(c);
    for (int r = 0; r < c->machine->n_ranks; r++) {
        const plan *p = ranks[r]->p;
        int64_t bound = 0;
        for (int i = 0; i < c->to_mesh->size; i++)
            if (c->machine->places[map_place(c->map, c->to_mesh->ids[i])].rank == r && !gets_nothing(c, i))
                bound += 8 * change_lacking(c, i);
        for (int e = 0; e < min_i64(1, p->exchanges.n); e++) /* the others change the kind of terms in place */
            ck_assert_msg(p->exchanges.at[e].bound == (t.split * t.whole > 1 ? -1 : bound),
                          "%s: rank %d certifies a bound of %lld, it is %lld", change_text(c), r,
                          (long long)p->exchanges.at[e].bound, (long long)bound);
    }
}

/* Message buffers beside source and target: no more than the window, but for 128 bytes of each term. */
static void check_memory(const change *c, memory *const *ranks)
{
    int64_t window = c->staging_bytes ? c->staging_bytes : 64 << 20;
    for (int r = 0; r < c->machine->n_ranks; r++) {
        const plan *p = ranks[r]->p;
        int64_t buffers = plan_message_buffers(p), says = 0;
        for (int e = 0; e < p->exchanges.n; e++)
            says += p->exchanges.at[e].buffers;
        ck_assert_msg(buffers <= says && buffers <= p->exchanges.n * (window + 128 * c->from_mesh->size),
                      "%s: rank %d has %lld bytes of message buffers, it says %lld", change_text(c), r,
                      (long long)buffers, (long long)says);
    }
}

static bool one_process_a_place(const change *c)
{
    return c->map->n <= c->machine->n_ranks && c->machine->n_places == c->machine->n_ranks;
}

plan **change_plans(const change *c, const trama_program *p, const plan_dist_value **h)
{
    const trama_mesh *meshes[] = {c->from_mesh};
    trama_layout values[] = {c->from};
    layouts l = {.n_values = 1, .mesh = meshes, .value = values};
    plan **plans = trama_alloc((size_t)c->machine->n_ranks * sizeof(plan *));
    for (int r = 0; r < c->machine->n_ranks; r++) {
        plan_source source = {.program = p,
                              .l = &l,
                              .shapes = &c->shape,
                              .map = c->map,
                              .machine = c->machine,
                              .options = {.max_tiles = c->max_tiles,
                                          .grain_flops = 1,
                                          .grain_bytes = 1,
                                          .sum_tile = trama_shape_count(c->shape) % 2 ? 16 : 0,
                                          .staging_bytes = c->staging_bytes,
                                          .collectives = c->collectives,
                                          .nccl_sums = c->nccl_sums},
                              .rank = r};
        partition *q = partition_begin(&source);
        partition_input(q, 0);
        const plan_dist_value *made = partition_reshard(q, 0, c->to_mesh, &c->to, -1, c->fresh);
        plans[r] = partition_end_with(&q, &made);
        if (h)
            h[r] = made;
    }
    return plans;
}

void change_try(const change *c, change_traffic *moved)
{
    size_t n = (size_t)c->machine->n_ranks;
    trama_program *p = change_program(c);
    world w = {p, c->machine, c->map, 0};
    memory **memories = trama_alloc(n * sizeof(memory *));
    const plan_dist_value **h = trama_alloc(n * sizeof(plan_dist_value *));
    plan **plans = change_plans(c, p, h);
    for (size_t r = 0; r < n; r++)
        memories[r] = memory_new(plans[r], NULL);
    ck_assert_msg(!plan_verify((const plan *const *)plans, (int)n, p), "%s: %s", change_text(c), trama_error());
    dense *held = random_terms(c->from_mesh, &c->from, c->shape, c->seed), got = {0};
    dense expected = combine_terms(c->from_mesh, &c->from, held);
    scatter(&w, memories, 0, held);
    char *wrong = interpret(&w, memories, &c->shape, NULL);
    if (!wrong)
        wrong = gather(&w, memories, h, c->shape, &got);
    ck_assert_msg(!wrong, "%s: %s", change_text(c), wrong);
    ck_assert_msg(dense_difference(&got, &expected) <= (c->exact ? 0 : 1e-12), "%s: values differ", change_text(c));
    check_certificate(c, memories);
    if (c->look)
        c->look(c, plans);
    if (one_process_a_place(c)) {
        check_bytes(c, memories);
        check_memory(c, memories);
    }
    for (size_t r = 0; r < n; r++) {
        if (moved)
            moved[r] = (change_traffic){plan_count(plans[r]).sent / 8, plan_count(plans[r]).received / 8};
        memory_destroy(&memories[r]);
        plan_destroy(&plans[r]);
    }
    if (c->result)
        *c->result = got;
    else
        dense_free(&got);
    dense_free(&expected);
    free_terms(c->from_mesh, &c->from, held);
    free(plans);
    free(memories);
    free(h);
    trama_program_destroy(&p);
}

char *change_text(const change *c)
{
    text t = {0};
    shape_text(&t, c->shape);
    text_add(&t, " ");
    mesh_text(&t, c->from_mesh);
    text_add(&t, " as ");
    layout_text(&t, c->from_mesh, &c->from);
    text_add(&t, " -> ");
    mesh_text(&t, c->to_mesh);
    text_add(&t, " as ");
    layout_text(&t, c->to_mesh, &c->to);
    text_add(&t, "%s, %d tiles, staging %lld, %d ranks, %d places", c->fresh ? ", fresh" : "", c->max_tiles,
             (long long)c->staging_bytes, c->machine->n_ranks, c->machine->n_places);
    return text_take(&t);
}
