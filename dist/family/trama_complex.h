/* SPDX-License-Identifier: Apache-2.0 */
/* Complex tensors: c64 with parts of f32, c128 with parts of f64. In C their elements are `float _Complex` and
 * `double _Complex`, in Fortran complex(c_float_complex) and complex(c_double_complex), in C++ std::complex.
 *
 * Arithmetic, the elementary functions of trama_ops.h from sqrt to log10 but erf and erfc, tanh, sigmoid and silu, pow,
 * equal and not_equal, the logical ops, isnan, isinf and isfinite (whether a part is, or both are), select, sums, means
 * and products over dims, cumulative sums and products, recurrences, products of matrices, normal numbers, and all ops
 * that move elements take complex operands as they take real ones. Functions with a branch cut have those of C. Both
 * operands have one type: trama_cast makes complex numbers of real ones. Ops that need an order, as max, refuse complex
 * operands, and there is no P(max); so do layer, RMS, group and batch norm and the losses of squares and of classes, as
 * PyTorch's do. trama_sum_square, trama_norm_1 and trama_norm_2, trama_variance and trama_absolute_loss take |z| and
 * are real. Optimizers train complex parameters as PyTorch's do: both parts of a number are real parameters, with
 * moments of their own; clip_norm counts |z|, and clip_value, which compares, refuses them.
 *
 * Gradients follow PyTorch's convention: the gradient of a real loss L by z = a + ib is dL/da + i dL/db, so that
 * z - lr * gradient descends. (JAX gives its conjugate.) The loss itself is real: trama_real or trama_abs ends the
 * complex part. A gradient goes through y = f(z) with a complex derivative f' as conj(f'(z)) times that of y.
 *
 * Complex numbers are computed on cores; beside a GPU they are moved to a CPU worker. trama_program.h tells errors of
 * builders. */
#ifndef TRAMA_COMPLEX_H
#define TRAMA_COMPLEX_H

#include "trama_op.h"
#include "trama_program.h"

TRAMA_API_BEGIN

/* re + i im of two operands of f32 or of f64, which broadcast: c64 or c128. */
#define trama_complex(re, im) trama_complex_at(TRAMA_HERE, re, im)
trama_value *trama_complex_at(trama_where where, trama_value *re, trama_value *im);
/* The parts a and b of z = a + ib, f32 or f64. Of a real operand: itself, and zeros. */
#define trama_real(z) trama_real_at(TRAMA_HERE, z)
trama_value *trama_real_at(trama_where where, trama_value *z);
#define trama_imag(z) trama_imag_at(TRAMA_HERE, z)
trama_value *trama_imag_at(trama_where where, trama_value *z);
/* a - ib; of a real operand itself. */
#define trama_conj(z) trama_conj_at(TRAMA_HERE, z)
trama_value *trama_conj_at(trama_where where, trama_value *z);
/* The angle of z in -pi to pi, f32 or f64; its gradient at 0 is NaN. trama_abs of trama_ops.h gives |z|. */
#define trama_angle(z) trama_angle_at(TRAMA_HERE, z)
trama_value *trama_angle_at(trama_where where, trama_value *z);

/* The product of trama_matmul with op_x(x) and op_y(y): trama_matmul_op(z, z, TRAMA_CONJ_TRANS, TRAMA_NO_TRANS) is z^H
 * z.
 */
#define trama_matmul_op(x, y, op_x, op_y) trama_matmul_op_at(TRAMA_HERE, x, y, op_x, op_y)
trama_value *trama_matmul_op_at(trama_where where, trama_value *x, trama_value *y, trama_transposition op_x,
                                trama_transposition op_y);

TRAMA_API_END
#endif
