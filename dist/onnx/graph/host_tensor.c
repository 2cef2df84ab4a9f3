/* SPDX-License-Identifier: Apache-2.0 */
/* Reads TensorProto in all its encodings: raw bytes, typed fields, external data. Knows no files. */
#include "host_tensor.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data of ONNX is little-endian, and this file copies it as it is"
#endif

/* ---- Element types ---- */

/* ONNX's number of a type, its name, ours; N_DTYPES: none. A type that Trama gets needs its line here only. */
static const struct {
    int32_t onnx;
    const char *name;
    trama_dtype dtype;
} dtypes[] = {
    {1, "float", TRAMA_F32},
    {2, "uint8", TRAMA_U8},
    {3, "int8", TRAMA_I8},
    {4, "uint16", TRAMA_U16},
    {5, "int16", TRAMA_I16},
    {6, "int32", TRAMA_I32},
    {7, "int64", TRAMA_I64},
    {8, "string", TRAMA_N_DTYPES},
    {9, "bool", TRAMA_BOOL},
    {10, "float16", TRAMA_F16},
    {11, "double", TRAMA_F64},
    {12, "uint32", TRAMA_U32},
    {13, "uint64", TRAMA_U64},
    {14, "complex64", TRAMA_N_DTYPES},
    {15, "complex128", TRAMA_N_DTYPES},
    {16, "bfloat16", TRAMA_BF16},
};

trama_status host_dtype(int32_t onnx, trama_dtype *dtype, const char **name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].onnx == onnx) {
            *name = dtypes[i].name;
            *dtype = dtypes[i].dtype;
            return *dtype == TRAMA_N_DTYPES ? TRAMA_E_UNSUPPORTED : TRAMA_OK;
        }
    *name = "of an unknown number";
    return TRAMA_E_UNSUPPORTED;
}

/* ---- Life and elements ---- */

host_tensor *host_create(trama_dtype dtype, trama_shape shape)
{
    host_tensor *t = trama_alloc(sizeof *t);
    *t = (host_tensor){.dtype = dtype, .shape = shape, .count = trama_shape_count(shape)};
    t->data = trama_try_alloc((size_t)t->count * trama_dtype_size(dtype));
    if (t->data)
        return t;
    host_free(t);
    return NULL;
}

void host_free(host_tensor *t)
{
    if (!t)
        return;
    free(t->data);
    free(t->open);
    free(t);
}

number host_get(const host_tensor *t, int64_t i)
{
    number x = {.real = trama_dtype_is_float(t->dtype), .open = t->open ? t->open[i] : 0};
    if (t->dtype == TRAMA_I64)
        x.r = (double)(x.i = ((const int64_t *)t->data)[i]);
    else
        x.r = element_of(t->dtype, t->data, i);
    if (!x.real && t->dtype != TRAMA_I64)
        x.i = (int64_t)x.r;
    return x;
}

void host_set(host_tensor *t, int64_t i, number x)
{
    if (x.open && !t->open)
        t->open = trama_alloc((size_t)t->count * sizeof *t->open);
    if (t->open)
        t->open[i] = x.open;
    if (x.open)
        x = number_of(0);
    if (t->dtype == TRAMA_I64)
        ((int64_t *)t->data)[i] = x.real ? (int64_t)x.r : x.i;
    else
        element_set(t->dtype, t->data, i, x.r);
}

/* ---- Reading ---- */

static trama_status refuse(text *why, trama_status status, const char *reason)
{
    text_add(why, "%s", reason);
    return status;
}

/* The elements of a typed field: wider ones lose their upper bytes, as small integers and 16-bit floats stand in 32. */
typedef struct typed_field {
    const void *at;
    size_t n, width;
} typed_field;

static typed_field field_of(const Onnx__TensorProto *p)
{
    const typed_field fields[] = {{p->float_data, p->n_float_data, sizeof(float)},
                                  {p->int32_data, p->n_int32_data, sizeof(int32_t)},
                                  {p->int64_data, p->n_int64_data, sizeof(int64_t)},
                                  {p->double_data, p->n_double_data, sizeof(double)},
                                  {p->uint64_data, p->n_uint64_data, sizeof(uint64_t)}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].n)
            return fields[i];
    return (typed_field){.width = 1};
}

static trama_status copy_field(const Onnx__TensorProto *p, host_tensor *t, text *why)
{
    typed_field f = field_of(p);
    size_t size = trama_dtype_size(t->dtype), bytes = (size_t)t->count * size;
    if (size >= f.width && f.n * f.width == bytes) {
        if (bytes)
            memcpy(t->data, f.at, bytes);
        return TRAMA_OK;
    }
    if (size >= f.width || f.n != (size_t)t->count) {
        text_add(why, "its field has %zu numbers for %lld elements", f.n, (long long)t->count);
        return TRAMA_E_ARGUMENT;
    }
    for (size_t i = 0; i < f.n; i++)
        memcpy((char *)t->data + i * size, (const char *)f.at + i * f.width, size);
    return TRAMA_OK;
}

/* Takes the bytes, which are most of a model, out of the message. */
static trama_status take_raw(Onnx__TensorProto *p, host_tensor *t, text *why)
{
    size_t bytes = (size_t)t->count * trama_dtype_size(t->dtype);
    if (p->raw_data.len != bytes) {
        text_add(why, "its raw_data has %zu bytes instead of %zu", p->raw_data.len, bytes);
        return TRAMA_E_ARGUMENT;
    }
    if (bytes) {
        free(t->data);
        t->data = p->raw_data.data;
        p->raw_data = (ProtobufCBinaryData){0, NULL};
    }
    return TRAMA_OK;
}

/* A number of external data; -1 for a wrong one. */
static int64_t external_number(const char *value)
{
    char *end;
    errno = 0;
    long long n = value && *value >= '0' && *value <= '9' ? strtoll(value, &end, 10) : -1;
    return n < 0 || errno || *end ? -1 : n;
}

static trama_status copy_external(const Onnx__TensorProto *p, const trama_onnx_source *source, host_tensor *t,
                                  text *why)
{
    const char *location = NULL, *reason = "";
    int64_t bytes = t->count * (int64_t)trama_dtype_size(t->dtype), offset = 0, length = bytes;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
        if (key && !strcmp(key, "location"))
            location = value;
        else if (key && !strcmp(key, "offset"))
            offset = external_number(value);
        else if (key && !strcmp(key, "length"))
            length = external_number(value);
    }
    if (!location || !*location || offset < 0 || length != bytes)
        return refuse(why, TRAMA_E_ARGUMENT, "its external data has no location, a wrong offset or another length");
    if (!source || !source->read)
        return refuse(why, TRAMA_E_UNSUPPORTED, "it has external data, and nothing reads that here");
    trama_status status = source->read(source->data, location, offset, bytes, t->data, &reason);
    if (status)
        text_add(why, "external data '%s': %s", location, reason);
    return status;
}

static trama_status proto_shape(const Onnx__TensorProto *p, trama_dtype dtype, trama_shape *shape, text *why)
{
    if (p->n_dims > TRAMA_MAX_NDIM) {
        text_add(why, "it has %zu dims, and %d are the most", p->n_dims, TRAMA_MAX_NDIM);
        return TRAMA_E_UNSUPPORTED;
    }
    *shape = trama_shape_of((int)p->n_dims, p->dims);
    return shape_check(*shape, dtype, false, why) ? TRAMA_OK : TRAMA_E_ARGUMENT;
}

/* Whether the message itself has the bytes of the elements, so that no small file asks for much memory. */
static bool has_bytes(const Onnx__TensorProto *p, trama_shape shape)
{
    typed_field f = field_of(p);
    return p->data_location || (uint64_t)trama_shape_count(shape) <= (p->has_raw_data ? p->raw_data.len : f.n);
}

host_tensor *host_of_proto(Onnx__TensorProto *proto, const trama_onnx_source *source, trama_status *status, text *why)
{
    trama_dtype dtype;
    trama_shape shape;
    const char *name;
    host_tensor *t = NULL;
    *status = host_dtype(proto->data_type, &dtype, &name);
    if (*status)
        text_add(why, "elements %s are not supported", name);
    else if (proto->segment)
        *status = refuse(why, TRAMA_E_UNSUPPORTED, "segments are not supported");
    else
        *status = proto_shape(proto, dtype, &shape, why);
    if (!*status && !has_bytes(proto, shape))
        *status = refuse(why, TRAMA_E_ARGUMENT, "it has fewer elements than its dims say");
    if (!*status && !(t = host_create(dtype, shape)))
        *status = refuse(why, TRAMA_E_MEMORY, "there is no memory for it");
    if (!*status)
        *status = proto->data_location  ? copy_external(proto, source, t, why)
                  : proto->has_raw_data ? take_raw(proto, t, why)
                                        : copy_field(proto, t, why);
    if (!*status)
        return t;
    host_free(t);
    return NULL;
}

enum { TENSOR_LEVELS = 8 };

host_tensor *host_of_bytes(const void *bytes, size_t n, trama_status *status, text *why)
{
    Onnx__TensorProto *proto = NULL;
    if (proto_nests(&onnx__tensor_proto__descriptor, bytes, n, TENSOR_LEVELS))
        proto = onnx__tensor_proto__unpack(NULL, n, bytes);
    if (!proto) {
        *status = refuse(why, TRAMA_E_ARGUMENT, "these bytes are no tensor");
        return NULL;
    }
    host_tensor *t = host_of_proto(proto, NULL, status, why);
    onnx__tensor_proto__free_unpacked(proto, NULL);
    return t;
}
