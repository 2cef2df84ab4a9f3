/* SPDX-License-Identifier: Apache-2.0 */
/* Counts messages from StarPU-MPI to MPI: the functions through which it sends and receives stand before MPI's
 * own, count and call them (MPI's profiling interface). Envelopes have a tag of their own and are counted apart; the
 * messages by which ranks agree (comm_gather) carry no tensor and are not counted. */
#ifndef WIRE_H
#define WIRE_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "comm.h"

#if TRAMA_HAVE_MPI
#include <starpu_mpi.h>
#endif

typedef struct wire_count {
    int64_t messages_sent, bytes_sent, messages_received, bytes_received, envelopes_sent;
} wire_count;

#if TRAMA_HAVE_MPI

static _Atomic int64_t wire_messages_sent, wire_bytes_sent, wire_messages_received, wire_bytes_received, wire_envelopes;

/* Collective, where a rank has waited for all of its own: StarPU-MPI receives what others send it before it is asked
 * to, so nobody goes on until all have counted. */
static inline wire_count wire_now(void)
{
    wire_count now = {wire_messages_sent, wire_bytes_sent, wire_messages_received, wire_bytes_received, wire_envelopes};
    MPI_Barrier(MPI_COMM_WORLD);
    return now;
}

static inline int64_t wire_size(int count, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    return (int64_t)count * size;
}

static inline bool wire_is_self(int rank, MPI_Comm on)
{
    int own = -1;
    PMPI_Comm_rank(on, &own);
    return rank == own;
}

static inline void wire_sends(int count, MPI_Datatype type, int to, int tag, MPI_Comm on)
{
    if (wire_is_self(to, on) || tag == GATHER_TAG)
        return;
    if (tag == starpu_mpi_get_communication_tag()) {
        wire_envelopes++;
        return;
    }
    wire_messages_sent++;
    wire_bytes_sent += wire_size(count, type);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm on)
{
    wire_sends(count, type, to, tag, on);
    return PMPI_Send(data, count, type, to, tag, on);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm on, MPI_Request *request)
{
    wire_sends(count, type, to, tag, on);
    return PMPI_Isend(data, count, type, to, tag, on, request);
}

int MPI_Issend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm on, MPI_Request *request)
{
    wire_sends(count, type, to, tag, on);
    return PMPI_Issend(data, count, type, to, tag, on, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm on, MPI_Request *request)
{
    if (tag != starpu_mpi_get_communication_tag() && tag != GATHER_TAG && !wire_is_self(from, on)) {
        wire_messages_received++;
        wire_bytes_received += wire_size(count, type);
    }
    return PMPI_Irecv(data, count, type, from, tag, on, request);
}

#else

static inline wire_count wire_now(void)
{
    return (wire_count){0};
}

#endif
#endif
