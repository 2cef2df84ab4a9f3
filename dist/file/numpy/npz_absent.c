/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of NumPy where zlib was not found: every call fails, so that programs link everywhere. */
#include "npz.h"

#include "checkpoint.h"

static trama_status refuse(const char *path)
{
    return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                      "%s: this Trama was built without zlib; install zlib1g-dev, and build it again", path);
}

trama_status npz_read(const char *path, npy_header *h, char **content)
{
    return refuse(path);
}

static trama_status refuse_new(const trama_checkpoint *c)
{
    return refuse(c->path);
}

static trama_status refuse_old(trama_checkpoint *c)
{
    return refuse(c->path);
}

const checkpoint_format npz_format = {false, refuse_new, refuse_old, refuse_old, refuse_new};
