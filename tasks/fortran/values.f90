! SPDX-License-Identifier: Apache-2.0
!> Calls with other arguments than in C: trama_start, ops that depend on the order of dims, and optimizers.
module trama_values
    use, intrinsic :: iso_c_binding
    use trama_types
    use trama_raw
    use trama_support
    use trama_calls
    implicit none
    private
    public :: trama_start, trama_matmul, trama_matmul_op, trama_transpose, trama_window, trama_minimize, trama_optimizer_define

    interface trama_window
        module procedure window_i4, window_i8
    end interface

contains

    !> communicator: Fortran's handle, with mpi_f08 its %mpi_val; absent: config%communicator. trace: a folder.
    integer function trama_start(context, communicator, config, trace) result(status)
        type(trama_context), intent(inout), target :: context
        integer, intent(in), optional :: communicator
        type(trama_config), intent(in), optional :: config
        character(*), intent(in), optional :: trace
        type(trama_config), target :: with
        if (present(config)) with = config
        if (present(trace)) with%trace = kept(trace)
        if (present(communicator)) then
            status = raw_start_fortran(c_loc(with), int(communicator, c_int), c_loc(context%at))
        else
            status = raw_start(c_loc(with), c_loc(context%at))
        end if
    end function

    ! ---- Ops ----

    !> x(n, k), y(k, m) -> (n, m), as matmul; the dims after these broadcast. With trans_x, x is x(k, n); with trans_y,
    !> y is y(m, k).
    type(trama_value) function trama_matmul(x, y, trans_x, trans_y) result(z)
        type(trama_value), intent(in) :: x, y
        logical, intent(in), optional :: trans_x, trans_y
        z%at = raw_matmul(here(), y%at, x%at, chosen(trans_y), chosen(trans_x)) ! in row-major order the product is y x
    end function

    !> The product of trama_matmul with op_x(x) and op_y(y), as TRAMA_CONJ_TRANS, the conjugate of the transposed matrix.
    type(trama_value) function trama_matmul_op(x, y, op_x, op_y) result(z)
        type(trama_value), intent(in) :: x, y
        integer, intent(in) :: op_x, op_y
        z%at = raw_matmul_op(here(), y%at, x%at, int(op_y, c_int), int(op_x, c_int))
    end function

    !> Dim d of the result is dim perm(d) of x; without perm the dims are reversed.
    type(trama_value) function trama_transpose(x, perm) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in), optional :: perm(:)
        integer(c_int), target :: turned(TRAMA_MAX_NDIM)
        type(trama_shape) :: shape
        if (.not. present(perm)) then
            y%at = raw_transpose(here(), x%at, c_null_ptr)
            return
        end if
        shape = raw_value_shape(x%at)
        turned = -1 ! which the call refuses
        if (size(perm) == shape%ndim) turned(:size(perm)) = shape%ndim - perm(size(perm):1:-1)
        y%at = raw_transpose(here(), x%at, c_loc(turned))
    end function

    !> Element (i, j, ...) is x(i + offset(1), j + offset(2), ...) where x has one, else 0.
    type(trama_value) function window_i4(x, offset, extents) result(y)
        type(trama_value), intent(in) :: x
        integer(c_int32_t), intent(in) :: offset(:), extents(:)
        y = window_i8(x, int(offset, c_int64_t), int(extents, c_int64_t))
    end function

    type(trama_value) function window_i8(x, offset, extents) result(y)
        type(trama_value), intent(in) :: x
        integer(c_int64_t), intent(in) :: offset(:), extents(:)
        type(trama_shape), target :: by
        type(trama_shape) :: shape
        by = shape_of(offset)
        shape = shape_of(extents)
        if (size(offset) /= size(extents)) shape%ndim = -1
        y%at = raw_window(here(), x%at, c_loc(by%dim), shape)
    end function

    ! ---- Optimizers ----

    !> One step of the optimizer on every parameter that the loss depends on. parameters(i), names with commas between
    !> as in trama_parameter_group, use optimizers(i) instead; a default type(trama_optimizer), which has no rule,
    !> freezes them. E_ARGUMENT where the two arrays differ in size.
    type(trama_value) function trama_minimize(loss, optimizer, parameters, optimizers) result(y)
        type(trama_value), intent(in) :: loss
        type(trama_optimizer), intent(in) :: optimizer
        character(*), intent(in), optional :: parameters(:)
        type(trama_optimizer), intent(in), optional, target :: optimizers(:)
        type(trama_optimizer), target :: whole
        type(trama_parameter_group), allocatable, target :: groups(:)
        type(text_list), target :: names
        type(c_ptr), pointer :: pointers(:)
        integer :: i
        whole = optimizer
        if (present(parameters) .or. present(optimizers)) then
            allocate (groups(1)) ! with no names, which the call refuses
            whole%groups = c_loc(groups)
            whole%n_groups = 1
        end if
        if (present(parameters) .and. present(optimizers)) then
            if (size(parameters) == size(optimizers)) then
                deallocate (groups)
                allocate (groups(size(parameters) + 1))
                call names%fill(parameters)
                call c_f_pointer(names%at(), pointers, [size(groups)])
                groups%parameters = pointers
                do i = 1, size(parameters)
                    if (c_associated(optimizers(i)%rule)) groups(i)%optimizer = c_loc(optimizers(i))
                end do
                whole%groups = c_loc(groups)
                whole%n_groups = size(parameters, kind=c_int)
            end if
        end if
        y%at = raw_minimize(here(), loss%at, c_loc(whole))
    end function

    !> rule: c_funloc of  subroutine rule(update) bind(c); type(trama_update), intent(in) :: update
    !> where trama_value(update%parameter) is the parameter. The name is kept as long as the program runs.
    type(trama_optimizer) function trama_optimizer_define(name, lr, rule) result(optimizer)
        character(*), intent(in) :: name
        real(c_double), intent(in) :: lr
        type(c_funptr), intent(in) :: rule
        optimizer = raw_optimizer_define(kept(name), lr, rule)
    end function
end module
