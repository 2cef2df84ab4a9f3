! SPDX-License-Identifier: Apache-2.0
!> The program's arrays as tensors: trama_wrap.h for Fortran, and trama_feed_local.
!>
!>     real(c_double), asynchronous, target :: a(0:n+1, 0:m+1)          ! with ghost cells
!>     status = trama_wrap(context, "a", a(1:n, 1:m), [rows, m], [first, 1], TRAMA_READ_WRITE, w)
!>
!> The array, or a section of it with strides > 0, is the box of the tensor whose first element has index `first`,
!> counted from 1. Elements outside the section, such as ghost cells, are not read or written. A process with several
!> boxes, or none, gives an array of trama_host_box(section, first).
!>
!> Memory is borrowed until trama_release, and used after the call has returned. So the array
!> - has the attribute target, in the program and in each procedure that passes it on, and lives until it is released;
!> - has the attribute asynchronous wherever it is read or written meanwhile: calls like trama_wait_wrapped do not name
!>   it, and else the compiler may keep elements in registers over them, or move reads and writes to their other side;
!> - is no expression and has no vector subscript: these are copies, which do not compile; nor do arrays of intent(in);
!> - is passed on by procedures as an assumed shape; arrays of explicit shape, or contiguous ones, may be copies too.
module trama_wraps
    use, intrinsic :: iso_c_binding
    use trama_types
    use trama_support
    implicit none
    private
    public :: trama_wrap, trama_host_box, trama_feed_local, trama_host_boxes_block_cyclic

    !> A box of a tensor in the program's array: made by trama_host_box(section) and trama_host_boxes_block_cyclic.
    type, bind(c) :: trama_host_box
        type(c_ptr) :: data = c_null_ptr   !< its first element
        type(c_ptr) :: handle = c_null_ptr !< a starpu_data_handle_t that is registered for it
        integer(c_int64_t) :: first(TRAMA_MAX_NDIM) = 0  !< place of the first element in the tensor, from 1
        integer(c_int64_t) :: extent(TRAMA_MAX_NDIM) = 0
        integer(c_int64_t) :: stride(TRAMA_MAX_NDIM) = 0 !< in bytes
        integer(c_int) :: ndim = 0, places = 0 !< dims of the array; of its place
        integer(c_int) :: dtype = -1
    end type

    !> status = trama_wrap(context, name, data, extents, first, access, wrapped): one box, and
    !> status = trama_wrap(context, name, dtype, extents, pieces, access, wrapped): any number of them.
    interface trama_wrap
        module procedure wrap_array, wrap_pieces
    end interface

    !> trama_host_box(data, first, handle): a box in an array. Without first the box begins at the tensor's first
    !> element.
    interface trama_host_box
        module procedure piece_of
    end interface

    !> status = trama_feed_local(executable, input, extents, pieces): this rank's boxes, in the order of
    !> trama_local_box, each a trama_host_box(section) without first; extents are those of the whole tensor.
    interface trama_feed_local
        module procedure feed_local_i4, feed_local_i8
    end interface

    interface
        function c_wrap(where, context, name, dtype, shape, n, pieces, access, wrapped) &
                bind(c, name="trama_fortran_wrap") result(status)
            import
            type(trama_where), value :: where
            type(c_ptr), value :: context, name, wrapped
            integer(c_int), value :: dtype, n, access
            type(trama_shape), value :: shape
            type(trama_host_box), intent(in) :: pieces(*)
            integer(c_int) :: status
        end function
        function c_feed_local(where, executable, input, shape, n, pieces) bind(c, name="trama_fortran_feed_local") &
                result(status)
            import
            type(trama_where), value :: where
            type(c_ptr), value :: executable, input
            type(trama_shape), value :: shape
            integer(c_int), value :: n
            type(trama_host_box), intent(in) :: pieces(*)
            integer(c_int) :: status
        end function
        function c_block_cyclic(where, descriptor, grid, local, most, n, pieces) &
                bind(c, name="trama_fortran_block_cyclic") result(status)
            import
            type(trama_where), value :: where
            integer(c_int), intent(in) :: descriptor(9), grid(4)
            type(trama_host_box), intent(in) :: local
            integer(c_int), value :: most
            integer(c_int), intent(out) :: n
            type(trama_host_box), intent(inout) :: pieces(*)
            integer(c_int) :: status
        end function
        !> Reads the descriptor of an array.
        subroutine c_array(array, data, ndim, dtype, extent, stride) bind(c, name="trama_fortran_array")
            import
            type(*), intent(inout), asynchronous, target :: array(..)
            type(c_ptr), intent(out) :: data
            integer(c_int), intent(out) :: ndim, dtype
            integer(c_int64_t), intent(inout) :: extent(*), stride(*)
        end subroutine
    end interface

contains

    integer function wrap_array(context, name, data, extents, first, access, wrapped) result(status)
        type(trama_context), intent(in) :: context
        character(*), intent(in) :: name
        type(*), intent(inout), asynchronous, target :: data(..)
        integer, intent(in) :: extents(:), first(:)
        integer(c_int), intent(in) :: access
        type(trama_wrapped), intent(inout) :: wrapped
        type(trama_host_box) :: piece
        piece = piece_of(data, first)
        status = wrap_pieces(context, name, max(piece%dtype, 0_c_int), extents, [piece], access, wrapped)
    end function

    integer function wrap_pieces(context, name, dtype, extents, pieces, access, wrapped) result(status)
        type(trama_context), intent(in) :: context
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype, access
        integer, intent(in) :: extents(:)
        type(trama_host_box), intent(in) :: pieces(:)
        type(trama_wrapped), intent(inout), target :: wrapped
        character(kind=c_char), target :: c_name(len_trim(name) + 1)
        c_name = for_c(name)
        status = c_wrap(here(), context%at, c_loc(c_name), dtype, shape_of(int(extents, c_int64_t)), &
            size(pieces, kind=c_int), pieces, access, c_loc(wrapped%at))
    end function

    type(trama_host_box) function piece_of(data, first, handle) result(piece)
        type(*), intent(inout), asynchronous, target :: data(..)
        integer, intent(in), optional :: first(:)
        type(c_ptr), intent(in), optional :: handle
        call c_array(data, piece%data, piece%ndim, piece%dtype, piece%extent, piece%stride)
        piece%first = 1
        piece%places = piece%ndim
        if (present(first)) then
            piece%places = size(first, kind=c_int)
            piece%first(:min(size(first), TRAMA_MAX_NDIM)) = first(:min(size(first), TRAMA_MAX_NDIM))
        end if
        if (present(handle)) piece%handle = handle
    end function

    integer function feed_local_i4(executable, input, extents, pieces) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        integer(c_int32_t), intent(in) :: extents(:)
        type(trama_host_box), intent(in) :: pieces(:)
        status = feed_local_i8(executable, input, int(extents, c_int64_t), pieces)
    end function

    integer function feed_local_i8(executable, input, extents, pieces) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        integer(c_int64_t), intent(in) :: extents(:)
        type(trama_host_box), intent(in) :: pieces(:)
        status = c_feed_local(here(), executable%at, input%at, shape_of(extents), size(pieces, kind=c_int), pieces)
    end function

    !> The boxes of a ScaLAPACK matrix with descriptor DESC_; data is this process's whole local array.
    integer function trama_host_boxes_block_cyclic(descriptor, nprow, npcol, myrow, mycol, data, pieces) result(status)
        integer(c_int), intent(in) :: descriptor(9)
        integer, intent(in) :: nprow, npcol, myrow, mycol
        type(*), intent(inout), asynchronous, target :: data(..)
        type(trama_host_box), allocatable, intent(out) :: pieces(:)
        integer(c_int) :: n, grid(4)
        type(trama_host_box) :: local
        local = piece_of(data)
        grid = [nprow, npcol, myrow, mycol]
        n = 0
        allocate (pieces(0))
        status = c_block_cyclic(here(), descriptor, grid, local, 0_c_int, n, pieces)
        if (status /= TRAMA_OK .or. n == 0) return
        deallocate (pieces)
        allocate (pieces(n))
        status = c_block_cyclic(here(), descriptor, grid, local, size(pieces, kind=c_int), n, pieces)
    end function
end module
