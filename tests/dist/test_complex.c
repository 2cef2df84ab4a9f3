/* SPDX-License-Identifier: Apache-2.0 */
/* Complex element types: sizes, kinds, and the ops that take or refuse them. */
#include <check.h>
#include <string.h>

#include "program.h"
#include "suite.h"
#include "trama_array.h"
#include "trama_complex.h"
#include "trama_fourier.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static trama_program *p;
static trama_value *z;

static void set_up(void)
{
    p = trama_program_create();
    z = trama_input(p, "z", TRAMA_C64, TRAMA_SHAPE(4, 6));
    ck_assert(z != NULL);
}

static void tear_down(void)
{
    trama_program_destroy(&p);
}

static void check_refused(const trama_value *made, const char *words)
{
    ck_assert(!made);
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_DTYPE);
    ck_assert_msg(strstr(trama_program_error(p), words) != NULL, "no '%s' in: %s", words, trama_program_error(p));
}

START_TEST(complex_types_are_two_floats_and_a_kind_of_their_own)
{
    ck_assert_uint_eq(trama_dtype_size(TRAMA_C64), 8);
    ck_assert_uint_eq(trama_dtype_size(TRAMA_C128), 16);
    for (int t = TRAMA_C64; t <= TRAMA_C128; t++) {
        ck_assert_int_eq(trama_dtype_kind_of((trama_dtype)t), TRAMA_KIND_COMPLEX);
        ck_assert(!trama_dtype_is_float((trama_dtype)t) && !trama_dtype_is_integer((trama_dtype)t));
    }
}
END_TEST

START_TEST(moves_of_elements_keep_the_complex_type)
{
    int to[] = {1, 0};
    trama_value *moved = trama_reshape(trama_transpose(z, to), TRAMA_SHAPE(24));
    ck_assert_msg(moved != NULL, "%s", trama_program_error(p));
    ck_assert_int_eq(trama_value_dtype(moved), TRAMA_C64);
}
END_TEST

START_TEST(an_op_without_a_complex_kernel_refuses_the_operand)
{
    check_refused(trama_relu(z), "z is c64: take trama_real");
}
END_TEST

START_TEST(a_reduction_without_an_order_refuses_the_operand)
{
    check_refused(trama_max(z), "z is c64");
}
END_TEST

START_TEST(a_cast_makes_complex_numbers_and_drops_no_parts)
{
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4));
    ck_assert_int_eq(trama_value_dtype(trama_cast(x, TRAMA_C64)), TRAMA_C64);
    check_refused(trama_cast(z, TRAMA_F32), "drops no imaginary part");
}
END_TEST

START_TEST(a_sum_of_real_and_complex_numbers_asks_for_a_cast)
{
    check_refused(trama_add(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(6)), z), "cast one of them");
}
END_TEST

START_TEST(layouts_of_extremes_are_refused)
{
    trama_mesh *mesh = trama_mesh_create("2");
    ck_assert(!trama_shard(z, mesh, "P(max)"));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_LAYOUT);
    ck_assert(strstr(trama_program_error(p), "no largest") != NULL);
    trama_mesh_destroy(&mesh);
}
END_TEST

START_TEST(a_reshard_to_extremes_is_refused)
{
    trama_mesh *mesh = trama_mesh_create("2");
    ck_assert(!trama_reshard(z, mesh, "P(min)"));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_LAYOUT);
    trama_mesh_destroy(&mesh);
}
END_TEST

START_TEST(scatters_of_extremes_are_refused)
{
    trama_value *index = trama_input(p, "i", TRAMA_I64, TRAMA_SHAPE(2)),
                *u = trama_input(p, "u", TRAMA_C64, TRAMA_SHAPE(2, 6));
    check_refused(trama_scatter(z, index, u, 0, TRAMA_SCATTER_MAX), "no order");
}
END_TEST

START_TEST(parts_are_f32_or_f64)
{
    trama_value *x = trama_input(p, "x", TRAMA_F16, TRAMA_SHAPE(4));
    check_refused(trama_complex(x, x), "parts are f32 or f64");
}
END_TEST

START_TEST(a_real_operand_is_its_own_real_part_and_conjugate)
{
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4));
    ck_assert_ptr_eq(trama_real(x), x);
    ck_assert_ptr_eq(trama_conj(x), x);
    ck_assert_int_eq(trama_value_dtype(trama_abs(z)), TRAMA_F32);
    ck_assert_int_eq(trama_value_dtype(trama_angle(z)), TRAMA_F32);
}
END_TEST

START_TEST(a_way_to_read_a_matrix_that_does_not_exist_is_refused)
{
    ck_assert(!trama_matmul_op(z, z, (trama_transposition)3, TRAMA_TRANS));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_ARGUMENT);
}
END_TEST

static void check_error(const trama_value *made, trama_status status, const char *words)
{
    ck_assert(!made);
    ck_assert_int_eq(trama_program_status(p), status);
    ck_assert_msg(strstr(trama_program_error(p), words) != NULL, "no '%s' in: %s", words, trama_program_error(p));
    trama_program_clear_error(p);
}

START_TEST(random_content_is_that_of_floats)
{
    static const trama_init unit = {-1, 1, 1, 0}, one = {1, 1, 0, 0};
    check_error(trama_state(p, "s", TRAMA_C64, TRAMA_SHAPE(4), &unit), TRAMA_E_DTYPE, "random numbers from -1 to 1");
    check_error(trama_state(p, "s", TRAMA_I32, TRAMA_SHAPE(4), &unit), TRAMA_E_DTYPE, "it is i32");
    ck_assert(trama_state(p, "ones", TRAMA_C64, TRAMA_SHAPE(4), &one) != NULL);
}
END_TEST

START_TEST(the_clamp_of_gradients_refuses_complex_parameters)
{
    trama_value *w = trama_parameter(p, "w", TRAMA_C64, TRAMA_SHAPE(4), NULL);
    trama_optimizer sgd = trama_sgd(0.1);
    sgd.clip_value = 1;
    ck_assert(!trama_minimize(trama_sum(trama_abs(w)), &sgd));
    ck_assert_int_eq(trama_program_status(p), TRAMA_E_DTYPE);
    ck_assert_msg(strstr(trama_program_error(p), "clamp takes") != NULL, "%s", trama_program_error(p));
}
END_TEST

/* ---- Fourier transforms ---- */

START_TEST(transforms_refuse_dims_types_and_extents_that_do_not_fit)
{
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(4, 6)),
                *half = trama_input(p, "half", TRAMA_F16, TRAMA_SHAPE(4)),
                *open = trama_input(p, "open", TRAMA_C64, TRAMA_SHAPE(TRAMA_ANY, 6)),
                *none = trama_input(p, "none", TRAMA_C64, TRAMA_SCALAR);
    int twice[] = {0, -2}, beyond[] = {2}, first[] = {0}, last[] = {1};
    check_error(trama_fft(x, 1, first, TRAMA_FOURIER_BACKWARD), TRAMA_E_DTYPE, "fft takes complex numbers; x is f32");
    check_error(trama_rfft(z, 1, first, TRAMA_FOURIER_BACKWARD), TRAMA_E_DTYPE, "z is c64");
    check_error(trama_rfft(half, 1, first, TRAMA_FOURIER_BACKWARD), TRAMA_E_DTYPE, "f32 and f64");
    check_error(trama_fft(z, 2, twice, TRAMA_FOURIER_BACKWARD), TRAMA_E_ARGUMENT, "dim -2 is listed twice");
    check_error(trama_fft(z, 1, beyond, TRAMA_FOURIER_BACKWARD), TRAMA_E_SHAPE, "dim 2 is not there");
    check_error(trama_fft(z, 3, twice, TRAMA_FOURIER_BACKWARD), TRAMA_E_ARGUMENT, "3 dims of 2");
    check_error(trama_fft(z, -1, twice, TRAMA_FOURIER_BACKWARD), TRAMA_E_ARGUMENT, "-1 dims");
    check_error(trama_fft(open, 1, first, TRAMA_FOURIER_BACKWARD), TRAMA_E_SHAPE, "only known when fed");
    ck_assert(trama_fft(open, 1, last, TRAMA_FOURIER_BACKWARD) != NULL);
    check_error(trama_fft(z, 1, first, (trama_fourier_norm)7), TRAMA_E_ARGUMENT, "7 is no norm");
    check_error(trama_irfft(z, 12, 1, last, TRAMA_FOURIER_BACKWARD), TRAMA_E_SHAPE,
                "12 real elements have a spectrum of 7");
    check_error(trama_irfft(z, 0, 1, last, TRAMA_FOURIER_BACKWARD), TRAMA_E_SHAPE, "0 real elements");
    check_error(trama_rfft(trama_real(none), 0, NULL, TRAMA_FOURIER_BACKWARD), TRAMA_E_SHAPE, "no dims");
    ck_assert(trama_shape_equal(trama_value_shape(trama_rfft(x, 0, NULL, TRAMA_FOURIER_BACKWARD)), TRAMA_SHAPE(4, 4)));
    ck_assert(
        trama_shape_equal(trama_value_shape(trama_irfft(z, 11, 1, last, TRAMA_FOURIER_BACKWARD)), TRAMA_SHAPE(4, 11)));
    ck_assert(
        trama_shape_equal(trama_value_shape(trama_irfft(z, 10, 1, last, TRAMA_FOURIER_BACKWARD)), TRAMA_SHAPE(4, 10)));
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        random_content_is_that_of_floats,
        the_clamp_of_gradients_refuses_complex_parameters,
        transforms_refuse_dims_types_and_extents_that_do_not_fit,
        complex_types_are_two_floats_and_a_kind_of_their_own,
        moves_of_elements_keep_the_complex_type,
        an_op_without_a_complex_kernel_refuses_the_operand,
        a_reduction_without_an_order_refuses_the_operand,
        a_cast_makes_complex_numbers_and_drops_no_parts,
        a_sum_of_real_and_complex_numbers_asks_for_a_cast,
        layouts_of_extremes_are_refused,
        a_reshard_to_extremes_is_refused,
        scatters_of_extremes_are_refused,
        parts_are_f32_or_f64,
        a_real_operand_is_its_own_real_part_and_conjugate,
        a_way_to_read_a_matrix_that_does_not_exist_is_refused,
    };
    return suite_run("complex", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
