/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that use MPI themselves: communicators with their own type. trama.h does not include this header, so that
 * programs without MPI need no mpi.h; it is installed where Trama was built with MPI. */
#ifndef TRAMA_MPI_H
#define TRAMA_MPI_H

#include <mpi.h>
#include <string.h>

#include "trama_context.h"

/* trama_start on a communicator in place of the configuration's. config may be NULL. */
static inline trama_status trama_start_mpi(const trama_config *config, MPI_Comm communicator, trama_context **context)
{
    trama_config with;
    memset(&with, 0, sizeof with);
    if (config)
        with = *config;
    with.communicator = &communicator;
    return trama_start(&with, context);
}

#endif
