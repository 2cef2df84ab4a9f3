/* SPDX-License-Identifier: Apache-2.0 */
/* One clock for all ranks. StarPU takes for simultaneous when each rank left a barrier, which ranks that share cores do
 * milliseconds apart; Trama measures how far their clocks are apart, 0 on one machine. */
#ifndef TRACE_CLOCK_H
#define TRACE_CLOCK_H

#include "trace_folder.h"

/* Copies the events of the marked ranks into a folder, their barriers moved to one instant, for StarPU's tool to read,
 * and names the copies in events [n_ranks]. False, and nothing done, where the folder does not say how the clocks go.
 */
bool trace_clock_align(const trace_folder *folder, const bool *with, const char *into, char **events);

#endif
