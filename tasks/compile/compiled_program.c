/* SPDX-License-Identifier: Apache-2.0 */
/* Single-op programs: they initialise state, feed, read and move values, and run eager ops. */
#include "compiled_program.h"

#include <string.h>

#include "fuse.h"
#include "gpu_group.h"
#include "split_form.h"

static compiled_program *compiled_program_create(void)
{
    compiled_program *s = trama_alloc(sizeof *s);
    s->program = program_new();
    s->of.program = s->program;
    return s;
}

void compiled_program_destroy(compiled_program **program_)
{
    compiled_program *s = *program_;
    if (!s)
        return;
    compiled_plan_clear(&s->of);
    layouts_free(&s->l);
    trama_program_destroy(&s->program);
    free(s);
    *program_ = NULL;
}

/* A value of the compiled program that stands for one of the user's program. */
static trama_value *stand_in(compiled_program *s, const trama_value *v, trama_shape shape, const trama_mesh *mesh,
                             const trama_layout *layout)
{
    trama_value *own = program_value(s->program, v->where, v->kind == VALUE_STATE ? VALUE_STATE : VALUE_INPUT, v->dtype,
                                     shape, v->name);
    layouts_room(&s->l, s->program->values.n, 1);
    s->l.mesh[own->id] = mesh;
    s->l.value[own->id] = *layout;
    return own;
}

planning planning_in(const trama_context *context, const process_map *map)
{
    const trama_config *config = context_config(context);
    return (planning){.map = map,
                      .machine = context_machine(context),
                      .options = {.max_tiles = config->max_tiles,
                                  .grain_flops = config->grain_flops,
                                  .grain_bytes = config->grain_bytes,
                                  .no_fusion = config->no_fusion,
                                  .staging_bytes = config->staging_bytes,
                                  .arena_bytes = config->arena_bytes,
                                  .collectives = gpu_groups_can(context),
                                  .nccl_sums = config->nccl_sums},
                      .rank = context_rank(context)};
}

plan_source planning_source(const planning *p, const compiled_plan *of, const layouts *l, int rank)
{
    return (plan_source){.program = of->program,
                         .l = l,
                         .shapes = of->shapes,
                         .rules = of->rules.of,
                         .map = p->map,
                         .machine = p->machine,
                         .options = p->options,
                         .rank = rank};
}

/* Sets the extents and rules of the compiled program's values and nodes. */
static trama_status resolve(compiled_program *s)
{
    s->of.shapes = trama_alloc((size_t)s->program->values.n * sizeof *s->of.shapes);
    s->of.rules = node_rules_new(s->program->nodes.n);
    for (int i = 0; i < s->program->values.n; i++)
        s->of.shapes[i] = s->program->values.at[i]->shape;
    return program_resolve(s->program, NULL, s->of.shapes, &s->of.rules);
}

/* The plan of the compiled program's nodes, which are one op or its split form: n_in operands, which are the first
 * values, then n_out results. */
static void plan_nodes(const planning *p, compiled_program *s, int n_in, int n_out, const value_ref *operands)
{
    plan_source source = planning_source(p, &s->of, &s->l, p->rank);
    partition *q = partition_begin(&source);
    for (int t = 0; t < n_in; t++)
        partition_import(q, t, operands[t].in->of->plan, operands[t].as);
    const size_t nodes = (size_t)s->program->nodes.n;
    bool *kept = trama_alloc((size_t)s->program->values.n), *needed = trama_alloc(nodes);
    int *leader = trama_alloc(nodes * sizeof *leader);
    memset(kept, 1, (size_t)(n_in + n_out));
    memset(needed, 1, nodes);
    fuse_program(s->program, needed, &s->l, s->of.shapes, s->of.rules.of, !p->options.no_fusion, leader);
    partition_run(q, needed, leader, kept);
    free(kept);
    free(needed);
    free(leader);
    s->of.plan = partition_end(&q);
    compiled_plan_finish(&s->of);
}

static void annotate(trama_value *v, const trama_mesh *mesh, const trama_layout *layout)
{
    v->mesh = mesh;
    program_lay_out(v, *layout);
}

/* Replaces the op by its split form where that receives fewer bytes: its operands lie as they do. */
static trama_status split(compiled_program *s, const trama_value *annotated, const trama_mesh *single)
{
    trama_node *node = s->program->nodes.at[0];
    const whole_split along = split_form_pays(node, &s->l, 1, single);
    if (!along.parts)
        return TRAMA_OK;
    for (int t = 0; t < node->op->n_in; t++)
        annotate(node->in[t], s->l.mesh[node->in[t]->id], &s->l.value[node->in[t]->id]);
    if (annotated->mesh)
        annotate(node->out[0], annotated->mesh, annotated->layout);
    split_form_replace(s->program, node, along);
    layouts_free(&s->l);
    free(s->of.shapes);
    node_rules_free(&s->of.rules);
    trama_status status = s->program->status ? s->program->status : resolve(s);
    return status ? status : complete_program(s->program, 1, single, &s->l);
}

trama_status compile_op(const planning *p, const trama_node *node, const value_ref *operands, const layouts *l,
                        const trama_mesh *single, compiled_program **made)
{
    compiled_program *s = compiled_program_create();
    trama_value *in[TRAMA_MAX_OPERANDS];
    s->of.faults = p->faults;
    for (int t = 0; t < node->op->n_in; t++) {
        const trama_value *v = node->in[t];
        trama_value named = *v;
        if (node->op->updates >> t & 1)
            named.kind = VALUE_STATE; /* an updated value stands for its state */
        in[t] = stand_in(s, &named, operands[t].in->of->shapes[operands[t].as], l->mesh[v->id], &l->value[v->id]);
    }
    trama_value *out = program_append(s->program, node->where, node->op, node->op->n_in, in, node->attributes);
    trama_status status = out ? resolve(s) : trama_program_status(s->program);
    if (!status) {
        s->result = out->id;
        layouts_room(&s->l, s->program->values.n, s->program->nodes.n);
        trama_node *own = s->program->nodes.at[0];
        const trama_value *annotated = node->out[0];
        if (annotated->mesh) {
            s->l.mesh[out->id] = annotated->mesh;
            s->l.value[out->id] = *annotated->layout;
        }
        if (node->fixed) {
            own->fixed = trama_alloc(sizeof *own->fixed);
            *own->fixed = *node->fixed;
        }
        status = complete_node(own, s->of.rules.of[0], single, &s->l);
        if (!status)
            status = split(s, annotated, single);
    }
    if (status)
        return compiled_program_destroy(&s), status;
    plan_nodes(p, s, node->op->n_in, node->op->n_out, operands);
    *made = s;
    return TRAMA_OK;
}

trama_status compile_source(const planning *p, const char *name, const trama_op *op, const trama_attributes *attributes,
                            const trama_mesh *mesh, const trama_layout *layout, compiled_program **made)
{
    compiled_program *s = compiled_program_create();
    trama_value *out = program_append(s->program, NOWHERE, op, 0, NULL, attributes);
    trama_status status = out ? resolve(s) : trama_program_status(s->program);
    if (status)
        return compiled_program_destroy(&s), status;
    layouts_room(&s->l, s->program->values.n, s->program->nodes.n);
    trama_value_rename_at(NOWHERE, out, name);
    s->result = out->id;
    s->l.mesh[out->id] = mesh;
    s->l.value[out->id] = *layout;
    layouts_set_op(&s->l, 0, &(op_layouts){.mesh = mesh, .out = {*layout}});
    plan_nodes(p, s, 0, op->n_out, NULL);
    *made = s;
    return TRAMA_OK;
}

compiled_program *compile_feed(const planning *p, const trama_value *value, trama_shape shape, const trama_mesh *mesh,
                               const trama_layout *layout)
{
    compiled_program *s = compiled_program_create();
    s->result = stand_in(s, value, shape, mesh, layout)->id;
    resolve(s);
    plan_source source = planning_source(p, &s->of, &s->l, p->rank);
    partition *q = partition_begin(&source);
    partition_input(q, s->result);
    s->of.plan = partition_end(&q);
    compiled_plan_finish(&s->of);
    return s;
}

compiled_program *compile_copy(const planning *p, const trama_value *value, value_ref from, const trama_mesh *mesh,
                               const trama_layout *layout)
{
    const plan_dist_value *h = plan_find(from.in->of->plan, from.as);
    compiled_program *s = compiled_program_create();
    s->result = stand_in(s, value, from.in->of->shapes[from.as], h->mesh, &h->layout)->id;
    resolve(s);
    plan_source source = planning_source(p, &s->of, &s->l, p->rank);
    partition *q = partition_begin(&source);
    partition_import(q, s->result, from.in->of->plan, from.as);
    partition_reshard(q, s->result, mesh, layout, -1, true);
    s->of.plan = partition_end(&q);
    plan_prefer(s->of.plan, s->result, s->of.plan->dist_values.n - 1);
    compiled_plan_finish(&s->of);
    return s;
}

/* A value of a compiled program that stands for no value of the user's program, and has no layout. */
static trama_value *plain_value(compiled_program *s, const char *name, trama_dtype dtype, trama_shape shape)
{
    trama_value *own = program_value(s->program, NOWHERE, VALUE_INPUT, dtype, shape, name);
    layouts_room(&s->l, s->program->values.n, 1);
    return own;
}

static partition *begin(const planning *p, compiled_program *s)
{
    resolve(s);
    plan_source source = planning_source(p, &s->of, &s->l, p->rank);
    return partition_begin(&source);
}

compiled_program *compile_user_boxes(const planning *p, const char *name, trama_dtype dtype, trama_shape shape,
                                     const box_index *user_boxes)
{
    compiled_program *s = compiled_program_create();
    s->result = plain_value(s, name, dtype, shape)->id;
    partition *q = begin(p, s);
    partition_user_boxes(q, s->result, user_boxes);
    s->of.plan = partition_end(&q);
    compiled_plan_finish(&s->of);
    return s;
}

compiled_program *compile_view(const planning *p, const trama_value *value, value_ref user_boxes,
                               const trama_mesh *mesh, const trama_layout *layout)
{
    compiled_program *s = compiled_program_create();
    trama_shape shape = user_boxes.in->of->shapes[user_boxes.as];
    int of = plain_value(s, value->name, value->dtype, shape)->id;
    s->result = stand_in(s, value, shape, mesh, layout)->id;
    partition *q = begin(p, s);
    partition_import(q, of, user_boxes.in->of->plan, user_boxes.as);
    bool lies = partition_inside(q, of, s->result, mesh, layout);
    s->of.plan = partition_end(&q);
    compiled_plan_finish(&s->of);
    if (!lies)
        compiled_program_destroy(&s);
    return s;
}

compiled_program *compile_move(const planning *p, const char *name, value_ref from, value_ref to)
{
    compiled_program *s = compiled_program_create();
    const value_ref at[] = {from, to};
    for (int i = 0; i < 2; i++) {
        const trama_value *v = at[i].in->of->program->values.at[at[i].as];
        plain_value(s, name, v->dtype, at[i].in->of->shapes[at[i].as]);
    }
    partition *q = begin(p, s);
    for (int i = 0; i < 2; i++)
        partition_import(q, i, at[i].in->of->plan, at[i].as);
    partition_move(q, 0, 1);
    s->of.plan = partition_end(&q);
    s->result = 1;
    compiled_plan_finish(&s->of);
    return s;
}

/* uniform with the parameter's seed and stream, or fill where low equals high. */
const trama_op *state_source(const trama_value *v, trama_attributes *a)
{
    const trama_op *op = v->state->init.low == v->state->init.high ? &trama_op_fill : &trama_op_uniform;
    *a = (trama_attributes){.integer = {[SOURCE_DTYPE] = v->dtype, [SOURCE_NDIM] = v->shape.ndim},
                            .real = {v->state->init.low, v->state->init.high}};
    memcpy(&a->integer[SOURCE_DIM], v->shape.dim, (size_t)v->shape.ndim * sizeof *v->shape.dim);
    if (op == &trama_op_uniform) {
        a->integer[SOURCE_SEED] = (int64_t)v->state->init.seed;
        a->integer[SOURCE_STREAM] = (int64_t)v->state->init.stream;
    } else {
        a->real[SOURCE_HIGH] = 0;
    }
    return op;
}

const plan_dist_value *value_ref_dist_value(value_ref at)
{
    return plan_find(at.in->of->plan, at.as);
}
