! SPDX-License-Identifier: Apache-2.0
!> Trama from Fortran: the calls of trama.h with Fortran's types. It needs Fortran 2008 with TS 29113, as mpi_f08 does.
!>
!> Names. Every function of the headers has its name here, or its macro's name where it has a macro. cmake/fortran.py
!> makes most of them at build time; the headers describe them. values.f90, layouts.f90, own.f90 (a user's ops and
!> rules) and wraps.f90 (arrays used without a copy) describe the others. An enumerator with the name of a function has
!> its type's name in front: TRAMA_REDUCE_SUM, TRAMA_MERGE_AVG.
!>
!> Order. Fortran stores columns first, Trama rows first: the array a(n, m) is the tensor of shape (m, n). Here, shapes
!> and dims are Fortran's: extents are those of shape(a), dims count from 1, trama_matmul(a, b) is matmul(a, b).
!> Operands, results, boxes, mesh axes and indices of elements count from 1 as well. Processes, their ids, positions and
!> ranks count from 0, as in MPI; so do numbers that are elements of a tensor (trama_argmax, labels). Texts are Trama's:
!> in a layout of an array of rank r, dim d is S(r-d), so S(0) splits the last dim, and a process's box of it is
!> contiguous. Rules of ops, messages and trama_print have shapes in that order, too.
!>
!> Arguments. An array has its type and extents, so calls do not take them: trama_feed(executable, input, data). It may
!> have any rank, be a scalar, or be a section with gaps, which is copied. Calls take no numbers of elements. C's last
!> argument of type bool is optional. Texts come back as character(:), allocatable. Extents and other 64-bit integers
!> may be integers of 32 or 64 bits, the same kind for all in one call.
!>
!> Errors. Builders return a value. After an error the value is empty, and later builders pass it on, so that one check
!> of trama_compile suffices. Other calls return a status; trama_error() has the message. trama_at(file, line) sets the
!> source line that messages of later calls name. The headers tell which calls are collective, and which arguments they
!> copy or destroy.
module trama
    use trama_types
    use trama_support, only: trama_at
    use trama_calls
    use trama_values
    use trama_layouts
    use trama_own
    use trama_wraps
    implicit none
    public
end module
