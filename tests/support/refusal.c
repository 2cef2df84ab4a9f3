/* SPDX-License-Identifier: Apache-2.0 */
/* The linker puts these functions in place of the C library's (--wrap). Only the thread that asked for it is refused.
 */
#include "refusal.h"

#include <stdbool.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t bytes);

static _Thread_local size_t asked_bytes;
static _Thread_local long asked, refused, first = -1, last = -1; /* requests in [first, last) are refused */

static bool may_have(size_t bytes)
{
    if (bytes == RESERVE && last - first == 1)
        return true;
    const bool no = asked >= first && asked < last;
    asked++;
    asked_bytes += bytes;
    refused += no;
    return !no;
}

void *__wrap_malloc(size_t bytes)
{
    return may_have(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return may_have(n * size) ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return may_have(bytes) ? __real_realloc(memory, bytes) : NULL;
}

void refuse(long at, long n)
{
    asked = refused = 0;
    asked_bytes = 0;
    first = at;
    last = at + n;
}

long refusal_asked(void)
{
    return asked;
}

size_t refusal_bytes(void)
{
    return asked_bytes;
}

long refusal_refused(void)
{
    return refused;
}
