! SPDX-License-Identifier: Apache-2.0
! Shared by the Fortran tests: a context, and checks that stop the program.
module fortran_checks
    use, intrinsic :: iso_c_binding
    use trama
    implicit none
    type(trama_context) :: context

contains

    subroutine begin()
        type(trama_config) :: config
        config%workers = 1
        config%max_tiles = 3
        call must(trama_start(context, config=config))
    end subroutine

    subroutine finish()
        call must(trama_stop(context))
    end subroutine

    subroutine demand(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) error stop what // "; last message: " // trama_error()
    end subroutine

    subroutine must(status)
        integer, intent(in) :: status
        call demand(status == TRAMA_OK, "a call failed")
    end subroutine

    ! A call that fails as expected, with a message that has the reason.
    subroutine refused(status, expected, reason)
        integer, intent(in) :: status, expected
        character(*), intent(in) :: reason
        call demand(status == expected, "not refused: " // reason // "; status " // trama_status_text(status))
        call demand(index(trama_error(), reason) > 0, "a message without: " // reason)
    end subroutine

    subroutine has(text, part)
        character(*), intent(in) :: text, part
        call demand(index(text, part) > 0, "no '" // part // "' in: " // text)
    end subroutine

    ! Compiles and runs a program whose target has these values.
    subroutine run_once(p, values, run)
        type(trama_program), intent(in) :: p
        type(trama_value), intent(in) :: values(:)
        type(trama_executable), intent(inout) :: run
        type(trama_target) :: t
        t = trama_target_create(p, "t", values)
        call must(trama_compile(context, p, run))
        call must(trama_run(run, t))
    end subroutine

    subroutine close_all(run, p)
        type(trama_executable), intent(inout) :: run
        type(trama_program), intent(inout) :: p
        call must(trama_executable_destroy(run))
        call trama_program_destroy(p)
    end subroutine

    logical function near(a, b, tolerance)
        real(c_double), intent(in) :: a(:), b(:), tolerance
        near = size(a) == size(b)
        if (near .and. size(a) > 0) near = maxval(abs(a - b)) <= tolerance
    end function
end module
