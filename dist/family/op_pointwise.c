/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise ops with attributes: builders, rules, element types. ops.def defines the others. */
#include <math.h>

#include "families.h"
#include "trama_complex.h"

trama_value *trama_stop_gradient_at(trama_where where, trama_value *x)
{
    return apply1(where, &trama_op_stop_gradient, x);
}

trama_value *trama_scale_at(trama_where where, trama_value *x, double factor)
{
    trama_attributes a = {.real = {[SCALE_FACTOR] = factor}};
    return program_append(NULL, where, &trama_op_scale, 1, &x, &a);
}

trama_value *trama_affine_at(trama_where where, trama_value *x, double factor, double offset)
{
    trama_attributes a = {.real = {[SCALE_FACTOR] = factor, [AFFINE_OFFSET] = offset}};
    return program_append(NULL, where, &trama_op_affine, 1, &x, &a);
}

trama_value *trama_div_scalar_at(trama_where where, trama_value *x, double number)
{
    trama_attributes a = {.real = {[SCALAR_NUMBER] = number}};
    return program_append(NULL, where, &trama_op_div_scalar, 1, &x, &a);
}

trama_value *trama_scalar_div_at(trama_where where, double number, trama_value *x)
{
    trama_attributes a = {.real = {[SCALAR_NUMBER] = number}};
    return program_append(NULL, where, &trama_op_scalar_div, 1, &x, &a);
}

trama_value *trama_clamp_at(trama_where where, trama_value *x, double low, double high)
{
    trama_attributes a = {.real = {[CLAMP_LOW] = low, [CLAMP_HIGH] = high}};
    if (x && !(low <= high))
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "clamp of %s: %g to %g is no range", x->name, low,
                            high);
    return program_append(NULL, where, &trama_op_clamp, 1, &x, &a);
}

trama_value *trama_elu_at(trama_where where, trama_value *x, double alpha)
{
    trama_attributes a = {.real = {[ELU_ALPHA] = alpha}};
    return program_append(NULL, where, &trama_op_elu, 1, &x, &a);
}

trama_value *trama_celu_at(trama_where where, trama_value *x, double alpha)
{
    trama_attributes a = {.real = {[ELU_ALPHA] = alpha}};
    if (x && alpha == 0)
        return program_fail(x->program, where, TRAMA_E_ARGUMENT, "celu of %s: alpha is 0, and x is divided by it",
                            x->name);
    return program_append(NULL, where, &trama_op_celu, 1, &x, &a);
}

trama_value *trama_leaky_relu_at(trama_where where, trama_value *x, double slope)
{
    trama_attributes a = {.real = {[RELU_SLOPE] = slope}};
    return program_append(NULL, where, &trama_op_leaky_relu, 1, &x, &a);
}

trama_value *trama_select_at(trama_where where, trama_value *condition, trama_value *x, trama_value *y)
{
    trama_value *in[] = {condition ? trama_cast_at(where, condition, TRAMA_BOOL) : NULL, x, y};
    return program_append(NULL, where, &trama_op_select, 3, in, NULL);
}

trama_value *scalar_like(trama_where where, trama_value *x, double number)
{
    return x ? trama_fill_at(where, x->program, x->dtype, TRAMA_SCALAR, number) : NULL;
}

trama_value *trama_masked_fill_at(trama_where where, trama_value *x, trama_value *mask, double number)
{
    return trama_select_at(where, mask, scalar_like(where, x, number), x);
}

trama_value *trama_clip_at(trama_where where, trama_value *x, trama_value *low, trama_value *high)
{
    if (!is_real(where, "clip", x))
        return NULL;
    trama_value *above = low ? trama_maximum_at(where, x, low) : x;
    return high ? trama_minimum_at(where, above, high) : above;
}

trama_value *trama_cast_at(trama_where where, trama_value *x, trama_dtype dtype)
{
    if (x && x->dtype == dtype)
        return x;
    trama_attributes a = {.integer = {[CAST_DTYPE] = dtype}};
    return program_append(NULL, where, &trama_op_cast, 1, &x, &a);
}

/* ---- Rules and element types ---- */

static unsigned pass_of_factor(double factor)
{
    return PASS_LINEAR | (factor > 0 ? PASS_MONOTONE : factor < 0 ? PASS_MONOTONE | PASS_FALLING : 0);
}

trama_status scale_infer(trama_rule *rule, const trama_node *node)
{
    trama_status status = rule_parse(rule, "...->...", node);
    if (is_complex(node->in[0]))
        rule->tensor[0].pass = PASS_LINEAR;
    else if (trama_dtype_is_float(node->in[0]->dtype))
        rule->tensor[0].pass = pass_of_factor(node->attributes->real[SCALE_FACTOR]);
    return status;
}

/* Terms of a sum do not pass a nonzero offset: each term would add it. */
trama_status affine_infer(trama_rule *rule, const trama_node *node)
{
    trama_status status = rule_parse(rule, "...->...", node);
    rule->tensor[0].pass = pass_of_factor(node->attributes->real[SCALE_FACTOR]);
    if (node->attributes->real[AFFINE_OFFSET] != 0)
        rule->tensor[0].pass &= ~(1u << TRAMA_SUM);
    return status;
}

/* Terms of a sum pass the quotient of floats; integers are truncated. */
trama_status div_infer(trama_rule *rule, const trama_node *node)
{
    trama_status status = rule_parse(rule, "...,...->...", node);
    if (trama_dtype_is_float(dtype_part(node->in[0]->dtype)))
        rule->tensor[0].pass = PASS_LINEAR;
    return status;
}

/* Like a scale by the inverse. Nothing passes a division by 0: terms may become infinite where their sum does not. */
trama_status div_scalar_infer(trama_rule *rule, const trama_node *node)
{
    trama_status status = scale_infer(rule, node);
    if (node->attributes->real[SCALAR_NUMBER] == 0)
        rule->tensor[0].pass = 0;
    return status;
}

/* Whether a number is an integer below 2^53, up to which doubles have all integers. */
static bool is_integer(double number)
{
    return fabs(number) < 0x1p53 && number == nearbyint(number);
}

trama_status affine_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *x = node->in[0];
    const double factor = node->attributes->real[SCALE_FACTOR], offset = node->attributes->real[AFFINE_OFFSET];
    if (!trama_dtype_is_float(dtype_part(x->dtype)) && !(is_integer(factor) && is_integer(offset)))
        return trama_fail(
            node->where, TRAMA_E_DTYPE,
            "affine of %s: %g times it plus %g is not of its type, %s, as they are no integers below 2^53; "
            "cast it to a float type",
            x->name, factor, offset, trama_dtype_name(x->dtype));
    *dtype = x->dtype;
    return TRAMA_OK;
}

/* Whether `to` represents every number of `from`, both floats or parts of complex numbers; bf16 and f16 do not
 * represent each other. */
static bool holds(trama_dtype to, trama_dtype from)
{
    to = dtype_part(to);
    from = dtype_part(from);
    return to == from || trama_dtype_size(to) > trama_dtype_size(from);
}

/* Terms may be cast before the sum only if the cast is exact. */
trama_status cast_infer(trama_rule *rule, const trama_node *node)
{
    trama_status status = rule_parse(rule, "...->...", node);
    trama_dtype from = node->in[0]->dtype, to = (trama_dtype)node->attributes->integer[CAST_DTYPE];
    if (trama_dtype_is_float(from) && trama_dtype_is_float(to))
        rule->tensor[0].pass = holds(to, from) ? PASS_ANY : PASS_MONOTONE;
    else if (trama_dtype_is_float(dtype_part(from)) && trama_dtype_is_float(dtype_part(to)))
        rule->tensor[0].pass = holds(to, from) ? PASS_LINEAR : 0;
    return status;
}

trama_status cast_dtype(const trama_node *node, trama_dtype *dtype)
{
    int64_t to = node->attributes->integer[CAST_DTYPE];
    if (to < 0 || to >= TRAMA_N_DTYPES)
        return trama_fail(node->where, TRAMA_E_DTYPE, "cast of %s: %lld is no element type", node->in[0]->name,
                          (long long)to);
    if (is_complex(node->in[0]) && trama_dtype_kind_of((trama_dtype)to) != TRAMA_KIND_COMPLEX)
        return trama_fail(node->where, TRAMA_E_DTYPE,
                          "cast of %s: %s is no complex type, and a cast drops no imaginary part: take trama_real, "
                          "trama_imag or trama_abs",
                          node->in[0]->name, trama_dtype_name((trama_dtype)to));
    *dtype = (trama_dtype)to;
    return TRAMA_OK;
}

trama_status comparison_dtype(const trama_node *node, trama_dtype *dtype)
{
    trama_status status = node_same_dtype(node, dtype);
    *dtype = TRAMA_BOOL;
    return status;
}

trama_status select_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_value *c = node->in[0], *x = node->in[1], *y = node->in[2];
    *dtype = x->dtype;
    if (c->dtype != TRAMA_BOOL)
        return trama_fail(node->where, TRAMA_E_DTYPE, "%s: the condition %s is %s: cast it to bool", node->op->name,
                          c->name, trama_dtype_name(c->dtype));
    return x->dtype == y->dtype
               ? TRAMA_OK
               : trama_fail(node->where, TRAMA_E_DTYPE, "%s of %s (%s) and %s (%s): cast one of them", node->op->name,
                            x->name, trama_dtype_name(x->dtype), y->name, trama_dtype_name(y->dtype));
}

/* ---- Gradients of broadcast operands: summed over the repetitions ---- */

trama_value *gradient_unbroadcast(trama_value *d, trama_value *operand)
{
    if (!d)
        return NULL;
    trama_shape have = d->shape, want = operand->shape;
    int extra = have.ndim - want.ndim, leading[TRAMA_MAX_NDIM], repeated[TRAMA_MAX_NDIM], n = 0;
    for (int i = 0; i < extra; i++)
        leading[i] = i;
    for (int i = 0; i < want.ndim; i++)
        if (want.dim[i] == 1 && have.dim[i + extra] != 1)
            repeated[n++] = i;
    if (extra > 0)
        d = trama_sum_at(operand->where, d, extra, leading, false);
    return n ? trama_sum_at(operand->where, d, n, repeated, true) : d;
}

void select_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *zero = scalar_like(node->where, d_out[0], 0);
    if (node_wants(node, 1))
        d_in[1] = gradient_unbroadcast(trama_select_at(node->where, node->in[0], d_out[0], zero), node->in[1]);
    if (node_wants(node, 2))
        d_in[2] = gradient_unbroadcast(trama_select_at(node->where, node->in[0], zero, d_out[0]), node->in[2]);
}

/* The imaginary part of a real operand is 0, whatever the gradient of the result says. */
void cast_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_value *d = is_complex(node->in[0]) ? d_out[0] : trama_real_at(node->where, d_out[0]);
    d_in[0] = trama_cast_at(node->where, d, node->in[0]->dtype);
}
