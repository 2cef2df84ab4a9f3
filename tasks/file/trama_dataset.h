/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets in HDF5 files of the user: inputs are fed from them, and values go into them, box by box, so that no rank
 * has the whole tensor.
 *
 *     for (int64_t row = 0; row < 6400; row += 64) {
 *         trama_feed_dataset(run, x, "train.h5", "/images", (const int64_t[]){row, 0}, TRAMA_SHAPE(64, 784));
 *         trama_run(run, train);
 *     }
 *     trama_write_dataset(run, y, "results.h5", "/y", NULL);
 *
 * Datasets may be contiguous, chunked or compressed, and have any byte order. All ranks reach the files under one file
 * system; the serial HDF5 is enough. */
#ifndef TRAMA_DATASET_H
#define TRAMA_DATASET_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* Feeds an input, as trama_feed does, with the part of a dataset that begins at offset [ndim of the input], in
 * elements; offset NULL: all 0. Each rank reads its own boxes, by a buffer of 4 MiB. Floats become the input's float
 * type, and complex numbers its complex type; other elements have the input's type. Collective.
 *
 * Errors, equal on all ranks, which feed nothing: E_SHAPE where input or dataset have other dims, or the part leaves
 * the dataset; E_ARGUMENT where the dataset is not there, or a name is NULL; E_DTYPE; E_SYSTEM, naming file and
 * dataset, where it cannot be opened; E_UNSUPPORTED without HDF5. Where it cannot be read any more after it was opened,
 * the error is E_SYSTEM, and the input has no defined content: feed it again. */
#define trama_feed_dataset(executable, input, path, dataset, /* offset, shape */...)                                   \
    trama_feed_dataset_at(TRAMA_HERE, executable, input, path, dataset, __VA_ARGS__)
trama_status trama_feed_dataset_at(trama_where where, trama_executable *executable, const trama_value *input,
                                   const char *path, const char *dataset, const int64_t *offset, trama_shape shape);

/* Writes a value that trama_read can read into the part of a dataset that begins at offset [ndim]; NULL: all 0. File,
 * groups and dataset are made, with the value's shape and element type, where they are not there. Ranks write one after
 * the other, each a part of the rows, by a buffer of 4 MiB; the value is resharded to rows before. Collective.
 *
 * A process that dies while it writes may leave a file that HDF5 cannot open: trama_save is for states that must
 * survive. Errors as of trama_feed_dataset; after E_SYSTEM a part may be written. */
#define trama_write_dataset(executable, value, path, dataset, /* offset */...)                                         \
    trama_write_dataset_at(TRAMA_HERE, executable, value, path, dataset, __VA_ARGS__)
trama_status trama_write_dataset_at(trama_where where, trama_executable *executable, const trama_value *value,
                                    const char *path, const char *dataset, const int64_t *offset);

TRAMA_API_END
#endif
