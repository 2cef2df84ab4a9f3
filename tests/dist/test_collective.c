/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout that GPUs make together: which are collectives, by a rule stated here once more; and that they
 * give what messages give. */
#include <check.h>
#include <string.h>

#include "change.h"
#include "suite.h"

static const int64_t shapes[][4] = {/* ndim, extents */
                                    {0},       {1, 8},    {1, 5},       {1, 0},    {2, 8, 12},
                                    {2, 4, 5}, {2, 3, 8}, {2, 1, 12},   {2, 2, 2}, {3, 4, 1, 6},
                                    {2, 6, 6}, {2, 7, 3}, {3, 2, 6, 4}, {2, 12, 5}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* ---- The rule ---- */

/* Collectives of a place, one after the other. */
typedef struct expected {
    int n;
    collective_form form[2];
} expected;

static bool alike(const trama_placement *a, const trama_placement *b)
{
    return a->kind == b->kind && (a->kind != TRAMA_SPLIT || (a->dim == b->dim && a->order == b->order)) &&
           (a->kind != TRAMA_PARTIAL || a->reduce == b->reduce);
}

static int only_changed_axis(const change *c)
{
    int found = -1, n = 0;
    for (int a = 0; a < c->from_mesh->ndim; a++)
        if (c->from_mesh->shape[a] > 1 && !alike(&c->from.axis[a], &c->to.axis[a])) {
            found = a;
            n++;
        }
    return n == 1 ? found : -1;
}

static int along(const trama_mesh *mesh, int position, int axis)
{
    for (int a = mesh->ndim - 1; a > axis; a--)
        position /= mesh->shape[a];
    return position % mesh->shape[axis];
}

/* Whether two positions differ along the axis at most. */
static bool in_line(const trama_mesh *mesh, int i, int k, int axis)
{
    for (int a = 0; a < mesh->ndim; a++)
        if (a != axis && along(mesh, i, a) != along(mesh, k, a))
            return false;
    return true;
}

static bool same_extents(const box *a, const box *b)
{
    return !memcmp(a->n, b->n, (size_t)a->ndim * sizeof *a->n);
}

static bool is_cut_evenly(const box *b, int n)
{
    for (int d = 0; d < b->ndim; d++)
        if (b->n[d] % n == 0)
            return true;
    return false;
}

static bool pieces_are_equal(const change *c, int axis, bool cut)
{
    const trama_mesh *mesh = c->from_mesh;
    for (int i = 0; i < mesh->size; i++) {
        box from = naive_box(mesh, &c->from, c->shape, i), to = naive_box(mesh, &c->to, c->shape, i);
        if (!box_count(&from) || !box_count(&to) || (cut && !is_cut_evenly(&to, mesh->shape[axis])))
            return false;
        for (int k = 0; k < i; k++) {
            box other_from = naive_box(mesh, &c->from, c->shape, k), other_to = naive_box(mesh, &c->to, c->shape, k);
            if (in_line(mesh, i, k, axis) && (!same_extents(&from, &other_from) || !same_extents(&to, &other_to)))
                return false;
        }
    }
    return true;
}

static expected rule(const change *c)
{
    expected e = {0};
    int axis = only_changed_axis(c);
    if (axis < 0)
        return e;
    trama_placement_kind from = c->from.axis[axis].kind, to = c->to.axis[axis].kind;
    bool sums = from == TRAMA_PARTIAL, whole = to == TRAMA_REPLICATE;
    if (from == TRAMA_REPLICATE || to == TRAMA_PARTIAL ||
        (from == TRAMA_SPLIT && to == TRAMA_SPLIT && c->from.axis[axis].dim == c->to.axis[axis].dim) ||
        !pieces_are_equal(c, axis, sums && whole && !c->nccl_sums))
        return e;
    e.n = 1;
    if (sums && c->nccl_sums)
        e.form[0] = whole ? PLAN_ALL_REDUCE : PLAN_REDUCE_SCATTER;
    else if (sums || !whole)
        e.form[0] = PLAN_ALL_TO_ALL;
    else
        e.form[0] = PLAN_ALL_GATHER;
    if (sums && whole && !c->nccl_sums)
        e.form[e.n++] = PLAN_ALL_GATHER;
    return e;
}

/* ---- The plans ---- */

static int n_collective;

static void check_place(const change *c, const plan *p, int place, const expected *e)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        if (s->place != place || s->kind != STEP_COLLECTIVE)
            continue;
        ck_assert_msg(n < e->n && s->collective.form == e->form[n], "%s: number %d of place %d is %s", change_text(c),
                      n, place, collective_name(s->collective.form));
        n++;
    }
    ck_assert_msg(n == e->n, "%s: place %d has %d collectives, not %d", change_text(c), place, n, e->n);
}

/* Terms that are no sums become terms of a sum: first slices of the value, which is another change. */
static bool goes_by_slices(const change *c)
{
    for (int a = 0; a < c->from_mesh->ndim; a++)
        if (c->from.axis[a].kind == TRAMA_PARTIAL && !alike(&c->from.axis[a], &c->to.axis[a]) &&
            c->to.axis[a].kind == TRAMA_PARTIAL && c->to.axis[a].reduce == TRAMA_SUM)
            return true;
    return false;
}

static bool same_groups(const plan *p, const plan *q)
{
    bool same = p->groups.n == q->groups.n;
    for (int i = 0; i < p->groups.n && same; i++)
        same = p->groups.at[i].n == q->groups.at[i].n &&
               !memcmp(p->groups.at[i].places, q->groups.at[i].places, (size_t)p->groups.at[i].n * sizeof(int));
    return same;
}

static void look(const change *c, plan *const *plans)
{
    if (goes_by_slices(c))
        return;
    for (int r = 1; r < c->machine->n_ranks; r++)
        ck_assert_msg(same_groups(plans[r], plans[0]), "%s: other groups than on rank 0", change_text(c));
    expected e = c->collectives ? rule(c) : (expected){0};
    n_collective += e.n > 0;
    if (!e.n && plans[0]->exchanges.n > 1) /* by way of slices: each hop is a change of its own */
        return;
    for (int r = 0; r < c->machine->n_ranks; r++) {
        ck_assert_msg(!e.n || plan_count(plans[r]).messages == 0, "%s: messages beside collectives", change_text(c));
        for (int i = 0; i < c->machine->n_places; i++)
            if (c->machine->places[i].rank == r)
                check_place(c, plans[r], i, &e);
    }
}

/* ---- Every pair ---- */

/* A collective moves bits, and sums in the order in which messages are summed. */
static void try_both(change *c)
{
    dense by_messages = {0}, together = {0};
    c->look = look;
    c->collectives = false;
    c->result = &by_messages;
    change_try(c, NULL);
    c->collectives = true;
    c->result = &together;
    change_try(c, NULL);
    bool moved = rule(c).n > 0 && !c->nccl_sums;
    ck_assert_msg(dense_difference(&together, &by_messages) <= (moved ? 0 : 1e-12), "%s: other values than by messages",
                  change_text(c));
    dense_free(&by_messages);
    dense_free(&together);
}

static void try_pairs(const char *name, int ranks, int places, int64_t stride)
{
    trama_mesh *mesh = trama_mesh_create(name);
    machine *m = simulation_machine(ranks, places, 2);
    machine_vary(m, 1);
    process_map *map = map_by_order(mesh->size, NULL, m);
    int64_t at = 0;
    n_collective = 0;
    for (int s = 0; s < N_SHAPES; s++) {
        layout_list list = {0};
        every_layout(mesh, (int)shapes[s][0], true, &list);
        for (; at < (int64_t)list.n * list.n; at += stride) {
            change c = {.from_mesh = mesh, .to_mesh = mesh, .shape = trama_shape_of((int)shapes[s][0], shapes[s] + 1)};
            c.from = list.at[at / list.n];
            c.to = list.at[at % list.n];
            c.machine = m;
            c.map = map;
            c.seed = (uint64_t)at;
            c.fresh = at % 5 == 0;
            c.nccl_sums = at % 3 == 0;
            c.max_tiles = 2;
            try_both(&c);
        }
        at -= (int64_t)list.n * list.n;
        ARRAY_FREE(&list);
    }
    ck_assert_int_gt(n_collective * suite_stride(), 20);
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
}

START_TEST(every_pair_on_a_line_of_gpus_is_the_collective_it_should_be)
{
    try_pairs("2", 2, 1, 1);
    try_pairs("4", 4, 1, 1);
    try_pairs("4", 1, 4, 1);
    try_pairs("4", 2, 2, 1);
}
END_TEST

START_TEST(pairs_on_two_axes_of_gpus_are_collectives_of_lines)
{
    try_pairs("2,2", 4, 1, 7);
    try_pairs("2,3", 6, 1, 7 * suite_stride());
    try_pairs("2,3", 1, 6, 11 * suite_stride());
    try_pairs("2,2:3,1,0,2", 2, 2, 11 * suite_stride());
}
END_TEST

/* ---- Others ---- */

/* One change on a mesh of four, with variant v of the machine; layouts on from and to. */
static change change_of(const trama_mesh *from_mesh, const char *from, const trama_mesh *to_mesh, const char *to,
                        trama_shape shape, const machine *m, const process_map *map)
{
    change c = {.from_mesh = from_mesh, .to_mesh = to_mesh, .shape = shape, .machine = m, .map = map, .max_tiles = 1};
    c.seed = 17;
    ck_assert_msg(!trama_layout_parse(from_mesh, shape.ndim, from, &c.from), "%s", trama_error());
    ck_assert_msg(!trama_layout_parse(to_mesh, shape.ndim, to, &c.to), "%s", trama_error());
    return c;
}

static int count_steps(const plan *p, step_kind kind, int form)
{
    int n = 0;
    for (int i = 0; i < p->steps.n; i++)
        n += p->steps.at[i].kind == kind && (kind != STEP_COLLECTIVE || (int)p->steps.at[i].collective.form == form);
    return n;
}

static void all_broadcast(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++) {
        ck_assert_int_eq(count_steps(plans[r], STEP_COLLECTIVE, PLAN_BROADCAST),
                         c->machine->n_places / c->machine->n_ranks);
        ck_assert_int_eq(plan_count(plans[r]).messages, 0);
    }
}

START_TEST(one_holder_in_the_group_broadcasts)
{
    trama_mesh *all = trama_mesh_create("2,2"), *one = trama_mesh_create("1:2");
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        for (int fresh = 0; fresh < 2; fresh++) {
            machine *m = simulation_machine(ranks, 4 / ranks, 1);
            machine_vary(m, 1);
            process_map *map = map_by_order(4, NULL, m);
            change masked = change_of(all, "R,R mask{0,0,0,1}", all, "R,R", TRAMA_SHAPE(5, 3), m, map);
            change alone = change_of(one, "R", all, "R,R", TRAMA_SHAPE(1001), m, map);
            masked.fresh = alone.fresh = fresh;
            masked.collectives = alone.collectives = true;
            masked.look = alone.look = all_broadcast;
            change_try(&masked, NULL);
            change_try(&alone, NULL);
            map_destroy(&map);
            machine_destroy(&m);
        }
    trama_mesh_destroy(&all);
    trama_mesh_destroy(&one);
}
END_TEST

static void none(const change *c, plan *const *plans)
{
    for (int r = 0; r < c->machine->n_ranks; r++)
        ck_assert_msg(plan_count(plans[r]).collectives == 0, "%s is a collective", change_text(c));
}

START_TEST(other_places_other_meshes_and_masks_keep_messages)
{
    trama_mesh *four = trama_mesh_create("4"), *turned = trama_mesh_create("4:3,2,1,0"),
               *two = trama_mesh_create("2:4,5"), *eight = trama_mesh_create("8");
    for (int variant = 0; variant < MACHINE_VARIANTS; variant++) {
        machine *m = machine_uniform(6, 2);
        machine_vary(m, variant);
        process_map *map = map_by_order(6, NULL, m), *crowded = map_by_order(8, NULL, m);
        change tried[] = {change_of(four, "S(0)", turned, "R", TRAMA_SHAPE(8), m, map),
                          change_of(four, "S(0)", four, "R mask{1,1,1,0}", TRAMA_SHAPE(8), m, map),
                          change_of(four, "R mask{1,0,0,1}", four, "R", TRAMA_SHAPE(8), m, map),
                          change_of(two, "R mask{0,1}", four, "R", TRAMA_SHAPE(8), m, map),
                          change_of(eight, "S(0)", eight, "R", TRAMA_SHAPE(8), m, crowded),
                          change_of(four, "S(0)", four, "R", TRAMA_SHAPE(8), m, map)};
        for (int i = 0; i < 5 + (variant != 1); i++) {
            tried[i].collectives = true;
            tried[i].look = none;
            change_try(&tried[i], NULL);
        }
        map_destroy(&map);
        map_destroy(&crowded);
        machine_destroy(&m);
    }
    trama_mesh *meshes[] = {four, turned, two, eight};
    for (int i = 0; i < 4; i++)
        trama_mesh_destroy(&meshes[i]);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        every_pair_on_a_line_of_gpus_is_the_collective_it_should_be,
        pairs_on_two_axes_of_gpus_are_collectives_of_lines,
        one_holder_in_the_group_broadcasts,
        other_places_other_meshes_and_masks_keep_messages,
    };
    return suite_run("collective", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
