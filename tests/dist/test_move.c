/* SPDX-License-Identifier: Apache-2.0 */
/* Moves between boxes that hosts state and layouts: random cuts of a tensor, dealt out to ranks, some boxes on several
 * of them. Values element by element; bytes against what each rank lacks, counted element by element. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "change.h"
#include "partition.h"
#include "stating.h"
#include "suite.h"
#include "verify_plan.h"

/* ---- Distributions ---- */

/* One side of a move: user boxes, or a layout. */
typedef struct side {
    box_index stated;
    const trama_mesh *mesh; /* NULL: stated */
    trama_layout layout;
} side;

/* Cuts a box at random places until it is to be left; then it goes to a rank, and sometimes to another one as well. */
static void deal(box_index *s, const machine *m, box b, int depth, uint64_t *seed)
{
    int dim = b.ndim ? random_below(seed, b.ndim) : 0;
    if (depth == 0 || b.ndim == 0 || b.n[dim] < 2) {
        int rank = random_below(seed, m->n_ranks), other = random_below(seed, m->n_ranks);
        state_box(s, m, rank, &b);
        if (other != rank && random_below(seed, 4) == 0)
            state_box(s, m, other, &b);
        return;
    }
    box low = b, high = b;
    low.n[dim] = 1 + random_below(seed, (int)b.n[dim] - 1);
    high.lo[dim] += low.n[dim];
    high.n[dim] -= low.n[dim];
    deal(s, m, low, depth - 1, seed);
    deal(s, m, high, depth - 1, seed);
}

static side dealt(const machine *m, trama_shape shape, uint64_t *seed)
{
    side s = {.stated.strided = random_below(seed, 2)};
    if (trama_shape_count(shape))
        deal(&s.stated, m, box_whole(shape), 1 + random_below(seed, 5), seed);
    box_index_sort(&s.stated);
    return s;
}

/* Whether a rank holds an element, whatever process or box. */
static bool holds(const side *s, const process_map *map, const machine *m, trama_shape shape, int rank,
                  const int64_t *at)
{
    box point = {.ndim = shape.ndim};
    for (int d = 0; d < shape.ndim; d++) {
        point.lo[d] = at[d];
        point.n[d] = 1;
    }
    for (int i = 0; !s->mesh && i < s->stated.at.n; i++)
        if (s->stated.at.at[i].rank == rank && box_contains(&s->stated.at.at[i].b, &point))
            return true;
    for (int i = 0; s->mesh && i < s->mesh->size; i++) {
        box b = naive_box(s->mesh, &s->layout, shape, i);
        bool present = !s->layout.mask || s->layout.mask[i];
        if (present && m->places[map_place(map, s->mesh->ids[i])].rank == rank && box_contains(&b, &point))
            return true;
    }
    return false;
}

/* ---- One move ---- */

typedef struct trial {
    trama_program *program;
    trama_shape shape, shapes[2];
    const machine *m;
    const process_map *map;
    const trama_mesh *meshes[2];
    trama_layout values[2];
    layouts l;
    plan_options options;
} trial;

enum { FROM, TO };

static partition *begin(const trial *t, int rank)
{
    plan_source source = {.program = t->program,
                          .l = &t->l,
                          .shapes = t->shapes,
                          .map = t->map,
                          .machine = t->m,
                          .options = t->options,
                          .rank = rank};
    return partition_begin(&source);
}

static plan *home_of(const trial *t, const side *s, int value, int rank)
{
    partition *q = begin(t, rank);
    if (s->mesh)
        partition_input(q, value);
    else
        partition_user_boxes(q, value, &s->stated);
    return partition_end(&q);
}

/* The number of an element, in row-major order, is its value. */
static void write_numbers(const memory *mem, const plan_dist_value *h, trama_shape shape)
{
    box whole = box_whole(shape);
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_region *r = &h->pieces.at[i].region;
        for (int64_t k = 0; k < box_count(&r->box); k++) {
            int64_t in = box_place(&mem->outer[r->shard], &r->box, k);
            mem->data[r->shard][in] = (double)box_place(&whole, &r->box, k);
            mem->known[r->shard][in] = 1;
        }
    }
}

static void check_numbers(const memory *mem, const plan_dist_value *h, trama_shape shape)
{
    box whole = box_whole(shape);
    for (int i = 0; i < h->pieces.n; i++) {
        const plan_region *r = &h->pieces.at[i].region;
        ck_assert(memory_is_known(mem, r));
        for (int64_t k = 0; k < box_count(&r->box); k++)
            ck_assert_double_eq(mem->data[r->shard][box_place(&mem->outer[r->shard], &r->box, k)],
                                (double)box_place(&whole, &r->box, k));
    }
}

static int64_t lacking(const trial *t, const side *from, const side *to, int rank)
{
    int64_t n = 0;
    for (int64_t i = 0; i < trama_shape_count(t->shape); i++) {
        int64_t at[TRAMA_MAX_NDIM], rest = i;
        for (int d = t->shape.ndim - 1; d >= 0; rest /= t->shape.dim[d--])
            at[d] = rest % t->shape.dim[d];
        n += holds(to, t->map, t->m, t->shape, rank, at) && !holds(from, t->map, t->m, t->shape, rank, at);
    }
    return n;
}

/* exact: each element that a rank lacks comes once, so no target box of a rank overlaps another one. */
static void try_move(const trial *t, const side *from, const side *to, bool exact)
{
    size_t n = (size_t)t->m->n_ranks;
    plan **homes[2], **plans = trama_alloc(n * sizeof(plan *));
    memory **home[2], **ranks = trama_alloc(n * sizeof(memory *));
    const side *sides[] = {from, to};
    char *why;
    for (int k = FROM; k <= TO; k++) {
        homes[k] = trama_alloc(n * sizeof(plan *));
        home[k] = trama_alloc(n * sizeof(memory *));
        for (size_t r = 0; r < n; r++) {
            homes[k][r] = home_of(t, sides[k], k, (int)r);
            home[k][r] = memory_new(homes[k][r], NULL);
        }
    }
    for (size_t r = 0; r < n; r++) {
        partition *q = begin(t, (int)r);
        partition_import(q, FROM, homes[FROM][r], FROM);
        partition_import(q, TO, homes[TO][r], TO);
        partition_move(q, FROM, TO);
        plans[r] = partition_end(&q);
        ranks[r] = memory_new(plans[r], (memory *const[]){home[FROM][r], home[TO][r]});
        write_numbers(home[FROM][r], plan_find(homes[FROM][r], FROM), t->shape);
    }
    ck_assert_msg(!plan_verify((const plan *const *)plans, (int)n, t->program), "%s", trama_error());
    world w = {t->program, t->m, t->map, 0};
    why = interpret(&w, ranks, t->shapes, NULL);
    ck_assert_msg(!why, "%s", why);
    for (size_t r = 0; r < n; r++) {
        check_numbers(home[TO][r], plan_find(homes[TO][r], TO), t->shape);
        int64_t received = plan_count(plans[r]).received / 8, lacks = lacking(t, from, to, (int)r);
        ck_assert_msg(exact ? received == lacks : received >= lacks, "rank %zu lacks %lld elements and gets %lld", r,
                      (long long)lacks, (long long)received);
        ck_assert(!exact || plans[r]->exchanges.at[0].bound / 8 == received);
    }
    for (size_t r = 0; r < n; r++) {
        memory_destroy(&ranks[r]);
        plan_destroy(&plans[r]);
        for (int k = FROM; k <= TO; k++) {
            memory_destroy(&home[k][r]);
            plan_destroy(&homes[k][r]);
        }
    }
    for (int k = FROM; k <= TO; k++) {
        free(homes[k]);
        free(home[k]);
    }
    free(plans);
    free(ranks);
}

static trial trial_new(trama_shape shape, const machine *m, const process_map *map, int64_t window)
{
    trial t = {.program = trama_program_create(), .shape = shape, .shapes = {shape, shape}, .m = m, .map = map};
    trama_input(t.program, "from", TRAMA_F64, shape);
    trama_input(t.program, "to", TRAMA_F64, shape);
    t.options = (plan_options){.max_tiles = 3, .grain_flops = 1, .grain_bytes = 1, .staging_bytes = window};
    return t;
}

static void try_sides(trial *t, const side *from, const side *to, bool exact)
{
    t->l = (layouts){.n_values = 2, .mesh = t->meshes, .value = t->values};
    t->meshes[FROM] = from->mesh;
    t->meshes[TO] = to->mesh;
    t->values[FROM] = from->layout;
    t->values[TO] = to->layout;
    try_move(t, from, to, exact);
}

static const char *const shape_texts[] = {"7", "5,4", "13,9", "3,4,5", "0,4", "1", "2,1,9", ""};

static trama_shape random_shape(uint64_t *seed)
{
    const char *extents = shape_texts[random_below(seed, (int)(sizeof shape_texts / sizeof *shape_texts))];
    trama_shape shape = TRAMA_SCALAR;
    for (; *extents; extents += strcspn(extents, ",") + (extents[strcspn(extents, ",")] == ','))
        shape.dim[shape.ndim++] = atoi(extents);
    return shape;
}

START_TEST(stated_boxes_to_stated_boxes)
{
    uint64_t seed = 7;
    for (int i = 0; i < 300; i++) {
        machine *m = simulation_machine(1 + random_below(&seed, 5), 1 + i % 2, 2);
        machine_vary(m, i % MACHINE_VARIANTS);
        process_map *map = map_by_order(m->n_ranks, NULL, m);
        trama_shape shape = random_shape(&seed);
        trial t = trial_new(shape, m, map, change_window(shape, i));
        side from = dealt(m, shape, &seed), to = dealt(m, shape, &seed);
        try_sides(&t, &from, &to, true);
        box_index_free(&from.stated);
        box_index_free(&to.stated);
        trama_program_destroy(&t.program);
        map_destroy(&map);
        machine_destroy(&m);
    }
}
END_TEST

static void with_layouts(const char *mesh_text, int ranks, int places, int variant, bool back)
{
    uint64_t seed = 11;
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    machine *m = simulation_machine(ranks, places, 2);
    machine_vary(m, variant);
    process_map *map = map_by_order(mesh->size, NULL, m);
    for (int i = 0; i < 120; i++) {
        trama_shape shape = random_shape(&seed);
        layout_list list = {0};
        every_layout(mesh, shape.ndim, false, &list);
        trial t = trial_new(shape, m, map, change_window(shape, i));
        side boxes = dealt(m, shape, &seed), laid = {.mesh = mesh, .layout = list.at[random_below(&seed, list.n)]};
        try_sides(&t, back ? &laid : &boxes, back ? &boxes : &laid, ranks == mesh->size && places == 1);
        box_index_free(&boxes.stated);
        trama_program_destroy(&t.program);
        ARRAY_FREE(&list);
    }
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
}

START_TEST(stated_boxes_to_layouts)
{
    for (int v = 0; v < MACHINE_VARIANTS; v++) {
        with_layouts("2", 2, 1, v, false);
        with_layouts("2,2", 4, 1, v, false);
        with_layouts("3,2", 2, 1, v, false);
        with_layouts("3,2", 2, 3, v, false);
        with_layouts("2,2", 1, 1, v, false);
        with_layouts("2,2", 1, 4, v, false);
    }
}
END_TEST

START_TEST(layouts_to_stated_boxes)
{
    for (int v = 0; v < MACHINE_VARIANTS; v++) {
        with_layouts("3", 3, 1, v, true);
        with_layouts("2,2", 4, 1, v, true);
        with_layouts("2,3", 2, 1, v, true);
        with_layouts("2,3", 2, 2, v, true);
        with_layouts("2,2", 1, 3, v, true);
    }
}
END_TEST

/* Terms are summed on the way. */
START_TEST(partial_values_arrive_whole)
{
    uint64_t seed = 3;
    trama_mesh *mesh = trama_mesh_create("2,2");
    machine *m = machine_uniform(4, 1);
    process_map *map = map_by_order(4, NULL, m);
    trial t = trial_new(TRAMA_SHAPE(5, 7), m, map, 0);
    side from = {.mesh = mesh}, to = dealt(m, t.shape, &seed);
    ck_assert(!trama_layout_parse(mesh, 2, "P(max),S(0)", &from.layout));
    try_sides(&t, &from, &to, false);
    box_index_free(&to.stated);
    trama_program_destroy(&t.program);
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
}
END_TEST

/* ---- Without a copy ---- */

static bool lies_inside(const char *layout, const box *boxes, bool strided, int variant, bool *inside)
{
    trama_mesh *mesh = trama_mesh_create("2");
    machine *m = machine_uniform(2, 1);
    machine_vary(m, variant);
    process_map *map = map_by_order(2, NULL, m);
    trial t = trial_new(TRAMA_SHAPE(6, 4), m, map, 0);
    box_index s = {.strided = strided};
    state_box(&s, m, 0, &boxes[0]);
    state_box(&s, m, 1, &boxes[1]);
    box_index_sort(&s);
    t.meshes[TO] = mesh;
    ck_assert(!trama_layout_parse(mesh, 2, layout, &t.values[TO]));
    t.l = (layouts){.n_values = 2, .mesh = t.meshes, .value = t.values};
    bool lies = false;
    for (int r = 0; r < 2; r++) {
        partition *q = begin(&t, r);
        partition_user_boxes(q, FROM, &s);
        lies = partition_inside(q, FROM, TO, mesh, &t.values[TO]);
        plan *p = partition_end(&q);
        const plan_dist_value *h = plan_find(p, TO);
        ck_assert_int_eq(h != NULL, lies);
        ck_assert_int_eq(p->steps.n, 0);
        for (int i = 0; h && i < h->pieces.n; i++) {
            box b = naive_box(mesh, &t.values[TO], t.shape, r);
            ck_assert(box_equal(&h->pieces.at[i].region.box, &b));
            ck_assert(box_contains(&p->shards.at[h->pieces.at[i].region.shard].box, &b));
        }
        *inside = h && h->inside;
        plan_destroy(&p);
    }
    box_index_free(&s);
    trama_program_destroy(&t.program);
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
    return lies;
}

START_TEST(what_lies_as_a_layout_says_is_not_copied)
{
    box halves[] = {{2, {0, 0}, {3, 4}}, {2, {3, 0}, {3, 4}}}, uneven[] = {{2, {0, 0}, {4, 4}}, {2, {4, 0}, {2, 4}}};
    box both[] = {{2, {0, 0}, {6, 4}}, {2, {0, 0}, {6, 4}}};
    bool inside = false;
    ck_assert(lies_inside("S(0)", halves, false, 0, &inside) && !inside);
    ck_assert(lies_inside("S(0)", halves, true, 0, &inside) && inside);
    ck_assert(!lies_inside("S(0)", uneven, false, 0, &inside));
    ck_assert(!lies_inside("S(1)", halves, false, 0, &inside));
    ck_assert(!lies_inside("R", halves, false, 0, &inside));
    ck_assert(!lies_inside("P(sum)", both, false, 0, &inside));
    ck_assert(lies_inside("R", both, false, 0, &inside) && !inside);
    ck_assert(lies_inside("S(1)", both, false, 0, &inside) && inside);
    for (int v = 1; v < MACHINE_VARIANTS; v++) /* but on a GPU */
        ck_assert_int_eq(lies_inside("S(0)", halves, false, v, &inside), v == 3);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        stated_boxes_to_stated_boxes,
        stated_boxes_to_layouts,
        layouts_to_stated_boxes,
        partial_values_arrive_whole,
        what_lies_as_a_layout_says_is_not_copied,
    };
    return suite_run("move", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
