/* SPDX-License-Identifier: Apache-2.0 */
/* The builders of ops. Each appends an op to the program of its operands and returns the result; see trama_program.h
 * for errors. Shapes are global. "broadcast" aligns dims at the right and repeats extents of 1; TRAMA_ANY never
 * broadcasts. */
#ifndef TRAMA_OPS_H
#define TRAMA_OPS_H

#include "trama_op.h"
#include "trama_program.h"

TRAMA_API_BEGIN

/* Matrix product: x [..., m, k], y [..., k, n] -> [..., m, n]; the leading dims broadcast. With trans_x, x is
 * [..., k, m]; with trans_y, y is [..., n, k]. Vectors are not transposed: x [k], y [..., k, n] -> [..., n];
 * x [..., m, k], y [k] -> [..., m]; x [k], y [k] -> the dot product, a scalar. E_SHAPE where the extents k differ. */
#define trama_matmul(x, y) trama_matmul_at(TRAMA_HERE, x, y, false, false)
#define trama_matmul_trans(x, y, trans_x, trans_y) trama_matmul_at(TRAMA_HERE, x, y, trans_x, trans_y)
trama_value *trama_matmul_at(trama_where where, trama_value *x, trama_value *y, bool trans_x, bool trans_y);

/* The pointwise ops of two operands. */
#define TRAMA_BINARY_OPS(X)                                                                                            \
    X(add)                                                                                                             \
    X(sub) X(mul) X(div) X(maximum) X(minimum) X(pow) X(mod) X(fmod) X(floor_div) X(atan2) X(hypot) X(copysign)        \
        X(prelu) X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(left_shift) X(right_shift) X(equal) X(not_equal)        \
            X(less) X(less_equal) X(greater) X(greater_equal) X(logical_and) X(logical_or) X(logical_xor)
/* The pointwise ops of one operand. */
#define TRAMA_UNARY_OPS(X)                                                                                             \
    X(neg)                                                                                                             \
    X(abs) X(sign) X(square) X(sqrt) X(exp) X(log) X(relu) X(gelu) X(tanh) X(sigmoid) X(stop_gradient) X(rsqrt)        \
        X(reciprocal) X(floor) X(ceil) X(round) X(trunc) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh)  \
            X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(exp2) X(expm1) X(log1p) X(log2) X(log10) X(cbrt) X(silu)       \
                X(softplus) X(softsign) X(mish) X(gelu_tanh) X(hard_sigmoid) X(hard_swish) X(selu) X(logical_not)      \
                    X(isnan) X(isinf) X(isfinite) X(bitwise_not)
#define TRAMA_DECLARE_BINARY(name) trama_value *trama_##name##_at(trama_where where, trama_value *x, trama_value *y);
#define TRAMA_DECLARE_UNARY(name) trama_value *trama_##name##_at(trama_where where, trama_value *x);
TRAMA_BINARY_OPS(TRAMA_DECLARE_BINARY)
TRAMA_UNARY_OPS(TRAMA_DECLARE_UNARY)
#undef TRAMA_DECLARE_BINARY
#undef TRAMA_DECLARE_UNARY

/* Pointwise ops of two operands of one dtype, which broadcast. Integers wrap around; their quotients are truncated, and
 * those by 0 are 0. atan2, hypot, copysign and prelu take floats; bit operations take integers, the first three bool,
 * too: */
#define trama_add(x, y) trama_add_at(TRAMA_HERE, x, y)                 /* x + y */
#define trama_sub(x, y) trama_sub_at(TRAMA_HERE, x, y)                 /* x - y */
#define trama_mul(x, y) trama_mul_at(TRAMA_HERE, x, y)                 /* x y */
#define trama_div(x, y) trama_div_at(TRAMA_HERE, x, y)                 /* x / y */
#define trama_maximum(x, y) trama_maximum_at(TRAMA_HERE, x, y)         /* the larger of x and y; NaN if one is */
#define trama_minimum(x, y) trama_minimum_at(TRAMA_HERE, x, y)         /* the smaller of x and y; NaN if one is */
#define trama_pow(x, y) trama_pow_at(TRAMA_HERE, x, y)                 /* x^y; integers wrap, and x^-1 is truncated */
#define trama_mod(x, y) trama_mod_at(TRAMA_HERE, x, y)                 /* x - y floor(x / y), which has the sign of y */
#define trama_fmod(x, y) trama_fmod_at(TRAMA_HERE, x, y)               /* x - y trunc(x / y), which has the sign of x */
#define trama_floor_div(x, y) trama_floor_div_at(TRAMA_HERE, x, y)     /* floor(x / y); integers by 0 give 0 */
#define trama_atan2(x, y) trama_atan2_at(TRAMA_HERE, x, y)             /* the angle of the point (y, x) */
#define trama_hypot(x, y) trama_hypot_at(TRAMA_HERE, x, y)             /* sqrt(x^2 + y^2) */
#define trama_copysign(x, y) trama_copysign_at(TRAMA_HERE, x, y)       /* |x| with the sign of y */
#define trama_prelu(x, y) trama_prelu_at(TRAMA_HERE, x, y)             /* x where x > 0, else y x */
#define trama_bitwise_and(x, y) trama_bitwise_and_at(TRAMA_HERE, x, y) /* x & y */
#define trama_bitwise_or(x, y) trama_bitwise_or_at(TRAMA_HERE, x, y)   /* x | y */
#define trama_bitwise_xor(x, y) trama_bitwise_xor_at(TRAMA_HERE, x, y) /* x ^ y */
#define trama_left_shift(x, y) trama_left_shift_at(TRAMA_HERE, x, y)   /* x << y */
#define trama_right_shift(x, y) trama_right_shift_at(TRAMA_HERE, x, y) /* x >> y; of signed x with its sign */

/* Comparisons and logic of two operands of one dtype, which broadcast, to bool: */
#define trama_equal(x, y) trama_equal_at(TRAMA_HERE, x, y)                 /* x == y */
#define trama_not_equal(x, y) trama_not_equal_at(TRAMA_HERE, x, y)         /* x != y */
#define trama_less(x, y) trama_less_at(TRAMA_HERE, x, y)                   /* x < y */
#define trama_less_equal(x, y) trama_less_equal_at(TRAMA_HERE, x, y)       /* x <= y */
#define trama_greater(x, y) trama_greater_at(TRAMA_HERE, x, y)             /* x > y */
#define trama_greater_equal(x, y) trama_greater_equal_at(TRAMA_HERE, x, y) /* x >= y */
#define trama_logical_and(x, y) trama_logical_and_at(TRAMA_HERE, x, y)     /* x != 0 and y != 0 */
#define trama_logical_or(x, y) trama_logical_or_at(TRAMA_HERE, x, y)       /* x != 0 or y != 0 */
#define trama_logical_xor(x, y) trama_logical_xor_at(TRAMA_HERE, x, y)     /* (x != 0) != (y != 0) */

/* Pointwise ops of one operand. All but neg, abs, sign, square, relu and stop_gradient take floats; gelu_tanh has
 * Phi(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: */
#define trama_neg(x) trama_neg_at(TRAMA_HERE, x)                     /* -x */
#define trama_abs(x) trama_abs_at(TRAMA_HERE, x)                     /* |x|; of complex x real */
#define trama_sign(x) trama_sign_at(TRAMA_HERE, x)                   /* -1, 0 or 1 */
#define trama_square(x) trama_square_at(TRAMA_HERE, x)               /* x^2 */
#define trama_sqrt(x) trama_sqrt_at(TRAMA_HERE, x)                   /* the square root */
#define trama_exp(x) trama_exp_at(TRAMA_HERE, x)                     /* e^x */
#define trama_log(x) trama_log_at(TRAMA_HERE, x)                     /* the natural logarithm */
#define trama_relu(x) trama_relu_at(TRAMA_HERE, x)                   /* max(x, 0) */
#define trama_gelu(x) trama_gelu_at(TRAMA_HERE, x)                   /* x Phi(x), Phi by erf */
#define trama_tanh(x) trama_tanh_at(TRAMA_HERE, x)                   /* the hyperbolic tangent */
#define trama_sigmoid(x) trama_sigmoid_at(TRAMA_HERE, x)             /* 1 / (1 + e^-x) */
#define trama_stop_gradient(x) trama_stop_gradient_at(TRAMA_HERE, x) /* x, whose gradient is zero */
#define trama_rsqrt(x) trama_rsqrt_at(TRAMA_HERE, x)                 /* 1 / sqrt(x) */
#define trama_reciprocal(x) trama_reciprocal_at(TRAMA_HERE, x)       /* 1 / x */
#define trama_floor(x) trama_floor_at(TRAMA_HERE, x)                 /* the largest integer up to x */
#define trama_ceil(x) trama_ceil_at(TRAMA_HERE, x)                   /* the least integer from x */
#define trama_round(x) trama_round_at(TRAMA_HERE, x)                 /* the nearest integer, of two the even one */
#define trama_trunc(x) trama_trunc_at(TRAMA_HERE, x)                 /* x without its fraction */
#define trama_sin(x) trama_sin_at(TRAMA_HERE, x)                     /* the sine */
#define trama_cos(x) trama_cos_at(TRAMA_HERE, x)                     /* the cosine */
#define trama_tan(x) trama_tan_at(TRAMA_HERE, x)                     /* the tangent */
#define trama_asin(x) trama_asin_at(TRAMA_HERE, x)                   /* the inverse sine */
#define trama_acos(x) trama_acos_at(TRAMA_HERE, x)                   /* the inverse cosine */
#define trama_atan(x) trama_atan_at(TRAMA_HERE, x)                   /* the inverse tangent */
#define trama_sinh(x) trama_sinh_at(TRAMA_HERE, x)                   /* the hyperbolic sine */
#define trama_cosh(x) trama_cosh_at(TRAMA_HERE, x)                   /* the hyperbolic cosine */
#define trama_asinh(x) trama_asinh_at(TRAMA_HERE, x)                 /* the inverse of sinh */
#define trama_acosh(x) trama_acosh_at(TRAMA_HERE, x)                 /* the inverse of cosh */
#define trama_atanh(x) trama_atanh_at(TRAMA_HERE, x)                 /* the inverse of tanh */
#define trama_erf(x) trama_erf_at(TRAMA_HERE, x)                     /* the error function */
#define trama_erfc(x) trama_erfc_at(TRAMA_HERE, x)                   /* 1 - erf(x) */
#define trama_exp2(x) trama_exp2_at(TRAMA_HERE, x)                   /* 2^x */
#define trama_expm1(x) trama_expm1_at(TRAMA_HERE, x)                 /* e^x - 1 */
#define trama_log1p(x) trama_log1p_at(TRAMA_HERE, x)                 /* the logarithm of 1 + x */
#define trama_log2(x) trama_log2_at(TRAMA_HERE, x)                   /* the logarithm to base 2 */
#define trama_log10(x) trama_log10_at(TRAMA_HERE, x)                 /* the logarithm to base 10 */
#define trama_cbrt(x) trama_cbrt_at(TRAMA_HERE, x)                   /* the cube root */
#define trama_silu(x) trama_silu_at(TRAMA_HERE, x)                   /* x sigmoid(x), also called swish */
#define trama_softplus(x) trama_softplus_at(TRAMA_HERE, x)           /* log(1 + e^x) */
#define trama_softsign(x) trama_softsign_at(TRAMA_HERE, x)           /* x / (1 + |x|) */
#define trama_mish(x) trama_mish_at(TRAMA_HERE, x)                   /* x tanh(softplus(x)) */
#define trama_gelu_tanh(x) trama_gelu_tanh_at(TRAMA_HERE, x)         /* gelu with Phi(x) by tanh (see below) */
#define trama_hard_sigmoid(x) trama_hard_sigmoid_at(TRAMA_HERE, x)   /* min(max(x / 6 + 1 / 2, 0), 1) */
#define trama_hard_swish(x) trama_hard_swish_at(TRAMA_HERE, x)       /* x hard_sigmoid(x) */
#define trama_selu(x) trama_selu_at(TRAMA_HERE, x)                   /* 1.0507 x, below 0 1.0507 1.6733 (e^x - 1) */

/* Predicates, to bool, and the bits of integers and bool: */
#define trama_logical_not(x) trama_logical_not_at(TRAMA_HERE, x) /* x == 0 */
#define trama_isnan(x) trama_isnan_at(TRAMA_HERE, x)             /* whether x is NaN */
#define trama_isinf(x) trama_isinf_at(TRAMA_HERE, x)             /* whether x is inf or -inf */
#define trama_isfinite(x) trama_isfinite_at(TRAMA_HERE, x)       /* whether x is neither */
#define trama_bitwise_not(x) trama_bitwise_not_at(TRAMA_HERE, x) /* ~x; of bool its opposite */

#define trama_elu(x, alpha) trama_elu_at(TRAMA_HERE, x, alpha) /* x, below 0 alpha (e^x - 1), of floats */
trama_value *trama_elu_at(trama_where where, trama_value *x, double alpha);
#define trama_celu(x, alpha) trama_celu_at(TRAMA_HERE, x, alpha) /* x, below 0 alpha (e^(x / alpha) - 1), of floats */
trama_value *trama_celu_at(trama_where where, trama_value *x, double alpha);
#define trama_leaky_relu(x, slope) trama_leaky_relu_at(TRAMA_HERE, x, slope) /* x, below 0 slope x, of floats */
trama_value *trama_leaky_relu_at(trama_where where, trama_value *x, double slope);

/* x where the condition is not 0, else y. All three broadcast; x and y have one dtype, the condition any. */
#define trama_select(condition, x, y) trama_select_at(TRAMA_HERE, condition, x, y)
trama_value *trama_select_at(trama_where where, trama_value *condition, trama_value *x, trama_value *y);
/* The number where mask is not 0, else x; mask broadcasts. */
#define trama_masked_fill(x, mask, number) trama_masked_fill_at(TRAMA_HERE, x, mask, number)
trama_value *trama_masked_fill_at(trama_where where, trama_value *x, trama_value *mask, double number);
/* min(max(x, low), high), where low and high broadcast; a NULL limit is none. */
#define trama_clip(x, low, high) trama_clip_at(TRAMA_HERE, x, low, high)
trama_value *trama_clip_at(trama_where where, trama_value *x, trama_value *low, trama_value *high);

#define trama_scale(x, factor) trama_scale_at(TRAMA_HERE, x, factor) /* factor x */
trama_value *trama_scale_at(trama_where where, trama_value *x, double factor);
/* factor x + offset in the type of x. Of an integer x, factor and offset must be integers, E_DTYPE otherwise, and the
 * result wraps around. */
#define trama_affine(x, factor, offset) trama_affine_at(TRAMA_HERE, x, factor, offset)
trama_value *trama_affine_at(trama_where where, trama_value *x, double factor, double offset);

/* Numbers of C in expressions. A number is an attribute of the op, rounded to the type of x; no memory is read for it.
 * trama_scale gives products. Both divisions take floats. For other ops trama_scalar makes a value of a number, which
 * broadcasts:
 *
 *     trama_value *others = trama_not_equal(labels, trama_scalar(program, TRAMA_I64, 3));
 */
#define trama_add_scalar(x, number) trama_affine_at(TRAMA_HERE, x, 1, number)    /* x + number */
#define trama_sub_scalar(x, number) trama_affine_at(TRAMA_HERE, x, 1, -(number)) /* x - number */
#define trama_scalar_sub(number, x) trama_affine_at(TRAMA_HERE, x, -1, number)   /* number - x */
#define trama_div_scalar(x, number) trama_div_scalar_at(TRAMA_HERE, x, number)   /* x / number */
#define trama_scalar_div(number, x) trama_scalar_div_at(TRAMA_HERE, number, x)   /* number / x */
#define trama_scalar(program, dtype, number) trama_fill_at(TRAMA_HERE, program, dtype, TRAMA_SCALAR, number)
trama_value *trama_div_scalar_at(trama_where where, trama_value *x, double number);
trama_value *trama_scalar_div_at(trama_where where, double number, trama_value *x);

#define trama_clamp(x, low, high) trama_clamp_at(TRAMA_HERE, x, low, high) /* min(max(x, low), high), of floats */
trama_value *trama_clamp_at(trama_where where, trama_value *x, double low, double high);
/* A complex x is cast to complex types alone. */
#define trama_cast(x, dtype) trama_cast_at(TRAMA_HERE, x, dtype) /* x cast as in C, floats to nearest even */
trama_value *trama_cast_at(trama_where where, trama_value *x, trama_dtype dtype);

/* Reductions over dims [n], negative from the end; n 0: all dims. keep_dim leaves extents of 1. The short forms reduce
 * all dims to a scalar. mean and sum_square take floats, sum and prod numbers, so cast a bool to the type that counts;
 * sum_square gives f64. Over no element sum is 0, prod 1, max -inf, min +inf. Where a
 * reduced dim is split, each process reduces its part, and results of parts are exchanged. TRAMA_DIMS gives n and dims:
 *     trama_value *sums = trama_sum_over(x, TRAMA_DIMS(0, -1), false);
 */
#define trama_sum(x) trama_sum_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_mean(x) trama_mean_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_sum_square(x) trama_sum_square_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_max(x) trama_max_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_min(x) trama_min_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_prod(x) trama_prod_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_sum_over(x, /* n, dims, keep_dim */...) trama_sum_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_mean_over(x, /* n, dims, keep_dim */...) trama_mean_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_sum_square_over(x, /* n, dims, keep_dim */...) trama_sum_square_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_max_over(x, /* n, dims, keep_dim */...) trama_max_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_min_over(x, /* n, dims, keep_dim */...) trama_min_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_prod_over(x, /* n, dims, keep_dim */...) trama_prod_at(TRAMA_HERE, x, __VA_ARGS__)
#ifdef __cplusplus
extern "C++" template <int n> constexpr int trama_dims_count(const int (&)[n])
{
    return n;
}
extern "C++" template <int n> constexpr const int *trama_dims_list(const int (&dims)[n])
{
    return dims;
}
#define TRAMA_DIMS(...) trama_dims_count({__VA_ARGS__}), trama_dims_list({__VA_ARGS__})
#else
/* The two arguments n and dims of a reduction: trama_sum_over(x, TRAMA_DIMS(0, 2), true) */
#define TRAMA_DIMS(...)                                                                                                \
    (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)), (const int[])                                             \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#endif
trama_value *trama_sum_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_mean_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_sum_square_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_max_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_min_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_prod_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);

/* Index (i64) of the largest, or least, element along dim (negative from the end); keep_dim leaves an extent of 1. Of
 * equal elements it is the first, or with argmax_last and argmin_last the last. NaN is the largest and the least.
 * Where dim is split, processes exchange the extremum and the index of each line. */
#define trama_argmax(x, dim) trama_argmax_at(TRAMA_HERE, x, dim, false)
#define trama_argmin(x, dim) trama_argmin_at(TRAMA_HERE, x, dim, false)
#define trama_argmax_over(x, dim, keep_dim) trama_argmax_at(TRAMA_HERE, x, dim, keep_dim)
#define trama_argmin_over(x, dim, keep_dim) trama_argmin_at(TRAMA_HERE, x, dim, keep_dim)
#define trama_argmax_last(x, dim, keep_dim) trama_argmax_last_at(TRAMA_HERE, x, dim, keep_dim)
#define trama_argmin_last(x, dim, keep_dim) trama_argmin_last_at(TRAMA_HERE, x, dim, keep_dim)
trama_value *trama_argmax_at(trama_where where, trama_value *x, int dim, bool keep_dim);
trama_value *trama_argmin_at(trama_where where, trama_value *x, int dim, bool keep_dim);
trama_value *trama_argmax_last_at(trama_where where, trama_value *x, int dim, bool keep_dim);
trama_value *trama_argmin_last_at(trama_where where, trama_value *x, int dim, bool keep_dim);

/* Softmax along dim (negative from the end). Where dim is split, processes exchange the largest element and the sum of
 * exponentials of each line, and no element. */
#define trama_softmax(x, dim) trama_softmax_at(TRAMA_HERE, x, dim)
trama_value *trama_softmax_at(trama_where where, trama_value *x, int dim);

/* Transposition: dim d of the result is dim perm[d] of x; perm NULL reverses all dims. */
#define trama_transpose(x, perm) trama_transpose_at(TRAMA_HERE, x, perm)
trama_value *trama_transpose_at(trama_where where, trama_value *x, const int *perm);

/* The same elements in row-major order: [6, 4] -> [3, 8]. The count stays, and so do TRAMA_ANY dims in their order. One
 * such dim may be merged with known dims, or divided by them: [TRAMA_ANY, 16] -> [TRAMA_ANY] and back, and what is fed
 * must be a multiple of 16 there. All of them may become one: [TRAMA_ANY, TRAMA_ANY, 16] -> [TRAMA_ANY, 16]. A split of
 * the first of the dims that are merged or divided passes; where its pieces are uneven, a process receives one index of
 * the first merged dim at each border, or less than one index of the first dim that it is divided into. */
#define trama_reshape(x, shape) trama_reshape_at(TRAMA_HERE, x, shape)
trama_value *trama_reshape_at(trama_where where, trama_value *x, trama_shape shape);
/* The same, and the TRAMA_ANY dims of the shape have the extents of the TRAMA_ANY dims of `like`, in their order, so that
 * merged dims are divided again: [TRAMA_ANY, 16] -> [TRAMA_ANY, TRAMA_ANY, 16] like [TRAMA_ANY, TRAMA_ANY]. Of `like` the
 * shape alone counts; it may have another element type, and gets no gradient. A run whose shapes do not fit answers
 * E_SHAPE. */
#define trama_reshape_like(x, shape, like) trama_reshape_like_at(TRAMA_HERE, x, shape, like)
trama_value *trama_reshape_like_at(trama_where where, trama_value *x, trama_shape shape, trama_value *like);

/* Window, the general form: element (i, j, ...) of the result is element (i + offset[0], j + offset[1], ...) of x, and
 * 0 outside of x. offset [ndim]; shape: the extents of the result. A TRAMA_ANY dim stays: offset 0, extent TRAMA_ANY.
 * Where x is split, neighbours exchange the elements beyond their borders, and nothing else moves. Three cases along
 * one dim (-1: the last): trama_slice takes `extent` elements of x from `from` on, trama_pad adds zeros before and
 * after x, trama_shift moves x by `by` elements (3 moves element 0 to index 3) and fills with zeros. */
#define trama_window(x, offset, shape) trama_window_at(TRAMA_HERE, x, offset, shape)
trama_value *trama_window_at(trama_where where, trama_value *x, const int64_t *offset, trama_shape shape);
#define trama_slice(x, dim, from, extent) trama_slice_at(TRAMA_HERE, x, dim, from, extent)
trama_value *trama_slice_at(trama_where where, trama_value *x, int dim, int64_t from, int64_t extent);
#define trama_pad(x, dim, before, after) trama_pad_at(TRAMA_HERE, x, dim, before, after)
trama_value *trama_pad_at(trama_where where, trama_value *x, int dim, int64_t before, int64_t after);
#define trama_shift(x, dim, by) trama_shift_at(TRAMA_HERE, x, dim, by)
trama_value *trama_shift_at(trama_where where, trama_value *x, int dim, int64_t by);

/* x in another layout, on any mesh; differentiable. The layout is final, as by trama_shard. */
#define trama_reshard(x, mesh, layout) trama_reshard_at(TRAMA_HERE, x, mesh, layout)
trama_value *trama_reshard_at(trama_where where, trama_value *x, const trama_mesh *mesh, const char *layout);

/* Random numbers that do not depend on the mesh: element i (row-major, global) is low + (high - low) * u,
 * u = (word >> 8) * 2^-24, computed in double. word is number i mod 4 of Philox4x32-10 (Salmon et al. 2011) with the
 * counter (low(i/4), high(i/4), stream, step) and the key (low seed, high seed). Dims must be known. In f16 and bf16
 * the result is rounded, so it may equal high.
 *
 * trama_uniform draws other numbers in each run: step is the run counter, modulo 2^32. Give calls different streams if
 * their numbers must differ within a run. trama_uniform_fixed draws the numbers of the given step in every run. */
#define trama_uniform(program, dtype, shape, low, high, seed, stream)                                                  \
    trama_uniform_at(TRAMA_HERE, program, dtype, shape, low, high, seed, stream)
trama_value *trama_uniform_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                              double low, double high, uint64_t seed, uint32_t stream);
#define trama_uniform_fixed(program, dtype, shape, low, high, seed, stream, step)                                      \
    trama_uniform_fixed_at(TRAMA_HERE, program, dtype, shape, low, high, seed, stream, step)
trama_value *trama_uniform_fixed_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                                    double low, double high, uint64_t seed, uint32_t stream, uint32_t step);

/* The run counter of a program: a state, the i64 scalar "random.run", made by the first call or the first
 * trama_uniform. It starts at 0. A run of a target that needs the result of a trama_uniform adds 1 and then draws, so
 * that the first such run has step 1; all targets of the program share the counter. With trama_gradient_merge each
 * micro-step is a run. In eager mode each trama_uniform is a run: it draws at once, on the mesh of the counter, and
 * trama_reshard moves the numbers to another mesh. The counter can be read and written like any state: a program
 * restored with a saved counter draws the numbers that would have come next. */
#define trama_run_counter(program) trama_run_counter_at(TRAMA_HERE, program)
trama_value *trama_run_counter_at(trama_where where, trama_program *program);

/* A tensor whose elements all equal value. Dims must be known. */
#define trama_fill(program, dtype, shape, value) trama_fill_at(TRAMA_HERE, program, dtype, shape, value)
trama_value *trama_fill_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                           double value);

/* The n numbers start, start + step, ..., computed in double. */
#define trama_arange(program, dtype, n, start, step) trama_arange_at(TRAMA_HERE, program, dtype, n, start, step)
trama_value *trama_arange_at(trama_where where, trama_program *program, trama_dtype dtype, int64_t n, double start,
                             double step);

/* Applies any op by its descriptor; attributes NULL: zeros. Returns result 0; trama_result returns the others. */
trama_value *trama_apply_at(trama_where where, trama_program *program, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes);
trama_value *trama_result(trama_value *value, int i); /* result i of the op that made value, or NULL */
const trama_op *trama_op_find(const char *name);      /* built-in op of that name, or NULL */
const trama_op *trama_op_number(int i);               /* built-in op i from 0; NULL from their number on */

TRAMA_API_END
#endif
