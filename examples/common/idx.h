/* SPDX-License-Identifier: Apache-2.0 */
/* Reads IDX files, the format of MNIST: unsigned bytes in up to 3 dims, gzipped or plain. Knows no data set. */
#ifndef EXAMPLES_IDX_H
#define EXAMPLES_IDX_H

#include <stdint.h>

enum { IDX_MAX_NDIM = 3 };

typedef struct idx {
    int ndim;
    int64_t dim[IDX_MAX_NDIM];
    unsigned char *bytes; /* [dim...] row-major */
} idx;

/* Ends the program, naming the file, unless it is a whole IDX file of unsigned bytes with ndim dims. */
idx idx_read(const char *path, int ndim);
void idx_free(idx *file);

#endif
