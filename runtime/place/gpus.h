/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this rank: their choice, their NUMA nodes, their memory for tensors, the cores of their threads. The
 * functions over CUDA are the caller's (context_gpus). */
#ifndef GPUS_H
#define GPUS_H

#include "state.h"

/* Lists the process's GPUs in c->seen where config.device is TRAMA_GPU or TRAMA_AUTO. E_SYSTEM where it is TRAMA_GPU
 * and there is none. */
trama_status gpus_wanted(trama_context *c, const context_gpus *gpus);

/* Writes the GPUs to this rank's card. */
void gpus_fill(const trama_context *c, node_card *card);

/* Opens this rank's GPUs, and sets c->gpu.own, without their PUs, and c->gpu.bytes. E_SYSTEM where a GPU does not
 * open. */
trama_status gpus_take(trama_context *c, const node_card *cards);

/* Gives each GPU's thread a core: a spare one, or a worker's where the user set no number of workers and some worker is
 * left. */
trama_status gpus_claim_cores(trama_context *c, const place_claim *claim);
bool gpus_have_cores(const trama_context *c);

/* Keeps the GPUs for which the program's StarPU has workers. E_SYSTEM where there is none and config.device is
 * TRAMA_GPU. */
trama_status gpus_adopt(trama_context *c);

/* Adds to a message the free memory and the tensors' memory of each GPU, and the need of the largest task. True if some
 * GPU has too little for it, since others have taken its memory after the start. StarPU 1.4 would wait for ever: it
 * counts memory that it failed to get as taken, so its own figures are not used. */
bool gpus_starve(trama_context *c, text *words);

/* Starts and stops the libraries of the GPUs' workers, while StarPU runs and is awake. */
trama_status gpus_start(trama_context *c);
void gpus_stop(trama_context *c);

/* Number i of StarPU's workers of a device, or the last where there are fewer; -1 where there is none. */
int gpus_worker(int device, int i);

/* Whether GPUs may exchange through NCCL. Each then has a second worker for collectives, with its own stream. */
bool gpus_exchange(const trama_context *c);

#endif
