/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a feeder: its columns, and the batches that a thread reads ahead. */
#ifndef FEEDER_H
#define FEEDER_H

#include <pthread.h>

#include "box_file.h"
#include "checkpoint.h"
#include "executable.h"
#include "trama_feeder.h"

/* A tensor in a file. */
typedef struct feeder_source {
    char *path;
    trama_checkpoint *file; /* NULL: raw */
    int descriptor;
    int64_t at; /* byte of its first element */
    trama_dtype dtype;
    trama_shape shape; /* [rows, ...] */
} feeder_source;

/* This rank's boxes of an input for batches of so many rows. */
typedef struct batch_boxes {
    int64_t rows; /* 0: there are no such batches */
    int n;
    box *boxes; /* [n] */
    int *same;  /* [n] the first box that is equal */
} batch_boxes;

enum { FULL, SHORT, N_LENGTHS };

typedef struct feeder_column {
    const trama_value *input;
    feeder_source source;
    batch_boxes boxes[N_LENGTHS]; /* set when reading begins */
} feeder_column;

/* A batch that is read or being read. */
typedef struct read_batch {
    int64_t epoch, row, rows; /* its place, and its rows */
    int64_t *row_of;          /* [batch] the row of the file; -1: not known yet */
    char **data;              /* [columns][most boxes]; NULL for boxes that are equal to another */
    trama_status status;
    char *message;
} read_batch;

/* The thread's work. It reads batch number `read` into batches[read mod ahead] while that is below taken + ahead. */
typedef struct reading_ahead {
    bool running, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t read, taken;
    int64_t epoch, row; /* of the batch to read next */
    int ahead, most_boxes;
    read_batch *batches; /* [ahead] */
    char *unconverted;   /* rows as a file has them */
} reading_ahead;

struct trama_feeder {
    trama_executable *e; /* NULL: destroyed */
    trama_feeder *next;  /* in the executable's list */
    char *name;
    trama_feeder_options options;
    ARRAY(feeder_column) columns;
    int64_t rows, epoch, row; /* of the next batch */
    bool begun;
    reading_ahead ahead;
};

/* The rows of the batch at a row, and the place of the batch after it. */
int64_t feeder_batch_rows(const trama_feeder *d, int64_t row);
void feeder_advance(const trama_feeder *d, int64_t *epoch, int64_t *row);

/* The places of all feeders, into a checkpoint and back. check: whether the files are those of the checkpoint. */
void feeders_list(const trama_executable *e, trama_checkpoint *c);
trama_status feeders_check(const trama_executable *e, const trama_checkpoint *c);
void feeders_restore(const trama_executable *e, const trama_checkpoint *c);

/* feeder_source.c */
trama_status source_open(const char *path, const trama_feeder_column *o, const trama_value *input, feeder_source *s);
void source_close(feeder_source *s);

/* This rank's boxes for a batch of so many rows. */
const batch_boxes *column_boxes(const feeder_column *c, int64_t rows);

/* feeder_ahead.c: begins at the feeder's place. wait: the next batch, once it is read. */
trama_status ahead_begin(trama_where where, trama_feeder *d);
const read_batch *ahead_wait(trama_feeder *d);
void ahead_take(trama_feeder *d); /* its memory may be used again */
void ahead_end(trama_feeder *d);

#endif
