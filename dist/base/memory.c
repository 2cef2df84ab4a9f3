/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation with a reserve: a failed request takes memory from the reserve, so that the running call ends in order and
 * returns E_MEMORY. */
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "base.h"

enum {
    RESERVE = 4 << 20, /* initial bytes, of address space only: nothing is written there */
    LARGE = 128        /* bytes of an element of which a short array often has one only */
};

static _Atomic(void *) reserve;
static _Atomic size_t reserved = RESERVE; /* bytes of the reserve while it exists */
static _Thread_local bool is_short;       /* a request of this thread has failed since memory_status */

static void keep_reserve(void)
{
    void *none = NULL, *kept;
    if (is_short || atomic_load_explicit(&reserve, memory_order_relaxed) || !(kept = malloc(reserved)))
        return;
    if (!atomic_compare_exchange_strong(&reserve, &none, kept))
        free(kept);
}

/* Gives the reserve back to the system; false if it is spent already. */
static bool spend_reserve(void)
{
    void *kept = atomic_exchange(&reserve, NULL);
    is_short = true;
    free(kept);
    return kept != NULL;
}

__attribute__((destructor)) static void leave_reserve(void)
{
    free(atomic_exchange(&reserve, NULL));
}

bool memory_expect(size_t bytes)
{
    if (bytes <= reserved)
        return true;
    void *kept = malloc(bytes);
    if (kept) {
        reserved = bytes;
        free(atomic_exchange(&reserve, kept));
    }
    return kept;
}

bool memory_is_short(void)
{
    return is_short;
}

trama_status memory_status(trama_where where, const char *call)
{
    if (!is_short)
        return TRAMA_OK;
    is_short = false;
    keep_reserve();
    return trama_fail(where, TRAMA_E_MEMORY, "%s: the system has no more memory", call);
}

void *trama_try_alloc(size_t bytes)
{
    return calloc(1, bytes ? bytes : 1);
}

static _Noreturn void give_up(size_t bytes)
{
    fatal("the system has no %zu bytes of memory left", bytes);
}

void *trama_alloc(size_t bytes)
{
    void *memory;
    keep_reserve();
    while (!(memory = trama_try_alloc(bytes)))
        if (!spend_reserve())
            give_up(bytes);
    return memory;
}

/* NULL where even the reserve does not suffice; memory is then unchanged. */
static void *try_resize(void *memory, size_t bytes)
{
    void *resized;
    keep_reserve();
    while (!(resized = realloc(memory, bytes ? bytes : 1)))
        if (!spend_reserve())
            return NULL;
    return resized;
}

void *trama_resize(void *memory, size_t bytes)
{
    void *resized = try_resize(memory, bytes);
    if (!resized)
        give_up(bytes);
    return resized;
}

char *trama_text_copy(const char *source)
{
    if (!source)
        return NULL;
    size_t bytes = strlen(source) + 1;
    return memcpy(trama_alloc(bytes), source, bytes);
}

void *trama_array_trim(void *at, int n, int *room, size_t size)
{
    if (n == 0 || n == *room)
        return at;
    void *trimmed = realloc(at, (size_t)n * size);
    is_short |= !trimmed;
    *room = trimmed ? n : *room;
    return trimmed ? trimmed : at;
}

void *trama_array_room(void *at, int *n, int *room, size_t size)
{
    if (*n == *room) {
        const int more = *n ? *n <= INT_MAX / 2 ? 2 * *n : INT_MAX : size < LARGE ? 8 : 1;
        void *grown = more > *n ? try_resize(at, (size_t)more * size) : NULL;
        if (grown) {
            at = grown;
            *room = more;
        } else if (*n) {
            is_short = true;
            --*n;
        } else {
            give_up((size_t)more * size);
        }
    }
    memset((char *)at + (size_t)*n * size, 0, size);
    return at;
}
