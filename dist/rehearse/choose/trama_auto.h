/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts without annotations: a mesh, and the layout of every tensor, chosen by the predicted time of a run. */
#ifndef TRAMA_AUTO_H
#define TRAMA_AUTO_H

#include "trama_rehearsal.h"

TRAMA_API_BEGIN

/* A zeroed struct takes every default. */
typedef struct trama_auto_options {
    size_t size;          /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    int processes;        /* of the mesh; 0: one for each rank of the machine */
    int64_t any;          /* extent fed for TRAMA_ANY; 0: 1024 */
    int64_t nominal;      /* extent that stands for TRAMA_ANY in completion; 0: that of any */
    int64_t memory_bytes; /* of buffers that a rank may have, as in trama_rehearsal_report.memory; 0: no limit */
} trama_auto_options;

/* Chooses the layouts of a program. It tries, and rehearses a run of the target on the machine for each
 * (trama_rehearse):
 *
 *   data parallel   a mesh dp=N; dim 0 of the inputs is split over all processes. A program without inputs that have
 *                   dims starts with the states that are not trained
 *   split weights   meshes mp=N and dp=A,mp=B of N = A B processes; inputs are split along dp, weights along mp by
 *                   columns and by rows in turn
 *   split pairs     the same, where some weights have no partner: only weights whose columns meet the rows of another
 *                   one, and that one; before split weights
 *   split states    a mesh dp=N; the inputs as for data parallel, and dim 0 of trained states of two dims and more.
 *                   A process keeps and updates its part of a state, and completion says how ops read the others
 *   searched        the start of data parallel on meshes dp=N and dp=A,mp=B, then trama_search_layouts; where a rank
 *                   would have more than memory_bytes, trama_search_layouts_in_memory within less
 *
 * Of a program with annotations it compares the layouts as annotated with the searched ones on the same meshes;
 * options.processes is then the most ranks that take part. A way for which the program has no layouts is left out.
 *
 * A later way replaces an earlier one where its run is at least 5 % shorter, a searched one 10 %; and one that is not
 * searched where its run is no longer and a process receives fewer bytes. A way by which a rank would have more than
 * memory_bytes is not chosen. The program keeps the start and the search of the winner, and the extent for TRAMA_ANY:
 * trama_compile and other calls complete with them, whatever nominal extent they name. The mesh is the program's own.
 * Annotations that the user adds afterwards, on that mesh, count more than a start. *table, if not NULL, gets a line
 * for each way: mesh, bytes that a process receives, their bound, time, memory of the rank with the most;
 * trama_text_free frees it. Call it with equal arguments on all ranks, before trama_compile. It takes the time of as
 * many rehearsals, each of which plans all ranks, and with memory_bytes of up to three more for a searched way.
 *
 * Errors leave the program and *table as they were: E_ARGUMENT for NULL, options out of range, more processes than
 * trama_order has places for, and a program with a limit of memory, which memory_bytes replaces;
 * E_UNSUPPORTED in eager mode; E_LAYOUT, E_ORDER and others of trama_rehearse; E_MEMORY, also where no way has memory
 * enough. */
trama_status trama_auto_shard(trama_target *target, const trama_cluster *cluster, const trama_auto_options *options,
                              char **table);

TRAMA_API_END
#endif
