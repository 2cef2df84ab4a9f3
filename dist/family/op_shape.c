/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose and reshard, which move elements and compute nothing; and the sources fill, uniform, draw. */
#include <string.h>

#include "families.h"

/* ---- transpose ---- */

trama_value *trama_transpose_at(trama_where where, trama_value *x, const int *perm)
{
    if (!x)
        return NULL;
    int ndim = x->shape.ndim;
    trama_attributes a = {.integer = {[SHAPE_NDIM] = ndim}};
    for (int d = 0; d < ndim; d++)
        a.integer[SHAPE_DIM + d] = perm ? perm[d] : ndim - 1 - d;
    return program_append(NULL, where, &trama_op_transpose, 1, &x, &a);
}

trama_status transpose_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *shape = &node->in[0]->shape;
    const int64_t *perm = &node->attributes->integer[SHAPE_DIM];
    unsigned seen = 0;
    for (int d = 0; d < shape->ndim; d++)
        seen |= perm[d] >= 0 && perm[d] < shape->ndim ? 1u << perm[d] : 0;
    if (node->attributes->integer[SHAPE_NDIM] != shape->ndim || seen != (1u << shape->ndim) - 1)
        return trama_fail(node->where, TRAMA_E_SHAPE, "transpose of %s: perm is no permutation of %d dims",
                          node->in[0]->name, shape->ndim);
    for (int d = 0; d < shape->ndim; d++)
        rule_add_dim(&rule->tensor[0], rule_add_factor(rule, shape->dim[d]));
    for (int d = 0; d < shape->ndim; d++)
        rule_add_dim(&rule->tensor[1], (int)perm[d]);
    return TRAMA_OK;
}

void transpose_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    int inverse[TRAMA_MAX_NDIM];
    for (int d = 0; d < node->in[0]->shape.ndim; d++)
        inverse[node->attributes->integer[SHAPE_DIM + d]] = d;
    d_in[0] = trama_transpose_at(node->where, d_out[0], inverse);
}

bool transpose_view(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at)
{
    bool within = true;
    *at = 0;
    for (int d = 0; d < y->ndim; d++) {
        const int from = (int)a->integer[SHAPE_DIM + d];
        const int64_t lo = y->offset[d] - x->offset[from];
        within &= lo >= 0 && lo + y->extent[d] <= x->extent[from];
        y->stride[d] = x->stride[from];
        *at += lo * x->stride[from];
    }
    return within;
}

/* ---- Shapes as attributes ---- */

void put_shape(trama_attributes *a, int slot, trama_shape shape)
{
    a->integer[slot] = shape.ndim;
    for (int d = 0; d < shape.ndim && d < TRAMA_MAX_NDIM; d++)
        a->integer[slot + 1 + d] = shape.dim[d];
}

trama_status get_shape(const trama_node *node, int slot, trama_dtype dtype, bool fed, trama_shape *shape)
{
    const int64_t *integer = node->attributes->integer;
    text why = {0};
    shape->ndim = integer[slot] >= 0 && integer[slot] <= TRAMA_MAX_NDIM ? (int)integer[slot] : -1;
    memcpy(shape->dim, &integer[slot + 1], sizeof shape->dim);
    bool fits = shape_check(*shape, dtype, fed, &why);
    if (!fits)
        trama_fail(node->where, TRAMA_E_SHAPE, "%s%s%s: %s", node->op->name, fed ? " of " : "",
                   fed ? node->in[0]->name : "", why.at);
    free(why.at);
    return fits ? TRAMA_OK : TRAMA_E_SHAPE;
}

/* ---- reshard ---- */

trama_value *trama_reshard_at(trama_where where, trama_value *x, const trama_mesh *mesh, const char *layout)
{
    trama_value *y = program_record(NULL, where, &trama_op_reshard, 1, &x, NULL);
    return program_run(trama_shard_at(where, y, mesh, layout));
}

/* The gradient is resharded to the mesh of the value, and to its layout if that is annotated. Otherwise it keeps the
 * layout that it has there, and its readers reshard it. */
void reshard_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = reshard_colocated(node->where, d_out[0], node->in[0]);
}

/* The layout of the gradient of a value: S where the value is S. Of terms each has the gradient of their sum, so it is
 * R where the value is P. Where the value is R, it may stay as it comes, S or P, until an op needs it: open. */
static void transpose_layout(trama_layout *layout)
{
    for (int a = 0; a < layout->naxes; a++)
        if (layout->axis[a].kind == TRAMA_PARTIAL)
            layout->axis[a] = (trama_placement){.kind = TRAMA_REPLICATE};
        else if (layout->axis[a].kind == TRAMA_REPLICATE)
            layout->axis[a] = (trama_placement){.kind = TRAMA_OPEN};
}

trama_value *reshard_colocated(trama_where where, trama_value *gradient, trama_value *x)
{
    trama_value *d = program_record(NULL, where, &trama_op_reshard, 1, &gradient, NULL);
    if (!d)
        return NULL;
    d->gradient.colocated = x;
    if (x->mesh && !layout_has(x->layout, TRAMA_OPEN)) {
        d->mesh = x->mesh;
        d->annotated.where = x->annotated.where;
        program_lay_out(d, *x->layout);
        transpose_layout(d->layout);
    }
    return program_run(d);
}

/* ---- fill, uniform, draw ---- */

static trama_value *source(trama_where where, trama_program *program, const trama_op *op, trama_value *step,
                           trama_dtype dtype, trama_shape shape, trama_attributes *a)
{
    if (!program)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "%s: the program is NULL", op->name);
    a->integer[SOURCE_DTYPE] = dtype;
    put_shape(a, SOURCE_NDIM, shape);
    return program_append(program, where, op, op->n_in, &step, a);
}

trama_value *trama_run_counter_at(trama_where where, trama_program *program)
{
    if (!program)
        return program_fail(NULL, where, TRAMA_E_ARGUMENT, "run counter: the program is NULL");
    if (!program->run_counter && !program->status)
        program->run_counter = trama_state_at(where, program, "random.run", TRAMA_I64, TRAMA_SCALAR, NULL);
    return program->run_counter;
}

/* The number of the run: the counter plus 1. Its role is NODE_FORWARD, since the forward pass may need it later. */
static trama_value *number_of_run(trama_where where, trama_program *program)
{
    trama_value *counter = trama_run_counter_at(where, program);
    if (!counter || program->run)
        return counter ? program->run : NULL;
    node_role outer = program->role;
    program->role = NODE_FORWARD;
    trama_value *number = apply1(where, &trama_op_increment, counter);
    program->role = outer;
    if (!program->session)
        program->run = number;
    return number;
}

trama_value *trama_uniform_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                              double low, double high, uint64_t seed, uint32_t stream)
{
    trama_attributes a = {.integer = {[SOURCE_SEED] = (int64_t)seed, [SOURCE_STREAM] = stream},
                          .real = {[SOURCE_LOW] = low, [SOURCE_HIGH] = high}};
    return source(where, program, &trama_op_draw, number_of_run(where, program), dtype, shape, &a);
}

trama_value *trama_uniform_fixed_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                                    double low, double high, uint64_t seed, uint32_t stream, uint32_t step)
{
    trama_attributes a = {.integer = {[SOURCE_SEED] = (int64_t)seed, [SOURCE_STREAM] = stream, [SOURCE_STEP] = step},
                          .real = {[SOURCE_LOW] = low, [SOURCE_HIGH] = high}};
    return source(where, program, &trama_op_uniform, NULL, dtype, shape, &a);
}

trama_value *trama_fill_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                           double value)
{
    trama_attributes a = {.real = {[SOURCE_VALUE] = value}};
    return source(where, program, &trama_op_fill, NULL, dtype, shape, &a);
}

trama_value *trama_arange_at(trama_where where, trama_program *program, trama_dtype dtype, int64_t n, double start,
                             double step)
{
    trama_attributes a = {.real = {[ARANGE_START] = start, [ARANGE_STEP] = step}};
    return source(where, program, &trama_op_arange, NULL, dtype, TRAMA_SHAPE(n), &a);
}

trama_status source_infer(trama_rule *rule, const trama_node *node)
{
    trama_shape shape;
    trama_dtype dtype = (trama_dtype)node->attributes->integer[SOURCE_DTYPE];
    trama_status status = get_shape(node, SOURCE_NDIM, dtype, false, &shape);
    for (int d = 0; d < shape.ndim && !status; d++)
        rule_add_dim(&rule->tensor[node->op->n_in], rule_add_factor(rule, shape.dim[d]));
    return status;
}

trama_status source_dtype(const trama_node *node, trama_dtype *dtype)
{
    int64_t type = node->attributes->integer[SOURCE_DTYPE];
    const unsigned kinds = node->op == &trama_op_fill ? ANY_KIND : node->op == &trama_op_arange ? NUMBERS : FLOATS;
    if (type < 0 || type >= TRAMA_N_DTYPES || !(trama_dtype_kind_of((trama_dtype)type) & kinds))
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s: element type %lld does not fit", node->op->name,
                          (long long)type);
    *dtype = (trama_dtype)type;
    return TRAMA_OK;
}

trama_status draw_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *step = node->in[0];
    if (step->dtype != TRAMA_I64 || step->shape.ndim)
        return trama_fail(node->where, TRAMA_E_DTYPE, "draw: the step is a scalar of i64; %s is not", step->name);
    return source_dtype(node, dtype);
}
