! SPDX-License-Identifier: Apache-2.0
! Every op from Fortran against Fortran's own functions, and Philox against its published numbers.
program test_fortran_ops
    use fortran_checks
    implicit none
    call begin()
    call pointwise_ops_are_fortrans_functions()
    call operators_are_ops()
    call reductions_take_dims()
    call shapes_are_fortrans()
    call products_are_transposed()
    call complex_numbers_are_fortrans()
    call losses_count_labels_from_zero()
    call numbers_are_converted()
    call random_numbers_are_philox()
    call extents_may_be_wide()
    call arrays_of_any_kind_are_read()
    call arrays_may_be_empty_or_components()
    call wrong_dims_name_the_place()
    call finish()

contains

    subroutine pointwise_ops_are_fortrans_functions()
        real(c_double) :: a(5), b(5)
        logical(c_bool) :: truth(5)
        type(trama_program) :: p
        type(trama_value) :: x, y, v(18)
        type(trama_executable) :: run

        a = [-2d0, -0.5d0, 0d0, 0.75d0, 3d0]
        b = [0.5d0, -0.5d0, 2d0, 4d0, 3d0]
        p = trama_program_create()
        x = trama_constant(p, a)
        y = trama_constant(p, b)
        v = [trama_add(x, y), trama_sub(x, y), trama_mul(x, y), trama_div(x, y), trama_equal(x, y), trama_neg(x), &
            trama_abs(x), trama_sign(x), trama_square(x), trama_sqrt(trama_abs(x)), trama_exp(x), &
            trama_log(trama_abs(y)), trama_relu(x), trama_gelu(x), trama_tanh(x), trama_sigmoid(x), &
            trama_clamp(x, -1d0, 1d0), trama_scale(x, 3d0)]
        call run_once(p, v, run)
        call value_is(run, v(1), a + b)
        call value_is(run, v(2), a - b)
        call value_is(run, v(3), a * b)
        call value_is(run, v(4), a / b)
        call must(trama_read(run, v(5), truth))
        call demand(all(truth .eqv. (a == b)), "other equal elements")
        call value_is(run, v(6), -a)
        call value_is(run, v(7), abs(a))
        call value_is(run, v(8), merge(0d0, sign(1d0, a), a == 0))
        call value_is(run, v(9), a**2)
        call value_is(run, v(10), sqrt(abs(a)))
        call value_is(run, v(11), exp(a))
        call value_is(run, v(12), log(abs(b)))
        call value_is(run, v(13), max(a, 0d0))
        call value_is(run, v(14), a * (1 + erf(a / sqrt(2d0))) / 2)
        call value_is(run, v(15), tanh(a))
        call value_is(run, v(16), 1 / (1 + exp(-a)))
        call value_is(run, v(17), min(max(a, -1d0), 1d0))
        call value_is(run, v(18), 3 * a)
        call close_all(run, p)
    end subroutine

    subroutine value_is(run, value, expected)
        type(trama_executable), intent(in) :: run
        type(trama_value), intent(in) :: value
        real(c_double), intent(in) :: expected(:)
        real(c_double) :: found(size(expected))
        call must(trama_read(run, value, found))
        call demand(near(found, expected, 1d-14), "another result of " // trama_value_name(value))
    end subroutine

    subroutine operators_are_ops()
        real(c_double) :: a(3), found(3)
        type(trama_program) :: p
        type(trama_value) :: x, y
        type(trama_executable) :: run
        a = [1d0, 2d0, 3d0]
        p = trama_program_create()
        x = trama_constant(p, a)
        y = -(2d0 * x * x - x / (x + x)) * 0.25d0
        call run_once(p, [y], run)
        call must(trama_read(run, y, found))
        call demand(near(found, -(2 * a * a - a / (a + a)) / 4, 1d-15), "another expression")
        call close_all(run, p)
    end subroutine

    subroutine reductions_take_dims()
        real(c_double) :: a(2, 3, 4), all_of, along(3, 4), two(3), kept(2, 1, 4)
        integer(c_int64_t) :: at(2, 4)
        integer(c_int64_t), allocatable :: extents(:)
        type(trama_program) :: p
        type(trama_value) :: x, v(8)
        type(trama_executable) :: run
        integer :: i

        a = reshape([(sin(3d0 * i), i = 1, size(a))], shape(a))
        p = trama_program_create()
        x = trama_constant(p, a)
        v = [trama_sum(x), trama_mean(x, dim=1), trama_sum_square(x, dims=[1, 3]), trama_max(x, 2, keep_dim=.true.), &
            trama_min(x, [3, 1]), trama_argmax(x, 2), trama_sum(x, [2]), trama_max(x)]
        call run_once(p, v, run)
        call must(trama_read(run, v(1), all_of))
        call demand(abs(all_of - sum(a)) < 1d-13, "another sum")
        call must(trama_read(run, v(2), along))
        call demand(maxval(abs(along - sum(a, dim=1) / 2)) < 1d-14, "another mean")
        call must(trama_read(run, v(3), two))
        call demand(near(two, sum(sum(a**2, dim=3), dim=1), 1d-13), "another sum of squares over two dims")
        call must(trama_read(run, v(4), kept))
        call demand(all(kept(:, 1, :) == maxval(a, dim=2)), "another maximum")
        call must(trama_extents(run, v(4), extents))
        call demand(all(extents == [2, 1, 4]), "a dim that is not kept")
        call must(trama_read(run, v(5), two))
        call demand(all(two == minval(minval(a, dim=3), dim=1)), "another minimum")
        call must(trama_read(run, v(6), at))
        call demand(all(at == maxloc(a, dim=2) - 1), "another place of the maximum")
        call demand(all(trama_value_shape(v(7)) == [2, 4]), "another shape of a sum")
        call must(trama_read(run, v(8), all_of))
        call demand(all_of == maxval(a), "another maximum of all")
        call close_all(run, p)
    end subroutine

    subroutine shapes_are_fortrans()
        integer(c_int32_t) :: a(2, 3, 4), other(4, 6), turned(3, 4, 2), filled(2, 3)
        type(trama_program) :: p
        type(trama_value) :: x, v(3)
        type(trama_executable) :: run
        integer :: i

        a = reshape([(i, i = 1, size(a))], shape(a))
        p = trama_program_create()
        x = trama_constant(p, a)
        v = [trama_reshape(x, shape(other)), trama_transpose(x, [2, 3, 1]), trama_fill(p, TRAMA_I32, [2, 3], 7d0)]
        call run_once(p, v, run)
        call must(trama_read(run, v(1), other))
        call demand(all(other == reshape(a, shape(other))), "another reshape than Fortran's")
        call must(trama_read(run, v(2), turned))
        call demand(all(turned == reshape(a, shape(turned), order=[3, 1, 2])), "another transpose")
        call must(trama_read(run, v(3), filled))
        call demand(all(filled == 7), "other elements than what was filled in")
        call close_all(run, p)
        p = trama_program_create()
        x = trama_transpose(trama_constant(p, a), [1, 2])
        call demand(.not. c_associated(x%at) .and. trama_program_status(p) == TRAMA_E_SHAPE, "a permutation of two dims")
        call trama_program_destroy(p)
    end subroutine

    subroutine products_are_transposed()
        real(c_double) :: a(3, 2), b(4, 3), c(2, 4)
        type(trama_program) :: p
        type(trama_value) :: z
        type(trama_executable) :: run
        integer :: i

        a = reshape([(cos(1d0 * i), i = 1, size(a))], shape(a))
        b = reshape([(sin(1d0 * i), i = 1, size(b))], shape(b))
        p = trama_program_create()
        z = trama_matmul(trama_constant(p, a), trama_constant(p, b), trans_x=.true., trans_y=.true.)
        call run_once(p, [z], run)
        call must(trama_read(run, z, c))
        call demand(maxval(abs(c - matmul(transpose(a), transpose(b)))) < 1d-14, "another product of transposes")
        call close_all(run, p)
    end subroutine

    ! The first dim of a Fortran array is transformed, and the half of a real spectrum lies along it.
    subroutine complex_numbers_are_fortrans()
        integer, parameter :: n = 6, m = 4
        complex(c_double_complex) :: z(n, m), spectrum(n, m), product(m, m), half(n / 2 + 1, m)
        complex(c_float_complex) :: small(3)
        real(c_double) :: parts(n, m), angle
        type(trama_program) :: p
        type(trama_value) :: x, v(7)
        type(trama_executable) :: run
        integer :: i, j, k

        z = reshape([(cmplx(cos(1d0 * i), sin(2d0 * i), c_double_complex), i = 1, size(z))], shape(z))
        p = trama_program_create()
        x = trama_constant(p, z)
        v = [trama_fft(x, [1], TRAMA_FOURIER_BACKWARD), trama_matmul_op(x, x, TRAMA_CONJ_TRANS, TRAMA_NO_TRANS), &
            trama_abs(x), trama_real(x), &
            trama_rfft(trama_imag(x), [1], TRAMA_FOURIER_BACKWARD), &
            trama_ifft(trama_fft(x, [1, 2], TRAMA_FOURIER_ORTHO), [1, 2], TRAMA_FOURIER_ORTHO), &
            trama_conj(trama_constant(p, [(1., 2.), (3., -4.), (0., 1.)]))]
        call run_once(p, v, run)
        call must(trama_read(run, v(1), spectrum))
        do j = 1, m
            do k = 0, n - 1
                do i = 0, n - 1
                    angle = -2 * acos(-1d0) * i * k / n
                    spectrum(k + 1, j) = spectrum(k + 1, j) - z(i + 1, j) * cmplx(cos(angle), sin(angle), c_double_complex)
                end do
            end do
        end do
        call demand(maxval(abs(spectrum)) < 1d-13, "another transform")
        call must(trama_read(run, v(2), product))
        call demand(maxval(abs(product - matmul(conjg(transpose(z)), z))) < 1d-13, "another product with the adjoint")
        call must(trama_read(run, v(3), parts))
        call demand(maxval(abs(parts - abs(z))) < 1d-14, "other magnitudes")
        call must(trama_read(run, v(4), parts))
        call demand(all(parts == real(z)), "other real parts")
        call must(trama_read(run, v(5), half))
        call demand(maxval(abs(half(1, :) - sum(aimag(z), 1))) < 1d-13, "another half of a spectrum")
        call must(trama_read(run, v(6), spectrum))
        call demand(maxval(abs(spectrum - z)) < 1d-14, "not there and back")
        call must(trama_read(run, v(7), small))
        call demand(all(small == [(1., -2.), (3., 4.), (0., -1.)]), "other conjugates")
        call refused(trama_read(run, v(7), parts), TRAMA_E_DTYPE, "the array is f64")
        call close_all(run, p)
    end subroutine

    subroutine losses_count_labels_from_zero()
        real(c_double) :: z(3, 5), parts(3, 5), loss, expected
        integer(c_int32_t) :: labels(5)
        type(trama_program) :: p
        type(trama_value) :: cost
        type(trama_executable) :: run
        integer :: i

        z = reshape([(sin(2d0 * i), i = 1, size(z))], shape(z))
        labels = [0, 2, 1, 1, 0]
        parts = exp(z) / spread(sum(exp(z), dim=1), 1, 3)
        expected = -sum([(log(parts(labels(i) + 1, i)), i = 1, 5)]) / 5
        p = trama_program_create()
        cost = trama_cross_entropy(trama_constant(p, z), trama_constant(p, labels))
        call run_once(p, [cost], run)
        call must(trama_read(run, cost, loss))
        call demand(abs(loss - expected) < 1d-14, "another cross entropy")
        call close_all(run, p)
    end subroutine

    subroutine numbers_are_converted()
        real(c_double) :: a(4)
        integer(c_int32_t) :: whole(4)
        integer(c_int16_t) :: bits(4), halves(4)
        type(trama_program) :: p
        type(trama_value) :: x, v(4)
        type(trama_executable) :: run

        a = [1.75d0, -2.25d0, 3d0, 1d0 / 3]
        p = trama_program_create()
        x = trama_constant(p, a)
        v = [trama_cast(x, TRAMA_I32), trama_cast(x, TRAMA_BF16), trama_cast(x, TRAMA_F16), &
            trama_cast(trama_constant(p, trama_bf16_of_double(a), dtype=TRAMA_BF16), TRAMA_I32)]
        call run_once(p, v, run)
        call must(trama_read(run, v(1), whole))
        call demand(all(whole == int(a)), "another conversion")
        call must(trama_read(run, v(2), bits))
        call demand(all(bits == int([16352, -16368, 16448, 16043], c_int16_t)), "other bits of bf16")
        call demand(all(bits == trama_bf16_of_double(a)), "another rounding to bf16")
        call demand(all(trama_float_of_bf16(bits(:3)) == a(:3)), "another value of bf16")
        call must(trama_read(run, v(3), halves))
        call demand(all(halves == int([16128, -16256, 16896, 13653], c_int16_t)), "other bits of f16")
        call demand(all(halves == trama_f16_of_float(real(a, c_float))), "another rounding to f16")
        call must(trama_read(run, v(4), whole))
        call demand(all(whole == int(a)), "a constant of bf16 that has changed")
        call refused(trama_read(run, v(1), halves), TRAMA_E_DTYPE, "the array is i16")
        call close_all(run, p)
        p = trama_program_create()
        x = trama_constant(p, bits)
        call demand(trama_value_dtype(x) == TRAMA_I16, "16 bits that are no integer")
        x = trama_constant(p, bits, dtype=TRAMA_U16)
        call demand(trama_value_dtype(x) == TRAMA_U16, "16 bits that are not what dtype= says")
        x = trama_constant(p, [.true._c_bool, .false._c_bool])
        call demand(trama_value_dtype(x) == TRAMA_BOOL, "logicals that are not bool")
        call trama_program_destroy(p)
    end subroutine

    ! Philox4x32-10 of counter 0 and key 0, of Random123's known answers.
    subroutine random_numbers_are_philox()
        real(c_double) :: found(4), state(4)
        integer(c_int64_t) :: words(4)
        type(trama_program) :: p
        type(trama_value) :: x, s
        type(trama_executable) :: run
        words = [1713891541_c_int64_t, 3781805453_c_int64_t, 3159862348_c_int64_t, 2600524760_c_int64_t]
        p = trama_program_create()
        x = trama_uniform_fixed(p, TRAMA_F64, [2, 2], 1d0, 3d0, seed=0, stream=0, step=0)
        s = trama_parameter(p, "s", TRAMA_F64, [4], low=-1d0, high=1d0, seed=0)
        call run_once(p, [x], run)
        call must(trama_read(run, x, found))
        call demand(all(found == 1 + 2 * (words / 256) * 2d0**(-24)), "other random numbers")
        call must(trama_read(run, s, state))
        call demand(all(state == -1 + 2 * (words / 256) * 2d0**(-24)), "another start of a parameter")
        call close_all(run, p)
    end subroutine

    subroutine extents_may_be_wide()
        integer(c_int64_t), parameter :: n = 3, m = 2
        real(c_float) :: a(n, m), found(1, m)
        type(trama_program) :: p
        type(trama_value) :: x, y
        type(trama_target) :: t
        type(trama_executable) :: run
        a = reshape([1., 2., 3., 4., 5., 6.], shape(a))
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F32, [n, m])
        y = trama_slice(x, 1, from=2_c_int64_t, extent=1_c_int64_t)
        t = trama_target_create(p, "t", [y])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, x, a))
        call must(trama_run(run, t))
        call must(trama_read(run, y, found))
        call demand(all(found(1, :) == a(2, :)), "another slice")
        call demand(all(trama_value_shape(x) == [n, m]) .and. trama_shape_count([n, m]) == 6, "another shape")
        call demand(trama_shape_equal([3, 2], [3, 2]) .and. .not. trama_shape_equal([3, 2], [2, 3]), "equal shapes")
        call close_all(run, p)
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F32, [5000000000_c_int64_t])
        call demand(all(trama_value_shape(x) == [5000000000_c_int64_t]), "an extent that is cut")
        call trama_program_destroy(p)
    end subroutine

    ! Scalars, sections with gaps in both directions, and a rank that takes part without an array.
    subroutine arrays_of_any_kind_are_read()
        real(c_double) :: a(4, 6), room(8, 12), one
        type(trama_program) :: p
        type(trama_value) :: x, total
        type(trama_target) :: t
        type(trama_executable) :: run
        type(trama_reading) :: reading
        integer :: i

        a = reshape([(1d0 * i, i = 1, size(a))], shape(a))
        room = -1
        room(8:2:-2, 1:12:2) = a
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F64, shape(a))
        total = trama_sum(x)
        t = trama_target_create(p, "t", [total])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, x, room(8:2:-2, 1:12:2)))
        call must(trama_run(run, t))
        room = -1
        call must(trama_read(run, x, room(1:4, 12:2:-2)))
        call demand(all(room(1:4, 12:2:-2) == a) .and. count(room == -1) == size(room) - size(a), "another section")
        call must(trama_read(run, total))
        call must(trama_read_start(run, total, reading))
        do while (.not. trama_read_ready(reading))
        end do
        call must(trama_read_wait(reading, one))
        call demand(one == 300 .and. .not. c_associated(reading%at), "another total")
        call refused(trama_read(run, x, room), TRAMA_E_SHAPE, "")
        call refused(trama_feed(run, x, [.true._c_bool]), TRAMA_E_DTYPE, "the array is bool")
        call refused(trama_feed(run, x, [.true.]), TRAMA_E_DTYPE, "no such element type")
        call close_all(run, p)
    end subroutine

    ! Elements of a derived type lie at no whole number of elements from each other.
    subroutine arrays_may_be_empty_or_components()
        type :: particle
            integer(c_int8_t) :: colour(3)
            real(c_float) :: mass
            integer(c_int32_t) :: number
            integer(c_int8_t) :: charge
        end type
        type(particle) :: particles(3, 2), others(3, 2)
        real(c_float) :: nine(1, 1, 1, 1, 1, 1, 1, 1, 1)
        integer(c_int8_t) :: charges(2, 3)
        real(c_double), allocatable :: none(:, :)
        real(c_double) :: total
        type(trama_program) :: p
        type(trama_value) :: x, y, z, sums
        type(trama_target) :: t
        type(trama_executable) :: run
        integer :: i
        particles%mass = reshape([(0.5 * i, i = 1, 6)], [3, 2])
        particles%charge = reshape([(int(i, c_int8_t), i = 1, 6)], [3, 2])
        others%mass = 0
        allocate (none(2, 0))
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F32, [3, 2])
        y = trama_input(p, "y", TRAMA_F64, [2, TRAMA_ANY])
        z = trama_transpose(trama_constant(p, particles%charge))
        sums = trama_sum(y)
        t = trama_target_create(p, "t", [trama_neg(x), z, sums])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, x, particles%mass))
        call must(trama_feed(run, y, reshape([real(c_double) ::], [2, 0])))
        call must(trama_run(run, t))
        call must(trama_read(run, x, others%mass))
        call demand(all(others%mass == particles%mass), "components that are fed or read otherwise")
        call must(trama_read(run, z, charges))
        call demand(all(charges == transpose(particles%charge)), "components that are another constant")
        call must(trama_read(run, sums, total))
        call demand(total == 0, "another sum of nothing")
        call must(trama_read(run, y, none))
        nine = 0
        call refused(trama_feed(run, x, nine), TRAMA_E_SHAPE, "more than 8 dims")
        call close_all(run, p)
        call assumed_size(nine)
    end subroutine

    subroutine assumed_size(a)
        real(c_float), intent(in) :: a(2, *)
        type(trama_program) :: p
        type(trama_value) :: x
        p = trama_program_create()
        x = trama_constant(p, a(:, :0))
        call demand(all(trama_value_shape(x) == [2, 0]), "a section of an array of assumed size")
        call trama_program_destroy(p)
    end subroutine

    subroutine wrong_dims_name_the_place()
        type(trama_program) :: p
        type(trama_value) :: x, y
        integer :: i
        do i = 1, 5
            p = trama_program_create()
            x = trama_input(p, "x", TRAMA_F64, [4, 3])
            call trama_at("dims.f90", 10 + i)
            select case (i)
            case (1); y = trama_sum(x, dim=3)
            case (2); y = trama_softmax(x, 0)
            case (3); y = trama_mean(x, [1, -1])
            case (4); y = trama_slice(x, 5, 1, 1)
            case (5); y = trama_max(x, [1, 2, 1, 2, 1, 2, 1, 2, 1])
            end select
            call demand(.not. c_associated(y%at), "a dim that is none")
            call demand(trama_program_status(p) == TRAMA_E_ARGUMENT, "another status than that of a wrong dim")
            call has(trama_program_error(p), "dims.f90:1" // achar(iachar("0") + i))
            call has(trama_program_error(p), "x has 2 dims")
            call trama_at("", 0)
            call trama_program_destroy(p)
        end do
    end subroutine
end program
