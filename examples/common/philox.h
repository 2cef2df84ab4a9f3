/* SPDX-License-Identifier: Apache-2.0 */
/* The generator behind trama_uniform, for the host: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef EXAMPLES_PHILOX_H
#define EXAMPLES_PHILOX_H

#include <stdint.h>

/* Word i mod 4 of the block with counter (low(i/4), high(i/4), stream, step) and key (low seed, high seed). */
uint32_t philox_word(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i);

#endif
