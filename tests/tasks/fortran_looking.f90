! SPDX-License-Identifier: Apache-2.0
! Meshes, layouts, plans and texts from Fortran, local boxes, watches, and programs that run as they are recorded.
program test_fortran_looking
    use fortran_checks
    implicit none
    call begin()
    call meshes_are_made_of_arrays()
    call layouts_are_texts_and_types()
    call reshards_are_planned()
    call rules_are_asked()
    call programs_are_texts()
    call executables_are_texts()
    call boxes_are_local()
    call watches_lag()
    call ops_run_at_once()
    call empty_handles_are_refused()
    call finish()

contains

    subroutine meshes_are_made_of_arrays()
        type(trama_mesh) :: mesh, child, weighted, other
        mesh = trama_mesh_create_ids([2, 3], ["dp", "  "], [6, 5, 4, 3, 2, 1])
        call demand(trama_mesh_ndim(mesh) == 2 .and. trama_mesh_size(mesh) == 6, "another mesh")
        call demand(trama_mesh_extent(mesh, 2) == 3 .and. trama_mesh_id(mesh, 0) == 6, "another axis or id")
        call demand(trama_mesh_axis_name(mesh, 1) == "dp" .and. trama_mesh_axis_name(mesh, 2) == "", "another name")
        call demand(trama_mesh_text(mesh) == "dp=2,3:6,5,4,3,2,1", "another text: " // trama_mesh_text(mesh))
        child = trama_mesh_child(mesh, [2], ids=[4, 1])
        call demand(trama_mesh_text(child) == "2:4,1", "another child")
        weighted = trama_mesh_weighted(mesh, 2, [2, 4, 2])
        call demand(trama_mesh_weight(weighted, 2, 2) == 2 .and. trama_mesh_weight(mesh, 2, 2) == 1, "other weights")
        other = trama_mesh_create(trama_mesh_text(mesh))
        call demand(trama_mesh_equal(mesh, other) .and. .not. trama_mesh_equal(mesh, weighted), "other equal meshes")
        call trama_mesh_destroy(other)
        other = trama_mesh_weighted(mesh, 1, [1, 2, 3])
        call demand(.not. c_associated(other%at), "weights of another axis")
        call has(trama_error(), "weights has another size")
        other = trama_mesh_create_ids([2, 3], ids=[1, 2])
        call demand(.not. c_associated(other%at), "ids of another mesh")
        other = trama_mesh_child(other, [1], ids=[1])
        call demand(.not. c_associated(other%at), "a child of none")
        other = trama_mesh_child(mesh, [1], ids=[7])
        call demand(.not. c_associated(other%at), "a child that is not in its parent")
        call trama_mesh_destroy(weighted)
        call trama_mesh_destroy(child)
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine layouts_are_texts_and_types()
        type(trama_mesh) :: mesh
        type(trama_layout) :: layout, other
        character(:), allocatable :: text
        integer(c_int64_t), allocatable :: first(:), extent(:)
        integer :: term
        logical :: held
        mesh = trama_mesh_create("dp=2,mp=2")
        call must(trama_layout_parse(mesh, 2, "S(0),P(max)", layout))
        call demand(trama_layout_text(mesh, layout) == "S(0),P(max)", "another text of a layout")
        call demand(trama_layout_mapping(mesh, 2, layout) == "[0,-1] P{1:max}", "another mapping")
        call must(trama_layout_from_mapping(mesh, [0, 2], other))
        call demand(trama_layout_text(mesh, other) == "R,S(0)", "a mapping of another dim")
        call must(trama_layout_box(mesh, other, [4, 5], 3, first, extent, term, held))
        call demand(all(first == [1, 4]) .and. all(extent == [4, 2]) .and. term == 0 .and. held, "another box")
        call demand(.not. trama_layout_equal(layout, other), "equal layouts")
        call must(trama_layout_describe(mesh, other, [4, 5], text))
        call has(text, "3")
        call must(trama_layout_picture(mesh, other, [4, 5], text))
        call has(text, "+")
        call must(trama_layout_svg(mesh, other, [4, 5], "a title", text))
        call has(text, "a title")
        call must(trama_layout_mask(mesh, 2, other, [.true., .true., .false., .false.]))
        call demand(trama_layout_text(mesh, other) == "R,S(0) mask{1,1,0,0}", "another mask")
        call must(trama_layout_mask(mesh, 2, other))
        call demand(trama_layout_text(mesh, other) == "R,S(0)", "a mask that stays")
        call refused(trama_layout_mask(mesh, 2, other, [.true.]), TRAMA_E_ARGUMENT, "another size")
        call refused(trama_layout_mask(mesh, 2, other, [.true., .false., .false., .false.]), TRAMA_E_LAYOUT, "")
        call refused(trama_layout_parse(mesh, 2, "S(2),R", layout), TRAMA_E_LAYOUT, "")
        call trama_mesh_destroy(mesh)
    end subroutine

    ! From rows to columns: process d lacks half of its part.
    subroutine reshards_are_planned()
        type(trama_mesh) :: mesh
        type(trama_layout) :: from, to
        type(trama_reshard_plan) :: plan
        type(trama_reshard_cost) :: cost
        type(trama_move), allocatable :: moves(:)
        integer :: i
        mesh = trama_mesh_create("2")
        call must(trama_layout_parse(mesh, 2, "S(0)", from))
        call must(trama_layout_parse(mesh, 2, "S(1)", to))
        call must(trama_reshard_plan_create(mesh, from, mesh, to, TRAMA_F64, [4, 6], plan))
        cost = trama_reshard_plan_cost(plan)
        call demand(cost%received == 2 * 3 * 8 .and. cost%bound == 2 * 3 * 8, "another cost")
        call trama_reshard_plan_moves(plan, 2, moves)
        call demand(size(moves) == 2, "another number of moves")
        do i = 1, 2
            call demand(all(moves(i)%extent(:2) == [2, 3]) .and. moves(i)%bytes == 48, "another box that moves")
            call demand(all(moves(i)%offset(:2) == [2 * moves(i)%target, 3 * moves(i)%source]), "another place")
        end do
        call trama_reshard_plan_destroy(plan)
        call demand(.not. c_associated(plan%at), "a plan that is destroyed")
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine rules_are_asked()
        type(trama_mesh) :: mesh
        type(trama_layout) :: in(2), out(1)
        type(trama_program) :: p
        type(trama_value) :: x, z
        mesh = trama_mesh_create("2")
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F64, [4, 6])
        z = trama_matmul(x, trama_input(p, "y", TRAMA_F64, [6, 8]))
        call must(trama_layout_parse(mesh, 2, "S(1)", in(1)))
        call must(trama_layout_parse(mesh, 2, "S(0)", in(2)))
        call demand(trama_value_operands(z) == 2 .and. trama_value_results(z) == 1, "other operands")
        call demand(trama_value_name(trama_value_operand(z, 2)) == "x", "another operand") ! rows first, it is y x
        call must(trama_rule_infer(z, mesh, in, inferred_out=out))
        call demand(trama_layout_text(mesh, out(1)) == "P(sum)", "another result of a rule")
        call refused(trama_rule_infer(z, mesh, in(:1)), TRAMA_E_ARGUMENT, "a layout for each operand")
        call refused(trama_rule_infer(x, mesh, in(:0), inferred_out=out(:0)), TRAMA_E_ARGUMENT, "")
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine programs_are_texts()
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: x, z
        type(trama_target) :: t
        type(trama_executable) :: run
        character(:), allocatable :: text
        integer :: dtype
        call demand(trama_status_text(TRAMA_E_KERNEL) == "the kernel of an op failed", "another text of a status")
        call demand(trama_dtype_name(TRAMA_BF16) == "bf16" .and. trama_dtype_size(TRAMA_F64) == 8, "another type")
        call demand(trama_dtype_is_float(TRAMA_F16) .and. .not. trama_dtype_is_float(TRAMA_I32), "other floats")
        call must(trama_dtype_parse("u8", dtype))
        call demand(dtype == TRAMA_U8, "another type of a text")
        call has(trama_context_describe(context), "worker")
        mesh = trama_mesh_create("dp=2")
        p = trama_program_create()
        x = trama_shard(trama_input(p, "x", TRAMA_F64, [4, 6]), mesh, "S(0)")
        z = trama_value_rename(trama_sum(x, dim=2), "total")
        z = trama_shard_op(z, mesh, ["S(0)", "    "])
        call read_back(x, z, mesh)
        z = trama_shard_op(z, mesh, ["S(0)", "    "])
        call demand(trama_value_dtype(z) == TRAMA_F64 .and. trama_value_name(z) == "total", "another value")
        call has(trama_program_text(p), "total")
        call must(trama_complete_text(p, 100, text))
        call has(text, "S(0)")
        call must(trama_order(p, [1, 0]))
        call refused(trama_order(p, [1, 1]), TRAMA_E_ARGUMENT, "")
        call trama_program_clear_error(p)
        call demand(trama_program_status(p) == TRAMA_OK, "an error that stays")
        call must(trama_stage(p, 1))
        call must(trama_stage(p, TRAMA_NO_STAGE))
        x = trama_offload(z, "cpu")
        call has(trama_program_text(p), "offloaded")
        t = trama_target_create(p, "t", [z])
        call demand(trama_compile(context, p, run) == TRAMA_E_UNSUPPORTED, "a program that offloads")
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
        call conflict_names_its_place()
        call scopes_are_lists()
    end subroutine

    ! What was said of values and ops, what completion finds, and all of it taken back.
    subroutine read_back(x, z, mesh)
        type(trama_value), intent(in) :: x, z
        type(trama_mesh), intent(in) :: mesh
        type(trama_layout) :: layout
        type(trama_value) :: same
        call demand(trama_mesh_equal(trama_annotation_mesh(x), mesh), "another mesh")
        call demand(trama_annotation_layout(x, layout), "no layout")
        call demand(trama_layout_text(mesh, layout) == "S(0)", "another layout")
        call demand(trama_annotation_operand(z, 1, layout), "no layout of an operand")
        call demand(trama_layout_text(trama_annotation_op_mesh(z), layout) == "S(0)", "another layout of an operand")
        call demand(.not. trama_annotation_result(z, 1, layout), "a layout of a result")
        call demand(trama_annotation_stage(x) == TRAMA_NO_STAGE, "a stage")
        call demand(len(trama_annotation_device(x)) == 0, "a device")
        same = trama_annotation_clear(z)
        call demand(.not. trama_annotation_operand(z, 1, layout), "a layout that was taken back")
    end subroutine

    subroutine scopes_are_lists()
        type(trama_mesh) :: mesh, parent
        type(trama_program) :: p
        type(trama_value) :: x, z
        type(trama_completion) :: found
        type(trama_layout) :: layout
        parent = trama_mesh_create("dp=2,mp=2")
        mesh = trama_mesh_child(parent, [2], ["q"], [1, 3])
        p = trama_program_create()
        x = trama_input(p, "x", TRAMA_F64, [4, 6])
        call must(trama_shard_begin(p, mesh, ["x  ", "-,q"]))
        z = trama_exp(x)
        call must(trama_shard_end(p))
        call must(trama_shard_begin(p, mesh, [character(1) ::]))
        call must(trama_shard_end(p))
        call must(trama_completion_create(p, 100, found))
        call demand(trama_completion_layout(found, z, layout), "no layout of z")
        call demand(trama_layout_text(trama_completion_mesh(found, z), layout) == "S(1)", "z lies otherwise")
        call demand(trama_completion_operand(found, z, 1, layout), "no layout of x")
        call demand(trama_mesh_equal(trama_mesh_parent(trama_annotation_op_mesh(z)), parent), "another parent")
        call trama_completion_destroy(found)
        call refused(trama_shard_end(p), TRAMA_E_ORDER, "no scope is open")
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
        call trama_mesh_destroy(parent)
    end subroutine

    ! The file's name is kept for what is said later, whatever was named since.
    subroutine conflict_names_its_place()
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: x
        integer :: i
        mesh = trama_mesh_create("2")
        p = trama_program_create()
        call trama_at("a_file_with_a_rather_long_name_of_its_own.f90", 41)
        x = trama_shard(trama_input(p, "x", TRAMA_F64, [4]), mesh, "S(0)")
        do i = 1, 3
            call trama_at("other_" // achar(96 + i) // ".f90", i)
        end do
        x = trama_shard(x, mesh, "R")
        call has(trama_program_error(p), "other_c.f90:3")
        call has(trama_program_text(p), "a_file_with_a_rather_long_name_of_its_own.f90:41")
        call trama_at("", 0)
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine executables_are_texts()
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: x, z
        type(trama_target) :: t
        type(trama_executable) :: run
        type(trama_traffic) :: traffic
        character(:), allocatable :: text
        real(c_double) :: a(4, 6)
        a = 1
        mesh = trama_mesh_create("dp=2")
        p = trama_program_create()
        x = trama_shard(trama_input(p, "x", TRAMA_F64, shape(a)), mesh, "S(0)")
        z = trama_shard(trama_scale(x, 2d0), mesh, "S(1)")
        t = trama_target_create(p, "t", [z])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, x, a))
        call must(trama_run(run, t))
        call must(trama_plan_text(run, t, .true., text))
        call has(text, "scale")
        call must(trama_plan_graph(run, t, text))
        call has(text, "digraph")
        call must(trama_tensor_describe(run, z, text))
        call has(text, "S(1)")
        call must(trama_tensor_svg(run, z, text))
        call has(text, "<svg")
        call must(trama_print(run, z, 3, text))
        call has(text, "2")
        call must(trama_target_traffic(run, t, traffic))
        call demand(traffic%tasks > 0, "a target without tasks")
        if (trama_context_ranks(context) == 2) call demand(traffic%bytes_received == 2 * 3 * 8, "other traffic")
        call close_all(run, p)
        call trama_mesh_destroy(mesh)
    end subroutine

    ! Fed by boxes, read by boxes: those of this rank, with a gap between their columns.
    subroutine boxes_are_local()
        type(trama_mesh) :: mesh
        type(trama_program) :: p
        type(trama_value) :: x, z
        type(trama_target) :: t
        type(trama_executable) :: run
        type(trama_host_box), allocatable :: pieces(:)
        integer(c_int64_t), allocatable :: first(:), extent(:)
        real(c_double), target, asynchronous :: whole(5, 7), room(6, 7, 3)
        real(c_double) :: part(5, 7)
        integer :: n, i, j, l, columns
        whole = reshape([(1d0 * i, i = 1, size(whole))], shape(whole))
        mesh = trama_mesh_create("3")
        p = trama_program_create()
        x = trama_shard(trama_input(p, "x", TRAMA_F64, shape(whole)), mesh, "S(0)")
        z = trama_neg(x)
        t = trama_target_create(p, "t", [z])
        call must(trama_compile(context, p, run))
        call must(trama_feed(run, x, 0 * whole))
        call must(trama_local_count(run, x, n))
        allocate (pieces(n))
        room = -7
        do i = 1, n
            call must(trama_local_box(run, x, i, first, extent))
            call demand(first(1) == 1 .and. extent(1) == 5, "a box of other rows")
            do l = 1, int(extent(2))
                do j = 1, 5
                    room(j, l, i) = whole(j, int(first(2)) + l - 1)
                end do
            end do
            pieces(i) = trama_host_box(room(:5, :int(extent(2)), i))
        end do
        call must(trama_feed_local(run, x, shape(whole), pieces))
        call must(trama_run(run, t))
        call must(trama_wait(run))
        do i = 1, n
            call must(trama_local_box(run, z, i, first, extent))
            columns = int(extent(2))
            call must(trama_read_local(run, z, i, part(:, 1:columns)))
            call demand(all(part(:, :columns) == -whole(:, first(2):first(2) + columns - 1)), "another local box")
        end do
        call demand(trama_local_box(run, z, n + 1, first, extent) == TRAMA_E_ARGUMENT, "one box more")
        call must(trama_read(run, z, part))
        call demand(all(part == -whole), "another whole of boxes")
        pieces = [trama_host_box(n)]
        call refused(trama_feed_local(run, x, shape(whole), pieces), TRAMA_E_DTYPE, "box 1: the array is i32, but x is f64")
        call close_all(run, p)
        call trama_mesh_destroy(mesh)
    end subroutine

    subroutine watches_lag()
        type(trama_program) :: p
        type(trama_value) :: s
        type(trama_target) :: t
        type(trama_executable) :: run
        type(trama_watch) :: watch
        real(c_double) :: seen
        logical :: known
        integer :: i
        p = trama_program_create()
        s = trama_state(p, "s", TRAMA_F64, [integer ::], low=1d0)
        t = trama_target_create(p, "t", [trama_assign(s, trama_scale(s, 2d0))])
        call must(trama_compile(context, p, run))
        call must(trama_watch_create(run, 2, watch))
        do i = 1, 5
            seen = -1
            call must(trama_run(run, t))
            call must(trama_watch_next(watch, s, seen, known))
            call demand(known .eqv. i > 2, "a watch that lags otherwise")
            call demand(seen == merge(2d0**(i - 2), -1d0, i > 2), "another value of a watch")
        end do
        call must(trama_watch_rest(watch, seen, known))
        call demand(known .and. seen == 16, "another rest")
        call must(trama_watch_destroy(watch))
        call refused(trama_watch_create(run, 1000, watch), TRAMA_E_ARGUMENT, "")
        call close_all(run, p)
    end subroutine

    ! Variables that were never set, as after a call whose status nobody asked for.
    subroutine empty_handles_are_refused()
        type(trama_context) :: none
        type(trama_mesh) :: mesh, other
        type(trama_program) :: p
        type(trama_value) :: x
        type(trama_target) :: t
        type(trama_executable) :: run
        type(trama_op) :: op
        type(trama_watch) :: watch
        type(trama_reading) :: reading
        type(trama_wrapped) :: wrapped
        type(trama_reshard_plan) :: plan
        type(trama_move), allocatable :: moves(:)
        type(trama_layout) :: layout
        integer(c_int64_t), allocatable :: extents(:), first(:), extent(:)
        character(:), allocatable :: text
        real(c_double) :: a(2)
        integer :: n, at(1), size_of(1)
        logical :: held
        a = 0
        call refused(trama_compile(none, p, run), TRAMA_E_ARGUMENT, "")
        call refused(trama_feed(run, x, a), TRAMA_E_ARGUMENT, "")
        call refused(trama_feed_local(run, x, [2], [trama_host_box ::]), TRAMA_E_ARGUMENT, "")
        call refused(trama_run(run, t), TRAMA_E_ARGUMENT, "")
        call refused(trama_read(run, x, a), TRAMA_E_ARGUMENT, "")
        call refused(trama_write(run, x, a), TRAMA_E_ARGUMENT, "")
        call refused(trama_read_wait(reading, a), TRAMA_E_ARGUMENT, "")
        call refused(trama_extents(run, x, extents), TRAMA_E_ARGUMENT, "")
        call refused(trama_local_count(run, x, n), TRAMA_E_ARGUMENT, "")
        call refused(trama_local_box(run, x, 1, first, extent), TRAMA_E_ARGUMENT, "")
        call refused(trama_print(run, x, 3, text), TRAMA_E_ARGUMENT, "")
        call refused(trama_watch_next(watch, x, a), TRAMA_E_ARGUMENT, "")
        call refused(trama_wait_wrapped(wrapped), TRAMA_E_ARGUMENT, "")
        call refused(trama_box_of_layout(mesh, "S(0)", [2], 0, at, size_of), TRAMA_E_ARGUMENT, "no mesh")
        call refused(trama_layout_parse(mesh, 1, "R", layout), TRAMA_E_LAYOUT, "")
        call refused(trama_layout_box(mesh, layout, [2], 0, first, extent, n, held), TRAMA_E_ARGUMENT, "")
        call refused(trama_rule_infer(x, mesh, [layout]), TRAMA_E_ARGUMENT, "")
        call refused(trama_op_validate(x), TRAMA_E_ARGUMENT, "")
        other = trama_mesh_weighted(mesh, 1, [1])
        call demand(.not. c_associated(other%at), "a mesh of none")
        call trama_reshard_plan_moves(plan, 2, moves)
        call demand(size(moves) == 0 .and. size(trama_value_shape(x)) == 0, "moves or extents of nothing")
        call demand(trama_mesh_text(mesh) == "" .and. trama_op_name(op) == "", "a text of nothing")
        x = trama_sum(trama_reshape(trama_matmul(x, x), [2]), dim=1) + trama_apply(op, [x])
        call demand(.not. c_associated(x%at), "a value of nothing")
        call demand(text_is_empty(text), "a text of nothing")
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
        call must(trama_executable_destroy(run))
        call must(trama_watch_destroy(watch))
        call must(trama_release(wrapped))
    end subroutine

    logical function text_is_empty(text)
        character(:), allocatable, intent(in) :: text
        text_is_empty = .not. allocated(text)
    end function

    subroutine ops_run_at_once()
        type(trama_program) :: p
        type(trama_executable) :: run
        type(trama_mesh) :: mesh
        type(trama_value) :: x, y
        real(c_float) :: a(2, 3), found(2, 3)
        integer :: mark, i
        a = reshape([(real(i, c_float), i = 1, 6)], shape(a))
        mesh = trama_mesh_create("2")
        call must(trama_eager(context, p, run))
        x = trama_keep(trama_tensor(p, a, mesh=mesh, layout="S(0)"))
        mark = trama_program_mark(p)
        do i = 1, 3
            y = trama_add(x, x)
            call must(trama_read(run, y, found))
            call demand(all(found == 2 * a), "another sum at once")
            call must(trama_program_rewind(p, mark))
        end do
        call must(trama_read(run, x, found))
        call demand(all(found == a), "a kept value that is gone")
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
        call trama_mesh_destroy(mesh)
    end subroutine
end program
