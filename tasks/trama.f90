! SPDX-License-Identifier: Apache-2.0
!> Trama from Fortran: the calls of trama.h with Fortran's types. Fortran 2008 with TS 29113, as mpi_f08 needs it too.
!>
!> Order. Fortran stores columns first, Trama rows first: the array a(n, m) is the tensor of shape (m, n). Here, shapes
!> and dims are Fortran's: extents are as shape(a) gives them, dims count from 1, trama_matmul(a, b) is matmul(a, b).
!> Texts are Trama's: of an array of rank r, dim d is S(r-d) in a layout, so S(0) cuts the last one, and what a process
!> holds of it is contiguous. Messages and trama_print show shapes that way round as well.
!>
!> Builders return a value; after an error an empty one, which the next builders pass through, so that one check of
!> trama_compile suffices. All else returns a status; trama_error() has the message. trama_at(file, line) says which
!> place messages of the following calls name. What is collective, copied or destroyed is said in the headers, and in
!> trama_wraps.f90 what arrays must be that Trama uses where they lie.
module trama
    use, intrinsic :: iso_c_binding
    use trama_c
    use trama_wraps
    implicit none
    private

    public :: TRAMA_OK, TRAMA_E_ARGUMENT, TRAMA_E_SHAPE, TRAMA_E_DTYPE, TRAMA_E_LAYOUT, TRAMA_E_ORDER, TRAMA_E_NOT_KEPT
    public :: TRAMA_E_UNSUPPORTED, TRAMA_E_MEMORY, TRAMA_E_SYSTEM
    public :: TRAMA_F32, TRAMA_F64, TRAMA_I32, TRAMA_I64, TRAMA_U8, TRAMA_BF16, TRAMA_F16, TRAMA_MAX_NDIM, TRAMA_ANY
    public :: trama_mesh, trama_program, trama_value, trama_target, trama_context, trama_executable
    public :: trama_config, trama_schedule, trama_loss_scale, trama_optimizer
    public :: trama_at, trama_error, trama_version
    public :: trama_start, trama_stop, trama_context_rank, trama_context_ranks
    public :: trama_mesh_parse, trama_mesh_size, trama_mesh_destroy
    public :: trama_program_new, trama_program_status, trama_program_destroy
    public :: trama_input, trama_parameter, trama_state, trama_constant, trama_rename, trama_shard, trama_reshard
    public :: trama_matmul, trama_add, trama_sub, trama_mul, trama_div, trama_scale, trama_transpose, trama_softmax
    public :: trama_neg, trama_abs, trama_square, trama_sqrt, trama_exp, trama_log, trama_relu, trama_gelu
    public :: trama_tanh, trama_sigmoid, trama_sum, trama_mean, trama_max, trama_min
    public :: trama_gradient, trama_assign, trama_minimize, trama_sgd, trama_adam, trama_adamw, trama_target_new
    public :: trama_compile, trama_executable_destroy, trama_feed, trama_run, trama_wait, trama_read, trama_write
    public :: trama_slice, trama_pad, trama_shift, trama_window
    public :: TRAMA_READ_WRITE, TRAMA_READ_ONLY, trama_wrapped, trama_piece, trama_traffic
    public :: trama_wrap, trama_release, trama_wait_wrapped, trama_feed_wrapped, trama_read_wrapped
    public :: trama_write_wrapped, trama_reshard_wrapped, trama_wrapped_traffic
    public :: trama_box_of_layout, trama_pieces_block_cyclic
    public :: trama_extents, trama_print, trama_layout_of
    public :: operator(+), operator(-), operator(*), operator(/)

    interface operator(+)
        module procedure trama_add
    end interface
    interface operator(-)
        module procedure trama_sub
    end interface
    interface operator(*)
        module procedure trama_mul, times
    end interface
    interface operator(/)
        module procedure trama_div
    end interface

    !> A host array of any rank, copied now, as a value: trama_constant(program, data).
    interface trama_constant
        module procedure constant_f32, constant_f64, constant_i32, constant_i64
    end interface

    !> status = trama_feed(executable, input, data): the whole array, the same on every rank; its shape is data's.
    interface trama_feed
        module procedure feed_f32, feed_f64, feed_i32, feed_i64
    end interface

    !> status = trama_read(executable, value, data): the whole value; data has as many elements.
    interface trama_read
        module procedure read_f32, read_f64, read_i32, read_i64
    end interface

    !> status = trama_write(executable, state, data): new content of a parameter or state.
    interface trama_write
        module procedure write_f32, write_f64, write_i32, write_i64
    end interface

contains

    ! ---- Context, mesh, program ----

    !> The last message: where, what was wrong, what would fix it.
    function trama_error() result(message)
        character(:), allocatable :: message
        message = text_of(c_error())
    end function

    function trama_version() result(version)
        character(:), allocatable :: version
        version = text_of(c_version())
    end function

    !> communicator: Fortran's handle, of mpi_f08 its %mpi_val; without it as trama_config%communicator says.
    integer function trama_start(context, communicator, config) result(status)
        type(trama_context), intent(inout) :: context
        integer, intent(in), optional :: communicator
        type(trama_config), intent(in), optional :: config
        type(trama_config) :: with
        if (present(config)) with = config
        if (present(communicator)) then
            status = c_start_fortran(with, int(communicator, c_int), context%at)
        else
            status = c_start(with, context%at)
        end if
    end function

    integer function trama_stop(context) result(status)
        type(trama_context), intent(inout) :: context
        status = c_stop(context%at)
    end function

    integer function trama_context_rank(context) result(rank)
        type(trama_context), intent(in) :: context
        rank = c_context_rank(context%at)
    end function

    integer function trama_context_ranks(context) result(ranks)
        type(trama_context), intent(in) :: context
        ranks = c_context_ranks(context%at)
    end function

    type(trama_mesh) function trama_mesh_parse(text) result(mesh)
        character(*), intent(in) :: text
        mesh%at = c_mesh_parse(for_c(text))
    end function

    integer function trama_mesh_size(mesh) result(processes)
        type(trama_mesh), intent(in) :: mesh
        processes = c_mesh_size(mesh%at)
    end function

    subroutine trama_mesh_destroy(mesh)
        type(trama_mesh), intent(inout) :: mesh
        call c_mesh_destroy(mesh%at)
    end subroutine

    type(trama_program) function trama_program_new() result(program)
        program%at = c_program_new()
    end function

    integer function trama_program_status(program) result(status)
        type(trama_program), intent(in) :: program
        status = c_program_status(program%at)
    end function

    subroutine trama_program_destroy(program)
        type(trama_program), intent(inout) :: program
        call c_program_destroy(program%at)
    end subroutine

    ! ---- Values ----

    type(trama_value) function trama_input(program, name, dtype, extents) result(y)
        type(trama_program), intent(in) :: program
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: extents(:)
        y%at = c_input(here, program%at, for_c(name), dtype, shape_of(int(extents, c_int64_t)))
    end function

    !> Starts between low and high at random, as trama_init says; without them as 0, with low alone as low.
    type(trama_value) function trama_parameter(program, name, dtype, extents, low, high, seed) result(y)
        type(trama_program), intent(in) :: program
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: extents(:)
        real(c_double), intent(in), optional :: low, high
        integer, intent(in), optional :: seed
        y%at = c_parameter(here, program%at, for_c(name), dtype, shape_of(int(extents, c_int64_t)), &
            init_of(low, high, seed))
    end function

    type(trama_value) function trama_state(program, name, dtype, extents, low, high, seed) result(y)
        type(trama_program), intent(in) :: program
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: extents(:)
        real(c_double), intent(in), optional :: low, high
        integer, intent(in), optional :: seed
        y%at = c_state(here, program%at, for_c(name), dtype, shape_of(int(extents, c_int64_t)), &
            init_of(low, high, seed))
    end function

    function init_of(low, high, seed) result(init)
        real(c_double), intent(in), optional :: low, high
        integer, intent(in), optional :: seed
        type(c_init) :: init
        if (present(low)) init%low = low
        init%high = init%low
        if (present(high)) init%high = high
        if (present(seed)) init%seed = seed
    end function

    function constant_f32(program, data) result(y)
        type(trama_program), intent(in) :: program
        real(c_float), intent(in), contiguous, target :: data(..)
        type(trama_value) :: y
        y%at = c_constant(here, program%at, TRAMA_F32, shape_of(shape(data, c_int64_t)), c_loc(data))
    end function

    function constant_f64(program, data) result(y)
        type(trama_program), intent(in) :: program
        real(c_double), intent(in), contiguous, target :: data(..)
        type(trama_value) :: y
        y%at = c_constant(here, program%at, TRAMA_F64, shape_of(shape(data, c_int64_t)), c_loc(data))
    end function

    function constant_i32(program, data) result(y)
        type(trama_program), intent(in) :: program
        integer(c_int32_t), intent(in), contiguous, target :: data(..)
        type(trama_value) :: y
        y%at = c_constant(here, program%at, TRAMA_I32, shape_of(shape(data, c_int64_t)), c_loc(data))
    end function

    function constant_i64(program, data) result(y)
        type(trama_program), intent(in) :: program
        integer(c_int64_t), intent(in), contiguous, target :: data(..)
        type(trama_value) :: y
        y%at = c_constant(here, program%at, TRAMA_I64, shape_of(shape(data, c_int64_t)), c_loc(data))
    end function

    type(trama_value) function trama_rename(x, name) result(y)
        type(trama_value), intent(in) :: x
        character(*), intent(in) :: name
        y%at = c_rename(here, x%at, for_c(name))
    end function

    !> layout: a text in Trama's order of dims, see above.
    type(trama_value) function trama_shard(x, mesh, layout) result(y)
        type(trama_value), intent(in) :: x
        type(trama_mesh), intent(in) :: mesh
        character(*), intent(in) :: layout
        y%at = c_shard(here, x%at, mesh%at, for_c(layout))
    end function

    type(trama_value) function trama_reshard(x, mesh, layout) result(y)
        type(trama_value), intent(in) :: x
        type(trama_mesh), intent(in) :: mesh
        character(*), intent(in) :: layout
        y%at = c_reshard(here, x%at, mesh%at, for_c(layout))
    end function

    ! ---- Ops ----

    !> x(n, k), y(k, m) -> (n, m), as matmul; the other dims, behind these, broadcast.
    type(trama_value) function trama_matmul(x, y) result(z)
        type(trama_value), intent(in) :: x, y
        z%at = c_matmul(here, y%at, x%at, .false._c_bool, .false._c_bool) ! rows first, it is y x
    end function

    type(trama_value) function trama_add(x, y) result(z)
        type(trama_value), intent(in) :: x, y
        z%at = c_add(here, x%at, y%at)
    end function

    type(trama_value) function trama_sub(x, y) result(z)
        type(trama_value), intent(in) :: x, y
        z%at = c_sub(here, x%at, y%at)
    end function

    type(trama_value) function trama_mul(x, y) result(z)
        type(trama_value), intent(in) :: x, y
        z%at = c_mul(here, x%at, y%at)
    end function

    type(trama_value) function trama_div(x, y) result(z)
        type(trama_value), intent(in) :: x, y
        z%at = c_div(here, x%at, y%at)
    end function

    type(trama_value) function times(factor, x) result(y)
        real(c_double), intent(in) :: factor
        type(trama_value), intent(in) :: x
        y%at = c_scale(here, x%at, factor)
    end function

    type(trama_value) function trama_scale(x, factor) result(y)
        type(trama_value), intent(in) :: x
        real(c_double), intent(in) :: factor
        y%at = c_scale(here, x%at, factor)
    end function

    type(trama_value) function trama_neg(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_neg(here, x%at)
    end function

    type(trama_value) function trama_abs(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_abs(here, x%at)
    end function

    type(trama_value) function trama_square(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_square(here, x%at)
    end function

    type(trama_value) function trama_sqrt(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_sqrt(here, x%at)
    end function

    type(trama_value) function trama_exp(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_exp(here, x%at)
    end function

    type(trama_value) function trama_log(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_log(here, x%at)
    end function

    type(trama_value) function trama_relu(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_relu(here, x%at)
    end function

    type(trama_value) function trama_gelu(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_gelu(here, x%at)
    end function

    type(trama_value) function trama_tanh(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_tanh(here, x%at)
    end function

    type(trama_value) function trama_sigmoid(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_sigmoid(here, x%at)
    end function

    !> All dims in reverse order.
    type(trama_value) function trama_transpose(x) result(y)
        type(trama_value), intent(in) :: x
        y%at = c_transpose(here, x%at, c_null_ptr)
    end function

    type(trama_value) function trama_softmax(x, dim) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in) :: dim
        y%at = c_softmax(here, x%at, int(-dim, c_int))
    end function

    !> Elements from, ..., from + extent - 1 along a dim; from counts from 1.
    type(trama_value) function trama_slice(x, dim, from, extent) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in) :: dim, from, extent
        y%at = c_slice(here, x%at, c_dim(x%at, int(dim, c_int)), from - 1_c_int64_t, int(extent, c_int64_t))
    end function

    !> Zeros before and after x along a dim.
    type(trama_value) function trama_pad(x, dim, before, after) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in) :: dim, before, after
        y%at = c_pad(here, x%at, c_dim(x%at, int(dim, c_int)), int(before, c_int64_t), int(after, c_int64_t))
    end function

    !> x moved towards higher indices by so many, zeros behind it: for a vector, eoshift(x, -by).
    type(trama_value) function trama_shift(x, dim, by) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in) :: dim, by
        y%at = c_shift(here, x%at, c_dim(x%at, int(dim, c_int)), int(by, c_int64_t))
    end function

    !> Element (i, j, ...) is x(i + offset(1), j + offset(2), ...) where x has one, else 0.
    type(trama_value) function trama_window(x, offset, extents) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in) :: offset(:), extents(:)
        integer(c_int64_t) :: by(TRAMA_MAX_NDIM)
        type(c_shape) :: shape
        by = 0
        shape = shape_of(int(extents, c_int64_t))
        if (size(offset) /= size(extents)) shape%ndim = -1
        if (shape%ndim > 0) by(:shape%ndim) = offset(size(offset):1:-1)
        y%at = c_window(here, x%at, by, shape)
    end function

    !> Over one dim, or all; keep leaves an extent of 1.
    type(trama_value) function trama_sum(x, dim, keep) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in), optional :: dim
        logical, intent(in), optional :: keep
        y%at = reduced(c_sum, x, dim, keep)
    end function

    type(trama_value) function trama_mean(x, dim, keep) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in), optional :: dim
        logical, intent(in), optional :: keep
        y%at = reduced(c_mean, x, dim, keep)
    end function

    type(trama_value) function trama_max(x, dim, keep) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in), optional :: dim
        logical, intent(in), optional :: keep
        y%at = reduced(c_max, x, dim, keep)
    end function

    type(trama_value) function trama_min(x, dim, keep) result(y)
        type(trama_value), intent(in) :: x
        integer, intent(in), optional :: dim
        logical, intent(in), optional :: keep
        y%at = reduced(c_min, x, dim, keep)
    end function

    type(c_ptr) function reduced(way, x, dim, keep) result(y)
        procedure(c_reduction) :: way
        type(trama_value), intent(in) :: x
        integer, intent(in), optional :: dim
        logical, intent(in), optional :: keep
        logical(c_bool) :: keep_dim
        keep_dim = .false.
        if (present(keep)) keep_dim = keep
        if (present(dim)) then
            y = way(here, x%at, 1_c_int, [int(-dim, c_int)], keep_dim)
        else
            y = way(here, x%at, 0_c_int, [0_c_int], keep_dim)
        end if
    end function

    ! ---- Gradients, optimizers, targets ----

    type(trama_value) function trama_gradient(loss, x) result(y)
        type(trama_value), intent(in) :: loss, x
        y%at = c_gradient(here, loss%at, x%at)
    end function

    type(trama_value) function trama_assign(state, x) result(y)
        type(trama_value), intent(in) :: state, x
        y%at = c_assign(here, state%at, x%at)
    end function

    type(trama_value) function trama_minimize(loss, optimizer) result(y)
        type(trama_value), intent(in) :: loss
        type(trama_optimizer), intent(in) :: optimizer
        y%at = c_minimize(here, loss%at, optimizer)
    end function

    type(trama_target) function trama_target_new(program, name, values) result(t)
        type(trama_program), intent(in) :: program
        character(*), intent(in) :: name
        type(trama_value), intent(in) :: values(:)
        integer :: i
        t%at = c_target(here, program%at, for_c(name), size(values, kind=c_int), [(values(i)%at, i = 1, size(values))])
    end function

    ! ---- Executables ----

    integer function trama_compile(context, program, executable) result(status)
        type(trama_context), intent(in) :: context
        type(trama_program), intent(in) :: program
        type(trama_executable), intent(inout) :: executable
        status = c_compile(here, context%at, program%at, executable%at)
    end function

    integer function trama_executable_destroy(executable) result(status)
        type(trama_executable), intent(inout) :: executable
        status = c_executable_destroy(executable%at)
    end function

    integer function trama_run(executable, target) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_target), intent(in) :: target
        status = c_run(here, executable%at, target%at)
    end function

    integer function trama_wait(executable) result(status)
        type(trama_executable), intent(in) :: executable
        status = c_wait(executable%at)
    end function

    integer function feed_f32(executable, input, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        real(c_float), intent(in), contiguous, target :: data(..)
        status = feed(executable, input, TRAMA_F32, shape(data, c_int64_t), c_loc(data))
    end function

    integer function feed_f64(executable, input, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        real(c_double), intent(in), contiguous, target :: data(..)
        status = feed(executable, input, TRAMA_F64, shape(data, c_int64_t), c_loc(data))
    end function

    integer function feed_i32(executable, input, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        integer(c_int32_t), intent(in), contiguous, target :: data(..)
        status = feed(executable, input, TRAMA_I32, shape(data, c_int64_t), c_loc(data))
    end function

    integer function feed_i64(executable, input, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        integer(c_int64_t), intent(in), contiguous, target :: data(..)
        status = feed(executable, input, TRAMA_I64, shape(data, c_int64_t), c_loc(data))
    end function

    integer function feed(executable, input, dtype, extents, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: input
        integer(c_int), intent(in) :: dtype
        integer(c_int64_t), intent(in) :: extents(:)
        type(c_ptr), intent(in) :: data
        status = c_check(here, for_c("trama_feed"), input%at, dtype)
        if (status == TRAMA_OK) status = c_feed(here, executable%at, input%at, data, shape_of(extents))
    end function

    integer function read_f32(executable, x, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        real(c_float), intent(inout), contiguous, target :: data(..)
        status = transfer_of(c_read, "trama_read", executable, x, TRAMA_F32, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function read_f64(executable, x, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        real(c_double), intent(inout), contiguous, target :: data(..)
        status = transfer_of(c_read, "trama_read", executable, x, TRAMA_F64, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function read_i32(executable, x, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        integer(c_int32_t), intent(inout), contiguous, target :: data(..)
        status = transfer_of(c_read, "trama_read", executable, x, TRAMA_I32, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function read_i64(executable, x, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        integer(c_int64_t), intent(inout), contiguous, target :: data(..)
        status = transfer_of(c_read, "trama_read", executable, x, TRAMA_I64, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function write_f32(executable, state, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: state
        real(c_float), intent(in), contiguous, target :: data(..)
        status = transfer_of(c_write, "trama_write", executable, state, TRAMA_F32, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function write_f64(executable, state, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: state
        real(c_double), intent(in), contiguous, target :: data(..)
        status = transfer_of(c_write, "trama_write", executable, state, TRAMA_F64, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function write_i32(executable, state, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: state
        integer(c_int32_t), intent(in), contiguous, target :: data(..)
        status = transfer_of(c_write, "trama_write", executable, state, TRAMA_I32, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    integer function write_i64(executable, state, data) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: state
        integer(c_int64_t), intent(in), contiguous, target :: data(..)
        status = transfer_of(c_write, "trama_write", executable, state, TRAMA_I64, &
            size(data, kind=c_size_t), c_loc(data))
    end function

    !> Both ways: the array's size in bytes is what the library compares.
    integer function transfer_of(way, call, executable, x, dtype, n, data) result(status)
        procedure(c_transfer) :: way
        character(*), intent(in) :: call
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        integer(c_int), intent(in) :: dtype
        integer(c_size_t), intent(in) :: n
        type(c_ptr), intent(in) :: data
        status = c_check(here, for_c(call), x%at, dtype)
        if (status == TRAMA_OK) status = way(here, executable%at, x%at, data, n * c_dtype_size(dtype))
    end function

    ! ---- What is there ----

    !> Extents as Fortran's shape, as last fed or run.
    integer function trama_extents(executable, x, extents) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        integer(c_int64_t), allocatable, intent(out) :: extents(:)
        type(c_shape) :: shape
        status = c_extents(executable%at, x%at, shape)
        if (status == TRAMA_OK) extents = shape%dim(shape%ndim:1:-1)
    end function

    integer function trama_print(executable, x, most, text) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        integer, intent(in) :: most
        character(:), allocatable, intent(out) :: text
        type(c_ptr) :: at
        at = c_null_ptr
        status = c_print(here, executable%at, x%at, int(most, c_int), at)
        if (status == TRAMA_OK) text = text_of(at)
        call free(at)
    end function

    integer function trama_layout_of(executable, x, text) result(status)
        type(trama_executable), intent(in) :: executable
        type(trama_value), intent(in) :: x
        character(:), allocatable, intent(out) :: text
        type(c_ptr) :: at
        at = c_null_ptr
        status = c_layout_of(executable%at, x%at, at)
        if (status == TRAMA_OK) text = text_of(at)
        call free(at)
    end function
end module
