/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of safetensors where cJSON was not found: every call fails, so that programs link everywhere. */
#include "safetensors.h"

static trama_status refuse(const char *path)
{
    return trama_fail(NOWHERE, TRAMA_E_UNSUPPORTED,
                      "%s: this Trama was built without cJSON; install libcjson-dev, and build it again", path);
}

trama_status safetensors_open(trama_checkpoint *c)
{
    return refuse(c->path);
}

trama_status safetensors_open_unfinished(trama_checkpoint *c)
{
    return refuse(c->path);
}
