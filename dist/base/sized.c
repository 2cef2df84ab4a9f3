/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that begin with their size: checks, and copies of the fields that both sides know. */
#include "sized.h"

#include <string.h>

enum { MOST_SIZE = 1 << 16 /* limit for all structs and versions: a larger size was not initialized */ };

/* The bytes of the program's struct: its size, or for size 0 those of the first version. */
static trama_status size_of(trama_where where, const char *call, const sized *form, const void *given, size_t *size)
{
    memcpy(size, given, sizeof *size);
    if (*size == 0)
        *size = form->first;
    if (*size < form->first || *size > MOST_SIZE)
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "%s: the size of a %s is %zu; set it to sizeof(%s), or to 0 for the fields of version 0.2",
                          call, form->type, *size, form->type);
    return TRAMA_OK;
}

static bool is_zero(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i])
            return false;
    return true;
}

trama_status sized_read(trama_where where, const char *call, const sized *form, void *own, const void *given)
{
    size_t size = 0;
    memset(own, 0, form->known);
    trama_status status = size_of(where, call, form, given, &size);
    if (status)
        return status;
    if (size > form->known && !is_zero((const char *)given + form->known, size - form->known))
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "%s: the program sets fields of %s that this library, version %s, does not have; it was "
                          "compiled with a later one",
                          call, form->type, trama_version());
    memcpy(own, given, size < form->known ? size : form->known);
    memcpy(own, &form->known, sizeof form->known);
    return TRAMA_OK;
}

trama_status sized_write(trama_where where, const char *call, const sized *form, const void *own, void *given)
{
    size_t size = 0;
    trama_status status = size_of(where, call, form, given, &size);
    if (status)
        return status;
    const size_t both = size < form->known ? size : form->known, skipped = sizeof size;
    memcpy((char *)given + skipped, (const char *)own + skipped, both - skipped);
    memset((char *)given + both, 0, size - both);
    return TRAMA_OK;
}
