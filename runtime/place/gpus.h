/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this rank: which it takes, where they hang, how much of their memory, which cores drive them. CUDA is
 * asked by others. */
#ifndef GPUS_H
#define GPUS_H

#include "state.h"

/* Keeps what the process sees where the configuration wants GPUs. E_SYSTEM where it wants nothing else and there is
 * none. */
trama_status gpus_wanted(trama_context *c, const context_gpus *gpus);

/* Into this rank's card. */
void gpus_fill(const trama_context *c, node_card *card);

/* Fills in c->gpu.own, but for their PUs, and c->gpu.bytes. */
void gpus_take(trama_context *c, const node_card *cards);

/* A core for each thread that drives a GPU, taken from the workers' where they have enough of them and the user did not
 * say how many they are. */
trama_status gpus_claim_cores(trama_context *c, const place_claim *claim);
bool gpus_have_cores(const trama_context *c);

/* Of the GPUs those that the program's StarPU has workers for. E_SYSTEM where there is none and nothing else is wanted.
 */
trama_status gpus_adopt(trama_context *c);

/* Adds to a message how much of each GPU's memory is free and holds tensors, and what the largest task wants. True if
 * some GPU has not enough for it: others have taken of its memory since the start. StarPU 1.4 would wait for ever: it
 * counts what it failed to get as taken, which is why its own figures serve nothing here. */
bool gpus_starve(trama_context *c, text *words);

/* What their workers need, while StarPU runs and is awake. */
trama_status gpus_start(trama_context *c);
void gpus_stop(trama_context *c);

/* StarPU's worker of a device, number i of them, the last where there are fewer; -1 where there is none. */
int gpus_worker(int device, int i);

/* Whether GPUs may exchange through NCCL, and so have a second worker each for that, whose stream kernels do not
 * share. */
bool gpus_exchange(const trama_context *c);

#endif
