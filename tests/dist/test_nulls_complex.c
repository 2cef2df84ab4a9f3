/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of trama_complex.h and trama_fourier.h. */
#include "null_program.h"
#include "trama_complex.h"
#include "trama_fourier.h"

#define W TRAMA_HERE

START_TEST(complex_numbers)
{
    trama_value *z = trama_input(p, "z", TRAMA_C64, TRAMA_SHAPE(4, 6));
    PASSES(trama_complex_at(W, NULL, x));
    PASSES(trama_complex_at(W, x, NULL));
    PASSES(trama_real_at(W, NULL));
    PASSES(trama_imag_at(W, NULL));
    PASSES(trama_conj_at(W, NULL));
    PASSES(trama_abs_at(W, NULL));
    PASSES(trama_angle_at(W, NULL));
    PASSES(trama_matmul_op_at(W, NULL, z, TRAMA_TRANS, TRAMA_NO_TRANS));
    PASSES(trama_matmul_op_at(W, z, NULL, TRAMA_TRANS, TRAMA_NO_TRANS));
}
END_TEST

START_TEST(fourier_transforms)
{
    trama_value *z = trama_input(p, "z", TRAMA_C64, TRAMA_SHAPE(4, 6));
    trama_value *r = trama_input(p, "r", TRAMA_F32, TRAMA_SHAPE(4, 6));
    const int dim = 0;
    PASSES(trama_fft_at(W, NULL, 1, &dim, TRAMA_FOURIER_BACKWARD));
    PASSES(trama_ifft_at(W, NULL, 1, &dim, TRAMA_FOURIER_BACKWARD));
    PASSES(trama_rfft_at(W, NULL, 1, &dim, TRAMA_FOURIER_BACKWARD));
    PASSES(trama_irfft_at(W, NULL, 6, 1, &dim, TRAMA_FOURIER_BACKWARD));
    ck_assert(trama_fft_at(W, z, 0, NULL, TRAMA_FOURIER_BACKWARD));
    SAYS(p, trama_fft_at(W, z, 1, NULL, TRAMA_FOURIER_BACKWARD));
    SAYS(p, trama_ifft_at(W, z, 1, NULL, TRAMA_FOURIER_BACKWARD));
    SAYS(p, trama_rfft_at(W, r, 1, NULL, TRAMA_FOURIER_BACKWARD));
    SAYS(p, trama_irfft_at(W, z, 6, 1, NULL, TRAMA_FOURIER_BACKWARD));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {complex_numbers, fourier_transforms};
    return suite_run("nulls_complex", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
