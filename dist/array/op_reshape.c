/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape: the same elements in row-major order. The dims of both shapes fall into runs with equal numbers of elements.
 * The dims of a run are cut into common factors, so a split passes where its pieces are boxes on both sides, and needs
 * no message. A run by rows has its first dim split instead, on either side into pieces of any size: a process then
 * receives the rows at its borders. */
#include "families.h"

trama_value *trama_reshape_at(trama_where where, trama_value *x, trama_shape shape)
{
    if (!x)
        return NULL;
    trama_attributes a = {0};
    put_shape(&a, SHAPE_NDIM, shape);
    return program_append(NULL, where, &trama_op_reshape, 1, &x, &a);
}

void reshape_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_reshape_at(node->where, d_out[0], node->in[0]->shape);
}

/* The same reshape with the run of that dim by rows. */
void reshape_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    trama_attributes a = *node->attributes;
    if (a.integer[RESHAPE_ROWS] >> dim & 1)
        return;
    a.integer[RESHAPE_ROWS] |= INT64_C(1) << dim;
    out[0] = program_append(NULL, node->where, node->op, 1, node->in, &a);
}

/* ---- Runs ---- */

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
    const run before[] = {*in, *out};
    int64_t n_in = 1, n_out = 1;
    in->from = in->to;
    out->from = out->to;
    do {
        run *shorter = n_out < n_in || !at_known(in) ? out : in;
        if (!at_known(shorter)) {
            *in = before[0];
            *out = before[1];
            return false;
        }
        *(shorter == in ? &n_in : &n_out) *= shorter->shape->dim[shorter->to];
        shorter->to++;
    } while (n_in != n_out);
    return true;
}

/* A factor of the tensor alone that is never split, which is right for any reshape. */
static int whole_factor(trama_rule *rule, const rule_tensor *tensor, int64_t extent)
{
    const int f = rule_add_factor(rule, extent);
    rule->factor[f].whole = true;
    rule->factor[f].no_work = tensor == &rule->tensor[0];
    return f;
}

static void whole_dims(trama_rule *rule, rule_tensor *tensor, const run *r)
{
    for (int d = r->from; d < r->to; d++)
        rule_add_dim(tensor, whole_factor(rule, tensor, r->shape->dim[d]));
}

/* The first dim of a run whose extent is not 1; r->to without one. */
static int first_dim(const run *r)
{
    int d = r->from;
    while (d < r->to && r->shape->dim[d] == 1)
        d++;
    return d;
}

/* The product of the known dims [from, r->to). */
static int64_t count_known(const run *r, int from)
{
    int64_t n = 1;
    for (int d = from; d < r->to; d++)
        n *= r->shape->dim[d] == TRAMA_ANY ? 1 : r->shape->dim[d];
    return n;
}

/* Adds the dims of a run, all whole but `first`, which has the factor f; those before it have extent 1. */
static void rows_of_run(trama_rule *rule, rule_tensor *tensor, const run *r, int first, int f)
{
    for (int d = r->from; d < first; d++)
        rule_add_dim(tensor, -1);
    rule_add_dim(tensor, f);
    whole_dims(rule, tensor, &(run){r->shape, first + 1, r->to});
}

/* The first dims of both runs share a factor, the extent of the result's. Row i of the result begins at element i n_out
 * of the run, which lies in row i n_out / n_in of the operand. */
static bool by_rows(trama_rule *rule, const run *in, const run *out)
{
    const int first_in = first_dim(in), first_out = first_dim(out);
    int64_t n_in = count_known(in, first_in + 1), n_out = count_known(out, first_out + 1);
    if (first_in == in->to || first_out == out->to || !n_in || !n_out)
        return false;
    const int64_t common = gcd(n_in, n_out);
    n_in /= common;
    n_out /= common;
    const int f = rule_add_factor(rule, out->shape->dim[first_out]);
    rows_of_run(rule, &rule->tensor[0], in, first_in, f);
    rows_of_run(rule, &rule->tensor[1], out, first_out, f);
    rule->tensor[0].reach[first_in] = (rule_reach){
        .before = n_in - 1, .after = n_out - 1, .stride = n_out, .per = n_in, .own_extent = true, .divides = true};
    return true;
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

static void match_runs(trama_rule *rule, const run *in, const run *out, int64_t rows)
{
    const trama_rule before = *rule;
    if ((rows >> first_dim(in) & 1) && by_rows(rule, in, out))
        return;
    if (common_factors(rule, in, out))
        return;
    *rule = before;
    whole_dims(rule, &rule->tensor[0], in);
    whole_dims(rule, &rule->tensor[1], out);
}

/* ---- Dims that are only known when fed ---- */

/* Each such dim stays as it is, and runs of known dims lie between them. */
static bool match_dims(trama_rule *rule, run x, run y, int64_t rows)
{
    while (x.to < x.shape->ndim || y.to < y.shape->ndim) {
        if (x.to < x.shape->ndim && y.to < y.shape->ndim && !at_known(&x) && !at_known(&y)) {
            int f = rule_add_factor(rule, TRAMA_ANY);
            rule_add_dim(&rule->tensor[0], f);
            rule_add_dim(&rule->tensor[1], f);
            x.to++;
            y.to++;
        } else if (next_runs(&x, &y)) {
            match_runs(rule, &x, &y, rows);
        } else {
            return false;
        }
    }
    return true;
}

static int count_any(const trama_shape *shape)
{
    int n = 0;
    for (int d = 0; d < shape->ndim; d++)
        n += shape->dim[d] == TRAMA_ANY;
    return n;
}

/* Adds the dims of a run, all whole; its open dim has the factor `open` and, for another extent than 1, a second one.
 */
static void open_dims(trama_rule *rule, rule_tensor *tensor, const run *r, int open, int64_t times)
{
    for (int d = r->from; d < r->to; d++) {
        const int64_t n = r->shape->dim[d];
        rule_add_dim(tensor, n == TRAMA_ANY ? open : whole_factor(rule, tensor, n));
        rule_dim *dim = &tensor->dim[d];
        if (n == TRAMA_ANY && times > 1)
            dim->factor[dim->n++] = (signed char)whole_factor(rule, tensor, times);
    }
}

/* Runs with one open dim each, which known dims multiply or divide: by rows where both are first, else whole. */
static bool match_open(trama_rule *rule, const run *in, const run *out)
{
    const int64_t n_in = count_known(in, in->from), n_out = count_known(out, out->from);
    if (!n_in || !n_out || (n_in % n_out && n_out % n_in))
        return false;
    if (in->shape->dim[first_dim(in)] == TRAMA_ANY && out->shape->dim[first_dim(out)] == TRAMA_ANY)
        return by_rows(rule, in, out);
    const int open = rule_add_factor(rule, TRAMA_ANY);
    rule->factor[open].whole = true;
    open_dims(rule, &rule->tensor[0], in, open, n_out / n_in);
    open_dims(rule, &rule->tensor[1], out, open, n_in / n_out);
    return true;
}

static trama_shape reversed(const trama_shape *shape)
{
    trama_shape r = {.ndim = shape->ndim};
    for (int d = 0; d < r.ndim; d++)
        r.dim[d] = shape->dim[r.ndim - 1 - d];
    return r;
}

/* One open dim on each side takes all that runs of known dims before and behind it leave. */
static bool match_shapes(trama_rule *rule, const trama_shape *in, const trama_shape *out, int64_t rows)
{
    const trama_shape back_in = reversed(in), back_out = reversed(out);
    const trama_rule before = *rule;
    run x = {in, 0, 0}, y = {out, 0, 0}, behind_x = {&back_in, 0, 0}, behind_y = {&back_out, 0, 0};
    if (match_dims(rule, x, y, rows))
        return true;
    *rule = before;
    if (count_any(in) != 1 || count_any(out) != 1)
        return false;
    while (next_runs(&x, &y))
        match_runs(rule, &x, &y, rows);
    while (next_runs(&behind_x, &behind_y))
        ;
    const run open_x = {in, x.to, in->ndim - behind_x.to}, open_y = {out, y.to, out->ndim - behind_y.to};
    return match_open(rule, &open_x, &open_y) &&
           match_dims(rule, (run){in, 0, open_x.to}, (run){out, 0, open_y.to}, rows);
}

trama_status reshape_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *in = &node->in[0]->shape;
    trama_shape out;
    trama_status status = get_shape(node, SHAPE_NDIM, node->in[0]->dtype, true, &out);
    if (status)
        return status;
    const bool fed = count_any(in), agrees = count_any(in) == count_any(&out);
    const bool fits = agrees && (fed || trama_shape_count(*in) == trama_shape_count(out));
    if (fits && match_shapes(rule, in, &out, node->attributes->integer[RESHAPE_ROWS]))
        return TRAMA_OK;
    if (fits && !fed) { /* no elements, and dims that do not correspond */
        whole_dims(rule, &rule->tensor[0], &(run){in, 0, in->ndim});
        whole_dims(rule, &rule->tensor[1], &(run){&out, 0, out.ndim});
        return TRAMA_OK;
    }
    text t = {0};
    shape_text(&t, *in);
    text_add(&t, " to ");
    shape_text(&t, out);
    trama_fail(node->where, TRAMA_E_SHAPE, "reshape of %s: %s%s", node->in[0]->name, t.at,
               !agrees ? "; TRAMA_ANY (-1) stands where a dim is only known when fed, and is not worked out"
               : fed   ? " mixes a fed dim with others; one such dim alone may be multiplied or divided by known ones"
                       : " changes the number of elements");
    free(t.at);
    return TRAMA_E_SHAPE;
}

/* ---- In place ---- */

/* The strides of dims [from, to) of y over n elements that lie at a distance of `stride`. */
static void divide_run(trama_view *y, int from, int to, int64_t stride)
{
    for (int d = to - 1; d >= from; d--) {
        y->stride[d] = stride;
        stride *= y->extent[d];
    }
}

/* Whether the dims [from, to) of x have one distance between neighbours in row-major order, which is set. */
static bool is_one_run(const trama_view *x, int from, int to, int64_t *stride)
{
    int64_t n = 1;
    bool one = true;
    for (int d = to - 1; d >= from; d--) {
        if (x->extent[d] == 1)
            continue;
        if (n == 1)
            *stride = x->stride[d];
        one &= x->stride[d] == n * *stride;
        n *= x->extent[d];
    }
    return one;
}

/* The boxes fall into runs of dims with equal numbers of elements, as the shapes do; so x has the elements of y and no
 * others. */
bool reshape_view(const trama_attributes *a, const trama_view *x, trama_view *y, int64_t *at)
{
    (void)a;
    *at = 0;
    for (int i = 0, o = 0; i < x->ndim || o < y->ndim;) {
        const int first_in = i, first_out = o;
        int64_t n_in = i < x->ndim ? x->extent[i++] : 1, n_out = o < y->ndim ? y->extent[o++] : 1, stride = 1;
        while (n_in != n_out) {
            if (n_in < n_out ? i == x->ndim : o == y->ndim)
                return false;
            if (n_in < n_out)
                n_in *= x->extent[i++];
            else
                n_out *= y->extent[o++];
        }
        if (!is_one_run(x, first_in, i, &stride))
            return false;
        divide_run(y, first_out, o, stride);
    }
    return true;
}
