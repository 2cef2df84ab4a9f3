! SPDX-License-Identifier: Apache-2.0
! Trama inside a Fortran program that has MPI and data of its own: a matrix product and a power iteration, cut over the
! ranks, and compared with plain loops. examples/run embed_fortran, or examples/run --ranks 2 embed_fortran
program embed_fortran
    use, intrinsic :: iso_c_binding, only: c_double
#if TRAMA_HAVE_MPI
    use mpi_f08
#endif
    use trama
    implicit none
    integer, parameter :: n = 12, k = 7, m = 5, rounds = 40
    integer :: rank, ranks
    logical :: good
    type(trama_context) :: context
    type(trama_mesh) :: mesh

#if TRAMA_HAVE_MPI
    integer :: provided
    type(MPI_Comm) :: mine
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided) ! Trama's messages have a thread of their own
    call MPI_Comm_dup(MPI_COMM_WORLD, mine)             ! any communicator will do
    call must(trama_start(context, communicator=mine%mpi_val))
#else
    call must(trama_start(context))
#endif
    rank = trama_context_rank(context)
    ranks = trama_context_ranks(context)
    mesh = trama_mesh_parse("parts=2")

    good = product_is_right()
    good = power_iteration_is_right() .and. good

    call trama_mesh_destroy(mesh)
    call must(trama_stop(context))
#if TRAMA_HAVE_MPI
    call MPI_Comm_free(mine)
    call MPI_Finalize()
#endif
    if (.not. good) error stop "embed_fortran: results differ from those of plain loops"

contains

    subroutine must(status)
        integer, intent(in) :: status
        if (status /= TRAMA_OK) error stop "embed_fortran: " // trama_error()
    end subroutine

    ! c = a b. In Trama's order S(0) is an array's last dim: each process holds whole columns of b and of c.
    logical function product_is_right() result(right)
        real(c_double) :: a(n, k), b(k, m), c(n, m), loops(n, m)
        type(trama_program) :: program
        type(trama_value) :: x, y, z
        type(trama_target) :: multiply
        type(trama_executable) :: run
        character(:), allocatable :: layout
        integer :: i, j, l

        a = reshape([(sin(1.0_c_double * i), i = 1, n * k)], shape(a))
        b = reshape([(cos(1.0_c_double * i), i = 1, k * m)], shape(b))

        program = trama_program_new()
        x = trama_input(program, "a", TRAMA_F64, shape(a))
        y = trama_shard(trama_input(program, "b", TRAMA_F64, shape(b)), mesh, "S(0)")
        z = trama_matmul(x, y)
        multiply = trama_target_new(program, "multiply", [z])

        call must(trama_compile(context, program, run))
        call must(trama_feed(run, x, a))
        call must(trama_feed(run, y, b))
        call must(trama_run(run, multiply))
        call must(trama_read(run, z, c))
        call must(trama_layout_of(run, z, layout))
        call must(trama_executable_destroy(run))
        call trama_program_destroy(program)

        loops = 0
        do j = 1, m
            do l = 1, k
                do i = 1, n
                    loops(i, j) = loops(i, j) + a(i, l) * b(l, j)
                end do
            end do
        end do
        right = maxval(abs(c - loops)) < 1e-12_c_double ! sums of 7 terms of size 1
        if (rank == 0) print "(a, i0, 2a, es8.1)", "product on ", ranks, " rank(s), laid out as " // layout, &
            ": largest difference", maxval(abs(c - loops))
    end function

    ! The largest eigenvalue of a symmetric matrix. The vector is state: it stays with Trama from round to round.
    logical function power_iteration_is_right() result(right)
        real(c_double) :: a(n, n), vector(n), product(n), start, found, loops
        type(trama_program) :: program
        type(trama_value) :: matrix, x, y, eigenvalue
        type(trama_target) :: step
        type(trama_executable) :: run
        integer :: i, j

        do j = 1, n
            do i = 1, n
                a(i, j) = 1.0_c_double / (i + j - 1) ! Hilbert's
            end do
        end do
        start = 1 / sqrt(real(n, c_double))

        program = trama_program_new()
        matrix = trama_shard(trama_constant(program, a), mesh, "S(0)")
        x = trama_state(program, "x", TRAMA_F64, [n, 1], low=start)
        y = trama_matmul(matrix, x) ! its columns are cut, so the processes' terms are summed
        eigenvalue = trama_sum(x * y)
        step = trama_target_new(program, "step", [trama_assign(x, y / trama_sqrt(trama_sum(y * y))), eigenvalue])

        call must(trama_compile(context, program, run))
        do i = 1, rounds
            call must(trama_run(run, step)) ! asynchronous
        end do
        call must(trama_read(run, eigenvalue, found))
        call must(trama_executable_destroy(run))
        call trama_program_destroy(program)

        vector = start
        do i = 1, rounds
            product = 0
            do j = 1, n
                product = product + a(:, j) * vector(j)
            end do
            loops = sum(vector * product)
            vector = product / sqrt(sum(product**2))
        end do
        right = abs(found - loops) < 1e-12_c_double
        if (rank == 0) print "(a, f0.12)", "largest eigenvalue of Hilbert's matrix: ", found
    end function
end program
