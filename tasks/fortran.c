/* SPDX-License-Identifier: Apache-2.0 */
/* What trama.f90 needs beside the public calls. */
#include "comm.h"
#include "trama_executable.h"
#include "trama_optimizer.h"

/* trama_c.f90 has these field by field, and must follow what changes here. */
_Static_assert(sizeof(void *) != 8 || (sizeof(trama_config) == 96 && sizeof(trama_optimizer) == 224), "trama_c.f90");
_Static_assert(TRAMA_OK == 0 && TRAMA_E_SYSTEM == 9 && TRAMA_F32 == 0 && TRAMA_U8 == 4, "trama_c.f90");

trama_status trama_fortran_check(trama_where where, const char *call, const trama_value *value, trama_dtype dtype);
int trama_fortran_dim(const trama_value *value, int dim);

trama_status trama_start_fortran(const trama_config *config, int communicator, trama_context **context)
{
    trama_config with = config ? *config : (trama_config){0};
    with.communicator = comm_from_fortran(communicator);
    return trama_start(&with, context);
}

/* An array's type is the compiler's to know: that of the value must be the same. */
trama_status trama_fortran_check(trama_where where, const char *call, const trama_value *value, trama_dtype dtype)
{
    if (!value || trama_value_dtype(value) == dtype)
        return TRAMA_OK; /* the call itself refuses NULL */
    return trama_fail(where, TRAMA_E_DTYPE, "%s: the array is %s, but %s is %s", call, trama_dtype_name(dtype),
                      trama_value_name(value), trama_dtype_name(trama_value_dtype(value)));
}

/* A dim as Trama counts it, of one that counts from 1 in the other order. */
int trama_fortran_dim(const trama_value *value, int dim)
{
    return value ? trama_value_shape(value).ndim - dim : 0;
}
