/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled images in the files of MNIST, and the order in which they are taken. Knows neither mesh nor network. */
#ifndef EXAMPLES_DATASET_H
#define EXAMPLES_DATASET_H

#include "idx.h"
#include "trama.h"

typedef struct dataset {
    idx images, labels; /* [samples, rows, columns], [samples] */
} dataset;

/* The folder given or, where that is NULL, the first of the usual ones that has Fashion-MNIST. Ends the program where
 * there is none. */
const char *dataset_folder(const char *given);

/* Reads one half of the data set: name "train" or "t10k", labels below classes. Ends the program, naming the file, on
 * anything wrong. */
dataset dataset_read(const char *folder, const char *name, int classes);
void dataset_free(dataset *data);

int64_t dataset_samples(const dataset *data);
int64_t dataset_pixels(const dataset *data); /* of one image */

/* Copies the samples at index[first] to index[first + n - 1] to the same rows of images [, pixels], as pixel / 255 in
 * dtype f32 or f64, and of labels []. */
void dataset_gather(const dataset *data, const int64_t *index, int64_t first, int64_t n, trama_dtype dtype,
                    void *images, int64_t *labels);

/* The name of a file of dataset_write: FOLDER/WORD.npy. */
const char *dataset_file(const char *folder, const char *word, char *path, size_t room);

/* Writes images.npy [samples, pixels], as dataset_gather has them, and labels.npy into the folder, which it makes,
 * unless they are there. Ends the program, naming the file, where it cannot. */
void dataset_write(const dataset *data, const char *folder, trama_dtype dtype);

/* Which samples come next, batch after batch. */
typedef enum sampler_order {
    SAMPLER_IN_ORDER, /* file order; the last batch of an epoch may be short */
    SAMPLER_REPEATED, /* sample i of all that are taken is i modulo samples; no batch is short */
    /* As in order, but in epoch e = 0, 1, ... after Fisher and Yates' shuffle of 0 .. samples-1: for i = samples-1 down
     * to 1, elements i and j = floor(word (i + 1) / 2^32) change places, word being the one that trama_uniform's
     * generator has for element samples-1-i of stream 4294967295 at step e under the seed. */
    SAMPLER_SHUFFLED
} sampler_order;

typedef struct sampler {
    int64_t samples, batch;
    sampler_order order;
    uint64_t seed;
    int64_t next, epoch, *index; /* next in the epoch; index [samples] */
} sampler;

sampler sampler_begin(int64_t samples, int64_t batch, sampler_order order, uint64_t seed);
int64_t sampler_next(sampler *s, int64_t *index); /* index [batch] of the next batch; returns its size */
int64_t sampler_batches(const sampler *s);        /* of an epoch */
void sampler_end(sampler *s);

#endif
