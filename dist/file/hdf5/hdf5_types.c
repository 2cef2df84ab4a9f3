/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and shapes in HDF5. */
#include "hdf5_types.h"

#include <string.h>

static hid_t bool_type(void)
{
    const int8_t values[] = {0, 1};
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    H5Tenum_insert(type, "FALSE", &values[0]);
    H5Tenum_insert(type, "TRUE", &values[1]);
    return type;
}

static hid_t complex_type(hid_t part, size_t bytes)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 2 * bytes);
    H5Tinsert(type, "r", 0, part);
    H5Tinsert(type, "i", bytes, part);
    return type;
}

static hid_t half_type(size_t exponent, size_t bias)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 15 - exponent, exponent, 0, 15 - exponent);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, bias);
    return type;
}

hid_t hdf5_type_of(trama_dtype dtype)
{
    switch (dtype) {
    case TRAMA_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case TRAMA_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case TRAMA_I8:
        return H5Tcopy(H5T_STD_I8LE);
    case TRAMA_I16:
        return H5Tcopy(H5T_STD_I16LE);
    case TRAMA_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case TRAMA_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case TRAMA_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case TRAMA_U16:
        return H5Tcopy(H5T_STD_U16LE);
    case TRAMA_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case TRAMA_U64:
        return H5Tcopy(H5T_STD_U64LE);
    case TRAMA_BOOL:
        return bool_type();
    case TRAMA_C64:
        return complex_type(H5T_IEEE_F32LE, 4);
    case TRAMA_C128:
        return complex_type(H5T_IEEE_F64LE, 8);
    case TRAMA_F16:
        return half_type(5, 15);
    case TRAMA_BF16:
        return half_type(8, 127);
    default:
        return -1;
    }
}

trama_dtype hdf5_dtype_of(hid_t type)
{
    int found = TRAMA_N_DTYPES;
    for (int d = 0; d < TRAMA_N_DTYPES && found == TRAMA_N_DTYPES; d++) {
        hid_t own = hdf5_type_of((trama_dtype)d);
        if (own >= 0 && H5Tequal(own, type) > 0)
            found = d;
        H5Tclose(own);
    }
    return (trama_dtype)found;
}

bool hdf5_shape_of(hid_t dataset, trama_shape *shape)
{
    hsize_t extents[H5S_MAX_RANK];
    hid_t space = H5Dget_space(dataset);
    int n = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    bool good = n >= 0 && n <= TRAMA_MAX_NDIM && H5Sget_simple_extent_type(space) != H5S_NULL &&
                H5Sget_simple_extent_dims(space, extents, NULL) >= 0;
    *shape = (trama_shape){.ndim = good ? n : 0};
    for (int d = 0; d < shape->ndim && good; d++) {
        good = extents[d] < (hsize_t)INT64_MAX;
        shape->dim[d] = (int64_t)extents[d];
    }
    H5Sclose(space);
    return good;
}
