/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of ops.def that are kernels like any pointwise op, by POINTWISE of the file that includes this. BROADCAST is
 * BINARY for ops that are often given a scalar or a column. */
#ifndef CODELETS_POINTWISE_FORMS_H
#define CODELETS_POINTWISE_FORMS_H

#define UNARY(name, types, ...) POINTWISE(UNARY, name, types, )
#define BINARY(name, types, ...) POINTWISE(BROADCAST, name, types, )
#define UNARY_MATH(...) UNARY(__VA_ARGS__)
#define BINARY_MATH(...) BINARY(__VA_ARGS__)
#define POINTWISE_MATH(...) POINTWISE(__VA_ARGS__)
#define UNARY_BITS(name, types, ...) POINTWISE(UNARY, name, types, )
#define BINARY_BITS(name, types, ...) POINTWISE(BROADCAST, name, types, )

#endif
