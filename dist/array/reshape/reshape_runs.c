/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a reshape. The dims of a run are cut into common factors, so a split passes where its pieces are boxes on
 * both sides, and needs no message. A run by rows has its first dim split instead, on either side into pieces of any
 * size: a process then receives the rows at its borders. */
#include "reshape_runs.h"

#include "program.h"

static rule_tensor *result_of(trama_rule *rule)
{
    return &rule->tensor[rule->n_in];
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
    rule->factor[f].no_work = tensor < &rule->tensor[rule->n_in];
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

/* Adds the dims of a run, all whole but `first`, which has the factor f; those before it have extent 1. Returns the set
 * of the factors of those behind it, whose product is the length of a row. */
static unsigned rows_of_run(trama_rule *rule, rule_tensor *tensor, const run *r, int first, int f)
{
    const int n = rule->n_factors;
    for (int d = r->from; d < first; d++)
        rule_add_dim(tensor, -1);
    rule_add_dim(tensor, f);
    whole_dims(rule, tensor, &(run){r->shape, first + 1, r->to});
    return (1u << rule->n_factors) - (1u << n);
}

/* The first dims of both runs share a factor, the extent of the result's: a row of the result has the elements of its
 * other dims, and one of the operand those of the operand's. */
static bool by_rows(trama_rule *rule, const run *in, const run *out)
{
    const int first_in = first_dim(in), first_out = first_dim(out);
    if (first_in == in->to || first_out == out->to || !count_known(in, first_in + 1) ||
        !count_known(out, first_out + 1))
        return false;
    rule_tensor *x = &rule->tensor[0];
    rule_reach *reach = &x->reach[x->ndim + first_in - in->from];
    const int f = rule_add_factor(rule, out->shape->dim[first_out]);
    *reach = (rule_reach){.own_extent = true, .divides = true};
    reach->of_dim = rows_of_run(rule, x, in, first_in, f);
    reach->of_row = rows_of_run(rule, result_of(rule), out, first_out, f);
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
    rule_tensor *x = &rule->tensor[0], *y = result_of(rule);
    int64_t left_in = 1, left_out = 1;
    for (int d_in = in->from, d_out = out->from;;) {
        next_dim(in, &d_in, &left_in, x);
        next_dim(out, &d_out, &left_out, y);
        if (left_in == 1 && left_out == 1)
            return true;
        int64_t common = common_divisor(left_in, left_out);
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
    if ((rows >> (rule->tensor[0].ndim + first_dim(in) - in->from) & 1) && by_rows(rule, in, out))
        return;
    if (common_factors(rule, in, out))
        return;
    *rule = before;
    whole_dims(rule, &rule->tensor[0], in);
    whole_dims(rule, result_of(rule), out);
}

/* ---- Dims that are only known when fed ---- */

/* Each such dim stays as it is, and runs of known dims lie between them. */
static bool match_dims(trama_rule *rule, run x, run y, int64_t rows)
{
    while (x.to < x.shape->ndim || y.to < y.shape->ndim) {
        if (x.to < x.shape->ndim && y.to < y.shape->ndim && !at_known(&x) && !at_known(&y)) {
            int f = rule_add_factor(rule, TRAMA_ANY);
            rule_add_dim(&rule->tensor[0], f);
            rule_add_dim(result_of(rule), f);
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

/* Adds the dims of a run, all whole; its open dim has the factor `open` and, for another extent than 1, a second one.
 */
static void open_dims(trama_rule *rule, rule_tensor *tensor, const run *r, int open, int64_t times)
{
    for (int d = r->from; d < r->to; d++) {
        const int64_t n = r->shape->dim[d];
        rule_add_dim(tensor, n == TRAMA_ANY ? open : whole_factor(rule, tensor, n));
        rule_dim *dim = &tensor->dim[tensor->ndim - 1];
        if (n == TRAMA_ANY && times > 1)
            dim->factor[dim->n++] = (signed char)whole_factor(rule, tensor, times);
    }
}

/* Runs with one open dim each, which known dims multiply or divide. */
static bool whole_open(trama_rule *rule, const run *in, const run *out)
{
    const int64_t n_in = count_known(in, in->from), n_out = count_known(out, out->from);
    const int open = rule_add_factor(rule, TRAMA_ANY);
    rule->factor[open].whole = true;
    open_dims(rule, &rule->tensor[0], in, open, n_out / n_in);
    open_dims(rule, result_of(rule), out, open, n_in / n_out);
    return true;
}

/* Runs with an open dim on one side and one or more on the other. By rows where the extents of the result's open dims
 * are told: of the first dim by the operand, of several by the operand `like`. */
static bool match_open(trama_rule *rule, const run *in, const run *out)
{
    const int64_t n_in = count_known(in, in->from), n_out = count_known(out, out->from);
    const int first = first_dim(out);
    if (!n_in || !n_out || (n_in % n_out && n_out % n_in))
        return false;
    if (rule->n_in == 2 || out->shape->dim[first] == TRAMA_ANY)
        return by_rows(rule, in, out);
    return count_fed(in->shape) == 1 && whole_open(rule, in, out);
}

static trama_shape reversed(const trama_shape *shape)
{
    trama_shape r = {.ndim = shape->ndim};
    for (int d = 0; d < r.ndim; d++)
        r.dim[d] = shape->dim[r.ndim - 1 - d];
    return r;
}

/* Each open dim stays, or all of a side take what runs of known dims before and behind them leave. */
static bool match_shapes(trama_rule *rule, const trama_shape *in, const trama_shape *out, int64_t rows)
{
    const trama_shape back_in = reversed(in), back_out = reversed(out);
    const trama_rule before = *rule;
    run x = {in, 0, 0}, y = {out, 0, 0}, behind_x = {&back_in, 0, 0}, behind_y = {&back_out, 0, 0};
    if (match_dims(rule, x, y, rows))
        return true;
    *rule = before;
    const int n_in = count_fed(in), n_out = count_fed(out);
    if (!n_in || !n_out || (n_in > 1 && n_out > 1) || (n_out > 1 && rule->n_in == 1))
        return false;
    while (next_runs(&x, &y))
        match_runs(rule, &x, &y, rows);
    while (next_runs(&behind_x, &behind_y))
        ;
    const run open_x = {in, x.to, in->ndim - behind_x.to}, open_y = {out, y.to, out->ndim - behind_y.to};
    return match_open(rule, &open_x, &open_y) &&
           match_dims(rule, (run){in, 0, open_x.to}, (run){out, 0, open_y.to}, rows);
}

/* Dims [from, to) of a shape; to: before the first cut behind `from`, or its end. */
static trama_shape next_part(const trama_shape *shape, int64_t cuts, int *from)
{
    trama_shape part = {0};
    do
        part.dim[part.ndim++] = shape->dim[(*from)++];
    while (*from < shape->ndim && !(cuts >> *from & 1));
    return part;
}

/* The parts between cuts, each for itself. */
bool reshape_match(trama_rule *rule, const trama_shape *in, const trama_shape *out, const trama_attributes *a)
{
    const int64_t cuts = a->integer[RESHAPE_CUTS];
    bool fits = true;
    if (!cuts)
        return match_shapes(rule, in, out, a->integer[RESHAPE_ROWS]);
    int i = 0, o = 0;
    while (fits && i < in->ndim && o < out->ndim) {
        const trama_shape x = next_part(in, cuts, &i), y = next_part(out, cuts >> TRAMA_MAX_NDIM, &o);
        fits = match_shapes(rule, &x, &y, a->integer[RESHAPE_ROWS]);
    }
    return fits && i == in->ndim && o == out->ndim;
}

void reshape_whole(trama_rule *rule, const trama_shape *in, const trama_shape *out)
{
    whole_dims(rule, &rule->tensor[0], &(run){in, 0, in->ndim});
    whole_dims(rule, result_of(rule), &(run){out, 0, out->ndim});
}

void reshape_add_like(trama_rule *rule, const trama_shape *like, const trama_shape *out)
{
    rule_tensor *tensor = &rule->tensor[1];
    for (int d = 0, o = 0; d < like->ndim; d++)
        if (like->dim[d] != TRAMA_ANY) {
            rule_add_dim(tensor, whole_factor(rule, tensor, like->dim[d]));
        } else {
            while (out->dim[o] != TRAMA_ANY)
                o++;
            tensor->dim[tensor->ndim++] = result_of(rule)->dim[o++];
        }
}
