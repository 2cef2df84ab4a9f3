/* SPDX-License-Identifier: Apache-2.0 */
/* Element types in HDF5, as h5py writes them: bool is an enumeration, a complex number a compound of r and i, and the
 * 16-bit floats are floats of their own; shapes. It knows no file. */
#ifndef HDF5_TYPES_H
#define HDF5_TYPES_H

#include <hdf5.h>

#include "base.h"

/* A new type, little-endian, which the caller closes; negative where HDF5 fails. */
hid_t hdf5_type_of(trama_dtype dtype);

/* The element type that a type in a file is, little-endian; TRAMA_N_DTYPES where it is none. */
trama_dtype hdf5_dtype_of(hid_t type);

/* The shape of a dataset; false where it has none, or more dims than a tensor. */
bool hdf5_shape_of(hid_t dataset, trama_shape *shape);

#endif
