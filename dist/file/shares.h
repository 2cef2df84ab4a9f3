/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of ranks in an unfinished checkpoint: behind its end each rank notes that its bytes are on the disk, and
 * its part of the check sums. So the ranks' writers need no messages. */
#ifndef SHARES_H
#define SHARES_H

#include "checkpoint.h"

/* Makes room for the content and for the shares of `ranks` ranks behind it; c->bytes is where they begin. E_SYSTEM
 * where the disk has no room. */
trama_status shares_begin(const trama_checkpoint *c, int ranks);

/* Notes a rank's share: sums [tensors], or that it failed. False where that cannot be written. */
bool share_write(const trama_checkpoint *c, int rank, bool failed, const uint64_t *sums);

/* Waits for all shares, adds the sums to those of the tensors, and removes the shares. Fails where a rank failed, and
 * where the file is gone. */
trama_status shares_end(trama_checkpoint *c, int ranks);

#endif
