/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of complex and of real tensors. trama_complex.h tells about complex elements and their gradients,
 * trama_program.h errors of builders.
 *
 * Lists of dims have n entries, each dim once, negative from the end; n 0 stands for all dims. TRAMA_DIMS of
 * trama_ops.h gives n and dims:
 *
 *     trama_value *spectrum = trama_rfft(x, TRAMA_DIMS(0, 1), TRAMA_FOURIER_BACKWARD);
 *
 * Extents of these dims are known, and any: lengths with prime factors above 13 take more time. A split of a dim moves
 * to another dim while it is transformed: where `dims` are all those of a tensor that is split along its first dim, and
 * the result is wanted as the operand lies, that is two exchanges, in which each process sends its share but the part
 * that it keeps. c64 is computed in f32, c128 in f64. */
#ifndef TRAMA_FOURIER_H
#define TRAMA_FOURIER_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Where a transform is divided by N, the number of elements that it joins. */
typedef enum trama_fourier_norm {
    TRAMA_FOURIER_BACKWARD, /* an inverse by N, as numpy does */
    TRAMA_FOURIER_ORTHO,    /* both by sqrt(N), so that they are unitary */
    TRAMA_FOURIER_FORWARD   /* a transform by N */
} trama_fourier_norm;

/* The transform of complex x, of its shape, dim by dim:
 *
 *   y_k = sum over j of x_j e^(-2 pi i j k / n)
 *
 * The last of the dims is transformed first. E_DTYPE for a real x: cast it, or take trama_rfft. */
#define trama_fft(x, /* n, dims, norm */...) trama_fft_at(TRAMA_HERE, x, __VA_ARGS__)
trama_value *trama_fft_at(trama_where where, trama_value *x, int n, const int *dims, trama_fourier_norm norm);
/* Its inverse. The first of the dims is transformed first. */
#define trama_ifft(x, /* n, dims, norm */...) trama_ifft_at(TRAMA_HERE, x, __VA_ARGS__)
trama_value *trama_ifft_at(trama_where where, trama_value *x, int n, const int *dims, trama_fourier_norm norm);

/* The same of x of f32 or f64: along the last of the dims, of extent m, the elements 0 to m / 2 of the spectrum, since
 * the others are their conjugates. */
#define trama_rfft(x, /* n, dims, norm */...) trama_rfft_at(TRAMA_HERE, x, __VA_ARGS__)
trama_value *trama_rfft_at(trama_where where, trama_value *x, int n, const int *dims, trama_fourier_norm norm);
/* Its inverse: the last of the dims gets `extent` elements, and has extent / 2 + 1. Along it the imaginary parts of
 * element 0, and of the last if the extent is even, have no effect. */
#define trama_irfft(x, extent, /* n, dims, norm */...) trama_irfft_at(TRAMA_HERE, x, extent, __VA_ARGS__)
trama_value *trama_irfft_at(trama_where where, trama_value *x, int64_t extent, int n, const int *dims,
                            trama_fourier_norm norm);

TRAMA_API_END
#endif
