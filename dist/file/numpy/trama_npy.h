/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of NumPy in files .npy, versions 1 to 3, and in archives .npz: little-endian, row-major. */
#ifndef TRAMA_NPY_H
#define TRAMA_NPY_H

#include "trama_base.h"

TRAMA_API_BEGIN

/* Reads a whole array: of a file .npy, of an archive with one array, or of a member as "FILE.npz:NAME". Members may be
 * deflated, into a temporary file; an archive is refused whose members overlap, or inflate to another size than their
 * shape has, or have another check sum. *data [shape] row-major belongs to the caller, who frees it by trama_npy_free.
 * Elements V2 are bf16, as the package ml_dtypes writes them. Errors name the file and set nothing: E_SYSTEM where it
 * cannot be read, E_ARGUMENT where it is no array, or has fewer or more elements than its header says, E_DTYPE,
 * E_SHAPE, E_MEMORY; E_UNSUPPORTED for an array in the order of Fortran, and for an archive without zlib. */
trama_status trama_read_npy(const char *path, trama_dtype *dtype, trama_shape *shape, void **data);

/* Frees data of trama_read_npy and nulls *data; NULL is allowed. */
void trama_npy_free(void **data);

/* Writes data [shape] row-major as a file of version 1. E_SYSTEM, naming the file, where it cannot be written; what was
 * written of it is then removed. */
trama_status trama_write_npy(const char *path, trama_dtype dtype, trama_shape shape, const void *data);

TRAMA_API_END
#endif
