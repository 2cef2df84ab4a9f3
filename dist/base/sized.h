/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the public headers that begin with `size_t size` (trama_base.h, "Structs that may grow"): copied between a
 * program and a library whose headers may have different numbers of fields. */
#ifndef SIZED_H
#define SIZED_H

#include "base.h"

typedef struct sized {
    const char *type;
    size_t first, known; /* bytes that the first version had, and that this one has */
} sized;
#define SIZED(type, last_of_first)                                                                                     \
    (&(sized){#type, offsetof(type, last_of_first) + sizeof(((type *)NULL)->last_of_first), sizeof(type)})

/* own [known bytes] becomes what the program gave: fields that its struct has not are 0. E_ARGUMENT for a size that no
 * version has, and where the program sets fields that this library does not know; own is then zeros. */
trama_status sized_read(trama_where where, const char *call, const sized *form, void *own, const void *given);

/* The reverse: the program's struct gets the fields of own that it has; those that only it knows become 0. */
trama_status sized_write(trama_where where, const char *call, const sized *form, const void *own, void *given);

#endif
