/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of any length, of several lines side by side. Debian has no library for c128 with a
 * licence that a library can live with: kissfft is packaged for single precision alone, FFTW is under the GPL. */
#ifndef CODELETS_FOURIER_LINE_H
#define CODELETS_FOURIER_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "scratch.h"

/* X_k = sum over j of x_j e^(-2 pi i j k / n), for f32 or f64. Lengths whose prime factors are small go in passes of
 * one factor each (Stockham's form, Van Loan, "Computational frameworks for the fast Fourier transform", 1992,
 * section 1.7); other lengths are convolutions of such a length (Bluestein, "A linear filtering approach to the
 * computation of discrete Fourier transform", 1970). A line has the same bits wherever it lies, and beside whichever
 * lines. */
typedef struct fourier {
    int64_t n;
    int64_t padded; /* Bluestein: the length of the convolution, else 0 */
    int n_factors;
    int factor[40];       /* of n, or of padded */
    void *turn;           /* [n or padded][2]: e^(-2 pi i k / n) */
    void *chirp, *filter; /* Bluestein: [n][2] e^(-pi i k^2 / n), and the transform [padded][2] of its conjugate */
} fourier;

/* Elements that lie beside each other in each plane of the buffers: lines x fourier_length. */
static inline int64_t fourier_length(const fourier *f)
{
    return f->padded ? f->padded : f->n;
}

/* The smallest length of this size or more whose factors are small; of 0, 1. */
int64_t fourier_smooth(int64_t n);

/* Makes the tables in buffer i of the scratch memory. False where there is no memory. */
bool fourier_f32(fourier *f, int64_t n, scratch *s, int i);
bool fourier_f64(fourier *f, int64_t n, scratch *s, int i);

/* Transforms `lines` lines: element k of line l is re[k * lines + l] + i im[k * lines + l]. Buffers are
 * [lines fourier_length]; the result lies in re and im, or in other_re and other_im, which is what it returns: true for
 * the others. With re and im in each other's places it is the inverse, n times too large. */
bool fourier_lines_f32(const fourier *f, int64_t lines, float *re, float *im, float *other_re, float *other_im);
bool fourier_lines_f64(const fourier *f, int64_t lines, double *re, double *im, double *other_re, double *other_im);

/* cos and sin of -2 pi k / n, exact in the eighths of a turn. */
void fourier_turn(int64_t k, int64_t n, double *re, double *im);

#endif
