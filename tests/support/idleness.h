/* SPDX-License-Identifier: Apache-2.0 */
/* Idleness, told by the processor time that this process takes, which other load on the machine does not change. */
#ifndef IDLENESS_H
#define IDLENESS_H

#include <stdbool.h>

/* Waits until the process takes less than 5% of a core for 0.3 s, for a minute at most; returns whether it did. A
 * thread that spins is found, unless 20 others want its core. The benchmark (rows idle1 and idle2) has how soon it
 * rests. */
bool comes_to_rest(void);

#endif
