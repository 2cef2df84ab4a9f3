/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for all folders, not public: errors, growing arrays, building text. */
#ifndef BASE_H
#define BASE_H

#include <stdarg.h>
#include <stdlib.h>

#include "trama_base.h"

/* Sets the thread's message to "file:line: text" (without the place where file is NULL) and returns status. */
trama_status trama_fail(trama_where where, trama_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define NOWHERE trama_where_of(NULL, 0)

/* Ends the process where no call can return an error. `tell` gets the reason first, or stderr without `tell`.
 * runtime/README.md lists the callers. */
typedef void fatal_tell(void *data, const char *reason);
void fatal_to(fatal_tell *tell, void *data);
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory of a size that the user decides. NULL where the system has no more; the caller returns E_MEMORY. */
void *trama_try_alloc(size_t bytes);

/* Memory that is never NULL. If the system has none left, it comes out of a reserve of 4 MiB, so that the running call
 * ends in order: memory_is_short is then true until memory_status reports to that call's caller. Loops over ops check
 * it, to end before the reserve is spent. When the reserve is spent, the process ends with a message; so sizes that
 * users decide go to trama_try_alloc. */
void *trama_alloc(size_t bytes);                /* zeroed */
void *trama_resize(void *memory, size_t bytes); /* new bytes are not set */
char *trama_text_copy(const char *text);        /* NULL stays NULL */

bool memory_is_short(void); /* for this thread */
/* E_MEMORY with the name of the call, once for each time that memory was short; else OK. */
trama_status memory_status(trama_where where, const char *call);

/* Enlarges the reserve to at least that many bytes, for meshes of many processes; false where the system has no
 * room. */
bool memory_expect(size_t bytes);

/* A growing array: struct { T *at; int n, room; }. ARRAY_PUSH returns the address of the new, zeroed element. If the
 * array cannot grow for lack of memory, it zeroes the last element and returns its address. */
#define ARRAY(T)                                                                                                       \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        int n, room;                                                                                                   \
    }
#define ARRAY_PUSH(a) ((a)->at = trama_array_room((a)->at, &(a)->n, &(a)->room, sizeof *(a)->at), &(a)->at[(a)->n++])
#define ARRAY_TRIM(a)                                                                                                  \
    ((a)->at = trama_array_trim((a)->at, (a)->n, &(a)->room, sizeof *(a)->at)) /* gives spare room back */
#define ARRAY_FREE(a) (free((a)->at), (a)->at = NULL, (a)->n = (a)->room = 0)
void *trama_array_room(void *at, int *n, int *room, size_t size);
void *trama_array_trim(void *at, int n, int *room, size_t size);

/* For qsort: compares by the first of n pairs with different keys; -1, 0 or 1. */
static inline int compare_keys(size_t n, const int (*keys)[2])
{
    for (size_t i = 0; i < n; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}
#define COMPARE_KEYS(keys) compare_keys(sizeof(keys) / sizeof *(keys), keys)

/* A growing text. A zeroed text is empty and valid; text_take gives the string to the caller, who frees it. */
typedef struct text {
    char *at;
    size_t n, room;
} text;
void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *text_take(text *t);

/* The same for a text that a public call returns: NULL or E_MEMORY where memory was short. */
char *text_result(text *t, const char *call);
trama_status text_give(text *t, const char *call, char **out);

/* The type of the parts of a complex number, and their number, 2; of a real type itself, and 1. */
trama_dtype dtype_part(trama_dtype dtype);
int dtype_parts(trama_dtype dtype);

/* Reads element `at` of an array as a double, and writes x there. The type must hold x; 16-bit types round it. */
double element_of(trama_dtype dtype, const void *data, int64_t at);
int64_t element_integer(trama_dtype dtype, const void *data, int64_t at); /* of an integer or bool; u64 by its bits */
void element_set(trama_dtype dtype, void *data, int64_t at, double x);

/* Adds "[64,any,3]". */
void shape_text(text *out, trama_shape shape);

/* The limit of a tensor's bytes: sums over several tensors, and terms in f64, still fit 64 bits. */
#define MOST_BYTES (INT64_C(1) << 60)

/* count *= factor, both >= 0. False, with count unchanged, where the product is above `most`. */
bool count_times(int64_t *count, int64_t factor, int64_t most);

/* Whether a tensor can have the shape: 0 to TRAMA_MAX_NDIM dims, no negative extent except TRAMA_ANY with `fed`, at
 * most MOST_BYTES. Extents of 0 and TRAMA_ANY count as 1, so that partial products stay countable. If not, adds the
 * reason. */
bool shape_check(trama_shape shape, trama_dtype dtype, bool fed, text *why);

/* The greatest common divisor of numbers that are at least 0; of 0 and n it is n. */
static inline int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
