/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and messages, element types, shapes: used by every other header. */
#ifndef TRAMA_BASE_H
#define TRAMA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trama_half.h"

/* Begin and end of the declarations of a header: C functions, which the library exports. It exports no other
 * functions. */
#ifdef __cplusplus
#define TRAMA_API_BEGIN                                                                                                \
    _Pragma("GCC visibility push(default)") extern "C"                                                                 \
    {
#define TRAMA_API_END                                                                                                  \
    }                                                                                                                  \
    _Pragma("GCC visibility pop")
#else
#define TRAMA_API_BEGIN _Pragma("GCC visibility push(default)")
#define TRAMA_API_END _Pragma("GCC visibility pop") /* closes TRAMA_API_BEGIN */
#endif

TRAMA_API_BEGIN

enum {
    TRAMA_MAX_NDIM = 8, /* dims of a tensor */
    TRAMA_MAX_AXES = 8, /* axes of a mesh */
};

/* ---- Errors ---------------------------------------------------------------------------- */

/* Every status with its text. A call that fails leaves its outputs unchanged, unless its header says otherwise. */
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

/* The result of a call: TRAMA_OK, which is 0, or the kind of error. */
typedef enum trama_status {
#define TRAMA_STATUS_ENUM(name, text) name,
    TRAMA_STATUS_LIST(TRAMA_STATUS_ENUM)
#undef TRAMA_STATUS_ENUM
} trama_status;

/* The text of a status, without details. */
const char *trama_status_text(trama_status status);

/* The calling thread's last message: the user's file and line, the mistake and a remedy. "" before the first error.
 * Valid until the thread's next failing call. */
const char *trama_error(void);

/* Frees a text returned as char *text or char **text; the caller owns such texts. Nulls *text; NULL is allowed. */
void trama_text_free(char **text);

/* A place in the user's source, which the builder macros pass for messages. */
typedef struct trama_where {
    const char *file; /* borrowed */
    int line;         /* from 1 */
} trama_where;

/* Makes a place from file and line. */
static inline trama_where trama_where_of(const char *file, int line)
{
    trama_where where;
    where.file = file;
    where.line = line;
    return where;
}

/* The place of the line with this macro. */
#define TRAMA_HERE trama_where_of(__FILE__, __LINE__)

/* ---- Versions ------------------------------------------------------------------------------ */

/* The version of these headers. A program must be recompiled for another MAJOR, and while MAJOR is 0 for another MINOR.
 * The shared library's file name ends in these numbers: libtrama.so.0.2. */
#define TRAMA_VERSION_MAJOR 0
#define TRAMA_VERSION_MINOR 2 /* as above */
#define TRAMA_VERSION_PATCH 0 /* as above */

/* The version of the library in use, "major.minor.patch". */
const char *trama_version(void);

/* Structs that may grow begin with `size_t size`, the bytes of the program's struct. 0 stands for the fields that are
 * described without a version, so a zeroed struct needs no size:
 *
 *     trama_config two = {.workers = 2};
 *
 * A program that uses a field of a later version, which its comment names, sets size:
 *
 *     trama_config all = {.size = sizeof all, .workers = 2};
 *
 * A library older than the program's headers returns E_ARGUMENT where a field that it does not know is not 0. A newer
 * library reads fields that the program does not know as 0, and does not write them. Structs without a size never
 * change while the library's file name stays. */

/* ---- Element types ----------------------------------------------------------------------- */

/* A complex number: its real part, then its imaginary part. In C it is a complex type, with the arithmetic of C. In C++
 * it is a struct of the same layout, as std::complex. */
#ifdef __cplusplus
typedef struct trama_c64 {
    float re, im;
} trama_c64;
typedef struct trama_c128 {
    double re, im;
} trama_c128;
#else
typedef float _Complex trama_c64;   /* two f32 */
typedef double _Complex trama_c128; /* two f64 */
#endif

/* Every element type but the complex ones, as in TRAMA_DTYPE_LIST. */
#define TRAMA_REAL_DTYPE_LIST(X)                                                                                       \
    X(TRAMA_F32, "f32", float)                                                                                         \
    X(TRAMA_F64, "f64", double)                                                                                        \
    X(TRAMA_I32, "i32", int32_t)                                                                                       \
    X(TRAMA_I64, "i64", int64_t)                                                                                       \
    X(TRAMA_U8, "u8", uint8_t)                                                                                         \
    X(TRAMA_BF16, "bf16", trama_bf16)                                                                                  \
    X(TRAMA_F16, "f16", trama_f16)                                                                                     \
    X(TRAMA_BOOL, "bool", bool)                                                                                        \
    X(TRAMA_I8, "i8", int8_t)                                                                                          \
    X(TRAMA_I16, "i16", int16_t)                                                                                       \
    X(TRAMA_U16, "u16", uint16_t)                                                                                      \
    X(TRAMA_U32, "u32", uint32_t)                                                                                      \
    X(TRAMA_U64, "u64", uint64_t)

/* The complex ones. */
#define TRAMA_COMPLEX_DTYPE_LIST(X)                                                                                    \
    X(TRAMA_C64, "c64", trama_c64)                                                                                     \
    X(TRAMA_C128, "c128", trama_c128)

/* Every element type with its name and its C type. The 16-bit types (trama_half.h) are for storage: ops compute on them
 * in f32, sums of many terms in f64, and round once, to nearest even, when they store the result. A bool is 1 or 0 in
 * one byte; memory with other bytes is not valid. */
#define TRAMA_DTYPE_LIST(X)                                                                                            \
    TRAMA_REAL_DTYPE_LIST(X)                                                                                           \
    TRAMA_COMPLEX_DTYPE_LIST(X)

/* The type of a tensor's elements. */
typedef enum trama_dtype {
#define TRAMA_DTYPE_ENUM(name, text, type) name,
    TRAMA_DTYPE_LIST(TRAMA_DTYPE_ENUM)
#undef TRAMA_DTYPE_ENUM
        TRAMA_N_DTYPES /* number of types */
} trama_dtype;

size_t trama_dtype_size(trama_dtype dtype);      /* bytes of one element; 0 for an invalid dtype */
const char *trama_dtype_name(trama_dtype dtype); /* the name, as "f32"; "(unknown)" for an invalid dtype */
bool trama_dtype_is_float(trama_dtype dtype);    /* whether it is f32, f64, bf16 or f16; complex is none */
bool trama_dtype_is_integer(trama_dtype dtype);  /* whether it is a signed or an unsigned integer; bool is none */
/* The kinds of element types. */
typedef enum trama_dtype_kind {
    TRAMA_KIND_BOOL = 1,     /* bool */
    TRAMA_KIND_SIGNED = 2,   /* i8, i16, i32, i64 */
    TRAMA_KIND_UNSIGNED = 4, /* u8, u16, u32, u64 */
    TRAMA_KIND_FLOAT = 8,    /* f32, f64, bf16, f16 */
    TRAMA_KIND_COMPLEX = 16  /* c64, c128 */
} trama_dtype_kind;
trama_dtype_kind trama_dtype_kind_of(trama_dtype dtype); /* the kind; 0 for an invalid dtype */
/* Parses the name of an element type, as "f32"; the message of E_DTYPE lists the known names. */
trama_status trama_dtype_parse(const char *text, trama_dtype *dtype);

/* ---- Shapes -------------------------------------------------------------------------------- */

/* The extent of a dim that is known only when the tensor is fed. It never broadcasts. */
#define TRAMA_ANY (-1)

/* Global extents of a tensor, row-major; ndim 0 is a scalar. Extents may be 0. A tensor of more than 2^60 bytes,
 * extents of 0 counted as 1, is E_SHAPE. */
typedef struct trama_shape {
    int ndim;                    /* 0 to TRAMA_MAX_NDIM */
    int64_t dim[TRAMA_MAX_NDIM]; /* [ndim] extents */
} trama_shape;

/* Makes a shape from n extents, copied. n < 0, n > TRAMA_MAX_NDIM, and dim NULL with n > 0 give ndim -1, which every
 * call rejects. */
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

/* The shape of a scalar. */
#define TRAMA_SCALAR trama_shape_of(0, NULL)

bool trama_shape_equal(trama_shape a, trama_shape b); /* whether extents are equal; TRAMA_ANY equals only TRAMA_ANY */
/* Number of elements, 1 for a scalar; TRAMA_ANY where a dim is TRAMA_ANY, INT64_MAX on overflow, 0 for an invalid shape
 * (ndim outside of 0 to TRAMA_MAX_NDIM, a negative extent). */
int64_t trama_shape_count(trama_shape shape);

TRAMA_API_END
#endif
