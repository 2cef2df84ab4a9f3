/* SPDX-License-Identifier: Apache-2.0 */
/* The format .npy: a magic, a version, the length of a header, the header as a dictionary of Python, the elements. */
#define _XOPEN_SOURCE 700
#include "trama_npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint.h"
#include "npz.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MOST_HEADER = 1 << 16, ALIGNMENT = 64 };

/* NumPy's names of our types; the first of a type is written. */
static const struct {
    const char *name;
    trama_dtype dtype;
} dtypes[] = {{"<f4", TRAMA_F32},  {"<f8", TRAMA_F64},  {"<i4", TRAMA_I32}, {"<i8", TRAMA_I64},
              {"|u1", TRAMA_U8},   {"|b1", TRAMA_BOOL}, {"<f2", TRAMA_F16}, {"<V2", TRAMA_BF16},
              {"|V2", TRAMA_BF16}, {"|i1", TRAMA_I8},   {"<i2", TRAMA_I16}, {"<u2", TRAMA_U16},
              {"<u4", TRAMA_U32},  {"<u8", TRAMA_U64},  {"<c8", TRAMA_C64}, {"<c16", TRAMA_C128}};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static trama_status wrong(const char *path, const char *reason)
{
    return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: %s", path, reason);
}

static trama_status failed(const char *path)
{
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: %s", path, strerror(errno));
}

/* ---- Reading ---- */

/* *header: a text, which the caller frees. */
static trama_status read_header(const char *path, FILE *f, char **header)
{
    unsigned char begin[MAGIC + 6];
    size_t n = fread(begin, 1, MAGIC + 4, f), length = 0;
    if (ferror(f))
        return failed(path);
    if (n < MAGIC + 4 || memcmp(begin, magic, MAGIC) || begin[MAGIC] < 1 || begin[MAGIC] > 3)
        return wrong(path, "it is no array of NumPy (.npy)");
    bool wide = begin[MAGIC] > 1;
    if (wide && fread(begin + n, 1, 2, f) != 2)
        return wrong(path, "it ends within its header");
    for (int i = wide ? 3 : 1; i >= 0; i--)
        length = length << 8 | begin[MAGIC + 2 + i];
    if (length > MOST_HEADER)
        return wrong(path, "its header has more than 65,536 bytes");
    *header = trama_alloc(length + 1);
    return fread(*header, 1, length, f) == length ? TRAMA_OK : wrong(path, "it ends within its header");
}

/* The text behind 'key': in the header; NULL. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    return at ? at + strlen(key) + strspn(at + strlen(key), ": ") : NULL;
}

static trama_status read_dtype(const char *path, const char *header, trama_dtype *dtype)
{
    const char *words = value_of(header, "'descr'");
    for (int i = 0; words && i < N_DTYPES; i++) {
        size_t n = strlen(dtypes[i].name);
        if (*words == '\'' && !strncmp(words + 1, dtypes[i].name, n) && words[n + 1] == '\'') {
            *dtype = dtypes[i].dtype;
            return TRAMA_OK;
        }
    }
    return words ? trama_fail(NOWHERE, TRAMA_E_DTYPE,
                              "%s: elements %.*s are not supported; save it as a little-endian float, integer, bool or "
                              "complex array",
                              path, (int)strcspn(words, ","), words)
                 : wrong(path, "its header has no 'descr'");
}

static trama_status read_shape(const char *path, const char *header, trama_dtype dtype, trama_shape *shape)
{
    const char *words = value_of(header, "'shape'");
    bool good = words && *words == '(';
    trama_shape s = {.ndim = 0};
    if (good)
        words++;
    while (good && *(words += strspn(words, ", ")) != ')') {
        char *end;
        errno = 0;
        long long extent = strtoll(words, &end, 10);
        good = end != words && !errno && extent >= 0 && s.ndim < TRAMA_MAX_NDIM;
        s.dim[s.ndim < TRAMA_MAX_NDIM ? s.ndim++ : 0] = extent;
        words = end;
    }
    text why = {0};
    good = good && shape_check(s, dtype, false, &why);
    free(why.at);
    *shape = s;
    return good ? TRAMA_OK
                : trama_fail(NOWHERE, TRAMA_E_SHAPE, "%s: its shape is wrong, or has more than %d dims", path,
                             TRAMA_MAX_NDIM);
}

static trama_status parse_header(const char *path, const char *header, trama_dtype *dtype, trama_shape *shape)
{
    const char *order = value_of(header, "'fortran_order'");
    if (!order)
        return wrong(path, "its header has no 'fortran_order'");
    if (strncmp(order, "False", 5))
        return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                          "%s: it is in the order of Fortran; save numpy.ascontiguousarray of it", path);
    trama_status status = read_dtype(path, header, dtype);
    return status ? status : read_shape(path, header, *dtype, shape);
}

trama_status npy_read_header(const char *path, FILE *f, npy_header *h)
{
    char *words = NULL;
    trama_status status = read_header(path, f, &words);
    if (!status)
        status = parse_header(path, words, &h->dtype, &h->shape);
    h->bytes = ftell(f);
    free(words);
    return status;
}

trama_status npy_check_length(const char *path, const npy_header *h, int64_t bytes)
{
    const int64_t content = trama_shape_count(h->shape) * (int64_t)trama_dtype_size(h->dtype);
    return bytes - h->bytes == content
               ? TRAMA_OK
               : trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                            "%s: it has %" PRId64 " bytes behind its header, and its shape needs %" PRId64
                            "; save it again",
                            path, bytes - h->bytes, content);
}

/* Grows with the file, so that a header alone takes no memory. */
static trama_status read_content(const char *path, FILE *f, size_t bytes, char **content)
{
    char *data = NULL;
    for (size_t n = 0, room = 0; n < bytes || !data; n = room) {
        room = n ? 2 * n : 1 << 20;
        room = room < bytes ? room : bytes;
        char *more = realloc(data, room ? room : 1);
        if (!more) {
            free(data);
            return trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory for %zu bytes", path, bytes);
        }
        data = more;
        if (fread(data + n, 1, room - n, f) != room - n) {
            free(data);
            return ferror(f) ? failed(path) : wrong(path, "it has fewer elements than its header says");
        }
    }
    if (fgetc(f) != EOF) {
        free(data);
        return wrong(path, "it has more elements than its header says");
    }
    *content = data;
    return TRAMA_OK;
}

static trama_status read_file(const char *path, npy_header *h, char **content)
{
    FILE *f = fopen(path, "rb");
    trama_status status = f ? npy_read_header(path, f, h) : failed(path);
    if (!status)
        status = read_content(path, f, (size_t)trama_shape_count(h->shape) * trama_dtype_size(h->dtype), content);
    if (f)
        fclose(f);
    return status;
}

const char *npz_member(const char *path)
{
    static const char archive[] = ".npz";
    const char *at = strstr(path, ".npz:");
    if (at)
        return at[sizeof archive] ? at + sizeof archive : NULL;
    return name_has_ending(path, archive) ? path + strlen(path) : NULL;
}

trama_status trama_read_npy(const char *path, trama_dtype *dtype, trama_shape *shape, void **data)
{
    if (!path || !dtype || !shape || !data)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_read_npy: path, dtype, shape or data is NULL");
    char *content = NULL;
    npy_header h;
    trama_status status = npz_member(path) ? npz_read(path, &h, &content) : read_file(path, &h, &content);
    if (!status) {
        *dtype = h.dtype;
        *shape = h.shape;
        *data = content;
    }
    return status;
}

void trama_npy_free(void **data)
{
    if (!data)
        return;
    free(*data);
    *data = NULL;
}

/* ---- Writing ---- */

static const char *name_of(trama_dtype dtype)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

void npy_add_header(text *t, trama_dtype dtype, trama_shape shape)
{
    text words = {0};
    text_add(&words, "{'descr': '%s', 'fortran_order': False, 'shape': (", name_of(dtype));
    for (int d = 0; d < shape.ndim; d++)
        text_add(&words, "%" PRId64 ", ", shape.dim[d]);
    text_add(&words, "), }");
    const int padded = (MAGIC + 4 + (int)words.n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - MAGIC - 4;
    text_add(t, "%s%c%c%c%c%-*s\n", magic, 1, 0, padded & 255, padded >> 8, padded - 1, words.at);
    free(words.at);
}

static bool write_all(FILE *f, const text *header, const void *data, size_t bytes)
{
    fwrite(header->at, 1, header->n, f);
    if (bytes)
        fwrite(data, 1, bytes, f);
    bool good = !fflush(f) && !ferror(f);
    int error = errno;
    good = !fclose(f) && good;
    errno = good ? 0 : error;
    return good;
}

trama_status trama_write_npy(const char *path, trama_dtype dtype, trama_shape shape, const void *data)
{
    text header = {0}, why = {0};
    const bool good = path && name_of(dtype) && shape_check(shape, dtype, false, &why);
    free(why.at);
    if (!good || (!data && trama_shape_count(shape)))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                          "trama_write_npy: path or data is NULL, or shape or dtype is wrong");
    npy_add_header(&header, dtype, shape);
    FILE *f = fopen(path, "wb");
    trama_status status = TRAMA_OK;
    if (!f || !write_all(f, &header, data, (size_t)trama_shape_count(shape) * trama_dtype_size(dtype))) {
        status = failed(path);
        if (f)
            remove(path);
    }
    free(header.at);
    return status;
}
