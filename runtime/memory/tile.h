/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing shards: the buffer, the cut, the handles. pool.c keeps them. */
#ifndef TILE_H
#define TILE_H

#include "buffer.h"
#include "state.h"

/* The key of a shard: shards with equal keys are interchangeable. Zero it before filling: it is hashed as bytes. */
typedef struct shard_key {
    int64_t extent[TRAMA_MAX_NDIM];
    int place, dtype, ndim, cut_dim, cut_parts;
    int shared; /* 1: in memory that the other ranks of the node can read, if there is room */
} shard_key;
shard_key shard_key_of(int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim, int cut_parts);

/* Makes s and memory, and registers the handles. On an error both are empty. */
trama_status tile_make(trama_context *c, const shard_key *key, shard *s, buffer *memory);
/* Nothing may be in flight on it. */
void tile_unmake(shard *s, buffer *memory);

#endif
