/* SPDX-License-Identifier: Apache-2.0 */
/* Inside helpers of every folder: reporting an error, growing arrays, building text. */
#ifndef BASE_H
#define BASE_H

#include <stdarg.h>
#include <stdlib.h>

#include "trama_base.h"

/* Sets the thread's message to "file:line: text" (without the place where file is NULL) and returns status. */
trama_status trama_fail(trama_where where, trama_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define NOWHERE trama_where_of(NULL, 0)

/* Ends the process where no call can answer an error: `tell` hears the reason before, or stderr where there is none.
 * runtime/README.md lists the callers. */
typedef void fatal_tell(void *data, const char *reason);
void fatal_to(fatal_tell *tell, void *data);
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory whose size the user decides: NULL where the system has no more, for the caller to answer E_MEMORY. */
void *trama_try_alloc(size_t bytes);

/* Memory that is never NULL. Where the system has none left, it comes out of a reserve of 4 MiB, which is for the call
 * that is under way to end in order: memory_is_short is then true until memory_status tells that call's caller. Loops
 * over ops ask it, to end before the reserve does. Where that is spent, too, the process ends with a message: sizes that
 * users decide are for trama_try_alloc. */
void *trama_alloc(size_t bytes);                    /* zeroed */
void *trama_resize(void *memory, size_t bytes);     /* new bytes are not set */
char *trama_text_copy(const char *text);            /* NULL stays NULL */

bool memory_is_short(void); /* for this thread */
/* E_MEMORY, which names the call, once for each time that memory was short; else OK. */
trama_status memory_status(trama_where where, const char *call);

/* The reserve has so many bytes or more from now on, for meshes of many processes; false where they cannot be had. */
bool memory_expect(size_t bytes);

/* A growing array: struct { T *at; int n, room; }. ARRAY_PUSH returns the address of the new, zeroed element;
 * where memory is short and the array cannot grow, that of its last one, zeroed. */
#define ARRAY(T)                                                                                                       \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        int n, room;                                                                                                   \
    }
#define ARRAY_PUSH(a)                                                                                                  \
    ((a)->at = trama_array_room((a)->at, &(a)->n, &(a)->room, sizeof *(a)->at), &(a)->at[(a)->n++])
#define ARRAY_FREE(a) (free((a)->at), (a)->at = NULL, (a)->n = (a)->room = 0)
void *trama_array_room(void *at, int *n, int *room, size_t size);

/* -1, 0 or 1 by the first of n pairs whose two keys differ, for qsort. */
static inline int compare_keys(size_t n, const int (*keys)[2])
{
    for (size_t i = 0; i < n; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}
#define COMPARE_KEYS(keys) compare_keys(sizeof(keys) / sizeof *(keys), keys)

/* A growing text. A zeroed one is empty and valid; text_take gives the string to the caller, who frees it. */
typedef struct text {
    char *at;
    size_t n, room;
} text;
void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *text_take(text *t);

/* The same for the text that a public call answers: E_MEMORY, and NULL, where memory was short. */
char *text_result(text *t, const char *call);
trama_status text_give(text *t, const char *call, char **out);

/* Element `at` of an array, as a number; and from a number that its type holds, where halves round. */
double element_of(trama_dtype dtype, const void *data, int64_t at);
void element_set(trama_dtype dtype, void *data, int64_t at, double x);

/* Adds "[64,any,3]". */
void shape_text(text *out, trama_shape shape);

/* The most bytes of a tensor: sums of several, and terms in f64, can still be counted in 64 bits. */
#define MOST_BYTES (INT64_C(1) << 60)

/* count *= factor, both >= 0; false, and count as it was, where that is above `most`. */
bool count_times(int64_t *count, int64_t factor, int64_t most);

/* Whether a tensor can have the shape: 0 to TRAMA_MAX_NDIM dims, no negative extent but TRAMA_ANY where dims may be
 * fed, and no more than MOST_BYTES, extents of 0 and TRAMA_ANY counted as 1, so that parts of the product can be
 * counted too. If it cannot, adds the reason. */
bool shape_check(trama_shape shape, trama_dtype dtype, bool fed, text *why);

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
