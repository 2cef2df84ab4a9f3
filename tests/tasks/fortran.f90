! SPDX-License-Identifier: Apache-2.0
! The Fortran module: order of dims, every element type and rank, errors, options, arrays that are used
! where they lie, and training against plain loops.
program test_fortran
    use, intrinsic :: iso_c_binding
    use trama
    implicit none
    type(trama_context) :: context, second
    type(trama_config) :: config

    config%workers = 1
    config%max_tiles = 3
    call demand(trama_start(second, communicator=0) /= TRAMA_OK, "a communicator without MPI")
    call demand(index(trama_error(), "communicator") > 0, "a message without its reason")
    call must(trama_start(context, config=config))
    call demand(trama_start(second, config=config) == TRAMA_E_ORDER, "a second context")
    call arrays_keep_their_order()
    call datasets_are_tensors()
    call ops_are_of_arrays()
    call windows_count_from_one()
    call sections_are_tensors()
    call boxes_make_a_tensor()
    call blocks_are_dealt_out_as_scalapack_does()
    call errors_name_the_place()
    call wraps_name_the_place()
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
        mesh = trama_mesh_create("2")
        call demand(trama_mesh_size(mesh) == 2, "a mesh of two")
        p = trama_program_create()
        x = trama_shard(trama_input(p, "x", TRAMA_F32, [2, TRAMA_ANY, 4]), mesh, "S(2)")
        n = trama_input(p, "n", TRAMA_I32, [3])
        s = trama_state(p, "s", TRAMA_I64, [2, 2])
        first = trama_sum(x, dim=1)
        t = trama_target_create(p, "t", [trama_scale(x, 2.0_c_double), trama_add(n, n), first])
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

    !> A file of HDF5 has a dataset of the extents in C's order.
    subroutine datasets_are_tensors()
        character(*), parameter :: file = "fortran_datasets.h5"
        real(c_float) :: a(2, 5, 4), b(2, 3, 4)
        type(trama_program) :: p
        type(trama_value) :: x, s
        type(trama_target) :: t
        type(trama_executable) :: run
        integer :: i, status

        a = reshape([(real(i, c_float), i = 1, size(a))], shape(a))
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F32, [2, TRAMA_ANY, 4])
        s = trama_state(p, "s", TRAMA_F32, shape(a))
        t = trama_target_create(p, "t", [trama_sum(x)])
        call must(trama_compile(context, p, run))
        call must(trama_write(run, s, a))
        status = trama_write_dataset(run, s, file, "/group/s", [1, 1, 1])
        if (status /= TRAMA_E_UNSUPPORTED) then ! built without HDF5
            call must(status)
            call must(trama_feed_dataset(run, x, file, "/group/s", [1, 2, 1], [2, 3, 4]))
            call must(trama_run(run, t))
            call must(trama_read(run, x, b))
            call demand(all(b == a(:, 2:4, :)), "another part of the dataset")
            call must(trama_feed_dataset(run, x, file, "/group/s", [1, 1, 1], [2, 3, 4]))
            call must(trama_read(run, x, b))
            call demand(all(b == a(:, :3, :)), "a part that does not begin at the dataset's")
            call demand(trama_feed_dataset(run, x, file, "/group/s", [1, 2], [2, 3, 4]) == TRAMA_E_SHAPE, "a short first")
            call demand(trama_feed_dataset(run, x, file, "/group/s", [1, 4, 1], [2, 3, 4]) == TRAMA_E_SHAPE, &
                "a part beyond the end")
        end if
        call must(trama_wait(run))
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
        open (newunit=i, file=file, iostat=status)
        close (i, status="delete", iostat=status)
    end subroutine

    subroutine ops_are_of_arrays()
        real(c_double) :: a(3, 2), b(2, 4), c(3, 4), rows(4), largest, z(3, 4), turned(4, 3), parts(3, 4)
        type(trama_program) :: p
        type(trama_value) :: x, y, product, sums, top, mixed, back, soft
        type(trama_target) :: t
        type(trama_executable) :: run

        a = reshape([1d0, -2d0, 3d0, 0.5d0, 5d0, -6d0], shape(a))
        b = reshape([1d0, 2d0, -3d0, 4d0, 0.25d0, 6d0, 7d0, -8d0], shape(b))
        p = trama_program_create()
        x = trama_constant(p, a)
        y = trama_constant(p, b)
        product = trama_matmul(x, y)
        sums = trama_mean(product, dim=1)
        top = trama_max(trama_abs(product))
        mixed = (trama_relu(product) - 2d0 * trama_square(product)) / trama_exp(trama_tanh(product)) &
            + trama_neg(product)
        back = trama_transpose(product)
        soft = trama_softmax(product, 1)
        t = trama_target_create(p, "t", [product, sums, top, mixed, back, soft])
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
        p = trama_program_create()
        x = trama_constant(p, a)
        values = [trama_slice(x, 1, 2, 2), trama_pad(x, 2, 1, 2), trama_shift(x, 1, 2), trama_shift(x, 2, -1), &
            trama_window(x, [2, -1], shape(window))]
        t = trama_target_create(p, "t", values)
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

    ! What this rank has of n: the lower the rank the more.
    subroutine my_part(n, first, extent)
        integer, intent(in) :: n
        integer, intent(out) :: first, extent
        integer :: rank, ranks, shares
        rank = trama_context_rank(context)
        ranks = trama_context_ranks(context)
        shares = ranks * (ranks + 1) / 2
        first = 1 + n * (rank * (2 * ranks - rank + 1) / 2) / shares
        extent = 1 + n * ((rank + 1) * (2 * ranks - rank) / 2) / shares - first
    end subroutine

    ! Every second row and every third plane of a larger array, into the middle of another; and through an executable.
    subroutine sections_are_tensors()
        integer, parameter :: n = 5, k = 11
        integer, target, asynchronous :: from(0:2 * n, 3, 0:3 * k)
        integer, target, asynchronous, allocatable :: to(:, :, :)
        integer :: first, extent, i, j, l
        logical :: copied
        type(trama_wrapped) :: a, b
        type(trama_traffic) :: traffic
        type(trama_host_box) :: a_piece
        type(trama_program) :: p
        type(trama_value) :: x, y, s
        type(trama_target) :: t
        type(trama_executable) :: run

        call my_part(k, first, extent)
        from = -1
        do l = 1, extent
            do j = 1, 3
                do i = 1, n
                    from(2 * i - 1, j, 3 * l) = number_of(i, j, first + l - 1)
                end do
            end do
        end do
        allocate (to(n + 2, 0:4, k + 1))
        to = -2
        call must(trama_wrap(context, "from", from(1:2*n-1:2, :, 3:3*extent:3), [n, 3, k], [1, 1, first], &
            TRAMA_READ_ONLY, a))
        call must(trama_wrap(context, "to", to(2:n+1, 1:3, 2:), [n, 3, k], [1, 1, 1], TRAMA_READ_WRITE, b))
        call must(trama_reshard_wrapped(a, b))
        call must(trama_wait_wrapped(b))
        call demand(values_are(to(2:n+1, 1:3, 2:), 1), "a reshard between sections")
        call demand(count(to == -2) == size(to) - 3 * n * k, "an element beside the section")
        call must(trama_wrapped_traffic(b, traffic))
        call demand(c_sizeof(traffic) == 96 .and. c_sizeof(a_piece) == 224, "structures of other sizes than C's")
        call demand(traffic%bytes_received == 4 * n * 3 * (k - extent), "other traffic")

        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_I32, [n, 3, k])
        y = trama_add(x, x)
        s = trama_state(p, "s", TRAMA_I32, [n, 3, k])
        t = trama_target_create(p, "t", [y])
        call must(trama_compile(context, p, run))
        call must(trama_feed_wrapped(run, x, a, copied))
        call demand(copied .eqv. trama_context_ranks(context) > 1, "other ranks' elements without a copy")
        call must(trama_run(run, t))
        call must(trama_read_wrapped(run, y, b))
        call must(trama_write_wrapped(run, s, a))
        call must(trama_wait_wrapped(b))
        call demand(values_are(to(2:n+1, 1:3, 2:), 2), "twice a section")
        call demand(count(to == -2) == size(to) - 3 * n * k, "an element beside what was read")
        call must(trama_read_wrapped(run, s, b))
        call demand(trama_read_wrapped(run, s, a) == TRAMA_E_ARGUMENT, "a write to what is read only")
        call must(trama_release(b))
        call demand(values_are(to(2:n+1, 1:3, 2:), 1), "another state")
        call must(trama_release(a))
        call demand(.not. c_associated(a%at) .and. trama_wait_wrapped(a) == TRAMA_E_ARGUMENT, "a released tensor")
        call demand(count(from == -1) == size(from) - 3 * n * extent, "a write to what is read only")
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
    end subroutine

    integer function number_of(i, j, l)
        integer, intent(in) :: i, j, l
        number_of = i + 10 * j + 100 * l
    end function

    logical function values_are(data, factor)
        integer, intent(in) :: data(:, :, :), factor
        integer :: i, j, l
        values_are = .true.
        do l = 1, size(data, 3)
            do j = 1, size(data, 2)
                do i = 1, size(data, 1)
                    values_are = values_are .and. data(i, j, l) == factor * number_of(i, j, l)
                end do
            end do
        end do
    end function

    ! A matrix in two boxes, of which only the first rank has any; into what a layout says, which is fed without a copy.
    subroutine boxes_make_a_tensor()
        integer, parameter :: n = 9, m = 2
        real(c_float), target, asynchronous :: low(m, 3), high(0:m, 6)
        real(c_float), target, asynchronous, allocatable :: mine(:, :)
        real(c_float) :: whole(m, n)
        type(trama_host_box), allocatable :: pieces(:)
        integer :: first(2), extent(2), i, j
        logical :: copied
        type(trama_wrapped) :: a, b
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: x, y
        type(trama_target) :: t
        type(trama_executable) :: run
        character(8) :: processes

        whole = reshape([(real(i, c_float), i = 1, size(whole))], shape(whole))
        low = whole(:, :3)
        high = -1
        high(1:, :) = whole(:, 4:)
        allocate (pieces(0))
        if (trama_context_rank(context) == 0) pieces = [trama_host_box(high(1:, :), [1, 4]), trama_host_box(low)]
        call must(trama_wrap(context, "boxes", TRAMA_F32, [m, n], pieces, TRAMA_READ_ONLY, a))

        write (processes, "(i0)") trama_context_ranks(context)
        mesh = trama_mesh_create(processes)
        call must(trama_box_of_layout(mesh, "S(0)", [m, n], trama_context_rank(context), first, extent))
        allocate (mine(extent(1), extent(2)))
        mine = 0
        call must(trama_wrap(context, "mine", mine, [m, n], first, TRAMA_READ_WRITE, b))
        call must(trama_reshard_wrapped(a, b))
        call must(trama_wait_wrapped(b))
        do j = 1, extent(2)
            call demand(all(mine(:, j) == whole(:, first(2) + j - 1)), "another box")
        end do

        p = trama_program_create()
        x = trama_shard(trama_input(p, "x", TRAMA_F32, [m, n]), mesh, "S(0)")
        y = trama_sum(x, dim=2)
        t = trama_target_create(p, "t", [y])
        call must(trama_compile(context, p, run))
        call must(trama_feed_wrapped(run, x, b, copied))
        call demand(.not. copied, "a copy of what lies as it is asked for")
        mine = 2 * mine
        call must(trama_run(run, t))
        call must(trama_read(run, y, low(:, 1)))
        call demand(all(low(:, 1) == 2 * sum(whole, dim=2)), "a run that reads something else")
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
        call must(trama_release(b))
        call must(trama_release(a))
        call trama_mesh_destroy(mesh)
    end subroutine

    ! Element (i, j) of a matrix in blocks of 2 x 3, on a grid of 1 x ranks whose last process has the first block.
    subroutine blocks_are_dealt_out_as_scalapack_does()
        integer, parameter :: m = 5, n = 13, mb = 2, nb = 3, ld = 6
        integer(c_int64_t), target, asynchronous :: local(ld, n), whole(m, n)
        integer(c_int) :: descriptor(9)
        type(trama_host_box), allocatable :: pieces(:)
        type(trama_wrapped) :: a, b
        integer :: rank, ranks, i, j, at

        rank = trama_context_rank(context)
        ranks = trama_context_ranks(context)
        descriptor = [1, 0, m, n, mb, nb, 0, ranks - 1, ld]
        local = -1
        at = 0
        do j = 1, n
            if (mod((j - 1) / nb + ranks - 1, ranks) /= rank) cycle
            at = at + 1
            local(:m, at) = [(100 * i + j, i = 1, m)]
        end do
        call must(trama_host_boxes_block_cyclic(descriptor, 1, ranks, 0, rank, local, pieces))
        call must(trama_wrap(context, "cyclic", TRAMA_I64, [m, n], pieces, TRAMA_READ_ONLY, a))
        call must(trama_wrap(context, "whole", whole, [m, n], [1, 1], TRAMA_READ_WRITE, b))
        call must(trama_reshard_wrapped(a, b))
        call must(trama_release(b))
        call must(trama_release(a))
        do j = 1, n
            do i = 1, m
                call demand(whole(i, j) == 100 * i + j, "another element of a block")
            end do
        end do
        descriptor(5) = 0
        call demand(trama_host_boxes_block_cyclic(descriptor, 1, ranks, 0, rank, local, pieces) == TRAMA_E_ARGUMENT &
            .and. size(pieces) == 0, "blocks of no rows")
        descriptor(5) = mb
        call demand(trama_host_boxes_block_cyclic(descriptor, 1, ranks, 0, rank, local(2:, :), pieces) &
            == TRAMA_E_ARGUMENT, "a local array with gaps")
    end subroutine

    ! Some are wrong on one rank only: all are told.
    subroutine wraps_name_the_place()
        type :: particle
            real(c_float) :: mass
            integer(c_int8_t) :: colour(3)
        end type
        type(particle), target, asynchronous :: particles(4)
        real(c_double), target, asynchronous :: a(4, 6)
        logical, target, asynchronous :: truth(4, 6)
        integer :: only_first, status
        type(trama_wrapped) :: w

        only_first = merge(1, 0, trama_context_rank(context) == 0)
        call trama_at("elsewhere.f90", 78)
        call refused(trama_wrap(context, "a", a(:, 2:5), [4, 6], [1, 4], TRAMA_READ_WRITE, w), TRAMA_E_SHAPE, &
            "elsewhere.f90:78")
        call refused(trama_wrap(context, "a", a(:, 1 + only_first:), [4, 6], [1, 1 + 2 * only_first], &
            TRAMA_READ_WRITE, w), TRAMA_E_SHAPE, "'a': box 0")
        call refused(trama_wrap(context, "a", a(:, 1), [4, 6], [1, 1], TRAMA_READ_WRITE, w), TRAMA_E_SHAPE, "1 dims")
        call refused(trama_wrap(context, "a", a, [4, 6], [1], TRAMA_READ_WRITE, w), TRAMA_E_SHAPE, "place 1 numbers")
        call refused(trama_wrap(context, "a", a(4:1:-1, :), [4, 6], [1, 1], TRAMA_READ_WRITE, w), TRAMA_E_ARGUMENT, &
            "strides")
        call refused(trama_wrap(context, "a", TRAMA_F32, [4, 6], [trama_host_box(a)], TRAMA_READ_WRITE, w), &
            TRAMA_E_DTYPE, "f64")
        call refused(trama_wrap(context, "t", truth, [4, 6], [1, 1], TRAMA_READ_WRITE, w), TRAMA_E_DTYPE, &
            "real(c_float)")
        if (trama_context_rank(context) == 0) then
            status = trama_wrap(context, "a", a(:, 1), [4, 6], [1, 1], TRAMA_READ_WRITE, w)
        else
            status = trama_wrap(context, "a", TRAMA_F64, [4, 6], [trama_host_box ::], TRAMA_READ_WRITE, w)
        end if
        call refused(status, TRAMA_E_SHAPE, "1 dims")
        call demand(.not. c_associated(w%at), "a tensor after an error")
        call must(trama_wrap(context, "mass", particles%mass, [4], [1], TRAMA_READ_WRITE, w))
        call must(trama_release(w))
        call trama_at("", 0)
    end subroutine

    subroutine refused(status, expected, reason)
        integer, intent(in) :: status, expected
        character(*), intent(in) :: reason
        call demand(status == expected, "a wrap that should be refused, because of: " // reason)
        call demand(index(trama_error(), reason) > 0, "a message without: " // reason)
    end subroutine

    subroutine errors_name_the_place()
        real(c_double) :: room(3, 2)
        real(c_float) :: short(2, 3)
        type(trama_program) :: p
        type(trama_value) :: x, wrong
        type(trama_target) :: t
        type(trama_executable) :: run

        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F64, [2, 3])
        t = trama_target_create(p, "t", [trama_square(x)])
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

        mesh = trama_mesh_create("dp=2")
        p = trama_program_create()
        points = trama_shard(trama_input(p, "x", TRAMA_F64, [features, TRAMA_ANY]), mesh, "S(0)")
        values = trama_input(p, "y", TRAMA_F64, [1, TRAMA_ANY])
        weights = trama_parameter(p, "w", TRAMA_F64, [1, features], low=0.5d0)
        cost = trama_mean(trama_square(trama_matmul(weights, points) - values))
        fit = trama_target_create(p, "fit", [trama_minimize(cost, sgd), cost])
        leap = trama_target_create(p, "leap", [trama_minimize(cost, adam)])
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
