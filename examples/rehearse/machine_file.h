/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsals in programs: the machine from a file, the report on stdout. It knows no option. */
#ifndef EXAMPLES_MACHINE_FILE_H
#define EXAMPLES_MACHINE_FILE_H

#include "trama.h"

/* The machine of a file in the form of trama_rehearsal.h, with cores and gpus as of node_topology.h; "builtin": as many
 * nodes as ranks, of one rank and 16 cores each, at 25 GB/s and 2 us in one switch. Ends the program where that cannot
 * be read. The caller destroys it. */
trama_cluster *machine_read(const char *name, int ranks);

/* Chooses mesh and layouts for the target on that machine (trama_auto_shard), and prints the table where `speaks`. Ends
 * the program where that fails. */
void choose_layouts(trama_target *target, const trama_cluster *cluster, trama_auto_options options, bool speaks);

/* Rehearses 12 runs of the target on that machine, and prints the report. Ends the program where that fails. */
void rehearse_and_print(const trama_target *target, const char *machine, trama_rehearsal_options options);

#endif
