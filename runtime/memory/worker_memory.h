/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of CPU workers: a task may use that of its worker while it runs. */
#ifndef WORKER_MEMORY_H
#define WORKER_MEMORY_H

#include "context.h"

/* Gives each worker of a CPU place at least that many bytes, 64-byte aligned, on the place's NUMA node. Where they have
 * fewer, it waits for the work in flight. E_MEMORY, after which they have what they had. */
trama_status worker_memory_provide(trama_context *c, int place, int64_t bytes);

/* [StarPU's workers] The memories, which change only in worker_memory_provide; the table lasts as long as the context.
 */
char *const *worker_memory(const trama_context *c);

void worker_memory_stop(trama_context *c); /* with nothing in flight */

#endif
