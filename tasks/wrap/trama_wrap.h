/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own arrays as tensors, without a copy: boxes of any sizes and strides, dealt out to ranks in any way.
 *
 *     trama_wrapped *a, *b;
 *     trama_wrap(context, "a", TRAMA_F64, TRAMA_SHAPE(n, n), 1, &piece_of_a, TRAMA_READ_ONLY, &a);
 *     trama_wrap(context, "b", TRAMA_F64, TRAMA_SHAPE(n, n), 1, &piece_of_b, TRAMA_READ_WRITE, &b);
 *     trama_feed_wrapped(executable, x, a, NULL); // no copy where each box of x lies in one of the host's
 *     trama_run(executable, target);
 *     trama_read_wrapped(executable, y, b);       // resharded into the host's boxes, asynchronously
 *     trama_wait_wrapped(b);                      // now the host may look at b
 *     trama_release(&a);
 *     trama_release(&b);
 *
 * A buffer is borrowed from trama_wrap to trama_release. In between it is the host's only from a trama_wait_wrapped to
 * the next call that uses it (a run reads what was fed without a copy). */
#ifndef TRAMA_WRAP_H
#define TRAMA_WRAP_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* A tensor in the host's memory. */
typedef struct trama_wrapped trama_wrapped;

/* A box of a tensor in the host's memory: element (i, j, ...) of it, element (offset[0] + i, ...) of the tensor, lies at
 * data + element size * (i stride[0] + j stride[1] + ...). A box with an extent of 0 is allowed. */
typedef struct trama_host_box {
    void *data;                      /* its first element */
    size_t bytes;                    /* that may be used from data on: no element lies behind them */
    int64_t offset[TRAMA_MAX_NDIM];  /* of the box in the tensor */
    int64_t extent[TRAMA_MAX_NDIM];  /* of the box */
    int64_t stride[TRAMA_MAX_NDIM];  /* in elements, > 0 where the extent is above 1; all 0: row-major, without gaps */
    void *handle;                    /* a starpu_data_handle_t that the host has registered for the box in main memory,
                                        so that its tasks and Trama's follow each other; NULL: none */
} trama_host_box;

/* What Trama may do with the host's memory. */
typedef enum trama_access {
    TRAMA_READ_WRITE, /* read and written */
    TRAMA_READ_ONLY   /* never written; data may point to constant memory */
} trama_access;

/* This rank's boxes of a tensor [shape], which is known in full. Collective; n, pieces and the rest of the arguments may
 * differ but for name, dtype, shape and access. Boxes of one rank are disjoint, in the tensor and in memory; those of
 * two ranks are disjoint, or equal: copies, which hold equal values. What no box covers is not read or written; a tensor
 * with such elements cannot be fed from. name is for messages and traces. Nothing is read, written or copied here.
 *
 * Errors, equal on all ranks, and then *wrapped is left as it was: E_ARGUMENT (NULL, a buffer too small for its box,
 * strides by which elements share memory, arguments that differ between ranks), E_SHAPE (a box outside the tensor),
 * E_LAYOUT (boxes that overlap; the message names both). */
#define trama_wrap(context, name, dtype, shape, n, pieces, access, wrapped)                                            \
    trama_wrap_at(TRAMA_HERE, context, name, dtype, shape, n, pieces, access, wrapped)
trama_status trama_wrap_at(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                           trama_shape shape, int n, const trama_host_box *pieces, trama_access access,
                           trama_wrapped **wrapped);

/* Waits for all that uses it, gives the buffers back to the host and nulls *wrapped; NULL is allowed. Collective. They
 * hold what was last read into them. What was fed from it without a copy is not fed any more (E_ORDER when it is needed).
 * Before trama_stop, which else is refused. */
trama_status trama_release(trama_wrapped **wrapped);

/* Waits for all that was submitted and uses it. Not collective. E_KERNEL where a kernel of the executable whose value was
 * read into it has failed on this rank. */
trama_status trama_wait_wrapped(trama_wrapped *wrapped);

/* All calls below are collective and asynchronous, and only plan once for each pair of what they name. E_DTYPE and
 * E_SHAPE where dtypes or shapes differ, E_ARGUMENT where a tensor that is read only would be written. A tensor that was
 * released is NULL: E_ARGUMENT. */

/* Gives an input its data for the runs to come, as trama_feed does. Where every box that the input's layout asks for lies
 * in one of the same rank's boxes, runs read the host's memory, as it is when they run; else the values are resharded
 * into buffers of the input, as they are now. *copied, where not NULL, says which, the same on all ranks. E_LAYOUT where
 * elements are missing; E_UNSUPPORTED in eager mode, where trama_write_wrapped serves, and for an input that is
 * a sum of terms. */
#define trama_feed_wrapped(executable, input, wrapped, copied)                                                         \
    trama_feed_wrapped_at(TRAMA_HERE, executable, input, wrapped, copied)
trama_status trama_feed_wrapped_at(trama_where where, trama_executable *executable, const trama_value *input,
                                   trama_wrapped *wrapped, bool *copied);

/* The value, as it is at this place of the program, into the host's boxes. Which values: as trama_read. In eager mode it
 * waits. */
#define trama_read_wrapped(executable, value, wrapped) trama_read_wrapped_at(TRAMA_HERE, executable, value, wrapped)
trama_status trama_read_wrapped_at(trama_where where, trama_executable *executable, const trama_value *value,
                                   trama_wrapped *wrapped);

/* Replaces the content of a parameter or state. E_LAYOUT where elements are missing; E_UNSUPPORTED for state that is a
 * sum of terms. In eager mode it waits. */
#define trama_write_wrapped(executable, state, wrapped) trama_write_wrapped_at(TRAMA_HERE, executable, state, wrapped)
trama_status trama_write_wrapped_at(trama_where where, trama_executable *executable, const trama_value *state,
                                    trama_wrapped *wrapped);

/* From one distribution to another, without an executable: each rank receives the elements that it lacks, once. Beside
 * the two there are message buffers only (trama_config.staging_bytes). */
#define trama_reshard_wrapped(from, to) trama_reshard_wrapped_at(TRAMA_HERE, from, to)
trama_status trama_reshard_wrapped_at(trama_where where, trama_wrapped *from, trama_wrapped *to);

/* Messages, and bytes that this rank receives and sends, in the last move that a call above made into or out of it, as
 * planned; all 0 where nothing was moved. Not collective. */
trama_status trama_wrapped_traffic(const trama_wrapped *wrapped, trama_traffic *traffic);

/* ---- Boxes of common distributions: pure data, no context ----------------------------------------------------- */

/* The box of the process at a row-major position of the mesh, in a buffer of its own, row-major: offset, extent, data
 * and bytes of *piece are set. Errors as of trama_layout_box; E_LAYOUT where a mask takes the box away. */
trama_status trama_host_box_of_layout(const trama_mesh *mesh, const trama_layout *layout, trama_dtype dtype,
                                   trama_shape shape, int position, void *data, trama_host_box *piece);

/* A matrix [rows, columns] that is dealt out in blocks to a grid of processes, as ScaLAPACK does it (J. Choi, J. J.
 * Dongarra, R. Pozo, D. W. Walker, 1992: block (i, j) belongs to process (first_row + i, first_column + j), modulo the
 * grid), stored column by column with `ld` elements between columns: array descriptor DESC_(M_, N_, MB_, NB_, RSRC_,
 * CSRC_, LLD_). */
typedef struct trama_block_cyclic {
    int64_t rows, columns, row_block, column_block; /* M, N, MB, NB */
    int first_row, first_column;                    /* RSRC, CSRC: who has block (0, 0) */
    int64_t ld;                                     /* LLD: at least max(1, rows of this process) */
    int grid_rows, grid_columns, row, column;       /* NPROW, NPCOL, MYROW, MYCOL */
} trama_block_cyclic;

/* The local boxes of one process in its local array: *n of them, which the caller frees with free(). Blocks that follow
 * each other in the matrix are one box. E_ARGUMENT for numbers that do not fit, E_SHAPE for a local array of more
 * than 2^60 bytes or 2^31-1 boxes. */
trama_status trama_host_boxes_block_cyclic(const trama_block_cyclic *descriptor, trama_dtype dtype, void *data,
                                       size_t bytes, int *n, trama_host_box **pieces);

TRAMA_API_END
#endif
