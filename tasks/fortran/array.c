/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of Fortran by their descriptors (TS 29113). Descriptors differ between compilers, so this file is compiled
 * with the module and uses only types of Trama's headers. */
#include <ISO_Fortran_binding.h>
#include <stdlib.h>
#include <string.h>

#include "trama_base.h"
#include "trama_op.h"

/* An array of Fortran, lent to C; support.f90 has the same struct, field by field. */
typedef struct lent_array {
    void *data, *copy; /* copy: equals data where the elements have gaps; else NULL */
    size_t bytes;
    trama_shape shape; /* in Trama's order */
    int dtype;         /* -1: none of Trama's */
} lent_array;

void trama_fortran_array(const CFI_cdesc_t *array, void **data, int *ndim, int *dtype, int64_t *extent,
                         int64_t *stride);
int trama_fortran_lend(const CFI_cdesc_t *array, int dtype, bool gathers, lent_array *lent);
void trama_fortran_give_back(lent_array *lent, bool scatters, const CFI_cdesc_t *array);
trama_status trama_fortran_view(const trama_call *call, bool result, int i, const int64_t *line, int dtype, int rank,
                                trama_view *view);
trama_status trama_fortran_point(const trama_call *call, bool result, int i, CFI_cdesc_t *array, const int64_t *line);

/* Whether elements of a type of Fortran, which has the first dtype, may be those of the second (foreign.c). */
bool trama_fortran_stands_for(int dtype, int for_dtype);

/* The trama_dtype of a Fortran type, or -1: `wanted` where the type may stand for it. Fortran has no unsigned integers
 * and no halves; its integers of the same size stand for them. */
static int dtype_of(CFI_type_t type, int wanted)
{
    static const struct {
        CFI_type_t type;
        trama_dtype dtype;
    } known[] = {{CFI_type_float, TRAMA_F32},
                 {CFI_type_double, TRAMA_F64},
                 {CFI_type_int32_t, TRAMA_I32},
                 {CFI_type_int64_t, TRAMA_I64},
                 {CFI_type_int8_t, TRAMA_I8},
                 {CFI_type_int16_t, TRAMA_I16},
                 {CFI_type_float_Complex, TRAMA_C64},
                 {CFI_type_double_Complex, TRAMA_C128},
                 {CFI_type_Bool, TRAMA_BOOL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return trama_fortran_stands_for((int)known[i].dtype, wanted) ? wanted : (int)known[i].dtype;
    return -1;
}

/* extent and stride (in bytes) [at most TRAMA_MAX_NDIM dims]; an extent of -1 is unknown. */
void trama_fortran_array(const CFI_cdesc_t *array, void **data, int *ndim, int *dtype, int64_t *extent, int64_t *stride)
{
    *data = array->base_addr;
    *ndim = array->rank;
    *dtype = dtype_of(array->type, -1);
    for (int d = 0; d < array->rank && d < TRAMA_MAX_NDIM; d++) {
        extent[d] = array->dim[d].extent;
        stride[d] = array->dim[d].sm;
    }
}

/* ---- Elements without gaps ---- */

/* Copies the array into dense (gathers), or dense into the array. */
static void copy(const CFI_cdesc_t *array, char *dense, bool gathers)
{
    int64_t at[CFI_MAX_RANK] = {0};
    for (int d = 0; d < array->rank;) {
        char *element = array->base_addr;
        for (int e = 0; e < array->rank; e++)
            element += at[e] * array->dim[e].sm;
        memcpy(gathers ? dense : element, gathers ? element : dense, array->elem_len);
        dense += array->elem_len;
        for (d = 0; d < array->rank && ++at[d] == array->dim[d].extent; d++)
            at[d] = 0;
        d = d < array->rank ? 0 : d;
    }
}

/* Measures the array; false where its extents are not known. */
static bool measure(const CFI_cdesc_t *array, lent_array *lent, bool *has_gaps)
{
    int64_t step = (int64_t)array->elem_len;
    *has_gaps = false;
    lent->shape.ndim = array->rank;
    for (int d = 0; d < array->rank; d++) {
        int64_t extent = array->dim[d].extent;
        if (extent < 0)
            return false;
        *has_gaps |= extent > 1 && array->dim[d].sm != step;
        lent->shape.dim[array->rank - 1 - d] = extent;
        step *= extent;
    }
    lent->bytes = (size_t)step;
    return true;
}

/* gathers: a copy receives the array's content. Answers the kind of error; support.f90 makes the message. */
int trama_fortran_lend(const CFI_cdesc_t *array, int dtype, bool gathers, lent_array *lent)
{
    bool has_gaps;
    *lent = (lent_array){.dtype = -1};
    lent->dtype = dtype_of(array->type, dtype);
    if (lent->dtype < 0)
        return TRAMA_E_DTYPE;
    if (array->rank > TRAMA_MAX_NDIM || !measure(array, lent, &has_gaps))
        return TRAMA_E_SHAPE;
    lent->data = array->base_addr;
    if (!has_gaps || !lent->bytes)
        return TRAMA_OK;
    lent->data = lent->copy = malloc(lent->bytes);
    if (!lent->copy)
        return TRAMA_E_MEMORY;
    if (gathers)
        copy(array, lent->copy, true);
    return TRAMA_OK;
}

void trama_fortran_give_back(lent_array *lent, bool scatters, const CFI_cdesc_t *array)
{
    if (lent->copy && scatters)
        copy(array, lent->copy, false);
    free(lent->copy);
    *lent = (lent_array){.dtype = -1};
}

/* ---- Boxes of a kernel ---- */

/* Associates a Fortran pointer with a box of the call, or a line of it. */
trama_status trama_fortran_point(const trama_call *call, bool result, int i, CFI_cdesc_t *array, const int64_t *line)
{
    trama_view view;
    trama_status status = trama_fortran_view(call, result, i, line, dtype_of(array->type, -1), array->rank, &view);
    if (status)
        return status;
    array->base_addr = view.data;
    for (int d = 0; d < array->rank; d++) {
        int of = array->rank - 1 - d;
        array->dim[d].lower_bound = 1;
        array->dim[d].extent = view.extent[of];
        array->dim[d].sm = view.stride[of] * (CFI_index_t)array->elem_len;
    }
    return TRAMA_OK;
}
