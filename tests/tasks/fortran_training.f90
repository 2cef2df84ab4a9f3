! SPDX-License-Identifier: Apache-2.0
! Optimizers, schedules, merged gradients and rules of one's own from Fortran, against plain loops.
module fortran_rules
    use, intrinsic :: iso_c_binding
    use trama
    implicit none

contains

    ! Heavy ball, of trama_optimizer.h's first lines.
    subroutine heavy_ball(update) bind(c)
        type(trama_update), intent(in) :: update
        type(trama_value) :: b, w, next
        w = trama_value(update%parameter)
        b = trama_update_slot(update, "b")
        next = trama_scale(b, 0.9_c_double) + trama_update_gradient(update)
        call trama_update_set(update, b, next)
        call trama_update_set(update, w, w - trama_update_lr(update) * next)
    end subroutine

    real(c_double) function halving(n, numbers) bind(c)
        integer(c_int64_t), value :: n
        real(c_double), intent(in) :: numbers(*)
        halving = numbers(1) * 0.5_c_double**n
    end function
end module

program test_fortran_training
    use fortran_checks
    use fortran_rules
    implicit none
    integer, parameter :: k = 3, samples = 6
    real(c_double) :: x(k, samples), y(1, samples), start(1, k)
    type(trama_program) :: p
    type(trama_value) :: points, values, weights, bias, loss, minimized
    type(trama_target) :: fit
    type(trama_executable) :: run
    integer :: i

    x = reshape([(sin(2d0 * i), i = 1, size(x))], shape(x))
    y = reshape([(cos(3d0 * i), i = 1, size(y))], shape(y))
    start = 0.5d0
    call begin()
    call adaptive_steps_are_those_of_their_papers()
    call groups_follow_other_optimizers()
    call schedules_change_the_rate()
    call gradients_are_clipped()
    call merged_steps_are_one_batch()
    call rules_may_be_written_in_fortran()
    call steps_of_a_scaled_loss_are_taken()
    call finish()

contains

    ! Mean of squares of w x + b - y; with one optimizer, or others for some parameters.
    subroutine record(optimizer, parameters, optimizers)
        type(trama_optimizer), intent(in) :: optimizer
        character(*), intent(in), optional :: parameters(:)
        type(trama_optimizer), intent(in), optional :: optimizers(:)
        p = trama_program_create()
        points = trama_input(p, "x", TRAMA_F64, [k, TRAMA_ANY])
        values = trama_input(p, "y", TRAMA_F64, [1, TRAMA_ANY])
        weights = trama_parameter(p, "w", TRAMA_F64, [1, k], low=0.5d0)
        bias = trama_parameter(p, "b", TRAMA_F64, [1, 1])
        loss = trama_mean(trama_square(trama_matmul(weights, points) + bias - values))
        minimized = trama_minimize(loss, optimizer, parameters, optimizers)
    end subroutine

    subroutine compile(others)
        type(trama_value), intent(in) :: others(:)
        fit = trama_target_create(p, "fit", [minimized, others])
        call must(trama_compile(context, p, run))
    end subroutine

    subroutine step(first, last)
        integer, intent(in) :: first, last
        call must(trama_feed(run, points, x(:, first:last)))
        call must(trama_feed(run, values, y(:, first:last)))
        call must(trama_run(run, fit))
    end subroutine

    subroutine weights_are(expected, tolerance, what)
        real(c_double), intent(in) :: expected(:, :), tolerance
        character(*), intent(in) :: what
        real(c_double) :: found(1, k)
        call must(trama_read(run, weights, found))
        call demand(maxval(abs(found - expected)) < tolerance, what)
    end subroutine

    function gradient_of(w, b, first, last) result(g)
        real(c_double), intent(in) :: w(1, k), b
        integer, intent(in) :: first, last
        real(c_double) :: g(1, k)
        g = 2 * matmul(matmul(w, x(:, first:last)) + b - y(:, first:last), transpose(x(:, first:last))) &
            / (last - first + 1)
    end function

    real(c_double) function slope_of(w, b)
        real(c_double), intent(in) :: w(1, k), b
        slope_of = 2 * sum(matmul(w, x) + b - y) / samples
    end function

    subroutine adaptive_steps_are_those_of_their_papers()
        type(trama_optimizer) :: optimizer
        real(c_double) :: g(1, k), direction(1, k)
        g = gradient_of(start, 0d0, 1, samples)
        optimizer = trama_adamw(0.25d0)
        call record(optimizer)
        call compile([loss])
        call step(1, samples)
        call weights_are(start * (1 - 0.25d0 * 0.01d0) - 0.25d0 * g / (abs(g) + 1d-8), 1d-12, "another step of adamw")
        call close_all(run, p)

        optimizer = trama_lamb(0.25d0)
        direction = g / (abs(g) + 1d-6) + 0.01d0 * start
        call record(optimizer)
        call compile([loss])
        call step(1, samples)
        call weights_are(start - 0.25d0 * norm2(start) / norm2(direction) * direction, 1d-9, "another step of lamb")
        call close_all(run, p)
    end subroutine

    subroutine groups_follow_other_optimizers()
        type(trama_optimizer) :: slow, frozen
        real(c_double) :: found
        slow = trama_sgd(0.125d0)
        call record(trama_sgd(0.5d0), ["b"], [slow])
        call compile([loss])
        call step(1, samples)
        call weights_are(start - 0.5d0 * gradient_of(start, 0d0, 1, samples), 1d-12, "another optimizer of the rest")
        call must(trama_read(run, bias, found))
        call demand(abs(found + 0.125d0 * slope_of(start, 0d0)) < 1d-12, "another optimizer of the group")
        call close_all(run, p)

        call record(trama_sgd(0.5d0), ["w ", "b*"], [frozen, slow])
        call compile([loss])
        call step(1, samples)
        call weights_are(start, 1d-300, "frozen weights that move")
        call close_all(run, p)

        call record(trama_sgd(0.5d0), ["w", "b"], [slow])
        call demand(trama_program_status(p) == TRAMA_E_ARGUMENT, "groups of another number than their optimizers")
        call trama_program_destroy(p)
        call record(trama_sgd(0.5d0), ["v"], [slow])
        call has(trama_program_error(p), "no parameter is named 'v'")
        call trama_program_destroy(p)
    end subroutine

    subroutine schedules_change_the_rate()
        type(trama_optimizer) :: optimizer
        type(trama_value) :: rate, number
        type(trama_schedule) :: one_cycle, constant
        real(c_double) :: found
        integer(c_int64_t) :: n
        one_cycle = trama_schedule_one_cycle(100)
        constant = trama_schedule_constant(5)
        call demand(c_associated(one_cycle%factor) .and. constant%warmup == 5, "other schedules")
        optimizer = trama_sgd(0.25d0)
        optimizer%schedule = trama_schedule_step(1, 0.5d0)
        call two_steps(optimizer)
        optimizer%schedule%factor = c_funloc(halving)
        optimizer%schedule%numbers(1) = 1
        call two_steps(optimizer)
        optimizer%schedule = trama_schedule_cosine(4_c_int64_t, 0d0)
        call record(optimizer)
        rate = trama_step_value(minimized, TRAMA_STEP_LR)
        number = trama_step_value(minimized, TRAMA_STEP_NUMBER)
        call compile([rate, number])
        do n = 1, 3
            call step(1, samples)
        end do
        call must(trama_read(run, rate, found))
        call demand(abs(found - 0.25d0 * (1 + cos(acos(-1d0) * 2 / 4)) / 2) < 1d-15, "another rate of a cosine")
        call must(trama_read(run, number, n))
        call demand(n == 3, "another number of the step")
        call close_all(run, p)
    end subroutine

    subroutine two_steps(optimizer)
        type(trama_optimizer), intent(in) :: optimizer
        real(c_double) :: w(1, k), g(1, k), b
        call record(optimizer)
        call compile([loss])
        call step(1, samples)
        call step(1, samples)
        g = gradient_of(start, 0d0, 1, samples)
        b = -0.25d0 * slope_of(start, 0d0)
        w = start - 0.25d0 * g
        w = w - 0.125d0 * gradient_of(w, b, 1, samples)
        call weights_are(w, 1d-12, "another second step")
        call close_all(run, p)
    end subroutine

    subroutine gradients_are_clipped()
        type(trama_optimizer) :: optimizer
        type(trama_value) :: norm
        real(c_double) :: g(1, k), d, found
        optimizer = trama_sgd(1d0)
        optimizer%clip_norm = 0.01d0
        call record(optimizer)
        norm = trama_step_value(minimized, TRAMA_STEP_NORM)
        call compile([norm])
        call step(1, samples)
        g = gradient_of(start, 0d0, 1, samples)
        d = slope_of(start, 0d0)
        call must(trama_read(run, norm, found))
        call demand(abs(found - sqrt(sum(g**2) + d**2)) < 1d-12, "another norm")
        call weights_are(start - g * 0.01d0 / (found + 1d-6), 1d-12, "a gradient that is not clipped")
        call close_all(run, p)
    end subroutine

    subroutine merged_steps_are_one_batch()
        type(trama_value) :: merged
        type(trama_target) :: same
        type(trama_traffic) :: traffic
        real(c_double) :: g(1, k), found(1, k), w(1, k)
        call record(trama_sgd(0.25d0))
        merged = trama_merged_gradient(minimized, weights)
        fit = trama_target_create(p, "fit", [minimized, merged])
        same = trama_gradient_merge(fit, 2, TRAMA_MERGE_AVG)
        call demand(c_associated(same%at, fit%at), "another target")
        call must(trama_compile(context, p, run))
        call step(1, 2)
        call weights_are(start, 1d-300, "a micro-step that moves the weights")
        call step(3, samples) ! another number of samples
        g = gradient_of(start, 0d0, 1, samples)
        call weights_are(start - 0.25d0 * g, 1d-12, "another step than that of one batch")
        call must(trama_read(run, merged, found))
        call demand(maxval(abs(found - g)) < 1d-12, "another merged gradient")
        call must(trama_target_traffic(run, fit, traffic))
        call demand(traffic%apply_tasks > 0 .or. trama_context_rank(context) > 0, "no task at the end of a cycle")
        call must(trama_merge_set(run, fit, 3))
        call step(1, 3)
        call refused(trama_merge_set(run, fit, 1), TRAMA_E_ORDER, "")
        call must(trama_flush(run, fit))
        w = start - 0.25d0 * g
        w = w - 0.25d0 * gradient_of(w, -0.25d0 * slope_of(start, 0d0), 1, 3)
        call weights_are(w, 1d-12, "another flush")
        call close_all(run, p)
    end subroutine

    subroutine rules_may_be_written_in_fortran()
        type(trama_optimizer) :: optimizer
        real(c_double) :: w(1, k), v(1, k), b, c
        optimizer = trama_optimizer_define("heavy_ball", 0.125d0, c_funloc(heavy_ball))
        call record(optimizer)
        call compile([loss])
        w = start
        v = 0
        b = 0
        c = 0
        do i = 1, 4
            call step(1, samples)
            v = 0.9d0 * v + gradient_of(w, b, 1, samples)
            c = 0.9d0 * c + slope_of(w, b)
            w = w - 0.125d0 * v
            b = b - 0.125d0 * c
        end do
        call weights_are(w, 1d-12, "another heavy ball")
        call close_all(run, p)
    end subroutine

    subroutine steps_of_a_scaled_loss_are_taken()
        type(trama_optimizer) :: optimizer
        type(trama_loss_scale) :: scale
        type(trama_value) :: taken, scaled
        logical(c_bool) :: is_taken
        real(c_double) :: found
        scale = trama_loss_scale_dynamic()
        call demand(scale%initial == 65536 .and. scale%interval == 2000, "another scale")
        optimizer = trama_sgd(0.25d0)
        optimizer%loss_scale = scale
        optimizer%loss_scale%interval = 1
        call record(optimizer)
        taken = trama_step_value(minimized, TRAMA_STEP_TAKEN)
        scaled = trama_step_value(minimized, TRAMA_STEP_SCALE)
        call compile([taken, scaled])
        call step(1, samples)
        call must(trama_read(run, taken, is_taken))
        call must(trama_read(run, scaled, found))
        call demand(is_taken .and. found == 131072, "a step that is not taken")
        call weights_are(start - 0.25d0 * gradient_of(start, 0d0, 1, samples), 1d-12, "another step of a scaled loss")
        call close_all(run, p)
    end subroutine
end program
