/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a target: its nodes and leaves, completion, the map, fusion, one rank after the other. */
#include "target_plans.h"

#include "fuse.h"
#include "layout_search.h"
#include "map_traffic.h"

enum { GRAIN_FLOPS = 2000000, GRAIN_BYTES = 65536 }; /* trama_config's defaults */

/* Nodes, leaves and results of the target, as tasks/compile/target.c finds them. */
static void find_needs(target_plans *p)
{
    const trama_program *program = p->program;
    const trama_target *target = p->target;
    program_closure(program, target->values.n, target->values.at, p->needed);
    for (int i = 0; i < target->values.n; i++) {
        const trama_value *v = target->values.at[i];
        p->kept[v->id] = v->kind != VALUE_EFFECT;
        p->leaf[v->id] |= value_is_leaf(v);
    }
    for (int i = 0; i < program->nodes.n; i++) {
        const trama_node *node = program->nodes.at[i];
        for (int k = 0; p->needed[i] && k < node->op->n_in; k++)
            p->leaf[node->in[k]->id] |= value_is_leaf(node->in[k]);
        p->needed[i] &= node->op->n_in > 0;
    }
}

static void feed(target_plans *p, int64_t any)
{
    for (int i = 0; i < p->program->values.n; i++) {
        p->shapes[i] = p->program->values.at[i]->shape;
        for (int d = 0; d < p->shapes[i].ndim && p->leaf[i]; d++)
            if (p->shapes[i].dim[d] == TRAMA_ANY)
                p->shapes[i].dim[d] = any;
    }
}

int target_plans_processes(const trama_program *program)
{
    int n = program->order.n > 1 ? program->order.n : 1;
    for (int i = 0; i < program->meshes.n; i++)
        n = (int)max_i64(n, mesh_processes(program->meshes.at[i]));
    return n;
}

target_plans target_plans_new(const trama_program *program, const trama_target *target, machine *m, int64_t any)
{
    size_t nodes = (size_t)program->nodes.n, values = (size_t)program->values.n;
    target_plans p = {.program = program,
                      .target = target,
                      .options = {.grain_flops = GRAIN_FLOPS, .grain_bytes = GRAIN_BYTES},
                      .nominal = TARGET_PLANS_NOMINAL,
                      .machine = m,
                      .single = trama_mesh_create("1")};
    p.map = map_by_order(target_plans_processes(program), program->order.n ? program->order.place : NULL, m);
    p.needed = trama_alloc(nodes);
    p.kept = trama_alloc(values);
    p.leaf = trama_alloc(values);
    p.leader = trama_alloc(nodes * sizeof *p.leader);
    p.shapes = trama_alloc(values * sizeof *p.shapes);
    p.rules = node_rules_new(program->nodes.n);
    find_needs(&p);
    feed(&p, any);
    return p;
}

void target_plans_free(target_plans *p)
{
    void *owned[] = {p->needed, p->computed, p->kept, p->leaf, p->leader, p->shapes};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    node_rules_free(&p->rules);
    layouts_free(&p->l);
    map_destroy(&p->map);
    machine_destroy(&p->machine);
    trama_mesh_destroy(&p->single);
}

trama_status target_plans_complete(target_plans *p)
{
    layouts_free(&p->l);
    p->l = (layouts){0};
    trama_status status = complete_program(p->program, p->nominal, p->single, &p->l);
    return status ? status : search_if_asked(p->program, p->nominal, &p->l);
}

void target_plans_map(target_plans *p)
{
    if (p->program->order.n || program_is_weighted(p->program) || machine_is_flat(p->machine))
        return; /* with equal distances no other map is cheaper */
    process_traffic *t = traffic_of_program(p->program, &p->l, p->nominal, p->map->n, NULL);
    process_map *map = map_by_traffic(t, p->map->n, p->machine);
    traffic_destroy(&t);
    map_destroy(&p->map);
    p->map = map;
}

trama_status target_plans_prepare(target_plans *p)
{
    trama_status status = program_resolve(p->program, p->needed, p->shapes, &p->rules);
    if (status)
        return status;
    free(p->computed);
    p->computed = fuse_computed(p->program, p->needed, p->kept);
    fuse_program(p->program, p->computed, &p->l, p->shapes, p->rules.of, true, p->leader);
    return status;
}

static partition *begin(const target_plans *p, int rank)
{
    plan_source source = {.program = p->program,
                          .l = &p->l,
                          .shapes = p->shapes,
                          .rules = p->rules.of,
                          .map = p->map,
                          .machine = p->machine,
                          .options = p->options,
                          .rank = rank};
    return partition_begin(&source);
}

plan *target_plans_leaves(const target_plans *p, int rank)
{
    partition *q = begin(p, rank);
    for (int i = 0; i < p->program->values.n; i++)
        if (p->leaf[i])
            partition_input(q, i);
    return partition_end(&q);
}

plan *target_plans_plan(const target_plans *p, int rank, const plan *leaves)
{
    partition *q = begin(p, rank);
    for (int i = 0; i < p->program->values.n; i++)
        if (p->leaf[i])
            partition_import(q, i, leaves, i);
    partition_run(q, p->computed, p->leader, p->kept);
    return partition_end(&q);
}
