/* SPDX-License-Identifier: Apache-2.0 */
/* trama_op_validate: it chooses the placements to try, and reports the wrong and missing ones. */
#include <math.h>

#include "validation.h"

/* At most MOST_TRIED combinations of a mesh are tried, evenly spread. A missing placement is right for SEEDS sets of
 * values. */
enum { MOST_LINES = 20, MOST_TRIED = 4000, MOST_ELEMENTS = 1 << 14, DRAWN = 80, SEEDS = 4 };

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* ---- Values and calls ---- */

static trama_value_range range_of(const validation *v, int operand)
{
    bool real = trama_dtype_is_float(dtype_part(v->node->in[operand]->dtype));
    return v->ranges ? v->ranges[operand] : real ? (trama_value_range){-2, 2} : (trama_value_range){0, 3};
}

/* x, rounded to the element type. */
static double kept(trama_dtype dtype, double x)
{
    switch (dtype) {
    case TRAMA_F32:
        return (float)x;
    case TRAMA_BF16:
        return trama_float_of_bf16(trama_bf16_of_double(x));
    case TRAMA_F16:
        return trama_float_of_f16(trama_f16_of_double(x));
    case TRAMA_BOOL:
        return x != 0;
    default:
        return x;
    }
}

void validation_values(void *arg, const trama_node *node, int operand, uint64_t seed, int64_t n, double *at)
{
    trama_dtype dtype = dtype_part(node->in[operand]->dtype);
    trama_value_range range = range_of(arg, operand);
    for (int64_t i = 0; i < n; i++) {
        double u = (double)(random_bits(&seed) >> 11) * 0x1p-53;
        at[i] = trama_dtype_is_float(dtype) ? range.low + (range.high - range.low) * u
                                            : floor(range.low + (range.high - range.low + 1) * u);
        at[i] = kept(dtype, at[i]);
    }
}

static bool run(void *arg, const trama_call *call)
{
    validation *v = arg;
    return guarded_run(&v->guard, call);
}

/* Sums of f32 depend on their order; sums of halves depend on the rounding of their terms. */
static double tolerance(const trama_node *node)
{
    static const double of[TRAMA_N_DTYPES] = {[TRAMA_F32] = 1e-4, [TRAMA_BF16] = 0x1p-4, [TRAMA_F16] = 0x1p-7};
    double most = 1e-9;
    for (int i = 0; i < node->op->n_in; i++)
        most = fmax(most, of[dtype_part(node->in[i]->dtype)]);
    for (int o = 0; o < node->op->n_out; o++)
        most = fmax(most, of[dtype_part(node->out[o]->dtype)]);
    return most;
}

/* ---- Wrong results ---- */

static void note_wrong(validation *v, const combination *c, const op_layouts *inferred, double difference)
{
    text line = {0};
    describe_call(&line, &v->trial, c->in, NULL);
    text_add(&line, " on ");
    mesh_text(&line, v->trial.mesh);
    text_add(&line, " becomes ");
    describe_call(&line, &v->trial, inferred->in, inferred->out);
    if (isinf(difference))
        text_add(&line, ", and %s",
                 v->guard.status ? v->guard.message : "the results of the processes differ or are not set");
    else
        text_add(&line, ", which differs by %.3g", difference);
    if (!v->found.wrong++)
        text_add(&v->first, "%s", line.at);
    if (v->found.wrong <= MOST_LINES)
        text_add(&v->lines, "wrong: %s\n", line.at);
    free(line.at);
}

/* Integers have no P(avg): their average may be no integer. */
static bool has_average_of_integers(const validation *v, const combination *c)
{
    bool has = false;
    for (int i = 0; i < v->node->op->n_in; i++)
        for (int a = 0; a < v->trial.mesh->ndim; a++)
            has |= !trama_dtype_is_float(dtype_part(v->node->in[i]->dtype)) && c->in[i].axis[a].kind == TRAMA_PARTIAL &&
                   c->in[i].axis[a].reduce == TRAMA_AVG;
    return has;
}

static bool check_inferred(validation *v, const combination *c)
{
    if (has_average_of_integers(v, c))
        return true;
    op_layouts inferred = infer_combination(&v->trial, c);
    v->found.tried++;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        v->trial.seed = 1000 * seed;
        v->guard.status = TRAMA_OK;
        double difference = trial_difference(&v->trial, inferred.in, inferred.out);
        if (!(difference < v->trial.tolerance))
            return note_wrong(v, c, &inferred, difference), false;
    }
    return true;
}

/* ---- Missing layouts ---- */

/* A rule cannot express partial state, nor partial values of an op with several results. P(avg) follows from P(sum). */
static bool may_be_given(const trama_node *node, const trama_layout *l)
{
    const trama_placement *p = &l->axis[0];
    return p->kind != TRAMA_PARTIAL || (!node->op->updates && node->op->n_out == 1 && p->reduce != TRAMA_AVG);
}

static bool is_right_for_all(validation *v, const trama_layout *in, const trama_layout *out)
{
    bool right = true;
    for (uint64_t seed = 1; seed <= SEEDS && right; seed++) {
        v->trial.seed = v->other.seed = 77 * seed;
        right = is_right(&v->trial, in, out) && is_right(&v->other, in, out);
    }
    return right;
}

/* The .partial mark that would let the operand's partial value become the result's. */
static const char *mark_for(const validation *v, const combination *c, const trama_placement *in,
                            const trama_placement *out)
{
    int partials = 0;
    for (int i = 0; i < v->node->op->n_in; i++)
        partials += c->in[i].axis[0].kind == TRAMA_PARTIAL;
    if (reduce_is_linear(in->reduce))
        return partials > 1 ? "joint" : "linear";
    return out->kind == TRAMA_PARTIAL && out->reduce != in->reduce ? "falling" : "rising";
}

/* Adds a line that names the mesh and the change of the definition that would allow the placement. */
static void note_missing(validation *v, const combination *c, const trama_layout *out)
{
    const trama_op *op = v->node->op;
    op_layouts inferred = infer_combination(&v->trial, c);
    int i = 0; /* the first operand whose placement the rule changes */
    while (i < op->n_in - 1 &&
           (c->in[i].axis[0].kind == TRAMA_REPLICATE || trama_layout_equal(&c->in[i], &inferred.in[i])))
        i++;
    const trama_placement *p = &c->in[i].axis[0];
    text_add(&v->lines, "missing: ");
    describe_call(&v->lines, &v->trial, c->in, out);
    text_add(&v->lines, " on ");
    mesh_text(&v->lines, v->trial.mesh);
    if (p->kind == TRAMA_PARTIAL)
        text_add(&v->lines, "; %s\"%s\" in .partial for operand %d would allow it\n", op->infer ? "" : "a rule and ",
                 mark_for(v, c, p, &out[0].axis[0]), i);
    else if (op->infer)
        text_add(&v->lines, "; a rule without brackets around dim %d of operand %d would allow it\n", p->dim, i);
    else
        text_add(&v->lines, "; a rule with a letter for dim %d of operand %d would allow it\n", p->dim, i);
}

static void check_refused(validation *v, const combination *c)
{
    const trama_node *node = v->node;
    layout_list candidates = {0};
    for (int i = 0; i < node->op->n_in; i++)
        if (!may_be_given(node, &c->in[i]))
            return;
    trial_layouts(v->trial.mesh, node->out[0], true, &candidates);
    for (int i = 0; i < candidates.n; i++) {
        trama_layout out[TRAMA_MAX_OPERANDS];
        bool fits = may_be_given(node, &candidates.at[i]);
        for (int o = 0; o < node->op->n_out; o++) {
            out[o] = candidates.at[i];
            fits &= out[o].axis[0].kind != TRAMA_SPLIT || out[o].axis[0].dim < node->out[o]->shape.ndim;
        }
        if (!fits || !is_right_for_all(v, c->in, out))
            continue;
        if (++v->found.missing <= MOST_LINES)
            note_missing(v, c, out);
        break;
    }
    ARRAY_FREE(&candidates);
}

/* ---- Choosing placements ---- */

static void count_one(void *arg, const trial *t, const combination *c)
{
    (void)t;
    (void)c;
    ++*(int64_t *)arg;
}

/* Tries each combination, or MOST_TRIED of them, evenly spread. */
static void visit(void *arg, const trial *t, const combination *c)
{
    validation *v = arg;
    int64_t before = v->passed * MOST_TRIED / v->all, now = ++v->passed * MOST_TRIED / v->all;
    if (v->all > MOST_TRIED && before == now)
        return;
    if (check_inferred(v, c) && v->other.mesh && is_refused(t, c))
        check_refused(v, c);
}

static void try_one_axis(validation *v, const trama_mesh *mesh, const trama_mesh *other)
{
    v->trial.mesh = mesh;
    v->other.mesh = other;
    v->all = v->passed = 0;
    each_combination(&v->trial, TRAMA_MAX_OPERANDS, count_one, &v->all);
    each_combination(&v->trial, TRAMA_MAX_OPERANDS, visit, v);
}

static void try_two_axes(validation *v, const trama_mesh *mesh)
{
    uint64_t seed = 7;
    v->trial.mesh = mesh;
    for (int k = 0; k < DRAWN; k++) {
        combination c;
        for (int i = 0; i < v->node->op->n_in; i++) {
            layout_list list = {0};
            bool alike = v->node->op->updates && i > 0 && v->node->in[i]->shape.ndim;
            trial_layouts(mesh, v->node->in[i], true, &list);
            c.in[i] = alike ? c.in[0] : list.at[random_bits(&seed) % (uint64_t)list.n];
            ARRAY_FREE(&list);
        }
        check_inferred(v, &c);
    }
}

static void try_all(validation *v)
{
    trama_mesh *two = mesh_new(1, (int[]){2}, NULL, NULL), *three = mesh_new(1, (int[]){3}, NULL, NULL);
    trama_mesh *four = mesh_new(2, (int[]){2, 2}, NULL, NULL), *six = mesh_new(2, (int[]){2, 3}, NULL, NULL);
    try_one_axis(v, two, three);
    try_one_axis(v, three, NULL);
    try_two_axes(v, four);
    try_two_axes(v, six);
    trama_mesh_destroy(&two);
    trama_mesh_destroy(&three);
    trama_mesh_destroy(&four);
    trama_mesh_destroy(&six);
}

/* ---- The call ---- */

static trama_status check(trama_where where, const trama_value *value)
{
    if (!value)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_op_validate: the value is NULL");
    if (!value->node || !value->node->op->own)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_op_validate: %s is not the result of an op of one's own",
                          trama_value_name(value));
    const trama_node *node = value->node;
    for (int i = 0; i < node->op->n_in + node->op->n_out; i++) {
        const trama_value *v = i < node->op->n_in ? node->in[i] : node->out[i - node->op->n_in];
        int64_t n = trama_shape_count(v->shape);
        for (int d = 0; d < v->shape.ndim; d++)
            n = v->shape.dim[d] == TRAMA_ANY ? TRAMA_ANY : n;
        if (n == TRAMA_ANY || n > MOST_ELEMENTS)
            return trama_fail(
                where, TRAMA_E_SHAPE, "trama_op_validate: %s has %s; apply %s to small tensors, with dims like 5 and 7",
                v->name, n == TRAMA_ANY ? "dims that are only known when fed" : "too many elements", node->op->name);
    }
    return TRAMA_OK;
}

trama_status trama_op_validate_at(trama_where where, const trama_value *value, const trama_value_range *ranges,
                                  trama_validation *found)
{
    trama_status status = check(where, value);
    if (status)
        return status;
    validation v = {.where = where, .node = value->node, .ranges = ranges};
    v.trial = (trial){.name = v.node->op->name,
                      .node = v.node,
                      .rule = v.node->rule,
                      .tolerance = tolerance(v.node),
                      .values = validation_values,
                      .run = run,
                      .arg = &v};
    v.other = v.trial;
    for (int i = 0; i < v.node->op->n_in; i++)
        v.guard.around[i] = range_of(&v, i).low;
    status = validate_whole(&v);
    if (!status) {
        validate_pieces(&v);
        try_all(&v);
    }
    if (v.found.wrong)
        status = trama_fail(where, TRAMA_E_LAYOUT, "trama_op_validate: %d of %d placements are wrong: %s",
                            v.found.wrong, v.found.tried, v.first.at);
    v.found.text = text_take(&v.lines);
    if (found && (!status || v.found.wrong))
        *found = v.found;
    else
        free(v.found.text);
    free(v.first.at);
    return status;
}
