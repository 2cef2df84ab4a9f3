! SPDX-License-Identifier: Apache-2.0
!> The program's own arrays as tensors, without a copy: trama_wrap.h for Fortran, a part of the module trama.
!>
!>     real(c_double), asynchronous, target :: a(0:n+1, 0:m+1)          ! with ghost cells
!>     status = trama_wrap(context, "a", a(1:n, 1:m), [rows, m], [first, 1], TRAMA_READ_WRITE, w)
!>
!> The array, or a section of it with strides > 0, is the box of the tensor that begins at the place `first`, counted
!> from 1. Ghost cells, and whatever else is no part of the section, are not read or written. A process that has several
!> boxes, or none, gives an array of trama_piece(section, first).
!>
!> Memory is borrowed until trama_release, and used after the call has returned. So what is handed over
!> - has the attribute target, in the program and in each procedure that passes it on, and lives until it is released;
!> - has the attribute asynchronous wherever it is read or written meanwhile: calls like trama_wait_wrapped do not name
!>   it, and else the compiler may keep elements in registers over them, or move reads and writes to their other side;
!> - is no expression and has no vector subscript: these are copies, which do not compile; nor do arrays of intent(in);
!> - is passed on by procedures as an assumed shape; arrays of explicit shape, or contiguous ones, may be copies too.
module trama_wraps
    use, intrinsic :: iso_c_binding
    use trama_c
    implicit none
    private
    public :: trama_wrap, trama_piece, trama_release, trama_wait_wrapped, trama_feed_wrapped, trama_read_wrapped
    public :: trama_write_wrapped, trama_reshard_wrapped, trama_wrapped_traffic
    public :: trama_box_of_layout, trama_pieces_block_cyclic

    !> status = trama_wrap(context, name, data, extents, first, access, wrapped): one box, and
    !> status = trama_wrap(context, name, dtype, extents, pieces, access, wrapped): any number of them.
    interface trama_wrap
        module procedure wrap_array, wrap_pieces
    end interface

    !> trama_piece(data, first, handle): a box in an array. Without first it begins where the tensor does.
    interface trama_piece
        module procedure piece_of
    end interface

contains

    integer function wrap_array(context, name, data, extents, first, access, wrapped) result(status)
        type(trama_context), intent(in) :: context
        character(*), intent(in) :: name
        type(*), intent(inout), asynchronous, target :: data(..)
        integer, intent(in) :: extents(:), first(:)
        integer(c_int), intent(in) :: access
        type(trama_wrapped), intent(inout) :: wrapped
        type(trama_piece) :: piece
        piece = piece_of(data, first)
        status = wrap_pieces(context, name, max(piece%dtype, 0_c_int), extents, [piece], access, wrapped)
    end function

    integer function wrap_pieces(context, name, dtype, extents, pieces, access, wrapped) result(status)
        type(trama_context), intent(in) :: context
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype, access
        integer, intent(in) :: extents(:)
        type(trama_piece), intent(in) :: pieces(:)
        type(trama_wrapped), intent(inout) :: wrapped
        status = c_wrap(here, context%at, for_c(name), dtype, shape_of(int(extents, c_int64_t)), &
            size(pieces, kind=c_int), pieces, access, wrapped%at)
    end function

    type(trama_piece) function piece_of(data, first, handle) result(piece)
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

    !> From here on the arrays are the program's. Waits; collective.
    integer function trama_release(wrapped) result(status)
        type(trama_wrapped), intent(inout) :: wrapped
        status = c_release(wrapped%at)
    end function

    !> From here to the next call that uses it, the arrays are the program's.
    integer function trama_wait_wrapped(wrapped) result(status)
        type(trama_wrapped), intent(in) :: wrapped
        status = c_wait_wrapped(wrapped%at)
    end function

    !> copied: whether runs read a copy of now, not the arrays as they are then.
    integer function trama_feed_wrapped(executable, input, wrapped, copied) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        type(trama_wrapped), intent(in) :: wrapped
        logical, intent(out), optional :: copied
        logical(c_bool) :: resharded
        resharded = .false.
        status = c_feed_wrapped(here, executable%at, input%at, wrapped%at, resharded)
        if (present(copied)) copied = resharded
    end function

    integer function trama_read_wrapped(executable, x, wrapped) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        type(trama_wrapped), intent(in) :: wrapped
        status = c_read_wrapped(here, executable%at, x%at, wrapped%at)
    end function

    integer function trama_write_wrapped(executable, state, wrapped) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: state
        type(trama_wrapped), intent(in) :: wrapped
        status = c_write_wrapped(here, executable%at, state%at, wrapped%at)
    end function

    integer function trama_reshard_wrapped(from, to) result(status)
        type(trama_wrapped), intent(in) :: from, to
        status = c_reshard_wrapped(here, from%at, to%at)
    end function

    integer function trama_wrapped_traffic(wrapped, traffic) result(status)
        type(trama_wrapped), intent(in) :: wrapped
        type(trama_traffic), intent(out) :: traffic
        status = c_wrapped_traffic(wrapped%at, traffic)
    end function

    !> What the process at a row-major position of the mesh, from 0, holds in a layout: place of its first element, and
    !> extents; what to allocate, and to hand over with that place, so that feeding copies nothing.
    integer function trama_box_of_layout(mesh, layout, extents, position, first, extent) result(status)
        type(trama_mesh), intent(in) :: mesh
        character(*), intent(in) :: layout
        integer, intent(in) :: extents(:), position
        integer, intent(out) :: first(:), extent(:)
        integer(c_int64_t) :: from(TRAMA_MAX_NDIM), n(TRAMA_MAX_NDIM)
        type(c_shape) :: shape
        shape = shape_of(int(extents, c_int64_t))
        if (size(first) /= size(extents) .or. size(extent) /= size(extents)) shape%ndim = -1
        from = 1
        n = 0
        status = c_box_of_layout(here, mesh%at, for_c(layout), shape, int(position, c_int), from, n)
        first = int(from(:min(size(first), TRAMA_MAX_NDIM)))
        extent = int(n(:min(size(extent), TRAMA_MAX_NDIM)))
    end function

    !> The boxes of a matrix that ScaLAPACK deals out, descriptor DESC_, in this process' whole local array.
    integer function trama_pieces_block_cyclic(descriptor, nprow, npcol, myrow, mycol, data, pieces) result(status)
        integer(c_int), intent(in) :: descriptor(9)
        integer, intent(in) :: nprow, npcol, myrow, mycol
        type(*), intent(inout), asynchronous, target :: data(..)
        type(trama_piece), allocatable, intent(out) :: pieces(:)
        integer(c_int) :: n, grid(4)
        type(trama_piece) :: local
        local = piece_of(data)
        grid = [nprow, npcol, myrow, mycol]
        n = 0
        allocate (pieces(0))
        status = c_block_cyclic(here, descriptor, grid, local, 0_c_int, n, pieces)
        if (status /= TRAMA_OK .or. n == 0) return
        deallocate (pieces)
        allocate (pieces(n))
        status = c_block_cyclic(here, descriptor, grid, local, size(pieces, kind=c_int), n, pieces)
    end function
end module
