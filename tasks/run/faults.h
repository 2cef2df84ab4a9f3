/* SPDX-License-Identifier: Apache-2.0 */
/* The first kernel of an executable that failed on this rank. It does not know what the others know of it. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdatomic.h>

#include "context.h"
#include "trama_op.h"

typedef struct faults {
    const trama_context *context; /* whose log is told */
    atomic_bool claimed, told;    /* told: message stands, and is not changed any more */
    char message[900];
} faults;

/* Fits work.failed, the argument being the faults: from any thread. The first one is kept, and logged. */
void faults_note(void *arg, trama_where where, const trama_op *op, trama_status status, const char *message);

/* E_KERNEL with the message, if there is one. */
trama_status faults_status(const faults *f);

#endif
