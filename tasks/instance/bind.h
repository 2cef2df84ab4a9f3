/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of an instance. */
#ifndef BIND_H
#define BIND_H

#include "instance.h"

/* Makes the buffers that the plan makes, in instance->shards, and gives workers their scratch memory.
 * E_MEMORY: some are made. */
trama_status bind_begin(instance *in);

/* Gives back those that are there. */
void bind_end(instance *in);

#endif
