/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose, reshape, reshard, which move elements and compute nothing; and the sources fill, uniform, draw. */
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

/* ---- reshape ---- */

/* Stores a shape as attributes. A shape filled in by hand may have too many dims. */
static void put_shape(trama_attributes *a, int ndim, int dim, trama_shape shape)
{
    a->integer[ndim] = shape.ndim;
    for (int d = 0; d < shape.ndim && d < TRAMA_MAX_NDIM; d++)
        a->integer[dim + d] = shape.dim[d];
}

/* Reads a shape from attributes and checks it, since they may be the user's (trama_apply). */
static trama_status get_shape(const trama_node *node, int ndim, int dim, trama_dtype dtype, bool fed,
                              trama_shape *shape)
{
    const int64_t *integer = node->attributes->integer;
    text why = {0};
    shape->ndim = integer[ndim] >= 0 && integer[ndim] <= TRAMA_MAX_NDIM ? (int)integer[ndim] : -1;
    memcpy(shape->dim, &integer[dim], sizeof shape->dim);
    bool fits = shape_check(*shape, dtype, fed, &why);
    if (!fits)
        trama_fail(node->where, TRAMA_E_SHAPE, "%s%s%s: %s", node->op->name, fed ? " of " : "",
                   fed ? node->in[0]->name : "", why.at);
    free(why.at);
    return fits ? TRAMA_OK : TRAMA_E_SHAPE;
}

trama_value *trama_reshape_at(trama_where where, trama_value *x, trama_shape shape)
{
    if (!x)
        return NULL;
    trama_attributes a = {0};
    put_shape(&a, SHAPE_NDIM, SHAPE_DIM, shape);
    return program_append(NULL, where, &trama_op_reshape, 1, &x, &a);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Dims [from, to) of a shape. */
typedef struct run {
    const trama_shape *shape;
    int from, to;
} run;

static bool at_known(const run *r)
{
    return r->to < r->shape->ndim && r->shape->dim[r->to] != TRAMA_ANY;
}

/* Advances to the next shortest runs of known dims with equal numbers of elements on both sides. */
static bool next_runs(run *in, run *out)
{
    int64_t n_in = 1, n_out = 1;
    in->from = in->to;
    out->from = out->to;
    do {
        run *shorter = n_out < n_in || !at_known(in) ? out : in;
        if (!at_known(shorter))
            return false;
        *(shorter == in ? &n_in : &n_out) *= shorter->shape->dim[shorter->to];
        shorter->to++;
    } while (n_in != n_out);
    return true;
}

/* Gives every dim of a run a factor that is never split, which is right for any reshape. */
static void whole_dims(trama_rule *rule, rule_tensor *tensor, const run *r)
{
    for (int d = r->from; d < r->to; d++) {
        int f = rule_add_factor(rule, r->shape->dim[d]);
        rule->factor[f].whole = true;
        rule_add_dim(tensor, f);
    }
}

/* Goes on to the next dim of a run once the factors of the current dim are complete. */
static void next_dim(const run *r, int *d, int64_t *left, rule_tensor *tensor)
{
    for (; *left == 1 && *d < r->to; ++*d) {
        *left = r->shape->dim[*d];
        rule_add_dim(tensor, -1);
    }
}

/* Cuts the dims of two runs into common factors, from the left; false where their extents have no common factor. */
static bool common_factors(trama_rule *rule, const run *in, const run *out)
{
    rule_tensor *x = &rule->tensor[0], *y = &rule->tensor[1];
    int64_t left_in = 1, left_out = 1;
    for (int d_in = in->from, d_out = out->from;;) {
        next_dim(in, &d_in, &left_in, x);
        next_dim(out, &d_out, &left_out, y);
        if (left_in == 1 && left_out == 1)
            return true;
        int64_t common = gcd(left_in, left_out);
        if (common <= 1)
            return false;
        int f = rule_add_factor(rule, common);
        rule_dim *dx = &x->dim[x->ndim - 1], *dy = &y->dim[y->ndim - 1];
        dx->factor[dx->n++] = dy->factor[dy->n++] = (signed char)f;
        left_in /= common;
        left_out /= common;
    }
}

static bool match_shapes(trama_rule *rule, const trama_shape *in, const trama_shape *out)
{
    run x = {in, 0, 0}, y = {out, 0, 0};
    while (x.to < in->ndim || y.to < out->ndim) {
        if (x.to < in->ndim && y.to < out->ndim && !at_known(&x) && !at_known(&y)) {
            int f = rule_add_factor(rule, TRAMA_ANY);
            rule_add_dim(&rule->tensor[0], f);
            rule_add_dim(&rule->tensor[1], f);
            x.to++;
            y.to++;
            continue;
        }
        if (!next_runs(&x, &y))
            return false;
        trama_rule before = *rule;
        if (common_factors(rule, &x, &y))
            continue;
        *rule = before;
        whole_dims(rule, &rule->tensor[0], &x);
        whole_dims(rule, &rule->tensor[1], &y);
    }
    return true;
}

trama_status reshape_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *in = &node->in[0]->shape;
    trama_shape out;
    trama_status status = get_shape(node, SHAPE_NDIM, SHAPE_DIM, node->in[0]->dtype, true, &out);
    if (status)
        return status;
    int64_t count_in = 1, count_out = 1;
    int any_in = 0, any_out = 0;
    for (int d = 0; d < in->ndim; d++)
        in->dim[d] == TRAMA_ANY ? (void)any_in++ : (void)(count_in *= in->dim[d]);
    for (int d = 0; d < out.ndim; d++)
        out.dim[d] == TRAMA_ANY ? (void)any_out++ : (void)(count_out *= out.dim[d]);
    bool fits = count_in == count_out && any_in == any_out;
    bool matched = fits && match_shapes(rule, in, &out);
    if (fits && !matched && !any_in) { /* no elements, and dims that do not correspond */
        rule->n_factors = rule->tensor[0].ndim = rule->tensor[1].ndim = 0;
        whole_dims(rule, &rule->tensor[0], &(run){in, 0, in->ndim});
        whole_dims(rule, &rule->tensor[1], &(run){&out, 0, out.ndim});
        matched = true;
    }
    if (matched)
        return TRAMA_OK;
    text t = {0};
    shape_text(&t, *in);
    text_add(&t, " to ");
    shape_text(&t, out);
    trama_fail(node->where, TRAMA_E_SHAPE, "reshape of %s: %s%s", node->in[0]->name, t.at,
               fits                ? " mixes a fed dim with others"
               : any_in != any_out ? "; TRAMA_ANY (-1) stands where a dim is only known when fed, and is not worked out"
                                   : " changes the number of elements");
    free(t.at);
    return TRAMA_E_SHAPE;
}

void reshape_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_reshape_at(node->where, d_out[0], node->in[0]->shape);
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
    put_shape(a, SOURCE_NDIM, SOURCE_DIM, shape);
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
    trama_status status = get_shape(node, SOURCE_NDIM, SOURCE_DIM, dtype, false, &shape);
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
