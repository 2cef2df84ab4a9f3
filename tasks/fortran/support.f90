! SPDX-License-Identifier: Apache-2.0
!> Helpers of all calls: the source line in messages, and conversion of texts, shapes, dims and arrays for C.
module trama_support
    use, intrinsic :: iso_c_binding
    use trama_types
    use trama_raw
    implicit none
    private
    public :: trama_at, here, for_c, kept, text_of, taken, text_list, chosen
    public :: refuse, refuse_call, shape_of, extents_of, reversed, offset_of, set_dims, lent_array, lent, lent_room, &
        give_back, chosen_dtype

    !> An array of any type and rank lent to C: its own memory, or a copy without gaps.
    type, bind(c) :: lent_array
        type(c_ptr) :: data = c_null_ptr, copy = c_null_ptr
        integer(c_size_t) :: bytes = 0
        type(trama_shape) :: shape = trama_shape()
        integer(c_int) :: dtype = 0
    end type

    !> An array of texts of one length for C: trailing blanks are cut, and a blank text is NULL.
    type :: text_list
        character(kind=c_char), pointer :: room(:) => null()
        type(c_ptr), pointer :: pointers(:) => null()
    contains
        procedure :: fill, at
        final :: clear
    end type

    interface set_dims
        module procedure set_one, set_many
    end interface

    interface trama_text_free ! not public: programs get texts as character(:), allocatable
        subroutine c_text_free(text) bind(c, name="trama_text_free")
            import
            type(c_ptr), intent(inout) :: text
        end subroutine
    end interface

    interface
        function strlen(text) bind(c) result(length)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
        function c_lend(data, dtype, gathers, array) bind(c, name="trama_fortran_lend") result(status)
            import
            type(*), intent(in), target :: data(..)
            integer(c_int), value :: dtype
            logical(c_bool), value :: gathers
            type(lent_array), intent(inout) :: array
            integer(c_int) :: status
        end function
        subroutine c_give_back(array, scatters, data) bind(c, name="trama_fortran_give_back")
            import
            type(lent_array), intent(inout) :: array
            logical(c_bool), value :: scatters
            type(*), intent(in), optional, target :: data(..)
        end subroutine
        function c_check(where, call, program, value, status, dtype) bind(c, name="trama_fortran_check") &
                result(answer)
            import
            type(trama_where), value :: where
            type(c_ptr), value :: call, program, value
            integer(c_int), value :: status, dtype
            integer(c_int) :: answer
        end function
        function c_refuse(where, text) bind(c, name="trama_fortran_refuse_call") result(status)
            import
            type(trama_where), value :: where
            type(c_ptr), value :: text
            integer(c_int) :: status
        end function
        function c_dims(where, call, value, n, dims) bind(c, name="trama_fortran_dims") result(status)
            import
            type(trama_where), value :: where
            type(c_ptr), value :: call, value, dims
            integer(c_int), value :: n
            integer(c_int) :: status
        end function
    end interface

    !> Texts that C borrows until the program ends; each is kept once.
    type :: kept_text
        character(kind=c_char), allocatable :: text(:)
        type(kept_text), pointer :: next => null()
    end type

    type(kept_text), pointer, save :: kept_texts => null()
    type(trama_where), save :: place
    character(kind=c_char), target, save :: nowhere(10) = ["(", "F", "o", "r", "t", "r", "a", "n", ")", c_null_char]

contains

    !> Sets the source line that messages of later calls name: call trama_at(__FILE__, __LINE__) with a preprocessor.
    !> Without a file they name none.
    subroutine trama_at(file, line)
        character(*), intent(in) :: file
        integer, intent(in) :: line
        place = trama_where(c_null_ptr, 0)
        if (len_trim(file) > 0) place = trama_where(kept(file), int(line, c_int))
    end subroutine

    type(trama_where) function here()
        here = place
        if (.not. c_associated(here%file)) here%file = c_loc(nowhere)
    end function

    !> Keeps the message of an error found before C is called, and returns E_ARGUMENT.
    integer function refuse_call(text) result(status)
        character(*), intent(in) :: text
        character(kind=c_char), target :: message(len_trim(text) + 1)
        message = for_c(text)
        status = c_refuse(here(), c_loc(message))
    end function

    subroutine refuse(text)
        character(*), intent(in) :: text
        integer :: status
        status = refuse_call(text)
    end subroutine

    ! ---- Texts ----

    function for_c(text) result(c_text)
        character(*), intent(in) :: text
        character(kind=c_char) :: c_text(len_trim(text) + 1)
        integer :: i
        do i = 1, len_trim(text)
            c_text(i) = text(i:i)
        end do
        c_text(size(c_text)) = c_null_char
    end function

    type(c_ptr) function kept(text) result(at)
        character(*), intent(in) :: text
        type(kept_text), pointer :: entry
        entry => kept_texts
        do while (associated(entry))
            if (size(entry%text) == len_trim(text) + 1) then
                if (all(entry%text == for_c(text))) exit
            end if
            entry => entry%next
        end do
        if (.not. associated(entry)) then
            allocate (entry)
            entry%text = for_c(text)
            entry%next => kept_texts
            kept_texts => entry
        end if
        at = c_loc(entry%text)
    end function

    !> A copy of C's text; "" for NULL.
    function text_of(at) result(text)
        type(c_ptr), intent(in) :: at
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer :: i
        text = ""
        if (.not. c_associated(at)) return
        call c_f_pointer(at, characters, [strlen(at)])
        text = repeat(" ", size(characters))
        do i = 1, size(characters)
            text(i:i) = characters(i)
        end do
    end function

    !> A copy of C's text, which is then freed.
    function taken(at) result(text)
        type(c_ptr), intent(in) :: at
        character(:), allocatable :: text
        type(c_ptr) :: own
        own = at
        text = text_of(own)
        call trama_text_free(own)
    end function

    subroutine fill(list, texts)
        class(text_list), intent(inout) :: list
        character(*), intent(in) :: texts(:)
        integer :: i, j, first
        allocate (list%room(size(texts) * (len(texts) + 1) + 1), list%pointers(size(texts) + 1))
        list%pointers = c_null_ptr
        do i = 1, size(texts)
            first = (i - 1) * (len(texts) + 1)
            do j = 1, len_trim(texts(i))
                list%room(first + j) = texts(i)(j:j)
            end do
            list%room(first + j) = c_null_char
            if (j > 1) list%pointers(i) = c_loc(list%room(first + 1))
        end do
    end subroutine

    type(c_ptr) function at(list)
        class(text_list), intent(in) :: list
        at = c_loc(list%pointers)
    end function

    subroutine clear(list)
        type(text_list), intent(inout) :: list
        if (associated(list%room)) deallocate (list%room, list%pointers)
    end subroutine

    logical(c_bool) function chosen(option)
        logical, intent(in), optional :: option
        chosen = .false.
        if (present(option)) chosen = option
    end function

    ! ---- Shapes and dims ----

    !> Trama's shape of Fortran's extents; for too many extents a shape that every call refuses.
    type(trama_shape) function shape_of(extents) result(shape)
        integer(c_int64_t), intent(in) :: extents(:)
        shape%ndim = -1
        if (size(extents) > TRAMA_MAX_NDIM) return
        shape%ndim = size(extents, kind=c_int)
        shape%dim(:shape%ndim) = extents(size(extents):1:-1)
    end function

    function extents_of(shape) result(extents)
        type(trama_shape), intent(in) :: shape
        integer(c_int64_t), allocatable :: extents(:)
        extents = reversed(shape%ndim, shape%dim)
    end function

    function reversed(n, numbers) result(other)
        integer(c_int), intent(in) :: n
        integer(c_int64_t), intent(in) :: numbers(:)
        integer(c_int64_t), allocatable :: other(:)
        other = numbers(n:1:-1)
    end function

    !> Where a part of a tensor with so many dims begins; outside of every tensor if first has another size.
    function offset_of(shape, first) result(offset)
        type(trama_shape), intent(in) :: shape
        integer(c_int64_t), intent(in) :: first(:)
        integer(c_int64_t) :: offset(TRAMA_MAX_NDIM)
        offset = -1
        if (size(first) == shape%ndim) offset(:shape%ndim) = reversed(shape%ndim, first) - 1
    end function

    !> Converts dims to C's numbers. Where the value has no such dim, its program gets an error and the value becomes
    !> empty.
    subroutine set_many(call, value, dims_c, n, dims)
        character(*), intent(in) :: call
        type(c_ptr), intent(inout) :: value
        integer(c_int), intent(out), target :: dims_c(TRAMA_MAX_NDIM)
        integer(c_int), intent(out) :: n
        integer, intent(in) :: dims(:)
        character(kind=c_char), target :: name(len_trim(call) + 1)
        name = for_c(call)
        n = size(dims, kind=c_int)
        dims_c = 0
        dims_c(:min(n, TRAMA_MAX_NDIM)) = dims(:min(n, TRAMA_MAX_NDIM))
        if (c_dims(here(), c_loc(name), value, n, c_loc(dims_c)) /= TRAMA_OK) value = c_null_ptr
    end subroutine

    subroutine set_one(call, value, dims_c, n, dim)
        character(*), intent(in) :: call
        type(c_ptr), intent(inout) :: value
        integer(c_int), intent(out), target :: dims_c(TRAMA_MAX_NDIM)
        integer(c_int), intent(out) :: n
        integer, intent(in), optional :: dim
        n = 0
        dims_c = 0
        if (present(dim)) call set_many(call, value, dims_c, n, [dim])
    end subroutine

    ! ---- Arrays ----

    !> Lends the elements for C to read. Their type must be the value's, if there is one, or dtype if that is not -1.
    !> The program, if there is one, keeps the error, too.
    integer function lent(array, call, program, value, dtype, data) result(status)
        type(lent_array), intent(inout) :: array
        character(*), intent(in) :: call
        type(c_ptr), intent(in) :: program, value
        integer(c_int), intent(in) :: dtype
        type(*), intent(in), target :: data(..)
        status = checked(c_lend(data, wanted(value, dtype), .true._c_bool, array), array, call, program, value)
    end function

    !> Lends memory for C to write; NULL without an array. gfortran takes an empty array for an absent one, which has
    !> the same effect here.
    integer function lent_room(array, call, value, data) result(status)
        type(lent_array), intent(inout) :: array
        character(*), intent(in) :: call
        type(c_ptr), intent(in) :: value
        type(*), intent(inout), optional, target :: data(..)
        array = lent_array()
        status = TRAMA_OK
        if (present(data)) status = checked(c_lend(data, wanted(value, -1_c_int), .false._c_bool, array), array, call, &
            c_null_ptr, value)
    end function

    integer(c_int) function wanted(value, dtype)
        type(c_ptr), intent(in) :: value
        integer(c_int), intent(in) :: dtype
        wanted = dtype
        if (c_associated(value)) wanted = raw_value_dtype(value)
    end function

    integer function checked(found, array, call, program, value) result(status)
        integer(c_int), intent(in) :: found
        type(lent_array), intent(in) :: array
        character(*), intent(in) :: call
        type(c_ptr), intent(in) :: program, value
        character(kind=c_char), target :: name(len_trim(call) + 1)
        name = for_c(call)
        status = c_check(here(), c_loc(name), program, value, found, array%dtype)
    end function

    !> Ends the loan; scatters: copies the elements that C wrote into the array.
    subroutine give_back(array, scatters, data)
        type(lent_array), intent(inout) :: array
        logical, intent(in) :: scatters
        type(*), intent(in), optional, target :: data(..)
        call c_give_back(array, logical(scatters, c_bool), data)
    end subroutine

    integer(c_int) function chosen_dtype(dtype) result(chosen)
        integer, intent(in), optional :: dtype
        chosen = -1
        if (present(dtype)) chosen = int(dtype, c_int)
    end function
end module
