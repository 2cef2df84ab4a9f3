/* SPDX-License-Identifier: Apache-2.0 */
/* The host's arrays as tensors, without a copy: boxes of any sizes and strides, distributed over the ranks in any way.
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
 * A buffer is borrowed from trama_wrap to trama_release. Between the two the host may use it only after a
 * trama_wait_wrapped, until the next call that uses it; a run uses the buffers that were fed without a copy. */
#ifndef TRAMA_WRAP_H
#define TRAMA_WRAP_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* A tensor in the host's memory. */
typedef struct trama_wrapped trama_wrapped;

/* A box of a tensor in the host's memory. Element (i, j, ...) of the box is element (offset[0] + i, offset[1] + j, ...)
 * of the tensor. It lies at data + element size * (i stride[0] + j stride[1] + ...). A box with an extent of 0 is
 * allowed. */
typedef struct trama_host_box {
    void *data;                     /* its first element */
    size_t bytes;                   /* size of the memory from data on; all elements lie within it */
    int64_t offset[TRAMA_MAX_NDIM]; /* index of the box's first element in the tensor */
    int64_t extent[TRAMA_MAX_NDIM]; /* elements of the box in each dim */
    int64_t stride[TRAMA_MAX_NDIM]; /* in elements, > 0 where the extent is above 1; all 0: row-major, without gaps */
    void *handle; /* a starpu_data_handle_t that the host has registered for the box in main memory; StarPU then orders
                     the host's tasks and Trama's. NULL: none */
} trama_host_box;

/* Trama's access to the host's memory. */
typedef enum trama_access {
    TRAMA_READ_WRITE, /* read and written */
    TRAMA_READ_ONLY   /* never written; data may point to constant memory */
} trama_access;

/* Makes a tensor [shape] of the boxes that the ranks have in their memory; shape has no TRAMA_ANY. Collective: all
 * ranks give the same name, dtype, shape and access; n and pieces [n] are this rank's boxes. Boxes of one rank are
 * disjoint, in the tensor and in memory. Boxes of two ranks are disjoint or equal; equal boxes hold equal values.
 * Elements that no box covers are never read or written; values can only be read into a tensor with such elements. name
 * is for messages and traces. The call reads, writes and copies no element.
 *
 * Errors, the same on all ranks; *wrapped is then unchanged: E_ARGUMENT (NULL, a buffer too small for its box, strides
 * by which elements share memory, two boxes that share memory (the message names both), data that are not aligned to
 * their element type, arguments that differ between ranks), E_SHAPE (a box outside the tensor), E_LAYOUT (boxes that
 * overlap; the message names both). */
#define trama_wrap(context, name, dtype, shape, n, pieces, access, wrapped)                                            \
    trama_wrap_at(TRAMA_HERE, context, name, dtype, shape, n, pieces, access, wrapped)
trama_status trama_wrap_at(trama_where where, trama_context *context, const char *name, trama_dtype dtype,
                           trama_shape shape, int n, const trama_host_box *pieces, trama_access access,
                           trama_wrapped **wrapped);

/* Waits for all work on the tensor, gives the buffers back to the host and nulls *wrapped; NULL is allowed. Collective.
 * The buffers then hold the values last read into them. An input that was fed from the tensor without a copy must be
 * fed again: until then a run that needs it answers E_ORDER. trama_stop answers E_ORDER before every tensor was
 * released. */
trama_status trama_release(trama_wrapped **wrapped);

/* Waits for all submitted work on the tensor. Not collective. E_KERNEL where a value of an executable was read into the
 * tensor and a kernel of that executable has failed on this rank. */
trama_status trama_wait_wrapped(trama_wrapped *wrapped);

/* The four calls below are collective and asynchronous. Each plans once for a pair of value and tensor, or of two
 * tensors. E_DTYPE and E_SHAPE where dtypes or shapes differ; E_ARGUMENT where a TRAMA_READ_ONLY tensor would be
 * written, and for a tensor that was released. */

/* Gives an input its data for later runs, as trama_feed does. Where every box of the input's layout lies in one of the
 * same rank's boxes, no data is copied: runs read the host's memory with the values that it has when they run.
 * Otherwise the call reshards the values of now into buffers of the input. *copied is true in the second case, the same
 * on all ranks; copied may be NULL. E_LAYOUT where an element is in no box; E_UNSUPPORTED in eager mode (use
 * trama_write_wrapped there), and for a partial input. */
#define trama_feed_wrapped(executable, input, wrapped, copied)                                                         \
    trama_feed_wrapped_at(TRAMA_HERE, executable, input, wrapped, copied)
trama_status trama_feed_wrapped_at(trama_where where, trama_executable *executable, const trama_value *input,
                                   trama_wrapped *wrapped, bool *copied);

/* Reshards a value, as it is at this place of the program, into the host's boxes. It takes the values that trama_read
 * takes. In eager mode it waits until that is done. */
#define trama_read_wrapped(executable, value, wrapped) trama_read_wrapped_at(TRAMA_HERE, executable, value, wrapped)
trama_status trama_read_wrapped_at(trama_where where, trama_executable *executable, const trama_value *value,
                                   trama_wrapped *wrapped);

/* Reshards the host's boxes into a parameter or state. E_LAYOUT where an element is in no box; E_UNSUPPORTED for
 * partial state. In eager mode it waits until that is done. */
#define trama_write_wrapped(executable, state, wrapped) trama_write_wrapped_at(TRAMA_HERE, executable, state, wrapped)
trama_status trama_write_wrapped_at(trama_where where, trama_executable *executable, const trama_value *state,
                                    trama_wrapped *wrapped);

/* Copies one wrapped tensor into another, from one distribution to the other, without an executable: each rank receives
 * each element that it lacks once. It takes no other memory than staging buffers (trama_config.staging_bytes). */
#define trama_reshard_wrapped(from, to) trama_reshard_wrapped_at(TRAMA_HERE, from, to)
trama_status trama_reshard_wrapped_at(trama_where where, trama_wrapped *from, trama_wrapped *to);

/* The planned messages and bytes of this rank in the last move into or out of the tensor by a call above; all 0 where
 * no data was moved. Not collective. */
trama_status trama_wrapped_traffic(const trama_wrapped *wrapped, trama_traffic *traffic);

/* ---- Boxes of common distributions: pure data, no context ----------------------------------------------------- */

/* The box of the process at a row-major position of the mesh: sets offset and extent of *piece, data, and bytes for a
 * row-major buffer of the box alone. Errors as of trama_layout_box; E_DTYPE; E_LAYOUT where a mask takes the box
 * away. */
trama_status trama_host_box_of_layout(const trama_mesh *mesh, const trama_layout *layout, trama_dtype dtype,
                                      trama_shape shape, int position, void *data, trama_host_box *piece);

/* A matrix [rows, columns] that is distributed in blocks over a grid of processes, as by ScaLAPACK (J. Choi, J. J.
 * Dongarra, R. Pozo, D. W. Walker, 1992: block (i, j) belongs to process (first_row + i, first_column + j), modulo the
 * grid), stored column by column with `ld` elements between columns: array descriptor DESC_(M_, N_, MB_, NB_, RSRC_,
 * CSRC_, LLD_). */
typedef struct trama_block_cyclic {
    int64_t rows, columns, row_block, column_block; /* M, N, MB, NB */
    int first_row, first_column;                    /* RSRC, CSRC: the process of block (0, 0) */
    int64_t ld;                                     /* LLD: at least max(1, rows of this process) */
    int grid_rows, grid_columns, row, column;       /* NPROW, NPCOL, MYROW, MYCOL */
} trama_block_cyclic;

/* The boxes of one process in its local array, data of `bytes` bytes: *pieces [*n], which the caller frees with free().
 * Blocks that follow each other in the matrix are one box. E_ARGUMENT for an impossible descriptor, E_DTYPE, E_SHAPE
 * for a local array of more than 2^60 bytes or 2^31-1 boxes, E_MEMORY. */
trama_status trama_host_boxes_block_cyclic(const trama_block_cyclic *descriptor, trama_dtype dtype, void *data,
                                           size_t bytes, int *n, trama_host_box **pieces);

TRAMA_API_END
#endif
