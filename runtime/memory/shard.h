/* SPDX-License-Identifier: Apache-2.0 */
/* A shard: one row-major buffer in the memory of a place and the StarPU handles of its tiles, pooled together. It does
 * not know what tensor it holds, nor who uses it when. */
#ifndef SHARD_H
#define SHARD_H

#include <starpu.h>

#include "fence.h"

typedef struct shard {
    int place; /* in the machine table, one of this rank's */
    trama_dtype dtype;
    int ndim;
    int64_t extent[TRAMA_MAX_NDIM];
    int64_t stride[TRAMA_MAX_NDIM]; /* elements; row-major contiguous, but in the host's memory and in views */
    int64_t count;                  /* elements, 1 for ndim 0 */
    size_t bytes;                   /* count * element, not what is allocated */
    void *data;                     /* [extent...], 64-byte aligned, valid for one element even if count is 0 */

    bool part;                  /* its handle is another shard's */
    int cut_dim;                /* -1 where there is one tile */
    int n_tiles;                /* >= 1 */
    starpu_data_handle_t *tile; /* [n_tiles] */
    int64_t *offset;            /* [n_tiles] first index of a tile along cut_dim; 0 where cut_dim is -1 */
    int readers;                /* reading tasks and messages since the last write; kept by who submits them */
    int64_t *length; /* [n_tiles] indices along cut_dim; extent[cut_dim] or 1 (ndim 0) where there is one tile */
} shard;

/* A shard with the given extents, its contents undefined (the bytes of its last user, to tasks as written data). Tiles
 * cut dim cut_dim into cut_parts balanced pieces: the first extent mod parts are one longer. cut_parts <= 1 or cut_dim
 * -1: one tile, and cut_parts must not exceed max(1, extent[cut_dim]). Handles: a contiguous tile is a vector
 * [elements], a tile of blocks that stand `ld` apart a matrix (nx = the contiguous elements, ny = blocks, ld), see
 * SHARD_*; of a tile of 0 elements, a vector of 1 on the buffer's first bytes. All handles have sequential consistency.
 * NULL with trama_error() where memory lacks. */
shard *shard_get(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent, int cut_dim,
                 int cut_parts);

/* Its memory on the host is locked, so that GPUs reach it at full speed, until it leaves the pool; of shards of GPUs
 * that transfers begin or end at. Locked memory is in use, whether it was written or not. */
void shard_pin(shard *s);

/* Back to the pool, without waiting: tasks and messages that were submitted on it go on, and who gets it next is
 * ordered after them by sequential consistency. NULL is allowed. */
void shard_put(trama_context *c, shard *s);

/* A shard of one tile in the memory of another, which outlives it: rows of runs as in shard_view, from element `first`
 * on; extents and strides (elements) say where its own elements are. Sequential consistency does not know that the two
 * share memory: order their uses by tasks that name both. Nothing is under way on it when it is ended. */
typedef struct shard_rows {
    int64_t first, run, rows, ld;
} shard_rows;
shard *shard_lend(trama_context *c, const shard *base, shard_rows rows, int ndim, const int64_t *extent,
                  const int64_t *stride);

/* Row-major elements of a shard of one tile, from `first` on, under that tile's handle: what uses the one uses the
 * other. */
shard *shard_part(const shard *base, int64_t first, int ndim, const int64_t *extent);

/* Of both. */
void shard_end(shard *s);

/* A shard in memory that the host owns, which is not touched but by tasks: strides in elements, in any order. handle:
 * the host's own for all of it, which then is its one tile; NULL: tiles get handles here. The caller ends it; nothing
 * is under way on it then. */
shard *shard_wrap(trama_context *c, int place, trama_dtype dtype, int ndim, const int64_t *extent,
                  const int64_t *stride, void *data, int cut_dim, int cut_parts, starpu_data_handle_t handle);
void shard_unwrap(shard *s);

/* For traces: what it holds, and where in its tensor: row and column of its first tile, as tiles of its size count. The
 * handles are called name.row_column. name is made of [A-Za-z0-9_.]. */
void shard_label(shard *s, const char *name, int row, int column);

/* The interface of a tile's buffer in a codelet is a vector or matrix; both cases through one view: `rows` runs of
 * `run` contiguous elements, `ld` elements apart. ptr is the buffer of the CPU or GPU. */
typedef struct shard_view {
    void *ptr;
    int64_t run, rows, ld;
} shard_view;
shard_view shard_buffer_view(void *interface);

/* Host access to all tiles: wakes the workers, acquires, waits without spinning under the watchdog. Every acquire has
 * its release. Not from a worker. `what` names the wait. E_ORDER from a worker. */
trama_status shard_acquire(trama_context *c, shard *s, enum starpu_data_access_mode mode, const char *what);
void shard_release(trama_context *c, shard *s);

/* For shards that tasks and messages only read, step after step: a StarPU with FxT keeps 32 bytes for each reader until
 * the next write. Forgets them, in order with the tasks, without a wait and without a copy; call it every few hundred
 * readers. One fence unit per tile; inside a context_wake bracket. */
void shard_forget_readers(trama_context *c, shard *s, fence *f);

/* The pool: bytes that it may keep in unused shards (default 1/8 of the rank's share of memory), what it holds.
 * Lowering the limit evicts, oldest first, waiting for what is under way on them. */
typedef struct shard_pool_state {
    int64_t used, used_bytes; /* handed out */
    int64_t idle, idle_bytes; /* in the pool */
    int64_t made;             /* shards ever made: stays constant where the pool serves */
} shard_pool_state;
shard_pool_state shard_pool(const trama_context *c);
void shard_pool_limit(trama_context *c, int64_t bytes);

#endif
