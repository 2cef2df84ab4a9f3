/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a target, without a context. */
#include "target_plans.h"

#include "bench.h"
#include "fuse.h"

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

target_plans target_plans_new(const trama_program *program, const trama_target *target, int processes, int64_t any)
{
    size_t nodes = (size_t)program->nodes.n, values = (size_t)program->values.n;
    target_plans p = {.program = program,
                      .target = target,
                      .options = {.grain_flops = GRAIN_FLOPS, .grain_bytes = GRAIN_BYTES},
                      .machine = machine_uniform(processes, 1),
                      .single = trama_mesh_create("1")};
    p.map = map_by_order(processes, NULL, p.machine);
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
    void *owned[] = {p->needed, p->kept, p->leaf, p->leader, p->shapes};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    node_rules_free(&p->rules);
    layouts_free(&p->l);
    map_destroy(&p->map);
    machine_destroy(&p->machine);
    trama_mesh_destroy(&p->single);
}

void target_plans_complete(target_plans *p)
{
    layouts_free(&p->l);
    p->l = (layouts){0};
    bench_try(complete_program(p->program, TARGET_PLANS_NOMINAL, p->single, &p->l), "completion");
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

plan *target_plans_plan(target_plans *p, int rank, const plan *leaves)
{
    bench_try(program_resolve(p->program, p->needed, p->shapes, &p->rules), "shapes");
    fuse_program(p->program, p->needed, &p->l, p->shapes, p->rules.of, true, p->leader);
    partition *q = begin(p, rank);
    for (int i = 0; i < p->program->values.n; i++)
        if (p->leaf[i])
            partition_import(q, i, leaves, i);
    partition_run(q, p->needed, p->leader, p->kept);
    return partition_end(&q);
}
