/* SPDX-License-Identifier: Apache-2.0 */
/* Feeders: batches of rows of files, which may be larger than memory, feed inputs, and a thread reads ahead. Other
 * libraries call this a data loader.
 *
 *     trama_feeder *d;
 *     trama_feeder_create(run, "train", &(trama_feeder_options){.batch = 128, .shuffle = true, .seed = 1}, &d);
 *     trama_feeder_add(d, x, "images.npy", NULL);
 *     trama_feeder_add(d, y, "labels.npy", NULL);
 *     trama_load(run, "runs/a", NULL, NULL);
 *     for (int step = 0; step < 1000; step++) {
 *         trama_feeder_next(d, NULL);
 *         trama_run(run, train);
 *     }
 *     trama_feeder_destroy(&d);
 *
 * A row is an index of the first dim. Columns, one for an input, have equally many rows, and row i of all belongs
 * together. Each rank reads the boxes of its inputs only; a box that several processes of a rank hold is read once. The
 * rank holds as many batches of these boxes as are read ahead, and nothing that grows with the number of rows: the
 * order of shuffled rows is a permutation that is computed row by row.
 *
 * The place in the data is a part of checkpoints. trama_save writes it under the feeder's name, and trama_load goes on
 * there. So a run that was ended and goes on takes the rows that a run without an end would take, on any mesh and any
 * number of ranks. */
#ifndef TRAMA_FEEDER_H
#define TRAMA_FEEDER_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* It feeds inputs of an executable. */
typedef struct trama_feeder trama_feeder;

/* The options of trama_feeder_create. */
typedef struct trama_feeder_options {
    size_t size;    /* trama_base.h, "Structs that may grow" */
    int64_t batch;  /* rows of a batch, over all ranks; at least 1 */
    uint64_t seed;  /* of the shuffling */
    bool shuffle;   /* each epoch takes all rows in another order; else in that of the file */
    bool drop_last; /* rows at the end of an epoch that fill no batch are left out; else the last batch is short */
    int prefetch;   /* batches that are read ahead; 0: 2 */
} trama_feeder_options;

/* A feeder without columns, at row 0 of epoch 0. The name, of 1 to 200 bytes, is that of its place in checkpoints;
 * two feeders of an executable have different ones. Collective, as all calls here but those without a status.
 * E_ARGUMENT for wrong options. */
#define trama_feeder_create(executable, name, /* options, feeder */...)                                                \
    trama_feeder_create_at(TRAMA_HERE, executable, name, __VA_ARGS__)
trama_status trama_feeder_create_at(trama_where where, trama_executable *executable, const char *name,
                                    const trama_feeder_options *options, trama_feeder **feeder);

/* The options of trama_feeder_add. A zeroed struct takes the only tensor of a file that has a header. */
typedef struct trama_feeder_column {
    size_t size;        /* trama_base.h, "Structs that may grow" */
    const char *tensor; /* its name, where the file has several */
    const char *raw;    /* the file has no header, but elements of this type, such as "u8"; NULL: it has */
    int64_t offset;     /* bytes before the first row of a raw file */
} trama_feeder_column;

/* Adds a column: the rows of a file for an input. The file is an array of NumPy (.npy), a file of safetensors, or else
 * an HDF5 file whose datasets are contiguous (h5repack -l CONTI makes them so), as its name tells; or raw. Its shape is
 * that of the input but for the number of rows; raw elements are row-major and little-endian. Floats are converted to
 * the input's type. The first dim of the input is TRAMA_ANY, or the batch where no batch is short. All ranks reach the
 * file. options may be NULL.
 *
 * Errors, equal on all ranks: E_ARGUMENT for a value that is no input or has a column, for no rows, and where the
 * file's format is wrong; E_SHAPE and E_DTYPE, with both sides; E_SYSTEM, naming the file, where it cannot be read;
 * E_UNSUPPORTED for an HDF5 file without HDF5. */
#define trama_feeder_add(feeder, input, path, /* options */...)                                                        \
    trama_feeder_add_at(TRAMA_HERE, feeder, input, path, __VA_ARGS__)
trama_status trama_feeder_add_at(trama_where where, trama_feeder *feeder, const trama_value *input, const char *path,
                                 const trama_feeder_column *options);

/* Feeds the next batch to the inputs of all columns, as trama_feed_local does; *rows is its number of rows, where rows
 * is not NULL. Waits where it is not read yet. E_SYSTEM, on all ranks, where one could not read it, as after the file
 * has become shorter; the next call then tries again. E_ORDER without columns, and after the executable was destroyed.
 */
#define trama_feeder_next(feeder, /* rows */...) trama_feeder_next_at(TRAMA_HERE, feeder, __VA_ARGS__)
trama_status trama_feeder_next_at(trama_where where, trama_feeder *feeder, int64_t *rows);

/* Rows of an epoch; 0 of NULL, and without columns. */
int64_t trama_feeder_rows(const trama_feeder *feeder);

/* The place of the next batch: epoch 0, 1, ..., and its first row in the order of the epoch. 0 of NULL. */
int64_t trama_feeder_epoch(const trama_feeder *feeder);
int64_t trama_feeder_row(const trama_feeder *feeder); /* as above */

/* The next batch begins there. E_ARGUMENT for a negative epoch, and for a row that is negative or beyond the last. */
#define trama_feeder_seek(feeder, epoch, row) trama_feeder_seek_at(TRAMA_HERE, feeder, epoch, row)
trama_status trama_feeder_seek_at(trama_where where, trama_feeder *feeder, int64_t epoch, int64_t row);

/* Ends reading, frees it and nulls *feeder; NULL is allowed. It may be called before or after
 * trama_executable_destroy, which ends reading, too. Not collective. */
void trama_feeder_destroy(trama_feeder **feeder);

TRAMA_API_END
#endif
