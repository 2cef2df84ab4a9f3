/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, and the ops that their gradients need. */
#include "ops.h"
#include "windows.h"

enum { SPACE = 2 };

/* ---- Rule ---- */

/* The tensors of an op, operands and then results, that have the elements of windows and those that have the windows.
 */
static void tensors_of(const trama_node *node, unsigned *wide, unsigned *narrow)
{
    const trama_op *op = node->op;
    const bool spreads = op == &trama_op_sum_unpool || op == &trama_op_max_unpool;
    const unsigned all = (1u << (op->n_in + op->n_out)) - 1;
    *wide = spreads ? 1u << op->n_in : 1;
    *narrow = all & ~*wide;
}

trama_status pool_infer(trama_rule *rule, const trama_node *node)
{
    const trama_shape *first = &node->in[0]->shape;
    unsigned wide, narrow;
    trama_status status = windows_check(node, first->ndim);
    tensors_of(node, &wide, &narrow);
    for (int t = 0; t < node->op->n_in && !status; t++) {
        const trama_shape *shape = &node->in[t]->shape;
        if (shape->ndim != first->ndim || shape->dim[0] != first->dim[0] || shape->dim[1] != first->dim[1])
            status = trama_fail(node->where, TRAMA_E_SHAPE, "%s: the shapes of %s and %s do not fit", node->op->name,
                                node->in[0]->name, node->in[t]->name);
    }
    for (int d = 0; d < 2 && !status; d++) {
        const int f = rule_add_factor(rule, first->dim[d]);
        for (int t = 0; t < rule->n_in + rule->n_out; t++)
            rule_add_dim(&rule->tensor[t], f);
    }
    for (int d = 0; d < first->ndim - SPACE && !status; d++) {
        const int64_t kernel = node->attributes->integer[POOL_KERNEL + d];
        if (kernel < 1 || kernel > INT64_C(1) << 30)
            return trama_fail(node->where, TRAMA_E_SHAPE, "%s of %s: the kernel needs 1 to 2^30 elements",
                              node->op->name, node->in[0]->name);
        windows_add_dim(rule, node, d, window_of(node->attributes, d, kernel), wide, narrow);
    }
    return status;
}

/* ---- Gradients ---- */

void pool_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const trama_op *op = node->op;
    trama_value *x = node->in[0], *g = d_out[0];
    if (!g) /* indices have none */
        return;
    d_in[0] = op == &trama_op_max_pool      ? windows_apply(node, &trama_op_max_unpool, g, node->out[1], x)
              : op == &trama_op_max_pool_at ? windows_apply(node, &trama_op_max_unpool, g, node->in[1], x)
              : op == &trama_op_max_unpool  ? windows_apply(node, &trama_op_max_pool_at, g, node->in[1], x)
              : op == &trama_op_sum_pool    ? windows_apply(node, &trama_op_sum_unpool, g, NULL, x)
                                            : windows_apply(node, &trama_op_sum_pool, g, NULL, x);
}

/* ---- Element types ---- */

trama_status unpool_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *x = node->in[0];
    if (!trama_dtype_is_float(x->dtype))
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s takes floats; %s is %s: cast it", node->op->name, x->name,
                          trama_dtype_name(x->dtype));
    return index_dtype(node, dtype);
}

/* ---- Builders ---- */

static trama_value *append(trama_where where, const trama_op *op, trama_value *x, const trama_windows *w)
{
    trama_attributes a = {0};
    int64_t extent[TRAMA_SPATIAL_DIMS] = {0};
    const int spatial = x->shape.ndim - SPACE;
    for (int d = 0; d < spatial; d++) {
        extent[d] = windows_count(w, d, x->shape.dim[SPACE + d]);
        a.integer[POOL_KERNEL + d] = w->kernel[d];
    }
    windows_write(w, spatial, extent, &a);
    return program_append(NULL, where, op, 1, &x, &a);
}

/* Whether window i along spatial dim d has an element of x; *all: all of its elements are. */
static bool has_element(const trama_windows *w, int d, int64_t n, int64_t i, bool *all)
{
    const int64_t first = i * w->stride[d] - w->before[d], last = first + w->dilation[d] * (w->kernel[d] - 1);
    const int64_t inside = first >= 0 ? first : first + (-first + w->dilation[d] - 1) / w->dilation[d] * w->dilation[d];
    *all = first >= 0 && last < n;
    return inside <= last && inside < n;
}

/* Whether all windows have an element of x; *all: all their elements are. The first window and the last one tell,
 * unless those that begin before x step over it. */
static bool have_elements(const trama_windows *w, const trama_value *x, int *d, bool *all)
{
    *all = true;
    for (*d = 0; *d < x->shape.ndim - SPACE; ++*d) {
        const int64_t n = x->shape.dim[SPACE + *d], windows = windows_count(w, *d, n);
        for (int64_t i = 0; i < windows; i++) {
            bool whole, steps_over = i * w->stride[*d] < w->before[*d] && n < w->dilation[*d];
            if (!has_element(w, *d, n, i, &whole))
                return false;
            *all &= whole;
            i = steps_over || i == windows - 1 ? i : windows - 2;
        }
    }
    return true;
}

static bool read_pool(trama_where where, const char *call, trama_value *x, const trama_windows *windows,
                      trama_windows *w, bool *all)
{
    int d;
    if (!x || !windows_read(where, call, x, NULL, windows, w))
        return false;
    if (have_elements(w, x, &d, all))
        return true;
    program_fail(x->program, where, TRAMA_E_ARGUMENT,
                 "%s of %s, spatial dim %d: a window lies beyond the elements: before or after is too large", call,
                 x->name, d);
    return false;
}

trama_value *trama_max_pool_at(trama_where where, trama_value *x, const trama_windows *windows)
{
    trama_windows w;
    bool all;
    return read_pool(where, "max_pool", x, windows, &w, &all) ? append(where, &trama_op_max_pool, x, &w) : NULL;
}

trama_value *trama_sum_pool_at(trama_where where, trama_value *x, const trama_windows *windows)
{
    trama_windows w;
    return x && windows_read(where, "sum_pool", x, NULL, windows, &w) ? append(where, &trama_op_sum_pool, x, &w) : NULL;
}

/* The number of elements that each window counts, [1, 1, windows ..]. */
static trama_value *counts(trama_where where, trama_value *x, trama_windows w)
{
    trama_shape shape = x->shape;
    shape.dim[0] = shape.dim[1] = 1;
    const int spatial = shape.ndim - SPACE;
    trama_windows counting = w;
    for (int d = 0; d < spatial && w.padded; d++) {
        shape.dim[SPACE + d] += w.before[d] + w.after[d];
        counting.before[d] = counting.after[d] = 0;
    }
    trama_value *ones = trama_fill_at(where, x->program, x->dtype, shape, 1);
    return ones ? pattern_for(where, append(where, &trama_op_sum_pool, ones, &counting), x) : NULL;
}

trama_value *trama_mean_pool_at(trama_where where, trama_value *x, const trama_windows *windows)
{
    trama_windows w;
    bool all;
    if (!is_real(where, "mean_pool", x) || !read_pool(where, "mean_pool", x, windows, &w, &all))
        return NULL;
    trama_value *sum = append(where, &trama_op_sum_pool, x, &w);
    double elements = 1;
    for (int d = 0; d < x->shape.ndim - SPACE; d++)
        elements *= (double)w.kernel[d];
    if (all || (w.padded && !w.up))
        return trama_scale_at(where, sum, 1 / elements);
    return trama_div_at(where, sum, counts(where, x, w));
}
