! SPDX-License-Identifier: Apache-2.0
! Trama inside a Fortran program that has MPI and data of its own: a product of matrices whose columns the program has
! dealt out, with ghost cells around them, and which Trama uses where they lie; and a power iteration. Both are compared
! with plain loops. examples/run embed_fortran, or examples/run --ranks 2 embed_fortran
program embed_fortran
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_null_char
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
    mesh = trama_mesh_create("parts=2")

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

    ! Prints a line through C's stdout, whose errors the end of the program reports: gfortran's own output ignores a full
    ! disk, iostat= included.
    subroutine say(line)
        character(*), intent(in) :: line
        interface
            integer(c_int) function puts(text) bind(c)
                import :: c_char, c_int
                character(kind=c_char), intent(in) :: text(*)
            end function
        end interface
        integer(c_int) :: ignored
        ignored = puts(trim(line) // c_null_char)
    end subroutine

    ! The columns first, ..., first + columns - 1 of m are this rank's: the lower the rank, the more.
    subroutine deal_out(first, columns)
        integer, intent(out) :: first, columns
        integer :: shares
        shares = ranks * (ranks + 1) / 2
        first = 1 + m * (rank * (2 * ranks - rank + 1) / 2) / shares
        columns = 1 + m * ((rank + 1) * (2 * ranks - rank) / 2) / shares - first
    end subroutine

    ! Lends the inside of a field, without the ghost cells around it. Trama uses it after this has returned: so it is a
    ! target, asynchronous, and passed on by its shape, of which no copy is made.
    function inside(name, field, rows, first, access) result(wrapped)
        character(*), intent(in) :: name
        real(c_double), intent(inout), asynchronous, target :: field(0:, 0:)
        integer, intent(in) :: rows, first
        integer(c_int), intent(in) :: access
        type(trama_wrapped) :: wrapped
        integer :: columns
        columns = ubound(field, 2) - 1
        call must(trama_wrap(context, name, field(1:rows, 1:columns), [rows, m], [1, first], access, wrapped))
    end function

    ! c = a b. In Trama's order S(0) is an array's last dim: each process holds whole columns of b and of c, as many as
    ! any other. The program has dealt them out in its own way, so b is resharded on the way in and c on the way out.
    logical function product_is_right() result(right)
        real(c_double), parameter :: ghost = 1e30_c_double
        real(c_double) :: a(n, k), sum_of, difference
        real(c_double), allocatable, asynchronous, target :: b(:, :), c(:, :)
        type(trama_program) :: program
        type(trama_value) :: x, y, z
        type(trama_target) :: multiply
        type(trama_executable) :: run
        type(trama_wrapped) :: b_inside, c_inside
        character(:), allocatable :: layout
        character(120) :: line
        integer :: i, j, l, first, columns

        call deal_out(first, columns)
        allocate (b(0:k + 1, 0:columns + 1), c(0:n + 1, 0:columns + 1), source=ghost)
        a = reshape([(sin(1.0_c_double * i), i = 1, n * k)], shape(a))
        do j = 1, columns
            b(1:k, j) = [(b_of(l, first + j - 1), l = 1, k)]
        end do

        program = trama_program_create()
        x = trama_input(program, "a", TRAMA_F64, shape(a))
        y = trama_shard(trama_input(program, "b", TRAMA_F64, [k, m]), mesh, "S(0)")
        z = trama_matmul(x, y)
        multiply = trama_target_create(program, "multiply", [z])

        call must(trama_compile(context, program, run))
        b_inside = inside("b", b, k, first, TRAMA_READ_ONLY)
        c_inside = inside("c", c, n, first, TRAMA_READ_WRITE)
        call must(trama_feed(run, x, a))
        call must(trama_feed_wrapped(run, y, b_inside))
        call must(trama_run(run, multiply))
        call must(trama_read_wrapped(run, z, c_inside))
        call must(trama_layout_of(run, z, layout))
        call must(trama_release(c_inside)) ! waits: from here on c is the program's, and has the result
        call must(trama_release(b_inside))
        call must(trama_executable_destroy(run))
        call trama_program_destroy(program)

        difference = 0
        do j = 1, columns
            do i = 1, n
                sum_of = 0
                do l = 1, k
                    sum_of = sum_of + a(i, l) * b_of(l, first + j - 1)
                end do
                difference = max(difference, abs(c(i, j) - sum_of))
            end do
        end do
        right = difference < 1e-12_c_double ! sums of 7 terms of size 1
        right = right .and. count(c == ghost) == size(c) - n * columns
        write(line, "(a, i0, 2a, es8.1)") "product on ", ranks, " rank(s), laid out as " // layout, &
            ": largest difference", difference
        if (rank == 0) call say(line)
    end function

    real(c_double) function b_of(l, j)
        integer, intent(in) :: l, j
        b_of = cos(1.0_c_double * (l + k * (j - 1)))
    end function

    ! The largest eigenvalue of a symmetric matrix. The vector is state: it stays with Trama from round to round.
    logical function power_iteration_is_right() result(right)
        real(c_double) :: a(n, n), vector(n), product(n), start, found, loops
        type(trama_program) :: program
        type(trama_value) :: matrix, x, y, eigenvalue
        type(trama_target) :: step
        type(trama_executable) :: run
        character(120) :: line
        integer :: i, j

        do j = 1, n
            do i = 1, n
                a(i, j) = 1.0_c_double / (i + j - 1) ! Hilbert's
            end do
        end do
        start = 1 / sqrt(real(n, c_double))

        program = trama_program_create()
        matrix = trama_shard(trama_constant(program, a), mesh, "S(0)")
        x = trama_state(program, "x", TRAMA_F64, [n, 1], low=start)
        y = trama_matmul(matrix, x) ! its columns are cut, so the processes' terms are summed
        eigenvalue = trama_sum(x * y)
        step = trama_target_create(program, "step", [trama_assign(x, y / trama_sqrt(trama_sum(y * y))), eigenvalue])

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
        write(line, "(a, f0.12)") "largest eigenvalue of Hilbert's matrix: ", found
        if (rank == 0) call say(line)
    end function
end program
