/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of a row-major tensor in a file: their contiguous runs, slabs of bounded size, reads and writes. It knows no
 * format. */
#ifndef BOX_FILE_H
#define BOX_FILE_H

#include "box.h"

/* The contiguous runs of a box: n runs of so many bytes. */
typedef struct box_runs {
    int64_t n, bytes;
    trama_shape shape;
    box of;
    size_t element;
    int outer; /* dims before this one are walked */
} box_runs;
box_runs box_runs_of(trama_shape shape, size_t element, const box *b);
int64_t box_run_at(const box_runs *runs, int64_t i); /* the first byte of run i in the tensor */

/* Cuts a box into slabs of at most `most` bytes, or of one element, which are row-major parts of it. */
typedef struct box_slabs {
    box of;
    int dim; /* dims before it are cut into single indices, and it into pieces of `thick` indices */
    int64_t thick, n;
} box_slabs;
box_slabs box_slabs_of(const box *b, size_t element, int64_t most);
box box_slab(const box_slabs *s, int64_t i);

/* Read or write all bytes at a place of the file. False with errno; the end of the file is EIO. */
bool file_read_at(int descriptor, void *data, int64_t bytes, int64_t at);
bool file_write_at(int descriptor, const void *data, int64_t bytes, int64_t at);

/* Read or write a box of the tensor whose first byte is byte `at` of the file; data [b->n] row-major without gaps. */
bool box_read(int descriptor, int64_t at, trama_shape shape, size_t element, const box *b, void *data);
bool box_write(int descriptor, int64_t at, trama_shape shape, size_t element, const box *b, const void *data);

#endif
