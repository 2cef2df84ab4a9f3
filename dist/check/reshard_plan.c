/* SPDX-License-Identifier: Apache-2.0 */
/* One change of layout, planned for all processes at once, for people and tools. Ranks plan only their own part. */
#include "trama_reshard_plan.h"

#include <string.h>

#include "layout_walk.h"
#include "partition.h"
#include "verify_plan.h"

static const int64_t MOST_PLANNED = INT64_C(1) << 46;

struct trama_reshard_plan {
    ARRAY(trama_move) moves;
    trama_reshard_cost cost;
};

/* A machine on which every process of the two meshes has a place and a rank of its own. */
typedef struct setting {
    trama_program *program;
    const trama_mesh *from_mesh, *to_mesh;
    trama_layout from, to;
    int n, *ids; /* [n] in ascending order */
    machine *machine;
    process_map map;
    plan **plans; /* [n] */
    trama_reshard_tell tell;
    void *closure; /* for tell */
} setting;

static int compare_ids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void number_processes(setting *s)
{
    int most = s->from_mesh->size + s->to_mesh->size, n = 0;
    s->ids = trama_alloc((size_t)most * sizeof *s->ids);
    memcpy(s->ids, s->from_mesh->ids, (size_t)s->from_mesh->size * sizeof *s->ids);
    memcpy(s->ids + s->from_mesh->size, s->to_mesh->ids, (size_t)s->to_mesh->size * sizeof *s->ids);
    qsort(s->ids, (size_t)most, sizeof *s->ids, compare_ids);
    for (int i = 0; i < most; i++)
        if (!n || s->ids[n - 1] != s->ids[i])
            s->ids[n++] = s->ids[i];
    s->n = n;
    s->machine = machine_uniform(n, 1);
    s->map = (process_map){.n = s->ids[n - 1] + 1, .distinct = true, .n_ranks = n};
    s->map.place = trama_alloc((size_t)s->map.n * sizeof *s->map.place);
    s->map.of_rank = trama_alloc((size_t)n * sizeof *s->map.of_rank);
    for (int i = 0; i < n; i++)
        s->map.place[s->ids[i]] = s->map.of_rank[i] = i;
}

static void plan_all(setting *s, trama_shape shape)
{
    layouts l = {.n_values = 1, .mesh = &s->from_mesh, .value = &s->from};
    s->plans = trama_alloc((size_t)s->n * sizeof(plan *));
    for (int r = 0; r < s->n && !memory_is_short(); r++) {
        plan_source source = {.program = s->program,
                              .l = &l,
                              .shapes = &shape,
                              .map = &s->map,
                              .machine = s->machine,
                              .options = {.max_tiles = 1, .grain_flops = 1, .grain_bytes = 1},
                              .rank = r};
        partition *q = partition_begin(&source);
        partition_input(q, 0);
        partition_reshard(q, 0, s->to_mesh, &s->to, -1, false);
        s->plans[r] = partition_end(&q);
        if (s->tell)
            s->tell(s->closure, r + 1, s->n);
    }
}

static void free_setting(setting *s)
{
    for (int r = 0; r < s->n && s->plans; r++)
        plan_destroy(&s->plans[r]);
    free(s->plans);
    free(s->map.place);
    free(s->map.of_rank);
    free(s->ids);
    machine_destroy(&s->machine);
    trama_program_destroy(&s->program);
}

/* ---- Moves and cost ---- */

static void add_move(trama_reshard_plan *made, const setting *s, const plan *p, const plan_step *step)
{
    const box *b = &p->operands.at[step->operand].region.box;
    const plan_exchange *e = &p->exchanges.at[step->exchange];
    trama_move *m = ARRAY_PUSH(&made->moves);
    *m = (trama_move){
        .source = s->ids[p->rank], .target = s->ids[step->peer], .round = 2 * step->exchange + step->key.level};
    m->sums = e->bound < 0 && step->key.level == 0;
    memcpy(m->offset, b->lo, sizeof m->offset);
    memcpy(m->extent, b->n, sizeof m->extent);
    m->bytes = plan_message_bytes(p, step);
}

static int compare_moves(const void *a, const void *b)
{
    const trama_move *m = a, *n = b;
    const int keys[][2] = {{m->round, n->round}, {m->source, n->source}, {m->target, n->target}};
    int order = COMPARE_KEYS(keys);
    for (int d = 0; d < TRAMA_MAX_NDIM && !order; d++)
        order = (m->offset[d] > n->offset[d]) - (m->offset[d] < n->offset[d]);
    return order;
}

static void add_plan(trama_reshard_plan *made, const setting *s, const plan *p)
{
    trama_reshard_cost *c = &made->cost;
    plan_totals t = plan_count(p);
    int64_t bound = 0, buffers = 0;
    for (int i = 0; i < p->steps.n; i++)
        if (p->steps.at[i].kind == STEP_SEND)
            add_move(made, s, p, &p->steps.at[i]);
    for (int e = 0; e < p->exchanges.n; e++) {
        buffers += p->exchanges.at[e].buffers;
        bound = bound < 0 || p->exchanges.at[e].bound < 0 ? -1 : bound + p->exchanges.at[e].bound;
    }
    c->buffers = max_i64(c->buffers, buffers);
    c->received = max_i64(c->received, t.received);
    c->sent = max_i64(c->sent, t.sent);
    c->total += t.sent;
    c->messages = (int)max_i64(c->messages, t.messages);
    c->memory = max_i64(c->memory, plan_memory(p, p->rank));
    c->bound = bound < 0 || c->bound < 0 ? -1 : max_i64(c->bound, bound);
}

static trama_status check(const char *which, const trama_mesh *mesh, const trama_layout *layout, int ndim)
{
    if (!mesh || !layout)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "reshard: the %s %s is NULL%s", which, mesh ? "layout" : "mesh",
                          mesh ? "" : mesh_reason());
    if (!layout_check(mesh, ndim, layout, false))
        return TRAMA_OK;
    char *why = trama_text_copy(trama_error());
    trama_fail(NOWHERE, TRAMA_E_LAYOUT, "reshard: the %s layout: %s", which, why);
    free(why);
    return TRAMA_E_LAYOUT;
}

static trama_status check_shape(trama_dtype dtype, trama_shape shape)
{
    text why = {0};
    if ((unsigned)dtype >= TRAMA_N_DTYPES)
        return trama_fail(NOWHERE, TRAMA_E_DTYPE, "reshard: %d is no element type", (int)dtype);
    if (!shape_check(shape, dtype, false, &why))
        trama_fail(NOWHERE, TRAMA_E_SHAPE, "reshard: %s", why.at);
    free(why.at);
    return why.n ? TRAMA_E_SHAPE : TRAMA_OK;
}

static trama_status check_both(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                               const trama_layout *to, trama_dtype dtype, trama_shape shape)
{
    trama_status status = check("source", from_mesh, from, shape.ndim);
    if (!status)
        status = check("target", to_mesh, to, shape.ndim);
    return status ? status : check_shape(dtype, shape);
}

/* A plan lists each message, and a large box is cut into messages of about 2^24 bytes. */
static trama_status check_messages(trama_dtype dtype, trama_shape shape)
{
    text t = {0};
    if (trama_shape_count(shape) <= MOST_PLANNED / (int64_t)trama_dtype_size(dtype))
        return TRAMA_OK;
    shape_text(&t, shape);
    trama_fail(NOWHERE, TRAMA_E_MEMORY,
               "reshard: %s of %s has more than the 2^46 bytes whose messages can be listed; trama_reshard_lacking "
               "counts them",
               t.at, trama_dtype_name(dtype));
    free(t.at);
    return TRAMA_E_MEMORY;
}

trama_status trama_reshard_plan_create(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                       const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                       trama_reshard_plan **made)
{
    return trama_reshard_plan_told(from_mesh, from, to_mesh, to, dtype, shape, NULL, NULL, made);
}

trama_status trama_reshard_plan_told(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                     const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                     trama_reshard_tell tell, void *closure, trama_reshard_plan **made)
{
    if (!made)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "reshard: the plan's address is NULL");
    trama_status status = check_both(from_mesh, from, to_mesh, to, dtype, shape);
    if (!status)
        status = check_messages(dtype, shape);
    if (status)
        return status;
    setting s = {.program = program_new(),
                 .from_mesh = from_mesh,
                 .to_mesh = to_mesh,
                 .from = *from,
                 .to = *to,
                 .tell = tell,
                 .closure = closure};
    if (!trama_input(s.program, "tensor", dtype, shape)) {
        status = trama_program_status(s.program);
        trama_program_destroy(&s.program);
        return status;
    }
    number_processes(&s);
    plan_all(&s, shape);
    status = memory_status(NOWHERE, "trama_reshard_plan_create");
    if (!status)
        status = plan_verify((const plan *const *)s.plans, s.n, s.program);
    if (!status) {
        trama_reshard_plan *p = trama_alloc(sizeof *p);
        p->cost.processes = s.n;
        for (int r = 0; r < s.n; r++)
            add_plan(p, &s, s.plans[r]);
        if (p->moves.n)
            qsort(p->moves.at, (size_t)p->moves.n, sizeof *p->moves.at, compare_moves);
        status = memory_status(NOWHERE, "trama_reshard_plan_create");
        if (status)
            trama_reshard_plan_destroy(&p);
        else
            *made = p;
    }
    free_setting(&s);
    return status;
}

/* ---- Without a plan ---- */

/* The position of each process in the source mesh, by id. */
typedef struct places {
    const trama_mesh *mesh;
    int n, *position; /* [n] by id: 1 + the position, 0: not in the mesh; NULL: positions are the ids */
} places;

static places find_places(const trama_mesh *mesh)
{
    places p = {.mesh = mesh, .n = mesh_processes(mesh)};
    bool plain = true;
    for (int i = 0; i < mesh->size; i++)
        plain &= mesh->ids[i] == i;
    p.position = plain ? NULL : trama_alloc((size_t)p.n * sizeof *p.position);
    for (int i = 0; i < mesh->size && !plain; i++)
        p.position[mesh->ids[i]] = i + 1;
    return p;
}

static int place_of(const places *p, int id)
{
    return id >= p->n ? -1 : p->position ? p->position[id] - 1 : id;
}

static bool has_terms(const trama_mesh *mesh, const trama_layout *layout)
{
    return axes_size(mesh, layout_axes(layout, TRAMA_PARTIAL)) > 1;
}

static int64_t lacking_elements(layout_walk *from, const trama_layout *layout, int there, const box *wanted)
{
    int64_t count = box_count(wanted), common = 1;
    if (count == 0 || there < 0 || !layout_present(layout, there))
        return count;
    layout_walk_to(from, there);
    const box *held = &from->box;
    for (int d = 0; d < wanted->ndim && common; d++) {
        int64_t lo = max_i64(wanted->lo[d], held->lo[d]);
        int64_t hi = min_i64(wanted->lo[d] + wanted->n[d], held->lo[d] + held->n[d]);
        common *= max_i64(0, hi - lo);
    }
    return count - common;
}

static void count_lack(trama_reshard_lack *lack, int id, int64_t elements, int64_t element)
{
    int64_t bytes = elements > INT64_MAX / element ? INT64_MAX : elements * element;
    lack->lacking += bytes > 0;
    lack->total = bytes > INT64_MAX - lack->total ? INT64_MAX : lack->total + bytes;
    if (bytes > lack->most) {
        lack->most = bytes;
        lack->most_process = id;
    }
}

static void count_lacks(const setting *s, const box *whole, int64_t element, trama_reshard_lack *lack)
{
    places p = find_places(s->from_mesh);
    layout_walk from, to;
    layout_walk_begin(&from, s->from_mesh, &s->from, whole);
    layout_walk_begin(&to, s->to_mesh, &s->to, whole);
    for (int i = 0; i < s->to_mesh->size; i++) {
        int id = s->to_mesh->ids[i], there = place_of(&p, id);
        lack->processes += there < 0;
        if (!layout_present(&s->to, i))
            continue;
        layout_walk_to(&to, i);
        count_lack(lack, id, lacking_elements(&from, &s->from, there, &to.box), element);
    }
    layout_walk_end(&from);
    layout_walk_end(&to);
    free(p.position);
}

trama_status trama_reshard_lacking(const trama_mesh *from_mesh, const trama_layout *from, const trama_mesh *to_mesh,
                                   const trama_layout *to, trama_dtype dtype, trama_shape shape,
                                   trama_reshard_lack *lack)
{
    trama_status status = check_both(from_mesh, from, to_mesh, to, dtype, shape);
    if (!status && !lack)
        status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "reshard: the address of the counts is NULL");
    if (status)
        return status;
    setting s = {.from_mesh = from_mesh, .to_mesh = to_mesh, .from = *from, .to = *to};
    box whole = box_whole(shape);
    trama_reshard_lack counted = {.processes = from_mesh->size, .most_process = -1};
    count_lacks(&s, &whole, (int64_t)trama_dtype_size(dtype), &counted);
    if (has_terms(from_mesh, from) || has_terms(to_mesh, to))
        counted = (trama_reshard_lack){counted.processes, -1, -1, -1, -1};
    *lack = counted;
    return TRAMA_OK;
}

void trama_reshard_plan_destroy(trama_reshard_plan **p)
{
    if (!p || !*p)
        return;
    ARRAY_FREE(&(*p)->moves);
    free(*p);
    *p = NULL;
}

int64_t trama_reshard_plan_moves(const trama_reshard_plan *p, const trama_move **moves)
{
    if (!p)
        return 0;
    if (moves)
        *moves = p->moves.at;
    return p->moves.n;
}

trama_reshard_cost trama_reshard_plan_cost(const trama_reshard_plan *p)
{
    return p ? p->cost : (trama_reshard_cost){0};
}
