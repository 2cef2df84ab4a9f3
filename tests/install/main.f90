! SPDX-License-Identifier: Apache-2.0
! A Fortran program outside the tree, built against an installed Trama.
program main
    use trama
    implicit none
    print "(a)", trama_version()
end program
