/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets in HDF5 files of users, read and written box by box. It knows neither ranks nor layouts. */
#ifndef DATASET_FILE_H
#define DATASET_FILE_H

#include "box.h"

typedef struct dataset_file dataset_file;

/* Opens a dataset, such as "/train/images". Elements are converted to and from `dtype` by HDF5: floats to floats,
 * complex numbers to complex numbers; integers and bool have the very type, in any byte order. Errors name file and
 * dataset: E_SYSTEM, E_DTYPE, E_SHAPE for more dims than a tensor has, E_UNSUPPORTED without HDF5. */
trama_status dataset_open(const char *path, const char *name, bool writes, trama_dtype dtype, dataset_file **dataset);
void dataset_close(dataset_file **dataset);
trama_shape dataset_shape(const dataset_file *d);

/* Makes file, groups and dataset, where they are not there. */
trama_status dataset_make(const char *path, const char *name, trama_dtype dtype, trama_shape shape);

/* A box of the dataset, row-major without gaps. */
trama_status dataset_read(const dataset_file *d, const box *b, void *data);
trama_status dataset_write(const dataset_file *d, const box *b, const void *data);

#endif
