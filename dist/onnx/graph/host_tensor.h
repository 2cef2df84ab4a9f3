/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a model whose content is known while it is loaded: initializers, constants, and shapes computed of them.
 */
#ifndef HOST_TENSOR_H
#define HOST_TENSOR_H

#include "base.h"
#include "onnx.pb-c.h"
#include "trama_onnx.h"

typedef struct host_tensor {
    trama_dtype dtype;
    trama_shape shape;
    int64_t count;
    void *data;    /* [count] row-major; owned */
    int64_t *open; /* [count] of an extent that is only known when fed its origin, else 0; NULL: all known. Owned */
} host_tensor;

/* One element of a host tensor. */
typedef struct number {
    bool real;    /* of a float dtype */
    int64_t open; /* its origin where it is only known when fed; else 0 */
    int64_t i;    /* where it is not real */
    double r;     /* always */
} number;

/* The origin of an open extent: dim d of a value of that id, times a number from 1 to 2^31 - 1; or computed of extents
 * otherwise. */
enum { OPEN_COMPUTED = -1 };
static inline int64_t open_extent(int id, int d)
{
    return 1 + (int64_t)id * TRAMA_MAX_NDIM + d;
}
static inline int64_t open_base(int64_t origin)
{
    return origin < 0 ? origin : origin & UINT32_MAX;
}
static inline int64_t open_times(int64_t origin)
{
    return origin < 0 ? 1 : (origin >> 32) + 1;
}
/* Of an open extent times by / per. */
static inline int64_t open_scaled(int64_t origin, int64_t by, int64_t per)
{
    int64_t times = open_times(origin);
    if (origin < 0 || by < 1 || per < 1 || !count_times(&times, by, INT64_MAX) || times % per ||
        times / per > INT32_MAX)
        return OPEN_COMPUTED;
    return open_base(origin) | (times / per - 1) << 32;
}

/* The element type that ONNX numbers so. E_UNSUPPORTED with the name of the type in *name where Trama has none. */
trama_status host_dtype(int32_t onnx, trama_dtype *dtype, const char **name);

/* Zeros; NULL where the system has no room. The shape is one that shape_check accepts. */
host_tensor *host_create(trama_dtype dtype, trama_shape shape);
void host_free(host_tensor *t); /* NULL is allowed */

/* A tensor out of its message, all encodings; the message loses its raw_data. NULL with a status and the reason in
 * *why. `source` gives external data. */
host_tensor *host_of_proto(Onnx__TensorProto *proto, const trama_onnx_source *source, trama_status *status, text *why);
/* The same out of the bytes of a serialized TensorProto. */
host_tensor *host_of_bytes(const void *bytes, size_t n, trama_status *status, text *why);

number host_get(const host_tensor *t, int64_t i);
void host_set(host_tensor *t, int64_t i, number x);
static inline number number_of(int64_t i)
{
    return (number){.i = i, .r = (double)i};
}

/* Whether the message of that kind nests messages at most `most` levels deep: protobuf-c unpacks by recursion. */
bool proto_nests(const ProtobufCMessageDescriptor *kind, const uint8_t *at, size_t n, int most);

#endif
