/* SPDX-License-Identifier: Apache-2.0 */
/* Builders and gradients of the ops whose columns in ops.def define them. */
#include "families.h"
#include "trama_complex.h"

/* ---- Builders ---- */

#define UNARY(name, ...)                                                                                               \
    trama_value *trama_##name##_at(trama_where where, trama_value *x)                                                  \
    {                                                                                                                  \
        return apply1(where, &trama_op_##name, x);                                                                     \
    }
#define BINARY(name, ...)                                                                                              \
    trama_value *trama_##name##_at(trama_where where, trama_value *x, trama_value *y)                                  \
    {                                                                                                                  \
        return apply2(where, &trama_op_##name, x, y);                                                                  \
    }
#define COMPARISON(name, ...) BINARY(name, )
#define PREDICATE(name, ...) UNARY(name, )
#define UNARY_BITS(name, ...) UNARY(name, )
#define BINARY_BITS(name, ...) BINARY(name, )
#define REDUCTION(name, ...)                                                                                           \
    trama_value *trama_##name##_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim)           \
    {                                                                                                                  \
        return reduce_dims(where, &trama_op_##name, x, n, dims, keep_dim);                                             \
    }
#include "ops.def"

/* ---- The words of the gradient column ---- */

#define G d_out[0]
#define OPERAND node->in[0]
#define X conjugate(node, node->in[0])
#define Y conjugate(node, node->in[1])
#define Z conjugate(node, node->out[0])
#define ATTRIBUTE(slot) node->attributes->real[slot]
#define APPLY(op, x, y) apply2(node->where, &trama_op_##op, x, y)
#define APPLY_WITH(op, x, y)                                                                                           \
    program_append(NULL, node->where, &trama_op_##op, 2, (trama_value *[]){x, y}, node->attributes)
#define NEG(x) trama_neg_at(node->where, x)
#define RELU(x) trama_relu_at(node->where, x)
#define SIGMOID(x) trama_sigmoid_at(node->where, x)
#define SIN(x) trama_sin_at(node->where, x)
#define COS(x) trama_cos_at(node->where, x)
#define SINH(x) trama_sinh_at(node->where, x)
#define COSH(x) trama_cosh_at(node->where, x)
#define RSQRT(x) trama_rsqrt_at(node->where, x)
#define ABS(x) trama_abs_at(node->where, x)
#define SIGN(x) trama_sign_at(node->where, x)
#define SQUARE(x) trama_square_at(node->where, x)
#define EXP(x) trama_exp_at(node->where, x)
#define ADD(x, y) trama_add_at(node->where, x, y)
#define SUB(x, y) trama_sub_at(node->where, x, y)
#define MUL(x, y) trama_mul_at(node->where, x, y)
#define DIV(x, y) trama_div_at(node->where, x, y)
#define EQUAL(x, y) trama_equal_at(node->where, x, y)
#define SCALE(x, factor) trama_scale_at(node->where, x, factor)
#define AFFINE(factor, x, offset) trama_affine_at(node->where, x, factor, offset) /* factor x + offset */
#define DIV_SCALAR(x, number) trama_div_scalar_at(node->where, x, number)
#define CAST(x, like) trama_cast_at(node->where, x, (like)->dtype)
#define TANH(x) trama_tanh_at(node->where, x)
#define LOG(x) trama_log_at(node->where, x)
#define ZERO(x) scalar_like(node->where, x, 0)
/* Of op_grad(X, Y) = X f'(Y): G X f''(Y). */
#define SECOND(op) second_##op(node->where, MUL(G, X), Y)
#define SLOPE_OF_SLOPES(x, y) slope_of_slopes(node->where, x, y)       /* of x^y by x and y: x^(y - 1) (1 + y log x) */
#define WHERE_POSITIVE(x, a, b) where_positive(node->where, x, a, b)   /* a where x > 0, else b */
#define SHARE_WHERE_LARGER(x, y) share_where_larger(node->where, x, y) /* 1 where x > y, 0.5 where x is y, else 0 */

/* For reductions: x repeated to the shape of X; that divided by the repetitions; g for the elements equal to Z;
 * the products of the other elements. */
#define EXPAND(x) gradient_expand(node, x, false)
#define EXPAND_AVERAGE(x) gradient_expand(node, x, true)
#define SHARE(g) gradient_of_extremum(node, g)
#define PRODUCT_OF_OTHERS(x) gradient_product_of_others(node, x)

/* The gradient of a complex function is conj(f'(x)) times g, and all f here have conj(f'(x)) = f'(conj(x)). */
static trama_value *conjugate(const trama_node *node, trama_value *x)
{
    return trama_conj_at(node->where, x);
}

static trama_value *where_positive(trama_where where, trama_value *x, trama_value *a, trama_value *b)
{
    return trama_select_at(where, trama_greater_at(where, x, scalar_like(where, x, 0)), a, b);
}

/* ---- Second derivatives f''(x), times g ---- */

/* s (1 - s) (2 + x (1 - 2 s)), s the sigmoid */
static trama_value *second_silu(trama_where where, trama_value *g, trama_value *x)
{
    trama_value *s = trama_sigmoid_at(where, x);
    trama_value *factor = trama_mul_at(where, x, trama_affine_at(where, s, -2, 1));
    trama_value *scaled = trama_mul_at(where, g, trama_affine_at(where, factor, 1, 2));
    return apply2(where, &trama_op_sigmoid_grad, scaled, s);
}

/* s (1 - t^2) (2 + x (1 - s - 2 t s)), s the sigmoid, t = tanh(softplus(x)) */
static trama_value *second_mish(trama_where where, trama_value *g, trama_value *x)
{
    trama_value *s = trama_sigmoid_at(where, x), *t = trama_tanh_at(where, trama_softplus_at(where, x));
    trama_value *both = trama_mul_at(where, s, trama_affine_at(where, t, 2, 1)); /* s + 2 t s */
    trama_value *factor = trama_mul_at(where, x, trama_affine_at(where, both, -1, 1));
    trama_value *scaled = trama_mul_at(where, trama_mul_at(where, g, s), trama_affine_at(where, factor, 1, 2));
    return apply2(where, &trama_op_tanh_grad, scaled, t);
}

/* (2 - x^2) e^(-x^2 / 2) / sqrt(2 pi) */
static trama_value *second_gelu(trama_where where, trama_value *g, trama_value *x)
{
    trama_value *square = trama_square_at(where, x);
    trama_value *bell =
        trama_scale_at(where, trama_exp_at(where, trama_scale_at(where, square, -0.5)), 0.3989422804014327);
    return trama_mul_at(where, trama_mul_at(where, g, bell), trama_affine_at(where, square, -1, 2));
}

/* (1 - t^2) (u' + x (u'' / 2 - t u'^2)), t = tanh(u), u = c (x + a x^3), c = sqrt(2 / pi), a = 0.044715 */
static trama_value *second_gelu_tanh(trama_where where, trama_value *g, trama_value *x)
{
    const double c = 0.7978845608028654, a = 0.044715;
    trama_value *square = trama_square_at(where, x);
    trama_value *t = trama_tanh_at(where, trama_mul_at(where, x, trama_affine_at(where, square, c * a, c)));
    trama_value *slope = trama_affine_at(where, square, 3 * c * a, c);
    trama_value *bend =
        trama_sub_at(where, trama_scale_at(where, x, 3 * c * a), trama_mul_at(where, t, trama_square_at(where, slope)));
    trama_value *sum = trama_add_at(where, slope, trama_mul_at(where, x, bend));
    return apply2(where, &trama_op_tanh_grad, trama_mul_at(where, g, sum), t);
}

static trama_value *slope_of_slopes(trama_where where, trama_value *x, trama_value *y)
{
    trama_value *less = trama_affine_at(where, y, 1, -1);
    return trama_add_at(where, trama_pow_at(where, x, less),
                        trama_mul_at(where, y, apply2(where, &trama_op_pow_slope_y, x, less)));
}

static trama_value *share_where_larger(trama_where where, trama_value *x, trama_value *y)
{
    trama_value *larger = trama_cast_at(where, trama_greater_at(where, x, y), x->dtype),
                *as_large = trama_cast_at(where, trama_greater_equal_at(where, x, y), x->dtype);
    return trama_scale_at(where, trama_add_at(where, larger, as_large), 0.5);
}

/* ---- Gradients ---- */

static void set(const trama_node *node, trama_value **d_in, int i, trama_value *d)
{
    d_in[i] = gradient_unbroadcast(d, node->in[i]);
}

#define BODY_NONE ;
#define BODY_DX(dx)                                                                                                    \
    {                                                                                                                  \
        set(node, d_in, 0, dx);                                                                                        \
    }
#define BODY_DX_DY(dx, dy)                                                                                             \
    {                                                                                                                  \
        if (node_wants(node, 0))                                                                                       \
            set(node, d_in, 0, dx);                                                                                    \
        if (node_wants(node, 1))                                                                                       \
            set(node, d_in, 1, dy);                                                                                    \
    }
#define BODY_DX_THEN_DY(dx, dy)                                                                                        \
    {                                                                                                                  \
        trama_value *D = dx;                                                                                           \
        if (node_wants(node, 0))                                                                                       \
            set(node, d_in, 0, D);                                                                                     \
        if (node_wants(node, 1))                                                                                       \
            set(node, d_in, 1, dy);                                                                                    \
    }
#define FUNCTION(name, gradient)                                                                                       \
    void name##_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in) BODY_##gradient

#define POINTWISE(form, name, types, partial, attributes, flops, formula, gradient, ...) FUNCTION(name, gradient)
#define REDUCTION(name, dtype, partial, infer, flops, domain, gradient, ...) FUNCTION(name, gradient)
#include "ops.def"
