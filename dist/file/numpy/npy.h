/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an array of NumPy, for readers that take its content box by box. */
#ifndef NPY_H
#define NPY_H

#include <stdio.h>

#include "base.h"
#include "trama_npy.h"

typedef struct npy_header {
    trama_dtype dtype;
    trama_shape shape;
    int64_t bytes; /* before the content */
} npy_header;

/* Reads the header from the beginning of f; path is for messages. */
trama_status npy_read_header(const char *path, FILE *f, npy_header *h);

/* Whether the content is as long as its shape needs: `bytes` are those of the header and the content. */
trama_status npy_check_length(const char *path, const npy_header *h, int64_t bytes);

/* Adds the header of a file of version 1. */
void npy_add_header(text *t, trama_dtype dtype, trama_shape shape);

#endif
