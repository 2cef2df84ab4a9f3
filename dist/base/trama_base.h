/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and messages, element types, shapes: the words every other header uses. */
#ifndef TRAMA_BASE_H
#define TRAMA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trama_half.h"

/* Around the declarations of a header: functions of C, which the library exports. It exports no others. */
#ifdef __cplusplus
#define TRAMA_API_BEGIN                                                                                                \
    _Pragma("GCC visibility push(default)") extern "C"                                                                 \
    {
#define TRAMA_API_END                                                                                                  \
    }                                                                                                                  \
    _Pragma("GCC visibility pop")
#else
#define TRAMA_API_BEGIN _Pragma("GCC visibility push(default)")
#define TRAMA_API_END _Pragma("GCC visibility pop") /* behind them */
#endif

TRAMA_API_BEGIN

enum {
    TRAMA_MAX_NDIM = 8, /* dims of a tensor */
    TRAMA_MAX_AXES = 8, /* axes of a mesh */
};

/* ---- Errors ---------------------------------------------------------------------------- */

/* Every status with its text. Outputs of a call that fails are left untouched unless its header says otherwise. */
#define TRAMA_STATUS_LIST(X)                                                                                           \
    X(TRAMA_OK, "success")                                                                                             \
    X(TRAMA_E_ARGUMENT, "wrong argument")                                                                              \
    X(TRAMA_E_SHAPE, "shapes do not fit")                                                                              \
    X(TRAMA_E_DTYPE, "element types do not fit")                                                                       \
    X(TRAMA_E_LAYOUT, "layout or mesh does not fit")                                                                   \
    X(TRAMA_E_ORDER, "call out of order")                                                                              \
    X(TRAMA_E_NOT_KEPT, "value is not kept")                                                                           \
    X(TRAMA_E_UNSUPPORTED, "not supported")                                                                            \
    X(TRAMA_E_MEMORY, "out of memory")                                                                                 \
    X(TRAMA_E_SYSTEM, "system, MPI or StarPU error")                                                                   \
    X(TRAMA_E_KERNEL, "the kernel of an op failed")

/* What a call answers: TRAMA_OK, which is 0, or the kind of its error. */
typedef enum trama_status {
#define TRAMA_STATUS_ENUM(name, text) name,
    TRAMA_STATUS_LIST(TRAMA_STATUS_ENUM)
#undef TRAMA_STATUS_ENUM
} trama_status;

/* The text of a status, without details. */
const char *trama_status_text(trama_status status);

/* The calling thread's last message: where (the user's file and line), what was wrong, what would fix it.
 * "" before the first error. Valid until the thread's next failing call. */
const char *trama_error(void);

/* Texts that calls answer, char *text and char **text, are the caller's, who frees each with this. It nulls *text; NULL
 * is allowed. */
void trama_text_free(char **text);

/* A place in the user's source; the builder macros pass it so that messages can name it. */
typedef struct trama_where {
    const char *file; /* borrowed */
    int line;         /* from 1 */
} trama_where;

/* A place from its two parts. */
static inline trama_where trama_where_of(const char *file, int line)
{
    trama_where where;
    where.file = file;
    where.line = line;
    return where;
}

/* The place of this line. */
#define TRAMA_HERE trama_where_of(__FILE__, __LINE__)

/* ---- Versions ------------------------------------------------------------------------------ */

/* The version of these headers. Versions that differ in MINOR, while MAJOR is 0, or in MAJOR are compiled for anew: the
 * shared library's file name ends in the part that has to be equal, libtrama.so.0.2. */
#define TRAMA_VERSION_MAJOR 0
#define TRAMA_VERSION_MINOR 2 /* as above */
#define TRAMA_VERSION_PATCH 0 /* as above */

/* The version of the library that the program runs with, "major.minor.patch". */
const char *trama_version(void);

/* Structs that may grow begin with `size_t size`: bytes that the program's struct has. 0 stands for the fields that are
 * described without a version, so that a struct that begins as zeros needs no more:
 *
 *     trama_config two = {.workers = 2};
 *
 * A program that uses a field of a later version, which its comment names, sets size:
 *
 *     trama_config all = {.size = sizeof all, .workers = 2};
 *
 * A library that is older than the program's headers answers E_ARGUMENT where a field that it does not know is not 0; a
 * newer one takes fields that the program does not know for 0, and leaves them out where it fills in a struct. Structs
 * without a size never change while the library's file name stays. */

/* ---- Element types ----------------------------------------------------------------------- */

/* Every element type with its name and its type in C. Those of 16 bits (trama_half.h) only store: what is computed from
 * them is computed in f32, sums of many terms in f64, and rounded once, to nearest even, where it is stored. */
#define TRAMA_DTYPE_LIST(X)                                                                                            \
    X(TRAMA_F32, "f32", float)                                                                                         \
    X(TRAMA_F64, "f64", double)                                                                                        \
    X(TRAMA_I32, "i32", int32_t)                                                                                       \
    X(TRAMA_I64, "i64", int64_t)                                                                                       \
    X(TRAMA_U8, "u8", uint8_t)                                                                                         \
    X(TRAMA_BF16, "bf16", trama_bf16)                                                                                  \
    X(TRAMA_F16, "f16", trama_f16)

/* The type of a tensor's elements. */
typedef enum trama_dtype {
#define TRAMA_DTYPE_ENUM(name, text, type) name,
    TRAMA_DTYPE_LIST(TRAMA_DTYPE_ENUM)
#undef TRAMA_DTYPE_ENUM
        TRAMA_N_DTYPES /* how many there are */
} trama_dtype;

size_t trama_dtype_size(trama_dtype dtype);      /* bytes of one element; 0 for no element type */
const char *trama_dtype_name(trama_dtype dtype); /* "f32", ...; "(unknown)" for no element type */
bool trama_dtype_is_float(trama_dtype dtype);    /* f32, f64, bf16 and f16 */
/* Parses "f32", ...; E_DTYPE names the known ones. */
trama_status trama_dtype_parse(const char *text, trama_dtype *dtype);

/* ---- Shapes -------------------------------------------------------------------------------- */

/* A dim whose extent is known only when the tensor is fed. It never broadcasts. */
#define TRAMA_ANY (-1)

/* Global extents of a tensor, row-major; ndim 0 is a scalar. Extents may be 0. A tensor has at most 2^60 bytes, where
 * an extent of 0 counts as 1; E_SHAPE beyond. */
typedef struct trama_shape {
    int ndim;                    /* 0 to TRAMA_MAX_NDIM */
    int64_t dim[TRAMA_MAX_NDIM]; /* [ndim] extents */
} trama_shape;

/* Copies n extents; n < 0, n > TRAMA_MAX_NDIM, and NULL for dims that there are give ndim -1, which every call refuses.
 */
trama_shape trama_shape_of(int n, const int64_t *dim);

/* A shape from its extents:
 *
 *     trama_shape matrix = TRAMA_SHAPE(2, 3), scalar = TRAMA_SHAPE();
 */
#ifdef __cplusplus
extern "C++" template <typename... extents> inline trama_shape trama_shape_list(extents... extent)
{
    const int64_t dim[] = {0, static_cast<int64_t>(extent)...};
    return trama_shape_of(static_cast<int>(sizeof...(extent)), dim + 1);
}
#define TRAMA_SHAPE(...) trama_shape_list(__VA_ARGS__)
#else
#define TRAMA_SHAPE(...)                                                                                               \
    trama_shape_of((int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1, (int64_t[]){0, __VA_ARGS__} + 1)
#endif

/* The shape without dims. */
#define TRAMA_SCALAR trama_shape_of(0, NULL)

bool trama_shape_equal(trama_shape a, trama_shape b); /* TRAMA_ANY equals itself only */
/* Number of elements, 1 for a scalar; TRAMA_ANY where a dim is TRAMA_ANY, INT64_MAX where there are more than that, and
 * 0 for what is no shape (ndim outside of 0 to TRAMA_MAX_NDIM, a negative extent). */
int64_t trama_shape_count(trama_shape shape);

TRAMA_API_END
#endif
