/* SPDX-License-Identifier: Apache-2.0 */
/* The format .npy: a magic, a version, the length of a header, the header as a dictionary of Python, the elements. */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MOST_HEADER = 1 << 16, ALIGNMENT = 64 };

/* NumPy's names of our types; the first of a type is written. */
static const struct {
    const char *name;
    trama_dtype dtype;
} dtypes[] = {{"<f4", TRAMA_F32}, {"<f8", TRAMA_F64}, {"<i4", TRAMA_I32},  {"<i8", TRAMA_I64}, {"|u1", TRAMA_U8},
              {"|b1", TRAMA_U8},  {"<f2", TRAMA_F16}, {"<V2", TRAMA_BF16}, {"|V2", TRAMA_BF16}};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static size_t bytes_of(const npy *array)
{
    return (size_t)trama_shape_count(array->shape) * trama_dtype_size(array->dtype);
}

/* ---- Reading ---- */

/* The header, which the caller frees. */
static char *read_header(const char *path, FILE *f)
{
    unsigned char begin[MAGIC + 6];
    size_t n = fread(begin, 1, MAGIC + 4, f), length = 0;
    if (n < MAGIC + 4 || memcmp(begin, magic, MAGIC) || begin[MAGIC] < 1 || begin[MAGIC] > 3)
        fail("%s: it is no array of NumPy (.npy)", path);
    bool wide = begin[MAGIC] > 1;
    if (wide && fread(begin + n, 1, 2, f) != 2)
        fail("%s: it ends within its header", path);
    for (int i = wide ? 3 : 1; i >= 0; i--)
        length = length << 8 | begin[MAGIC + 2 + i];
    if (length > MOST_HEADER)
        fail("%s: its header has %zu bytes", path, length);
    char *header = must_allocate((int64_t)length + 1, 1);
    if (fread(header, 1, length, f) != length)
        fail("%s: it ends within its header", path);
    return header;
}

/* The text behind 'key': in the header. */
static const char *value_of(const char *path, const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? at + strlen(key) : NULL;
    if (!at)
        fail("%s: its header has no %s", path, key);
    return at + strspn(at, ": ");
}

static trama_dtype read_dtype(const char *path, const char *header)
{
    const char *text = value_of(path, header, "'descr'");
    for (int i = 0; i < N_DTYPES; i++)
        if (*text == '\'' && !strncmp(text + 1, dtypes[i].name, 3) && text[4] == '\'')
            return dtypes[i].dtype;
    fail("%s: elements %.*s are not supported; save it as float32, float64, int32, int64, uint8, bool or float16", path,
         (int)strcspn(text, ","), text);
}

static trama_shape read_shape(const char *path, const char *header)
{
    trama_shape shape = {.ndim = 0};
    const char *text = value_of(path, header, "'shape'");
    int64_t count = 1;
    bool good = *text == '(';
    text += good;
    while (good && *(text += strspn(text, ", ")) != ')') {
        char *end;
        errno = 0;
        long long extent = strtoll(text, &end, 10);
        good = end != text && !errno && extent >= 0 && shape.ndim < TRAMA_MAX_NDIM &&
               !__builtin_mul_overflow(count, extent ? extent : 1, &count) && count < INT64_C(1) << 56;
        shape.dim[shape.ndim < TRAMA_MAX_NDIM ? shape.ndim++ : 0] = extent;
        text = end;
    }
    if (!good)
        fail("%s: its shape is wrong, or has more than %d dims", path, TRAMA_MAX_NDIM);
    return shape;
}

npy npy_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail("%s: %s", path, strerror(errno));
    char *header = read_header(path, f);
    if (strncmp(value_of(path, header, "'fortran_order'"), "False", 5))
        fail("%s: it is in the order of Fortran; save numpy.ascontiguousarray of it", path);
    npy array = {.dtype = read_dtype(path, header), .shape = read_shape(path, header)};
    free(header);
    size_t bytes = bytes_of(&array);
    array.data = must_allocate((int64_t)bytes, 1);
    if (fread(array.data, 1, bytes, f) != bytes)
        fail("%s: it has fewer elements than its header says", path);
    if (fgetc(f) != EOF)
        fail("%s: it has more elements than its header says", path);
    fclose(f);
    return array;
}

void npy_free(npy *array)
{
    free(array->data);
    array->data = NULL;
}

/* ---- Writing ---- */

void npy_write(const char *path, const npy *array)
{
    char header[512];
    int i = 0;
    while (dtypes[i].dtype != array->dtype)
        i++;
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtypes[i].name);
    for (int d = 0; d < array->shape.ndim; d++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%" PRId64 ", ", array->shape.dim[d]);
    n += snprintf(header + n, sizeof header - (size_t)n, "), }");
    int padded = (MAGIC + 4 + n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - MAGIC - 4;
    FILE *f = fopen(path, "wb");
    if (!f)
        fail("%s: %s", path, strerror(errno));
    fwrite(magic, 1, MAGIC, f);
    fwrite((const unsigned char[]){1, 0, (unsigned char)padded, (unsigned char)(padded >> 8)}, 1, 4, f);
    fprintf(f, "%-*s\n", padded - 1, header);
    size_t bytes = bytes_of(array);
    if (bytes)
        fwrite(array->data, 1, bytes, f);
    if (!close_written(f))
        fail("%s: %s", path, strerror(errno));
}
