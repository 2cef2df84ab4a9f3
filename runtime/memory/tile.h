/* SPDX-License-Identifier: Apache-2.0 */
/* Making and unmaking shards: the buffer, the cut, the handles. The pool is elsewhere. */
#ifndef TILE_H
#define TILE_H

#include "buffer.h"
#include "state.h"

/* What tells one kind of shard from another; equal keys are interchangeable. Zero it before filling: it is hashed as
 * bytes. */
typedef struct shard_key {
    int64_t extent[TRAMA_MAX_NDIM];
    int place, dtype, ndim, cut_dim, cut_parts;
} shard_key;

/* Fills s and memory; the handles are registered. On an error both hold nothing. */
trama_status tile_make(trama_context *c, const shard_key *key, shard *s, buffer *memory);
/* Nothing is under way on it. */
void tile_unmake(shard *s, buffer *memory);

#endif
