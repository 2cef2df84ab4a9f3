/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of checkpoints where HDF5 was not found: every call fails, so that programs link everywhere. */
#include "checkpoint.h"

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
