/* SPDX-License-Identifier: Apache-2.0 */
/* An executable: a compiled program with its state, ready to be fed and run.
 *
 * Every call here is collective over the context's communicator unless it says otherwise: all ranks make the same calls
 * in the same order. Statuses other than TRAMA_OK have changed nothing; trama_error() has the message.
 *
 * A kernel of an op of one's own (trama_op_define.h) that fails ends nothing: its results become NaN, integers 0, and
 * the run goes on. The first failure on a rank is logged there at once as an error that names the op, the place where it was
 * applied, the rank and what the kernel said. That rank gets E_KERNEL from trama_wait, trama_read_wait and
 * trama_read_local, which are its own; all ranks get it together, with that message, from the next trama_read or
 * trama_print, and then from every collective call, none of which does anything any more. One rank alone gets it from
 * the next call. trama_executable_destroy frees everything all the same, and answers E_KERNEL if nobody was told before. */
#ifndef TRAMA_EXECUTABLE_H
#define TRAMA_EXECUTABLE_H

#include "trama_context.h"
#include "trama_program.h"

TRAMA_API_BEGIN

typedef struct trama_executable trama_executable; /* a compiled program and its state */
typedef struct trama_reading trama_reading;       /* a value on its way to the host */

/* Copies the program, completes its layouts, allocates and initialises its state. Errors: the program's own first
 * error, E_LAYOUT, E_MEMORY; what one rank finds is told to all. The program may be changed afterwards; its values and
 * targets name theirs here, as long as it lives.
 *
 * All ranks compile the same program: shapes, attributes, ranges and seeds of parameters, numbers of constants, layouts,
 * targets. Lines of the source and addresses of functions may differ. Where programs differ, all ranks get E_ORDER with one
 * message that has the first thing in which two ranks differ, as each of them has it, with their lines. The context then
 * ends: every later collective call answers that message and does nothing, but for trama_executable_destroy,
 * trama_release and trama_stop, which free what they have to. */
#define trama_compile(context, program, executable) trama_compile_at(TRAMA_HERE, context, program, executable)
trama_status trama_compile_at(trama_where where, trama_context *context, const trama_program *program,
                              trama_executable **executable);

/* Waits for all runs, frees the state, nulls *executable. NULL is allowed. */
trama_status trama_executable_destroy(trama_executable **executable);

/* Gives an input its data for the runs to come: data [shape] row-major, the whole tensor, the same on every rank,
 * copied on return (a rank reads only its boxes). shape fits the input's, TRAMA_ANY being any extent >= 0. E_SHAPE
 * names both. */
#define trama_feed(executable, input, data, shape) trama_feed_at(TRAMA_HERE, executable, input, data, shape)
trama_status trama_feed_at(trama_where where, trama_executable *executable, const trama_value *input, const void *data,
                           trama_shape shape);

/* The same with this rank's boxes only, of the global shape: pieces[i] [extent of box i] is box i, row-major; n is how
 * many the rank has. An empty box may be NULL. Of a value that lies on several processes each gives the same. E_ARGUMENT
 * for another n.
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

/* Which boxes those are, for any global shape that the input may have, whether it was fed or not: how many; and the
 * offset [ndim] and extent [ndim] of box i in the whole tensor, an extent of 0 where it is empty. Not collective; nothing
 * is allocated for the shape. E_SHAPE as trama_feed, E_ARGUMENT for a box that is not there. */
#define trama_feed_local_count(executable, input, shape, n)                                                            \
    trama_feed_local_count_at(TRAMA_HERE, executable, input, shape, n)
trama_status trama_feed_local_count_at(trama_where where, trama_executable *executable, const trama_value *input,
                                       trama_shape shape, int *n);
#define trama_feed_local_box(executable, input, shape, i, offset, extent)                                              \
    trama_feed_local_box_at(TRAMA_HERE, executable, input, shape, i, offset, extent)
trama_status trama_feed_local_box_at(trama_where where, trama_executable *executable, const trama_value *input,
                                     trama_shape shape, int i, int64_t *offset, int64_t *extent);

/* One run of a target, asynchronous: returns when its tasks are submitted. Waits for the run that is `max_in_flight` runs back
 * (trama_config). E_ORDER where an input that it needs was not fed, E_SHAPE where fed extents do not agree. */
#define trama_run(executable, target) trama_run_at(TRAMA_HERE, executable, target)
trama_status trama_run_at(trama_where where, trama_executable *executable, const trama_target *target);

/* For a target that merges gradients (trama_gradient_merge): how many micro-steps a cycle has from now on, k >= 1;
 * between cycles only, else E_ORDER. The buffers of merged gradients are made when k is first above 1. And: applies
 * what an incomplete cycle has gathered, as if it had ended; nothing where it has not begun. */
#define trama_merge_set(executable, target, k) trama_merge_set_at(TRAMA_HERE, executable, target, k)
trama_status trama_merge_set_at(trama_where where, trama_executable *executable, const trama_target *target, int64_t k);
#define trama_flush(executable, target) trama_flush_at(TRAMA_HERE, executable, target)
trama_status trama_flush_at(trama_where where, trama_executable *executable, const trama_target *target);

/* Waits until all that was submitted is done. Not collective. */
trama_status trama_wait(trama_executable *executable);

/* Reads the global value of a parameter, a fed input or a value of a target that ran, as it is at this place of the
 * program: data [shape] row-major, bytes its size. A rank that passes NULL takes part and receives nothing. E_NOT_KEPT
 * for values of no target, E_ORDER before a run, E_SHAPE for other sizes. */
#define trama_read(executable, value, data, bytes) trama_read_at(TRAMA_HERE, executable, value, data, bytes)
trama_status trama_read_at(trama_where where, trama_executable *executable, const trama_value *value, void *data,
                           size_t bytes);

/* The same in two steps, so that runs go on between them. Every start has its wait (not collective), which frees the
 * reading. A wait after the executable was destroyed frees it too, and answers E_ORDER. */
#define trama_read_start(executable, value, reading) trama_read_start_at(TRAMA_HERE, executable, value, reading)
trama_status trama_read_start_at(trama_where where, trama_executable *executable, const trama_value *value,
                                 trama_reading **reading);
trama_status trama_read_wait(trama_reading **reading, void *data, size_t bytes);
/* Whether trama_read_wait would return at once. Not collective. */
bool trama_read_ready(const trama_reading *reading);

/* This rank's boxes of a value in its own layout, without moving anything (not collective): how many; the global offset
 * [ndim] and extent [ndim] of one; its data, row-major. A box of a partial value is one term. */
trama_status trama_local_count(trama_executable *executable, const trama_value *value, int *n);
trama_status trama_local_box(trama_executable *executable, const trama_value *value, int i, int64_t *offset,
                             int64_t *extent);
trama_status trama_read_local(trama_executable *executable, const trama_value *value, int i, void *data, size_t bytes);

/* Replaces the content of a parameter or state: data as for trama_feed. */
#define trama_write(executable, state, data, bytes) trama_write_at(TRAMA_HERE, executable, state, data, bytes)
trama_status trama_write_at(trama_where where, trama_executable *executable, const trama_value *state, const void *data,
                            size_t bytes);

/* The extents of a value as last fed or run. Not collective. */
trama_status trama_extents(trama_executable *executable, const trama_value *value, trama_shape *shape);

/* The global value as text, for people: shape, layout, numbers (at most `most` of them). trama_text_free frees it. */
#define trama_print(executable, value, most, text) trama_print_at(TRAMA_HERE, executable, value, most, text)
trama_status trama_print_at(trama_where where, trama_executable *executable, const trama_value *value, int most,
                            char **text);

/* What a run of the target does on this rank, for the extents fed last: summary, or every step. Not collective. Caller
 * frees. */
trama_status trama_plan_text(trama_executable *executable, const trama_target *target, bool every_step, char **text);

/* The same as a graph in Graphviz's language: ops, layouts on the edges, changes of layout with this rank's bytes. Not
 * collective. trama_text_free frees it. */
trama_status trama_plan_graph(trama_executable *executable, const trama_target *target, char **dot);

/* Who holds what of a value, below its name, shape and layout: a line for each process of its mesh, and the picture of
 * trama_layout_picture where there is one; the same as SVG. Not collective. trama_text_free frees it. */
trama_status trama_tensor_describe(trama_executable *executable, const trama_value *value, char **text);
trama_status trama_tensor_svg(trama_executable *executable, const trama_value *value, char **svg);

/* The layout that completion gave a value, as text. Not collective. trama_text_free frees it. */
trama_status trama_layout_of(trama_executable *executable, const trama_value *value, char **text);

/* What this rank does in one run of the target, as planned: the last micro-step of a cycle, where it merges gradients.
 * apply_: what the other micro-steps of a cycle have not. */
typedef struct trama_traffic {
    size_t size;                        /* bytes of this struct, or 0: trama_base.h, "Structs that may grow"; set before
                                           the call */
    int64_t messages;                   /* received and sent */
    int64_t bytes_received, bytes_sent; /* in them, and in collectives */
    int64_t bound;                      /* bytes that this rank must receive at least for layouts without partials:
                                           what its processes lack, where those of one place share what they have */
    int steps, tasks;                   /* of the plan; those that are no messages */
    int64_t apply_messages;             /* received and sent */
    int64_t apply_received, apply_sent; /* bytes in them */
    int apply_tasks;                    /* those that are no messages */
    int collectives;                    /* among GPUs, of each GPU of the rank */
    int64_t collective_received, collective_sent; /* bytes of all above in them, which NCCL moves; at least */
} trama_traffic;

/* The traffic of a target for the extents fed last. Not collective. */
trama_status trama_target_traffic(trama_executable *executable, const trama_target *target, trama_traffic *traffic);

TRAMA_API_END
#endif
