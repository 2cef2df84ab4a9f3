! SPDX-License-Identifier: Apache-2.0
!> Meshes and layouts: calls with an array of one element for each axis, dim, process or operand. A trama_layout is C's:
!> it counts dims as texts of layouts do. Without a mesh, or with an array of another size, the calls fail as those of C
!> do with NULL: they return E_ARGUMENT or an empty mesh.
module trama_layouts
    use, intrinsic :: iso_c_binding
    use trama_types
    use trama_raw
    use trama_support
    implicit none
    private
    public :: trama_mesh_create_ids, trama_mesh_child, trama_mesh_weighted
    public :: trama_layout_from_mapping, trama_layout_mask, trama_box_of_layout
    public :: trama_reshard_plan_moves, trama_rule_infer

contains

    !> A mesh with axes of these extents, in the order of the mesh's text. names [axes], a blank one is no name; ids
    !> [processes], the last axis varies first.
    type(trama_mesh) function trama_mesh_create_ids(extents, names, ids) result(mesh)
        integer, intent(in) :: extents(:)
        character(*), intent(in), optional :: names(:)
        integer, intent(in), optional :: ids(:)
        mesh = made(c_null_ptr, "trama_mesh_create_ids", extents, names, ids)
    end function

    !> A mesh of processes of the parent.
    type(trama_mesh) function trama_mesh_child(parent, extents, names, ids) result(mesh)
        type(trama_mesh), intent(in) :: parent
        integer, intent(in) :: extents(:), ids(:)
        character(*), intent(in), optional :: names(:)
        if (c_associated(parent%at)) mesh = made(parent%at, "trama_mesh_child", extents, names, ids)
        if (.not. c_associated(parent%at)) call refuse("trama_mesh_child: there is no parent")
    end function

    type(trama_mesh) function made(parent, call, extents, names, ids) result(mesh)
        type(c_ptr), intent(in) :: parent
        character(*), intent(in) :: call
        integer, intent(in) :: extents(:)
        character(*), intent(in), optional :: names(:)
        integer, intent(in), optional :: ids(:)
        type(text_list) :: texts
        type(c_ptr) :: c_names, c_ids
        integer(c_int), target :: shape(size(extents) + 1)
        integer(c_int), allocatable, target :: numbers(:)
        shape = [int(extents, c_int), 0_c_int]
        c_names = c_null_ptr
        c_ids = c_null_ptr
        if (present(names)) then
            if (size(names) /= size(extents)) then
                call refuse(call // ": names has another size than extents")
                return
            end if
            call texts%fill(names)
            c_names = texts%at()
        end if
        if (present(ids)) then
            if (size(ids) /= product(int(extents, c_int64_t))) then
                call refuse(call // ": ids has another size than the mesh")
                return
            end if
            numbers = int(ids, c_int)
            c_ids = c_loc(numbers)
        end if
        if (c_associated(parent)) mesh%at = raw_mesh_child(parent, size(extents, kind=c_int), c_loc(shape), c_names, c_ids)
        if (.not. c_associated(parent)) &
            mesh%at = raw_mesh_create_ids(size(extents, kind=c_int), c_loc(shape), c_names, c_ids)
    end function

    !> weights [processes along the axis].
    type(trama_mesh) function trama_mesh_weighted(mesh, axis, weights) result(weighted)
        type(trama_mesh), intent(in) :: mesh
        integer, intent(in) :: axis, weights(:)
        integer(c_int), target :: numbers(size(weights) + 1)
        integer :: extent
        numbers = [int(weights, c_int), 0_c_int]
        extent = 0
        if (c_associated(mesh%at)) then
            if (axis >= 1 .and. axis <= raw_mesh_ndim(mesh%at)) extent = raw_mesh_extent(mesh%at, int(axis - 1, c_int))
        end if
        if (extent > 0 .and. size(weights) == extent) then
            weighted%at = raw_mesh_weighted(mesh%at, int(axis - 1, c_int), c_loc(numbers))
        else
            call refuse("trama_mesh_weighted: the mesh has no such axis, or weights has another size than it")
        end if
    end function

    !> mapping: for each dim the axis that cuts it, or 0.
    integer function trama_layout_from_mapping(mesh, mapping, layout) result(status)
        type(trama_mesh), intent(in) :: mesh
        integer, intent(in) :: mapping(:)
        type(trama_layout), intent(inout), target :: layout
        integer(c_int), target :: axes(size(mapping) + 1)
        axes = [int(mapping(size(mapping):1:-1) - 1, c_int), 0_c_int]
        status = raw_layout_from_mapping(mesh%at, size(mapping, kind=c_int), c_loc(axes), c_loc(layout))
    end function

    !> mask [processes of the mesh]: whether the process holds the tensor, which has ndim dims; absent: removes the
    !> layout's mask.
    integer function trama_layout_mask(mesh, ndim, layout, mask) result(status)
        type(trama_mesh), intent(in) :: mesh
        integer, intent(in) :: ndim
        type(trama_layout), intent(inout), target :: layout
        logical, intent(in), optional :: mask(:)
        integer(c_int8_t), allocatable, target :: held(:)
        if (.not. present(mask)) then
            status = raw_layout_mask(mesh%at, int(ndim, c_int), c_null_ptr, c_loc(layout))
            return
        end if
        status = TRAMA_E_ARGUMENT
        if (c_associated(mesh%at)) status = merge(TRAMA_OK, TRAMA_E_ARGUMENT, size(mask) == raw_mesh_size(mesh%at))
        if (status /= TRAMA_OK) then
            call refuse("trama_layout_mask: there is no mesh, or mask has another size than it")
            return
        end if
        held = int(merge(1, 0, mask), c_int8_t)
        status = raw_layout_mask(mesh%at, int(ndim, c_int), c_loc(held), c_loc(layout))
    end function

    !> The box of the process at a row-major position of the mesh, by a layout's text: index of its first element, and
    !> extents, 0 for an empty box. An array of these extents, wrapped with this first index, is fed without a copy.
    integer function trama_box_of_layout(mesh, layout, extents, position, first, extent) result(status)
        type(trama_mesh), intent(in) :: mesh
        character(*), intent(in) :: layout
        integer, intent(in) :: extents(:), position
        integer, intent(out) :: first(:), extent(:)
        integer(c_int64_t), target :: from(TRAMA_MAX_NDIM), n(TRAMA_MAX_NDIM)
        character(kind=c_char), target :: text(len_trim(layout) + 1)
        logical(c_bool), target :: held
        type(trama_layout), target :: parsed
        type(trama_shape) :: shape
        shape = shape_of(int(extents, c_int64_t))
        text = for_c(layout)
        first = 1
        extent = 0
        if (.not. c_associated(mesh%at)) shape%ndim = -1
        if (shape%ndim < 0 .or. size(first) /= size(extents) .or. size(extent) /= size(extents)) then
            status = refuse_call("trama_box_of_layout: there is no mesh, or not as many numbers in first and extent as in extents")
            return
        end if
        status = raw_layout_parse(mesh%at, shape%ndim, c_loc(text), c_loc(parsed))
        if (status == TRAMA_OK) status = raw_layout_box(mesh%at, c_loc(parsed), shape, int(position, c_int), &
            c_loc(from), c_loc(n), c_null_ptr, c_loc(held))
        if (status /= TRAMA_OK .or. .not. held) return
        first = int(reversed(shape%ndim, from)) + 1
        extent = int(reversed(shape%ndim, n))
    end function

    !> All moves of a plan for a tensor of ndim dims; their number is size(moves). offset [ndim]: elements before the
    !> box in each dim; extent [ndim]; both in Fortran's order.
    subroutine trama_reshard_plan_moves(plan, ndim, moves)
        type(trama_reshard_plan), intent(in) :: plan
        integer, intent(in) :: ndim
        type(trama_move), allocatable, intent(out) :: moves(:)
        type(trama_move), pointer :: all(:)
        type(c_ptr), target :: first
        integer(c_int64_t) :: n
        integer :: i, last
        first = c_null_ptr
        n = 0
        if (c_associated(plan%at)) n = raw_reshard_plan_moves(plan%at, c_loc(first))
        allocate (moves(n))
        if (n == 0) return
        call c_f_pointer(first, all, [n])
        moves = all
        last = max(0, min(ndim, int(TRAMA_MAX_NDIM)))
        do i = 1, size(moves)
            moves(i)%offset(:last) = all(i)%offset(last:1:-1)
            moves(i)%extent(:last) = all(i)%extent(last:1:-1)
        end do
    end subroutine

    !> The layouts of the op that made the value: in and inferred_in [operands], out and inferred_out [results].
    integer function trama_rule_infer(value, mesh, in, out, inferred_in, inferred_out) result(status)
        type(trama_value), intent(in) :: value
        type(trama_mesh), intent(in) :: mesh
        type(trama_layout), intent(in), target :: in(:)
        type(trama_layout), intent(in), optional, target :: out(:)
        type(trama_layout), intent(inout), optional, target :: inferred_in(:), inferred_out(:)
        integer :: operands, results
        operands = raw_value_operands(value%at)
        results = raw_value_results(value%at)
        if (wrong_size(operands, in) .or. wrong_size(results, out) .or. wrong_size(operands, inferred_in) .or. &
            wrong_size(results, inferred_out)) then
            status = refuse_call("trama_rule_infer: there is a layout for each operand and for each result of the op")
            return
        end if
        status = raw_rule_infer(here(), value%at, mesh%at, first_of(in), first_of(out), first_of(inferred_in), &
            first_of(inferred_out))
    end function

    logical function wrong_size(n, layouts)
        integer, intent(in) :: n
        type(trama_layout), intent(in), optional :: layouts(:)
        wrong_size = .false.
        if (present(layouts)) wrong_size = size(layouts) /= n
    end function

    type(c_ptr) function first_of(layouts) result(at)
        type(trama_layout), intent(in), optional, target :: layouts(:)
        at = c_null_ptr
        if (present(layouts)) at = c_loc(layouts)
    end function
end module
