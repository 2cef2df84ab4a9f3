/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host that a kernel takes for one call. */
#include "scratch.h"

#include <assert.h>
#include <stdlib.h>

static _Thread_local size_t refused;

void *scratch_take(scratch *s, int i, size_t bytes)
{
    if (s->refused)
        return NULL;
    if (!s->at[i]) {
        s->at[i] = malloc(bytes ? bytes : 1);
        s->bytes[i] = bytes;
    }
    assert(bytes <= s->bytes[i] && "all products of a call have one size");
    if (!s->at[i])
        s->refused = bytes ? bytes : 1;
    return s->at[i];
}

void scratch_free(scratch *s)
{
    for (int i = 0; i < 3; i++)
        free(s->at[i]);
    if (s->refused)
        refused = s->refused;
}

size_t scratch_refused(void)
{
    const size_t bytes = refused;
    refused = 0;
    return bytes;
}
