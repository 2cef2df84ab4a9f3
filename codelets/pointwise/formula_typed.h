/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of ops.def for the element type DTYPE, which formula.h includes once for each. FLOATS_ONLY(...) is its
 * argument where DTYPE is a float. */

/* The words of formulas, for this type. NUMBER: the type; WRAP: the type in which +, - and * wrap around. */
#define NUMBER JOINED(NUMBER_, DTYPE)
#define WRAP JOINED(WRAP_, DTYPE)
#define NUMBER_OF(real) JOINED(NUMBER_TO_, DTYPE)(real)
#define ATTRIBUTE(slot) (with[slot])
#define MATH(function) JOINED(MATH_, DTYPE)(function) /* of libm, as MATH(log)(x) */
#define ABS(x) JOINED(ABS_, DTYPE)(x)
#define SIGN(x) JOINED(sign_of_, DTYPE)(x)
#define DIVIDE(x, y) JOINED(DIVIDE_, DTYPE)(x, y)
#define EXP(x) JOINED(exp_of_, DTYPE)(x)
#define TANH(x) JOINED(tanh_of_, DTYPE)(x)
#define SIGMOID(x) JOINED(sigmoid_of_, DTYPE)(x)
#define GELU(x) JOINED(gelu_of_, DTYPE)(x)
#define GELU_SLOPE(x) JOINED(gelu_slope_, DTYPE)(x)
#define SCALE(x, factor) JOINED(SCALE_, DTYPE)(x, factor)
#define DESCENT(x, slope, rate) JOINED(DESCENT_, DTYPE)(x, slope, rate)

#define IN_ALL(...) __VA_ARGS__
#define IN_FLOATS(...) FLOATS_ONLY(__VA_ARGS__)
#define FUNCTION(result, name, formula)                                                                                \
    FORMULA result FORMULA_OF(name, DTYPE)(NUMBER x, NUMBER y, const double *with)                                     \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        (void)with;                                                                                                    \
        return formula;                                                                                                \
    }
#define POINTWISE(form, name, types, partial, attributes, flops, formula, ...)                                         \
    IN_##types(FUNCTION(NUMBER, name, formula))
#define COMPARISON(name, flops, domain_x, domain_y, formula) FUNCTION(bool, name, formula)
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
#undef TANH
#undef SIGMOID
#undef GELU
#undef GELU_SLOPE
#undef SCALE
#undef DESCENT
#undef IN_ALL
#undef IN_FLOATS
#undef FUNCTION
#undef DTYPE
