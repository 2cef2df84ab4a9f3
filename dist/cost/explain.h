/* SPDX-License-Identifier: Apache-2.0 */
/* Completed layouts in words: why each change of layout is there, what it takes, and what else could be done. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "complete.h"

/* A line for each change of layout that takes bytes, then their sum and its distance from the fewest. */
void explain_changes(text *out, const trama_program *program, const layouts *l, int64_t nominal);

#endif
