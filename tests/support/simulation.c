/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on simulated ranks. */
#include "simulation.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

#include <check.h>
#include <string.h>

#include "fuse.h"
#include "layout_search.h"
#include "merge_gradients.h"
#include "partition.h"
#include "verify_calls.h"
#include "verify_plan.h"

/* One target's part of a run. */
typedef struct part {
    plan **input_plans, **plans; /* [rank] */
    memory **inputs, **memories; /* [rank] */
} part;

struct simulation {
    trama_program *program; /* own copy, with split forms; values and targets have the numbers of the test's */
    const machine *machine;
    machine seen; /* as plans take it */
    simulation_options options;
    trama_mesh *single;
    process_map *map;
    layouts l;
    trama_shape *shapes;             /* [value] */
    node_rules rules;                /* [node] of the last run */
    dense *fed;                      /* [value] */
    plan **initial_plans;            /* [rank] */
    memory **initial;                /* [rank] */
    const trama_target *accumulates; /* and what ends its cycle; NULL */
    const trama_target *applies;
    part parts[2]; /* of the last run: the target that was run, and what ends a cycle */
    traffic sent;
};

static world world_of(const simulation *s)
{
    return (world){s->program, s->machine, s->map, s->options.error};
}

static void demand(char *wrong, const char *what)
{
    if (wrong)
        ck_abort_msg("%s: %.3000s", what, wrong); /* Check takes 4 KiB */
}

static partition *begin(const simulation *s, int rank)
{
    plan_source source = {.program = s->program,
                          .l = &s->l,
                          .shapes = s->shapes,
                          .rules = s->rules.of,
                          .map = s->map,
                          .machine = &s->seen,
                          .options = s->options.plan,
                          .rank = rank};
    return partition_begin(&source);
}

machine *simulation_machine(int ranks, int places, int workers)
{
    machine *m = trama_alloc(sizeof *m);
    m->n_ranks = ranks;
    m->n_places = ranks * places;
    m->places = trama_alloc((size_t)m->n_places * sizeof *m->places);
    for (int i = 0; i < m->n_places; i++)
        m->places[i] =
            (machine_place){.rank = i / places, .workers = workers, .path = {i / places / 2, 0, 0, i / places}};
    return m;
}

void machine_vary(machine *m, int variant)
{
    for (int i = 0, first = 0; i < m->n_places; i++) {
        machine_place *p = &m->places[i];
        first = i && m->places[i - 1].rank == p->rank ? first : i;
        bool alone = first == i && (i + 1 == m->n_places || m->places[i + 1].rank != p->rank);
        const bool gpu[MACHINE_VARIANTS] = {false, true, alone ? p->rank % 2 : i > first, false,
                                            alone ? p->rank % 3 : i > first};
        p->gpu = gpu[variant];
        p->workers = p->gpu ? 1 : p->workers;
        p->kind = p->gpu + (variant == 3 ? 2 * (p->rank % 2) : variant == 4 ? 2 * (i % 2) : 0);
    }
}

/* ---- The initial plan ---- */

static bool is_source(const trama_value *v)
{
    return v->kind == VALUE_RESULT && v->node->op->n_in == 0;
}

static bool is_initial(const trama_value *v)
{
    return v->kind == VALUE_STATE || v->kind == VALUE_CONSTANT || is_source(v);
}

static plan *initial_plan(const simulation *s, int rank)
{
    const trama_program *p = s->program;
    bool *needed = trama_alloc((size_t)p->nodes.n), *kept = trama_alloc((size_t)p->values.n);
    int *leader = trama_alloc((size_t)p->nodes.n * sizeof *leader);
    partition *q = begin(s, rank);
    for (int i = 0; i < p->values.n; i++) {
        kept[i] = true;
        if (is_initial(p->values.at[i]) && !is_source(p->values.at[i]))
            partition_input(q, i);
    }
    for (int i = 0; i < p->nodes.n; i++) {
        needed[i] = p->nodes.at[i]->op->n_in == 0;
        leader[i] = i;
    }
    partition_run(q, needed, leader, kept);
    free(needed);
    free(kept);
    free(leader);
    return partition_end(&q);
}

static void spread(simulation *s, memory *const *ranks, const trama_value *v, const dense *data)
{
    world w = world_of(s);
    const trama_mesh *mesh = s->l.mesh[v->id];
    dense *terms = terms_of_value(mesh, &s->l.value[v->id], data);
    scatter(&w, ranks, v->id, terms);
    free_terms(mesh, &s->l.value[v->id], terms);
}

static void start(simulation *s)
{
    const trama_program *p = s->program;
    world w = world_of(s);
    for (int i = 0; i < p->values.n; i++)
        s->shapes[i] = p->values.at[i]->shape;
    for (int i = 0; i < p->nodes.n; i++)
        s->rules.of[i] = p->nodes.at[i]->rule;
    for (int r = 0; r < s->machine->n_ranks; r++) {
        s->initial_plans[r] = initial_plan(s, r);
        s->initial[r] = memory_new(s->initial_plans[r], NULL);
    }
    for (int i = 0; i < p->values.n; i++) {
        if (!is_initial(p->values.at[i]) || is_source(p->values.at[i]))
            continue;
        dense data = dense_initial(p->values.at[i]);
        spread(s, s->initial, p->values.at[i], &data);
        dense_free(&data);
    }
    demand(interpret(&w, s->initial, s->shapes, NULL), "initial plan");
}

static int count_processes(const simulation *s)
{
    int n = 1;
    for (int i = 0; i < s->program->values.n; i++)
        for (int k = 0; k < s->l.mesh[i]->size; k++)
            n = (int)max_i64(n, s->l.mesh[i]->ids[k] + 1);
    return n;
}

static machine see(const machine *m, bool blind)
{
    machine seen = *m;
    seen.places = trama_alloc((size_t)m->n_places * sizeof *seen.places);
    for (int i = 0; i < m->n_places; i++) {
        seen.places[i] = m->places[i];
        seen.places[i].kind = blind ? 0 : m->places[i].kind;
    }
    return seen;
}

simulation *simulation_new(const trama_program *program, const machine *m, const simulation_options *options)
{
    simulation *s = trama_alloc(sizeof *s);
    ck_assert_msg(!program->status, "%s", trama_program_error(program));
    s->program = program_copy(program);
    s->machine = m;
    if (options)
        s->options = *options;
    s->seen = see(m, s->options.blind);
    s->single = trama_mesh_create("1");
    int64_t nominal = s->options.nominal ? s->options.nominal : 64;
    ck_assert_msg(!search_complete(s->program, nominal, s->single, &s->l), "%s", trama_error());
    size_t values = (size_t)s->program->values.n, nodes = (size_t)s->program->nodes.n, ranks = (size_t)m->n_ranks;
    s->shapes = trama_alloc(values * sizeof *s->shapes);
    s->fed = trama_alloc(values * sizeof *s->fed);
    s->rules = node_rules_new((int)nodes);
    s->initial_plans = trama_alloc(ranks * sizeof *s->initial_plans);
    s->initial = trama_alloc(ranks * sizeof *s->initial);
    for (int i = 0; i < 2; i++)
        s->parts[i] = (part){.input_plans = trama_alloc(ranks * sizeof(plan *)),
                             .plans = trama_alloc(ranks * sizeof(plan *)),
                             .inputs = trama_alloc(ranks * sizeof(memory *)),
                             .memories = trama_alloc(ranks * sizeof(memory *))};
    s->map = map_by_order(count_processes(s), s->options.order, m);
    start(s);
    return s;
}

static void drop_run(simulation *s)
{
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < s->machine->n_ranks; r++) {
            memory_destroy(&s->parts[i].memories[r]);
            plan_destroy(&s->parts[i].plans[r]);
            memory_destroy(&s->parts[i].inputs[r]);
            plan_destroy(&s->parts[i].input_plans[r]);
        }
    s->sent = (traffic){0};
}

simulation *simulation_of_cycle(trama_program *program, trama_target *target, int k, const machine *m,
                                const simulation_options *options)
{
    accumulation *made = NULL;
    if (k > 1) {
        trama_gradient_merge(target, k, TRAMA_MERGE_AVG);
        made = merge_gradients(program);
        ck_assert(made && made[target->id].apply);
    }
    simulation *s = simulation_new(program, m, options);
    for (int i = 0; k > 1 && i < MERGE_SCALARS; i++) {
        dense x = dense_new(TRAMA_SCALAR);
        x.at[0] = i != MERGE_KEEP;
        simulation_feed(s, made[target->id].scalar[i], &x);
        dense_free(&x);
    }
    s->accumulates = made ? target : NULL;
    s->applies = made ? made[target->id].apply : NULL;
    free(made);
    return s;
}

void simulation_destroy(simulation **s_)
{
    simulation *s = *s_;
    drop_run(s);
    for (int r = 0; r < s->machine->n_ranks; r++) {
        memory_destroy(&s->initial[r]);
        plan_destroy(&s->initial_plans[r]);
    }
    for (int i = 0; i < s->program->values.n; i++)
        dense_free(&s->fed[i]);
    node_rules_free(&s->rules);
    void *owned[] = {s->shapes,
                     s->fed,
                     s->initial_plans,
                     s->initial,
                     s->seen.places,
                     s->parts[0].plans,
                     s->parts[0].input_plans,
                     s->parts[0].inputs,
                     s->parts[0].memories,
                     s->parts[1].plans,
                     s->parts[1].input_plans,
                     s->parts[1].inputs,
                     s->parts[1].memories};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    layouts_free(&s->l);
    map_destroy(&s->map);
    trama_mesh_destroy(&s->single);
    trama_program_destroy(&s->program);
    free(s);
    *s_ = NULL;
}

/* ---- Targets ---- */

void simulation_feed(simulation *s, const trama_value *input, const dense *data)
{
    dense_free(&s->fed[input->id]);
    s->fed[input->id] = dense_copy(data);
}

void simulation_write(simulation *s, const trama_value *state, const dense *data)
{
    spread(s, s->initial, state, data);
}

/* Inputs that the nodes or the target itself need. */
static bool *used_inputs(const trama_program *p, const trama_target *target, const bool *needed)
{
    bool *used = trama_alloc((size_t)p->values.n);
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; needed[i] && t < p->nodes.at[i]->op->n_in; t++)
            used[p->nodes.at[i]->in[t]->id] = true;
    for (int i = 0; i < target->values.n; i++)
        used[target->values.at[i]->id] = true;
    for (int i = 0; i < p->values.n; i++)
        used[i] &= p->values.at[i]->kind == VALUE_INPUT;
    return used;
}

typedef struct wish {
    bool *needed, *computed, *inputs, *kept;
    int *leader;
} wish;

static plan *input_plan(const simulation *s, int rank, const wish *h)
{
    partition *q = begin(s, rank);
    for (int i = 0; i < s->program->values.n; i++)
        if (h->inputs[i])
            partition_input(q, i);
    return partition_end(&q);
}

static plan *target_plan(const simulation *s, int rank, plan *const *input_plans, const wish *h)
{
    const trama_program *p = s->program;
    partition *q = begin(s, rank);
    for (int i = 0; i < p->values.n; i++) {
        if (is_initial(p->values.at[i]))
            partition_import(q, i, s->initial_plans[rank], i);
        if (h->inputs[i])
            partition_import(q, i, input_plans[rank], i);
    }
    partition_run(q, h->computed, h->leader, h->kept);
    return partition_end(&q);
}

static void run_plans(simulation *s, part *ran, const wish *h)
{
    traffic sent;
    const trama_program *p = s->program;
    world w = world_of(s);
    memory **from = trama_alloc((size_t)p->values.n * sizeof(memory *));
    for (int r = 0; r < s->machine->n_ranks; r++) {
        ran->input_plans[r] = input_plan(s, r, h);
        ran->inputs[r] = memory_new(ran->input_plans[r], NULL);
        for (int i = 0; i < p->values.n; i++)
            from[i] = h->inputs[i] ? ran->inputs[r] : s->initial[r];
        ran->plans[r] = target_plan(s, r, ran->input_plans, h);
        ck_assert_msg(!calls_verify(ran->plans[r], p), "%s", trama_error());
        ran->memories[r] = memory_new(ran->plans[r], from);
    }
    free(from);
    for (int i = 0; i < p->values.n; i++)
        if (h->inputs[i])
            spread(s, ran->inputs, p->values.at[i], &s->fed[i]);
    demand(interpret(&w, ran->memories, s->shapes, &sent), "target");
    s->sent.bytes += sent.bytes;
    s->sent.messages += sent.messages;
}

/* The target in the simulation's copy of the program; one that the test has made since is made there, too. */
static const trama_target *own_target(const simulation *s, const trama_target *target)
{
    while (s->program->targets.n <= target->id) {
        const trama_target *made = target->program->targets.at[s->program->targets.n];
        trama_value **values = trama_alloc((size_t)made->values.n * sizeof(trama_value *));
        for (int i = 0; i < made->values.n; i++)
            values[i] = s->program->values.at[made->values.at[i]->id];
        ck_assert(trama_target_at(made->where, s->program, made->name, made->values.n, values));
        free(values);
    }
    return s->program->targets.at[target->id];
}

/* The end of a cycle leaves out the micro-step's nodes, of which it only reads state. */
static void run_part(simulation *s, const trama_target *target, part *ran)
{
    const trama_program *p = s->program;
    const bool applies = target == s->applies;
    target = own_target(s, target);
    bool *done = trama_alloc((size_t)p->nodes.n);
    wish h = {.needed = trama_alloc((size_t)p->nodes.n), .kept = trama_alloc((size_t)p->values.n)};
    h.leader = trama_alloc((size_t)p->nodes.n * sizeof *h.leader);
    program_closure(p, target->values.n, target->values.at, h.needed);
    if (applies)
        program_closure(p, own_target(s, s->accumulates)->values.n, own_target(s, s->accumulates)->values.at, done);
    for (int i = 0; i < p->nodes.n; i++)
        h.needed[i] &= !done[i];
    h.inputs = used_inputs(p, target, h.needed);
    for (int i = 0; i < p->values.n; i++) {
        h.kept[i] = s->options.keep_all;
        if (h.inputs[i])
            s->shapes[i] = s->fed[i].shape;
    }
    for (int i = 0; i < target->values.n; i++)
        h.kept[target->values.at[i]->id] = true;
    ck_assert_msg(!program_resolve(p, h.needed, s->shapes, &s->rules), "%s", trama_error());
    h.computed = fuse_computed(p, h.needed, h.kept);
    fuse_program(p, h.computed, &s->l, s->shapes, s->rules.of, !s->options.plan.no_fusion, h.leader);
    run_plans(s, ran, &h);
    free(done);
    free(h.needed);
    free(h.computed);
    free(h.inputs);
    free(h.kept);
    free(h.leader);
}

void simulation_run(simulation *s, const trama_target *target)
{
    drop_run(s);
    run_part(s, target, &s->parts[0]);
    if (target == s->accumulates)
        run_part(s, s->applies, &s->parts[1]);
}

/* ---- Reading ---- */

/* Where a value is held: in the last run, or else in the initial plan. */
static memory *const *holder(const simulation *s, const trama_value *v)
{
    if (v->kind == VALUE_STATE)
        return s->initial;
    for (int i = 0; i < 2; i++)
        if (s->parts[i].plans[0] && plan_find(s->parts[i].plans[0], v->id))
            return s->parts[i].memories;
    return s->initial;
}

static char *gather_value(simulation *s, const trama_value *value, dense *result)
{
    world w = world_of(s);
    memory *const *ranks = holder(s, value);
    const plan_dist_value **h = trama_alloc((size_t)s->machine->n_ranks * sizeof(plan_dist_value *));
    for (int r = 0; r < s->machine->n_ranks; r++) {
        h[r] = plan_find(ranks[r]->p, value->id);
        ck_assert_msg(h[r] != NULL, "%s is not kept", value->name);
        ck_assert_msg(h[r]->mesh == s->l.mesh[value->id] && trama_layout_equal(&h[r]->layout, &s->l.value[value->id]),
                      "%s is not held in its own layout first", value->name);
    }
    char *wrong = gather(&w, ranks, h, s->shapes[value->id], result);
    free(h);
    return wrong;
}

dense simulation_value(simulation *s, const trama_value *value)
{
    dense result = {0};
    demand(gather_value(s, value, &result), value->name);
    return result;
}

char *simulation_disagreement(simulation *s, const trama_value *value)
{
    dense result = {0};
    char *wrong = gather_value(s, value, &result);
    dense_free(&result);
    return wrong;
}

traffic simulation_read(simulation *s, const trama_value *value, const trama_mesh *mesh, const trama_layout *layout,
                        bool fresh, dense *result)
{
    world w = world_of(s);
    memory *const *ranks = holder(s, value);
    size_t n = (size_t)s->machine->n_ranks;
    plan **plans = trama_alloc(n * sizeof(plan *));
    memory **memories = trama_alloc(n * sizeof(memory *)),
           **from = trama_alloc((size_t)s->program->values.n * sizeof(memory *));
    const plan_dist_value **h = trama_alloc(n * sizeof(plan_dist_value *));
    traffic sent;
    for (int r = 0; r < s->machine->n_ranks; r++) {
        partition *q = begin(s, r);
        partition_import(q, value->id, ranks[r]->p, value->id);
        h[r] = partition_reshard(q, value->id, mesh, layout, -1, fresh);
        plans[r] = partition_end_with(&q, &h[r]);
        from[value->id] = ranks[r];
        memories[r] = memory_new(plans[r], from);
    }
    demand(interpret(&w, memories, s->shapes, &sent), "read");
    demand(gather(&w, memories, h, s->shapes[value->id], result), "read");
    for (int r = 0; r < s->machine->n_ranks; r++) {
        memory_destroy(&memories[r]);
        plan_destroy(&plans[r]);
    }
    free(plans);
    free(memories);
    free(from);
    free(h);
    return sent;
}

traffic simulation_traffic(const simulation *s)
{
    return s->sent;
}

const plan *simulation_plan(const simulation *s, int rank)
{
    return s->parts[0].plans[rank];
}

trama_status simulation_verify(const simulation *s)
{
    return plan_verify((const plan *const *)s->parts[0].plans, s->machine->n_ranks, s->program);
}

const plan *simulation_apply_plan(const simulation *s, int rank)
{
    return s->parts[1].plans[rank];
}

const layouts *simulation_layouts(const simulation *s)
{
    return &s->l;
}
