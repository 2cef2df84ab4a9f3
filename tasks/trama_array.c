/* SPDX-License-Identifier: Apache-2.0 */
/* What an array descriptor of Fortran's (TS 29113) says. Descriptors differ from compiler to compiler, so this belongs
 * to the module, and to no header of Trama's but for the element types. */
#include <ISO_Fortran_binding.h>

#include "trama_base.h"

void trama_fortran_array(const CFI_cdesc_t *array, void **data, int *ndim, int *dtype, int64_t *extent,
                         int64_t *stride);

/* -1: none of Trama's. */
static int dtype_of(CFI_type_t type)
{
    static const struct {
        CFI_type_t type;
        trama_dtype dtype;
    } known[] = {{CFI_type_float, TRAMA_F32},
                 {CFI_type_double, TRAMA_F64},
                 {CFI_type_int32_t, TRAMA_I32},
                 {CFI_type_int64_t, TRAMA_I64},
                 {CFI_type_int8_t, TRAMA_U8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return (int)known[i].dtype;
    return -1;
}

/* extent, stride (in bytes) [the first TRAMA_MAX_NDIM dims]; an extent of -1 is not known. */
void trama_fortran_array(const CFI_cdesc_t *array, void **data, int *ndim, int *dtype, int64_t *extent, int64_t *stride)
{
    *data = array->base_addr;
    *ndim = array->rank;
    *dtype = dtype_of(array->type);
    for (int d = 0; d < array->rank && d < TRAMA_MAX_NDIM; d++) {
        extent[d] = array->dim[d].extent;
        stride[d] = array->dim[d].sm;
    }
}
