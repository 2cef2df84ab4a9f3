/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and shapes. */
#include <math.h>
#include <string.h>

#include "base.h"

enum { FLOATS = 1 << TRAMA_F32 | 1 << TRAMA_F64 | 1 << TRAMA_BF16 | 1 << TRAMA_F16 };

static const struct {
    const char *name;
    size_t size;
} types[] = {
#define TYPE_ROW(dtype, text, type) [dtype] = {text, sizeof(type)},
    TRAMA_DTYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

size_t trama_dtype_size(trama_dtype dtype)
{
    return types[dtype].size;
}

const char *trama_dtype_name(trama_dtype dtype)
{
    return types[dtype].name;
}

bool trama_dtype_is_float(trama_dtype dtype)
{
    return FLOATS >> dtype & 1;
}

static double float_of_bf16(trama_bf16 x)
{
    return trama_float_of_bf16(x);
}

static double float_of_f16(trama_f16 x)
{
    return trama_float_of_f16(x);
}

static double number(double x)
{
    return x;
}

/* clang-format off */
#define BY_TYPE(type, bf16, f16, other) _Generic((type){0}, trama_bf16: bf16, trama_f16: f16, default: other)
/* clang-format on */

double element_of(trama_dtype dtype, const void *data, int64_t at)
{
    switch (dtype) {
#define GET(name, text, type)                                                                                          \
    case name:                                                                                                         \
        return BY_TYPE(type, float_of_bf16, float_of_f16, number)(((const type *)data)[at]);
        TRAMA_DTYPE_LIST(GET)
#undef GET
    default:
        return NAN;
    }
}

void element_set(trama_dtype dtype, void *data, int64_t at, double x)
{
    switch (dtype) {
#define SET(name, text, type)                                                                                          \
    case name:                                                                                                         \
        ((type *)data)[at] = BY_TYPE(type, trama_bf16_of_double, trama_f16_of_double, number)(x);                      \
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

trama_shape trama_shape_of(int n, const int64_t *dim)
{
    trama_shape shape = {.ndim = n};
    if (n > TRAMA_MAX_NDIM || n < 0)
        return (trama_shape){.ndim = -1};
    for (int d = 0; d < n; d++)
        shape.dim[d] = dim[d];
    return shape;
}

bool trama_shape_equal(trama_shape a, trama_shape b)
{
    return a.ndim == b.ndim && (a.ndim <= 0 || !memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof *a.dim));
}

int64_t trama_shape_count(trama_shape shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape.ndim; d++) {
        if (shape.dim[d] == TRAMA_ANY)
            return TRAMA_ANY;
        count *= shape.dim[d];
    }
    return count;
}

void shape_text(text *out, trama_shape shape)
{
    text_add(out, "[");
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] == TRAMA_ANY)
            text_add(out, "%sany", d ? "," : "");
        else
            text_add(out, "%s%lld", d ? "," : "", (long long)shape.dim[d]);
    text_add(out, "]");
}
