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
#define TRAMA_BINARY_OPS(X) X(add) X(sub) X(mul) X(div) X(equal)
/* The pointwise ops of one operand. */
#define TRAMA_UNARY_OPS(X)                                                                                             \
    X(neg) X(abs) X(sign) X(square) X(sqrt) X(exp) X(log) X(relu) X(gelu) X(tanh) X(sigmoid) X(stop_gradient)
#define TRAMA_DECLARE_BINARY(name) trama_value *trama_##name##_at(trama_where where, trama_value *x, trama_value *y);
#define TRAMA_DECLARE_UNARY(name) trama_value *trama_##name##_at(trama_where where, trama_value *x);
TRAMA_BINARY_OPS(TRAMA_DECLARE_BINARY)
TRAMA_UNARY_OPS(TRAMA_DECLARE_UNARY)
#undef TRAMA_DECLARE_BINARY
#undef TRAMA_DECLARE_UNARY

/* Pointwise ops of two operands of one dtype, which broadcast. equal gives u8. div takes floats: */
#define trama_add(x, y) trama_add_at(TRAMA_HERE, x, y)     /* x + y */
#define trama_sub(x, y) trama_sub_at(TRAMA_HERE, x, y)     /* x - y */
#define trama_mul(x, y) trama_mul_at(TRAMA_HERE, x, y)     /* x y */
#define trama_div(x, y) trama_div_at(TRAMA_HERE, x, y)     /* x / y */
#define trama_equal(x, y) trama_equal_at(TRAMA_HERE, x, y) /* 1 where x is y, else 0 */

/* Pointwise ops of one operand. sqrt, exp, log, gelu, tanh, sigmoid take floats: */
#define trama_neg(x) trama_neg_at(TRAMA_HERE, x)                     /* -x */
#define trama_abs(x) trama_abs_at(TRAMA_HERE, x)                     /* |x| */
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
 *     trama_value *kept = trama_scalar_sub(1, trama_equal(labels, trama_scalar(program, TRAMA_I64, 3)));
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
#define trama_cast(x, dtype) trama_cast_at(TRAMA_HERE, x, dtype) /* x cast as in C, floats to nearest even */
trama_value *trama_cast_at(trama_where where, trama_value *x, trama_dtype dtype);

/* Reductions over dims [n], negative from the end; n 0: all dims. keep_dim leaves extents of 1. The short forms reduce
 * all dims to a scalar. mean and sum_square take floats; sum_square gives f64. Over no element sum is 0, max -inf, min
 * +inf. TRAMA_DIMS gives n and dims:
 *
 *     trama_value *sums = trama_sum_over(x, TRAMA_DIMS(0, -1), false);
 */
#define trama_sum(x) trama_sum_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_mean(x) trama_mean_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_sum_square(x) trama_sum_square_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_max(x) trama_max_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_min(x) trama_min_at(TRAMA_HERE, x, 0, NULL, false)
#define trama_sum_over(x, /* n, dims, keep_dim */...) trama_sum_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_mean_over(x, /* n, dims, keep_dim */...) trama_mean_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_sum_square_over(x, /* n, dims, keep_dim */...) trama_sum_square_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_max_over(x, /* n, dims, keep_dim */...) trama_max_at(TRAMA_HERE, x, __VA_ARGS__)
#define trama_min_over(x, /* n, dims, keep_dim */...) trama_min_at(TRAMA_HERE, x, __VA_ARGS__)
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
#define TRAMA_DIMS(...) (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__}
#endif
trama_value *trama_sum_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_mean_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_sum_square_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_max_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
trama_value *trama_min_at(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);

/* Index (i64) of the first largest element along dim (negative from the end); keep_dim leaves an extent of 1. */
#define trama_argmax(x, dim) trama_argmax_at(TRAMA_HERE, x, dim, false)
#define trama_argmax_over(x, dim, keep_dim) trama_argmax_at(TRAMA_HERE, x, dim, keep_dim)
trama_value *trama_argmax_at(trama_where where, trama_value *x, int dim, bool keep_dim);

/* Softmax along dim (negative from the end). Completion keeps this dim whole on each process. */
#define trama_softmax(x, dim) trama_softmax_at(TRAMA_HERE, x, dim)
trama_value *trama_softmax_at(trama_where where, trama_value *x, int dim);

/* Mean cross entropy: z [batch, n] logits, labels [batch] i32, i64 or u8 in 0..n-1 (other labels give NaN) -> mean over
 * the global batch of -log softmax(z)[label], a scalar. */
#define trama_cross_entropy(z, labels) trama_cross_entropy_at(TRAMA_HERE, z, labels)
trama_value *trama_cross_entropy_at(trama_where where, trama_value *z, trama_value *labels);

/* Transposition: dim d of the result is dim perm[d] of x; perm NULL reverses all dims. */
#define trama_transpose(x, perm) trama_transpose_at(TRAMA_HERE, x, perm)
trama_value *trama_transpose_at(trama_where where, trama_value *x, const int *perm);

/* The same elements in row-major order: [6, 4] -> [3, 8]. The count stays, and TRAMA_ANY dims keep their places in the
 * order. */
#define trama_reshape(x, shape) trama_reshape_at(TRAMA_HERE, x, shape)
trama_value *trama_reshape_at(trama_where where, trama_value *x, trama_shape shape);

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

/* Applies any op by its descriptor; attributes NULL: zeros. Returns result 0; trama_result returns the others. */
trama_value *trama_apply_at(trama_where where, trama_program *program, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes);
trama_value *trama_result(trama_value *value, int i); /* result i of the op that made value, or NULL */
const trama_op *trama_op_find(const char *name); /* built-in op of that name, or NULL */
const trama_op *trama_op_number(int i);          /* built-in op i from 0; NULL from their number on */

TRAMA_API_END
#endif
