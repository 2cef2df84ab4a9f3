/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes arrays of NumPy: files .npy of the versions 1 to 3, little-endian and in the order of C. */
#ifndef EXAMPLES_NPY_H
#define EXAMPLES_NPY_H

#include "trama.h"

typedef struct npy {
    trama_dtype dtype; /* bool is u8, and bf16 is written as V2, as ml_dtypes does */
    trama_shape shape;
    void *data; /* [shape] row-major */
} npy;

/* Ends the program, naming the file, unless it is a whole array that Trama can hold. */
npy npy_read(const char *path);
void npy_free(npy *array);

/* Ends the program, naming the file, where it cannot be written. */
void npy_write(const char *path, const npy *array);

#endif
