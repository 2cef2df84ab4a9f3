/* SPDX-License-Identifier: Apache-2.0 */
/* A shard: one row-major buffer in the memory of a place and the StarPU handles of its tiles; the pool keeps both. It
 * knows neither its tensor nor its users. */
#ifndef SHARD_H
#define SHARD_H

#include <starpu.h>

#include "fence.h"

typedef struct shard {
    int place; /* in the machine table, one of this rank's */
    trama_dtype dtype;
    int ndim;
    int64_t extent[TRAMA_MAX_NDIM];
    int64_t stride[TRAMA_MAX_NDIM]; /* elements; row-major without gaps, except in wrapped memory and in views */
    int64_t count;                  /* elements, 1 for ndim 0 */
    size_t bytes;                   /* count * element size; the allocation may be larger */
    void *data;                     /* [extent...], 64-byte aligned, valid for one element even if count is 0 */

    bool part;                  /* its handle belongs to another shard or to the host */
    int cut_dim;                /* -1 where there is one tile */
    int n_tiles;                /* >= 1 */
    starpu_data_handle_t *tile; /* [n_tiles] */
    int64_t *offset;            /* [n_tiles] first index of a tile along cut_dim; 0 where cut_dim is -1 */
    int readers;                /* reading tasks and messages since the last write; the submitting code counts them */
    int64_t *length; /* [n_tiles] indices along cut_dim; extent[cut_dim] or 1 (ndim 0) where there is one tile */
} shard;

/* A shard with these extents. Its content is undefined: the bytes of its last user, which StarPU takes for initialised.
 * Tiles cut dim cut_dim into cut_parts balanced pieces: the first (extent mod parts) are one longer, such as 7 into 3:
 * 3, 2, 2. cut_parts is at most max(1, extent[cut_dim]); cut_parts <= 1 or cut_dim -1: one tile. Handles: a contiguous
 * tile is a vector [elements]; a tile of blocks at a distance ld is a matrix (nx = elements of a block, ny = blocks,
 * ld); a tile of 0 elements is a vector of 1 on the buffer's first bytes. All handles have sequential consistency. NULL
 * with trama_error() where memory is short. */
shard *shard_get(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim,
                 int cut_parts);

/* The same in memory that the other ranks of the node can read, as long as there is room. */
shard *shard_get_shared(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim,
                        int cut_parts);

/* Where data lie in this rank's memory that others can read, for shard_borrow there; -1: elsewhere. */
int64_t shard_shared_at(const trama_context *c, const void *data);

/* Locks the shard's host memory until it leaves the pool, so that GPUs reach it at full speed. For shards of GPUs at
 * which transfers begin or end. Locked memory takes physical memory even before it is written. */
void shard_pin(shard *s);

/* Gives the shard back to the pool, without waiting. Tasks and messages in flight on it go on; sequential consistency
 * orders its next user after them. NULL is allowed. */
void shard_put(trama_context *c, shard *s);

/* A shard of one tile in the memory of another, which outlives it: rows of runs as in shard_view, from element `first`
 * on; extents and strides (in elements) give the positions of its elements. Sequential consistency does not know that
 * the two share memory: order their uses by tasks that name both. Nothing may be in flight on it at shard_end. */
typedef struct shard_rows {
    int64_t first, run, rows, ld;
} shard_rows;
shard *shard_lend(trama_context *c, const shard *base, shard_rows rows, int ndim, const int64_t *extent,
                  const int64_t *stride);

/* A shard in the memory of another, which outlives it, from byte `at` on, with its own element type, extents and tiles,
 * as of shard_get. Sequential consistency does not know that shards share this memory, as of shard_lend. NULL with
 * trama_error() where a tile is too large. */
shard *shard_within(trama_context *c, const shard *base, int64_t at, trama_dtype dtype, int ndim, const int64_t *extent,
                    int cut_dim, int cut_parts);

/* A shard of one tile in the memory of another rank of the node, from shard_shared_at there on: contiguous elements in
 * row-major order, only to be read. loan.h orders its uses with those of the owner. NULL as of shard_within. */
shard *shard_borrow(trama_context *c, int place, int rank, int64_t at, trama_dtype dtype, int ndim,
                    const int64_t *extent);

/* A shard of row-major elements of a shard of one tile, from `first` on, with that tile's handle: StarPU takes a use of
 * one for a use of the other. */
shard *shard_part(const shard *base, int64_t first, int ndim, const int64_t *extent);

/* A shard of elements of another, which outlives it, from `first` on at distances of `stride`, with the handles of its
 * tiles: tile i, a balanced piece along cut_dim, is part of tile i there. For reading. */
shard *shard_alias(const shard *base, int64_t first, int ndim, const int64_t *extent, const int64_t *stride,
                   int cut_dim);

/* Ends a shard of shard_lend, shard_within, shard_borrow, shard_part or shard_alias. */
void shard_end(shard *s);

/* A shard in memory of the host, which only tasks touch: strides in elements, in any order. handle: the host's handle
 * of all of it, its only tile then; NULL: the call registers tiles. The caller ends it by shard_unwrap, with nothing in
 * flight on it. */
shard *shard_wrap(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent,
                  const int64_t *stride, void *data, int cut_dim, int cut_parts, starpu_data_handle_t handle);
void shard_unwrap(shard *s);

/* For traces: names the handles name.row_column, where row and column number the tiles of the tensor in tiles of the
 * shard's size; the arguments are those of the first tile. name has characters [A-Za-z0-9_.]. */
void shard_label(shard *s, const char *name, int row, int column);

/* A tile's buffer in a codelet, vector or matrix, as one view: `rows` runs of `run` contiguous elements, at a distance
 * of `ld` elements. ptr is the buffer on the CPU or GPU. */
typedef struct shard_view {
    void *ptr;
    int64_t run, rows, ld;
} shard_view;
shard_view shard_buffer_view(void *interface);

/* Host access to all tiles: wakes the workers, acquires, and waits under the watchdog. Every acquire needs its release.
 * `what` names the wait. E_ORDER in a worker. */
trama_status shard_acquire(trama_context *c, shard *s, enum starpu_data_access_mode mode, const char *what);
void shard_release(trama_context *c, shard *s);

/* After the host wrote all of a shard of a GPU: brings it there while other work goes on. */
void shard_prefetch(trama_context *c, shard *s);

/* For shards that tasks and messages only read, run after run: a StarPU with FxT keeps 32 bytes for each reader until
 * the next write. This call drops them, in order with the tasks, without a wait and without a copy; call it every few
 * hundred readers. It adds one to the fence for each tile. Inside a context_wake bracket. */
void shard_forget_readers(trama_context *c, shard *s, fence *f);

/* The pool: its state, and the most bytes that it keeps in idle shards (default: 1/8 of the rank's share of memory). A
 * lower limit evicts idle shards, oldest first, and waits for the work in flight on them. */
typedef struct shard_pool_state {
    int64_t used, used_bytes; /* in use */
    int64_t idle, idle_bytes; /* kept for reuse */
    int64_t made;             /* shards ever made: constant while the pool suffices */
} shard_pool_state;
shard_pool_state shard_pool(const trama_context *c);
void shard_pool_limit(trama_context *c, int64_t bytes);

#endif
