/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the built-in ops and the slots of their attributes. The list itself is ops.def. */
#ifndef OPS_H
#define OPS_H

#include "trama_op.h"

#define OP(name, ...) extern const trama_op trama_op_##name;
#include "ops.def"

/* The kinds of element types that ops take, in the words of ops.def. */
enum {
    FLOATS = TRAMA_KIND_FLOAT,
    INTEGERS = TRAMA_KIND_SIGNED | TRAMA_KIND_UNSIGNED,
    BITS = INTEGERS | TRAMA_KIND_BOOL,
    NUMBERS = INTEGERS | FLOATS,
    COMPLEXES = TRAMA_KIND_COMPLEX,
    FIELD = NUMBERS | COMPLEXES,       /* arithmetic */
    ANALYTIC = FLOATS | COMPLEXES,     /* functions of real and of complex numbers */
    REALS = NUMBERS | TRAMA_KIND_BOOL, /* the kinds of ops that state none */
    ANY_KIND = REALS | COMPLEXES
};

/* All built-in ops in the order of ops.def, and their number. */
extern const trama_op *const trama_ops[];
extern const int trama_n_ops;

/* The message that the thread's last kernel of a user-defined op left by trama_kernel_fail, or else the status' text;
 * and the reset before a kernel. */
const char *own_op_message(trama_status status);
void own_op_forget_message(void);

/* Slots of attributes->integer, or of attributes->real where marked so. */
enum { MATMUL_TRANS_X, MATMUL_TRANS_Y, MATMUL_SUM_BATCH };
/* reductions, argmax, argmin, expand; axes is a bit mask of dims */
enum { REDUCE_AXES, REDUCE_KEEP_DIM, EXPAND_AVERAGE, ARGMAX_LAST = EXPAND_AVERAGE };
enum { SOFTMAX_AXIS };
/* transpose, reshape: DIM is the first of ndim slots; ROWS is a bit mask of dims of the operand. CUTS has the dims of
 * the operand, and above them those of the result, before which the elements are as many on both sides */
enum { SHAPE_NDIM, SHAPE_DIM, RESHAPE_ROWS = SHAPE_DIM + TRAMA_MAX_NDIM, RESHAPE_CUTS };
#define RESHAPE_CUT(in, out) (INT64_C(1) << (in) | INT64_C(1) << (TRAMA_MAX_NDIM + (out)))
enum { WINDOW_DIM, WINDOW_OFFSET = WINDOW_DIM + TRAMA_MAX_NDIM };
enum { INDEX_AXIS, SCATTER_HOW };              /* gather, scatter and their like */
enum { CONCAT_AXIS };
enum { STRIDE_STEP };                          /* the first of a slot for each dim */
enum { FLIP_AXES };                            /* a bit mask of dims */
enum { CAST_DTYPE };
enum { SOURCE_DTYPE, SOURCE_NDIM, SOURCE_DIM, SOURCE_SEED = SOURCE_DIM + TRAMA_MAX_NDIM, SOURCE_STREAM, SOURCE_STEP };
enum { SOURCE_VALUE = 0, SOURCE_LOW = 0, SOURCE_HIGH, ARANGE_START = 0, ARANGE_STEP }; /* real */
enum { SCALE_FACTOR, AFFINE_OFFSET };                   /* scale, affine; real */
enum { SCALAR_NUMBER };                                 /* div_scalar, scalar_div; real */
enum { CLAMP_LOW, CLAMP_HIGH };                         /* real */
enum { ELU_ALPHA };                                     /* elu, celu; real */
enum { RELU_SLOPE };                                    /* leaky_relu; real */
enum { UPDATE_LR };                                     /* sgd; real */
/* schedule; LR and NUMBERS are real */
enum { SCHEDULE_WARMUP, SCHEDULE_FACTOR, SCHEDULE_LR = 0, SCHEDULE_NUMBERS };
typedef double (*schedule_factor)(int64_t step, const double *numbers);
enum { MOMENTUM_NESTEROV };
enum { ADAM_DECOUPLED };
/* descend, momentum, adam, lamb; real */
enum { UPDATE_WEIGHT_DECAY, MOMENTUM_FACTOR, ADAM_BETA1 = MOMENTUM_FACTOR, ADAM_BETA2, ADAM_EPS };
/* fft has inverse, rfft and irfft the extent of the real line */
enum { FOURIER_AXIS, FOURIER_INVERSE, FOURIER_EXTENT = FOURIER_INVERSE, FOURIER_FACTOR = 0, FOURIER_INNER };
enum { SCAN_AXIS, SCAN_EXCLUSIVE, SCAN_REVERSE, SCAN_LATE };
enum { NORM_AXIS, NORM_CENTRED, NORM_EPS = 0 };     /* eps is real */
enum { ATTENTION_CAUSAL, ATTENTION_SCALE = 0 }; /* the scale is real */
/* Convolutions and pools: the first of a slot for each spatial dim, but for the groups */
enum { CONV_STRIDE, CONV_DILATION = 3, CONV_BEFORE = 6, CONV_EXTENT = 9, CONV_GROUPS = 12, POOL_KERNEL = 12 };
enum { SORT_AXIS, SORT_DESCENDING, TOP_K };

#endif
