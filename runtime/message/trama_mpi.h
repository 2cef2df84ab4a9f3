/* SPDX-License-Identifier: Apache-2.0 */
/* trama_start for programs that use MPI: the communicator is an MPI_Comm. trama.h does not include this header, so
 * programs without MPI need no mpi.h. The header is installed where Trama was built with MPI. */
#ifndef TRAMA_MPI_H
#define TRAMA_MPI_H

#include <mpi.h>
#include <string.h>

#include "trama_context.h"

/* trama_start with this communicator in place of config->communicator. config may be NULL. */
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
