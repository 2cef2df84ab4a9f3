/* SPDX-License-Identifier: Apache-2.0 */
/* The first failed kernel of an executable on this rank. It knows nothing of other ranks. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdatomic.h>

#include "context.h"
#include "trama_op.h"

typedef struct faults {
    const trama_context *context; /* its log gets the message */
    atomic_bool claimed, told;    /* told: the message is complete and final */
    trama_status status;          /* E_KERNEL; E_MEMORY of a built-in op whose kernel got no memory */
    char message[900];
} faults;

/* A function for work.failed, arg a faults *; any thread may call it. It keeps and logs the first failure. */
void faults_note(void *arg, trama_where where, const trama_op *op, trama_status status, const char *message);

/* The status, with the message, where a kernel has failed, else TRAMA_OK. */
trama_status faults_status(const faults *f);

#endif
