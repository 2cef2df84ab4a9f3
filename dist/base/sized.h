/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the public headers that begin with `size_t size` (trama_base.h, "Structs that may grow"): copies between a
 * program and a library whose headers may have different numbers of fields. */
#ifndef SIZED_H
#define SIZED_H

#include "base.h"

typedef struct sized {
    const char *type;
    size_t first, known; /* bytes of the first version, and of this one */
} sized;
#define SIZED(type, last_of_first)                                                                                     \
    (&(sized){#type, offsetof(type, last_of_first) + sizeof(((type *)NULL)->last_of_first), sizeof(type)})

/* Copies the program's struct to own [known bytes]; fields that it does not have become 0. E_ARGUMENT for a size that
 * no version has, and for fields that the program sets and this library does not know; own is then zeroed. */
trama_status sized_read(trama_where where, const char *call, const sized *form, void *own, const void *given);

/* The reverse: copies to the program's struct the fields that it has; fields that only the program knows become 0. */
trama_status sized_write(trama_where where, const char *call, const sized *form, const void *own, void *given);

#endif
