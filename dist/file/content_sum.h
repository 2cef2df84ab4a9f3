/* SPDX-License-Identifier: Apache-2.0 */
/* The check sum of a tensor's content: a sum over its words, each mixed with its place. Parts of a tensor may be summed
 * in any order by any rank, and added up, so the sum knows no layout. Any change of one word changes it; other changes
 * escape it once in 2^64. It is not cryptographic. */
#ifndef CONTENT_SUM_H
#define CONTENT_SUM_H

#include "box.h"

/* The sum of `bytes` bytes, the first of which is byte `at` of the content. Words have `word` bytes, 1, 2, 4, 8 or 16;
 * at and bytes are multiples of it. */
uint64_t content_sum(const void *data, int64_t at, int64_t bytes, size_t word);

/* The sum of a box of a tensor; data [b->n] row-major without gaps. */
uint64_t content_sum_box(trama_shape shape, size_t word, const box *b, const void *data);

#endif
