! SPDX-License-Identifier: Apache-2.0
!> A user's ops and rules in Fortran: trama_op_define.h and trama_op_validate.h. The functions of a definition are
!>
!>     function kernel(call) bind(c) result(status)       type(trama_call), intent(in) :: call
!>     subroutine gradient(of) bind(c)                    type(trama_op_gradient), intent(in) :: of
!>     function dtype(use, dtype) bind(c) result(status)  type(trama_op_use), intent(in) :: use
!>     function rule_of(use, rule, room) bind(c) result(status)
!>                                                        type(c_ptr), value :: rule; integer(c_size_t), value :: room
!>
!> with integer(c_int) :: status. A kernel gets its boxes as arrays in their own memory, which may have gaps:
!>
!>     real(c_double), pointer :: x(:, :), y(:, :)
!>     status = trama_call_operand(call, 1, x)
!>     if (status == TRAMA_OK) status = trama_call_result(call, 1, y)
!>     if (status /= TRAMA_OK) return
!>
!> The calls fail for another type or rank. A kernel for every rank goes line by line: for line = 1, ...,
!> trama_call_lines(call) it makes the calls above with an array of rank 1 and with this line. The array is as long as a
!> line of the first result; operands are repeated as by "..." in a rule. Kernels run on many threads at once, so they
!> are recursive or have no saved variables. Rules of ops are texts in Trama's order of dims: x(k, b) is "bk".
module trama_own
    use, intrinsic :: iso_c_binding
    use trama_types
    use trama_raw
    use trama_support
    implicit none
    private
    public :: trama_op_define, trama_apply, trama_op_validate, trama_op_refuse, trama_kernel_fail, trama_op_name
    public :: trama_call_lines, trama_call_box, trama_call_attributes
    public :: trama_use_extents, trama_use_attributes, trama_put_text
    public :: trama_bf16_of_float, trama_bf16_of_double, trama_f16_of_float, trama_f16_of_double
    public :: trama_float_of_bf16, trama_float_of_f16

    interface
        integer(c_int) function c_kernel_fail(text) bind(c, name="trama_fortran_kernel_fail")
            import
            type(c_ptr), value :: text
        end function
        integer(c_int) function c_refuse(use, status, text) bind(c, name="trama_fortran_refuse")
            import
            type(c_ptr), value :: use, text
            integer(c_int), value :: status
        end function
        type(c_ptr) function c_op_name(op) bind(c, name="trama_fortran_op_name")
            import
            type(c_ptr), value :: op
        end function
        integer(c_int64_t) function c_lines(call) bind(c, name="trama_fortran_lines")
            import
            type(c_ptr), value :: call
        end function
        pure integer(c_int16_t) function c_bf16_of(x) bind(c, name="trama_fortran_bf16_of")
            import
            real(c_double), value :: x
        end function
        pure integer(c_int16_t) function c_f16_of(x) bind(c, name="trama_fortran_f16_of")
            import
            real(c_double), value :: x
        end function
        pure real(c_float) function c_of_bf16(bits) bind(c, name="trama_fortran_of_bf16")
            import
            integer(c_int16_t), value :: bits
        end function
        pure real(c_float) function c_of_f16(bits) bind(c, name="trama_fortran_of_f16")
            import
            integer(c_int16_t), value :: bits
        end function
    end interface

contains

    !> Defines an op; name, operands, results and cpu are required. Functions are given by c_funloc. flops: per point.
    !> updates(i): whether result i is written over operand i.
    integer function trama_op_define(name, operands, results, cpu, op, rule, rule_of, partial, reduce, dtype, cuda, &
            gradient, attributes, flops, updates, pointwise) result(status)
        character(*), intent(in) :: name
        integer, intent(in) :: operands, results
        type(c_funptr), intent(in) :: cpu
        type(trama_op), intent(inout), target :: op
        character(*), intent(in), optional :: rule, partial, attributes
        type(c_funptr), intent(in), optional :: rule_of, dtype, cuda, gradient
        integer, intent(in), optional :: reduce
        real(c_double), intent(in), optional :: flops
        logical, intent(in), optional :: updates(:), pointwise
        type(trama_op_definition), target :: d
        integer :: i
        d%name = kept(name)
        d%n_in = int(operands, c_int)
        d%n_out = int(results, c_int)
        d%cpu = cpu
        if (present(rule)) d%rule = kept(rule)
        if (present(partial)) d%partial = kept(partial)
        if (present(attributes)) d%attributes = kept(attributes)
        if (present(rule_of)) d%rule_of = rule_of
        if (present(dtype)) d%dtype = dtype
        if (present(cuda)) d%cuda = cuda
        if (present(gradient)) d%gradient = gradient
        if (present(reduce)) d%reduce = int(reduce, c_int)
        if (present(flops)) d%flops = flops
        if (present(updates)) then
            do i = 1, size(updates)
                if (updates(i)) d%updates = ibset(d%updates, i - 1)
            end do
        end if
        d%pointwise = chosen(pointwise)
        status = raw_op_define(here(), c_loc(d), c_loc(op%at))
    end function

    !> Result 1 of the op; trama_result gives the others. attributes: slots integer(i) and real(i), zeros by default.
    type(trama_value) function trama_apply(op, operands, attributes) result(y)
        type(trama_op), intent(in) :: op
        type(trama_value), intent(in) :: operands(:)
        type(trama_attributes), intent(in), optional, target :: attributes
        type(c_ptr), target :: at(size(operands) + 1)
        type(c_ptr) :: slots
        integer :: i
        at = c_null_ptr
        do i = 1, size(operands)
            at(i) = operands(i)%at
        end do
        slots = c_null_ptr
        if (present(attributes)) slots = c_loc(attributes)
        y%at = raw_apply(here(), c_null_ptr, op%at, size(operands, kind=c_int), c_loc(at), slots)
    end function

    !> Validates the rule of the op that made the value. ranges [operands].
    integer function trama_op_validate(value, ranges, tried, wrong, missing, text) result(status)
        type(trama_value), intent(in) :: value
        type(trama_value_range), intent(in), optional, target :: ranges(:)
        integer, intent(out), optional :: tried, wrong, missing
        character(:), allocatable, intent(out), optional :: text
        type(trama_validation), target :: found
        type(c_ptr) :: limits
        character(:), allocatable :: lines
        limits = c_null_ptr
        if (present(ranges)) then
            if (c_associated(value%at) .and. size(ranges) /= raw_value_operands(value%at)) then
                status = refuse_call("trama_op_validate: there are ranges for another number of operands")
                return
            end if
            limits = c_loc(ranges)
        end if
        status = raw_op_validate(here(), value%at, limits, c_loc(found))
        lines = taken(found%text)
        if (present(tried)) tried = found%tried
        if (present(wrong)) wrong = found%wrong
        if (present(missing)) missing = found%missing
        if (present(text)) text = lines
    end function

    function trama_op_name(op) result(name)
        type(trama_op), intent(in) :: op
        character(:), allocatable :: name
        name = text_of(c_op_name(op%at))
    end function

    ! ---- For kernels ----

    !> Keeps the text as the message of a failure and returns E_KERNEL, which the kernel returns.
    integer(c_int) function trama_kernel_fail(text) result(status)
        character(*), intent(in) :: text
        character(kind=c_char), target :: message(len_trim(text) + 1)
        message = for_c(text)
        status = c_kernel_fail(c_loc(message))
    end function

    integer(c_int64_t) function trama_call_lines(call) result(lines)
        type(trama_call), intent(in), target :: call
        lines = c_lines(c_loc(call))
    end function

    !> The box of operand i (with of_result: of result i) in its tensor: index of its first element, from 1, its
    !> extents, and the extents of the whole tensor. call%in(i) has them in Trama's order.
    subroutine trama_call_box(call, i, first, extent, whole, of_result)
        type(trama_call), intent(in) :: call
        integer, intent(in) :: i
        integer(c_int64_t), allocatable, intent(out) :: first(:), extent(:)
        integer(c_int64_t), allocatable, intent(out), optional :: whole(:)
        logical, intent(in), optional :: of_result
        type(trama_view), pointer :: views(:)
        type(trama_view) :: view
        if (chosen(of_result)) call c_f_pointer(call%out, views, [call%n_out])
        if (.not. chosen(of_result)) call c_f_pointer(call%in, views, [call%n_in])
        if (i >= 1 .and. i <= size(views)) view = views(i)
        first = reversed(view%ndim, view%offset) + 1
        extent = reversed(view%ndim, view%extent)
        if (present(whole)) whole = reversed(view%ndim, view%global)
    end subroutine

    type(trama_attributes) function trama_call_attributes(call) result(attributes)
        type(trama_call), intent(in) :: call
        attributes = attributes_at(call%attributes)
    end function

    type(trama_attributes) function attributes_at(at) result(attributes)
        type(c_ptr), intent(in) :: at
        type(trama_attributes), pointer :: slots
        if (.not. c_associated(at)) return
        call c_f_pointer(at, slots)
        attributes = slots
    end function

    ! ---- For the other functions of a definition ----

    !> Keeps the text as the reason why the op refuses its operands and returns the status, which the function returns.
    integer(c_int) function trama_op_refuse(use, status, text) result(answer)
        type(trama_op_use), intent(in), target :: use
        integer(c_int), intent(in) :: status
        character(*), intent(in) :: text
        character(kind=c_char), target :: message(len_trim(text) + 1)
        message = for_c(text)
        answer = c_refuse(c_loc(use), status, c_loc(message))
    end function

    !> Extents of operand i, from 1, in Fortran's order.
    function trama_use_extents(use, i) result(extents)
        type(trama_op_use), intent(in) :: use
        integer, intent(in) :: i
        integer(c_int64_t), allocatable :: extents(:)
        type(trama_shape) :: shape
        if (i >= 1 .and. i <= use%n_in) shape = use%shape(i)
        extents = extents_of(shape)
    end function

    type(trama_attributes) function trama_use_attributes(use) result(attributes)
        type(trama_op_use), intent(in) :: use
        attributes = attributes_at(use%attributes)
    end function

    !> Writes a text to C's buffer of `room` bytes, cut to fit, for rule_of.
    subroutine trama_put_text(to, room, text)
        type(c_ptr), intent(in) :: to
        integer(c_size_t), intent(in) :: room
        character(*), intent(in) :: text
        character(kind=c_char), pointer :: characters(:)
        character(kind=c_char) :: given(len_trim(text) + 1)
        if (room < 1) return
        call c_f_pointer(to, characters, [room])
        given = for_c(text)
        characters(:min(size(given), size(characters))) = given(:min(size(given), size(characters)))
        characters(size(characters)) = merge(c_null_char, characters(size(characters)), size(given) > size(characters))
    end subroutine

    ! ---- Halves ----

    elemental integer(c_int16_t) function trama_bf16_of_float(x) result(bits)
        real(c_float), intent(in) :: x
        bits = c_bf16_of(real(x, c_double))
    end function

    elemental integer(c_int16_t) function trama_bf16_of_double(x) result(bits)
        real(c_double), intent(in) :: x
        bits = c_bf16_of(x)
    end function

    elemental integer(c_int16_t) function trama_f16_of_float(x) result(bits)
        real(c_float), intent(in) :: x
        bits = c_f16_of(real(x, c_double))
    end function

    elemental integer(c_int16_t) function trama_f16_of_double(x) result(bits)
        real(c_double), intent(in) :: x
        bits = c_f16_of(x)
    end function

    elemental real(c_float) function trama_float_of_bf16(bits) result(x)
        integer(c_int16_t), intent(in) :: bits
        x = c_of_bf16(bits)
    end function

    elemental real(c_float) function trama_float_of_f16(bits) result(x)
        integer(c_int16_t), intent(in) :: bits
        x = c_of_f16(bits)
    end function
end module
