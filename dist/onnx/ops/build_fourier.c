/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of ONNX, whose complex numbers are pairs along the last dim. */
#include "onnx_ops.h"
#include "trama_array.h"
#include "trama_complex.h"
#include "trama_composed.h"
#include "trama_fourier.h"
#include "trama_ops.h"

/* Part 0 or 1 of pairs. */
static trama_value *part_of(onnx_node *n, trama_value *x, int64_t part)
{
    const int last = x->shape.ndim - 1;
    return trama_squeeze_at(n->where, trama_slice_at(n->where, x, last, part, 1), last);
}

/* x with `length` elements along the dim: the first ones, or zeros behind. */
static trama_value *of_length(onnx_node *n, trama_value *x, int dim, int64_t length)
{
    const int64_t is = x->shape.dim[dim];
    return length < is ? trama_slice_at(n->where, x, dim, 0, length) : trama_pad_at(n->where, x, dim, 0, length - is);
}

/* The dim: an attribute until set 19, then operand 2. */
static bool dim_of(onnx_node *n, const trama_value *x, int *dim)
{
    double axis;
    if (!node_number(n, 2, (double)attribute_int(n, "axis", n->op->since < 20 ? 1 : -2), &axis))
        return node_fail(n, TRAMA_E_UNSUPPORTED, "operand 2 (axis) must be a constant"), false;
    *dim = node_dim(n, (int64_t)axis, x->shape.ndim);
    return *dim >= 0;
}

ONNX_BUILD(build_dft)
{
    trama_value *x = node_in(n, 0);
    const bool inverse = attribute_int(n, "inverse", 0), half = attribute_int(n, "onesided", 0);
    double length = 0;
    int dim;
    if (!x || !dim_of(n, x, &dim))
        return;
    const int64_t parts = x->shape.dim[x->shape.ndim - 1];
    if (dim == x->shape.ndim - 1 || (parts != 1 && parts != 2)) {
        node_fail(n, TRAMA_E_SHAPE, "the last dim has 1 or 2 parts of numbers, and is not transformed");
        return;
    }
    if (half && (inverse || parts == 2)) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "a half of a spectrum is that of real numbers, and no inverse");
        return;
    }
    if (!node_number(n, 1, 0, &length)) {
        node_fail(n, TRAMA_E_UNSUPPORTED, "operand 1 (dft_length) must be a constant");
        return;
    }
    const trama_dtype type = x->dtype;
    if (length > 0 && x->shape.dim[dim] != TRAMA_ANY)
        x = of_length(n, x, dim, (int64_t)length);
    if (x)
        x = trama_cast_at(n->where, x, TRAMA_F64); /* the numbers that ONNX expects are closer than f32 comes */
    trama_value *re = x ? part_of(n, x, 0) : NULL, *y;
    if (half)
        y = trama_rfft_at(n->where, re, 1, &dim, TRAMA_FOURIER_BACKWARD);
    else {
        trama_value *im = !re ? NULL : parts == 2 ? part_of(n, x, 1) : trama_scale_at(n->where, re, 0);
        trama_value *z = trama_complex_at(n->where, re, im);
        y = inverse ? trama_ifft_at(n->where, z, 1, &dim, TRAMA_FOURIER_BACKWARD)
                    : trama_fft_at(n->where, z, 1, &dim, TRAMA_FOURIER_BACKWARD);
    }
    trama_value *both[] = {trama_real_at(n->where, y), trama_imag_at(n->where, y)};
    trama_value *pairs = both[0] && both[1] ? trama_stack_at(n->where, -1, 2, both) : NULL;
    out[0] = pairs ? trama_cast_at(n->where, pairs, type) : NULL;
}
