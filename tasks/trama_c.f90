! SPDX-License-Identifier: Apache-2.0
!> Trama's C functions as Fortran sees them, the types that they take, and how texts and shapes become theirs: what the
!> module trama is made of, which is the one that programs use.
module trama_c
    use, intrinsic :: iso_c_binding
    implicit none
    public

    integer, parameter :: TRAMA_OK = 0, TRAMA_E_ARGUMENT = 1, TRAMA_E_SHAPE = 2, TRAMA_E_DTYPE = 3, &
        TRAMA_E_LAYOUT = 4, TRAMA_E_ORDER = 5, TRAMA_E_NOT_KEPT = 6, TRAMA_E_UNSUPPORTED = 7, TRAMA_E_MEMORY = 8, &
        TRAMA_E_SYSTEM = 9
    integer(c_int), parameter :: TRAMA_F32 = 0, TRAMA_F64 = 1, TRAMA_I32 = 2, TRAMA_I64 = 3, TRAMA_U8 = 4, &
        TRAMA_BF16 = 5, TRAMA_F16 = 6
    integer, parameter :: TRAMA_MAX_NDIM = 8
    integer, parameter :: TRAMA_ANY = -1 !< an extent that is known when fed
    integer(c_int), parameter :: TRAMA_READ_WRITE = 0, TRAMA_READ_ONLY = 1
    integer, parameter :: max_numbers = 8        ! TRAMA_SCHEDULE_NUMBERS

    !> What trama.h has as pointers; %at is that pointer, for calls that are not here.
    type :: trama_mesh
        type(c_ptr) :: at = c_null_ptr
    end type
    type :: trama_program
        type(c_ptr) :: at = c_null_ptr
    end type
    type :: trama_value
        type(c_ptr) :: at = c_null_ptr
    end type
    type :: trama_target
        type(c_ptr) :: at = c_null_ptr
    end type
    type :: trama_context
        type(c_ptr) :: at = c_null_ptr
    end type
    type :: trama_executable
        type(c_ptr) :: at = c_null_ptr
    end type
    type :: trama_wrapped
        type(c_ptr) :: at = c_null_ptr
    end type

    !> A box of a tensor in an array of the program's: made by trama_piece and trama_pieces_block_cyclic.
    type, bind(c) :: trama_piece
        type(c_ptr) :: data = c_null_ptr   !< its first element
        type(c_ptr) :: handle = c_null_ptr !< a starpu_data_handle_t that is registered for it
        integer(c_int64_t) :: first(TRAMA_MAX_NDIM) = 0  !< place of the first element in the tensor, from 1
        integer(c_int64_t) :: extent(TRAMA_MAX_NDIM) = 0
        integer(c_int64_t) :: stride(TRAMA_MAX_NDIM) = 0 !< in bytes
        integer(c_int) :: ndim = 0, places = 0 !< dims of the array; of its place
        integer(c_int) :: dtype = -1
    end type

    !> What a move sent and received, field by field that of trama_executable.h.
    type, bind(c) :: trama_traffic
        integer(c_int64_t) :: messages = 0, bytes_received = 0, bytes_sent = 0, bound = 0
        integer(c_int) :: steps = 0, tasks = 0
        integer(c_int64_t) :: gated_messages = 0, gated_received = 0, gated_sent = 0
        integer(c_int) :: gated_tasks = 0, collectives = 0
        integer(c_int64_t) :: collective_received = 0, collective_sent = 0
    end type

    !> Options of a context, field by field those of trama_context.h; 0 is the default of each.
    type, bind(c) :: trama_config
        type(c_ptr) :: communicator = c_null_ptr !< as C has it; trama_start takes Fortran's
        integer(c_int) :: workers = 0, window = 0, ways = 0
        integer(c_int64_t) :: grain_flops = 0, grain_bytes = 0, message_window = 0, nominal = 0
        integer(c_int) :: watchdog = 0, device = 0
        integer(c_int64_t) :: gpu_memory = 0
        type(c_ptr) :: trace = c_null_ptr
        logical(c_bool) :: check_calls = .false._c_bool, map_by_order = .false._c_bool, verify = .false._c_bool, &
            no_fusion = .false._c_bool, keep_blas_kernels = .false._c_bool, tf32 = .false._c_bool, &
            nccl_sums = .false._c_bool
        type(c_funptr) :: log = c_null_funptr
        type(c_ptr) :: log_data = c_null_ptr
    end type

    !> An optimizer with its options, field by field those of trama_optimizer.h. Made by trama_sgd and the like.
    type, bind(c) :: trama_schedule
        type(c_funptr) :: factor
        real(c_double) :: numbers(max_numbers)
        integer(c_int64_t) :: warmup
        type(c_ptr) :: wrong
    end type
    type, bind(c) :: trama_loss_scale
        real(c_double) :: initial, growth, backoff
        integer(c_int64_t) :: interval
    end type
    type, bind(c) :: trama_optimizer
        type(c_ptr) :: name
        type(c_funptr) :: rule
        real(c_double) :: lr
        type(trama_schedule) :: schedule
        real(c_double) :: weight_decay, momentum
        logical(c_bool) :: nesterov
        real(c_double) :: beta1, beta2, eps, clip_value, clip_norm
        type(trama_loss_scale) :: loss_scale
        integer(c_int) :: n_groups
        type(c_ptr) :: groups
    end type

    type, bind(c) :: c_where
        type(c_ptr) :: file = c_null_ptr
        integer(c_int) :: line = 0
    end type
    type, bind(c) :: c_shape
        integer(c_int) :: ndim = 0
        integer(c_int64_t) :: dim(TRAMA_MAX_NDIM) = 0
    end type
    type, bind(c) :: c_init
        real(c_double) :: low = 0, high = 0
        integer(c_int64_t) :: seed = 0, stream = 0
    end type

    abstract interface
        function c_unary(where, x) bind(c) result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            type(c_ptr) :: y
        end function
        function c_binary(where, x, y) bind(c) result(z)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x, y
            type(c_ptr) :: z
        end function
        function c_reduction(where, x, n, dims, keep_dim) bind(c) result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            integer(c_int), value :: n
            integer(c_int), intent(in) :: dims(*)
            logical(c_bool), value :: keep_dim
            type(c_ptr) :: y
        end function
        function c_leaf(where, program, name, dtype, shape, init) bind(c) result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype
            type(c_shape), value :: shape
            type(c_init), intent(in) :: init
            type(c_ptr) :: y
        end function
        function c_laid_out(where, x, mesh, layout) bind(c) result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x, mesh
            character(kind=c_char), intent(in) :: layout(*)
            type(c_ptr) :: y
        end function
        function c_transfer(where, executable, value, data, bytes) bind(c) result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: executable, value, data
            integer(c_size_t), value :: bytes
            integer(c_int) :: status
        end function
        function c_shifted(where, x, dim, by) bind(c) result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            integer(c_int), value :: dim
            integer(c_int64_t), value :: by
            type(c_ptr) :: y
        end function
        function c_ranged(where, x, dim, one, other) bind(c) result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            integer(c_int), value :: dim
            integer(c_int64_t), value :: one, other
            type(c_ptr) :: y
        end function
        function c_move(where, executable, value, wrapped) bind(c) result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: executable, value, wrapped
            integer(c_int) :: status
        end function
        function c_new_optimizer(lr) bind(c) result(optimizer)
            import
            real(c_double), value :: lr
            type(trama_optimizer) :: optimizer
        end function
        function c_give_up(object) bind(c) result(status)
            import
            type(c_ptr), intent(inout) :: object
            integer(c_int) :: status
        end function
        subroutine c_destroy(object) bind(c)
            import
            type(c_ptr), intent(inout) :: object
        end subroutine
        function c_of(object) bind(c) result(number)
            import
            type(c_ptr), value :: object
            integer(c_int) :: number
        end function
        function c_said() bind(c) result(text)
            import
            type(c_ptr) :: text
        end function
    end interface

    procedure(c_unary), bind(c, name="trama_neg_at") :: c_neg
    procedure(c_unary), bind(c, name="trama_abs_at") :: c_abs
    procedure(c_unary), bind(c, name="trama_square_at") :: c_square
    procedure(c_unary), bind(c, name="trama_sqrt_at") :: c_sqrt
    procedure(c_unary), bind(c, name="trama_exp_at") :: c_exp
    procedure(c_unary), bind(c, name="trama_log_at") :: c_log
    procedure(c_unary), bind(c, name="trama_relu_at") :: c_relu
    procedure(c_unary), bind(c, name="trama_gelu_at") :: c_gelu
    procedure(c_unary), bind(c, name="trama_tanh_at") :: c_tanh
    procedure(c_unary), bind(c, name="trama_sigmoid_at") :: c_sigmoid
    procedure(c_binary), bind(c, name="trama_add_at") :: c_add
    procedure(c_binary), bind(c, name="trama_sub_at") :: c_sub
    procedure(c_binary), bind(c, name="trama_mul_at") :: c_mul
    procedure(c_binary), bind(c, name="trama_div_at") :: c_div
    procedure(c_binary), bind(c, name="trama_gradient_at") :: c_gradient
    procedure(c_binary), bind(c, name="trama_assign_at") :: c_assign
    procedure(c_binary), bind(c, name="trama_transpose_at") :: c_transpose
    procedure(c_reduction), bind(c, name="trama_sum_at") :: c_sum
    procedure(c_reduction), bind(c, name="trama_mean_at") :: c_mean
    procedure(c_reduction), bind(c, name="trama_max_at") :: c_max
    procedure(c_reduction), bind(c, name="trama_min_at") :: c_min
    procedure(c_leaf), bind(c, name="trama_parameter_at") :: c_parameter
    procedure(c_leaf), bind(c, name="trama_state_at") :: c_state
    procedure(c_laid_out), bind(c, name="trama_shard_at") :: c_shard
    procedure(c_laid_out), bind(c, name="trama_reshard_at") :: c_reshard
    procedure(c_transfer), bind(c, name="trama_read_at") :: c_read
    procedure(c_transfer), bind(c, name="trama_write_at") :: c_write
    procedure(c_shifted), bind(c, name="trama_shift_at") :: c_shift
    procedure(c_ranged), bind(c, name="trama_slice_at") :: c_slice
    procedure(c_ranged), bind(c, name="trama_pad_at") :: c_pad
    procedure(c_move), bind(c, name="trama_read_wrapped_at") :: c_read_wrapped
    procedure(c_move), bind(c, name="trama_write_wrapped_at") :: c_write_wrapped
    procedure(c_new_optimizer), bind(c, name="trama_sgd") :: trama_sgd
    procedure(c_new_optimizer), bind(c, name="trama_adam") :: trama_adam
    procedure(c_new_optimizer), bind(c, name="trama_adamw") :: trama_adamw
    procedure(c_give_up), bind(c, name="trama_stop") :: c_stop
    procedure(c_give_up), bind(c, name="trama_executable_destroy") :: c_executable_destroy
    procedure(c_give_up), bind(c, name="trama_release") :: c_release
    procedure(c_destroy), bind(c, name="trama_mesh_destroy") :: c_mesh_destroy
    procedure(c_destroy), bind(c, name="trama_program_destroy") :: c_program_destroy
    procedure(c_of), bind(c, name="trama_context_rank") :: c_context_rank
    procedure(c_of), bind(c, name="trama_context_ranks") :: c_context_ranks
    procedure(c_of), bind(c, name="trama_mesh_size") :: c_mesh_size
    procedure(c_of), bind(c, name="trama_program_status") :: c_program_status
    procedure(c_of), bind(c, name="trama_wait") :: c_wait
    procedure(c_of), bind(c, name="trama_wait_wrapped") :: c_wait_wrapped
    procedure(c_said), bind(c, name="trama_error") :: c_error
    procedure(c_said), bind(c, name="trama_version") :: c_version
    procedure(c_said), bind(c, name="trama_program_new") :: c_program_new

    interface
        function c_start(config, context) bind(c, name="trama_start") result(status)
            import
            type(trama_config), intent(in) :: config
            type(c_ptr), intent(inout) :: context
            integer(c_int) :: status
        end function
        function c_start_fortran(config, communicator, context) bind(c, name="trama_start_fortran") result(status)
            import
            type(trama_config), intent(in) :: config
            integer(c_int), value :: communicator
            type(c_ptr), intent(inout) :: context
            integer(c_int) :: status
        end function
        function c_mesh_parse(text) bind(c, name="trama_mesh_parse") result(mesh)
            import
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr) :: mesh
        end function
        function c_input(where, program, name, dtype, shape) bind(c, name="trama_input_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype
            type(c_shape), value :: shape
            type(c_ptr) :: y
        end function
        function c_constant(where, program, dtype, shape, data) bind(c, name="trama_constant_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: program, data
            integer(c_int), value :: dtype
            type(c_shape), value :: shape
            type(c_ptr) :: y
        end function
        function c_rename(where, x, name) bind(c, name="trama_value_rename_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr) :: y
        end function
        function c_matmul(where, x, y, trans_x, trans_y) bind(c, name="trama_matmul_at") result(z)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x, y
            logical(c_bool), value :: trans_x, trans_y
            type(c_ptr) :: z
        end function
        function c_scale(where, x, factor) bind(c, name="trama_scale_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            real(c_double), value :: factor
            type(c_ptr) :: y
        end function
        function c_softmax(where, x, dim) bind(c, name="trama_softmax_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            integer(c_int), value :: dim
            type(c_ptr) :: y
        end function
        function c_window(where, x, offset, shape) bind(c, name="trama_window_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: x
            integer(c_int64_t), intent(in) :: offset(*)
            type(c_shape), value :: shape
            type(c_ptr) :: y
        end function
        function c_minimize(where, loss, optimizer) bind(c, name="trama_minimize_at") result(y)
            import
            type(c_where), value :: where
            type(c_ptr), value :: loss
            type(trama_optimizer), intent(in) :: optimizer
            type(c_ptr) :: y
        end function
        function c_target(where, program, name, n, values) bind(c, name="trama_target_at") result(target)
            import
            type(c_where), value :: where
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: n
            type(c_ptr), intent(in) :: values(*)
            type(c_ptr) :: target
        end function
        function c_compile(where, context, program, executable) bind(c, name="trama_compile_at") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: context, program
            type(c_ptr), intent(inout) :: executable
            integer(c_int) :: status
        end function
        function c_feed(where, executable, input, data, shape) bind(c, name="trama_feed_at") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: executable, input, data
            type(c_shape), value :: shape
            integer(c_int) :: status
        end function
        function c_run(where, executable, target) bind(c, name="trama_run_at") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: executable, target
            integer(c_int) :: status
        end function
        function c_extents(executable, value, shape) bind(c, name="trama_extents") result(status)
            import
            type(c_ptr), value :: executable, value
            type(c_shape), intent(out) :: shape
            integer(c_int) :: status
        end function
        function c_print(where, executable, value, most, text) bind(c, name="trama_print_at") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: executable, value
            integer(c_int), value :: most
            type(c_ptr), intent(inout) :: text
            integer(c_int) :: status
        end function
        function c_layout_of(executable, value, text) bind(c, name="trama_layout_of") result(status)
            import
            type(c_ptr), value :: executable, value
            type(c_ptr), intent(inout) :: text
            integer(c_int) :: status
        end function
        function c_wrap(where, context, name, dtype, shape, n, pieces, access, wrapped) &
                bind(c, name="trama_fortran_wrap") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: context
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype, n, access
            type(c_shape), value :: shape
            type(trama_piece), intent(in) :: pieces(*)
            type(c_ptr), intent(inout) :: wrapped
            integer(c_int) :: status
        end function
        function c_feed_wrapped(where, executable, input, wrapped, copied) bind(c, name="trama_feed_wrapped_at") &
                result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: executable, input, wrapped
            logical(c_bool), intent(out) :: copied
            integer(c_int) :: status
        end function
        function c_reshard_wrapped(where, from, to) bind(c, name="trama_reshard_wrapped_at") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: from, to
            integer(c_int) :: status
        end function
        function c_wrapped_traffic(wrapped, traffic) bind(c, name="trama_wrapped_traffic") result(status)
            import
            type(c_ptr), value :: wrapped
            type(trama_traffic), intent(out) :: traffic
            integer(c_int) :: status
        end function
        function c_box_of_layout(where, mesh, layout, shape, position, first, extent) &
                bind(c, name="trama_fortran_box_of_layout") result(status)
            import
            type(c_where), value :: where
            type(c_ptr), value :: mesh
            character(kind=c_char), intent(in) :: layout(*)
            type(c_shape), value :: shape
            integer(c_int), value :: position
            integer(c_int64_t), intent(inout) :: first(*), extent(*)
            integer(c_int) :: status
        end function
        function c_block_cyclic(where, descriptor, grid, local, most, n, pieces) &
                bind(c, name="trama_fortran_block_cyclic") result(status)
            import
            type(c_where), value :: where
            integer(c_int), intent(in) :: descriptor(9), grid(4)
            type(trama_piece), intent(in) :: local
            integer(c_int), value :: most
            integer(c_int), intent(out) :: n
            type(trama_piece), intent(inout) :: pieces(*)
            integer(c_int) :: status
        end function
        !> What a descriptor of Fortran's says of an array.
        subroutine c_array(array, data, ndim, dtype, extent, stride) bind(c, name="trama_fortran_array")
            import
            type(*), intent(inout), asynchronous, target :: array(..)
            type(c_ptr), intent(out) :: data
            integer(c_int), intent(out) :: ndim, dtype
            integer(c_int64_t), intent(inout) :: extent(*), stride(*)
        end subroutine
        function c_check(where, call, value, dtype) bind(c, name="trama_fortran_check") result(status)
            import
            type(c_where), value :: where
            character(kind=c_char), intent(in) :: call(*)
            type(c_ptr), value :: value
            integer(c_int), value :: dtype
            integer(c_int) :: status
        end function
        function c_dim(value, dim) bind(c, name="trama_fortran_dim") result(number)
            import
            type(c_ptr), value :: value
            integer(c_int), value :: dim
            integer(c_int) :: number
        end function
        function c_dtype_size(dtype) bind(c, name="trama_dtype_size") result(bytes)
            import
            integer(c_int), value :: dtype
            integer(c_size_t) :: bytes
        end function
        function strlen(text) bind(c) result(length)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
        subroutine free(memory) bind(c)
            import
            type(c_ptr), value :: memory
        end subroutine
    end interface

    character(kind=c_char), allocatable, target, save :: here_file(:)
    type(c_where), save :: here

contains

    ! ---- Texts, places, shapes ----

    !> The place that messages of the following calls name: call trama_at(__FILE__, __LINE__) with a preprocessor.
    subroutine trama_at(file, line)
        character(*), intent(in) :: file
        integer, intent(in) :: line
        here_file = transfer(trim(file) // c_null_char, [c_null_char])
        here = c_where(c_loc(here_file), int(line, c_int))
    end subroutine

    function text_of(at) result(text)
        type(c_ptr), intent(in) :: at
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer :: i
        call c_f_pointer(at, characters, [strlen(at)])
        allocate (character(size(characters)) :: text)
        do i = 1, size(characters)
            text(i:i) = characters(i)
        end do
    end function

    function for_c(text) result(c_text)
        character(*), intent(in) :: text
        character(:), allocatable :: c_text
        c_text = trim(text) // c_null_char
    end function

    !> Trama's shape of Fortran's extents; of too many, one that every call refuses.
    function shape_of(extents) result(shape)
        integer(c_int64_t), intent(in) :: extents(:)
        type(c_shape) :: shape
        shape%ndim = -1
        if (size(extents) > TRAMA_MAX_NDIM) return
        shape%ndim = size(extents, kind=c_int)
        shape%dim(:shape%ndim) = extents(size(extents):1:-1)
    end function
end module
