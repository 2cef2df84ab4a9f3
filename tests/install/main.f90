! SPDX-License-Identifier: Apache-2.0
! A Fortran program outside the tree, built against an installed Trama: calls that are written by the build, by hand, and
! those that read array descriptors.
program main
    use trama
    implicit none
    type(trama_mesh) :: mesh
    type(trama_program) :: p
    type(trama_value) :: x
    integer :: first(2), extent(2)
    mesh = trama_mesh_create("2")
    if (trama_box_of_layout(mesh, "S(0)", [3, 5], 1, first, extent) /= TRAMA_OK) error stop "no box"
    if (any(first /= [1, 4]) .or. any(extent /= [3, 2])) error stop "another box"
    p = trama_program_create()
    x = trama_sum(trama_constant(p, reshape([1., 2., 3., 4., 5., 6.], [3, 2])), dim=1)
    if (any(trama_value_shape(x) /= [2])) error stop "another shape"
    call trama_program_destroy(p)
    call trama_mesh_destroy(mesh)
    print "(a)", trama_version()
end program
