/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that take longer: MPI_Test, through which StarPU-MPI learns of every detached request that it has (envelopes
 * that it receives; data that it sends and receives; Trama's messages to oneself as well) and Trama of the ends of its
 * collective calls, reports a request as complete
 * only some time after its completion was first seen. It holds no thread up meanwhile.
 * A program that calls any of these functions has delay.c's MPI_Test in front of MPI's (MPI's profiling interface); the
 * library knows nothing of it. Without MPI all are there and do nothing. */
#ifndef DELAY_H
#define DELAY_H

#include <stdbool.h>
#include <stdint.h>

/* From now on; 0, as at the start: no request is held back. From any thread. */
void delay_set(int64_t us);

/* Whether requests that the calling thread asks about are spared: its collective calls of Trama go on. False at the
 * start of a thread. */
void delay_spare_thread(bool spare);

/* Requests that MPI_Test has reported as complete since the start of the process, held back or not. */
typedef struct delay_counts {
    int64_t envelopes; /* those of StarPU-MPI that say which message comes: one goes ahead of each that is received */
    int64_t data;      /* messages sent, messages received, collective calls of MPI */
} delay_counts;

delay_counts delay_count(void);

#endif
