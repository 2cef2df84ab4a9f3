! SPDX-License-Identifier: Apache-2.0
!> Trama from Fortran: the calls of trama.h with Fortran's types. Fortran 2008 with TS 29113, as mpi_f08 needs it too.
!>
!> Names. Every function of the headers has its name here, that of a macro where there is one. cmake/fortran.py makes most
!> of them at build time; the headers describe them. values.f90, layouts.f90, own.f90 (ops and rules of one's own) and wraps.f90
!> (arrays that Trama uses where they lie) describe the others. An enumerator that has the name of a function has its type's
!> in front: TRAMA_REDUCE_SUM, TRAMA_MERGE_AVG.
!>
!> Order. Fortran stores columns first, Trama rows first: the array a(n, m) is the tensor of shape (m, n). Here, shapes
!> and dims are Fortran's: extents are as shape(a) gives them, dims count from 1, trama_matmul(a, b) is matmul(a, b).
!> Operands, results, boxes, mesh axes and places of elements count from 1 as well; processes, their ids, positions and
!> ranks from 0, as MPI's do; and so do numbers that are elements (trama_argmax, labels).
!> Texts are Trama's: of an array of rank r, dim d is S(r-d) in a layout, so S(0) cuts the last one, and what a process
!> holds of it is contiguous. Rules of ops, messages and trama_print show shapes that way round as well.
!>
!> Arguments. An array knows its type and extents, so they are not given: trama_feed(executable, input, data). It may be
!> of any rank, a scalar, or a section with gaps, which is copied. Numbers of elements are not given, and what C has as
!> its last argument of type bool is optional. Texts come back as character(:), allocatable.
!> Extents and other integers of 64 bits are integers of 32 bits or of 64, all of one call alike.
!>
!> Errors. Builders return a value; after an error an empty one, which the next builders pass through, so that one check
!> of trama_compile suffices. All else returns a status; trama_error() has the message. trama_at(file, line) says which
!> place messages of the following calls name. The headers say which calls are collective, and what they copy or destroy.
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
