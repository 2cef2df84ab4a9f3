! SPDX-License-Identifier: Apache-2.0
! Ops of one's own whose kernels, gradients and rules are Fortran's.
module fortran_kernels
    use, intrinsic :: iso_c_binding
    use trama
    implicit none

contains

    ! a x w + w w element by element, of any rank: line by line.
    recursive function gate(call) bind(c) result(status)
        type(trama_call), intent(in) :: call
        integer(c_int) :: status
        real(c_double), pointer :: x(:), w(:), y(:)
        type(trama_attributes) :: slots
        integer(c_int64_t) :: line
        status = TRAMA_OK
        slots = trama_call_attributes(call)
        do line = 1, trama_call_lines(call)
            status = trama_call_operand(call, 1, x, line)
            if (status == TRAMA_OK) status = trama_call_operand(call, 2, w, line)
            if (status == TRAMA_OK) status = trama_call_result(call, 1, y, line)
            if (status /= TRAMA_OK) return
            y = slots%real(1) * x * w + w * w
        end do
    end function

    subroutine gate_gradient(of) bind(c)
        type(trama_op_gradient), intent(in) :: of
        type(trama_attributes), pointer :: slots
        type(trama_value) :: x, w, d
        call c_f_pointer(of%attributes, slots)
        x = trama_op_operand(of, 1)
        w = trama_op_operand(of, 2)
        d = trama_op_result_gradient(of, 1)
        if (trama_op_wants(of, 1)) call trama_op_set_gradient(of, 1, slots%real(1) * d * w)
        if (trama_op_wants(of, 2)) call trama_op_set_gradient(of, 2, d * (slots%real(1) * x + 2d0 * w))
    end subroutine

    ! Columns of x(k, b) divided by their sums, and the sums: with the place of each column added.
    recursive function columns(call) bind(c) result(status)
        type(trama_call), intent(in) :: call
        integer(c_int) :: status
        real(c_double), pointer :: x(:, :), y(:, :), sums(:)
        integer(c_int64_t), allocatable :: first(:), extent(:), whole(:)
        integer :: j
        status = trama_call_operand(call, 1, x)
        if (status == TRAMA_OK) status = trama_call_result(call, 1, y)
        if (status == TRAMA_OK) status = trama_call_result(call, 2, sums)
        if (status /= TRAMA_OK) return
        call trama_call_box(call, 1, first, extent, whole)
        if (extent(1) /= whole(1)) status = trama_kernel_fail("a column comes in pieces")
        do j = 1, size(x, 2)
            sums(j) = sum(x(:, j)) + first(2) + j - 1
            y(:, j) = x(:, j) / sum(x(:, j))
        end do
    end function

    ! Takes f32 where it is given f64, and a second operand that it has not.
    recursive function mistaken(call) bind(c) result(status)
        type(trama_call), intent(in) :: call
        integer(c_int) :: status
        real(c_float), pointer :: x(:)
        status = trama_call_operand(call, 1, x)
    end function

    recursive function strict_dtype(use, dtype) bind(c) result(status)
        type(trama_op_use), intent(in) :: use
        integer(c_int), intent(inout) :: dtype
        integer(c_int) :: status
        integer(c_int64_t), allocatable :: extents(:)
        allocate (extents(0))
        extents = trama_use_extents(use, 1)
        dtype = use%dtype(1)
        status = TRAMA_OK
        if (extents(1) > 3) status = trama_op_refuse(use, TRAMA_E_SHAPE, "a column of more than 3")
    end function

    ! Repeats n times, n an attribute: the rule has it.
    recursive function repeat_rule(use, rule, room) bind(c) result(status)
        type(trama_op_use), intent(in) :: use
        type(c_ptr), value :: rule
        integer(c_size_t), value :: room
        integer(c_int) :: status
        type(trama_attributes) :: slots
        character(30) :: text
        slots = trama_use_attributes(use)
        write (text, "(a, i0, a)") "b->b[n=", slots%integer(1), "]"
        call trama_put_text(rule, room, text)
        status = TRAMA_OK
    end function

    recursive function repeated(call) bind(c) result(status)
        type(trama_call), intent(in) :: call
        integer(c_int) :: status
        integer(c_int32_t), pointer :: x(:), y(:, :)
        status = trama_call_operand(call, 1, x)
        if (status == TRAMA_OK) status = trama_call_result(call, 1, y)
        if (status == TRAMA_OK) y = spread(x, 1, size(y, 1))
    end function

    ! Says that it can be cut anywhere, where it adds up all that it is given.
    recursive function sums_up(call) bind(c) result(status)
        type(trama_call), intent(in) :: call
        integer(c_int) :: status
        real(c_double), pointer :: x(:), y(:)
        status = trama_call_operand(call, 1, x)
        if (status == TRAMA_OK) status = trama_call_result(call, 1, y)
        if (status == TRAMA_OK) y = sum(x)
    end function

    recursive function add_one(call) bind(c) result(status)
        type(trama_call), intent(in) :: call
        integer(c_int) :: status
        real(c_double), pointer :: s(:)
        status = trama_call_result(call, 1, s)
        if (status == TRAMA_OK) s = s + 1
    end function
end module

program test_fortran_own
    use fortran_checks
    use fortran_kernels
    implicit none
    call begin()
    call kernels_go_line_by_line()
    call gradients_are_ops()
    call boxes_are_arrays()
    call rules_are_tried()
    call rules_are_written()
    call state_is_updated()
    call failures_are_told()
    call definitions_are_refused()
    call finish()

contains

    type(trama_op) function gate_op() result(op)
        call must(trama_op_define("gate", 2, 1, c_funloc(gate), op, rule="...,...->...", gradient=c_funloc(gate_gradient), &
            attributes="| a", flops=3d0))
    end function

    type(trama_attributes) function real_slot(a) result(slots)
        real(c_double), intent(in) :: a
        slots%real(1) = a
    end function

    ! Operands of other ranks and with extents of 1 are repeated; on a mesh, lines are parts of the tensor's.
    subroutine kernels_go_line_by_line()
        real(c_double) :: x(4, 3, 5), w(4, 1, 5), v(4), found(4, 3, 5), expected(4, 3, 5), short(4)
        type(trama_op) :: op
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: values(3)
        type(trama_executable) :: run
        integer :: i

        x = reshape([(sin(1d0 * i), i = 1, size(x))], shape(x))
        w = reshape([(cos(1d0 * i), i = 1, size(w))], shape(w))
        v = [1d0, 2d0, 3d0, 4d0]
        op = gate_op()
        call demand(trama_op_name(op) == "gate", "another name")
        mesh = trama_mesh_create("3")
        p = trama_program_create()
        values(1) = trama_apply(op, [trama_shard(trama_constant(p, x), mesh, "S(1)"), trama_constant(p, w)], &
            real_slot(2d0))
        values(2) = trama_apply(op, [trama_constant(p, x), trama_constant(p, v)])
        values(3) = trama_apply(op, [trama_constant(p, v), trama_fill(p, TRAMA_F64, [integer ::], 3d0)], real_slot(1d0))
        call run_once(p, values, run)
        call must(trama_read(run, values(1), found))
        expected = 2 * x * spread(w(:, 1, :), 2, 3) + spread(w(:, 1, :), 2, 3)**2
        call demand(maxval(abs(found - expected)) < 1d-14, "another gate")
        call must(trama_read(run, values(2), found))
        call demand(maxval(abs(found - spread(spread(v**2, 2, 3), 3, 5))) < 1d-14, "another gate of zeros")
        call must(trama_read(run, values(3), short))
        call demand(maxval(abs(short - (3 * v + 9))) < 1d-14, "another gate of a scalar")
        call close_all(run, p)
        call trama_op_destroy(op)
        call trama_mesh_destroy(mesh)
        call demand(.not. c_associated(op%at), "an op that is destroyed")
    end subroutine

    subroutine gradients_are_ops()
        real(c_double) :: x(2, 3), w(2, 3), found(2, 3)
        type(trama_op) :: op
        type(trama_program) :: p
        type(trama_value) :: a, b, loss, values(2)
        type(trama_executable) :: run
        integer :: i
        x = reshape([(0.5d0 * i, i = 1, 6)], shape(x))
        w = reshape([(1d0 / i, i = 1, 6)], shape(w))
        op = gate_op()
        p = trama_program_create()
        a = trama_constant(p, x)
        b = trama_constant(p, w)
        loss = trama_sum(trama_apply(op, [a, b], real_slot(3d0)))
        values = [trama_gradient(loss, a), trama_gradient(loss, b)]
        call run_once(p, values, run)
        call must(trama_read(run, values(1), found))
        call demand(maxval(abs(found - 3 * w)) < 1d-14, "another gradient of x")
        call must(trama_read(run, values(2), found))
        call demand(maxval(abs(found - (3 * x + 2 * w))) < 1d-14, "another gradient of w")
        call close_all(run, p)
        call trama_op_destroy(op)
    end subroutine

    subroutine boxes_are_arrays()
        real(c_double) :: x(3, 7), y(3, 7), sums(7)
        type(trama_op) :: op
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: value
        type(trama_executable) :: run
        integer :: i
        x = reshape([(1d0 + mod(5 * i, 7), i = 1, size(x))], shape(x))
        call must(trama_op_define("columns", 1, 2, c_funloc(columns), op, rule="b[n] -> b[n], b", &
            dtype=c_funloc(strict_dtype)))
        mesh = trama_mesh_create("dp=2")
        p = trama_program_create()
        value = trama_apply(op, [trama_shard(trama_constant(p, x), mesh, "S(0)")])
        call run_once(p, [value, trama_result(value, 2)], run)
        call must(trama_read(run, value, y))
        call demand(maxval(abs(y - x / spread(sum(x, dim=1), 1, 3))) < 1d-15, "other columns")
        call must(trama_read(run, trama_result(value, 2), sums))
        call demand(near(sums, sum(x, dim=1) + [(i, i = 1, 7)], 1d-13), "other sums, or places of boxes")
        call close_all(run, p)
        p = trama_program_create()
        call trama_at("uses.f90", 31)
        value = trama_apply(op, [trama_input(p, "x", TRAMA_F64, [4, 2])])
        call demand(trama_program_status(p) == TRAMA_E_SHAPE, "a column of 4")
        call has(trama_program_error(p), "uses.f90:31")
        call has(trama_program_error(p), "a column of more than 3")
        call trama_at("", 0)
        call trama_program_destroy(p)
        call trama_op_destroy(op)
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine rules_are_tried()
        type(trama_op) :: gates, sums
        type(trama_program) :: p
        type(trama_value) :: x, value
        character(:), allocatable :: text
        integer :: tried, wrong, missing
        gates = gate_op()
        call must(trama_op_define("sums_up", 1, 1, c_funloc(sums_up), sums, rule="b->b"))
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F64, [5, 7])
        value = trama_apply(gates, [x, x], real_slot(1d0))
        call must(trama_op_validate(value, tried=tried, wrong=wrong, missing=missing, text=text))
        call demand(tried > 10 .and. wrong == 0 .and. missing == 0, "a rule that is right: " // text)
        call must(trama_op_validate(value, [trama_value_range(0d0, 1d0), trama_value_range(-1d0, 1d0)]))
        call refused(trama_op_validate(value, [trama_value_range(0d0, 1d0)]), TRAMA_E_ARGUMENT, "ranges")
        value = trama_apply(sums, [trama_input(p, "v", TRAMA_F64, [7])])
        call refused(trama_op_validate(value, wrong=wrong, text=text), TRAMA_E_LAYOUT, "sums_up")
        call demand(wrong > 0 .and. len(text) > 0, "a wrong rule that is not found")
        call trama_program_destroy(p)
        call trama_op_destroy(gates)
        call trama_op_destroy(sums)
    end subroutine

    subroutine rules_are_written()
        integer(c_int32_t) :: x(4), found(3, 4)
        type(trama_op) :: op
        type(trama_attributes) :: slots
        type(trama_program) :: p
        type(trama_value) :: value
        type(trama_executable) :: run
        x = [4, 3, 2, 1]
        slots%integer(1) = 3
        call must(trama_op_define("repeated", 1, 1, c_funloc(repeated), op, rule_of=c_funloc(repeat_rule), &
            attributes="n | "))
        p = trama_program_create()
        value = trama_apply(op, [trama_constant(p, x)], slots)
        call run_once(p, [value], run)
        call must(trama_read(run, value, found))
        call demand(all(found == spread(x, 1, 3)), "other repetitions")
        call close_all(run, p)
        call trama_op_destroy(op)
    end subroutine

    subroutine state_is_updated()
        real(c_double) :: found(3)
        type(trama_op) :: op
        type(trama_program) :: p
        type(trama_value) :: s
        type(trama_target) :: t
        type(trama_executable) :: run
        call must(trama_op_define("add_one", 1, 1, c_funloc(add_one), op, rule="...->...", updates=[.true.]))
        p = trama_program_create()
        s = trama_state(p, "s", TRAMA_F64, [3], low=5d0)
        t = trama_target_create(p, "t", [trama_apply(op, [s])])
        call must(trama_compile(context, p, run))
        call must(trama_run(run, t))
        call must(trama_run(run, t))
        call must(trama_read(run, s, found))
        call demand(all(found == 7), "another state")
        call close_all(run, p)
        call trama_op_destroy(op)
    end subroutine

    subroutine failures_are_told()
        type(trama_op) :: op
        type(trama_program) :: p
        type(trama_value) :: value
        type(trama_executable) :: run
        real(c_double) :: x(2), found(2)
        integer :: status
        x = 1
        call must(trama_op_define("mistaken", 1, 1, c_funloc(mistaken), op, rule="b->b"))
        p = trama_program_create()
        value = trama_apply(op, [trama_constant(p, x)])
        call run_once(p, [value], run)
        call refused(trama_read(run, value, found), TRAMA_E_KERNEL, "operand 1 is f64, which the kernel does not take")
        status = trama_executable_destroy(run)
        call trama_program_destroy(p)
        call trama_op_destroy(op)
    end subroutine

    subroutine definitions_are_refused()
        type(trama_op) :: op
        call trama_at("defines.f90", 12)
        call refused(trama_op_define("relu", 1, 1, c_funloc(gate), op), TRAMA_E_ARGUMENT, "defines.f90:12")
        call refused(trama_op_define("mine", 1, 1, c_null_funptr, op), TRAMA_E_ARGUMENT, "mine")
        call demand(.not. c_associated(op%at), "an op that is none")
        op = trama_op_find("relu")
        call demand(trama_op_name(op) == "relu", "another op of this name")
        op = trama_op_find("nothing")
        call demand(.not. c_associated(op%at) .and. trama_op_name(op) == "", "an op of no name")
        op = trama_op_number(1)
        call demand(trama_op_name(op) == "matmul", "another first op")
        call trama_at("", 0)
    end subroutine
end program
