/* SPDX-License-Identifier: Apache-2.0 */
/* An executable: a compiled program with its state, ready to be fed and run.
 *
 * Every call here is collective over the context's communicator unless it says otherwise: all ranks make the same calls
 * in the same order. Statuses other than TRAMA_OK have changed nothing; trama_error() has the message.
 *
 * A kernel of a user's op (trama_op_define.h) may fail: its results become NaN, or 0 for integers, and the run goes on.
 * The first failure on a rank is logged there at once, as an error that names the op, the line where it was applied,
 * the rank and the kernel's message. On that rank trama_wait, trama_read_wait and trama_read_local, which are not
 * collective, then answer E_KERNEL. The next trama_read or trama_print answers E_KERNEL on all ranks, with that
 * message, and so does every later collective call, which does nothing else. With one rank the next call answers it.
 * trama_executable_destroy frees everything all the same, and answers E_KERNEL if no call has before.
 *
 * The same holds, with E_MEMORY for E_KERNEL, for a built-in product whose scratch memory the system refuses on a CPU:
 * products of halves take at most 8 MiB, products of host memory without a contiguous dim a copy of it. Such a product
 * writes nothing into a state, and NaN elsewhere. */
#ifndef TRAMA_EXECUTABLE_H
#define TRAMA_EXECUTABLE_H

#include "trama_context.h"
#include "trama_program.h"

TRAMA_API_BEGIN

typedef struct trama_executable trama_executable; /* a compiled program and its state */
typedef struct trama_reading trama_reading;       /* a value on its way to the host */

/* Copies the program, completes its layouts, allocates and initialises its state. Errors: the program's first error,
 * E_LAYOUT, E_MEMORY; all ranks get the error that one rank finds. The program may be changed afterwards. Its values
 * and targets stand for those of the executable, as long as the program lives.
 *
 * All ranks compile the same program: shapes, attributes, ranges and seeds of parameters, numbers of constants,
 * layouts, targets. Lines of the source and addresses of functions may differ. Where programs differ, all ranks get
 * E_ORDER with one message: the first difference between two ranks, as each of the two has it, with their lines. The
 * context can then only be ended: every later collective call answers that message and does nothing, except that
 * trama_executable_destroy, trama_release and trama_stop free their memory. */
#define trama_compile(context, program, executable) trama_compile_at(TRAMA_HERE, context, program, executable)
trama_status trama_compile_at(trama_where where, trama_context *context, const trama_program *program,
                              trama_executable **executable);

/* Waits for all runs, frees the state, nulls *executable. NULL is allowed. */
trama_status trama_executable_destroy(trama_executable **executable);

/* Gives an input its data for later runs: data [shape] row-major, the whole tensor, the same on every rank. The call
 * copies it before it returns; a rank reads only its boxes. shape equals the input's shape, where TRAMA_ANY stands for
 * any extent >= 0; else E_SHAPE, with both shapes. */
#define trama_feed(executable, input, data, shape) trama_feed_at(TRAMA_HERE, executable, input, data, shape)
trama_status trama_feed_at(trama_where where, trama_executable *executable, const trama_value *input, const void *data,
                           trama_shape shape);

/* Gives an input its data by this rank's boxes only; shape is the global one. pieces[i] [extent of box i] is box i,
 * row-major; n is the number of boxes of this rank. An empty box may be NULL. Where several processes hold the same
 * box, all give the same data. E_ARGUMENT for another n.
 *
 *     trama_feed_local_count(run, x, TRAMA_SHAPE(rows, 784), &n);
 *     for (int i = 0; i < n; i++) {
 *         trama_feed_local_box(run, x, TRAMA_SHAPE(rows, 784), i, offset, extent);
 *         pieces[i] = my_rows(offset[0], extent[0]);
 *     }
 *     trama_feed_local(run, x, TRAMA_SHAPE(rows, 784), n, pieces);
 */
#define trama_feed_local(executable, input, shape, n, pieces)                                                          \
    trama_feed_local_at(TRAMA_HERE, executable, input, shape, n, pieces)
trama_status trama_feed_local_at(trama_where where, trama_executable *executable, const trama_value *input,
                                 trama_shape shape, int n, const void *const *pieces);

/* The boxes of trama_feed_local, for any global shape that the input may have, fed or not: their number, and the offset
 * [ndim] and extent [ndim] of box i in the whole tensor; an empty box has an extent of 0. Not collective; no buffer is
 * allocated for the shape. E_SHAPE as trama_feed, E_ARGUMENT where i is not from 0 to n - 1. */
#define trama_feed_local_count(executable, input, shape, n)                                                            \
    trama_feed_local_count_at(TRAMA_HERE, executable, input, shape, n)
trama_status trama_feed_local_count_at(trama_where where, trama_executable *executable, const trama_value *input,
                                       trama_shape shape, int *n);
#define trama_feed_local_box(executable, input, shape, i, offset, extent)                                              \
    trama_feed_local_box_at(TRAMA_HERE, executable, input, shape, i, offset, extent)
trama_status trama_feed_local_box_at(trama_where where, trama_executable *executable, const trama_value *input,
                                     trama_shape shape, int i, int64_t *offset, int64_t *extent);

/* One run of a target, asynchronous: returns when its tasks are submitted. Before, it waits for the run that was
 * submitted max_in_flight runs ago (trama_config). E_ORDER where an input of the target was not fed, E_SHAPE where fed
 * extents do not agree. */
#define trama_run(executable, target) trama_run_at(TRAMA_HERE, executable, target)
trama_status trama_run_at(trama_where where, trama_executable *executable, const trama_target *target);

/* The cycles of a target that accumulates gradients (trama_gradient_merge). trama_merge_set sets k >= 1, the
 * micro-steps of later cycles; E_ORDER within a cycle. The buffers of merged gradients are made when k is first above
 * 1. trama_flush applies the gradients of an incomplete cycle, which it ends; it does nothing where no cycle has
 * begun. */
#define trama_merge_set(executable, target, k) trama_merge_set_at(TRAMA_HERE, executable, target, k)
trama_status trama_merge_set_at(trama_where where, trama_executable *executable, const trama_target *target, int64_t k);
#define trama_flush(executable, target) trama_flush_at(TRAMA_HERE, executable, target)
trama_status trama_flush_at(trama_where where, trama_executable *executable, const trama_target *target);

/* Waits until all submitted runs are done. Not collective. */
trama_status trama_wait(trama_executable *executable);

/* Reads the global value of a parameter, a fed input or a value of a target that ran, as it is at this place of the
 * program: data [shape] row-major, bytes its size. A rank that passes NULL takes part and receives nothing. E_NOT_KEPT
 * for values of no target, E_ORDER before a run, E_SHAPE for another size. */
#define trama_read(executable, value, data, bytes) trama_read_at(TRAMA_HERE, executable, value, data, bytes)
trama_status trama_read_at(trama_where where, trama_executable *executable, const trama_value *value, void *data,
                           size_t bytes);

/* trama_read in two calls, so that runs go on between them. Every start needs its wait, which is not collective and
 * frees the reading. A wait after the executable was destroyed frees the reading too, and answers E_ORDER. */
#define trama_read_start(executable, value, reading) trama_read_start_at(TRAMA_HERE, executable, value, reading)
trama_status trama_read_start_at(trama_where where, trama_executable *executable, const trama_value *value,
                                 trama_reading **reading);
trama_status trama_read_wait(trama_reading **reading, void *data, size_t bytes);
/* Whether trama_read_wait would return at once. Not collective. */
bool trama_read_ready(const trama_reading *reading);

/* This rank's boxes of a value in the value's layout; no data moves, and the calls are not collective. The number of
 * boxes; the global offset [ndim] and extent [ndim] of box i; the data of box i, row-major. A box of a partial value is
 * one term. */
trama_status trama_local_count(trama_executable *executable, const trama_value *value, int *n);
trama_status trama_local_box(trama_executable *executable, const trama_value *value, int i, int64_t *offset,
                             int64_t *extent);
trama_status trama_read_local(trama_executable *executable, const trama_value *value, int i, void *data, size_t bytes);

/* Replaces the content of a parameter or state: data as for trama_feed, bytes its size. E_SHAPE for another size. */
#define trama_write(executable, state, data, bytes) trama_write_at(TRAMA_HERE, executable, state, data, bytes)
trama_status trama_write_at(trama_where where, trama_executable *executable, const trama_value *state, const void *data,
                            size_t bytes);

/* The shape of a value, as last fed or run. Not collective. */
trama_status trama_extents(trama_executable *executable, const trama_value *value, trama_shape *shape);

/* The global value as text: shape, layout and at most `most` numbers. trama_text_free frees it. */
#define trama_print(executable, value, most, text) trama_print_at(TRAMA_HERE, executable, value, most, text)
trama_status trama_print_at(trama_where where, trama_executable *executable, const trama_value *value, int most,
                            char **text);

/* The plan of a run of the target on this rank, for the extents fed last: a summary, or every step, with the user's line
 * and the nearest named tensor. Not collective. trama_text_free frees it. */
trama_status trama_plan_text(trama_executable *executable, const trama_target *target, bool every_step, char **text);

/* The plan of trama_plan_text as a graph in Graphviz's language: ops, layouts on the edges, changes of layout with this
 * rank's bytes. Not collective. trama_text_free frees it. */
trama_status trama_plan_graph(trama_executable *executable, const trama_target *target, char **dot);

/* The name, shape and layout of a value, then a line for each process of its mesh with its box, and the picture of
 * trama_layout_picture where there is one; and the same as SVG. Not collective. trama_text_free frees it. */
trama_status trama_tensor_describe(trama_executable *executable, const trama_value *value, char **text);
trama_status trama_tensor_svg(trama_executable *executable, const trama_value *value, char **svg);

/* The layout that completion gave a value, as text. Not collective. trama_text_free frees it. */
trama_status trama_layout_of(trama_executable *executable, const trama_value *value, char **text);

/* The planned work of this rank in one run of a target. Where the target accumulates gradients, the run is the last
 * micro-step of a cycle, and the fields apply_ count the part that the other micro-steps do not have. */
typedef struct trama_traffic {
    size_t size;                        /* bytes of this struct, or 0: trama_base.h, "Structs that may grow"; set before
                                           the call */
    int64_t messages;                   /* received and sent */
    int64_t bytes_received, bytes_sent; /* in messages, in collectives, and between places of this rank */
    int64_t bound;    /* bytes that this rank must receive at least for layouts without partials: the elements that its
                         processes lack, where the processes of one place share theirs */
    int steps, tasks; /* steps of the plan; steps that are no messages */
    int64_t apply_messages;                       /* received and sent */
    int64_t apply_received, apply_sent;           /* bytes in these messages */
    int apply_tasks;                              /* steps that are no messages */
    int collectives;                              /* of NCCL, summed over the rank's GPUs */
    int64_t collective_received, collective_sent; /* the part of these bytes that NCCL moves, at least */
} trama_traffic;

/* The traffic of a target for the extents fed last. Not collective. */
trama_status trama_target_traffic(trama_executable *executable, const trama_target *target, trama_traffic *traffic);

TRAMA_API_END
#endif
