/* SPDX-License-Identifier: Apache-2.0 */
/* A block of a product of packed matrices, for kernels that make their operands on the way: convolutions. */
#ifndef CODELETS_BLOCK_H
#define CODELETS_BLOCK_H

#include <stdint.h>

/* A block of c has BLOCK_ROWS rows and 1 to BLOCK_PARTS parts of BLOCK_BYTES bytes. */
enum { BLOCK_ROWS = 8, BLOCK_PARTS = 3, BLOCK_BYTES = 64 };

/* c [BLOCK_ROWS, columns] += a' b for a [k, BLOCK_ROWS] and b [k, columns], where the columns are so many parts; ldb
 * and ldc elements lie from row to row. Products are added in the order of k, each with one rounding where the CPU has
 * fused multiply-adds. */
typedef void block_add(int parts, int64_t k, const void *a, const void *b, int64_t ldb, void *c, int64_t ldc);

/* The functions for this CPU. */
block_add *block_add_f32(void), *block_add_f64(void);

#endif
