/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of checkpoints and datasets of users where HDF5 was not found: every call fails, so that programs link
 * everywhere. */
#include "checkpoint.h"
#include "dataset_file.h"

static trama_status refuse(const char *path)
{
    return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                      "%s: this Trama was built without HDF5; install libhdf5-dev, and build it again", path);
}

trama_status hdf5_write_frame(const trama_checkpoint *c)
{
    return refuse(c->path);
}

trama_status hdf5_read_frame(trama_checkpoint *c)
{
    return refuse(c->path);
}

trama_status dataset_open(const char *path, const char *name, bool writes, trama_dtype dtype, dataset_file **dataset)
{
    *dataset = NULL;
    return refuse(path);
}

void dataset_close(dataset_file **dataset)
{
}

trama_shape dataset_shape(const dataset_file *d)
{
    return (trama_shape){.ndim = 0};
}

trama_status dataset_make(const char *path, const char *name, trama_dtype dtype, trama_shape shape)
{
    return refuse(path);
}

trama_status dataset_read(const dataset_file *d, const box *b, void *data)
{
    return refuse("");
}

trama_status dataset_write(const dataset_file *d, const box *b, const void *data)
{
    return refuse("");
}
