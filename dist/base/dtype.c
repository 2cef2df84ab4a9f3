/* SPDX-License-Identifier: Apache-2.0 */
/* Element types. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "base.h"

static const struct {
    const char *name;
    size_t size;
    trama_dtype_kind kind;
} types[] = {
#define KIND_OF(type)                                                                                                  \
    _Generic((type){0}, bool                                                                                           \
             : TRAMA_KIND_BOOL, int8_t                                                                                 \
             : TRAMA_KIND_SIGNED, int16_t                                                                              \
             : TRAMA_KIND_SIGNED, int32_t                                                                              \
             : TRAMA_KIND_SIGNED, int64_t                                                                              \
             : TRAMA_KIND_SIGNED, uint8_t                                                                              \
             : TRAMA_KIND_UNSIGNED, uint16_t                                                                           \
             : TRAMA_KIND_UNSIGNED, uint32_t                                                                           \
             : TRAMA_KIND_UNSIGNED, uint64_t                                                                           \
             : TRAMA_KIND_UNSIGNED, trama_c64                                                                          \
             : TRAMA_KIND_COMPLEX, trama_c128                                                                          \
             : TRAMA_KIND_COMPLEX, default                                                                             \
             : TRAMA_KIND_FLOAT)
#define TYPE_ROW(dtype, text, type) [dtype] = {text, sizeof(type), KIND_OF(type)},
    TRAMA_DTYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

static bool is_known(trama_dtype dtype)
{
    return (unsigned)dtype < TRAMA_N_DTYPES;
}

size_t trama_dtype_size(trama_dtype dtype)
{
    return is_known(dtype) ? types[dtype].size : 0;
}

const char *trama_dtype_name(trama_dtype dtype)
{
    return is_known(dtype) ? types[dtype].name : "(unknown)";
}

trama_dtype_kind trama_dtype_kind_of(trama_dtype dtype)
{
    return is_known(dtype) ? types[dtype].kind : (trama_dtype_kind)0;
}

bool trama_dtype_is_float(trama_dtype dtype)
{
    return trama_dtype_kind_of(dtype) == TRAMA_KIND_FLOAT;
}

bool trama_dtype_is_integer(trama_dtype dtype)
{
    return trama_dtype_kind_of(dtype) & (TRAMA_KIND_SIGNED | TRAMA_KIND_UNSIGNED);
}

trama_dtype dtype_part(trama_dtype dtype)
{
    return dtype == TRAMA_C64 ? TRAMA_F32 : dtype == TRAMA_C128 ? TRAMA_F64 : dtype;
}

int dtype_parts(trama_dtype dtype)
{
    return trama_dtype_kind_of(dtype) == TRAMA_KIND_COMPLEX ? 2 : 1;
}

static double float_of_bf16(trama_bf16 x)
{
    return trama_float_of_bf16(x);
}

static double float_of_f16(trama_f16 x)
{
    return trama_float_of_f16(x);
}

/* Of a complex number its real part. */
static double real_of(double _Complex x)
{
    return creal(x);
}

static double number(double x)
{
    return x;
}

/* clang-format off */
#define BY_TYPE(type, bf16, f16, complex_, other) \
    _Generic((type){0}, trama_bf16: bf16, trama_f16: f16, trama_c64: complex_, trama_c128: complex_, default: other)
/* clang-format on */

double element_of(trama_dtype dtype, const void *data, int64_t at)
{
    switch (dtype) {
#define GET(name, text, type)                                                                                          \
    case name:                                                                                                         \
        return BY_TYPE(type, float_of_bf16, float_of_f16, real_of, number)(((const type *)data)[at]);
        TRAMA_DTYPE_LIST(GET)
#undef GET
    default:
        return NAN;
    }
}

static int64_t integer_of_bf16(trama_bf16 x)
{
    return (int64_t)trama_float_of_bf16(x);
}

static int64_t integer_of_f16(trama_f16 x)
{
    return (int64_t)trama_float_of_f16(x);
}

static int64_t integer_of_complex(double _Complex x)
{
    return (int64_t)creal(x);
}

static int64_t integer(int64_t x)
{
    return x;
}

int64_t element_integer(trama_dtype dtype, const void *data, int64_t at)
{
    switch (dtype) {
#define GET(name, text, type)                                                                                          \
    case name:                                                                                                         \
        return BY_TYPE(type, integer_of_bf16, integer_of_f16, integer_of_complex, integer)(((const type *)data)[at]);
        TRAMA_DTYPE_LIST(GET)
#undef GET
    default:
        return 0;
    }
}

void element_set(trama_dtype dtype, void *data, int64_t at, double x)
{
    switch (dtype) {
#define SET(name, text, type)                                                                                          \
    case name:                                                                                                         \
        ((type *)data)[at] = BY_TYPE(type, trama_bf16_of_double, trama_f16_of_double, number, number)(x);              \
        break;
        TRAMA_DTYPE_LIST(SET)
#undef SET
    default:
        break;
    }
}

trama_status trama_dtype_parse(const char *name, trama_dtype *dtype)
{
    text known = {0};
    if (!dtype)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_dtype_parse: the element type's address is NULL");
    for (int i = 0; i < TRAMA_N_DTYPES; i++) {
        if (name && !strcmp(name, types[i].name)) {
            *dtype = (trama_dtype)i;
            free(known.at);
            return TRAMA_OK;
        }
        text_add(&known, " %s", types[i].name);
    }
    trama_fail(NOWHERE, TRAMA_E_DTYPE, "element type '%s' is not known; there are:%s", name ? name : "(null)",
               known.at);
    free(known.at);
    return TRAMA_E_DTYPE;
}
