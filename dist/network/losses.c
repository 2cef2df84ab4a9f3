/* SPDX-License-Identifier: Apache-2.0 */
/* Losses, of ops that leave split classes where they are. */
#include <math.h>

#include "families.h"
#include "trama_array.h"
#include "trama_composed.h"
#include "trama_network.h"

/* The losses `each` in the form asked for; a mean divides by `count`, or by their number if that is NULL. */
static trama_value *in_form(trama_where where, trama_value *each, trama_value *count, trama_loss_form form)
{
    if (!each)
        return NULL;
    switch (form) {
    case TRAMA_LOSS_EACH:
        return each;
    case TRAMA_LOSS_SUM:
        return trama_sum_at(where, each, 0, NULL, false);
    case TRAMA_LOSS_MEAN:
        return count ? trama_div_at(where, trama_sum_at(where, each, 0, NULL, false), count)
                     : trama_mean_at(where, each, 0, NULL, false);
    default:
        return program_fail(each->program, where, TRAMA_E_ARGUMENT, "a loss: form %d is no trama_loss_form", (int)form);
    }
}

/* ---- Of classes ---- */

typedef struct classes {
    trama_where where;
    trama_value *x, *weights; /* logits or their logarithms; weights may be NULL */
    int dim;
    trama_value *label,
        *kept; /* in the shape of x without dim: the labels, 0 where ignored, and whether they are not */
} classes;

static bool find_classes(classes *c, const char *name, trama_value *labels, int64_t ignored)
{
    trama_value *x = c->x;
    const int ndim = x->shape.ndim, dim = c->dim < 0 ? c->dim + ndim : c->dim;
    bool fits = dim >= 0 && dim < ndim && labels->shape.ndim == ndim - 1 && x->shape.dim[dim] != TRAMA_ANY;
    for (int d = 0; fits && d < ndim; d++)
        fits = d == dim || labels->shape.dim[d - (d > dim)] == x->shape.dim[d];
    if (!fits || (c->weights && (c->weights->shape.ndim != 1 || c->weights->shape.dim[0] != x->shape.dim[dim]))) {
        text t = {0};
        value_text(&t, x);
        text_add(&t, ", labels ");
        value_text(&t, labels);
        program_fail(
            x->program, c->where, TRAMA_E_SHAPE,
            "%s of %s along dim %d: labels have the dims of the logits without that of the classes, whose number "
            "is known, and weights are a vector of one for each class",
            name, t.at, c->dim);
        free(t.at);
        return false;
    }
    if (!trama_dtype_is_float(x->dtype) || !trama_dtype_is_integer(labels->dtype))
        return program_fail(x->program, c->where, TRAMA_E_DTYPE, "%s takes floats and integer labels, not %s and %s",
                            name, trama_dtype_name(x->dtype), trama_dtype_name(labels->dtype)),
               false;
    c->dim = dim;
    trama_value *label = trama_cast_at(c->where, labels, TRAMA_I64);
    c->kept = trama_not_equal_at(c->where, label, scalar_like(c->where, label, (double)ignored));
    trama_value *negative = trama_less_at(c->where, label, scalar_like(c->where, label, 0));
    /* An index from the end would be a class, a label is none. */
    label = trama_select_at(c->where, negative, scalar_like(c->where, label, (double)x->shape.dim[dim]), label);
    c->label = trama_select_at(c->where, c->kept, label, scalar_like(c->where, label, 0));
    return c->label != NULL;
}

/* x at the label of each sample */
static trama_value *picked(const classes *c)
{
    trama_value *index = trama_unsqueeze_at(c->where, c->label, c->dim);
    return trama_squeeze_at(c->where, trama_gather_along_at(c->where, c->x, index, c->dim), c->dim);
}

static trama_value *weight_of_label(const classes *c)
{
    return c->weights ? trama_gather_at(c->where, c->weights, c->label, 0) : NULL;
}

/* The losses, 0 where ignored, and their weights for the mean. */
static trama_value *kept_losses(const classes *c, trama_value *each, trama_loss_form form)
{
    trama_value *zero = scalar_like(c->where, c->x, 0), *weight = weight_of_label(c);
    trama_value *one = weight ? weight : scalar_like(c->where, c->x, 1);
    trama_value *count = form == TRAMA_LOSS_MEAN
                             ? trama_sum_at(c->where, trama_select_at(c->where, c->kept, one, zero), 0, NULL, false)
                             : NULL;
    return in_form(c->where, trama_select_at(c->where, c->kept, each, zero), count, form);
}

trama_value *trama_nll_loss_at(trama_where where, trama_value *log_p, trama_value *labels, int dim,
                               trama_value *weights, int64_t ignored, trama_loss_form form)
{
    classes c = {.where = where, .x = log_p, .weights = weights, .dim = dim};
    if (!log_p || !labels || !find_classes(&c, "nll_loss", labels, ignored))
        return NULL;
    trama_value *each = trama_neg_at(where, picked(&c)), *weight = weight_of_label(&c);
    return kept_losses(&c, weight ? trama_mul_at(where, each, weight) : each, form);
}

/* The sum over classes of w (log-sum-exp - z), divided by their number. */
static trama_value *smoothed(const classes *c, trama_value *log_sum)
{
    const double number = (double)c->x->shape.dim[c->dim];
    if (!c->weights) {
        trama_value *mean = trama_mean_at(c->where, c->x, 1, &c->dim, false);
        return trama_sub_at(c->where, log_sum, mean);
    }
    trama_shape shape = {.ndim = c->x->shape.ndim - c->dim, .dim = {c->weights->shape.dim[0]}};
    for (int d = 1; d < shape.ndim; d++)
        shape.dim[d] = 1;
    trama_value *weighted = trama_mul_at(c->where, c->x, trama_reshape_at(c->where, c->weights, shape));
    trama_value *all = trama_sum_at(c->where, c->weights, 0, NULL, false);
    trama_value *sum = trama_sub_at(c->where, trama_mul_at(c->where, log_sum, all),
                                    trama_sum_at(c->where, weighted, 1, &c->dim, false));
    return trama_scale_at(c->where, sum, 1 / number);
}

trama_value *trama_cross_entropy_with_at(trama_where where, trama_value *z, trama_value *labels, int dim,
                                         trama_value *weights, int64_t ignored, double smoothing, trama_loss_form form)
{
    classes c = {.where = where, .x = z, .weights = weights, .dim = dim};
    if (!z || !labels)
        return NULL;
    if (!(smoothing >= 0 && smoothing <= 1))
        return program_fail(z->program, where, TRAMA_E_ARGUMENT, "cross_entropy of %s: smoothing %g; it is 0 to 1",
                            z->name, smoothing);
    if (!find_classes(&c, "cross_entropy", labels, ignored))
        return NULL;
    trama_value *log_sum = trama_log_sum_exp_at(where, z, 1, &c.dim, false);
    trama_value *each = trama_sub_at(where, log_sum, picked(&c)), *weight = weight_of_label(&c);
    each = weight ? trama_mul_at(where, each, weight) : each;
    if (smoothing > 0)
        each = trama_add_at(where, trama_scale_at(where, each, 1 - smoothing),
                            trama_scale_at(where, smoothed(&c, log_sum), smoothing));
    return kept_losses(&c, each, form);
}

/* The op reads labels of three types. */
trama_value *trama_cross_entropy_at(trama_where where, trama_value *z, trama_value *labels)
{
    if (!z || !labels)
        return NULL;
    if (z->shape.ndim != 2)
        return trama_cross_entropy_with_at(where, z, labels, -1, NULL, INT64_MIN, 0, TRAMA_LOSS_MEAN);
    const trama_dtype type = labels->dtype;
    if (trama_dtype_is_integer(type) && type != TRAMA_I64 && type != TRAMA_I32 && type != TRAMA_U8)
        labels = trama_cast_at(where, labels, TRAMA_I64);
    return apply2(where, &trama_op_cross_entropy, z, labels);
}

/* ---- The split forms of the op ---- */

/* i64 labels, n in place of those outside of 0 to n - 1 */
static trama_value *labels_within(trama_where where, trama_value *labels, int64_t n)
{
    trama_value *label = trama_cast_at(where, labels, TRAMA_I64);
    trama_value *out = trama_less_at(where, label, scalar_like(where, label, 0));
    return trama_select_at(where, out, scalar_like(where, label, (double)n), label);
}

void cross_entropy_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const trama_where where = node->where;
    const int64_t extent = node->in[0]->shape.dim[dim];
    if (extent == TRAMA_ANY)
        return;
    trama_value *z = widened(where, node->in[0]);
    trama_value *index = trama_unsqueeze_at(where, labels_within(where, node->in[1], extent), dim);
    trama_value *picked = trama_squeeze_at(where, trama_gather_along_at(where, z, index, dim), dim);
    trama_value *each = trama_sub_at(where, trama_log_sum_exp_at(where, z, 1, &dim, false), picked);
    out[0] = trama_cast_at(where, trama_mean_at(where, each, 0, NULL, false), node->out[0]->dtype);
}

/* Each row of softmax(z), less 1 at the label, times g / batch: NaN where the label is not there. */
void cross_entropy_grad_split_form(const trama_node *node, int dim, int64_t n, trama_value **out)
{
    const trama_where where = node->where;
    const int64_t extent = node->in[0]->shape.dim[dim];
    if (extent == TRAMA_ANY)
        return;
    trama_value *z = widened(where, node->in[0]), *g = widened(where, node->in[2]);
    trama_value *label = trama_unsqueeze_at(where, labels_within(where, node->in[1], extent), dim);
    trama_value *index = trama_arange_at(where, node->program, TRAMA_I64, extent, 0, 1);
    trama_value *there = trama_cast_at(where, trama_equal_at(where, label, index), z->dtype);
    trama_value *missing = trama_greater_equal_at(where, label, scalar_like(where, label, (double)extent));
    trama_value *share = trama_select_at(where, missing, scalar_like(where, g, NAN), g);
    trama_value *each = trama_cast_at(where, trama_equal_at(where, node->in[1], node->in[1]), z->dtype);
    share = trama_div_at(where, share, trama_sum_at(where, each, 0, NULL, false));
    trama_value *d = trama_mul_at(where, trama_sub_at(where, softmax_by_parts(where, z, dim), there), share);
    out[0] = trama_cast_at(where, d, node->out[0]->dtype);
}

/* ---- Of numbers ---- */

/* (1 - t) x + (1 + (w - 1) t) softplus(-x), whose exponents are never positive */
trama_value *trama_binary_cross_entropy_at(trama_where where, trama_value *x, trama_value *t, double positive_weight,
                                           trama_loss_form form)
{
    if (!is_real(where, "binary_cross_entropy", x) || !is_real(where, "binary_cross_entropy", t))
        return NULL;
    trama_value *rest = trama_mul_at(where, trama_affine_at(where, t, -1, 1), x);
    trama_value *soft = trama_softplus_at(where, trama_neg_at(where, x));
    if (positive_weight != 1)
        soft = trama_mul_at(where, trama_affine_at(where, t, positive_weight - 1, 1), soft);
    return in_form(where, trama_add_at(where, rest, soft), NULL, form);
}

trama_value *trama_square_loss_at(trama_where where, trama_value *x, trama_value *y, trama_loss_form form)
{
    if (!is_real(where, "square_loss", x) || !is_real(where, "square_loss", y))
        return NULL;
    return in_form(where, trama_square_at(where, trama_sub_at(where, x, y)), NULL, form);
}

trama_value *trama_absolute_loss_at(trama_where where, trama_value *x, trama_value *y, trama_loss_form form)
{
    return in_form(where, trama_abs_at(where, trama_sub_at(where, x, y)), NULL, form);
}

/* With c = e held to -delta .. delta it is c (e - c / 2). */
trama_value *trama_huber_loss_at(trama_where where, trama_value *x, trama_value *y, double delta, trama_loss_form form)
{
    if (!is_real(where, "huber_loss", x) || !is_real(where, "huber_loss", y))
        return NULL;
    trama_value *e = trama_sub_at(where, x, y);
    if (e && !(delta > 0))
        return program_fail(e->program, where, TRAMA_E_ARGUMENT, "huber_loss of %s: delta %g; it is above 0", x->name,
                            delta);
    trama_value *held = trama_clamp_at(where, e, -delta, delta);
    trama_value *less = trama_sub_at(where, e, trama_scale_at(where, held, 0.5));
    return in_form(where, trama_mul_at(where, held, less), NULL, form);
}
