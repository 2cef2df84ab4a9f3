/* SPDX-License-Identifier: Apache-2.0 */
/* A random permutation of 0 to n - 1 that is computed element by element and takes no memory. */
#ifndef CODELETS_PERMUTATION_H
#define CODELETS_PERMUTATION_H

#include <stdint.h>

/* The element at place i, 0 <= i < n, of permutation number `epoch` of a seed. */
int64_t permutation_at(uint64_t seed, uint64_t epoch, int64_t n, int64_t i);

#endif
