/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of ops.def for the element type DTYPE, which formula.h includes once for each. */

/* The words of formulas, for this type. NUMBER: the type; WRAP: the type in which +, - and * wrap around. */
#define NUMBER JOINED(NUMBER_, DTYPE)
#define WRAP JOINED(WRAP_, DTYPE)
#define NUMBER_OF(real) EXPANDED(NUMBER_OF_OF, DTYPE, real)
#define ATTRIBUTE(slot) (with[slot])
#define MATH(function) JOINED(MATH_, DTYPE)(function) /* of libm, as MATH(log)(x) */
#define ABS(x) EXPANDED(ABS_OF, DTYPE, x)
#define SIGN(x) EXPANDED(SIGN_OF, DTYPE, x)
#define DIVIDE(x, y) EXPANDED(DIVIDE_OF, DTYPE, x, y)
#define EXP(x) JOINED(exp_of_, DTYPE)(x)
#define EXP2(x) JOINED(exp2_of_, DTYPE)(x)
#define EXPM1(x) JOINED(expm1_of_, DTYPE)(x)
#define LOG(x) JOINED(log_of_, DTYPE)(x)
#define SIN(x) JOINED(sin_of_, DTYPE)(x)
#define COS(x) JOINED(cos_of_, DTYPE)(x)
#define LOG2(x) EXPANDED(LOG2_OF, DTYPE, x)
#define LOG10(x) EXPANDED(LOG10_OF, DTYPE, x)
#define LOG1P(x) JOINED(log1p_of_, DTYPE)(x)
#define ERF(x) JOINED(erf_of_, DTYPE)(x)
#define TANH(x) JOINED(tanh_of_, DTYPE)(x)
#define SIGMOID(x) JOINED(sigmoid_of_, DTYPE)(x)
#define GELU(x) JOINED(gelu_of_, DTYPE)(x)
#define GELU_SLOPE(x) JOINED(gelu_slope_of_, DTYPE)(x)
#define REAL_PART(x) EXPANDED(REAL_PART_OF, DTYPE, x)
#define POWER(x, y) EXPANDED(POWER_OF, DTYPE, x, y)
#define MODULO(x, y) EXPANDED(MODULO_OF, DTYPE, x, y)
#define REMAINDER(x, y) EXPANDED(REMAINDER_OF, DTYPE, x, y)
#define FLOOR_DIVIDE(x, y) EXPANDED(FLOOR_DIVIDE_OF, DTYPE, x, y)
#define LARGER(x, y) EXPANDED(LARGER_OF, DTYPE, x, y)
#define SMALLER(x, y) EXPANDED(SMALLER_OF, DTYPE, x, y)
#define ISNAN(x) EXPANDED(IS_NAN_OF, DTYPE, x)
#define ISINF(x) EXPANDED(IS_INF_OF, DTYPE, x)
#define BIT_NOT(x) EXPANDED(BIT_NOT_OF, DTYPE, x)
#define SHIFT_LEFT(x, y) SHIFT_LEFT_OF(NUMBER, x, y)
#define SHIFT_RIGHT(x, y) EXPANDED(SHIFT_RIGHT_OF, DTYPE, x, y)
#define SOFTPLUS(x) JOINED(softplus_of_, DTYPE)(x)
#define SILU_SLOPE(x) JOINED(silu_slope_of_, DTYPE)(x)
#define MISH_SLOPE(x) JOINED(mish_slope_of_, DTYPE)(x)
#define GELU_TANH(x) JOINED(gelu_tanh_of_, DTYPE)(x)
#define GELU_TANH_SLOPE(x) JOINED(gelu_tanh_slope_of_, DTYPE)(x)
#define SCALE(x, factor) EXPANDED(SCALE_OF, DTYPE, x, factor)
#define DESCENT(x, slope, rate) EXPANDED(DESCENT_OF, DTYPE, x, slope, rate)

#define IN(types) EXPANDED(BY_KIND, types, DTYPE)
#define FUNCTION(result, name, formula)                                                                                \
    FORMULA result FORMULA_OF(name, DTYPE)(NUMBER x, NUMBER y, const double *with)                                     \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        (void)with;                                                                                                    \
        return formula;                                                                                                \
    }
#define POINTWISE(form, name, types, partial, attributes, flops, formula, ...)                                         \
    IN(types)(FUNCTION(NUMBER, name, formula))
#define COMPARISON(name, flops, domain_x, domain_y, formula) IN(REALS)(FUNCTION(bool, name, formula))
#define EQUALITY(name, flops, domain_x, domain_y, formula) FUNCTION(bool, name, formula)
#define PREDICATE(name, flops, domain, formula) FUNCTION(bool, name, formula)
#define UNARY_BITS(name, types, domain, formula) IN(types)(FUNCTION(NUMBER, name, formula))
#define BINARY_BITS(name, types, domain_x, domain_y, formula) IN(types)(FUNCTION(NUMBER, name, formula))
#include "ops.def"

#undef NUMBER
#undef WRAP
#undef NUMBER_OF
#undef ATTRIBUTE
#undef MATH
#undef ABS
#undef SIGN
#undef DIVIDE
#undef EXP
#undef EXP2
#undef EXPM1
#undef LOG
#undef SIN
#undef COS
#undef LOG2
#undef LOG10
#undef LOG1P
#undef ERF
#undef TANH
#undef SIGMOID
#undef GELU
#undef GELU_SLOPE
#undef REAL_PART
#undef POWER
#undef MODULO
#undef REMAINDER
#undef FLOOR_DIVIDE
#undef LARGER
#undef SMALLER
#undef ISNAN
#undef ISINF
#undef BIT_NOT
#undef SHIFT_LEFT
#undef SHIFT_RIGHT
#undef SOFTPLUS
#undef SILU_SLOPE
#undef MISH_SLOPE
#undef GELU_TANH
#undef GELU_TANH_SLOPE
#undef SCALE
#undef DESCENT
#undef IN
#undef FUNCTION
#undef DTYPE
