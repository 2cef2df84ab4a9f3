! SPDX-License-Identifier: Apache-2.0
! The Fortran module: order of dims, every element type and rank, errors, options, and training against plain loops.
program test_fortran
    use, intrinsic :: iso_c_binding
    use trama
    implicit none
    type(trama_context) :: context, second
    type(trama_config) :: config

    config%workers = 1
    config%ways = 3
    call demand(trama_start(second, communicator=0) /= TRAMA_OK, "a communicator without MPI")
    call demand(index(trama_error(), "communicator") > 0, "a message without its reason")
    call must(trama_start(context, config=config))
    call demand(trama_start(second, config=config) == TRAMA_E_ORDER, "a second context")
    call arrays_keep_their_order()
    call ops_are_of_arrays()
    call windows_count_from_one()
    call errors_name_the_place()
    call steps_are_those_of_plain_loops()
    call must(trama_stop(context))

contains

    subroutine demand(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) error stop what // "; last message: " // trama_error()
    end subroutine

    subroutine must(status)
        integer, intent(in) :: status
        call demand(status == TRAMA_OK, "a call failed")
    end subroutine

    subroutine arrays_keep_their_order()
        real(c_float) :: a(2, 3, 4), b(2, 3, 4)
        integer(c_int32_t) :: whole(6), at(3)
        integer(c_int64_t) :: long(2, 2), found(2, 2)
        integer(c_int64_t), allocatable :: extents(:)
        character(:), allocatable :: text
        type(trama_program) :: p
        type(trama_value) :: x, n, s, first
        type(trama_target) :: t
        type(trama_executable) :: run
        type(trama_mesh) :: mesh
        integer :: i

        a = reshape([(real(i, c_float), i = 1, size(a))], shape(a))
        whole = [(i, i = 1, 6)]
        long = reshape([5000000000_c_int64_t, 2_c_int64_t, 3_c_int64_t, 4_c_int64_t], [2, 2])
        mesh = trama_mesh_parse("2")
        call demand(trama_mesh_size(mesh) == 2, "a mesh of two")
        p = trama_program_new()
        x = trama_shard(trama_input(p, "x", TRAMA_F32, [2, TRAMA_ANY, 4]), mesh, "S(2)")
        n = trama_input(p, "n", TRAMA_I32, [3])
        s = trama_state(p, "s", TRAMA_I64, [2, 2])
        first = trama_sum(x, dim=1)
        t = trama_target_new(p, "t", [trama_scale(x, 2.0_c_double), trama_add(n, n), first])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, x, a))
        call must(trama_feed(run, n, whole(1:6:2))) ! not contiguous
        call must(trama_run(run, t))
        call must(trama_read(run, x, b))
        call demand(all(a == b), "an array that changes its order")
        call must(trama_read(run, n, at))
        call demand(all(at == [1, 3, 5]), "a section that is not what was fed")
        call must(trama_extents(run, x, extents))
        call demand(all(extents == shape(a)), "other extents")
        call must(trama_extents(run, first, extents))
        call demand(all(extents == [3, 4]), "a sum over another dim")
        call must(trama_write(run, s, long))
        call must(trama_read(run, s, found))
        call demand(all(found == long), "another state")
        call must(trama_print(run, n, 9, text))
        call demand(index(text, "5") > 0, "a print without its numbers")
        call must(trama_layout_of(run, x, text))
        call demand(index(text, "S(2)") > 0, "another layout: " // text)
        call must(trama_wait(run))
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine ops_are_of_arrays()
        real(c_double) :: a(3, 2), b(2, 4), c(3, 4), rows(4), largest, z(3, 4), turned(4, 3), parts(3, 4)
        type(trama_program) :: p
        type(trama_value) :: x, y, product, sums, top, mixed, back, soft
        type(trama_target) :: t
        type(trama_executable) :: run

        a = reshape([1d0, -2d0, 3d0, 0.5d0, 5d0, -6d0], shape(a))
        b = reshape([1d0, 2d0, -3d0, 4d0, 0.25d0, 6d0, 7d0, -8d0], shape(b))
        p = trama_program_new()
        x = trama_constant(p, a)
        y = trama_constant(p, b)
        product = trama_matmul(x, y)
        sums = trama_mean(product, dim=1)
        top = trama_max(trama_abs(product))
        mixed = (trama_relu(product) - 2d0 * trama_square(product)) / trama_exp(trama_tanh(product)) &
            + trama_neg(product)
        back = trama_transpose(product)
        soft = trama_softmax(product, 1)
        t = trama_target_new(p, "t", [product, sums, top, mixed, back, soft])
        call must(trama_compile(context, p, run))
        call must(trama_run(run, t))
        call must(trama_read(run, product, c))
        call demand(maxval(abs(c - matmul(a, b))) < 1d-12, "another product than matmul's")
        c = matmul(a, b)
        call must(trama_read(run, sums, rows))
        call demand(maxval(abs(rows - sum(c, dim=1) / 3)) < 1d-12, "another mean")
        call must(trama_read(run, top, largest))
        call demand(abs(largest - maxval(abs(c))) < 1d-12, "another maximum")
        call must(trama_read(run, mixed, z))
        call demand(maxval(abs(z - ((max(c, 0d0) - 2 * c**2) / exp(tanh(c)) - c))) < 1d-9, "another expression")
        call must(trama_read(run, back, turned))
        call demand(maxval(abs(turned - transpose(c))) < 1d-12, "another transpose")
        call must(trama_read(run, soft, parts))
        call demand(maxval(abs(sum(parts, dim=1) - 1)) < 1d-12, "a softmax over another dim")
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
    end subroutine

    subroutine windows_count_from_one()
        integer(c_int32_t) :: a(5, 4), slice(2, 4), pad(5, 7), shift(5, 4), back(5, 4), window(4, 6), moved(4, 6)
        type(trama_program) :: p
        type(trama_value) :: x, values(5)
        type(trama_target) :: t
        type(trama_executable) :: run
        integer :: i, j

        a = reshape([(i, i = 1, size(a))], shape(a))
        p = trama_program_new()
        x = trama_constant(p, a)
        values = [trama_slice(x, 1, 2, 2), trama_pad(x, 2, 1, 2), trama_shift(x, 1, 2), trama_shift(x, 2, -1), &
            trama_window(x, [2, -1], shape(window))]
        t = trama_target_new(p, "t", values)
        call must(trama_compile(context, p, run))
        call must(trama_run(run, t))
        call must(trama_read(run, values(1), slice))
        call demand(all(slice == a(2:3, :)), "another slice")
        call must(trama_read(run, values(2), pad))
        call demand(all(pad(:, 2:5) == a) .and. all(pad(:, 1) == 0) .and. all(pad(:, 6:) == 0), "other zeros")
        call must(trama_read(run, values(3), shift))
        call must(trama_read(run, values(4), back))
        do j = 1, 4
            call demand(all(shift(:, j) == eoshift(a(:, j), -2)), "another shift")
        end do
        do i = 1, 5
            call demand(all(back(i, :) == eoshift(a(i, :), 1)), "another shift back")
        end do
        call must(trama_read(run, values(5), window))
        moved = 0
        moved(1:3, 2:5) = a(3:5, :)
        call demand(all(window == moved), "another window")
        call must(trama_executable_destroy(run))
        x = trama_slice(x, 3, 1, 1)
        call demand(.not. c_associated(x%at), "a slice along a third dim")
        call trama_program_destroy(p)
    end subroutine

    subroutine errors_name_the_place()
        real(c_double) :: room(3, 2)
        real(c_float) :: short(2, 3)
        type(trama_program) :: p
        type(trama_value) :: x, wrong
        type(trama_target) :: t
        type(trama_executable) :: run

        p = trama_program_new()
        x = trama_input(p, "x", TRAMA_F64, [2, 3])
        t = trama_target_new(p, "t", [trama_square(x)])
        call must(trama_compile(context, p, run))
        call trama_at("somewhere.f90", 77)
        call demand(trama_feed(run, x, room) == TRAMA_E_SHAPE, "a wrong shape")
        call demand(index(trama_error(), "somewhere.f90:77") > 0, "a message without its place")
        call demand(trama_feed(run, x, short) == TRAMA_E_DTYPE, "a wrong type")
        call demand(index(trama_error(), "f32") > 0 .and. index(trama_error(), "f64") > 0, "a message without types")
        call demand(trama_run(run, t) == TRAMA_E_ORDER, "a run that was not fed")
        call must(trama_executable_destroy(run))
        wrong = trama_relu(trama_matmul(x, x))
        call demand(.not. c_associated(wrong%at), "a product of shapes that do not fit")
        call demand(trama_program_status(p) == TRAMA_E_SHAPE, "a program without its error")
        call trama_at("", 0)
        wrong = trama_input(p, "y", TRAMA_F64, [1, 1, 1, 1, 1, 1, 1, 1, 1])
        call demand(.not. c_associated(wrong%at), "nine dims")
        call trama_program_destroy(p)
    end subroutine

    ! A least-squares fit by sgd with momentum, and one step of adam.
    subroutine steps_are_those_of_plain_loops()
        integer, parameter :: features = 3, samples = 5, steps = 10
        real(c_double) :: x(features, samples), y(1, samples), w(1, features), v(1, features), g(1, features)
        real(c_double) :: found(1, features), error(1, samples), loss, found_loss
        type(trama_optimizer) :: sgd, adam, adamw
        type(trama_program) :: p
        type(trama_value) :: points, values, weights, cost
        type(trama_target) :: fit, leap
        type(trama_executable) :: run
        type(trama_mesh) :: mesh
        integer :: i

        x = reshape([(sin(2d0 * i), i = 1, size(x))], shape(x))
        y = reshape([(cos(3d0 * i), i = 1, size(y))], shape(y))
        sgd = trama_sgd(0.05d0)
        call demand(sgd%lr == 0.05d0 .and. sgd%momentum == 0 .and. sgd%n_groups == 0 .and. sgd%loss_scale%initial == 0 &
            .and. sgd%clip_norm > huge(1d0), "sgd's options lie elsewhere")
        adamw = trama_adamw(0.1d0)
        call demand(adamw%weight_decay == 0.01d0 .and. adamw%beta1 == 0.9d0 .and. adamw%beta2 == 0.999d0 .and. &
            adamw%eps == 1d-8, "adamw's options lie elsewhere")
        adam = trama_adam(0.25d0)
        sgd%momentum = 0.5d0

        mesh = trama_mesh_parse("dp=2")
        p = trama_program_new()
        points = trama_shard(trama_input(p, "x", TRAMA_F64, [features, TRAMA_ANY]), mesh, "S(0)")
        values = trama_input(p, "y", TRAMA_F64, [1, TRAMA_ANY])
        weights = trama_parameter(p, "w", TRAMA_F64, [1, features], low=0.5d0)
        cost = trama_mean(trama_square(trama_matmul(weights, points) - values))
        fit = trama_target_new(p, "fit", [trama_minimize(cost, sgd), cost])
        leap = trama_target_new(p, "leap", [trama_minimize(cost, adam)])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, points, x))
        call must(trama_feed(run, values, y))
        w = 0.5d0
        v = 0
        loss = 0
        do i = 1, steps
            call must(trama_run(run, fit))
            error = matmul(w, x) - y
            loss = sum(error**2) / samples
            g = 2 * matmul(error, transpose(x)) / samples
            v = 0.5d0 * v + g
            w = w - 0.05d0 * v
        end do
        call must(trama_read(run, cost, found_loss))
        call demand(abs(found_loss - loss) < 1d-12, "another loss")
        call must(trama_read(run, weights, found))
        call demand(maxval(abs(found - w)) < 1d-12, "other weights")
        call must(trama_run(run, leap))
        call must(trama_read(run, weights, found))
        g = 2 * matmul(matmul(w, x) - y, transpose(x)) / samples
        w = w - 0.25d0 * g / (abs(g) + 1d-8) ! the first step of adam
        call demand(maxval(abs(found - w)) < 1d-9, "another step of adam")
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
    end subroutine
end program
